"""The class-wise Wasserstein index from its definition, on a grid of the real line."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog


def worst_case_errors_lp(negatives, positives, k, weight_norm, grid):
    """sup over P of E[ε] - k D(P, P̂) as a transport program over target logits `grid`.

    A unit of transport moves a logit by the dual norm of the weights; the distance is half the sum
    of the two class-wise W1 distances.
    """
    total = 0.0
    for logits, sign in ((negatives, 1.0), (positives, -1.0)):
        n = len(logits)
        score = sign / (1 + np.exp(-grid))
        cost = np.abs(np.subtract.outer(np.asarray(logits), grid)) / weight_norm
        gain = score[None, :] - k / 2 * cost
        rows = np.kron(np.eye(n), np.ones(len(grid)))  # each sample sends its mass 1/n
        result = linprog(-gain.ravel(), A_eq=rows, b_eq=np.full(n, 1 / n), bounds=(0, None))
        total -= result.fun
    return total


def price_index(negatives, positives, weight_norm, target=0.0, weights=(None, None)):
    """Bisection in k with every sample's best move found on a dense grid."""
    grid = np.arange(-40.0, 40.0, 0.001)
    sigma = 1 / (1 + np.exp(-grid))

    def worst(k):
        mean = 0.0
        for logits, curve, w in (
            (negatives, sigma, weights[0]),
            (positives, -sigma, weights[1]),
        ):
            price = k / (2 * weight_norm)
            best = [max(curve - price * np.abs(grid - z)) for z in logits]
            stay = [
                c / (1 + math.exp(-z)) for z, c in zip(logits, [1.0] * len(logits), strict=True)
            ]
            stay = np.array(stay) * (1 if curve[-1] > 0 else -1)
            mean += np.average(np.maximum(best, stay), weights=w)
        return mean

    if worst(1e9) > target + 1e-12:
        return math.inf
    low, high = 0.0, weight_norm
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if worst(middle) <= target else (middle, high)
    return (low + high) / 2
