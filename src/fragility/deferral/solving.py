"""A policy for some cases: chosen on all of them, measured on those that did not choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from .._typing import Floats
from ..ordered import running_totals
from .choosing import (
    Allowed,
    Part,
    Problem,
    blend_of,
    cheapest,
    most_reviews,
)
from .guarantees import Certified, Guarantee, certify
from .held_out import ClusterCosts, HeldOut, Outcomes
from .least_fragile import FragileCost, cost_bound, fragility_of, least_fragile
from .paired_costs import CostSums
from .settings import PolicySettings
from .two_thresholds import Box, Cuts


@dataclass(frozen=True, eq=False)
class Solved:
    """A policy as cuts, and what it does.

    Attributes
    ----------
    cuts : Cuts
        Chosen on all cases.
    guarantees : tuple of Guarantee
    held_out : HeldOut
        What policies chosen in the same way do on cases that did not choose them.
    mix : ndarray of shape (3, K)
        Decisions on these cases, by kind.
    without_review : HeldOut
        The same for the best policy without reviews.
    bare_mix : ndarray of shape (3, K)
        Decisions of that policy, by kind.
    full_review : HeldOut
        The same if humans decide every case.
    against_no_review, against_full_review : CostSums
        What cases cost more under the policy than under these.
    automation_rate : float
        Share of all cases that the cuts automate.
    fragile : FragileCost
    n_independent : float
        Cases, or clusters of them.
    """

    cuts: Cuts
    guarantees: tuple[Guarantee, ...]
    allowed: Allowed
    held_out: HeldOut
    mix: Floats
    without_review: HeldOut
    bare_mix: Floats
    full_review: HeldOut
    against_no_review: CostSums
    against_full_review: CostSums
    automation_rate: float
    fragile: FragileCost
    n_independent: float


def solve(
    problem: Problem,
    settings: PolicySettings,
    capacity: float,
    *,
    confidence: float = 0.95,
    certified: Certified | None = None,
    clusters: ClusterCosts | None = None,
) -> Solved:
    """Choose a policy and measure it.

    `certified` are cuts that were found to keep the limits in another way than by counting.
    """
    whole = problem.whole
    found = certify(whole, settings.limits) if certified is None else certified
    cuts = choose(whole, settings, capacity, found.allowed)
    mix = held_out_mix(problem, settings, capacity, certified)
    outcomes = problem.outcomes
    bare = _paid(problem, lambda part: cheapest(part, settings.rule, 0.0))
    everyone = np.zeros(mix.shape)
    everyone[1] = 1.0
    weight = running_totals(whole.weight)
    reviewed = float(weight[cuts.upper] - weight[cuts.lower])
    blend = blend_of(settings.rule, whole.n_cases)
    most = most_reviews(whole, capacity)
    bound = cost_bound(whole, blend, settings.slack, found.allowed, most)
    return Solved(
        cuts,
        found.guarantees,
        found.allowed,
        HeldOut.of(outcomes, mix, clusters),
        mix,
        HeldOut.of(outcomes, bare, clusters),
        bare,
        HeldOut.of(outcomes, everyone, clusters),
        _against(outcomes, mix, bare, clusters),
        _against(outcomes, mix, everyone, clusters),
        1.0 - reviewed / float(weight[-1]),
        fragility_of(whole, blend, cuts, bound, confidence),
        whole.n_cases if clusters is None else float(clusters.cluster.max() + 1),
    )


def _against(
    outcomes: Outcomes, mix: Floats, other: Floats, clusters: ClusterCosts | None
) -> CostSums:
    if clusters is None:
        return outcomes.sums_against(mix, other)
    return clusters.sums_against(outcomes, mix, other)


def choose(part: Part, settings: PolicySettings, capacity: float, allowed: Allowed) -> Cuts:
    """The policy that some cases choose."""
    if settings.criterion == "cost" or part.falling:
        return cheapest(part, settings.rule, capacity, allowed)
    blend, most = blend_of(settings.rule, part.n_cases), most_reviews(part, capacity)
    bound = cost_bound(part, blend, settings.slack, allowed, most)
    return least_fragile(part, blend, bound, allowed, most)


def held_out_mix(
    problem: Problem,
    settings: PolicySettings,
    capacity: float,
    certified: Certified | None = None,
) -> Floats:
    """Decisions on every kind of cases, at policies that others chose, by shares (3, K)."""
    whole = problem.whole

    def by_others(part: Part) -> Cuts:
        if certified is not None:
            allowed = part.translated(certified.allowed, whole)
        else:
            allowed = certify(part, settings.limits, whole.n_cases / part.n_cases).allowed
        return choose(part, settings, capacity, allowed)

    return _paid(problem, by_others)


def _paid(problem: Problem, choice: Callable[[Part], Cuts]) -> Floats:
    """Decisions on every kind of cases, at cuts that others chose."""
    total: Floats | None = None
    for part, pay in problem.parts():
        paid = pay(choice(part))
        total = paid if total is None else total + paid
    assert total is not None
    return total


def equally_cheap(
    part: Part, cuts: Cuts, confidence: float, box: Box, capacity: float
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Lower cuts, and upper cuts, that these cases do not show to be dearer than the chosen ones.

    Each is moved alone, or both together where nothing is reviewed, within the box and the
    capacity: the first and the last cut whose difference in cost is within its error.
    """
    z = float(-ndtri((1.0 - confidence) / 2.0))
    scale = part.n_cases / float(part.weight.sum())
    layers, rounding = list(part.layers(0.0)), part.groups(0.0).rounding
    reviews, most = running_totals(part.weight), most_reviews(part, capacity)

    def alike(
        at: int, first: int, last: int, one: int, other: int, fixed: int | None
    ) -> tuple[int, int]:
        """Cuts like the one at a place, if moving it up decides cases one way and not the other."""
        gain = sum(part.by_place(weight * (costs[one] - costs[other])) for weight, costs in layers)
        squares = sum(
            part.by_place(weight * (costs[one] - costs[other]) ** 2) for weight, costs in layers
        )
        totals, errors = (running_totals(np.asarray(part)) for part in (gain, squares))
        dearer = totals - totals[at]
        same = dearer <= z * np.sqrt(np.abs(errors - errors[at]) / scale) + rounding
        if fixed is not None:
            same &= np.abs(reviews - reviews[fixed]) <= most + rounding
        same[at] = True
        places = np.flatnonzero(same[first : last + 1]) + first
        return int(places[0]), int(places[-1])

    if cuts.lower == cuts.upper and box.highest_lower == part.n_places and box.lowest_upper == 0:
        both = alike(cuts.lower, 0, part.n_places, 0, 2, None)
        return both, both
    lowers = alike(cuts.lower, 0, min(cuts.upper, box.highest_lower), 0, 1, cuts.upper)
    first = max(cuts.lower, box.lowest_upper)
    return lowers, alike(cuts.upper, first, part.n_places, 1, 2, cuts.lower)
