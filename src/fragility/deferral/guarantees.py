r"""Guarantees: limits of errors that hold in the population, not only on the cases that chose.

A limit is kept with probability 1 − δ over the draw of the cases. For the *share* of all cases that
are automated and wrong, policies form a path on which more and more is automated. With K the
largest number of errors for which :math:`P(\mathrm{Bin}(n, \alpha) \le K) \le \delta`, the path
may go on until the error K + 1; the true share there has a Beta(K + 1, n − K) distribution, so
this is exact. All that lies inside has fewer errors, so costs may choose there freely. Misses and
false alarms are such shares of one class, on the path of one threshold. The *rate* among the
automated cases may fall and rise along the path: one fixed sequence of tests, only the points that
passed are valid.

All of this is a theorem if the path does not depend on these labels. Paths here use calibration
maps fitted to the other folds; that the limits hold there, too, rests on simulation
(``make coverage``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from .._typing import Floats, Indices, Integers, Mask
from .choosing import Allowed, Part, Steps
from .settings import LIMIT_WORDS, RiskLimits
from .two_thresholds import Box

#: Errors that the sequence of tests may begin with, and the share of the cases by which it must.
_FIRST_ERRORS, _FIRST_SHARE = 5, 0.25
#: Nobody has more cases than this.
_MOST_CASES = 10**12
#: Largest bet, as a share of what would bankrupt, and points on a path at which bets are placed.
_LARGEST_BET, _POINTS = 0.9, 200


@dataclass(frozen=True)
class Guarantee:
    """A limit, and how it is kept.

    Attributes
    ----------
    name : str
        Such as "max_error_rate".
    limit, level : float
        The share, and the probability with which it is kept (several limits share the rest).
    kept : bool
        Whether decisions that can break it were proved to keep it. If not, there are none: the
        model never decides negative (misses), positive (false alarms), or anything at all.
    reason : str
        If not: how many more cases would do, or that no number will.
    """

    name: str
    limit: float
    level: float
    kept: bool
    reason: str = ""

    @property
    def words(self) -> str:
        """What is limited."""
        return LIMIT_WORDS[self.name]

    @property
    def title(self) -> str:
        """A short name of what is limited."""
        return self.name.removeprefix("max_").replace("_", " ")

    @property
    def percent(self) -> str:
        """The limit as it was given."""
        return f"{100 * self.limit:.6g} %"


class Certified(NamedTuple):
    """Cuts that all limits allow, and the limits with what became of them."""

    allowed: Allowed
    guarantees: tuple[Guarantee, ...]


def certify(part: Part, limits: RiskLimits, scale: float = 1.0) -> Certified:
    """Cuts that keep the limits.

    With `scale` above 1, every case counts as so many: to see what the same limits would allow had
    these cases been as many as all.
    """
    box, points = part.widest, None
    found: list[Guarantee] = []
    if not limits.given:
        return Certified(Allowed(box), ())
    delta = limits.delta
    steps = Steps(*(np.zeros(0) for _ in range(3)))
    if {"max_error_share", "max_error_rate"} & set(limits.given):
        steps = part.steps().ordered()
        steps = Steps(steps.key, scale * steps.number, scale * steps.wrong)
    sides: Floats = scale * part.class_counts()
    for name, limit in limits.given.items():
        made = Guarantee(name, limit, 1.0 - delta, True)
        if part.falling:
            reason = "higher scores do not mean more positives: the scores say nothing"
            box = box.inside(_full_review(part))
            found.append(replace(made, kept=False, reason=reason))
            continue
        if name == "max_error_rate":
            keys = passed_keys(steps.automated, limit, delta)
            if not keys.size:
                reason = cases_for_rate(steps.automated, limit, delta)
                made = replace(made, kept=False, reason=reason)
            points = part.boxes_at(np.nextafter(keys, -inf))
        else:
            own = _certified_box(part, name, limit, delta, steps, sides)
            counted = {"max_misses": sides[1], "max_false_alarms": sides[0]}
            n = float(counted.get(name, steps.number).sum())
            if own is None:
                own, reason = _full_review(part, name), cases_for_share(name, n, limit, delta)
                made = replace(made, kept=False, reason=reason)
            box = box.inside(own)
        found.append(made)
    return Certified(Allowed(box, points), tuple(found))


def _certified_box(
    part: Part, name: str, limit: float, delta: float, steps: Steps, sides: Floats
) -> Box | None:
    """Cuts that keep the limit of a share; None if there are too few cases."""
    if name == "max_error_share":
        most = allowed_errors(float(steps.number.sum()), limit, delta)
        if most < 0:
            return None
        # The error that goes beyond ends the path. Without one the path goes to its own end, where
        # nothing is reviewed. Other cuts without reviews may have more errors.
        beyond = steps.key[np.cumsum(steps.wrong) > most + 1e-9]
        lower, upper = part.boxes_at(np.append(beyond, -inf)[:1])
        return Box(int(lower[0]), int(upper[0]))
    counts = sides[1] if name == "max_misses" else sides[0]
    most = allowed_errors(float(counts.sum()), limit, delta)
    if most < 0:
        return None
    if name == "max_misses":
        return Box(int(np.count_nonzero(np.cumsum(counts) <= most + 1e-9)), 0)
    above = np.count_nonzero(np.cumsum(counts[::-1]) <= most + 1e-9)
    return Box(part.n_places, part.n_places - int(above))


def _full_review(part: Part, name: str = "") -> Box:
    """No cut that decides anything; of one kind of errors, no cut that can make them."""
    return Box(
        part.n_places if name == "max_false_alarms" else 0,
        0 if name == "max_misses" else part.n_places,
    )


def allowed_errors(n: float, limit: float, delta: float) -> int:
    """Largest k with P(Bin(n, limit) ≤ k) ≤ delta; −1 if there is none."""
    if n <= 0.0:
        return -1
    return _first(lambda k: at_most_probability(k, n, limit) > delta, -1, ceil(n)) - 1


def _first(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Least whole number above `low` that fits; `high` does, as all do from the first on."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def at_most_probability(k: float, n: float, limit: float) -> float:
    """P(Bin(n, limit) ≤ k), also between whole numbers."""
    return 1.0 if k >= n else float(betainc(n - k, k + 1.0, 1.0 - limit))


def passed_keys(steps: Steps, limit: float, delta: float) -> Floats:
    """Keys of the steps at which the error rate is certainly below the limit.

    One sequence, tested until the first failure. It begins where a few errors would pass, if that
    is within a quarter of the cases, else where none would.
    """
    number, wrong = np.cumsum(steps.number), np.cumsum(steps.wrong)
    n = float(number[-1]) if number.size else 0.0
    start = int(np.searchsorted(number, first_tested(n, limit, delta) - 1e-9))
    number, wrong = number[start:], wrong[start:]
    passed = betainc(np.maximum(number - wrong, 1e-300), wrong + 1.0, 1.0 - limit) <= delta
    failed = np.flatnonzero(~passed)
    end = int(failed[0]) if failed.size else passed.size
    return steps.key[start : start + end]


def first_tested(n: float, limit: float, delta: float) -> float:
    """Number of cases that the sequence of tests begins with."""
    first = cases_that_pass(0, limit, delta)
    for errors in range(_FIRST_ERRORS, 0, -1):
        enough = cases_that_pass(errors, limit, delta)
        if enough <= max(_FIRST_SHARE * n, first):
            return enough
    return first


def cases_that_pass(errors: float, limit: float, delta: float, rate: float = 0.0) -> float:
    """Least number of cases at which so many errors prove a rate below the limit.

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


