"""Names of classes and groups, from what a column holds or from what a person says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import later_places, listed, spelled_number, whole_number
from .table import Table

MOST_CLASSES = 1_000


@dataclass(frozen=True)
class Categories:
    """Names in order, and which value of a column is which of them.

    Whole numbers are the same however they are written: 1, 1.0, "1" and True. Text is compared
    as it is.
    """

    names: tuple[str, ...]
    keys: dict[Any, int]
    are_numbers: bool
    seen: dict[Any, int | None] = field(default_factory=dict)  # 1, "1" and "1.0", once looked up

    def code(self, value: Any) -> int | None:
        """Place of a value's name, None if it has none."""
        if value not in self.seen:
            key = whole_number(value) if self.are_numbers else _as_text(value)
            self.seen[value] = self.keys.get(key)
        return self.seen[value]

    def codes(self, values: Iterable[Any]) -> NDArray[Any] | None:
        """Places of the names of values, None if one has none."""
        places = [self.code(value) for value in values]
        if None in places:
            return None
        return np.array(places, dtype=np.min_scalar_type(max(len(self.names) - 1, 0)))


def named(table: Table, classes: Sequence[str]) -> Categories:
    """The classes as the user named them, in the given order."""
    names = tuple(str(name) for name in classes)
    if len(names) < 2:
        raise table.error(f"two classes or more are needed; got {listed(names) or 'none'}.")
    check_number_of_classes(table, len(names), "the list of classes")
    categories = _categories(names, names)
    if len(categories.keys) < len(names) or not all(name.strip() for name in names):
        raise table.error(
            f"the classes must have names that differ; of {listed(names)} one is empty or there "
            "twice."
        )
    return categories


def found_classes(table: Table, column: str, values: Collection[Any]) -> Categories:
    """Classes that the label column holds: whole numbers by size, or else text by alphabet."""
    check_number_of_classes(table, len(values), f"column {column!r}")
    fractions = [v for v in values if whole_number(v) is None]
    if fractions and all(spelled_number(v) is not None for v in values):
        fractions = sorted(fractions, key=str)  # sets of text have another order in each run
        raise table.error(
            f"column {column!r} holds numbers that are not class labels, such as "
            f"{listed(fractions, most=3)}; labels must be text, booleans or whole numbers. Is this "
            "a column of scores?"
        )
    categories = found_groups(table, column, values)
    if len(categories.names) < 2:
        held = f"only the class {categories.names[0]!r}" if values else "no label at all"
        raise table.error(
            f"column {column!r} holds {held}; two classes or more are needed. Is it the column of "
            "the true labels?"
        )
    return categories


def found_groups(table: Table, column: str, values: Collection[Any]) -> Categories:
    """Values of a column: whole numbers by size, or else text by alphabet."""
    as_text = all(isinstance(value, str) for value in values) and table.keeps_types
    categories = _categories(values, None, as_text=as_text)
    if not categories.are_numbers:
        stripped: dict[str, str] = {}
        for name in categories.names:
            other = stripped.setdefault(name.strip(), name)
            if other != name:
                raise table.error(
                    f"column {column!r} holds both {other!r} and {name!r}, which differ only in "
                    "spaces around the text; write them alike."
                )
    return categories


def later_class(
    table: Table, column: str, classes: Categories, orders: Iterable[Iterable[Any]]
) -> int:
    """Place of the later of two classes, as the parts of a file have the categories in order."""
    coded = [[classes.code(value) for value in order] for order in orders]
    places = later_places((0, 1), coded) if table.keeps_order(column) else set()
    if len(places) != 1:
        why = "has them in both orders" if places else "does not hold the order"
        raise table.error(
            f"column {column!r} has the ordered categories {listed(classes.names)}, but the file "
            f"{why}; name the positive class (--positive)."
        )
    return places.pop()


def class_of_columns(columns: Sequence[str], categories: Categories) -> list[int] | None:
    """Which class each column is named for, be it after a common prefix; None if they are not.

    "p_cat", "p_owl", "p_cow" are named for the classes 0, 2, 1 of "cat", "cow", "owl".
    """
    n = len(categories.names)
    for length in range(min(map(len, columns)) + 1):  # names of classes may begin alike, too
        if len({column[:length] for column in columns}) > 1:
            break
        codes = [categories.code(column[length:]) for column in columns]
        if None not in codes and len(set(codes)) == n == len(columns):
            return [code for code in codes if code is not None]
    return None


def same_names(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two lists name the same classes in the same order, numbers however written.

    >>> same_names([False, True], ["0", "1.0"])
    True
    >>> same_names(["no", "yes"], ["yes", "no"])
    False
    """
    names = [_categories(values, tuple(map(_as_text, values))) for values in (first, second)]
    return len(first) == len(second) and list(names[0].keys) == list(names[1].keys)


def check_number_of_classes(table: Table, n: int, where: str) -> None:
    """Refuse more classes than any classifier has."""
    if n > MOST_CLASSES:
        raise table.error(
            f"{where} holds more than {MOST_CLASSES:,} different labels; it looks like an "
            "identifier or a measurement. Name the column of the true classes."
        )


def _categories(
    values: Collection[Any], names: tuple[str, ...] | None, *, as_text: bool = False
) -> Categories:
    """Values in the order given if they have `names`, else in their natural order."""
    wholes = [whole_number(value) for value in values]
    are_numbers = None not in wholes and len(wholes) > 0 and not as_text
    keys: list[Any] = wholes if are_numbers else [_as_text(value) for value in values]
    if names is None:
        keys = sorted(set(keys))
        names = tuple(str(key) for key in keys)
    return Categories(names, {key: code for code, key in enumerate(keys)}, are_numbers)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    whole = whole_number(value)
    return str(value if whole is None or isinstance(value, bool) else whole)
