"""What is already done, in a database that survives being killed.

A row for each finished unit of work, each with its own checksum, and one for each code that had a
part in it. SQLite writes a unit in full or not at all: one that was being written when the process
died is done again. Any other damage is an error, since nobody could say what else is wrong.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from experiments.experiment import Condition, Row

__all__ = ["FILE", "FORMAT", "Journal", "JournalError", "Unit"]

#: Name of the file in the folder of the results.
FILE = "journal.sqlite"
#: What differs between two formats cannot be read by the other.
FORMAT = 2
_TABLES = (
    "CREATE TABLE IF NOT EXISTS signatures (signature TEXT PRIMARY KEY, checksum TEXT)",
    "CREATE TABLE IF NOT EXISTS units (unit TEXT PRIMARY KEY, rows TEXT, checksum TEXT)",
)


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

    def __enter__(self) -> Journal:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def read(self, known: Sequence[dict[str, Any]] = (), *, restart: bool = False) -> None:
        """Take the units that are done, or forget them.

        Parameters
        ----------
        known : sequence of dict
            Other codes that may have a part in it.
        restart : bool
            Forget everything instead.
        """
        if restart:
            self.path.write_bytes(b"")  # of one that is no database, too
            self._database.close()
            self._open()
            return
        try:
            (sound,) = self._database.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                raise sqlite3.DatabaseError(sound)
            for (signature,) in self._rows("signatures"):
                self._check_signature(json.loads(signature), known)
            for key, rows in self._rows("units"):
                self.done[key] = json.loads(rows)
            if self.done and not self.codes:
                raise sqlite3.DatabaseError("no code has a part in it")
        except sqlite3.DatabaseError as error:
            raise JournalError(
                f"{self.path} was altered ({error}). Put the file back as it was, or begin again "
                "with --restart."
            ) from None

    def _rows(self, table: str) -> Iterator[list[str]]:
        """Rows of a table in the order they were written, their checksums left out."""
        if not self._database.execute("SELECT 1 FROM sqlite_master").fetchall():
            return  # nothing was finished yet
        for *texts, checksum in self._database.execute(f"SELECT * FROM {table} ORDER BY rowid"):
            if _checksum(*texts) != checksum:
                raise sqlite3.DatabaseError(f"the checksum of {str(texts[0])[:100]!r} is wrong")
            yield texts

    def add(self, unit: Unit, rows: Sequence[Row]) -> None:
        """A unit is finished; when this returns it is on the disk."""
        self._write([(unit, rows)], [self.code])  # only now has this code a part in it

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
            self._write(new, codes)

    def _write(
        self, units: Sequence[tuple[Unit, Sequence[Row]]], codes: Sequence[dict[str, Any]]
    ) -> None:
        """Units and the codes that ran them: all of them are in the file, or none."""
        new = [code for code in codes if code not in self.codes]
        finished = {unit.key: [dict(row) for row in rows] for unit, rows in units}
        try:
            for table in _TABLES:
                self._database.execute(table)
            with self._database:
                for code in new:
                    signature = {"format": FORMAT, "identity": self.identity, "code": code}
                    self._insert("signatures", json.dumps(signature))
                for key, rows in finished.items():
                    self._insert("units", key, json.dumps(rows))
        except sqlite3.Error as error:
            raise OSError(
                f"{self.path} could not be written ({error}); what was finished before is in it."
            ) from error
        self.done |= finished
        self.codes += new

    def _insert(self, table: str, *texts: str) -> None:
        values = (*texts, _checksum(*texts))
        places = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {table} VALUES ({places})", values)

    def _open(self) -> None:
        """Open the file and lock it; the system takes the lock back from a killed process."""
        self._database = sqlite3.connect(self.path, timeout=0.0)
        try:
            for command in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "COMMIT"):
                self._database.execute(command)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorname in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
                return  # `read` says so, unless it is asked to forget the file
            self._database.close()
            if error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise JournalError(
                    f"Another run writes to {self.path}. Wait for it or stop it, or give this one "
                    "another folder with --results."
                ) from None
            raise JournalError(
                f"{self.path} cannot be locked against another run ({error}). Give this one a "
                "folder on another disk with --results."
            ) from None

    def _check_signature(self, signature: dict[str, Any], known: Sequence[dict[str, Any]]) -> None:
        """Refuse units of another run or code; take a code that had a part in them."""
        if signature["format"] != FORMAT:
            raise JournalError(
                f"{self.path} has format {signature['format']}, this version reads {FORMAT}. "
                "Finish it with the version that began it, or begin again with --restart."
            )
        if signature["identity"] != self.identity:
            raise JournalError(
                f"{self.path} is of another run: "
                f"{_differing(signature['identity'], self.identity)}. "
                "Give this one another folder with --results, or begin again with --restart."
            )
        if signature["code"] not in (self.code, *known) and not self.trusted:
            raise JournalError(
                f"{self.path} was begun by other code: {_differing(signature['code'], self.code)}. "
                "Go back to that code to finish it, begin again with --restart, or take its "
                "finished trials as they are with --trust-journal."
            )
        self.codes.append(signature["code"])


def _text(rows: Sequence[Row], like: Sequence[Row]) -> list[list[str]]:
    """Rows as they are written in the columns of others."""
    names = dict.fromkeys(name for row in like for name in row)
    return [[str(row.get(name, "")) for name in names] for row in rows]


def _checksum(*texts: str) -> str:
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _differing(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Which entries differ, such as ``numpy was 2.0.1 and is 2.4.6``."""
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return ", ".join(f"{name} was {there.get(name)} and is {here.get(name)}" for name in names)
