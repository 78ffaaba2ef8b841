"""A trial of a pipeline from a file: probabilities for a few rows that it must be able to read.

Attributes of scikit-learn's own that differ from version to version cannot all be checked. A
pipeline in which one of them is wrong fails here, and not with the first table.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._typing import Mask
from ..exceptions import ModelFileError
from ..linear_model.base import LinearClassifier
from .frames import pandas
from .reader import ColumnReader

_ROWS = 12


def check_trial(pipeline: Pipeline) -> None:
    """Refuse a pipeline without probabilities for rows like those it was trained on.

    One with a step that is not known here is tried from its classifier on: what rows that step
    takes is known to its author only.
    """
    classifier = pipeline.steps[-1][1]
    rows = _rows(pipeline)
    tried, first = (pipeline, rows) if rows is not None else (classifier, _rows(classifier))
    if first is None:
        return
    with np.errstate(all="ignore"):
        probabilities = tried.predict_proba(first)
        predicted = tried.predict(first)
    classes = classifier.classes_
    if not usable_rows(probabilities, (_ROWS, classes.size)).all():
        raise ModelFileError("its probabilities are not numbers from 0 to 1 that sum to 1")
    if predicted.shape != (_ROWS,) or not set(predicted.tolist()) <= set(classes.tolist()):
        raise ModelFileError("it predicts something that is not one of its classes")


def usable_rows(probabilities: Any, shape: tuple[int, int]) -> Mask:
    """Which rows are numbers from 0 to 1 that sum to 1."""
    if not (isinstance(probabilities, np.ndarray) and probabilities.shape == shape):
        return np.zeros(shape[0], dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        usable = ((probabilities >= 0.0) & (probabilities <= 1.0)).all(axis=1)
        return np.asarray(usable & (np.abs(probabilities.sum(axis=1) - 1.0) < 1e-6))


def _rows(step: Any) -> Any:
    """Rows that a step can read, as a table if it knows names of columns; None if unknown."""
    columns = _columns(step)
    if columns is None:
        return None
    first = _first(step)
    names = getattr(first, "feature_names_in_", None)
    if names is not None:
        # As objects, for pandas would make text and gaps of something else.
        return pandas().DataFrame(dict(zip(names.tolist(), columns, strict=True)), dtype=object)
    numeric = all(isinstance(value, float) for column in columns for value in column)
    return np.array(columns, dtype=np.float64 if numeric else object).T.reshape(_ROWS, -1)


def _first(step: Any) -> Any:
    """The step that reads the rows first."""
    while type(step) is Pipeline:
        known = [inner for _, inner in step.steps if not (inner is None or isinstance(inner, str))]
        step = known[0]
    return step


def _columns(step: Any) -> list[list[Any]] | None:
    """Values for each column that a step reads."""
    step = _first(step)
    if type(step) is ColumnReader:
        gaps = [np.nan] if step.keep_missing else []
        numbers = _filled([0.0, 1.0, -1.0, *gaps])
        levels = [_filled([*levels[: _ROWS - 1], *gaps]) for levels in step.levels_.values()]
        return [numbers for _ in step.numeric] + levels
    if type(step) is StandardScaler:
        return [_filled([0.0, 1.0])] * step.n_features_in_
    if type(step) is SimpleImputer:
        gaps = [step.missing_values] if isinstance(step.missing_values, float) else []
        return [_filled([value, *gaps]) for value in step.statistics_.tolist()]
    if type(step) is OneHotEncoder:
        return [_filled(levels.tolist()) for levels in step.categories_]
    if isinstance(step, LinearClassifier):
        return [_filled([0.0, 1.0, -1.0])] * step.n_features_in_
    return _parts(step) if type(step) is ColumnTransformer else None


def _parts(step: ColumnTransformer) -> list[list[Any]] | None:
    """Values for the columns of all parts; of columns that no part takes, zeros."""
    found = [_filled([0.0, 1.0])] * step.n_features_in_
    for name, part, _ in step.transformers_:
        if part is None or isinstance(part, str):
            continue
        values = _columns(part)
        if values is None:
            return None
        for column, used in zip(step._transformer_to_input_indices[name], values, strict=True):
            found[column] = used
    return found


def _filled(values: list[Any]) -> list[Any]:
    return list(islice(cycle(values), _ROWS))
