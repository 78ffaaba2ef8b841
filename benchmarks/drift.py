"""How often `fragility drift` sees a change where there is none: a simulation.

Run with ``make coverage``. Two samples are drawn from one population, sketched and compared.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product, repeat
from pathlib import Path

import numpy as np

from fragility import FragilitySketch, compare_sketches

RESULTS = Path(__file__).parent / "results" / "drift.md"
SIZES = ((200, 200), (200, 2000), (1000, 1000), (1000, 7000))
Cases = tuple[np.ndarray, np.ndarray]
Draw = Callable[[int, np.random.Generator], Cases]


def by_class(shape: float, share: float) -> Draw:
    """Scores of the positives by a beta distribution; of the negatives by its mirror image."""

    def draw(n: int, rng: np.random.Generator) -> Cases:
        y = rng.random(n) < share
        return y, np.where(y, rng.beta(shape, 1.5, n), rng.beta(1.5, shape, n))

    return draw


def by_logit(spread: float, boldness: float, digits: int | None = None) -> Draw:
    """Cases whose log-odds are normal, and a model that gives so many times these."""

    def draw(n: int, rng: np.random.Generator) -> Cases:
        logit = spread * rng.normal(size=n)
        y = rng.random(n) < 1 / (1 + np.exp(-logit))
        p = 1 / (1 + np.exp(-boldness * logit))
        return y, p if digits is None else np.round(p, digits)

    return draw


POPULATIONS = {
    "often wrong": by_class(2.2, 0.5),
    "sometimes wrong": by_class(3.0, 0.5),
    "hardly ever wrong": by_class(6.0, 0.5),
    "one in ten positive": by_class(3.0, 0.1),
    "calibrated": by_logit(2.0, 1.0),
    "overconfident": by_logit(1.5, 3.0),
    "eleven distinct scores": by_logit(2.0, 1.0, 1),
}


def row(name: str, sizes: tuple[int, int], n: int) -> tuple[list[str], float]:
    """A row of the table, and the CPU seconds that it took."""
    began = time.process_time()
    rng = np.random.default_rng([*sizes, *name.encode()])
    found = []
    for _ in range(n):
        pair = (POPULATIONS[name](size, rng) for size in sizes)
        a, b = (FragilitySketch(labels=[False, True]).update(*cases) for cases in pair)
        found.append(compare_sketches(a, b))
    index = np.array([part.p_value for part in found])
    ratio = np.array([part.ratio.p_value for part in found])
    tested = ~np.isnan(index)
    cells = [name, f"{sizes[0]:,}", f"{sizes[1]:,}"]
    cells += [f"{100 * np.mean(part[tested] < 0.05):.1f} %" for part in (index, ratio)]
    cells += [f"{100 * np.mean([part.differs for part in found]):.1f} %"]
    cells.append(f"{n - int(tested.sum())}")
    print(*cells, flush=True)
    return cells, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=6000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    cells = list(product(POPULATIONS, SIZES))
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(row, *zip(*cells, strict=True), repeat(given.pairs)))
    took = sum(seconds for _, seconds in rows)
    error = 100 * (0.0475 / given.pairs) ** 0.5
    head = ["population", "cases of a", "of b", "index", "ratio", "`differs`", "no test"]
    lines = [
        "# Changes that `fragility drift` sees where there are none",
        "",
        f"{given.pairs:,} pairs of samples of one population each, tests at 5 %: share of the "
        "pairs whose index, or ratio, is said to differ, of those with a test; share for which "
        "`fragility drift` exits with 1; number of pairs without a test, where an index is 0 or "
        f"too near 0. The standard error of a share of 5 % is {error:.1f} %.",
        "",
        f"| {' | '.join(head)} |",
        f"|---|{'---:|' * (len(head) - 1)}",
        *(f"| {' | '.join(cells)} |" for cells, _ in rows),
        "",
        f"`python benchmarks/drift.py`, {took:.0f} s of CPU; Python "
        f"{platform.python_version()}, NumPy {np.__version__}.",
    ]
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
