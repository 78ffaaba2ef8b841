"""A state as bytes, with version and checksum: the same cases make the same bytes.

Bytes are not trusted when they are read: a checksum does not tell who wrote them.
"""

from __future__ import annotations

from math import inf
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._names import shown
from .._parameters import require
from .._typing import Floats, Integers
from .._validation import SUM_TOLERANCE
from ..envelope import Envelope
from ..exact import ExactSums
from .answer_state import AnswerState
from .bins import ScoreBins
from .cases import HEAVIEST, LIGHTEST, REVIEW_SUMS, Cases
from .reviews import ReviewSums
from .rows import CountedCases
from .state import ScoreState
from .stored import (
    StoredArrays,
    check_head,
    check_memory,
    check_stored_labels,
    plain_labels,
    read_bins,
    read_sums,
    seal,
)
from .sums import ModelSums, Shape, Sums
from .tally import Cells

_ENVELOPE = Envelope(b"fragility-state", "ScoreState", version=3)
#: Most memory that a state from a file may take.
_MOST_BYTES = 1 << 31
_MOST_NAMES = 1 << 16
_MOST_CELLS = 1 << 24
#: Allowed for the rounding of sums.
_ROUNDING = 1e-9
#: Minus the logarithm of the least probability that a log-loss counts, with room for rounding.
_LARGEST_LOSS = 36.05


def sealed(state: ScoreState) -> bytes:
    """Bytes of a state."""
    head = {
        "labels": plain_labels(state.labels),
        "positive": state.positive,
        "models": list(state.models),
        "groups": [[column, list(names)] for column, names in state.groups.items()],
        "weighted": state.weighted,
        "priced": state.priced,
        "hold": None if state.hold == inf else state.hold,
        "complete": state.complete,
    }
    arrays: list[NDArray[Any]] = [state.support, state.group_support]
    if state.reviewed:  # states without reviews are written as before there were any
        head["reviewed"] = state.reviewed
        for sums in state.reviews.sums.values():
            arrays += _sum_arrays(sums)
    if isinstance(state, AnswerState):
        head["answers"] = True
        for sums in state.declined_sums.sums.values():
            arrays += _sum_arrays(sums)
    if state.complete:
        arrays += _case_arrays(state.cases(), None) if state.held else []
    else:
        for model in state.sums().all:
            for bins in (model.bins, model.confidence):
                arrays += [] if bins is None else bins.to_arrays()
            for sums in (*model.tally.sums.values(), model.totals):
                arrays += _sum_arrays(sums)
        sample = state.sample()
        if sample is not None:
            arrays += _case_arrays(sample.cases, sample.counts)
    return seal(_ENVELOPE, head, arrays, "state")


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

    def state_of(head: dict[str, Any], arrays: list[NDArray[Any]]) -> ScoreState:
        state = _opened(head, StoredArrays(arrays))
        require(sealed(state) == bytes(data), "it is not written as this library writes it.")
        return state

    return _ENVELOPE.open(data, state_of)


def _opened(head: dict[str, Any], source: StoredArrays) -> ScoreState:
    state = _empty(head)
    support = source.support(state.support.shape)
    group_support = source.support(state.group_support.shape)
    for part in state.by_group_column(group_support):
        same = (part.sum(axis=0) == support).all()
        require(same, "its groups do not hold the cases of its classes.")
    state.support[...], state.group_support[...] = support, group_support
    n = int(support.sum())
    state.reviewed = head.get("reviewed", "" if n else None)
    require(n > 0 or not state.reviewed, "it has reviews, but no cases.")
    if state.reviewed:
        _read_reviews(state, source)
    n_declined = _read_declined(state, source) if isinstance(state, AnswerState) else 0.0
    known = (n + n_declined == 0) == (state.priced is None)
    require(known, "it says of no cases, or does not say, whether they have costs.")
    fits = head["complete"] == (n * state.n_columns <= state.hold)
    require(fits, "it holds more cases than it may, or none though it may.")
    if not head["complete"]:
        _check_size(state.shape)
        sums = Sums(state.shape)
        for model in sums.models.values():
            _read_model(model, support[np.newaxis], source)
            _check_claims(model, model.tally.cells())
            if state.shape.reviewed:
                _check_reviews(model.bins, state)
        for name, model in sums.groups.items():
            _read_model(model, group_support, source)
            _check_groups(model, sums.models[name], state)
        state.take_sums(sums, _read_sample(state, source))
    elif n:
        cases = _read_cases(state, source)
        same = (np.bincount(cases.codes, minlength=support.size) == support).all()
        require(same, "its number of cases does not fit the cases that it holds.")
        state.held.append(cases)
        if state.reviewed:
            again = ReviewSums(support.size)
            again.add(cases)
            for name in again.sums:
                same = np.array_equal(again.table(name), state.reviews.table(name))
                require(same, "its reviews are not of the cases that it holds.")
    source.finish()
    return state


