"""Runs the trials of an experiment: in parallel, seeded, and after a kill from where it was."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed, parallel_config

from experiments import files
from experiments.environment import running_code
from experiments.experiment import Condition, Experiment, Row
from experiments.journal import FILE, FORMAT, Journal, Unit
from experiments.worker import Done, plain, work
from fragility._names import shortened

__all__ = ["Outcome", "TrialError", "all_done", "run", "seed_of"]

#: All are held in memory at once, as are the processes.
MOST_UNITS, MOST_JOBS = 1_000_000, 256


class TrialError(RuntimeError):
    """A trial did not finish; what finished before it is kept."""


@dataclass(frozen=True)
class Outcome:
    """What a run did: how many units were done before it and by it, and what it warned of."""

    folder: Path
    kept: int
    ran: int
    warned: Counter[str] = field(default_factory=Counter)


def seed_of(name: str, trial: int) -> int:
    """The seed of a trial: the same for all conditions, so that they are compared in pairs."""
    return int(np.random.SeedSequence([crc32(name.encode()), trial]).generate_state(1)[0])


def run(
    experiment: Experiment,
    folder: Path,
    *,
    trials: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    restart: bool = False,
    trust_journal: bool = False,
    extend: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Run what is not yet done and write the results when all is.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    folder : Path
        Where its results go; the journal of a run that was killed is continued.
    trials : int, optional
        Trials of each condition; default: those of the experiment, fewer where it says so.
    jobs : int
        Processes at a time, each with one thread.
    quick : bool
        The small version of the experiment.
    restart : bool
        Forget the journal.
    trust_journal : bool
        Continue a journal that was begun by other code.
    extend : bool
        Keep the trials of the results that are there, if any, whatever code ran them, and run
        only what they lack.
    progress : callable
        Told the number of units done and their total, first at the start.
    """
    count = (experiment.quick_trials if quick else experiment.trials) if trials is None else trials
    for name, value in (("trials", count), ("jobs", jobs)):
        if value < 1:
            raise ValueError(f"The number of {name} is at least 1; got {value}.")
    if jobs > MOST_JOBS:
        raise ValueError(
            f"The number of jobs is at most {MOST_JOBS}, each a process of its own; got "
            f"{shortened(str(jobs), 30)}. More than one for each core gain nothing."
        )
    fewer = None if quick or trials is not None else experiment.most_trials
    units = _units(experiment, count, fewer or (lambda condition: count), quick)
    folder.mkdir(parents=True, exist_ok=True)
    identity = {"format": FORMAT, "experiment": experiment.name, "quick": quick}
    with Journal(folder / FILE, identity, running_code(), trusted=trust_journal) as journal:
        # Only now: a run that was live until here may have written results.
        _refuse_to_lose(folder, units, quick)
        kept_units, codes = _units_there(experiment, folder, units, quick) if extend else ([], [])
        journal.read(codes, restart=restart)
        journal.adopt(kept_units, codes)
        open_units = [unit for unit in units if unit.key not in journal.done]
        # All conditions once, then once more: long and short ones run side by side, and what is
        # cut off has something of each.
        open_units.sort(key=lambda unit: unit.trial)
        kept = len(units) - len(open_units)
        progress(kept, len(units))
        warned: Counter[str] = Counter()
        with closing(all_done(experiment, open_units, jobs, quick)) as finished:
            for number, done in enumerate(finished, start=1):
                journal.add(done.unit, done.rows)
                warned += done.warned
                progress(kept + number, len(units))
        rows = [
            {**unit.condition, "trial": unit.trial, **row}
            for unit in units
            for row in journal.done[unit.key]
        ]
        files.save(
            folder,
            rows,
            experiment=experiment.name,
            quick=quick,
            trials=count,
            conditions=sum(unit.trial == 0 for unit in units),
            units=len(units),
            code=journal.codes,
        )
    return Outcome(folder, kept, len(open_units), warned)


def _units(
    experiment: Experiment, trials: int, most: Callable[[Condition], int], quick: bool
) -> list[Unit]:
    """Everything to do, in the order of the results."""
    conditions = [plain(condition) for condition in experiment.conditions(quick)]
    counts = [min(trials, most(condition)) for condition in conditions]
    if sum(counts) > MOST_UNITS:
        raise ValueError(
            f"{experiment.name} has {len(conditions)} conditions, and {MOST_UNITS} units of work "
            f"fit into one run: at most {MOST_UNITS // len(conditions)} trials of each. Ask for "
            f"fewer --trials; got {shortened(str(trials), 30)}."
        )
    units = [
        Unit(condition, trial)
        for condition, count in zip(conditions, counts, strict=True)
        for trial in range(count)
    ]
    if not units:
        raise ValueError(f"{experiment.name} has no conditions.")
    if len({unit.key for unit in units}) < len(units):
        raise ValueError(f"{experiment.name} has the same condition twice.")
    return units


