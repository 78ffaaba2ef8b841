r"""Robust satisficing under KL ambiguity: the model of the smallest fragility.

For a model :math:`\theta` the fragility at target :math:`\tau` is the root :math:`k(\theta)` of

.. math:: f(\theta, k) = k \ln \sum_n a_n e^{\ell_n(\theta) / k} + R(\theta) = \tau ,

the Fragility Index of its losses. It is quasi-convex in :math:`\theta`, so we go down on it
directly: a Newton step on :math:`f(\cdot, k)` at the present k, its length chosen by
:math:`k(\theta)` itself. As :math:`\partial f / \partial k = -D`, the KL divergence of the worst
case, k falls by the fall of f over D.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from ..index.root import SampleEquation, solve
from ..moments import Floats, Sample
from ..programs.objective import Objective
from .newton import newton_step

__all__ = ["KLSolution", "satisfice"]


class KLSolution(NamedTuple):
    """Where a search ended; `gap` estimates how far k is above its minimum."""

    parameters: Floats
    fragility: float
    gap: float
    iterations: int
    converged: bool


class _Tilted(NamedTuple):
    """Worst case of a model's losses at its own fragility."""

    fragility: float
    weights: Floats
    divergence: float


def satisfice(
    objective: Objective, target: float, start: Floats, *, tol: float, max_iter: int
) -> KLSolution:
    """Least fragile model whose penalised mean loss meets the target.

    `start` must meet it with room to spare, as the minimiser of the mean loss does. The fragility
    is 0, and the search ends, when no loss of a model exceeds the target.
    """
    parameters, worst = start, _worst_case(objective, start, target)
    gap = inf
    for iteration in range(1, max_iter + 1):
        if worst.fragility in (0.0, inf):
            return KLSolution(parameters, worst.fragility, 0.0, iteration, worst.fragility == 0.0)
        gradient, hessian = objective.tilted_derivatives(parameters, worst.weights, worst.fragility)
        step = newton_step(hessian, gradient)
        gap = -0.5 * float(gradient @ step) / worst.divergence
        if gap <= tol * worst.fragility:
            return KLSolution(parameters, worst.fragility, gap, iteration, True)
        length = 1.0
        while True:
            trial = parameters + length * step
            better = _worst_case(objective, trial, target)
            if better.fragility <= worst.fragility - 1e-4 * length * 2.0 * gap:
                break
            length /= 2.0
            if length < 1e-10:  # no descent within rounding
                converged = gap <= 1e3 * tol * worst.fragility
                return KLSolution(parameters, worst.fragility, gap, iteration, converged)
        parameters, worst = trial, better
    return KLSolution(parameters, worst.fragility, gap, max_iter, False)


def _worst_case(objective: Objective, parameters: Floats, target: float) -> _Tilted:
    losses = objective.losses(parameters)
    group = Sample(losses, weights=objective.rows.weights)
    room = target - objective.penalty(parameters)
    with np.errstate(over="ignore", under="ignore"):
        s = solve([group], room)
        if s in (0.0, inf):
            return _Tilted(inf if s == 0.0 else 0.0, objective.rows.weights, 0.0)
        divergence = s * SampleEquation([group], room)(s).slope
        return _Tilted(1.0 / s, group.tilted_weights(s), divergence)
