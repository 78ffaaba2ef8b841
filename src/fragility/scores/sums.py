"""Exact sums over any number of cases, from which figures are computed when cases are not held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers
from ..exact import ExactSums
from ..measured import LEAST_PROBABILITY
from .bins import BLOCK, CHUNK, ScoreBins
from .cases import Cases
from .layout import Tails
from .tally import Tally, cell_keys, cells_of, most_probable, threshold_grid

#: Bins in the middle are this power of one half wide: at most, in groups at most, and at least.
_FINEST, _FINEST_IN_GROUPS, _COARSEST = 13, 10, 4
#: Memory for the bins of all models, and for the bins of their groups.
_BINS_BYTES, _GROUPS_BYTES = 128_000_000, 64_000_000
#: A logarithm or a confidence is added in this unit.
_UNIT = 2.0**-36


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
    reviewed : bool, default=False
        Whether reviewers err by case, in cases of two classes.
    """

    n_classes: int
    positive: int
    models: tuple[str, ...]
    n_groups: tuple[int, ...]
    weighted: bool
    priced: bool
    reviewed: bool = False

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

    def group_keys(self, cases: Cases) -> Iterator[Integers]:
        """By column of groups: one number for the group and class of each case."""
        firsts = np.cumsum((0, *self.n_groups))[:-1].tolist()
        columns = () if cases.groups is None else cases.groups.T
        for first, places in zip(firsts, columns, strict=True):
            yield (places.astype(np.int64) + first) * self.n_classes + cases.codes

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
    """Sums over the scores of one model."""

    def __init__(self, shape: Shape) -> None:
        columns, classes, exact = shape.n_columns, shape.n_classes, shape.by_weight
        self.bins = ScoreBins(
            shape.layout,
            columns,
            classes,
            ranges=True,
            squares=exact,
            costs=shape.priced,
            reviews=shape.reviewed,
        )
        #: Confidence of wrong (0) and right (1) predictions; two classes have it in their column.
        self.confidence = None
        if not shape.is_binary:
            self.confidence = ScoreBins(Tails(_FINEST), 1, 2, ranges=True, squares=exact)
        groups = sum(shape.n_groups)
        self.groups = None
        if groups:
            self.groups = ScoreBins(
                shape.group_layout, columns, groups * classes, squares=shape.weighted
            )
        self.tally = Tally(classes, exact, shape.priced)
        #: Of minus the logarithm of the probability of the truth; of the confidence, by its cell.
        self.totals = ExactSums((1, 1 + self.tally.thresholds.size))

    @property
    def parts(self) -> tuple[ScoreBins | Tally | ExactSums | None, ...]:
        """All of it."""
        return self.bins, self.confidence, self.groups, self.tally, self.totals

    def merge(self, other: ModelSums) -> None:
        """Add the sums over other cases."""
        for own, others in zip(self.parts, other.parts, strict=True):
            if own is not None:
                own.merge(others)  # type: ignore[arg-type]

    @property
    def log_loss(self) -> float:
        """Sum over all cases, weighted."""
        return float(self.totals.floats()[0, 0]) * _UNIT

    @property
    def confidences(self) -> Floats:
        """Sum of the confidences in each cell of the thresholds, weighted."""
        return np.asarray(self.totals.floats()[0, 1:] * _UNIT)


class Sums:
    """Sums over the cases, by model.

    Parameters
    ----------
    shape : Shape
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.models = {name: ModelSums(shape) for name in shape.models}

    @np.errstate(under="ignore")  # squares of tiny distances
    def add(self, cases: Cases) -> None:
        """Add cases."""
        for start in range(0, cases.size, CHUNK):
            chunk = cases.take(slice(start, start + CHUNK))
            if self.shape.by_weight:
                chunk = chunk.weighted()
            for name, sums in self.models.items():
                self._add_scores(sums, name, chunk)

    def _add_scores(self, sums: ModelSums, name: str, chunk: Cases) -> None:
        scores = chunk.scores[name]
        if sums.groups is not None:
            for keys in self.shape.group_keys(chunk):
                sums.groups.add(scores, keys, chunk.weights)
        slips = chunk.slips if self.shape.reviewed else None
        found = sums.bins.add(scores, chunk.codes, chunk.weights, costs=chunk.costs, slips=slips)
        for number, places in enumerate(found):
            block = chunk.take(slice(number * BLOCK, (number + 1) * BLOCK))
            self._decide(sums, block, block.scores[name].astype(np.float64, copy=False), places)

    def _decide(self, sums: ModelSums, block: Cases, scores: Floats, places: Integers) -> None:
        """Add everything that depends on the predictions: decisions, confidence and log-loss."""
        codes, weights = block.codes, block.weights
        predicted, confidence = most_probable(scores, self.shape.positive)
        if self.shape.is_binary:
            own = np.where(codes == self.shape.positive, scores, 1.0 - scores)
            keys = self._keys.take(places)
            cut = np.flatnonzero(keys < 0)  # bins that a threshold divides
            keys[cut] = self._key_of(predicted[cut], confidence[cut], sums.tally.thresholds)
        else:
            own = scores[np.arange(codes.size), codes]
            keys = self._key_of(predicted, confidence, sums.tally.thresholds)
            assert sums.confidence is not None
            right = predicted == codes
            sums.confidence.add(confidence.clip(max=1.0), right, weights)
        n_cells = sums.tally.thresholds.size
        of_class, cells = self.shape.n_classes * n_cells, keys % n_cells
        sums.tally.add(keys + codes.astype(np.int64) * of_class, weights, block.costs)
        losses = -np.log(np.clip(own, LEAST_PROBABILITY, 1.0))
        lost, claimed = (np.rint(terms / _UNIT) for terms in (losses, np.minimum(confidence, 1.0)))
        if weights is None:
            # Of a block, the sums in each cell are below 2⁵², exact in float64.
            claims = np.bincount(cells, claimed, n_cells).astype(np.int64)
            sums.totals.add_integers(np.append(lost.astype(np.int64).sum(), claims)[np.newaxis])
            return
        for places, part in ((np.zeros(lost.size, dtype=np.int64), lost), (1 + cells, claimed)):
            sums.totals.add_at(places, part * weights, 0)

    def _key_of(self, predicted: Integers, confidence: Floats, thresholds: Floats) -> Integers:
        """Number of the cell of a prediction, among the cells of its true class."""
        shape = 1, self.shape.n_classes, thresholds.size
        return cell_keys(shape, np.zeros(1), predicted, cells_of(thresholds, confidence))

    @cached_property
    def _keys(self) -> Integers:
        """By bin of the score of two classes: the cell of all its predictions, or -1."""
        edges, thresholds = self.shape.layout.edges, threshold_grid(2)
        ends = edges, np.append(np.nextafter(edges[1:], 0.0), 1.0)
        keys = [self._key_of(*most_probable(end, self.shape.positive), thresholds) for end in ends]
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
        for own, others in zip(self.models.values(), other.models.values(), strict=True):
            own.merge(others)
