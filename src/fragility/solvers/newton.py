"""Newton's method for a smooth convex objective of few parameters."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from ..moments import Floats

__all__ = ["Minimum", "minimise", "newton_step"]

#: Curvatures below this share of the largest are none but for rounding.
_NO_CURVATURE = 1e-10
#: What stands for them where the slope is not zero, as before the corner of a hinge: the step is
#: long, and cut as needed.
_STAND_IN = 1e-6


class Smooth(Protocol):
    """A convex function with two derivatives."""

    def value(self, parameters: Floats) -> float: ...
    def gradient(self, parameters: Floats) -> Floats: ...
    def hessian(self, parameters: Floats) -> Floats: ...


class Minimum(NamedTuple):
    """Where a search ended.

    `gap` estimates how far the value is above the minimum.
    """

    parameters: Floats
    value: float
    gap: float
    iterations: int
    converged: bool


def minimise(objective: Smooth, start: Floats, *, tol: float, max_iter: int) -> Minimum:
    """Damped Newton steps until the value is within `tol` (relative) of the minimum."""
    parameters, value = start, objective.value(start)
    gap = np.inf
    for iteration in range(1, max_iter + 1):
        gradient = objective.gradient(parameters)
        step = newton_step(objective.hessian(parameters), gradient)
        gap = -0.5 * float(gradient @ step)
        if gap <= tol * abs(value):
            return Minimum(parameters, value, gap, iteration, True)
        length = 1.0
        while True:
            trial = parameters + length * step
            lower = objective.value(trial)
            if lower <= value - 1e-4 * length * 2.0 * gap:
                break
            length /= 2.0
            if length < 1e-10:  # no descent within rounding: this is the minimum
                return Minimum(parameters, value, gap, iteration, gap <= 1e3 * tol * abs(value))
        parameters, value = trial, lower
    return Minimum(parameters, value, gap, max_iter, False)


def newton_step(hessian: Floats, gradient: Floats) -> Floats:
    """Newton's step, which leaves alone what changes nothing.

    So the minimiser of least norm is found from zero where there are many.
    """
    try:
        factor, lower = cho_factor(hessian)
    except LinAlgError:
        pass
    else:
        pivots = np.diag(factor) ** 2
        if pivots.min() > _NO_CURVATURE * pivots.max():
            step: Floats = -cho_solve((factor, lower), gradient)
            return step
    curvatures, directions = eigh(hessian)
    slopes = directions.T @ gradient
    flat = curvatures <= _NO_CURVATURE * max(float(curvatures[-1]), _STAND_IN)
    idle = flat & (np.abs(slopes) <= 1e-9 * np.abs(slopes).max())
    lengths = np.where(idle, 0.0, slopes / np.where(flat, _STAND_IN, curvatures))
    found: Floats = -directions @ lengths
    return found
