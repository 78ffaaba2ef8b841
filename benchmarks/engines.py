"""CPU of sketches and reports on every engine, against the engine summing the same two columns.

``python benchmarks/engines.py [--rows 20000000] [--engines local dask spark]`` writes
``benchmarks/results/engines.md``. CPU is that of this process and all processes below it, so that
workers and the Java machine count. Medians of three, after one run that is not counted.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from fragility import FragilitySketch, Report, fragility_index
from fragility.distributed import sketch
from fragility.sources.source import Source

RESULT = Path(__file__).parent / "results" / "engines.md"
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
ASKED: dict[str, Any] = {"label": "y", "labels": [0, 1]}


def tree_cpu() -> float:
    """CPU seconds of this process and of those below it, also of those that ended."""
    parents, times = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            parents[int(entry)], times[int(entry)] = int(fields[1]), sum(map(int, fields[11:15]))
    own, total = os.getpid(), 0
    for process, ticks in times.items():
        above = process
        while above not in (own, 0, 1):
            above = parents.get(above, 0)
        total += ticks * (above == own)
    return total / TICK


class Growth:
    """Largest memory of this process during a block, above that at its beginning."""

    def __enter__(self) -> Growth:
        self.start = self.most = _resident()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, _resident())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()

    @property
    def megabytes(self) -> float:
        return (self.most - self.start) / 1e6


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def write_rows(folder: Path, n_rows: int) -> None:
    """Files with ties and saturated scores; one has one class, one is empty."""
    per_file = n_rows // 20
    for k in range(20):
        rng = np.random.default_rng(k)
        logit = 2.5 * rng.normal(size=per_file)
        p = 1.0 / (1.0 + np.exp(-logit))
        y = (rng.random(per_file) < p).astype(np.int64)
        if k == 7:
            y[:] = 1
        p[rng.random(per_file) < 0.2] = 0.5
        p[rng.random(per_file) < 0.01] = 0.0
        p[rng.random(per_file) < 0.01] = 1.0
        pq.write_table(pa.table({"y": y, "p": p}), folder / f"part-{k:02}.parquet")
    empty = {"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())}
    pq.write_table(pa.table(empty), folder / "part-20.parquet")


def engines(
    folder: Path, chosen: list[str], stack: ExitStack, given_malloc: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Name, data, and a function that sums the two columns with the engine."""
    pattern = str(folder / "*.parquet")
    if "local" in chosen:
        import duckdb
        import polars as pl

        dataset = pyarrow.dataset.dataset(folder)
        names = ["y", "p"]

        def arrow_sum() -> None:
            for batch in dataset.to_batches(columns=names):
                for name in names:
                    pyarrow.compute.sum(batch.column(name))

        yield "Parquet files", str(folder), arrow_sum
        yield "Arrow dataset", dataset, arrow_sum
        lazy = pl.scan_parquet(pattern)
        yield "polars LazyFrame", lazy, lambda: lazy.select(pl.col(names).sum()).collect()
        relation = duckdb.read_parquet(pattern)
        yield "DuckDB relation", relation, lambda: relation.aggregate("sum(y), sum(p)").fetchall()
    if "dask" in chosen:
        import dask.dataframe as dd
        from distributed import Client, LocalCluster

        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1}
        options["dashboard_address"] = None
        if given_malloc:
            options["env"] = {"MALLOC_TRIM_THRESHOLD_": "134217728"}
            options["env"] |= {"MALLOC_MMAP_THRESHOLD_": "33554432"}
        stack.enter_context(Client(stack.enter_context(LocalCluster(**options))))
        frame = dd.read_parquet(str(folder))
        kept = " that keep memory" * given_malloc
        yield f"Dask, 2 workers{kept}", frame, lambda: frame[["y", "p"]].sum().compute()
    if "spark" in chosen:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        stack.callback(session.stop)
        data = session.read.parquet(str(folder))
        yield "Spark, local[2]", data, lambda: data.selectExpr("sum(y)", "sum(p)").collect()


