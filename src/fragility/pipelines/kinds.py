"""What the columns of a training table are: numbers, levels, constants, or no features at all.

A column that is neither is refused with a sentence, since a guess would be a model that nobody
asked for: an identifier learned by heart, or a measurement read as a hundred levels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._labels import in_rows, listed
from ..exceptions import TableError
from .frames import check_finite, is_date, pandas

#: Text columns of more different values than this, and than a tenth of the rows, are refused.
_FEW_LEVELS = 50
#: Text with more different numbers than this is a measurement that something else got into.
_FEW_NUMBERS = 10
_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T\s].*)?"
)


@dataclass(frozen=True)
class ColumnKinds:
    """Names of the columns of each kind, in the order of the table."""

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    constant: tuple[str, ...]
    notes: tuple[str, ...]


def sort_columns(frame: Any, max_categories: int | None) -> ColumnKinds:
    """Kinds of all columns of a table without rows that are to be dropped."""
    most = max(_FEW_LEVELS, len(frame) // 10) if max_categories is None else max_categories
    numeric, categorical, constant, notes = [], [], [], []
    for name in frame:
        column = frame[name]
        is_numeric = _is_numeric(column)
        if is_numeric:
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            remedy = "empty them if they stand for missing ones, or exclude the column."
            check_finite(frame, name, numbers, remedy)
        if column.nunique(dropna=True) < 2:
            constant.append(name)
        elif is_numeric:
            _check_spread(frame, name)
            numeric.append(name)
            if _is_counter(column):
                notes.append(f"column {name!r} counts the rows: if it is an identifier, exclude it")
        else:
            _check_levels(frame, name, most)
            categorical.append(name)
    return ColumnKinds(tuple(numeric), tuple(categorical), tuple(constant), tuple(notes))


def _is_numeric(column: Any) -> bool:
    """Whether a column holds numbers and not levels; an error if neither."""
    pd = pandas()
    if is_date(column):
        raise _date_error(column.name)
    chosen = isinstance(column.dtype, pd.CategoricalDtype)
    column = column.astype(object) if chosen else column
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "empty":
        raise TableError(
            f"Column {column.name!r} has no value in any row; exclude it, or fill it in."
        )
    if inferred in ("string", "boolean"):
        return False
    if inferred in ("integer", "floating", "decimal", "mixed-integer-float"):
        return not chosen  # numbers that were made a category are levels
    kinds = column.dropna().map(lambda value: type(value).__name__).value_counts()
    found = ", ".join(f"{kind} ({count})" for kind, count in kinds.items())
    rare = column.notna() & (column.map(lambda value: type(value).__name__) == kinds.index[-1])
    raise TableError(
        f"Column {column.name!r} must hold numbers, text or booleans, and one of them only; it "
        f"holds {found}, the last in {in_rows(rare, column)}. Correct these, or exclude the column."
    )


def _date_error(name: str) -> TableError:
    return TableError(
        f"Column {name!r} holds dates or times, which are no features as they are. Exclude it, or "
        "turn it into numbers, such as an age or the days since an event."
    )


def _check_spread(frame: Any, name: str) -> None:
    """Refuse numbers whose standard deviation is lost in rounding, or beyond all floats."""
    values = frame[name].dropna().to_numpy(dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        variance = values.var()
        # Below this scikit-learn's StandardScaler leaves a column as it is.
        rounding = (values.size * values.mean() * np.finfo(np.float64).eps) ** 2
    if not (variance > rounding and np.isfinite(variance)):
        raise TableError(
            f"Column {name!r} cannot be standardised: its values, from {values.min().item()!r} to "
            f"{values.max().item()!r}, differ too little or too much for floats. Give it in "
            "another unit, as a difference from a usual value, or exclude it."
        )


def _is_counter(column: Any) -> bool:
    """Whether whole numbers go up by one from row to row, as those of patients do."""
    steps = np.diff(column.dropna().to_numpy(dtype=np.float64))
    return bool(steps.size >= 20 and (steps == 1.0).all())


def _check_levels(frame: Any, name: str, most: int) -> None:
    """A column of few levels, or an error that says what it looks like instead."""
    pd = pandas()
    column = frame[name]
    counts = column.value_counts(sort=False)  # all is asked of the few values, not of the rows
    chosen = isinstance(column.dtype, pd.CategoricalDtype)
    if pd.api.types.infer_dtype(counts.index) == "string" and not chosen:
        if all(_DATE.fullmatch(level) for level in counts.index):
            raise _date_error(name)
        _check_stray_text(frame, name, counts)
    found = int((counts > 0).sum())
    if found > most:
        raise TableError(
            f"Column {name!r} has {found} different values in {counts.sum()} rows, such as "
            f"{listed(column.dropna().unique()[:3])}; up to {most} are taken for categories. If it "
            "is an identifier or free text, exclude it; if they are categories, allow more of them "
            f"(max_categories={found})."
        )


def _check_stray_text(frame: Any, name: str, counts: Any) -> None:
    """Refuse a measurement that was read as text for the sake of some cells."""
    numbers = pandas().to_numeric(counts.index.to_series().astype(object), errors="coerce")
    text = numbers.isna().to_numpy()
    if numbers.nunique() <= _FEW_NUMBERS or counts[text].sum() > counts[~text].sum():
        return
    if not text.any():
        raise TableError(
            f"Column {name!r} holds {numbers.nunique()} different numbers as text, such as "
            f"{counts.index[0]!r}. Make it numbers (pandas.to_numeric), a category "
            '(astype("category")) if they are codes, or exclude it.'
        )
    stray = counts.index[text]
    raise TableError(
        f"Column {name!r} mixes numbers and text: no number is in "
        f"{in_rows(frame[name].isin(stray), frame)}, such as {listed(stray[:3])}. Correct these, "
        "empty them if they stand for missing values, or exclude the column."
    )
