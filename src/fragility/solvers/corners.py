"""Robust programs whose losses or penalties have corners, and those whose labels may move.

Each is one call of the interior-point method, from a model that meets the target with room.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats
from ..ambiguity import KL, Ambiguity, Wasserstein
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import RobustProgram, SatisficingProgram
from .interior_point import InteriorProgram, InteriorSolution
from .levels import Common, Levels, Mean, Moment
from .norm_cones import Ray, Shape

#: A tie between models of the same cost is broken by their length, at this share of the cost: the
#: length of the solution is not known, and the price must not matter where it is much longer.
_TIE = 1e-11
#: A loss this near to the lowest, relatively, is the lowest but for rounding.
_SAME = 1e-9
#: Accuracy asked of the interior-point method, as a share of the tolerance; never finer than this.
_SETTLED, _ROUNDING = 1e-3, 1e-10
#: A κ below this share of the cost is none: only the largest loss counts.
_NO_KAPPA = 1e-7


def lowest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least penalised mean loss."""
    zero = objective.at(np.zeros(objective.size)).value
    interior = InteriorProgram(objective, price=tie(objective, start, zero))
    return interior.solve(start, tol=max(tol, _ROUNDING), max_iter=max_iter)


def shortest_minimiser(objective: Objective, minimum: Evaluation, *, max_iter: int) -> Evaluation:
    """The shortest model, in the user's units, of the lowest loss but for rounding."""
    level = minimum.value * (1.0 + _SAME)
    interior = InteriorProgram(objective, target=level, price=objective.lengths)
    found = interior.solve(minimum.parameters, tol=_SAME, max_iter=max_iter)
    shorter = objective.at(found.parameters)
    return shorter if found.converged and shorter.value <= level * (1.0 + _SAME) else minimum


def satisfice(
    program: SatisficingProgram, inside: Evaluation, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least fragility at a target; `inside` is a model that meets it with room to spare."""
    objective, target = program.objective, program.target
    levels: type[Levels] = Moment if isinstance(program.ambiguity, KL) else Mean
    if target.separable and target.attained and target.value <= 1e-6 * target.trivial_loss:
        levels = Common  # a hinge of zero: that of every sample
    shape = shape_of(objective, program.ambiguity)
    interior = InteriorProgram(
        objective,
        levels,
        target=target.value,
        shape=shape,
        label_cost=getattr(program.ambiguity, "label_cost", inf),
    )
    parameters = inside.parameters
    if levels is Common:  # far enough out that every margin has room
        parameters = parameters * (2.0 / (1.0 - float(inside.losses.max())))
    kappa = _roomy(interior, parameters, target.value, 1.1 * shape.norm(parameters))
    interior = replace(interior, price=tie(objective, parameters, kappa))
    return interior.solve(parameters, tol=_accuracy(tol), max_iter=max_iter, kappa=kappa)


def robust(
    program: RobustProgram, start: Evaluation, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least worst-case loss within a radius."""
    objective, ambiguity, radius = program.objective, program.ambiguity, program.radius
    shape = shape_of(objective, ambiguity)
    parameters = start.parameters
    price = tie(objective, parameters, start.value)
    options: Any = {"tol": _accuracy(tol), "max_iter": max_iter}
    if isinstance(ambiguity, Wasserstein):
        interior = InteriorProgram(
            objective, Mean, None, shape, radius, price, label_cost=ambiguity.label_cost
        )
        norm = shape.norm(parameters)
        kappa = 1.1 * norm + min(1e-3 * start.value / radius, 1e6 * max(norm, 1.0))
        return interior.solve(parameters, kappa=kappa, **options)
    interior = InteriorProgram(objective, Moment, None, shape, radius, price)
    spread = float(np.ptp(start.losses))
    found = interior.solve(parameters, kappa=max(spread, 1e-3 * start.value), **options)
    if found.converged and found.kappa * radius > _NO_KAPPA * found.cost:
        return found
    largest = smallest_largest_loss(objective, parameters, tol=tol, max_iter=max_iter)
    return min(found, largest, key=lambda one: one.cost if np.isfinite(one.cost) else inf)


def smallest_largest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least penalised largest loss."""
    interior = InteriorProgram(objective, Common, price=tie(objective, start, 1.0))
    return interior.solve(start, tol=_accuracy(tol), max_iter=max_iter)


def shortest_meeting(
    objective: Objective, target: float, inside: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """The shortest model, in the user's units, of which every loss meets the target."""
    interior = InteriorProgram(objective, Common, target=target, price=objective.lengths)
    return interior.solve(inside, tol=_accuracy(tol), max_iter=max_iter)


def _accuracy(tol: float) -> float:
    return max(_SETTLED * tol, _ROUNDING)


def _roomy(interior: InteriorProgram, parameters: Floats, target: float, kappa: float) -> float:
    """A κ at which the model meets the target with about half the room that it ever has."""
    objective = interior.objective
    own = objective.at(parameters)
    enough = (own.value + target) / 2.0
    if interior.levels is Moment:
        kappa = max(kappa, 1e-3 * float(np.ptp(own.losses)), 1e-12)
    elif interior.levels is Common:
        return kappa
    if interior.label_cost < inf:
        gain = float((own.relabelled - own.losses).max())
        kappa = max(kappa, 1e-3 * gain / interior.label_cost)
    kappa = max(kappa, 1e-12)
    for _ in range(100):  # with no room at all no κ would do
        if interior.height(parameters, kappa) <= enough:
            break
        kappa *= 1.5
    return kappa


def tie(objective: Objective, parameters: Floats, cost: float) -> Floats:
    """A price of length too small to matter, except between models of the same cost."""
    lengths = objective.lengths
    # A model near zero says nothing of how long others are; columns are scaled, so one may be.
    squared = max(float(lengths @ parameters**2), float(lengths.max(initial=0.0)), 1e-300)
    return lengths * (_TIE * cost / squared)


def shape_of(objective: Objective, ambiguity: Ambiguity) -> Shape:
    """The cone of models and their fragility."""
    if isinstance(ambiguity, KL):
        return Shape(Ray(), np.zeros(0, dtype=np.intp), np.zeros(0))
    assert isinstance(ambiguity, Wasserstein)
    return Shape.of(objective, ambiguity, objective.loss.steepness, free_to_shift=False)
