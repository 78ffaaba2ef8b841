"""How often the gate fails models that it should pass, and passes models that it should fail.

Run ``python benchmarks/gate.py`` (``--quick`` for a few data sets). Forests are trained on drawn
data; every data set is a fresh sample of 2,000 cases, for ``--baseline`` two of them. Held are four
seeds of one forest to a fifth; a model whose log-loss is worse by .05 (its logits have noise, and
it is calibrated, so that no map mends it); and one that is worse by .1 in one group of five. To see
the level of the tests themselves, two models that are exactly as good as each other are compared
without a tolerance. The best that any test of log-loss on other cases can do is one test alone,
whose power is told from the standard deviation of the losses.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import fragility
from fragility import Report
from fragility.report.baselines import Baseline
from fragility.report.gates import Check, check_gates

RESULTS = Path(__file__).parent / "results" / "gate.md"
N, N_TRAINING, N_LARGE, N_GROUPS = 2_000, 4_000, 40_000, 5
WORSE, WORSE_GROUP = 0.05, 0.1
COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}
#: Kinds of data: slope of the log-odds, and whether all models are tried.
PROBLEMS = (("AUC .80", 0.6, True), ("AUC .92", 1.5, False))
#: A map of what is known of cases to probabilities.
Model = Callable[..., np.ndarray]
#: Costs take most of the time: one data set of so many has them, too.
WITH_COSTS = 4
SEEDS = [f"seed {place}" for place in range(1, 5)]


def drawn(rng: np.random.Generator, n: int, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels: two lines, and a product that a forest must find."""
    x = rng.normal(size=(n, 8))
    signal = 2.0 * x[:, 0] - 1.5 * x[:, 1] + x[:, 2] * x[:, 3] + 0.8 * x[:, 4]
    return x, (rng.random(n) < expit(slope * signal)).astype(np.int64)


def loss(y: np.ndarray, p: np.ndarray) -> float:
    """Mean log-loss."""
    return float(-np.log(np.where(y == 1, p, 1.0 - p)).mean())


class Models:
    """Forests of one training set, and worse models made from the first."""

    def __init__(self, seed: int, slope: float) -> None:
        self.slope, rng = slope, np.random.default_rng([seed, 0])
        x, y = drawn(rng, N_TRAINING, slope)
        self.forests = [
            RandomForestClassifier(50, min_samples_leaf=10, random_state=100 * seed + place).fit(
                x, y
            )
            for place in range(5)
        ]
        x, self.y = drawn(rng, N_LARGE, slope)
        self.logits, self.noise = self.scores(0, x), rng.normal(size=N_LARGE)
        self.base = loss(self.y, self.calibrated(0.0)(self.logits))
        self.worse, self.worse_group = (
            brentq(self.excess, 0.0, 20.0, (more,), xtol=1e-3) for more in (WORSE, WORSE_GROUP)
        )

    def scores(self, place: int, x: np.ndarray) -> np.ndarray:
        """Log-odds of a forest."""
        return logit(np.clip(self.forests[place].predict_proba(x)[:, 1], 1e-3, 1.0 - 1e-3))

    def excess(self, spread: float, more: float) -> float:
        """By how much such noise makes log-loss worse, beyond what is wanted."""
        noisy = self.logits + spread * self.noise
        return loss(self.y, self.calibrated(spread)(noisy)) - self.base - more

    @lru_cache(None)  # noqa: B019
    def calibrated(self, spread: float) -> Model:
        """Map of log-odds with noise to honest probabilities, from many cases."""
        noisy = self.logits + spread * self.noise
        return _probabilities(LogisticRegression(C=np.inf).fit(noisy[:, np.newaxis], self.y))


def _probabilities(fitted: LogisticRegression) -> Model:
    return lambda values: fitted.predict_proba(values[:, np.newaxis])[:, 1]


DataSet = tuple[Models, np.random.Generator]


