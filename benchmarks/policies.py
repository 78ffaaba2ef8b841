"""Do policies keep what they guarantee, and what they cost? A seeded simulation.

Run with ``make coverage``. Every sample is from a population in which the true errors and costs of
any policy are known. Counted is how often a guarantee is broken there, how much is automated beside
the best pair of thresholds, how often `compare_costs` finds a difference between models that do not
differ, and how often the interval of the cost holds the true one.
"""

from __future__ import annotations

import argparse
import platform
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
from joblib import Parallel, delayed
from scipy import special
from scipy.stats import qmc

from fragility import best_policy, compare_costs
from fragility._validation import check_labelled_probabilities
from fragility.calibration.table import ScoreTable
from fragility.deferral.choosing import Allowed
from fragility.deferral.costs import Costs
from fragility.deferral.decision_rules import LossLimit
from fragility.deferral.guarantees import Certified, certify, certify_weighted
from fragility.deferral.policy import Policy
from fragility.deferral.policy_search import PolicyCases
from fragility.deferral.problems import (
    FOLDS,
    certain_limit,
    certain_thresholds,
    two_classes,
)
from fragility.deferral.several_classes import SeveralClasses
from fragility.deferral.solving import PolicySettings, choose
from fragility.deferral.two_thresholds import Cuts
from fragility.scores.folds import dealt

RESULTS = Path(__file__).parent / "results" / "policies.md"
SIZES = (500, 2000, 10_000)
GUARANTEE = 0.95
LIMITS = {
    "max_error_share": 0.02,
    "max_error_rate": 0.1,
    "max_misses": 0.05,
    "max_false_alarms": 0.05,
}
#: Samples with policies fixed beforehand, for each one with cross-fitted policies.
FIXED = 4
LEAST_AUTOMATION = 0.92
TRIPLES = ((1.0, 1.0, 0.2), (1.0, 5.0, 0.6), (1.0, 20.0, 0.5))


class Pair(NamedTuple):
    """What a policy does in the population, as shares of all cases."""

    automated: float
    misses: float
    false_alarms: float
    positives: float

    def limited(self, name: str) -> float:
        """The true value of what a limit is about."""
        share = self.misses + self.false_alarms
        if name == "max_error_share":
            return share
        if name == "max_error_rate":
            return share / self.automated if self.automated > 0.0 else 0.0
        if name == "max_misses":
            return self.misses / self.positives
        return self.false_alarms / (1.0 - self.positives)


Drawn = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Found = dict[str, tuple[Any, Any, bool]]


