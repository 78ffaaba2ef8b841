"""The models that targets are seen between: the best of all, and the best trivial one."""

from __future__ import annotations

from typing import NamedTuple

from .._typing import Floats
from ..ambiguity import Ambiguity
from ..programs.objective import Evaluation, Objective
from .erm import RiskMinimum, accuracy_of_minimum, erm, trivial_model
from .newton import Curvature


class Landmarks(NamedTuple):
    """The best model of all and the best of those that use no feature that may shift."""

    minimum: RiskMinimum
    trivial: Evaluation


def find_landmarks(
    objective: Objective,
    ambiguity: Ambiguity,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    curvature: Curvature | None = None,
    trivial: Evaluation | None = None,
) -> Landmarks:
    """Minimise the loss over all models and over the trivial ones.

    `curvature` is what is known of it near the start, `trivial` the best trivial model for another
    strength of the penalty.
    """
    accuracy = accuracy_of_minimum(tol)
    minimum = erm(objective, start, tol=accuracy, max_iter=max_iter, curvature=curvature)
    fixed = ambiguity.fixed(objective.rows.X.shape[1])
    if trivial is None or fixed.any():  # else it has nothing but an intercept, which is free
        trivial = trivial_model(objective, fixed, max_iter=max_iter)
    if minimum.loss > trivial.value and objective.is_smooth:
        minimum = erm(objective, trivial.parameters, tol=accuracy, max_iter=max_iter)
    elif minimum.loss > trivial.value:  # which is not nothing learned unless the search converged
        minimum = minimum._replace(point=trivial, loss=trivial.value)
    return Landmarks(minimum, trivial)
