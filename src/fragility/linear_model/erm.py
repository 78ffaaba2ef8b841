"""The baseline on equal terms: the lowest penalised mean loss."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..exceptions import SeparableDataWarning
from ..losses import LipschitzLoss, as_loss
from ..solvers.corners import shortest_minimiser
from ..solvers.erm import (
    accuracy_of_minimum,
    erm,
    least_norm_equivalent,
    separating_model,
    underdetermined,
)
from ..solvers.searching import result
from .base import LinearClassifier, TrainingData


@dataclass(eq=False, repr=False)
class ERMClassifier(LinearClassifier):
    r"""Linear classifier of the lowest penalised mean loss.

    Minimises :math:`L = \sum_n a_n \ell(u_n, y_n) + R`, where the weights sum to one: what
    `SatisficingClassifier` starts from, with the same losses, penalty, intercept and weights.

    Parameters
    ----------
    loss : {"cross_entropy", "hinge", "max_logistic", "smoothed_hinge"} or Loss, \
            default="cross_entropy"
    penalty : {"l2", "l1", None}, default="l2"
        "l2" adds :math:`\alpha \sum \beta^2`, "l1" :math:`\alpha \sum |\beta|`.
    alpha : float, default=1e-3
        Strength of the penalty.
    fit_intercept : {True, "priced", False}, default=True
        True: the intercept is free of the penalty. "priced": it is the coefficient of a constant
        feature 1, and penalised as the others are. False: none.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples, by class.
    tol : float, default=1e-6
        Accuracy of the coefficients, roughly; the loss is much nearer to its minimum.
    max_iter : int, default=1000
        Most steps of the search.
    warm_start : bool, default=False
        Start from the last fit.
    random_state : object, default=None
        Not used: nothing is random.
    verbose : int, default=0

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    priced_intercept_ : bool
        Whether it was fitted as the coefficient of a constant feature.
    classes_ : ndarray
    loss_ : float
        Penalised mean loss of the model.
    n_iter_ : int
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fragility import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(ERMClassifier().fit(X, y).score(X, y), 3)
    0.958
    """

    penalty: str | None = "l2"
    alpha: float = 1e-3
    _: KW_ONLY
    warm_start: bool = False

    def _check_parameters(self) -> None:
        if isinstance(as_loss(self.loss), LipschitzLoss):
            raise NotImplementedError(
                "LipschitzLoss is a bound for shifts, and ERMClassifier knows none; give the loss "
                "itself, as a Loss."
            )
        self._checked_penalty()
        self._checked_intercept()
        self._check_limits()

    def _fit_to(self, data: TrainingData) -> None:
        loss, penalty = as_loss(self.loss), self._checked_penalty()
        objective = data.objective(loss, penalty, self._checked_intercept(), reducible=True)
        limits: Any = {"tol": accuracy_of_minimum(self.tol), "max_iter": self.max_iter}
        found = result(erm(objective, self._start(objective), **limits))
        point, iterations = found.point, found.iterations
        if found.separable:
            search = separating_model(objective, found, tol=self.tol, max_iter=self.max_iter)
            point = result(search)
            if not found.attained:
                warnings.warn(
                    "The classes can be told apart without a mistake, so the mean loss has no "
                    f"minimum, only the infimum 0; stopped at {point.value:.2g}. Give "
                    'penalty="l2" for a model that is defined.',
                    SeparableDataWarning,
                    stacklevel=3,
                )
        elif not found.converged:
            warnings.warn(
                f"The loss did not settle in {iterations} steps (max_iter={self.max_iter}). "
                "Scale the features, give a penalty, more steps or a larger tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not loss.bends and not objective.is_penalised:
            # Minimisers may be many, and the search ends somewhere among them.
            point = result(shortest_minimiser(objective, point, max_iter=self.max_iter))
        parameters = point.parameters
        if underdetermined(objective, found):
            parameters = least_norm_equivalent(objective, parameters)
        point = objective.at(objective.tidied(parameters))
        self.loss_ = point.value
        self._say(f"loss {self.loss_:.6g} after {iterations} steps")
        self.coef_, self.intercept_ = objective.in_user_units(point.parameters)
        self.classes_, self.priced_intercept_ = data.classes, objective.rows.priced
        self.n_iter_ = iterations
