"""Results in files: ``results.csv`` and its record, written and read."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.environment import Record
from experiments.experiment import Row
from fragility._files import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["csv_text", "load", "read", "record_of", "save"]

_RESULTS, _RECORD = "results.csv", "environment.json"


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV: columns in order of appearance, numbers so that they read back the same."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([str(row.get(name, "")) for name in columns] for row in rows)
    return text.getvalue()


def save(
    folder: Path,
    rows: Sequence[Row],
    *,
    experiment: str,
    quick: bool,
    trials: int,
    conditions: int,
    units: int,
    code: Iterable[dict[str, str]],
) -> None:
    """Write the results of a run and what made them."""
    text = csv_text(rows)
    record = Record(
        experiment, quick, trials, conditions, len(rows), list(code), _sha256(text.encode()), units
    )
    # Between the two a kill leaves a record that does not fit: `load` says so, a run mends it.
    write_whole(folder / _RESULTS, text)
    write_whole(folder / _RECORD, record.text())


def record_of(folder: Path) -> Record | None:
    """What made the results in a folder; None when it has none."""
    if not (folder / _RESULTS).is_file():
        return None
    if not (folder / _RECORD).is_file():
        raise ValueError(f"{folder} has results but no {_RECORD}. Run the experiment again.")
    return Record.read(folder / _RECORD)


def load(folder: Path) -> DataFrame:
    """The results in a folder, checked against their record."""
    from pandas import DataFrame

    _, head, lines = read(folder)
    return DataFrame(dict(zip(head, map(_column, zip(*lines, strict=True)), strict=True)))


def read(folder: Path) -> tuple[Record, list[str], list[list[str]]]:
    """The results in a folder as text: their record, the names of the columns, the lines."""
    record = record_of(folder)
    if record is None:
        raise ValueError(
            f"There are no results in {folder}: python -m experiments run {folder.name}"
        )
    content = (folder / _RESULTS).read_bytes()
    if _sha256(content) != record.results:
        raise ValueError(
            f"{folder / _RESULTS} is not what {_RECORD} beside it speaks of: it was altered, or a "
            "run was cut off while writing it. Run the experiment again, or put both files back."
        )
    head, *lines = csv.reader(io.StringIO(content.decode(), newline=""))
    return record, head, lines


def _column(cells: Sequence[str]) -> Sequence[str | int | float]:
    """Whole numbers, numbers (an empty cell is missing), or text: the first that fits all."""
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        pass
    try:
        return [float(cell or "nan") for cell in cells]
    except ValueError:
        return cells


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
