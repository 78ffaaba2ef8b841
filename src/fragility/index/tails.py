r"""The exact tail of the ranking errors of a pair of classes, by sorting and running totals.

The share of errors beyond :math:`t` and their mean excess,

.. math:: P(\varepsilon > t), \qquad E(\varepsilon - t)_+ ,

cost one search per score of the smaller class after sorting: the pairs are never formed. Both tail
metrics are minima of convex functions whose tangents consist of these two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from ..moments import Sample
from ..ordered import SumsByValue, running_totals, sums_by_value
from .errors import RankingErrors

__all__ = ["Beyond", "ErrorTail", "buffered_auc", "conditional_value_at_risk", "error_tails"]

#: Tangents that meet this close to the best value found settle a minimum.
_GAP = 1e-15
#: Never reached in tests (the worst of them needs a quarter of it).
_MOST_STEPS = 100


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
    negatives, positives : Sample
        Scores of the negatives and minus the scores of the positives, as
        `RankingErrors.groups` gives them.
    """

    def __init__(self, negatives: Sample, positives: Sample) -> None:
        groups = sorted((_collect(negatives), _collect(positives)), key=lambda g: g.values.size)
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
        rounding = (
            4.0
            * np.finfo(np.float64).eps
            * np.abs([*self._outer[[0, -1]], *self._inner[[0, -1]]]).max()
        )
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

    def beyond(self, level: float) -> Beyond:
        """The errors above `level`."""
        reach = self._outer_above - level
        below = np.searchsorted(self._inner_above, reach, side="left")
        masses = self._masses[below]
        share = float(self._shares @ masses)
        masses *= reach
        masses -= self._sums[below]
        excess = float(self._shares @ masses)
        return Beyond(share, excess + level * share, excess)


def error_tails(errors: RankingErrors, multi_class: str) -> Iterator[tuple[ErrorTail, float]]:
    """Tail of every pair, and the factor its errors are scaled by."""
    for pair in errors.pairs(multi_class):
        yield ErrorTail(*errors.groups(pair)), errors.factor(pair)


def buffered_auc(tail: ErrorTail) -> float:
    r"""One minus the least :math:`E(a\varepsilon + 1)_+` over :math:`a \ge 0`."""
    if tail.largest < 0.0:
        return 1.0
    if tail.largest == 0.0:  # the larger a, the less: only ties remain in the limit
        return 1.0 - tail.share_from(0.0)
    if tail.mean >= 0.0:
        return 0.0

    def tangent(a: float) -> _Tangent:
        beyond = tail.beyond(-1.0 / a)
        return _Tangent(a, beyond.share + a * beyond.total, beyond.total)

    limit = _Tangent(0.0, tail.share_from(0.0), tail.beyond(0.0).total)
    least = _least_value(tangent, _Tangent(0.0, 1.0, tail.mean), limit, (0.0, inf), 1.0)
    return min(max(1.0 - least, 0.0), 1.0)


def conditional_value_at_risk(tail: ErrorTail, level: float) -> float:
    r"""Least :math:`t + E(\varepsilon - t)_+ / (1 - level)` over :math:`t`."""
    if level == 0.0:
        return tail.mean
    low, high = tail.smallest, tail.largest

    def tangent(t: float) -> _Tangent:
        beyond = tail.beyond(t)
        return _Tangent(t, t + beyond.excess / (1.0 - level), 1.0 - beyond.share / (1.0 - level))

    # Below all errors and above them the function is a line.
    first = _Tangent(low, low + (tail.mean - low) / (1.0 - level), -level / (1.0 - level))
    last = _Tangent(high, high, 1.0)
    least = _least_value(tangent, first, last, (low, high), max(-low, high))
    return min(max(least, tail.mean), high)


class _Tangent(NamedTuple):
    """A line through (x, value): where a convex function touches it, or its limit."""

    x: float
    value: float
    slope: float

    def at(self, x: float) -> float:
        return self.value + self.slope * (x - self.x)


def _least_value(
    tangent: Callable[[float], _Tangent],
    left: _Tangent,
    right: _Tangent,
    ends: tuple[float, float],
    scale: float,
) -> float:
    """Least value of a convex function between two tangents, of falling and of rising slope.

    Where two tangents meet is a lower bound, and next the function is read there: on a function of
    few pieces this ends at a corner after a few steps. A smooth one it would only halve, so every
    other step goes where the slope, taken for linear, is zero.
    """
    low, high = ends
    best = min(left.value, right.at(high))
    for step in range(_MOST_STEPS):
        bend = right.slope - left.slope
        corner = left.x + (left.value - right.at(left.x)) / bend
        bound = (left if -left.slope < right.slope else right).at(corner)
        if best - bound <= _GAP * scale:
            break
        x = low - left.slope * ((high - low) / bend) if step % 2 and high < inf else corner
        if not low < x < high:
            x = low + 0.5 * (high - low)  # the tangents meet at an end, by rounding
            if not low < x < high:
                break
        line = tangent(x)
        best = min(best, line.value)
        if line.slope < 0.0:
            left, low = line, x
        else:
            right, high = line, x
            if line.slope == 0.0:
                break
    return best


def _collect(group: Sample) -> SumsByValue:
    values, weights = zip(*group.blocks(), strict=True)
    if weights[0] is None:
        return sums_by_value(np.concatenate(values))
    return sums_by_value(np.concatenate(values), np.concatenate(weights))