def cases_for_share(name: str, n: float, limit: float, delta: float) -> str:
    """How many more cases it takes before any error share can be below the limit."""
    least = ceil(log(delta) / log1p(-limit))
    kind = {"max_misses": "positive ", "max_false_alarms": "negative "}.get(name, "")
    return (
        f"{n:,.0f} {kind}cases are too few for {name}={limit:g}: it takes {least:,}, "
        f"{max(least - round(n), 1):,} more"
    )


def cases_for_rate(steps: Steps, limit: float, delta: float) -> str:
    """How many more cases would prove the rate, at the error rates seen; or that none will."""
    number, wrong = np.cumsum(steps.number), np.cumsum(steps.wrong)
    n = float(number[-1])
    rate = (wrong + 0.5) / (number + 1.0)
    start = int(np.searchsorted(number, first_tested(n, limit, delta) - 1e-9))
    # The sequence begins with the surest cases and does not go beyond a rate that is too high.
    high = np.flatnonzero(rate[start:] >= limit)
    reached = np.arange(start, start + int(high[0]) if high.size else rate.size)
    if start < rate.size and not reached.size:
        share = wrong[start] / number[start]
        near = ", too near the limit" if share < limit else ""
        return (
            f"no number of cases will do for max_error_rate={limit:g}: of the {number[start]:,.0f} "
            f"cases that the model is surest of, {100 * share:.3g} % are wrong{near}"
        )
    if not reached.size:  # fewer cases than the sequence begins with
        low = np.flatnonzero(rate < limit)
        if not low.size:
            return _too_few_for_rate(n, limit, delta)
        reached = low if rate[-1] >= limit else low[-1:]
    # Of many points the last ones, and those with the lowest rates, tell.
    tried = reached[np.argsort(rate[reached] + 1.0 / np.sqrt(number[reached]))[:20]]
    least = min(
        n * cases_that_pass(0.0, limit, delta, float(rate[place])) / float(number[place])
        for place in tried.tolist()
    )
    if least == inf:
        return (
            f"no number of cases will do for max_error_rate={limit:g}, if the model errs as often "
            "as here"
        )
    return (
        f"{n:,.0f} cases are too few for max_error_rate={limit:g}: about "
        f"{max(ceil(least - n), 1):,} more would do, if the model errs as often as here"
    )


