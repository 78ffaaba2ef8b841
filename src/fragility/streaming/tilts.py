r"""Index of each pair of classes: from the bins first, then exact from sums over all cases.

Bins give the root :math:`s` of :math:`h` but for a relative error of about 1e-9. Sums of
:math:`e^{s v}`, :math:`v e^{s v}` and :math:`v^2 e^{s v}` over all cases then give :math:`h(s)` and
its slopes exactly, and one step of Halley's method the root but for the cube of that error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import exp, fsum, inf, log, log1p, nextafter, sqrt
from typing import NamedTuple

import numpy as np

from ..index.errors import Pair, class_pairs
from ..index.inference import Interval
from ..index.root import Point, SampleEquation, halley_step, solve
from ..moments import Floats, LogMoment, exp_remainder, weighted_sum
from .first_pass import Population
from .quadrature import PointSample
from .totals import RunningTotals

__all__ = ["PairTilt", "Side", "Tilted", "pair_tilts"]

#: A step no longer than this, relative to s, leaves an error below rounding.
_SETTLED = 1e-6
#: Bins that leave more than this of the variance, or of the root, in doubt are too wide.
_NEAR_ENOUGH = 1e-5
#: Where s h'(s) is smaller the terms of h all but cancel: then about the mean, up to this tilt.
_SMALL_SHIFT, _MODERATE_TILT = 0.05, 300.0


class Tilted(NamedTuple):
    """Distance of the values to the pivot, and how many times its share each has in the tilt."""

    distance: Floats
    lift: Floats


@dataclass
class Side:
    """The values of one class in a pair: scores of the negatives, or minus those of the positives.

    Attributes
    ----------
    code, column : int
        The class, and the column of the scores.
    sign : float
        Of the values.
    weight, mean : float
        Of the class.
    mean_offset : float
        Mean of the scores less a number that all classes share, exact also where they are close.
    sample : PointSample
    """

    code: int
    column: int
    sign: float
    weight: float
    mean: float
    mean_offset: float
    sample: PointSample
    pivot: float = 0.0
    log_moment: float = 0.0
    sums: RunningTotals = field(default_factory=lambda: RunningTotals(4))

    def begin(self, s: float, centred: bool, known: LogMoment | None, step: float) -> LogMoment:
        """Tilt by `s` from now on, about the mean or the largest value.

        `known` is the exact log-moment about the present pivot a `step` before; else, and for the
        first time, it is that of the points. Returns what there is to know at `s`.
        """
        before, self.pivot = self.pivot, self.mean if centred else self.sample.pivot
        if known is None:
            before = self.sample.mean if centred else self.sample.pivot
            known = (self.sample.centred_log_moment if centred else self.sample.log_moment)(s)
            step = 0.0
        shift = before - self.pivot
        self.log_moment = fsum(
            [known.value, step * (known.slope + 0.5 * step * known.curvature), s * shift]
        )
        self.sums = RunningTotals(4)
        slope = known.slope + step * known.curvature + shift
        return LogMoment(self.log_moment, slope, known.curvature)

    def add(self, s: float, centred: bool, scores: Floats, weights: Floats | None) -> Tilted:
        """Add cases to the sums; their tilt."""
        distance = scores - self.pivot if self.sign > 0.0 else -self.pivot - scores
        exponent = s * distance
        terms = np.zeros(4)
        if centred:
            growth = np.expm1(exponent)
            grown = growth * distance
            first = grown + distance
            parts = [exp_remainder(exponent, growth), grown, first * distance, distance]
            lift = (growth + 1.0) * exp(-self.log_moment)
        else:
            exponent -= self.log_moment
            lift = np.exp(exponent, out=exponent)
            first = lift * distance
            parts = [lift, first, first * distance]
        terms[: len(parts)] = [weighted_sum(part, weights) for part in parts]
        self.sums.add(terms)
        return Tilted(distance, lift)

    def exact(self, s: float, centred: bool) -> LogMoment:
        """Log-moment about the pivot, from the sums."""
        zeroth, first, second, residual = (self.sums.values / self.weight).tolist()
        moment, value = zeroth, log(zeroth) + self.log_moment if zeroth > 0.0 else -inf
        if centred:
            moment, first = 1.0 + s * residual + zeroth, first + residual
            value = log1p(s * residual + zeroth)
        slope = first / moment
        return LogMoment(value, slope, second / moment - slope * slope)


class PairTilt:
    """A pair of classes whose index is sought.

    Parameters
    ----------
    pair : Pair
    share : float
        In the average over pairs.
    negatives, positives : Side
    """

    def __init__(self, pair: Pair, share: float, negatives: Side, positives: Side) -> None:
        self.pair, self.share = pair, share
        self.sides = negatives, positives
        self.separation = positives.mean_offset - negatives.mean_offset
        self.s = self._first = self._first_root()
        self._known: tuple[LogMoment, ...] | tuple[None, ...] = (None, None)
        self._known_at = 0.0
        # Of the root: from Hoeffding's inequality, then from what the exact sums show.
        self._low, self._high = SampleEquation(self.samples, 0.0).lower * (1.0 - 1e-9), inf
        self.settled = not self.is_regular
        self.begin()

    def _first_root(self) -> float:
        equation = SampleEquation(self.samples, 0.0)
        if equation.excess > 0.0 and self.separation <= equation.least_slack:
            return 0.0
        return solve(self.samples, 0.0)

    @cached_property
    def samples(self) -> tuple[PointSample, PointSample]:
        return self.sides[0].sample, self.sides[1].sample

    @property
    def is_regular(self) -> bool:
        """Whether the index is neither zero nor infinite."""
        return 0.0 < self.s < inf

    @property
    def told_by_bins(self) -> bool:
        """Whether the bins tell all there is to know, for they are narrow next to the scores."""
        if self.is_regular and abs(self.s - self._first) > _NEAR_ENOUGH * self.s:
            return False
        return max(sample.unresolved for sample in self.samples) <= _NEAR_ENOUGH

    @property
    def fragility(self) -> float:
        return inf if self.s == 0.0 else 1.0 / self.s

    @property
    def ratio(self) -> float:
        if self.fragility == inf:
            return inf
        return self.fragility / self.separation if self.separation else np.nan

    @property
    def bounds(self) -> Interval:
        """What the sums have shown of the index."""
        if self.settled:
            return Interval(self.fragility, self.fragility)
        return Interval(1.0 / self._high, inf if self._low == 0.0 else 1.0 / self._low)

    def begin(self) -> None:
        """Prepare a reading at the present root."""
        if not self.is_regular:
            return
        tilt = self.s * max(sample.spread for sample in self.samples)
        shift = self.s * SampleEquation(self.samples, 0.0)(self.s).slope
        self.centred = shift < _SMALL_SHIFT and tilt < _MODERATE_TILT
        parts = [
            side.begin(self.s, self.centred, known, self.s - self._known_at)
            for side, known in zip(self.sides, self._known, strict=True)
        ]
        slope = fsum(
            part for s, m in zip(self.sides, parts, strict=True) for part in (s.pivot, m.slope)
        )
        #: What the index owes to a sample, over what the worst case adds to its share.
        self.scale = 1.0 / (self.s * (self.s * slope))

    def improve(self) -> None:
        """One step towards the root from the sums of a whole reading."""
        if not self.is_regular:
            return
        parts = tuple(side.exact(self.s, self.centred) for side in self.sides)
        self._known, self._known_at = parts, self.s
        gap = fsum(side.pivot for side in self.sides)
        s = self.s
        point = Point(
            s,
            fsum([*(part.value for part in parts), s * gap]),
            fsum([*(part.slope for part in parts), gap]),
            sum(part.curvature for part in parts),
        )
        if point.value <= 0.0:
            self._low = max(self._low, s)
        else:
            self._high = min(self._high, s)
        if point.slope > 0.0:  # the tangent of a convex function is zero right of its root
            self._high = min(self._high, nextafter(s - point.value / point.slope, inf))
        following = halley_step(point, self._high)
        if not self._low <= following <= self._high:
            following = 2.0 * s if self._high == inf else sqrt(self._low * self._high)
        self.settled = abs(following - s) <= _SETTLED * s
        self.s = following


def pair_tilts(population: Population, model: str) -> list[PairTilt]:
    """All pairs of classes that have cases."""
    bins, classes = population.models[model], population.classes
    samples: dict[tuple[int, int, float], PointSample] = {}
    weight = population.weight

    def side(code: int, column: int, sign: float) -> Side:
        key = code, column, sign
        if key not in samples:
            samples[key] = PointSample.of(bins.columns[column].atoms(code), sign)
        offset = bins.offset_sum(column, code) / float(weight[code])
        mean = sign * (bins.origin(column) + offset)
        return Side(code, column, sign, float(weight[code]), mean, offset, samples[key])

    pairs = list(class_pairs(population.support, classes.positive, "ovo"))
    tilts = []
    for pair in pairs:
        column = 0 if classes.is_binary else pair.positive
        (negative,) = pair.negatives
        tilts.append(
            PairTilt(
                pair,
                1.0 / len(pairs),
                side(negative, column, 1.0),
                side(pair.positive, column, -1.0),
            )
        )
    return tilts
