"""Bytes to keep or send: arrays and a few plain values, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from math import prod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._names import shown
from ._parameters import require

Content = TypeVar("Content")

_MOST_AXES, _LONGEST_AXIS = 4, 1 << 31


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
    #: Earlier versions that are still read.
    earlier: tuple[int, ...] = ()

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
        encoded = _encoded(head)
        fixed = self._fixed.pack(self.version, len(encoded))
        content = b"".join([self.magic, fixed, encoded, *(part.tobytes() for part in parts)])
        return content + hashlib.sha256(content).digest()

    def open(
        self, data: bytes, build: Callable[[dict[str, Any], list[NDArray[Any]]], Content]
    ) -> Content:
        """What `build` makes of the values and arrays in some bytes.

        Raises
        ------
        ValueError
            If the bytes are foreign or damaged, or if `build` refuses them: it says what is wrong
            in a sentence that continues "This ... cannot be read: ".
        """
        given = type(data).__name__
        is_bytes = isinstance(data, (bytes, bytearray, memoryview))
        require(is_bytes, f"A {self.name} is read from bytes; got {given}.")
        content = bytes(data)
        require(content.startswith(self.magic), f"These bytes are not a {self.name}.")
        start = len(self.magic) + self._fixed.size
        content, digest = content[: -self._digest_size], content[-self._digest_size :]
        if len(content) < start or not compare_digest(hashlib.sha256(content).digest(), digest):
            raise ValueError(f"The bytes of this {self.name} are damaged: wrong checksum.")
        version, length = self._fixed.unpack(content[len(self.magic) : start])
        if version not in (self.version, *self.earlier):
            known = " and ".join(map(str, sorted((self.version, *self.earlier))))
            raise ValueError(
                f"This {self.name} has format {version}; this version of fragility reads format "
                f"{known}. Use the version of fragility that wrote it."
            )
        try:
            require(start + length <= len(content), "its head is longer than the whole.")
            head = _plain_values(content[start : start + length])
            return build(head, _arrays(head.pop("arrays", None), content[start + length :]))
        except ValueError as error:
            raise ValueError(f"This {self.name} cannot be read: {error}") from error


def _plain_values(encoded: bytes) -> dict[str, Any]:
    """What a head says."""
    try:
        head = json.loads(encoded)
    except RecursionError:
        raise ValueError("its head is nested too deeply.") from None
    except ValueError as error:  # of JSON, UTF-8, or an integer of thousands of digits
        raise ValueError(f"its head is not JSON ({error}).") from None
    # Another way to write the same may hide something: a key twice, or text between the lines.
    same = isinstance(head, dict) and _encoded(head) == encoded
    require(same, "its head is not written as this library writes it.")
    return dict(head)


def _encoded(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True).encode()


def _arrays(layout: Any, body: bytes) -> list[NDArray[Any]]:
    """Arrays of a body; the layout is checked against its length before any is made."""
    require(isinstance(layout, list), "its head has no list of arrays.")
    sizes = [_n_bytes(part) for part in layout]
    require(sum(sizes) == len(body), "its parts do not add up.")
    arrays, start = [], 0
    for (dtype, shape), size in zip(layout, sizes, strict=True):
        array = np.frombuffer(body[start : start + size], dtype).reshape(shape)
        arrays.append(array.astype(array.dtype.newbyteorder("=")))
        start += size
    return arrays


def _n_bytes(part: Any) -> int:
    """Length of an array that a layout says: its type and its shape."""
    match part:
        # Of a JSON number, its type says whether it is whole; true and false are not.
        case ["<f8" | "<i8", [*shape]] if len(shape) <= _MOST_AXES and all(
            type(n) is int and 0 <= n <= _LONGEST_AXIS for n in shape
        ):
            return 8 * int(prod(shape))
    raise ValueError(f"its head describes an array as {shown(part)}.")
