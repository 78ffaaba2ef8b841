"""A small experiment to kill, with a command of its own: ``python -m tests.toy_experiment run``."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from zlib import crc32

import numpy as np

from experiments import experiment as registry
from experiments.claims import Claim, Verdict
from experiments.experiment import Experiment, Report

#: A file that every trial adds a line to when it ends.
LOG = "TOY_LOG"
#: ``N FILE``: only the first N trials that begin come to an end; the others wait to be killed.
HOLD = "TOY_HOLD"
#: What goes wrong in trial 3 of the second condition, if anything; see `trial`.
FAULT = "TOY_FAULT"
#: What the command says that its code is. A digest of the files would change with every edit, and
#: a run be refused that another one began.
CODE = {"numpy": np.__version__, "source": "toy"}

#: Of the experiment "toy".
SEED_OF_3 = int(np.random.SeedSequence([crc32(b"toy"), 3]).generate_state(1)[0])


def place_in(path):
    """The how-manieth caller this is: a file opened to append takes one byte at a time."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)


def wait_to_be_killed():
    """Hold the trial as long as the command lives; a worker does not outlive it."""
    command = os.getppid()
    while os.getppid() == command:
        time.sleep(0.01)
    os._exit(1)


def trial(condition, seed, quick):
    rng = np.random.default_rng([seed, int(condition["size"])])
    if HOLD in os.environ:
        allowed, path = os.environ[HOLD].split(" ", 1)
        if place_in(path) > int(allowed):
            wait_to_be_killed()
    if condition["size"] == 20 and seed == SEED_OF_3:
        fault = os.environ.get(FAULT)
        if fault == "raise":
            raise ZeroDivisionError("the toy is broken")
        if fault == "no data":
            raise OSError("Put toy.csv into the toy folder.")
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "no rows":
            return []
        if fault == "bad row":
            return [{"score": [1, 2]}]
    if LOG in os.environ:
        with open(os.environ[LOG], "a", encoding="utf-8") as log:
            log.write(f"{condition['size']} {seed}\n")
    values = rng.normal(size=3)
    return [
        {"method": "thirds", "score": values[0] / 3.0, "count": np.int64(7), "index": np.inf},
        {"method": "ünïcode, quoted", "score": np.nan, "count": True, "index": values[2] * 1e-20},
    ]


def report(results):
    from experiments import figures, tables  # only here, so that workers start soon

    table = tables.summarise(results, ["size", "method"], ["score", "index"])

    def picture():
        figure, axes = figures.panels(2)
        for place, (size, group) in enumerate(results.groupby("size")):
            axes[0, 0].plot(group["score"], label=str(size), color=figures.colour(place))
            axes[0, 1].hist(group["index"].to_numpy(float).clip(-1, 1))
        axes[0, 0].legend()
        return figure

    return Report(
        {"methods": table}, {"scores": picture}, "A toy.\n\nOf <two> & `coded` paragraphs."
    )


TOY = Experiment(
    "toy",
    "a toy",
    trials=8,
    quick_trials=2,
    conditions=lambda quick: [{"size": size, "name": f"n{size}"} for size in (10, 20, 30)],
    trial=trial,
    report=report,
    claims=[
        Claim("1", "It <runs>.", lambda results: Verdict("holds", f"{len(results)} rows.")),
        Claim("2", "It cannot say.", lambda results: None),
    ],
)
EXPERIMENT = TOY


def register():
    """Make the command know it."""
    registry.NAMES = ("toy",)
    sys.modules["experiments.toy"] = sys.modules["tests.toy_experiment"]


if __name__ == "__main__":
    # As a module of its own name, so that workers import the trial.
    from tests import toy_experiment

    toy_experiment.register()
    from experiments import command, reporting, runner

    runner.running_code = lambda: toy_experiment.CODE
    command.NAMES = reporting.NAMES = registry.NAMES
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(command.main(sys.argv[1:]))
