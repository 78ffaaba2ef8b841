"""Files of NumPy arrays (.npz) with a header in JSON: written whole, read strictly, no pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import write_whole
from ._parameters import require
from ._strict_json import strict_json

Arrays = dict[str, NDArray[Any]]
_FORMAT = 1
#: What reading a damaged file may raise.
_DAMAGE = (
    ValueError, LookupError, TypeError, AttributeError, EOFError, MemoryError, ArithmeticError,
    RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write_arrays(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write arrays, and a header that says what they are, to a file."""
    text = json.dumps({"kind": kind, "format": _FORMAT, **header})
    buffer = BytesIO()
    np.savez(buffer, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    write_whole(path, buffer.getvalue())


@contextmanager
def reading_arrays(
    path: str | os.PathLike[str], kind: str
) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Give the header and the arrays of a file; whatever fails within becomes one sentence.

    Raises
    ------
    ValueError
        If the file is of another kind or damaged.
    """
    content = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            # Compressed arrays may ask for a thousand times the memory of their file.
            stored = all(member.compress_type == zipfile.ZIP_STORED for member in archive.filelist)
            require(stored, "it holds compressed arrays")
        with np.load(BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
        header = strict_json(arrays.pop("header").tobytes())
        described = header.pop("kind"), header.pop("format")
        require(described == (kind, _FORMAT), f"its kind and format are {described}")
        yield header, arrays
    except _DAMAGE as error:
        message = f"{path} is not a {kind} that this version saved, or it is damaged: {error}."
        raise ValueError(message) from error
