"""Speed and memory of the index against scikit-learn's AUC on the same arrays.

Run with ``make bench``. CPU time of one thread, median of alternating warm runs, our validation
included. Ratios above one: we are faster. Memory is the peak of new allocations over the size of
the inputs.
"""

from __future__ import annotations

import argparse
import platform
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import sklearn
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fragility import (
    FragilitySketch,
    area_under_risk_coverage,
    buffered_auc_score,
    confident_error_rate,
    equal_mass_calibration_error,
    fragility_index,
    measure_fragility,
    ranking_error_cvar,
)

RESULTS = Path(__file__).parent / "results" / "index.md"


def binary(n: int, separation: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated at separation 2 (AUC 0.92); labels int64, probabilities float64."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(np.int64)
    return y, 1 / (1 + np.exp(-(rng.normal(size=n) + separation * (y - 0.5))))


def several(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    z = rng.normal(size=(n, n_classes))
    z[np.arange(n), y] += 1.5
    e = np.exp(z)
    return y, e / e.sum(axis=1, keepdims=True)


def cpu_seconds(*functions: Callable[[], object], runs: int) -> list[float]:
    """Median CPU time of each.

    The runs alternate, so that a slow moment hits all, and each follows an untimed one, so that
    none pays for the caches and the heap that another left.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for function, record in zip(functions, times, strict=True):
            function()
            start = process_time()
            function()
            record.append(process_time() - start)
    return [median(record) for record in times]


def peak_bytes(function: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def speed_rows(quick: bool) -> list[tuple[str, ...]]:
    rows = []

    def add(name: str, reference: Callable[[], object], ours: Callable[[], float], runs: int):
        theirs, own = cpu_seconds(reference, ours, runs=runs)
        rows.append(
            (
                name,
                f"{ours():.4g}",
                f"{1e3 * theirs:.2f}",
                f"{1e3 * own:.2f}",
                f"{theirs / own:.1f}",
            )
        )
        print("  ", " | ".join(rows[-1]), flush=True)

    sizes = [10**3, 10**4, 10**5, 10**6] + ([] if quick else [10**7])
    for n in sizes:
        y, p = binary(n)
        runs = {10**3: 101, 10**4: 51, 10**5: 15, 10**6: 9, 10**7: 3}[n]
        add(
            f"binary, n = {n:.0e}",
            lambda y=y, p=p: roc_auc_score(y, p),
            lambda y=y, p=p: fragility_index(y, p),
            runs,
        )
    n = 10**5 if quick else 10**6
    kinds = {
        "float32 scores, bool labels": lambda y, p: (y.astype(bool), p.astype(np.float32)),
        "labels -1 and 1": lambda y, p: (2 * y - 1, p),
        "scores rounded to 0.01": lambda y, p: (y, np.round(p, 2)),
    }
    for name, change in kinds.items():
        y, p = change(*binary(n))
        add(
            f"binary, n = {n:.0e}, {name}",
            lambda y=y, p=p: roc_auc_score(y, p),
            lambda y=y, p=p: fragility_index(y, p),
            5,
        )
    for name, separation in {"weak": 0.2, "strong": 6.0, "nearly separable": 8.5}.items():
        y, p = binary(n, separation)
        add(
            f"binary, n = {n:.0e}, {name}",
            lambda y=y, p=p: roc_auc_score(y, p),
            lambda y=y, p=p: fragility_index(y, p),
            5,
        )
    y, p = binary(n)
    weights = np.random.default_rng(1).random(n)
    add(
        f"binary, n = {n:.0e}, weights",
        lambda: roc_auc_score(y, p, sample_weight=weights),
        lambda: fragility_index(y, p, sample_weight=weights),
        5,
    )
    add(
        f"binary, n = {n:.0e}, with worst case (measure_fragility)",
        lambda: roc_auc_score(y, p),
        lambda: measure_fragility(y, p).worst_case_weights[0],
        5,
    )
    add(
        f"binary, n = {n:.0e}, sketch, one pass and answer",
        lambda: roc_auc_score(y, p),
        lambda: FragilitySketch().update(y, p).fragility().value,
        9,
    )
    add(
        f"binary, n = {n:.0e}, sketch, weights",
        lambda: roc_auc_score(y, p, sample_weight=weights),
        lambda: FragilitySketch().update(y, p, weights).fragility().value,
        5,
    )
    add(
        f"binary, n = {n:.0e}, with interval",
        lambda: roc_auc_score(y, p),
        lambda: measure_fragility(y, p).interval().high,
        9,
    )
    add(
        f"binary, n = {n:.0e}, weights, with interval",
        lambda: roc_auc_score(y, p, sample_weight=weights),
        lambda: measure_fragility(y, p, sample_weight=weights).interval().high,
        5,
    )
    for companion in (
        buffered_auc_score,
        ranking_error_cvar,
        confident_error_rate,
        area_under_risk_coverage,
        equal_mass_calibration_error,
    ):
        add(
            f"binary, n = {n:.0e}, {companion.__name__}",
            lambda: roc_auc_score(y, p),
            lambda companion=companion: companion(y, p),
            3,
        )
    for size, multi_class in ((n // 5, "ovo"), (n, "ovo"), (n, "ovr")):
        y, p = several(size, 10)
        add(
            f"10 classes, n = {size:.0e}, {multi_class}",
            lambda y=y, p=p, m=multi_class: roc_auc_score(y, p, multi_class=m),
            lambda y=y, p=p, m=multi_class: fragility_index(y, p, multi_class=m),
            3,
        )
    add(
        f"10 classes, n = {n:.0e}, ovr, sketch",
        lambda: roc_auc_score(y, p, multi_class="ovr"),
        lambda: FragilitySketch(multi_class="ovr").update(y, p).fragility().value,
        3,
    )
    return rows


def memory_rows(quick: bool) -> list[tuple[str, ...]]:
    rows = []
    n = 10**6 if quick else 10**7
    y, p = binary(n)
    inputs = {
        "int64 labels, float64 scores": (y, p),
        "bool labels, float32 scores": (y.astype(bool), p.astype(np.float32)),
        "labels -1 and 1, FI = 0": (2 * y - 1, 0.4 * p + 0.6 * y),
        "3 classes": several(n // 4, 3),
    }
    for name, (labels, scores) in inputs.items():
        size = labels.nbytes + scores.nbytes
        peak = peak_bytes(lambda labels=labels, scores=scores: fragility_index(labels, scores))
        sizes = f"{size / 2**20:.0f}", f"{peak / 2**20:.1f}", f"{peak / size:.3f}"
        rows.append((f"n = {len(labels):.1e}, {name}", *sizes))
        print("  ", " | ".join(rows[-1]), flush=True)
    return rows


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) + ("---:",) * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller inputs, nothing written")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        speed, memory = speed_rows(quick), memory_rows(quick)
    text = "\n\n".join(
        [
            "# The Fragility Index against `sklearn.metrics.roc_auc_score`",
            "`make bench`: CPU time, one thread, medians of alternating warm runs, our validation "
            "included; "
            f"Python {platform.python_version()}, NumPy {np.__version__}, "
            f"scikit-learn {sklearn.__version__}, {platform.machine()}.",
            table(("input", "value", "roc_auc_score ms", "ours ms", "times faster"), speed),
            "Memory beyond the inputs:",
            table(("input", "inputs MiB", "peak MiB", "peak / inputs"), memory),
        ]
    )
    print("\n" + text)
    if not quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
