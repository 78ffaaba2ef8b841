"""One reading of a table of cases, from its first row to its last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Floats, Integers, Mask
from .._validation import PROBABILITY_ROUNDING
from ..exceptions import TableError
from .case_batch import Batch
from .columns import CaseColumns
from .group_columns import KnownGroups
from .problems import missing_values, negative_values, not_probabilities
from .rows import encoded_or_refused, floats
from .table import Table


@dataclass(frozen=True)
class Kept:
    """Which rows of a part are used, and what every kind of case has in them."""

    first_row: int
    rows: Integers | None
    places: NDArray[Any] | slice
    weights: Floats | None
    groups: NDArray[Any] | None
    error_costs: Floats | None
    clusters: Integers | None

    @property
    def shared(self) -> dict[str, Any]:
        """Attributes of every batch."""
        return {name: part for name, part in vars(self).items() if name != "places"}


class Reading(ABC, Generic[Batch]):
    """Record batches to checked arrays.

    Parameters
    ----------
    table : Table
    columns : CaseColumns
    groups : KnownGroups
    drop_missing : bool
    clusters : dict
        Numbers of the clusters by name, as they are met.

    Attributes
    ----------
    n_rows, n_dropped : int
        Rows that were used and left out up to now.
    lowest : dict of str to float
        Lowest probability of each column up to now.
    """

    def __init__(
        self,
        table: Table,
        columns: CaseColumns,
        groups: KnownGroups,
        drop_missing: bool,
        clusters: dict[Any, int],
    ) -> None:
        self.table = table
        self._columns, self._groups = columns, groups
        self._drop_missing, self._clusters = drop_missing, clusters
        self.n_rows = self.n_dropped = 0
        self.lowest: dict[str, float] = {}
        self._has_weight = columns.weight is None

    @abstractmethod
    def batch(self, data: Any, fraction: float) -> Batch | None:
        """The next rows as arrays; None if all are left out."""

    def merge(self, other: Reading[Batch]) -> None:
        """Add what a reading of other rows has counted."""
        self.n_rows += other.n_rows
        self.n_dropped += other.n_dropped
        for name, lowest in other.lowest.items():
            self.lowest[name] = min(lowest, self.lowest.get(name, lowest))
        self._has_weight = self._has_weight or other._has_weight

    def finish(self) -> None:
        """Checks that only the whole table allows."""
        if not self.n_rows:
            raise self.table.error(
                f"every one of the {self.n_dropped:,} rows has a missing value in a column that is "
                f"used ({listed(self._columns.all)}), so none is left."
            )
        if not self._has_weight:
            raise self.table.error(
                f"every weight in column {self._columns.weight!r} is zero; at least one row must "
                "count."
            )

    def _kept(self, data: Any, missing: Mask) -> Kept | None:
        """Rows that have all values, if not in `missing`; None if all are left out."""
        groups, gaps = self._groups.codes(self.table, data)
        missing = missing | gaps
        clusters = None
        if self._columns.cluster is not None:
            clusters = self._numbered(data, self._columns.cluster)
            missing |= clusters < 0
        weights, costs = (
            None if name is None else floats(self.table, data, name)
            for name in (self._columns.weight, self._columns.error_cost)
        )
        for part in (weights, costs):
            if part is not None:
                missing |= np.isnan(part)
        first_row = self.n_rows + self.n_dropped + 1
        rows: Integers | None = None
        places: NDArray[Any] | slice = slice(None)
        if missing.any():
            if not self._drop_missing:
                raise self._missing_values()
            there = np.flatnonzero(~missing)
            self.n_dropped += data.num_rows - there.size
            if not there.size:
                return None
            rows, places = there + first_row, there
            first_row = int(rows[0])
        self.n_rows += data.num_rows if rows is None else rows.size
        weights, costs, groups, clusters = (
            None if part is None else part[places] for part in (weights, costs, groups, clusters)
        )
        weights = self._not_negative(self._columns.weight, weights, "weights")
        costs = self._not_negative(self._columns.error_cost, costs, "costs")
        self._has_weight = self._has_weight or (weights is not None and bool(weights.any()))
        return Kept(first_row, rows, places, weights, groups, costs, clusters)

    def _missing_values(self) -> TableError:
        """The error for rows with missing values."""
        return missing_values(self.table, self._columns.categorical, self._columns.numeric)

    def _numbered(self, data: Any, name: str) -> Integers:
        """Numbers of the rows' clusters, −1 where the value is missing."""
        places, values = encoded_or_refused(self.table, data, name)
        # As they first come in the rows, so that numbers do not depend on the kind of file.
        first = np.zeros(len(values) + 1, dtype=np.int64)
        first[places[::-1]] = np.arange(len(places))[::-1]
        numbers: Integers = np.full(len(values) + 1, -1, dtype=np.int64)
        for place in np.argsort(first[:-1]).tolist():
            numbers[place] = self._clusters.setdefault(values[place], len(self._clusters))
        found: Integers = numbers[places]
        return found

    def _probabilities(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """The same values, without rounding beyond 0 and 1."""
        low, high = float(values.min()), float(values.max())
        if low < -PROBABILITY_ROUNDING or high > 1.0 + PROBABILITY_ROUNDING:
            raise not_probabilities(self.table, name)
        self.lowest[name] = min(low, self.lowest.get(name, low))
        return np.clip(values, 0.0, 1.0) if low < 0.0 or high > 1.0 else values

    def _not_negative(
        self, name: str | None, values: NDArray[Any] | None, what: str
    ) -> Floats | None:
        if name is None or values is None:
            return None
        found: Floats = values.astype(np.float64, copy=False)
        if found.min() < 0.0 or np.isinf(found.max()):
            raise negative_values(self.table, name, what)
        return found
