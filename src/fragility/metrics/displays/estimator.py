"""Displays of a fitted classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .figure import pyplot

__all__ = ["FromEstimator"]


class FromEstimator:
    """A Display of predictions, which can be those of a classifier."""

    from_predictions: ClassVar[Any]  # each Display has its own options

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Draw the predictions of a fitted classifier with `predict_proba`.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The true classes.
        name : str, optional
            Name of the model, for the title; by default that of its class.
        **options
            As in `from_predictions`, but for `labels`, which are the estimator's classes.
        """
        pyplot()
        display = cls.from_predictions(
            y,
            _probabilities(estimator, X),
            labels=np.asarray(estimator.classes_),
            name=_name(estimator) if name is None else name,
            **options,
        )
        return cast(Self, display)


def _probabilities(estimator: Any, X: ArrayLike) -> NDArray[Any]:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba; wrap it in CalibratedClassifierCV, "
            "or give scores of your own to from_predictions."
        )
    return np.asarray(estimator.predict_proba(X))


def _name(estimator: Any) -> str:
    """Name of a model: of a pipeline, that of its last step."""
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__
