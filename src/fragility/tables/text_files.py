"""Tables in text files: values separated by commas, semicolons or tabs, plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..exceptions import TableError
from .arrow import pyarrow
from .table import Table, Types, UnreadableValueError, checked_names
from .text_header import check_is_text, not_utf8, read_header
from .text_quotes import check_rows
from .text_source import TextSource
from .values import NULL_SPELLINGS
from .wrong_rows import WrongRows

_SAMPLE = 1 << 20
_LONGEST_HEADER = 1 << 26
_BLOCK = 1 << 20  # pyarrow reads a few dozen of them ahead


class CsvTable(Table):
    """A text file with a header line.

    A quoted value may hold line ends. Only the columns that are asked for are decoded.
    """

    kind = "CSV"
    row_note = "counted from 1; the header is line 1"

    def __init__(self, path: Path, name: str | None = None, *, is_compressed: bool) -> None:
        super().__init__(path, name)
        self.is_compressed = is_compressed
        sample, is_all = self._sample()
        check_is_text(self.name, sample)
        header = read_header(self.name, sample, is_all=is_all)
        self.column_names = checked_names(self.name, header.names)
        self._delimiter = header.delimiter
        self._lines_before = header.lines
        self._block = max(_BLOCK, 8 * header.size)  # a row must fit into a block

    def _whole(self, columns: list[str], types: Types) -> Any:
        with self._reading() as source:
            table = pyarrow().csv.read_csv(source.file, **self._options(columns, types))
        if pyarrow().binary() in table.schema.types:  # what a guess makes of other encodings
            raise self._not_utf8() or self.error("the text is not UTF-8.")
        return table.rename_columns(columns)

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        pa = pyarrow()
        options = self._options(columns, {**dict.fromkeys(columns, pa.string()), **types})
        with self._reading() as source, pa.csv.open_csv(source.file, **options) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield batch.rename_columns(columns), source.position / self.size_bytes

    def _options(self, columns: list[str], types: Types) -> dict[str, Any]:
        """Options of the reader, which knows columns by number: their names may be empty."""
        form = pyarrow().csv
        number = {name: str(place) for place, name in enumerate(self.column_names)}
        return {
            "read_options": form.ReadOptions(
                block_size=self._block,
                skip_rows=self._lines_before,
                column_names=[str(place) for place in range(len(self.column_names))],
            ),
            "parse_options": self._parse_options(),
            "convert_options": form.ConvertOptions(
                include_columns=[number[name] for name in columns],
                column_types={number[name]: types[name] for name in columns if name in types},
                null_values=NULL_SPELLINGS,
                strings_can_be_null=True,
            ),
        }

    def _parse_options(self, **more: Any) -> Any:
        form = pyarrow().csv
        return form.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, **more)

    def _source(self) -> TextSource:
        return TextSource(self.path, self.is_compressed)

    def _sample(self) -> tuple[bytes, bool]:
        """The beginning of the text, with the whole header, and whether it is all of it."""
        with self._explained(), self._source() as source:
            sample = b""
            while len(sample) < _LONGEST_HEADER and b"\n" not in sample and b"\r" not in sample:
                if not (more := source.read(_SAMPLE)):
                    break
                sample += more
            return sample, not source.read(1)

    @contextmanager
    def _reading(self) -> Iterator[TextSource]:
        """The text, with words for what the reader says about it."""
        with self._source() as source:
            try:
                yield source
            except pyarrow().ArrowInvalid as error:
                raise self._in_words(error) from error
            if source.quotes % 2:
                self._check_rows()

    def _in_words(self, error: Exception) -> TableError:
        said = str(error)
        is_uneven = "columns, got" in said
        if (is_uneven or "UTF8" in said) and (wrong := self._not_utf8()):
            return wrong
        self._check_rows()
        if is_uneven:
            return self._uneven_rows()
        if "conversion error" in said:
            return UnreadableValueError(f"{self.name}: {said}")
        return self.error(f"the text cannot be read as a table ({said}).")

    def _not_utf8(self) -> TableError | None:
        with self._source() as source:
            return not_utf8(self.name, source.blocks())

    def _uneven_rows(self) -> TableError:
        """The error for rows with too few or too many fields."""
        found = WrongRows()

        def note(row: Any) -> str:
            found.add_row(row.number - self._lines_before, row.actual_columns)
            return "skip"

        form = pyarrow().csv
        options = self._options(self.column_names[:1], {self.column_names[0]: pyarrow().string()})
        options["parse_options"] = self._parse_options(invalid_row_handler=note)
        options["convert_options"].check_utf8 = False
        options["read_options"].use_threads = False  # with threads, rows have no numbers
        with self._source() as source:
            for _ in form.open_csv(source.file, **options):
                pass
        n = len(self.column_names)
        rows = "1 row has" if found.count == 1 else f"{found.count} rows have"
        fields = " or ".join(map(str, found.examples))
        return self.error(
            f"{rows} not {n} fields, as the header does, but {fields}: {found.places(self)}. "
            f"A value that holds the delimiter ({self._delimiter!r}) must be in quotes, and "
            "numbers need a decimal point."
        )

    def _check_rows(self) -> None:
        """Refuse a quote that never ends, which takes in all rows that follow, and long rows."""
        with self._source() as source:
            rows = check_rows(source.blocks(), self._delimiter, self._block)
        if rows.unclosed is not None:
            raise self.error(
                f'a quote (") that is opened in line {rows.unclosed} is never closed, so that all '
                "that follows is one value. Close it, or double a quote that is meant as a "
                "character."
            )
        if rows.long_row is not None:
            raise self.error(
                f"the row that begins in line {rows.long_row} is {rows.long_bytes:,} bytes long; "
                f"rows of text may have {self._block:,}. Leave out the column of long values, or "
                "save the table as Parquet."
            )
