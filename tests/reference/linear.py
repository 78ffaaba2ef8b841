"""What a linear model is, recomputed from its coefficients in plain NumPy.

Two classes have one row of coefficients, that of the second class; more have one row each.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

DUAL = {1: np.inf, 2: 2, np.inf: 1}


def gap_directions(y, n_rows):
    """What the gaps u_c - u_y to the wrong classes are made of: (n, wrong classes, rows)."""
    if n_rows == 1:
        return np.where(np.asarray(y) == 1, -1.0, 1.0)[:, None, None]
    unit = np.eye(n_rows)
    return np.array([[unit[c] - unit[label] for c in range(n_rows) if c != label] for label in y])


def gaps(coef, intercept, X, y):
    scores = np.asarray(X) @ np.asarray(coef).T + intercept
    return np.einsum("ncr,nr->nc", gap_directions(y, len(coef)), scores)


def price(short, smoothing):
    """The price t >= 0 at which shares (z - t)₊ / γ sum to at most one, by bisection."""
    low, high = np.zeros(len(short)), np.maximum(short.max(axis=1), 0.0)
    for _ in range(200):
        middle = (low + high) / 2
        wanted = np.maximum(short - middle[:, None], 0.0).sum(axis=1) / smoothing
        low, high = np.where(wanted > 1, middle, low), np.where(wanted > 1, high, middle)
    return np.where(np.maximum(short, 0.0).sum(axis=1) <= smoothing, 0.0, high)


def value_and_shares(loss, gap, smoothing=1.0):
    """Loss of each row of gaps and its slope in each gap."""
    if loss == "cross_entropy":
        top = np.maximum(gap.max(axis=1, keepdims=True), 0.0)
        moments = np.exp(gap - top)
        total = moments.sum(axis=1, keepdims=True) + np.exp(-top)
        return (top + np.log(total))[:, 0], moments / total
    short = 1 + gap
    t = price(short, smoothing)
    beyond = np.maximum(short - t[:, None], 0.0)
    return t + (beyond**2).sum(axis=1) / (2 * smoothing), beyond / smoothing


def losses(coef, intercept, X, y, loss):
    return value_and_shares(loss, gaps(coef, intercept, X, y))[0]


def slopes(coef, intercept, X, y, loss, weights, alpha=0.0):
    """Gradient of Σ weights ℓ + R by coefficients and by intercepts."""
    coef = np.asarray(coef)
    _, shares = value_and_shares(loss, gaps(coef, intercept, X, y))
    by_score = np.einsum("n,nc,ncr->nr", weights, shares, gap_directions(y, len(coef)))
    return by_score.T @ np.asarray(X) + 2 * alpha * coef, by_score.sum(axis=0)


def differences(coef):
    """β_i - β_j for each pair of classes, or the one row of two classes."""
    coef = np.asarray(coef)
    pairs = [coef[i] - coef[j] for i, j in combinations(range(len(coef)), 2)]
    return np.array(pairs or [coef[0]])


def dual_norms(coef, norm, feature_weight=None):
    """Of each difference of two rows; `norm` is that of the transport."""
    weight = np.ones(np.shape(coef)[1]) if feature_weight is None else np.asarray(feature_weight)
    return np.linalg.norm(differences(coef) / weight, ord=DUAL[norm], axis=1)
