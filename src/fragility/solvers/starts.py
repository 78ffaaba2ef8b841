"""Where to start a search when the minimum of the loss is far out, or does not exist.

Where a class, or a part of it, is separable, the loss falls for ever, and its curvature there is
useless.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import SatisficingProgram
from .erm import RiskMinimum, descend_below, erm
from .feasible import first_below, meeting
from .searching import Search
from .wasserstein import LeastNormSearch


def wasserstein_start(
    program: SatisficingProgram, minimum: RiskMinimum, max_iter: int
) -> Search[Evaluation]:
    """A model that meets the target with room to spare and is not longer than necessary."""
    target = program.target
    level = target.erm_loss + 0.7 * (target.value - target.erm_loss)
    inside = yield from _short_model(program.objective, minimum, level, max_iter)
    return (yield from _softened_start(program, inside, level, max_iter))


def inside_of(program: SatisficingProgram, minimum: RiskMinimum, max_iter: int) -> Evaluation:
    """A model whose loss is half way between the lowest loss and the target."""
    target, objective = program.target, program.objective
    level = target.erm_loss + 0.5 * (target.value - target.erm_loss)
    if not objective.is_smooth:
        # Separable data: far enough out, where the minimum points, the loss is below any level.
        point = minimum.point
        for _ in range(60):
            if point.value <= level:
                break
            point = objective.at(2.0 * point.parameters)
        return point
    return descend_below(objective, minimum.point.parameters, level, max_iter=max_iter)


def _softened_start(
    program: SatisficingProgram, inside: Evaluation, level: float, max_iter: int
) -> Search[Evaluation]:
    """The solution for a softer loss, moved until it meets the level of the loss itself.

    `inside` is a model that meets the level; it is the start where there is no softer loss.
    """
    softer = program.objective.loss.softened()
    if softer is None:
        return inside
    soft = replace(program, objective=replace(program.objective, loss=softer))
    start = yield from _softened_start(soft, soft.objective.at(inside.parameters), level, max_iter)
    if start.value > level:
        return inside
    found = yield from LeastNormSearch(soft, start, tol=1e-3).run(max_iter)
    return meeting(program.objective.at(found.point.parameters), inside, level)


def _short_model(
    objective: Objective, minimum: RiskMinimum, level: float, max_iter: int
) -> Search[Evaluation]:
    """A model of at most this loss that is not far out.

    The minimum may be far out where a class, or a part of it, is separable.
    """
    strength = (level - minimum.loss) * float(np.mean(objective.rows.scale**2))
    for _ in range(0 if objective.alpha > 0.0 else 8):
        penalised = replace(objective, alpha=strength)
        found = yield from erm(penalised, np.zeros(objective.size), tol=1e-4, max_iter=max_iter)
        point = objective.at(found.point.parameters)
        if point.value <= level:
            return point
        strength /= 10.0
    # As far in as a direction allows: far out the loss of separable data, or of a separable class,
    # has almost no curvature.
    point = minimum.point
    if point.value > level:
        point = descend_below(objective, point.parameters, level, max_iter=max_iter)
    return first_below(objective.at(np.zeros(objective.size)), point, level, accuracy=0.01)
