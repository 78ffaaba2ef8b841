"""The process around a command: Ctrl-C, and streams that are closed or full.

Only the standard library is imported, so that all of this is in place before anything slow begins.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from . import INTERRUPTED

_interrupted = False
_output: _LossyWriter | None = None


class _LossyWriter(io.RawIOBase):
    """Writes to another raw stream and keeps its first error instead of raising it.

    A verdict must not depend on whether somebody could read it.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream = stream
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.stream.fileno())

    def isatty(self) -> bool:
        return bool(self.stream.isatty())

    def write(self, data: Any) -> int:
        while self.error is None:
            try:
                written = self.stream.write(data)
            except OSError as error:
                self.error = error
            else:
                if written is not None:
                    return int(written)
                select.select([], [self.stream], [])  # a pipe that does not block was full
        return len(data)


def open_streams() -> None:
    """Make the three standard streams usable, whatever the process was given.

    A closed one leads nowhere: otherwise the next file that is opened would take its place, and
    messages would be written into that file.
    """
    global _output
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    writers = []
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            raw, encoding, errors = io.FileIO(descriptor, "w", closefd=False), "utf-8", None
        else:
            raw = getattr(stream.buffer, "raw", stream.buffer)
            encoding, errors = stream.encoding, stream.errors
        writer = _LossyWriter(raw)
        text = io.TextIOWrapper(io.BufferedWriter(writer), encoding, errors, line_buffering=True)
        setattr(sys, name, text)
        writers.append(writer)
    _output = writers[0]


def lost_output() -> OSError | None:
    """Why standard output could not be written; None if it was, or if its reader went away."""
    sys.stdout.flush()
    error = None if _output is None else _output.error
    return None if isinstance(error, BrokenPipeError) else error


def use_one_thread() -> None:
    """Let linear algebra have one thread, unless the user has said how many.

    The matrices of reports are a few columns wide: their threads wait for each other, and on a busy
    machine a report takes twice as long with them. NumPy reads this when it is imported.
    """
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")


def set_interrupt(kind: str) -> None:
    """Set what Ctrl-C does from now on.

    `"exit"` ends the process at once: a module that is being imported may turn the exception into
    another one. `"raise"` raises `KeyboardInterrupt`. `"ignore"` does nothing: a verdict that has
    been reached is not taken back. Where the parent chose to ignore Ctrl-C, that stays.
    """
    handlers: dict[str, Any] = {"exit": _exit, "raise": _raise, "ignore": signal.SIG_IGN}
    now = signal.getsignal(signal.SIGINT)
    if now in (signal.default_int_handler, *handlers.values()) and now is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handlers[kind])


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed, also where another library turned it into an error of its own."""
    return _interrupted


def _exit(*_: Any) -> None:
    with suppress(OSError):
        os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def _raise(number: int, frame: Any) -> None:
    global _interrupted
    _interrupted = True
    signal.default_int_handler(number, frame)
