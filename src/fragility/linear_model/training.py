"""One training run: data, a target, a solution and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

from .._models import LinearModel
from .._parameters import check_choice
from .._typing import Floats
from ..ambiguity import Ambiguity, as_ambiguity
from ..certificates import Certificate, certificate_of
from ..losses import Loss, as_loss
from ..programs.objective import Evaluation, Objective, Penalty
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from ..programs.targets import Target
from ..solvers import choose
from ..solvers.erm import ReferenceModels, find_references
from ..solvers.newton import Curvature
from ..solvers.robust import solve_robust, worst_penalised
from .base import LinearClassifier, TrainingData


class RobustClassifier(LinearClassifier):
    """What the classifiers share that are robust against shifts."""

    def _check_robust(self, solvers: tuple[str, ...]) -> None:
        """Refuse, before any work, what cannot be solved."""
        check_choice(self.solver, solvers, "solver")
        self._check_search()
        choose.check_solvable(as_loss(self.loss), as_ambiguity(self.ambiguity), self.solver)
        self._checked_penalty()

    def _adopt(self, found: RobustModel, training: Training, references: ReferenceModels) -> None:
        """Set the attributes of a model that was found."""
        self.coef_, self.intercept_ = found.linear.coef, found.linear.intercept
        self.classes_ = training.data.classes
        self.certificate_ = found.certificate
        self.fragility_ = found.certificate.fragility
        self.target_ = found.certificate.target
        self.n_iter_ = max(1, references.minimum.iterations + found.solution.iterations)
        self.solver_ = found.solution.solver


@dataclass(frozen=True, eq=False)
class RobustModel:
    """A model in the user's units and what it guarantees."""

    linear: LinearModel
    solution: Solution
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class TrainedModel(RobustModel):
    """The same for a target."""

    target: Target


@dataclass(frozen=True, eq=False)
class Training:
    """Robust satisficing on some data, for any number of targets."""

    data: TrainingData
    loss: Loss
    ambiguity: Ambiguity
    penalty: Penalty
    fit_intercept: bool
    tol: float
    max_iter: int

    @classmethod
    def of(cls, model: Any, data: TrainingData) -> Training:
        """The training of a robust classifier, by its parameters."""
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

    def references(
        self,
        start: Floats,
        curvature: Curvature | None = None,
        trivial: Evaluation | None = None,
    ) -> ReferenceModels:
        """Best model and best trivial model, searched from a start."""
        search: Any = {"tol": self.tol, "max_iter": self.max_iter, "curvature": curvature}
        return find_references(self.objective, self.ambiguity, start, trivial=trivial, **search)

    def solve(
        self,
        references: ReferenceModels,
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
            erm_loss=references.minimum.loss,
            trivial_loss=references.trivial.value,
            separable=references.minimum.separable,
            attained=references.minimum.attained,
        )
        search: Any = {"solver": solver, "tol": self.tol, "max_iter": self.max_iter}
        if radius < inf:
            # Inside a ball the least fragile model is the model of the least worst loss, as long as
            # its level, the worst loss less k times the radius, is below the target. Beyond, the
            # ball is too large to matter.
            ball = RobustProgram(self.objective, self.ambiguity, radius)
            inside = solve_robust(ball, references, **search)
            worst = worst_penalised(ball, self.objective.at(inside.parameters))
            # Where every loss can vanish the ball does not help to choose a model.
            vanishing = (Outcome.NO_LOSS, Outcome.NO_MINIMUM)
            if worst.level <= target.value and inside.outcome not in vanishing:
                return target, inside
        program = SatisficingProgram(self.objective, self.ambiguity, target)
        solution = choose.solve(program, references, start=start, curvature=curvature, **search)
        return target, solution

    def in_user_units(self, solution: Solution) -> LinearModel:
        """The model for the data as given."""
        # Rounding aside, the coefficients of several classes are centred, and so they shall be. Of
        # the models without fragility the shortest was found: absolute values need not be least.
        objective, parameters = self.objective, solution.parameters
        if objective.lasso == 0.0 or solution.outcome is not Outcome.NO_FRAGILITY:
            parameters = objective.tidied(parameters)
        given = objective.rows.in_user_units(*objective.split(parameters))
        return LinearModel(*given, self.data.classes)

    def run(
        self, references: ReferenceModels, *, radius: float = inf, **wanted: Any
    ) -> TrainedModel:
        """The same with its certificate."""
        target, solution = self.solve(references, radius=radius, **wanted)
        linear = self.in_user_units(solution)
        certificate = self._certificate(linear, target.value, radius)
        if solution.outcome is Outcome.NOTHING_LEARNED and not self.ambiguity.moves_labels:
            certificate = replace(certificate, fragility=self.ambiguity.unlearned)
        return TrainedModel(linear, solution, certificate, target)

    def run_robust(self, references: ReferenceModels, radius: float, *, solver: str) -> RobustModel:
        """The model of the least worst-case loss in a ball."""
        program = RobustProgram(self.objective, self.ambiguity, radius)
        search: Any = {"solver": solver, "tol": self.tol, "max_iter": self.max_iter}
        solution = solve_robust(program, references, **search)
        linear = self.in_user_units(solution)
        certificate = self._certificate(linear, 0.0, inf)
        return RobustModel(linear, solution, certificate.priced_at(radius))

    def _certificate(self, linear: LinearModel, target: float, radius: float) -> Certificate:
        return certificate_of(
            linear,
            self.data,
            loss=self.loss,
            ambiguity=self.ambiguity,
            target=target,
            penalty=self.penalty.of(linear.coef),
            radius=radius,
        )
