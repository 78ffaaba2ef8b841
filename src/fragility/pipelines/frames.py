"""The lazy door to pandas, and what messages say about tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._labels import in_rows, listed
from .._names import alike
from .._typing import Floats
from ..exceptions import TableError


def pandas() -> Any:
    """The pandas module, imported when a table is read and not before."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'Tables are read with pandas, which is not installed: pip install "fragility[cli]"'
        ) from error
    return pd


def check_frame(frame: Any) -> Any:
    """A data frame with rows whose columns have different names, all text."""
    if not isinstance(frame, pandas().DataFrame):
        kind = type(frame)
        hint = " Convert it with to_pandas()." if hasattr(frame, "to_pandas") else ""
        raise TableError(
            f"Give a pandas DataFrame; got {kind.__module__.split('.')[0]}.{kind.__name__}.{hint}"
        )
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise TableError(
            f"Several columns have the same name: {listed(repeated)}. Rename them, or drop all but "
            "one."
        )
    unnamed = [name for name in frame.columns if not isinstance(name, str)]
    if unnamed:
        raise TableError(
            f"The names of columns must be text; these are not: {listed(unnamed)}. Rename them: "
            "frame.columns = [str(name) for name in frame.columns]."
        )
    return frame


def check_present(names: Iterable[str], columns: Iterable[str], what: str, remedy: str) -> None:
    """All names are columns; of those that are not, similar ones are suggested."""
    columns = list(columns)
    absent = [name for name in dict.fromkeys(names) if name not in columns]
    if not absent:
        return
    hints = alike(absent[:10], columns)
    similar = f" Similar: {', '.join(hints)}." if hints else ""
    raise TableError(
        f"{what} not in the table: {listed(absent)}.{similar} It has the columns "
        f"{listed(columns, 20)}. {remedy}"
    )


def needed_columns(frame: Any, names: Sequence[str]) -> Any:
    """The columns that a model needs, in its order."""
    check_present(names, frame.columns, "Columns that the model needs are", "Rename or add them.")
    return frame[list(names)]


def check_finite(frame: Any, name: str, numbers: Floats, remedy: str) -> None:
    """No number of a column is infinite."""
    infinite = np.isinf(numbers)
    if infinite.any():
        raise TableError(
            f"Column {name!r} has infinite values in {in_rows(infinite, frame)}. Correct these, "
            + remedy
        )


def missing_cells(frame: Any) -> str:
    """Columns that miss values, for a message; empty if none does."""
    missing = frame.isna()
    parts = [f"{n!r} in {in_rows(missing[n], frame)}" for n in frame if missing[n].any()]
    more = f"; ... ({len(parts) - 10} more columns)" if len(parts) > 10 else ""
    return "; ".join(parts[:10]) + more


def is_date(column: Any) -> bool:
    """Whether the type of a column is one of dates, times or spans of time."""
    types = pandas().api.types
    inferred = types.infer_dtype(column, skipna=True)
    return bool(
        types.is_datetime64_any_dtype(column.dtype)
        or types.is_timedelta64_dtype(column.dtype)
        or inferred.startswith(("date", "time", "period", "interval"))
    )
