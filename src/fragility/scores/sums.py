"""Exact sums over any number of cases, from which figures are computed when cases are not held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers, Mask
from ..exact import ExactSums, whole_numbers
from ..measured import LEAST_PROBABILITY
from .bins import BLOCK, CHUNK, ScoreBins
from .cases import Cases
from .layout import Tails
from .tally import Tally, Task, cell_keys, cells_of

#: Bins in the middle are this power of one half wide: at most, in groups at most, and at least.
_FINEST, _FINEST_IN_GROUPS, _COARSEST = 13, 10, 4
#: Memory for the bins of all models, and for the bins of their groups.
_BINS_BYTES, _GROUPS_BYTES = 128_000_000, 64_000_000
#: Cases that are brought in order of their groups at once: many, so that each part of the memory
#: that is fetched for the sums of a group serves several of its cases.
_ORDERED = 1 << 19
#: A logarithm or a confidence is added in this unit.
_UNIT = 2.0**-36
#: No logarithm or confidence is more than so many units.
_MOST_UNITS = ceil(-log(LEAST_PROBABILITY) / _UNIT) + 1


@dataclass(frozen=True)
class Shape:
    """What is measured: classes, models, groups, and whether cases have weights and costs.

    Attributes
    ----------
    n_classes, positive : int
    models : tuple of str
    n_groups : tuple of int
        Number of groups in each column of groups.
    weighted, priced : bool
    answers : bool
        Whether cases are answers, see `fragility.scores.tally.Task`.
    reviewed : bool, default=False
        Whether reviewers err by case, in cases of two classes.
    """

    n_classes: int
    positive: int
    models: tuple[str, ...]
    n_groups: tuple[int, ...]
    weighted: bool
    priced: bool
    answers: bool = False
    reviewed: bool = False

    @cached_property
    def task(self) -> Task:
        """What the models are asked."""
        return Task(self.n_classes, self.positive, self.answers)

    @property
    def by_weight(self) -> bool:
        """Whether cases are weighed, not only counted."""
        return self.weighted or self.priced or self.reviewed

    @property
    def is_binary(self) -> bool:
        return self.n_classes == 2

    @property
    def n_columns(self) -> int:
        """Columns of scores of a model: two classes need one."""
        return 1 if self.is_binary else self.n_classes

    def group_places(self, cases: Cases) -> Iterator[Integers]:
        """By column of groups: place of each case's group among the groups of all columns."""
        firsts = np.cumsum((0, *self.n_groups))[:-1].tolist()
        columns = () if cases.groups is None else cases.groups.T
        for first, places in zip(firsts, columns, strict=True):
            yield np.add(places, first, dtype=np.int64)

    @cached_property
    def layout(self) -> Tails:
        """Bins of all cases: a function of this shape alone, so that states merge."""
        if self.is_binary:
            return Tails(_FINEST)
        return _affordable(_FINEST, len(self.models) * self.n_columns, self.n_classes, _BINS_BYTES)

    @cached_property
    def group_layout(self) -> Tails:
        """Bins of the cases of each group."""
        tables = len(self.models) * self.n_columns * sum(self.n_groups)
        return _affordable(_FINEST_IN_GROUPS, tables, self.n_classes, _GROUPS_BYTES)


def _affordable(finest: int, n_columns: int, n_classes: int, memory: int) -> Tails:
    for m in range(finest, _COARSEST - 1, -1):
        layout = Tails(m)
        if ScoreBins.state_bytes(layout.length, n_columns, n_classes) <= memory:
            return layout
    raise ValueError(
        f"{n_classes} classes (in {n_columns} columns of scores of models and groups) are too many "
        "for cases that are not held: hold all of them (hold=inf, --in-memory), or give fewer "
        "models or groups."
    )


def binned_scores(
    scores: NDArray[Any],
    codes: NDArray[Any],
    weights: Floats | None,
    costs: Floats | None,
    slips: Floats | None = None,
) -> ScoreBins:
    """Bins of the scores of two classes, as a state has them; costs and slips need weights."""
    bins = ScoreBins(
        Tails(_FINEST),
        1,
        2,
        ranges=True,
        squares=weights is not None,
        costs=costs is not None,
        reviews=slips is not None,
    )
    with np.errstate(under="ignore"):
        bins.add(scores, codes, weights, costs=costs, slips=slips)
    return bins


