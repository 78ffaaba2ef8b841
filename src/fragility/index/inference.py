r"""Statistical inference: intervals of the index, and the difference of two models.

Where mistakes are common the logarithm of the index is nearly normal, with the standard error of
`fragility.index.influence`. Where mistakes are rare the index depends on few samples, and such
intervals are too short. There the equation itself is tested: :math:`Z(s) = h(s) / se_h(s)` is
nearly normal at the true root, and the roots that the test does not reject make the interval. For
the upper limit one pseudo-mistake is added to each class, as an allowance for bad mistakes that the
data do not contain yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, hypot, inf, isnan, log, nan, sqrt
from typing import Protocol, Self

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from .._brent import bracketed_root
from .._typing import Floats, Interval
from ..moments import Sample, TestedGroup, order_one_factor
from .binned_sample import OutOfReachError
from .errors import Pair, RankingErrors, SolvedPair
from .influence import (
    LEAST_EFFECTIVE,
    PseudoInfluence,
    counted_classes,
    error_of_squares,
    group_influences,
    influences,
)
from .root import SampleEquation, inverse, solve

#: Smallest and largest possible score.
ScoreRange = tuple[float, float]
#: Growth of the steps of the search for a limit.
_GROWTH = 1.4
#: Larger roots are not searched for: values are of order one.
_LARGEST_ROOT = 1e100


@dataclass(frozen=True)
class PairedDifference:
    """Two estimates from the same samples, with a test of their difference.

    `standard_error`, `interval` and `p_value` (two-sided, of no difference) are NaN where an
    estimate is 0, infinite or NaN: there its influences are zero or undefined.
    """

    a: float
    b: float
    difference: float
    standard_error: float
    interval: Interval
    p_value: float

    @classmethod
    def of(cls, a: float, b: float, error: float, freedom: float, confidence: float) -> Self:
        """Test of the difference of `a` and `b`, with its standard error and degrees of freedom."""
        difference = a - b if a != b else 0.0  # not ∞ - ∞
        # Models may differ by rounding alone, such as a model and its shrunk scores in the ratio.
        rounding = 1e-12 * (abs(a) + abs(b))
        doubt = error + (rounding if difference else 0.0)
        half = -float(stdtrit(freedom, (1.0 - confidence) / 2.0)) * doubt
        t = abs(difference) / (error + rounding) if rounding < inf else nan
        p_value = nan if isnan(error) else 2.0 * float(stdtr(freedom, -t))
        return cls(a, b, difference, error, Interval(difference - half, difference + half), p_value)


def cautious_test(
    difference: float, error: float, freedom: float, farthest: float, confidence: float
) -> tuple[Interval, float]:
    """Interval and p-value of a difference of means, of cases that may be few.

    A rare case that is very bad may be missing among them. So both allow for one more case that
    moves the difference by `farthest`, on the side that speaks against them.
    """
    doubt = hypot(error, farthest)
    half = farthest - float(stdtrit(freedom, (1.0 - confidence) / 2.0)) * doubt
    t = max(abs(difference) - farthest, 0.0) / doubt
    return Interval(difference - half, difference + half), 2.0 * float(stdtr(freedom, -t))


class Evidence(Protocol):
    """What an interval needs from the samples, whether they are in memory or not.

    Influences of samples on an estimate are vectors in a space that each implementation chooses.
    """

    @property
    def is_binary(self) -> bool: ...

    def effective_size(self, code: int) -> float:
        """Effective number of samples of a class."""

    def factor(self, pair: Pair) -> float:
        """Factor that the values of a pair are scaled by."""

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        """Scores of the negatives, and negated scores of the positives."""

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        """The groups of two classes, from the cheapest approximation to the samples."""

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        """Standard error of the average index of finite pairs."""

    def no_influences(self) -> Floats:
        """Influences on an estimate that depends on no sample."""

    def influences_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoInfluence]]:
        """Influences on the index of a pair whose groups have a pseudo-mistake each, root `s`."""

    def error_of_influences(
        self, solved: Sequence[SolvedPair], vector: Floats, *pseudo: PseudoInfluence
    ) -> float:
        """Standard error of an estimate with these influences."""


class SampleEvidence(RankingErrors):
    """The samples themselves as evidence: influences have an entry for each."""

    @property
    def is_binary(self) -> bool:
        return self.data.is_binary

    def effective_size(self, code: int) -> float:
        """Kish's effective number of samples of a class; the plain number for equal weights."""
        data = self.data
        if data.weights is None:
            return float(data.support[code])
        weights = data.weights[data.codes == code]
        weights = weights / weights.max()
        return float(weights.sum()) ** 2 / float(weights @ weights)

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        if not self.is_binary or not 0.0 < solved[0].fragility < inf:
            return self.error_of_influences(solved, influences(self, solved, target))
        if any(self.effective_size(code) < LEAST_EFFECTIVE for code in counted_classes(solved)):
            return nan
        (part,) = solved
        factor = self.factor(part.pair)
        s = 1.0 / (part.fragility * factor)
        return _first_accurate(
            self.readings(part, target),
            lambda groups: (error_at_root(groups, target * factor, s) / factor, s),
        )

    def no_influences(self) -> Floats:
        return np.zeros(self.data.codes.size)

    def influences_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoInfluence]]:
        vector, pseudo = self.no_influences(), []
        codes = part.pair.negatives[0], part.pair.positive
        by_group = group_influences(groups, target, s)
        for code, rows, own in zip(codes, self.group_rows(part.pair), by_group, strict=True):
            vector[rows] = own[:-1]
            pseudo.append((code, float(own[-1])))
        return vector, pseudo

    def error_of_influences(
        self, solved: Sequence[SolvedPair], vector: Floats, *pseudo: PseudoInfluence
    ) -> float:
        """NaN if a class has one sample, or one that outweighs all others."""
        data = self.data
        sizes = {code: self.effective_size(code) for code in counted_classes(solved)}
        unit = max([float(np.abs(vector).max()), *(abs(influence) for _, influence in pseudo)])
        if isnan(unit) or unit == 0.0:
            return error_of_squares(np.full(data.labels.size, unit), sizes)
        squares = np.bincount(data.codes, (vector / unit) ** 2, data.labels.size)
        for code, influence in pseudo:
            squares[code] += (influence / unit) ** 2
        return unit * error_of_squares(squares, sizes, 1.0 if pseudo else 0.0)


