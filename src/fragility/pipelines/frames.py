"""The lazy doors to narwhals and pandas: columns of any data frame as plain arrays.

Everything behind these doors sees NumPy arrays only, so that a frame of pandas, of polars and a
table of Arrow with the same values make the same model and the same messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import in_rows, is_missing, listed, plain_array
from .._names import did_you_mean
from .._optional import needed_for
from .._typing import Floats, Mask
from ..exceptions import TableError

#: Kinds of values that a column may hold, by the types of Python; a truth value is not a number.
_KINDS: dict[str, tuple[type, ...]] = {
    "booleans": (bool, np.bool_),
    "numbers": (Real, Decimal),
    "text": (str,),
    "dates": (date, time, timedelta, np.datetime64, np.timedelta64),
}


def pandas() -> Any:
    """The pandas module, imported when a table is read and not before."""
    with needed_for("Tables are read with pandas", "cli"):
        import pandas as pd
    return pd


@dataclass(frozen=True, eq=False)
class Column:
    """A column as plain values.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n,)
        Numbers in the type that they are stored in, or objects of Python.
    missing : ndarray of shape (n,)
        Where there is no value.
    kind : str
        "numbers", "text", "booleans", "dates", or "" for anything else.
    is_category : bool
        Whether the table says that the values are categories.
    index : object
        Names of the rows, as pandas has them; None if rows are counted from 0.
    """

    name: str
    values: NDArray[Any]
    missing: Mask
    kind: str
    is_category: bool
    index: Any

    @property
    def known(self) -> NDArray[Any]:
        """The values that are there."""
        return self.values[~self.missing]

    @property
    def type_counts(self) -> Counter[str]:
        """Names of the types of the values, with how many there are of each."""
        return Counter(type(value).__name__ for value in self.known.tolist())

    def numbers(self) -> Floats:
        """The values as floats; NaN where there is none, or where it is not a number."""
        if self.values.dtype.kind != "O":
            return self.values.astype(np.float64, copy=False)
        return np.fromiter(map(as_number, self.values), dtype=np.float64, count=self.values.size)

    def rows(self, mask: ArrayLike) -> str:
        """For a message: how many rows a mask is true for, and which are the first."""
        return in_rows(mask, self.index)

    def examples(self, mask: Mask | bool = True) -> str:
        """For a message: the first different values in some rows."""
        found: list[Any] = []
        for value in self.values[mask & ~self.missing][:1000].tolist():
            if value not in found:
                found.append(value)
        return listed(found[:3])

    def take(self, rows: Mask) -> Column:
        """The same column with some of its rows."""
        index = None if self.index is None else self.index[rows]
        return replace(self, values=self.values[rows], missing=self.missing[rows], index=index)


def as_number(value: Any) -> float:
    """A value or its text as a float; NaN if it is not a number."""
    try:
        return nan if isinstance(value, str) and "_" in value else float(value)
    except OverflowError:
        return inf
    except (TypeError, ValueError):
        return nan


def check_frame(frame: Any) -> Any:
    """A data frame through narwhals, with columns whose names are text and all different."""
    with needed_for("Tables are read with narwhals", "cli"):
        import narwhals as nw
    is_lazy = hasattr(frame, "collect")  # to ask for its names may cost much
    names = () if is_lazy else list(getattr(frame, "column_names", getattr(frame, "columns", ())))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"Several columns have the same name: {listed(repeated)}. Rename them, or drop all but "
            "one."
        )
    unnamed = [name for name in names if not isinstance(name, str)]
    if unnamed:
        raise TableError(
            f"The names of columns must be text; these are not: {listed(unnamed)}. Rename them: "
            "frame.columns = [str(name) for name in frame.columns]."
        )
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = type(frame)
        hint = " Collect it first: frame.collect()." if is_lazy else ""
        raise TableError(
            "Give a data frame of pandas or polars, or a table of Arrow; got "
            f"{kind.__module__.split('.')[0]}.{kind.__name__}.{hint}"
        ) from None


def row_names(frame: Any) -> Any:
    """The index of a frame of pandas; None for other frames, whose rows have no names."""
    return getattr(frame.to_native(), "index", None)


def read_columns(frame: Any, names: Iterable[str]) -> dict[str, Column]:
    """Columns of a frame of narwhals as plain values."""
    index = row_names(frame)
    return {name: _column(frame[name], index) for name in names}


def _column(series: Any, index: Any) -> Column:
    dtype = str(series.dtype)
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        values = series.to_numpy()
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        return Column(series.name, values, missing, "numbers", False, index)
    missing = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    values = np.fromiter(series.to_list(), dtype=object, count=len(missing))
    is_category = dtype.startswith(("Categorical", "Enum"))
    return _of_objects(series.name, values, missing, is_category, index)


def plain_column(name: str, values: ArrayLike) -> Column:
    """A column of an array or a list, without any library for data frames."""
    array = plain_array(values, f"Column {name!r}")
    if array.ndim != 1:
        raise TableError(f"Column {name!r} has shape {array.shape}; give one value for each row.")
    if array.dtype.kind in "iuf":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.size, np.bool_)
        return Column(name, array, missing, "numbers", False, None)
    if array.dtype.kind in "mM":
        return Column(name, array, np.isnat(array), "dates", False, None)
    if array.dtype.kind in "US" and isinstance(values, (list, tuple)):
        array = np.asarray(values, dtype=object)  # NumPy would turn 1 among text into "1"
    items = array.tolist()
    objects = np.fromiter(items, dtype=object, count=len(items))
    missing = np.fromiter(map(is_missing, items), dtype=np.bool_, count=len(items))
    return _of_objects(name, objects, missing, False, None)


def _of_objects(
    name: str, values: NDArray[Any], missing: Mask, is_category: bool, index: Any
) -> Column:
    values[missing] = None
    types = set(map(type, values[~missing].tolist()))
    return Column(name, values, missing, _kind(types), is_category, index)


def _kind(types: set[type]) -> str:
    if len({issubclass(t, _KINDS["booleans"]) for t in types}) > 1:
        return ""  # else bool would pass for a number, as Python has it
    fits = (kind for kind, known in _KINDS.items() if all(issubclass(t, known) for t in types))
    return next(fits, "dates" if {t.__name__ for t in types} == {"Period"} else "")


def check_present(names: Iterable[str], columns: Iterable[str], what: str, remedy: str) -> None:
    """All names are columns; of those that are not, similar ones are suggested."""
    columns = list(columns)
    absent = [name for name in dict.fromkeys(names) if name not in columns]
    if not absent:
        return
    raise TableError(
        f"{what} not in the table: {listed(absent)}.{did_you_mean(absent[:10], columns)} It has "
        f"the columns {listed(columns, 20)}. {remedy}"
    )


def check_needed(frame: Any, names: Sequence[str]) -> None:
    """A frame has the columns that a model needs."""
    check_present(names, frame.columns, "Columns that the model needs are", "Rename or add them.")


def check_finite(column: Column, remedy: str) -> None:
    """No number of a column is infinite."""
    infinite = np.isinf(column.numbers())
    if infinite.any():
        raise TableError(
            f"Column {column.name!r} has infinite values in {column.rows(infinite)}. Correct "
            f"these, {remedy}"
        )


def missing_cells(columns: Iterable[Column]) -> str:
    """Columns that miss values, for a message; empty if none does."""
    parts = [f"{c.name!r} in {c.rows(c.missing)}" for c in columns if c.missing.any()]
    more = f"; ... ({len(parts) - 10} more columns)" if len(parts) > 10 else ""
    return "; ".join(parts[:10]) + more