class ModelSums:
    """Sums over the scores of one model, of all cases or apart for each group.

    Parameters
    ----------
    shape : Shape
    by_group : bool, default=False
        Whether there is a part for each group, in wider bins; else all cases are one part.
    """

    def __init__(self, shape: Shape, *, by_group: bool = False) -> None:
        columns, classes, exact = shape.n_columns, shape.n_classes, shape.by_weight
        self.n_parts = sum(shape.n_groups) if by_group else 1
        layout = shape.group_layout if by_group else shape.layout
        self.bins = ScoreBins(
            layout,
            columns,
            self.n_parts * classes,
            ranges=True,
            squares=exact,
            costs=shape.priced,
            reviews=shape.reviewed and not by_group,
        )
        #: Confidence of wrong (0) and right (1) predictions; two classes have it in their column.
        self.confidence = None
        if not shape.is_binary:
            finest = layout if by_group else Tails(_FINEST)
            self.confidence = ScoreBins(finest, 1, 2 * self.n_parts, ranges=True, squares=exact)
        self.tally = Tally(shape.task, exact, shape.priced, self.n_parts)
        #: Of minus the logarithm of the probability of the truth; of all cases also of the
        #: confidence, by its cell.
        n_cells = 0 if by_group else self.tally.thresholds.size
        self.totals = ExactSums((self.n_parts, 1 + n_cells))

    @property
    def parts(self) -> tuple[ScoreBins | Tally | ExactSums | None, ...]:
        """All of it."""
        return self.bins, self.confidence, self.tally, self.totals

    def merge(self, other: ModelSums) -> None:
        """Add the sums over other cases."""
        for own, others in zip(self.parts, other.parts, strict=True):
            if own is not None:
                own.merge(others)  # type: ignore[arg-type]

    def log_loss(self, part: int = 0) -> float:
        """Sum over all cases of a part, weighted."""
        return float(self.totals.floats((part, slice(1)))[0]) * _UNIT

    def confidences(self) -> Floats:
        """Sum of the confidences in each cell of the thresholds, weighted; of all cases."""
        return np.asarray(self.totals.floats((0, slice(1, None))) * _UNIT)


class _Made(NamedTuple):
    """Predictions for some cases.

    Attributes
    ----------
    cells : ndarray of int
        Cell of the confidence.
    keys : ndarray of int
        Number of the cell of true class, predicted class and confidence.
    right : ndarray of bool
    confidence : ndarray
    lost, claimed : ndarray of int
        Minus the logarithm of the probability of the truth, and the confidence, in whole units.
    """

    cells: Integers
    keys: Integers
    right: Mask
    confidence: Floats
    lost: Integers
    claimed: Integers


