"""Platt scaling and temperature, literally: a general optimiser on the textbook loss."""

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

    a, b = minimize(
        loss, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}
    ).x
    return lambda p: 1 / (1 + np.exp(-(a * np.log(p / (1 - p)) + b)))


def temperature(p, codes, weights):
    """Map of a row of probabilities, fitted with smoothed targets."""
    n, n_classes = p.shape
    target = np.full(p.shape, 1 / (n + n_classes))
    target[np.arange(n), codes] = (n + 1) / (n + n_classes)

    def powered(p, beta):
        q = p**beta
        return q / q.sum(axis=1, keepdims=True)

    def loss(beta):
        return -np.sum(weights[:, None] * target * np.log(powered(p, beta)))

    beta = minimize_scalar(loss, bounds=(1e-6, 20), method="bounded", options={"xatol": 1e-10}).x
    return lambda p: powered(p, beta)
