r"""The exact tail of the ranking errors of a pair of classes, by sorting and running totals.

The share of errors beyond :math:`t` and their mean excess,

.. math:: P(\varepsilon > t), \qquad E(\varepsilon - t)_+ ,

cost one search per score of the smaller class after sorting: the pairs are never formed. Both tail
metrics are minima of convex functions whose tangents consist of these two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from .._typing import Indices
from ..index.errors import RankingErrors
from ..moments import Sample
from ..ordered import SumsByValue, running_totals, sums_by_value, sums_of_ordered
from ..scores.atoms import Atoms

#: Tangents that meet this close to the best value found settle a minimum, in units of its scale.
_GAP = 1e-15
#: The same where the minimum is but a bound, wider by this then: atoms leave far more open.
_GAP_OF_BOUNDS = 1e-11
#: Never reached: the hardest of the tests needs less than half of it.
_MOST_STEPS = 100
#: From this many pairs of distinct scores on, the minimum for a thinned tail is found first. Its
#: place is the place of the minimum up to about the relative error below.
_THINNING_PAYS, _THINNED, _THINNED_ERROR = 1 << 26, 1 << 11, 1e-4
#: More bins than these are merged, for one pair and for each of many: the bounds stay narrow.
MOST_BINS, _LEAST_BINS = 1 << 13, 1 << 9
_ROUNDING = 32.0 * 2.0**-53


class Beyond(NamedTuple):
    """The errors above a level: share, mean over all pairs, and mean excess over the level.

    ``P(ε > t)``, ``E[ε; ε > t]`` and ``E(ε − t)₊``.
    """

    share: float
    total: float
    excess: float


class ErrorTail:
    """Distribution of the ranking error of two groups, the sum of a value of each.

    Parameters
    ----------
    negatives, positives : SumsByValue
        Distinct scores of the negatives, and of the positives times −1, with their weights.
    """

    def __init__(self, negatives: SumsByValue, positives: SumsByValue) -> None:
        groups = sorted((negatives, positives), key=lambda group: group.values.size)
        self._groups = groups
        # The errors are differences of an outer and an inner value: of the smaller group each value
        # is looked up among the (negated, hence reversed) values of the larger one.
        self._outer, weights = groups[0].values, groups[0].sums[0]
        self._shares = weights / weights.sum()
        self._inner, inner_weights = -groups[1].values[::-1], groups[1].sums[0][::-1]
        masses = running_totals(inner_weights)
        self._masses = masses / masses[-1]
        # Relative to the smallest inner value nothing in a sum exceeds the error it belongs to, so
        # that scores that differ in their twelfth digit only lose none of their accuracy.
        origin = self._inner[0]
        self._outer_above, self._inner_above = self._outer - origin, self._inner - origin
        self._sums = running_totals(inner_weights * self._inner_above) / masses[-1]
        self.smallest = float(self._outer[0] - self._inner[-1])
        self.largest = float(self._outer[-1] - origin)
        self.mean = float(self._shares @ self._outer_above - self._sums[-1])

    @classmethod
    def of(cls, groups: tuple[Sample, Sample]) -> ErrorTail:
        """Tail of the errors of `RankingErrors.groups`."""
        negatives, positives = (_collect(group) for group in groups)
        return cls(negatives, positives)

    def thinned(self, most: int) -> ErrorTail:
        """Nearly the same tail from at most `most` values in each group: means of neighbours."""
        groups = []
        for group in self._groups:
            starts = np.arange(most) * group.values.size // most
            groups.append(_merged_values(group, starts) if group.values.size > most else group)
        return ErrorTail(*groups)

    def gathered(self, most: int) -> ErrorTail:
        """Nearly the same tail with values at the means of `most` cells of equal width."""
        groups = []
        for group in self._groups:
            values = group.values
            if values.size > most:
                cells = np.floor((values - values[0]) * (most / (values[-1] - values[0])))
                group = _merged_values(group, np.flatnonzero(np.diff(cells, prepend=-1.0)))
            groups.append(group)
        return ErrorTail(*groups)

    @property
    def n_distinct_pairs(self) -> int:
        """Pairs of distinct scores: a bound on the number of distinct errors."""
        return self._outer.size * self._inner.size

    def distinct_errors(self) -> SumsByValue:
        """Every error that occurs and its share: for few distinct scores only.

        Equal but for rounding, as differences of round scores are, is equal.
        """
        errors = np.subtract.outer(self._outer, self._inner).ravel()
        shares = np.multiply.outer(self._shares, np.diff(self._masses)).ravel()
        values, sums = sums_by_value(errors, shares)
        magnitude = max(float(np.abs(group).max()) for group in (self._outer, self._inner))
        rounding = 4.0 * np.finfo(np.float64).eps * magnitude
        starts = np.flatnonzero(np.diff(values, prepend=-inf) > rounding)
        return SumsByValue(values[starts], np.add.reduceat(sums, starts, axis=1))

    def share_above(self, level: float) -> float:
        """P(ε > level)."""
        below = np.searchsorted(self._inner, self._outer - level, side="left")
        return float(self._shares @ self._masses[below])

    def share_from(self, level: float) -> float:
        """P(ε ≥ level)."""
        below = np.searchsorted(self._inner, self._outer - level, side="right")
        return float(self._shares @ self._masses[below])

    @property
    def auc(self) -> float:
        """Share of pairs ranked correctly, of equal scores one half."""
        return 1.0 - 0.5 * (self.share_above(0.0) + self.share_from(0.0))

    def beyond(self, level: float) -> Beyond:
        """The errors above `level`."""
        reach = self._outer_above - level
        below = self._inner_above.searchsorted(reach)
        masses = self._masses.take(below)
        share = float(self._shares.dot(masses))
        masses *= reach
        masses -= self._sums.take(below)
        excess = float(self._shares.dot(masses))
        return Beyond(share, excess + level * share, excess)


def error_tails(errors: RankingErrors, multi_class: str) -> Iterator[tuple[ErrorTail, float]]:
    """Tail of every pair, and the factor its errors are scaled by."""
    for pair in errors.pairs(multi_class):
        yield ErrorTail.of(errors.groups(pair)), errors.factor(pair)


class TailFigure(NamedTuple):
    """A figure that is an optimum over one number, and the number where it is reached."""

    value: float
    at: float


def buffered_auc(tail: ErrorTail, gap: float = _GAP) -> TailFigure:
    r"""One minus the least :math:`E(a\varepsilon + 1)_+` over :math:`a \ge 0`.

    The value is too low by no more than `gap`.
    """
    if tail.largest < 0.0:
        return TailFigure(1.0, inf)
    if tail.largest == 0.0:  # the larger a, the less: only ties remain in the limit
        return TailFigure(1.0 - tail.share_from(0.0), inf)
    if tail.mean >= 0.0:
        return TailFigure(0.0, 0.0)

    least = _least(_buffer_search, tail, gap)
    return TailFigure(min(max(1.0 - least.value, 0.0), 1.0), least.x)


def conditional_value_at_risk(tail: ErrorTail, level: float, gap: float = _GAP) -> TailFigure:
    r"""Least :math:`t + E(\varepsilon - t)_+ / (1 - level)` over :math:`t`.

    The value is too high by no more than `gap`, relative to the largest error in size.
    """
    if level == 0.0:
        return TailFigure(tail.mean, -inf)
    least = _least(lambda part: _risk_search(part, level), tail, gap)
    return TailFigure(min(max(least.value, tail.mean), tail.largest), least.x)


class TailBounds(NamedTuple):
    """Bounds on both figures of a pair of classes, and where their optima are, nearly."""

    buffered_auc: tuple[float, float]
    cvar: tuple[float, float]
    buffer: float
    quantile: float


def tail_bounds(
    negatives: Atoms, positives: Atoms, level: float, n_pairs: int, most: int = MOST_BINS
) -> TailBounds:
    """Bounds for one of `n_pairs` pairs of classes; equal where all scores are known.

    Else from `most` atoms of each class, or fewer if there are many pairs.
    """
    if negatives.known and positives.known:
        tail = tail_of(negatives, positives)
        buffered, risk = buffered_auc(tail), conditional_value_at_risk(tail, level)
        exact = (buffered.value, buffered.value), (risk.value, risk.value)
        return TailBounds(*exact, buffered.at, risk.at)
    # Gathered at the mean of their atom scores are as close as can be; moved to its ends, as far
    # apart. The figures are means of convex functions of the error: between these they lie. Of
    # scores apart any place tells a bound, and where the others have their optimum a narrow one.
    most = max(most * 8 // (8 + n_pairs), _LEAST_BINS)
    groups = [merged(atoms, most) for atoms in (negatives, positives)]
    close, apart = tail_of(*groups), _tail(*map(_spread, groups))
    # The means are rounded, which a figure that is free of units feels if scores are close.
    scale = (apart.largest - apart.smallest) or abs(apart.largest)
    rounding = _ROUNDING / scale if scale > 0.0 else 1.0
    gap = _GAP_OF_BOUNDS
    buffered, risk = buffered_auc(close, gap), conditional_value_at_risk(close, level, gap)
    highest = buffered.value + rounding + gap
    if 0.0 < buffered.at < inf:
        lowest = 1.0 - _buffer(apart, buffered.at).value - rounding
    else:
        lowest = buffered_auc(apart, gap).value - rounding
    if abs(close.largest) <= _ROUNDING:  # ties, or in the right order, but for rounding
        lowest, highest = min(lowest, 1.0 - apart.share_from(-_ROUNDING)), 1.0
    least = risk.value - gap * max(abs(close.smallest), abs(close.largest))
    highest_risk = _risk(apart, level, risk.at).value if level > 0.0 else apart.mean
    return TailBounds(
        (max(lowest, 0.0), min(highest, 1.0)),
        (max(least, close.mean), min(highest_risk, apart.largest)),
        buffered.at,
        risk.at,
    )


def tail_of(negatives: Atoms, positives: Atoms) -> ErrorTail:
    """Tail of the errors with every score at the mean of its atom."""
    return _tail(negatives.by_mean, positives.by_mean)


def _tail(negatives: SumsByValue, positives: SumsByValue) -> ErrorTail:
    return ErrorTail(negatives, SumsByValue(-positives.values[::-1], positives.sums[:, ::-1]))


def merged(atoms: Atoms, most: int) -> Atoms:
    """Fewer and wider atoms, of equal width, so that the widest are not wider than they must be."""
    if atoms.low.size <= most:
        return atoms
    places = np.floor(atoms.low * (most / 2))
    starts = np.append(0, np.flatnonzero(places[1:] != places[:-1]) + 1)
    weight, total, squares = (
        np.add.reduceat(part, starts)
        for part in (atoms.weight, atoms.weight * atoms.mean, atoms.squares)
    )
    low, high = atoms.low[starts], np.maximum.reduceat(atoms.high, starts)
    return Atoms(low, high, weight, np.clip(total / weight, low, high), squares)


def _spread(atoms: Atoms) -> SumsByValue:
    """The weight of each atom at its two ends, with the same mean."""
    width = atoms.high - atoms.low
    share = np.ones_like(width)
    np.divide(atoms.mean - atoms.low, width, out=share, where=width > 0.0)
    values = np.stack([atoms.low, atoms.high], axis=1).ravel()  # atoms ascend: so do their ends
    weights = np.stack([atoms.weight * (1.0 - share), atoms.weight * share], axis=1).ravel()
    carrying = weights > 0.0
    return sums_of_ordered(values[carrying], weights[carrying])


class _Tangent(NamedTuple):
    """A line through (x, value): where a convex function touches it, or its limit."""

    x: float
    value: float
    slope: float

    def at(self, x: float) -> float:
        return self.value + self.slope * (x - self.x)


class _Search(NamedTuple):
    """A convex function: how to read it, its first and last tangents, where they touch, its scale.

    The first tangent falls and the last one rises.
    """

    read: Callable[[float], _Tangent]
    first: _Tangent
    last: _Tangent
    ends: tuple[float, float]
    scale: float


def _buffer(tail: ErrorTail, a: float) -> _Tangent:
    """What `buffered_auc` minimises."""
    share, total, _ = tail.beyond(-1.0 / a)
    return _Tangent(a, share + a * total, total)


def _buffer_search(tail: ErrorTail) -> _Search:
    limit = _Tangent(0.0, tail.share_from(0.0), tail.beyond(0.0).total)
    read = partial(_buffer, tail)
    return _Search(read, _Tangent(0.0, 1.0, tail.mean), limit, (0.0, inf), 1.0)


def _risk(tail: ErrorTail, level: float, t: float) -> _Tangent:
    """What `conditional_value_at_risk` minimises."""
    share, _, excess = tail.beyond(t)
    return _Tangent(t, t + excess / (1.0 - level), 1.0 - share / (1.0 - level))


def _risk_search(tail: ErrorTail, level: float) -> _Search:
    low, high = tail.smallest, tail.largest
    # Below all errors and above them the function is a line.
    first = _Tangent(low, low + (tail.mean - low) / (1.0 - level), -level / (1.0 - level))
    last, read = _Tangent(high, high, 1.0), partial(_risk, tail, level)
    return _Search(read, first, last, (low, high), max(-low, high))


def _least(search: Callable[[ErrorTail], _Search], tail: ErrorTail, gap: float) -> _Tangent:
    """Lowest point for a tail; of a long one looked for next to that for a thinned one."""
    if tail.n_distinct_pairs <= _THINNING_PAYS:
        return _lowest(search(tail), gap)
    x = _lowest(search(tail.thinned(_THINNED)), _GAP_OF_BOUNDS).x
    reach = _THINNED_ERROR * max(abs(x), tail.largest - tail.smallest)
    return _lowest(search(tail), gap, (x - reach, x + reach))


def _lowest(search: _Search, most: float, nearby: tuple[float, ...] = ()) -> _Tangent:
    """Point of a convex function that is at most so far above its minimum, in its scale.

    The function is first read at the points said to be near it.

    Where two tangents meet is a lower bound. On a function of few pieces reading it there ends at a
    corner soon; a smooth one it would only halve. That one is read where the cubic through both
    tangents is lowest, and if this has moved one end of the range twice, as far beyond, so that the
    other end comes as near. Where this does not bring the bound four times as close, it is where
    tangents meet again; where bounds are asked for, of sums over many scores, any progress will do.
    Should four steps not quarter the range, it is halved.
    """
    read, left, right, (low, high), scale = search
    best = min(left, _Tangent(high, right.at(high), right.slope), key=lambda line: line.value)
    enough = 1.0 if most >= _GAP_OF_BOUNDS else 0.25
    width = gap = inf
    moved = 0  # reads in a row that have moved the upper end, or minus those of the lower one
    for step in range(_MOST_STEPS):
        bend = right.slope - left.slope
        corner = left.x + (left.value - right.at(left.x)) / bend
        bound = (left if -left.slope < right.slope else right).at(corner)
        before, gap = gap, best.value - bound
        if gap <= most * scale or not low < corner < high:
            break  # tangents that meet at an end, but for rounding, have their lowest point there
        x = corner
        if step < len(nearby):
            x = nearby[step]
        elif high < inf and gap < enough * before:
            x = _lowest_of_cubic(left, right)
            if moved < -1:
                x += min(x - low, 0.5 * (high - x))
            elif moved > 1:
                x -= min(high - x, 0.5 * (x - low))
        if step % 4 == 3 and high < inf:
            if high - low > 0.25 * width:
                x = low + 0.5 * (high - low)
            width = high - low
        if not low < x < high:
            x = corner
        line = read(x)
        if line.value < best.value:
            best = line
        if line.slope < 0.0:
            left, low = line, x
            moved = min(moved, 0) - 1
        else:
            right, high = line, x
            moved = max(moved, 0) + 1
            if line.slope == 0.0:
                break
    return best


def _lowest_of_cubic(left: _Tangent, right: _Tangent) -> float:
    """Where the cubic that touches two tangents, of which the first one falls, is lowest."""
    chord = (right.value - left.value) / (right.x - left.x)
    bend = left.slope + right.slope - 3.0 * chord
    root = sqrt(bend * bend - left.slope * right.slope)  # of slopes that differ in sign
    return right.x - (right.x - left.x) * (right.slope + root - bend) / (
        right.slope - left.slope + 2.0 * root
    )


def _merged_values(group: SumsByValue, starts: Indices) -> SumsByValue:
    """The values from each start up to the next as one, at their mean."""
    values, weights = group.values, group.sums[0]
    sums = np.add.reduceat(weights, starts)
    means = np.add.reduceat(weights * values, starts) / sums
    return sums_by_value(means, sums)


def _collect(group: Sample) -> SumsByValue:
    values, weights = zip(*group.blocks(), strict=True)
    if weights[0] is None:
        return sums_by_value(np.concatenate(values))
    return sums_by_value(np.concatenate(values), np.concatenate(weights))
