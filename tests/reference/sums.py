"""Penalised mean loss, worst-case mean and their derivatives, row by row, from the formulas."""

from math import exp, log

import numpy as np


def cross_entropy(scores, label):
    """Loss of one row: its label's share of the softmax, as minus its logarithm."""
    top = max(scores)
    return log(sum(exp(u - top) for u in scores)) + top - scores[label]


def losses_of(X, codes, coef, intercept):
    """Cross-entropy of every row for coefficients (1, d) or (C, d)."""
    found = []
    for x, label in zip(X, codes, strict=True):
        scores = [float(np.dot(row, x)) + float(b) for row, b in zip(coef, intercept, strict=True)]
        found.append(cross_entropy([0.0, *scores] if len(coef) == 1 else scores, label))
    return np.array(found)


def fragility_of(losses, weights, room):
    """The k at which k ln sum a exp(loss / k) is the room, by bisection."""
    shares = np.asarray(weights) / np.sum(weights)
    top = losses.max()

    def worst(k):
        return top + k * log(float(shares @ np.exp((losses - top) / k)))

    low, high = 1e-6, 1.0
    while worst(high) > room:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if not low < middle < high:  # no float lies between
            break
        low, high = (middle, high) if worst(middle) > room else (low, middle)
    return high
