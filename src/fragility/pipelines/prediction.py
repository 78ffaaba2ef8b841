"""Predictions for the rows of a data frame."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from .._parameters import check_threshold
from ..exceptions import TableError
from .frames import check_frame, check_present, pandas
from .reader import ColumnReader

__all__ = ["predict_frame"]


def predict_frame(pipeline: Pipeline, frame: Any, *, threshold: float | None = None) -> Any:
    """Class, confidence and probabilities of every row.

    Columns that the model does not need are ignored. Values that were not there in training are
    allowed: an `UnseenValuesWarning` for each column says how many rows have them.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted, as from `train_pipeline` or `load_model`.
    frame : pandas.DataFrame
    threshold : float, optional
        Confidence, from 0 to 1, above which the model decides alone.

    Returns
    -------
    pandas.DataFrame
        With the index of `frame` and the columns ``prediction``, ``confidence`` (the largest
        probability), ``probability_<class>`` for every class and, if there is a threshold,
        ``automate``.

    Raises
    ------
    TableError
        Columns are missing or hold what the model cannot read.

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
    pd = pandas()
    check_frame(frame)
    if len(frame) == 0:
        raise TableError("The table has no rows to predict for.")
    if not isinstance(pipeline[0], ColumnReader):
        needed = getattr(pipeline, "feature_names_in_", None)
        if needed is not None:
            check_present(
                needed, frame.columns, "Columns that the model needs are", "Rename or add them."
            )
            frame = frame[list(needed)]
    inputs = pipeline[:-1].transform(frame) if len(pipeline) > 1 else frame
    classifier = pipeline[-1]
    probabilities = classifier.predict_proba(inputs)
    columns = {
        "prediction": classifier.predict(inputs),
        "confidence": probabilities.max(axis=1),
    }
    for label, shares in zip(classifier.classes_.tolist(), probabilities.T, strict=True):
        columns[f"probability_{label}"] = shares
    if limit is not None:
        columns["automate"] = columns["confidence"] > limit
    return pd.DataFrame(columns, index=frame.index)
