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


def transport_distance(X_ref, y_ref, X_new, y_new, weights, *, norm, label_cost, feature_weight):
    """Optimal transport between two samples: the linear program with every pair of cases.

    Pairs at an infinite cost are left out; infinite if no plan is left.
    """
    total = [np.asarray(w, float) / np.sum(w) for w in weights]
    pairs, costs = [], []
    for i, (x, label) in enumerate(zip(X_ref, y_ref, strict=True)):
        for j, (z, other) in enumerate(zip(X_new, y_new, strict=True)):
            apart = zip(feature_weight, x, z, strict=True)
            moves = [g * abs(b - a) if a != b else 0.0 for g, a, b in apart]
            way = {1: math.fsum(moves), 2: math.hypot(*moves), math.inf: max(moves)}[norm]
            cost = way + (label_cost if label != other else 0.0)
            if cost < math.inf:
                pairs.append((i, j))
                costs.append(cost)
    if not pairs:
        return math.inf
    n, m = len(total[0]), len(total[1])
    sums = np.zeros((n + m, len(pairs)))
    for place, (i, j) in enumerate(pairs):
        sums[i, place] = sums[n + j, place] = 1.0
    found = linprog(costs, A_eq=sums, b_eq=np.concatenate(total), method="highs-ipm")
    return found.fun if found.success else math.inf
