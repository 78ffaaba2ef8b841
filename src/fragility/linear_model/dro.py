"""Distributionally robust optimisation: the least worst-case loss in a ball."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass

from sklearn.exceptions import ConvergenceWarning

from .._parameters import check_positive
from ..exceptions import SeparableDataWarning, TrivialRadiusWarning, ZeroFragilityWarning
from ..programs.satisficing import Outcome, Solution
from ..solvers.searching import result
from .base import TrainingData
from .training import RobustClassifier, Training


@dataclass(eq=False, repr=False)
class DROClassifier(RobustClassifier):
    r"""Linear classifier of the least worst-case loss within a distance from the data.

    Minimises :math:`\sup \{ E_P \ell : D(P, \hat P) \le \varepsilon \} + R`. Where
    `SatisficingClassifier` takes an acceptable loss, this takes the distance that data may shift;
    each radius corresponds to some target.

    Parameters
    ----------
    loss, penalty, alpha, fit_intercept, class_weight, max_iter, warm_start
        As in `SatisficingClassifier`.
    ambiguity : {"wasserstein", "kl"}, Wasserstein or KL, default="wasserstein"
        The distance D. Wasserstein's is in the units of the features, KL's in nats.
    radius : float, default=0.1
        The distance :math:`\varepsilon`, positive.
    solver : {"auto", "interior_point", "conic"}, default="auto"
        "conic" hands the same program to cvxpy (extra ``conic``), as a cross-check. "auto" is
        "interior_point".
    tol : float, default=1e-6
        Accuracy of the worst-case loss, relative.
    random_state : object, default=None
        Not used: nothing is random.
    verbose : int, default=0
        Print what was found on the way.

    Attributes
    ----------
    coef_, intercept_, priced_intercept_, classes_, ambiguity_, n_iter_, solver_
        As in `SatisficingClassifier`.
    worst_loss_ : float
        The worst-case loss with the penalty, recomputed from the data.
    fragility_ : float
        Rise of the worst loss per unit of distance at the radius: no expected loss exceeds
        ``target_ + fragility_ * distance``.
    target_ : float
        ``worst_loss_ - fragility_ * radius``, for which `SatisficingClassifier` finds this model.
    certificate_ : Certificate
        What the model guarantees at that target, recomputed from the data.
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Warns
    -----
    TrivialRadiusWarning
        The radius is so large that no feature that may shift is worth using.
    SeparableDataWarning
        KL without a penalty: every loss may be arbitrarily small.
    ZeroFragilityWarning
        KL without a penalty: a hinge is zero for every sample.
    ConvergenceWarning
        The search ended before the worst-case loss had settled.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fragility import DROClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), DROClassifier(radius=0.05)).fit(X, y)
    >>> round(model[-1].worst_loss_, 3), round(model.score(X, y), 3)
    (0.178, 0.981)
    """

    _: KW_ONLY
    radius: float = 0.1

    def _fit_to(self, data: TrainingData) -> None:
        training, radius = Training.of(self, data), float(self.radius)
        references = result(training.references(self._start(training.objective)))
        found = result(training.run_robust(references, radius))
        self._adopt(found, references)
        self.worst_loss_ = self.target_ + self.fragility_ * radius
        self._say(
            f"worst loss {self.worst_loss_:.6g} within {radius:g}, lowest loss "
            f"{references.minimum.loss:.6g}, after {self.n_iter_} steps"
        )
        self._warn(found.solution)

    def _check_parameters(self) -> None:
        self._check_search(("auto", "interior_point", "conic"))
        advice = " Give one such as 0.1; ERMClassifier finds the lowest loss without any shift."
        check_positive(self.radius, "radius", advice)

    def _warn(self, solution: Solution) -> None:
        messages: dict[Outcome, tuple[str, type[Warning]]] = {
            Outcome.TRIVIAL: (
                f"radius={self.radius:g} is so large that no feature that may shift is worth "
                "using: the model without them is returned. Give a smaller radius; Wasserstein's "
                "is in the units of the features, so scale them, too.",
                TrivialRadiusWarning,
            ),
            Outcome.NO_MINIMUM: (
                "The classes can be told apart without a mistake: every loss, and the worst case "
                "with it, may be arbitrarily small. Give a penalty, or "
                'ambiguity="wasserstein".',
                SeparableDataWarning,
            ),
            Outcome.NO_LOSS: (
                "The classes can be told apart so well that every loss is zero: no change of "
                "weights can do harm, and of the many such models the shortest is returned. Give "
                'ambiguity="wasserstein".',
                ZeroFragilityWarning,
            ),
            Outcome.UNSETTLED: (
                f"The worst-case loss did not settle: after {solution.iterations} steps (max_iter="
                f"{self.max_iter}) it may be above its minimum by a share of {solution.gap:.1e}. "
                "The model's certificate holds; for a better one give more steps or scale the "
                "features.",
                ConvergenceWarning,
            ),
        }
        if solution.outcome in messages:
            warnings.warn(*messages[solution.outcome], stacklevel=4)
