"""Displays of a fitted classifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._labels import later_category
from ..._names import told_apart
from .base import Display
from .figure import pyplot


class FromEstimator(Display):
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
        classes = np.asarray(estimator.classes_)
        options.setdefault("pos_label", later_category(y, classes))
        display = cls.from_predictions(
            y,
            probabilities(estimator, X),
            labels=classes,
            name=model_name(estimator) if name is None else name,
            **options,
        )
        return cast(Self, display)


def check_can_predict(
    estimator: Any,
    name: str = "",
    instead: str = "give predictions of your own to from_predictions",
) -> None:
    """Refuse a classifier without probabilities, which is called `name`; `instead` may help."""
    if not hasattr(estimator, "predict_proba"):
        kind = type(estimator).__name__
        raise ValueError(
            f"{f'{name} ({kind})' if name else kind} has no predict_proba; wrap it in "
            f"CalibratedClassifierCV, or {instead}."
        )


def probabilities(estimator: Any, X: ArrayLike) -> NDArray[Any]:
    """What a fitted classifier predicts, if it can."""
    check_can_predict(estimator)
    return np.asarray(estimator.predict_proba(X))


def model_name(estimator: Any) -> str:
    """Name of a model: of a pipeline, that of its last step."""
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__


def named_models(estimators: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Models by their names; those of a list by the names of their classes, told apart."""
    if isinstance(estimators, Mapping):
        return dict(estimators)
    named: dict[str, Any] = {}
    for estimator in estimators:
        named[told_apart(model_name(estimator), named)] = estimator
    return named
