"""The bytes of text files, a part at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .arrow import pyarrow

_BLOCK = 1 << 20


class TextSource(io.RawIOBase):
    """The bytes of a text file as they are read, decompressed if it is gzipped.

    Attributes
    ----------
    position : int
        Bytes of the file (compressed or not) that have been read.
    quotes : int
        Quotes (") among what has been read.
    """

    def __init__(self, path: Path, is_compressed: bool) -> None:
        pa = pyarrow()
        self._raw = pa.OSFile(os.fsencode(path))
        self._stream = pa.CompressedInputStream(self._raw, "gzip") if is_compressed else self._raw
        self.position = 0
        self.quotes = 0

    @property
    def file(self) -> Any:
        """The same for pyarrow."""
        return pyarrow().PythonFile(self, mode="r")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._stream.read(None if size < 0 else size)
        self.position = self._raw.tell()
        self.quotes += data.count(b'"')
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def blocks(self) -> Iterator[bytes]:
        """All that is left, a part at a time."""
        while block := self.read(_BLOCK):
            yield block

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()
