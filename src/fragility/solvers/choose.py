"""Which method solves which program, and what to say when none does."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from ..ambiguity import KL, Ambiguity, Wasserstein
from ..losses import CrossEntropy, Loss
from ..moments import Floats
from ..programs.objective import Evaluation
from ..programs.satisficing import Outcome, SatisficingProgram, Solution
from . import conic, corners, kl, relabelling, wasserstein
from .erm import (
    descend_below,
    least_norm_equivalent,
)
from .erm import underdetermined as is_underdetermined
from .every_sample import least_norm_meeting
from .feasible import meeting
from .landmarks import Landmarks
from .newton import Curvature
from .robust import profile_of, require_smooth
from .starts import inside_of, wasserstein_start

SOLVERS = ("auto", "newton", "interior_point", "conic")
#: A fragility below this share of the target is none but for rounding.
_NO_FRAGILITY = 1e-9


def check_solvable(loss: Loss, ambiguity: Ambiguity, solver: str) -> None:
    """Refuse programs of a kind that is not solved."""
    if type(ambiguity) not in (KL, Wasserstein):
        raise NotImplementedError(f"ambiguity must be KL() or Wasserstein(); got {ambiguity!r}.")
    if solver == "conic":
        conic.check_loss(loss)


def solve(
    program: SatisficingProgram,
    landmarks: Landmarks,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
    curvature: Any = None,
) -> Solution:
    """Solve a program, from a model near its solution if one is known.

    `curvature` is that of the `Solution` which the start is from, or next to: it says that the
    start is as good as solved, and need not meet the target. Both are hints.
    """
    target, objective = program.target, program.objective
    if solver == "newton":
        require_smooth(objective, program.ambiguity)
    if program.ambiguity.moves_labels:
        zero = np.zeros(objective.size)
        if target.value >= _relabelled_mean(objective.at(zero)):
            return Solution(zero, Outcome.TRIVIAL, 1, "none")
    if target.tight and not target.learnable:
        return Solution(landmarks.trivial.parameters, Outcome.NOTHING_LEARNED, 1, "none")
    features_only = (
        isinstance(program.ambiguity, Wasserstein) and not program.ambiguity.moves_labels
    )
    if features_only and target.value >= target.trivial_loss:
        return Solution(landmarks.trivial.parameters, Outcome.TRIVIAL, 1, "none")
    if solver == "conic":
        return _solve_conic(program, landmarks, max_iter)
    if not objective.is_smooth or solver == "interior_point":
        return _solve_with_corners(program, landmarks, tol, max_iter)
    if isinstance(program.ambiguity, KL):
        return _solve_kl(program, landmarks, tol, max_iter, start, curvature)
    return _solve_wasserstein(program, landmarks, tol, max_iter, start, curvature)


def _relabelled_mean(point: Evaluation) -> float:
    """Mean loss of a model with the worst labels that there are."""
    worst = np.maximum(point.losses, point.relabelled)
    return float(point.objective.rows.weights @ worst) + point.penalty


def _solve_kl(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    start: Floats | None,
    curvature: Curvature | None,
) -> Solution:
    objective, target, minimum = program.objective, program.target, landmarks.minimum
    point = minimum.point if start is None else objective.at(start)
    if not point.value < target.value and target.value > target.erm_loss:
        level = (target.value + target.erm_loss) / 2.0
        point = descend_below(objective, minimum.point.parameters, level, max_iter=max_iter)
        curvature = None
    found = kl.satisfice(
        objective,
        target.value,
        point.parameters,
        tol=tol,
        max_iter=max_iter,
        curvature=curvature,
    )
    parameters, iterations = found.point.parameters, found.iterations
    if found.least <= _NO_FRAGILITY * target.value:
        short = _shortest_without_fragility(program, landmarks, parameters, max_iter)
        if short is not None:
            return replace(short, iterations=iterations + short.iterations)
    if is_underdetermined(objective, minimum):
        parameters = least_norm_equivalent(objective, parameters)
    settled = found.converged or (target.tight and found.least == inf)
    outcome = Outcome.SOLVED if settled else Outcome.UNSETTLED
    gap = found.gap / found.least if found.least < inf else inf
    return Solution(parameters, outcome, iterations, "newton", gap, found.least, found.curvature)


def _shortest_without_fragility(
    program: SatisficingProgram, landmarks: Landmarks, start: Floats, max_iter: int
) -> Solution | None:
    """The shortest model of which every loss meets the target, if there is one near the start."""
    objective, target = program.objective, program.target.value
    if objective.is_smooth:
        found = least_norm_meeting(objective, target, start, max_iter=max_iter)
        if found is None:
            return None
        parameters, iterations = found
    elif float(objective.at(np.zeros(objective.size)).losses.max()) <= target:
        parameters, iterations = np.zeros(objective.size), 1
    else:
        # Met to the last digit, or a fragility would be left.
        within = target * (1.0 - 1e-8)
        short = corners.shortest_meeting(objective, within, start, tol=1e-6, max_iter=max_iter)
        parameters, iterations = short.parameters, short.iterations
    if not objective.split(parameters)[0].any():
        # No feature is needed: of the intercepts that are left, that of the lowest mean loss.
        share = 1.0
        while share > 0.0:
            if float(objective.at(share * landmarks.trivial.parameters).losses.max()) <= target:
                break
            share -= 1.0 / 64.0
        parameters = share * landmarks.trivial.parameters
    return Solution(parameters, Outcome.NO_FRAGILITY, iterations, "newton")


def _solve_conic(program: SatisficingProgram, landmarks: Landmarks, max_iter: int) -> Solution:
    solution, target = conic.solve(program), program.target.value
    point, inside = program.objective.at(solution.parameters), landmarks.minimum.point
    if isinstance(program.ambiguity, KL):
        if float(point.losses.max()) + point.penalty <= target * (1.0 + 1e-6):
            short = _shortest_without_fragility(program, landmarks, solution.parameters, max_iter)
            return solution if short is None else replace(short, solver="conic")
        return solution
    if inside.value > target:
        inside = inside_of(program, landmarks.minimum, 0.5, max_iter)
    return replace(solution, parameters=meeting(point, inside, target).parameters)


def _solve_wasserstein(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    start: Floats | None,
    curvature: Floats | None,
) -> Solution:
    objective, target = program.objective, program.target
    minimum, hessian, inside = landmarks.minimum, None, None
    if program.ambiguity.moves_labels and target.value >= target.trivial_loss:
        return _solve_with_corners(program, landmarks, tol, max_iter)
    point = None if start is None else objective.at(start)
    if point is not None and not point.value < target.trivial_loss:
        point = None  # a guess that was none
    if point is not None and curvature is not None and minimum.point.value < target.value:
        hessian, inside = curvature, minimum.point
    elif point is not None and point.value < target.value:
        pass  # cold, but it meets the target
    elif minimum.curvature is not None and not minimum.curvature.singular:
        point, hessian = minimum.point, minimum.curvature.hessian
    else:
        point = wasserstein_start(program, minimum, max_iter)
    found = wasserstein.satisfice(
        program,
        point,
        tol=tol,
        max_iter=max_iter,
        hessian=hessian,
        underdetermined=is_underdetermined(objective, minimum),
        inside=inside,
    )
    if program.ambiguity.moves_labels:
        # If no label pays at the fragility of features that move alone, that is the solution.
        profile = profile_of(program.ambiguity, found.point)
        room = target.value - found.point.penalty
        if program.ambiguity.fragility(profile, room) > profile.slope * (1.0 + 1e-12):
            solution = _solve_with_corners(program, landmarks, tol, max_iter, found.point)
            return replace(solution, iterations=solution.iterations + found.iterations)
    outcome = Outcome.SOLVED if found.converged or target.tight else Outcome.UNSETTLED
    gap = found.gap / max(found.least, 1e-300)
    return Solution(
        found.point.parameters,
        outcome,
        found.iterations,
        "newton",
        gap,
        objective.loss.steepness * found.least,
        found.curvature,
    )


def _solve_with_corners(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    near: Evaluation | None = None,
) -> Solution:
    objective, target, minimum = program.objective, program.target, landmarks.minimum
    inside = minimum.point
    if inside.value >= target.value or (minimum.separable and not minimum.attained):
        inside = inside_of(program, minimum, 0.5, max_iter)
    by_weights = isinstance(program.ambiguity, KL)
    none = objective.at(np.zeros(objective.size))
    if by_weights and (minimum.separable or float(none.losses.max()) <= target.value):
        short = _shortest_without_fragility(program, landmarks, inside.parameters, max_iter)
        if short is not None:
            return replace(short, solver="interior_point")
    found = None
    if near is not None and isinstance(objective.loss, CrossEntropy):
        # Half way from there, so that it meets the target with room.
        start = objective.at(0.5 * (near.parameters + inside.parameters))
        found = relabelling.satisfice(program, start, tol=tol, max_iter=max_iter)
    if found is None or not found.converged:
        found = corners.satisfice(program, inside, tol=tol, max_iter=max_iter)
    if by_weights and not (found.converged and found.kappa > _NO_FRAGILITY * target.value):
        # Perhaps no loss need exceed the target at all.
        least = corners.smallest_largest_loss(
            objective, inside.parameters, tol=tol, max_iter=max_iter
        )
        if least.cost < target.value:
            short = _shortest_without_fragility(program, landmarks, least.parameters, max_iter)
            if short is not None:
                return replace(short, solver="interior_point")
    point = meeting(objective.at(found.parameters), inside, target.value)
    parameters = point.parameters
    if by_weights and is_underdetermined(objective, minimum):
        parameters = least_norm_equivalent(objective, parameters)
    outcome = Outcome.SOLVED if found.converged or target.tight else Outcome.UNSETTLED
    return Solution(parameters, outcome, found.iterations, "interior_point", found.gap)
