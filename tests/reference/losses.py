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
