"""The door for fitted models: coefficients of a linear classifier, and samples that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight

from ._labels import encode_labels, listed, places_among
from ._names import shown
from ._parameters import check_not_negative
from ._typing import Floats
from ._validation import check_weights, column_names, long_integers_refused


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores ``X @ coef.T + intercept``: one column for two classes, else one for each.

    `priced` says that the intercept is the coefficient of a constant feature, which may shift.
    """

    coef: Floats
    intercept: Floats
    classes: NDArray[Any]
    priced: bool = False

    @property
    def inside(self) -> Floats:
        """What norms and penalties see: the coefficients, and a priced intercept after them."""
        return np.column_stack([self.coef, self.intercept]) if self.priced else self.coef


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Features (dense or CSR), classes as places in the model's `classes`, weights if given."""

    X: Any
    codes: NDArray[Any]
    weights: Floats | None


def check_linear_model(model: Any) -> LinearModel:
    """What a fitted linear classifier consists of."""
    if hasattr(model, "steps"):
        raise ValueError(
            "model is a Pipeline; give its last step and the features that this step sees: "
            "certify(model[-1], model[:-1].transform(X), y)."
        )
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(model, name)]
    if missing:
        raise ValueError(
            f"{type(model).__name__} has no {', '.join(missing)}; give a fitted linear classifier, "
            "such as LogisticRegression().fit(X, y)."
        )
    coef = model.coef_.toarray() if issparse(model.coef_) else model.coef_
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    classes = np.asarray(model.classes_)
    rows = 1 if classes.size == 2 else classes.size
    if classes.ndim != 1 or classes.size < 2 or coef.ndim != 2 or len(coef) != rows:
        raise ValueError(
            f"coef_ has shape {coef.shape} for classes_ of shape {classes.shape}; it must have one "
            "row for two classes, else one for each class."
        )
    if rows > 1 and hasattr(model, "support_vectors_"):  # with three classes the shape fits, too
        raise ValueError(
            f"The rows of coef_ of {type(model).__name__} belong to pairs of classes, not to "
            "classes; give a model with one score for each class, such as LinearSVC."
        )
    intercept = np.asarray(model.intercept_, dtype=np.float64).ravel()
    if intercept.size not in (1, rows):
        raise ValueError(f"intercept_ has {intercept.size} entries for {rows} rows of coef_.")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef_ and intercept_ must be finite; this model has diverged.")
    # Not its parameter `fit_intercept`, which may have been set again after the fit.
    priced = bool(getattr(model, "priced_intercept_", False))
    return LinearModel(coef, np.broadcast_to(intercept, (rows,)), classes, priced)


def check_labelled_samples(
    model: Any, linear: LinearModel, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> LabelledSamples:
    """Samples that a model can score, with labels that it knows."""
    given, expected = column_names(X), list(getattr(model, "feature_names_in_", ()))
    named = all(isinstance(name, str) for name in [*given, *expected])
    if named and given and expected and given != expected:
        raise ValueError(
            f"X has the columns {listed(given)}; the model was fitted with {listed(expected)}. "
            "Give these, in this order."
        )
    with long_integers_refused("X"):
        features = check_array(X, accept_sparse="csr", dtype=np.float64)
    if features.shape[1] != linear.coef.shape[1]:
        raise ValueError(
            f"X has {features.shape[1]} features; the model has coefficients for "
            f"{linear.coef.shape[1]}."
        )
    present, found = encode_labels(y)
    if found.size != features.shape[0]:
        raise ValueError(f"X has {features.shape[0]} samples but y has {found.size}.")
    places, unknown = places_among(present, linear.classes)
    if unknown:
        raise ValueError(
            f"y has labels that the model does not know: {listed(unknown)}; its classes are "
            f"{listed(linear.classes)}."
        )
    weights = None if sample_weight is None else check_weights(sample_weight, found.size)
    return LabelledSamples(features, places[found], weights)


def class_weighted(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[Any], weights: Floats | None
) -> Floats:
    """The weights of samples (None: all one) times the factors of `class_weight`.

    Raises
    ------
    ValueError
        If `class_weight` is not a dictionary of finite numbers of zero or more, one of them
        positive; or if a product is not finite.
    """
    factors = _class_factors(class_weight, classes, codes, weights)
    with np.errstate(over="ignore", under="ignore"):
        products: Floats = factors[codes] * (1.0 if weights is None else weights)
    if not np.isfinite(products).all():
        raise ValueError(
            "class_weight times sample_weight is beyond 1.8e308 for some samples; scale one of "
            "them down: only ratios of weights matter."
        )
    return products


def _class_factors(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[Any], weights: Floats | None
) -> Floats:
    """What `class_weight` multiplies the weights of each class by."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        # scikit-learn's formula, which counts samples by their weights since version 1.8 only.
        total = np.bincount(codes, weights, classes.size)
        balanced: Floats = total.sum() / (classes.size * np.where(total > 0.0, total, np.inf))
        return balanced
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            'class_weight must be a dictionary of classes and their weights, "balanced" or None; '
            f"got {shown(class_weight)}."
        )
    for label, weight in class_weight.items():
        check_not_negative(weight, f"class_weight of class {shown(label)}")
    by_class: Floats = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not by_class.any():
        zeros = ", ".join(f"{shown(label)}: {shown(w)}" for label, w in class_weight.items())
        raise ValueError(
            f"class_weight is zero for every class ({zeros}); one at least must count."
        )
    return by_class
