"""Record batches to checked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._validation import PROBABILITY_ROUNDING, SUM_TOLERANCE
from .categories import Categories
from .columns import Columns
from .prediction_batch import PredictionBatch
from .problems import (
    label_problem,
    missing_values,
    negative_values,
    not_probabilities,
    sums_not_one,
)
from .table import Table
from .values import encoded, numbers


class Conversion:
    """One reading of a table from its first row to its last.

    Attributes
    ----------
    n_rows, n_dropped : int
        Rows that were used and left out up to now.
    lowest : dict of str to float
        Lowest score of each column up to now.
    """

    def __init__(
        self,
        table: Table,
        columns: Columns,
        layout: dict[str, list[str]],
        classes: Categories,
        groups: Categories | None,
        drop_missing: bool,
    ) -> None:
        self._table = table
        self._columns = columns
        self._layout = layout
        self._classes = classes
        self._groups = groups
        self._drop_missing = drop_missing
        self._support = np.zeros(len(classes.names), dtype=np.int64)
        self._has_weight = columns.weight is None
        self.n_rows = 0
        self.n_dropped = 0
        self.lowest: dict[str, float] = {}

    def batch(self, data: Any, fraction: float) -> PredictionBatch | None:
        """The next rows as arrays; None if all are left out."""
        first_row = self.n_rows + self.n_dropped + 1
        codes, missing = self._coded(data, self._columns.label, self._classes)
        groups = None
        if self._groups is not None and self._columns.group is not None:
            groups, missing_groups = self._coded(data, self._columns.group, self._groups)
            missing = missing | missing_groups
        floats = {name: self._floats(data, name) for name in self._columns.numeric}
        for values in floats.values():
            if np.isnan(values.min()):
                missing = missing | np.isnan(values)
        rows = None
        if missing.any():
            if not self._drop_missing:
                raise missing_values(self._table, self._columns.categorical, self._columns.numeric)
            there = np.flatnonzero(~missing)
            self.n_dropped += data.num_rows - there.size
            if not there.size:
                return None
            rows = there + first_row
            first_row = int(rows[0])
            codes = codes[there]
            groups = None if groups is None else groups[there]
            floats = {name: values[there] for name, values in floats.items()}
        self.n_rows += codes.size
        self._support += np.bincount(codes, minlength=self._support.size)
        return PredictionBatch(
            codes=codes,
            scores={model: self._scores(model, floats) for model in self._layout},
            weights=self._weights(floats),
            groups=groups,
            error_costs=self._not_negative(floats, self._columns.error_cost, "costs"),
            first_row=first_row,
            rows=rows,
            fraction=fraction,
        )

    def finish(self) -> None:
        """Checks that only the whole table allows."""
        if not self.n_rows:
            raise self._table.error(
                f"every one of the {self.n_dropped:,} rows has a missing value in a column that is "
                f"used ({listed(self._columns.all)}), so none is left."
            )
        present = np.flatnonzero(self._support)
        if present.size < 2:
            left = " that are left" if self.n_dropped else ""
            raise self._table.error(
                f"the rows{left} hold only the class {self._classes.names[present[0]]!r} in column "
                f"{self._columns.label!r}; two classes or more are needed."
            )
        if not self._has_weight:
            raise self._table.error(
                f"every weight in column {self._columns.weight!r} is zero; at least one row must "
                "count."
            )

    def _coded(
        self, data: Any, name: str, categories: Categories
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Places of the rows' names, and where there is none because the value is missing."""
        places, values = encoded_or_refused(self._table, data, name)
        table = categories.codes(values)
        if table is None:
            raise label_problem(self._table, name, categories)
        missing = places < 0
        codes = np.append(table, table.dtype.type(0))[places]  # −1, missing, is the last one
        return codes, missing

    def _floats(self, data: Any, name: str) -> NDArray[Any]:
        column = data.column(name)
        values = numbers(column)
        if values is None:
            raise self._table.error(
                f"column {name!r} holds values of type {column.type}, not numbers; name a column "
                "of numbers."
            )
        return values

    def _scores(self, model: str, floats: dict[str, NDArray[Any]]) -> NDArray[Any]:
        names = self._layout[model]
        columns = [self._probabilities(name, floats[name]) for name in names]
        if len(columns) == 1:
            return columns[0]
        matrix = np.stack(columns, axis=1)
        sums = matrix.sum(axis=1, dtype=np.float64)
        if np.abs(sums - 1.0).max() > SUM_TOLERANCE:
            raise sums_not_one(self._table, model, names)
        return matrix

    def _probabilities(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        low, high = float(values.min()), float(values.max())
        if low < -PROBABILITY_ROUNDING or high > 1.0 + PROBABILITY_ROUNDING:
            raise not_probabilities(self._table, name)
        self.lowest[name] = min(low, self.lowest.get(name, low))
        return np.clip(values, 0.0, 1.0) if low < 0.0 or high > 1.0 else values

    def _weights(self, floats: dict[str, NDArray[Any]]) -> NDArray[np.float64] | None:
        weights = self._not_negative(floats, self._columns.weight, "weights")
        self._has_weight = self._has_weight or (weights is not None and bool(weights.any()))
        return weights

    def _not_negative(
        self, floats: dict[str, NDArray[Any]], name: str | None, what: str
    ) -> NDArray[np.float64] | None:
        if name is None:
            return None
        values = floats[name].astype(np.float64, copy=False)
        if values.min() < 0.0 or np.isinf(values.max()):
            raise negative_values(self._table, name, what)
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