def error_at_root(groups: Sequence[TestedGroup], target: float, s: float) -> float:
    """Standard error of the index of a root `s`: that of h(s) over its slope, times 1 / s²."""
    squares = sum(group.log_moment_error(s)[1] for group in groups)
    slope = SampleEquation(groups, target)(s).slope
    return sqrt(squares) / (s * (s * slope))


def confidence_interval(
    evidence: Evidence,
    solved: Sequence[SolvedPair],
    target: float,
    *,
    confidence: float,
    method: str,
    score_range: ScoreRange | None,
) -> Interval:
    """Interval of the average index; `fragility.Fragility.interval` is the public face."""
    if any(evidence.effective_size(c) < LEAST_EFFECTIVE for c in counted_classes(solved)):
        return Interval(0.0, inf)
    z = float(-ndtri((1.0 - confidence) / 2.0))
    if method == "log_wald":
        return _log_wald(evidence, solved, target, z)
    if score_range is None:
        low = _low_limit(evidence, solved, target, z)
        return Interval(low, _log_wald(evidence, solved, target, z).high)
    if evidence.is_binary:
        (part,) = solved
        own = evidence.factor(part.pair)
        root = inverse(part.fragility)  # near those that are searched for
        low = _first_accurate(
            evidence.readings(part, target),
            lambda g: lowest_accepted(g, target * own, z, root / own),
        )
        factor = order_one_factor(max(map(abs, score_range)))
        ends = score_range[1] * factor, -score_range[0] * factor
        readings = evidence.readings(part, target)
        if own != factor:  # the worst mistakes are of another size than the scores
            readings = iter([evidence.groups(part.pair, factor)])

        def highest(groups: Sequence[TestedGroup]) -> tuple[float, float]:
            added = [group.with_value(end) for group, end in zip(groups, ends, strict=True)]
            return highest_accepted(added, target * factor, z, root / factor)

        return Interval(low / own, _first_accurate(readings, highest) / factor)
    low = _low_limit(evidence, solved, target, z)
    return Interval(low, _high_limit(evidence, solved, target, z, score_range))


