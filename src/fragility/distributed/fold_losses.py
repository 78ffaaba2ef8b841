"""The loss on rows that a model was not fitted to, from sums by fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._typing import Floats
from ..exceptions import UndefinedTargetError
from ..linear_model.out_of_fold import ALPHAS, OutOfFold
from ..programs.objective import Objective
from ..programs.row_sums import RowSums, SummedPoint


def out_of_fold(objective: Objective, parameters: Floats, parts: list[RowSums]) -> OutOfFold:
    """Lowest loss on folds of models that were not fitted to them, by quadratic models.

    Each fold, and all rows but its own, have a quadratic model of their loss about one model, which
    should be nearly that of the lowest loss. With many rows for each parameter models of folds lie
    next to it, and this is their loss.
    """
    parts = [part for part in parts if part.weight > 0.0]
    if len(parts) < 2:
        raise UndefinedTargetError(
            "The rows do not make two folds, so that there is no out-of-fold loss. Give slack "
            "(such as 0.1) or an absolute target."
        )
    plain = replace(objective, alpha=0.0)
    points = [SummedPoint(plain, parameters, part) for part in parts]
    weights = np.array([part.weight for part in parts])
    gradients = np.array([point.gradient for point in points])
    hessians = np.array([point.hessian for point in points])
    unit = 2.0 * objective.per_parameter(np.ones(objective.rows.X.shape[1]))
    losses = []
    for alpha in ALPHAS:
        total = 0.0
        for fold, point in enumerate(points):
            others = np.where(np.arange(len(points)) == fold, 0.0, weights)
            others /= others.sum()
            gradient = others @ gradients + alpha * unit * parameters
            hessian = np.einsum("f,fij->ij", others, hessians) + np.diag(alpha * unit)
            fixed = objective.fixed_gauge(hessian)
            move = -np.linalg.lstsq(fixed, gradient, rcond=1e-12)[0]
            bend = 0.5 * float(move @ hessians[fold] @ move)
            total += weights[fold] * (point.value + float(gradients[fold] @ move) + bend)
        losses.append(total / weights.sum())
    best = int(np.argmin(losses))
    return OutOfFold(float(losses[best]), ALPHAS[best], [])
