"""What the interior-point method is given, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Floats
from ..losses import Loss
from ..programs.objective import Objective
from .aggregates import Mean, Samples
from .norm_cones import Shape


class InteriorSolution(NamedTuple):
    """Where the search ended; `gap` is how far the cost can be above its minimum, relatively.

    `multiplier` is how fast the cost falls as the target, or half the squared radius, rises.
    """

    parameters: Floats
    k: float
    cost: float
    gap: float
    iterations: int
    converged: bool
    multiplier: float = 0.0


class Quadratic(NamedTuple):
    """A quadratic function of the parameters, by its value and derivatives at a centre."""

    centre: Floats
    height: float
    gradient: Floats
    hessian: Floats

    def value(self, parameters: Floats) -> float:
        away = parameters - self.centre
        return self.height + float(self.gradient @ away) + 0.5 * float(away @ self.hessian @ away)


class Ball(NamedTuple):
    """Parameters with ‖factorᵀ (θ - centre)‖ ≤ radius; `matrix` is factor @ factor.T."""

    matrix: Floats
    factor: Floats
    radius: float


def _key(loss: Loss) -> Any:
    """The loss; if it cannot be hashed, as a user's may not be, which object it is."""
    try:
        hash(loss)
    except TypeError:
        return id(loss)
    return loss


@dataclass(frozen=True, eq=False)
class InteriorProgram:
    """A program, with a start and how it is to be solved.

    Attributes
    ----------
    start : ndarray
        Parameters to start from: of a program with a ball, its centre.
    tol : float
    max_iter : int
    k : float
        Where k starts, above the norm of the parameters.
    objective : Objective, optional
        Without one there are no samples and no penalty.
    aggregate : type of Samples
        How the losses of the samples are aggregated.
    target : float, optional
        Bound of the aggregate with the penalty; without one they are part of what is minimised.
    shape : Shape, optional
        Cone of (θ, k); without one there is no k.
    k_cost : float
    squared_cost : ndarray, optional
        Cost of the squared parameters.
    label_cost : float
        What a function of another label is lowered by, per unit of k.
    model : Quadratic, optional
        Part of the aggregate, in place of the loss that all functions of a sample have in common.
    ball : Ball, optional
        Where the parameters are.
    multiplier : float
        About how fast the cost falls as the target rises, if that is known.
    """

    start: Floats
    tol: float
    max_iter: int
    k: float = 0.0
    objective: Objective | None = None
    aggregate: type[Samples] = Mean
    target: float | None = None
    shape: Shape | None = None
    k_cost: float = 1.0
    squared_cost: Floats | float = 0.0
    label_cost: float = inf
    model: Quadratic | None = None
    ball: Ball | None = None
    multiplier: float = 0.0

    @property
    def numbers(self) -> int:
        """How many numbers an array of its samples has at most, or its system."""
        if self.objective is None:
            return self.start.size**2
        rows = self.objective.rows
        pieces = rows.n_classes ** (1 if self.label_cost == inf else 2)
        return max(rows.y.size * pieces, self.start.size**2)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What programs must have in common to be solved together."""
        objective, shape = self.objective, self.shape
        parts: list[Any] = [
            self.start.size,
            self.target is None,
            self.model is None,
            self.ball is None,
        ]
        if objective is not None:
            rows = objective.rows
            parts += [_key(objective.loss), rows.n_classes, rows.X.shape[1], rows.fit_intercept]
            parts += [self.aggregate, self.label_cost == inf, sparse.issparse(rows.X)]
            parts += [objective.is_penalised, np.flatnonzero(objective.lasso_weights).tobytes()]
        if shape is not None:
            cone = shape.cone
            parts += [type(cone), cone.shape, cone.pairs.weights, shape.moves.tobytes()]
        return tuple(parts)
