"""The least fragile cost against all pairs of thresholds, each with a root by bisection."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from fragility.policies.choose import PolicySearch
from fragility.policies.costs import Costs, action_costs
from fragility.policies.guarantee import Limits

from ..reference.policies import fragility
from .test_choose import two_classes


def pairs_of(cases, costs):
    """Costs of all cases at each pair of thresholds, with the reviews."""
    score = cases.scores["m"]
    paid = action_costs(cases, costs, "m")
    ends = [*np.unique(score), inf]
    for lower in ends:
        for upper in ends:
            if lower <= upper:
                decided = np.where(score < lower, 0, np.where(score >= upper, 1, 2))
                yield (lower, upper), paid[np.arange(cases.n), decided]


@pytest.mark.parametrize("seed", range(12))
def test_no_pair_of_thresholds_is_less_fragile(seed):
    weight = np.random.default_rng(seed).integers(1, 4, 40).astype(float) if seed % 2 else None
    cases = two_classes(seed, digits=1, weight=weight)
    costs = Costs([[0, 1], [float(seed % 3 + 2), 0]], review=0.3, reviewer_error=0.05)
    tolerance = 0.3
    policy = PolicySearch(
        cases, "m", costs, rule="tuned", criterion="fragility", cost_tolerance=tolerance
    ).policy()
    pairs = dict(pairs_of(cases, costs))
    mean = {pair: np.average(paid, weights=cases.mass) for pair, paid in pairs.items()}
    full = np.average(action_costs(cases, costs, "m")[:, -1], weights=cases.mass)
    best = min(mean.values())
    bound = best + tolerance * max(full - best, 0.0)
    assert policy.fragility.bound == pytest.approx(bound)
    mass = cases.mass.tolist()
    k = {pair: fragility(paid.tolist(), mass, bound) for pair, paid in pairs.items()}
    score = cases.scores["m"]
    decided = np.where(score < policy.lower, 0, np.where(score >= policy.upper, 1, 2))
    paid = action_costs(cases, costs, "m")[np.arange(cases.n), decided]
    chosen = fragility(paid.tolist(), mass, bound)
    assert chosen == pytest.approx(min(k.values()), rel=1e-9)
    assert policy.fragility.fragility == pytest.approx(chosen, rel=1e-9)
    low, high = policy.fragility.interval
    assert low <= policy.fragility.fragility <= high


@pytest.mark.parametrize("seed", range(4))
def test_cuts_at_which_no_case_exceeds_the_bound_have_no_fragility(seed):
    """Deciding all positive costs at most .5, within the bound, but it is not the cheapest."""
    cases = two_classes(seed, n=80, digits=1)
    costs = Costs([[0, 0.5], [1.2, 0]], review=0.9)
    options = {"rule": "tuned", "cost_tolerance": 0.8}
    cheapest = PolicySearch(cases, "m", costs, **options).policy()
    policy = PolicySearch(cases, "m", costs, criterion="fragility", **options).policy()
    assert cheapest.fragility.fragility > 0.0
    assert policy.fragility.fragility == 0.0
    bound = policy.fragility.bound
    means = [paid.mean() for _, paid in pairs_of(cases, costs) if paid.max() <= bound]
    paid = dict(pairs_of(cases, costs))
    score = np.append(np.unique(cases.scores["m"]), inf)
    pair = tuple(score[np.searchsorted(score, cut)] for cut in (policy.lower, policy.upper))
    assert paid[pair].mean() == pytest.approx(min(means))


def test_no_tolerance_makes_the_cheapest_cost_infinitely_fragile():
    policy = PolicySearch(
        two_classes(1), "m", Costs(3, review=0.4), criterion="fragility", cost_tolerance=0.0
    ).policy()
    assert policy.fragility.fragility == inf


def test_the_least_fragile_policy_keeps_the_capacity():
    limits = Limits(capacity=0.1)
    policy = PolicySearch(
        two_classes(1, n=200), "m", Costs(5, review=0.1), criterion="fragility", limits=limits
    ).policy()
    assert policy.automation_rate >= 0.9
    assert policy.within_capacity
