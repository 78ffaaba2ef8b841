"""Calibration maps of two classes and of several, by a general minimizer, fold by fold."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

NEAREST = 1e-12


def platt(p, happened, weight):
    """Slope and intercept of the log-odds by Platt's smoothed targets."""
    n_yes, n_no = np.count_nonzero(happened), np.count_nonzero(~happened)
    aim = np.where(happened, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))
    z = _log_odds(p)

    def loss(parameters):
        score = parameters[0] * z + parameters[1]
        return weight @ (np.logaddexp(0, score) - aim * score) / weight.sum()

    found = minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-10})
    return lambda q: 1 / (1 + np.exp(-(found.x[0] * _log_odds(q) + found.x[1])))


def _log_odds(p):
    p = np.clip(p, NEAREST, 1 - NEAREST)
    return np.log(p / (1 - p))


def temperature(p, truth, weight):
    """Temperature of several classes, by a search on a fine grid that is refined."""
    logs = np.log(np.clip(p, NEAREST, 1))
    grid = np.linspace(-3, 3, 61)
    for _ in range(8):
        losses = []
        for t in np.exp(grid):
            q = np.exp(logs / t)
            q /= q.sum(axis=1, keepdims=True)
            losses.append(-(weight @ np.log(q[np.arange(truth.size), truth])))
        best, step = grid[np.argmin(losses)], grid[1] - grid[0]
        grid = np.linspace(best - step, best + step, 41)
    t = np.exp(best)

    def mapped(q):
        tempered = np.clip(q, NEAREST, 1) ** (1 / t)
        return tempered / tempered.sum(axis=1, keepdims=True)

    return mapped
