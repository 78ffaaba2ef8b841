"""Which recipe: many of them on four sets of images, judged by their validation images alone.

The test images are not looked at. What is best by the rule below is put into
``experiments/recipe.json``, and only then judged by the test images: see `medmnist_frozen`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from pandas import DataFrame

from experiments.comparison import short
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.merit import CAP

SETS = ("breast", "pneumonia", "retina", "blood")
_BASE = {"moved": 1.0, "average": 3.0}
_MIXED = {**_BASE, "mixup": 1.0}
#: Name -> what of `Recipe` is set.
CANDIDATES: Mapping[str, Mapping[str, Any]] = {
    "ERM": {},
    "smoothing": {"label_smoothing": 0.1},
    "mixup": {"mixup": 1.0},
    "averaged": {"average": 3.0},
    "averaged mixup": {"average": 3.0, "mixup": 1.0},
    "moved": {"moved": 1.0},
    "base": _BASE,
    "base half": {**_BASE, "moved": 0.5},
    "base smoothing": {**_BASE, "label_smoothing": 0.1},
    "base regulariser": {**_BASE, "regularizer": 0.1},
    "base regulariser weak": {**_BASE, "regularizer": 0.01},
    "base direct": {**_BASE, "direct": 0.3},
    "base direct regulariser": {**_BASE, "direct": 0.3, "regularizer": 0.1},
    "base direct tempered": {**_BASE, "direct": 0.3, "tempered": True},
    "base direct strong": {**_BASE, "direct": 1.0, "warmup": 5, "ramp": 10},
    "base half regulariser": {**_BASE, "moved": 0.5, "regularizer": 0.1},
    "base regulariser tightening": {**_BASE, "regularizer": 0.1, "tightening": 20},
    "base regulariser strong": {**_BASE, "regularizer": 0.3},
    "base smoothing regulariser": {**_BASE, "label_smoothing": 0.05, "regularizer": 0.1},
    "base mixup": _MIXED,
    "base mixup regulariser": {**_MIXED, "regularizer": 0.01},
    "base mixup direct": {**_MIXED, "direct": 0.3},
    "base regulariser taught": {**_BASE, "regularizer": 0.1, "teachers": 3},
}
#: The best four by two seeds; their further seeds, by set.
FINALISTS = (
    "base regulariser tightening",
    "base regulariser taught",
    "base regulariser",
    "base direct regulariser",
)
FINAL_TRIALS = {"breast": 6, "retina": 6, "pneumonia": 4, "blood": 2}
#: What recipes are ranked by, on every set; more is better, or less.
RANKED = {
    "accuracy": False,
    "auc_ovr": False,
    "log_loss": True,
    "capped_fragility_index": True,
    "scaled_fragility_index": True,
}


def conditions(quick: bool) -> list[Condition]:
    """Every candidate on every set, or those named in ``FRAGILITY_CANDIDATES``."""
    if quick:
        names = ("ERM", "base regulariser taught")
        return [{"dataset": "breast", "recipe": name} for name in names]
    asked = os.environ.get("FRAGILITY_CANDIDATES", "")
    names = tuple(asked.split(",")) if asked else tuple(CANDIDATES)
    if not set(names) <= set(CANDIDATES):
        raise ValueError(
            f"FRAGILITY_CANDIDATES: {asked!r} is not known. There are: {', '.join(CANDIDATES)}."
        )
    return [{"dataset": dataset, "recipe": name} for name in names for dataset in SETS]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """One training, judged by its validation images."""
    from experiments.deep.images import images
    from experiments.deep.recipe import Recipe
    from experiments.deep.training import DEVICE, judged, trained

    data = images(str(condition["dataset"]), quick, DEVICE)
    name = str(condition["recipe"])
    network = trained(data, Recipe(**CANDIDATES[name]), "7x7", seed)
    epoch = network.restore()
    figures = judged(network, data.val, data.val, seed)
    del figures["scaled_pairs"]  # a long text, for comparisons that are not made here
    yield short({"dataset": data.name, "epoch": epoch, "epochs": len(network.history), **figures})


def most_trials(condition: Condition) -> int:
    """Two seeds of all, more of the finalists."""
    return FINAL_TRIALS[str(condition["dataset"])] if condition["recipe"] in FINALISTS else 2


def ranking(results: DataFrame) -> DataFrame:
    """Mean figures of every candidate, and its mean rank over sets and figures, best first."""
    means = results.groupby(["recipe", "dataset"], sort=False)[list(RANKED)].mean()
    by_set = means.unstack("dataset").dropna()
    ranks = [
        by_set[figure].rank(ascending=less_is_better) for figure, less_is_better in RANKED.items()
    ]
    mean_rank = sum(rank.mean(axis=1) for rank in ranks) / len(ranks)
    table = DataFrame({"mean rank": mean_rank})
    for (figure, dataset), column in by_set.items():
        table[f"{dataset} {figure}"] = column
    return table.sort_values("mean rank", kind="stable").reset_index()


def report(results: DataFrame) -> Report:
    """All candidates by their first seeds, then the finalists by all of theirs."""
    tables = {"first_round": ranking(results[results["trial"] < 2])}
    text = (
        "ResNet-18 with the 7×7 stem; figures of the validation images only, which also chose "
        "epoch and temperature (with one case of each class added to the labels, as "
        "`fit_temperature` then did). Recipes are ranked by accuracy, AUC, log-loss, index "
        "(infinite "
        f"pairs as {CAP:g}) and index after scaling on each set (of Retina it is infinite with all "
        "of them, and decides nothing); the mean rank decides. All recipes have two seeds; the "
        "best four went on, with the seeds that all four of them have"
    )
    part = results[results["recipe"].isin(FINALISTS)]
    final = ranking(part)
    if len(final) > 1:
        tables["final"] = final
        seeds = part.groupby("dataset", sort=False)["trial"].nunique()
        counts = ", ".join(f"{number} of {dataset}" for dataset, number in seeds.items())
        best, second = final["recipe"][:2]
        gap = float(final["mean rank"][1] - final["mean rank"][0])
        text += f" ({counts}). The best of them is {best}, {gap:.2g} of a rank before {second}"
    text += ". The regulariser is that of earlier code, as in `medmnist`."
    return Report(tables, {}, text)


EXPERIMENT = Experiment(
    name="medmnist_search",
    title="medical images: which recipe, by validation images alone (ours)",
    trials=6,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    most_trials=most_trials,
)
