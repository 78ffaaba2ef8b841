"""What is wrong with the values of a table: found by a second reading, then said in full.

The first reading is fast and stops at the first wrong value. Only then does a second one go through
all rows, to say how many are wrong, which ones and how.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Mask
from .._validation import PROBABILITY_ROUNDING, SUM_TOLERANCE
from ..exceptions import TableError
from .arrow import pyarrow
from .categories import Categories
from .table import Table, UnreadableValueError
from .values import encoded, is_text, numbers, unreadable
from .wrong_rows import WrongRows

_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
_LOGITS = (
    "Logits need the logistic function (several columns: softmax), percentages a division by 100."
)


#: How rows with missing values are left out, where a command can.
_DROP = "fill them in, or leave such rows out with --drop-missing (drop_missing=True)."
#: The same for decisions of humans, of whom many see few of the cases.
UNDECIDED = (
    "every row takes a decision of a human. Leave such rows out with --drop-missing "
    "(drop_missing=True), or say instead how often humans err, by class: --reviewer-error "
    "a=0.01,b=0.1."
)


def missing_values(
    table: Table,
    categorical: Sequence[str],
    numeric: Sequence[str],
    remedy: str = _DROP,
    excused: Callable[[Any, str], Mask] | None = None,
) -> TableError:
    """The error for empty fields, NA, NaN and null.

    `excused` tells, of a batch and the name of a column, which rows need no value there.
    """
    found = {name: WrongRows() for name in (*categorical, *numeric)}
    for batch in table.batches(list(found), table.number_types(numeric)):
        for name, findings in found.items():
            column = batch.column(name)
            if name in categorical:
                codes, _ = encoded(column) or (np.zeros(len(column)), [])
                missing = codes < 0
            else:
                missing = np.isnan(numbers(column))
            findings.add(missing if excused is None else missing & ~excused(batch, name))
    (name, first), *others = ((n, f) for n, f in found.items() if f.count)
    also = ", ".join(f"{other!r} ({findings.count})" for other, findings in others[:5])
    return table.error(
        f"column {name!r} has missing values {first.where(table)}"
        f"{f'; so have {also}' if also else ''}. Empty fields, NA, NaN and null are missing: "
        f"{remedy}"
    )


@contextmanager
def numbers_explained(table: Table, numeric: Sequence[str]) -> Iterator[None]:
    """Where one of these columns cannot be read as numbers, the error says why."""
    try:
        yield
    except UnreadableValueError as error:
        raise _unreadable_numbers(table, numeric) or error from None


def _unreadable_numbers(table: Table, numeric: Sequence[str]) -> TableError | None:
    """The error for text where there should be numbers; None if there is no such text."""
    text = [n for n in numeric if table.schema is None or is_text(table.schema.field(n).type)]
    found = {name: WrongRows() for name in text}
    missing = dict.fromkeys(text, 0)
    for batch in table.batches(text, dict.fromkeys(text, pyarrow().string())):
        for name, findings in found.items():
            column = batch.column(name)
            wrong = unreadable(column)
            missing[name] += column.null_count
            findings.add(wrong, column.to_numpy(zero_copy_only=False) if wrong.any() else None)
    for name, findings in found.items():
        if findings.count:
            return table.error(_unreadable(name, findings, missing[name], table))
    return None


def _unreadable(name: str, found: WrongRows, missing: int, table: Table) -> str:
    if all(_DECIMAL_COMMA.fullmatch(example) for example in found.examples):
        return (
            f"column {name!r} holds numbers with a decimal comma, {found.such_as}, "
            f"{found.where(table)}; write them with a decimal point."
        )
    if found.count == found.total - missing:
        return (
            f"column {name!r} holds text, not numbers: {listed(found.examples)}. Name a column of "
            "numbers."
        )
    return (
        f"column {name!r} holds values that cannot be read as numbers, {found.such_as}, "
        f"{found.where(table)}. Correct them, or leave the field empty if the value is missing."
    )


def not_probabilities(table: Table, name: str) -> TableError:
    """The error for scores that are infinite or outside [0, 1]."""
    least, most = -PROBABILITY_ROUNDING, 1.0 + PROBABILITY_ROUNDING
    rule = "must hold probabilities, from 0 to 1"
    return _outside(table, name, rule, least, most, f" {_LOGITS}")


def not_shares(table: Table, name: str) -> TableError:
    """The error for errors of reviewers that are not from 0 to 1."""
    rule = "must hold how probably a reviewer errs, from 0 to 1"
    return _outside(table, name, rule, 0.0, 1.0)


def negative_values(table: Table, name: str, what: str) -> TableError:
    """The error for weights or costs that are negative or infinite."""
    return _outside(table, name, f"must hold {what} of zero or more", 0.0, inf)


def _outside(
    table: Table, name: str, rule: str, least: float, most: float, remedy: str = ""
) -> TableError:
    """The error for numbers that are infinite or outside a range."""
    outside, infinite = WrongRows(), WrongRows()
    low, high = inf, -inf
    for (values,) in _passes(table, [name]):
        exact = values.astype(np.float64, copy=False)  # the limits are not of single precision
        infinite.add(np.isinf(exact))
        outside.add((exact < least) | (exact > most), values)
        low, high = np.fmin.reduce(exact, initial=low), np.fmax.reduce(exact, initial=high)
    if infinite.count:
        return table.error(
            f"column {name!r} holds infinite values {infinite.where(table)}; give finite numbers."
        )
    return table.error(
        f"column {name!r} {rule}, but does not {outside.where(table)}, {outside.such_as}; it goes "
        f"from {low:g} to {high:g}.{remedy}"
    )


def sums_not_one(table: Table, model: str, columns: Sequence[str]) -> TableError:
    """The error for probabilities of the classes that do not sum to one."""
    found = WrongRows()
    for values in _passes(table, columns):
        sums = np.add.reduce([column.astype(np.float64) for column in values])
        found.add(np.abs(sums - 1.0) > SUM_TOLERANCE, sums)
    return table.error(
        f"the scores of model {model!r} ({listed(columns)}) must sum to 1 (within "
        f"{SUM_TOLERANCE:g}) in every row, but do not {found.where(table)}: the first sums to "
        f"{found.examples[0]:g}. {_LOGITS}"
    )


def label_problem(table: Table, name: str, categories: Categories) -> TableError:
    """The error for labels that are not among the classes."""
    what, remedy = "labels", "Name all classes, in the order of the score columns."
    return _not_classes(table, name, categories, what, remedy)


def decision_problem(table: Table, name: str, categories: Categories) -> TableError:
    """The error for decisions of humans that are not among the classes."""
    what, remedy = (
        "decisions of humans",
        "Name the column in which humans decided for one of these.",
    )
    return _not_classes(table, name, categories, what, remedy)


def _not_classes(
    table: Table, name: str, categories: Categories, what: str, remedy: str
) -> TableError:
    found = WrongRows()
    for batch in table.batches([name]):
        codes, values = encoded(batch.column(name)) or (np.array([], np.int64), [])
        unknown = np.array([categories.code(value) is None for value in values] + [False])
        found.add(unknown[codes], np.array([*values, None], dtype=object)[codes])
    example = found.examples[0]
    spaces = isinstance(example, str) and categories.code(example.strip()) is not None
    hint = f" {example!r} has spaces around it." if spaces else ""
    return table.error(
        f"column {name!r} holds {what} that are not among the classes "
        f"{listed(categories.names)}, {found.such_as}, {found.where(table)}.{hint} {remedy}"
    )


def _passes(table: Table, columns: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    """Columns of numbers, batch after batch."""
    with numbers_explained(table, columns):
        for batch in table.batches(columns, table.number_types(columns)):
            yield [numbers(batch.column(name)) for name in columns]
