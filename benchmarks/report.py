"""CPU time of a whole report beside three metrics of scikit-learn on the same models.

Run ``python benchmarks/report.py``. The report has every figure with its interval, before and after
calibration, paired tests, reliability, operating points and net benefit, of 100,000 cases and three
models; scikit-learn computes `roc_auc_score`, `log_loss` and `brier_score_loss` of the same models.
Medians of CPU time of one thread, in one process and in turn.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import sklearn
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

import fragility
from fragility import Report

RESULTS = Path(__file__).parent / "results" / "report.md"
RUNS = 7
COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.5}


def drawn(n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels, and probabilities of a fair, a bold and a noisy model."""
    rng = np.random.default_rng(0)
    logit = 2.0 * rng.normal(size=n) - 0.8
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    kinds = {"fair": (1.0, 0.0), "bold": (3.0, 0.5), "noisy": (1.0, 1.0)}
    models = {
        name: 1.0 / (1.0 + np.exp(-(slope * logit + noise * rng.normal(size=n))))
        for name, (slope, noise) in kinds.items()
    }
    return y, models


def cpu_time(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 cases, nothing written")
    args = parser.parse_args()
    n = 10_000 if args.quick else 100_000
    threadpool_limits(1)
    y, models = drawn(n)

    def metrics() -> None:
        for p in models.values():
            roc_auc_score(y, p)
            log_loss(y, p)
            brier_score_loss(y, p)

    tasks: dict[str, Callable[[], object]] = {
        "three metrics of scikit-learn": metrics,
        "report": lambda: Report.from_predictions(y, models),
        "report with costs": lambda: Report.from_predictions(y, models, costs=COSTS),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():  # imports and caches
        task()
    for _ in range(RUNS):
        for name, task in tasks.items():
            times[name].append(cpu_time(task))
    found = {name: median(part) for name, part in times.items()}
    base = found["three metrics of scikit-learn"]
    lines = [
        "| | CPU seconds | (seconds − 1) over the three metrics |",
        "|---|---:|---:|",
        *(f"| {name} | {s:.2f} | {max(s - 1.0, 0.0) / base:.1f} |" for name, s in found.items()),
    ]
    text = "\n".join(
        [
            "# A report beside three metrics of scikit-learn",
            "",
            f"`python benchmarks/report.py`: {n:,} cases, three models, medians of {RUNS} runs of "
            f"one thread. Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn "
            f"{sklearn.__version__}, fragility {fragility.__version__}.",
            "",
            *lines,
        ]
    )
    print(text)
    if not args.quick:
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
