"""Robust programs whose losses or penalties have corners, and those whose labels may move.

Each is one call of the interior-point method, from a model that meets the target with room.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import RobustProgram, SatisficingProgram
from .aggregates import EntropicRisk, Maximum, Mean, Samples
from .interior_point import InteriorProgram, InteriorSolution
from .norm_cones import Shape

#: A tie between models of the same cost is broken by their length, at this share of the cost: the
#: length of the solution is not known, and its cost must not matter where it is much longer.
_TIE = 1e-11
#: A loss this near to the lowest, relatively, is the lowest but for rounding.
_SAME = 1e-9
#: Accuracy asked of the interior-point method, as a share of the tolerance; never finer than this.
_SETTLED, _ROUNDING = 1e-3, 1e-10
#: A k below this share of the cost is zero: only the largest loss counts.
_NO_K = 1e-7


def lowest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least penalised mean loss."""
    zero = objective.at(np.zeros(objective.size)).value
    interior = InteriorProgram(objective, squared_cost=tie_cost(objective, start, zero))
    return interior.solve(start, tol=max(tol, _ROUNDING), max_iter=max_iter)


def shortest_minimiser(objective: Objective, minimum: Evaluation, *, max_iter: int) -> Evaluation:
    """The shortest model, in the user's units, of the lowest loss but for rounding."""
    bound = minimum.value * (1.0 + _SAME)
    interior = InteriorProgram(objective, target=bound, squared_cost=objective.length_weights)
    found = interior.solve(minimum.parameters, tol=_SAME, max_iter=max_iter)
    shorter = objective.at(found.parameters)
    return shorter if found.converged and shorter.value <= bound * (1.0 + _SAME) else minimum


def satisfice(
    program: SatisficingProgram, inside: Evaluation, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least fragility at a target; `inside` is a model that meets it with room to spare."""
    objective, ambiguity, target = program.objective, program.ambiguity, program.target
    aggregate: type[Samples] = EntropicRisk if ambiguity.reweights else Mean
    if target.separable and target.attained and target.value <= 1e-6 * target.trivial_loss:
        aggregate = Maximum  # a hinge whose mean is zero is zero for every sample
    shape = Shape.of(objective, ambiguity)
    interior = InteriorProgram(
        objective, aggregate, target.value, shape, label_cost=ambiguity.label_cost
    )
    parameters = inside.parameters
    if aggregate is Maximum:  # far enough out that every margin has room
        parameters = parameters * (2.0 / (1.0 - float(inside.losses.max())))
    k = _roomy(interior, parameters, target.value, 1.1 * shape.norm(parameters))
    interior = replace(interior, squared_cost=tie_cost(objective, parameters, k))
    return interior.solve(parameters, tol=_accuracy(tol), max_iter=max_iter, k=k)


def robust(
    program: RobustProgram, start: Evaluation, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least worst-case loss within a radius."""
    objective, ambiguity, radius = program.objective, program.ambiguity, program.radius
    shape, parameters = Shape.of(objective, ambiguity), start.parameters
    interior = InteriorProgram(
        objective,
        EntropicRisk if ambiguity.reweights else Mean,
        shape=shape,
        k_cost=radius,
        squared_cost=tie_cost(objective, parameters, start.value),
        label_cost=ambiguity.label_cost,
    )
    options: Any = {"tol": _accuracy(tol), "max_iter": max_iter}
    if not ambiguity.reweights:
        norm = shape.norm(parameters)
        k = 1.1 * norm + min(1e-3 * start.value / radius, 1e6 * max(norm, 1.0))
        return interior.solve(parameters, k=k, **options)
    spread = float(np.ptp(start.losses))
    found = interior.solve(parameters, k=max(spread, 1e-3 * start.value), **options)
    if found.converged and found.k * radius > _NO_K * found.cost:
        return found
    largest = smallest_largest_loss(objective, parameters, tol=tol, max_iter=max_iter)
    return min(found, largest, key=lambda one: one.cost if np.isfinite(one.cost) else inf)


def smallest_largest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """Least penalised largest loss."""
    interior = InteriorProgram(objective, Maximum, squared_cost=tie_cost(objective, start, 1.0))
    return interior.solve(start, tol=_accuracy(tol), max_iter=max_iter)


def shortest_meeting(
    objective: Objective, target: float, inside: Floats, *, tol: float, max_iter: int
) -> InteriorSolution:
    """The shortest model, in the user's units, whose losses all meet the target."""
    interior = InteriorProgram(
        objective, Maximum, target=target, squared_cost=objective.length_weights
    )
    return interior.solve(inside, tol=_accuracy(tol), max_iter=max_iter)


def _accuracy(tol: float) -> float:
    return max(_SETTLED * tol, _ROUNDING)


def _roomy(interior: InteriorProgram, parameters: Floats, target: float, k: float) -> float:
    """A k at which the model meets the target with about half the room that it ever has."""
    own = interior.objective.at(parameters)
    enough = (own.value + target) / 2.0
    if interior.aggregate is EntropicRisk:
        k = max(k, 1e-3 * float(np.ptp(own.losses)), 1e-12)
    elif interior.aggregate is Maximum:
        return k
    if interior.label_cost < inf:
        gain = float((own.relabelled - own.losses).max())
        k = max(k, 1e-3 * gain / interior.label_cost)
    k = max(k, 1e-12)
    for _ in range(100):  # without any room no k is large enough
        if interior.height(parameters, k) <= enough:
            break
        k *= 1.5
    return k


def tie_cost(objective: Objective, parameters: Floats, cost: float) -> Floats:
    """A cost of length too small to matter, except between models of the same cost."""
    weights = objective.length_weights
    # A model near zero says nothing about the length of others. Columns are scaled, so 1 is likely.
    squared = max(float(weights @ parameters**2), float(weights.max(initial=0.0)), 1e-300)
    return weights * (_TIE * cost / squared)
