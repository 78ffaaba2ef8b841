"""The Wasserstein index of a linear logistic score against transport from its definition."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from fragility import wasserstein_fragility_index

from .reference.transport import price_index, worst_case_errors_lp


def problem(seed, n0=7, n1=5):
    rng = np.random.default_rng(seed)
    return rng.normal(-1, 1.5, n0), rng.normal(1.2, 1.5, n1)


def index(negatives, positives, norm=1.0, target=0.0, weights=None):
    y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
    return wasserstein_fragility_index(
        y, np.r_[negatives, positives], weight_norm=norm, target=target, sample_weight=weights
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "target"), [(0, 0.0), (1, 0.3), (2, -0.1)])
def test_against_dense_search(seed, target):
    negatives, positives = problem(seed)
    weights = np.random.default_rng(seed).exponential(size=12)
    found = index(negatives, positives, 1.7, target, weights)
    expected = price_index(negatives, positives, 1.7, target, (weights[:7], weights[7:]))
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_against_a_transport_program():
    """At the index the worst case of a linear program over all shifts meets the target."""
    negatives, positives = problem(0, 4, 3)
    k = index(negatives, positives, norm=0.8, target=0.1)
    grid = np.unique(np.r_[np.linspace(-12, 12, 4001), negatives, positives])
    assert worst_case_errors_lp(negatives, positives, k, 0.8, grid) == pytest.approx(0.1, abs=1e-5)
    assert worst_case_errors_lp(negatives, positives, 0.9 * k, 0.8, grid) > 0.1 + 1e-3


def test_scales_with_the_norm_and_stays_below_half_of_it():
    for seed in range(20):
        negatives, positives = problem(seed)
        value = index(negatives, positives)
        if value < math.inf:
            assert value <= 0.5
            assert index(negatives, positives, norm=3.0) == pytest.approx(3 * value)


def test_falls_with_the_target_and_rises_with_the_errors():
    negatives, positives = problem(3)
    mean = expit(negatives).mean() - expit(positives).mean()
    values = [index(negatives, positives, target=t) for t in np.linspace(mean, 0.999, 40)]
    assert (np.diff(values) <= 1e-12).all()
    assert index(negatives + 0.1, positives) > index(negatives, positives)


@pytest.mark.parametrize("seed", range(5))
def test_mean_error_at_the_target_is_finite(seed):
    negatives, positives = problem(seed)
    mean = expit(negatives).mean() - expit(positives).mean()
    at = index(negatives, positives, target=mean)
    near = index(negatives, positives, target=mean + 1e-9)
    assert at < math.inf
    assert near <= at <= near * 1.05
    assert index(negatives, positives, target=mean - 1e-9) == math.inf


def test_tangent_next_to_zero_is_continuous():
    values = [index([-z], [z], target=expit(-z) - expit(z)) for z in (0.99e-3, 1.01e-3)]
    assert values[0] == pytest.approx(values[1], abs=1e-7)
    assert values[0] == pytest.approx(0.5, abs=1e-6)


def test_cases():
    negatives, positives = problem(0)
    assert index(negatives, positives, target=1.0) == 0.0
    assert index(negatives, positives, target=5.0) == 0.0
    assert index(-negatives, -positives) == math.inf
    assert index([0.3, 0.3], [0.3], norm=0.0) == 0.0  # a constant model does not react to shifts
    assert index([0.3, 0.3], [0.3], norm=0.0, target=-0.1) == math.inf
    # Confident and right: the cheapest harm is a long move.
    far = index(np.full(3, -50.0), np.full(3, 50.0))
    assert far == pytest.approx(price_index([-50.0] * 3, [50.0] * 3, 1.0), abs=1e-4)
    assert index([-1e4], [1e4]) < 1e-3
    tiny = index(negatives, positives, target=1 - 1e-9)
    assert 0 < tiny < 1e-8


def test_zero_weights_and_repetition():
    negatives, positives = problem(1)
    weights = np.r_[1, 2, 0, 1, 3, 1, 0, 2, 1, 0, 1, 1]
    repeated = index(np.repeat(negatives, weights[:7]), np.repeat(positives, weights[7:]))
    assert index(negatives, positives, weights=weights) == pytest.approx(repeated, rel=1e-12)


def test_long_input_in_blocks():
    negatives, positives = problem(2)
    many = index(np.tile(negatives, 40_000), np.tile(positives, 40_000))
    assert many == pytest.approx(index(negatives, positives), rel=1e-12)


@pytest.mark.parametrize("digits", [3, 6, 9, 12, 14])
def test_targets_next_to_one_lose_no_digits(digits):
    """Bisection in fifty digits on the same two samples."""
    negatives, positives, target = [-1.0, 0.5], [1.0, 2.5], 1.0 - 10.0**-digits
    with mpmath.workdps(50):

        def sigma(z):
            return 1 / (1 + mpmath.exp(-z))

        def violation(price):
            root = mpmath.sqrt(1 - 4 * price)
            reach = mpmath.log((1 + root) / (1 - root))
            moved = [sigma(reach) - price * (reach - z) for z in (-1.0, 0.5, -1.0, -2.5)]
            stay = [sigma(mpmath.mpf(z)) for z in (-1.0, 0.5, -1.0, -2.5)]
            best = [max(m, s) for m, s in zip(moved, stay, strict=True)]
            return sum(best) / 2 - 1 - mpmath.mpf(target)

        low, high = mpmath.mpf(10) ** -30, mpmath.mpf("0.2499")
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (low, middle) if violation(middle) <= 0 else (middle, high)
        expected = float(2 * low)
    assert index(negatives, positives, target=target) == pytest.approx(expected, rel=1e-12)
