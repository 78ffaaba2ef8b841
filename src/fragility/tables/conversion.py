"""Record batches to checked arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Floats, Integers, Mask
from .._validation import PROBABILITY_ROUNDING, SUM_TOLERANCE
from .categories import Categories
from .columns import Columns
from .prediction_batch import PredictionBatch
from .problems import (
    UNDECIDED,
    decision_problem,
    label_problem,
    missing_values,
    negative_values,
    not_probabilities,
    not_shares,
    sums_not_one,
)
from .table import Table
from .values import encoded, numbers


@dataclass(frozen=True)
class Known:
    """What must be known before rows can be made into arrays."""

    classes: Categories
    groups: Categories | None
    positive: int | None
    layout: dict[str, list[str]]


@dataclass
class Conversion:
    """One reading of a table from its first row to its last.

    Attributes
    ----------
    clusters : dict
        Numbers of the clusters by name, as they are met.
    n_rows, n_dropped : int
        Rows that were used and left out up to now.
    lowest : dict of str to float
        Lowest score of each column up to now.
    """

    table: Table
    columns: Columns
    known: Known
    drop_missing: bool
    clusters: dict[Any, int] = field(default_factory=dict)
    n_rows: int = 0
    n_dropped: int = 0
    lowest: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._support = np.zeros(len(self.known.classes.names), dtype=np.int64)
        self._has_weight = self.columns.weight is None

    def batch(self, data: Any, fraction: float) -> PredictionBatch | None:
        """The next rows as arrays; None if all are left out."""
        first_row = self.n_rows + self.n_dropped + 1
        codes, missing = self._coded(data, self.columns.label, self.known.classes)
        groups = None
        if self.known.groups is not None and self.columns.group is not None:
            groups, missing_groups = self._coded(data, self.columns.group, self.known.groups)
            missing = missing | missing_groups
        clusters = None
        if self.columns.cluster is not None:
            clusters = self._numbered(data, self.columns.cluster)
            missing = missing | (clusters < 0)
        human = None
        if self.columns.human is not None:
            human, undecided = self._coded(data, self.columns.human, self.known.classes)
            if undecided.any() and not self.drop_missing:
                raise missing_values(self.table, [self.columns.human], [], UNDECIDED)
            missing = missing | undecided
        floats = {name: self._floats(data, name) for name in self.columns.numeric}
        for values in floats.values():
            if np.isnan(values.min()):
                missing = missing | np.isnan(values)
        rows = None
        if missing.any():
            if not self.drop_missing:
                raise missing_values(self.table, self.columns.categorical, self.columns.numeric)
            there = np.flatnonzero(~missing)
            self.n_dropped += data.num_rows - there.size
            if not there.size:
                return None
            rows = there + first_row
            first_row = int(rows[0])
            codes = codes[there]
            groups, clusters, human = (
                None if part is None else part[there] for part in (groups, clusters, human)
            )
            floats = {name: values[there] for name, values in floats.items()}
        scores = {model: self._scores(model, floats) for model in self.known.layout}
        weights = self._not_negative(floats, self.columns.weight, "weights")
        self._has_weight = self._has_weight or (weights is not None and bool(weights.any()))
        self.n_rows += codes.size
        self._support += np.bincount(codes, minlength=self._support.size)
        return PredictionBatch(
            codes=codes,
            scores=scores,
            weights=weights,
            groups=groups,
            error_costs=self._not_negative(floats, self.columns.error_cost, "costs"),
            first_row=first_row,
            rows=rows,
            fraction=fraction,
            clusters=clusters,
            human=human,
            reviewer_errors=self._shares(floats, self.columns.reviewer_error),
        )

    def finish(self) -> None:
        """Checks that only the whole table allows."""
        if not self.n_rows:
            raise self.table.error(
                f"every one of the {self.n_dropped:,} rows has a missing value in a column that is "
                f"used ({listed(self.columns.all)}), so none is left."
            )
        present = np.flatnonzero(self._support)
        if present.size < 2:
            left = " that are left" if self.n_dropped else ""
            only = self.known.classes.names[present[0]]
            raise self.table.error(
                f"the rows{left} hold only the class {only!r} in column {self.columns.label!r}; "
                "two classes or more are needed."
            )
        if not self._has_weight:
            raise self.table.error(
                f"every weight in column {self.columns.weight!r} is zero; at least one row must "
                "count."
            )

    def _coded(self, data: Any, name: str, categories: Categories) -> tuple[NDArray[Any], Mask]:
        """Places of the rows' names, and where there is none because the value is missing."""
        places, values = encoded_or_refused(self.table, data, name)
        table = categories.codes(values)
        if table is None:
            if name == self.columns.human:
                raise decision_problem(self.table, name, categories)
            raise label_problem(self.table, name, categories)
        missing = places < 0
        codes = np.append(table, table.dtype.type(0))[places]  # −1, missing, is the last one
        return codes, missing

    def _numbered(self, data: Any, name: str) -> Integers:
        """Numbers of the rows' clusters, −1 where the value is missing."""
        places, values = encoded_or_refused(self.table, data, name)
        seen = self.clusters
        numbers = [seen.setdefault(value, len(seen)) for value in values]
        found: Integers = np.array([*numbers, -1], dtype=np.int64)[places]
        return found

    def _floats(self, data: Any, name: str) -> NDArray[Any]:
        try:
            return numbers(data.column(name))
        except TypeError as error:
            raise self.table.error(
                f"column {name!r} holds {error}; name a column of numbers."
            ) from None

    def _scores(self, model: str, floats: dict[str, NDArray[Any]]) -> NDArray[Any]:
        names = self.known.layout[model]
        columns = [self._probabilities(name, floats[name]) for name in names]
        if len(columns) == 1:
            return columns[0]
        matrix = np.stack(columns, axis=1)
        sums = matrix.sum(axis=1, dtype=np.float64)
        if np.abs(sums - 1.0).max() > SUM_TOLERANCE:
            raise sums_not_one(self.table, model, names)
        return matrix

    def _probabilities(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        low, high = float(values.min()), float(values.max())
        if low < -PROBABILITY_ROUNDING or high > 1.0 + PROBABILITY_ROUNDING:
            raise not_probabilities(self.table, name)
        self.lowest[name] = min(low, self.lowest.get(name, low))
        return np.clip(values, 0.0, 1.0) if low < 0.0 or high > 1.0 else values

    def _shares(self, floats: dict[str, NDArray[Any]], name: str | None) -> Floats | None:
        if name is None:
            return None
        values = floats[name].astype(np.float64, copy=False)
        if values.min() < 0.0 or values.max() > 1.0:
            raise not_shares(self.table, name)
        return values

    def _not_negative(
        self, floats: dict[str, NDArray[Any]], name: str | None, what: str
    ) -> Floats | None:
        if name is None:
            return None
        values = floats[name].astype(np.float64, copy=False)
        if values.min() < 0.0 or np.isinf(values.max()):
            raise negative_values(self.table, name, what)
        return values


def encoded_or_refused(table: Table, data: Any, name: str) -> tuple[NDArray[Any], list[Any]]:
    """Codes and values of a column; columns of dates, lists and the like are refused."""
    column = data.column(name)
    found = encoded(column)
    if found is None:
        raise table.error(
            f"column {name!r} holds values of type {column.type}; labels and groups must be text, "
            "booleans or whole numbers."
        )
    return found
