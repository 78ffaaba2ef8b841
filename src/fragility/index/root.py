r"""The one equation of the metric.

For one group of values (losses) or two (scores of negatives, negated scores of positives)

.. math:: h(s) = \sum_g \Lambda_g(s) - s \tau

is convex with :math:`h(0) = 0`. Its positive root :math:`s^*` is the inverse of the Fragility
Index: ``inf`` (FI = 0) when no value exceeds the target, ``0`` (FI = ∞) when the mean already
exceeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum, inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Mask
from ..moments import EPS, LogMoment, TestedGroup, ValueGroup

_MAX_STEPS = 200
#: Up to these tilts (s times the spread) log-moments are taken about the means, where their terms
#: are no larger than s times the margin. Steeper ones are taken about the largest values, which
#: dominate then and whose exponents are exact.
MODERATE, STEEP = 16.0, 500.0


class Point(NamedTuple):
    """h, h' and h'' at s."""

    s: float
    value: float
    slope: float
    curvature: float


class Equation:
    """h(s) of some groups and a target, with the bracket of its root.

    Attributes
    ----------
    margin : float
        Target minus the mean error. FI is infinite unless it exceeds `least_margin`.
    excess : float
        Largest error minus the target. FI is zero unless it is positive.
    """

    def __init__(self, groups: Sequence[ValueGroup], target: float) -> None:
        self.groups = groups
        # Sums of a few numbers that nearly cancel: exact, then rounded once.
        self.gap = fsum([*(g.pivot for g in groups), -target])
        self._mean_gap = fsum([*(g.mean for g in groups), -target])
        self.margin = -fsum([*_means(groups), -target])
        self.excess = fsum([*(g.reached for g in groups), -target])
        # A smaller margin is a mean error that equals the target up to rounding. Means and target
        # are summed exactly, and residuals are means of distances, whatever the values are.
        self.least_margin = 4.0 * EPS * sum(g.spread for g in groups)

    @property
    def lower(self) -> float:
        """Lower bound on s*, by Hoeffding's inequality."""
        spread = sum(g.spread**2 for g in self.groups)
        return 8.0 * self.margin / spread if spread > 0.0 else 0.0  # the square may underflow

    @property
    def upper(self) -> float:
        """Upper bound on s*, from the weight at the largest values."""
        top = sum(g.neg_log_top_share for g in self.groups)
        return top / self.excess * (1.0 + 1e-12) + 5e-324

    @property
    def guess(self) -> float:
        """The root for normally distributed values."""
        variance = sum(g.variance for g in self.groups)
        return 2.0 * self.margin / variance if variance > 0.0 else inf

    def __call__(self, s: float) -> Point:
        return self._point(s, [g.log_moment(s) for g in self.groups], self.gap)

    def root(self, start: float | None = None) -> float:
        """Root s*: 0 for FI = ∞, inf for FI = 0. The result does not depend on `start`."""
        if self.excess <= 0.0:
            return inf
        return 0.0 if self.margin <= self.least_margin else find_root(self, start).s

    def is_steep(self, s: float) -> bool:
        """Whether the largest values dominate, so that moments about them are more exact."""
        tilt = s * max(g.spread for g in self.groups)
        return tilt > (STEEP if s * self.margin < 1.0 else MODERATE)

    @staticmethod
    def _point(s: float, moments: Sequence[LogMoment], gap: float) -> Point:
        return Point(
            s,
            fsum([*(m.value for m in moments), s * gap]),
            fsum([*(m.slope for m in moments), gap]),
            sum(m.curvature for m in moments),
        )


class SampleEquation(Equation):
    """h(s) from the samples themselves, accurate also where its terms nearly cancel."""

    groups: Sequence[TestedGroup]

    def __call__(self, s: float) -> Point:
        if self.is_steep(s):
            return super().__call__(s)
        return self._point(s, [g.centred_log_moment(s) for g in self.groups], self._mean_gap)


def _means(groups: Sequence[ValueGroup]) -> list[float]:
    """Numbers whose exact sum is the sum of the means."""
    return [part for g in groups for part in (g.mean, g.mean_residual)]


