r"""The samples of a class represented by their bins, for tests and intervals of the index.

A test of the equation needs :math:`\Lambda(s)` and the variance of :math:`e^{s v}`, which follows
from :math:`\Lambda(2s)`: both are sums over bins. So the interval of a million samples costs little
more than their index. Where bins are not accurate to ten digits, the samples are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, fsum, inf, log

from ..binned import BinnedGroup
from ..moments import CONCENTRATED, LogMoment, neg_log_share

#: Largest relative error of a squared standard error from bins.
_TOLERANCE = 1e-10


class OutOfReachError(ArithmeticError):
    """The bins are too wide for this tilt: use finer bins, or the samples."""


@dataclass(frozen=True, eq=False)
class _Measure:
    """One distribution from bins and an optional point with a weight."""

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


class BinnedSample:
    """A group of samples known by their bins; see `fragility.moments.TestedGroup`.

    Parameters
    ----------
    values : BinnedGroup
        The samples, binned by weight.
    squares : BinnedGroup
        The same samples binned by squared weight, for standard errors.
    point, point_weight : float
        A further sample, and its weight: zero without one.
    """

    def __init__(
        self,
        values: BinnedGroup,
        squares: BinnedGroup,
        point: float = 0.0,
        point_weight: float = 0.0,
    ) -> None:
        self.values, self.squares = values, squares
        self._by_weight = self._by_square = _Measure(values, point, point_weight)
        if squares is not values:
            self._by_square = _Measure(squares, point, point_weight**2)
        self.weight, self.pivot = self._by_weight.weight, self._by_weight.pivot
        self.mean = self.pivot + self._by_weight.mean_above_pivot
        self.mean_residual = fsum([self.pivot, self._by_weight.mean_above_pivot, -self.mean])
        self.variance = self._by_weight.variance
        low = values.pivot - values.spread
        self.reached = values.reached
        self.neg_log_top_share = values.neg_log_top_share + log(self.weight / values.weight)
        if point_weight:
            low = min(low, point)
            if point >= values.reached:
                self.reached = point
                self.neg_log_top_share = neg_log_share(point_weight, values.weight)
        self.spread = max(self.pivot - low, values.spread)

    def log_moment(self, s: float) -> LogMoment:
        return self._by_weight.log_moment(s)

    def centred_log_moment(self, s: float) -> LogMoment:
        """Log-moment of ``values - mean``."""
        found, shift = self._by_weight.log_moment(s), self._by_weight.mean_above_pivot
        return LogMoment(found.value - s * shift, found.slope - shift, found.curvature)

    def log_moment_error(self, s: float) -> tuple[float, float]:
        """Log-moment of ``values - pivot`` at `s`, and its squared standard error.

        With the mean :math:`M` of :math:`e^{s v}`, and means :math:`E` by squared weight, the sum
        of squared deviations is :math:`E(e^{s v} - M)^2`, relative to :math:`M^2`.
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
        """Whether the standard error of the log-moment at `s` from the bins is accurate."""
        share = self.concentration
        if share > CONCENTRATED:  # few samples are better read one by one
            return False
        scatter = self.log_moment_error(s)[1] * (1.0 - share) / share
        # A small difference of logarithms is all rounding.
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
        """The group with one more member, which has the weight of an effective sample."""
        return BinnedSample(self.values, self.squares, value, self.concentration * self.weight)
