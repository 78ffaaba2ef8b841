"""Programs with a bound of the slope, regression and the paper's label term, as cone programs.

B has a row for each feature and a column for each score, u = Bᵀx + b. `u_loss` is a function of a
cvxpy matrix of scores (n, C) and of labels: the losses of the rows.
"""

from __future__ import annotations

import numpy as np

from .programs import DUAL, Reference, cp, gaps_to_others, solved
from .programs import LOSSES as OF_GAPS
from .programs import Model as Variables


def distance_to_one_hot(scores, labels):
    """‖u - e_y‖₂."""
    return cp.norm(scores - np.eye(scores.shape[1])[labels], 2, axis=1)


def one_against_rest(scores, labels):
    """Σ_c ln(1 + exp(∓u_c)), minus for the own class."""
    signs = np.where(np.arange(scores.shape[1]) == labels[:, None], -1.0, 1.0)
    return cp.sum(cp.logistic(cp.multiply(signs, scores)), axis=1)


def uneven_hinge(scores, labels):
    """Of one score: (1 + y) max(0, 1 - m), so that class 1 counts twice."""
    signs = np.where(labels == 1, 1.0, -1.0)
    return cp.multiply(1.0 + labels, cp.pos(1 - cp.multiply(signs, scores[:, 0])))


def of_gaps(name):
    """A loss of the differences of scores, by name."""
    return lambda scores, labels: OF_GAPS[name](
        gaps_to_others(scores, labels, max(2, scores.shape[1]))
    )


def induced_norm(B, norm):
    """The norm of B (features, scores) that is induced by the dual of the norm of a move."""
    if B.shape[1] == 1:
        return cp.norm(B[:, 0], DUAL[norm])
    if norm == 2:
        return cp.sigma_max(B)
    sums = cp.sum(cp.abs(B), axis=1 if norm == 1 else 0)  # rows of B for ℓ1, columns for ℓ∞
    return cp.max(sums)


def _variables(X, n_scores, fit_intercept):
    B, b = cp.Variable((X.shape[1], n_scores)), cp.Variable((1, n_scores))
    fixed = [] if fit_intercept else [b == 0]
    return B, b, X @ B + np.ones((len(X), 1)) @ b, fixed


def _shares(n, weights):
    return np.full(n, 1 / n) if weights is None else np.asarray(weights, float) / np.sum(weights)


def _penalty(B, alpha, kind):
    if not alpha:
        return 0.0
    return alpha * (cp.sum_squares(B) if kind == "l2" else cp.sum(cp.abs(B)))


def _solved(objective, constraints, B, b):
    holder = Variables(B.T, b, None, [], None, None, None, [], None)
    found = solved(objective, constraints, holder)
    return Reference(found.value, B.value.T, b.value[0], found.status)


def bounded(
    X,
    y,
    n_classes,
    u_loss,
    target,
    *,
    lipschitz,
    norm=2,
    frobenius=False,
    label_cost=np.inf,
    feature_weight=None,
    alpha=0.0,
    penalty_kind="l2",
    fit_intercept=True,
    weights=None,
):
    """min k s.t. Σ a_n max_y {ℓ(u_n, y) - k γ 1(y ≠ y_n)} + R <= target, lipschitz ‖B‖ <= k.

    With `target=None` the lowest loss instead, and with "trivial" that of an intercept alone.
    """
    B, b, scores, fixed = _variables(X, 1 if n_classes == 2 else n_classes, fit_intercept)
    shares, k = _shares(len(y), weights), cp.Variable(nonneg=True)
    losses = [u_loss(scores, (y + turn) % n_classes) for turn in range(n_classes)]
    penalty = _penalty(B, alpha, penalty_kind)
    if target is None:
        return _solved(shares @ losses[0] + penalty, fixed, B, b)
    if target == "trivial":
        return _solved(shares @ losses[0] + penalty, [*fixed, B == 0], B, b)
    worst = losses[0]
    if np.isfinite(label_cost):
        worst = cp.maximum(losses[0], *(flipped - label_cost * k for flipped in losses[1:]))
    mobility = 1 / np.asarray(np.ones(X.shape[1]) if feature_weight is None else feature_weight)
    moved = cp.multiply(mobility[:, None] * np.ones(B.shape), B)
    size = cp.norm(moved, "fro") if frobenius else induced_norm(moved, norm)
    limits = [lipschitz * size <= k, shares @ worst + penalty <= target]
    return _solved(k, [*fixed, *limits], B, b)


def paper_labels(X, y, n_classes, loss, target, *, label_cost, factor, norm=2, alpha=0.0):
    """min k s.t. Σ a_n {ℓ_n + k (factor ‖x_n‖ - γ)₊} + R <= target, ‖β_i - β_j‖_* <= k.

    The loss has steepness one; there is no intercept. `None` as target asks for the lowest level.
    """
    B, b, scores, fixed = _variables(X, 1 if n_classes == 2 else n_classes, False)
    k = cp.Variable(nonneg=True)
    added = np.maximum(factor * np.linalg.norm(X, ord=norm, axis=1) - label_cost, 0.0).mean()
    level = cp.sum(of_gaps(loss)(scores, y)) / len(y) + k * added + _penalty(B, alpha, "l2")
    pairs = [(i, j) for i in range(B.shape[1]) for j in range(i)]
    columns = [B[:, i] - B[:, j] for i, j in pairs] or [B[:, 0]]
    fixed += [cp.norm(column, DUAL[norm]) <= k for column in columns]
    if B.shape[1] > 1:
        fixed.append(cp.sum(B, axis=1) == 0)
    if target is None:
        return _solved(level, fixed, B, b)
    return _solved(k, [*fixed, level <= target], B, b)


def regression(
    X,
    Y,
    target,
    *,
    norm=2,
    feature_weight=None,
    alpha=0.0,
    fit_intercept=True,
    weights=None,
):
    """min k s.t. Σ a_n ‖Bᵀx_n + b - y_n‖₂ + R <= target, max_{‖δ‖ <= 1} ‖Bᵀδ‖₂ <= k."""
    B, b, scores, fixed = _variables(X, Y.shape[1], fit_intercept)
    shares, k = _shares(len(Y), weights), cp.Variable(nonneg=True)
    level = shares @ cp.norm(scores - Y, 2, axis=1) + _penalty(B, alpha, "l2")
    if target is None:
        return _solved(level, fixed, B, b)
    if target == "trivial":
        return _solved(level, [*fixed, B == 0], B, b)
    mobility = 1 / np.asarray(np.ones(X.shape[1]) if feature_weight is None else feature_weight)
    moved = cp.multiply(mobility[:, None] * np.ones(B.shape), B)
    if Y.shape[1] == 1:
        size = cp.norm(moved[:, 0], DUAL[norm])
    elif norm == 2:
        size = cp.sigma_max(moved)
    else:  # ℓ1: the best move is of one feature
        size = cp.max(cp.norm(moved, 2, axis=1))
    return _solved(k, [*fixed, size <= k, level <= target], B, b)
