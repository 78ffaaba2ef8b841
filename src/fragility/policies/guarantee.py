r"""Guarantees: limits of errors that hold in the population, not only on the cases that chose.

A limit holds with probability 1 − δ over the draw of the cases. Policies form a path on which more
and more cases are automated. For the *share* of all cases that are automated and wrong, let K be
the largest number with :math:`P(\mathrm{Bin}(n, \alpha) \le K) \le \delta`; the path may go on
until the error K + 1. The true share there has a Beta(K + 1, n − K) distribution, so this is exact.
All that lies inside has fewer errors, so costs may choose there freely. Misses and false alarms are
such shares of one class, on the path of one threshold. The *rate* among the automated cases may
fall and rise along the path: one fixed sequence of tests, only the points that passed are valid.
With weights or clusters the tests are bets on one cluster after the other (Ville's inequality).

All of this is a theorem if the path does not depend on these labels. Paths of two classes use
calibration maps that were fitted to the other folds; that the limits hold there, too, rests on
simulation (``benchmarks/policy_guarantees.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from .._parameters import check_confidence, check_number, check_share, require
from .._typing import Floats, Indices, Integers, Mask
from .cuts import AllowedCuts, SortedCases

#: Level at which limits hold unless the user says another.
LEVEL = 0.95
#: What each limit of errors is a share of.
LIMIT_WORDS = {
    "error_share": "errors of the model, of all cases",
    "error_rate": "errors, of the cases decided alone",
    "miss_rate": "positives decided negative, of all positives",
    "false_alarm_rate": "negatives decided positive, of all negatives",
}
_FALLING = "higher scores do not mean more positives: the scores say nothing"
#: Errors that the sequence of tests of a rate may begin with, and the share of cases by which it
#: must.
_FIRST_ERRORS, _FIRST_SHARE = 5, 0.25
#: Nobody has more cases than this.
_MOST_CASES = 10**12
#: Counts of errors are whole numbers up to this, if each case counts as more than one.
_ROUNDING = 1e-9
#: Largest bet, as a share of what would bankrupt, and points on a path at which bets are placed.
_LARGEST_BET, _POINTS = 0.9, 200


@dataclass(frozen=True)
class Limits:
    """Limits of errors, which hold in the population, and of reviews; None for no limit.

    Parameters
    ----------
    error_rate : float, optional
        Largest share of errors among the cases that the model decides alone.
    error_share : float, optional
        Largest share of such errors among all cases.
    miss_rate, false_alarm_rate : float, optional
        Largest share of positives that are decided negative, among the positives; of negatives that
        are decided positive, among the negatives. Two classes only.
    capacity : float, optional
        Largest share of the cases that humans can review, on the cases that choose.
    level : float, optional
        Probability with which all limits of errors hold together, 0.95 by default.
    """

    error_rate: float | None = None
    error_share: float | None = None
    miss_rate: float | None = None
    false_alarm_rate: float | None = None
    capacity: float | None = None
    level: float | None = None

    @property
    def errors(self) -> dict[str, float]:
        """Limits of errors by name."""
        limits = {name: getattr(self, name) for name in LIMIT_WORDS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def delta(self) -> float:
        """Probability with which each limit of errors may be broken; all of them share it."""
        return (1.0 - (LEVEL if self.level is None else self.level)) / max(len(self.errors), 1)

    def checked(self, n_classes: int, *, answers: bool = False) -> Limits:
        """Return the limits as numbers; refuse those that say nothing or cannot be kept."""
        level, limits = self.level, {}
        require(
            level is None or self.errors,
            f"level={level!r} has no limit to guarantee; give error_share, error_rate, miss_rate "
            "or false_alarm_rate.",
        )
        for name, value in self.errors.items():
            limits[name] = check_number(value, name)
            require(
                0.0 < limits[name] < 1.0,
                f"{name} must be a share above 0 and below 1; got {value!r}. No number of cases "
                "proves that there are no errors, and every policy has a share below 1.",
            )
            if (n_classes > 2 or answers) and name in ("miss_rate", "false_alarm_rate"):
                task = f"of {n_classes}"
                if answers:
                    task = "answers are right or wrong, and none is decided to be wrong; there"
                raise ValueError(
                    f"{name} is for two classes; {task} use error_share or error_rate."
                )
        return Limits(
            **limits,
            capacity=None if self.capacity is None else check_share(self.capacity, "capacity"),
            level=None if level is None else check_confidence(level, "level"),
        )


@dataclass(frozen=True)
class Guarantee:
    """A limit of errors, and whether decisions that can break it were proved to keep it.

    Attributes
    ----------
    name : str
        Such as "error_rate".
    limit, level : float
        The share, and the probability with which it holds (several limits share the rest).
    proved : bool
        If not, no such decisions are made: the model never decides negative (misses), positive
        (false alarms), or anything at all.
    reason : str
        If not: how many more cases would do, or that no number will.
    """

    name: str
    limit: float
    level: float
    proved: bool
    reason: str = ""

    @property
    def words(self) -> str:
        """What is limited."""
        return LIMIT_WORDS[self.name]


class Certified(NamedTuple):
    """Cuts that all limits allow, and the limits with what became of them."""

    allowed: AllowedCuts
    guarantees: tuple[Guarantee, ...]


class PathCases(NamedTuple):
    """Independent cases, or clusters of them, that prove the limits.

    Attributes
    ----------
    price : ndarray of shape (n,)
        Cases are automated in descending order of it; −∞: never.
    is_wrong : ndarray of bool of shape (n,)
        Whether the model is wrong if it decides the case alone.
    group : ndarray of int of shape (n,)
        Group among the sorted cases, −1 where the model abstained.
    is_positive : ndarray of bool of shape (n,)
    weight : ndarray of shape (n,), optional
    cluster : ndarray of int of shape (n,), optional
        Clusters in the order of bets, each case alone if there are only weights; None: cases are
        independent and count alike.
    """

    price: Floats
    is_wrong: Mask
    group: Indices
    is_positive: Mask
    weight: Floats | None = None
    cluster: Integers | None = None

    def test(self, name: str, limit: float, delta: float, scale: float) -> _Counts | _Bets:
        """Return the test of one limit, on the cases that it is a share of."""
        price, is_wrong = self.price, self.is_wrong
        counted = np.ones(price.size, dtype=np.bool_)
        if name in ("miss_rate", "false_alarm_rate"):
            is_miss = name == "miss_rate"
            # Positives are missed in ascending order of the score, false alarms in descending.
            group = np.where(self.group >= 0, self.group, inf if is_miss else -inf)
            price, counted = (-group, self.is_positive) if is_miss else (group, ~self.is_positive)
            is_wrong = counted
        rows = np.flatnonzero(counted)
        order = rows[np.argsort(-price[rows], kind="stable")]
        errors = name, price[order], is_wrong[order], limit, delta
        if self.cluster is None:
            return _Counts(*errors, scale)
        weight = np.ones(price.size) if self.weight is None else self.weight
        return _Bets(*errors, weight[order], self.cluster[order])


def certify(table: SortedCases, path: PathCases, limits: Limits, scale: float = 1.0) -> Certified:
    """Return the cuts of a table that keep the limits.

    With `scale` above 1, every case counts as so many: to see what the same limits would allow had
    these cases been as many as all.
    """
    allowed, guarantees, n = table.allowed, [], table.n_groups
    for name, limit in limits.errors.items():
        test, reason = path.test(name, limit, limits.delta, scale), ""
        prices = np.zeros(0) if table.falls else test.proved_prices()
        if prices.size:
            allowed = _with_limit(allowed, table, name, prices)
        else:
            reason = _FALLING if table.falls else test.shortfall()
            one_sided = {"miss_rate": (0, 0), "false_alarm_rate": (n, n)}
            allowed = allowed.within(*({} if table.falls else one_sided).get(name, (0, n)))
        guarantees.append(Guarantee(name, limit, 1.0 - limits.delta, bool(prices.size), reason))
    return Certified(allowed, tuple(guarantees))


def _with_limit(allowed: AllowedCuts, table: SortedCases, name: str, prices: Floats) -> AllowedCuts:
    """Return the cuts that keep one more limit, which was proved down to these prices."""
    if name == "miss_rate":
        return allowed.within(int(min(-prices[0], table.n_groups)), 0)
    if name == "false_alarm_rate":
        return allowed.within(table.n_groups, int(max(prices[0], -1.0)) + 1)
    values, is_low = table.keyed.price, table.keyed.is_low
    if name == "error_rate":
        return allowed._replace(pairs=table.cuts_above(np.nextafter(prices, -inf), values, is_low))
    (lower,), (upper,) = table.cuts_above(prices, values, is_low)
    return allowed.within(int(lower), int(upper))


@dataclass(frozen=True, eq=False)
class _LimitTest:
    """Cases in the order in which they are automated, and the limit of their errors."""

    name: str
    price: Floats
    is_wrong: Mask
    limit: float
    delta: float


@dataclass(frozen=True, eq=False)
class _Counts(_LimitTest):
    """Test of a limit by counting errors among independent cases, each of which counts `scale`."""

    scale: float

    @property
    def n(self) -> float:
        """Number of cases that the limit is a share of."""
        return self.scale * self.price.size

    def proved_prices(self) -> Floats:
        """Return prices above which cases can be automated, the one of a share or all of a rate."""
        if self.name == "error_rate":
            return self._proved_rates()
        most = allowed_errors(self.n, self.limit, self.delta)
        # The error that goes beyond ends the path. Without one the path goes to its own end.
        beyond = self.price[self.scale * np.cumsum(self.is_wrong) > most + _ROUNDING]
        return np.append(beyond, -inf)[: 1 if most >= 0 else 0]

    def _steps(self) -> tuple[Floats, Floats, Floats]:
        """Return each price at which cases are automated, with the cases and errors up to it."""
        price = self.price[self.price > -inf]
        ends = np.flatnonzero(np.append(price[1:] != price[:-1], price.size > 0))
        errors = np.cumsum(self.is_wrong)[ends].astype(np.float64)
        return price[ends], self.scale * (ends.astype(np.float64) + 1.0), self.scale * errors

    def _proved_rates(self) -> Floats:
        """Return the prices at which the error rate is certainly below the limit.

        One sequence of tests until the first failure. It begins where a few errors would pass, if
        that is within a quarter of the cases, else where none would.
        """
        price, number, wrong = self._steps()
        start = self._first_step(number)
        number, wrong = number[start:], wrong[start:]
        tails = betainc(np.maximum(number - wrong, 1e-300), wrong + 1.0, 1.0 - self.limit)
        n_passed = int(np.append(tails > self.delta, True).argmax())
        return price[start : start + n_passed]

    def _first_step(self, number: Floats) -> int:
        n = float(number[-1]) if number.size else 0.0
        first = first_tested(n, self.limit, self.delta)
        return int(np.searchsorted(number, first - _ROUNDING))

    def shortfall(self) -> str:
        """Return how many more cases would prove the limit, or that no number will."""
        name, limit, delta = self.name, self.limit, self.delta
        if name == "error_rate":
            return self._shortfall_of_rate()
        least = ceil(log(delta) / log1p(-limit))
        kind = {"miss_rate": "positive ", "false_alarm_rate": "negative "}.get(name, "")
        return (
            f"{self.n:,.0f} {kind}cases are too few for {name}={limit:g}: it takes {least:,}, "
            f"{max(least - round(self.n), 1):,} more"
        )

    def _shortfall_of_rate(self) -> str:
        """Return how many more cases would prove the rate, if the model errs as often as here."""
        limit, delta = self.limit, self.delta
        _, number, wrong = self._steps()
        n = float(number[-1]) if number.size else 0.0
        rate = (wrong + 0.5) / (number + 1.0)
        start = self._first_step(number)
        # The sequence begins with the surest cases and does not go beyond a rate that is too high.
        below = np.arange(start, start + int(np.append(rate[start:] >= limit, True).argmax()))
        if start < rate.size and not below.size:
            share = wrong[start] / number[start]
            near = ", too near the limit" if share < limit else ""
            return (
                f"no number of cases will do for error_rate={limit:g}: of the "
                f"{number[start]:,.0f} cases that the model is surest of, {100 * share:.3g} % are "
                f"wrong{near}"
            )
        if not below.size:  # fewer cases than the sequence begins with
            low = np.flatnonzero(rate < limit)
            if not low.size:
                least = cases_that_pass(0, limit, delta)
                return (
                    f"{n:,.0f} cases are too few for error_rate={limit:g}: it takes {least:,} "
                    "decided alone, even if none of them is wrong"
                )
            below = low if rate[-1] >= limit else low[-1:]
        # Of many points the last ones, and those with the lowest rates, tell.
        tried = below[np.argsort(rate[below] + 1.0 / np.sqrt(number[below]))[:20]]
        least = min(
            n * cases_that_pass(0.0, limit, delta, float(rate[step])) / float(number[step])
            for step in tried.tolist()
        )
        if least == inf:
            return (
                f"no number of cases will do for error_rate={limit:g}, if the model errs as often "
                "as here"
            )
        return (
            f"{n:,.0f} cases are too few for error_rate={limit:g}: about "
            f"{max(ceil(least - n), 1):,} more would do, if the model errs as often as here"
        )


def allowed_errors(n: float, limit: float, delta: float) -> int:
    """Return the largest k with P(Bin(n, limit) ≤ k) ≤ delta; −1 if there is none."""
    if n <= 0.0:
        return -1
    return _first(lambda k: at_most_probability(k, n, limit) > delta, -1, ceil(n)) - 1


def at_most_probability(k: float, n: float, limit: float) -> float:
    """Return P(Bin(n, limit) ≤ k), also between whole numbers."""
    return 1.0 if k >= n else float(betainc(n - k, k + 1.0, 1.0 - limit))


def first_tested(n: float, limit: float, delta: float) -> float:
    """Return the number of cases that the sequence of tests of a rate begins with."""
    first = cases_that_pass(0, limit, delta)
    for errors in range(_FIRST_ERRORS, 0, -1):
        enough = cases_that_pass(errors, limit, delta)
        if enough <= max(_FIRST_SHARE * n, first):
            return enough
    return first


def cases_that_pass(errors: float, limit: float, delta: float, rate: float = 0.0) -> float:
    """Return the least number of cases at which so many errors prove a rate below the limit.

    With a `rate`, there are that many more errors for each case. Infinite if nobody has as many.
    """

    def passes(n: int) -> bool:
        return at_most_probability(errors + rate * n, n, limit) <= delta

    low = ceil(errors)
    high = low + 1
    while not passes(high):
        if high >= _MOST_CASES:
            return inf
        low, high = high, 2 * high
    return _first(passes, low, high)


def _first(passes: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least whole number above `low` that passes; `high` does, as do all after it."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class _Bets(_LimitTest):
    """Test of a limit by bets on clusters, one after the other, that it is not kept.

    Wealth that ever grows to 1/δ would happen with probability δ at most, were the share at the
    limit: Ville's inequality. The bets follow the mean and variance of the clusters before.
    """

    weight: Floats
    cluster: Integers

    def _totals(self, weight: Floats) -> Floats:
        """Return the sums of clusters, in the order of their numbers; of no others."""
        present = np.bincount(self.cluster) > 0
        return np.bincount(self.cluster, weight)[present].astype(np.float64)

    def proved_prices(self) -> Floats:
        """Return prices above which cases can be automated, the one of a share or all of a rate."""
        price, is_rate = self.price, self.name == "error_rate"
        if not price.size:
            return np.zeros(0)
        if is_rate:
            # From a quarter of the cases on: fewer hardly ever prove anything.
            steps = np.linspace(_FIRST_SHARE * price.size, price.size, _POINTS).astype(int) - 1
            tried = price[np.unique(np.maximum(steps, 0))]
        else:
            errors = price[self.is_wrong & (price > -inf)]
            steps = np.linspace(0, errors.size - 1, min(_POINTS, errors.size)).astype(int)
            tried = np.append(errors[steps], -inf)
        passed = []
        for limit in np.unique(tried)[::-1].tolist():
            if not self._wins(price >= limit if is_rate else price > limit):
                break
            passed.append(limit)
        return np.array(passed if is_rate else passed[-1:])

    def _wins(self, automated: Mask) -> bool:
        """Return True if the wealth of the bets on these cases ever grows to 1/δ."""
        limit, delta, total = self.limit, self.delta, self._totals(self.weight)
        errors = self._totals(self.weight * (automated & self.is_wrong))
        base = self._totals(self.weight * automated) if self.name == "error_rate" else total
        if float(errors.sum()) > limit * float(base.sum()):
            return False  # luck in the order of the clusters proves nothing
        y = (errors - limit * base) / float(total.max()) + limit
        # Mean and variance of the clusters before each, begun with what the limit would make them.
        so_far = np.arange(1.0, y.size + 1.0)
        mean = (limit + np.cumsum(y) - y) / so_far
        squares = (y - mean) ** 2
        variance = (limit * (1.0 - limit) + np.cumsum(squares) - squares) / so_far
        bets = np.sqrt(2.0 * log(1.0 / delta) / (y.size * np.maximum(variance, 1e-12)))
        bets = np.minimum(bets, _LARGEST_BET / (1.0 - limit))
        wealth = np.cumsum(np.log1p(-bets * (y - limit)))
        return bool(wealth.max() >= log(1.0 / delta))

    def shortfall(self) -> str:
        """Return how many clusters it takes at least."""
        limit, total = self.limit, self._totals(self.weight)
        growth = log1p(_LARGEST_BET * limit / (1.0 - limit))
        relative = float(total.max() / total.mean()) if total.size else 1.0
        least = ceil(log(1.0 / self.delta) / growth * relative)
        clusters = f"{total.size:,} independent cases or clusters"
        if total.size < least:
            return (
                f"{clusters} are too few for {self.name}={limit:g}: it takes {least:,}, "
                f"{least - total.size:,} more"
            )
        return (
            f"{clusters} do not prove {self.name}={limit:g}: the model is wrong too often where it "
            "is surest, or they are too few"
        )
