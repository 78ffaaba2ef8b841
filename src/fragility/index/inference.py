r"""How sure the number is: intervals, and the difference of two models.

Where mistakes are common the logarithm of the index is near normal, with the standard error of
`fragility.index.influence`. Where they are rare the index hangs on few samples and such intervals
are too short. There the equation itself is tested: :math:`Z(s) = h(s) / se_h(s)` is near normal at
the true root, and the roots that the test does not reject make the interval. The bad mistakes that
a sample does not hold yet are allowed for by one pseudo-mistake in each class, for the upper limit
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, isnan, nan, sqrt
from typing import Protocol, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from .._typing import Floats, Interval
from ..moments import Sample, TestedGroup, order_one_factor
from .binned_sample import OutOfReachError
from .errors import Pair, RankingErrors
from .influence import (
    LEAST_EFFECTIVE,
    SolvedPair,
    counted_classes,
    effective_size,
    group_movements,
    movements,
    standard_error,
)
from .root import SampleEquation, solve

#: Smallest and largest possible score.
ScoreRange = tuple[float, float]
#: Growth of the steps that look for a limit.
_GROWTH = 1.4
#: Larger roots are not looked for: values are of order one.
_LARGEST_ROOT = 1e100


@dataclass(frozen=True)
class PairedDifference:
    """Two estimates from the same samples, and how sure their difference is.

    `standard_error`, `interval` and `p_value` (two-sided, of no difference) are NaN where an
    estimate is 0, infinite or NaN: there small changes of the data do not move it, or too much.
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
        difference = a - b if a != b else 0.0  # ∞ - ∞ is no difference that could be seen
        half = -float(stdtrit(freedom, (1.0 - confidence) / 2.0)) * error
        # Models may differ by rounding alone, such as a model and its shrunk scores in the ratio.
        rounding = 1e-12 * (abs(a) + abs(b))
        t = abs(difference) / (error + rounding) if rounding < inf else nan
        p_value = nan if isnan(error) else 2.0 * float(stdtr(freedom, -t))
        return cls(a, b, difference, error, Interval(difference - half, difference + half), p_value)


def _normal_quantile(confidence: float) -> float:
    """The z with so much of the normal distribution between -z and z."""
    return float(-ndtri((1.0 - confidence) / 2.0))


#: Movement that an estimate owes to a pseudo-sample of a class.
PseudoMove = tuple[int, float]


class Evidence(Protocol):
    """What an interval needs to know of the samples, be they in memory or not.

    Movements, what an estimate owes to the samples, are vectors in a space of its own choice.
    """

    @property
    def is_binary(self) -> bool: ...

    def effective_size(self, code: int) -> float:
        """Effective number of samples of a class."""

    def factor(self, pair: Pair) -> float:
        """What the values of a pair are scaled by."""

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        """Scores of the negatives and minus those of the positives."""

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        """The groups of two classes, the cheapest reading of them first, the samples last."""

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        """Standard error of the average index of finite pairs."""

    def no_moves(self) -> Floats:
        """Movements of an estimate that owes nothing to any sample."""

    def moves_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoMove]]:
        """Movements of the index of a pair whose groups have a pseudo-mistake each, root `s`."""

    def error_of_moves(
        self, solved: Sequence[SolvedPair], moves: Floats, *pseudo: PseudoMove
    ) -> float:
        """Standard error of an estimate that moves like this."""


