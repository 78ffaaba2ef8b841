"""Do the intervals cover, and do the paired tests hold their level? A seeded simulation.

Run with ``make coverage``. Every row draws fresh samples from a model whose figures are known, and
counts how often the nominal 95 % interval holds them; then how often the paired test finds a
difference between models that do not differ, and between models that do. First the index in detail,
then every figure of a report.
"""

from __future__ import annotations

import argparse
import platform
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
import scipy.stats
from joblib import Parallel, delayed
from scipy import special

from fragility import Report, compare_fragility, fragility_index, measure_fragility
from fragility.figures.spread import MOVED

RESULTS = Path(__file__).parent / "results" / "coverage.md"
SIZES = (100, 300, 1000)
LEVEL = 0.05
Drawn = tuple[np.ndarray, np.ndarray]


class Scenario(NamedTuple):
    """Labels with logits of a model; the scores are their sigmoid or softmax."""

    name: str
    draw: Callable[[np.random.Generator, int], Drawn]
    weighted: bool = False

    def sample(self, rng: np.random.Generator, n: int) -> Drawn:
        """Labels and logits; drawn again until each class has two samples."""
        while True:
            y, logits = self.draw(rng, n)
            if np.bincount(y, minlength=2).min() >= 2:
                return y, logits

    def weights(self, rng: np.random.Generator, n: int) -> np.ndarray | None:
        """Unrelated to the scores, so that the index of the distribution stays the same."""
        return rng.gamma(2.0, size=n) if self.weighted else None

    def truth(self, n: int) -> float:
        """Index of the distribution, from a sample so large that its error does not matter."""
        y, logits = self.sample(np.random.default_rng(2**32), n)
        return fragility_index(y, scores(logits))


def scores(logits: np.ndarray) -> np.ndarray:
    return special.expit(logits) if logits.ndim == 1 else special.softmax(logits, axis=1)


def logistic(slope: float, intercept: float, confidence: float = 1.0):
    """Labels follow the sigmoid of a logit, scores that of its multiple: above 1 overconfident."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        logit = slope * rng.normal(size=n) + intercept
        return (rng.random(n) < special.expit(logit)).astype(np.int64), confidence * logit

    return draw


def heavy_tailed(rng: np.random.Generator, n: int) -> Drawn:
    """Logits with t-distributed noise of 1.5 degrees of freedom: many are wrong and certain."""
    y = rng.integers(0, 2, n)
    return y, 1.5 * (2 * y - 1) + rng.standard_t(1.5, n)


def three_classes(separation: float):
    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y = rng.integers(0, 3, n)
        return y, rng.normal(size=(n, 3)) + separation * np.eye(3)[y]

    return draw


SCENARIOS = (
    Scenario("calibrated", logistic(2.0, -0.8)),
    Scenario("calibrated, weighted", logistic(2.0, -0.8), weighted=True),
    Scenario("rare errors", logistic(8.0, -2.0, 0.5)),
    Scenario("class ratio 1:10", logistic(1.5, -3.0)),
    Scenario("overconfident", logistic(2.0, -0.8, 3.0)),
    Scenario("weak", logistic(0.7, 0.0)),
    Scenario("heavy-tailed", heavy_tailed),
    Scenario("three classes", three_classes(2.0)),
    Scenario("three classes, overlapping", three_classes(1.0)),
)


def clustered(confidence: float, size: int = 5):
    """As `logistic`, but cases of a cluster have half of their logit, and luck, in common."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        cluster = np.arange(n) // size
        shared, luck = rng.normal(size=(2, cluster[-1] + 1))[:, cluster]
        logit = 2.0 * np.sqrt(0.5) * (shared + rng.normal(size=n)) - 0.8
        return (rng.random(n) < special.expit(logit + luck)).astype(np.int64), confidence * logit

    return draw


#: Beside the others, for figures of reports: cases that come in clusters.
CLUSTERED = (
    Scenario("clustered", clustered(1.0)),
    Scenario("clustered, overconfident", clustered(2.5)),
)


class Outcome(NamedTuple):
    """Of one interval: whether it lies above or below the truth, and how wide it is."""

    above: bool
    below: bool
    width: float


