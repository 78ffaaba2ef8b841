"""Objective and Newton's method: derivatives, optimality, agreement with scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fragility.losses import CrossEntropy, SmoothedHinge
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.solvers.newton import minimise


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
    point = np.random.default_rng(1).normal(size=objective.ridge.size)
    gradient, hessian = objective.gradient(point), objective.hessian(point)
    for k, unit in enumerate(np.eye(point.size)):
        step = 1e-6 * unit
        slope = (objective.value(point + step) - objective.value(point - step)) / 2e-6
        bend = (objective.gradient(point + step) - objective.gradient(point - step)) / 2e-6
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
    found = minimise(objective, np.zeros(objective.ridge.size), tol=1e-14, max_iter=50)
    assert found.converged
    assert found.iterations <= 12
    # scikit-learn sums the loss and halves the penalty.
    reference = LogisticRegression(
        C=1 / (2 * alpha * weights.sum()), fit_intercept=fit_intercept, tol=1e-12, max_iter=5000
    ).fit(X, y, sample_weight=weights)
    coef, intercept = rows.in_user_units(*objective.split(found.parameters))
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
    assert found.value <= objective.value(theirs) + 1e-12


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge(0.5)], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_minimum_has_no_slope(loss, n_classes):
    X, y, weights = problem(n_classes, seed=3)
    rows = training_rows(X, y, n_classes, weights)
    for alpha in (0.0, 1e-2):
        objective = Objective(rows, loss, alpha)
        found = minimise(objective, np.zeros(objective.ridge.size), tol=1e-13, max_iter=100)
        assert found.converged
        assert np.abs(objective.gradient(found.parameters)).max() < 1e-6


def test_least_norm_where_the_minimiser_is_not_unique():
    X, y, _ = problem()
    rows = training_rows(np.c_[X, X[:, :1]], y, 2)  # a column twice
    objective = Objective(rows, CrossEntropy())
    coef, _ = objective.split(
        minimise(objective, np.zeros(objective.ridge.size), tol=1e-14, max_iter=50).parameters
    )
    assert coef[0, 0] == pytest.approx(coef[0, -1], rel=1e-6)
    several = training_rows(*problem(3)[:2], 3)
    objective = Objective(several, CrossEntropy())
    coef, intercept = objective.split(
        minimise(objective, np.zeros(objective.ridge.size), tol=1e-14, max_iter=50).parameters
    )
    assert coef.sum(axis=0) == pytest.approx(0.0, abs=1e-6)
    assert intercept.sum() == pytest.approx(0.0, abs=1e-6)


def test_too_few_iterations_are_said():
    X, y, _ = problem()
    objective = Objective(training_rows(X, y, 2), CrossEntropy())
    found = minimise(objective, np.zeros(objective.ridge.size), tol=1e-14, max_iter=1)
    assert not found.converged
    assert found.iterations == 1
