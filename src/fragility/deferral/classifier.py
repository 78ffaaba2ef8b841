"""A classifier that knows when to ask a human."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, indexable

from .._labels import listed
from .._parameters import check_count
from .._random import random_generator, spread_over_folds
from .._sklearn import check_y, raise_for_params, routing_enabled, take_rows
from .._typing import Floats, Indices
from .._validation import check_case_costs, check_weights
from ..metrics.displays.estimator import check_can_predict
from .costs import check_reviewer_error
from .decisions import Decisions
from .out_of_fold import Part, out_of_fold
from .policy import Policy
from .policy_search import best_policy
from .settings import POLICY_PARAMETERS

#: Parameters that `best_policy` takes as they are.
_OF_POLICIES = (
    *("review_cost", "capacity", "reviewer_error"),
    *POLICY_PARAMETERS,
)


@dataclass(eq=False, repr=False)
class DeferralClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with a policy: what it decides alone, and what a human should review.

    The policy is the best one for out-of-fold predictions of the training data, by
    `fragility.best_policy`; then the model is fitted to all of them. `decide` says which cases the
    model decides and which a human should review; `predict` and `predict_proba` come from the
    model.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        By default ``LogisticRegression()``. One that is fitted already, as
        ``FrozenEstimator(model)``, is left as it is: fit to data that it has not seen.
    error_cost : float or (n_classes, n_classes) array-like
        Cost of a wrong prediction that nobody looked at: one number, or a matrix (true × predicted
        class, in the order of `classes_`) or a DataFrame with the classes as index and columns. For
        one number for each case see `case_cost` of `fit`.
    review_cost : float, default=1.0
        Cost of having a human look at a case, in the same currency.
    capacity : float, optional
        Largest share of the cases, from 0 to 1, that humans can review.
    reviewer_error : float, mapping or array-like, default=0.0
        Share of the reviewed cases that the human gets wrong, too: one number, or one for each
        class, in the order of `classes_`, as ``{label: share}`` or as a Series by class.
    max_error_share, max_error_rate, max_misses, max_false_alarms, guarantee : float, optional
        Limits of errors, and the probability with which they hold, as in `fragility.best_policy`.
        They are those of the out-of-fold predictions: the model that is fitted to all data is a
        little better as a rule, but nothing guarantees that.
    rule, criterion, slack
        How the policy is chosen, as in `fragility.best_policy`.
    cv : int, splitter or iterable, default=5
        A number of folds is drawn at random, each class spread evenly (a class of fewer samples is
        in some only). Of another splitter every sample may be tested once at most; those that
        never are count in fits only.
    random_state : int, RandomState, Generator or None, default=None
        For the folds.

    Attributes
    ----------
    policy_ : Policy
        What the model decides alone, and what that costs.
    estimator_ : classifier
        The model, fitted to all data.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_, feature_names_in_
        Those of the model, if it has them.

    Notes
    -----
    The cases of the training data must come as they will come later: a class that is rarer or more
    frequent there moves the costs. Use `sample_weight` to set that right. It goes to the fits of
    the model, too, if that takes it (with scikit-learn's metadata routing: if it requests it).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fragility import DeferralClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> careful = DeferralClassifier(model, error_cost=20, random_state=0).fit(X[:400], y[:400])
    >>> decisions = careful.decide(X[400:])
    >>> bool(decisions.automate.mean() > 0.7)
    True
    """

    estimator: Any = None
    _: KW_ONLY
    error_cost: Any = None
    review_cost: float = 1.0
    capacity: float | None = None
    reviewer_error: Any = 0.0
    max_error_share: float | None = None
    max_error_rate: float | None = None
    max_misses: float | None = None
    max_false_alarms: float | None = None
    guarantee: float | None = None
    rule: str = "auto"
    criterion: str = "cost"
    slack: float = 0.1
    cv: Any = 5
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        case_cost: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Choose the policy, and fit the model to all data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Whatever the model takes.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        case_cost : array-like of shape (n_samples,), optional
            Cost of an error for each case, in the place of `error_cost`.
        **params : dict
            For the fits of the model and the splitter, with scikit-learn's metadata routing.

        Returns
        -------
        DeferralClassifier
            Itself.
        """
        raise_for_params(params, self, "fit")
        estimator, rng = self._model(), random_generator(self.random_state)
        check_can_predict(
            estimator, instead="give a classifier that has it: confidence is a probability"
        )
        X, y = indexable(X, y)
        labels = np.asarray(check_y(y))
        check_classification_targets(labels)
        error_cost = self._error_cost(case_cost, labels.size)
        classes = np.unique(labels)  # errors by case cannot be matched with the folds
        check_reviewer_error(self.reviewer_error, classes.size, None, classes.tolist())
        weights = None if sample_weight is None else check_weights(sample_weight, labels.size)
        fit_params, split_params = self._routed(estimator, weights, params)
        self.estimator_ = clone(estimator).fit(X, labels, **fit_params)
        self.classes_: NDArray[Any] = np.asarray(self.estimator_.classes_)
        if self.classes_.size < 2:
            raise ValueError(
                f"There is one class only, {listed(self.classes_)}: nothing to decide. Give "
                "samples of at least two classes."
            )
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(self):
                delattr(self, name)  # from an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        counted = np.arange(labels.size) if weights is None else np.flatnonzero(weights)
        if isinstance(estimator, FrozenEstimator):
            rows, proba = counted, self.predict_proba(take_rows(X, counted))
        else:
            parts = self._parts(X, labels, counted, rng, split_params)
            rows, proba = out_of_fold(estimator, X, labels, parts, self.classes_, fit_params)
        self.policy_: Policy = best_policy(
            labels[rows],
            proba,
            error_cost=error_cost if case_cost is None else error_cost[rows],
            **{name: getattr(self, name) for name in _OF_POLICIES},
            sample_weight=None if weights is None else weights[rows],
            labels=self.classes_,
            random_state=int(rng.integers(2**31)),
        )
        return self

    def _error_cost(self, case_cost: ArrayLike | None, n: int) -> Any:
        if case_cost is not None:
            return check_case_costs(case_cost, n, "case_cost")
        if self.error_cost is None:
            raise ValueError(
                "DeferralClassifier needs error_cost, what a wrong decision costs in the unit of "
                "review_cost (or case_cost in fit, for each case): the threshold follows from it."
            )
        if np.ndim(self.error_cost) == 1:
            raise ValueError(
                "error_cost must be one number or a matrix (true × predicted class); give one "
                "number for each case as fit(X, y, case_cost=...)."
            )
        return self.error_cost

    def _model(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _routed(
        self, estimator: Any, weights: Floats | None, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the fits of the model are given, and what the splitter is."""
        if routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params)
            return routed.estimator.fit, routed.splitter.split
        if weights is None or isinstance(estimator, FrozenEstimator):
            return {}, {}
        if has_fit_parameter(estimator, "sample_weight"):
            return {"sample_weight": weights}, {}
        warnings.warn(
            f"{type(estimator).__name__} does not take sample_weight: it is fitted without, and "
            "the weights count for the threshold only. For the last step of a pipeline use "
            "scikit-learn's metadata routing.",
            UserWarning,
            stacklevel=3,
        )
        return {}, {}

    def _parts(
        self,
        X: Any,
        y: NDArray[Any],
        counted: Indices,
        rng: np.random.Generator,
        split_params: dict[str, Any],
    ) -> Iterator[Part]:
        """Training and test parts of the samples that have weight."""
        if isinstance(self.cv, Integral):
            n_folds = min(check_count(int(self.cv), "cv", 2), counted.size)
            codes = np.unique(y[counted], return_inverse=True)[1]
            folds = spread_over_folds(codes, n_folds, rng)
            for fold in range(n_folds):
                yield counted[folds != fold], counted[folds == fold]
            return
        every, has_weight = np.arange(y.size), np.zeros(y.size, dtype=bool)
        has_weight[counted] = True
        for train, test in check_cv(self.cv, y, classifier=True).split(X, y, **split_params):
            train, test = every[train], every[test]  # they may be masks
            yield train[has_weight[train]], test[has_weight[test]]

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, as the model has it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        proba: Floats = self.estimator_.predict_proba(X)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each sample, whether the model may decide it alone or not.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        places = np.asarray(self.predict_proba(X)).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def decide(self, X: Any) -> Decisions:
        """What the model decides alone, and what a human should review.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        Decisions
            With arrays `label`, `automate`, `score`, `saving` and `reason`.
        """
        check_is_fitted(self, "policy_")
        return self.policy_.decide(self.predict_proba(X))

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets which metadata: see scikit-learn's guide to metadata routing.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self._model(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._model())
        for name in ("sparse", "pairwise", "allow_nan"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags
