"""What the experiments on real data share: rows of all methods, tables, paired differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from pandas import DataFrame, Series

from experiments.claims import Verdict
from experiments.experiment import Row
from experiments.merit import MERITS, merits
from experiments.protocol import LinearModel, Settings, Split, fitted_models
from experiments.tables import mean_interval, summarise

__all__ = [
    "GAINS",
    "baseline_probabilities",
    "best_of",
    "compared",
    "merit_table",
    "method_rows",
    "paired",
    "quiet_models",
    "same_order",
    "share_better",
    "short",
]

#: Whether more of a figure is better.
GAINS = {"accuracy": 1, "auc": 1, "fragility_index": -1}


def short(row: Row) -> Row:
    """A row with its numbers to six digits: small files, and no noise of the machine."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }


def quiet_models(split: Split, settings: Settings) -> dict[str, LinearModel]:
    """ERM, KL and Wasserstein; a target that a trivial model meets is no surprise here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted_models(split, settings)


def baseline_probabilities(
    split: Split, baselines: Mapping[str, Callable[[int], Any]], seed: int
) -> Iterator[tuple[str, Any]]:
    """Probabilities of the second class on the test half, by each baseline."""
    for name, make in baselines.items():
        model = make(seed).fit(split.X_train, split.y_train)
        yield name, model.predict_proba(split.X_test)[:, 1]


def method_rows(
    split: Split,
    settings: Settings,
    baselines: Mapping[str, Callable[[int], Any]],
    seed: int,
    **more: str,
) -> Iterator[Row]:
    """One row for each method: its merits on the test half, and what was chosen."""
    nothing: Row = {
        "penalty": "",
        "alpha": np.nan,
        "target_ratio": np.nan,
        "train_fragility": np.nan,
        "norm": np.nan,
        "trivial": 0,
    }
    for name, model in quiet_models(split, settings).items():
        found = merits(split.y_test, model.proba(split, settings.probability), [0, 1])
        yield short({**more, "method": name, **found, **model.chosen()})
    for name, p in baseline_probabilities(split, baselines, seed):
        found = merits(split.y_test, p, [0, 1])
        yield short({**more, "method": name, **found, **nothing})


def merit_table(results: DataFrame, by: Sequence[str]) -> DataFrame:
    """Mean and interval of every merit, infinite indices counted, and the median index."""
    table = summarise(results, by, MERITS)
    groups = results.groupby(list(by), sort=False)
    table["fragility_index_median"] = groups["fragility_index"].median().to_numpy()
    if "trivial" in results:
        table["trivial"] = groups["trivial"].sum().to_numpy()
    return table


def paired(
    results: DataFrame, measure: str, method: str, other: str
) -> tuple[float, float, float] | None:
    """Mean over trials of one method's figure minus another's, and its 95 % interval.

    Trials where either is infinite are left out. None if either method has no results.
    """
    wide = results.pivot_table(index="trial", columns="method", values=measure, sort=False)
    if method not in wide or other not in wide:
        return None
    difference = (wide[method] - wide[other]).replace([np.inf, -np.inf], np.nan)
    return mean_interval(difference)


def compared(
    results: DataFrame,
    by: str,
    methods: Sequence[str],
    other: str = "ERM",
    measures: Sequence[str] = tuple(GAINS),
) -> dict[str, list[str]]:
    """Where methods are clearly better or worse than another, or neither: lists of cases."""
    sides: dict[str, list[str]] = {"better": [], "worse": [], "neither": []}
    for value, part in results.groupby(by, sort=False):
        for method in methods:
            for measure in measures:
                found = paired(part, measure, method, other)
                if found is None or np.isnan(found[0]):
                    continue
                _, low, high = (GAINS[measure] * x for x in found)
                low, high = min(low, high), max(low, high)
                side = "better" if low > 0.0 else "worse" if high < 0.0 else "neither"
                sides[side].append(f"{method} {measure} at {by} {value}")
    return sides


def share_better(sides: Mapping[str, Sequence[str]], what: str) -> Verdict | None:
    """Holds if most cases are clearly better and none clearly worse; partly if more are better."""
    better, worse = len(sides["better"]), len(sides["worse"])
    total = better + worse + len(sides["neither"])
    if not total:
        return None
    because = (
        f"{what}: clearly better in {better} of {total} comparisons, clearly worse in {worse} "
        f"(95 % intervals of paired differences)."
    )
    if worse:
        because += f" Worse: {', '.join(sides['worse'][:6])}{' ...' if worse > 6 else ''}."
    if better > total / 2 and not worse:
        return Verdict("holds", because)
    return Verdict("holds partly" if better > worse else "does not hold", because)


def same_order(first: Series, second: Series) -> tuple[int, int]:
    """Pairs of methods that both figures put in the same order, and pairs that they do order.

    Examples
    --------
    >>> same_order(Series({"A": 1, "B": 2, "C": 2}), Series({"A": 5, "B": 9, "C": 3}))
    (1, 2)
    """
    agreed = [
        _side(first[a], first[b]) * _side(second[a], second[b])
        for a, b in combinations(first.index, 2)
    ]
    return agreed.count(1), len(agreed) - agreed.count(0)


def _side(a: float, b: float) -> int:
    """Sign of the difference, of infinite figures, too."""
    return int(a > b) - int(a < b)


def best_of(results: DataFrame, measure: str, methods: Sequence[str]) -> tuple[str, float] | None:
    """The method of the best mean, and that mean; an infinite index is the worst."""
    part = results[results["method"].isin(methods)]
    if part.empty:
        return None
    means = part.groupby("method", sort=False)[measure].mean()
    name = means.idxmax() if GAINS[measure] > 0 else means.idxmin()
    return str(name), float(means[name])
