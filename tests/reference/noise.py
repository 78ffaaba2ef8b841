"""Weights of features by their measurement errors, one feature and one row at a time."""

from fractions import Fraction
from math import inf, sqrt


def deviation(column, weights):
    """Weighted standard deviation, in exact fractions up to the root."""
    values = [Fraction(float(value)) for value in column]
    shares = [Fraction(float(weight)) for weight in weights]
    total = sum(shares)
    mean = sum(w * v for w, v in zip(shares, values, strict=True)) / total
    return sqrt(sum(w * (v - mean) ** 2 for w, v in zip(shares, values, strict=True)) / total)


def feature_weights(X, sigma, floor=0.3, scale=None, weights=None):
    """1 / sqrt((floor sd)² + sigma²); where that is 1 / 0: 1 with a floor, else infinite."""
    weights = [1.0] * len(X) if weights is None else weights
    found = []
    for j, error in enumerate(sigma):
        sd = deviation([row[j] for row in X], weights) if scale is None else scale[j]
        combined = sqrt((floor * sd) ** 2 + error**2)
        found.append(1 / combined if combined > 0 else inf if floor == 0 else 1.0)
    return found
