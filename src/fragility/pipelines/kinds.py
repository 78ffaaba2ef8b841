"""What the columns of a training table are: numbers, levels, constants, or not features at all.

A column that is neither is refused with a sentence, since a guess would be a model that nobody
asked for: an identifier learned by heart, or a measurement read as a hundred levels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._labels import listed
from .._typing import Floats
from ..exceptions import TableError
from .frames import Column, as_number, check_finite

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


def sort_columns(columns: Iterable[Column], max_categories: int | None) -> ColumnKinds:
    """Kinds of the columns, without the rows that are to be dropped."""
    numeric, categorical, constant, notes = [], [], [], []
    for column in columns:
        name = column.name
        if _is_numeric(column):
            check_finite(
                column, "empty them if they stand for missing ones, or exclude the column."
            )
            numbers = column.numbers()[~column.missing]
            if numbers.min() == numbers.max():
                constant.append(name)
                continue
            _check_spread(name, numbers)
            numeric.append(name)
            if _is_counter(numbers):
                notes.append(f"column {name!r} counts the rows: if it is an identifier, exclude it")
            continue
        counts = Counter(column.known.tolist())
        if len(counts) < 2:
            constant.append(name)
            continue
        usual = max(_FEW_LEVELS, column.values.size // 10)
        _check_levels(column, counts, usual if max_categories is None else max_categories)
        categorical.append(name)
    return ColumnKinds(tuple(numeric), tuple(categorical), tuple(constant), tuple(notes))


def _is_numeric(column: Column) -> bool:
    """Whether a column holds numbers and not levels; an error if neither."""
    if column.kind == "dates":
        raise date_error(column.name)
    if column.missing.all():
        raise TableError(
            f"Column {column.name!r} has no value in any row; exclude it, or fill it in."
        )
    if column.kind:
        # Numbers that were made a category are levels.
        return column.kind == "numbers" and not column.is_category
    kinds = column.type_counts.most_common()
    found = ", ".join(f"{kind} ({count})" for kind, count in kinds)
    rare = [type(value).__name__ == kinds[-1][0] for value in column.values]
    raise TableError(
        f"Column {column.name!r} must hold numbers, text or booleans, and one of them only; it "
        f"holds {found}, the last in {column.rows(rare)}. Correct these, or exclude the column."
    )


def looks_like_dates(levels: Iterable[Any]) -> bool:
    """Whether all of some values are text that reads as a date."""
    return all(isinstance(level, str) and _DATE.fullmatch(level) for level in levels)


def date_error(name: str) -> TableError:
    """An error for a column of dates."""
    return TableError(
        f"Column {name!r} holds dates or times, which are not features as they are. Exclude it, or "
        "turn it into numbers, such as an age or the days since an event."
    )


def _check_spread(name: str, values: Floats) -> None:
    """Refuse numbers whose standard deviation is lost in rounding, or beyond all floats."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        moments = values.size, float(values.mean()), float(values.var())
    check_spread(name, *moments, float(values.min()), float(values.max()))


def check_spread(
    name: str, count: int, mean: float, variance: float, low: float, high: float
) -> None:
    """The same by the moments and ends of a column."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # Below this scikit-learn's StandardScaler leaves a column as it is.
        rounding = (count * np.float64(mean) * np.finfo(np.float64).eps) ** 2
    if not (variance > rounding and np.isfinite(variance)):
        raise TableError(
            f"Column {name!r} cannot be standardised: its values, from {low!r} to {high!r}, differ "
            "too little or too much for floats. Give it in another unit, as a difference from a "
            "usual value, or exclude it."
        )


def _is_counter(values: Floats) -> bool:
    """Whether whole numbers go up by one from row to row, as patient numbers do."""
    steps = np.diff(values)
    return bool(steps.size >= 20 and (steps == 1.0).all())


def _check_levels(column: Column, counts: Counter[Any], most: int) -> None:
    """A column of few levels, or an error that says what it looks like instead."""
    if column.kind == "text" and not column.is_category:
        if looks_like_dates(counts):
            raise date_error(column.name)
        _check_stray_text(column, counts)
    if len(counts) > most:
        raise TableError(
            f"Column {column.name!r} has {len(counts)} different values in {counts.total()} rows, "
            f"such as {column.examples()}; up to {most} are taken for categories. If it is an "
            "identifier or free text, exclude it; if they are categories, allow more of them "
            f"(max_categories={len(counts)})."
        )


def _check_stray_text(column: Column, counts: Counter[str]) -> None:
    """Refuse a measurement that was read as text because of some cells."""
    numbers = {level: number for level in counts if (number := as_number(level)) == number}
    different = len(set(numbers.values()))
    stray = [level for level in counts if level not in numbers]
    stray_rows = sum(counts[level] for level in stray)
    if different <= _FEW_NUMBERS or stray_rows > counts.total() - stray_rows:
        return
    if not stray:
        raise TableError(
            f"Column {column.name!r} holds {different} different numbers as text, such as "
            f"{next(iter(counts))!r}. Make it numbers (in pandas: pandas.to_numeric), a category "
            '(astype("category")) if they are codes, or exclude it.'
        )
    rows = np.isin(column.values, stray)
    raise TableError(
        f"Column {column.name!r} mixes numbers and text: no number is in {column.rows(rows)}, such "
        f"as {listed(stray[:3])}. Correct these, empty them if they stand for missing values, or "
        "exclude the column."
    )
