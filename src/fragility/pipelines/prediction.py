"""Predictions for the rows of a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from .._labels import in_rows
from .._parameters import check_threshold
from .._typing import Mask
from ..exceptions import TableError
from .frames import check_frame, check_needed, pandas, row_names
from .reader import ColumnReader
from .trial import usable_rows


def predict_frame(pipeline: Pipeline, frame: Any, *, threshold: float | None = None) -> Any:
    """Class, confidence and probabilities of every row.

    Columns that the model does not need are ignored. Values that were not there in training are
    allowed: an `UnseenValuesWarning` for each column says how many rows have them.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted, as from `train_pipeline` or `load_model`.
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
    threshold : float, optional
        Confidence, from 0 to 1, above which the model decides alone.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        Of the library of `frame`, and for pandas with its index. The columns are ``prediction``,
        ``confidence`` (the largest probability), ``probability_<class>`` for every class and, if
        there is a threshold, ``automate``.

    Raises
    ------
    TableError
        Columns are missing or hold what the model cannot read, such as numbers so large that
        there are no probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from fragility.pipelines import predict_frame, train_pipeline
    >>> data = pd.DataFrame({"age": [31, 45, 58, 70] * 5, "ill": ["no", "no", "yes", "yes"] * 5})
    >>> pipeline = train_pipeline(data, "ill").pipeline
    >>> predict_frame(pipeline, data[:2], threshold=0.9).columns.tolist()
    ['prediction', 'confidence', 'probability_no', 'probability_yes', 'automate']
    """
    limit = None if threshold is None else check_threshold(threshold)
    table = check_frame(frame)
    if len(table) == 0:
        raise TableError("The table has no rows to predict for.")
    index = row_names(table)
    given = frame
    if not isinstance(pipeline[0], ColumnReader):  # of others: they know frames of pandas
        needed = list(getattr(pipeline, "feature_names_in_", table.columns))
        check_needed(table, needed)
        given = table.select(needed).to_pandas()
    classifier = pipeline[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        inputs = pipeline[:-1].transform(given) if len(pipeline) > 1 else given
        _check_rows(_finite_rows(inputs), index)
        probabilities = classifier.predict_proba(inputs)
        _check_rows(usable_rows(probabilities, (len(table), len(classifier.classes_))), index)
        predicted = classifier.predict(inputs)
    columns = {"prediction": predicted, "confidence": probabilities.max(axis=1)}
    for label, shares in zip(classifier.classes_.tolist(), probabilities.T, strict=True):
        columns[f"probability_{label}"] = shares
    if limit is not None:
        columns["automate"] = columns["confidence"] > limit
    if index is not None:
        return pandas().DataFrame(columns, index=index)
    return type(table).from_dict(columns, backend=table.implementation).to_native()


def _finite_rows(inputs: Any) -> Mask:
    """Which rows of inputs are finite; all rows where inputs are not numbers."""
    values = inputs.tocoo().data if issparse(inputs) else np.asarray(inputs)
    if values.dtype.kind != "f" or values.ndim == 0:
        return np.ones(inputs.shape[0], dtype=np.bool_)
    wrong = ~np.isfinite(values)
    if not issparse(inputs):
        return np.asarray(~wrong.reshape(len(wrong), -1).any(axis=1))
    finite = np.ones(inputs.shape[0], dtype=np.bool_)
    finite[inputs.tocoo().row[wrong]] = False
    return finite


def _check_rows(usable: Mask, index: Any) -> None:
    if not usable.all():
        raise TableError(
            f"The model gives no probabilities from 0 to 1 in {in_rows(~usable, index)}: their "
            "numbers are too large for it, or the model is damaged. Correct these rows, leave them "
            "out, or train the model again."
        )
