"""What the experiments on real data share: rows of all methods, tables, paired differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame, Series

from experiments.claims import Claim, Verdict, gained
from experiments.experiment import Row
from experiments.merit import MERITS, merits
from experiments.protocol import LinearModel, Settings, Split, fitted_models
from experiments.tables import mean_interval, summarise
from experiments.worst_tenth import worst_tenth

__all__ = [
    "GAINS",
    "baseline_probabilities",
    "best_of",
    "compared",
    "first_of",
    "merit_table",
    "method_rows",
    "of_the_paper",
    "paired",
    "papers_claim",
    "quiet_models",
    "same_order",
    "share_better",
    "short",
    "side_of",
]

#: Whether more of a figure is better.
GAINS = {"accuracy": 1, "auc": 1, "fragility_index": -1}
_SIGNS = {**GAINS, "calibrated_fragility_index": -1}
#: Of the models in `method_rows`; baselines have intercepts of their own.
_INTERCEPTS = ("priced", "free")


def of_the_paper(results: DataFrame) -> DataFrame:
    """What the paper compares: linear models with a priced intercept, and baselines.

    Raises
    ------
    ValueError
        If the results do not say which intercept their models have.
    """
    if "intercept" not in results:
        raise ValueError(
            "These results do not say which intercept their models have: older code made them. Run "
            "the experiment again."
        )
    return results[results["intercept"] != "free"]


def papers_claim(claim: Claim) -> Claim:
    """The same claim, judged by what the paper compares."""
    return replace(claim, rule=lambda results: claim.rule(of_the_paper(results)))


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
    """One row for each method: its merits on the test half, and what was chosen.

    The linear models are there twice: with the paper's priced intercept, and with a free one.
    """
    nothing: Row = {
        "penalty": "",
        "alpha": np.nan,
        "target_ratio": np.nan,
        "train_fragility": np.nan,
        "norm": np.nan,
        "trivial": 0,
        "worst_tenth_weight": np.nan,
        "worst_tenth_loss": np.nan,
    }
    for intercept in _INTERCEPTS:
        for name, model in quiet_models(split, replace(settings, intercept=intercept)).items():
            found = merits(split.y_test, model.proba(split, settings.probability), [0, 1])
            named = {**more, "intercept": intercept, "method": name}
            yield short({**named, **found, **model.chosen(), **worst_tenth(split, model, name)})
    for name, p in baseline_probabilities(split, baselines, seed):
        found = merits(split.y_test, p, [0, 1])
        yield short({**more, "intercept": "own", "method": name, **found, **nothing})


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
                side = side_of(found, GAINS[measure])
                sides[side].append(f"{method} {measure} at {by} {value}")
    return sides


def side_of(interval: tuple[float, float, float], sign: int = 1) -> str:
    """On which side of zero a mean with its interval is: better, worse, or neither.

    `sign`: -1 if less is better. An interval of one trial, which has none, is neither.

    Examples
    --------
    >>> side_of((0.2, 0.1, 0.3)), side_of((0.2, 0.1, 0.3), -1), side_of((0.2, -0.1, 0.5))
    ('better', 'worse', 'neither')
    """
    _, low, high = interval
    if low > 0.0 or high < 0.0:
        return "better" if (low > 0.0) == (sign > 0) else "worse"
    return "neither"


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
    return gained(better, worse, total, because, holds=better > total / 2 and not worse)


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
    name = means.idxmax() if _SIGNS[measure] > 0 else means.idxmin()
    return str(name), float(means[name])


class First(NamedTuple):
    """The best of some methods by mean, the best of the others, and whether it is clearly first.

    `side` is "better" where the paired interval tells that the first is, "worse" where the other.
    """

    method: str
    value: float
    other: str
    other_value: float
    side: str

    def __str__(self) -> str:
        ahead = {"better": "clearly before", "worse": "clearly behind", "neither": "beside"}
        first = f"{self.method} {self.value:.3f}"
        return f"{first} {ahead[self.side]} {self.other} {self.other_value:.3f}"


def first_of(
    results: DataFrame, measure: str, methods: Sequence[str], others: Sequence[str]
) -> First | None:
    """Whether one of some methods has the best mean of all; None if either has no results."""
    ours = best_of(results, measure, methods)
    theirs = best_of(results, measure, [name for name in others if name not in methods])
    if ours is None or theirs is None:
        return None
    found = paired(results, measure, ours[0], theirs[0])
    assert found is not None
    return First(*ours, *theirs, side_of(found, _SIGNS[measure]))
