"""Time and memory of measuring two models on a file of many rows, beside merely reading it.

Run ``python benchmarks/large_file.py``. Every run is a process of its own: CPU time, wall time and
the peak of its resident memory, medians of five. What is read is a Parquet file of a label and two
scores that is made for the purpose and deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

RESULTS = Path(__file__).parent / "results" / "large_file.md"
RUNS = 5
CHUNK = 500_000
BATCH = 131_072


def write_file(path: Path, n: int, scores: str = "ab") -> None:
    """Label `y` (int8), scores of so many names (float64), by chunks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        y = (rng.random(m) < 0.4).astype(np.int8)
        z = rng.normal(size=m) + 2.0 * (y - 0.5)
        columns = {"y": y, scores[0]: 1 / (1 + np.exp(-z))}
        for place, name in enumerate(scores[1:], start=1):
            other = (1 + 0.3 * place) * z + 0.3 * place * rng.normal(size=m)
            columns[name] = 1 / (1 + np.exp(-other))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def arrays(path: str) -> Iterator[list[np.ndarray]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(batch_size=BATCH, use_threads=False):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def read_once(path: str) -> str:
    return f"{sum(len(columns[0]) for columns in arrays(path))} rows"


def read_twice(path: str) -> str:
    return f"{read_once(path)}, {read_once(path)}"


def measure(path: str) -> str:
    from fragility import Report, ScoreState

    state = ScoreState([0, 1], ["a", "b"])
    for y, a, b in arrays(path):
        state.update(y, {"a": a, "b": b})
    figures = Report.from_state(state).models[0].raw.figures
    low, high = figures["auc"].bounds or (0.0, 0.0)
    return (
        f"FI {figures['fragility_index'].value:.10f}, AUC {figures['auc'].value:.7f} ± "
        f"{(high - low) / 2:.1g}"
    )


#: Name of each row, and what it runs in a process of its own.
TASKS: dict[str, Callable[[str], str]] = {
    "reading the file once (pyarrow batches)": read_once,
    "reading the file twice": read_twice,
    "`ScoreState.update`, then all figures of both models but paired tests (reads once)": measure,
}
#: The command itself, by its arguments; what it takes to start is taken off.
ASKED = ["--label", "y", "--score", "a", "--score", "b"]
COMMANDS: dict[str, list[str]] = {
    "`fragility evaluate FILE --label y --score a --score b`": ASKED,
    "the same with --no-calibration": [*ASKED, "--no-calibration"],
}


def run_task(name: str, path: str) -> None:
    """Run one task here and print what it took, as JSON."""
    import pyarrow.parquet  # noqa: F401

    # Everything that the commands import when they run.
    import fragility.cli.app
    import fragility.report.files
    import fragility.report.text
    import fragility.scores.state  # noqa: F401

    imported, started = time.process_time(), time.perf_counter()
    outcome = TASKS[name](path)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "cpu": time.process_time() - imported,
                "all": time.process_time(),
                "wall": time.perf_counter() - started,
                "peak": peak_bytes(usage.ru_maxrss),
                "outcome": outcome,
            }
        )
    )


def peak_bytes(maxrss: int) -> int:
    """Peak of the resident memory; of getrusage where /proc does not tell.

    The peak of getrusage may be inherited from the process that started this one, which is small.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    return maxrss if sys.platform == "darwin" else 1024 * maxrss


def in_fresh_process(name: str, path: Path) -> dict[str, float | str]:
    command = [sys.executable, __file__, "--task", name, "--file", str(path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def run_command(arguments: list[str]) -> dict[str, float | str]:
    """Run the installed command and say what it took, and printed of the first model."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    script = Path(sys.executable).with_name("fragility")
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(
            [script, *arguments], stdout=output, stderr=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"fragility {' '.join(arguments)} failed")
        output.seek(0)
        index = [line for line in output if line.startswith("Fragility Index ")]
    return {
        "all": usage.ru_utime + usage.ru_stime,
        "wall": time.perf_counter() - started,
        "peak": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "outcome": " ".join(index[0].split()[:3]) if index else "",
    }


def command_run(arguments: list[str], path: Path) -> dict[str, float | str]:
    """A run of ``fragility evaluate``, without what ``fragility --version`` takes."""
    start = run_command(["--version"])
    run = run_command(["evaluate", str(path), *arguments])
    return run | {"cpu": run["all"] - start["all"], "wall": run["wall"] - start["wall"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--task", choices=list(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        run_task(given.task, given.file)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        write_file(path, given.rows)
        size = path.stat().st_size
        take: dict[str, Callable[[], dict[str, float | str]]] = {
            **{name: partial(in_fresh_process, name, path) for name in TASKS},
            **{name: partial(command_run, asked, path) for name, asked in COMMANDS.items()},
        }
        in_fresh_process(next(iter(TASKS)), path)  # the file is in the cache of the system now
        # In turns, so that a busy moment of the machine does not fall on one row alone.
        runs: dict[str, list[dict[str, float | str]]] = {name: [] for name in take}
        for _ in range(RUNS):
            for name, run in take.items():
                runs[name].append(run())
    reading = 0.0
    for name, taken in runs.items():
        numbers = {key: median(run[key] for run in taken) for key in ("cpu", "wall", "all", "peak")}
        reading = reading or numbers["cpu"]
        rows.append(
            (
                name,
                f"{numbers['cpu']:.2f}",
                f"{numbers['cpu'] / reading:.1f}",
                f"{numbers['wall']:.2f}",
                f"{numbers['all']:.2f}",
                f"{numbers['peak'] / 2**20:.0f}",
                str(taken[0]["outcome"]),
            )
        )
    head = ("what", "CPU s", "× reading", "wall s", "CPU s with imports", "peak MiB", "outcome")
    lines = [head, ("---", *["---:"] * 5, "---"), *rows]
    text = "\n\n".join(
        [
            "# Two models on a large file",
            f"`python benchmarks/large_file.py`: {given.rows:,} rows of a label (int8) and two "
            f"scores (float64), {size / 2**20:.0f} MiB of Parquet; medians of {RUNS}, one thread, "
            "each in a process of its own. All of them import pyarrow and fragility (with SciPy, "
            "click and rich) first, which is in the memory and in the fifth column, not in the "
            "others. "
            f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}.",
            "\n".join("| " + " | ".join(line) + " |" for line in lines),
        ]
    )
    print("\n" + text)
    if given.rows == parser.get_default("rows"):
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
