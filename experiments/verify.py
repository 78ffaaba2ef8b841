"""Whether committed results are those of the code at hand: some trials run again, row by row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import files, runner
from experiments.experiment import Experiment
from experiments.journal import Unit
from experiments.worker import plain

__all__ = ["LONG", "TOLERANCE", "Checked", "DifferenceError", "verify"]

#: Experiments that train networks for minutes a trial: checked only when they are named.
LONG = ("medmnist", "medmnist_search")

#: One unit of the sixth digit, at most, and what solvers leave of zero.
TOLERANCE, _NOTHING = 1e-5, 1e-12


class DifferenceError(RuntimeError):
    """Results differ from what the code at hand gives."""


@dataclass(frozen=True)
class Checked:
    """What was compared: trials of conditions, their rows, and every difference as a sentence."""

    units: int
    rows: int
    differences: Sequence[str]


def verify(
    experiment: Experiment,
    folder: Path,
    *,
    conditions: int = 2,
    trials: int = 1,
    tolerance: float = TOLERANCE,
    jobs: int = 1,
) -> Checked:
    """Run the first trials of some conditions again and compare their rows with the results.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Its results.
    conditions : int
        How many conditions: the first, the last, and others evenly between them.
    trials : int
        How many trials of each.
    tolerance : float
        Largest relative difference of numbers; by default a unit of the last of the six digits
        that results keep. Numbers next to zero are alike. Text is the same or differs.
    jobs : int
        Processes at a time.
    """
    for name, value in (("conditions", conditions), ("trials", trials), ("jobs", jobs)):
        if value < 1:
            raise ValueError(f"The number of {name} is at least 1; got {value}.")
    if not 0.0 <= tolerance < 1.0:
        raise ValueError(f"The tolerance is at least 0 and below 1; got {tolerance:g}.")
    record, head, lines = files.read(folder)
    every = [plain(condition) for condition in experiment.conditions(record.quick)]
    places = np.linspace(0, len(every) - 1, min(conditions, len(every))).round().astype(int)
    units = [Unit(every[place], trial) for place in places for trial in range(trials)]
    there = [dict(zip(head, line, strict=True)) for line in lines]
    rows, differences = 0, []
    for done in runner.all_done(experiment, units, jobs, record.quick):
        known = {name: str(value) for name, value in _known(done.unit).items()}
        committed = [row for row in there if all(row.get(n) == v for n, v in known.items())]
        now = _as_text([{**_known(done.unit), **row} for row in done.rows])
        rows += len(now)
        said = f"{experiment.name}, {done.unit}"
        if len(committed) != len(now):
            differences.append(f"{said}: {len(committed)} rows in the results, {len(now)} now.")
            continue
        for number, (old, new) in enumerate(zip(committed, now, strict=True), start=1):
            changed = _changed(old, new, tolerance)
            differences += [f"{said}, row {number}: {text}" for text in changed]
    return Checked(len(units), rows, differences)


def _known(unit: Unit) -> dict[str, str | int | float]:
    return {**unit.condition, "trial": unit.trial}


def _as_text(rows: list[dict[str, str | int | float]]) -> list[dict[str, str]]:
    """Rows as they would be written and read."""
    return list(csv.DictReader(io.StringIO(files.csv_text(rows), newline="")))


def _changed(old: dict[str, str], new: dict[str, str], tolerance: float) -> list[str]:
    """Cells that are not the same; one that is empty and one that is not there are alike."""
    found = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after and not _near(before, after, tolerance):
            found.append(f"{name} was {before or 'nothing'}, is {after or 'nothing'}.")
    return found


def _near(before: str, after: str, tolerance: float) -> bool:
    try:
        return math.isclose(float(before), float(after), rel_tol=tolerance, abs_tol=_NOTHING)
    except ValueError:
        return False
