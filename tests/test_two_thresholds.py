"""The cheapest two thresholds against all pairs of cuts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fragility.deferral.two_thresholds import Box, GroupCosts, cheapest_cuts


def all_pairs(groups, capacity, highest_lower, lowest_upper):
    """Every pair of cuts, one by one: cost, reviews, lower cut; the best is the least of these."""
    n = len(groups.weight)
    scale = max(groups.negative.sum(), groups.reviewed.sum(), groups.positive.sum())
    found = []
    for i in range(n + 1):
        for j in range(i, n + 1):
            reviews = groups.weight[i:j].sum()
            if i > highest_lower or j < lowest_upper or reviews > capacity + 1e-9:
                continue
            parts = groups.negative[:i], groups.reviewed[i:j], groups.positive[j:]
            found.append((sum(part.sum() for part in parts), reviews, i, j))
    if not found:
        return None
    least = min(found)[0]
    tied = [entry for entry in found if entry[0] <= least + 1e-11 * scale]
    return min(tied, key=lambda entry: (round(entry[1], 9), entry[2])), least


def cost_of(groups, cuts):
    """Cost of a pair of cuts, summed group by group."""
    lower, upper = cuts[:2]
    parts = groups.negative[:lower], groups.reviewed[lower:upper], groups.positive[upper:]
    return sum(part.sum() for part in parts)


@pytest.mark.parametrize("seed", range(300))
def test_equals_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    sick = rng.integers(0, 4, n).astype(float)
    healthy = rng.integers(0, 4, n) + (sick == 0.0)  # no group is empty
    if seed % 3 == 0:  # weights, and costs that never tie
        sick, healthy = sick * rng.random(n), healthy * rng.random(n)
    miss, alarm, review = rng.choice([0.0, 0.5, 1.0, 3.0, 10.0], 3)
    groups = GroupCosts(
        miss * sick + 0.1 * healthy, review * (sick + healthy), alarm * healthy, sick + healthy
    )
    total = groups.weight.sum()
    capacity = np.inf if seed % 2 else float(rng.choice([0.0, 0.1, 0.3, 1.0])) * total
    highest, lowest = n, 0
    if seed % 5 == 0:
        highest, lowest = sorted(rng.integers(0, n + 1, 2).tolist())
    found = cheapest_cuts(groups, capacity, Box(highest, lowest))
    expected = all_pairs(groups, capacity, highest, lowest)
    if expected is None:
        assert not found.within_capacity
        assert found[:2] == (highest, lowest)
        return
    (_, reviews, lower, upper), least = expected
    assert found.within_capacity
    assert cost_of(groups, found) == pytest.approx(least, abs=1e-9)
    assert groups.weight[found.lower : found.upper].sum() == pytest.approx(reviews, abs=1e-9)
    assert found.lower == lower
    assert groups.weight[min(upper, found.upper) : max(upper, found.upper)].sum() == 0


def test_cost_does_not_rise_with_capacity():
    rng = np.random.default_rng(1)
    n = 3_000
    sick = (rng.random(n) < np.linspace(0, 1, n)).astype(float)
    groups = GroupCosts(5 * sick, np.full(n, 0.4), 1 - sick, np.ones(n))
    costs = [cost_of(groups, cheapest_cuts(groups, share * n)) for share in np.linspace(0, 1, 12)]
    assert all(b <= a + 1e-9 for a, b in pairwise(costs))
    assert costs[-1] == pytest.approx(cost_of(groups, cheapest_cuts(groups)))
