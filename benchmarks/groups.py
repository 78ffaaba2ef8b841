"""Simultaneous intervals of 20 groups of a report, and what 100 groups cost, measured.

Run ``python benchmarks/groups.py``. Every sample has 20 groups of which the figures are known; a
row counts the samples in which the intervals of one figure, nominally 95 % together, hold in all
20. What policies do is held to what their thresholds do in the population; these come from expected
costs, so that those of the folds are nearly the same. Then time and memory of a report on a file of
10 million rows, without groups and with 100; as in an installed package, bytecode is cached, by a
run that is not counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import special

import fragility
from fragility import Policy, Report

RESULTS = Path(__file__).parent / "results" / "groups.md"
COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}
#: Reviews are so cheap that hardly any case is decided alone.
CHEAP_REVIEWS = COSTS | {"review_cost": 0.02}
AT_POLICY = ("alone", "error_rate", "error_share", "cost")
#: Kinds of groups: slope and intercept of the logit, and how bold the scores are.
KINDS = ((2.0, -0.8, 1.0), (1.5, 0.0, 1.0), (2.5, -1.5, 2.0), (1.0, 0.3, 1.5))
N_GROUPS, LARGE = 20, 400_000
ROWS = 10_000_000
#: Threads of linear algebra that wait for each other count as CPU time.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: Keeps Python from storing the bytecode that an installed package has.
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def drawn(rng: np.random.Generator, kind: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of a group."""
    slope, intercept, bold = KINDS[kind]
    logit = slope * rng.normal(size=n) + intercept
    return (rng.random(n) < special.expit(logit)).astype(np.int64), special.expit(bold * logit)


class Truth:
    """Figures of each kind of groups, from a sample so large that its error does not matter."""

    def __init__(self) -> None:
        rng = np.random.default_rng(2**32)
        self.cases = [drawn(rng, kind, LARGE) for kind in range(len(KINDS))]
        self.figures = []
        for y, p in self.cases:
            found = Report.from_predictions(y, p, calibrate=False, n_worst=0).models[0].raw.figures
            values = {name: figure.value for name, figure in found.items()}
            self.figures.append({**values, "base_rate": float(y.mean())})

    def at_policy(self, kind: int, policy: Policy, costs: dict[str, Any]) -> dict[str, float]:
        """What the thresholds of a policy do."""
        y, p = self.cases[kind]
        low, high = p < policy.lower, p >= policy.upper
        alone, errors = low | high, (low & (y == 1)) | (high & (y == 0))
        matrix = costs["error_cost"]
        cost = np.where(low & (y == 1), matrix[1][0], 0.0) + np.where(
            high & (y == 0), matrix[0][1], 0.0
        )
        cost += np.where(alone, 0.0, costs["review_cost"])
        return {
            "alone": float(alone.mean()),
            "error_rate": float(errors.sum() / max(alone.sum(), 1)),
            "error_share": float(errors.mean()),
            "cost": float(cost.mean()),
        }


def covered(truth: Truth, sizes: np.ndarray, costs: dict[str, Any], seed: int) -> dict[str, bool]:
    """Whether the intervals of each figure hold in all groups."""
    rng = np.random.default_rng(seed)
    parts = [drawn(rng, group % len(KINDS), n) for group, n in enumerate(sizes)]
    y, p = (np.concatenate(part) for part in zip(*parts, strict=True))
    groups = np.repeat([f"g{group:02d}" for group in range(N_GROUPS)], sizes)
    report = Report.from_predictions(
        y,
        p,
        groups=groups,
        costs=costs,
        policy={"rule": "expected_cost"},
        calibrate=False,
        n_worst=0,
        random_state=seed % 1000,
    )
    policy = report.models[0].policy
    at_policy = [truth.at_policy(kind, policy, costs) for kind in range(len(KINDS))]
    held: dict[str, bool] = {}
    for part in report.groups:
        kind = int(part.group[1:]) % len(KINDS)
        expected = truth.figures[kind] | at_policy[kind]
        found = {**part.figures, "base_rate": part.base_rate, **vars(part.policy)}
        for name, figure in found.items():
            interval = figure.interval
            inside = interval is None or interval.low <= expected[name] <= interval.high
            held[name] = held.get(name, True) and inside
    return held


