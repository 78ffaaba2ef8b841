"""The model of the least worst-case loss in a ball."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ambiguity import Ambiguity, LossProfile, Transport, WorstLoss
from ..losses import LipschitzLoss
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Outcome, RobustProgram, Solution
from . import conic, corners, lipschitz, transport
from .erm import ReferenceModels, least_norm_equivalent, separating_model, underdetermined
from .norm_cones import Shape
from .searching import Search
from .transport_profile import profile


def solve_robust(
    program: RobustProgram,
    references: ReferenceModels,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    say: transport.Say | None = None,
) -> Search[Solution]:
    """Smallest worst-case loss within a radius."""
    objective, minimum = program.objective, references.minimum
    if solver == "newton":
        raise NotImplementedError(why_not_smooth(objective, program.ambiguity, ball=True))
    if program.ambiguity.reweights and minimum.separable:
        # Every loss can be zero, or arbitrarily near to it: no shift of weights does harm.
        point = yield from separating_model(objective, minimum, tol=tol, max_iter=max_iter)
        outcome = Outcome.NO_LOSS if minimum.attained else Outcome.NO_MINIMUM
        return Solution(point.parameters, outcome, 1, "none")
    start = references.trivial if minimum.separable else minimum.point
    if isinstance(program.ambiguity, Transport):
        solution = transport.solve(program, start.parameters, say)
    elif isinstance(objective.loss, LipschitzLoss):
        solution = lipschitz.solve_robust(program, references, tol=tol, max_iter=max_iter)
    elif solver == "conic":
        solution = conic.solve(program)
    else:
        found = yield from corners.robust(program, start, tol=tol, max_iter=max_iter)
        outcome = Outcome.SOLVED if found.converged else Outcome.UNSETTLED
        solution = Solution(
            found.parameters, outcome, found.iterations, "interior_point", found.gap
        )
    # Where no feature is worth its cost the solver ends near zero, and zero is better still.
    reached = worst_penalised(program, objective.at(solution.parameters)).value
    for none in (references.trivial, objective.at(np.zeros(objective.size))):
        if not worst_penalised(program, none).value > reached * (1.0 + 1e-9):
            settled = solution.outcome is Outcome.SOLVED
            outcome = Outcome.TRIVIAL if settled else Outcome.UNSETTLED
            return replace(solution, parameters=none.parameters, outcome=outcome)
    if program.ambiguity.reweights and underdetermined(objective, minimum):
        shorter = least_norm_equivalent(objective, solution.parameters)
        return replace(solution, parameters=shorter)
    return solution


def worst_penalised(program: RobustProgram, point: Evaluation) -> WorstLoss:
    """Largest expected loss of a model in the ball, with its penalty."""
    worst = program.ambiguity.worst_loss(profile_of(program.ambiguity, point), program.radius)
    return worst._replace(value=worst.value + point.penalty, level=worst.level + point.penalty)


def fragility_of(ambiguity: Ambiguity, point: Evaluation, target: float) -> float:
    """Fragility of a model at a target of its penalised loss."""
    return ambiguity.fragility(profile_of(ambiguity, point), target - point.penalty)


def profile_of(ambiguity: Ambiguity, point: Evaluation) -> LossProfile:
    """The losses and the slope of a model, which an ambiguity needs to know."""
    objective = point.objective
    if isinstance(ambiguity, Transport):
        return profile(objective, ambiguity, point.parameters)
    if isinstance(objective.loss, LipschitzLoss):
        return lipschitz.profile_of(ambiguity, point)
    return LossProfile(
        point.losses,
        objective.rows.weights,
        Shape.of(objective, ambiguity).norm(point.parameters),
        point.relabelled if ambiguity.moves_labels else None,
    )


def why_not_smooth(objective: Objective, ambiguity: Ambiguity, ball: bool = False) -> str:
    """Why Newton's method does not take a program; nothing if it does."""
    if not (ball or not objective.is_smooth or ambiguity.moves_labels):
        return ""
    what = "a ball" if ball else "a finite label_cost"
    if objective.lasso > 0.0:
        what = "penalty='l1'"
    elif not objective.loss.is_smooth(objective.rows.n_classes):
        what = f"{objective.loss!r}"
    return f"solver='newton' needs a smooth program, and {what} has corners. Give solver='auto'."
