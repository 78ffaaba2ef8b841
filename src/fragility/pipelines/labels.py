"""The columns of a training table that are no features: labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import in_rows, listed
from .._typing import Floats
from ..exceptions import TableError
from ..tables.categories import MOST_CLASSES
from .frames import is_date, pandas


def read_labels(frame: Any, name: str) -> NDArray[Any]:
    """Labels of a column without gaps: whole numbers, booleans or text, as they are."""
    labels = _as_array(frame, name)
    classes, counts = np.unique(labels, return_counts=True)
    if classes.size < 2:
        raise TableError(
            f"The label column {name!r} has one class only, {listed(classes)}, in all "
            f"{len(frame)} rows; a classifier needs samples of two."
        )
    if classes.size > MOST_CLASSES:
        raise TableError(
            f"The label column {name!r} has {classes.size} classes, such as {listed(classes[:3])}; "
            f"up to {MOST_CLASSES} are allowed. Is it an identifier or a measurement? Name "
            "another column."
        )
    rare = classes[counts < 2]
    if rare.size:
        raise TableError(
            f"Every class of the label column {name!r} needs two samples; these have one: "
            f"{listed(rare)}. Leave their rows out, or merge them into other classes."
        )
    return labels


def _as_array(frame: Any, name: str) -> NDArray[Any]:
    pd = pandas()
    column = frame[name]
    if is_date(column):
        raise TableError(f"The label column {name!r} holds dates or times, which are no classes.")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    inferred = pd.api.types.infer_dtype(column)
    if inferred == "string":
        return np.array(column.astype(object).tolist(), dtype=np.str_)
    if inferred == "boolean":
        return np.asarray(column.to_numpy(dtype=np.bool_))
    if inferred not in ("integer", "floating", "decimal", "mixed-integer-float"):
        kinds = column.map(lambda value: type(value).__name__).unique()
        raise TableError(
            f"The label column {name!r} must hold whole numbers, booleans or text, and one of them "
            f"only; it holds {listed(sorted(kinds))}."
        )
    if inferred == "integer":
        try:
            return np.asarray(column.to_numpy(dtype=np.int64))
        except (OverflowError, TypeError, ValueError):
            raise TableError(
                f"The label column {name!r} holds whole numbers too long for a class. Is it an "
                "identifier? Name another column."
            ) from None
    numbers = np.asarray(column.to_numpy(dtype=np.float64))
    odd = ~(np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**53))
    if odd.any():
        raise TableError(
            f"The label column {name!r} holds numbers that are no classes, such as "
            f"{numbers[odd][0].item()!r}, in {in_rows(odd, frame)}: a measurement? Name another "
            "column, or make classes of it first."
        )
    return numbers.astype(np.int64)


def read_weights(frame: Any, name: str) -> Floats:
    """Weights of a column without gaps: finite numbers of zero or more, not all zero."""
    column = frame[name]
    numbers = pandas().to_numeric(column, errors="coerce")
    usable = not (is_date(column) or numbers.dtype.kind == "c")
    weights = np.full(len(frame), np.nan)
    if usable:
        weights = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~(np.isfinite(weights) & (weights >= 0.0))
    if wrong.any():
        raise TableError(
            f"The weight column {name!r} must hold finite numbers of zero or more; it does not in "
            f"{in_rows(wrong, frame)}, such as {listed(column[wrong].unique()[:3])}."
        )
    if not weights.any():
        raise TableError(f"The weight column {name!r} is zero in every row; some must count.")
    return weights
