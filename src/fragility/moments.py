r"""Log-moments of a group of values, read in blocks that stay in cache.

For values :math:`v` with weights :math:`a`,

.. math:: \Lambda(s) = \ln \frac{\sum_i a_i e^{s v_i}}{\sum_i a_i}

is all the library needs to know about a group: the Fragility Index is the root of a sum of
log-moments, and its certificates and gradients are derivatives of log-moments. Each log-moment is
returned *relative to a pivot* :math:`c`, as the log-moment of :math:`v - c`, so that the caller can
add :math:`s (c - \ldots)` exactly instead of cancelling large numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import frexp, fsum, inf, log, log1p
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._typing import Floats

#: Largest relative error of one rounding.
EPS = 2.0**-53
#: Elements per block: a few float64 blocks fit the second-level cache, and BLAS does not wake its
#: threads for vectors this short.
BLOCK = 8_192
#: Groups up to this size are copied out once; larger ones are re-read from the caller's arrays.
_KEEP = 1 << 17
#: From this sum of squared weight shares on, sums of squares are taken about the mean.
CONCENTRATED = 1e-2
#: Below this |u|, exp(u) - 1 - u comes from its series, up to this power.
SERIES_BELOW, SERIES_ORDER = 0.05, 10
_ORDERS = np.arange(SERIES_ORDER, 2, -1.0)[:, np.newaxis]


class LogMoment(NamedTuple):
    """Value, slope and curvature of a log-moment. Each adds up over independent groups."""

    value: float
    slope: float
    curvature: float


class ValueGroup(Protocol):
    """What a root finder needs from a group of values."""

    @property
    def pivot(self) -> float:
        """The value that `log_moment` is relative to, at or next to the largest."""

    @property
    def reached(self) -> float:
        """A value at or next to the largest that some of the weight reaches or exceeds."""

    @property
    def neg_log_top_share(self) -> float:
        """-log of the fraction of the weight at or above `reached`."""

    @property
    def spread(self) -> float:
        """Largest minus smallest value."""

    @property
    def mean(self) -> float: ...

    @property
    def mean_residual(self) -> float:
        """Exact mean minus the rounded `mean`."""

    @property
    def variance(self) -> float: ...

    def log_moment(self, s: float) -> LogMoment:
        """Log-moment of ``values - pivot`` at `s`."""


class TestedGroup(ValueGroup, Protocol):
    """What a test of the equation needs besides: the values as a random sample."""

    def centred_log_moment(self, s: float) -> LogMoment:
        """Log-moment of ``values - mean`` at `s`."""

    def log_moment_error(self, s: float) -> tuple[float, float]:
        """Log-moment of ``values - pivot`` at `s`, and its squared standard error."""

    def is_accurate(self, s: float) -> bool:
        """Whether `log_moment_error` at `s` is as accurate as from the samples themselves."""

    @property
    def concentration(self) -> float:
        """Sum of the squared shares of the weight: one over the effective sample size."""

    @property
    def squared_mean_error(self) -> float:
        """Squared standard error of the mean, without Bessel's correction."""

    def with_value(self, value: float) -> TestedGroup:
        """The group with one more member, which has the weight of an effective sample."""


class _Detail(NamedTuple):
    neg_log_top_share: float
    mean_residual: float
    variance: float