def intervals(scenario: Scenario, truth: float, n: int, seed: int) -> list[Outcome]:
    """The default interval and the logarithmic one, on the same sample."""
    rng = np.random.default_rng(seed)
    y, logits = scenario.sample(rng, n)
    result = measure_fragility(y, scores(logits), sample_weight=scenario.weights(rng, n))
    found = (result.interval(1 - LEVEL, method=method) for method in ("auto", "log_wald"))
    return [Outcome(truth < i.low, truth > i.high, i.high - i.low) for i in found]


def comparisons(scenario: Scenario, n: int, seed: int) -> list[float]:
    """p-values of index and ratio: of equal models, of a 1.3 times bolder one, of a noisier one."""
    rng = np.random.default_rng(seed)
    y, logits = scenario.sample(rng, n)
    noise = 0.35 * scipy.stats.iqr(logits, scale="normal")
    a, b, c = (logits + noise * rng.normal(size=logits.shape) for _ in range(3))
    weights = scenario.weights(rng, n)
    p_values = []
    for other in (b, 1.3 * a, a + c - logits):
        found = compare_fragility(y, scores(a), scores(other), sample_weight=weights)
        p_values += [found.p_value, found.ratio.p_value]
    return p_values


def simulate(task: Callable[[int], list], name: str, n: int, repetitions: int) -> np.ndarray:
    seeds = np.random.SeedSequence([zlib.crc32(name.encode()), n]).generate_state(repetitions)
    batches = np.array_split(seeds, 20)
    results = Parallel(n_jobs=-1)(delayed(_each)(task, batch.tolist()) for batch in batches)
    return np.array([row for rows in results for row in rows], dtype=float)


def _each(task: Callable[[int], list], seeds: Iterable[int]) -> list:
    return [task(seed) for seed in seeds]


def coverage_rows(repetitions: int, population: int) -> Iterable[tuple[str, ...]]:
    for scenario in SCENARIOS:
        truth = scenario.truth(population)
        for n in SIZES:

            def task(seed: int, scenario=scenario, truth=truth, n=n) -> list[Outcome]:
                return intervals(scenario, truth, n, seed)

            default, wald = np.moveaxis(simulate(task, scenario.name, n, repetitions), 1, 0)
            yield (
                scenario.name,
                str(n),
                f"{truth:.4f}",
                f"{1 - default[:, :2].any(axis=1).mean():.3f}",
                f"{default[:, 0].mean():.3f}",
                f"{default[:, 1].mean():.3f}",
                f"{np.isinf(default[:, 2]).mean():.3f}",
                f"{1 - wald[:, :2].any(axis=1).mean():.3f}",
                f"{np.median(default[:, 2]) / np.median(wald[:, 2]):.2f}",
            )


def paired_rows(repetitions: int) -> Iterable[tuple[str, ...]]:
    for scenario in SCENARIOS:
        for n in SIZES:

            def task(seed: int, scenario=scenario, n=n) -> list[float]:
                return comparisons(scenario, n, seed)

            p_values = simulate(task, scenario.name, n, repetitions)
            rejected = [f"{share:.3f}" for share in (p_values < LEVEL).mean(axis=0)]
            yield scenario.name, str(n), *rejected, f"{np.isnan(p_values[:, 0]).mean():.3f}"


def made_report(scenario: Scenario, n: int, seed: int) -> Report:
    """Report on two models whose logits differ by independent noise of equal size."""
    rng = np.random.default_rng(seed)
    y, logits = scenario.sample(rng, n)
    noise = 0.35 * scipy.stats.iqr(logits, scale="normal")
    models = {
        "a": scores(logits),
        "b": scores(logits + noise * rng.normal(size=logits.shape)),
        "c": scores(logits + noise * rng.normal(size=logits.shape)),
    }
    cluster = np.arange(n) // 5 if scenario in CLUSTERED else None
    weights = scenario.weights(rng, n)
    return Report.from_predictions(
        y, models, sample_weight=weights, cluster=cluster, calibrate=False, n_worst=0
    )


