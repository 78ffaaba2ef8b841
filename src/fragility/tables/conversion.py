"""Record batches to checked arrays of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Mask
from .._validation import SUM_TOLERANCE
from .categories import Categories
from .columns import PredictionColumns
from .group_columns import KnownGroups
from .prediction_batch import PredictionBatch
from .problems import UNDECIDED, decision_problem, missing_values, not_shares, sums_not_one
from .reading import Kept, Reading
from .rows import coded, floats
from .table import Table


@dataclass(frozen=True)
class Known:
    """What must be known before rows can be made into arrays."""

    classes: Categories
    groups: KnownGroups
    positive: int | None
    layout: dict[str, list[str]]


class Conversion(Reading[PredictionBatch]):
    """One reading of a table of predictions."""

    def __init__(
        self,
        table: Table,
        columns: PredictionColumns,
        known: Known,
        drop_missing: bool,
        clusters: dict[Any, int],
    ) -> None:
        super().__init__(table, columns, known.groups, drop_missing, clusters)
        self._label, self._scored = columns.label, columns.scored
        self._human, self._reviewer_error = columns.human, columns.reviewer_error
        self.known = known
        self._support = np.zeros(len(known.classes.names), dtype=np.int64)

    def batch(self, data: Any, fraction: float) -> PredictionBatch | None:
        """The next rows as arrays; None if all are left out."""
        codes, missing = coded(self.table, data, self._label, self.known.classes)
        human, undecided = self._decisions(data)
        if undecided is not None:
            missing = missing | undecided
        found = {name: floats(self.table, data, name) for name in self._scored}
        errors = None
        if self._reviewer_error is not None:
            errors = floats(self.table, data, self._reviewer_error)
        for values in (*found.values(), *([] if errors is None else [errors])):
            if np.isnan(values.min()):
                missing = missing | np.isnan(values)
        kept = self._kept(data, missing)
        if kept is None:
            return None
        codes = codes[kept.places]
        self._support += np.bincount(codes, minlength=self._support.size)
        return PredictionBatch(
            codes=codes,
            scores={model: self._scores(model, found, kept) for model in self.known.layout},
            fraction=fraction,
            human=None if human is None else human[kept.places],
            reviewer_errors=None if errors is None else self._shares(errors[kept.places]),
            **kept.shared,
        )

    def merge(self, other: Reading[PredictionBatch]) -> None:
        """Add what a reading of other rows has counted."""
        super().merge(other)
        assert isinstance(other, Conversion)
        self._support += other._support

    def finish(self) -> None:
        """Checks that only the whole table allows."""
        super().finish()
        present = np.flatnonzero(self._support)
        if present.size < 2:
            left = " that are left" if self.n_dropped else ""
            only = self.known.classes.names[present[0]]
            raise self.table.error(
                f"the rows{left} hold only the class {only!r} in column {self._label!r}; two "
                "classes or more are needed."
            )

    def _decisions(self, data: Any) -> tuple[NDArray[Any] | None, Mask | None]:
        """What humans decided, as classes, and where they did not."""
        name = self._human
        if name is None:
            return None, None
        human, undecided = coded(
            self.table, data, name, self.known.classes, problem=decision_problem
        )
        if undecided.any() and not self._drop_missing:
            raise missing_values(self.table, [name], [], UNDECIDED)
        return human, undecided

    def _shares(self, values: NDArray[Any]) -> Floats:
        found: Floats = values.astype(np.float64, copy=False)
        if found.min() < 0.0 or found.max() > 1.0:
            raise not_shares(self.table, str(self._reviewer_error))
        return found

    def _scores(self, model: str, found: dict[str, NDArray[Any]], kept: Kept) -> NDArray[Any]:
        names = self.known.layout[model]
        columns = [self._probabilities(name, found[name][kept.places]) for name in names]
        if len(columns) == 1:
            return columns[0]
        matrix = np.stack(columns, axis=1)
        sums = matrix.sum(axis=1, dtype=np.float64)
        if np.abs(sums - 1.0).max() > SUM_TOLERANCE:
            raise sums_not_one(self.table, model, names)
        return matrix
