"""Columns of a record batch as arrays; what they cannot be is refused with words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import offsets_from
from .._typing import Mask
from ..exceptions import TableError
from .categories import Categories
from .problems import label_problem
from .table import Table
from .values import encoded, narrow_integers, numbers


def encoded_or_refused(table: Table, data: Any, name: str) -> tuple[NDArray[Any], list[Any]]:
    """Codes and values of a column; columns of dates, lists and the like are refused."""
    column = data.column(name)
    found = encoded(column)
    if found is None:
        raise table.error(
            f"column {name!r} holds values of type {column.type}; labels and groups must be text, "
            "booleans or whole numbers."
        )
    return found


def coded(
    table: Table,
    data: Any,
    name: str,
    categories: Categories,
    problem: Callable[[Table, str, Categories], TableError] = label_problem,
) -> tuple[NDArray[Any], Mask]:
    """Places of the rows' names, and where there is none because the value is missing.

    `problem` makes the error for a name that is not among the categories.
    """
    whole = narrow_integers(data.column(name))
    if whole is not None:
        numbered, low, high = whole
        by_number = categories.codes(range(low, high + 1))
        if by_number is not None:  # every number between the ends is a name: one look-up for each
            found = by_number.take(offsets_from(numbered, low))
            return found, np.zeros(numbered.size, dtype=np.bool_)
    places, values = encoded_or_refused(table, data, name)
    known = categories.codes(values)
    if known is None:
        raise problem(table, name, categories)
    missing = places < 0
    codes = np.append(known, known.dtype.type(0)).take(places)  # −1, missing, is the last one
    return codes, missing


def floats(table: Table, data: Any, name: str) -> NDArray[Any]:
    """Numbers of a column, NaN where one is missing."""
    try:
        return numbers(data.column(name))
    except TypeError as error:
        raise table.error(f"column {name!r} holds {error}; name a column of numbers.") from None
