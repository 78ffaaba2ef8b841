"""Readings of the data for training: each gives the sums that searches ask for, where rows are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from .._typing import Floats
from ..linear_model.out_of_fold import N_FOLDS
from ..programs.gram import BLOCK
from ..programs.objective import Objective
from ..programs.row_sums import Request, RowSums
from ..sources.local import LocalSource
from ..sources.source import Part, Source
from .survey import Survey, Surveying, TrainingColumns

#: Seconds after which a reading says again how far it is.
_EVERY = 10.0


@dataclass
class _Summed:
    """Sums of the rows up to now; where the next rows are, for their folds."""

    sums: list[RowSums]
    part: int = -1
    rows: int = 0


@dataclass(frozen=True, eq=False)
class Summing:
    """Adds batches to the sums that are asked for.

    The objective has the loss and the coordinates, and no rows; `factors` are those of the weights
    of each class.
    """

    columns: TrainingColumns
    classes: list[Any]
    factors: Floats
    objective: Objective
    requests: tuple[Request, ...]

    def __call__(self, state: _Summed | None, batch: Any, part: Part) -> _Summed:
        found = _Summed([RowSums() for _ in self.requests]) if state is None else state
        if found.part != part.number:
            found.part, found.rows = part.number, 0
        for start in range(0, batch.num_rows, BLOCK):  # there may be little room for copies
            self._add_rows(found, batch.slice(start, BLOCK))
        return found

    def _add_rows(self, found: _Summed, batch: Any) -> None:
        own, values = self.columns.labels(batch)
        places = {value: place for place, value in enumerate(self.classes)}
        unknown = [value for value in values if value not in places]
        if unknown:
            raise ValueError(
                f"column {self.columns.label!r} holds {unknown[0]!r}, which it did not when it was "
                "read first: the data change while they are read."
            )
        codes = np.array([places[value] for value in values], dtype=np.intp)[own]
        weights = self.columns.weights(batch) * self.factors[codes]
        rows = self._rows(self.columns.table(batch), codes, weights)
        rng = np.random.default_rng([found.part, found.rows])
        found.rows += batch.num_rows
        folds = None
        if any(request.fold is not None for request in self.requests):
            folds = rng.integers(0, N_FOLDS, batch.num_rows)
        for request, sums in zip(self.requests, found.sums, strict=True):
            some = rows
            if request.fold is not None:
                assert folds is not None
                own_fold = folds == request.fold
                some = replace(
                    rows, X=rows.X[own_fold], y=rows.y[own_fold], weights=rows.weights[own_fold]
                )
            sums.add(replace(self.objective, rows=some, alpha=0.0), request)

    def _rows(self, X: Floats, codes: Any, weights: Floats) -> Any:
        rows = self.objective.rows
        if rows.priced:
            X = np.column_stack([X, np.ones(len(X))])
        X = X - rows.centre
        X *= 1.0 / rows.scale
        return replace(rows, X=X, y=codes, weights=weights)

    def merge(self, first: _Summed, second: _Summed) -> _Summed:
        """The sums of both; the rows of `second` come later."""
        for request, one, other in zip(self.requests, first.sums, second.sums, strict=True):
            one.merge(other, request)
        first.part, first.rows = second.part, second.rows
        return first


@dataclass
class Passes:
    """The readings of some data, counted.

    Attributes
    ----------
    source : Source
    columns : TrainingColumns
    say : callable or None
        Told how far a reading is, and what one took.
    count : int
    n_rows : int
        Known after the first one.
    seconds : float
        What the last one took.
    """

    source: Source
    columns: TrainingColumns
    say: Callable[[str], None] | None = None
    count: int = 0
    n_rows: int = 0
    seconds: float = field(default=0.0, repr=False)

    def survey(self, most: int, least: int) -> Survey | None:
        """The first reading; the sample has about `most` rows, and `least` of each class."""
        add = Surveying(self.columns, most, least)
        found: Survey | None = self._read(add, add.merge)
        self.n_rows = 0 if found is None else found.n_rows
        return found

    def sums(
        self,
        requests: Sequence[Request],
        objective: Objective,
        classes: list[Any],
        factors: Floats,
    ) -> list[RowSums]:
        """What is asked for, summed over all rows in one reading."""
        add = Summing(self.columns, classes, factors, objective, tuple(requests))
        found = self._read(add, add.merge)
        if found is None:
            raise ValueError("The data had rows when they were read first, and have none now.")
        return list(found.sums)

    def _read(self, add: Any, merge: Any) -> Any:
        self.count += 1
        began = time.perf_counter()
        if self.say is not None and isinstance(self.source, LocalSource):
            add = _Counted(add, self, began)
        found = self.source.reduce(add, merge, self.columns.names)
        self.seconds = time.perf_counter() - began
        return found


class _Counted:
    """Says now and then how many rows a reading has seen; for readings in this process."""

    def __init__(self, add: Any, passes: Passes, began: float) -> None:
        self._add, self._passes, self._began = add, passes, began
        self._rows, self._said, self._lock = 0, began, Lock()

    def __call__(self, state: Any, batch: Any, part: Part) -> Any:
        found = self._add(state, batch, part)
        with self._lock:
            self._rows += batch.num_rows
            now = time.perf_counter()
            if now - self._said >= _EVERY:
                self._said = now
                self._tell(now - self._began)
        return found

    def _tell(self, seconds: float) -> None:
        total, say = self._passes.n_rows, self._passes.say
        assert say is not None
        of, left = "", ""
        if total:
            of = f" of {total:,}"
            left = f", {seconds * (total / self._rows - 1.0):.0f} s left in this one"
        say(f"pass {self._passes.count}: {self._rows:,}{of} rows in {seconds:.0f} s{left}")