def _empty(head: dict[str, Any]) -> ScoreState:
    """A state of the same settings, without cases."""
    kinds = {
        "labels": (list,),
        "positive": (int,),
        "models": (list,),
        "groups": (list,),
        "weighted": (bool,),
        "priced": (bool, NoneType),
        "hold": (float, NoneType),
        "complete": (bool,),
    }
    if "answers" in head:
        kinds["answers"] = (bool,)
    if "reviewed" in head:
        kinds["reviewed"] = (str,)
    check_head(head, kinds)
    for name, types in kinds.items():
        require(type(head[name]) in types, f"its {name} is {shown(head[name])}.")
    labels, hold, models, groups = (head[name] for name in ("labels", "hold", "models", "groups"))
    check_stored_labels(labels)
    known = head.get("reviewed", "human") in ("human", "errors")
    require(known, f"its reviewed is {shown(head.get('reviewed'))}.")
    inside = 0 <= head["positive"] < len(labels)
    require(inside, "its positive class is not one of its classes.")
    require(hold is None or 0.0 <= hold < inf, f"its hold is {shown(hold)}.")
    _check_texts(models, "models")
    paired = all(isinstance(part, list) and len(part) == 2 for part in groups)
    require(paired, f"its groups are {shown(groups)}.")
    for column, names in groups:
        _check_texts([column], "groups")
        _check_texts(names, "groups")
    columns = dict(groups)
    require(len(columns) == len(groups), "it has a column of groups twice.")
    n_groups = sum(map(len, columns.values()))
    require(len(labels) * n_groups <= _MOST_CELLS, "it has too many classes and groups.")
    most = inf if hold is None else hold
    state: ScoreState
    if head.get("answers"):
        require(len(models) == 1, "it is of answers, but not of one model.")
        state = AnswerState(models[0], columns, head["weighted"], most)
    else:
        positive = labels[head["positive"]] if len(labels) == 2 else None
        state = ScoreState(labels, models, columns, head["weighted"], most, pos_label=positive)
    same = state.labels.tolist() == labels and state.positive == head["positive"]
    require(same, "its classes are not written as this library writes them.")
    state.priced = head["priced"]
    return state


def _read_declined(state: AnswerState, source: StoredArrays) -> float:
    """Fill the sums over declined cases; their number."""
    sums = state.declined_sums
    for name, own in sums.sums.items():
        read_sums(source, own, name)
    state.take_declined(sums)
    found = state.declined
    require(min(found.values()) >= 0.0, "its declined cases have negative amounts.")
    if found["number"] > 0.0:
        _check_effective(found["weight"], found["squares"], found["number"])
        _check_effective(found.get("costs", 0.0), found.get("cost_squares", 0.0), found["number"])
    else:
        require(not any(found.values()), "it has amounts of declined cases, but no such cases.")
    return found["number"]


def _read_reviews(state: ScoreState, source: StoredArrays) -> None:
    """Sums over what reviewers decide."""
    for name, sums in state.reviews.sums.items():
        read_sums(source, sums, name)
    number, weight, squares, errors = (state.reviews.table(name) for name in state.reviews.sums)
    same = (number.sum(axis=1) == state.support).all()
    require(same, "its reviews are not of its cases.")
    room = 1.0 + _ROUNDING
    apart = ~np.eye(len(number), dtype=np.bool_)
    fits = (
        (number >= 0.0).all()
        and ((number > 0.0) == (weight > 0.0)).all()
        and (errors >= 0.0).all()
        and (errors <= weight * room).all()
        and (squares * number * room >= weight**2).all()
        and (squares <= weight**2 * room).all()
    )
    if state.reviewed == "human":
        fits = fits and np.array_equal(errors, np.where(apart, weight, 0.0))
    else:
        fits = fits and not number[apart].any()
    require(bool(fits), "its reviews are not such as cases have.")


