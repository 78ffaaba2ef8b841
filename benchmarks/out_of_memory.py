"""Training on data larger than memory: readings, CPU per row and reading, and the model of memory.

``python benchmarks/out_of_memory.py [--rows 1000000 10000000] [--columns 20] [--dask]`` writes
``benchmarks/results/out_of_memory.md``. CPU is that of this process and all processes below it.
Rows lie in files of 250,000. A fit in memory is compared with where the rows fit (up to 1,000,000).
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from engines import Growth, tree_cpu

from fragility import ERMClassifier, SatisficingClassifier
from fragility.ambiguity import KL, Wasserstein
from fragility.distributed import fit

RESULT = Path(__file__).parent / "results" / "out_of_memory.md"
PER_FILE = 250_000
MOST_IN_MEMORY = 1_000_000
MODELS: dict[str, Any] = {
    "lowest loss, l2": lambda: ERMClassifier(),
    "KL": lambda: SatisficingClassifier(ambiguity=KL(), slack=0.1),
    "Wasserstein ℓ2": lambda: SatisficingClassifier(ambiguity=Wasserstein(), slack=0.1),
    "Wasserstein ℓ1": lambda: SatisficingClassifier(ambiguity=Wasserstein(norm=1), slack=0.1),
    "default target": lambda: SatisficingClassifier(),
}


def drawn(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    slopes = np.random.default_rng(99).normal(size=d) / np.sqrt(d) * 2.0
    X = rng.normal(size=(n, d))
    return X, (X @ slopes + rng.logistic(size=n) > 1.0).astype(np.int64)


def write_rows(folder: Path, n_rows: int, d: int) -> None:
    for k in range(max(n_rows // PER_FILE, 1)):
        X, y = drawn(k, min(PER_FILE, n_rows), d)
        table = pa.table({f"x{j}": X[:, j] for j in range(d)} | {"y": y})
        pq.write_table(table, folder / f"part-{k:04}.parquet", use_dictionary=False)


def in_memory(n_rows: int, d: int, make: Any) -> float:
    """k, or the loss, of the same model fitted to all rows at once."""
    parts = [drawn(k, min(PER_FILE, n_rows), d) for k in range(max(n_rows // PER_FILE, 1))]
    X, y = np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
    return value(make().fit(X, y))


def value(model: Any) -> float:
    return float(getattr(model, "fragility_", getattr(model, "loss_", np.nan)))


def row(name: str, data: Any, n_rows: int, d: int, make: Any, compare: bool) -> list[str]:
    before = tree_cpu()
    with Growth() as growth:
        model = fit(make(), data, label="y")
    cpu = tree_cpu() - before
    off = "–"
    if compare and n_rows <= MOST_IN_MEMORY:
        off = f"{value(model) / in_memory(n_rows, d, make) - 1.0:.1e}"
    per_row = 1e9 * cpu / n_rows / model.n_passes_
    cells = [name, f"{n_rows:,}", f"{model.n_passes_}", f"{cpu:.1f}", f"{per_row:.0f}"]
    return [*cells, f"{growth.megabytes:.0f}", off]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--dask", action="store_true")
    asked = parser.parse_args()
    rows = []
    for n_rows in asked.rows:
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            write_rows(folder, n_rows, asked.columns)
            size = sum(file.stat().st_size for file in folder.iterdir())
            print(f"{n_rows:,} rows, {size / 1e6:.0f} MB", flush=True)
            chosen = {"files": str(folder)}
            if asked.dask:
                import dask.dataframe as dd
                from distributed import Client, LocalCluster

                options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1}
                cluster = LocalCluster(**options, dashboard_address=None)
                stack.enter_context(Client(stack.enter_context(cluster)))
                chosen["Dask, 2 workers"] = dd.read_parquet(str(folder))
            for engine, data in chosen.items():
                models = MODELS if engine == "files" else {k: MODELS[k] for k in [*MODELS][1:3]}
                for kind, make in models.items():
                    cells = row(kind, data, n_rows, asked.columns, make, engine == "files")
                    rows.append([engine, *cells])
                    print(" | ".join(rows[-1]), flush=True)
    head = ["rows in", "model", "rows", "readings", "CPU s", "ns a row and reading", "memory MB"]
    head.append("k, or loss, less that of memory, relatively")
    lines = ["# " + (__doc__ or "").splitlines()[0], "", f"{asked.columns} columns of doubles.", ""]
    for cells in (head, ["---"] * len(head), *rows):
        lines.append(f"| {' | '.join(cells)} |")
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
