"""Parquet files of a folder or a pattern, as one table."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from .._labels import listed
from ..exceptions import TableError
from .arrow import pyarrow
from .column_files import ParquetTable
from .table import Table, Types

_ENDINGS = (".parquet", ".pq")


def parquet_files(path: str | os.PathLike[str]) -> list[str]:
    """Parquet files of a path, a folder (with those below it) or a pattern, in the order of names.

    Files and folders whose names begin with a dot or a line below are left out, as engines do, of a
    pattern, too. A file that a pattern matches together with its folder counts once.
    """
    given = os.fspath(path)
    if os.path.isdir(given):
        found = [
            str(file)
            for file in sorted(_files_below(given))
            if file.suffix.lower() in _ENDINGS and not _hidden(file.relative_to(given))
        ]
        if not found:
            raise TableError(f"{given}: this folder has no Parquet file ({listed(_ENDINGS)}).")
        return found
    if os.path.exists(given):
        return [given]
    if not glob.has_magic(given):
        raise TableError(f"{given}: there is no such file or folder.")
    plain = Path(*takewhile(lambda name: not glob.has_magic(name), Path(given).parts))
    matched = sorted(glob.glob(given, recursive=True))
    chosen = [one for one in matched if not _hidden(Path(one).relative_to(plain))]
    files = dict.fromkeys(str(Path(file)) for one in chosen for file in parquet_files(one))
    if not files:
        only = " but such as begin with a dot or a line below" if matched else ""
        raise TableError(f"{given}: no file has such a name{only}.")
    return list(files)


def _files_below(folder: str) -> Iterator[Path]:
    """Files of a folder and those below it, whatever these are called, also behind links."""
    known: set[tuple[int, int]] = set()
    for place, below, files in os.walk(folder, onerror=_refuse, followlinks=True):
        about = os.stat(place)
        if (about.st_dev, about.st_ino) in known:  # a link to a folder that was read
            below.clear()
            continue
        known.add((about.st_dev, about.st_ino))
        below[:] = sorted(name for name in below if not _hidden(Path(name)))
        yield from (Path(place, file) for file in files)


def _refuse(error: OSError) -> None:
    raise TableError(f"{error.filename}: this folder cannot be read ({error.strerror}).")


def _hidden(file: Path) -> bool:
    return any(name.startswith((".", "_")) for name in file.parts)


class ParquetFiles(Table):
    """Parquet files, one after the other; some may be empty.

    Rows are counted over all of them.
    """

    kind = "Parquet"
    n_rows: int
    row_note = "counted from 1 over the files, in the order of their names"

    def __init__(self, name: str, paths: list[str], *, may_be_empty: bool = False) -> None:
        self._tables = [ParquetTable(Path(path), may_be_empty=True) for path in paths]
        first = self._tables[0]
        self.path, self.name = first.path, name
        self.schema, self.column_names = first.schema, first.column_names
        self.size_bytes = sum(table.size_bytes for table in self._tables)
        self.n_rows = sum(table.n_rows for table in self._tables)
        if not self.n_rows and not may_be_empty:
            raise self.error("the files have no rows.")

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [table.path for table in self._tables]

    def keeps_order(self, column: str) -> bool:
        """Whether ordered categories are stored in their order, in all files."""
        return all(table.keeps_order(column) for table in self._tables if table.n_rows)

    def read_batches(self, columns: Sequence[str], types: Types) -> list[Any]:
        """Record batches of all files, each of the types that its file has."""
        return [batch for table in self._filled for batch in table.read_batches(columns, types)]

    @property
    def _filled(self) -> list[ParquetTable]:
        return [table for table in self._tables if table.n_rows]

    def _whole(self, columns: list[str], types: Types) -> Any:
        pa, parts = pyarrow(), [table.read(columns, types) for table in self._filled]
        try:
            return pa.concat_tables(parts, promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise self.error(
                f"the files do not make one table, because they hold a column as different types "
                f"({error}). Write all of them with the same types."
            ) from error

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        done = 0
        for table in self._tables:
            for batch in table.batches(columns, types) if table.n_rows else ():
                done += batch.num_rows
                yield batch, done / self.n_rows
