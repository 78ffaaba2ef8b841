"""Labels, probabilities and weights that the tests of calibration and thresholds share."""

from __future__ import annotations

import numpy as np


def drawn(seed: int, kind: str = "smooth", n: int = 70):
    """Labels, probabilities and weights: smooth, rounded (ties), few values, saturated."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n) - 0.5
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(int)
    y[:4], z[:4] = [0, 1, 0, 1], [1.0, -1.0, -1.5, 1.5]  # neither class is above the other
    p = 1.0 / (1.0 + np.exp(-(8.0 if kind == "saturated" else 1.4) * z))
    p = {"rounded": p.round(1), "few": p.round(0) * 0.6 + 0.2}.get(kind, p)
    weights = {"whole": rng.integers(0, 4, n).astype(float), "real": rng.gamma(1.0, size=n)}
    for part in weights.values():
        part[:4] = 1.0
    return y, p, weights


KINDS = ("smooth", "rounded", "few", "saturated")
WEIGHTS = (None, "whole", "real")


def duplicated(y, p, times):
    """Every case of class 0 and of class 1 so many times."""
    rows = np.repeat(np.arange(y.size), np.where(y == 1, times[1], times[0]))
    return y[rows], p[rows], float(y[rows].mean())
