"""One training run: data, a target, a solution and its certificate."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from math import inf
from typing import Any, NamedTuple

from .._models import LinearModel
from .._parameters import check_choice
from .._typing import Floats
from ..ambiguity import Ambiguity, as_ambiguity
from ..certificates import Certificate, certificate_of
from ..losses import LipschitzLoss, as_loss
from ..programs.objective import Evaluation, Objective, Penalty
from ..programs.satisficing import (
    NO_HINT,
    Hint,
    Outcome,
    RobustProgram,
    SatisficingProgram,
    Solution,
)
from ..programs.targets import Target
from ..solvers import choose, lipschitz, paper_labels
from ..solvers.erm import ReferenceModels, accuracy_of_minimum, erm, trivial_model
from ..solvers.multipliers import critical_distance
from ..solvers.newton import Curvature
from ..solvers.robust import solve_robust, worst_penalised
from ..solvers.searching import Search
from .base import LinearClassifier, TrainingData


@dataclass(eq=False, repr=False)
class RobustClassifier(LinearClassifier):
    """What the classifiers share that are robust against shifts."""

    ambiguity: str | Ambiguity = "wasserstein"
    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1e-3
    solver: str = "auto"
    warm_start: bool = False

    def _check_search(self, solvers: tuple[str, ...]) -> None:
        """Refuse, before any work, what cannot be solved."""
        check_choice(self.solver, solvers, "solver")
        self._check_limits()
        loss, ambiguity = as_loss(self.loss), as_ambiguity(self.ambiguity)
        choose.check_solvable(loss, ambiguity, self.solver)
        paper_labels.check(loss, ambiguity, self._checked_intercept())
        self._checked_penalty()

    def _adopt(self, found: RobustModel, references: ReferenceModels) -> None:
        """Set the attributes of a model that was found."""
        self.coef_, self.intercept_ = found.linear.coef, found.linear.intercept
        self.classes_, self.priced_intercept_ = found.linear.classes, found.linear.priced
        self.certificate_ = found.certificate
        self.ambiguity_ = found.certificate.ambiguity
        self.fragility_ = found.certificate.fragility
        self.target_ = found.certificate.target
        self.n_iter_ = max(1, references.minimum.iterations + found.solution.iterations)
        self.solver_ = found.solution.solver


class RobustModel(NamedTuple):
    """A model in the user's units and what it guarantees."""

    linear: LinearModel
    solution: Solution
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Training:
    """Robust satisficing on some data, for any number of targets.

    `given` is the ambiguity of the user, `ambiguity` that of the features of the objective, which
    has a constant among them if the intercept is priced.
    """

    data: TrainingData
    objective: Objective
    given: Ambiguity
    ambiguity: Ambiguity
    search: dict[str, Any]

    @classmethod
    def of(cls, model: RobustClassifier, data: TrainingData) -> Training:
        """The training of a robust classifier, by its parameters."""
        names = getattr(model, "feature_names_in_", None)
        given = as_ambiguity(model.ambiguity).fitted_to(data.X, data.weights, names)
        given.check(data.X)
        loss = as_loss(model.loss)
        parameters = loss, model._checked_penalty(), model._checked_intercept()
        objective = data.objective(*parameters, reducible=given.is_euclidean)
        ambiguity = (given.with_constant() if objective.rows.priced else given).solved_as(loss)
        search: dict[str, Any] = {
            "solver": model.solver,
            "tol": model.tol,
            "max_iter": model.max_iter,
            "say": model._say,
        }
        return cls(data, objective, given, ambiguity, search)

    def references(
        self,
        start: Floats,
        curvature: Curvature | None = None,
        trivial: Evaluation | None = None,
    ) -> Search[ReferenceModels]:
        """Minimise the loss over all models, from a start, and over the trivial models.

        `curvature` is a curvature near the start, if one is known; `trivial` is the best trivial
        model for another strength of the penalty.
        """
        objective, max_iter = self.objective, self.search["max_iter"]
        limits: Any = {"tol": accuracy_of_minimum(self.search["tol"]), "max_iter": max_iter}
        if isinstance(objective.loss, LipschitzLoss):
            return (yield from lipschitz.references(objective, self.ambiguity, **limits))
        # Under Wasserstein ambiguity a search goes on with the curvature that this one ends with.
        rough = self.ambiguity.reweights
        minimum = yield from erm(objective, start, curvature=curvature, rough=rough, **limits)
        fixed = self.ambiguity.fixed(objective.rows.X.shape[1])
        if trivial is None or fixed.any():  # else it is an intercept only, which no penalty changes
            trivial = yield from trivial_model(objective, fixed, max_iter=max_iter)
        if minimum.loss > trivial.value and objective.is_smooth:
            minimum = yield from erm(objective, trivial.parameters, **limits)
        elif minimum.loss > trivial.value:
            # Only a converged search may say that nothing is learned.
            minimum = minimum._replace(point=trivial, loss=trivial.value)
        return ReferenceModels(minimum, trivial)

    def solve(
        self,
        references: ReferenceModels,
        *,
        hint: Hint = NO_HINT,
        radius: float = inf,
        **wanted: Any,
    ) -> Search[tuple[Target, Solution]]:
        """The least fragile model for the target that is `wanted`, perhaps in a ball only."""
        target = Target.resolved(
            **wanted,
            erm_loss=references.minimum.loss,
            trivial_loss=references.trivial.value,
            separable=references.minimum.separable,
            attained=references.minimum.attained,
        )
        if radius < inf:
            if paper_labels.applies(self.ambiguity):
                raise NotImplementedError(
                    'label_term="paper" has no form inside a ball (radius); give '
                    'label_term="exact".'
                )
            # Inside a ball the least fragile model is the model of the least worst loss, as long as
            # its level, the worst loss less k times the radius, is below the target. Beyond, the
            # ball is too large to matter.
            ball = RobustProgram(self.objective, self.ambiguity, radius)
            inside = yield from solve_robust(ball, references, **self.search)
            worst = worst_penalised(ball, self.objective.at(inside.parameters))
            # Where every loss can vanish the ball does not help to choose a model.
            vanishing = (Outcome.NO_LOSS, Outcome.NO_MINIMUM)
            if worst.level <= target.value and inside.outcome not in vanishing:
                return target, replace(inside, slope=1.0 / radius)
        program = SatisficingProgram(self.objective, self.ambiguity, target)
        return target, (yield from choose.solve(program, references, hint=hint, **self.search))

    def in_user_units(self, solution: Solution) -> LinearModel:
        """The model for the data as given."""
        # Rounding aside, the coefficients of several classes are centred, and so they shall be. Of
        # the models without fragility the shortest was found: absolute values need not be least.
        objective, parameters = self.objective, solution.parameters
        if objective.lasso == 0.0 or solution.outcome is not Outcome.NO_FRAGILITY:
            parameters = objective.tidied(parameters)
        table = objective.in_user_units(parameters)
        return LinearModel(*table, self.data.classes, objective.rows.priced)

    def run(
        self, references: ReferenceModels, *, radius: float = inf, **wanted: Any
    ) -> Search[tuple[Target, RobustModel]]:
        """The same with its certificate."""
        target, solution = yield from self.solve(references, radius=radius, **wanted)
        found = self._certified(solution, target.value, radius)
        if solution.outcome is Outcome.NOTHING_LEARNED and not self.ambiguity.moves_labels:
            unlearned = replace(found.certificate, fragility=self.ambiguity.unlearned)
            return target, found._replace(certificate=unlearned)
        program = SatisficingProgram(self.objective, self.ambiguity, target)
        far = critical_distance(program, solution, found.certificate)
        return target, found._replace(certificate=replace(found.certificate, critical_distance=far))

    def run_robust(self, references: ReferenceModels, radius: float) -> Search[RobustModel]:
        """The model of the least worst-case loss in a ball."""
        program = RobustProgram(self.objective, self.ambiguity, radius)
        if paper_labels.applies(self.ambiguity):  # its term is a larger ball without label moves
            raised = paper_labels.raised_by_labels(self.objective, self.ambiguity)
            plain = paper_labels.without_labels(self.ambiguity)
            program = RobustProgram(self.objective, plain, radius + raised)
        solution = yield from solve_robust(program, references, **self.search)
        found = self._certified(solution, 0.0, inf)
        priced = found.certificate.priced_at(radius)
        return found._replace(certificate=replace(priced, critical_distance=radius))

    def _certified(self, solution: Solution, target: float, radius: float) -> RobustModel:
        linear, objective = self.in_user_units(solution), self.objective
        certificate = certificate_of(
            linear,
            self.data,
            loss=objective.loss,
            ambiguity=self.given,
            target=target,
            penalty=Penalty(objective.alpha, objective.lasso).of(linear.inside),
            radius=radius,
        )
        return RobustModel(linear, solution, certificate)