@dataclass(frozen=True, eq=False)
class SampleEvidence:
    """The samples themselves as evidence: movements have an entry for each."""

    errors: RankingErrors

    @property
    def is_binary(self) -> bool:
        return self.errors.data.is_binary

    def effective_size(self, code: int) -> float:
        return effective_size(self.errors, code)

    def factor(self, pair: Pair) -> float:
        return self.errors.factor(pair)

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        return self.errors.groups(pair, factor)

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        factor = self.factor(part.pair)
        if factor == 1.0 and part.fragility < inf:
            s = 1.0 / part.fragility if part.fragility else inf
            return self.errors.readings(part.pair, s, target)
        return iter([self.groups(part.pair)])

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        if not self.is_binary or not 0.0 < solved[0].fragility < inf:
            return self.error_of_moves(solved, movements(self.errors, solved, target))
        if any(self.effective_size(code) < LEAST_EFFECTIVE for code in counted_classes(solved)):
            return nan
        (part,) = solved
        factor = self.factor(part.pair)
        s = 1.0 / (part.fragility * factor)

        def error_at_root(groups: Sequence[TestedGroup]) -> tuple[float, float]:
            """Of the index: that of h(s) over its slope, times 1 / s²."""
            squares = sum(group.log_moment_error(s)[1] for group in groups)
            slope = SampleEquation(groups, target * factor)(s).slope
            return sqrt(squares) / (s * (s * slope)) / factor, s

        return _told(self.readings(part, target), error_at_root)

    def no_moves(self) -> Floats:
        return np.zeros(self.errors.data.codes.size)

    def moves_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoMove]]:
        moves, pseudo = self.no_moves(), []
        ends = part.pair.negatives[0], part.pair.positive
        rows = self.errors.group_rows(part.pair)
        for end, of_group, move in zip(ends, rows, group_movements(groups, target, s), strict=True):
            moves[of_group] = move[:-1]
            pseudo.append((end, float(move[-1])))
        return moves, pseudo

    def error_of_moves(
        self, solved: Sequence[SolvedPair], moves: Floats, *pseudo: PseudoMove
    ) -> float:
        return standard_error(self.errors, solved, moves, *pseudo)


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
    z = _normal_quantile(confidence)
    if method == "log_wald":
        return _log_wald(evidence, solved, target, z)
    if score_range is None:
        low = _low_limit(evidence, solved, target, z)
        return Interval(low, _log_wald(evidence, solved, target, z).high)
    if evidence.is_binary:
        (part,) = solved
        own = evidence.factor(part.pair)
        low = _told(evidence.readings(part, target), lambda g: _lowest_accepted(g, target * own, z))
        factor = order_one_factor(max(map(abs, score_range)))
        ends = score_range[1] * factor, -score_range[0] * factor
        readings = evidence.readings(part, target)
        if own != factor:  # the worst mistakes are of another size than the scores
            readings = iter([evidence.groups(part.pair, factor)])

        def highest(groups: Sequence[TestedGroup]) -> tuple[float, float]:
            added = [group.with_value(end) for group, end in zip(groups, ends, strict=True)]
            return _highest_accepted(added, target * factor, z)

        return Interval(low / own, _told(readings, highest) / factor)
    low = _low_limit(evidence, solved, target, z)
    return Interval(low, _high_limit(evidence, solved, target, z, score_range))


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


