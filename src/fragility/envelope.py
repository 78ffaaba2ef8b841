"""Bytes to keep or send: arrays and a few plain values, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Envelope"]


@dataclass(frozen=True)
class Envelope:
    """A file format: what its bytes start with, what they are called, and its version.

    After the magic bytes come the version and the length of a JSON head, the head, the arrays as
    little-endian 64-bit numbers, and the SHA-256 checksum of it all. The same content always makes
    the same bytes, and nothing is executed when they are read.
    """

    magic: bytes
    name: str
    version: int

    _fixed: ClassVar[struct.Struct] = struct.Struct("<HI")
    _digest_size: ClassVar[int] = hashlib.sha256().digest_size

    def seal(self, head: dict[str, Any], arrays: list[NDArray[Any]]) -> bytes:
        """Bytes of some plain values, and of arrays of whole numbers or floats.

        Raises
        ------
        TypeError
            If a value is not plain.
        """
        parts = [np.asarray(a, "<f8" if a.dtype.kind == "f" else "<i8") for a in arrays]
        head = {**head, "arrays": [[part.dtype.str, part.shape] for part in parts]}
        encoded = json.dumps(head, sort_keys=True).encode()
        fixed = self._fixed.pack(self.version, len(encoded))
        content = b"".join([self.magic, fixed, encoded, *(part.tobytes() for part in parts)])
        return content + hashlib.sha256(content).digest()

    def open(self, data: bytes) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """The values and arrays in some bytes; ValueError if they are foreign or damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ValueError(f"A {self.name} is read from bytes; got {type(data).__name__}.")
        content = bytes(data)
        if not content.startswith(self.magic):
            raise ValueError(f"These bytes are not a {self.name}.")
        start = len(self.magic) + self._fixed.size
        content, digest = content[: -self._digest_size], content[-self._digest_size :]
        if len(content) < start or not compare_digest(hashlib.sha256(content).digest(), digest):
            raise ValueError(f"The bytes of this {self.name} are damaged: wrong checksum.")
        version, length = self._fixed.unpack(content[len(self.magic) : start])
        if version != self.version:
            raise ValueError(
                f"This {self.name} has format {version}; this version of fragility reads format "
                f"{self.version}. Use the version of fragility that wrote it."
            )
        try:
            head = json.loads(content[start : start + length])
            return head, self._arrays(head.pop("arrays"), content[start + length :])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This {self.name} cannot be read: {error}.") from error

    @staticmethod
    def _arrays(layout: list[tuple[str, list[int]]], body: bytes) -> list[NDArray[Any]]:
        arrays, start = [], 0
        for dtype, shape in layout:
            array = np.frombuffer(body, dtype, int(np.prod(shape)), start).reshape(shape)
            start += array.nbytes
            arrays.append(array.astype(array.dtype.newbyteorder("=")))
        if start != len(body):
            raise ValueError("its parts do not add up")
        return arrays
