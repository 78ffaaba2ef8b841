"""Losses from their definitions, sample by sample."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize


def cross_entropy(scores, label):
    """Of a row of scores, one per class."""
    return math.log(sum(math.exp(u) for u in scores)) - scores[label]


def hinge(scores, label):
    """Crammer and Singer's."""
    return max(0.0, *(1 + u - scores[label] for c, u in enumerate(scores) if c != label))


def max_logistic(scores, label):
    """The logistic loss against each wrong class, and the largest of them."""
    return max(math.log1p(math.exp(u - scores[label])) for c, u in enumerate(scores) if c != label)


def costly_cross_entropy(scores, label, costs):
    """With the cost of each class taken for each other one, true × taken for."""
    wrong = [c for c in range(len(scores)) if c != label]
    return math.log(1 + sum(costs[label][c] * math.exp(scores[c] - scores[label]) for c in wrong))


def costly_hinge(scores, label, costs):
    wrong = [c for c in range(len(scores)) if c != label]
    return max(0.0, *(costs[label][c] * (1 + scores[c] - scores[label]) for c in wrong))


def costly_max_logistic(scores, label, costs):
    wrong = [c for c in range(len(scores)) if c != label]
    return max(costs[label][c] * math.log1p(math.exp(scores[c] - scores[label])) for c in wrong)


def costly_smoothed_hinge(scores, label, costs, smoothing):
    """The price t >= 0 of a share at which t + Σ (z - t)₊² / 2γ is least, on a fine grid."""
    wrong = [c for c in range(len(scores)) if c != label]
    short = [costs[label][c] * (1 + scores[c] - scores[label]) for c in wrong]

    def at(t):
        return t + sum(max(z - t, 0.0) ** 2 for z in short) / (2 * smoothing)

    low, high = 0.0, max(0.0, *short)
    for _ in range(200):  # convex in t
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, other) if at(one) <= at(other) else (one, high)
    return min(at(low), at(0.0))


def smoothed_hinge(scores, label, smoothing):
    """The maximum over shares of the wrong classes, found numerically."""
    short = np.array([1 + u - scores[label] for c, u in enumerate(scores) if c != label])

    def negative(shares):
        return smoothing / 2 * shares @ shares - shares @ short

    result = minimize(
        negative,
        np.full(short.size, 0.5 / short.size),
        jac=lambda shares: smoothing * shares - short,
        bounds=[(0, 1)] * short.size,
        constraints={"type": "ineq", "fun": lambda shares: 1 - shares.sum()},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return -result.fun