def measured(work: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Median CPU seconds, largest growth of memory, and the result."""
    work()
    times, growths, found = [], [], None
    for _ in range(repeats):
        start = tree_cpu()
        with Growth() as growth:
            found = work()
        time.sleep(0.05)  # what workers still put away
        times.append(tree_cpu() - start)
        growths.append(growth.megabytes)
    return statistics.median(times), max(growths), found


def travelling(asked: dict[str, Any], n_models: int) -> list[tuple[int, int]]:
    """Bytes that are sent to parts, and that come back, in each reading of a report."""
    rng = np.random.default_rng(0)
    n = 200_000
    p = rng.random((n_models, n))
    data = {f"p{k}": scores for k, scores in enumerate(p)}
    data |= {"y": (rng.random(n) < p[0]).astype(np.int64), "site": rng.integers(0, 3, n)}
    seen, reduce = [], Source.reduce

    def weighed(self: Source, add: Any, merge: Any, columns: Any) -> Any:
        sent = len(cloudpickle.dumps(add))
        found = reduce(self, add, merge, columns)
        seen.append((sent, len(cloudpickle.dumps(found))))
        return found

    with mock.patch.object(Source, "reduce", weighed):
        scores = [f"p{k}" for k in range(n_models)]
        Report.from_source(data, scores=scores, hold=0, **ASKED, **asked)
    return seen


def constants(folder: Path, n_rows: int, sketch_bytes: int, costs: dict[str, Any]) -> list[str]:
    """What docs/engines.md plans with, as a table."""
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    one, full = (
        travelling({"calibrate": False}, 1),
        travelling({"groups": "site", "costs": {"error_cost": 5.0, "review_cost": 1.0}}, 2),
    )
    named = {"files on one machine": "Parquet files", "Dask": "Dask, 2 workers"}
    named |= {"Spark": "Spark, local[2]"}
    there = {short: costs[name] for short, name in named.items() if name in costs}
    told = ", ".join(there)
    sketches, reports = (
        ", ".join(f"{own[place] / n_rows * 1e9:.0f}" for own in there.values())
        for place in range(2)
    )
    return [
        "| constant | measured |",
        "|---|---|",
        f"| a row of label and score in Parquet | {size / n_rows:.1f} bytes |",
        f"| CPU of a sketch: {told} | {sketches} ns a row |",
        f"| CPU of a report of one model: {told} | {reports} ns a row |",
        f"| a sketch that travels | {sketch_bytes / 1e6:.2f} MB |",
        f"| a state of a report that travels: one model | {one[0][1] / 1e6:.1f} MB |",
        f"| the same: two models, three groups | {full[1][1] / 1e6:.1f} MB |",
        "| readers of a second reading, two models, groups and costs: sent, then what comes back | "
        f"{max(sent for sent, _ in full[2:]) / 1e6:.1f} MB, "
        f"{max(back for _, back in full[2:]) / 1e3:.0f} kB |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--engines", nargs="+", default=["local", "dask", "spark"])
    parser.add_argument(
        "--malloc", action="store_true", help="workers of Dask keep memory that they free"
    )
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_rows(folder, given.rows)
        table = pq.read_table(folder)
        y, p = (table.column(column).to_numpy() for column in ("y", "p"))
        expected = FragilitySketch(labels=[0, 1]).update(y, p).to_bytes()
        exact = fragility_index(y, p)
        bounds = FragilitySketch.from_bytes(expected).fragility()
        held = bounds.lower - 1e-13 <= exact <= bounds.upper + 1e-13
        sketch_bytes = len(pickle.dumps(FragilitySketch.from_bytes(expected)))
        del table, y, p
        lines, reports, costs = [], set(), {}
        for engine, data, summed in engines(folder, given.engines, stack, given.malloc):
            sums, _, _ = measured(summed, given.repeats)
            sketched, grown, found = measured(
                lambda d=data: sketch(d, score="p", **ASKED), given.repeats
            )
            same = found.to_bytes() == expected
            reported, more, made = measured(
                lambda d=data: Report.from_source(d, scores="p", **ASKED), given.repeats
            )
            reports.add(made.to_json())
            costs[engine] = sketched, reported
            lines.append(
                f"| {engine} | {sums:.2f} | {sketched:.2f} | {sketched / sums:.1f} | "
                f"{'yes' if same else 'NO'} | {grown:.0f} | {reported:.2f} | "
                f"{reported / sums:.1f} | {more:.0f} |"
            )
            print(lines[-1], flush=True)
        text = [
            "# Sketches and reports on engines",
            "",
            f"`python benchmarks/engines.py --rows {given.rows}`: {given.rows:,} rows of a label "
            "(int64) and a score (float64) in 21 Parquet files, with ties, saturated scores, a "
            f"file of one class and an empty one. CPU seconds of all processes, medians of "
            f"{given.repeats}; growth is that of the memory of the process that asks.",
            "",
            "| rows in | sum of both columns, s | sketch, s | times the sum | same bytes "
            "| growth, MB | report, s | times the sum | growth, MB |",
            "|---|---|---|---|---|---|---|---|---|",
            *lines,
            "",
            f"The interval of the sketch holds the index of the rows in memory: "
            f"{'yes' if held else 'NO'}. Different JSON of reports among these engines: "
            f"{len(reports)} (1 is all alike).",
            "",
            "## Constants of a plan",
            "",
            *constants(folder, given.rows, sketch_bytes, costs),
            "",
        ]
        RESULT.write_text("\n".join(text), encoding="utf-8")
        print("\n".join(text))


if __name__ == "__main__":
    main()
