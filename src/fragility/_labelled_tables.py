"""Tables of costs whose rows and columns are named by class.

The same costs with rows in another order must give the same result, so a DataFrame (true ×
decided class) or a Series (one value per class) is aligned by its labels before anything else looks
at it. Every function that takes costs by class calls `in_class_order` where the classes are known.
Arrays and nested lists have no labels and stay by position. pandas is recognized by its attributes
`index` and `columns` and never imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._labels import encode_labels, listed, whole_number
from ._typing import Integers


def in_class_order(table: Any, classes: Iterable[Any] | None, name: str) -> Any:
    """Return the values of a labelled table with rows and columns in the order of the classes.

    Parameters
    ----------
    table : DataFrame, Series or any other value
        What has no labels is returned as it is.
    classes : iterable or None
        None: the sorted labels of the rows.
    name : str
        Name of the table in error messages.
    """
    order = own_classes(table, name) if classes is None else classes
    if order is None or not _is_labelled(table, name):
        return table
    values = np.asarray(table)
    if not hasattr(table, "columns"):
        return values[label_positions(table.index, order, "values", name)]
    rows = label_positions(table.index, order, "rows", name)
    return values[np.ix_(rows, label_positions(table.columns, order, "columns", name))]


def own_classes(table: Any, name: str) -> NDArray[Any] | None:
    """Return the sorted classes that label the rows of a table, or None if it has no labels."""
    if not _is_labelled(table, name):
        return None
    if getattr(table.index, "nlevels", 1) > 1:
        raise ValueError(
            f"The index of {name} has {table.index.nlevels} levels; give one, whose labels are the "
            "classes."
        )
    try:
        return encode_labels(table.index.tolist())[0]
    except ValueError as error:
        message = str(error).replace(" (are y_true and y_score swapped?)", "")
        message = message.replace("those samples", "those rows")
        raise ValueError(message.replace("y_true", f"The index of {name}")) from None


def _is_labelled(table: Any, name: str) -> bool:
    """Return True for a table of pandas; refuse data frames whose rows have no labels."""
    index = getattr(table, "index", None)
    has_row_labels = index is not None and not callable(index)  # lists have a method of this name
    if hasattr(table, "columns") and not has_row_labels:
        raise ValueError(
            f"{name} is a data frame without row labels, so its rows cannot be matched with the "
            "classes: give a pandas DataFrame whose index and columns are the classes, or a plain "
            "array in the order of the classes."
        )
    return has_row_labels


def label_positions(
    labels: Iterable[Any], classes: Iterable[Any], axis: str, name: str
) -> Integers:
    """Return the position of each class among the labels, which must be the same values."""
    labels, expected = list(map(_plain, labels)), list(map(_plain, classes))
    counts, known = Counter(labels), set(expected)  # by hash: NA of pandas cannot be compared
    unknown = [label for label in counts if label not in known]
    missing = [label for label in expected if label not in counts]
    repeated = [label for label in expected if counts[label] > 1]
    if not (unknown or missing or repeated):
        return np.array([labels.index(label) for label in expected], dtype=np.int64)
    faults = {"not a class": unknown, "missing": missing, "repeated": repeated}
    details = "; ".join(f"{fault}: {listed(items)}" for fault, items in faults.items() if items)
    remedy = (
        f"label the {axis} with the classes, each once, or give a plain array in the order of the "
        "classes"
    )
    if axis == "values":  # of a Series, which may have been meant by case
        remedy += ", or one value for each case"
    for label, expected_label in product(unknown, missing):
        kinds = type(label).__name__, type(expected_label).__name__
        number = whole_number(label)
        if number is not None and number == whole_number(expected_label) and kinds[0] != kinds[1]:
            remedy = f"convert the labels from {kinds[0]} to {kinds[1]}"  # "1" and 1
    raise ValueError(
        f"The {axis} of {name} are labelled {listed(labels)}, but the classes are "
        f"{listed(expected)} ({details}): {remedy}."
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
