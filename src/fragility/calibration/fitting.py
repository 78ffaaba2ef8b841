"""What the maps share: logarithms of probabilities, and the minimum of a log-loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._typing import Floats

#: From scores to calibrated scores.
CalibrationMap = Callable[[NDArray[Any]], Floats]

#: Probabilities nearer to 0 or 1 are taken as this near: their log-odds are rounding errors.
NEAREST = 1e-12
#: Log-odds that may not fall differ by this much between the least and the largest score.
LEAST_RISE = 1e-3
#: Steps of Newton's method; a dozen are usual.
_MOST_STEPS = 100
#: Where a step gains less than this share of the loss, rounding hides whether it gains at all.
_NEAR = 1e-10
#: The search ends where a step gains less than this share of the loss.
_ACCURACY = 1e-26


def log_odds(p: NDArray[Any]) -> Floats:
    """Log-odds of probabilities, which are clipped near 0 and 1."""
    values: Floats = logit(clipped(p))
    return values


def logs(p: NDArray[Any]) -> Floats:
    """Logarithms of probabilities, which are clipped near 0."""
    values: Floats = np.log(np.clip(p.astype(np.float64), NEAREST, 1.0))
    return values


def clipped(p: NDArray[Any]) -> Floats:
    """Probabilities that are neither 0 nor 1."""
    return np.clip(p.astype(np.float64), NEAREST, 1.0 - NEAREST)


def least(derivatives: Callable[[Floats], tuple[float, Floats, Floats]], start: Floats) -> Floats:
    """Minimum of a log-loss of a few parameters: Newton's method with halved steps.

    Best from where the function is most curved: where probabilities are near 0 or 1 already its
    curvature says nothing.
    """
    point = start
    value, gradient, curvature = derivatives(point)
    for _ in range(_MOST_STEPS):
        ridge = 1e-14 * np.trace(curvature) + 1e-300
        step = np.linalg.solve(curvature + ridge * np.eye(point.size), gradient)
        decrement = float(gradient @ step)
        length = 1.0
        while True:
            trial = point - length * step
            found = derivatives(trial)
            near = decrement <= _NEAR * abs(value)
            if near or found[0] <= value - 1e-4 * length * decrement or length < 1e-9:
                break
            length /= 2.0
        point, (value, gradient, curvature) = trial, found
        if decrement <= _ACCURACY * abs(value):
            break
    return point
