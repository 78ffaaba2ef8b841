"""Rows of a source as tables, so that they are checked and explained as those of files are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..exceptions import TableError
from ..tables.arrow import pyarrow
from ..tables.table import Table, Types, checked_names
from .source import Part, Source


class SourceTable(Table):
    """A source whose columns are known; its rows are read where they are."""

    kind = "source"
    keeps_types = True  # as in memory

    def __init__(self, source: Source) -> None:
        self.path, self.name = Path(), source.name
        self.schema, self.size_bytes = source.schema, 0
        self.column_names = checked_names(self.name, source.column_names)

    def _whole(self, columns: list[str], types: Types) -> Any:
        raise NotImplementedError("the rows of a source are read in parts")

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        raise NotImplementedError("the rows of a source are read in parts")


class BatchTable(Table):
    """A batch of a part: what is wrong with it is said with its rows in that part."""

    kind = "batch"
    row_note = "counted from 1 in this part"

    def __init__(self, batch: Any, rows_before: int) -> None:
        self.path, self.name, self.size_bytes = Path(), "", 0
        self.schema, self.column_names = batch.schema, list(batch.schema.names)
        self.n_rows, self.rows_before = batch.num_rows, rows_before
        self._batch = batch

    def error(self, message: str) -> TableError:
        """An error without a name: the part has one."""
        return TableError(message)

    def _whole(self, columns: list[str], types: Types) -> Any:
        return pyarrow().Table.from_batches([self._batch.select(columns)])

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        yield self._batch.select(columns), 1.0


class PartRows:
    """Counts the rows of parts, as their batches come."""

    def __init__(self) -> None:
        self._part: Part | None = None
        self._rows = 0

    def table(self, batch: Any, part: Part) -> BatchTable:
        """The next batch as a table."""
        if part != self._part:
            self._part, self._rows = part, 0
        found = BatchTable(batch, self._rows)
        self._rows += batch.num_rows
        return found
