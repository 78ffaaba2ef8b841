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

#: A file that every trial adds a line to when it ends, and how long one takes.
LOG, PAUSE = "TOY_LOG", "TOY_PAUSE"
#: What goes wrong in trial 3 of the second condition, if anything; see `trial`.
FAULT = "TOY_FAULT"


#: Of the experiment "toy".
SEED_OF_3 = int(np.random.SeedSequence([crc32(b"toy"), 3]).generate_state(1)[0])


def trial(condition, seed, quick):
    rng = np.random.default_rng([seed, int(condition["size"])])
    time.sleep(float(os.environ.get(PAUSE, "0")) * rng.random())
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
    from experiments import command, reporting

    command.NAMES = reporting.NAMES = registry.NAMES
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(command.main(sys.argv[1:]))