def _too_few_for_rate(n: float, limit: float, delta: float) -> str:
    """What the rate takes at least, where these cases show nothing of the sort."""
    least = cases_that_pass(0, limit, delta)
    if least == inf:
        return f"no number of cases will do for max_error_rate={limit:g}"
    return (
        f"{n:,.0f} cases are too few for max_error_rate={limit:g}: it takes {least:,} decided "
        "alone, even if none of them is wrong"
    )


# Weights and clusters: bets against the limit.


class WeightedCases(NamedTuple):
    """Cases with weights, or in clusters that are drawn together.

    Attributes
    ----------
    place : ndarray of int
        Place of each case on the path.
    key : ndarray
        Of the step in which it is automated.
    wrong, positive : ndarray of bool
        Whether it is then decided wrongly; whether it is of the positive class.
    weight : ndarray
    cluster : ndarray of int
        Clusters from 0, in the order in which bets are placed.
    """

    place: Indices
    key: Floats
    wrong: Mask
    positive: Mask
    weight: Floats
    cluster: Integers


def certify_weighted(part: Part, cases: WeightedCases, limits: RiskLimits) -> Certified:
    """Cuts that keep the limits, by bets on the clusters: no error of a case stands alone."""
    box, points, found = part.widest, None, []
    delta = limits.delta
    for name, limit in limits.given.items():
        made = Guarantee(name, limit, 1.0 - delta, True)
        key, wrong, counted = cases.key, cases.wrong, np.ones(cases.key.size, dtype=np.bool_)
        if name == "max_misses":
            key, wrong, counted = -cases.place.astype(float), cases.positive, cases.positive
        elif name == "max_false_alarms":
            key, wrong, counted = cases.place.astype(float), ~cases.positive, ~cases.positive
        bets = _Bets(key, wrong, counted, cases.weight, cases.cluster, limit, delta)
        passed = np.zeros(0)
        if not part.falling:
            passed = bets.passed(rate=name == "max_error_rate")
        if not passed.size:
            box = box.inside(_full_review(part, name))
            made = replace(made, kept=False, reason=bets.shortfall(name))
        elif name == "max_error_rate":
            points = part.boxes_at(np.nextafter(passed, -inf))
        elif name == "max_error_share":
            lower, upper = part.boxes_at(passed[-1:])
            box = box.inside(Box(int(lower[0]), int(upper[0])))
        elif name == "max_misses":
            # The places before the last that passed.
            highest = part.n_places if passed[-1] == -inf else int(-passed[-1])
            box = box.inside(Box(highest, 0))
        else:
            lowest = 0 if passed[-1] == -inf else int(passed[-1]) + 1
            box = box.inside(Box(part.n_places, lowest))
        found.append(made)
    return Certified(Allowed(box, points), tuple(found))


