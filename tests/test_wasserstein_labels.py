"""The Wasserstein index where labels move, against transport from its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from fragility import wasserstein_fragility_index

from .reference.transport import worst_case_relabelled, worst_case_relabelled_lp


def problem(seed, n=6, share=0.5):
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < share).astype(int)
    y[:2] = 0, 1
    return y, rng.normal(1.2 * (2 * y - 1), 1.3), rng.exponential(size=n) + 0.1


def index(y, z, weights=None, *, norm=0.9, cost=math.inf, target=0.0):
    return wasserstein_fragility_index(
        y, z, weight_norm=norm, label_cost=cost, target=target, sample_weight=weights
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "cost", "target"), [(0, 3.0, 0.1), (1, 1.0, 0.0)])
def test_against_a_transport_program(seed, cost, target):
    """At the index the worst case of a linear program over all shifts meets the target."""
    y, z, weights = problem(seed, n=4)
    k = index(y, z, weights, cost=cost, target=target)
    assert k > 1.02 * index(y, z, weights, target=target)
    grid = np.unique(np.r_[np.arange(-5.0, 5.0, 0.02), z])
    worst = worst_case_relabelled_lp(z, y, weights, k, 0.9, cost, grid)
    assert worst == pytest.approx(target, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_against_every_relabelling(seed):
    rng = np.random.default_rng(seed)
    y, z, weights = problem(10 + seed, share=(0.5, 0.2)[seed % 2])
    mean = np.average(expit(z)[y == 0], weights=weights[y == 0])
    mean -= np.average(expit(z)[y == 1], weights=weights[y == 1])
    target, cost = float(mean + rng.uniform(0.02, 0.6)), float(10 ** rng.uniform(-1, 1.2))
    k = index(y, z, weights, cost=cost, target=target)
    # The reference splits samples in steps of 1/200: it may miss a little of the worst case.
    worst = worst_case_relabelled(z, y, weights, k, 0.9, cost)
    assert target - 1e-5 <= worst <= target + 1e-9
    assert worst_case_relabelled(z, y, weights, 0.999 * k, 0.9, cost) > target


def test_no_labels_move_at_a_high_cost():
    y, z, weights = problem(0, n=60)
    fixed = index(y, z, weights)
    assert index(y, z, weights, cost=1e9) == fixed
    assert index(y, z, weights, cost=100.0) == fixed
    assert index(y, z, weights, cost=2.0) > fixed


def test_the_pattern_of_costs():
    """Grows from the index without moves of labels like one over their cost, as they get cheap."""
    y, z, _ = problem(3, n=300)
    fixed, *values = (index(y, z, cost=c) for c in (math.inf, 5.0, 1.0, 0.2, 1e-6))
    assert (np.diff([fixed, *values]) > 0).all()
    assert values[2] == pytest.approx(5 * values[1], rel=1e-9)  # features stay, labels pay
    assert values[3] == pytest.approx(1e6 * values[1], rel=1e-9)
    assert fixed < values[0] < values[1] / 3


@pytest.mark.parametrize("cost", [0.3, 2.0, 8.0])
def test_no_relabelling_misses_the_target(cost):
    """Random parts of random samples, and every cut of the scores, just above the index."""
    y, z, weights = problem(5, n=80, share=0.3)
    weights /= weights.sum()
    k = index(y, z, weights, cost=cost)
    grid = np.arange(-12, 12, 0.01)
    price = k / 1.8
    reached = [
        np.maximum((expit(grid) - price * np.abs(grid - s * z[:, None])).max(axis=1), expit(s * z))
        for s in (-1, 1)
    ]
    up = reached[0] - 1 - k / 2 * cost * (y != 1)
    down = reached[1] - k / 2 * cost * (y != 0)
    rng = np.random.default_rng(0)
    parts = [y * (1 - s) + s * rng.uniform(size=80) for s in np.linspace(0.0, 1.0, 500)]
    cuts = np.r_[-math.inf, z]
    parts += [np.where(y == 1, z <= a, z <= b) for a in cuts for b in cuts]
    r = weights * np.array(parts, float)
    inside = r.sum(axis=1)
    r = r[(inside > 0) & (inside < 1 - 1e-12)]
    values = r @ up / r.sum(axis=1) + (weights - r) @ down / (weights - r).sum(axis=1)
    assert values.max() == pytest.approx(0.0, abs=1e-5)  # moves are found on a grid
    assert values.max() <= 1e-9


@pytest.mark.parametrize("cost", [0.2, 2.0, 6.0])
def test_invariances(cost):
    y, z, weights = problem(7, n=40, share=0.3)
    value = index(y, z, weights, cost=cost, target=0.1)
    # The classes swapped, with negated scores.
    assert index(1 - y, -z, weights, cost=cost, target=0.1) == pytest.approx(value, rel=1e-11)
    # Features in other units: a label costs as many of them more.
    scaled = index(y, z, weights, norm=0.9 / 7, cost=7 * cost, target=0.1)
    assert 7 * scaled == pytest.approx(value, rel=1e-11)
    order = np.random.default_rng(0).permutation(40)
    again = index(y[order], z[order], 1e200 * weights[order], cost=cost, target=0.1)
    assert again == pytest.approx(value, rel=1e-11)


def test_zero_weights_and_repetition():
    y, z, _ = problem(8, n=12)
    times = np.array([1, 2, 0, 1, 3, 1, 0, 2, 1, 4, 1, 1])
    repeated = index(np.repeat(y, times), np.repeat(z, times), cost=2.0)
    assert index(y, z, times, cost=2.0) == pytest.approx(repeated, rel=1e-11)


@pytest.mark.slow
def test_falls_with_the_target():
    y, z, _ = problem(9, n=50)
    mean = expit(z)[y == 0].mean() - expit(z)[y == 1].mean()
    values = [index(y, z, cost=2.0, target=t) for t in np.linspace(mean + 1e-6, 0.999, 12)]
    assert (np.diff(values) < 0).all()


def test_cases():
    y, z, _ = problem(0, n=30)
    mean = expit(z)[y == 0].mean() - expit(z)[y == 1].mean()
    assert index(y, z, cost=1.0, target=1.0) == 0.0
    assert index(y, z, cost=1.0, target=mean - 1e-9) == math.inf
    # At the target, and just above it: finite, if labels are worth something.
    at, near = index(y, z, cost=1.0, target=mean), index(y, z, cost=1.0, target=mean + 1e-9)
    assert near <= at * (1 + 1e-6) < math.inf
    assert at <= near * 1.05
    assert index([0, 0, 1], [0.3, 0.3, 0.3], norm=0.0, cost=1.0) == 0.0
    tiny = index(y, z, cost=1.0, target=1 - 1e-9)
    assert index(y, z, target=1 - 1e-9) <= tiny < 1e-8
    # A single sample of a class: it cannot be left empty, but it may be joined by others.
    lone = index([0, 0, 0, 1], [-1.0, -2.0, 0.5, 3.0], cost=0.5)
    assert index([0, 0, 0, 1], [-1.0, -2.0, 0.5, 3.0]) < lone < math.inf


def test_a_rare_class_is_emptied_cheaply():
    """Two of a hundred are positives; the better one becomes a negative, at 1/99 of their mean.

    The target is what that adds to the mean error less the price of the label, k / 2 / 99, at a
    price where features stay.
    """
    y, z = np.r_[np.zeros(98, int), 1, 1], np.r_[np.full(98, -2.0), -1.0, 4.0]
    k = 40.0
    target = (98 * expit(-2.0) + expit(4.0)) / 99 - expit(-1.0) - k / 2 / 99
    assert target > expit(-2.0) - (expit(-1.0) + expit(4.0)) / 2  # met by the data
    assert index(y, z, norm=1.0, cost=1.0, target=float(target)) == pytest.approx(k, rel=1e-9)


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, True, "1"])
def test_bad_costs(cost):
    with pytest.raises(ValueError, match="label_cost must be a positive number or inf"):
        index([0, 1], [0.0, 1.0], cost=cost)


@pytest.mark.slow
def test_long_input():
    y, z, _ = problem(2, n=500)
    many = index(np.tile(y, 400), np.tile(z, 400), cost=2.0)
    assert many == pytest.approx(index(y, z, cost=2.0), rel=1e-10)


def test_weights_that_rounding_cannot_tell_apart_are_refused():
    y, z, weights = problem(0, n=20)
    weights[3] = 1e-9
    with pytest.raises(ValueError, match="may differ by a factor of 1e\\+08"):
        index(y, z, weights, cost=1.0)
    assert math.isfinite(index(y, z, weights))  # labels stay
    weights[3] = 0.0
    left_out = np.arange(20) != 3
    own = index(y, z, weights, cost=1.0)
    assert own == pytest.approx(index(y[left_out], z[left_out], weights[left_out], cost=1.0))
