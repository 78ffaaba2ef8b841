r"""How fragile the cost of a policy is, and the policy whose cost is least fragile.

The fragility of a cost is the smallest k with :math:`E_P[\mathrm{cost}] \le b + k\,
\mathrm{KL}(P, \hat P)` for every mix P of cases: how fast a shift can raise the mean cost past the
bound b. Here b lies a little above the least mean cost: :math:`b = \mathrm{best} +
\mathrm{slack} (\mathrm{full\ review} - \mathrm{best})`.

For a given k, minimising :math:`E\,e^{\mathrm{cost}/k}` is the search for the cheapest cuts with
exponentials of the costs. Policy iteration raises 1/k: the root of a policy, the best policy there,
its root, and so on.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._typing import Floats, Interval
from ..index.inference import highest_accepted, lowest_accepted
from ..index.root import inverse, solve
from ..moments import order_one_factor
from ..scores.atoms import PointSample
from .choosing import Allowed, Part, cheapest_allowed
from .two_thresholds import Cuts, GroupCosts

#: Exponents beyond this are cut off: nobody chooses them.
_LARGEST_EXPONENT = 600.0
#: Rounds of policy iteration; two or three are usual.
_MOST_ROUNDS = 50
#: Costs that exceed the bound by less, relative to it, do so by rounding.
_ROUNDING = 1e-12


class FragileCost(NamedTuple):
    """Fragility of the mean cost of a policy.

    Attributes
    ----------
    fragility : float
        Smallest k with E_P[cost] ≤ bound + k KL(P, P̂); ∞ if the mean cost itself is above the
        bound.
    interval : Interval
    bound : float
    """

    fragility: float
    interval: Interval
    bound: float


def cost_bound(part: Part, blend: float, slack: float, allowed: Allowed, capacity: float) -> float:
    """Mean cost of the cheapest policy that is allowed, plus some of what full review adds."""
    groups = part.groups(blend)
    cuts = cheapest_allowed(groups, allowed, capacity)
    best = total_cost(groups, cuts)
    full = float(groups.reviewed.sum())
    return (best + slack * max(full - best, 0.0)) / float(groups.weight.sum())


def total_cost(groups: GroupCosts, cuts: Cuts) -> float:
    """Cost of all cases at these cuts."""
    left, right = groups.parts()
    return float(left[cuts.lower] + right[cuts.upper])


def least_fragile(
    part: Part, blend: float, bound: float, allowed: Allowed, capacity: float = inf
) -> Cuts:
    """Cuts of the least fragile cost, of those that are allowed."""
    cuts = cheapest_allowed(part.groups(blend), allowed, capacity)
    s = _root(part, blend, cuts, bound)
    if s == inf:
        return cuts
    firm = _cheapest_below(part, blend, bound, allowed, capacity, cuts)
    if s == 0.0 or _root(part, blend, firm, bound) == inf:
        return firm
    for _ in range(_MOST_ROUNDS):
        found = cheapest_allowed(_tilted(part, blend, s), allowed, capacity)
        better = _root(part, blend, found, bound)
        if not better > s * (1.0 + 1e-12):
            break
        cuts, s = found, better
    return cuts


def fragility_of(
    part: Part, blend: float, cuts: Cuts, bound: float, confidence: float
) -> FragileCost:
    """How fragile the cost at these cuts is, with an interval.

    The upper limit allows for one more case of the dearest cost.
    """
    values, weights = _costs_at(part, blend, cuts)
    dearest = max(float(costs.max()) for _, costs in part.layers(blend))
    factor = order_one_factor(max(dearest, 1e-300))
    # Each unit of weight is that of one case, on average.
    unit = float(part.weight.sum()) / part.n_cases
    group = PointSample(values * factor, weights / unit, weights / unit)
    target = bound * factor
    z = float(-ndtri((1.0 - confidence) / 2.0))
    k = low = 0.0
    if _exceeds(float(values.max()), bound):
        k = inverse(solve([group], target)) / factor
        low = lowest_accepted([group], target, z)[0] / factor
    high = highest_accepted([group.with_value(dearest * factor)], target, z)[0] / factor
    return FragileCost(k, Interval(low, high), bound)


def _costs_at(part: Part, blend: float, cuts: Cuts) -> tuple[Floats, Floats]:
    """Distinct costs of cases at these cuts, with their weights."""
    decided = part.decided(cuts)
    values, weights = [], []
    for weight, costs in part.layers(blend):
        rows = np.broadcast_to(costs, (3, weight.size))
        values.append(rows[decided, np.arange(weight.size)])
        weights.append(weight)
    joined, masses = np.concatenate(values), np.concatenate(weights)
    held = masses > 0.0
    distinct, origin = np.unique(joined[held], return_inverse=True)
    return distinct, np.bincount(origin, masses[held]).astype(np.float64)


def _root(part: Part, blend: float, cuts: Cuts, bound: float) -> float:
    """One over the fragility: 0 for an infinite one, ∞ for zero."""
    values, weights = _costs_at(part, blend, cuts)
    if not _exceeds(float(values.max()), bound):
        return inf
    factor = order_one_factor(max(float(values.max()), 1e-300))
    return solve([PointSample(values * factor, weights, weights)], bound * factor) * factor


def _exceeds(costs: Any, bound: float) -> Any:
    """Whether costs are above the bound, by more than rounding."""
    return costs > bound * (1.0 + _ROUNDING)


def _tilted(part: Part, blend: float, s: float) -> GroupCosts:
    """Exponentials of the costs by place, relative to the dearest review."""
    layers = list(part.layers(blend))
    top = max(float(costs[1].max()) for _, costs in layers)
    totals = sum(
        weight * np.exp(np.minimum(s * (costs - top), _LARGEST_EXPONENT))
        for weight, costs in layers
    )
    return _groups(part, np.asarray(totals))


def _groups(part: Part, totals: Floats) -> GroupCosts:
    negative, reviewed, positive = part.by_place(totals)
    return GroupCosts(negative, reviewed, positive, part.weight)


def _cheapest_below(
    part: Part, blend: float, bound: float, allowed: Allowed, capacity: float, cuts: Cuts
) -> Cuts:
    """The cheapest cuts at which no case costs more than the bound: their fragility is 0."""
    far = 1e6 * max(bound, 1e-300)
    totals = sum(
        weight * np.where(_exceeds(costs, bound), costs + far, costs)
        for weight, costs in part.layers(blend)
    )
    found = cheapest_allowed(_groups(part, np.asarray(totals)), allowed, capacity)
    return found if _root(part, blend, found, bound) == inf else cuts
