"""Scores that a database has summed by class and bin: its rows, checked.

`fragility.distributed.bins_query` is the query. What comes back may be of another query, of a part
of it, or changed on its way, and sums without cases cannot be looked up later. So every row is held
against what scores in its bin can have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import is_missing, listed
from .._names import shown
from .._parameters import check_count, require
from .._typing import Floats, Integers, Mask
from .._validation import column_names
from .bins import MEAN_UNIT, SQUARE_UNIT
from .layout import Uniform

#: Sums come in two parts, the first in units of this: a case adds less than 2²⁸ to either.
SPLIT = 1 << 24
#: Weights are whole numbers up to this: products with the distances of scores are exact then.
HEAVIEST_WHOLE = 1 << 16
#: Sums of more rows than this could overflow 64 bits.
_MOST_ROWS = 1 << 35
#: Columns of the query behind those of groups.
COLUMNS = (
    *("label", "bin", "n_bins", "n_rows", "n", "weight", "lightest"),
    *("x_high", "x_low", "x_squares_high", "x_squares_low", "smallest", "largest"),
)
_FLOATS = ("smallest", "largest")
#: Missing where no case of the row carries weight.
_MAY_MISS = ("lightest", *_FLOATS)
#: Allowed for the rounding of x and x² and of floats, relative to the weight.
_ROUNDED = 2e-7


class Flaw(IntEnum):
    """Bins of rows that cannot be counted: what is wrong with them."""

    NULL = -1
    NAN = -2
    OUTSIDE = -3
    WEIGHT = -4


_TOLD = {
    Flaw.NULL: "have no score (NULL)",
    Flaw.NAN: "have the score NaN",
    Flaw.OUTSIDE: "have a score that is no number from 0 to 1",
    Flaw.WEIGHT: f"have a weight that is not a whole number from 0 to {HEAVIEST_WHOLE}",
}


@dataclass(frozen=True, eq=False)
class BinRows:
    """Checked rows of the query: an entry for each group, class and bin that holds any case.

    Attributes
    ----------
    keys : list
        Value of the column of groups of each row, or the tuple of values of several columns.
    labels : list
        Class of each row.
    bins, n : ndarray of int
        Bin, and number of cases that carry weight.
    weight, x, x_squares : ndarray of Python integers
        Sums over these cases: they may be longer than 64 bits.
    lightest, smallest, largest : ndarray of float
        Least weight of these cases, and their extreme scores; of none 0.
    """

    keys: list[Hashable]
    labels: list[Any]
    bins: Integers
    n: Integers
    weight: NDArray[Any]
    x: NDArray[Any]
    x_squares: NDArray[Any]
    lightest: Floats
    smallest: Floats
    largest: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: Sequence[int]) -> BinRows:
        """Some of the rows."""
        places = np.asarray(chosen, dtype=np.intp)
        arrays = {name: part[places] for name, part in vars(self).items() if hasattr(part, "dtype")}
        keys, labels = ([part[place] for place in chosen] for part in (self.keys, self.labels))
        return replace(self, keys=keys, labels=labels, **arrays)

    def groups(self) -> Iterator[tuple[Hashable, BinRows]]:
        """The rows of each group, in the order in which the groups come."""
        places: dict[Hashable, list[int]] = {}
        for place, key in enumerate(self.keys):
            places.setdefault(key, []).append(place)
        for key, chosen in places.items():
            yield key, self.take(chosen)


def read_rows(rows: Any, n_rows: int, n_bins: int) -> BinRows:
    """The rows of a query, which must be all of them and possible.

    Parameters
    ----------
    rows : DataFrame, Arrow table, or sequence of tuples or mappings
    n_rows : int
        Rows of the table that was summed.
    n_bins : int

    Raises
    ------
    ValueError
        If rows are missing, twice there or impossible, or if scores could not be counted.
    """
    n_rows = check_count(n_rows, "n_rows", least=0)
    columns = _columns(rows)
    grouped = [name for name in columns if name.startswith("group_")]
    keys = _keys([columns[name] for name in grouped], len(columns["label"]))
    bins, widths, counted = (_numbers(columns[name], name) for name in COLUMNS[1:4])
    bins = bins.astype(np.int64)
    other = sorted({*widths.tolist()} - {n_bins})
    require(not other, f"The rows are of {listed(other)} bins, not of {n_bins}: give n_bins=.")
    require((counted > 0).all(), "A row of the bins stands for no row of the table.")
    _refuse_flaws(bins, columns["label"], counted)
    total = sum(counted.tolist())
    require(
        total == n_rows,
        f"The bins hold {total} rows, but the table is said to have {n_rows}: was the result cut, "
        "or was the table changed between the two queries?",
    )
    require(total <= _MOST_ROWS, "More than 2**35 rows could overflow; sum them in parts, merge.")
    labels = [_plain(label) for label in columns["label"]]
    _refuse_twins(keys, labels, bins)
    found = {name: _numbers(columns[name], name) for name in COLUMNS[4:]}
    x, squares = (
        found[f"{name}_high"] * SPLIT + found[f"{name}_low"] for name in ("x", "x_squares")
    )
    # Adding zero turns −0.0 into 0.0.
    ends = (found[name].astype(np.float64) + 0.0 for name in _MAY_MISS)
    n = found["n"].astype(np.int64)
    rest = BinRows(keys, labels, bins, n, found["weight"], x, squares, *ends)
    require((n <= counted).all(), "A bin holds more cases that carry weight than rows.")
    _check_possible(rest, Uniform(n_bins))
    return rest


def _columns(rows: Any) -> dict[str, list[Any]]:
    """Values by the name of their column, from any kind of table."""
    if hasattr(rows, "read_all"):  # a stream of Arrow
        rows = rows.read_all()
    if column_names(rows):
        names = list(map(str, column_names(rows)))
        parts = (rows[name] for name in column_names(rows))
        values = [list(_listed(part)) for part in parts]
    else:
        require(
            isinstance(rows, Sequence) and not isinstance(rows, (str, bytes)),
            "The rows of the query must be a DataFrame, an Arrow table or a list of tuples or "
            f"dicts; got {type(rows).__name__}.",
        )
        names, values = _transposed(rows)
    found = dict(zip(names, values, strict=True))
    missing = [name for name in COLUMNS if name not in found]
    require(not missing, f"The rows lack the columns {listed(missing)}: are they of bins_query?")
    known = [name for name in names if name in COLUMNS or name.startswith("group_")]
    return {name: found[name] for name in known}


def _listed(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            found: list[Any] = getattr(column, method)()
            return found
    return list(column)


def _transposed(rows: Sequence[Any]) -> tuple[list[str], list[list[Any]]]:
    if not rows:
        return list(COLUMNS), [[] for _ in COLUMNS]
    if hasattr(rows[0], "keys"):
        names = list(rows[0].keys())
        same = all(hasattr(row, "keys") and list(row.keys()) == names for row in rows)
        require(same, "The rows do not all have the same columns.")
        return names, [[row[name] for row in rows] for name in names]
    lengths = {len(row) if isinstance(row, Sequence) else -1 for row in rows}
    n_groups = max(lengths) - len(COLUMNS)
    require(
        len(lengths) == 1 and n_groups >= 0,
        f"Each row must have the {len(COLUMNS)} columns of bins_query, in their order.",
    )
    names = [*(f"group_{place}" for place in range(1, n_groups + 1)), *COLUMNS]
    return names, [list(column) for column in zip(*rows, strict=True)]


def _keys(columns: list[list[Any]], size: int) -> list[Hashable]:
    plain = [[_plain(value) for value in column] for column in columns]
    if len(plain) == 1:
        return plain[0]
    return list(zip(*plain, strict=True)) if plain else [()] * size


def _plain(value: Any) -> Any:
    """A label or group without the type of its library; whole numbers as integers."""
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, (Decimal, float)) and value % 1 == 0 else value


def _numbers(values: list[Any], name: str) -> NDArray[Any]:
    """Python integers of a column, or floats; 0 where they may be missing."""
    found = []
    for value in values:
        if is_missing(value):
            require(name in _MAY_MISS, f"The column {name!r} of the bins has a missing value.")
            value = 0
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        number = whole or isinstance(value, (float, np.floating, Decimal))
        fits = number and abs(value) < 2**63 and (name in _FLOATS or value == int(value))
        kind = "numbers" if name in _FLOATS else "whole numbers"
        require(fits, f"The column {name!r} of the bins must hold {kind}; got {shown(value)}.")
        found.append(float(value) if name in _FLOATS else int(value))
    return np.array(found, dtype=np.float64 if name in _FLOATS else object)


def _refuse_flaws(bins: Integers, labels: list[Any], counted: NDArray[Any]) -> None:
    """Rows of the table that cannot be counted, by what is wrong with them."""
    wrong = {_TOLD[flaw]: bins == flaw for flaw in Flaw}
    missing = np.array([is_missing(label) for label in labels], dtype=np.bool_)
    wrong["have no label (NULL)"] = missing & (bins >= 0)
    numbers = {told: sum(counted[rows].tolist()) for told, rows in wrong.items()}
    said = [f"{number} {told}" for told, number in numbers.items() if number]
    require(
        not said,
        f"Of {sum(counted.tolist())} rows of the table {' and '.join(said)}. Repair them, or leave "
        "them out: give bins_query a query in parentheses with WHERE.",
    )


def _refuse_twins(keys: list[Hashable], labels: list[Any], bins: Integers) -> None:
    seen = set()
    for row in zip(keys, labels, bins.tolist(), strict=True):
        key, label, place = row
        where = f"of class {label!r}, bin {place}" + (f" in group {key!r}" if key != () else "")
        require(row not in seen, f"There are two rows {where}: merge sketches, not their rows.")
        seen.add(row)


def _check_possible(rows: BinRows, layout: Uniform) -> None:
    """Every row has sums that some scores in its bin have."""
    weight, x, squares = rows.weight, rows.x, rows.x_squares
    inside = (rows.bins >= 0) & (rows.bins < layout.length)
    _require_all(inside, rows, f"there are bins from 0 to {layout.n_bins}")
    held = rows.n > 0
    empty = (weight == 0) & (x == 0) & (squares == 0)
    _require_all((rows.n >= 0) & (held | empty), rows, "it has no cases, but sums of them")
    heavy = (rows.lightest >= 1) & (rows.lightest <= HEAVIEST_WHOLE)
    heavy &= _all_of(rows.lightest.astype(np.int64) * rows.n.astype(object) <= weight)
    heavy &= _all_of(weight <= HEAVIEST_WHOLE * rows.n.astype(object))
    heavy &= (rows.n != 1) | _all_of(weight == rows.lightest)
    _require_all(~held | heavy, rows, "no cases have such weights")
    # The extremes lie in the bin; there is a case at each of them.
    ends = np.stack([rows.smallest, rows.largest])
    near = (ends >= 0.0) & (ends <= 1.0)
    ends = np.where(near & held, ends, layout.centres[np.where(inside, rows.bins, 0)])
    near &= np.stack([layout.places(end) for end in ends]) == rows.bins
    near &= (ends[0] <= ends[1]) & ((rows.n != 1) | (ends[0] == ends[1]))
    _require_all(~held | near.all(axis=0), rows, "its extreme scores are not in that bin")
    distances = np.stack([layout.distances(end, rows.bins) for end in ends])
    low, high = np.rint(distances / MEAN_UNIT).astype(np.int64).astype(object)
    least = (rows.lightest * (rows.n > 1)).astype(np.int64) * (high - low)
    possible = _all_of(weight * low + least <= x) & _all_of(x <= weight * high - least)
    of_ends = np.rint(distances**2 / SQUARE_UNIT).astype(np.int64)
    across = distances[0] * distances[1] <= 0.0
    fewest = np.where(across & (rows.n > 1), 0, of_ends.min(axis=0)).astype(object)
    most = of_ends.max(axis=0).astype(object)
    possible &= _all_of(weight * fewest <= squares) & _all_of(squares <= weight * most)
    # A mean square is at least the square of the mean, and less the wider the scores may lie.
    total = np.maximum(weight.astype(np.float64), 1.0)
    mean, square = x.astype(np.float64) * MEAN_UNIT / total, squares.astype(np.float64)
    square *= SQUARE_UNIT / total
    possible &= (square >= mean**2 - _ROUNDED) & (
        square <= distances.sum(axis=0) * mean - distances.prod(axis=0) + _ROUNDED
    )
    _require_all(~held | possible, rows, "no scores in that bin have these sums")


def _all_of(compared: Any) -> Mask:
    """A comparison of Python integers as a mask."""
    return np.asarray(compared, dtype=np.bool_)


def _require_all(fits: Mask, rows: BinRows, flaw: str) -> None:
    if not fits.all():
        place = int(np.flatnonzero(~fits)[0])
        raise ValueError(
            f"The row of class {rows.labels[place]!r}, bin {int(rows.bins[place])}, is impossible: "
            f"{flaw}. Is it of another query, or of another number of bins?"
        )
