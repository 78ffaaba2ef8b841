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

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..binned import BinnedColumn, Resolution, bin_columns
from ..moments import Sample, TestedGroup, order_one_factor
from .binned_root import BinnedRoot, pair_root, separation
from .binned_sample import BinnedSample
from .column_roots import ColumnPairs, column_roots
from .pilot import PILOT, steepest_step
from .root import solve

#: From this many samples per pair on, bins are faster than passes over the samples.
_BINNING_PAYS = 1 << 15
#: Several classes, whose pairs share bins: from so many samples per pair and in all, if not fine.
_SHARING_PAYS = 1 << 11, 1 << 14
#: Two classes, by the tilt (s times the range) to expect: up to so much few bins do.
_GENTLE_TILT, _GENTLE, _BINARY = 14.0, Resolution(4_096, 4), Resolution(8_192, 4)
#: Several classes, by the tilt across a bin to expect: their bins should stay in cache.
_GENTLE_STEP, _FEW_BINS, _MULTI_CLASS = 24.0 / 2_048, Resolution(2_048, 5), Resolution(4_096, 5)
#: For the steep tilt of a small index, where the first look is not accurate enough.
_FINE = Resolution(16_384, 6)
#: Intervals come from bins for tilts (s times the range) from this one, below which differences of
#: log-moments are rounding, up to this many for each bin.
_LEAST_TILT, _STEEPEST_TEST = 1e-2, 0.25
#: Scores that differ by less than this share of their size are read one by one, too.
_NARROWEST = 1e-3
#: Columns are binned together as long as their bins take no more than this.
_STATE_BYTES = 1 << 25


class Pair(NamedTuple):
    """One binary problem: samples of class `positive` against those of the `negatives`."""

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


def pair_places(pair: Pair, n_classes: int, multi_class: str) -> Iterator[tuple[int, ...]]:
    """Entries that a pair fills in a table of pairs: (C, C), or (C,) for "ovr"."""
    mirrored = n_classes == 2  # one minus the score of one class is that of the other
    if multi_class == "ovr":
        yield (pair.positive,)
        if mirrored:
            yield (1 - pair.positive,)
        return
    (negative,) = pair.negatives
    yield pair.positive, negative
    if mirrored:
        yield negative, pair.positive


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


@dataclass(frozen=True, eq=False)
class RankingErrors:
    """The ranking errors of labelled scores, by pair of classes."""

    data: LabelledScores
    #: Bins of two classes, by resolution and power of the weights: an interval asks for them again.
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

    def readings(self, pair: Pair, s: float, target: float) -> Iterator[Sequence[TestedGroup]]:
        """The groups of two classes, near a root `s`, as a test reads them: the cheapest first.

        The last are the samples. Bins are given only where they may be accurate.
        """
        tilt = s * float(np.ptp(self.data.ranges))
        narrow = np.ptp(self.data.ranges) < _NARROWEST * np.abs(self.data.ranges).max()
        if self.data.is_binary and self._bins_pay and tilt > _LEAST_TILT and not narrow:
            for resolution in (self._first_resolution(target), _FINE):
                if tilt <= _STEEPEST_TEST * resolution.bins or s == inf:
                    yield self._binned_groups(pair, resolution)
        yield self.groups(pair)

    def _binned_groups(self, pair: Pair, resolution: Resolution) -> list[BinnedSample]:
        column = self._bin([pair.positive], resolution)[pair.positive]
        squared = self._squared(resolution)
        groups = []
        for code, negate in ((pair.negatives[0], False), (pair.positive, True)):
            own = column.group(code, negate=negate)
            groups.append(
                BinnedSample(own, own if squared is None else squared.group(code, negate=negate))
            )
        return groups

    def group_rows(self, pair: Pair) -> tuple[NDArray[Any], NDArray[Any]]:
        """Masks or indices of the negatives and of the positives among the samples."""
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
        """By column and pair, from bins where there are any."""
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
                yield pair, PairIndex(1.0 / root.s if root.s else inf, root.separation)

    def _first_resolution(self, target: float) -> Resolution:
        """By the root that a normal sample like a few thousand of the scores would have."""
        data = self.data
        if not self._bins_pay:
            return _MULTI_CLASS
        if not data.is_binary:
            step = steepest_step(data, target, _FEW_BINS.bins)
            return _FEW_BINS if step < _GENTLE_STEP else _MULTI_CLASS
        thin = slice(None, None, max(1, data.codes.size // PILOT))
        scores, positive = data.scores[thin].astype(np.float64), data.codes[thin] == data.positive
        groups = scores[~positive], scores[positive]
        if min(group.size for group in groups) < 10:
            return _BINARY
        slack = target - (groups[0].mean() - groups[1].mean())
        tilt = 2.0 * slack * np.ptp(data.ranges) / max(groups[0].var() + groups[1].var(), 1e-300)
        return _GENTLE if tilt < _GENTLE_TILT else _BINARY

    def _solve_exactly(self, pair: Pair, target: float, near: float | None) -> PairIndex:
        groups, factor = self.groups(pair), self.factor(pair)
        s = solve(groups, target * factor, near)
        fragility = inf if s == 0.0 else 1.0 / s / factor
        return PairIndex(fragility, separation(groups) / factor)

    def _bin(self, columns: list[int], resolution: Resolution) -> dict[int, BinnedColumn]:
        """Bins of neighbouring columns; none when the samples themselves are better."""
        data = self.data
        if not self._bins_pay:
            return {}
        if data.scores.ndim == 1:
            if (resolution, 1) not in self._kept:
                self._kept[resolution, 1] = self._binned_column(resolution, data.weights)
            return {columns[0]: self._kept[resolution, 1]}
        # A slice, for a choice of columns would be a copy.
        reach = slice(columns[0], columns[-1] + 1)
        scores, ranges = data.scores[:, reach], data.ranges[:, reach]
        binned = bin_columns(scores, data.codes, data.support, ranges, resolution, data.weights)
        return {columns[0] + place: column for place, column in enumerate(binned)}

    def _squared(self, resolution: Resolution) -> BinnedColumn | None:
        """Bins by squared weight; None where all weigh the same."""
        weights = self.data.weights
        if weights is None:
            return None
        if (resolution, 2) not in self._kept:
            self._kept[resolution, 2] = self._binned_column(resolution, weights * weights)
        return self._kept[resolution, 2]

    def _binned_column(self, resolution: Resolution, weights: Floats | None) -> BinnedColumn:
        data = self.data
        scores = data.scores[:, np.newaxis]
        (column,) = bin_columns(scores, data.codes, data.support, data.ranges, resolution, weights)
        return column

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
        """What the values of the pair's groups are scaled by, a power of two."""
        column = 0 if self.data.scores.ndim == 1 else pair.positive
        return order_one_factor(float(np.abs(self.data.ranges[:, column]).max()))
