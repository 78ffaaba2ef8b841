"""Columns of a batch as labels and numbers; what cannot be used is refused by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from ..tables.values import encoded, numbers

#: More labels than this are identifiers or measurements.
MOST_LABELS = 1_000


def few_labels(label: str, found: set[Any]) -> set[Any]:
    """The same labels; too many are refused."""
    if len(found) > MOST_LABELS:
        raise ValueError(
            f"column {label!r} holds more than {MOST_LABELS:,} different labels; it looks like an "
            "identifier or a measurement. Name the column of the true classes."
        )
    return found


def one_kind(label: str, values: set[Any]) -> set[Any]:
    """The same values; text among numbers is refused."""
    if len({isinstance(value, str) for value in values}) > 1:
        raise ValueError(f"column {label!r} holds text and numbers: {listed(values)}.")
    return values


def codes_of(batch: Any, name: str) -> tuple[NDArray[Any], list[Any]]:
    """Codes and values of a column of which none is missing."""
    column = batch.column(name)
    found = encoded(column)
    if found is None:
        raise ValueError(
            f"column {name!r} holds values of type {column.type}; labels and groups must be text, "
            "booleans or whole numbers."
        )
    missing = int(np.count_nonzero(found[0] < 0))
    if missing:
        raise ValueError(f"column {name!r} has missing values, {missing} in a batch of rows.")
    return found


def numbers_of(batch: Any, name: str) -> NDArray[Any]:
    """Numbers of a column of which none is missing."""
    column = batch.column(name)
    try:
        found = numbers(column)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} does not hold numbers ({error}).") from None
    if np.isnan(found.min()):
        missing = int(np.count_nonzero(np.isnan(found)))
        raise ValueError(
            f"column {name!r} has missing values (null or NaN), {missing} in a batch of rows."
        )
    return found
