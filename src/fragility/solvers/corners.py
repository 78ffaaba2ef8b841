"""Robust programs whose losses or penalties have corners, and those whose labels may move.

Each is one interior-point program, from a model that meets the target with room.
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
from .interior_program import InteriorProgram, InteriorSolution
from .norm_cones import Shape
from .searching import Search, solution_of
from .tuning import Corners as Tuning


def lowest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> Search[InteriorSolution]:
    """Least penalised mean loss."""
    zero = objective.at(np.zeros(objective.size)).value
    cost = tie_cost(objective, start, zero)
    tol = max(tol, Tuning.rounding)
    program = InteriorProgram(start, tol, max_iter, objective=objective, squared_cost=cost)
    return (yield from solution_of(program))


def shortest_minimiser(
    objective: Objective, minimum: Evaluation, *, max_iter: int
) -> Search[Evaluation]:
    """The shortest model, in the user's units, of the lowest loss but for rounding."""
    bound = minimum.value * (1.0 + Tuning.same)
    program = InteriorProgram(
        minimum.parameters,
        Tuning.same,
        max_iter,
        objective=objective,
        target=bound,
        squared_cost=objective.length_weights,
    )
    found = yield from solution_of(program)
    shorter = objective.at(found.parameters)
    met = shorter.value <= bound * (1.0 + Tuning.same)
    return shorter if found.converged and met else minimum


def satisfice(
    program: SatisficingProgram, inside: Evaluation, *, tol: float, max_iter: int
) -> Search[InteriorSolution]:
    """Least fragility at a target; `inside` is a model that meets it with room to spare."""
    objective, ambiguity, target = program.objective, program.ambiguity, program.target
    aggregate: type[Samples] = EntropicRisk if ambiguity.reweights else Mean
    if target.separable and target.attained and target.value <= 1e-6 * target.trivial_loss:
        aggregate = Maximum  # a hinge whose mean is zero is zero for every sample
    shape, parameters = Shape.of(objective, ambiguity), inside.parameters
    if aggregate is Maximum:  # far enough out that every margin has room
        parameters = parameters * (2.0 / inside.least_margin)
    interior = InteriorProgram(
        parameters,
        _accuracy(tol),
        max_iter,
        objective=objective,
        aggregate=aggregate,
        target=target.value,
        shape=shape,
        label_cost=ambiguity.label_cost,
    )
    k = _roomy(interior, target.value, 1.1 * shape.norm(parameters))
    interior = replace(interior, k=k, squared_cost=tie_cost(objective, parameters, k))
    found = yield from solution_of(interior)
    # Of the largest loss the multiplier is another one than of the mean.
    return found._replace(multiplier=0.0) if aggregate is Maximum else found


def robust(
    program: RobustProgram, start: Evaluation, *, tol: float, max_iter: int
) -> Search[InteriorSolution]:
    """Least worst-case loss within a radius."""
    objective, ambiguity, radius = program.objective, program.ambiguity, program.radius
    shape, parameters = Shape.of(objective, ambiguity), start.parameters
    interior = InteriorProgram(
        parameters,
        _accuracy(tol),
        max_iter,
        objective=objective,
        aggregate=EntropicRisk if ambiguity.reweights else Mean,
        shape=shape,
        k_cost=radius,
        squared_cost=tie_cost(objective, parameters, start.value),
        label_cost=ambiguity.label_cost,
    )
    if not ambiguity.reweights:
        norm = shape.norm(parameters)
        k = 1.1 * norm + min(1e-3 * start.value / radius, 1e6 * max(norm, 1.0))
        return (yield from solution_of(replace(interior, k=k)))
    spread = float(np.ptp(start.losses))
    found = yield from solution_of(replace(interior, k=max(spread, 1e-3 * start.value)))
    if found.converged and found.k * radius > Tuning.no_k * found.cost:
        return found
    largest = yield from smallest_largest_loss(objective, parameters, tol=tol, max_iter=max_iter)
    return min(found, largest, key=lambda one: one.cost if np.isfinite(one.cost) else inf)


def smallest_largest_loss(
    objective: Objective, start: Floats, *, tol: float, max_iter: int
) -> Search[InteriorSolution]:
    """Least penalised largest loss."""
    cost = tie_cost(objective, start, 1.0)
    return (yield from solution_of(_largest(objective, start, tol, max_iter, cost)))


def shortest_meeting(
    objective: Objective, target: float, inside: Floats, *, tol: float, max_iter: int
) -> Search[InteriorSolution]:
    """The shortest model, in the user's units, whose losses all meet the target."""
    weights, steps = objective.length_weights, 0
    for _ in range(Tuning.most_searches):
        interior = _largest(objective, inside, tol, max_iter, weights)
        found = yield from solution_of(replace(interior, target=target))
        steps += found.iterations
        # A length is known to a share of the first one: from far out, search again from here.
        if not found.cost < Tuning.far_out * 0.5 * float(weights @ inside**2):
            break
        inside = found.parameters
    return found._replace(iterations=steps)


def _largest(
    objective: Objective, start: Floats, tol: float, max_iter: int, squared_cost: Any
) -> InteriorProgram:
    return InteriorProgram(
        start,
        _accuracy(tol),
        max_iter,
        objective=objective,
        aggregate=Maximum,
        squared_cost=squared_cost,
    )


def _accuracy(tol: float) -> float:
    return max(Tuning.settled * tol, Tuning.rounding)


def _roomy(interior: InteriorProgram, target: float, k: float) -> float:
    """A k at which the model meets the target with about half the room that it ever has."""
    assert interior.objective is not None
    own, weights = interior.objective.at(interior.start), interior.objective.rows.weights
    enough, cost = (own.value + target) / 2.0 - own.penalty, interior.label_cost
    if interior.aggregate is Maximum:
        return k
    if interior.aggregate is EntropicRisk:
        k = max(k, 1e-3 * float(np.ptp(own.losses)), 1e-12)
        highest = float(own.losses.max())
    elif cost < inf:
        k = max(k, 1e-3 * float((own.relabelled - own.losses).max()) / cost)
    k = max(k, 1e-12)
    for _ in range(100):  # without any room no k is large enough
        if interior.aggregate is EntropicRisk:
            risk = highest + k * np.log(weights @ np.exp((own.losses - highest) / k))
        elif cost < inf:
            risk = weights @ np.maximum(own.losses, own.relabelled - k * cost)
        else:
            break
        if risk <= enough:
            break
        k *= 1.5
    return k


def tie_cost(objective: Objective, parameters: Floats, cost: float) -> Floats:
    """A cost of length too small to matter, except between models of the same cost."""
    weights = objective.length_weights
    # A model near zero says nothing about the length of others. Columns are scaled, so 1 is likely.
    squared = max(float(weights @ parameters**2), float(weights.max(initial=0.0)), 1e-300)
    return weights * (Tuning.tie * cost / squared)
