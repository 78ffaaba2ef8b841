"""Tables in files that are stored by column: Parquet, and Arrow (Feather) files and streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from .arrow import parquet, pyarrow
from .table import Table, Types, checked_names, rows_at_once

#: What writers of Parquet are called that write all categories in their order.
_KEEP_ORDER = ("parquet-cpp", "Polars")


@contextmanager
def opened_parquet(path: str | os.PathLike[str], **options: Any) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile` whose pages are checked, and that does not read ahead."""
    options = {"pre_buffer": False, "page_checksum_verification": True} | options
    with (
        pyarrow().OSFile(os.fsencode(path)) as source,
        parquet().ParquetFile(source, **options) as file,
    ):
        yield file


def parquet_batches(
    path: str | os.PathLike[str],
    columns: list[str],
    at_once: int,
    n_rows: int | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Some columns of a Parquet file, in their order, so many rows at a time.

    No more than a batch is read ahead. A file with another number of rows than `n_rows`, by default
    what it says of itself, is refused.
    """
    done = 0
    with opened_parquet(path, **options) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise ValueError(f"the file has no column {missing[0]!r}")
        for batch in file.iter_batches(at_once, columns=columns):
            done += batch.num_rows
            yield batch.select(columns)
        check_rows(file.metadata.num_rows if n_rows is None else n_rows, done)


def check_rows(says: int, n_rows: int) -> None:
    """Refuse a file that holds other rows than it says."""
    if n_rows != says:
        raise ValueError(f"it says that it has {says} rows, but has {n_rows}")


def holds_order(about: Any, column: str) -> bool:
    """Whether Parquet was written with its categories, by a program that keeps these in order.

    The format knows no order. Some programs write the values as they first come, and that is how
    they are read where none were written. `about` is the metadata of the file.
    """
    paths = [about.schema.column(place).path for place in range(about.num_columns)]
    if column not in paths or not about.num_rows:
        return True  # of no values
    place = paths.index(column)
    groups = (about.row_group(k).column(place) for k in range(about.num_row_groups))
    known = str(about.created_by).startswith(_KEEP_ORDER)
    return known and all(group.has_dictionary_page for group in groups)


class ParquetTable(Table):
    """A Parquet file."""

    kind = "Parquet"
    n_rows: int

    def __init__(self, path: Path, name: str | None = None, *, may_be_empty: bool = False) -> None:
        super().__init__(path, name)
        with self._explained(), self._file({}) as file:
            self.schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows
        self.column_names = checked_names(self.name, self.schema.names)
        if not self.n_rows and not may_be_empty:
            raise self.error("the table has no rows.")

    def _whole(self, columns: list[str], types: Types) -> Any:
        with self._file(types, pre_buffer=True) as file:
            table = _valid(file.read(columns=columns))
            check_rows(self.n_rows, table.num_rows)
            return table

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        if not self.n_rows:
            return
        done, at_once = 0, rows_at_once(len(columns))
        options = self._options(types)
        for batch in parquet_batches(self.path, columns, at_once, self.n_rows, **options):
            done += batch.num_rows
            yield _valid(batch), done / self.n_rows

    def keeps_order(self, column: str) -> bool:
        """Whether all parts of the file say it."""
        with self._explained(), self._file({}) as file:
            return holds_order(file.metadata, column)

    def ends(self, column: str) -> tuple[int, int] | None:
        """From the statistics of all parts of the file."""
        if not pyarrow().types.is_integer(self.schema.field(column).type):
            return None
        found = []
        with self._explained(), self._file({}) as file:
            about = file.metadata
            paths = [about.schema.column(place).path for place in range(about.num_columns)]
            for k in range(about.num_row_groups):
                told = about.row_group(k).column(paths.index(column)).statistics
                if told is None or not told.has_min_max or told.null_count != 0:
                    return None
                found.append((told.min, told.max))
        return min(low for low, _ in found), max(high for _, high in found)

    def _file(self, types: Types, **options: Any) -> AbstractContextManager[Any]:
        return opened_parquet(self.path, **self._options(types), **options)

    def _options(self, types: Types) -> dict[str, Any]:
        """Repeated text is stored once: as a dictionary it is never written out."""
        pa = pyarrow()
        as_stored = [
            name
            for name, wanted in types.items()
            if pa.types.is_dictionary(wanted)
            and name in self.column_names
            and pa.types.is_string(self.schema.field(name).type)
        ]
        return {"read_dictionary": as_stored}


class ArrowTable(Table):
    """An Arrow IPC file (also called Feather, version 2) or stream."""

    def __init__(self, path: Path, name: str | None = None, *, is_stream: bool) -> None:
        super().__init__(path, name)
        self.kind = "Arrow stream" if is_stream else "Arrow file"
        self._is_stream = is_stream
        with self._explained(), self._source() as source:
            self.schema = self._reader(source).schema
        self.column_names = checked_names(self.name, self.schema.names)
        if not any(batch.num_rows for batch in self.batches(self.column_names[:1])):
            raise self.error("the table has no rows.")

    def _whole(self, columns: list[str], types: Types) -> Any:
        with self._source() as source:
            return _valid(self._reader(source, columns).read_all().select(columns))

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        step = rows_at_once(len(columns))
        with self._source() as source:
            for batch, end in self._stored_batches(source, columns):
                ordered = _valid(batch.select(columns))
                for start in range(0, batch.num_rows, step):  # stored ones may be large
                    yield ordered.slice(start, step), end

    def _stored_batches(self, source: Any, columns: list[str]) -> Iterator[tuple[Any, float]]:
        """Batches as they are stored, and the fraction of the file that is read with each."""
        reader = self._reader(source, columns)
        if self._is_stream:
            for batch in reader:
                yield batch, source.tell() / self.size_bytes
        else:
            n = reader.num_record_batches
            for place in range(n):
                yield reader.get_batch(place), (place + 1) / n

    def _source(self) -> Any:
        return pyarrow().memory_map(os.fsencode(self.path))

    def _reader(self, source: Any, columns: list[str] | None = None) -> Any:
        pa = pyarrow()
        options = pa.ipc.IpcReadOptions()
        if columns is not None:
            options.included_fields = [self.schema.get_field_index(name) for name in columns]
        open_reader = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
        return open_reader(source, options=options)


def _valid(data: Any) -> Any:
    """The same table or batch; a damaged one, whose values lie elsewhere in memory, is refused."""
    data.validate(full=True)
    return data