def _check_size(shape: Shape) -> None:
    """Refuse a state that needs much memory, before it takes any."""
    n_groups, length = sum(shape.n_groups), shape.task.thresholds.size
    decisions = shape.n_classes**2 * length
    cells = decisions + shape.n_columns * shape.n_classes * shape.layout.length
    if n_groups:
        of_group = shape.n_columns * shape.n_classes * shape.group_layout.length
        cells += n_groups * (decisions + of_group)
    check_memory(40 * len(shape.models) * cells, _MOST_BYTES)


def _check_texts(names: Any, what: str) -> None:
    fits = isinstance(names, list) and 0 < len(names) <= _MOST_NAMES
    texts = fits and all(isinstance(name, str) for name in names)
    require(texts, f"its {what} are {shown(names)}.")


def _read_cases(state: ScoreState, source: StoredArrays) -> Cases:
    """Cases from columns, each of which is checked."""
    n_scores, n_classes = state.n_columns, state.labels.size
    n_columns = n_scores + state.weighted + bool(state.priced) + bool(state.reviewed)
    n_columns += len(state.groups)
    codes = source.read("i", (None,), "codes")
    columns = source.read("f", (n_columns, codes.size), "cases")
    require(
        ((codes >= 0) & (codes < n_classes)).all(), "its cases have classes that it does not have."
    )
    require(np.isfinite(columns).all(), "its cases hold numbers that are not finite.")
    scores, rest = columns[:n_scores], list(columns[n_scores:])
    require(((scores >= 0.0) & (scores <= 1.0)).all(), "its scores are not from 0 to 1.")
    by_model = scores.reshape(len(state.models), -1, codes.size)
    if not state.is_binary:
        near = np.abs(by_model.sum(axis=1) - 1.0) <= SUM_TOLERANCE + 1e-5
        require(near.all(), "the scores of a case do not sum to one.")
    weights = rest.pop(0) if state.weighted else None
    require(weights is None or _in_range(weights).all(), "its weights are out of range.")
    costs = rest.pop(0) if state.priced else None
    fits = costs is None or (_in_range(costs) | (costs == 0.0)).all()
    require(fits, "its costs are negative, or out of range.")
    human, errors = _read_decisions(state, rest.pop(0)) if state.reviewed else (None, None)
    for places, names in zip(rest, state.groups.values(), strict=True):
        known = (places == np.rint(places)) & (places >= 0) & (places < len(names))
        require(known.all(), "its cases have groups that it does not have.")
    groups = np.stack(rest, axis=1).astype(np.int64) if rest else None
    found = {
        name: part[0] if state.is_binary else np.ascontiguousarray(part.T)
        for name, part in zip(state.models, by_model, strict=True)
    }
    return Cases(codes, found, weights, groups, costs, human, errors)


def _read_decisions(
    state: ScoreState, column: NDArray[Any]
) -> tuple[Integers | None, Floats | None]:
    """What humans decided, or how probably a reviewer errs."""
    if state.reviewed == "errors":
        fits = (_in_range(column) | (column == 0.0)) & (column <= 1.0)
        require(fits.all(), "its reviewers err with a probability that is none.")
        return None, column
    known = (column == np.rint(column)) & (column >= 0) & (column < state.labels.size)
    require(known.all(), "its humans decided for classes that it does not have.")
    return column.astype(np.int64), None


def _in_range(amounts: NDArray[Any]) -> NDArray[np.bool_]:
    return (amounts >= LIGHTEST) & (amounts <= HEAVIEST)


def _read_sample(state: ScoreState, source: StoredArrays) -> CountedCases | None:
    if not len(source):
        require(not state.sample_size, "it lacks the sample of its cases.")
        return None
    cases = _read_cases(state, source)
    counts = source.read("i", cases.codes.shape, "counts")
    totals = np.zeros(state.labels.size)
    np.add.at(totals, cases.codes, counts)
    possible = (counts > 0).all() and (totals <= state.support).all()
    require(possible, "its sample holds more cases than there are.")
    return CountedCases(cases, counts)


