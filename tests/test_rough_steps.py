"""Cheap steps of the searches: estimated Hessians, roots nearby, shrunk starts."""

import numpy as np
import pytest
from scipy import sparse

from fragility import ERMClassifier, SatisficingClassifier
from fragility.losses import CrossEntropy, SmoothedHinge
from fragility.programs.gram import estimated_gram, weighted_gram
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.solvers import kl
from fragility.solvers.newton import minimise

from .reference.pairs import bisected_index


def problem(n=4_000, d=10, seed=0, deviation=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    scores = X @ rng.normal(size=d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-deviation * scores / scores.std()))).astype(int)


def objective_of(X, y, alpha=1e-3):
    return Objective(training_rows(X, y, 2), CrossEntropy(), alpha)


class TestEstimatedGram:
    def test_all_rows_alike_are_all_chosen(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        weights = np.full(300, 0.7)
        for with_one in (True, False):
            expected = weighted_gram(X, weights, with_one)
            lengths = np.full(300, 1.0 + with_one)
            for given in (X, sparse.csr_array(X)):
                found = estimated_gram(given, weights, lengths, with_one, 300)
                assert found.dtype == np.float64
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * expected.max())

    @pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
    def test_near_the_gram_in_every_direction(self, as_given):
        rng = np.random.default_rng(1)
        X = rng.standard_t(4, size=(20_000, 12))
        weights = rng.exponential(size=20_000) ** 2
        lengths = (X**2).sum(axis=1) + 1.0
        expected = weighted_gram(X, weights, True)
        found = estimated_gram(as_given(X), weights, lengths, True, 500)
        half = np.linalg.inv(np.linalg.cholesky(expected))
        ratios = np.linalg.eigvalsh(half @ found @ half.T)
        assert 0.4 < ratios.min() < ratios.max() < 2.0
        # Equal steps through the sum: the trace is met at once.
        assert np.trace(found) == pytest.approx(np.trace(expected), rel=1e-5)

    def test_a_feature_of_a_few_rows_is_seen(self):
        rng = np.random.default_rng(2)
        X = np.c_[rng.normal(size=(10_000, 3)), np.zeros(10_000)]
        X[[17, 4_000, 9_999], 3] = 1.0
        rows = training_rows(X, rng.integers(0, 2, 10_000), 2)
        weights = rows.weights
        lengths = rows.squared_lengths
        expected = weighted_gram(rows.X, weights, True)
        found = estimated_gram(rows.X, weights, lengths, True, 100)
        assert found[3, 3] == pytest.approx(expected[3, 3], rel=0.1)

    def test_no_weight_is_no_gram(self):
        found = estimated_gram(np.ones((50, 2)), np.zeros(50), np.full(50, 3.0), True, 10)
        assert found.tolist() == np.zeros((3, 3)).tolist()


class TestSearch:
    @pytest.mark.parametrize("deviation", [0.5, 2.0, 20.0])
    def test_rough_hessians_lead_to_the_same_minimum(self, deviation):
        objective = objective_of(*problem(deviation=deviation))
        start = objective.at(np.zeros(objective.size))
        assert start.rough_hessian is not None
        exact = minimise(objective.at, start, tol=1e-13, max_iter=50)
        rough = minimise(objective.at, start, tol=1e-13, max_iter=50, rough=True)
        assert rough.converged
        assert rough.point.value == pytest.approx(exact.point.value, rel=1e-12)
        np.testing.assert_allclose(rough.point.parameters, exact.point.parameters, atol=1e-5)

    @pytest.mark.parametrize("wrong", [0.0, 1e-8, 30.0])
    def test_wrong_ones_are_found_out(self, wrong):
        objective = objective_of(*problem(n=500))
        expected = minimise(objective.at, np.zeros(objective.size), tol=1e-12, max_iter=50)

        class Misled:
            def __init__(self, parameters):
                self._own = objective.at(parameters)

            def __getattr__(self, name):
                return getattr(self._own, name)

            @property
            def rough_hessian(self):
                return wrong * self._own.hessian

        found = minimise(Misled, np.zeros(objective.size), tol=1e-12, max_iter=200, rough=True)
        assert found.converged
        assert found.point.value == pytest.approx(expected.point.value, rel=1e-10)

    def test_few_rows_several_classes_and_jumps_have_exact_ones(self):
        X, y = problem(n=400)
        assert objective_of(X, y).at(np.zeros(11)).rough_hessian is None
        X, y = problem()
        several = Objective(training_rows(X, y + (X[:, 0] > 1), 3), CrossEntropy(), 1e-3)
        assert several.at(np.zeros(several.size)).rough_hessian is None
        rounded = Objective(training_rows(X, y, 2), SmoothedHinge(), 1e-3)
        start = rounded.at(np.zeros(rounded.size))
        found = minimise(rounded.at, start, tol=1e-12, max_iter=50, rough=True)
        np.testing.assert_allclose(found.curvature.hessian, found.point.hessian, rtol=1e-9)

    @pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
    def test_lowest_loss_and_fragility_do_not_depend_on_them(self, as_given, monkeypatch):
        X, y = problem()
        model = SatisficingClassifier(ambiguity="kl", penalty="l2", target_ratio=1.1)
        rough = model.fit(as_given(X), y)
        k, coef, loss = rough.fragility_, rough.coef_, rough.erm_loss_
        assert loss == pytest.approx(ERMClassifier().fit(X, y).loss_, rel=1e-9)
        monkeypatch.setattr("fragility.programs.objective._WORTH_IT", np.inf)
        exact = model.fit(as_given(X), y)
        assert k == pytest.approx(exact.fragility_, rel=1e-8)
        np.testing.assert_allclose(coef, exact.coef_, atol=1e-5)


