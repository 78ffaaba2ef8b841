"""One training run: data, a target, a solution and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..ambiguity import Ambiguity
from ..certificates import Certificate, certificate_of
from ..losses import Loss
from ..moments import Floats
from ..programs.objective import Objective
from ..programs.satisficing import Outcome, SatisficingProgram, Solution
from ..programs.targets import Target
from ..solvers import choose
from .base import TrainingData

__all__ = ["TrainedModel", "Training"]


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Coefficients in the user's units and what they guarantee."""

    coef: Floats
    intercept: Floats
    target: Target
    solution: Solution
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Training:
    """Robust satisficing on some data, for as many targets as one likes."""

    data: TrainingData
    loss: Loss
    ambiguity: Ambiguity
    alpha: float
    fit_intercept: bool
    tol: float
    max_iter: int

    @cached_property
    def objective(self) -> Objective:
        return self.data.objective(
            self.loss, self.alpha, self.fit_intercept, self.ambiguity.is_euclidean
        )

    def landmarks(self, start: Floats) -> choose.Landmarks:
        """Best model and best trivial model, searched from a start."""
        return choose.find_landmarks(
            self.objective, self.ambiguity, start, tol=self.tol, max_iter=self.max_iter
        )

    def run(
        self,
        landmarks: choose.Landmarks,
        *,
        solver: str = "auto",
        start: Floats | None = None,
        **wanted: Any,
    ) -> TrainedModel:
        """The least fragile model for the target that is `wanted`."""
        target = Target.resolved(
            **wanted,
            erm_loss=landmarks.minimum.loss,
            trivial_loss=landmarks.trivial.value,
            separable=landmarks.minimum.separable,
            attained=landmarks.minimum.attained,
        )
        program = SatisficingProgram(self.objective, self.ambiguity, target)
        solution = choose.solve(
            program, landmarks, solver=solver, tol=self.tol, max_iter=self.max_iter, start=start
        )
        # Rounding aside, the coefficients of several classes sum to zero, and so they shall.
        parameters = self.objective.centred(solution.parameters)
        coef, intercept = self.objective.rows.in_user_units(*self.objective.split(parameters))
        certificate = certificate_of(
            coef,
            intercept,
            self.data.X,
            self.data.codes,
            self.data.weights,
            loss=self.loss,
            ambiguity=self.ambiguity,
            target=target.value,
            penalty=self.alpha * float((coef**2).sum()),
            classes=self.data.classes,
        )
        if solution.outcome is Outcome.NOTHING_LEARNED:
            certificate = replace(certificate, fragility=self.ambiguity.unlearned)
        return TrainedModel(coef, intercept, target, solution, certificate)