class _Bets:
    """Bets on clusters, one after the other, that an error share is not below its limit.

    Wealth that ever grows to 1/δ would happen with probability δ at most, were the share at the
    limit: Ville's inequality. The bets follow the mean and variance of the clusters before.
    """

    def __init__(
        self,
        key: Floats,
        wrong: Mask,
        counted: Mask,
        weight: Floats,
        cluster: Integers,
        limit: float,
        delta: float,
    ) -> None:
        rows = np.flatnonzero(counted)
        self._key, self._wrong, self._weight = key[rows], wrong[rows], weight[rows]
        names, self._cluster = np.unique(cluster[rows], return_inverse=True)
        self._n, self._limit, self._delta = names.size, limit, delta
        self._total = np.bincount(self._cluster, self._weight, self._n)

    @property
    def _largest(self) -> float:
        return float(self._total.max(initial=0.0))

    def passed(self, *, rate: bool) -> Floats:
        """Limits of the key that pass, one after the other, until the first that fails.

        Of shares: the cases with a key above the limit are automated, −∞ automates all. Of rates:
        those with a key of at least the limit.
        """
        if not self._n:
            return np.zeros(0)
        order = np.argsort(-self._key, kind="stable")
        keys = self._key[order]
        if rate:
            # From a quarter of the cases on: fewer hardly ever prove anything.
            places = np.linspace(_FIRST_SHARE * keys.size, keys.size, _POINTS).astype(int) - 1
            tried = keys[np.unique(np.maximum(places, 0))]
        else:
            errors = keys[self._wrong[order]]
            places = np.linspace(0, errors.size - 1, min(_POINTS, errors.size)).astype(int)
            tried = np.append(errors[places], -inf)
        tried = np.unique(tried)[::-1]
        found = []
        for key in tried.tolist():
            automated = self._key >= key if rate else self._key > key
            if not self._wins(automated, rate):
                break
            found.append(key)
        return np.array(found)

    def _wins(self, automated: Mask, rate: bool) -> bool:
        errors = np.bincount(self._cluster, self._weight * (automated & self._wrong), self._n)
        base = self._total
        if rate:
            base = np.bincount(self._cluster, self._weight * automated, self._n)
        limit = self._limit
        if float(errors.sum()) > limit * float(base.sum()):
            return False  # luck in the order of the clusters proves nothing
        y = (errors - limit * base) / self._largest + limit
        # Mean and variance of the clusters before each, begun with what the limit would make them.
        so_far = np.arange(1.0, self._n + 1.0)
        mean = _before(y, limit) / so_far
        variance = _before((y - mean) ** 2, limit * (1.0 - limit)) / so_far
        bets = np.sqrt(2.0 * log(1.0 / self._delta) / (self._n * np.maximum(variance, 1e-12)))
        bets = np.minimum(bets, _LARGEST_BET / (1.0 - limit))
        wealth = np.cumsum(np.log1p(-bets * (y - limit)))
        return bool(wealth.max() >= log(1.0 / self._delta))

    def shortfall(self, name: str) -> str:
        """How many clusters it takes at least."""
        limit = self._limit
        growth = log1p(_LARGEST_BET * limit / (1.0 - limit))
        mean = float(self._total.mean()) if self._n else 1.0
        least = ceil(log(1.0 / self._delta) / growth * (self._largest or 1.0) / mean)
        if self._n < least:
            return (
                f"{self._n:,} independent cases or clusters are too few for {name}={limit:g}: it "
                f"takes {least:,}, {least - self._n:,} more"
            )
        return (
            f"{self._n:,} independent cases or clusters do not prove {name}={limit:g}: the model "
            "is wrong too often where it is surest, or they are too few"
        )


def _before(values: Floats, first: float) -> Floats:
    """A first value plus the sum of the values before each."""
    found: Floats = first + np.cumsum(values) - values
    return found
