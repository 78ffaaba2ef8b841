r"""Ranking errors of a classifier, and the index of each class pair.

The ranking error of a pair of classes is :math:`\varepsilon_{i|j} = p_i(x^j) - p_i(x^i)`: positive
when a sample of class j gets more of class i than a sample of class i does. Its exponential moment
factorises over the two samples, so the n_i·n_j errors are never formed: two groups of values,
:math:`p_i(x^j)` and :math:`-p_i(x^i)`, stand for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Integers
from .._validation import LabelledScores
from ..binned import BinnedColumn, Grid, Resolution, bin_columns
from ..moments import Sample, TestedGroup, order_one_factor
from .binned_root import BinnedRoot, pair_root
from .binned_sample import BinnedSample
from .column_roots import ColumnPairs, column_roots
from .pilot import steepest_tilt
from .root import inverse, separation, solve

#: From this many samples per pair on, bins are faster than passes over the samples.
_BINNING_PAYS = 1 << 15
#: Several classes, whose pairs share bins: the same number, and the total number of samples.
_SHARING_PAYS = 1 << 11, 1 << 14
#: Two classes: up to this expected tilt (s times the range) the coarser bins suffice.
_GENTLE_TILT, _GENTLE, _BINARY = 14.0, Resolution(4_096, 4), Resolution(8_192, 4)
#: Several classes: the same for the expected tilt across a bin. The bins should stay in cache.
_GENTLE_STEP, _FEW_BINS, _MULTI_CLASS = 24.0 / 2_048, Resolution(2_048, 5), Resolution(4_096, 5)
#: For the steep tilt of a small index, where the first bins are not accurate enough.
_FINE = Resolution(16_384, 6)
#: Intervals use bins from this tilt (s times the range) on, below which differences of log-moments
#: are rounding, up to this tilt per bin.
_LEAST_TILT, _STEEPEST_TEST = 1e-2, 0.25
#: Scores whose range is below this fraction of their size are read one by one.
_NARROWEST = 1e-3
#: Columns are binned together as long as their bins take no more than this.
_STATE_BYTES = 1 << 25


class Pair(NamedTuple):
    """One binary problem: samples of class `positive` against samples of the `negatives`."""

    positive: int
    negatives: tuple[int, ...]


def class_pairs(support: Integers, positive: int, multi_class: str) -> Iterator[Pair]:
    """Pairs of the classes that have support.

    Two classes make one problem: the scores of one are minus those of the other.
    """
    if support.size == 2:
        yield Pair(positive, (1 - positive,))
        return
    present = [int(c) for c in np.flatnonzero(support)]
    for i in present:
        others = tuple(j for j in present if j != i)
        if multi_class == "ovr":
            yield Pair(i, others)
        else:
            yield from (Pair(i, (j,)) for j in others)


def pair_entries(pair: Pair, n_classes: int, multi_class: str) -> list[tuple[int, ...]]:
    """Indices of a pair in a table of pairs: (C, C), or (C,) for "ovr"."""
    entry = (pair.positive,) if multi_class == "ovr" else (pair.positive, pair.negatives[0])
    if n_classes > 2:
        return [entry]
    # One problem: the score of one class is one minus the score of the other.
    return [entry, (1 - pair.positive,) if multi_class == "ovr" else entry[::-1]]


class PairIndex(NamedTuple):
    """Fragility Index of a pair and its mean separation, mean(positives) - mean(negatives)."""

    fragility: float
    separation: float

    @property
    def ratio(self) -> float:
        """Scale-free ratio, at target 0: ∞ without separation, NaN for constant scores."""
        if self.fragility == inf:
            return inf
        return self.fragility / self.separation if self.separation else np.nan


class SolvedPair(NamedTuple):
    """A pair of classes, its index, and its share in the average."""

    pair: Pair
    fragility: float
    share: float


@dataclass(frozen=True, eq=False)
class RankingErrors:
    """The ranking errors of labelled scores, by pair of classes."""

    data: LabelledScores
    #: Bins of two classes, by resolution and power of the weights, kept for intervals.
    _kept: dict[tuple[Resolution, int], BinnedColumn] = field(
        default_factory=dict, init=False, repr=False
    )

    def pairs(self, multi_class: str) -> Iterator[Pair]:
        """Ordered pairs of present classes ("ovo"), or each of them against the rest ("ovr")."""
        return class_pairs(self.data.support, self.data.positive, multi_class)

    def column(self, i: int) -> NDArray[Any]:
        """Scores of class i."""
        scores = self.data.scores
        return scores if scores.ndim == 1 else scores[:, i]

    def groups(self, pair: Pair, factor: float | None = None) -> tuple[Sample, Sample]:
        """Scores of the negatives and minus the scores of the positives: their sum is ε.

        Times `factor`, by default the one that brings them to order one.
        """
        column, weights = self.column(pair.positive), self.data.weights
        factor = self.factor(pair) if factor is None else factor
        negatives, positives = self.group_rows(pair)
        return (
            Sample(column, factor=factor, selection=negatives, weights=weights),
            Sample(column, factor=-factor, selection=positives, weights=weights),
        )

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        """The groups of a pair of two classes for a test, from the cheapest to the samples.

        Bins are given only where they may be accurate.
        """
        data = self.data
        span = float(np.ptp(data.ranges))
        narrow = span < _NARROWEST * np.abs(data.ranges).max()
        if self._bins_pay and not narrow and part.fragility < inf:
            tilt = span * inverse(part.fragility)
            for resolution in (self._first_resolution(target), _FINE):
                if tilt == inf or _LEAST_TILT < tilt <= _STEEPEST_TEST * resolution.bins:
                    yield self._binned_groups(part.pair, resolution)
        yield self.groups(part.pair)

    def _binned_groups(self, pair: Pair, resolution: Resolution) -> list[BinnedSample]:
        column = self._binned_column(resolution)
        squared = column if self.data.weights is None else self._binned_column(resolution, power=2)
        groups = []
        for code, negate in ((pair.negatives[0], False), (pair.positive, True)):
            own = column.group(code, negate=negate)
            squares = own if squared is column else squared.group(code, negate=negate)
            groups.append(BinnedSample(own, squares))
        return groups

    def group_rows(self, pair: Pair) -> tuple[NDArray[Any], NDArray[Any]]:
        """Masks or indices of the negatives, and of the positives, among the samples."""
        return self._rows(*pair.negatives), self._rows(pair.positive)

    def _rows(self, *classes: int) -> NDArray[Any]:
        """The samples of some classes that carry weight, in input order."""
        data = self.data
        if len(classes) > 1 or data.is_binary:
            mask = np.isin(data.codes, classes) if len(classes) > 1 else data.codes == classes[0]
            return mask if data.weights is None else mask & (data.weights > 0.0)
        return self._rows_by_class[classes[0]]

    def solve(self, pairs: Iterable[Pair], target: float) -> Iterator[tuple[Pair, PairIndex]]:
        """Index of each pair. Pairs that share a positive class must follow each other."""
        columns = [(i, list(group)) for i, group in groupby(pairs, lambda pair: pair.positive)]
        resolution = self._first_resolution(target)
        together = max(1, _STATE_BYTES // resolution.state_bytes(self.data.labels.size))
        for start in range(0, len(columns), together):
            batch = columns[start : start + together]
            binned = self._bin([i for i, _ in batch], resolution)
            for (_, group), roots in zip(batch, self._roots(batch, binned, target), strict=True):
                yield from self._solve_column(group, roots, target)

    def _roots(
        self, batch: list[tuple[int, list[Pair]]], binned: dict[int, BinnedColumn], target: float
    ) -> list[list[BinnedRoot | None]]:
        """Root of each pair of each column, None without bins."""
        if not binned:
            return [[None] * len(pairs) for _, pairs in batch]
        if all(len(pairs) == 1 for _, pairs in batch):
            return [[pair_root(binned[i], pairs[0].negatives, i, target)] for i, pairs in batch]
        columns = [
            ColumnPairs(binned[i], i, [pair.negatives[0] for pair in pairs]) for i, pairs in batch
        ]
        return column_roots(columns, target)

    def _solve_column(
        self, pairs: list[Pair], roots: list[BinnedRoot | None], target: float
    ) -> Iterator[tuple[Pair, PairIndex]]:
        fine: BinnedColumn | None = None
        for pair, root in zip(pairs, roots, strict=True):
            uncertain = root is not None and not root.certain and root.finer_bins_help
            if uncertain and self._fine_bins_pay:
                if fine is None:
                    fine = self._bin([pair.positive], _FINE)[pair.positive]
                root = pair_root(fine, pair.negatives, pair.positive, target)
            if root is None or not root.certain:
                yield pair, self._solve_exactly(pair, target, None if root is None else root.s)
            else:
                yield pair, PairIndex(inverse(root.s), root.separation)

    def _first_resolution(self, target: float) -> Resolution:
        """Resolution that suits the root of normal scores with moments as in a small sample."""
        if not self._bins_pay:
            return _MULTI_CLASS
        if self.data.is_binary:
            tilt = steepest_tilt(self.data, target, np.ptp(self.data.ranges, axis=0))
            return _GENTLE if tilt < _GENTLE_TILT else _BINARY
        grids = [Grid.over(float(a), float(b), _FEW_BINS.bins) for a, b in self.data.ranges.T]
        step = steepest_tilt(self.data, target, np.array([grid.width for grid in grids]))
        return _FEW_BINS if step < _GENTLE_STEP else _MULTI_CLASS

    def _solve_exactly(self, pair: Pair, target: float, near: float | None) -> PairIndex:
        groups, factor = self.groups(pair), self.factor(pair)
        s = solve(groups, target * factor, near)
        return PairIndex(inverse(s) / factor, separation(groups) / factor)

    def _bin(self, columns: list[int], resolution: Resolution) -> dict[int, BinnedColumn]:
        """Bins of neighbouring columns; empty where the samples themselves are faster."""
        data = self.data
        if not self._bins_pay:
            return {}
        if data.is_binary:
            return {columns[0]: self._binned_column(resolution)}
        # A slice, because an array of column numbers would make a copy.
        reach = slice(columns[0], columns[-1] + 1)
        scores, ranges = data.scores[:, reach], data.ranges[:, reach]
        binned = bin_columns(scores, data.codes, data.support, ranges, resolution, data.weights)
        return dict(enumerate(binned, start=columns[0]))

    def _binned_column(self, resolution: Resolution, power: int = 1) -> BinnedColumn:
        """Bins of two classes, by weight or by squared weight."""
        if (resolution, power) not in self._kept:
            data = self.data
            weights = data.weights
            if weights is not None and power == 2:
                weights = weights * weights
            (self._kept[resolution, power],) = bin_columns(
                data.scores[:, np.newaxis],
                data.codes,
                data.support,
                data.ranges,
                resolution,
                weights,
            )
        return self._kept[resolution, power]

    @cached_property
    def _bins_pay(self) -> bool:
        data = self.data
        magnitudes = [float(np.abs(data.ranges).max())]
        if data.weights is not None:
            magnitudes.append(float(data.weights.max()))
        near_one = all(order_one_factor(magnitude) == 1.0 for magnitude in magnitudes)
        if data.is_binary or not near_one:
            return near_one and self._fine_bins_pay
        return data.codes.size >= _SHARING_PAYS[1] and self._per_pair >= _SHARING_PAYS[0]

    @property
    def _fine_bins_pay(self) -> bool:
        return self._per_pair >= _BINNING_PAYS

    @property
    def _per_pair(self) -> float:
        return 2 * self.data.codes.size / int(np.count_nonzero(self.data.support))

    @cached_property
    def _rows_by_class(self) -> list[NDArray[Any]]:
        data = self.data
        order = np.argsort(data.codes, kind="stable")
        if data.weights is not None:
            order = order[data.weights[order] > 0.0]
        return np.split(order, np.cumsum(data.support)[:-1])

    def factor(self, pair: Pair) -> float:
        """Power of two that scales the values of the pair's groups to order one."""
        column = 0 if self.data.scores.ndim == 1 else pair.positive
        return order_one_factor(float(np.abs(self.data.ranges[:, column]).max()))
