"""What is already done, in a file that survives being killed.

A line for each finished unit of work, each with its own checksum, only ever appended to. The
first line says what the units belong to. A line that was being written when the process died
has no end: it is dropped, and its unit is done again. Any other damage is an error, since
nobody could say what else is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from experiments.experiment import Condition, Row

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl

__all__ = ["FORMAT", "Journal", "JournalError", "Unit"]

#: What differs between two formats cannot be read by the other.
FORMAT = 1
_CHECK = "check"
#: A locked byte cannot be read on Windows: one behind every journal is locked.
_BEYOND = 2**30


class JournalError(ValueError):
    """A journal that cannot be continued; the message says what to do."""


@dataclass(frozen=True)
class Unit:
    """One piece of work: a condition and the number of a trial."""

    condition: Condition
    trial: int

    @property
    def key(self) -> str:
        """The unit as text, the same for equal units."""
        return json.dumps([dict(self.condition), self.trial], sort_keys=True)

    def __str__(self) -> str:
        named = ", ".join(f"{name} = {value}" for name, value in self.condition.items())
        return f"trial {self.trial}" + (f" of {named}" if named else "")


@dataclass
class Journal:
    """The finished units of one run, in a file.

    Entering it makes the file its own: no other run can continue or forget it until this one
    ends, however it ends. `read` then takes what is done.

    Parameters
    ----------
    path : Path
        The file; it is made if it is not there.
    identity : dict
        What the units belong to. A journal with another identity is refused.
    code : dict
        The code and the versions that make the rows. A journal with others is refused, unless
        it is `trusted`.
    trusted : bool
        Go on with a journal that other code began.
    """

    path: Path
    identity: dict[str, Any]
    code: dict[str, Any]
    trusted: bool = False
    done: dict[str, list[Row]] = field(default_factory=dict)
    #: Every code that had a part in it, in order.
    codes: list[dict[str, Any]] = field(default_factory=list)
    #: The last of them in the file; none in a new one.
    _signed: dict[str, Any] | None = None
    _file: int = -1

    def __enter__(self) -> Journal:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._lock()
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def read(self, known: Sequence[dict[str, Any]] = (), *, restart: bool = False) -> None:
        """Take the units that are done, or forget them.

        Parameters
        ----------
        known : sequence of dict
            Other codes that may have a part in it.
        restart : bool
            Forget everything instead.
        """
        content = b"" if restart else self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < os.fstat(self._file).st_size:
            os.ftruncate(self._file, whole)
        for number, line in enumerate(content[:whole].split(b"\n")[:-1], start=1):
            self._take(number, self._checked(number, line), known)

    def add(self, unit: Unit, rows: Sequence[Row]) -> None:
        """A unit is finished; when this returns it is on the disk."""
        if unit.key in self.done:
            raise JournalError(f"{unit} is already in {self.path}.")
        self._sign(self.code)  # only now has this code a part in it
        self._add(unit, rows)

    def adopt(
        self, units: Sequence[tuple[Unit, Sequence[Row]]], codes: Sequence[dict[str, Any]]
    ) -> None:
        """Units of results whose own journal may be gone, and the codes that ran them."""
        new = []
        for unit, rows in units:
            if unit.key not in self.done:
                new.append((unit, rows))
            elif _text(self.done[unit.key], rows) != _text(rows, rows):
                raise JournalError(
                    f"{self.path} has other figures of {unit} than the results beside it, which "
                    "would be lost. Finish that run without --extend, or forget it with --restart."
                )
        if new:
            for code in codes:
                self._sign(code)
        for unit, rows in new:
            self._add(unit, rows)

    def _sign(self, code: dict[str, Any]) -> None:
        if self._signed != code:
            self._append({"format": FORMAT, "identity": self.identity, "code": code})
            self._seen(code)

    def _add(self, unit: Unit, rows: Sequence[Row]) -> None:
        kept = [dict(row) for row in rows]
        self._append({"unit": unit.key, "rows": kept})
        self.done[unit.key] = kept

    def _seen(self, code: dict[str, Any]) -> None:
        self._signed = code
        if code not in self.codes:
            self.codes.append(code)

    def _append(self, content: dict[str, Any]) -> None:
        line = (json.dumps({**content, _CHECK: _check(content)}) + "\n").encode()
        start = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):  # a full disk must not leave half a line before a whole one
                os.ftruncate(self._file, start)
            raise

    def _lock(self) -> None:
        """Held by the open file, so that the system takes it back from a process that is killed."""
        try:
            if sys.platform == "win32":  # pragma: no cover
                os.lseek(self._file, _BEYOND, os.SEEK_SET)
                msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise JournalError(
                f"Another run writes to {self.path}. Wait for it or stop it, or give this one "
                "another folder with --results."
            ) from None
        except OSError as error:
            raise JournalError(
                f"{self.path} cannot be locked against another run ({error.strerror}). Give this "
                "one a folder on another disk with --results."
            ) from None

    def _checked(self, number: int, line: bytes) -> dict[str, Any]:
        with suppress(ValueError, TypeError, AttributeError, KeyError, RecursionError):
            content: dict[str, Any] = json.loads(line)
            if content.pop(_CHECK) == _check(content) and _is_line(content):
                return content
        raise JournalError(
            f"Line {number} of {self.path} was altered: its checksum is wrong. Put the file back "
            "as it was, or begin again with --restart."
        )

    def _take(self, number: int, content: dict[str, Any], known: Sequence[dict[str, Any]]) -> None:
        if "unit" in content:
            if not self.codes:
                raise JournalError(
                    f"{self.path} has lost its first line. Put it back, or use --restart."
                )
            if content["unit"] in self.done:
                raise JournalError(
                    f"Line {number} of {self.path} repeats a unit that is done. Put the file "
                    "back as it was, or begin again with --restart."
                )
            self.done[content["unit"]] = content["rows"]
            return
        if content["format"] != FORMAT:
            raise JournalError(
                f"{self.path} has format {content['format']}, this version reads {FORMAT}. Finish "
                "it with the version that began it, or begin again with --restart."
            )
        if content["identity"] != self.identity:
            raise JournalError(
                f"{self.path} is of another run: {_differing(content['identity'], self.identity)}. "
                "Give this one another folder with --results, or begin again with --restart."
            )
        if content["code"] not in (self.code, *known) and not self.trusted:
            raise JournalError(
                f"{self.path} was begun by other code: {_differing(content['code'], self.code)}. "
                "Go back to that code to finish it, begin again with --restart, or take its "
                "finished trials as they are with --trust-journal."
            )
        self._seen(content["code"])


def _text(rows: Sequence[Row], like: Sequence[Row]) -> list[list[str]]:
    """Rows as they are written in the columns of others."""
    names = dict.fromkeys(name for row in like for name in row)
    return [[str(row.get(name, "")) for name in names] for row in rows]


def _is_line(content: dict[str, Any]) -> bool:
    """Whether these are the entries of a unit, or of what units belong to."""
    if "unit" in content:
        rows = content["rows"]
        return isinstance(content["unit"], str) and all(isinstance(row, dict) for row in rows)
    parts = (content["identity"], content["code"])
    return "format" in content and all(isinstance(part, dict) for part in parts)


def _check(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _differing(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Which entries differ, such as ``numpy was 2.0.1 and is 2.4.6``."""
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return ", ".join(f"{name} was {there.get(name)} and is {here.get(name)}" for name in names)
