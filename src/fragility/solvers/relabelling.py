r"""Least fragility where labels move at a cost, for cross-entropy and no penalty or a ridge.

Another label adds the gap of two scores to cross-entropy, and only few samples gain more than it
costs. So the mean loss is replaced by its quadratic model, as in `wasserstein`, and the gaps of
those few are kept as they are: each step is an interior-point problem of their size. A model that
the loss exceeds is lifted. Where labels are so cheap that the solution is far from where the search
starts, no model serves, and the search says that it has not converged.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from .._typing import Floats, Mask
from ..programs.objective import Evaluation
from ..programs.satisficing import SatisficingProgram
from .corners import tie_cost
from .interior_program import InteriorProgram, InteriorSolution, Quadratic
from .norm_cones import Shape
from .robust import fragility_of
from .searching import Search, solution_of
from .tuning import Labels as Tuning


def satisfice(
    program: SatisficingProgram,
    inside: Evaluation,
    *,
    tol: float,
    max_iter: int,
    multiplier: float = 0.0,
) -> Search[InteriorSolution]:
    """Least fragility at a target; `inside` is a model that meets it with room to spare.

    `multiplier` is about how fast the fragility falls as the target rises, if that is known.
    """
    settled = max(Tuning.settled * tol, Tuning.rounding)
    ambiguity, target = program.ambiguity, program.target.value
    point, k = inside, fragility_of(ambiguity, inside, target)
    accuracy, steps, gap = Tuning.rough, 0, inf
    for _ in range(Tuning.max_steps):
        model = Quadratic(point.parameters, point.value, point.gradient, point.hessian)
        plain = True
        for _ in range(Tuning.max_corrections):
            above = (1.0 + min(0.1, max(1e-3, gap))) * k
            hints = {"tol": accuracy, "max_iter": max_iter, "k": above, "multiplier": multiplier}
            found = yield from _step(program, point, model, k, hints)
            steps, multiplier = steps + found.iterations, found.multiplier
            trial = point.objective.at(found.parameters)
            reached = fragility_of(ambiguity, trial, target)
            if reached < k:
                break
            # The loss has risen above its model, and the target with it: so shall the model.
            plain = False
            rise = trial.value - model.value(trial.parameters)
            model = model._replace(height=model.height + Tuning.ample * max(rise, 0.0))
        if not reached < k:  # as near to the model as rounding lets us, or too far for a model
            gap = abs(k - found.k) / k
            break
        # A model that was lifted agrees with the loss where it ends, whatever it has missed.
        gap = abs(reached - found.k) if plain else k - reached
        point, k, gap = trial, reached, gap / reached
        if gap + accuracy <= settled:
            break
        accuracy = max(0.1 * settled, min(accuracy, 0.1 * gap**2))  # as the next gap will be
    settled_at = point.parameters, k, k, float(gap), steps, bool(gap <= tol)
    return InteriorSolution(*settled_at, found.multiplier)


def _step(
    program: SatisficingProgram,
    point: Evaluation,
    model: Quadratic,
    k: float,
    hints: Any,
) -> Search[InteriorSolution]:
    """Solve with the model of the mean loss about a point, and the samples that matter."""
    ambiguity, objective = program.ambiguity, program.objective
    cost = ambiguity.label_cost
    gains = point.relabelled - point.losses
    counted = gains >= min(Tuning.may_pay * k * cost, float(gains.max()))
    while True:
        rows = objective.rows
        few = replace(rows, X=rows.X[counted], y=rows.y[counted], weights=rows.weights[counted])
        interior = InteriorProgram(
            point.parameters,
            objective=replace(objective, rows=few, alpha=0.0),
            target=program.target.value,
            shape=Shape.of(objective, ambiguity),
            squared_cost=tie_cost(objective, point.parameters, k),
            label_cost=cost,
            model=model,
            **hints,
        )
        found = yield from solution_of(interior)
        missed = _missed(point, found, counted, cost)
        if not missed.any():
            return found
        counted = counted | missed


def _missed(point: Evaluation, found: InteriorSolution, counted: Mask, cost: float) -> Mask:
    """Samples that were left out and gain more than another label costs."""
    there = point.objective.at(found.parameters)
    gains: Floats = there.relabelled - there.losses
    beyond: Mask = ~counted & (gains > found.k * cost * (1.0 + 1e-9))
    return beyond if not beyond.any() else ~counted & (gains > Tuning.may_pay * found.k * cost)
