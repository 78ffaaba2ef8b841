"""Predictions for samples by models that were not fitted to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._labels import listed
from .._sklearn import check_method_params, take_rows
from .._typing import Floats, Indices

Part = tuple[Indices, Indices]


def out_of_fold(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    parts: Iterable[Part],
    classes: NDArray[Any],
    fit_params: dict[str, Any],
) -> tuple[Indices, Floats]:
    """Rows of the samples in the test parts, and their probabilities by models not fitted to them.

    A clone is fitted to each training part. The columns are `classes`; one that a training part
    lacks has probability zero there.
    """
    times = np.zeros(y.size, dtype=np.intp)
    proba = np.zeros((y.size, classes.size))
    for number, (train, test) in enumerate(parts):
        present = np.unique(y[train])
        if present.size < 2:
            raise ValueError(
                f"Fold {number} leaves samples of one class only to fit to: {listed(present)}. "
                "Give at least two samples of each class, or a fitted model as "
                "FrozenEstimator(model)."
            )
        given = check_method_params(X, fit_params, train)
        model = clone(estimator).fit(take_rows(X, train), y[train], **given)
        columns = np.searchsorted(classes, model.classes_)
        proba[np.ix_(test, columns)] = model.predict_proba(take_rows(X, test))
        np.add.at(times, test, 1)
    repeated = np.flatnonzero(times > 1)
    if repeated.size:
        raise ValueError(
            f"cv tests {repeated.size} samples more than once (first: {listed(repeated[:5])}); "
            "give a splitter that tests each at most once, such as StratifiedKFold."
        )
    rows = np.flatnonzero(times)
    return rows, proba[rows]
