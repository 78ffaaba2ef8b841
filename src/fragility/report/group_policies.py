"""What the policy of a model, chosen on all cases, does in each group of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, log, nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtrit

from .._typing import Floats, Integers, Interval
from ..figures.intervals import share_interval
from ..figures.rank import measured_between
from ..figures.spread import nine_digits
from ..measured import Measured
from ..scores.bins import ScoreBins
from ..scores.cases import Cases
from ..scores.state import ScoreState
from .parts import GroupPolicy
from .rereading import CaseRows, PartReader

if TYPE_CHECKING:
    from .cost_reading import Decided, DecidedCases

#: Sums over the cases of a group: of weights, of what the policy decides alone, and of what
#: policies that others chose decide alone, get wrong and cost; then of squared weights, of these
#: times what is decided alone, times costs, and times squared costs.
_AMOUNTS = (
    *("weight", "alone", "tried", "errors", "cost"),
    *("squares", "tried_squares", "cost_w2", "cost2_w2"),
)
#: How many of them, after the weight, have bounds.
_BOUNDED = 4
_ROUNDING = 1e-13


class CaseCost(NamedTuple):
    """What a case may cost at a policy.

    Attributes
    ----------
    lowest, highest : float
        Of one case more than there are: the cheapest, and the dearest to be expected.
    most : float
        What no case exceeds; infinite where that is not known.
    """

    lowest: float
    highest: float
    most: float


@dataclass(frozen=True, eq=False)
class DecisionSums:
    """Sums over the cases of each group at a policy.

    Attributes
    ----------
    sums : ndarray of shape (9, n_groups)
    least, most : ndarray of shape (4, n_groups)
        Bounds of what is decided alone, by the policy and by others, of errors and of costs; equal
        to the sums if these are exact.
    cluster_errors : ndarray of shape (n_groups,), optional
        Standard error of the mean cost, where clusters were counted.
    n_clusters : ndarray of shape (n_groups,), optional
        Their effective number.
    """

    sums: Floats
    least: Floats
    most: Floats
    cluster_errors: Floats | None = None
    n_clusters: Floats | None = None

    @classmethod
    def of_sums(cls, sums: Floats) -> DecisionSums:
        """Sums that are exact."""
        bounded = sums[1 : 1 + _BOUNDED]
        return cls(sums, bounded, bounded)

    def plus(self, other: DecisionSums) -> DecisionSums:
        """The same with more cases, before clusters are counted."""
        sums = (self.sums + other.sums, self.least + other.least, self.most + other.most)
        return DecisionSums(*sums)

    @classmethod
    def of_bins(cls, decided: Decided, bins: ScoreBins, n_groups: int) -> DecisionSums:
        """Of two classes in bins by group, which are wider than those the policy is known for.

        Within a wide bin the cases of a group are taken to lie as those of their class do; bounds
        are for any other way.
        """
        fine, wide = decided.by_place(), bins.layout
        places = wide.places(fine.scores)
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        held = places[starts]
        typical = np.zeros((_BOUNDED, 2, wide.length))
        ends = np.zeros((2, _BOUNDED, 2, wide.length))
        weight = np.add.reduceat(fine.weight, starts, axis=1)
        totals = np.add.reduceat(fine.weight * fine.rates, starts, axis=2)
        plain = np.add.reduceat(fine.rates, starts, axis=2)
        count = np.diff(np.append(starts, places.size))
        some = weight > 0.0
        typical[:, :, held] = np.divide(totals, weight, out=plain / count, where=some)
        absent = fine.weight == 0.0  # of such places no case of the class is
        for place, (bound, ignored) in enumerate(((np.minimum, inf), (np.maximum, -inf))):
            found = bound.reduceat(np.where(absent, ignored, fine.rates), starts, axis=2)
            ends[place][:, :, held] = np.where(some, found, 0.0)
        amounts = bins.table("weight").reshape(n_groups, 2, -1)
        squares = bins.table("squares").reshape(n_groups, 2, -1)

        def summed(table: Floats, by: Floats) -> Floats:
            return np.asarray(np.einsum("gcb,...cb->...g", table, by))

        means = summed(amounts, typical)
        _, tried, _, cost = typical
        spread = [summed(squares, by) for by in (np.ones(tried.shape), tried, cost, cost**2)]
        sums = np.concatenate([[amounts.sum(axis=(1, 2))], means, spread])
        return cls(sums, summed(amounts, ends[0]), summed(amounts, ends[1]))

    @property
    def some_alone(self) -> bool:
        """Whether any case is decided alone, by the policy or by those that others chose."""
        return bool((self.most[:2] > 0.0).any())

    def policy(self, group: int, confidence: float, case: CaseCost) -> GroupPolicy:
        """The policy in one group, in which a case may cost so much."""
        found = dict(zip(_AMOUNTS, self.sums[:, group].tolist(), strict=True))
        weight, tried, errors = found["weight"], found["tried"], found["errors"]
        size = weight**2 / found["squares"]
        factor = 1.0
        if self.n_clusters is not None:  # as if the cases of a cluster were all alike
            factor = min(float(self.n_clusters[group]) / size, 1.0)
        among = tried**2 / found["tried_squares"] if found["tried_squares"] > 0.0 else 0.0
        least, most = self.least[:, group].tolist(), self.most[:, group].tolist()

        def share(part: int, name: str) -> Measured:
            ends = measured_between(least[part] / weight, most[part] / weight).bounds
            return _share(found[name] / weight, ends, size * factor, confidence)

        alone = replace(share(0, "alone"), estimator=None)  # of the policy itself
        rate = Measured(nan)
        if tried > 0.0:
            highest_rate = min(most[2] / least[1], 1.0) if least[1] > 0.0 else 1.0
            ends = measured_between(least[2] / most[1], highest_rate).bounds
            rate = _share(errors / tried, ends, among * factor, confidence)
        return GroupPolicy(
            alone,
            rate,
            share(2, "errors"),
            self._cost(group, found, size, confidence, case),
        )

    def _cost(
        self,
        group: int,
        found: Mapping[str, float],
        size: float,
        confidence: float,
        case: CaseCost,
    ) -> Measured:
        weight, mean = found["weight"], found["cost"] / found["weight"]
        variance = found["cost2_w2"] - 2.0 * mean * found["cost_w2"] + mean**2 * found["squares"]
        if variance <= _ROUNDING * found["cost2_w2"]:
            variance = 0.0
        n = size
        error = sqrt(variance * n / max(n - 1.0, 1.0)) / weight
        if self.cluster_errors is not None and self.n_clusters is not None:
            error, n = float(self.cluster_errors[group]), float(self.n_clusters[group])
        ends = measured_between(
            float(self.least[3, group]) / weight, float(self.most[3, group]) / weight
        ).bounds
        interval = None if n < 2.0 else _cost_interval(mean, error, n, confidence, case)
        if interval is not None and ends is not None:
            interval = Interval(
                max(interval.low + ends.low - mean, 0.0), interval.high + ends.high - mean
            )
        if interval is not None:
            interval = interval._replace(high=min(interval.high, max(case.most, mean)))
        return Measured(mean, interval, ends, "cross_fitted", error)


def _share(value: float, bounds: Interval | None, n: float, confidence: float) -> Measured:
    """A share of so many cases; where it is known up to bounds, its limits are those of these."""
    ends = Interval(value, value) if bounds is None else bounds
    low, high = (share_interval(end, n, confidence) for end in ends)
    return Measured(value, Interval(low.low, high.high), bounds, "cross_fitted")


def _cost_interval(
    mean: float, error: float, n: float, confidence: float, case: CaseCost
) -> Interval:
    """Limits of a mean cost on the scale of the logarithm.

    Errors are rare and dear, and so may be cases that are decided alone, and cheap: each limit
    allows for one more case, the dearest or the cheapest.
    """
    t = float(stdtrit(max(n - 1.0, 1.0), 0.5 + 0.5 * confidence))

    def limit(cost: float, sign: float) -> float:
        moved = (n * mean + cost) / (n + 1.0)
        if moved <= 0.0:
            return 0.0
        spread = sqrt((error * n / (n + 1.0)) ** 2 + ((cost - moved) / (n + 1.0)) ** 2)
        return moved * exp(sign * min(t * spread / moved, log(1e300)))

    return Interval(limit(min(case.lowest, mean), -1.0), limit(max(case.highest, mean), 1.0))


class GroupDecisions(PartReader):
    """Reads cases, and sums what each policy does to those of each group.

    Parameters
    ----------
    state : ScoreState
    decided : mapping of str to Decided
    """

    KNOWN = ("_state", "_decided")

    def __init__(self, state: ScoreState, decided: Mapping[str, Decided]) -> None:
        self._state, self._decided = state.without_cases(), decided
        self._in_parts = False
        self._n_groups = len(state.group_support)
        self._sums = {name: np.zeros((len(_AMOUNTS), self._n_groups)) for name in decided}
        #: Of the dearest case, which may be dearer than any cost of the matrix.
        self._highest = dict.fromkeys(decided, 0.0)

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        for name, decided in self._decided.items():
            self._add(name, found.cases, decided.cases(found.cases))

    def _add(self, name: str, block: Cases, made: DecidedCases) -> None:
        weight = np.ones(block.size) if block.weights is None else block.weights
        alone, tried, errors, cost = made.alone, made.tried, made.errors, made.cost
        self._highest[name] = max(self._highest[name], float(cost.max(initial=0.0)))
        heavy = weight * weight
        terms = (
            *(weight, weight * alone, weight * tried, weight * errors, weight * cost),
            *(heavy, heavy * tried, heavy * cost, heavy * cost * cost),
        )
        for places in self._state.shape.group_places(block):
            for sums, amounts in zip(self._sums[name], terms, strict=True):
                sums += np.bincount(places, amounts, self._n_groups)

    def merge(self, other: GroupDecisions) -> None:
        """Add what a reader of other cases was told."""
        for name, sums in other._sums.items():
            self._sums[name] += sums
            self._highest[name] = max(self._highest[name], other._highest[name])
        self._in_parts = True

    def finish(self) -> None:
        """Sums over parts are rounded: their last digits depend on the order of cases."""
        if self._in_parts:
            for sums in self._sums.values():
                sums[...] = np.vectorize(nine_digits, otypes=[np.float64])(sums)

    def sums(self, name: str) -> tuple[DecisionSums, float]:
        """Of one model, and the cost of its dearest case."""
        return DecisionSums.of_sums(self._sums[name]), self._highest[name]


def with_clusters(
    found: DecisionSums, cases: Cases, cost: Floats, clusters: Integers, state: ScoreState
) -> DecisionSums:
    """The same with clusters for cases, all of which are in memory."""
    weight = np.ones(cases.size) if cases.weights is None else cases.weights
    n_groups = found.sums.shape[1]
    errors, numbers = np.zeros(n_groups), np.zeros(n_groups)
    for places in state.shape.group_places(cases):
        mean = found.sums[_AMOUNTS.index("cost")] / np.where(
            found.sums[0] > 0.0, found.sums[0], 1.0
        )
        keys, own = np.unique(np.stack([places, clusters]), axis=1, return_inverse=True)
        apart = np.bincount(own, weight * (cost - mean[places]))
        heavy = np.bincount(own, weight)
        held = np.unique(places)
        total, squares, counts = (
            np.bincount(keys[0], part, n_groups)[held]
            for part in (heavy, heavy**2, np.ones(heavy.size))
        )
        ss = np.bincount(keys[0], apart**2, n_groups)[held]
        errors[held] = np.sqrt(ss * counts / np.maximum(counts - 1.0, 1.0)) / total
        numbers[held] = total**2 / squares
    return DecisionSums(found.sums, found.least, found.most, errors, numbers)
