"""The Fragility Index from its definition: all pairs, bisection, double or fifty digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np


def pair_matrix(negatives, positives):
    """Every ranking error, p(x-) - p(x+)."""
    return np.subtract.outer(np.asarray(negatives, float), np.asarray(positives, float))


def pair_weights(negatives, positives, negative_weights=None, positive_weights=None):
    a = np.ones(len(negatives)) if negative_weights is None else np.asarray(negative_weights, float)
    b = np.ones(len(positives)) if positive_weights is None else np.asarray(positive_weights, float)
    return np.outer(a / a.sum(), b / b.sum())


def bisected_index(values, target, weights=None):
    """Smallest k with k ln E exp(v / k) <= target, by bisection in k.

    The paper's algorithm, mended. `values` are ranking errors of all pairs, or losses.
    """
    values = np.ravel(values)
    weights = np.full(values.size, 1 / values.size) if weights is None else np.ravel(weights)
    values, weights = values[weights > 0], weights[weights > 0] / weights.sum()
    largest = values.max()
    if largest <= target:
        return 0.0
    if weights @ values >= target:
        return math.inf

    def violation(k):
        return k * math.log(weights @ np.exp((values - largest) / k)) + largest - target

    low = high = 1.0
    while violation(low) <= 0:
        low /= 2
    while violation(high) > 0:
        high *= 2
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if violation(middle) <= 0 else (middle, high)
    return (low + high) / 2


def exact_index(negatives, positives, target=0.0, negative_weights=None, positive_weights=None):
    """The index to fifty digits (as a float), from the literal sum over pairs."""
    a, b = _fractions(negatives), _fractions(positives)
    wa = _fractions(_ones(negative_weights, len(a)))
    wb = _fractions(_ones(positive_weights, len(b)))
    errors = [
        (x - y, u * v)
        for x, u in zip(a, wa, strict=True)
        for y, v in zip(b, wb, strict=True)
        if u > 0 and v > 0
    ]
    return _exact_root(errors, Fraction(float(target)))


def exact_loss_index(losses, target, weights=None):
    w = _fractions(_ones(weights, len(losses)))
    values = [(v, u) for v, u in zip(_fractions(losses), w, strict=True) if u > 0]
    return _exact_root(values, Fraction(float(target)))


def _ones(weights, n):
    return [1.0] * n if weights is None else weights


def _fractions(numbers):
    """What floats are, without rounding."""
    return [Fraction(float(v)) for v in numbers]


def _exact_root(values, target):
    """The root from pairs of a value and a weight, all fractions: the cases are exact."""
    largest = max(v for v, _ in values)
    if largest <= target:
        return 0.0
    total = sum(w for _, w in values)
    gap = target - sum(w * v for v, w in values) / total
    if gap <= 0:
        return math.inf
    # A small gap is what is left when the terms cancel: as many digits more.
    digits = 60 + max(0, math.ceil(2 * math.log10((largest - target + gap) / gap)))
    with mpmath.workdps(digits):
        terms = [(_number(v - largest), _number(w / total)) for v, w in values]
        excess = _number(largest - target)

        def h(s):
            moment = mpmath.fsum(w * mpmath.exp(s * v) for v, w in terms)
            return mpmath.log(moment) + s * excess

        low = mpmath.mpf(1)
        while h(low) >= 0:
            low /= 4
        high = low
        while h(high) < 0:
            high *= 4
        low = high / 4
        for _ in range(70):  # to the twentieth digit: a float has sixteen
            middle = (low + high) / 2
            low, high = (low, middle) if h(middle) >= 0 else (middle, high)
        return float(2 / (low + high))


def _number(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def index_matrix(codes, scores, target=0.0, weights=None):
    """C x C matrix of bisected indices, NaN on the diagonal."""
    codes, scores = np.asarray(codes), np.asarray(scores, float)
    n_classes = scores.shape[1]
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    matrix = np.full((n_classes, n_classes), np.nan)
    for i in range(n_classes):
        for j in range(n_classes):
            if i != j:
                negatives, positives = scores[codes == j, i], scores[codes == i, i]
                w = pair_weights(negatives, positives, weights[codes == j], weights[codes == i])
                matrix[i, j] = bisected_index(pair_matrix(negatives, positives), target, w)
    return matrix


def rest_vector(codes, scores, target=0.0, weights=None):
    """Index of each class against the rest."""
    codes, scores = np.asarray(codes), np.asarray(scores, float)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    vector = []
    for i in range(scores.shape[1]):
        own = codes == i
        w = pair_weights(scores[~own, i], scores[own, i], weights[~own], weights[own])
        errors = pair_matrix(scores[~own, i], scores[own, i])
        vector.append(bisected_index(errors, target, w))
    return np.array(vector)


def joint_kl_index(negatives, positives, target=0.0):
    """The index with KL on the joint distribution of (x, y): the paper's definition, literally.

    Class weights may shift, too: sup over q of the two tempered log-moments minus k KL(q, q_hat).
    """
    negatives, positives = np.asarray(negatives, float), np.asarray(positives, float)
    share = len(negatives) / (len(negatives) + len(positives))

    def log_moment(values):
        top = values.max()
        return top + math.log(np.mean(np.exp(values - top)))

    def supremum(k):
        best = -math.inf
        for q in np.linspace(0.0005, 0.9995, 1999):
            value = k * q * log_moment(negatives / (k * q))
            value += k * (1 - q) * log_moment(-positives / (k * (1 - q)))
            value -= k * (q * math.log(q / share) + (1 - q) * math.log((1 - q) / (1 - share)))
            best = max(best, value)
        return best - target

    low, high = 1e-3, 10.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if supremum(middle) <= 0 else (middle, high)
    return (low + high) / 2
