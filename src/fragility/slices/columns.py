"""The columns of whatever table people have, coded; those that cannot be are named."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._labels import listed, plain_array
from .._validation import column_names
from ..exceptions import SkippedColumnWarning
from .conditions import CodedColumn, coded
from .frames import Column, plain_column, read_columns


def read_table(X: Any, feature_names: Sequence[str] | None) -> list[Column]:
    """Columns of a data frame, a mapping of columns, or a two-dimensional array."""
    if isinstance(X, Mapping) or hasattr(X, "collect") or column_names(X):
        if feature_names is not None:
            raise ValueError(
                "feature_names is for arrays; the columns of X have names: leave it out."
            )
        if not isinstance(X, Mapping):
            return read_columns(X)
        odd = [name for name in X if not isinstance(name, str)]
        if odd:
            raise ValueError(f"The names of columns must be text; these are not: {listed(odd)}.")
        return [plain_column(name, values) for name, values in X.items()]
    array = plain_array(X, "X")
    if array.ndim != 2:
        raise ValueError(
            f"X has shape {array.shape}; give a data frame, a mapping of names to columns, or an "
            "array of shape (n_samples, n_features)."
        )
    names = [f"x{place}" for place in range(array.shape[1])]
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != array.shape[1] or len(set(names)) < len(names):
            raise ValueError(
                f"feature_names must give each of the {array.shape[1]} columns of X a name of its "
                f"own; got {listed(names)}."
            )
    return [plain_column(name, array[:, place]) for place, name in enumerate(names)]


def check_rows(columns: Sequence[Column], n_cases: int) -> None:
    """There are columns, and each has a value for every case."""
    if not columns:
        raise ValueError("X has no columns; give at least one.")
    wrong = [column for column in columns if column.values.size != n_cases]
    if wrong:
        raise ValueError(
            f"X has {wrong[0].values.size} rows (column {wrong[0].name!r}) but y_true has "
            f"{n_cases} samples; give one row for each."
        )


def code_columns(columns: Sequence[Column], n_ranges: int, min_count: int) -> list[CodedColumn]:
    """Columns that tell cases apart. Those that cannot be used are named in a warning."""
    found: list[CodedColumn] = []
    skipped: list[str] = []
    for column in columns:
        reason = _cannot_be_used(column)
        made = None if reason else coded(column, n_ranges, min_count)
        if made is not None and made.conditions:
            found.append(made)
        elif made is not None and _differs(column):
            reason = (
                f"has {len(set(column.known.tolist()))} different values in {column.known.size} "
                f"rows, such as {column.examples()}, none of them in {min_count} cases or more"
            )
        if reason:
            skipped.append(f"{column.name!r} {reason}")
    left_out = "; ".join(_first(skipped))
    if not found:
        why = f"these are left out: {left_out}" if skipped else "all are constant"
        raise ValueError(
            f"No column of X tells cases apart: {why}. Give columns of numbers, or of values that "
            "repeat."
        )
    if skipped:
        warnings.warn(
            f"These columns make no slices and are left out: {left_out}. Turn them into numbers or "
            "into fewer categories to have them searched.",
            SkippedColumnWarning,
            stacklevel=3,
        )
    return found


def _cannot_be_used(column: Column) -> str:
    if column.missing.all() or column.kind in ("numbers", "text", "booleans"):
        return ""
    if column.kind == "dates":
        return "holds dates or times"
    kinds = ", ".join(f"{kind} ({count})" for kind, count in column.type_counts.most_common(3))
    return f"mixes kinds of values, {kinds}"


def _differs(column: Column) -> bool:
    """Whether a column has two different values."""
    known = column.known.tolist()
    return any(value != known[0] for value in known)


def _first(items: list[str], most: int = 10) -> Iterator[str]:
    yield from items[:most]
    if len(items) > most:
        yield f"... ({len(items) - most} more)"