def _refuse_to_lose(folder: Path, units: Sequence[Unit], quick: bool) -> None:
    """Results of more work are not written over."""
    try:
        there = files.record_of(folder)
    except ValueError:  # what cannot be read is worth less than a new run
        return
    if there is None:
        return
    if quick and not there.quick:
        raise ValueError(
            f"{folder} has results of a full run, which a quick one does not replace. Give it "
            "another folder with --results."
        )
    new = {
        "trials": max(unit.trial for unit in units) + 1,
        "conditions": sum(unit.trial == 0 for unit in units),
        "units": len(units),
    }
    for name, number in new.items():
        if quick == there.quick and number < getattr(there, name):
            raise ValueError(
                f"{folder} has results of {getattr(there, name)} {name}, which {number} do not "
                "replace. Give this run another folder with --results."
            )


def _units_there(
    experiment: Experiment, folder: Path, units: Sequence[Unit], quick: bool
) -> tuple[list[tuple[Unit, list[Row]]], list[dict[str, str]]]:
    """Units with rows in the results of a folder, and the codes that ran them."""
    if files.record_of(folder) is None:
        return [], []
    record, head, lines = files.read(folder)
    if (record.experiment, record.quick) != (experiment.name, quick):
        raise ValueError(
            f"{folder} has results of {'a quick run of ' * record.quick}{record.experiment}, which "
            "this run cannot extend. Give it another folder with --results."
        )
    # Cells stay as they are written: what is kept is written again letter by letter.
    names = [*dict.fromkeys(name for unit in units for name in unit.condition), "trial"]
    rows_of: dict[tuple[str, ...], tuple[Unit, list[Row]]] = {}
    for unit in units:
        values = {**unit.condition, "trial": unit.trial}
        rows_of[tuple(str(values.get(name, "")) for name in names)] = unit, []
    if len(rows_of) < len(units):
        raise ValueError(
            f"{experiment.name} has conditions that are the same as text: their results cannot be "
            "told apart, and not be extended."
        )
    for line in lines:
        row: Row = dict(zip(head, line, strict=True))
        key = tuple(str(row.pop(name, "")) for name in names)
        if key not in rows_of:
            told = ", ".join(f"{name} = {value}" for name, value in zip(names, key, strict=True))
            raise ValueError(
                f"{folder} has results that are not asked for now ({told}), and would lose them. "
                "Ask for these, too, or give this run another folder with --results."
            )
        rows_of[key][1].append(row)
    there = [(unit, rows) for unit, rows in rows_of.values() if rows]
    if len(there) != (record.units or record.trials * record.conditions):
        raise ValueError(
            f"{folder} has results of other conditions, which fall together as {', '.join(names)}. "
            "Give this run another folder with --results."
        )
    return there, list(record.code)


def all_done(
    experiment: Experiment, units: Sequence[Unit], jobs: int, quick: bool
) -> Generator[Done, None, None]:
    """Finished units, as they come."""
    if not units:
        return
    tasks = (
        delayed(work)(experiment.trial, unit, seed_of(experiment.name, unit.trial), quick)
        for unit in units
    )
    processes = min(jobs, len(units))
    try:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            # One unit a task: what is finished is on the disk at once.
            pool = Parallel(n_jobs=processes, return_as="generator_unordered", batch_size=1)
            finished = pool(tasks)
        try:
            yield from map(partial(_succeeded, experiment.name), finished)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of trials in hand when another one failed
                finished.close()
    except BrokenProcessPool as error:
        raise TrialError(
            f"A worker of {experiment.name} died, killed by the system, perhaps for lack of memory "
            "(then use fewer --jobs). The trials that finished are kept: run the same command "
            f"again to continue. ({' '.join(str(error).split())})"
        ) from error


def _succeeded(name: str, done: Done) -> Done:
    if done.failure:
        raise TrialError(
            f"{name}, {done.unit} failed:\n{done.failure}\nThe trials that finished are kept. Mend "
            "the cause and run again."
        )
    return done