class Sample:
    """A group of values in memory, read from a column without copying large groups.

    Parameters
    ----------
    column : ndarray of shape (n,)
        Real numbers of any dtype and stride; computed in float64.
    factor : float
        The values are ``factor * column``. A sign or a power of two, so the product is exact.
    selection : ndarray, optional
        The members of the group: a boolean mask of `column` or an index array. All by default.
    weights : ndarray of shape (n,), optional
        Weights aligned with `column`, positive for every member.

    Attributes
    ----------
    weight, mean : float
        Total weight, and weighted mean of the values.
    pivot, reached : float
        The largest value.
    spread : float
        Largest minus smallest value.
    """

    def __init__(
        self,
        column: NDArray[Any],
        *,
        factor: float = 1.0,
        selection: NDArray[Any] | None = None,
        weights: Floats | None = None,
    ) -> None:
        self._column = column
        self._factor = factor
        self._selection = selection
        self._weights = weights
        self._weight_factor = 1.0
        self._kept: tuple[Floats, Floats | None] | None = None
        #: Where a centred log-moment was asked for last, which is where it is often asked for next.
        self._latest: tuple[float, LogMoment] | None = None
        if self._size <= _KEEP:
            self._kept = self._read(slice(None))
        if weights is not None:
            self._scale_weights()
        self._find_extent()

    def _scale_weights(self) -> None:
        """Bring the weights to order one: only their ratios within the group matter."""
        parts = [weights for _, weights in self.blocks() if weights is not None]
        smallest = min(float(part.min()) for part in parts)
        largest = max(float(part.max()) for part in parts)
        self._weight_factor = order_one_factor(largest)
        if smallest * self._weight_factor == 0.0:
            raise ValueError(
                f"sample_weight goes from {smallest:g} to {largest:g} within a class, a range that "
                "floating point cannot hold; give samples of negligible weight the weight zero."
            )
        if self._kept is not None and self._weight_factor != 1.0:
            self._kept = self._read(slice(None))

    @property
    def _size(self) -> int:
        return self._column.size if self._selection is None else self._selection.size

    def _read(self, part: slice) -> tuple[Floats, Floats | None]:
        weights = None if self._weights is None else self._members(self._weights, part)
        if weights is not None and self._weight_factor != 1.0:
            weights = weights * self._weight_factor
        values = self._members(self._column, part)
        return np.multiply(values, self._factor, dtype=np.float64), weights

    def _members(self, array: NDArray[Any], part: slice) -> NDArray[Any]:
        """Entries of the members in a part of the selection."""
        if self._selection is None:
            return array[part]
        chosen = self._selection[part]
        return np.compress(chosen, array[part]) if chosen.dtype == np.bool_ else array[chosen]

    def blocks(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Values and weights (None: all one) of the members, block by block."""
        if self._kept is not None:
            kept, kept_weights = self._kept
            if 0 < kept.size <= BLOCK:
                yield self._kept
                return
            for start in range(0, kept.size, BLOCK):
                part = slice(start, start + BLOCK)
                yield kept[part], None if kept_weights is None else kept_weights[part]
            return
        for start in range(0, self._size, BLOCK):
            values, weights = self._read(slice(start, start + BLOCK))
            if values.size:
                yield values, weights

    def _weighed_blocks(self) -> Iterator[tuple[Floats, Floats | None, Floats | None]]:
        """The blocks with the squared weights, which the variance of a weighted sum needs."""
        for values, weights in self.blocks():
            yield values, weights, None if weights is None else weights * weights

    def _find_extent(self) -> None:
        largest, smallest = -np.inf, np.inf
        totals, sums = [], []
        for values, weights in self.blocks():
            largest = max(largest, float(values.max()))
            smallest = min(smallest, float(values.min()))
            totals.append(_amount(values, weights))
            sums.append(weighted_sum(values, weights))
        self.weight = fsum(totals)
        self.mean = min(max(fsum(sums) / self.weight, smallest), largest)
        self.pivot = self.reached = largest
        self.spread = largest - smallest

    @cached_property
    def _detail(self) -> _Detail:
        """From a second reading, which needs the mean and the largest value."""
        at_largest, below, first, second = [], [], [], []
        for values, weights in self.blocks():
            is_below = values < self.pivot
            centred = values - self.mean
            below.append(weighted_sum(is_below, weights))
            at_largest.append(weighted_sum(~is_below, weights))
            weighted = centred if weights is None else centred * weights
            first.append(float(weighted.sum()))  # pairwise: a sum by BLAS drifts
            second.append(float(weighted @ centred))
        top = neg_log_share(fsum(at_largest), fsum(below))
        residual = fsum(first) / self.weight
        variance = max(fsum(second) / self.weight - residual * residual, 0.0)
        return _Detail(top, residual, variance)

    @property
    def neg_log_top_share(self) -> float:
        return self._detail.neg_log_top_share

    @property
    def mean_residual(self) -> float:
        return self._detail.mean_residual

    @property
    def variance(self) -> float:
        return self._detail.variance

    def log_moment(self, s: float) -> LogMoment:
        # Subtracting the maximum before multiplying by s keeps the exponents of the samples that
        # matter exact, however large s is.
        pivot = self.pivot
        zeroth = first = second = 0.0
        for values, weights in self.blocks():
            below = values - pivot
            tilted = np.exp(s * below)
            if weights is not None:
                tilted *= weights
            zeroth += float(tilted.sum())
            tilted *= below
            first += float(tilted.sum())
            second += float(tilted @ below)
        slope = first / zeroth
        share = zeroth / self.weight
        value = log(share) if share > 1e-300 else log(zeroth) - log(self.weight)
        if value > -0.5:  # most weight is next to the pivot: its distance to one is more exact
            missing = fsum(weighted_sum(np.expm1(s * (v - pivot)), w) for v, w in self.blocks())
            value = log1p(missing / self.weight)
        return LogMoment(value, slope, second / zeroth - slope * slope)

    def centred_log_moment(self, s: float) -> LogMoment:
        """Log-moment of ``values - mean`` at `s`, for ``s * spread`` up to a few hundred.

        Exact to rounding even where most of the weight sits near the mean and the value is tiny.
        """
        if self._latest is not None and self._latest[0] == s:
            return self._latest[1]
        mean, residual = self.mean, self.mean_residual
        excess = first = second = 0.0
        for values, weights in self.blocks():
            centred = values - mean
            u = s * centred
            growth = np.expm1(u)
            remainder = exp_remainder(u, growth)
            excess += weighted_sum(remainder, weights)
            first += _dot(growth, centred, weights)
            growth += 1.0
            growth *= centred
            second += _dot(growth, centred, weights)
        above_one = s * residual + excess / self.weight
        slope = (residual + first / self.weight) / (1.0 + above_one)
        curvature = second / self.weight / (1.0 + above_one) - slope * slope
        found = LogMoment(log1p(above_one), slope, curvature)
        self._latest = s, found
        return found

    def log_moment_error(self, s: float) -> tuple[float, float]:
        """Log-moment of ``values - pivot`` at `s`, and its squared standard error.

        The values are taken as a random sample, with Bessel's correction by the effective size.
        """
        near = s * self.spread < 1.0  # about the mean: small terms, but they may grow with s
        centre = self.mean if near else self.pivot
        grown = np.expm1 if near else np.exp
        total = first = second = 0.0
        for values, weights, squares in self._weighed_blocks():
            growth = values - centre
            growth *= s
            grown(growth, out=growth)
            amount = weighted_sum(growth, weights)
            total += amount
            second += _dot(growth, growth, squares)
            first += amount if squares is weights else weighted_sum(growth, squares)
        average, count = total / self.weight, self._squared_weight
        # The sum of (weight · (growth - average))², then relative to the moment itself.
        moment = 1.0 + average if near else average
        scatter = second - average * (2.0 * first - average * count)
        if count > CONCENTRATED * self.weight**2:  # few samples: the difference may cancel
            scatter = 0.0
            for values, _, squares in self._weighed_blocks():
                apart = grown(s * (values - centre)) - average
                scatter += _dot(apart, apart, squares)
        value = log1p(average) if near else log(total) - log(self.weight)
        spared = 1.0 - count / self.weight**2
        error = scatter / (self.weight * moment) ** 2 / spared if spared > 0.0 else inf
        return value + s * (centre - self.pivot), max(error, 0.0)

    def is_accurate(self, s: float) -> bool:
        """True: these are the samples themselves."""
        return True

    @cached_property
    def _squared_weight(self) -> float:
        """Sum of the squared weights."""
        return fsum(_amount(values, squares) for values, _, squares in self._weighed_blocks())

    @property
    def concentration(self) -> float:
        """Sum of the squared shares of the weight: one over the effective sample size."""
        return self._squared_weight / self.weight**2

    @property
    def squared_mean_error(self) -> float:
        """Squared standard error of the mean, without Bessel's correction."""
        parts = []
        for values, _, squares in self._weighed_blocks():
            centred = values - self.mean - self.mean_residual
            parts.append(_dot(centred, centred, squares))
        return fsum(parts) / self.weight**2

    def with_value(self, value: float) -> Sample:
        """The group with one more member, of the weight of an effective sample."""
        parts = list(self.blocks())
        column = np.append(np.concatenate([values for values, _ in parts]), value)
        if self._weights is None:
            return Sample(column)
        weights = np.concatenate([w for _, w in parts if w is not None])
        return Sample(column, weights=np.append(weights, self.concentration * self.weight))

    def tilted_weights(self, s: float) -> Floats:
        """Worst-case weights ∝ a·exp(s·v), summing to one; s = inf: shared by the maximisers."""

        def tilt(values: Floats) -> Floats:
            below = values - self.pivot
            return np.exp(s * below) if s < inf else (below == 0.0).astype(np.float64)

        tilted = self.weighted(tilt)
        tilted /= tilted.sum()
        return tilted

    def weighted(self, function: Callable[[Floats], Floats]) -> Floats:
        """Weight times `function` of the value, for each member."""
        parts = []
        for values, weights in self.blocks():
            part = function(values)
            parts.append(part if weights is None else part * weights)
        return np.concatenate(parts)


def weighted_sum(values: NDArray[Any], weights: Floats | None) -> float:
    """Sum of weights times values (weights None: all one)."""
    # `dot` takes half as long as `@`, which counts where bins are few and groups many.
    return float(values.sum() if weights is None else weights.dot(values))


def _amount(values: Floats, weights: Floats | None) -> float:
    """Sum of the weights of some values (None: all one)."""
    return float(values.size if weights is None else weights.sum())


def neg_log_share(part: float, rest: float) -> float:
    """-log(part / (part + rest)), exact for small and for large parts."""
    weight = part + rest
    return log(weight) - log(part) if part < rest else -log1p(-rest / weight)


def neg_log_shares(part: Floats, rest: Floats) -> Floats:
    """`neg_log_share` of arrays."""
    weight = part + rest
    small = np.log(weight) - np.log(part)
    return np.where(part < rest, small, -np.log1p(-rest / weight))


def order_one_factor(magnitude: float) -> float:
    """Power of two that scales a magnitude far from one to order one; 1 if it is near one."""
    exponent = frexp(magnitude)[1]
    return 1.0 if abs(exponent) < 64 else 2.0 ** -max(min(exponent, 1000), -1000)


def exp_remainder(u: Floats, growth: Floats) -> Floats:
    """exp(u) - 1 - u from exp(u) - 1, by its series where the difference would cancel."""
    remainder: Floats = growth - u
    (small,) = (np.abs(u) < SERIES_BELOW).nonzero()
    v = u.take(small)
    parts = v / _ORDERS
    series = parts[0] + 1.0
    for part in parts[1:]:
        series *= part
        series += 1.0
    remainder[small] = 0.5 * v * v * series
    return remainder


def _dot(a: Floats, b: Floats, weights: Floats | None) -> float:
    return float(a.dot(b) if weights is None else (a * weights).dot(b))
