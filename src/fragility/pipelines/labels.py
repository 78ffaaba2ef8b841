"""The columns of a training table that are not features: labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Floats
from ..exceptions import TableError
from ..tables.categories import MOST_CLASSES
from .frames import Column


def read_labels(column: Column) -> NDArray[Any]:
    """Labels of a column without gaps: whole numbers, booleans or text, as they are."""
    name, labels = column.name, _as_array(column)
    classes, counts = np.unique(labels, return_counts=True)
    if classes.size < 2:
        raise TableError(
            f"The label column {name!r} has one class only, {listed(classes)}, in all "
            f"{labels.size} rows; a classifier needs samples of two."
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


def _as_array(column: Column) -> NDArray[Any]:
    name, values = column.name, column.values
    if column.kind == "dates":
        raise TableError(f"The label column {name!r} holds dates or times, which are not classes.")
    if column.kind == "text":
        return np.array(values.tolist(), dtype=np.str_)
    if column.kind == "booleans":
        return values.astype(np.bool_)
    if column.kind != "numbers":
        raise TableError(
            f"The label column {name!r} must hold whole numbers, booleans or text, and one of them "
            f"only; it holds {listed(sorted(column.type_counts))}."
        )
    plain = np.array(values.tolist()) if values.dtype.kind == "O" else values
    if plain.dtype.kind in "iu" and plain.max() <= np.iinfo(np.int64).max:
        return plain.astype(np.int64)
    if all(isinstance(value, (int, np.integer)) for value in values.tolist()):
        raise TableError(
            f"The label column {name!r} holds whole numbers too long for a class. Is it an "
            "identifier? Name another column."
        )
    numbers = column.numbers()
    odd = ~(np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**53))
    if odd.any():
        raise TableError(
            f"The label column {name!r} holds numbers that are not classes, such as "
            f"{numbers[odd][0].item()!r}, in {column.rows(odd)}: a measurement? Name another "
            "column, or make classes of it first."
        )
    return numbers.astype(np.int64)


def read_weights(column: Column) -> Floats:
    """Weights of a column without gaps: finite numbers of zero or more, not all zero."""
    weights = column.numbers()
    wrong = ~(np.isfinite(weights) & (weights >= 0.0))
    if wrong.any():
        raise TableError(
            f"The weight column {column.name!r} must hold finite numbers of zero or more; it does "
            f"not in {column.rows(wrong)}, such as {column.examples(wrong)}."
        )
    if not weights.any():
        raise TableError(
            f"The weight column {column.name!r} is zero in every row; some must count."
        )
    return weights
