"""Scorers for `cross_validate` and `GridSearchCV`.

A search by FI alone may choose a constant model: its index is zero. Search by the ratio, or put AUC
or log-loss beside the index::

    cross_validate(
        model, X, y,
        scoring={"fi": neg_fragility_index_scorer, "auc": "roc_auc", "log_loss": "neg_log_loss"},
    )

A fold with an infinite index (or a constant model, whose ratio is NaN) makes the mean over folds
infinite (or NaN): nothing is averaged away, and the search ranks that candidate last.
"""

from __future__ import annotations

from typing import Any

from sklearn.metrics import make_scorer

from .functions import fragility_index, fragility_ratio

_Scorer: Any = type(make_scorer(fragility_index, response_method="predict_proba"))


class FragilityScorer(_Scorer):  # type: ignore[misc]
    """Scorer that tells its metric which class each column of `predict_proba` stands for.

    Without it a fold that lacks a class could not be scored.
    """

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("labels", estimator.classes_)
        return super()._score(method_caller, estimator, X, y_true, **kwargs)


#: Minus the Fragility Index. Never search by it alone: a constant model has index zero.
neg_fragility_index_scorer = FragilityScorer(fragility_index, -1, {}, "predict_proba")
#: Minus the fragility ratio, which a constant model does not improve (it is NaN there).
neg_fragility_ratio_scorer = FragilityScorer(fragility_ratio, -1, {}, "predict_proba")
