"""Columns of groups in a file: values as they are, numbers in ranges, and their crossing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Integers, Mask
from ..grouping import CROSS, Crossing, Ranges
from .categories import Categories, found_groups
from .rows import coded, encoded_or_refused, floats
from .table import Table, require_columns
from .values import narrow_integers

#: Names of the groups that the codes of a column stand for.
Names = Categories | Ranges


@dataclass(frozen=True)
class GroupBy:
    """A column of groups, perhaps of numbers in ranges."""

    column: str
    ranges: Ranges | None = None


def parse_groups(table: Table, options: Sequence[str]) -> tuple[GroupBy, ...]:
    r"""Columns of groups, from options as a person writes them.

    Parameters
    ----------
    table : Table
    options : sequence of str
        Each is a column, or ``column:cut,cut,...`` for a column of numbers. What is the name of a
        column as a whole is taken as such, so that names with colons can be used.

    Examples
    --------
    >>> from fragility.tables import open_table
    >>> path = getfixture("tmp_path") / "small.csv"
    >>> _ = path.write_text("age,sex\n31,f\n45,m\n")
    >>> parse_groups(open_table(path), ["sex", "age:40"])[1]
    GroupBy(column='age', ranges=Ranges(cuts=(40.0,)))
    """
    found = tuple(_parse(table, option) for option in options)
    names = [part.column for part in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise table.error(
            f"column {listed(sorted(twice))} is named for groups more than once; name each column "
            "once."
        )
    return found


def _parse(table: Table, option: str) -> GroupBy:
    column, colon, text = option.rpartition(":")
    if not colon or not column or not table.missing_columns([option]):
        return GroupBy(option)
    try:
        cuts = tuple(float(cut) for cut in text.split(","))
    except ValueError:
        require_columns(table, [column])
        raise table.error(
            f"group {option!r}: the cuts {text!r} are not numbers; write them as in "
            f"{column}:40,60, or name the column alone."
        ) from None
    require_columns(table, [column])
    try:
        return GroupBy(column, Ranges(cuts))
    except ValueError as error:
        raise table.error(f"group {option!r}: {error}") from None


@dataclass(frozen=True)
class KnownGroups:
    """Groups of all columns by name: what must be known before rows are coded."""

    columns: tuple[GroupBy, ...]
    parts: tuple[Names, ...]
    crossing: Crossing | None = None

    @property
    def names(self) -> dict[str, list[str]]:
        """Names of the groups by column; the crossing is the last one."""
        found = {by.column: list(part.names) for by, part in self._pairs()}
        if self.crossing is not None:
            by_column = list(found.values())
            found[CROSS.join(found)] = list(self.crossing.names(by_column))
        return found

    def codes(self, table: Table, data: Any) -> tuple[NDArray[Any] | None, Mask]:
        """Place of each row's group, by column, and where a value is missing."""
        missing: Mask = np.zeros(data.num_rows, dtype=np.bool_)
        columns = []
        for by, part in self._pairs():
            codes, gaps = _codes(table, data, by, part)
            missing |= gaps
            columns.append(codes)
        if not columns:
            return None, missing
        found = np.stack(columns, axis=1)
        if self.crossing is not None:
            places: Integers = np.zeros(data.num_rows, dtype=np.int64)
            places[~missing] = self.crossing.places(found[~missing])
            found = np.column_stack([found, places])
        return found, missing

    def _pairs(self) -> list[tuple[GroupBy, Names]]:
        return list(zip(self.columns, self.parts, strict=True))


class GroupSurvey:
    """Finds the names of groups in a reading of their columns.

    Attributes
    ----------
    asked : list of str
        Columns that must be read.
    """

    def __init__(self, table: Table, columns: tuple[GroupBy, ...], *, cross: bool) -> None:
        self.table, self._columns = table, columns
        self._cross = cross and len(columns) > 1
        self.asked = [by.column for by in columns if by.ranges is None or self._cross]
        self._values: dict[str, set[Any]] = {by.column: set() for by in columns if not by.ranges}
        #: Combinations of values, or of places of ranges, that occur.
        self._held: set[tuple[Any, ...]] = set()

    @property
    def is_crossed(self) -> bool:
        """Whether combinations of values are looked for, too."""
        return self._cross

    def seen(self, column: str) -> Collection[Any]:
        """Values of a column of groups that were seen."""
        return self._values.get(column, ())

    def add(self, data: Any) -> None:
        """Look through the next rows."""
        columns, values = [], []
        for by in self._columns:
            if by.ranges is None:
                if not self._cross and self._knows(data.column(by.column), by):
                    continue
                codes, there = encoded_or_refused(self.table, data, by.column)
                self._values[by.column].update(there)
            elif self._cross:
                codes, gaps = _codes(self.table, data, by, by.ranges)
                codes, there = np.where(gaps, -1, codes), list(range(len(by.ranges.names)))
            else:
                continue
            columns.append(codes)
            values.append(there)
        if self._cross:
            codes = np.stack(columns, axis=1)
            for row in np.unique(codes[(codes >= 0).all(axis=1)], axis=0).tolist():
                self._held.add(tuple(part[code] for part, code in zip(values, row, strict=True)))

    def merge(self, other: GroupSurvey) -> None:
        """Add what a survey of other rows has seen."""
        for column, values in other._values.items():
            self._values[column] |= values
        self._held |= other._held

    def _knows(self, column: Any, by: GroupBy) -> bool:
        """Whether the ends of a column of whole numbers show that there is nothing new in it."""
        known, whole = self._values[by.column], narrow_integers(column)
        return whole is not None and known.issuperset(range(whole[1], whole[2] + 1))

    def found(self) -> KnownGroups:
        """All that was seen."""
        for column, values in self._values.items():
            if not values:
                raise self.table.error(
                    f"column {column!r} holds no group at all: every value is missing."
                )
        parts = tuple(by.ranges or self._names(by.column) for by in self._columns)
        if not self._cross:
            return KnownGroups(self._columns, parts)
        rows = [
            [part.code(value) if isinstance(part, Categories) else value for part, value in pairs]
            for pairs in (zip(parts, row, strict=True) for row in self._held)
        ]
        codes = np.array(rows, dtype=np.int64).reshape(-1, len(parts))
        crossing = Crossing.of(codes, [len(part.names) for part in parts])
        return KnownGroups(self._columns, parts, crossing)

    def _names(self, column: str) -> Categories:
        """Names of the groups of a column; truth values have theirs where they are known."""
        values = self._values[column]
        found = found_groups(self.table, column, values)
        if all(isinstance(value, bool) for value in values) and self.table.keeps_types:
            return replace(found, names=tuple(str(bool(key)) for key in found.keys))
        return found


def _codes(table: Table, data: Any, by: GroupBy, names: Names) -> tuple[NDArray[Any], Mask]:
    if isinstance(names, Categories):
        return coded(table, data, by.column, names)
    values = floats(table, data, by.column)
    missing = np.isnan(values)
    return names.places(np.where(missing, 0.0, values)), missing
