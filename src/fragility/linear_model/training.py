"""One training run: data, a target, a solution and its certificate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

from .._typing import Floats
from ..ambiguity import Ambiguity, as_ambiguity
from ..certificates import Certificate, certificate_of
from ..losses import Loss, as_loss
from ..programs.objective import Evaluation, Objective, Penalty
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from ..programs.targets import Target
from ..solvers import choose
from ..solvers.landmarks import Landmarks, find_landmarks
from ..solvers.newton import Curvature
from ..solvers.robust import solve_robust, worst_penalised
from .base import LinearClassifier, TrainingData


class RobustClassifier(LinearClassifier):
    """What the classifiers share that are robust against shifts."""

    def _adopt(self, found: RobustModel, training: Training, landmarks: Landmarks) -> None:
        """Have the attributes of a model that was found."""
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.classes_ = training.data.classes
        self.certificate_ = found.certificate
        self.fragility_ = found.certificate.fragility
        self.target_ = found.certificate.target
        self.n_iter_ = max(1, landmarks.minimum.iterations + found.solution.iterations)
        self.solver_ = found.solution.solver

    @staticmethod
    def _warn_of(
        solution: Solution, messages: dict[Outcome, tuple[str, type[Warning]]], stacklevel: int
    ) -> None:
        """Say what is special about a solution, if anything is."""
        if solution.outcome in messages:
            warnings.warn(*messages[solution.outcome], stacklevel=stacklevel + 1)


@dataclass(frozen=True, eq=False)
class RobustModel:
    """Coefficients in the user's units and what they guarantee."""

    coef: Floats
    intercept: Floats
    solution: Solution
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class TrainedModel(RobustModel):
    """The same for a target."""

    target: Target


@dataclass(frozen=True, eq=False)
class Training:
    """Robust satisficing on some data, for as many targets as one likes."""

    data: TrainingData
    loss: Loss
    ambiguity: Ambiguity
    penalty: Penalty
    fit_intercept: bool
    tol: float
    max_iter: int

    @classmethod
    def of(cls, model: Any, data: TrainingData) -> Training:
        """That of a robust classifier, by its parameters."""
        ambiguity = as_ambiguity(model.ambiguity)
        ambiguity.fixed(data.X.shape[1])  # says so if feature_weight does not fit
        return cls(
            data,
            as_loss(model.loss),
            ambiguity,
            model._checked_penalty(),
            bool(model.fit_intercept),
            model.tol,
            model.max_iter,
        )

    @cached_property
    def objective(self) -> Objective:
        return self.data.objective(
            self.loss, self.penalty, self.fit_intercept, self.ambiguity.is_euclidean
        )

    def landmarks(
        self,
        start: Floats,
        curvature: Curvature | None = None,
        trivial: Evaluation | None = None,
    ) -> Landmarks:
        """Best model and best trivial model, searched from a start."""
        return find_landmarks(
            self.objective,
            self.ambiguity,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            curvature=curvature,
            trivial=trivial,
        )

    def solve(
        self,
        landmarks: Landmarks,
        *,
        solver: str = "auto",
        start: Floats | None = None,
        radius: float = inf,
        curvature: Any = None,
        **wanted: Any,
    ) -> tuple[Target, Solution]:
        """The least fragile model for the target that is `wanted`, perhaps in a ball only."""
        target = Target.resolved(
            **wanted,
            erm_loss=landmarks.minimum.loss,
            trivial_loss=landmarks.trivial.value,
            separable=landmarks.minimum.separable,
            attained=landmarks.minimum.attained,
        )
        search: Any = {"solver": solver, "tol": self.tol, "max_iter": self.max_iter}
        if radius < inf:
            # Inside a ball the least fragile model is that of the least worst loss, as long as the
            # price of the shifts leaves its loss below the target; beyond, the ball is too large
            # to matter.
            ball = RobustProgram(self.objective, self.ambiguity, radius)
            inside = solve_robust(ball, landmarks, **search)
            worst = worst_penalised(ball, self.objective.at(inside.parameters))
            # Where every loss can vanish the ball is no help in choosing a model.
            vanishing = (Outcome.NO_LOSS, Outcome.NO_MINIMUM)
            if worst.level <= target.value and inside.outcome not in vanishing:
                return target, inside
        program = SatisficingProgram(self.objective, self.ambiguity, target)
        solution = choose.solve(program, landmarks, start=start, curvature=curvature, **search)
        return target, solution

    def in_user_units(self, solution: Solution) -> tuple[Floats, Floats]:
        """Coefficients and intercepts for the data as given."""
        # Rounding aside, the coefficients of several classes are centred, and so they shall be. Of
        # those without fragility the shortest was found: absolute values need not be least.
        parameters = solution.parameters
        if self.objective.lasso == 0.0 or solution.outcome is not Outcome.NO_FRAGILITY:
            parameters = self.objective.tidied(parameters)
        return self.objective.rows.in_user_units(*self.objective.split(parameters))

    def run(self, landmarks: Landmarks, *, radius: float = inf, **wanted: Any) -> TrainedModel:
        """The same with its certificate."""
        target, solution = self.solve(landmarks, radius=radius, **wanted)
        coef, intercept = self.in_user_units(solution)
        certificate = self._certificate(coef, intercept, target.value, radius)
        if solution.outcome is Outcome.NOTHING_LEARNED and not self.ambiguity.moves_labels:
            certificate = replace(certificate, fragility=self.ambiguity.unlearned)
        return TrainedModel(coef, intercept, solution, certificate, target)

    def run_robust(self, landmarks: Landmarks, radius: float, *, solver: str) -> RobustModel:
        """The model of the least worst-case loss in a ball."""
        program = RobustProgram(self.objective, self.ambiguity, radius)
        solution = solve_robust(
            program, landmarks, solver=solver, tol=self.tol, max_iter=self.max_iter
        )
        coef, intercept = self.in_user_units(solution)
        certificate = self._certificate(coef, intercept, 0.0, inf)
        return RobustModel(coef, intercept, solution, certificate.priced_at(radius))

    def _certificate(
        self, coef: Floats, intercept: Floats, target: float, radius: float
    ) -> Certificate:
        return certificate_of(
            coef,
            intercept,
            self.data.X,
            self.data.codes,
            self.data.weights,
            loss=self.loss,
            ambiguity=self.ambiguity,
            target=target,
            penalty=self.penalty.of(coef),
            classes=self.data.classes,
            radius=radius,
        )
