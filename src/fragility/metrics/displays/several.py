"""Displays of one or several models: predictions by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from ..._labels import later_category
from .estimator import FromEstimator, named_models, probabilities
from .figure import pyplot


def by_name(scores: Any, name: str | None) -> dict[str, Any]:
    """Predictions of models by their names; those of one model need none."""
    if isinstance(scores, Mapping):
        if not scores:
            raise ValueError("y_score is empty; give at least one model, {name: scores}.")
        return {str(key): part for key, part in scores.items()}
    return {name or "model": scores}


class FromEstimators(FromEstimator):
    """A Display of predictions of several models on the same cases."""

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any] | Iterable[Any], X: Any, y: ArrayLike, **options: Any
    ) -> Self:
        """Draw the predictions of fitted classifiers, which must not have been fitted to them.

        Parameters
        ----------
        estimators : dict of str to classifier, or list of classifiers
            Those of a list are named by their classes.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **options
            As in `from_predictions`, but for `labels`, which are the estimators' classes.
        """
        pyplot()
        models = named_models(estimators)
        if not models:
            raise ValueError("estimators is empty; give at least one.")
        scores = {name: probabilities(model, X) for name, model in models.items()}
        classes = [np.asarray(model.classes_) for model in models.values()]
        for name, own in zip(models, classes, strict=True):
            if own.tolist() != classes[0].tolist():
                raise ValueError(f"{name} knows other classes than the other models.")
        options.setdefault("pos_label", later_category(y, classes[0]))
        return cast(Self, cls.from_predictions(y, scores, labels=classes[0], **options))
