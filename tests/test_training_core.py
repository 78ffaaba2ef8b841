"""Objective and Newton's method: derivatives, optimality, agreement with scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fragility.losses import CrossEntropy, SmoothedHinge
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.solvers import kl
from fragility.solvers.newton import minimise

from .reference.pairs import bisected_index


def problem(n_classes=2, n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d) + rng.normal(size=d)
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, n_classes))
    y = (logits + rng.gumbel(size=(n, n_classes)) * 1.5).argmax(axis=1)
    return X, y, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge()], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_derivatives(loss, n_classes, fit_intercept, as_given):
    X, y, weights = problem(n_classes)
    rows = training_rows(as_given(X), y, n_classes, weights, fit_intercept=fit_intercept)
    objective = Objective(rows, loss, alpha=0.01)
    point = np.random.default_rng(1).normal(size=objective.size)
    here = objective.at(point)
    gradient, hessian = here.gradient, here.hessian
    for k, unit in enumerate(np.eye(point.size)):
        step = 1e-6 * unit
        ahead, behind = objective.at(point + step), objective.at(point - step)
        slope = (ahead.value - behind.value) / 2e-6
        bend = (ahead.gradient - behind.gradient) / 2e-6
        scale = 1 + abs(gradient[k]) + np.abs(hessian[k]).max()
        assert gradient[k] == pytest.approx(slope, abs=1e-7 * scale)
        assert hessian[k] == pytest.approx(bend, abs=1e-5 * scale)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression(n_classes, fit_intercept):
    X, y, weights = problem(n_classes)
    alpha = 1e-3
    rows = training_rows(X, y, n_classes, weights, fit_intercept=fit_intercept)
    objective = Objective(rows, CrossEntropy(), alpha)
    found = minimise(objective.at, np.zeros(objective.size), tol=1e-14, max_iter=50)
    assert found.converged
    assert found.iterations <= 12
    # scikit-learn sums the loss and halves the penalty.
    reference = LogisticRegression(
        C=1 / (2 * alpha * weights.sum()), fit_intercept=fit_intercept, tol=1e-12, max_iter=5000
    ).fit(X, y, sample_weight=weights)
    coef, intercept = rows.in_user_units(*objective.split(found.point.parameters))
    scores = X @ coef.T + intercept
    expected = reference.decision_function(X).reshape(scores.shape)
    assert scores - scores.mean(axis=1, keepdims=True) * (n_classes > 2) == pytest.approx(
        expected - expected.mean(axis=1, keepdims=True) * (n_classes > 2), abs=2e-4
    )
    here = np.concatenate([(reference.coef_ * rows.scale).T, reference.intercept_[None]])
    theirs = (here if fit_intercept else here[:-1]).T.ravel()
    if fit_intercept:
        table = theirs.reshape(objective.n_outputs, -1)
        table[:, -1] += reference.coef_ @ rows.centre
        theirs = table.ravel()
    assert found.point.value <= objective.at(theirs).value + 1e-12


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge(0.5)], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_minimum_has_no_slope(loss, n_classes):
    X, y, weights = problem(n_classes, seed=3)
    rows = training_rows(X, y, n_classes, weights)
    for alpha in (0.0, 1e-2):
        objective = Objective(rows, loss, alpha)
        found = minimise(objective.at, np.zeros(objective.size), tol=1e-13, max_iter=100)
        assert found.converged
        assert np.abs(found.point.gradient).max() < 1e-6


def test_least_norm_where_the_minimiser_is_not_unique():
    X, y, _ = problem()
    rows = training_rows(np.c_[X, X[:, :1]], y, 2)  # a column twice
    objective = Objective(rows, CrossEntropy())
    coef, _ = objective.split(
        minimise(objective.at, np.zeros(objective.size), tol=1e-14, max_iter=50).point.parameters
    )
    assert coef[0, 0] == pytest.approx(coef[0, -1], rel=1e-6)
    several = training_rows(*problem(3)[:2], 3)
    objective = Objective(several, CrossEntropy())
    coef, intercept = objective.split(
        minimise(objective.at, np.zeros(objective.size), tol=1e-14, max_iter=50).point.parameters
    )
    assert coef.sum(axis=0) == pytest.approx(0.0, abs=1e-6)
    assert intercept.sum() == pytest.approx(0.0, abs=1e-6)


def test_too_few_iterations_are_said():
    X, y, _ = problem()
    objective = Objective(training_rows(X, y, 2), CrossEntropy())
    found = minimise(objective.at, np.zeros(objective.size), tol=1e-14, max_iter=1)
    assert not found.converged
    assert found.iterations == 1


def fragility_of(objective, parameters, target):
    """k of a model, by bisection on its losses."""
    return bisected_index(
        objective.at(parameters).losses,
        target - objective.penalty(parameters),
        objective.rows.weights,
    )


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge()], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
class TestKL:
    def solved(self, loss, n_classes, alpha, slack=0.2):
        X, y, weights = problem(n_classes, seed=5)
        objective = Objective(training_rows(X, y, n_classes, weights), loss, alpha)
        start = np.zeros(objective.size)
        erm = minimise(objective.at, start, tol=1e-12, max_iter=100)
        target = erm.point.value + slack * (objective.at(start).value - erm.point.value)
        found = kl.satisfice(objective, target, erm.point.parameters, tol=1e-10, max_iter=100)
        return objective, target, erm, found

    def test_no_model_nearby_is_less_fragile(self, loss, n_classes, alpha):
        objective, target, erm, found = self.solved(loss, n_classes, alpha)
        assert found.converged
        assert found.iterations <= 15
        least = fragility_of(objective, found.point.parameters, target)
        assert found.k == pytest.approx(least, rel=1e-9)
        assert least < fragility_of(objective, erm.point.parameters, target)
        rng = np.random.default_rng(0)
        for size in (1e-3, 1e-2, 0.1, 1.0):
            for _ in range(10):
                other = found.point.parameters + size * rng.normal(size=found.point.parameters.size)
                assert fragility_of(objective, other, target) >= least * (1 - 1e-8)

    def test_stationary(self, loss, n_classes, alpha):
        objective, target, _, found = self.solved(loss, n_classes, alpha)
        k = found.k
        losses = found.point.losses
        tilted = objective.rows.weights * np.exp((losses - losses.max()) / k)
        tilted /= tilted.sum()
        # The identity of the certificate: E_q loss - k KL(q) + R = target.
        divergence = tilted @ np.log(tilted / objective.rows.weights)
        attained = tilted @ losses - k * divergence + objective.penalty(found.point.parameters)
        assert attained == pytest.approx(target, rel=1e-10)
        gradient = found.point.gradient_under(tilted)
        assert np.abs(gradient).max() < 1e-5

    def test_tilted_derivatives(self, loss, n_classes, alpha):
        objective, _, erm, _ = self.solved(loss, n_classes, alpha)
        k = 0.5

        def value(parameters):
            losses = objective.at(parameters).losses
            moment = objective.rows.weights @ np.exp(losses / k)
            return k * np.log(moment) + objective.penalty(parameters)

        def derivatives(parameters):
            tilted = objective.rows.weights * np.exp(objective.at(parameters).losses / k)
            here, tilted = objective.at(parameters), tilted / tilted.sum()
            mean = here.collected(tilted)
            return here.gradient_under(tilted), here.moment_hessian(tilted, mean, k)

        point = erm.point.parameters + 0.1
        gradient, hessian = derivatives(point)
        for i, unit in enumerate(np.eye(point.size)):
            step = 1e-6 * unit
            slope = (value(point + step) - value(point - step)) / 2e-6
            bend = (derivatives(point + step)[0] - derivatives(point - step)[0]) / 2e-6
            assert gradient[i] == pytest.approx(slope, abs=1e-6)
            assert hessian[i] == pytest.approx(bend, abs=1e-4)


def test_no_loss_above_the_target_is_no_fragility():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    objective = Objective(training_rows(X, np.array([0, 0, 1, 1]), 2), CrossEntropy())
    start = np.array([3.0, 0.0])
    found = kl.satisfice(objective, 0.3, start, tol=1e-9, max_iter=50)
    assert found.k == 0.0
    assert found.point.losses.max() <= 0.3
