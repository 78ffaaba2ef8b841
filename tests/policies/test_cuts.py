"""The cheapest cuts against all pairs of cuts, one by one, in whole numbers."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from fragility.policies.cuts import ActionSums, AllowedCuts, cheapest_cuts

from ..reference.policies import best_cuts


def sums_of(rng, n):
    """Small whole numbers, so that costs tie and floating point is exact."""
    weight = rng.integers(1, 4, n)
    below, above = rng.integers(0, 6, n) * weight, rng.integers(0, 6, n) * weight
    return ActionSums(
        *(c.astype(float) for c in (below, rng.integers(0, 4) * weight, above, weight))
    )


@pytest.mark.parametrize("seed", range(200))
def test_cuts_are_the_cheapest_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    sums = sums_of(rng, n)
    capacity = None if seed % 3 == 0 else int(rng.integers(0, 2 * n))
    bounds = (n, 0) if seed % 2 else (int(rng.integers(0, n + 1)), int(rng.integers(0, n + 1)))
    pairs = {(i, j) for i in range(n + 1) for j in range(i, n + 1)}
    allowed = AllowedCuts(*bounds)
    if seed % 5 == 0:
        chosen = sorted(pairs)[:: int(rng.integers(1, 4))]
        pairs = {*chosen}
        allowed = allowed._replace(pairs=tuple(np.array(chosen).T))
    pairs = {(i, j) for i, j in pairs if i <= bounds[0] and j >= bounds[1]}
    if seed % 5 == 0:
        pairs.add((0, n))
    groups = [column.astype(int).tolist() for column in sums]
    best = best_cuts(*groups, capacity, pairs)
    cuts = cheapest_cuts(sums, allowed, inf if capacity is None else capacity)
    if best is None:
        fewest = min((sum(groups[3][i:j]), i, j) for i, j in pairs)
        assert not cuts.within_capacity
        assert sum(groups[3][cuts.lower : cuts.upper]) == fewest[0]
        return
    cost, ((_, lower, upper), *_) = best
    assert cuts == (lower, upper, True)
    assert sums.cost(cuts) == cost


def test_cost_does_not_rise_with_capacity():
    rng = np.random.default_rng(1)
    n = 3_000
    sick = (rng.random(n) < np.linspace(0, 1, n)).astype(float)
    sums = ActionSums(5 * sick, np.full(n, 0.4), 1 - sick, np.ones(n))
    allowed = AllowedCuts(n, 0)
    capacities = np.linspace(0, 1, 12) * n
    costs = [sums.cost(cheapest_cuts(sums, allowed, capacity)) for capacity in capacities]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(costs))
    assert costs[-1] == pytest.approx(sums.cost(cheapest_cuts(sums, allowed)))
    assert costs[0] > costs[-1]