def data_sets(n_sets: int, n_training: int, slope: float) -> Iterator[DataSet]:
    """Models with a generator for each data set."""
    for training in range(n_training):
        models = Models(training, slope)
        for place in range(n_sets // n_training):
            yield models, np.random.default_rng([training, 1, place])


def report(y, scores, costs, groups=None) -> Report:
    return Report.from_predictions(y, scores, costs=costs, groups=groups, n_worst=0)


class Tally:
    """How many data sets failed, by scenario and way."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[bool]] = {}
        self.figures: dict[tuple[str, str], dict[str, int]] = {}

    def add(self, what: str, way: str, checks: list[Check]) -> None:
        failed = [check for check in checks if not check.passed]
        self.rows.setdefault((what, way), []).append(bool(failed))
        counts = self.figures.setdefault((what, way), {})
        for title in {check.title for check in failed}:
            counts[title] = counts.get(title, 0) + 1


def held(tally, what, new, old, new_cases, old_cases, costs=None, *, groups=None, tolerance=None):
    """Both ways: the present model in the same file, and as a baseline of other cases."""
    y, x = new_cases
    scores = {name: model(x) for name, model in new.items()}
    options = {} if tolerance is None else {"tolerance": tolerance}
    both = report(y, {"present": old(x), **scores}, costs, groups)
    other, before = old_cases
    baseline = Baseline.of(report(other, {"present": old(before)}, costs, groups))
    alone = report(y, scores, costs, groups)
    for each in (False, True)[: 1 if groups is None else 2]:
        told = f"{what}, --each-group" if each else what
        own = {**options, "each_group": each}
        tally.add(told, "--against", check_gates(both, against="present", **own))
        tally.add(told, "--baseline", check_gates(alone, baseline=baseline, **own))


def one(
    tally: Tally, models: Models, rng: np.random.Generator, *, whole: bool, priced: bool
) -> None:
    """One data set: new cases, and the old ones of a baseline; groups are of the same sizes."""
    groups = rng.permutation(np.arange(N) % N_GROUPS)
    names = np.array(list("abcde"))[groups]
    cases = []
    for _ in range(2):
        x, y = drawn(rng, N, models.slope)
        cases.append((y, (x, rng.normal(size=(3, N)))))

    def forest(place):
        return lambda given: expit(models.scores(place, given[0]))

    def honest(spread, noise=0):
        to_probability = models.calibrated(spread)
        return lambda given: to_probability(models.scores(0, given[0]) + spread * given[1][noise])

    good, worse = honest(0.0), honest(models.worse)
    seeds = {name: forest(place) for place, name in enumerate(SEEDS, 1)}
    held(tally, "four seeds of one forest", seeds, forest(0), *cases, groups=names)
    held(tally, "worse by .05", {"new": worse}, good, *cases)
    if not whole:
        return
    if priced:
        held(tally, "four seeds of one forest, with costs", seeds, forest(0), *cases, COSTS)
        held(tally, "worse by .05, with costs", {"new": worse}, good, *cases, COSTS)
    new, old = (honest(models.worse, place) for place in (1, 2))
    held(tally, "exactly as good, tolerance 0", {"new": new}, old, *cases, tolerance=0.0)
    bad = honest(models.worse_group)

    def in_one_group(given):
        return np.where(groups == 0, bad(given), good(given))

    held(tally, "one group of five worse by .1", {"new": in_one_group}, good, *cases, groups=names)


def best_power(models: Models) -> float:
    """Power of one test of log-loss alone, 5 % one-sided, on other cases; no tolerance."""
    good = models.calibrated(0.0)(models.logits)
    bad = models.calibrated(models.worse)(models.logits + models.worse * models.noise)
    spreads = [np.std(np.log(np.where(models.y == 1, p, 1.0 - p))) for p in (good, bad)]
    return float(ndtr(WORSE / (np.hypot(*spreads) / np.sqrt(N)) + ndtri(0.05)))


def problem(name: str, slope: float, n_sets: int, n_training: int, whole: bool) -> list[str]:
    """Lines of the table of one kind of data."""
    tally, start, powers = Tally(), perf_counter(), {}
    for done, (models, rng) in enumerate(data_sets(n_sets, n_training, slope), 1):
        one(tally, models, rng, whole=whole, priced=done % WITH_COSTS == 0)
        powers[id(models)] = best_power(models)
        print(f"{name}: {done} of {n_sets}, {perf_counter() - start:.0f} s", flush=True)
    lines = ["", f"## {name}", "", "| new model | way | failed | checks that failed |"]
    lines.append("|---|---|---|---|")
    for (what, way), failed in tally.rows.items():
        counts = sorted(tally.figures[what, way].items(), key=lambda item: -item[1])
        told = ", ".join(f"{title} {count}" for title, count in counts)
        share = f"{100 * np.mean(failed):.1f} % of {len(failed)}"
        lines.append(f"| {what} | {way} | {share} | {told} |")
    best = 100 * np.mean(list(powers.values()))
    lines += [
        "",
        f"One test of log-loss alone, on other cases, has a power of {best:.0f} % at .05.",
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four data sets")
    quick = parser.parse_args().quick
    n_sets, n_training = (4, 2) if quick else (200, 20)
    lines = [
        "# The gate, measured",
        "",
        f"`python benchmarks/gate.py`: {n_sets} data sets of {N:,} cases ({n_training} training "
        f"sets, five forests of 50 trees each), fragility {fragility.__version__}, Python "
        f"{platform.python_version()}. A data set fails if any check of it does.",
    ]
    for name, slope, whole in PROBLEMS:
        lines += problem(name, slope, n_sets, n_training, whole)
        text = "\n".join(lines) + "\n"
        if not quick:
            RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
