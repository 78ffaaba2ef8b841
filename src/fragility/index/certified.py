r"""Certified bounds on the index from two moments per bin.

The contribution of a bin :math:`[a, b]` with known mean and mean square to :math:`E e^{s v}` lies
between its values for two distributions on two points (Markov and Krein). The reason is a pair of
parabolas. One meets :math:`e^{s v}` at :math:`a`, touches it at :math:`y` and stays below it on the
bin. The other meets it at :math:`b`, touches it and stays above. The mean of a parabola is known. A
parabola stays a bound whatever the moments are, so an error of the moments only adds the slopes of
the parabola times that error. So we know :math:`h_{low} \le h \le h_{high}`, and as :math:`h` is
convex with :math:`h(0) = 0`,

* any :math:`s` with :math:`h_{high}(s) \le 0` shows :math:`FI \le 1/s`,
* any :math:`s` with :math:`h_{low}(s) \ge 0` shows :math:`FI \ge 1/s`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, hypot, inf, isfinite, log, log1p, nextafter, sqrt
from typing import NamedTuple

import numpy as np

from .._brent import bracketed_root
from .._typing import Floats, Interval
from ..moments import EPS

#: Largest errors allowed in the moments of x = (value - centre) / width: in the mean of x, and in
#: the mean of its square.
MEAN_ERROR, SQUARE_ERROR = 1.01 * 2.0**-38, 1.01 * 2.0**-24
#: Bound on the relative error of a pairwise sum of up to 2²⁰ terms, each right but for some last
#: bits: 16 + 13 roundings of the sum, and the rest for the terms.
_ROUNDING = 64.0 * EPS
#: In bins wider than this many 1/s the parabolas bound nothing.
_STEEPEST = 40.0
#: So many secants are tried before a root is bracketed: most take half of them.
_MOST_SECANTS = 12
#: Relative to the root: a step this small is left out.
_NEXT_STEP = 1e-13
#: Roots outside this range are not searched for.
_LEAST_ROOT, _LARGEST_ROOT = 1e-18, 1e300


class CertifiedIndex(NamedTuple):
    """Fragility Index of a pair, between two certified bounds, and the mean separation."""

    fragility: float
    low: float
    high: float
    separation: float


@dataclass(frozen=True, eq=False)
class BinMoments:
    """Values of a class, known by the bins that hold any.

    Attributes
    ----------
    centres, widths : ndarray
        Centres and widths of the bins; the widths are powers of two.
    weights, means, squares : ndarray
        Weight in each bin, and mean and mean square of x, the distance of a value to the centre of
        its bin in bin widths; their errors are at most `MEAN_ERROR` and `SQUARE_ERROR`.
    smallest, largest : float
        The extreme values, exact.
    lightest : float
        Lower bound on the weight of a sample.
    """

    centres: Floats
    widths: Floats
    weights: Floats
    means: Floats
    squares: Floats
    smallest: float
    largest: float
    lightest: float

    def negated(self) -> BinMoments:
        """The same for minus the values."""
        arrays = self.centres, self.widths, self.weights, self.means, self.squares
        centres, widths, weights, means, squares = (array[::-1].copy() for array in arrays)
        ends = -self.largest, -self.smallest
        return BinMoments(-centres, widths, weights, -means, squares, *ends, self.lightest)

    @cached_property
    def weight(self) -> float:
        return float(self.weights.sum())

    def _average(self, terms: Floats) -> float:
        # Summed pairwise: unlike with BLAS, the error does not grow with the number of bins.
        return float((self.weights * terms).sum()) / self.weight

    def _averages(self, terms: Floats) -> tuple[float, float]:
        """`_average` of two rows of terms, which are written over."""
        terms *= self.weights
        low, high = terms.sum(axis=1).tolist()
        return low / self.weight, high / self.weight

    @cached_property
    def spread(self) -> float:
        return self.largest - self.smallest

    @cached_property
    def _widest(self) -> float:
        return float(self.widths.max())

    @cached_property
    def _longest(self) -> float:
        """Largest possible distance between two values in a bin."""
        return min(self._widest, self.spread)

    @cached_property
    def mean(self) -> float:
        offset = self.centres - self.centres[-1]
        above = self._average(offset + self.widths * self.means)
        mean = float(self.centres[-1] + above)
        return min(max(mean, self.smallest), self.largest)

    @property
    def deviation(self) -> float:
        """Approximate standard deviation."""
        return sqrt(self._average((self.centres + self.widths * self.means - self.mean) ** 2))

    @cached_property
    def mean_error(self) -> float:
        """Bound on the error of the mean, from the errors of the moments and of their sum."""
        rounding = _ROUNDING * (self.spread + abs(self.mean))
        return min(self._widest * MEAN_ERROR + rounding, self.spread)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """Ends of the bins, in widths from their centres."""
        low = np.maximum((self.smallest - self.centres) / self.widths, -0.5)
        high = np.minimum((self.largest - self.centres) / self.widths, 0.5)
        return low, np.maximum(high, low)

    @cached_property
    def _two_points(self) -> tuple[Floats, Floats, Floats]:
        """Distributions on two points: a row for the lower bound, and one for the upper bound.

        One end of each bin, the distance from it to the second point, and the share of that point.
        """
        ends = np.array(self._ends)
        longest = ends[1] - ends[0]
        offset = np.minimum(np.maximum(self.means, ends[0]), ends[1]) - ends
        variance = np.maximum(self.squares - self.means * self.means, 0.0)
        away = offset != 0.0  # otherwise all weight is at the end
        distance, share = np.zeros_like(offset), np.zeros_like(offset)
        np.divide(variance, offset, out=distance, where=away)
        distance += offset
        np.minimum(np.maximum(distance, -longest, out=distance), longest, out=distance)
        np.divide(offset, distance, out=share, where=away)
        return ends, distance, np.minimum(share, 1.0, out=share)

    @cached_property
    def _steps(self) -> Floats:
        """Distance from each end to the second point. Widths are powers of two: it is exact."""
        return self.widths * self._two_points[1]

    @cached_property
    def _about_mean(self) -> Floats:
        """The ends of `_two_points`, relative to the mean."""
        return self.centres - self.mean + self.widths * self._two_points[0]

    @cached_property
    def _about_largest(self) -> Floats:
        """The same, relative to the largest value."""
        return self.centres - self.largest + self.widths * self._two_points[0]

    def log_moment(self, s: float, *, centred: bool) -> Interval:
        """Bounds on the log-moment at `s` of the values minus their mean, or minus the largest.

        Bounds about the mean are tight for small s, where they nearly cancel against the target;
        ``s * spread`` must be below one.
        """
        pivot = self.mean if centred else self.largest
        mean, top = self.mean - pivot, self.largest - pivot
        error = self.mean_error
        # Bounds from the range, the mean and one sample at the largest value: Jensen, Hoeffding,
        # and a point mass.
        low, high = s * (mean - error), s * min(top, mean + error + s * self.spread**2 / 8.0)
        low = max(low, s * top - log(self.weight / self.lightest) * (1.0 + 4.0 * EPS))
        if centred:
            from_bins = self._moments_about_mean(s)
        elif s * self._longest < _STEEPEST:
            from_bins = self._moments_about_largest(s)
        else:
            from_bins = Interval(-inf, self._weight_about_largest(s))
        return Interval(max(low, from_bins.low), min(high, from_bins.high))

    def _growth(self, s: float) -> Floats:
        """Mean of exp(s v) - 1 over the points of `_two_points`, v relative to the end."""
        found: Floats = s * self._steps
        np.expm1(found, out=found)
        found *= self._two_points[2]
        return found

    def _moments_about_mean(self, s: float) -> Interval:
        ends, growth = s * self._about_mean, self._growth(s)
        growth *= np.exp(ends)
        growth += np.expm1(ends)
        low, high = self._averages(growth)
        reach = s * max(self.largest - self.mean, self.mean - self.smallest)
        error = exp(reach) * (self._moment_error(s) + _ROUNDING * reach)
        return Interval(log1p(max(low - error, -1.0 + EPS)), log1p(high + error))

    def _moments_about_largest(self, s: float) -> Interval:
        ends, growth = s * self._about_largest, self._growth(s)
        growth += 1.0
        growth *= np.exp(ends, out=ends)
        low, high = self._averages(growth)
        # The error of an exponent is relative to its term, and exponents go up to the spread.
        rounding = exp(s * self._longest) * (_ROUNDING + 2.0 * EPS * s * self.spread)
        error = self._moment_error(s) + rounding
        return Interval(
            log(low) + log1p(-error) if error < 1.0 and low > 0.0 else -inf,
            log(high) + log1p(error) if high > 0.0 else inf,
        )

    def _weight_about_largest(self, s: float) -> float:
        """Upper bound from the weights of the bins alone."""
        ends = self.centres - self.largest + self.widths * self._ends[1]
        # The exponents are negative: a smaller factor allows for their rounding.
        share = self._average(np.exp(s * (1.0 - 16.0 * EPS) * ends))
        return log(share) + _ROUNDING

    def _moment_error(self, s: float) -> float:
        """Bound on the effect of errors of the moments, relative to the least value in a bin.

        A parabola that meets and touches exp(s v) within a bin has coefficients of at most s and
        s²/2 times the largest value of exp(s v).
        """
        step, reach = s * self._widest, s * self._longest
        square_error = SQUARE_ERROR + MEAN_ERROR  # about an end of the bin instead of its centre
        slopes = step * max(1.0, reach / 2.0) * MEAN_ERROR + step * step / 2.0 * square_error
        return exp(reach) * slopes


def certify(
    negatives: BinMoments, positives: BinMoments, target: float, near: float = 0.0
) -> CertifiedIndex:
    """Index of a pair with bounds, from the bins of its negatives and of minus its positives.

    `near` is what it is thought to be, where that is known: it saves some steps.
    """
    problem = _Problem((negatives, positives), target)
    separation = -fsum([negatives.mean, positives.mean])
    if problem.excess <= 0.0:
        return CertifiedIndex(0.0, 0.0, 0.0, separation)
    if problem.margin.high <= 0.0:
        return CertifiedIndex(inf, inf, inf, separation)
    root = problem.root(near)
    distance = problem.first_distance(root) if root > 0.0 else 1.0
    low = problem.largest_bound_below(root, distance)
    high = problem.smallest_bound_above(root, distance)
    fragility = inf if root == 0.0 else min(max(1.0 / root, low), high)
    return CertifiedIndex(fragility, low, high, separation)


class _Problem:
    """Bounds on h(s) of two groups and a target."""

    def __init__(self, groups: tuple[BinMoments, BinMoments], target: float) -> None:
        self._groups, self._target = groups, target
        self.excess = fsum([*(g.largest for g in groups), -target])
        #: Target minus the mean error; see `fragility.index.root.Equation`.
        margin = -fsum([*(g.mean for g in groups), -target])
        error = sum(g.mean_error for g in groups)
        self.margin = Interval(margin - error, margin + error)
        self._spread = max(g.spread for g in groups)
        #: Width of the bounds next to the root, and slope of h there times s, if it was found soon.
        self._at_root: tuple[float, float] | None = None

    def __call__(self, s: float) -> Interval:
        centred = s * self._spread < 1.0
        parts = [g.log_moment(s, centred=centred) for g in self._groups]
        pivots = [g.mean if centred else g.largest for g in self._groups]
        shift = s * fsum([*pivots, -self._target])
        low, high = sum(p.low for p in parts), sum(p.high for p in parts)
        rounding = 8.0 * EPS * (abs(shift) + sum(max(map(abs, p)) for p in parts))
        return Interval(low + shift - rounding, high + shift + rounding)

    def middle(self, s: float) -> float:
        low, high = self(s)
        return (low + high) / 2.0

    def root(self, near: float = 0.0) -> float:
        """An estimate of the root; 0 if there seems to be none. Its inverse may be `near`."""
        margin = (self.margin.low + self.margin.high) / 2.0
        if margin <= 4.0 * EPS * sum(g.spread for g in self._groups):  # as in `index.root`
            return 0.0
        if 0.0 < near < inf:
            found = self._root_by_secants(margin, 1.0 / near)
            if found:
                return found
        # From the root of normal values, as far as needed to either side.
        deviation = hypot(*(g.deviation for g in self._groups))
        guess = 2.0 * (margin / deviation) / deviation if deviation > 0.0 else inf
        guess = min(guess, _LARGEST_ROOT / 4.0)
        return self._root_by_secants(margin, guess) or self._root_in_bracket(guess)

    def _root_by_secants(self, margin: float, guess: float) -> float:
        """The root if secants find it soon, else 0: h(s)/s is nearly a line from minus the margin.

        Of normal values it is one.
        """
        before, level, s, step = 0.0, -margin, guess, inf
        for _ in range(_MOST_SECANTS):
            low, high = self(s)
            value = (low + high) / 2.0 / s
            if not isfinite(value) or value == level:
                break
            rise, run = value - level, s - before
            before, level, s = s, value, s - run * (value / rise)
            if not _LEAST_ROOT < s < _LARGEST_ROOT:
                break
            # The next step would be about the product of the last two, relative to s.
            step, last = abs(s - before) / s, step
            if step <= 1e-12 or step * last <= _NEXT_STEP:
                self._at_root = high - low, s * rise * (s / run)
                return s
        return 0.0

    def _root_in_bracket(self, guess: float) -> float:
        low = high = guess
        while low > _LEAST_ROOT and self.middle(low) > 0.0:
            low, high = low / 2.0, low
        while high < _LARGEST_ROOT and self.middle(high) < 0.0:
            low, high = high, high * 2.0
        if low <= _LEAST_ROOT or high >= _LARGEST_ROOT:
            return 0.0 if low <= _LEAST_ROOT else high
        return bracketed_root(self.middle, low, high, xtol=1e-300, rtol=1e-12)

    def smallest_bound_above(self, root: float, distance: float) -> float:
        """A bound FI <= 1/s, from the nearest s below the root that proves one.

        The search starts at this relative distance from the root.
        """
        if self.margin.low <= 0.0 or root == 0.0:
            return inf
        while distance < 1.0:
            s = root * (1.0 - distance)
            if self(s).high <= 0.0:
                return nextafter(1.0 / s, inf)
            distance = 2.0 * distance if distance < 0.5 else 1.0 - (1.0 - distance) / 4.0
        return inf

    def largest_bound_below(self, root: float, distance: float) -> float:
        """A bound FI >= 1/s, from the nearest s above the root that proves one.

        The search starts at this relative distance from the root.
        """
        root = max(root, 1e-9 / self._spread)  # near zero if there seems to be none
        while root * distance < _LARGEST_ROOT:
            s = root * (1.0 + distance)
            if self(s).low >= 0.0:
                return nextafter(1.0 / s, 0.0)
            distance *= 2.0
        return 0.0

    def first_distance(self, root: float) -> float:
        """Relative distance from the root at which the bounds should have a sign."""
        if self._at_root is None:
            low, high = self(root)
            slope = (self.middle(1.001 * root) - (low + high) / 2.0) / 0.001
            self._at_root = high - low, slope
        width, slope = self._at_root
        return min(max(0.75 * width / slope, 2.0 * EPS), 0.5) if slope > 0.0 else 0.5