class TestNearRoot:
    @pytest.mark.parametrize("room", [2e-3, 1e-2, 0.3, 0.9])
    @pytest.mark.parametrize("off", [0.2, 0.9, 1.0, 1.0 + 1e-9, 5.0])
    def test_against_bisection(self, room, off):
        rng = np.random.default_rng(0)
        losses = rng.exponential(size=1_000)
        weights = rng.exponential(size=1_000)
        weights /= weights.sum()
        mean = weights @ losses
        target = mean + room * (losses.max() - mean)
        expected = bisected_index(losses, target, weights)
        below, excess = losses - losses.max(), losses.max() - target
        found = kl.near_root(below, weights, excess, off / expected)
        assert found is None or found * expected == pytest.approx(1.0, rel=1e-11)
        assert found is not None or off in (0.2, 5.0)

    def test_no_root_is_none(self):
        losses = np.array([0.0, 1.0])
        weights = np.array([0.5, 0.5])
        for guess in (1e-6, 1e-3, 1.0, 30.0):  # the mean is above the target: only s = 0 is left
            assert kl.near_root(losses - 1.0, weights, 0.6, guess) is None
        for guess in (0.0, np.inf, np.nan):
            assert kl.near_root(losses - 1.0, weights, 0.1, guess) is None


class TestShrunk:
    @pytest.mark.parametrize("deviation", [0.7, 2.0, 6.0])
    @pytest.mark.parametrize("ratio", [1.001, 1.1, 1.5])
    def test_near_the_least_fragile_multiple(self, deviation, ratio):
        objective = objective_of(*problem(n=600, d=5, deviation=deviation))
        lowest = minimise(objective.at, np.zeros(objective.size), tol=1e-12, max_iter=50).point
        target = ratio * lowest.value

        def fragility(factor):
            there = objective.at(factor * lowest.parameters)
            return bisected_index(there.losses, target - there.penalty, objective.rows.weights)

        first = kl._Fragility(lowest, target)
        assert first.value == pytest.approx(fragility(1.0), rel=1e-10)
        slope = (fragility(1.0 + 1e-6) - fragility(1.0 - 1e-6)) / 2e-6
        assert first.radial == pytest.approx(slope, rel=1e-4, abs=1e-6)
        found = kl._shrunk(first)
        assert found.value <= first.value
        best = min(fragility(factor) for factor in np.linspace(0.02, 1.0, 99))
        assert found.value <= best + 0.02 * first.value
        there = objective.at(found.parameters)
        np.testing.assert_allclose(there.scores, found.losses_at.scores, atol=1e-12)

    def test_the_search_ends_where_it_ends_from_elsewhere(self):
        objective = objective_of(*problem(n=600, d=5))
        lowest = minimise(objective.at, np.zeros(objective.size), tol=1e-12, max_iter=50).point
        shrunk = kl.satisfice(objective, 1.2 * lowest.value, lowest, tol=1e-8, max_iter=50)
        curvature = kl._Fragility(lowest, 1.2 * lowest.value).model_hessian
        other = kl.satisfice(
            objective,
            1.2 * lowest.value,
            lowest.parameters + 0.01,
            tol=1e-8,
            max_iter=50,
            curvature=kl.Curvature(curvature),
        )
        assert shrunk.converged
        assert other.converged
        assert shrunk.k == pytest.approx(other.k, rel=1e-9)
        np.testing.assert_allclose(shrunk.point.parameters, other.point.parameters, atol=1e-4)


def test_scores_of_zero_may_meet_the_target_already():
    objective = objective_of(*problem(n=600, d=5, deviation=0.5))
    lowest = minimise(objective.at, np.zeros(objective.size), tol=1e-12, max_iter=50).point
    found = kl.satisfice(objective, 0.7, lowest, tol=1e-8, max_iter=50)
    assert (found.k, found.iterations, found.converged) == (0.0, 1, True)
    assert bisected_index(found.point.losses, 0.7, objective.rows.weights) == 0.0
    short = kl.satisfice(objective, 0.69, lowest, tol=1e-8, max_iter=50)
    assert short.k > 0.0
