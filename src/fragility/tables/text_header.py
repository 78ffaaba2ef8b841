"""The header of a text file: names, what separates them, and whether this is text at all."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from ..exceptions import TableError
from .text_quotes import check_rows

_DELIMITERS = (",", ";", "\t", "|")
_ROWS_COMPARED = 5
_LONGEST_NAME = 1_000
#: Little-endian UTF-32 begins with the same two bytes as little-endian UTF-16.
_WIDE_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_SAVE = 'Save the file with the encoding UTF-8 (in a spreadsheet: "CSV UTF-8").'


@dataclass(frozen=True)
class Header:
    """Names of the columns, their delimiter, and how many lines and bytes come before the rows."""

    names: list[str]
    delimiter: str
    lines: int
    size: int


def check_is_text(file: str, sample: bytes) -> None:
    """Refuse UTF-16 and files that are not text."""
    if sample.startswith(_WIDE_ENCODINGS) or _alternates_with_zero(sample):
        raise TableError(
            f"{file}: the text is in UTF-16 or UTF-32, from byte 0 (line 1) on, not UTF-8. {_SAVE}"
        )
    control = len(sample) - len(sample.translate(None, _CONTROL))
    if control > len(sample) // 1000 or b"\0" in sample[:1000]:
        raise TableError(
            f"{file}: this is neither text nor Parquet nor Arrow. Give a CSV (also gzipped), "
            "Parquet or Arrow file."
        )


def read_header(file: str, sample: bytes, *, is_all: bool) -> Header:
    """The header of a file that begins with `sample`, which may be all of it."""
    text = sample.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="surrogateescape")
    first = "\t" if file.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    candidates = (first, *(d for d in _DELIMITERS if d != first))
    delimiter = max(candidates, key=lambda d: _fit(text, d))
    names, lines, has_rows = _first_row(text, delimiter)
    if not names:
        raise TableError(
            f"{file}: no line names the columns. The first line must do so, as in label,score."
        )
    if max(map(len, names)) > _LONGEST_NAME:
        why = "the first line must name the columns. Are the names or the line breaks missing?"
        if check_rows([sample], delimiter, len(sample)).unclosed is not None:
            why = "is a quote in the first line not closed?"
        raise TableError(
            f"{file}: a column has a name of more than {_LONGEST_NAME:,} characters "
            f"({max(names, key=len)[:30]!r}...); {why}"
        )
    if not has_rows and is_all:
        one_line = len(text) > _LONGEST_NAME and not ("\n" in text or "\r" in text)
        raise TableError(
            f"{file}: the file has a header but no rows (columns: {', '.join(names[:10])})."
            + (" It is only one line: are its line breaks missing?" if one_line else "")
        )
    before = "".join(islice(io.StringIO(text, newline=""), lines))
    size = len(before.encode("utf-8", errors="surrogateescape"))
    wrong = not_utf8(file, [sample[: size + sample.startswith(codecs.BOM_UTF8) * 3]])
    if wrong is not None:
        raise wrong
    return Header([name.strip() for name in names], delimiter, lines, size)


def not_utf8(file: str, blocks: Iterable[bytes]) -> TableError | None:
    """The error for text in another encoding; None if it is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    done, line = 0, 1
    for block in chain(blocks, [b""]):
        held = decoder.getstate()[0]
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line += (held + block)[: error.start].count(b"\n")
            return TableError(
                f"{file}: the text is not UTF-8 (perhaps Latin-1 or Windows-1252): the first wrong "
                f"byte is number {done - len(held) + error.start}, at about line {line}. {_SAVE}"
            )
        done += len(block)
        line += block.count(b"\n")
    return None


def _fit(text: str, delimiter: str) -> tuple[bool, int]:
    """How well a delimiter explains the first rows: all have as many fields, and many."""
    counts = []
    with suppress(csv.Error):  # strict: after a closing quote, only the right delimiter may come
        for row, _ in islice(_rows(text, delimiter, strict=True), _ROWS_COMPARED):
            counts.append(len(row))
    return counts[:1] > [1] and len(set(counts)) == 1, max(counts[:1], default=0)


def _first_row(text: str, delimiter: str) -> tuple[list[str], int, bool]:
    """The names, the number of lines they take, and whether a row follows."""
    rows = _rows(text, delimiter)
    try:
        names, lines = next(rows)
    except StopIteration:
        return [], 0, False
    except csv.Error:  # a value beyond the limit of the module
        return [text[: _LONGEST_NAME + 1]], 1, True
    try:
        return names, lines, next(rows, None) is not None
    except csv.Error:
        return names, lines, True


def _rows(text: str, delimiter: str, strict: bool = False) -> Iterator[tuple[list[str], int]]:
    """Rows that are not blank, and the number of lines up to the end of each."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)
    for row in reader:
        if any(field.strip() for field in row):
            yield row, reader.line_num


def _alternates_with_zero(sample: bytes) -> bool:
    start = sample[:2000]
    zeros = max(start[::2].count(0), start[1::2].count(0))
    return len(start) > 3 and zeros > 0.4 * len(start) / 2 and start.count(0) < 0.9 * len(start)
