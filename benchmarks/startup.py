"""What starting costs: `fragility evaluate` on a small file against importing scikit-learn.

Run ``python benchmarks/startup.py``: processor time (user and system) of the command on 5,000 rows
of CSV, one model alone, and three with costs and groups, beside ``import sklearn.linear_model``.
All take turns, with one thread each, and the medians are told: other work on the machine then
troubles all of them alike. Every module is compiled beforehand, as it is after the first start of
an installed package; then the same where this library is compiled anew each time, which is what
``PYTHONDONTWRITEBYTECODE`` or a read-only folder do to it.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

RESULTS = Path(__file__).parent / "results" / "startup.md"
ROWS = 5_000
#: Most that one model may take, of what the import takes.
LIMIT = 0.7
IMPORT = "import sklearn.linear_model"
UNCOMPILED = ", compiled anew"
ONE = "evaluate, one model"
OPTIONS = {
    ONE: ["--score", "a"],
    "evaluate, three models, costs and groups": [
        *("--score", "a", "--score", "b", "--score", "c", "--group", "region"),
        *("--error-cost", "0,1;10,0", "--review-cost", "0.5"),
    ],
}


def write_file(path: Path) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(ROWS, 2)) @ np.array([1.5, 1.0])
    logits = np.stack([z, 1.3 * z, 0.7 * z + 0.5 * rng.normal(size=ROWS)], axis=1)
    happened = rng.random(ROWS) < 1.0 / (1.0 + np.exp(-z))
    lines = ["label,a,b,c,region"]
    for label, scores in zip(happened, 1.0 / (1.0 + np.exp(-logits)), strict=True):
        lines.append(f"{int(label)},{','.join(map(repr, scores.tolist()))},{rng.choice(4)}")
    path.write_text("\n".join(lines) + "\n")


def processor_time(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def measured(runs: int, folder: Path) -> dict[str, list[float]]:
    """Times of each command, in the order of the runs."""
    file = folder / "predictions.csv"
    write_file(file)
    evaluate = [sys.executable, "-m", "fragility", "evaluate", str(file), "--label", "label"]
    compiled = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(folder / "all")}
    compiled.pop("PYTHONDONTWRITEBYTECODE", None)
    commands = {IMPORT: ([sys.executable, "-c", IMPORT], compiled)}
    for name, options in OPTIONS.items():
        commands[name] = [*evaluate, *options], compiled
        commands[name + UNCOMPILED] = [*evaluate, *options], compiled
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, (command, environment) in commands.items():
            if name.endswith(UNCOMPILED):
                for kept in list((folder / "all").rglob("fragility")):
                    shutil.rmtree(kept)
            taken = processor_time(command, environment)
            if turn:  # the first one compiles, and finds the files on the disk
                times[name].append(taken)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=31, help="of each command [31]")
    parser.add_argument("--quick", action="store_true", help="5 runs, and nothing is written")
    given = parser.parse_args()
    runs = 5 if given.quick else given.runs
    with tempfile.TemporaryDirectory() as folder:
        times = measured(runs, Path(folder))
    base = median(times[IMPORT])
    lines = [
        "| command | median s | of the import | least s | most s |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, taken in times.items():
        middle = median(taken)
        lines.append(
            f"| {name} | {middle:.2f} | {middle / base:.2f} | {min(taken):.2f} | {max(taken):.2f} |"
        )
    share = median(times[ONE]) / base
    text = "\n\n".join(
        [
            "# What starting costs",
            f"`python benchmarks/startup.py`: processor time of {runs} runs in turns, {ROWS:,} "
            f"rows of CSV, one thread, Python {platform.python_version()}. One model alone takes "
            f"**{share:.2f}** of `{IMPORT}` (limit {LIMIT}).",
            "\n".join(lines),
        ]
    )
    print(text)
    if not given.quick:
        RESULTS.write_text(text + "\n")
    sys.exit(share > LIMIT)


if __name__ == "__main__":
    main()