def report_outcomes(scenario: Scenario, truth: dict[str, float], n: int, seed: int) -> list[float]:
    """By figure: whether the interval of model a lies above or below the truth, or is absent.

    Then p-values of models b and c, which do not differ.
    """
    made = made_report(scenario, n, seed)
    found: list[float] = []
    for name in MOVED:
        interval = made.models[0].raw.figures[name].interval
        if interval is None:
            found += [np.nan, np.nan]
        else:
            found += [truth[name] < interval.low, truth[name] > interval.high]
    return found + [made.comparisons[-1].raw.tests[name].p_value for name in MOVED]


def every_figure(
    repetitions: int, population: int
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Rows of coverage and of the level of paired tests, by scenario and size."""
    covered, levels = [], []
    for scenario in (*SCENARIOS, *CLUSTERED):
        y, logits = scenario.sample(np.random.default_rng(2**32), population)
        made = Report.from_predictions(y, scores(logits), calibrate=False, n_worst=0)
        truth = {name: made.models[0].raw.figures[name].value for name in MOVED}
        for n in SIZES:

            def task(seed: int, scenario=scenario, truth=truth, n=n) -> list[float]:
                return report_outcomes(scenario, truth, n, seed)

            found = simulate(task, f"figures of {scenario.name}", n, repetitions)
            outside, p_values = np.split(found, [2 * len(MOVED)], axis=1)
            shares = []
            for place in range(len(MOVED)):
                own = outside[:, 2 * place : 2 * place + 2]
                told = own[~np.isnan(own[:, 0])]
                absent = 1.0 - len(told) / len(own)
                share = f"{1 - told.any(axis=1).mean():.3f}" if len(told) else "–"
                shares.append(share + (f" ({100 * absent:.1f} % none)" if absent else ""))
            covered.append((scenario.name, str(n), *shares))
            print("  ", " | ".join(covered[-1]), flush=True)
            tested = ~np.isnan(p_values)
            rejected = (p_values < LEVEL).sum(axis=0) / np.maximum(tested.sum(axis=0), 1)
            levels.append((scenario.name, str(n), *(f"{share:.3f}" for share in rejected)))
            print("  ", " | ".join(levels[-1]), flush=True)
    return covered, levels


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for row in rows:
        print("  ", " | ".join(row), flush=True)
        lines.append(row)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--quick", action="store_true", help="100 repetitions, nothing written")
    parser.add_argument("--figures", action="store_true", help="figures of reports only, printed")
    args = parser.parse_args()
    repetitions = 100 if args.quick else args.repetitions
    figures, levels = every_figure(max(repetitions // 2, 1), 10**5 if args.quick else 2 * 10**6)
    if args.figures:
        return
    coverage = table(
        (
            "scores", "n", "FI", "coverage", "truth below", "truth above", "infinite upper limit",
            "log-Wald coverage", "median width / log-Wald",
        ),
        coverage_rows(repetitions, 10**6 if args.quick else 10**7),
    )  # fmt: skip
    paired = table(
        (
            "scores", "n", "type I: FI", "ratio", "power, logits × 1.3: FI", "ratio",
            "power, more noise: FI", "ratio", "no test",
        ),
        paired_rows(repetitions),
    )  # fmt: skip
    text = "\n\n".join(
        [
            "# Coverage of the intervals and level of the paired test",
            f"`make coverage`: {repetitions} samples per row (standard error of a share of 0.05: "
            f"{(0.0475 / repetitions) ** 0.5:.4f}), seeded; Python {platform.python_version()}, "
            f"NumPy {np.__version__}, SciPy {scipy.__version__}.",
            "Nominal 95 % intervals of `Fragility.interval()`. An infinite upper limit says that "
            "the sample does not exclude a model without any separation.",
            coverage,
            "Paired test of `compare_fragility` at level 0.05: two models whose logits differ by "
            "independent noise of equal size (they do not differ: type I error), the first against "
            "itself with logits times 1.3, and against itself with as much noise again. No test: "
            "an index is 0 or infinite. On few samples the test errs on the side of caution.",
            paired,
            f"Every figure of a report, {repetitions // 2} samples per row: share of the intervals "
            "that hold the figure of the population (and how many samples have no interval).",
            table(("scores", "n", *MOVED), figures),
            "Paired tests of these figures at level 0.05, of models that do not differ.",
            table(("scores", "n", *MOVED), levels),
        ]
    )
    if not args.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
