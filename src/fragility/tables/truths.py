"""Columns that say yes or no: whether an answer was right, whether there was none."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._labels import spelled_number
from .._typing import Mask
from ..exceptions import TableError
from .rows import encoded_or_refused
from .table import Table
from .values import encoded
from .wrong_rows import WrongRows

_SPELLED = {
    **dict.fromkeys(("true", "yes", "correct", "right", "c"), True),
    **dict.fromkeys(("false", "no", "incorrect", "wrong", "i"), False),
}
_WRITE = "Write true or false, yes or no, 1 or 0, correct or incorrect, C or I"


def truth_of(value: Any) -> bool | None:
    """Whether a value says yes; None if it says neither yes nor no.

    Examples
    --------
    >>> [truth_of(value) for value in (True, "no", "1.0", "C", "Incorrect", 0.5, "P")]
    [True, False, True, True, False, None, None]
    """
    if isinstance(value, str) and value.strip().lower() in _SPELLED:
        return _SPELLED[value.strip().lower()]
    number = spelled_number(value)
    return bool(number) if number in (0, 1) else None


def truths(table: Table, data: Any, name: str) -> tuple[Mask, Mask]:
    """Which rows of a column say yes, and where the value is missing."""
    codes, values = encoded_or_refused(table, data, name)
    told = [truth_of(value) for value in values]
    if None in told:
        raise _neither(table, name)
    return np.array([*map(bool, told), False])[codes], codes < 0


def _neither(table: Table, name: str) -> TableError:
    """The error for values that say neither yes nor no."""
    found, partial, unanswered = WrongRows(), WrongRows(), WrongRows()
    for data in table.batches([name]):
        codes, values = encoded(data.column(name)) or (np.array([], np.int64), [])
        wrong = np.array([truth_of(value) is None for value in values] + [False])
        is_partial = np.array([_is_partial(value) for value in values] + [False])
        is_none = np.array([str(value).strip() == "N" for value in values] + [False])
        cells = np.array([*values, None], dtype=object)[codes]
        found.add(wrong[codes], cells)
        partial.add(is_partial[codes], cells)
        unanswered.add(is_none[codes], cells)
    if partial.count:
        return table.error(
            f"column {name!r} holds partial credit, {partial.such_as}, {partial.where(table)}. An "
            "answer counts as right or wrong: say where right begins and write 1 or 0, for "
            "instance 1 for one half and more, or leave such rows out."
        )
    if unanswered.count:
        return table.error(
            f"column {name!r} holds 'N', for no answer, {unanswered.where(table)}. Leave the field "
            "empty there and say so in a column of declined answers (--declined), or write I for "
            "incorrect."
        )
    return table.error(
        f"column {name!r} holds values that say neither yes nor no, {found.such_as}, "
        f"{found.where(table)}. {_WRITE}; for a column of classes use --label and --score."
    )


def _is_partial(value: Any) -> bool:
    """Whether a value is between wrong and right: a number between 0 and 1, or "P" of Inspect."""
    number = spelled_number(value)
    if number is None:
        return str(value).strip().lower() in ("p", "partial")
    return bool(0 < number < 1)
