"""What every table can do, whatever kind of file it is in."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._labels import listed, spelled_number
from .._names import did_you_mean
from ..exceptions import TableError
from .arrow import pyarrow

Types = Mapping[str, Any]

_CELLS_AT_ONCE = 1 << 20


class UnreadableValueError(TableError):
    """A value that is not of the type asked for; a second reading, as text, finds which ones."""


class Batches(Iterator[Any]):
    """Record batches of a table, read as they are asked for.

    Attributes
    ----------
    fraction : float
        How much of the file has been read, from 0 to 1.
    """

    def __init__(self, parts: Iterator[tuple[Any, float]]) -> None:
        self._parts = parts
        self.fraction = 0.0

    def __next__(self) -> Any:
        batch, self.fraction = next(self._parts)
        return batch


class Table(ABC):
    """A table in a file, opened but not read.

    Attributes
    ----------
    path : Path
    name : str
        What messages call the file.
    kind : str
        "CSV", "JSON lines", "JSON", "Parquet", "Arrow file" or "Arrow stream".
    column_names : list of str
    size_bytes : int
        Of the file, compressed or not.
    is_compressed : bool
        Whether the file as a whole is compressed (gzip).
    n_rows : int or None
        None if that cannot be known without reading the file.
    schema : pyarrow.Schema or None
        Types of the columns; None for text, which has none.
    """

    kind: str
    is_compressed: bool = False
    n_rows: int | None = None
    schema: Any = None
    #: Whether text is text, also where it spells numbers, and truth is no number: as in memory.
    keeps_types = False
    #: Whether ordered categories come in their order.
    has_order = True
    #: What to add to row numbers in a message.
    row_note = "counted from 1"
    #: Rows of a larger whole that come before these.
    rows_before = 0

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.name = str(path) if name is None else name
        self.column_names: list[str] = []
        self.size_bytes = os.path.getsize(path)

    @property
    def paths(self) -> list[Path]:
        """The file, or all of several."""
        return [self.path]

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        """These columns (all by default) as a `pyarrow.Table`.

        `types` are the `pyarrow` types to read columns as. Without one, a column of a CSV file
        gets the type that all its values fit.
        """
        asked = self._asked(columns)
        with self._explained():
            return self._as_types(self._whole(asked, types or {}), types or {})

    def read_batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> list[Any]:
        """The same as record batches; those of several files may differ in types."""
        found: list[Any] = self.read(columns, types).to_batches()
        return found

    def batches(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Batches:
        """These columns as `pyarrow.RecordBatch` objects, in memory that does not grow.

        A column of a CSV file for which `types` has no type is read as text: no type can be
        known to fit before the last row is read.
        """
        return Batches(self._converted(self._asked(columns), types or {}))

    def _converted(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        with self._explained():
            for batch, fraction in self._parts(columns, types):
                yield self._as_types(batch, types), fraction

    @abstractmethod
    def _whole(self, columns: list[str], types: Types) -> Any:
        """These columns, of the types that the reader gives by itself or for `types`."""

    @abstractmethod
    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        """The same in batches, each with the fraction of the file that has been read."""

    def keeps_order(self, column: str) -> bool:
        """Whether ordered categories of a column are stored in their order."""
        return self.has_order

    def ends(self, column: str) -> tuple[int, int] | None:
        """Least and largest of a column of whole numbers, if the file says it; none is missing."""
        return None

    def missing_columns(self, names: Sequence[str]) -> list[str]:
        """Those of these names that no column has."""
        return [name for name in dict.fromkeys(names) if name not in self.column_names]

    def number_types(self, columns: Sequence[str]) -> dict[str, Any]:
        """Type to read each column of numbers as. Only text files need it: others store types."""
        return dict.fromkeys(columns, pyarrow().float64()) if self.schema is None else {}

    def error(self, message: str) -> TableError:
        """An error that names this file."""
        return TableError(f"{self.name}: {message}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What pyarrow says about a broken file becomes an error that names it."""
        try:
            yield
        except (TableError, ImportError):
            raise
        except MemoryError as error:
            raise self.error(
                f"the file ({self.kind}) asks for more memory than there is ({error}). It is "
                "damaged, or too large: copy it again, or hold none of it (--hold 0)."
            ) from error
        except Exception as error:  # of damaged files, readers raise anything
            what = str(error) or type(error).__name__
            raise self.error(
                f"the file ({self.kind}) cannot be read; it is cut off, damaged or of a kind that "
                f"pyarrow does not know ({what}). Copy or export it again."
            ) from error

    def _asked(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return self.column_names
        require_columns(self, columns)
        return list(dict.fromkeys(columns))

    def _as_types(self, data: Any, types: Types) -> Any:
        """A table or batch with some columns cast."""
        pa = pyarrow()
        for name, wanted in types.items():
            place = data.schema.get_field_index(name)
            if place < 0 or data.schema.types[place] == wanted:
                continue
            column = data.column(place)
            try:
                if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(column.type):
                    column = column.dictionary_encode()
                column = column.cast(wanted)
            except pa.ArrowException as error:
                raise UnreadableValueError(
                    f"{self.name}: column {name!r} cannot be read as {wanted} ({error})."
                ) from error
            data = data.set_column(place, name, column)
        return data


def require_columns(table: Table, names: Sequence[str]) -> None:
    r"""Refuse names of columns that the table does not have, and suggest the nearest.

    Examples
    --------
    >>> from fragility.tables import open_table
    >>> path = getfixture("tmp_path") / "small.csv"
    >>> _ = path.write_text("label,score\n1,0.9\n0,0.2\n")
    >>> require_columns(open_table(path), ["label", "score"])
    """
    missing = table.missing_columns(names)
    if not missing:
        return
    hint = did_you_mean(missing, table.column_names, cutoff=0.5)
    if table.kind == "CSV" and all(spelled_number(n) is not None for n in table.column_names):
        hint = " The first line must name the columns; here it looks like data."
    raise table.error(
        f"there is no column {listed(missing)}. The columns are "
        f"{listed(table.column_names, most=20)}.{hint}"
    )


def checked_names(file: str, names: Sequence[str]) -> list[str]:
    """Names of columns, each only once; several columns may have none."""
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise TableError(
            f"{file}: several columns have the name {listed(twice)}; give every column a name of "
            "its own."
        )
    return list(names)


def rows_at_once(n_columns: int) -> int:
    """Rows of a batch so that wide tables take no more memory than narrow ones."""
    return max(_CELLS_AT_ONCE // max(n_columns, 1), 1024)
