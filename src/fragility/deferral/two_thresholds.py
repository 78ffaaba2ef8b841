r"""The cheapest two thresholds: negative below the lower one, positive from the upper one on.

Cases of equal score form a group; groups ascend. Two cuts :math:`i \le j` decide the groups before
`i` negative and those from `j` on positive, and send the groups between to review. With prefix sums
A of the cost of deciding negative, R of reviewing, and suffix sums B of deciding positive, the cuts
cost :math:`(A_i - R_i) + (R_j + B_j)`: two separate parts, joined by :math:`i \le j` and by the
capacity for reviews.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Indices
from ..ordered import running_totals

#: Costs that differ by less, relative to the largest total, are equal.
_TIE = 1e-12


class GroupCosts(NamedTuple):
    """What each group of equal scores costs under each of the three decisions, scores ascending."""

    negative: Floats
    reviewed: Floats
    positive: Floats
    weight: Floats

    def parts(self) -> tuple[Floats, Floats]:
        """What cuts `i` and `j` add to the cost, in two parts: the cost is the sum of both."""
        negative, reviewed = running_totals(self.negative), running_totals(self.reviewed)
        # Summed from the top, so that nothing is left at the last cut.
        positive = running_totals(self.positive[::-1])[::-1]
        return negative - reviewed, reviewed + positive

    @property
    def rounding(self) -> float:
        """Costs that differ by no more than this are equal."""
        totals = (self.negative.sum(), self.reviewed.sum(), self.positive.sum())
        return _TIE * float(max(totals))


class Box(NamedTuple):
    """The largest lower cut and the least upper cut that are allowed."""

    highest_lower: int
    lowest_upper: int

    def inside(self, other: Box) -> Box:
        """Cuts that both allow."""
        return Box(
            min(self.highest_lower, other.highest_lower), max(self.lowest_upper, other.lowest_upper)
        )


class Cuts(NamedTuple):
    """Groups before `lower` are decided negative, those from `upper` on positive; others reviewed.

    `within_capacity` is false if no cuts that are allowed need so few reviews. `fixed` cuts are
    those of given thresholds; others may be moved over groups without cases.
    """

    lower: int
    upper: int
    within_capacity: bool = True
    fixed: bool = False


def cheapest_cuts(groups: GroupCosts, capacity: float = inf, box: Box | None = None) -> Cuts:
    """The cheapest cuts; of equal ones those with the fewest reviews, then the lowest lower cut.

    `capacity` is the largest weight that can be reviewed. If no cuts in the box are within it, the
    cuts that the box ends with are returned: they need the fewest reviews.
    """
    n = groups.weight.size
    last, start = (n, 0) if box is None else box
    left, right = groups.parts()
    weight = running_totals(groups.weight)
    uppers = np.arange(start, n + 1)
    final = np.minimum(uppers, last)
    if capacity >= weight[-1]:  # every lower cut goes with every upper one above it
        least = np.minimum.accumulate(left)[final]
        first = np.zeros_like(final)
    else:
        # The least lower cut that the capacity allows, and the largest that goes with an upper one.
        first = np.searchsorted(weight, weight[uppers] - capacity - _TIE * weight[-1])
        possible = first <= final
        if not possible.any():
            return Cuts(last, start, False)
        uppers, first, final = uppers[possible], first[possible], final[possible]
        least = _range_minima(left, first, final)
    totals = least + right[uppers]
    limit = float(totals.min()) + groups.rounding
    tied = np.flatnonzero(totals <= limit)
    # For each of them the last lower cut that is cheap enough: it has the fewest reviews.
    lowers = _last_at_most(left, limit - right[uppers[tied]], first[tied], final[tied])
    place = np.lexsort((lowers, weight[uppers[tied]] - weight[lowers]))[0]
    return Cuts(int(lowers[place]), int(uppers[tied[place]]))


def cheapest_of(
    groups: GroupCosts, lowers: Indices, uppers: Indices, capacity: float = inf
) -> Cuts:
    """The cheapest of some pairs of cuts, ties as in `cheapest_cuts`.

    Groups without weight, of which nothing is known, are not sent to review for nothing. If no pair
    is within the capacity, it is the one with the fewest reviews.
    """
    left, right = groups.parts()
    weight = running_totals(groups.weight)
    reviews, cost = weight[uppers] - weight[lowers], left[lowers] + right[uppers]
    allowed = np.flatnonzero(reviews <= capacity + _TIE * weight[-1])
    if not allowed.size:
        place = int(np.lexsort((lowers, cost, reviews))[0])
        return Cuts(int(lowers[place]), int(uppers[place]), False)
    tied = allowed[cost[allowed] <= cost[allowed].min() + groups.rounding]
    between = uppers[tied] - lowers[tied]
    place = int(tied[np.lexsort((lowers[tied], between, reviews[tied]))[0]])
    return Cuts(int(lowers[place]), int(uppers[place]))


def _range_minima(values: Floats, first: Indices, final: Indices) -> Floats:
    """Minimum over each range of a sequence, both ends included.

    By the minima over 1, 2, 4, … neighbours, of which two cover every range.
    """
    size = np.frexp((final - first + 1).astype(np.float64))[1] - 1  # the whole log2
    least, level = np.empty(first.size), values
    for m in range(int(size.max()) + 1):
        if m:
            level = np.minimum(level[: -(1 << (m - 1))], level[1 << (m - 1) :])
        at = np.flatnonzero(size == m)
        least[at] = np.minimum(level[first[at]], level[final[at] + 1 - (1 << m)])
    return least


def _last_at_most(values: Floats, limits: Floats, first: Indices, final: Indices) -> Indices:
    """Last place of each range at which a sequence is at most the limit; there is one."""
    # Most often it is the last minimum so far, which all ranges that begin at 0 can share.
    records = np.flatnonzero(values <= np.minimum.accumulate(values))
    found = records[np.searchsorted(records, final, side="right") - 1]
    unknown = (found < first) | (values[found] > limits)
    for k in np.flatnonzero(unknown).tolist():
        found[k] = _last_below(values, float(limits[k]), int(first[k]), int(final[k]))
    return found


def _last_below(values: Floats, limit: float, first: int, final: int) -> int:
    """Last place from `first` to `final` with a value of at most the limit; there is one."""
    size = 64
    while True:  # most often it is near the end
        start = max(first, final + 1 - size)
        near = np.flatnonzero(values[start : final + 1] <= limit)
        if near.size:
            return start + int(near[-1])
        size *= 8
