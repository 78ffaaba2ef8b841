"""Conditions on one column in words: ranges of numbers, single values, and missing ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from .._names import shown
from .._typing import Floats, Integers, Mask
from .frames import Column

#: Numbers of no more different values than this are told apart by value, not by range.
_FEW_VALUES = 6
#: Of more values than this the most frequent are searched: else pairs of columns take too long.
MOST_VALUES = 100
#: A limit of a range is rounded as long as no more than this share of the values change sides.
_MOVED_BY_ROUNDING = 0.02
#: Digits that tell any two floats apart.
_ALL_DIGITS = 17
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class Condition(NamedTuple):
    """A condition on one column, in words, and the codes that meet it."""

    text: str
    codes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as few codes, and the conditions that can be asked of it.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,)
    n_codes : int
    conditions : tuple of Condition
        No condition holds everywhere or nowhere. None at all: the column tells no cases apart.
    """

    name: str
    codes: Integers
    n_codes: int
    conditions: tuple[Condition, ...]

    def meets(self, condition: Condition) -> Mask:
        """The cases that meet a condition."""
        chosen = np.zeros(self.n_codes, dtype=np.bool_)
        chosen[list(condition.codes)] = True
        found: Mask = chosen[self.codes]
        return found

    def indicators(self) -> Floats:
        """By condition and code: 1.0 where the code meets the condition."""
        table = np.zeros((len(self.conditions), self.n_codes))
        for row, condition in zip(table, self.conditions, strict=True):
            row[list(condition.codes)] = 1.0
        return table


def coded(column: Column, n_ranges: int, min_count: int) -> CodedColumn:
    """Codes and conditions of a column of numbers, text, booleans or categories.

    Values that fewer than `min_count` cases have, and all but the `MOST_VALUES` most frequent ones,
    share a code that no condition asks for.
    """
    by_value = column.kind != "numbers" or column.is_category
    if not by_value:
        numbers = column.numbers()
        known = np.unique(numbers[~column.missing])
        if known.size > _FEW_VALUES:
            return _of_ranges(column.name, numbers, column.missing, n_ranges)
        return _of_values(column.name, _exact(column, numbers), column.missing, min_count)
    return _of_values(column.name, column.values.tolist(), column.missing, min_count)


def _exact(column: Column, numbers: Floats) -> list[Any]:
    """Numbers as Python has them: integers as they are, for floats take long ones for the same."""
    pairs = zip(column.values.tolist(), numbers.tolist(), strict=True)
    return [value if isinstance(value, int) else number for value, number in pairs]


def _of_values(name: str, values: list[Any], missing: Mask, min_count: int) -> CodedColumn:
    counts = Counter(value for value, gone in zip(values, missing, strict=True) if not gone)
    enough = [value for value, count in counts.items() if count >= min_count]
    enough.sort(key=lambda value: (-counts[value], _order(value)))
    frequent = sorted(enough[:MOST_VALUES], key=_order)
    place = {value: code for code, value in enumerate(frequent)}
    rest, gone = len(frequent), len(frequent) + 1
    codes = np.fromiter((place.get(value, rest) for value in values), np.int64, len(values))
    codes[missing] = gone
    conditions = [Condition(f"{name} is {_value(value)}", (code,)) for value, code in place.items()]
    return _asked(name, codes, gone + 1, conditions, gone)


def _of_ranges(name: str, numbers: Floats, missing: Mask, n_ranges: int) -> CodedColumn:
    cuts = _cuts(np.sort(numbers[~missing]), n_ranges)
    codes = np.searchsorted(cuts, numbers, side="right").astype(np.int64)
    gone = cuts.size + 1
    codes[missing] = gone
    conditions = [
        Condition(_range(name, cuts, first, last), tuple(range(first, last)))
        for first, last in combinations(range(gone + 1), 2)
    ]
    return _asked(name, codes, gone + 1, conditions, gone)


def _asked(
    name: str, codes: Integers, n_codes: int, conditions: list[Condition], gone: int
) -> CodedColumn:
    """A column with the conditions that some cases meet and others do not."""
    conditions = [*conditions, Condition(f"{name} is missing", (gone,))]
    counts = np.bincount(codes, minlength=n_codes)
    held = tuple(c for c in conditions if 0 < counts[list(c.codes)].sum() < codes.size)
    return CodedColumn(name, codes, n_codes, held)


def _cuts(ordered: Floats, n_ranges: int) -> Floats:
    """Limits between ranges of about equal numbers of cases, as short as they can be written."""
    n = ordered.size
    found = []
    for k in range(1, n_ranges):
        wanted = k * n // n_ranges
        # Of a value that many cases have, the nearer end: before it, or before the next one.
        ends = [int(np.searchsorted(ordered, ordered[wanted], side)) for side in _SIDES]
        place = min((end for end in ends if end < n), key=lambda end: abs(end - wanted))
        if place > 0 and np.isfinite(ordered[place]):
            found.append(_short(ordered, place))
    return np.unique(found)


def _short(ordered: Floats, place: int) -> float:
    """A number of few digits with about as many values below it as the value at a place."""
    for digits in range(1, _ALL_DIGITS):
        cut = float(f"{ordered[place]:.{digits}g}")
        below = int(np.searchsorted(ordered, cut, "left"))
        moved = abs(below - place) / ordered.size
        if 0 < below < ordered.size and moved <= _MOVED_BY_ROUNDING:
            return cut
    return float(ordered[place])


def _range(name: str, cuts: Floats, first: int, last: int) -> str:
    """Ranges from number `first` to before number `last`."""
    if first == 0 and last > cuts.size:
        return f"{name} is not missing"
    if first == 0:
        return f"{name} under {_number(cuts[last - 1])}"
    start = f"{name} from {_number(cuts[first - 1])}"
    return start if last > cuts.size else f"{start} to under {_number(cuts[last - 1])}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _value(value: Any) -> str:
    return _number(value) if isinstance(value, float) and np.isfinite(value) else shown(value)


def _order(value: Any) -> tuple[bool, float, str]:
    """An order of values of any one kind."""
    is_number = isinstance(value, (int, float))
    return (not is_number, value if is_number else 0.0, str(value))
