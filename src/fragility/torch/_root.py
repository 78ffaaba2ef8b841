r"""The roots of all pairs at once.

The equation and the method are those of `fragility.index.root`; here they are tables over pairs,
and a pair that has its root waits for the others. Only the sums over samples are taken on their
device.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._typing import Floats, Mask
from ..index.root import MODERATE, STEEP
from ._groups import Groups, total

_EPS = 2.0**-53
_MAX_STEPS = 200
#: Up to this s·slack the terms of h all but cancel, and are summed with care.
CANCELS = 0.1
#: Where exp(u) - 1 - u comes from its series, and the highest power that matters there.
_SERIES_BELOW, _SERIES_ORDER = 0.05, 10
#: Samples per class from which a first root on some of them pays, and how many those are.
_PILOT_PAYS, _PILOT = 1 << 15, 1 << 13
#: Numbers of pairs that have no root may be anything, also none.
_quiet = np.errstate(all="ignore")


class _Point(NamedTuple):
    value: Floats
    slope: Floats
    curvature: Floats


class Equation:
    """h(s) of all pairs, with the brackets of its roots."""

    @_quiet
    def __init__(self, groups: Groups, target: float) -> None:
        self.groups, self.target = groups, target
        self.sides = self.negatives, self.positives = groups.extents
        sums = groups.sums(_spread_terms, *((e.mean, e.high) for e in self.sides))
        self._surprise = sum(_surprise(of[2], of[3]) for of in sums)
        goal = np.full_like(self.negatives.mean, -target)
        self._residuals = [of[0] / side.weight for side, of in zip(self.sides, sums, strict=True)]
        self.variance = sum(of[1] / side.weight for side, of in zip(self.sides, sums, strict=True))
        self.mean_gap = _exact_sum(self.negatives.mean, self.positives.mean, goal)
        self._gap = _exact_sum(self.negatives.high, self.positives.high, goal)
        self.slack = -_exact_sum(self.negatives.mean, self.positives.mean, goal, *self._residuals)
        # As in `fragility.index.root`: only distances from the means are rounded.
        missed = self.slack <= 4.0 * _EPS * (self.negatives.spread + self.positives.spread)
        self.zero: Mask = groups.counted & (self._gap <= 0.0)
        self.infinite: Mask = groups.counted & ~self.zero & missed
        self.regular: Mask = groups.counted & ~self.zero & ~missed

    @cached_property
    def bracket(self) -> tuple[Floats, Floats]:
        """Hoeffding's bound, and one from the weight that reaches the largest values."""
        spread = sum(side.spread**2 for side in self.sides)
        low = np.where(spread > 0.0, 8.0 * self.slack / spread, 0.0)  # the square may underflow
        return low * (1.0 - 1e-9), self._surprise / self._gap * (1.0 + 1e-12) + 5e-324

    def _steep(self, s: Floats) -> Mask:
        """Where the largest values decide: see `fragility.index.root.Equation.is_steep`."""
        tilt = s * np.maximum(self.negatives.spread, self.positives.spread)
        return np.asarray(tilt > np.where(s * self.slack < 1.0, STEEP, MODERATE))

    def at(self, s: Floats) -> _Point:
        """h, h' and h'' at s."""
        steep = self._steep(s)
        careful = bool((self.regular & (s * self.slack < CANCELS)).any())
        some, every = bool((steep & self.regular).any()), bool((steep | ~self.regular).all())
        terms = partial(_moment_terms, some_steep=some, all_steep=every, careful=careful)
        parameters = [(s, np.where(steep, e.high, e.mean), steep.astype(float)) for e in self.sides]
        value = s * np.where(steep, self._gap, self.mean_gap)
        slope = np.where(steep, self._gap, self.mean_gap)
        curvature = np.zeros_like(s)
        all_sums = self.groups.sums(terms, *parameters)
        for side, sums, residual in zip(self.sides, all_sums, self._residuals, strict=True):
            growth, first, second, *missing = sums / side.weight
            if careful:
                growth = np.where(steep, growth, growth + s * residual)
            first = np.where(steep, first, first + residual)
            moment = np.where(steep, growth, 1.0 + growth)
            tilted = first / moment
            logarithm = np.log1p(growth)
            if missing:
                # Where most weight is next to the largest, what is missing to one is more exact.
                largest = np.where(growth < 0.6, np.log(growth), np.log1p(missing[0]))
                logarithm = np.where(steep, largest, logarithm)
            value = value + logarithm
            slope = slope + tilted
            curvature = curvature + second / moment - tilted * tilted
        return _Point(value, slope, curvature)

    @_quiet
    def tilt(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums of exp(s·(v - max)) of negatives and positives, and the slope h'(s)."""
        steep = self._steep(s)
        parameters = ((s, e.high, np.where(steep, e.high, e.mean)) for e in self.sides)
        below, above = self.groups.sums(_tilted_terms, *parameters)
        gap = np.where(steep, self._gap, self.mean_gap)
        return below[0], above[0], gap + below[1] / below[0] + above[1] / above[0]


@_quiet
def solve(equation: Equation) -> Floats:
    """Root s* of every regular pair; one for the others."""
    low, high = equation.bracket
    guess = 2.0 * equation.slack / equation.variance
    groups = equation.groups
    # A device takes as long for a few samples as for many.
    if groups.on_processor and groups.largest_class > _PILOT_PAYS:
        pilot = Equation(groups.thinned(_PILOT), equation.target)
        guess = np.where(pilot.regular, solve(pilot), guess)
    s = np.where(equation.regular, np.clip(guess, low, high), 1.0)
    done = ~equation.regular
    for _ in range(_MAX_STEPS):
        if done.all():
            break
        point = equation.at(s)
        low = np.where(point.value < 0.0, np.maximum(low, s), low)
        high = np.where(point.value < 0.0, high, np.minimum(high, s))
        tangent = np.maximum(s - point.value / point.slope, low)
        high = np.where(point.slope > 0.0, np.minimum(high, tangent), high)
        following = _halley_step(s, point, high)
        trusted = (low <= following) & (following <= high) & (np.abs(following - s) <= 0.5 * s)
        following = np.where(trusted, following, high)
        step = np.abs(following - s) / s
        s = np.where(done, s, following)
        # The error of a Halley step is of third order in its length.
        done = done | (10.0 * step**3 < _EPS) | (high - low <= 2.0 * _EPS * high)
    return s


def _halley_step(s: Floats, point: _Point, otherwise: Floats) -> Floats:
    """Where Halley's method on h(s)/s, or Newton's, sees the root; if nowhere, `otherwise`."""
    slope = s * point.slope - point.value
    curvature = s * (s * point.curvature) - 2.0 * slope
    bend = slope * slope - 0.5 * point.value * curvature
    halley = s - s * (point.value * slope / bend)
    newton = np.where(slope > 0.0, s - s * (point.value / slope), otherwise)
    return np.where(bend > 0.25 * slope * slope, halley, newton)


def _exact_sum(*terms: Floats) -> Floats:
    """Sum of a few numbers that nearly cancel: what rounding takes is added at the end."""
    result, lost = terms[0], np.zeros_like(terms[0])
    for term in terms[1:]:
        rounded = result + term
        shadow = rounded - result
        lost = lost + ((result - (rounded - shadow)) + (term - shadow))
        result = rounded
    return result + lost


def _spread_terms(values: Tensor, weights: Tensor, mean: Tensor, high: Tensor) -> list[Tensor]:
    centred = values - mean
    reached = values >= high
    terms = centred * centred, reached.to(values.dtype), (~reached).to(values.dtype)
    # Pairwise: a product of matrices drifts, and the residual of a mean decides what is infinite.
    return [(centred * weights[:, None]).sum(2), *(total(term, weights) for term in terms)]


def _surprise(part: Floats, rest: Floats) -> Floats:
    """Minus the logarithm of the share of a part, exact for small and for large shares."""
    weight = part + rest
    small = np.log(weight) - np.log(part)
    return np.where(part < rest, small, -np.log1p(-rest / weight))


def _tilted_terms(
    values: Tensor, weights: Tensor, s: Tensor, high: Tensor, centre: Tensor
) -> list[Tensor]:
    tilted = torch.exp(s * (values - high))
    return [total(tilted, weights), total(tilted * (values - centre), weights)]


def _moment_terms(
    values: Tensor,
    weights: Tensor,
    s: Tensor,
    centre: Tensor,
    steep: Tensor,
    *,
    some_steep: bool,
    all_steep: bool,
    careful: bool,
) -> list[Tensor]:
    """Sums that give a log-moment and its two derivatives; see `Equation.at`."""
    centred = values - centre
    u = s * centred
    if all_steep:
        growth = torch.expm1(u)
        grown = torch.exp(u)
        first = grown * centred
        return [total(t, weights) for t in (grown, first, first * centred, growth)]
    growth = torch.expm1(u)
    excess = exp_remainder(u, growth) if careful else growth
    first = growth * centred
    second = (first + centred) * centred
    if not some_steep:
        return [total(t, weights) for t in (excess, first, second)]
    grown = torch.exp(u)
    steep = steep > 0.0
    excess = torch.where(steep, grown, excess)
    first = torch.where(steep, grown * centred, first)
    second = torch.where(steep, first * centred, second)
    return [total(t, weights) for t in (excess, first, second, growth)]


def exp_remainder(u: Tensor, growth: Tensor) -> Tensor:
    """exp(u) - 1 - u from exp(u) - 1, by its series where the difference would cancel."""
    one = series = u.new_ones(())
    for order in range(_SERIES_ORDER, 2, -1):
        series = torch.addcmul(one, series, u, value=1.0 / order)
    return torch.where(u.abs() < _SERIES_BELOW, 0.5 * u * u * series, growth - u)
