r"""Cases in the order of a key, and the cheapest two cuts of that order.

Cases of equal key form a group; groups ascend. Two cuts :math:`i \le j` decide the groups before
`i` in one way and those from `j` on in another, and send the groups between to review. With prefix
sums A of the costs below the lower cut and R of the reviews, and suffix sums B of the costs above
the upper cut, the cuts cost :math:`(A_i - R_i) + (R_j + B_j)`: two separate parts, joined by
:math:`i \le j` and by the capacity for reviews.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from ..ordered import running_totals
from .costs import DecisionCosts

#: Costs that differ by less, relative to the largest total, are equal.
_TIE = 1e-12


class Cuts(NamedTuple):
    """Groups before `lower` are decided one way, those from `upper` on the other; a review between.

    `within_capacity` is false if no cuts that are allowed need so few reviews.
    """

    lower: int
    upper: int
    within_capacity: bool = True


class AllowedCuts(NamedTuple):
    """Cuts that may be chosen: a highest lower cut and a lowest upper cut, and maybe a few pairs.

    If `pairs` of lower and upper cuts are listed, only these may be chosen, or full review.
    """

    highest_lower: int
    lowest_upper: int
    pairs: tuple[Indices, Indices] | None = None

    def within(self, highest_lower: int, lowest_upper: int) -> AllowedCuts:
        """Return the cuts that these bounds allow, too."""
        return self._replace(
            highest_lower=min(self.highest_lower, highest_lower),
            lowest_upper=max(self.lowest_upper, lowest_upper),
        )


class ActionSums(NamedTuple):
    """What each group of equal keys costs under each of the three actions, keys ascending.

    `weight` is the mass that a review of the group takes from the capacity.
    """

    below: Floats
    reviewed: Floats
    above: Floats
    weight: Floats

    def cost_of_cuts(self) -> tuple[Floats, Floats]:
        """Return what each lower and each upper cut adds to the cost, which is the sum of both."""
        below, reviewed = running_totals(self.below), running_totals(self.reviewed)
        # Summed from the top, so that nothing is left at the last cut.
        above = running_totals(self.above[::-1])[::-1]
        return below - reviewed, reviewed + above

    def cost(self, cuts: Cuts) -> float:
        """Return the cost of all cases at these cuts."""
        left, right = self.cost_of_cuts()
        return float(left[cuts.lower] + right[cuts.upper])

    @property
    def rounding(self) -> float:
        """Costs that differ by no more than this are equal."""
        return _TIE * float(max(column.sum() for column in self[:3]))


def cheapest_cuts(sums: ActionSums, allowed: AllowedCuts, capacity: float = inf) -> Cuts:
    """Return the cheapest cuts; of equal ones those with the fewest reviews, then the lowest.

    Parameters
    ----------
    sums : ActionSums
    allowed : AllowedCuts
    capacity : float
        Largest mass that can be reviewed. If no cuts that are allowed are within it, those with the
        fewest reviews are returned.
    """
    if allowed.pairs is not None:
        return _cheapest_pair(sums, allowed, capacity)
    n = sums.weight.size
    left, right = sums.cost_of_cuts()
    weight = running_totals(sums.weight)
    uppers = np.arange(allowed.lowest_upper, n + 1)
    last = np.minimum(uppers, allowed.highest_lower)
    if capacity >= weight[-1]:  # every lower cut goes with every upper one above it
        least = np.minimum.accumulate(left)[last]
        first = np.zeros_like(last)
    else:
        first = np.searchsorted(weight, weight[uppers] - capacity - _TIE * weight[-1])
        possible = first <= last
        if not possible.any():
            return Cuts(allowed.highest_lower, allowed.lowest_upper, False)
        uppers, first, last = uppers[possible], first[possible], last[possible]
        least = _range_minima(left, first, last)
    totals = least + right[uppers]
    limit = float(totals.min()) + sums.rounding
    tied = np.flatnonzero(totals <= limit)
    # With each upper cut the last lower cut that is cheap enough has the fewest reviews.
    lowers = _last_at_most(left, limit - right[uppers[tied]], first[tied], last[tied])
    best = np.lexsort((lowers, weight[uppers[tied]] - weight[lowers]))[0]
    return Cuts(int(lowers[best]), int(uppers[tied[best]]))


def _cheapest_pair(sums: ActionSums, allowed: AllowedCuts, capacity: float) -> Cuts:
    """Return the cheapest of the pairs that are listed, and of full review, ties as above."""
    assert allowed.pairs is not None
    lowers, uppers = allowed.pairs
    inside = (lowers <= allowed.highest_lower) & (uppers >= allowed.lowest_upper)
    # Full review has no errors of the model, so every guarantee holds there.
    lowers, uppers = np.append(lowers[inside], 0), np.append(uppers[inside], sums.weight.size)
    left, right = sums.cost_of_cuts()
    weight = running_totals(sums.weight)
    reviews, cost = weight[uppers] - weight[lowers], left[lowers] + right[uppers]
    possible = np.flatnonzero(reviews <= capacity + _TIE * weight[-1])
    if not possible.size:
        best = int(np.lexsort((lowers, cost, reviews))[0])
        return Cuts(int(lowers[best]), int(uppers[best]), False)
    tied = possible[cost[possible] <= cost[possible].min() + sums.rounding]
    best = int(tied[np.lexsort((lowers[tied], reviews[tied]))[0]])
    return Cuts(int(lowers[best]), int(uppers[best]))


def _range_minima(values: Floats, first: Indices, last: Indices) -> Floats:
    """Return the minimum over each range of a sequence, both ends included.

    A sparse table: minima over 1, 2, 4, … neighbours, of which two cover every range.
    """
    level = np.frexp((last - first + 1).astype(np.float64))[1] - 1  # the whole part of log2
    minima, table = np.empty(first.size), values
    for m in range(int(level.max()) + 1):
        if m:
            table = np.minimum(table[: -(1 << (m - 1))], table[1 << (m - 1) :])
        at = np.flatnonzero(level == m)
        minima[at] = np.minimum(table[first[at]], table[last[at] + 1 - (1 << m)])
    return minima


def _last_at_most(values: Floats, limits: Floats, first: Indices, last: Indices) -> Indices:
    """Return the last position in each range at which a sequence is at most the limit."""
    # Most often it is the last minimum so far, which all ranges that begin at 0 can share.
    records = np.flatnonzero(values <= np.minimum.accumulate(values))
    positions = records[np.searchsorted(records, last, side="right") - 1]
    for k in np.flatnonzero((positions < first) | (values[positions] > limits)).tolist():
        size = 64
        while True:  # most often it is near the end, so longer and longer ends are searched
            start = max(int(first[k]), int(last[k]) + 1 - size)
            cheap = np.flatnonzero(values[start : last[k] + 1] <= limits[k])
            if cheap.size:
                positions[k] = start + int(cheap[-1])
                break
            size *= 8
    return positions


class Layer(NamedTuple):
    """Cases with what each of the three actions costs on them, in the order of their key.

    Attributes
    ----------
    mass : ndarray of shape (n,)
    costs : ndarray of shape (n, 3)
        Below the lower cut, reviewed, and from the upper cut on.
    """

    mass: Floats
    costs: Floats


class KeyedCases(NamedTuple):
    """What a policy sees of each case under one map of the probabilities.

    Attributes
    ----------
    key : ndarray of shape (n,)
        What cases are sorted by and cut at; −∞ where the model abstained.
    actions : ndarray of int of shape (n, 3)
        Decision below the lower cut, review, and decision from the upper cut on, as columns of
        `DecisionCosts.paid`. All three are reviews where the model abstained.
    probabilities : ndarray of shape (n, n_classes)
    price : ndarray of shape (n,)
        Price of an error at which deciding the case alone stops paying: guarantees automate cases
        in descending order of it. −∞ where the model abstained.
    is_low : ndarray of bool of shape (n,)
        Whether the case is decided as below the lower cut if it is automated.
    """

    key: Floats
    actions: Integers
    probabilities: Floats
    price: Floats
    is_low: Mask

    def take(self, rows: Indices) -> KeyedCases:
        """Return some of the rows."""
        return KeyedCases._make(column[rows] for column in self)

    def decide(self, lower: float, upper: float) -> Integers:
        """Return the decision on each case at two thresholds of the key."""
        action = np.where(self.key < lower, 0, np.where(self.key >= upper, 2, 1))
        decisions: Integers = self.actions[np.arange(action.size), action]
        return decisions


@dataclass(frozen=True, eq=False)
class SortedCases:
    """Cases that choose a policy, by ascending key; cases of equal key are one group.

    Attributes
    ----------
    keyed : KeyedCases
        In ascending order of the key.
    rows : ndarray of int of shape (n,)
        Row of each of them in the table of cases.
    starts : ndarray of int of shape (m,)
        First case of each group.
    mass : ndarray of shape (n,)
    costs : DecisionCosts
        Of all rows.
    blend : float
        Share of the costs that are those the probabilities expect; the rest are as they were.
    allowed : AllowedCuts
        Cuts that make sense of such a key.
    lowest : float
        Threshold that no key is below.
    falls : bool
        Whether a higher score means fewer positives, so that the scores say nothing.
    """

    keyed: KeyedCases
    rows: Indices
    starts: Indices
    mass: Floats
    costs: DecisionCosts
    blend: float
    allowed: AllowedCuts
    lowest: float
    falls: bool

    @property
    def n_groups(self) -> int:
        """Number of groups of equal key, cases without a score among them."""
        return self.starts.size

    @cached_property
    def low(self) -> Floats:
        """Smallest key of each group."""
        keys: Floats = self.keyed.key[self.starts]
        return keys

    @cached_property
    def high(self) -> Floats:
        """Largest key of each group."""
        keys: Floats = self.keyed.key[np.append(self.starts[1:], self.rows.size) - 1]
        return keys

    @cached_property
    def n_abstained(self) -> int:
        """Number of groups without a score, none or one, before all others."""
        return int(np.count_nonzero(self.high == -inf))

    def by_group(self, values: Floats) -> Floats:
        """Return the sums of values (n, ...) over the cases of each group."""
        sums: Floats = np.add.reduceat(values, self.starts, axis=0)
        return sums

    @cached_property
    def weight(self) -> Floats:
        """Mass of each group that a cut can send to review or not."""
        weight = self.by_group(self.mass)
        weight[: self.n_abstained] = 0.0
        return weight

    def capacity(self, share: float) -> float:
        """Return the mass that can be reviewed at a cut, beside the cases without a score."""
        if share >= 1.0:
            return inf
        total = float(self.mass.sum())
        return max(share * total - (total - float(self.weight.sum())), 0.0)

    def layers(self) -> Iterator[Layer]:
        """Yield the cases with their classes, and with each class in the share that is blended."""
        if self.blend < 1.0:
            paid = np.take_along_axis(self.costs.paid[self.rows], self.keyed.actions, axis=1)
            yield Layer((1.0 - self.blend) * self.mass, paid)
        if self.blend > 0.0:
            expected = self.blend * self.mass[:, np.newaxis] * self.keyed.probabilities
            for code, mass in enumerate(expected.T):
                yield Layer(mass, self.costs.of_class(code, self.keyed.actions, self.rows))

    @cached_property
    def sums(self) -> ActionSums:
        """Return the costs of each group under each action."""
        return self.sums_of(layer.mass[:, np.newaxis] * layer.costs for layer in self.layers())

    def sums_of(self, costs: Iterable[Floats]) -> ActionSums:
        """Return sums by group of some costs (n, 3), whose cases are those of the layers."""
        below, reviewed, above = self.by_group(sum(costs, np.zeros((self.rows.size, 3)))).T
        return ActionSums(below, reviewed, above, self.weight)

    def group_of_cases(self) -> Indices:
        """Return the group of each case."""
        return np.repeat(np.arange(self.n_groups), np.diff(np.append(self.starts, self.rows.size)))

    def threshold(self, cut: int) -> float:
        """Return the threshold midway between the keys on both sides of a cut."""
        if cut <= self.n_abstained:
            return self.lowest
        if cut == self.n_groups:
            return inf
        below, above = float(self.high[cut - 1]), float(self.low[cut])
        middle = below + (above - below) / 2.0
        return middle if below < middle <= above else above

    def closest_thresholds(self, lowers: Indices, uppers: Indices) -> tuple[Floats, Floats]:
        """Return thresholds that automate the groups outside of such cuts and no key beside them.

        Nobody has seen what lies between these groups and the next, where a limit of errors may not
        hold. If all groups are on one side, so are all keys.
        """
        highest = np.append(self.lowest, np.nextafter(self.high, inf))
        lowest = np.append(self.low, inf)
        highest[: self.n_abstained + 1] = lowest[: self.n_abstained + 1] = self.lowest
        highest[-1] = inf
        return highest[lowers], lowest[uppers]

    def translated(self, allowed: AllowedCuts, table: SortedCases) -> AllowedCuts:
        """Return cuts of another table of such keys as cuts of this one."""

        def cuts(lowers: Indices, uppers: Indices) -> tuple[Indices, Indices]:
            highest, lowest = table.closest_thresholds(lowers, uppers)
            return np.searchsorted(self.high, highest), np.searchsorted(self.low, lowest)

        (lower,), (upper,) = cuts(*(np.array([bound]) for bound in allowed[:2]))
        pairs = None if allowed.pairs is None else cuts(*allowed.pairs)
        return self.allowed.within(int(lower), int(upper))._replace(pairs=pairs)

    def cuts_above(self, prices: Floats, values: Floats, is_low: Mask) -> tuple[Indices, Indices]:
        """Return the cuts that automate the groups whose value is above each of some prices.

        `values`, by case, fall along the cases that are low, which are the first, and rise along
        the others.
        """
        first, starts = self.n_abstained, self.starts[self.n_abstained :]
        # A group is automated when all of its cases are.
        by_group = np.minimum.reduceat(values, starts) if starts.size else np.zeros(0)
        n_low = int(np.count_nonzero(np.minimum.reduceat(is_low, starts))) if starts.size else 0
        lowers = np.searchsorted(-by_group[:n_low], -prices)
        uppers = first + n_low + np.searchsorted(by_group[n_low:], prices, side="right")
        return np.where(lowers > 0, first + lowers, 0), uppers
