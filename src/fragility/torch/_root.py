"""The roots of all pairs at once.

The equation is the one of `fragility.index.root`, with tables over pairs in place of numbers. Only
the sums over samples are computed on their device.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from .._typing import Floats, Mask
from ..index.root import MODERATE, STEEP, find_roots
from ..moments import EPS, SERIES_BELOW, SERIES_ORDER, neg_log_shares
from ._groups import Groups, total

#: Below this s·margin the terms of h nearly cancel, and are summed more exactly.
CANCELS = 0.1
#: Samples per class from which a first root of a subsample pays, and the size of the subsample.
_PILOT_PAYS, _PILOT = 1 << 15, 1 << 13
# Pairs without a root may have any numbers, also NaN.
_quiet = np.errstate(all="ignore")


class Equation:
    """h(s) of all pairs, with the brackets of its roots."""

    @_quiet
    def __init__(self, groups: Groups, target: float) -> None:
        self.groups, self.target = groups, target
        self.sides = self.negatives, self.positives = groups.extents
        sums = groups.sums(_spread_terms, *((e.mean, e.high) for e in self.sides))
        self._neg_log_top_share = sum(neg_log_shares(of[2], of[3]) for of in sums)
        goal = np.full_like(self.negatives.mean, -target)
        self._residuals = [of[0] / side.weight for side, of in zip(self.sides, sums, strict=True)]
        self.variance = sum(of[1] / side.weight for side, of in zip(self.sides, sums, strict=True))
        self.mean_gap = _exact_sum(self.negatives.mean, self.positives.mean, goal)
        self._gap = _exact_sum(self.negatives.high, self.positives.high, goal)
        self.margin = -_exact_sum(self.negatives.mean, self.positives.mean, goal, *self._residuals)
        # As in `fragility.index.root`: only distances from the means are rounded.
        missed = self.margin <= 4.0 * EPS * (self.negatives.spread + self.positives.spread)
        self.zero: Mask = groups.counted & (self._gap <= 0.0)
        self.infinite: Mask = groups.counted & ~self.zero & missed
        self.regular: Mask = groups.counted & ~self.zero & ~missed

    @cached_property
    def bracket(self) -> tuple[Floats, Floats]:
        """Bounds on the roots: Hoeffding's, and one from the weight at the largest values."""
        spread = sum(side.spread**2 for side in self.sides)
        low = np.where(spread > 0.0, 8.0 * self.margin / spread, 0.0)  # the square may underflow
        return low * (1.0 - 1e-9), self._neg_log_top_share / self._gap * (1.0 + 1e-12) + 5e-324

    def _steep(self, s: Floats) -> Mask:
        """Where the largest values dominate: see `fragility.index.root.Equation.is_steep`."""
        tilt = s * np.maximum(self.negatives.spread, self.positives.spread)
        return np.asarray(tilt > np.where(s * self.margin < 1.0, STEEP, MODERATE))

    def at(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """h, h' and h'' at s."""
        steep = self._steep(s)
        careful = bool((self.regular & (s * self.margin < CANCELS)).any())
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
                # Where most weight is next to the largest value, the distance to one is more exact.
                largest = np.where(growth < 0.6, np.log(growth), np.log1p(missing[0]))
                logarithm = np.where(steep, largest, logarithm)
            value = value + logarithm
            slope = slope + tilted
            curvature = curvature + second / moment - tilted * tilted
        return value, slope, curvature

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
    regular, groups = equation.regular, equation.groups
    low, high = (np.where(regular, end, 1.0) for end in equation.bracket)
    guess = 2.0 * equation.margin / equation.variance
    # A device takes as long for a few samples as for many.
    if groups.on_processor and groups.largest_class > _PILOT_PAYS:
        pilot = Equation(groups.thinned(_PILOT), equation.target)
        guess = np.where(pilot.regular, solve(pilot), guess)
    s, _ = find_roots(lambda s, done: equation.at(s), low, high, guess, ~regular)
    return s


def _exact_sum(*terms: Floats) -> Floats:
    """Sum of a few numbers that nearly cancel; the rounding errors are added at the end."""
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
    for order in range(SERIES_ORDER, 2, -1):
        series = torch.addcmul(one, series, u, value=1.0 / order)
    return torch.where(u.abs() < SERIES_BELOW, 0.5 * u * u * series, growth - u)
