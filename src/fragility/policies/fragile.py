r"""How fragile the cost of a policy is, and the policy whose cost is least fragile.

The fragility of a cost is the smallest k with :math:`E_P[\mathrm{cost}] \le b + k\,
\mathrm{KL}(P, \hat P)` for every mix P of cases: how fast a shift can raise the mean cost past the
bound b, which lies a little above the least mean cost.

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
from .cuts import AllowedCuts, Cuts, SortedCases, cheapest_cuts

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


def cost_bound(
    table: SortedCases, tolerance: float, allowed: AllowedCuts, capacity: float
) -> float:
    """Return the mean cost of the cheapest cuts, plus some of what full review costs beyond it."""
    sums = table.sums
    best = sums.cost(cheapest_cuts(sums, allowed, capacity))
    full = float(sums.reviewed.sum())
    return (best + tolerance * max(full - best, 0.0)) / float(table.mass.sum())


def least_fragile(
    table: SortedCases, bound: float, allowed: AllowedCuts, capacity: float = inf
) -> Cuts:
    """Return the cuts of the least fragile cost, of those that are allowed."""
    cuts = cheapest_cuts(table.sums, allowed, capacity)
    s = _root(table, cuts, bound)
    if s == inf:
        return cuts
    # 1) Cuts at which no case costs more than the bound: the cheapest of these have fragility 0.
    far = 1e6 * max(bound, 1e-300)
    firm = table.sums_of(
        layer.mass[:, np.newaxis] * (layer.costs + far * _exceeds(layer.costs, bound))
        for layer in table.layers()
    )
    firm_cuts = cheapest_cuts(firm, allowed, capacity)
    if _root(table, firm_cuts, bound) == inf:
        return firm_cuts
    if s == 0.0:
        return cuts
    # 2) Policy iteration, relative to the dearest review.
    dearest = max(float(layer.costs[:, 1].max()) for layer in table.layers())
    for _ in range(_MOST_ROUNDS):
        tilted = table.sums_of(
            layer.mass[:, np.newaxis]
            * np.exp(np.minimum(s * (layer.costs - dearest), _LARGEST_EXPONENT))
            for layer in table.layers()
        )
        better = cheapest_cuts(tilted, allowed, capacity)
        better_s = _root(table, better, bound)
        if not better_s > s * (1.0 + 1e-12):
            break
        cuts, s = better, better_s
    return cuts


def fragility_of(
    table: SortedCases, cuts: Cuts, bound: float, confidence_level: float
) -> FragileCost:
    """Return how fragile the cost at these cuts is, with an interval.

    The upper limit allows for one more case of the dearest cost.
    """
    values, mass = _costs_at(table, cuts)
    dearest = max(float(layer.costs.max()) for layer in table.layers())
    factor = order_one_factor(max(dearest, 1e-300))
    # Each unit of weight is that of one case, on average.
    weight = mass * (table.rows.size / float(table.mass.sum()))
    sample = PointSample(values * factor, weight, weight)
    target, z = bound * factor, float(-ndtri((1.0 - confidence_level) / 2.0))
    k = low = 0.0
    if _exceeds(values.max(), bound):
        k = inverse(solve([sample], target)) / factor
        low = lowest_accepted([sample], target, z)[0] / factor
    high = highest_accepted([sample.with_value(dearest * factor)], target, z)[0] / factor
    return FragileCost(k, Interval(low, high), bound)


def _costs_at(table: SortedCases, cuts: Cuts) -> tuple[Floats, Floats]:
    """Return the distinct costs of cases at these cuts, with their mass."""
    group = table.group_of_cases()
    action = np.where(group < cuts.lower, 0, np.where(group >= cuts.upper, 2, 1))
    rows = np.arange(action.size)
    layers = [(layer.costs[rows, action], layer.mass) for layer in table.layers()]
    costs, mass = (np.concatenate(columns) for columns in zip(*layers, strict=True))
    values, position = np.unique(costs[mass > 0.0], return_inverse=True)
    return values, np.bincount(position, mass[mass > 0.0]).astype(np.float64)


def _root(table: SortedCases, cuts: Cuts, bound: float) -> float:
    """Return one over the fragility: 0 for an infinite one, ∞ for zero."""
    values, mass = _costs_at(table, cuts)
    if not _exceeds(values.max(), bound):
        return inf
    factor = order_one_factor(max(float(values.max()), 1e-300))
    return solve([PointSample(values * factor, mass, mass)], bound * factor) * factor


def _exceeds(costs: Any, bound: float) -> Any:
    """Return whether costs are above the bound, by more than rounding."""
    return costs > bound * (1.0 + _ROUNDING)
