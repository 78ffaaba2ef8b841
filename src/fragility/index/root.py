r"""The one equation of the metric.

For one group of values (losses) or two (scores of negatives, negated scores of positives)

.. math:: h(s) = \sum_g \Lambda_g(s) - s \tau

is convex with :math:`h(0) = 0`. Its positive root :math:`s^*` is the inverse of the Fragility
Index: ``inf`` (FI = 0) when no value exceeds the target, ``0`` (FI = ∞) when already the mean
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf
from typing import NamedTuple

from ..moments import LogMoment, TestedGroup, ValueGroup

_EPS = 2.0**-53
_MAX_STEPS = 200
#: Tilts (s times the spread) up to which the log-moments are taken about the means, where their
#: terms are no larger than s times the slack. Beyond, about the largest values, which decide then
#: and whose exponents are exact.
MODERATE, STEEP = 16.0, 500.0


class Point(NamedTuple):
    """h, h' and h'' at s."""

    s: float
    value: float
    slope: float
    curvature: float


class Equation:
    """h(s) of some groups and a target, with the bracket of its root."""

    def __init__(self, groups: Sequence[ValueGroup], target: float) -> None:
        self.groups = groups
        # Sums of a few numbers that nearly cancel: exact, then rounded once.
        self._gap = fsum([*(g.pivot for g in groups), -target])
        self._mean_gap = fsum([*(g.mean for g in groups), -target])
        self.slack = -fsum([*(g.mean for g in groups), *(g.mean_residual for g in groups), -target])
        self.excess = fsum([*(g.reached for g in groups), -target])
        # A slack below this is a mean error that meets the target but for rounding: means and
        # target are summed exactly, and residuals are means of distances, whatever the values are.
        self.least_slack = 4.0 * _EPS * sum(g.spread for g in groups)

    @property
    def lower(self) -> float:
        """Hoeffding: s* is at least this."""
        spread = sum(g.spread**2 for g in self.groups)
        return 8.0 * self.slack / spread if spread > 0.0 else 0.0  # the square may underflow

    @property
    def upper(self) -> float:
        """From the weight that reaches the largest values: s* is at most this."""
        surprise = sum(g.surprise for g in self.groups)
        return surprise / self.excess * (1.0 + 1e-12) + 5e-324

    @property
    def guess(self) -> float:
        """The root if the values were normal."""
        variance = sum(g.variance for g in self.groups)
        return 2.0 * self.slack / variance if variance > 0.0 else inf

    def __call__(self, s: float) -> Point:
        return self._point(s, [g.log_moment(s) for g in self.groups], self._gap)

    def is_steep(self, s: float) -> bool:
        """Whether the largest values decide, so that moments about them are more exact."""
        tilt = s * max(g.spread for g in self.groups)
        return tilt > (STEEP if s * self.slack < 1.0 else MODERATE)

    @staticmethod
    def _point(s: float, moments: Sequence[LogMoment], gap: float) -> Point:
        return Point(
            s,
            fsum([*(m.value for m in moments), s * gap]),
            fsum([*(m.slope for m in moments), gap]),
            sum(m.curvature for m in moments),
        )


class SampleEquation(Equation):
    """h(s) from the samples themselves, accurate also where its terms all but cancel."""

    groups: Sequence[TestedGroup]

    def __call__(self, s: float) -> Point:
        if self.is_steep(s):
            return super().__call__(s)
        return self._point(s, [g.centred_log_moment(s) for g in self.groups], self._mean_gap)


def solve(groups: Sequence[TestedGroup], target: float, start: float | None = None) -> float:
    """Root s* of the groups at the target: 0 for FI = ∞, inf for FI = 0.

    `start` is a guess, if one is known; the result does not depend on it.
    """
    if fsum([*(g.reached for g in groups), -target]) <= 0.0:
        return inf
    equation = SampleEquation(groups, target)
    if equation.slack <= equation.least_slack:
        return 0.0
    return find_root(equation, start).s


def halley_step(point: Point, otherwise: float) -> float:
    """Where Halley's method on h(s)/s, or Newton's, sees the root; if nowhere, `otherwise`."""
    s = point.s
    # With g = h/s, its slope times s and its curvature times s², each times s: free of units.
    slope = s * point.slope - point.value
    curvature = s * (s * point.curvature) - 2.0 * slope
    bend = slope * slope - 0.5 * point.value * curvature
    if bend > 0.25 * slope * slope:
        return s - s * (point.value * slope / bend)
    return s - s * (point.value / slope) if slope > 0.0 else otherwise


def find_root(equation: Equation, start: float | None = None, limit: float = inf) -> Point:
    """Positive root of `equation`, whose excess and slack are positive.

    `limit` is known to be no smaller than the root.

    Halley steps on h(s)/s. A step that leaves the bracket or is longer than half of s is not
    trusted: we go to the right end instead, from where Newton on the convex h decreases to the
    root monotonically. The value and slopes returned are those at the last evaluation.
    """
    low, high = equation.lower * (1.0 - 1e-9), min(equation.upper, limit)
    s = min(max(start if start is not None else equation.guess, low), high)
    for _ in range(_MAX_STEPS):
        point = equation(s)
        if point.value < 0.0:
            low = max(low, s)
        else:
            high = min(high, s)
        if point.slope > 0.0:  # the tangent of a convex function crosses zero right of the root
            high = min(high, max(s - point.value / point.slope, low))
        following = halley_step(point, high)
        if not low <= following <= high or abs(following - s) > 0.5 * s:
            following = high
        step = abs(following - s) / s
        s = following
        # The error of a Halley step is of third order in its length.
        if 10.0 * step * step * step < _EPS or high - low <= 2.0 * _EPS * high:
            break
    return point._replace(s=s)
