"""Which method solves which program, and what to say when none does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import NamedTuple

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
from .starts import wasserstein_start

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
    gap = found.gap / found.fragility if found.fragility < inf else inf
    return Solution(parameters, outcome, iterations, "newton", gap)


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
        point = wasserstein_start(program, minimum, max_iter)
    found = wasserstein.satisfice(
        program,
        point,
        tol=tol,
        max_iter=max_iter,
        hessian=hessian,
        underdetermined=is_underdetermined(objective, minimum),
    )
    outcome = Outcome.SOLVED if found.converged or target.tight else Outcome.UNSETTLED
    gap = found.gap / max(found.norm, 1e-300)
    return Solution(found.point.parameters, outcome, found.iterations, "newton", gap)


_METHODS: dict[type[Ambiguity], Callable[..., Solution]] = {
    KL: _solve_kl,
    Wasserstein: _solve_wasserstein,
}
