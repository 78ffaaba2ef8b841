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

__all__ = ["Landmarks", "find_landmarks", "refusal", "solve"]


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
        solution = conic.solve(program)
        point = program.objective.at(solution.parameters)
        point = meeting(point, landmarks.minimum.point, target.value)
        return replace(solution, parameters=point.parameters)
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
    if found.fragility == 0.0:
        short = least_norm_meeting(objective, target.value, parameters, max_iter=max_iter)
        iterations += short.iterations
        return Solution(short.parameters, Outcome.NO_FRAGILITY, iterations, "newton")
    if is_underdetermined(objective, minimum):
        parameters = least_norm_equivalent(objective, parameters)
    settled = found.converged or (target.tight and found.fragility == inf)
    outcome = Outcome.SOLVED if settled else Outcome.UNSETTLED
    return Solution(parameters, outcome, iterations, "newton", found.gap / found.fragility)


def _solve_wasserstein(
    program: SatisficingProgram,
    landmarks: Landmarks,
    tol: float,
    max_iter: int,
    start: Floats | None,
) -> Solution:
    objective, target, ambiguity = program.objective, program.target, program.ambiguity
    assert isinstance(ambiguity, Wasserstein)
    minimum, hessian = landmarks.minimum, None
    if start is not None:
        point = objective.at(start)
    elif minimum.separable or minimum.curvature is None or minimum.curvature.singular:
        level = target.erm_loss + 0.7 * (target.value - target.erm_loss)
        point = _just_below(objective, minimum.point, level, max_iter)
    else:
        point = minimum.point
        if minimum.curvature is not None:
            hessian = minimum.curvature.hessian
    found = wasserstein.satisfice(
        objective,
        target.value,
        point,
        norm=ambiguity.norm,
        mobility=ambiguity.mobility(objective.rows.X.shape[1]),
        tol=tol,
        max_iter=max_iter,
        hessian=hessian,
        underdetermined=is_underdetermined(objective, minimum),
    )
    outcome = Outcome.SOLVED if found.converged else Outcome.UNSETTLED
    gap = found.gap / max(found.norm, 1e-300)
    return Solution(found.point.parameters, outcome, found.iterations, "newton", gap)


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
