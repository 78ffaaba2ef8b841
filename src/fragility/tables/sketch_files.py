"""Sketches of files of predictions, and sketches in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._labels import listed, whole_number
from .._names import seen_first
from ..exceptions import TableError
from ..scores.sketch import FragilitySketch
from .categories import check_number_of_classes, found_classes, later_class
from .columns import PredictionColumns, parse_models
from .conversion import Conversion
from .opening import open_part, open_table
from .predictions import PredictionFile
from .rows import encoded_or_refused
from .table import Table, require_columns
from .values import category_order

#: A sketch never takes more bytes.
_MOST_BYTES = 1 << 31


def read_sketch(path: str | os.PathLike[str]) -> FragilitySketch:
    """The sketch in a file; what is wrong with the file is said with its name."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TableError(f"{path}: this file cannot be opened ({why}).") from error
    if len(data) > _MOST_BYTES:
        raise TableError(f"{path}: it is too large for a sketch.")
    try:
        return FragilitySketch.from_bytes(data)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def sketch_of_files(
    paths: Sequence[str],
    *,
    label: str,
    score: str,
    classes: Sequence[str] | None = None,
    positive: str | None = None,
    weight: str | None = None,
    drop_missing: bool = False,
    n_bins: int = 4096,
    progress: Callable[[int], None] = lambda _done: None,
) -> tuple[FragilitySketch, int]:
    """The sketch of all rows of some files, and how many rows were left out.

    Parameters
    ----------
    paths : sequence of str
        Parts of the data, each of any kind that `open_table` takes. A part may lack a class, and
        be a Parquet file without rows, if there are others.
    label, score, classes, positive, weight, drop_missing
        As in `PredictionFile`; `score` as `parse_models` takes it. Several columns of scores need
        `classes`.
    n_bins : int
        Of the sketch.
    progress : callable
        Is told the number of rows read so far.
    """
    tables = [(open_part if paths[1:] else open_table)(path) for path in paths]
    models = [parse_models([score], table.column_names) for table in tables]
    several = next((columns for model in models for columns in model.values() if columns[1:]), ())
    if several and classes is None:
        raise tables[0].error(
            f"the scores have the columns {listed(several)}; name the classes (--classes) in the "
            "order of the columns."
        )
    if classes is None:
        classes, positive = _found_classes(tables, label, positive)
    wholes = [whole_number(name) for name in classes]
    labels = np.array(classes if None in wholes else wholes)
    files = [
        _Part(
            table,
            is_first=table is tables[0],
            label=label,
            models=own,
            classes=classes,
            positive=positive,
            weight=weight,
            drop_missing=drop_missing,
        )
        for table, own in zip(tables, models, strict=True)
    ]
    places = None if files[0].positive is None else files[0].classes.index(files[0].positive)
    pos_label = None if places is None else labels.tolist()[places]
    sketch, done = FragilitySketch(n_bins, labels, pos_label), 0
    for file in files:
        for batch in file.batches():
            (scores,) = batch.scores.values()
            sketch.update(labels[batch.codes], scores, batch.weights)
            done += batch.n_rows
            progress(done)
    files[0].doubt(files)
    n_dropped = sum(file.n_dropped for file in files)
    if not done and not n_dropped:
        raise tables[0].error("there are no rows, here and in all files.")
    if not sketch.support.any():
        why = f"{n_dropped:,} have missing values, and the others no weight"
        raise tables[0].error(f"no row is left to be sketched, here and in all files: {why}.")
    return sketch, n_dropped


class _Part(PredictionFile):
    """A part of the data, which alone may lack a class, or weight, or rows."""

    lowest: Mapping[str, float]

    def __init__(self, table: Table, *, is_first: bool, **asked: Any) -> None:
        self._is_first = is_first
        super().__init__(table, **asked)

    def _warn(self, message: str) -> None:
        if self._is_first:  # what is doubtful is so in all of them
            super()._warn(message)

    def doubt(self, parts: Sequence[_Part]) -> None:
        """Warn of scores that look wrong in all parts together."""
        values: dict[str, list[float]] = {}
        for part in parts:
            for column, low in part.lowest.items():
                values.setdefault(column, []).append(low)
        super()._doubt({column: min(lows) for column, lows in values.items()})

    def _doubt(self, lowest: Mapping[str, float]) -> None:
        self.lowest = lowest

    def _reading(self) -> Conversion:
        return _PartReading(
            self.table, self.columns, self._names, self.drop_missing, self._clusters
        )


class _PartReading(Conversion):
    def finish(self) -> None:
        """A part need not have what the whole has."""


def _found_classes(
    tables: Sequence[Table], label: str, positive: str | None
) -> tuple[list[str], str | None]:
    """Classes of all files together, and the later one if they are ordered categories."""
    first_seen: dict[Any, Table] = {}
    orders: list[list[Any]] = []
    ordered: list[Table] = []
    for table in tables:
        require_columns(table, [label])
        types = PredictionColumns(label=label, models={}).types(table)
        for batch in table.batches([label], types):
            for value in encoded_or_refused(table, batch, label)[1]:
                first_seen.setdefault(value, table)
            check_number_of_classes(table, len(first_seen), f"column {label!r}")
            order = category_order(batch.column(label))
            if order is not None and table not in ordered:
                ordered.append(table)
            if order is not None and order not in orders:
                orders.append(order)
    found = found_classes(tables[0], label, first_seen)
    if len(found.names) > 2 and len(tables) > 1:
        where: dict[str, str] = {}
        for value, table in first_seen.items():  # 1 and "1" are one class
            where.setdefault(found.names[found.code(value) or 0], table.name)
        raise TableError(
            f"There is one column of scores, but column {label!r} holds {len(found.names)} classes "
            f"({listed(found.names)}). {seen_first('labels', where)}"
        )
    if positive is None and orders and len(found.names) == 2:
        lost = (table for table in ordered if not table.keeps_order(label))
        positive = found.names[later_class(next(lost, ordered[0]), label, found, orders)]
    return list(found.names), positive
