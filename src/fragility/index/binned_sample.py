r"""The samples of a class as their bins know them, for tests and intervals of the index.

A test of the equation needs :math:`\Lambda(s)` and the spread of :math:`e^{s v}`, which is
:math:`\Lambda` at :math:`2s`: both are sums over bins. So an interval of a million samples costs
little more than their index. What bins cannot tell to ten digits is told by the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, fsum, inf, log

from ..binned import BinnedGroup
from ..moments import CONCENTRATED, LogMoment, surprise_of

#: Largest relative error of a squared standard error from bins.
_TOLERANCE = 1e-10


class OutOfReachError(ArithmeticError):
    """Bins are too wide for this tilt: ask finer ones, or the samples."""


@dataclass(frozen=True, eq=False)
class _Measure:
    """Bins, and a point of some weight besides; together one distribution."""

    bins: BinnedGroup
    point: float = 0.0
    point_weight: float = 0.0

    @property
    def weight(self) -> float:
        return self.bins.weight + self.point_weight

    @property
    def pivot(self) -> float:
        return max(self.bins.pivot, self.point) if self.point_weight else self.bins.pivot

    @cached_property
    def mean_above_pivot(self) -> float:
        """Mean of the values minus the pivot."""
        base = self.bins.mean_above_pivot + (self.bins.pivot - self.pivot)
        added = self.point_weight * (self.point - self.pivot)
        return (self.bins.weight * base + added) / self.weight

    @cached_property
    def variance(self) -> float:
        distance = self.point - self.bins.pivot - self.bins.mean_above_pivot
        share = self.point_weight / self.weight
        return (1.0 - share) * (self.bins.variance + share * distance * distance)

    def log_moment(self, s: float) -> LogMoment:
        """Log-moment of the values minus the pivot."""
        if s > self.bins.steepest:
            raise OutOfReachError
        found = self.bins.log_moment(s)
        if not self.point_weight:
            return found
        shift, beyond = self.bins.pivot - self.pivot, self.point - self.pivot
        parts = (
            self.bins.weight / self.weight * exp(found.value + s * shift),
            self.point_weight / self.weight * exp(s * beyond),
        )
        total = parts[0] + parts[1]
        slopes = found.slope + shift, beyond
        slope = (parts[0] * slopes[0] + parts[1] * slopes[1]) / total
        within = parts[0] / total * found.curvature
        between = parts[0] * parts[1] / total**2 * (slopes[0] - slopes[1]) ** 2
        return LogMoment(log(total), slope, within + between)

    def error(self, s: float) -> float:
        """Estimate of the error of the log-moment."""
        return self.bins.remainder(s) + self.bins.rounding(s)


@dataclass(frozen=True, eq=False)
class BinnedSample:
    """A group of samples known by their bins; see `fragility.moments.TestedGroup`.

    Parameters
    ----------
    values : BinnedGroup
        Their bins, by weight.
    squares : BinnedGroup
        The same by squared weight, which says how much of a sample each is.
    """

    values: BinnedGroup
    squares: BinnedGroup
    point: float = 0.0
    point_weight: float = 0.0

    @cached_property
    def _by_weight(self) -> _Measure:
        return _Measure(self.values, self.point, self.point_weight)

    @cached_property
    def _by_square(self) -> _Measure:
        if self.squares is self.values:
            return self._by_weight
        return _Measure(self.squares, self.point, self.point_weight**2)

    @property
    def weight(self) -> float:
        return self._by_weight.weight

    @property
    def pivot(self) -> float:
        return self._by_weight.pivot

    @property
    def reached(self) -> float:
        if self.point_weight and self.point >= self.values.reached:
            return self.point
        return self.values.reached

    @property
    def surprise(self) -> float:
        if self.point_weight and self.point >= self.values.reached:
            return surprise_of(self.point_weight, self.values.weight)
        return self.values.surprise + log(self.weight / self.values.weight)

    @property
    def spread(self) -> float:
        low = self.values.pivot - self.values.spread
        if self.point_weight:
            low = min(low, self.point)
        return max(self.pivot - low, self.values.spread)

    @property
    def mean(self) -> float:
        return self.pivot + self._by_weight.mean_above_pivot

    @property
    def mean_residual(self) -> float:
        return fsum([self.pivot, self._by_weight.mean_above_pivot, -self.mean])

    @property
    def variance(self) -> float:
        return self._by_weight.variance

    def log_moment(self, s: float) -> LogMoment:
        return self._by_weight.log_moment(s)

    def centred_log_moment(self, s: float) -> LogMoment:
        """Log-moment of ``values - mean``."""
        found, shift = self._by_weight.log_moment(s), self._by_weight.mean_above_pivot
        return LogMoment(found.value - s * shift, found.slope - shift, found.curvature)

    def log_moment_error(self, s: float) -> tuple[float, float]:
        """Log-moment of ``values - pivot`` at `s`, and its squared standard error.

        With :math:`M` the mean of :math:`e^{s v}` and means :math:`E` by squared weight, the sum of
        squared deviations is :math:`E(e^{s v} - M)^2`, relative to :math:`M^2`.
        """
        first = self._by_weight.log_moment(s).value
        shift = self._by_square.pivot - self._by_weight.pivot
        second = self._by_square.log_moment(2.0 * s).value + 2.0 * s * shift
        scatter = expm1(second - 2.0 * first)
        if self._by_square is not self._by_weight:
            scatter -= 2.0 * expm1(self._by_square.log_moment(s).value + s * shift - first)
        share = self.concentration
        return first, max(scatter, 0.0) * share / (1.0 - share) if share < 1.0 else inf

    def is_accurate(self, s: float) -> bool:
        """Whether the bins tell the standard error of the log-moment at `s`."""
        share = self.concentration
        if share > CONCENTRATED:  # so few samples are better read one by one
            return False
        scatter = self.log_moment_error(s)[1] * (1.0 - share) / share
        # A difference of logarithms: a small one is all rounding.
        error = self._by_square.error(2.0 * s) + 2.0 * self._by_weight.error(s)
        return error <= _TOLERANCE * min(scatter, 1.0)

    @property
    def concentration(self) -> float:
        """Sum of the squared shares of the weight: one over the effective sample size."""
        return self._by_square.weight / self.weight**2

    @property
    def squared_mean_error(self) -> float:
        """Squared standard error of the mean, without Bessel's correction."""
        shift = self._by_square.pivot - self._by_weight.pivot
        apart = self._by_square.mean_above_pivot + shift - self._by_weight.mean_above_pivot
        return self.concentration * (self._by_square.variance + apart * apart)

    def with_value(self, value: float) -> BinnedSample:
        """The group with one more member, of the weight of an effective sample."""
        return BinnedSample(self.values, self.squares, value, self.concentration * self.weight)
