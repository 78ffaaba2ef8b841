"""Read the columns of data frames, mappings and arrays as plain NumPy arrays.

`columns` calls this module. It is the only place where slices meet narwhals: a frame of pandas, a
frame of polars and a table of Arrow with the same values give the same columns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import is_missing, listed, plain_array
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
    """

    name: str
    values: NDArray[Any]
    missing: Mask
    kind: str
    is_category: bool

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
        return np.fromiter(map(_as_number, self.values), dtype=np.float64, count=self.values.size)

    def examples(self) -> str:
        """For a message: the first three different values."""
        return listed(list(dict.fromkeys(self.known[:1000].tolist()))[:3])

    def take(self, rows: Mask) -> Column:
        """Return the same column with some of its rows."""
        return replace(self, values=self.values[rows], missing=self.missing[rows])


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf
    except (TypeError, ValueError):
        return nan


def read_columns(frame: Any) -> list[Column]:
    """Return the columns of a frame of pandas or polars, or of a table of Arrow."""
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
        checked = nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = type(frame)
        hint = " Collect it first: frame.collect()." if is_lazy else ""
        raise TableError(
            "Give a data frame of pandas or polars, or a table of Arrow; got "
            f"{kind.__module__.split('.')[0]}.{kind.__name__}.{hint}"
        ) from None
    return [_of_series(checked[name]) for name in checked.columns]


def _of_series(series: Any) -> Column:
    dtype = str(series.dtype)
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        values = series.to_numpy()
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        return Column(series.name, values, missing, "numbers", False)
    missing = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    values = np.fromiter(series.to_list(), dtype=object, count=len(missing))
    is_category = dtype.startswith(("Categorical", "Enum"))
    return _of_objects(series.name, values, missing, is_category)


def plain_column(name: str, values: ArrayLike) -> Column:
    """Return the column of an array or a list; this needs no library for data frames."""
    array = plain_array(values, f"Column {name!r}")
    if array.ndim != 1:
        raise TableError(f"Column {name!r} has shape {array.shape}; give one value for each row.")
    if array.dtype.kind in "iuf":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.size, np.bool_)
        return Column(name, array, missing, "numbers", False)
    if array.dtype.kind in "mM":
        return Column(name, array, np.isnat(array), "dates", False)
    if array.dtype.kind in "US" and isinstance(values, (list, tuple)):
        array = np.asarray(values, dtype=object)  # NumPy would turn 1 among text into "1"
    items = array.tolist()
    objects = np.fromiter(items, dtype=object, count=len(items))
    missing = np.fromiter(map(is_missing, items), dtype=np.bool_, count=len(items))
    return _of_objects(name, objects, missing, False)


def _of_objects(name: str, values: NDArray[Any], missing: Mask, is_category: bool) -> Column:
    values[missing] = None
    types = set(map(type, values[~missing].tolist()))
    return Column(name, values, missing, _kind(types), is_category)


def _kind(types: set[type]) -> str:
    if len({issubclass(t, _KINDS["booleans"]) for t in types}) > 1:
        return ""  # else bool would pass for a number, as Python has it
    fits = (kind for kind, known in _KINDS.items() if all(issubclass(t, known) for t in types))
    return next(fits, "dates" if {t.__name__ for t in types} == {"Period"} else "")
