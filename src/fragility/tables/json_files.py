"""Tables in JSON: lines with one object each, plain or gzipped, or a small list of objects."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any

from ..exceptions import TableError
from .arrow import pyarrow
from .json_documents import (
    LARGEST,
    NotJsonError,
    kind_of,
    lists_of_objects,
    of_one_object,
    one_document,
    parsed,
)
from .json_paths import ABSENT, leaves, value_at
from .table import Table, Types, rows_at_once
from .text_header import check_is_text, not_utf8
from .text_source import TextSource
from .values import as_inferred, parsed_numbers

_ROWS_LOOKED_AT = 1_000
_ROWS_AT_ONCE = 1 << 15  # objects of Python take much more memory than columns of Arrow
_MOST_COLUMNS = 10_000
_SAMPLE = 1 << 16


#: Number of an object in the file, the object, and how much of the file has been read.
_Row = tuple[int, dict[str, Any], float]

_scan = json.JSONDecoder().raw_decode


class JsonTable(Table):
    """A text file with one JSON object a line, or one list of objects.

    Columns are the paths of values in the objects. A path that is not in an object is a missing
    value there. Values are read as text, as in a CSV file: numbers may be in quotes.
    """

    row_note = "counted from 1 without blank lines"

    def __init__(
        self, path: Path, name: str | None = None, *, is_compressed: bool, is_list: bool
    ) -> None:
        super().__init__(path, name)
        self.kind = "JSON" if is_list else "JSON lines"
        self.is_compressed = is_compressed
        self._is_list = is_list
        if is_list:
            self.row_note = "counted from 1"
        with self._explained():
            with self._source() as source:
                check_is_text(self.name, source.read(_SAMPLE))
            first = list(islice(self._rows(), _ROWS_LOOKED_AT))
        if not first:
            raise self.error("the list is empty; it must hold an object for each case.")
        #: Why a single row may be a document, to be said unless the columns asked for are in it.
        self._doubt: str | None = None
        if len(first) == 1 and not is_list and lists_of_objects(first[0][1]):
            self._doubt = of_one_object(first[0][1], self.name)
        found = (leaf for _, value, _ in first for leaf in leaves(value))
        self.column_names = list(islice(dict.fromkeys(found), _MOST_COLUMNS))
        #: Paths that are no leaves of the first rows, and whether they lead anywhere.
        self._looked_up: dict[str, bool] = {}

    def missing_columns(self, names: Sequence[str]) -> list[str]:
        """Those of these paths that lead nowhere in any row; the file is read to be sure."""
        known = dict.fromkeys(self.column_names, True) | self._looked_up
        sought = {name for name in names if name not in known}
        found: set[str] = set()
        with self._explained():
            for _, value, _ in self._rows() if sought else ():
                left = sought - found
                found |= {name for name in left if value_at(value, name) is not ABSENT}
                if found == sought:
                    break
        self._looked_up |= {name: name in found for name in sought}
        known |= self._looked_up
        missing = [name for name in dict.fromkeys(names) if not known[name]]
        if missing and self._doubt is not None:
            raise self.error(self._doubt)
        return missing

    def _asked(self, columns: Sequence[str] | None) -> list[str]:
        if columns is not None:
            return super()._asked(columns)
        if self._doubt is not None:
            raise self.error(self._doubt)
        found: dict[str, None] = {}
        with self._explained():
            for _, value, _ in self._rows():
                found |= dict.fromkeys(leaves(value))
                if len(found) > _MOST_COLUMNS:
                    raise self.error(
                        f"the objects have more than {_MOST_COLUMNS:,} different paths, too many "
                        "for a table; leave out what is not needed."
                    )
        return list(found)

    def _whole(self, columns: list[str], types: Types) -> Any:
        pa = pyarrow()
        batches = [batch for batch, _ in self._parts(columns, types)]
        table = pa.Table.from_batches(batches)
        for place, name in enumerate(columns):
            if name not in types:
                table = table.set_column(place, name, as_inferred(table.column(place)))
        return table

    def _parts(self, columns: list[str], types: Types) -> Iterator[tuple[Any, float]]:
        pa = pyarrow()
        step = min(rows_at_once(len(columns)), _ROWS_AT_ONCE)
        rows = self._rows()
        while part := list(islice(rows, step)):
            arrays = []
            for name in columns:
                if "." in name:
                    values = [value_at(value, name) for _, value, _ in part]
                else:
                    values = [value.get(name, ABSENT) for _, value, _ in part]
                self._check_single(part, name, values)
                arrays.append(self._array(part, name, values, types.get(name) == pa.float64()))
            yield pa.RecordBatch.from_arrays(arrays, columns), part[-1][2]

    def _check_single(self, part: list[_Row], name: str, values: list[Any]) -> None:
        """Refuse lists and objects."""
        if not {dict, list} & set(map(type, values)):
            return
        row, value = next(
            (row, value)
            for row, value in zip(part, values, strict=True)
            if isinstance(value, dict | list)
        )
        inner = next(iter(leaves(value)), None)
        such = "" if inner is None else f", as in {f'{name}.{inner}'!r}"
        raise self.error(
            f"column {name!r} holds {kind_of(value)} in {self._place(row)}, not a single value. "
            f"Name the path of a value in it{such}."
        )

    def _array(self, part: list[_Row], name: str, values: list[Any], are_numbers: bool) -> Any:
        pa = pyarrow()
        values = [None if value is ABSENT else value for value in values]
        if are_numbers and set(map(type, values)) <= {float, int, type(None)}:
            try:
                return pa.array(values, pa.float64(), from_pandas=True)  # NaN is missing
            except (pa.ArrowException, OverflowError):  # of a long integer
                pass
        texts = [_as_text(value) for value in values]
        try:
            column = pa.array(texts, pa.string())
        except UnicodeEncodeError:
            row = next(r for r, text in zip(part, texts, strict=True) if _is_broken(text))
            raise self.error(
                f"column {name!r} holds half of a character (a lone surrogate) in "
                f"{self._place(row)}; write the text again."
            ) from None
        return parsed_numbers(column) if are_numbers else column

    def _place(self, row: _Row) -> str:
        """Where an object is, in words."""
        return f"{'element' if self._is_list else 'line'} {row[0]}"

    def _source(self) -> TextSource:
        return TextSource(self.path, self.is_compressed)

    def _rows(self) -> Iterator[_Row]:
        """All objects of the file, in their order."""
        with self._source() as source:
            if self._is_list:
                yield from self._elements(source)
                return
            is_first = True
            for number, line, is_last in _lines(self._blocks(source)):
                value = _quickly(line)
                if value is None:
                    value = self._object(number, line, is_first=is_first, is_last=is_last)
                is_first = False
                yield number, value, source.position / self.size_bytes

    def _blocks(self, source: TextSource) -> Iterator[bytes]:
        """The bytes of the file; no line may be longer than a document."""
        length = 0
        for block in source.blocks():
            end = block.find(b"\n")
            length += len(block) if end < 0 else end
            if length > LARGEST:
                raise self.error(
                    f"a line is longer than {LARGEST:,} bytes; JSON lines have one object a line, "
                    "one for each case. Leave out long values, or write one line for each case."
                )
            length = length if end < 0 else len(block) - block.rfind(b"\n") - 1
            yield block

    def _object(self, number: int, line: bytes, *, is_first: bool, is_last: bool) -> dict[str, Any]:
        try:
            value = parsed(self._text(line))
        except NotJsonError as error:
            if is_first and (why := self._document()):
                raise self.error(why) from None
            cut = " It is the last line: is the file cut off?" if is_last else ""
            raise self.error(
                f"line {number} is not JSON: {error}. Every line must be one JSON object.{cut}"
            ) from None
        if not isinstance(value, dict):
            raise self.error(
                f"line {number} is {kind_of(value)}, not an object; every line must be one JSON "
                'object, as in {"label": 1, "score": 0.9}.'
            )
        return value

    def _elements(self, source: TextSource) -> Iterator[_Row]:
        """The objects of a list."""
        if (data := self._at_most(source)) is None:
            raise self.error(
                f"this is one JSON list of more than {LARGEST:,} bytes, which would have to be "
                "held in memory. Write its elements as JSON lines: "
                f"jq -c '.[]' {self.name} > lines.jsonl"
            )
        try:
            values = parsed(self._text(data))
        except NotJsonError as error:
            raise self.error(f"the list of objects is not JSON: {error}.") from None
        for number, value in enumerate(values, start=1):
            if not isinstance(value, dict):
                raise self.error(
                    f"element {number} of the list is {kind_of(value)}, not an object; give an "
                    'object for each case, as in [{"label": 1, "score": 0.9}].'
                )
            yield number, value, number / len(values)

    def _document(self) -> str | None:
        """What is wrong with a document that is not lines; None if that cannot be told."""
        with self._source() as source:
            data = self._at_most(source)
        return None if data is None else one_document(self._text(data), self.name)

    def _at_most(self, source: TextSource) -> bytes | None:
        """All bytes, None if there are too many to be held."""
        data = b""
        for block in source.blocks():
            data += block
            if len(data) > LARGEST:
                return None
        return data

    def _text(self, data: bytes) -> str:
        try:
            return data.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError as error:
            raise self._not_utf8() or self.error(f"the text is not UTF-8 ({error}).") from None

    def _not_utf8(self) -> TableError | None:
        with self._source() as source:
            return not_utf8(self.name, source.blocks())


def _quickly(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None where there is more to say than that."""
    try:
        text = line.strip(b" \t\r").decode()
        value, end = _scan(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) and isinstance(value, dict) else None


def _lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Lines that are not blank, with their numbers from 1, and whether they are not ended."""
    held: list[bytes] = []
    number = 0
    for block in blocks:
        *complete, last = block.split(b"\n")
        for line in complete:
            number += 1
            if held:
                line = b"".join((*held, line))
                held = []
            if line.removeprefix(codecs.BOM_UTF8).strip():
                yield number, line, False
        held.append(last)
    if (rest := b"".join(held)).strip():
        yield number + 1, rest, True


def _as_text(value: Any) -> str | None:
    """A value as it would be written in a CSV file."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if isinstance(value, float) and isnan(value) else repr(value)


def _is_broken(text: str | None) -> bool:
    return text is not None and any("\ud800" <= character <= "\udfff" for character in text)
