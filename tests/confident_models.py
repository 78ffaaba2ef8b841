"""Models whose confidence is right, or too high, and labels drawn by what they say."""

from __future__ import annotations

import numpy as np


def logistic(logit):
    return 1 / (1 + np.exp(-logit))


def model(seed, n=2000, steepness=1.0):
    """Labels and probabilities; calibrated at steepness 1, overconfident above."""
    rng = np.random.default_rng(seed)
    logit = 2 * rng.normal(size=n)
    return (rng.random(n) < logistic(logit)).astype(int), logistic(steepness * logit)


def classes_drawn(rng, n, n_classes=3):
    """Codes and the probabilities that they were drawn by."""
    p = rng.dirichlet(np.ones(n_classes), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p