def _read_model(model: ModelSums, support: Integers, source: StoredArrays) -> None:
    """Fill the sums of a model, whose parts have so many cases of each class."""
    columns = len(model.bins.sums["weight"].digits[0])
    _fill_bins(model.bins, np.broadcast_to(support.ravel(), (columns, support.size)), source)
    if model.confidence is not None:  # the decisions say how many of these cases are wrong
        later = source.first(len(model.confidence.to_arrays()))
    for name, sums in model.tally.sums.items():
        read_sums(source, sums, name)
    parts = [model.tally.cells(part) for part in range(model.n_parts)]
    for part, cells in enumerate(parts):
        _check_decisions(model, part, cells, support[part])
    if model.confidence is not None:
        wrong = np.array([int(cells.number[cells.wrong].sum()) for cells in parts])
        outcome = np.stack([wrong, support.sum(axis=1) - wrong], axis=1)
        _fill_bins(model.confidence, outcome.reshape(1, -1), later)
        for name in ("weight", "number", "squares"):
            found = [np.bincount(~cells.wrong, getattr(cells, name), 2) for cells in parts]
            _check_same(model.confidence.table(name).sum(axis=1), np.concatenate(found))
    read_sums(source, model.totals, "totals")
    for part, cells in enumerate(parts):
        most = _LARGEST_LOSS * float(cells.weight.sum()) * (1.0 + _ROUNDING)
        possible = 0.0 <= model.log_loss(part) <= most
        require(possible, "its log-loss or its confidence is not one of its cases.")


def _check_decisions(model: ModelSums, part: int, cells: Cells, support: Integers) -> None:
    """Bins and decisions are of the same cases, class by class."""
    same = (np.bincount(cells.true, cells.number, support.size) == support).all()
    require(same, "its decisions do not fit its cases.")
    negative = any((amount < 0.0).any() for amount in cells[3:] if amount is not None)
    require(not negative, "its decisions have negative amounts.")
    costs = ("costs", "cost_squares") if cells.costs is not None else ()
    codes = slice(part * support.size, (part + 1) * support.size)
    for name in ("weight", "number", "squares", *costs):
        found = np.bincount(cells.true, getattr(cells, name), support.size)
        _check_same(model.bins.table(name, 0, codes).sum(axis=1), found)
    for amount, squares in ((cells.weight, cells.squares), (cells.costs, cells.cost_squares)):
        if amount is None or squares is None:
            continue
        _check_effective(amount, squares, cells.number)


def _check_effective(amount: Any, squares: Any, number: Any) -> None:
    """Amounts and their squares fit the numbers of cases."""
    some = np.asarray(amount) > 0.0
    amounts, squared, cases = (np.asarray(part)[some] for part in (amount, squares, number))
    effective = amounts**2 / np.maximum(squared, 1e-300)
    room = 1.0 + _ROUNDING
    possible = (effective >= 1.0 / room) & (effective <= cases * room)
    require(possible.all(), "its squared weights or costs do not fit its cases.")


def _check_claims(model: ModelSums, cells: Cells) -> None:
    """Confidences are possible for the decisions on all cases."""
    grid = model.tally.thresholds
    by_cell = np.bincount(cells.place, cells.weight, grid.size)
    low, high = by_cell * np.append(0.0, grid[:-1]), by_cell * grid
    claimed = model.confidences()
    inside = (claimed >= low * (1.0 - _ROUNDING)) & (claimed <= high * (1.0 + _ROUNDING))
    require(inside.all(), "its log-loss or its confidence is not one of its cases.")


def _check_groups(by_group: ModelSums, whole: ModelSums, state: ScoreState) -> None:
    """The groups of a column hold all cases: the same decisions, however they are counted."""
    for name, sums in by_group.tally.sums.items():
        totals = whole.tally.sums[name].floats(0)
        for part in state.by_group_column(sums.floats()):
            _check_same(part.sum(axis=0), totals)


def _check_same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    same = np.allclose(found, expected, rtol=_ROUNDING, atol=0.0)
    require(same, "its bins are not of the cases that its decisions are of.")


def _check_reviews(bins: ScoreBins, state: ScoreState) -> None:
    """Reviews by bin are those of the classes, and such as cases have."""
    errors, crossed, squares, slips = (bins.table(name) for name in REVIEW_SUMS)
    _check_same(errors.sum(axis=1), state.reviews.table("errors").sum(axis=1))
    room = 1.0 + _ROUNDING
    fits = (
        (errors <= slips * room).all()
        and (slips <= bins.table("weight") * room).all()
        and (squares <= crossed * room).all()
        and (crossed <= bins.table("squares") * room).all()
        and ((errors > 0.0) == (slips > 0.0)).all()
    )
    if state.reviewed == "human":
        fits = fits and np.array_equal(errors, slips) and np.array_equal(squares, crossed)
    require(bool(fits), "the reviews in its bins are not such as cases have.")


def _fill_bins(bins: ScoreBins, counts: Integers, source: StoredArrays) -> None:
    n_extra, ranges = len(bins.sums) - 3, bins.ranges.size > 0
    bins.take_arrays(
        read_bins(source, bins.layout, counts, _MOST_BYTES, n_extra=n_extra, ranges=ranges)
    )
