"""The training programs from their definitions, solved as cone programs by Clarabel.

Two classes have one row of coefficients, that of the second class, and R = alpha Σ w²; more have
one row each and R = alpha times the sum of all squares. The intercept is in no norm and not in R.
A loss is a function of gaps g_c = u_c - u_y to the wrong classes (n rows, C - 1 columns).
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

DUAL = {1: "inf", 2: 2, np.inf: 1}


class Reference(NamedTuple):
    """A solved program; `value` is the least k, the least loss or the least sum of squares."""

    value: float
    coef: np.ndarray
    intercept: np.ndarray
    status: str

    @property
    def k(self):
        return self.value


def cross_entropy(gaps):
    """log(Σ_c exp(u_c) / exp(u_y)), with exp(0) for the true class itself."""
    n, wrong = gaps.shape
    if wrong == 1:
        return cp.logistic(gaps[:, 0])
    return cp.log_sum_exp(cp.hstack([np.zeros((n, 1)), gaps]), axis=1)


def smoothed_hinge(gaps, smoothing=1.0):
    """The maximum over shares a of wrong classes of Σ a_c z_c - γ/2 Σ a_c², z = 1 + g.

    With a price t >= 0 for the constraint Σ a_c <= 1 each share is chosen by itself,
    max_a a (z - t) - γ/2 a² = (z - t)₊² / 2γ, so the loss is min_t t + Σ_c (z_c - t)₊² / 2γ:
    t is one more variable of the program.
    """
    n, wrong = gaps.shape
    price = cp.Variable((n, 1), nonneg=True)
    beyond = cp.pos(1 + gaps - price @ np.ones((1, wrong)))
    return price[:, 0] + cp.sum(cp.square(beyond), axis=1) / (2 * smoothing)


LOSSES = {"cross_entropy": cross_entropy, "smoothed_hinge": smoothed_hinge}


class Model(NamedTuple):
    """Variables of a linear model and what follows from them."""

    coef: Any
    intercept: Any
    losses: Any
    penalty: Any
    mean_loss: Any
    shares: np.ndarray
    gauge: list


def linear_model(
    X, y, n_classes, loss, *, alpha=0.0, fit_intercept=True, weights=None, n_rows=None
):
    """`loss` is a name or a function of gaps; `n_rows=2` gives two classes a row each."""
    X, y = np.asarray(X, float), np.asarray(y)
    n, d = X.shape
    n_rows = n_rows or (1 if n_classes == 2 else n_classes)
    shares = np.full(n, 1 / n) if weights is None else np.asarray(weights, float) / np.sum(weights)
    coef, intercept = cp.Variable((n_rows, d)), cp.Variable((1, n_rows))
    scores = X @ coef.T + np.ones((n, 1)) @ intercept
    gauge = [] if fit_intercept else [intercept == 0]
    if n_rows == 1:
        gaps = cp.multiply(np.where(y == 1, -1.0, 1.0)[:, None], scores)
    else:
        wrong = np.array([[c for c in range(n_classes) if c != label] for label in y])
        one_hot = np.eye(n_classes)
        columns = [
            cp.sum(cp.multiply(one_hot[wrong[:, j]] - one_hot[y], scores), axis=1, keepdims=True)
            for j in range(n_classes - 1)
        ]
        gaps = cp.hstack(columns)
        # The same vector on every row changes no gap; R is least where the rows sum to zero.
        gauge += [cp.sum(coef, axis=0) == 0, cp.sum(intercept) == 0]
    losses = (LOSSES[loss] if isinstance(loss, str) else loss)(gaps)
    penalty = alpha * cp.sum_squares(coef) if alpha else cp.Constant(0.0)
    return Model(coef, intercept, losses, penalty, shares @ losses, shares, gauge)


# Shorter steps save exponential cones that stall; only then are the tolerances let go.
ATTEMPTS = [
    {"max_step_fraction": step, "tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
    for tol in (1e-11, 1e-10, 1e-9, 1e-8)
    for step in (0.99, 0.9, 0.8)
]


def solved(objective, constraints, model):
    problem = cp.Problem(cp.Minimize(objective), constraints + model.gauge)
    for settings in ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": then the next attempt
                problem.solve(solver=cp.CLARABEL, **settings)
        except cp.SolverError:
            continue
        if problem.status in ("optimal", "infeasible", "unbounded"):
            break
    if problem.status != "optimal":
        raise RuntimeError(f"the reference was not solved: {problem.status}")
    status = f"optimal to {settings['tol_gap_rel']:g}, steps {settings['max_step_fraction']}"
    return Reference(float(problem.value), model.coef.value, model.intercept.value[0], status)


def erm(X, y, n_classes, loss, **options):
    """min mean ℓ + R."""
    model = linear_model(X, y, n_classes, loss, **options)
    return solved(model.mean_loss + model.penalty, [], model)


def wasserstein(
    X, y, n_classes, loss, target, *, norm=2, feature_weight=None, steepness=1.0, **options
):
    """min k s.t. mean ℓ + R <= target and steepness ‖(β_i - β_j) / feature_weight‖_* <= k."""
    model = linear_model(X, y, n_classes, loss, **options)
    coef, n_rows = model.coef, model.coef.shape[0]
    mobility = 1 / np.asarray(np.ones(coef.shape[1]) if feature_weight is None else feature_weight)
    differences = [coef[i] - coef[j] for i, j in combinations(range(n_rows), 2)] or [coef[0]]
    k = cp.Variable()
    constraints = [
        steepness * cp.norm(cp.multiply(mobility, difference), DUAL[norm]) <= k
        for difference in differences
    ]
    return solved(k, [*constraints, model.mean_loss + model.penalty <= target], model)


def kl(X, y, n_classes, loss, target, **options):
    """min k s.t. k ln Σ a_n exp(ℓ_n / k) + R <= target.

    Divided by k and raised to the exponent: Σ a_n k exp((ℓ_n + R - target) / k) <= k.
    """
    model = linear_model(X, y, n_classes, loss, **options)
    n = model.shares.size
    k, losses, moments = cp.Variable(nonneg=True), cp.Variable(n), cp.Variable(n)
    penalty = cp.Variable()
    constraints = [
        model.penalty <= penalty,
        model.losses <= losses,
        cp.constraints.ExpCone(losses + penalty - target, k * np.ones(n), moments),
        model.shares @ moments <= k,
    ]
    return solved(k, constraints, model)


def least_norm_meeting(X, y, n_classes, loss, target, **options):
    """min Σ coef² s.t. ℓ_n + R <= target for every sample that has a weight."""
    model = linear_model(X, y, n_classes, loss, **options)
    counted = np.flatnonzero(model.shares > 0)
    constraints = [model.losses[counted] + model.penalty <= target]
    return solved(cp.sum_squares(model.coef), constraints, model)