def inverse(number: float) -> float:
    """FI from s, or s from FI: ∞ from 0 and 0 from ∞."""
    return 1.0 / number if number else inf


def separation(groups: Sequence[ValueGroup]) -> float:
    """mean(positives) - mean(negatives); the groups hold negatives and negated positives."""
    return -fsum(_means(groups))


def solve(groups: Sequence[TestedGroup], target: float, start: float | None = None) -> float:
    """Root s* of the groups at the target: 0 for FI = ∞, inf for FI = 0.

    `start` is an optional first guess; the result does not depend on it.
    """
    if fsum([*(g.reached for g in groups), -target]) <= 0.0:
        return inf
    return SampleEquation(groups, target).root(start)


def find_root(equation: Equation, start: float | None = None, limit: float = inf) -> Point:
    """Positive root of `equation`, whose excess and margin are positive.

    `limit` is an upper bound on the root.

    Halley steps on h(s)/s. A step that leaves the bracket or is longer than half of s is not
    trusted: we go to the right end instead, from where Newton on the convex h decreases to the
    root monotonically. The returned value and slopes come from the last evaluation.
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
        if 10.0 * step * step * step < EPS or high - low <= 2.0 * EPS * high:
            break
    return point._replace(s=s)


def halley_step(point: Point, otherwise: float) -> float:
    """Next s by Halley's method on h(s)/s, or by Newton's; `otherwise` if neither applies."""
    s = point.s
    # With g = h/s, its slope times s and its curvature times s², each times s: free of units.
    slope = s * point.slope - point.value
    curvature = s * (s * point.curvature) - 2.0 * slope
    bend = slope * slope - 0.5 * point.value * curvature
    if bend > 0.25 * slope * slope:
        return s - s * (point.value * slope / bend)
    return s - s * (point.value / slope) if slope > 0.0 else otherwise


def find_roots(
    evaluate: Callable[[Floats, Mask], Iterable[Floats]],
    low: Floats,
    high: Floats,
    start: Floats,
    done: Mask,
    tolerance: float = EPS,
    max_steps: int = _MAX_STEPS,
) -> tuple[Floats, Mask]:
    """`find_root` of several equations at once; an equation that has its root waits for the others.

    Parameters
    ----------
    evaluate : callable
        From s and the mask of the finished equations: h, h' and h'' of the others.
    low, high, start : ndarray
        Brackets of the roots, and first guesses.
    done : ndarray of bool
        Equations to leave out. Their s stays where the bracket puts it.
    tolerance : float
        Relative error of the roots.
    max_steps : int

    Returns
    -------
    s : ndarray
    done : ndarray of bool
        Where `s` is a root, or was left out.
    """
    s = np.clip(start, low, high)
    for _ in range(max_steps):
        if done.all():
            break
        value, slope, curvature = evaluate(s, done)
        negative = value < 0.0
        low = np.where(negative, np.maximum(low, s), low)
        high = np.where(negative, high, np.minimum(high, s))
        crossing = np.minimum(high, np.maximum(s - value / slope, low))
        high = np.where(slope > 0.0, crossing, high)
        following = _halley_steps(s, value, slope, curvature)
        inside = (low <= following) & (following <= high) & (abs(following - s) <= 0.5 * s)
        following = np.where(done, s, np.where(inside, following, high))
        step = abs(following - s) / s
        s = following
        done = done | (10.0 * step * step * step < tolerance) | (high - low <= 2.0 * EPS * high)
    return s, done


def _halley_steps(s: Floats, value: Floats, slope: Floats, curvature: Floats) -> Floats:
    """`halley_step` of several equations; NaN where neither method applies."""
    slope = s * slope - value
    curvature = s * (s * curvature) - 2.0 * slope
    bend = slope * slope - 0.5 * value * curvature
    newton = np.where(slope > 0.0, s - s * (value / slope), np.nan)
    return np.where(bend > 0.25 * slope * slope, s - s * (value * slope / bend), newton)
