"""Blocks of the isotonic regression, against SciPy's and against the formula of its values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from fragility.calibration.pooling import pooled_blocks


def blocks_of_scipy(values, weights):
    fitted = isotonic_regression(values, weights=weights).x
    return np.cumsum(np.diff(fitted, prepend=fitted[0]) > 1e-12)


def least_of_largest_means(values, weights):
    """min over ends of max over starts of the mean between, which isotonic regression is."""
    n = len(values)

    def mean(a, b):
        total = sum(weights[k] * values[k] for k in range(a, b + 1))
        return total / sum(weights[a : b + 1])

    return np.array(
        [min(max(mean(a, b) for a in range(k + 1)) for b in range(k, n)) for k in range(n)]
    )


def drawn(kind, n, rng):
    values = {
        "noise": lambda: rng.random(n),
        "rising": lambda: np.sort(rng.random(n)),
        "falling": lambda: -np.sort(rng.random(n)),
        "frequencies": lambda: rng.integers(0, 3, n) / 2.0,
        "of cases": lambda: (rng.random(n) < np.linspace(0.0, 1.0, n)).astype(float),
        "one low at the end": lambda: np.append(np.arange(n - 1.0), -1e9),
        "one high at the start": lambda: np.append(1e9, np.arange(n - 1.0)),
        "equal": lambda: np.full(n, 0.3),
        "waves": lambda: np.sin(np.arange(n) / 7.0) + np.arange(n) / n,
    }
    return values[kind]()


KINDS = (
    "noise",
    "rising",
    "falling",
    "frequencies",
    "of cases",
    "one low at the end",
    "one high at the start",
    "equal",
    "waves",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_are_those_of_scipy(kind, n, weighted):
    rng = np.random.default_rng(n)
    values = drawn(kind, n, rng)
    weights = rng.integers(1, 9, n) / 4.0 if weighted else np.ones(n)
    found = pooled_blocks(values, weights)
    np.testing.assert_array_equal(found, blocks_of_scipy(values, weights))


@pytest.mark.parametrize("kind", KINDS)
def test_means_of_blocks_are_the_isotonic_regression(kind):
    rng = np.random.default_rng(5)
    values, weights = drawn(kind, 12, rng), rng.random(12) + 0.1
    blocks = pooled_blocks(values, weights)
    means = np.bincount(blocks, weights * values) / np.bincount(blocks, weights)
    np.testing.assert_allclose(means[blocks], least_of_largest_means(values, weights), rtol=1e-9)
    assert (np.diff(means) > 0.0).all()


def test_a_value_that_undoes_all_others_takes_no_round_for_each():
    """Rounds would pool one at a time, and a million times a million is a day."""
    n = 200_000
    values = np.append(np.arange(n - 1.0), -1e12)
    assert pooled_blocks(values, np.ones(n)).max() == 0
