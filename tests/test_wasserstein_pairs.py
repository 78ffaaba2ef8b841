"""Wasserstein indices of pairs of several classes: transport of features in the plane."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import expit, softmax

from fragility import wasserstein_fragility_index, wasserstein_pair_bound, wasserstein_pair_index
from fragility.exceptions import AbsentClassWarning

from .reference.transport import worst_case_points_lp


def model(seed, n=12, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angles = 2 * np.pi * np.arange(classes) / classes
    centres = np.c_[np.cos(angles), np.sin(angles)]
    coef = 1.5 * centres + rng.normal(scale=0.4, size=(classes, 2))
    intercept = rng.normal(scale=0.2, size=classes)
    X = centres[y] + rng.normal(scale=0.8, size=(n, 2))
    norms = np.linalg.norm(coef[:, None] - coef, axis=2)
    return X, y, coef, intercept, norms


def ways(X, directions, steps=401):
    """The samples, and points on lines from them to either side."""
    steps = np.linspace(-4, 4, steps)[:, None, None]
    return np.concatenate([X, *((X + steps * d).reshape(-1, 2) for d in directions)])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "pair"), [(0, (0, 1)), (1, (2, 1))])
def test_the_score_of_a_pair_against_transport(seed, pair):
    X, y, coef, intercept, norms = model(seed, n=9)
    i, j = pair
    k = wasserstein_pair_index(y, X @ coef.T + intercept, pair_norms=norms, target=0.05)[pair]
    w, b = coef[i] - coef[j], intercept[i] - intercept[j]
    towards = w / np.linalg.norm(w)
    aside = np.array([-towards[1], towards[0]])
    points = np.concatenate([ways(X, [towards], 1201), ways(X, [aside, towards + aside], 41)])
    worst = worst_case_points_lp(lambda x: expit(x @ w + b), X, y, pair, k, points)
    assert worst == pytest.approx(0.05, abs=1e-5)
    assert worst <= 0.05 + 1e-9
    assert worst_case_points_lp(lambda x: expit(x @ w + b), X, y, pair, 0.9 * k, points) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_two_classes_alone(seed):
    X, y, coef, intercept, norms = model(seed, n=40, classes=4)
    weights = np.random.default_rng(seed).exponential(size=40)
    u = X @ coef.T + intercept
    for cost in (math.inf, 2.0):
        table = wasserstein_pair_index(
            y, u, pair_norms=norms, target=0.1, label_cost=cost, sample_weight=weights
        )
        assert np.isnan(np.diagonal(table)).all()
        np.testing.assert_allclose(table, table.T, rtol=1e-9)
        rows = np.isin(y, (1, 3))
        alone = wasserstein_fragility_index(
            y[rows] == 1,
            (u[:, 1] - u[:, 3])[rows],
            weight_norm=norms[1, 3],
            target=0.1,
            label_cost=cost,
            sample_weight=weights[rows],
        )
        assert table[1, 3] == pytest.approx(alone, rel=1e-12)
        if cost == math.inf:
            finite = np.isfinite(table)
            assert (table <= norms / 2)[finite].all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_shift_of_a_softmax_exceeds_the_bound(seed):
    """The worst case on a grid of the plane never misses the target at the bound."""
    X, y, coef, intercept, norms = model(seed, n=9)
    axis = np.linspace(-6, 6, 61)
    grid = np.array([[a, b] for a in axis for b in axis])
    differences = [coef[i] - coef[j] for i, j in permutations(range(3), 2) if i < j]
    points = np.concatenate([grid, ways(X, [d / np.linalg.norm(d) for d in differences])])
    bound = wasserstein_pair_bound(y, X @ coef.T + intercept, pair_norms=norms, target=0.05)
    own = softmax(X @ coef.T + intercept, axis=1)
    for i, j in permutations(range(3), 2):
        mean = own[y == j, i].mean() - own[y == i, i].mean()
        assert (bound[i, j] == math.inf) == (mean > 0.05)
        if mean > 0.05:
            continue

        def proba(x, i=i):
            return softmax(x @ coef.T + intercept, axis=1)[:, i]

        def worst(k, i=i, j=j, proba=proba):
            p = proba(points)
            total = 0.0
            for code, sign in ((j, 1.0), (i, -1.0)):
                way = np.linalg.norm(X[y == code][:, None] - points, axis=2)
                total += (sign * p - k / 2 * way).max(axis=1).mean()
            return total

        assert worst(bound[i, j]) <= 0.05 + 1e-12
        assert worst(0.6 * bound[i, j]) > 0.05  # the bound is not far from the index
        assert bound[i, j] <= norms[i].max() / 2 + 1e-12


def test_the_bound_is_exact_where_one_other_class_counts():
    """A third class that is never likely: the softmax is the logistic score of the other two."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    z = rng.normal(1.5 * (y == 0) - 0.7, 1.0)
    u = np.c_[z, np.zeros(30), np.full(30, -60.0)]
    norms = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5], [1.0, 0.5, 0.0]])
    bound = wasserstein_pair_bound(y, u, pair_norms=norms, target=0.1)
    index = wasserstein_pair_index(y, u, pair_norms=norms, target=0.1)
    assert bound[0, 1] == pytest.approx(index[0, 1], rel=1e-12)


def test_absent_classes_and_names():
    X, y, coef, intercept, norms = model(0)
    u = X @ coef.T + intercept
    names = np.array(["a", "b", "c"])[y]
    with pytest.warns(AbsentClassWarning, match="'c'"):
        table = wasserstein_pair_index(
            names[y < 2], u[y < 2], pair_norms=norms, labels=["a", "b", "c"]
        )
    full = wasserstein_pair_index(names, u, pair_norms=norms)
    assert table[0, 1] == full[0, 1]
    assert np.isnan(table[2]).all()


def test_bad_input():
    X, y, coef, _, norms = model(0)
    u = X @ coef.T
    with pytest.raises(ValueError, match=r"pair_norms has shape \(2, 2\); give \(3, 3\)"):
        wasserstein_pair_index(y, u, pair_norms=np.ones((2, 2)))
    for wrong in (norms + 1, -norms, np.triu(norms), np.where(norms > 0, np.inf, 0)):
        with pytest.raises(ValueError, match="pair_norms must be finite, zero on the diagonal"):
            wasserstein_pair_bound(y, u, pair_norms=wrong)
    with pytest.raises(ValueError, match="pair_norms is zero for 0, 1, whose logits differ"):
        wasserstein_pair_index(y, u, pair_norms=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="Pairs are for three classes or more"):
        wasserstein_pair_index(y[y < 2], u[y < 2, :2], pair_norms=norms[:2, :2])
    with pytest.raises(ValueError, match="several classes: wasserstein_pair_index"):
        wasserstein_fragility_index(y, u, weight_norm=1.0)
