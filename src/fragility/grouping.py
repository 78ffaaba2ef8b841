"""Groups of cases: numbers cut into ranges, and crossings of several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._labels import encode_groups, in_rows
from ._names import told_apart
from ._typing import Integers

#: Between the names of columns, and of groups, that are crossed.
CROSS = " × "
#: More combinations than this are a mistake, or too few cases each.
_MOST_CROSSED = 10_000


class GroupColumn(NamedTuple):
    """Names of groups in their order, and the place among them of each case's group."""

    names: tuple[str, ...]
    codes: NDArray[Any]


@dataclass(frozen=True)
class Ranges:
    """Ranges of numbers: below the first cut, from one cut to below the next, from the last on.

    Parameters
    ----------
    cuts : tuple of float
        Finite, ascending.

    Examples
    --------
    >>> from fragility.grouping import Ranges
    >>> Ranges((40.0, 60.0)).names
    ('under 40', '40 to under 60', '60 and over')
    """

    cuts: tuple[float, ...]

    def __post_init__(self) -> None:
        cuts = np.asarray(self.cuts, dtype=np.float64)
        if not cuts.size or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0.0).any():
            raise ValueError(
                f"cuts must be numbers that rise, such as 40, 60; got {list(self.cuts)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each range."""
        told = [f"{cut:.12g}" for cut in self.cuts]
        if len(set(told)) < len(told):
            told = [repr(float(cut)) for cut in self.cuts]
        inner = (f"{low} to under {high}" for low, high in pairwise(told))
        return (f"under {told[0]}", *inner, f"{told[-1]} and over")

    def places(self, values: NDArray[Any]) -> Integers:
        """Range of each number."""
        return np.searchsorted(np.asarray(self.cuts), values, side="right").astype(np.int64)


def in_ranges(values: ArrayLike, cuts: Sequence[float]) -> GroupColumn:
    """Group cases by ranges of a number, for the groups of a `Report`.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        A number of each case, such as an age; none is missing.
    cuts : sequence of float
        Where one range ends and the next begins, ascending. A value at a cut is in the upper range.

    Returns
    -------
    GroupColumn

    Examples
    --------
    >>> from fragility import in_ranges
    >>> in_ranges([39, 40, 75], [40, 60])
    GroupColumn(names=('under 40', '40 to under 60', '60 and over'), codes=array([0, 1, 2]))
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
        limits = tuple(float(cut) for cut in cuts)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values and cuts must be numbers ({error}).") from None
    ranges = Ranges(limits)
    if numbers.ndim != 1:
        raise ValueError(f"values must have one dimension; got the shape {numbers.shape}.")
    missing = np.isnan(numbers)
    if missing.any():
        raise ValueError(
            f"values has missing values in {in_rows(missing)}, which are in no range; leave these "
            "cases out, or group them by names of your own."
        )
    return GroupColumn(ranges.names, ranges.places(numbers))


@dataclass(frozen=True)
class Crossing:
    """Combinations of the groups of several columns, those that occur.

    Attributes
    ----------
    sizes : tuple of int
        Groups in each column.
    held : ndarray of int
        Numbers of the combinations that occur, ascending.
    """

    sizes: tuple[int, ...]
    held: Integers

    @classmethod
    def of(cls, codes: NDArray[Any], sizes: Sequence[int]) -> Crossing:
        """Of cases whose groups are given by column, (n, n_columns)."""
        return cls(tuple(sizes), np.unique(_keys(codes, sizes)))

    def plus(self, other: Crossing) -> Crossing:
        """Combinations that occur here or there."""
        return Crossing(self.sizes, np.union1d(self.held, other.held))

    def names(self, columns: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Name of each combination, from the names of the groups by column."""
        if self.held.size > _MOST_CROSSED:
            raise ValueError(
                f"The columns of groups have {self.held.size:,} combinations; at most "
                f"{_MOST_CROSSED:,} are measured. Give fewer columns, or leave the crossing out "
                "(cross_groups=False, --no-cross)."
            )
        places = np.stack(np.unravel_index(self.held, self.sizes), axis=1)
        found: dict[str, None] = {}
        for row in places.tolist():
            name = CROSS.join(names[place] for names, place in zip(columns, row, strict=True))
            found[told_apart(name, found)] = None
        return tuple(found)

    def places(self, codes: NDArray[Any]) -> Integers:
        """Place of each case's combination."""
        return np.searchsorted(self.held, _keys(codes, self.sizes)).astype(np.int64)


def _keys(codes: NDArray[Any], sizes: Sequence[int]) -> Integers:
    """Number of each combination."""
    if prod(sizes) >= 2**63:
        raise ValueError(
            f"{len(sizes)} columns of groups have more combinations than can be numbered; give "
            "fewer columns, or leave the crossing out (cross_groups=False, --no-cross)."
        )
    columns = tuple(column.astype(np.int64) for column in codes.T)
    return np.asarray(np.ravel_multi_index(columns, tuple(sizes)), dtype=np.int64)


def group_columns(
    groups: Mapping[str, ArrayLike | GroupColumn] | ArrayLike | GroupColumn,
    n_samples: int,
    *,
    cross: bool,
) -> dict[str, GroupColumn]:
    """Columns of groups as a user gives them, by name, checked; several with their crossing."""
    named: Mapping[str, Any] = {"group": groups}
    names = groups if isinstance(groups, Mapping) else _frame_columns(groups)
    if names is not None:
        columns: Any = groups
        named = {str(name): columns[name] for name in names}
        if not named:
            raise ValueError("groups is empty; give at least one column, {name: groups}.")
    found = {}
    for name, given in named.items():
        said = f"groups[{name!r}]" if len(named) > 1 else "groups"
        if isinstance(given, GroupColumn):
            column = GroupColumn(tuple(map(str, given.names)), np.asarray(given.codes))
            if column.codes.shape != (n_samples,):
                raise ValueError(
                    f"{said} has {column.codes.size} entries for {n_samples} samples; give one "
                    "for each."
                )
            _check_codes(column, said)
        else:
            told, codes = encode_groups(given, n_samples, said)
            column = GroupColumn(tuple(told), codes)
        found[name] = column
    if cross and len(found) > 1:
        crossing = told_apart(CROSS.join(found), found)
        codes = np.stack([column.codes for column in found.values()], axis=1)
        by_column = [column.names for column in found.values()]
        held = Crossing.of(codes, [len(part) for part in by_column])
        found[crossing] = GroupColumn(held.names(by_column), held.places(codes))
    return found


def _check_codes(column: GroupColumn, said: str) -> None:
    """Refuse codes that are not places in the names."""
    n_names, codes = len(column.names), column.codes
    places = codes.dtype.kind in "iu" and codes.size and 0 <= codes.min() <= codes.max() < n_names
    if not places or len(set(column.names)) < n_names:
        raise ValueError(
            f"{said} must have different names, and codes that are places in them, from 0 to "
            f"{n_names - 1}."
        )


def _frame_columns(frame: Any) -> list[Any] | None:
    """Names of the columns of a data frame; None of what is none."""
    found = getattr(frame, "column_names", getattr(frame, "columns", None))
    return None if found is None else list(found)
