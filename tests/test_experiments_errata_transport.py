"""Statements about transport, robust programs and several classes: by other means, able to fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from experiments import errata_bounds as bounds
from experiments import errata_programs as programs
from fragility import SatisficingClassifier, Wasserstein

SEED = 5
SETS = {"box": programs.BOX, "triangle": programs.TRIANGLE}


@pytest.mark.parametrize("support", SETS.values(), ids=SETS)
def test_corners_are_where_a_linear_function_less_a_way_is_largest(support):
    rng = np.random.default_rng(0)
    axes = np.linspace(0.5, 1.2, 281), np.linspace(-0.3, 0.4, 281)
    grid = np.array([[a, b] for a in axes[0] for b in axes[1]])
    grid = grid[support.holds(grid)]
    for x in programs.sample(support, SEED).X[:6]:
        corners = support.corners(x)
        assert support.holds(corners).all()
        for _ in range(10):
            w, k = rng.normal(size=2), rng.uniform(0, 1.5)
            values = [p @ w - k * np.abs(p - x).sum(axis=1) for p in (corners, grid)]
            best = max(values[0].max(), x @ w)
            assert best >= values[1].max() - 1e-9
            assert best <= values[1].max() + 0.02  # the grid is dense


@pytest.mark.slow
@pytest.mark.parametrize("cost", [math.inf, 4.0, 1.0])
@pytest.mark.parametrize("support", SETS.values(), ids=SETS)
def test_the_exact_k_by_a_search_over_models(support, cost):
    """No model does with less; its losses are convex, so that a local search finds the best."""
    data = programs.sample(support, SEED)
    found = programs.exact_k(support, data, cost, 0.6)
    corners = [np.vstack([support.corners(x), x]) for x in data.X]

    def missed(w, k):
        total = 0.0
        for x, y, points in zip(*data, corners, strict=True):
            way = np.abs(points - x).sum(axis=1)
            own = np.maximum(1 - y * points @ w, 0) - k * way
            other = np.maximum(1 + y * points @ w, 0) - k * way - (k * cost if k else 0.0)
            total += max(own.max(), other.max() if cost < math.inf else -math.inf)
        return total / len(data.y) - 0.6

    def least(k):
        return minimize(missed, np.ones(2), args=(k,), method="Nelder-Mead", tol=1e-9).fun

    assert least(found) == pytest.approx(0.0, abs=1e-6)
    assert least(0.95 * found) > 1e-4


def test_a_wide_support_leaves_the_k_of_no_support():
    wide = programs.Support(programs.BOX.normals, np.full(4, 50.0))
    data = programs.sample(programs.BOX, SEED)
    model = SatisficingClassifier(
        "hinge", ambiguity=Wasserstein(norm=1), target=0.6, fit_intercept=False
    ).fit(data.X, data.y)
    for found in (
        programs.exact_k(wide, data, math.inf, 0.6),
        programs.program_k(wide, data, math.inf, 0.6, by_label=True),
        # As printed the multipliers undo the support once labels move, at whatever cost.
        programs.program_k(programs.BOX, data, 1e3, 0.6, by_label=False),
    ):
        assert found == pytest.approx(model.fragility_, rel=1e-6)
    assert programs.exact_k(programs.BOX, data, 1e3, 0.6) < 0.9 * model.fragility_


@pytest.mark.slow
def test_cross_entropy_in_a_box():
    """Below the k without a support; no model found by a local search does with less."""
    data = programs.boxed(SEED)
    lower, upper = programs.cross_entropy_bounds(data, 0.6)
    assert 0 < lower <= upper <= lower * (1 + 1e-6)
    free = SatisficingClassifier(
        ambiguity=Wasserstein(norm=1), target=0.6, fit_intercept=False
    ).fit(data.X, data.y)
    assert upper < 0.9 * free.fragility_
    ways = [programs.every_point(x) for x in data.X]

    def worst(w, k):
        losses = [
            (np.log1p(np.exp(-y * p @ w)) - k * np.abs(p - x).sum(axis=1)).max()
            for p, x, y in zip(ways, *data, strict=True)
        ]
        return np.mean(losses)

    least = minimize(worst, free.coef_[0], args=(upper,), method="Nelder-Mead", tol=1e-8).fun
    assert least == pytest.approx(0.6, abs=1e-4)
    assert minimize(worst, free.coef_[0], args=(0.95 * upper,), method="Nelder-Mead").fun > 0.6


def test_few_points_of_the_wrong_order_fail(monkeypatch):
    assert programs.unsolved_by_few_points(SEED) == 0
    right = programs.few_points
    monkeypatch.setattr(programs, "few_points", lambda x, label, w: right(x, label, 1 / w))
    assert programs.unsolved_by_few_points(SEED) > 0


def test_dual_values_of_supports():
    for z in ([3.0, 4.0], [0.1, 0.0]):
        z = np.array(z)
        found = programs.dual_support_value(z, inside=True)
        assert found == pytest.approx(np.linalg.norm(z), rel=1e-5)
    assert programs.dual_support_value(np.array([0.0, 1.0]), inside=False) == math.inf
    assert programs.dual_support_value(np.array([-1e-3, 1.0]), inside=False) == 0.0


@pytest.mark.slow
def test_lower_bounds_are_of_the_robust_loss():
    """KL without the library's robust fit: k r + k ln E exp(ℓ/k), minimised over all models."""
    X, y = bounds.drawn(SEED)
    sign, Z = 2 * y - 1, np.c_[X, np.ones(len(y))]

    def worst(v):
        k = math.exp(v[-1])
        losses = np.logaddexp(0, -sign * (Z @ v[:-1]))
        return k * 0.1 + k * math.log(np.mean(np.exp(losses / k)))

    least = minimize(worst, np.zeros(5), tol=1e-12).fun
    found = bounds.worst_loss(X, y, 0.1, **bounds.SETTINGS["KL, cross-entropy"])
    assert found == pytest.approx(least, abs=1e-7)


