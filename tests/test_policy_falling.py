"""Scores that fall where positives rise: what is decided then, and whether the warning is true."""

import numpy as np
import pytest

from fragility import best_policy


@pytest.fixture(scope="module")
def falling():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return (rng.random(400) < 0.1 - 0.05 * p).astype(int), p


@pytest.mark.parametrize("how", [{}, {"rule": "expected_cost"}, {"criterion": "fragility"}])
def test_humans_decide(falling, how):
    with pytest.warns(UserWarning, match="humans decide"):
        found = best_policy(*falling, error_cost=[[0, 1], [5, 0]], **how)
    assert found.automation_rate == 0.0


@pytest.mark.parametrize("how", [{"rule": "tuned"}, {"rule": "confidence"}, {"capacity": 0.2}])
def test_no_warning_says_that_humans_decide_what_the_model_does(falling, how):
    with pytest.warns(UserWarning, match="scores of the other class") as warned:
        found = best_policy(*falling, error_cost=[[0, 1], [5, 0]], **how)
    assert found.automation_rate > 0.9
    assert not any("humans decide" in text for text in (*found.notes, str(warned[0].message)))
