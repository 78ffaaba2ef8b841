"""Robust satisficing with its target and penalty chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._sklearn import raise_for_params, routing_enabled
from .._typing import Floats
from ..ambiguity import Ambiguity, as_ambiguity
from .base import LinearClassifier, TrainingData
from .folds import Folds, takes_weights
from .satisficing import SatisficingClassifier
from .search import Progress, best_cell, checked_list, report, run_folds

_ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)


@cache
def _shared_parameters(kind: type[SatisficingClassifierCV]) -> set[str]:
    """What the estimator that is cross-validated is given as it is."""
    return (set(SatisficingClassifier().get_params()) & set(kind().get_params())) - {"verbose"}


@dataclass(eq=False, repr=False)
class SatisficingClassifierCV(LinearClassifier):
    r"""`SatisficingClassifier` with slack and penalty chosen by cross-validation.

    Every pair of a target and a penalty is fitted on the training part of every fold and scored on
    its test part; the pair of the best mean score is fitted once more to all data. Far cheaper than
    ``GridSearchCV``: where the program is smooth each search begins where one for another fold
    ended; where it has corners (a hinge, an l1 penalty) folds, penalties and targets are solved
    together. A ball or another solver is not offered here.

    Parameters
    ----------
    loss, ambiguity, fit_intercept, class_weight
        As in `SatisficingClassifier`.
    slacks : sequence of float, default=(0.02, 0.05, 0.1, 0.2, 0.4)
        Shares of what a model can learn that may be given up, to choose from.
    target_ratios : sequence of float, optional
        Multiples of the lowest loss to choose from instead; `slacks` are not used then.
    alphas : sequence of float, default=(1e-4, 1e-3, 1e-2, 1e-1)
        Strengths of the penalty to choose from. Leave them out with ``penalty=None``.
    penalty : {"l2", "l1", None}, default="l2"
        As in `SatisficingClassifier`.
    cv : int, splitter or iterable, default=5
        A number of folds is stratified by class.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is accuracy, which sees little of what a slack gives up in
        confidence. "neg_log_loss" sees all of it and prefers small slacks. Never give a scorer of
        the Fragility Index alone: a constant model has index zero.
    refit : bool, default=True
        Whether to fit to all data in the end. If not, there are scores and choices but no model.
    tol : float, default=1e-6
        Accuracy of the fragility, relative, of the final model.
    tol_cv : float, default=1e-3
        The same within the folds. Scores do not see the difference: a log-loss moves by less than
        1e-4.
    max_iter : int, default=1000
        Most steps of each search.
    n_jobs : int, optional
        Folds after the first that run at the same time.
    random_state : object, default=None
        Not used: nothing is random, and folds are as `cv` makes them.
    verbose : int, default=0
        Show how far the cross-validation is, on standard error.

    Attributes
    ----------
    slack_, target_ratio_ : float
        The chosen one; only the kind that was searched exists.
    alpha_ : float
        The chosen strength; 0 without a penalty.
    best_score_ : float
        Mean score of the choice over the folds.
    scores_ : ndarray of shape (n_alphas, n_targets, n_folds)
        In the order of `alphas` and `slacks` as given. NaN where there is no such target.
    mean_scores_ : ndarray of shape (n_alphas, n_targets)
        NaN where any fold is.
    fragilities_ : ndarray of shape (n_alphas, n_targets, n_folds)
        On the training parts.
    ambiguity_ : Ambiguity
        As in `SatisficingClassifier`, of all data: the same in every fold.
    coef_, intercept_, classes_, fragility_, target_, erm_loss_, trivial_loss_, certificate_, \
    n_iter_, solver_
        Of the final model, as in `SatisficingClassifier`.
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Warns
    -----
    UserWarning
        Some pairs have no score in some fold, such as a target ratio where the lowest loss is zero,
        and were not chosen from.
    ConvergenceWarning
        Some searches in folds ended early.

    Notes
    -----
    Of equal mean scores the largest slack (or ratio) is chosen, and of these the largest alpha:
    the more robust model. `sample_weight` counts in fits and, where the scorer takes it, in scores;
    with scikit-learn's metadata routing, where the scorer requests it (accuracy by default does). A
    class that a training part lacks has probability zero there.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fragility import SatisficingClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SatisficingClassifierCV()).fit(X, y)
    >>> model[-1].slack_, model[-1].alpha_, round(model[-1].best_score_, 3)
    (0.02, 0.0001, 0.981)
    """

    ambiguity: str | Ambiguity = "wasserstein"
    _: KW_ONLY
    slacks: Any = (0.02, 0.05, 0.1, 0.2, 0.4)
    target_ratios: Any = None
    alphas: Any = _ALPHAS
    penalty: str | None = "l2"
    cv: Any = 5
    scoring: Any = None
    refit: bool = True
    tol_cv: float = 1e-3
    n_jobs: int | None = None

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Choose, and fit to all data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            For the splitter and the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        SatisficingClassifierCV
            Itself.
        """
        raise_for_params(params, self, "fit")
        self._check_parameters()
        name, targets, alphas = self._grid()
        scorer = self._scorer()
        data = self._validated(X, y, sample_weight)
        weighted = self._class_weighted(data)
        # Once for all folds: fragilities are then in the same units, and labels have no part in it.
        names = getattr(self, "feature_names_in_", None)
        self.ambiguity_ = as_ambiguity(self.ambiguity).fitted_to(data.X, weighted.weights, names)
        if routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split_params, score_params = routed.splitter.split, routed.scorer.score
        else:
            split_params, score_params = {}, {}
            if data.weights is not None and takes_weights(scorer):
                score_params = {"sample_weight": data.weights}
        labels = data.classes[data.codes]
        splitter = check_cv(self.cv, labels, classifier=True)
        every = np.arange(labels.size)  # folds may be given as masks
        parts = [
            (every[train], every[test])
            for train, test in splitter.split(data.X, labels, **split_params)
        ]
        # Strong penalties and tight targets first: from there it is never far to the next.
        down, up = np.argsort(alphas)[::-1], np.argsort(targets)
        folds = Folds(
            self._model(tol=self.tol_cv, ambiguity=self.ambiguity_),
            data,
            alphas[down].tolist(),
            [{name: target} for target in targets[up].tolist()],
            None if self.scoring is None or self.scoring == "accuracy" else scorer,
            score_params,
        )
        progress = Progress(type(self).__name__, len(parts) * alphas.size, bool(self.verbose))
        found = run_folds(folds, parts, self.n_jobs, progress)
        shape = alphas.size, targets.size, len(parts)
        self.scores_, self.fragilities_ = np.empty(shape), np.empty(shape)
        self.scores_[np.ix_(down, up)] = np.stack([one.scores for one in found], axis=-1)
        self.fragilities_[np.ix_(down, up)] = np.stack([one.fragilities for one in found], axis=-1)
        self.mean_scores_ = self.scores_.mean(axis=2)
        report(found, self.scores_, self.max_iter)
        j, i = best_cell(self.mean_scores_, alphas, targets)
        for other in {"slack_", "target_ratio_"} & set(vars(self)):
            delattr(self, other)  # from an earlier fit
        setattr(self, f"{name}_", float(targets[i]))
        self.alpha_, self.best_score_ = float(alphas[j]), float(self.mean_scores_[j, i])
        self.classes_ = data.classes
        if self.refit:
            with np.errstate(over="ignore", under="ignore"):
                self._fit_to(weighted)
        return self

    def _grid(self) -> tuple[str, Floats, Floats]:
        """What to choose from: name of the targets, they themselves, and the penalties."""
        name, given = "slack", self.slacks
        if self.target_ratios is not None:
            name, given = "target_ratio", self.target_ratios
        targets = checked_list(given, f"{name}s")
        alphas = checked_list(self.alphas, "alphas")
        if self.penalty is None:
            if alphas.tolist() != list(_ALPHAS):
                raise ValueError(
                    f"penalty=None has no strength to choose, but alphas={self.alphas!r}. Leave "
                    'alphas out, or give a penalty such as "l2".'
                )
            alphas = np.zeros(1)
        return name, targets, alphas

    def _check_parameters(self) -> None:
        name, targets, alphas = self._grid()
        given = {"tol": [self.tol, self.tol_cv], name: targets.tolist(), "alpha": alphas.tolist()}
        model = self._model()
        for parameter, values in given.items():
            for value in values:
                setattr(model, parameter, value)
                model._check_parameters()

    def _model(self, **chosen: Any) -> SatisficingClassifier:
        """The estimator that is cross-validated."""
        shared = {name: getattr(self, name) for name in _shared_parameters(type(self))}
        return SatisficingClassifier(**{**shared, **chosen})

    def _scorer(self) -> Any:
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                "scoring must be None, the name of a scorer of scikit-learn, or a callable "
                f"(estimator, X, y); got {self.scoring!r}."
            )
        scorer = get_scorer("accuracy" if self.scoring is None else self.scoring)
        if self.scoring is None and routing_enabled():
            scorer = scorer.set_score_request(sample_weight=True)
        return scorer

    def _fit_to(self, data: TrainingData) -> None:
        """Fit the model of the choice."""
        name, _, _ = self._grid()
        chosen = {name: getattr(self, f"{name}_"), "alpha": self.alpha_}
        model = self._model(**chosen, ambiguity=self.ambiguity_)
        model._fit_to(data)
        for attribute, value in vars(model).items():
            if attribute.endswith("_"):
                setattr(self, attribute, value)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> float:
        """Score by `scoring`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            For the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        float
        """
        raise_for_params(params, self, "score")
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(self._scorer()(self, X, y, **params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets which metadata: see scikit-learn's guide to metadata routing.

        Returns
        -------
        MetadataRouter
        """
        split = MethodMapping().add(caller="fit", callee="split")
        score = MethodMapping().add(caller="fit", callee="score")
        score.add(caller="score", callee="score")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=split)
        return router.add(scorer=self._scorer(), method_mapping=score)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")
