"""What the linear classifiers share: how data come in and predictions go out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._labels import listed
from .._models import LabelledSamples, class_weighted
from .._parameters import check_count, check_intercept, check_not_negative, check_positive
from .._sklearn import check_sample_weight
from .._typing import Floats, Intercept
from .._validation import long_integers_refused
from ..losses import Loss
from ..programs.objective import Objective, Penalty
from ..programs.rows import TrainingRows, training_rows

#: Largest absolute value of a feature, least and most: products of four numbers stay in range.
_SMALLEST, _LARGEST = 1e-75, 1e75
#: Rows that tell of most features that they are not too small.
_FIRST = 64
#: A matrix of this size takes 1.2 GB, and a fit holds a few.
_MOST_PARAMETERS = 12_000


@dataclass(frozen=True, eq=False)
class TrainingData(LabelledSamples):
    """Validated samples: X dense or CSR, classes as 0, 1, ..., weights or None for all one."""

    classes: NDArray[Any]
    _rows: dict[tuple[Intercept, bool], TrainingRows] = field(default_factory=dict, repr=False)

    def objective(
        self, loss: Loss, penalty: Penalty, fit_intercept: Intercept, reducible: bool
    ) -> Objective:
        """Penalised mean loss of a linear model on the samples."""
        loss = loss.for_classes(self.classes)
        reducible = reducible and penalty.lasso == 0.0
        asked = fit_intercept, reducible
        if asked not in self._rows:  # the samples in the coordinates of the solvers, made once
            samples = self.X, self.codes, self.classes.size, self.weights
            self._rows[asked] = training_rows(
                *samples, fit_intercept=fit_intercept, reducible=reducible
            )
        rows = self._rows[asked]
        objective = Objective(rows, loss, penalty.ridge, penalty.lasso)
        if objective.size > _MOST_PARAMETERS:
            raise NotImplementedError(
                f"{rows.X.shape[1]} features and {objective.n_outputs} scores are "
                f"{objective.size} parameters, and Newton's method needs a table of their square; "
                f"up to {_MOST_PARAMETERS} are supported. Select features, or reduce them (such as "
                "TruncatedSVD). With KL, and Wasserstein in norm 2 without feature_weight, no more "
                "features than samples count, unless the penalty is l1."
            )
        return objective


class LinearPredictor(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Scores that are linear in the features; their softmax is the probabilities."""

    def decision_function(self, X: Any) -> Floats:
        """Scores of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, (n_samples, n_classes) for more
            With two classes, the score of the second.
        """
        check_is_fitted(self)
        with long_integers_refused("X"):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: Floats = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores[:, 0] if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the highest score for each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        best = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class: the softmax (two classes: sigmoid) of the scores.

        Margins of hinge losses are not logits: calibrate such models before you trust the result.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        with np.errstate(under="ignore"):
            if scores.ndim == 1:
                return np.column_stack([expit(-scores), expit(scores)])
            shares: Floats = softmax(scores, axis=1)
            return shares

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class LinearClassifier(LinearPredictor, ABC):
    """The parameters that the linear classifiers share, and their fit."""

    loss: str | Loss = "cross_entropy"
    _: KW_ONLY
    fit_intercept: Intercept = True
    class_weight: Any = None
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        LinearClassifier
            Itself.
        """
        self._check_parameters()
        with np.errstate(over="ignore", under="ignore"):
            self._fit_to(self._class_weighted(self._validated(X, y, sample_weight)))
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse, before any work, what cannot be done."""

    @abstractmethod
    def _fit_to(self, data: TrainingData) -> None:
        """Fit to samples whose weights include `class_weight`."""

    def _validated(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingData:
        with long_integers_refused("X"):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=np.float64,
                order="C",
                accept_large_sparse=True,
            )
        _check_sizes(X, getattr(self, "feature_names_in_", None))
        check_classification_targets(y)
        classes = np.unique(y)
        codes = np.searchsorted(classes, y)  # the inverse of `unique` may take ten times as long
        if classes.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the "
                f"data contains only one class: {listed(classes)}"
            )
        weights = None
        if sample_weight is not None:
            with long_integers_refused("sample_weight"):
                weights = check_sample_weight(
                    sample_weight, X, dtype=np.float64, ensure_non_negative=True
                )
        return TrainingData(X, codes, weights, classes)

    def _class_weighted(self, data: TrainingData) -> TrainingData:
        """The samples with weights multiplied by `class_weight`."""
        codes, classes, weights = data.codes, data.classes, data.weights
        if self.class_weight is not None:
            weights = class_weighted(self.class_weight, classes, codes, weights)
        if weights is not None:
            present = np.bincount(codes[weights > 0.0], minlength=classes.size)
            if not present.all():
                names = "sample_weight" if self.class_weight is None else "class_weight"
                raise ValueError(
                    "Every class needs a sample of positive weight; these classes have none: "
                    f"{listed(classes[present == 0])}. Leave their samples out, or give them "
                    f"weight by {names}."
                )
        return TrainingData(data.X, codes, weights, classes)

    def _checked_penalty(self) -> Penalty:
        return Penalty.named(self.penalty, check_not_negative(self.alpha, "alpha"))

    def _checked_intercept(self) -> Intercept:
        return check_intercept(self.fit_intercept)

    def _check_limits(self) -> None:
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol", " Give one such as 1e-6.")

    def _say(self, message: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {message}")

    def _start(self, objective: Objective) -> Floats:
        """Parameters to start from: zero, or the parameters of the last fit."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return np.zeros(objective.size)
        if self.coef_.shape != (objective.n_outputs, self.n_features_in_):
            raise ValueError(
                f"warm_start=True with coef_ of shape {self.coef_.shape}, but these data need "
                f"{(objective.n_outputs, self.n_features_in_)}. Fit a new estimator."
            )
        known = objective.from_user_units(self.coef_, self.intercept_)
        return np.zeros(objective.size) if known is None else known


def _check_sizes(X: Any, names: NDArray[Any] | None) -> None:
    """Refuse a feature so small or so large that squares of its values are lost."""
    # A feature is large enough if any of its values is, and mostly the first ones are.
    if (
        not issparse(X)
        and max(float(X.max()), -float(X.min())) <= _LARGEST
        and (np.abs(X[:_FIRST]).max(axis=0) >= _SMALLEST).all()
    ):
        return
    ends = [
        extreme.toarray().ravel() if issparse(X) else extreme for extreme in (X.max(0), X.min(0))
    ]
    sizes = np.maximum(*np.abs(ends))
    wrong = np.flatnonzero((sizes > 0.0) & ((sizes < _SMALLEST) | (sizes > _LARGEST)))
    if wrong.size:
        first = int(wrong[0])
        raise ValueError(
            f"{wrong.size} of {sizes.size} features are too small or too large to compute with: "
            f"the largest absolute value of feature {first if names is None else names[first]!r} "
            f"is {sizes[first]:g}, and it must lie from {_SMALLEST:g} to {_LARGEST:g} (or be 0). "
            "Give such features in another unit."
        )
