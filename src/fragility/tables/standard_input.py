"""Standard input as a file: a table is read more than once, a pipe only once."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..exceptions import TableError

#: What messages call it.
STANDARD_INPUT = "standard input"


@contextmanager
def spooled() -> Iterator[tuple[Path, Callable[[object], None]]]:
    """Temporary file with all of standard input, and a function to keep it for longer.

    The file is removed at the end of the block, or, if the function was called with an object,
    when nothing uses that object any more.
    """
    stream = sys.stdin
    if stream is None or stream.closed:
        raise TableError(f"{STANDARD_INPUT} is closed; send a table to it, or name a file.")
    if stream.isatty():
        raise TableError(
            f"{STANDARD_INPUT} is a terminal, not a table. Send one to it, as in "
            "`zcat predictions.csv.gz | fragility evaluate - ...`, or name a file."
        )
    descriptor, name = tempfile.mkstemp(prefix="fragility-")
    owner: list[object] = []
    try:
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(stream.buffer, copy, 1 << 20)
        yield Path(name), owner.append
    finally:
        if owner:
            weakref.finalize(owner.pop(), _remove, name)
        else:
            _remove(name)


def _remove(name: str) -> None:
    with suppress(OSError):
        os.remove(name)
