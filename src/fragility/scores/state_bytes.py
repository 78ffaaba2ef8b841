"""A state as bytes, with version and checksum: the same cases make the same bytes.

Nothing in bytes from elsewhere is taken on trust: a checksum does not tell who wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._names import shown
from .._typing import Integers
from .._validation import SUM_TOLERANCE
from ..envelope import Envelope
from ..exact import ExactSums
from .cases import Cases
from .rows import Sample
from .state import ScoreState
from .stored import (
    HEAVIEST,
    LIGHTEST,
    check_kind,
    check_stored,
    check_stored_labels,
    check_sums,
    check_support,
)
from .sums import ModelSums, Shape, Sums
from .tally import Cells, threshold_grid

_ENVELOPE = Envelope(b"fragility-state", "ScoreState", version=1)
#: A state from elsewhere may ask for so much memory.
_MOST_BYTES = 1 << 31
_MOST_NAMES = 1 << 16
_MOST_CELLS = 1 << 24
#: Allowed for the rounding of sums.
_ROUNDING = 1e-9
#: Minus the logarithm of the least probability that a log-loss counts.
_LARGEST_LOSS = 36.05


def sealed(state: ScoreState) -> bytes:
    """Bytes of a state."""
    labels = state.labels.astype(np.int64) if state.labels.dtype.kind == "b" else state.labels
    head = {
        "labels": labels.tolist(),
        "positive": state.positive,
        "models": list(state.models),
        "groups": [[column, list(names)] for column, names in state.groups.items()],
        "weighted": state.weighted,
        "priced": state.priced,
        "hold": None if state.hold == inf else state.hold,
        "complete": state.complete,
    }
    arrays: list[NDArray[Any]] = [state.support, state.group_support]
    if state.complete:
        arrays += _case_arrays(state.cases(), None) if state.held else []
    else:
        for model in state.sums().models.values():
            for bins in (model.bins, model.confidence, model.groups):
                arrays += [] if bins is None else bins.to_arrays()
            for sums in (*model.tally.sums.values(), model.totals):
                arrays += _sum_arrays(sums)
        sample = state.sample()
        if sample is not None:
            arrays += _case_arrays(sample.cases, sample.counts)
    try:
        return _ENVELOPE.seal(head, arrays)
    except TypeError:
        raise ValueError(
            "A state is written with labels that are text, whole numbers or booleans; these are "
            f"{listed(state.labels)}."
        ) from None


def _case_arrays(cases: Cases, counts: Integers | None) -> list[NDArray[Any]]:
    codes, *columns = cases.columns
    found = [codes.astype(np.int64), np.stack(columns).astype(np.float64)]
    return found if counts is None else [*found, counts]


def _sum_arrays(sums: ExactSums) -> list[NDArray[Any]]:
    sums.settle()
    flat = sums.digits.reshape(len(sums.digits), -1)
    held = np.flatnonzero(flat.any(axis=0))
    return [held, np.array([sums.lowest]), flat[:, held]]


def opened(data: bytes) -> ScoreState:
    """The state that `sealed` wrote."""
    head, arrays = _ENVELOPE.open(data)
    try:
        state = _opened(head, arrays)
        if sealed(state) != bytes(data):
            raise ValueError("it is not written as this library writes it.")
        return state
    except ValueError as error:
        raise ValueError(f"This ScoreState cannot be read: {error}") from error


def _opened(head: dict[str, Any], arrays: list[NDArray[Any]]) -> ScoreState:
    state = _empty(head)
    source = iter(arrays)
    try:
        support, group_support = next(source), next(source)
        check_support(support, state.support.shape)
        check_support(group_support, state.group_support.shape)
        first = 0
        for names in state.groups.values():
            if not (group_support[first : first + len(names)].sum(axis=0) == support).all():
                raise ValueError("its groups do not hold the cases of its classes.")
            first += len(names)
        state.support[...], state.group_support[...] = support, group_support
        n = int(support.sum())
        if (n == 0) != (state.priced is None):
            raise ValueError("it says of no cases, or does not say, whether they have costs.")
        if head["complete"] != (n * state.n_columns <= state.hold):
            raise ValueError("it holds more cases than it may, or none though it may.")
        if head["complete"]:
            if support.any():
                state.take_cases(_cases(state, next(source), next(source), support))
        else:
            _check_memory(state.shape)
            sums = Sums(state.shape)
            for model in sums.models.values():
                _take_model(model, state, source)
            sample = None
            rest, source = list(source), iter(())
            if rest:
                sample = _sample(state, rest)
            elif state.samples:
                raise ValueError("it lacks the sample of its cases.")
            state.take_sums(sums, sample)
    except StopIteration:
        raise ValueError("it lacks arrays.") from None
    if next(source, None) is not None:
        raise ValueError("it has more arrays than it should.")
    return state


def _empty(head: dict[str, Any]) -> ScoreState:
    """A state of the same settings, without cases."""
    known = {"labels", "positive", "models", "groups", "weighted", "priced", "hold", "complete"}
    unlike = set(head) ^ known
    if unlike:
        raise ValueError(f"its head lacks, or should not have, {listed(sorted(unlike))}.")
    labels, hold = head["labels"], head["hold"]
    check_stored_labels(labels)
    kinds = {
        "positive": (int,),
        "weighted": (bool,),
        "complete": (bool,),
        "priced": (bool, NoneType),
        "hold": (float, NoneType),
    }
    for name, types in kinds.items():
        if type(head[name]) not in types:
            raise ValueError(f"its {name} is {shown(head[name])}.")
    if not 0 <= head["positive"] < len(labels):
        raise ValueError("its positive class is not one of its classes.")
    if hold is not None and not 0.0 <= hold < inf:
        raise ValueError(f"its hold is {shown(hold)}.")
    models, groups = head["models"], head["groups"]
    _check_texts(models, "models")
    if not isinstance(groups, list) or not all(
        isinstance(part, list) and len(part) == 2 for part in groups
    ):
        raise ValueError(f"its groups are {shown(groups)}.")
    for column, names in groups:
        _check_texts([column], "groups")
        _check_texts(names, "groups")
    columns = dict(groups)
    if len(columns) < len(groups):
        raise ValueError("it has a column of groups twice.")
    if len(labels) * sum(len(names) for names in columns.values()) > _MOST_CELLS:
        raise ValueError("it has too many classes and groups.")
    state = ScoreState(
        labels,
        models,
        columns,
        head["weighted"],
        inf if hold is None else hold,
        pos_label=labels[head["positive"]] if len(labels) == 2 else None,
    )
    if state.labels.tolist() != labels or state.positive != head["positive"]:
        raise ValueError("its classes are not written as this library writes them.")
    state.priced = head["priced"]
    return state


def _check_memory(shape: Shape) -> None:
    """Before any is asked for."""
    n_groups, length = sum(shape.n_groups), threshold_grid(shape.n_classes).size
    cells = shape.n_classes**2 * length + shape.n_columns * shape.n_classes * shape.layout.length
    if n_groups:
        cells += n_groups * shape.n_columns * shape.n_classes * shape.group_layout.length
    needed = 40 * len(shape.models) * cells
    if needed > _MOST_BYTES:
        raise ValueError(f"it needs {needed / 2**30:.1f} GiB, more than 2 GiB.")


def _check_texts(names: Any, what: str) -> None:
    if (
        not isinstance(names, list)
        or not 0 < len(names) <= _MOST_NAMES
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"its {what} are {shown(names)}.")


def _cases(
    state: ScoreState,
    codes: NDArray[Any],
    columns: NDArray[Any],
    support: Integers | None,
) -> Cases:
    """Cases from columns, each of which is checked."""
    n, n_scores = codes.size, state.n_columns
    n_others = int(state.weighted) + int(bool(state.priced))
    check_kind(codes, "i", (n,), "codes")
    check_kind(columns, "f", (n_scores + n_others + len(state.groups), n), "cases")
    if n and not 0 <= codes.min() <= codes.max() < state.labels.size:
        raise ValueError("its cases have classes that it does not have.")
    if (
        support is not None
        and not (np.bincount(codes, minlength=state.labels.size) == support).all()
    ):
        raise ValueError("its number of cases does not fit the cases that it holds.")
    if not np.isfinite(columns).all():
        raise ValueError("its cases hold numbers that are not finite.")
    scores, rest = columns[:n_scores], list(columns[n_scores:])
    if n and not (scores.min() >= 0.0 and scores.max() <= 1.0):
        raise ValueError("its scores are not from 0 to 1.")
    if not state.is_binary and n:
        sums = scores.reshape(len(state.models), -1, n).sum(axis=1)
        if not (np.abs(sums - 1.0) <= SUM_TOLERANCE + 1e-5).all():
            raise ValueError("the scores of a case do not sum to one.")
    weights = rest.pop(0) if state.weighted else None
    if weights is not None and n and not LIGHTEST <= weights.min() <= weights.max() <= HEAVIEST:
        raise ValueError("its weights are out of range.")
    costs = rest.pop(0) if state.priced else None
    if (
        costs is not None
        and n
        and not (((costs >= LIGHTEST) & (costs <= HEAVIEST)) | (costs == 0.0)).all()
    ):
        raise ValueError("its costs are negative, or out of range.")
    groups = None
    if state.groups:
        sizes = [len(names) for names in state.groups.values()]
        for places, size in zip(rest, sizes, strict=True):
            whole = np.equal(places, np.rint(places)).all()
            if n and not (whole and 0 <= places.min() <= places.max() < size):
                raise ValueError("its cases have groups that it does not have.")
        groups = np.stack(rest, axis=1).astype(np.int64)
    per_model = 1 if state.is_binary else state.labels.size
    by_model = {}
    for place, name in enumerate(state.models):
        part = scores[place * per_model : (place + 1) * per_model]
        by_model[name] = part[0] if state.is_binary else np.ascontiguousarray(part.T)
    return Cases(codes, by_model, weights, groups, costs)


def _sample(state: ScoreState, arrays: Sequence[NDArray[Any]]) -> Sample:
    if len(arrays) != 3:
        raise ValueError("its sample of cases is not whole.")
    codes, columns, counts = arrays
    cases = _cases(state, codes, columns, None)
    check_kind(counts, "i", codes.shape, "counts")
    totals = np.zeros(state.labels.size)
    np.add.at(totals, codes, counts)
    if not (counts > 0).all() or not (totals <= state.support).all():
        raise ValueError("its sample holds more cases than there are.")
    return Sample(cases, counts)


def _take_model(model: ModelSums, state: ScoreState, source: Iterator[NDArray[Any]]) -> None:
    """Fill the sums of a model."""
    classes, columns = state.labels.size, state.shape.n_columns
    counts = np.broadcast_to(state.support, (columns, classes))
    _take_bins(model, "bins", counts, source)
    later = {}
    if model.confidence is not None:
        n = 8 + len(model.confidence.extra)
        later["confidence"] = [next(source) for _ in range(n + 1)]
    if model.groups is not None:
        flat = state.group_support.ravel()
        _take_bins(model, "groups", np.broadcast_to(flat, (columns, flat.size)), source)
    for name, sums in model.tally.sums.items():
        _take_sums(sums, name, source)
    cells = model.tally.cells()
    if not (np.bincount(cells.true, cells.number, classes) == state.support).all():
        raise ValueError("its decisions are not those of its cases.")
    if any((part < 0.0).any() for part in cells[3:] if part is not None):
        raise ValueError("its decisions have negative amounts.")
    _check_totals(model, cells, state)
    if model.confidence is not None:
        wrong = int(cells.number[cells.wrong].sum())
        outcome = np.array([[wrong, int(state.support.sum()) - wrong]])
        _take_bins(model, "confidence", outcome, iter(later["confidence"]))
        weights = np.bincount(~cells.wrong, cells.weight, 2)
        _check_same(model.confidence.weights().sum(axis=1), weights)
    _take_sums(model.totals, "totals", source)
    most = float(cells.weight.sum()) * (1.0 + _ROUNDING)
    if not (0.0 <= model.log_loss <= _LARGEST_LOSS * most and 0.0 <= model.confident <= most):
        raise ValueError("its log-loss or its confidence is not one of its cases.")


def _check_same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.allclose(found, expected, rtol=_ROUNDING, atol=0.0):
        raise ValueError("its bins are not of the cases that its decisions are of.")


def _check_totals(model: ModelSums, cells: Cells, state: ScoreState) -> None:
    """Bins and decisions are of the same cases, class by class."""
    names = {"weight": model.bins.weights(), "number": model.bins.extra_sums("counts")}
    names["squares"] = model.bins.extra_sums("weight_squares")
    if cells.costs is not None:
        names |= {name: model.bins.extra_sums(name) for name in ("costs", "cost_squares")}
    for name, table in names.items():
        found = np.bincount(cells.true, getattr(cells, name), state.labels.size)
        _check_same(table.sum(axis=1), found)
    if model.groups is not None:
        shape = state.group_support.shape
        _check_same(model.groups.extra_sums("counts").sum(axis=1), state.group_support.ravel())
        weight, first = model.groups.weights().sum(axis=1).reshape(shape), 0
        for names_of_column in state.groups.values():
            part = weight[first : first + len(names_of_column)]
            _check_same(part.sum(axis=0), np.bincount(cells.true, cells.weight, shape[1]))
            first += len(names_of_column)
    for amount, squares in ((cells.weight, cells.squares), (cells.costs, cells.cost_squares)):
        if amount is None or squares is None:
            continue
        some = amount > 0.0
        effective = amount[some] ** 2 / np.maximum(squares[some], 1e-300)
        room = 1.0 + _ROUNDING
        if not ((effective >= 1.0 / room) & (effective <= cells.number[some] * room)).all():
            raise ValueError("its squared weights or costs do not fit its cases.")


def _take_bins(
    model: ModelSums, name: str, counts: Integers, source: Iterator[NDArray[Any]]
) -> None:
    bins = getattr(model, name)
    n_extra, ranges = len(bins.extra), bins.ranges.size > 0
    arrays = [next(source) for _ in range(8 + n_extra + ranges)]
    needed = check_stored(arrays, bins.layout, counts, n_extra=n_extra, ranges=ranges)
    if needed > _MOST_BYTES:
        raise ValueError(f"it needs {needed / 2**30:.1f} GiB.")
    bins.take_arrays(arrays)


def _take_sums(sums: ExactSums, name: str, source: Iterator[NDArray[Any]]) -> None:
    held, lowest, digits = next(source), next(source), next(source)
    check_kind(held, "i", (held.size,), name)
    check_kind(lowest, "i", (1,), name)
    check_kind(digits, "i", (digits.shape[0] if digits.ndim else 0, held.size), name)
    size = int(np.prod(sums.shape))
    if ((held < 0) | (held >= size)).any() or (np.diff(held) <= 0).any():
        raise ValueError(f"its {name} are not in order, or outside of those that it has.")
    if held.size:
        check_sums(digits, int(lowest[0]))
    elif digits.any() or lowest.any() or len(digits) != 1:
        raise ValueError(f"its {name} are not written as this library writes them.")
    sums.take(int(lowest[0]), digits, held)
