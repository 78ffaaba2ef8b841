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
from ..programs.objective import Evaluation, Objective
from .newton import Curvature

__all__ = ["KLSolution", "satisfice"]

#: A Hessian serves again while it makes the gap fall at least this much.
_GOOD_ENOUGH = 0.1
#: The fragility is settled when its error is this share of the tolerance: coefficients, whose
#: errors are as the root of it, then have digits, too.
_SETTLED, _ROUNDING = 1e-3, 1e-13


class KLSolution(NamedTuple):
    """Where a search ended; `gap` estimates how far k is above its minimum."""

    point: Evaluation
    fragility: float
    gap: float
    iterations: int
    converged: bool


class _Tilted(NamedTuple):
    """Worst case of a model's losses at its own fragility."""

    point: Evaluation
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
    settled = max(_SETTLED * tol, _ROUNDING)
    worst = _worst_case(objective.at(start), target)
    curvature, gap, fresh = None, inf, False
    for iteration in range(1, max_iter + 1):
        if worst.fragility in (0.0, inf):
            return KLSolution(worst.point, worst.fragility, 0.0, iteration, worst.fragility == 0.0)
        gradient = worst.point.gradient_under(worst.weights)
        last = gap
        if curvature is not None:
            step = curvature.step(gradient)
            gap = -0.5 * float(gradient @ step) / worst.divergence
            fresh = False
        if curvature is None or not 0.0 <= gap <= max(
            _GOOD_ENOUGH * last, settled * worst.fragility
        ):
            hessian = worst.point.moment_hessian(worst.weights, worst.fragility)
            curvature = Curvature(objective.fixed_gauge(hessian))
            step = curvature.step(gradient)
            gap = -0.5 * float(gradient @ step) / worst.divergence
            fresh = True
        if gap <= settled * worst.fragility:
            return KLSolution(worst.point, worst.fragility, gap, iteration, True)
        length = 1.0
        while True:
            trial = objective.at(worst.point.parameters + length * step)
            better = _worst_case(trial, target)
            if better.fragility <= worst.fragility - 1e-4 * length * 2.0 * gap:
                break
            length /= 2.0
            if length < 1e-10:
                break
        if length < 1e-10:  # no descent within rounding
            if fresh:
                converged = gap <= tol * worst.fragility
                return KLSolution(worst.point, worst.fragility, gap, iteration, converged)
            curvature = None
            continue
        curvature.learn(
            better.point.parameters - worst.point.parameters,
            better.point.gradient_under(better.weights) - gradient,
        )
        worst = better
    return KLSolution(worst.point, worst.fragility, gap, max_iter, False)


def _worst_case(point: Evaluation, target: float) -> _Tilted:
    weights = point.objective.rows.weights
    group = Sample(point.losses, weights=weights)
    room = target - point.penalty
    with np.errstate(over="ignore", under="ignore"):
        s = solve([group], room)
        if s in (0.0, inf):
            return _Tilted(point, inf if s == 0.0 else 0.0, weights, 0.0)
        divergence = s * SampleEquation([group], room)(s).slope
        return _Tilted(point, 1.0 / s, group.tilted_weights(s), divergence)