def cluster_stretch(relative: float, freedom: float, confidence: float) -> float:
    """How much wider an interval is in clusters, whose standard error has few degrees of freedom.

    `relative` is the standard error over that of independent samples.
    """
    tail = 0.5 * (1.0 - confidence)
    return relative * float(stdtrit(freedom, tail) / ndtri(tail))


def stretched(value: float, interval: Interval, factor: float) -> Interval:
    """Interval whose limits are `factor` times as far from the value, in logarithms."""
    low, high = interval
    below = factor * log(value / low) if low > 0.0 else inf
    above = factor * log(high / value) if high < inf else inf
    return Interval(value * exp(-below), _times_exp(value, above))


def _log_wald(
    evidence: Evidence, solved: Sequence[SolvedPair], target: float, z: float
) -> Interval:
    value = fsum(share * fragility for _, fragility, share in solved)
    if value == 0.0 or value == inf:
        return Interval(0.0, inf)
    relative = z * evidence.index_error(solved, target) / value
    return Interval(value * exp(-relative), _times_exp(value, relative))


def _times_exp(value: float, exponent: float) -> float:
    return inf if exponent > 700.0 else value * exp(exponent)


def _first_accurate(
    readings: Iterator[Sequence[TestedGroup]],
    figure: Callable[[Sequence[TestedGroup]], tuple[float, float]],
) -> float:
    """A figure from the first reading of the groups that is accurate enough for it.

    `figure` also returns the s that it was computed at: 0 or infinity needs no accuracy.
    """
    for groups in readings:
        try:
            found, s = figure(groups)
            if not 0.0 < s < inf or all(group.is_accurate(s) for group in groups):
                return found
        except OutOfReachError:
            continue
    raise AssertionError("the samples themselves are always accurate")


def _low_limit(evidence: Evidence, solved: Sequence[SolvedPair], target: float, z: float) -> float:
    """Log-Wald limit of the finite pairs, plus the limits of the infinite pairs."""
    infinite = [part for part in solved if part.fragility == inf]
    finite = [part for part in solved if part.fragility < inf]
    # Several limits must hold at once: Bonferroni.
    parts = len(infinite) + bool(finite)
    z_each = z if parts == 1 else float(-ndtri(ndtr(-z) / parts))
    low = _log_wald(evidence, finite, target, z_each).low if finite else 0.0
    for pair, _, share in infinite:
        factor = evidence.factor(pair)
        limit, _ = lowest_accepted(evidence.groups(pair), target * factor, z_each)
        low += share * limit / factor
    return low


def _high_limit(
    evidence: Evidence,
    solved: Sequence[SolvedPair],
    target: float,
    z: float,
    score_range: ScoreRange,
) -> float:
    """Upper limit of a mean of pairs from the limits of the pairs.

    Each pair has a log-Wald limit from data with one pseudo-mistake in each class. The differences
    between limits and indices add up like standard errors, by the correlation of the influences of
    the samples on the pairs (the method of variance estimates recovery), because the pairs do not
    all reach their limits at once.
    """
    factor = order_one_factor(max(map(abs, score_range)))
    ends = score_range[1] * factor, -score_range[0] * factor
    excesses = evidence.no_influences()
    pseudo: list[PseudoInfluence] = []
    for part in solved:
        found = zip(evidence.groups(part.pair, factor), ends, strict=True)
        groups = [group.with_value(end) for group, end in found]
        s = solve(groups, target * factor)
        if s == 0.0:
            return inf
        if s == inf:
            continue
        vector, own = evidence.influences_with_mistakes(part, groups, target * factor, s)
        error = evidence.error_of_influences([part], vector, *own)
        limit = _times_exp(1.0 / (s * factor), z * error * s)
        if limit == inf:
            return inf
        stretch = part.share * (limit - part.fragility) / error
        excesses += stretch * vector
        pseudo += [(code, stretch * influence) for code, influence in own]
    value = fsum(share * fragility for _, fragility, share in solved)
    return value + (evidence.error_of_influences(solved, excesses, *pseudo) if pseudo else 0.0)


