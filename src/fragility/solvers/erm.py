"""Empirical risk minimisation: the lowest penalised mean loss, which targets start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..moments import Floats
from ..programs.objective import Evaluation, Objective
from .newton import Curvature, minimise

__all__ = ["RiskMinimum", "erm"]

#: A sample of so many rows, or so many times the parameters, gives a start that is worth its time.
_LEAST_SAMPLE, _ROWS_PER_PARAMETER, _WORTH_IT = 1_000, 8, 4


class RiskMinimum(NamedTuple):
    """Where a search ended.

    `loss` is the infimum, which `point` attains unless the data are `separable`.
    """

    point: Evaluation
    curvature: Curvature | None
    loss: float
    gap: float
    iterations: int
    converged: bool
    separable: bool


def erm(objective: Objective, start: Floats, *, tol: float, max_iter: int) -> RiskMinimum:
    """Minimise the penalised mean loss."""
    few = max(_LEAST_SAMPLE, _ROWS_PER_PARAMETER * objective.size)
    if objective.rows.y.size >= _WORTH_IT * few and not start.any():
        first = minimise(objective.sampled(few), start, tol=1e-4, max_iter=8)
        if np.isfinite(first.gap) and first.gap < 0.1:
            start = first.point.parameters
    found = minimise(objective, start, tol=tol, max_iter=max_iter)
    return RiskMinimum(
        found.point, found.curvature, found.point.value, found.gap, found.iterations,
        found.converged, False,
    )