def _told(
    readings: Iterator[Sequence[TestedGroup]],
    figure: Callable[[Sequence[TestedGroup]], tuple[float, float]],
) -> float:
    """A figure from the first reading of the groups that is accurate enough for it.

    `figure` also tells the s that it comes from: 0 or infinity, where no accuracy is needed.
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
    """Log-Wald limit of the finite pairs, plus the limits of the infinite ones."""
    infinite = [part for part in solved if part.fragility == inf]
    finite = [part for part in solved if part.fragility < inf]
    # Several limits must hold at once: Bonferroni.
    parts = len(infinite) + bool(finite)
    z_each = z if parts == 1 else float(-ndtri(ndtr(-z) / parts))
    low = _log_wald(evidence, finite, target, z_each).low if finite else 0.0
    for pair, _, share in infinite:
        factor = evidence.factor(pair)
        limit, _ = _lowest_accepted(evidence.groups(pair), target * factor, z_each)
        low += share * limit / factor
    return low


def _high_limit(
    evidence: Evidence,
    solved: Sequence[SolvedPair],
    target: float,
    z: float,
    score_range: ScoreRange,
) -> float:
    """Upper limit of a mean of pairs from those of the pairs.

    Each pair has a log-Wald limit from data with one pseudo-mistake at each end. How far the limits
    exceed the indices adds up like standard errors, by the correlation of what the pairs owe to the
    samples (the method of variance estimates recovery): all pairs are not at their limits at once.
    """
    factor = order_one_factor(max(map(abs, score_range)))
    excesses = evidence.no_moves()
    pseudo: list[PseudoMove] = []
    for part in solved:
        groups = _with_mistakes(evidence, part.pair, score_range, factor)
        s = solve(groups, target * factor)
        if s == 0.0:
            return inf
        if s == inf:
            continue
        moves, own_pseudo = evidence.moves_with_mistakes(part, groups, target * factor, s)
        error = evidence.error_of_moves([part], moves, *own_pseudo)
        limit = _times_exp(1.0 / (s * factor), z * error * s)
        if limit == inf:
            return inf
        stretch = part.share * (limit - part.fragility) / error
        excesses += stretch * moves
        pseudo += [(end, stretch * move) for end, move in own_pseudo]
    value = fsum(share * fragility for _, fragility, share in solved)
    return value + (evidence.error_of_moves(solved, excesses, *pseudo) if pseudo else 0.0)


def _with_mistakes(
    evidence: Evidence, pair: Pair, score_range: ScoreRange, factor: float
) -> list[Sample]:
    """The groups of a pair with the worst possible mistake added to each."""
    low, high = score_range
    ends = high * factor, -low * factor
    groups = evidence.groups(pair, factor)
    return [group.with_value(end) for group, end in zip(groups, ends, strict=True)]


class _Test:
    """Z(s): how far h(s) is from zero, in standard errors."""

    def __init__(self, groups: Sequence[TestedGroup], target: float) -> None:
        self._groups = groups
        self._gap = fsum([*(g.pivot for g in groups), -target])
        self.equation = SampleEquation(groups, target)

    def __call__(self, s: float) -> float:
        parts = [g.log_moment_error(s) for g in self._groups]
        value = fsum([*(value for value, _ in parts), s * self._gap])
        return _over(value, sqrt(sum(error for _, error in parts)))

    @property
    def at_zero(self) -> float:
        """Limit for small s: the t statistic of the mean error against the target."""
        squares = 0.0
        for group in self._groups:
            squares += group.squared_mean_error / (1.0 - group.concentration)
        return _over(-self.equation.slack, sqrt(squares))

    def step(self, s: float, z: float) -> float:
        """Half the way to where Z would change by z, if it were straight."""
        slope = self.equation(s).slope
        error = sqrt(sum(error for _, error in (g.log_moment_error(s) for g in self._groups)))
        return min(max(0.5 * z * error / slope, 1e-6 * s), 0.5 * s)


def _over(value: float, error: float) -> float:
    if error > 0.0 or isnan(error):
        return value / error
    return inf if value > 0.0 else -inf if value < 0.0 else 0.0


def _lowest_accepted(groups: Sequence[TestedGroup], target: float, z: float) -> tuple[float, float]:
    """Lower limit of the index, the first root above s* that the data reject; and that root."""
    s = solve(groups, target)
    if s == inf:
        return 0.0, inf
    test = _Test(groups, target)
    if s == 0.0:
        if test.at_zero >= z:
            return inf, 0.0
        s = 1e-3 / max(g.spread for g in groups)
        if test(s) >= z:
            return _limit(_crossing(test, z, 1e-9 * s, s))
    step = test.step(s, z)
    below = s
    while test(s) < z:
        below, s = s, s + step
        step = min(_GROWTH * step, s)
        if s > _LARGEST_ROOT:  # not rejected as far as can be told
            return 0.0, inf
    return _limit(_crossing(test, z, below, s))


def _highest_accepted(
    groups: Sequence[TestedGroup], target: float, z: float
) -> tuple[float, float]:
    """Upper limit of the index, the first root below s* that the data reject; and that root."""
    s = solve(groups, target)
    if s == inf:
        return 0.0, inf
    test = _Test(groups, target)
    if s == 0.0 or test.at_zero >= -z:
        return inf, 0.0
    least = 1e-9 * s
    step = test.step(s, z)
    above = s
    while not test(s) <= -z:
        if s < least:  # not rejected as far as can be told
            return inf, 0.0
        above, s = s, s - step
        step = min(_GROWTH * step, 0.5 * s)
    return _limit(_crossing(test, -z, s, above))


def _limit(s: float) -> tuple[float, float]:
    return 1.0 / s, s


def _crossing(test: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Where the test reaches the level between two points, one on each side of it."""
    if test(low) >= level or low == high:
        return low
    return float(brentq(lambda s: test(s) - level, low, high, xtol=1e-300, rtol=1e-10))
