"""Platt scaling and temperature, literally: a general optimiser on the textbook loss."""

from math import log

import mpmath
import numpy as np
from scipy.optimize import minimize, minimize_scalar


def platt(p, positive, weights):
    """Map of a probability, fitted with Platt's smoothed targets."""
    z = np.log(p / (1 - p))
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(ab):
        q = 1 / (1 + np.exp(-(ab[0] * z + ab[1])))
        return -np.sum(weights * (target * np.log(q) + (1 - target) * np.log(1 - q)))

    a, b = 0.5, -0.1
    for _ in range(3):  # a fresh simplex each time: the first may collapse before the minimum
        options = {"xatol": 1e-10, "fatol": 1e-12}
        a, b = minimize(loss, [a, b], method="Nelder-Mead", options=options).x
    return lambda p: 1 / (1 + np.exp(-(a * np.log(p / (1 - p)) + b)))


def powered(p, beta):
    q = p**beta
    return q / q.sum(axis=1, keepdims=True)


def cross_entropy(p, codes, weights):
    return -np.average(np.log(p[np.arange(codes.size), codes]), weights=weights)


def temperature(p, codes, weights):
    """Map of a row of probabilities, of the least cross-entropy."""
    found = minimize_scalar(
        lambda log_beta: cross_entropy(powered(p, np.exp(log_beta)), codes, weights),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return lambda p: powered(p, np.exp(found.x))


def exact_temperature(logits, codes, weights, start):
    """Temperature at which the derivative of the cross-entropy is zero, in 60 digits."""
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(z)) for z in row] for row in logits]
        triples = list(zip(rows, codes.tolist(), weights.tolist(), strict=True))

        def loss(log_t):
            t = mpmath.exp(log_t)
            return sum(
                w * mpmath.log(sum(mpmath.exp((z - row[own]) / t) for z in row))
                for row, own, w in triples
            )

        def slope(log_t):
            return mpmath.diff(loss, log_t)

        root = mpmath.findroot(slope, (log(start) - 1e-3, log(start) + 1e-3), tol=1e-60)
        return float(mpmath.exp(root))