class TwoClassPopulation:
    """A standard normal score z; the model reports an increasing function of it.

    Parameters
    ----------
    name : str
    truth : callable
        Probability of the positive class at z; with clusters at z and the effect of the cluster.
    log_odds : callable
        Log-odds of the reported score at z, increasing.
    review_cost : float, default=0.6
    criterion : str, default="cost"
    clustered : bool, default=False
        Clusters of ten share half of the variance of z, and an effect on their labels that the
        model does not see.
    """

    def __init__(
        self,
        name: str,
        truth: Callable[..., np.ndarray],
        log_odds: Callable[[np.ndarray], np.ndarray],
        review_cost: float = 0.6,
        criterion: str = "cost",
        clustered: bool = False,
    ) -> None:
        self.name, self._truth, self._log_odds = name, truth, log_odds
        self.criterion, self.clustered = criterion, clustered
        self.costs: dict[str, Any] = {"error_cost": [[0, 1], [5, 0]], "review_cost": review_cost}
        self.table = self._table()
        self.best = self._best()

    limits = tuple(LIMITS)

    def draw(self, rng: np.random.Generator, n: int) -> Drawn:
        """Labels, scores and clusters; drawn again until each class has two cases."""
        while True:
            z, effect, cluster = rng.normal(size=n), None, None
            if self.clustered:
                cluster = np.arange(n) // 10
                shared, effect = rng.normal(size=(2, cluster[-1] + 1))[:, cluster]
                z, effect = (z + shared) / np.sqrt(2.0), (effect,)
            y = (rng.random(n) < self._truth(z, *(effect or ()))).astype(np.int64)
            if np.bincount(y, minlength=2).min() >= 2:
                return y, special.expit(self._log_odds(z)), cluster

    def _table(self) -> tuple[np.ndarray, ...]:
        """Log-odds of scores, with the shares of negatives and positives below."""
        edges = np.linspace(-8.5, 8.5, 40_001)
        z = (edges[1:] + edges[:-1]) / 2.0
        p = self._truth(z)
        if self.clustered:
            nodes, weights = np.polynomial.hermite_e.hermegauss(61)
            p = sum(
                w * self._truth(z, u) for u, w in zip(nodes, weights / weights.sum(), strict=True)
            )
        mass = np.diff(special.ndtr(edges))
        below = (np.append(0.0, np.cumsum(mass * part)) for part in (1.0 - p, p))
        return self._log_odds(edges), *below

    def pair(self, lower: float, upper: float) -> Pair:
        """What two thresholds of the score do."""
        at, negatives, positives = self.table
        low, high = (special.logit(t) if t < 1.0 else inf for t in (lower, upper))
        misses = float(np.interp(low, at, positives))
        alarms = float(negatives[-1] - np.interp(high, at, negatives))
        right = float(
            np.interp(low, at, negatives) + positives[-1] - np.interp(high, at, positives)
        )
        return Pair(right + misses + alarms, misses, alarms, float(positives[-1]))

    def cost(self, lower: float, upper: float) -> float:
        """Mean cost of a case at two thresholds."""
        (_, alarm), (miss, _) = self.costs["error_cost"]
        found = self.pair(lower, upper)
        reviews = self.costs["review_cost"] * (1.0 - found.automated)
        return alarm * found.false_alarms + miss * found.misses + reviews

    def _best(self) -> dict[str, tuple[float, float]]:
        """Largest automation of a pair that keeps a limit of errors, and that of the cheapest."""
        _, negatives, positives = (part[::20] for part in self.table)
        below, total = negatives + positives, float(negatives[-1] + positives[-1])
        automated = below[:, np.newaxis] + total - below
        share = positives[:, np.newaxis] + negatives[-1] - negatives
        ordered = np.triu(np.ones(share.shape, dtype=np.bool_))
        (_, alarm), (miss, _) = self.costs["error_cost"]
        cost = miss * positives[:, np.newaxis] + alarm * (negatives[-1] - negatives)
        cost += self.costs["review_cost"] * (total - automated)
        found = {}
        for name, base in (("max_error_share", total), ("max_error_rate", automated)):
            valid = ordered & (share <= LIMITS[name] * base)
            cheapest = np.where(valid, cost, inf).argmin()
            found[name] = float(automated[valid].max()), float(automated.flat[cheapest])
        return found

    def evaluate(self, policy: Any) -> Pair:
        """What a policy of `certified_policies` does."""
        return self.pair(*policy)


class ThreeClassPopulation:
    """Three classes, normal around their corners; the model is overconfident by a temperature."""

    name = "three classes"
    criterion, clustered = "cost", False
    limits = ("max_error_share", "max_error_rate")
    _separation, _temperature = 2.0, 1.5

    def __init__(self) -> None:
        self.costs: dict[str, Any] = {"error_cost": 5.0, "review_cost": 0.6}
        self.table = self._table()
        self.best = self._best()

    def draw(self, rng: np.random.Generator, n: int) -> Drawn:
        """Labels and scores."""
        y = rng.integers(0, 3, n)
        x = rng.normal(size=(n, 3)) + self._separation * np.eye(3)[y]
        return y, special.softmax(self._temperature * self._separation * x, axis=1), None

    def _table(self) -> tuple[np.ndarray, list[tuple[np.ndarray, ...]]]:
        """For many temperatures: losses, with the shares automated and wrong up to each.

        All classes are alike, so the cases of one of them will do. Their errors are not drawn but
        expected.
        """
        n = 2**17
        x = special.ndtri(qmc.Sobol(3, rng=np.random.default_rng(0)).random(n))
        logits = self._separation * (x + self._separation * np.eye(3)[0])
        wrong = 1.0 - special.softmax(logits, axis=1).max(axis=1)
        temperatures = self._temperature * np.exp(np.linspace(-0.6, 0.6, 121))
        found, kept = [], np.append(np.arange(63, n, 64), n - 1)
        for temperature in temperatures:
            p = special.softmax(self._temperature / temperature * logits, axis=1).max(axis=1)
            order = np.argsort(-p)
            losses = self.costs["error_cost"] * (1.0 - p[order])
            found.append((losses[kept], (kept + 1) / n, np.cumsum(wrong[order])[kept] / n))
        return np.log(temperatures), found

    def evaluate(self, policy: LossLimit) -> Pair:
        """What a limit of the loss does; errors of every kind count as misses."""
        logs, tables = self.table
        place = np.interp(np.log(policy.temperature), logs, np.arange(logs.size))
        left = min(int(place), logs.size - 2)
        ends = [
            [np.interp(policy.limit, losses, part, left=0.0) for part in shares]
            for losses, *shares in tables[left : left + 2]
        ]
        automated, wrong = np.array(ends[0]) + (place - left) * np.subtract(ends[1], ends[0])
        return Pair(float(automated), float(wrong), 0.0, 1.0)

    def _best(self) -> dict[str, tuple[float, float]]:
        """Largest automation by the true probabilities that keeps a limit, and the cheapest."""
        logs, tables = self.table
        losses, automated, wrong = tables[int(np.abs(logs - np.log(self._temperature)).argmin())]
        worth = losses <= self.costs["review_cost"]
        found = {}
        for name, base in (("max_error_share", 1.0), ("max_error_rate", automated)):
            valid = wrong <= LIMITS[name] * base
            found[name] = float(automated[valid].max()), float(automated[valid & worth].max())
        return found