def coverage(repetitions: int, jobs: int) -> list[str]:
    """A row for each size of groups and figure."""
    truth = Truth()
    lines = ["| cases of a group | figure | all 20 intervals hold |", "|---:|---|---:|"]
    uneven = np.geomspace(80, 1200, N_GROUPS).astype(np.int64)
    for label, sizes, costs in (
        ("150", np.full(N_GROUPS, 150), COSTS),
        ("500", np.full(N_GROUPS, 500), COSTS),
        ("80 to 1,200", uneven, COSTS),
        ("80 to 1,200, cheap reviews", uneven, CHEAP_REVIEWS),
    ):
        seeds = np.random.SeedSequence([7, int(sizes.sum())]).generate_state(repetitions)
        found = Parallel(n_jobs=jobs)(
            delayed(covered)(truth, sizes, costs, int(seed)) for seed in seeds.tolist()
        )
        # Costs change nothing but what policies do.
        for name in found[0] if costs is COSTS else AT_POLICY:
            share = np.mean([part[name] for part in found])
            lines.append(f"| {label} | {name} | {share:.3f} |")
            print(lines[-1], flush=True)
    return lines


def write_rows(path: Path, rows: int) -> None:
    """Predictions of three models, and a column of 100 groups."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(5)
    logit = 2.0 * rng.normal(size=rows)
    columns = {"y": (rng.random(rows) < special.expit(logit)).astype(np.int8)}
    for place, bold in enumerate((1.0, 1.6, 0.7)):
        noisy = bold * logit + 0.3 * rng.normal(size=rows)
        columns[f"p{place}"] = np.round(special.expit(noisy), 7)
    columns["site"] = rng.integers(0, 100, rows).astype(np.int16)
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def measured(command: list[str], bytecode: Path) -> tuple[float, float]:
    """CPU seconds and MiB of a process, whose bytecode is stored in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, *command],
        check=True,
        capture_output=True,
        text=True,
        env=kept | ONE_THREAD | {"PYTHONPYCACHEPREFIX": str(bytecode)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(told.stdout) / 1024.0


def large_files(rows: int, runs: int) -> list[str]:
    """A row for each kind of file and number of models."""
    lines = [
        "| file | models | without groups, s | with 100 groups, s | ratio | MiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = Path(folder) / f"rows.{kind}"
            write_rows(path, rows)
            for n_models in (1, 3):
                scores = [part for k in range(n_models) for part in ("--score", f"p{k}")]
                command = [
                    *(sys.executable, "-m", "fragility", "evaluate", str(path), "--label", "y"),
                    *(*scores, "--error-cost", "0,1;5,0", "--review-cost", "0.3"),
                ]
                times: dict[bool, list[float]] = {False: [], True: []}
                largest, bytecode = 0.0, Path(folder) / "bytecode"
                for run in range(1 + runs):
                    for grouped in times:
                        more = ["--group", "site"] if grouped else []
                        seconds, memory = measured([*command, *more], bytecode)
                        if run == 0:  # which compiled what an installed package has compiled
                            continue
                        times[grouped].append(seconds)
                        largest = max(largest, memory)
                bare, full = median(times[False]), median(times[True])
                lines.append(
                    f"| {kind} | {n_models} | {bare:.1f} | {full:.1f} | {full / bare:.2f} | "
                    f"{largest:.0f} |"
                )
                print(lines[-1], flush=True)
            path.unlink()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, nothing written")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--only", choices=["coverage", "files"], help="keep the other table")
    args = parser.parse_args()
    sections = {}
    if args.only != "files":
        sections["coverage"] = coverage(
            args.repetitions or (10 if args.quick else 1_000), args.jobs
        )
    if args.only != "coverage":
        sections["files"] = large_files(ROWS // 50 if args.quick else ROWS, 1 if args.quick else 5)
    if args.quick:
        return
    about = (
        f"fragility {fragility.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}; CPU seconds, one thread of linear "
        "algebra, medians of 5 runs. Files are read with bytecode cached, as an installed package "
        "has it, by one run before these."
    )
    command = "python benchmarks/groups.py" + (f" --only {args.only}" if args.only else "")
    kept = " The other table is that of an earlier run." if args.only else ""
    _, _, *before = RESULTS.read_text().rstrip().split("\n\n")
    tables = dict(zip(("coverage", "files"), before, strict=True))
    tables |= {name: "\n".join(lines) for name, lines in sections.items()}
    text = ["# Groups", f"Made by `{command}`. {about}{kept}", *tables.values()]
    RESULTS.write_text("\n\n".join(text) + "\n")
    print(f"Wrote {RESULTS}")


if __name__ == "__main__":
    main()