@pytest.mark.slow
def test_a_smaller_k_star_breaks_the_lower_bound(monkeypatch):
    class Modest(SatisficingClassifier):
        @property
        def fragility_(self):
            return 0.99 * self.__dict__["fragility_"]

        @fragility_.setter
        def fragility_(self, value):
            self.__dict__["fragility_"] = value

    monkeypatch.setattr(bounds, "SatisficingClassifier", Modest)
    found = bounds.lower_bounds.__wrapped__(SEED, "Wasserstein, cross-entropy")
    assert found.best > 1.005


def test_pairs_that_break_a_bound_are_found(monkeypatch):
    assert bounds.pairs_broken(SEED, 3)[:2] == (0, 0)
    monkeypatch.setattr(bounds, "pair_index", lambda *case: 1e9)
    right = bounds.most_gained
    monkeypatch.setattr(bounds, "most_gained", lambda *case: right(*case[:-1], 0.2))
    broken = bounds.pairs_broken(SEED, 3)
    assert broken.kl == broken.pairs == 6 + 12 + 20
    assert broken.transport > 0


def test_moves_that_pay():
    X, y = bounds.drawn(SEED)
    y = np.where(X[:, 1] > 0.8, 2, y)
    model = LogisticRegression().fit(X, y)
    assert bounds.most_gained(X, y, model, (0, 1), 0.5) == 0.0
    assert bounds.most_gained(X, y, model, (0, 1), 0.3) > 1e-3


def test_lipschitz_constants_that_are_too_small_fail(monkeypatch):
    for norm, (dual, omega) in bounds.NORMS.items():
        assert bounds.understated(SEED, norm) == 0
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "NORMS", {norm: (dual, 0.6 * omega)})
            assert bounds.understated(SEED, norm) > 0


def test_slopes_of_the_regression_loss():
    assert bounds.steepest_of_regression(SEED) == pytest.approx(1.0, abs=1e-7)
    assert 0.9 < bounds.label_slope(SEED) <= 1.0
    assert bounds.label_rise((1.0, 1.0)) == 0.0
    assert bounds.label_rise((1.0, 3.0)) == pytest.approx(2.0)
    assert 0.5 < bounds.spectral_midpoint_excess(SEED) <= 1.0