Population = TwoClassPopulation | ThreeClassPopulation


def logistic(slope: float, intercept: float, effect: float = 0.0) -> Callable[..., np.ndarray]:
    """Probabilities whose log-odds are linear in z."""

    def truth(z: np.ndarray, shared: np.ndarray | float = 0.0) -> np.ndarray:
        return special.expit(slope * z + intercept + effect * shared)

    return truth


def line(slope: float, intercept: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    return lambda z: slope * z + intercept


def power(slope: float, intercept: float, exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    """Log-odds of a power of the probability: no logistic map undoes it."""

    def log_odds(z: np.ndarray) -> np.ndarray:
        log_p = exponent * special.log_expit(slope * z + intercept)
        return log_p - np.log(-np.expm1(log_p))

    return log_odds


def flat(z: np.ndarray) -> np.ndarray:
    """About one error in ten wherever a case is automated: neither threshold is well known.

    It is lower where the model is surest, so that the rate passes 10 % within the flat part.
    """
    error = 0.05 + 0.058 * np.clip((2.2 - np.abs(z)) / 0.8, 0.0, 1.0)
    return error + (1.0 - 2.0 * error) * special.ndtr(z / 0.1)


def all_populations() -> tuple[Population, ...]:
    return (
        TwoClassPopulation("calibrated", logistic(2.0, -0.8), line(2.0, -0.8)),
        TwoClassPopulation("overconfident", logistic(2.0, -0.8), line(6.0, -2.4)),
        TwoClassPopulation("skewed", logistic(2.0, -0.8), power(2.0, -0.8, 3.0)),
        TwoClassPopulation("rare", logistic(2.0, -4.7), line(2.0, -4.7)),
        ThreeClassPopulation(),
        TwoClassPopulation("clustered", logistic(2.0, -0.8, 1.0), line(2.0, -0.8), clustered=True),
        TwoClassPopulation("flat", flat, line(2.0)),
        TwoClassPopulation("few errors", logistic(150.0, 0.0), line(10.0), 3.0, "fragility"),
    )


def settings_of(population: Population, name: str, n_classes: int) -> PolicySettings:
    limit, criterion = {name: LIMITS[name]}, population.criterion
    found = PolicySettings.of(guarantee=GUARANTEE, criterion=criterion, **limit)
    return found.checked(n_classes)


def certified_policies(population: Population, drawn: Drawn) -> Found:
    """For each limit the policy of `best_policy`, the largest certified one, and if it is kept.

    Costs on held-out cases, fragility and intervals are left out, for speed; and of the random
    splits all but the first, which alone the guarantees use.
    """
    y, scores, cluster = drawn
    data = check_labelled_probabilities(y, scores, None, None, None, name="proba")
    n_classes = data.labels.size
    costs = Costs(**population.costs).checked(n_classes, y.size)
    cases = PolicyCases.of(data, costs, cluster)
    certify_one: Callable[[PolicySettings], Certified]
    if cluster is not None:
        problem = cases.problem("auto", 0, by_case=True)
        weighted = cases._weighted_cases(problem, 0)

        def certify_one(settings: PolicySettings) -> Certified:
            return certify_weighted(problem.whole, weighted, settings.limits)
    else:
        problem = cases.problem("auto", 0, by_case=False) if n_classes > 2 else _two(cases)

        def certify_one(settings: PolicySettings) -> Certified:
            return certify(problem.whole, settings.limits)

    found: Found = {}
    finer = None if n_classes > 2 else problem.refined(ScoreTable.of_cases(cases.data, None))
    for name in population.limits:
        settings = settings_of(population, name, n_classes)
        certified = certify_one(settings)
        kept, allowed = certified.guarantees[0].kept, certified.allowed
        part = problem.whole
        if finer is not None:
            allowed, part = finer.refined(allowed, problem.whole), finer
        policies = []
        for cuts in (choose(part, settings, cases.capacity, allowed), corner(allowed, part)):
            if isinstance(problem, SeveralClasses):
                limit = certain_limit(part, cuts, costs.matrix(n_classes), True)
                policies.append(LossLimit(limit, problem.temperature))
            else:
                known = certified.allowed
                policies.append(certain_thresholds(problem.whole, known, part, cuts))
        found[name] = policies[0], policies[1], kept
    return found


def _two(cases: PolicyCases) -> Any:
    """The problem of two classes with its first split alone."""
    table, positive = cases.table, cases.data.positive
    units = table.units
    n_folds = min(FOLDS, int(units.sum(axis=1).min()))
    split = [dealt(units[code], n_folds, [int(code == positive), 0, 0]) for code in range(2)]
    labels, folds = cases.data.labels, [np.stack(split)]
    return two_classes(table, positive, labels, cases.costs, 0, None, folds)


def corner(allowed: Allowed, part: Any) -> Cuts:
    """The largest policy that is certified; of one limited side, it alone counts."""
    if allowed.points is None:
        return Cuts(*allowed.box)
    lowers, uppers = allowed.points
    return Cuts(int(lowers[-1]), int(uppers[-1])) if lowers.size else Cuts(0, part.n_places)


def check_same(population: Population, n: int, seed: int) -> None:
    """The shortcut finds the policy of `best_policy`."""
    y, scores, cluster = drawn = population.draw(np.random.default_rng(seed), n)
    for name, (chosen, _, kept) in certified_policies(population, drawn).items():
        limit = {name: LIMITS[name], "guarantee": GUARANTEE, "criterion": population.criterion}
        whole = best_policy(y, scores, cluster=cluster, **limit, **population.costs)
        same = (whole.lower, whole.upper) if len(whole.labels) == 2 else whole.decision
        assert same == chosen, (population.name, n, name, same, chosen)
        assert whole.guaranteed == kept, (population.name, n, name)


def guarantees(population: Population, n: int, seed: int) -> list[list[float]]:
    """For each limit: true value and automation of both policies, and whether it is kept."""
    drawn = population.draw(np.random.default_rng(seed), n)
    rows = []
    for name, (*policies, kept) in certified_policies(population, drawn).items():
        pairs = [population.evaluate(policy) for policy in policies]
        rows.append([*(x for p in pairs for x in (p.limited(name), p.automated)), float(kept)])
    return rows


def simulate(task: Callable[[int], Any], name: str, n: int, repetitions: int) -> np.ndarray:
    seeds = np.random.SeedSequence([zlib.crc32(name.encode()), n]).generate_state(repetitions)
    batches = np.array_split(seeds, min(20, repetitions))
    results = Parallel(n_jobs=-1)(delayed(_each)(task, batch.tolist()) for batch in batches)
    return np.array([row for rows in results for row in rows], dtype=float)


def _each(task: Callable[[int], Any], seeds: Iterable[int]) -> list:
    return [task(seed) for seed in seeds]


def highest(nominal: float, repetitions: int) -> float:
    """Largest share that two standard errors allow."""
    return nominal + 2.0 * (nominal * (1.0 - nominal) / repetitions) ** 0.5


def marked(value: float, good: bool) -> str:
    return f"{value:.3f}" if good else f"**{value:.3f}**"


def guarantee_rows(
    populations: Sequence[Population], repetitions: int
) -> Iterable[tuple[str, ...]]:
    line_ = highest(1.0 - GUARANTEE, repetitions)
    for population in populations:
        for n in SIZES if population.criterion == "cost" else SIZES[:2]:
            for seed in range(2):
                check_same(population, n, seed)

            def task(seed: int, population=population, n=n) -> list[list[float]]:
                return guarantees(population, n, seed)

            results = simulate(task, population.name, n, repetitions)
            cells, ratios, kept = [], [], []
            for name, found in zip(population.limits, np.moveaxis(results, 1, 0), strict=True):
                for column in (0, 2):
                    broken = float((found[:, column] > LIMITS[name] + 1e-9).mean())
                    cells.append(marked(broken, broken <= line_))
                kept.append(f"{found[:, 4].mean():.2f}")
                if name in population.best:
                    largest, cheapest = population.best[name]
                    automated = float(found[:, 3].mean())
                    ratio = automated / cheapest
                    asked = name == "max_error_share" and n == SIZES[-1]
                    asked &= population.name in ("calibrated", "overconfident", "skewed", "rare")
                    ratios.append(marked(ratio, not asked or ratio >= LEAST_AUTOMATION))
                    ratios.append(f"{automated / largest:.3f}")
            cells += ["–"] * (2 * len(LIMITS) - len(cells))
            yield population.name, str(n), *cells, *ratios, ", ".join(kept)


class Models(NamedTuple):
    """Two models that do not differ: one logit, with independent noise of the same size."""

    base_rate: float
    intercept: float
    costs: tuple[float, float, float]

    @property
    def arguments(self) -> dict[str, Any]:
        alarm, miss, review = self.costs
        return {"error_cost": [[0.0, alarm], [miss, 0.0]], "review_cost": review}

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        while True:
            logit = 2.0 * rng.normal(size=n) + self.intercept
            y = (rng.random(n) < special.expit(logit)).astype(np.int64)
            if np.bincount(y, minlength=2).min() >= 2:
                return y, *(special.expit(logit + rng.normal(size=n)) for _ in range(2))


def fixed_policies(models: Models) -> list[Policy]:
    """Policies from 2,000 other cases. Both models take the same one: then they do not differ."""
    drawn = [models.draw(np.random.default_rng([number, 2000]), 2000) for number in range(20)]
    return [best_policy(y, scores, **models.arguments) for y, scores, _ in drawn]


def comparisons(models: Models, policies: Sequence[Policy], n: int, seed: int) -> list[float]:
    """p-values with cross-fitted policies, and on other samples with one fixed beforehand."""
    rng = np.random.default_rng(seed)
    y, a, b = models.draw(rng, n)
    found = [compare_costs(y, a, b, **models.arguments).p_value]
    for _ in range(FIXED):
        y, a, b = models.draw(rng, n)
        policy = policies[int(rng.integers(len(policies)))]
        pair = policy, policy
        found.append(compare_costs(y, a, b, policies=pair, **models.arguments).p_value)
    return found


def comparison_rows(repetitions: int) -> Iterable[tuple[str, ...]]:
    for base_rate, intercept in ((0.5, 0.0), (0.1, -3.39)):
        for costs in TRIPLES:
            models = Models(base_rate, intercept, costs)
            policies = fixed_policies(models)
            for n in (200, *SIZES[:2]):

                def task(seed: int, models=models, policies=policies, n=n) -> list[float]:
                    return comparisons(models, policies, n, seed)

                few = repetitions // 4 if n < SIZES[0] else repetitions
                p_values = simulate(task, f"{base_rate} {costs}", n, few)
                crossed, fixed = ((part < 0.05).mean() for part in np.split(p_values, [1], axis=1))
                none = float(np.isnan(p_values[:, 0]).mean())
                yield (
                    f"{base_rate:g}",
                    ", ".join(f"{c:g}" for c in costs),
                    str(n),
                    marked(crossed, n < 500 or crossed <= 0.065),
                    f"{none:.3f}",
                    marked(fixed, n < 500 or 0.04 <= fixed <= 0.06),
                )


def intervals(population: TwoClassPopulation, n: int, seed: int) -> list[float]:
    """Whether the truth is below or above the interval of the cost; cost, and true cost."""
    y, scores, _ = population.draw(np.random.default_rng(seed), n)
    found = best_policy(y, scores, **population.costs)
    truth = population.cost(found.lower, found.upper)
    low, high = found.cost_interval
    return [truth < low, truth > high, found.cost, truth]


def interval_rows(populations: Sequence[Population], repetitions: int) -> Iterable[tuple[str, ...]]:
    for population in populations:
        if population.name not in ("calibrated", "overconfident", "rare"):
            continue
        for n in SIZES[:2]:

            def task(seed: int, population=population, n=n) -> list[float]:
                return intervals(population, n, seed)

            below, above, cost, truth = simulate(task, population.name, n, repetitions).mean(axis=0)
            shares = (1.0 - below - above, below, above)
            costs = (f"{x:.4f}" for x in (cost, truth))
            yield population.name, str(n), *(f"{x:.3f}" for x in shares), *costs


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
    parser.add_argument("--parts", default="123", help="which tables; if not all, none is saved")
    parser.add_argument("--populations", nargs="*", help="names; if given, nothing is written")
    args = parser.parse_args()
    repetitions = 100 if args.quick else args.repetitions
    fewer, fewest = max(repetitions // 4, 4), max(repetitions // 4, 1)
    populations = [
        p for p in all_populations() if not args.populations or p.name in args.populations
    ]
    start = time.perf_counter()
    kept = compared = covered = ""
    if "1" in args.parts:
        kept = table(
            (
                "population", "n", "error share: chosen", "largest", "error rate: chosen",
                "largest", "misses: chosen", "largest", "false alarms: chosen", "largest",
                "share: automation / cheapest",
                "/ largest", "rate: automation / cheapest", "/ largest", "kept at all",
            ),
            guarantee_rows(populations, repetitions),
        )  # fmt: skip
    if "2" in args.parts:
        compared = table(
            (
                "base rate", "false alarm, miss, review", "n", "cross-fitted", "no test",
                "fixed beforehand",
            ),
            comparison_rows(fewer),
        )  # fmt: skip
    if "3" in args.parts:
        covered = table(
            ("population", "n", "coverage", "truth below", "truth above", "cost", "true cost"),
            interval_rows(populations, fewest),
        )
    minutes = (time.perf_counter() - start) / 60.0
    print(f"{minutes:.1f} minutes")
    text = "\n\n".join(
        [
            "# Guarantees, comparisons and costs of policies",
            f"`make coverage`: seeded, {minutes:.0f} minutes; Python {platform.python_version()}, "
            f"NumPy {np.__version__}, SciPy {scipy.__version__}. Bold: missed what is asked for.",
            "## Guarantees",
            f"{repetitions} samples per row. Share of the samples in which the policy of "
            f"`best_policy` breaks its limit in the population: at most "
            f"{100 * LIMITS['max_error_share']:g} % errors of all cases, "
            f"{100 * LIMITS['max_error_rate']:g} % of those decided alone, "
            f"{100 * LIMITS['max_misses']:g} % of the positives missed, or "
            f"{100 * LIMITS['max_false_alarms']:g} % of the negatives false alarms, one limit at a "
            f"time, guaranteed with {100 * GUARANTEE:g} %. Chosen: by cost among what is certified "
            "(false alarm 1, miss 5, review 0.6; three classes 5 and 0.6). Largest: all of it that "
            f"is certified. Asked for: at most {highest(1 - GUARANTEE, repetitions):.4f}. "
            "Automation: of the largest certified policies, by that of the pair of thresholds in "
            "the population that keeps the limit and costs least, or automates most. The path that "
            "is certified is that of the least cost, so it falls short of the latter with any "
            f"number of cases. Asked for is {LEAST_AUTOMATION} of the former, for the share at "
            f"{SIZES[-1]:,} cases, in the first four populations. Few errors: a review costs 3, "
            "and the least fragile policy is chosen; nearly all cases may be automated. Kept at "
            "all: share of the samples in which each limit lets the model decide anything.",
            kept,
            "## Two models that do not differ",
            f"{fewer} samples per row (policies fixed beforehand: {FIXED * fewer}). Share in which "
            "`compare_costs` finds a difference at the level 0.05 between two noisy versions of "
            "one logit. Asked for from 500 cases on: at most 0.065 with cross-fitted policies, "
            "0.04 to 0.06 with a policy fixed beforehand. No test: too few costly cases.",
            compared,
            "## Interval of the cost",
            f"{fewest} samples per row. Coverage of `Policy.cost_interval` (nominal 95 %), for the "
            "true cost of the very policy; the interval is of policies chosen on four fifths of "
            "the cases. For information.",
            covered,
        ]
    )
    if not args.quick and set("123") <= set(args.parts) and not args.populations:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
