"""Which method solves which program, and what to say when none does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from ..ambiguity import KL, Ambiguity, Wasserstein
from ..losses import Loss
from ..moments import Floats
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Outcome, SatisficingProgram, Solution
from . import conic, kl, wasserstein
from .erm import (
    RiskMinimum,
    accuracy_of_minimum,
    descend_below,
    erm,
    least_norm_equivalent,
    trivial_model,
)
from .erm import underdetermined as is_underdetermined
from .every_sample import least_norm_meeting
from .feasible import meeting

__all__ = ["Landmarks", "find_landmarks", "refusal", "solve"]

#: A fragility below this share of the target is none but for rounding.
_NO_FRAGILITY = 1e-9


class Landmarks(NamedTuple):
    """The best model of all and the best of those that use no feature that may shift."""

    minimum: RiskMinimum
    trivial: Evaluation


def refusal(loss: Loss, ambiguity: Ambiguity, solver: str) -> str | None:
    """Why programs of this kind are not solved, as a sentence; None if they are."""
    if type(ambiguity) not in _METHODS:
        return f"ambiguity must be KL() or Wasserstein(); got {ambiguity!r}."
    if solver == "conic" and (reason := conic.refusal(loss)) is not None:
        return reason
    if isinstance(ambiguity, Wasserstein) and ambiguity.label_cost < inf:
        return (
            f"label_cost={ambiguity.label_cost:g} is not supported: labels cannot move yet. Give "
            "label_cost=inf; shifts of the features are supported in the norms 1, 2 and inf."
        )
    return None


def find_landmarks(
    objective: Objective, ambiguity: Ambiguity, start: Floats, *, tol: float, max_iter: int
) -> Landmarks:
    """Minimise the loss over all models and over the trivial ones."""
    accuracy = accuracy_of_minimum(tol)
    minimum = erm(objective, start, tol=accuracy, max_iter=max_iter)
    fixed = ambiguity.fixed(objective.rows.X.shape[1])
    trivial = trivial_model(objective, fixed, max_iter=max_iter)
    if minimum.loss > trivial.value:
        minimum = erm(objective, trivial.parameters, tol=accuracy, max_iter=max_iter)
    return Landmarks(minimum, trivial)


def solve(
    program: SatisficingProgram,
    landmarks: Landmarks,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
) -> Solution:
    """Solve a program, from a model near its solution if one is known."""
    target = program.target
    if target.tight and not target.learnable:
        return Solution(landmarks.trivial.parameters, Outcome.NOTHING_LEARNED, 1, "none")
    if isinstance(program.ambiguity, Wasserstein) and target.value >= target.trivial_loss:
        return Solution(landmarks.trivial.parameters, Outcome.TRIVIAL, 1, "none")
    if solver == "conic":
        return _solve_conic(program, landmarks, max_iter)
    return _METHODS[type(program.ambiguity)](program, landmarks, tol, max_iter, start)


def _solve_kl(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    start: Floats | None,
) -> Solution:
    objective, target, minimum = program.objective, program.target, landmarks.minimum
    point = minimum.point if start is None else objective.at(start)
    if point.value >= target.value and target.value > target.erm_loss:
        level = (target.value + target.erm_loss) / 2.0
        point = descend_below(objective, minimum.point.parameters, level, max_iter=max_iter)
    found = kl.satisfice(objective, target.value, point.parameters, tol=tol, max_iter=max_iter)
    parameters, iterations = found.point.parameters, found.iterations
    if found.fragility <= _NO_FRAGILITY * target.value:
        short = _shortest_without_fragility(program, landmarks, parameters, max_iter)
        if short is not None:
            return replace(short, iterations=iterations + short.iterations)
    if is_underdetermined(objective, minimum):
        parameters = least_norm_equivalent(objective, parameters)
    settled = found.converged or (target.tight and found.fragility == inf)
    outcome = Outcome.SOLVED if settled else Outcome.UNSETTLED
    return Solution(parameters, outcome, iterations, "newton", found.gap / found.fragility)


def _shortest_without_fragility(
    program: SatisficingProgram, landmarks: Landmarks, start: Floats, max_iter: int
) -> Solution | None:
    """The shortest model of which every loss meets the target, if there is one near the start."""
    objective, target = program.objective, program.target.value
    short = least_norm_meeting(objective, target, start, max_iter=max_iter)
    if short is None:
        return None
    parameters = short.parameters
    if not objective.split(parameters)[0].any():
        # No feature is needed: of the intercepts that are left, that of the lowest mean loss.
        share = 1.0
        while float(objective.at(share * landmarks.trivial.parameters).losses.max()) > target:
            share -= 1.0 / 64.0
        parameters = share * landmarks.trivial.parameters
    return Solution(parameters, Outcome.NO_FRAGILITY, short.iterations, "newton")


def _solve_conic(program: SatisficingProgram, landmarks: Landmarks, max_iter: int) -> Solution:
    solution, target = conic.solve(program), program.target.value
    point, inside = program.objective.at(solution.parameters), landmarks.minimum.point
    if isinstance(program.ambiguity, KL):
        if float(point.losses.max()) + point.penalty <= target * (1.0 + 1e-6):
            short = _shortest_without_fragility(program, landmarks, solution.parameters, max_iter)
            return solution if short is None else replace(short, solver="conic")
        return solution
    if inside.value > target:
        inside = descend_below(
            program.objective, inside.parameters, 0.5 * target, max_iter=max_iter
        )
    return replace(solution, parameters=meeting(point, inside, target).parameters)


def _solve_wasserstein(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    start: Floats | None,
) -> Solution:
    objective, target = program.objective, program.target
    minimum, hessian = landmarks.minimum, None
    if start is not None:
        point = objective.at(start)
    elif minimum.curvature is not None and not minimum.curvature.singular:
        point, hessian = minimum.point, minimum.curvature.hessian
    else:
        level = target.erm_loss + 0.7 * (target.value - target.erm_loss)
        point = _short_model(objective, minimum, level, max_iter)
        point = _softened_start(program, point, level, max_iter)
    found = _least_norm(
        program, point, tol, max_iter, hessian, is_underdetermined(objective, minimum)
    )
    outcome = Outcome.SOLVED if found.converged or target.tight else Outcome.UNSETTLED
    gap = found.gap / max(found.norm, 1e-300)
    return Solution(found.point.parameters, outcome, found.iterations, "newton", gap)


def _least_norm(
    program: SatisficingProgram,
    start: Evaluation,
    tol: float,
    max_iter: int,
    hessian: Floats | None = None,
    underdetermined: bool = False,
) -> wasserstein.WassersteinSolution:
    ambiguity = program.ambiguity
    assert isinstance(ambiguity, Wasserstein)
    return wasserstein.satisfice(
        program.objective,
        program.target.value,
        start,
        norm=ambiguity.norm,
        mobility=ambiguity.mobility(program.objective.rows.X.shape[1]),
        tol=tol,
        max_iter=max_iter,
        hessian=hessian,
        underdetermined=underdetermined,
    )


def _softened_start(
    program: SatisficingProgram, inside: Evaluation, level: float, max_iter: int
) -> Evaluation:
    """The solution for a softer loss, moved until it meets the level of the loss itself.

    `inside` is a model that does, and the start where there is no softer loss.
    """
    softer = program.objective.loss.softened()
    if softer is None:
        return inside
    soft = replace(program, objective=replace(program.objective, loss=softer))
    start = _softened_start(soft, soft.objective.at(inside.parameters), level, max_iter)
    if start.value > level:
        return inside
    found = _least_norm(soft, start, 1e-3, max_iter).point
    return meeting(program.objective.at(found.parameters), inside, level)


def _short_model(
    objective: Objective, minimum: RiskMinimum, level: float, max_iter: int
) -> Evaluation:
    """A model of at most this loss that is not far out.

    The minimum may be, where a class, or a part of it, can be told apart without a mistake.
    """
    strength = (level - minimum.loss) * float(np.mean(objective.rows.scale**2))
    for _ in range(0 if objective.alpha > 0.0 else 8):
        penalised = replace(objective, alpha=strength)
        found = erm(penalised, np.zeros(objective.size), tol=1e-4, max_iter=max_iter)
        point = objective.at(found.point.parameters)
        if point.value <= level:
            return point
        strength /= 10.0
    return _just_below(objective, minimum.point, level, max_iter)


def _just_below(objective: Objective, point: Evaluation, level: float, max_iter: int) -> Evaluation:
    """A model of about this loss, as far in as its direction allows.

    Far out the loss of separable data, or of a class that is, has no curvature to speak of.
    """
    if point.value > level:
        point = descend_below(objective, point.parameters, level, max_iter=max_iter)
    low, high = 0.0, 1.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2.0
        trial = objective.at(middle * point.parameters)
        low, high = (low, middle) if trial.value <= level else (middle, high)
    return objective.at(high * point.parameters)


_METHODS: dict[type[Ambiguity], Callable[..., Solution]] = {
    KL: _solve_kl,
    Wasserstein: _solve_wasserstein,
}