class _Test(SampleEquation):
    """The equation with Z(s), the distance of h(s) from zero in standard errors."""

    def __init__(self, groups: Sequence[TestedGroup], target: float) -> None:
        super().__init__(groups, target)
        #: A search asks for the ends of its range more than once.
        self._at = cache(self._value_and_error)

    def _value_and_error(self, s: float) -> tuple[float, float]:
        """h(s) and its standard error."""
        parts = [g.log_moment_error(s) for g in self.groups]
        value = fsum([*(value for value, _ in parts), s * self.gap])
        return value, sqrt(sum(error for _, error in parts))

    def z(self, s: float) -> float:
        """h(s) in standard errors."""
        return _over(*self._at(s))

    @property
    def z_at_zero(self) -> float:
        """Limit of Z for small s: the t statistic of the mean error against the target."""
        squares = 0.0
        for group in self.groups:
            squares += group.squared_mean_error / (1.0 - group.concentration)
        return _over(-self.margin, sqrt(squares))

    def accepted(self, z: float, near: float | None) -> float:
        """A root that the data accept: `near` if they do so clearly, else s*, perhaps 0 or ∞."""
        has_root = self.excess > 0.0 and self.margin > self.least_margin
        if near is not None and 0.0 < near < inf and has_root and abs(self.z(near)) < 0.5 * z:
            return near
        return self.root(near)

    def step(self, s: float, z: float) -> float:
        """Half the distance at which a linear Z would change by `z`."""
        return min(max(0.5 * z * self._at(s)[1] / self(s).slope, 1e-6 * s), 0.5 * s)


def _over(value: float, error: float) -> float:
    if error > 0.0 or isnan(error):
        return value / error
    return inf if value > 0.0 else -inf if value < 0.0 else 0.0


def lowest_accepted(
    groups: Sequence[TestedGroup], target: float, z: float, start: float | None = None
) -> tuple[float, float]:
    """Lower limit of the index, and its inverse: the first root above s* that the data reject.

    The search begins at `start`, if the data accept it, else at s*.
    """
    test = _Test(groups, target)
    s = test.accepted(z, start)
    if s == inf:
        return 0.0, inf
    if s == 0.0:
        if test.z_at_zero >= z:
            return inf, 0.0
        s = 1e-3 / max(g.spread for g in groups)
        if test.z(s) >= z:
            return _limit_at_crossing(test.z, z, 1e-9 * s, s)
    step = test.step(s, z)
    below = s
    while test.z(s) < z:
        below, s = s, s + step
        step = min(_GROWTH * step, s)
        if s > _LARGEST_ROOT:  # no root is rejected
            return 0.0, inf
    return _limit_at_crossing(test.z, z, below, s)


def highest_accepted(
    groups: Sequence[TestedGroup], target: float, z: float, start: float | None = None
) -> tuple[float, float]:
    """Upper limit of the index, and its inverse: the first root below s* that the data reject.

    The search begins at `start`, if the data accept it, else at s*.
    """
    test = _Test(groups, target)
    s = test.accepted(z, start)
    if s == inf:
        return 0.0, inf
    if s == 0.0 or test.z_at_zero >= -z:
        return inf, 0.0
    least = 1e-9 * s
    step = test.step(s, z)
    above = s
    while not test.z(s) <= -z:
        if s < least:  # no root is rejected
            return inf, 0.0
        above, s = s, s - step
        step = min(_GROWTH * step, 0.5 * s)
    return _limit_at_crossing(test.z, -z, s, above)


def _limit_at_crossing(
    test: Callable[[float], float], level: float, low: float, high: float
) -> tuple[float, float]:
    """1/s and s, where the test reaches the level between two points on both sides of it."""
    s = low
    if not (test(low) >= level or low == high):
        s = bracketed_root(lambda s: test(s) - level, low, high, xtol=1e-300, rtol=1e-10)
    return 1.0 / s, s
