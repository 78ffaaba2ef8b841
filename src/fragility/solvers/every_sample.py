r"""The shortest model whose losses all meet the target, each by itself.

.. math:: \min_\theta \tfrac12 \lVert \beta \rVert^2 \quad\text{s.t.}\quad
          \ell_n(\theta) + R(\theta) \le \tau \text{ for every } n

This breaks the tie between models without fragility under KL ambiguity. It is a log-barrier method,
rarely needed, and starts from a model that a search for the least fragility has found.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..programs.objective import Evaluation, Objective
from .newton import Curvature
from .tuning import Barriers as Tuning


def least_norm_meeting(
    objective: Objective, target: float, start: Floats, *, max_iter: int
) -> tuple[Floats, int] | None:
    """Shorten the coefficients, in the user's units, while no loss exceeds the target.

    Returned are the parameters and the number of steps; None if neither the start nor a model a
    little further out meets the target. The zero model must miss the target.
    """
    weights = objective.length_weights
    point = _inside(objective.at(start), target)
    if point is None:
        return None
    n, iterations = objective.rows.y.size, 0
    squared = float(weights @ point.parameters**2)
    if squared == 0.0:
        return point.parameters, 0
    strength = 2.0 * n / squared
    while True:
        for _ in range(50):
            iterations += 1
            barrier = _Barrier(point, target, weights, strength)
            gradient, hessian = barrier.derivatives()
            step = Curvature(objective.fixed_gauge(hessian)).step(gradient)
            decrease = -float(gradient @ step)
            if decrease < 1e-3:
                break
            length = 1.0
            while length > 1e-10:
                trial = objective.at(objective.centred(point.parameters + length * step))
                lower = _Barrier(trial, target, weights, strength)
                if lower.value <= barrier.value - 1e-2 * length * decrease:
                    break
                length /= 2.0
            else:
                break
            point = trial
        squared = float(weights @ point.parameters**2)
        if (
            n / strength <= Tuning.accuracy * squared / 2.0
            or squared == 0.0
            or iterations >= max_iter
        ):
            return point.parameters, iterations
        strength *= Tuning.faster


class _Barrier:
    """Squared length times a strength, less the logarithms of what each loss has left."""

    def __init__(self, point: Evaluation, target: float, weights: Floats, strength: float) -> None:
        self.point, self.weights, self.strength = point, weights, strength
        self.left = target - point.penalty - point.losses

    @property
    def value(self) -> float:
        if self.left.min() <= 0.0:
            return np.inf
        squared = float(self.weights @ self.point.parameters**2)
        return 0.5 * self.strength * squared - float(np.log(self.left).sum())

    def derivatives(self) -> tuple[Floats, Floats]:
        point, objective = self.point, self.point.objective
        pull = 1.0 / self.left
        ridge = objective.ridge * point.parameters
        gradient = point.gradient_under(pull) + (pull.sum() - 1.0) * ridge
        gradient += self.strength * self.weights * point.parameters
        hessian = point.barrier_hessian(pull)
        # Every constraint contains the penalty, so each square contains its gradient.
        slopes = point.gradient_under(pull**2) - ridge
        hessian += np.multiply.outer(slopes, ridge) + np.multiply.outer(ridge, slopes)
        hessian += float((pull**2).sum()) * np.multiply.outer(ridge, ridge)
        diagonal = self.strength * self.weights + (pull.sum() - 1.0) * objective.ridge
        hessian[np.diag_indices(len(hessian))] += diagonal
        return gradient, hessian


def _inside(point: Evaluation, target: float) -> Evaluation | None:
    """The model, or one a little further out, whose losses are all below the target."""
    for _ in range(60):
        if float(point.losses.max()) + point.penalty < target * (1.0 - 1e-12):
            return point
        point = point.objective.at(1.01 * point.parameters)
    return None
