"""Scores that fall where positives rise: all cases are treated alike, and a warning says why."""

import numpy as np
import pytest

from fragility import best_policy


@pytest.fixture(scope="module")
def falling():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return (rng.random(400) < 0.1 - 0.05 * p).astype(int), p


@pytest.mark.parametrize("how", [{}, {"rule": "expected_cost"}, {"criterion": "fragility"}])
@pytest.mark.parametrize(
    ("costs", "pair"),
    [
        ({"error_cost": [[0, 1], [5, 0]]}, (np.inf, np.inf)),  # few positives: negative
        ({"error_cost": [[0, 1], [50, 0]], "review_cost": 0.5}, (0.0, np.inf)),
        ({"error_cost": [[0, 1], [50, 0]], "review_cost": 5}, (0.0, 0.0)),
    ],
)
def test_all_cases_are_treated_alike(falling, how, costs, pair):
    with pytest.warns(UserWarning, match="scores of the other class"):
        found = best_policy(*falling, **costs, **how)
    assert (found.lower, found.upper) == pair
    assert found.cost <= min(found.cost_review_all, found.cost_without_review) + 1e-12


@pytest.mark.parametrize("how", [{"rule": "tuned"}, {"rule": "confidence"}, {"capacity": 0.2}])
def test_other_rules_are_warned_of_too(falling, how):
    with pytest.warns(UserWarning, match="scores of the other class"):
        found = best_policy(*falling, error_cost=[[0, 1], [5, 0]], **how)
    assert found.automation_rate > 0.9