class Sums:
    """Sums over the cases, by model.

    Parameters
    ----------
    shape : Shape
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.models = {name: ModelSums(shape) for name in shape.models}
        #: By group; without groups there are none.
        self.groups = {
            name: ModelSums(shape, by_group=True) for name in shape.models if shape.n_groups
        }

    @np.errstate(under="ignore")  # squares of tiny distances
    def add(self, cases: Cases) -> None:
        """Add cases."""
        if self.groups:
            for start in range(0, cases.size, _ORDERED):
                self._add(cases.take(slice(start, start + _ORDERED)).by_group)
        else:
            self._add(cases)
        if self.shape.is_binary:
            for name, own in self.groups.items():
                own.bins.take_ranges(self.models[name].bins, self._wider)

    def _add(self, cases: Cases) -> None:
        """Add cases, chunk by chunk."""
        for start in range(0, cases.size, CHUNK):
            chunk = cases.take(slice(start, start + CHUNK))
            if self.shape.by_weight:
                chunk = chunk.weighted()
            groups = [
                (places, places * self.shape.n_classes + chunk.codes)
                for places in (self.shape.group_places(chunk) if self.groups else ())
            ]
            for name in self.models:
                self._add_scores(name, chunk, groups)

    def _add_scores(
        self, name: str, chunk: Cases, groups: Sequence[tuple[Integers, Integers]]
    ) -> None:
        """Add the scores of a model; of each column of groups the place and the class there."""
        scores, codes, weights = chunk.scores[name], chunk.codes, chunk.weights
        slips = chunk.slips if self.shape.reviewed else None
        bins = self.models[name].bins
        found = bins.add(scores, codes, weights, costs=chunk.costs, slips=slips)
        for _, keys in groups:
            wider = [self._wider.take(part) for part in found] if self.shape.is_binary else None
            own = self.groups[name].bins
            own.add(scores, keys, weights, costs=chunk.costs, places=wider)
        for number, located in enumerate(found):
            part = slice(number * BLOCK, (number + 1) * BLOCK)
            block = chunk.take(part)
            values = block.scores[name].astype(np.float64, copy=False)
            made = self._predicted(block, values, located)
            _add_predictions(self.models[name], block, made, None)
            for places, _ in groups:
                _add_predictions(self.groups[name], block, made, places[part])

    def _predicted(self, block: Cases, scores: Floats, places: Integers) -> _Made:
        """Everything that depends on the predictions: decisions, confidence and log-loss."""
        codes, thresholds = block.codes.astype(np.int64), self.shape.task.thresholds
        predicted, confidence = self.shape.task.predictions(scores)
        if self.shape.is_binary:
            own = np.where(codes == self.shape.positive, scores, 1.0 - scores)
            keys = self._keys.take(places)
            cut = np.flatnonzero(keys < 0)  # bins that a threshold divides
            keys[cut] = self._key_of(predicted[cut], confidence[cut], thresholds)
        else:
            own = scores[np.arange(codes.size), codes]
            keys = self._key_of(predicted, confidence, thresholds)
        losses = -np.log(np.clip(own, LEAST_PROBABILITY, 1.0))
        confidence = np.minimum(confidence, 1.0)
        lost, claimed = (whole_numbers(terms * (1.0 / _UNIT)) for terms in (losses, confidence))
        of_class = self.shape.n_classes * thresholds.size
        return _Made(
            keys % thresholds.size,
            keys + codes * of_class,
            predicted == codes,
            confidence,
            lost,
            claimed,
        )

    def _key_of(self, predicted: Integers, confidence: Floats, thresholds: Floats) -> Integers:
        """Number of the cell of a prediction, among the cells of its true class."""
        shape = 1, self.shape.n_classes, thresholds.size
        return cell_keys(shape, np.zeros(1), predicted, cells_of(thresholds, confidence))

    @cached_property
    def _wider(self) -> Integers:
        """By bin of all cases: the bin of groups that it lies in."""
        return self.shape.layout.within(self.shape.group_layout)

    @cached_property
    def _keys(self) -> Integers:
        """By bin of the score of two classes: the cell of all its predictions, or -1."""
        edges, task = self.shape.layout.edges, self.shape.task
        ends = edges, np.append(np.nextafter(edges[1:], 0.0), 1.0)
        keys = [self._key_of(*task.predictions(end), task.thresholds) for end in ends]
        return np.where(keys[0] == keys[1], keys[0], -1)

    def as_weighted(self) -> Sums:
        """The same with a weight of one for every case."""
        if self.shape.weighted:
            return self
        found = Sums(replace(self.shape, weighted=True))
        found.merge(self)
        return found

    def merge(self, other: Sums) -> None:
        """Add the sums over other cases; cases without weights weigh one."""
        for own, others in zip(self.all, other.all, strict=True):
            own.merge(others)

    @property
    def all(self) -> list[ModelSums]:
        """The sums of every model, then those by group."""
        return [*self.models.values(), *self.groups.values()]


def _add_predictions(sums: ModelSums, block: Cases, made: _Made, parts: Integers | None) -> None:
    """Add predictions for at most `BLOCK` cases, and the part of each."""
    weights = block.weights
    sums.tally.add(made.keys, weights, block.costs, parts)
    if sums.confidence is not None:
        outcome = made.right.astype(np.int64)
        sums.confidence.add(
            made.confidence, outcome if parts is None else outcome + 2 * parts, weights
        )
    terms = [(np.zeros(made.cells.size, np.int64) if parts is None else parts, made.lost)]
    if parts is None:
        terms.append((1 + made.cells, made.claimed))
    for places, amounts in terms:
        if weights is None:
            sums.totals.add_each(places, amounts, most=_MOST_UNITS)
        else:
            sums.totals.add_at(places, amounts * weights)
