"""Robust satisficing of a linear regression."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from .._parameters import check_choice, check_not_negative
from .._sklearn import check_sample_weight
from .._typing import Floats
from .._validation import long_integers_refused
from ..ambiguity import Ambiguity, Wasserstein
from ..certificates.regression import check_transport, regression_certificate
from ..exceptions import (
    InfeasibleTargetError,
    NothingLearnedWarning,
    TargetError,
    TightTargetWarning,
    TrivialTargetWarning,
    UndefinedTargetError,
)
from ..programs.targets import Target, check_target_choice
from ..solvers.regression import LinearErrors, RegressionSolver

_SLACK = 0.1


@dataclass(eq=False, repr=False)
class SatisficingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Linear regression of the least fragility among those whose loss is acceptable.

    The loss of a sample is the length :math:`\lVert B^T x + b - y \rVert_2` of its error, for one
    column of y :math:`|\beta^T x + b - y|`: least absolute deviations, whose constant model is the
    (geometric) median. The fragility is the smallest k with
    :math:`E_P \ell + R \le \tau + k D(P, \hat P)` for every P, and it is exact. Needs cvxpy (extra
    ``conic``).

    Parameters
    ----------
    ambiguity : "wasserstein" or Wasserstein, default="wasserstein"
        The cost of moving features; y does not move. Norms 1, 2 and inf for one column of y, 1 and
        2 for several: in ℓ2 k is the spectral norm of the coefficients.
    target : float, optional
        Acceptable mean loss (with the penalty), in the units of y.
    target_ratio : float, optional
        The same as a multiple, above 1, of the lowest loss that any model reaches.
    slack : float, optional
        The same as the share, between 0 and 1, of what a model can learn that may be given up:
        :math:`\tau = L_{ERM} + t (L_{trivial} - L_{ERM})`. If none of the three is given, 0.1.
    penalty : {None, "l2"}, default=None
        "l2" adds :math:`\alpha \sum \beta^2` to the loss.
    alpha : float, default=1e-3
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept, outside the penalty and the norm.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or ndarray of shape (n_outputs,)
    fragility_ : float
        The k of the model, in units of y per unit of X as given.
    target_ : float
    erm_loss_, trivial_loss_ : float
        Lowest penalised mean loss of all models, and of those that use no feature that may shift.
    certificate_ : RegressionCertificate
        What the model guarantees, recomputed from the data.
    ambiguity_ : Wasserstein
    n_iter_ : int
        Steps of all searches.
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Raises
    ------
    InfeasibleTargetError
        The target is below the lowest loss that any model reaches.
    UndefinedTargetError
        `target_ratio` where that loss is zero.

    Warns
    -----
    TrivialTargetWarning
        The target is met without any feature that may shift; that model is returned.
    TightTargetWarning
        The target is almost the lowest loss itself.
    NothingLearnedWarning
        No model is better than one without features.
    ConvergenceWarning
        The conic solver ended before it was accurate.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fragility import SatisficingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = X / X.std(axis=0)
    >>> model = SatisficingRegressor(slack=0.1).fit(X, y)
    >>> round(model.fragility_, 2), round(model.certificate_.attained_loss, 2)
    (29.37, 45.24)
    """

    ambiguity: str | Ambiguity = "wasserstein"
    _: KW_ONLY
    target: float | None = None
    target_ratio: float | None = None
    slack: float | None = None
    penalty: str | None = None
    alpha: float = 1e-3
    fit_intercept: bool = True

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        SatisficingRegressor
            Itself.
        """
        self._check_parameters()
        with long_integers_refused("X"):
            X, y = validate_data(
                self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, order="C"
            )
        table = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        given = check_transport(self.ambiguity, table.shape[1])
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero for every sample; some sample needs a weight.")
        names = getattr(self, "feature_names_in_", None)
        self.ambiguity_ = given.fitted_to(X, weights, names)
        linear = self._solved(X, table, weights, self.ambiguity_)
        self.certificate_ = regression_certificate(
            *linear,
            X,
            table,
            weights / weights.sum(),
            self.ambiguity_,
            target=self.target_,
            penalty=self._ridge * float((linear[0] ** 2).sum()),
        )
        self.fragility_ = self.certificate_.fragility
        coef, intercept = linear
        single = np.ndim(y) == 1
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        with long_integers_refused("X"):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        values: Floats = X @ self.coef_.T + self.intercept_
        return values

    def _solved(
        self, X: Floats, y: Floats, weights: Floats, ambiguity: Wasserstein
    ) -> tuple[Floats, Floats]:
        """Coefficients and intercepts of the least fragile model; sets what is known of losses."""
        mobility = ambiguity.mobility(X.shape[1])
        errors = LinearErrors.of(X, y, weights, self.fit_intercept, self._ridge)
        solver = RegressionSolver(errors)
        lowest = solver.lowest(np.ones(X.shape[1], dtype=bool))
        trivial = solver.lowest(mobility == 0.0)
        trivial_loss = errors.loss(*trivial)
        target = self._resolved(min(errors.loss(*lowest), trivial_loss), trivial_loss)
        self.target_ = target.value
        self.erm_loss_, self.trivial_loss_ = target.erm_loss, target.trivial_loss
        self._warn(target)
        if target.value >= target.trivial_loss or not target.learnable:
            found = trivial
        elif target.value <= target.erm_loss:
            found = lowest
        else:
            found = solver.least_fragile(target.value, mobility, ambiguity.norm, lowest)
        self.n_iter_ = solver.steps
        if not solver.settled:
            warnings.warn(
                "The conic solver ended before it was accurate: the fragility may be above its "
                "minimum. The model meets its target and its certificate holds.",
                ConvergenceWarning,
                stacklevel=3,
            )
        coef, intercept = errors.in_user_units(*found)
        if found is trivial:
            coef = np.where(mobility == 0.0, coef, 0.0)
        return coef, intercept

    def _resolved(self, lowest: float, trivial: float) -> Target:
        """The target that was asked for, or an error that says why it does not exist."""
        slack = _SLACK if self.slack is None else self.slack
        value = lowest + slack * (trivial - lowest)
        if self.target is not None:
            value = float(self.target)
        elif self.target_ratio is not None:
            if lowest <= 1e-8 * trivial:
                raise UndefinedTargetError(
                    f"target_ratio={self.target_ratio:g} times a lowest loss of 0 is not a target: "
                    "some model has no error at all. Give slack (such as 0.1), an absolute target "
                    f"between 0 and {trivial:.6g}, or a penalty."
                )
            value = float(self.target_ratio) * lowest
        if value < lowest - 1e-8 * trivial:
            raise InfeasibleTargetError(
                f"target={value:.6g} cannot be reached: the lowest loss is {lowest:.6g}, a trivial "
                f"model has {trivial:.6g}. Give a larger target, or slack for a share of what lies "
                "between the two."
            )
        return Target(max(value, lowest), lowest, trivial, separable=False)

    @property
    def _ridge(self) -> float:
        return float(self.alpha) if self.penalty == "l2" else 0.0

    def _check_parameters(self) -> None:
        check_target_choice(self.target, self.target_ratio, self.slack)
        if isinstance(self.target, str):
            raise TargetError(
                f"target must be a number for a regression; got {self.target!r}. Give slack, such "
                "as 0.1."
            )
        check_choice(self.penalty, (None, "l2"), "penalty")
        check_choice(self.fit_intercept, (True, False), "fit_intercept")
        check_not_negative(self.alpha, "alpha")

    def _warn(self, target: Target) -> None:
        if not target.learnable:
            message = (
                f"Nothing can be learned from features that may shift ({target}): the best model "
                "without them is returned. Look for better features, or a smaller alpha."
            )
            warnings.warn(message, NothingLearnedWarning, stacklevel=4)
        elif target.value >= target.trivial_loss:
            message = (
                f"Trivial target ({target}): a model that uses no feature that may shift meets it, "
                "and is returned. Give a smaller target (slack below 1)."
            )
            warnings.warn(message, TrivialTargetWarning, stacklevel=4)
        elif target.tight:
            message = (
                f"The target leaves almost nothing to give up for robustness ({target}). Give a "
                "larger one, such as slack=0.1."
            )
            warnings.warn(message, TightTargetWarning, stacklevel=4)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
