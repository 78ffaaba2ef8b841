"""Finds the quote or the row of a text file at which the reader failed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

_QUOTES = re.compile(b'"+')
_LINE_END = re.compile(rb"[\r\n]")


def check_rows(blocks: Iterable[bytes], delimiter: str, most_bytes: int) -> Rows:
    """Look for a quote that is never closed and for a row of more than `most_bytes`.

    A quote is one where a value begins: elsewhere it is a character. What is quoted may hold
    delimiters and line ends. Memory does not grow with the length of rows or values.
    """
    rows = Rows(delimiter, most_bytes)
    for place, block in enumerate(blocks):
        rows.add(block if place else block.removeprefix(codecs.BOM_UTF8))
    rows.add(b"", is_last=True)
    return rows


class Rows:
    """What is wrong with the rows of a text.

    Attributes
    ----------
    unclosed : int or None
        Line, from 1, with a quote that is opened and never closed.
    long_row, long_bytes : int or None
        Line in which the first row begins that is too long, and its length.
    """

    def __init__(self, delimiter: str, most_bytes: int) -> None:
        self.unclosed: int | None = None
        self.long_row: int | None = None
        self.long_bytes: int | None = None
        self._opening = re.compile(b'(?<=[%b\r\n])"' % re.escape(delimiter.encode()))
        self._most_bytes = most_bytes
        self._line = 1
        self._row_line, self._row_bytes = 1, 0
        self._last = b"\n"  # as if a line had ended before the first one
        self._held = b""  # quotes at the end of a block: more may follow

    def add(self, block: bytes, *, is_last: bool = False) -> None:
        """Look through the next part of the text."""
        data = self._last + self._held + block
        place = 1
        self._held = b""
        while place < len(data):
            is_inside = self.unclosed is not None
            quotes = (_QUOTES if is_inside else self._opening).search(data, place)
            self._pass(data[place : quotes.start() if quotes else len(data)])
            if quotes is None:
                break
            if is_inside and quotes.end() == len(data) and not is_last:
                self._held = quotes[0]
                break
            self._pass(quotes[0])
            place = quotes.end()
            if not is_inside:
                self.unclosed = self._line
            elif len(quotes[0]) % 2:  # two quotes stand for one that is part of the value
                self.unclosed = None
        if is_last:
            self._check_row(self._row_bytes)

    def _pass(self, data: bytes) -> None:
        """Count lines and, outside of quotes, the bytes of rows."""
        row_starts = -self._row_bytes
        if self.unclosed is None:
            for end in _LINE_END.finditer(data):
                self._check_row(end.start() - row_starts, data, row_starts)
                row_starts = end.end()
        self._row_line = self._line_of_row(data, row_starts)
        self._row_bytes = len(data) - row_starts
        self._line += self._lines(data)
        self._last = data[-1:] or self._last

    def _line_of_row(self, data: bytes, start: int) -> int:
        return self._line + self._lines(data[:start]) if start > 0 else self._row_line

    def _lines(self, data: bytes) -> int:
        """Line ends in what follows the last byte; both bytes of one may be in different blocks."""
        ends = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
        return ends - (self._last + data[:1] == b"\r\n")

    def _check_row(self, length: int, data: bytes = b"", start: int = 0) -> None:
        if length > self._most_bytes and self.long_row is None:
            self.long_row, self.long_bytes = self._line_of_row(data, start), length
