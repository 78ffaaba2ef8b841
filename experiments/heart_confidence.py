"""Heart failure at 10 % label noise: how sure the models are, when right and when wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from experiments import figures
from experiments.claims import Claim, Verdict, gained, mostly, share
from experiments.comparison import paired, quiet_models, same_order, short, side_of
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.merit import merits
from experiments.protocol import QUICK, Settings, split_data
from experiments.real_data import real_data
from experiments.tables import mean_interval, summarise
from fragility import ranking_error_cvar

METHODS = ("ERM", "KL", "Wasserstein")
#: Densities that are kept: prefix of their columns -> title, ends and number of bins.
DENSITIES = {
    "error": ("ranking error", (-1.0, 1.0), 40),
    "wrong": ("confidence of wrong predictions", (0.5, 1.0), 20),
    "right": ("confidence of right predictions", (0.5, 1.0), 20),
}
#: A ranking error above this is a confident misjudgment.
CONFIDENT = 0.5
_TAIL = 0.95
#: Differences of accuracy and AUC that are called similar.
SIMILAR = 0.01
FIGURES = (
    "accuracy",
    "auc",
    "fragility_index",
    "ratio",
    "calibrated_fragility_index",
    "log_loss",
    "mean_confidence_wrong",
    "mean_confidence_right",
    "confident_errors",
    "error_cvar",
)


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Densities of three models on one split, with both maps from scores to probabilities."""
    data = real_data("heart", quick)
    settings = QUICK if quick else Settings()
    split = split_data(data.X, data.y, float(condition["flip"]), seed, settings)
    models = quiet_models(split, settings)
    for probability in ("platt", "sigmoid"):
        for method, model in models.items():
            p = model.proba(split, probability)
            yield {
                "dataset": data.name,
                "probability": probability,
                "method": method,
                **short(merits(split.y_test, p, [0, 1])),
                **short(_confidences(split.y_test, p)),
            }


def _confidences(y: Any, p: Any) -> Row:
    errors = (p[y == 0][:, np.newaxis] - p[y == 1][np.newaxis]).ravel()
    confidence, right = np.maximum(p, 1.0 - p), (p >= 0.5) == (y == 1)
    row: Row = {
        "mean_confidence_wrong": float(confidence[~right].mean()) if not right.all() else np.nan,
        "mean_confidence_right": float(confidence[right].mean()),
        "confident_errors": float(np.mean(errors > CONFIDENT)),
        "error_cvar": float(ranking_error_cvar(y, p, level=_TAIL)),
    }
    for name, values in (
        ("error", errors),
        ("wrong", confidence[~right]),
        ("right", confidence[right]),
    ):
        _, ends, bins = DENSITIES[name]
        counts, _ = np.histogram(values, bins, ends)
        density = counts / max(values.size, 1) * bins / (ends[1] - ends[0])
        row |= {f"{name}_{place:02d}": round(float(x), 5) for place, x in enumerate(density)}
    return row


def report(results: DataFrame) -> Report:
    """Means, and the densities of each map."""
    maps = list(dict.fromkeys(results["probability"]))
    return Report(
        {"confidence": summarise(results, ["probability", "method"], FIGURES)},
        {f"densities_{name}": lambda name=name: _densities(results, name) for name in maps},
        f"Training labels flipped with probability 0.1. `platt`: probabilities by Platt's map, "
        "fitted to out-of-fold scores of the training half, as in the paper; `sigmoid`: the "
        f"sigmoid of the scores. `confident errors` is the share of pairs whose ranking error is "
        f"above {CONFIDENT}; `error cvar` the mean of the largest 5 % of ranking errors. How much "
        "of a lower index is smaller scores alone: `scale_matched` beside this one.",
    )


def _densities(results: DataFrame, probability: str) -> Figure:
    figure, axes = figures.panels(3)
    part = results[results["probability"] == probability]
    for ax, (name, (title, ends, bins)) in zip(axes.flat, DENSITIES.items(), strict=True):
        edges = np.linspace(*ends, bins + 1)
        middles = (edges[:-1] + edges[1:]) / 2.0
        for place, method in enumerate(METHODS):
            rows = part[part["method"] == method]
            found = [mean_interval(rows[f"{name}_{i:02d}"]) for i in range(bins)]
            mean, low, high = np.transpose(found)
            ax.plot(middles, mean, color=figures.colour(place), label=method)
            ax.fill_between(middles, low, high, color=figures.colour(place), alpha=0.15, lw=0)
        ax.set(title=title, ylabel="density")
    axes[0, 0].axvline(0.0, color=figures.GREY, linewidth=0.8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _ordered(measures: dict[str, int]) -> Any:
    """Rule: each figure falls (-1) or rises (+1) from ERM to KL to Wasserstein, clearly."""

    def rule(results: DataFrame) -> Verdict | None:
        part = results[results["probability"] == "platt"]
        if part.empty:
            return None
        sides, said = [], []
        means = part.groupby("method", sort=False)[list(measures)].mean()
        for measure, sign in measures.items():
            for method, other in (("KL", "ERM"), ("Wasserstein", "KL"), ("Wasserstein", "ERM")):
                found = paired(part, measure, method, other)
                assert found is not None
                sides.append(side_of(found, sign))
            values = ", ".join(f"{method} {means.loc[method, measure]:.4f}" for method in METHODS)
            said.append(f"{measure.replace('_', ' ')}: {values}")
        better, worse = sides.count("better"), sides.count("worse")
        because = (
            f"After Platt scaling {better} of {len(sides)} steps clearly go that way, {worse} "
            f"clearly the other (95 %, paired). {'; '.join(said)}."
        )
        return gained(better, worse, len(sides), because)

    return rule


def _alike_but_for_the_index(results: DataFrame) -> Verdict | None:
    """Sigmoid of the scores: accuracy and AUC near those of ERM, each step of the index clear."""
    part = results[results["probability"] == "sigmoid"]
    if part.empty:
        return None
    near, said = 0, []
    means = part.groupby("method", sort=False)[["accuracy", "auc", "fragility_index"]].mean()
    for measure in ("accuracy", "auc"):
        near += sum(
            abs(means.loc[method, measure] - means.loc["ERM", measure]) <= SIMILAR
            for method in METHODS[1:]
        )
    lower = 0
    for other, method in pairwise(METHODS):
        found = paired(part, "fragility_index", method, other)
        assert found is not None
        lower += found[2] < 0.0
    for measure in means:
        listed = ", ".join(f"{method} {means.loc[method, measure]:.3f}" for method in METHODS)
        said.append(f"{measure.replace('_', ' ')} {listed}")
    return share(
        near + lower,
        6,
        f"{near} of 4 differences of accuracy and AUC from ERM are at most {SIMILAR:g}; {lower} of "
        f"2 steps of the index are clear (95 %, paired). {'; '.join(said)}.",
    )


def _index_follows_confidence(results: DataFrame) -> Verdict | None:
    """Pairs of models on the same split: the one with the lower index errs less confidently."""
    held, of, said = 0, 0, []
    for probability, part in results.groupby("probability", sort=False):
        alike = pairs = 0
        for _, rows in part.groupby("trial", sort=False):
            of_model = rows.set_index("method")
            for measure in ("confident_errors", "error_cvar", "mean_confidence_wrong"):
                values = of_model[["fragility_index", measure]].dropna()
                found = same_order(values["fragility_index"], values[measure])
                alike, pairs = alike + found[0], pairs + found[1]
        held, of = held + alike, of + pairs
        said.append(f"{alike} of {pairs} ({probability})")
    if not of:
        return None
    return mostly(
        held,
        of,
        "Pairs of models on one split that the index orders like their share of confident errors, "
        f"tail of ranking errors and confidence when wrong: {', '.join(said)}; half would be "
        "chance.",
    )


EXPERIMENT = Experiment(
    name="heart_confidence",
    title="heart failure: ranking errors and confidence at 10 % label noise",
    trials=100,
    quick_trials=2,
    conditions=lambda quick: [{"flip": 0.1}],
    trial=trial,
    report=report,
    claims=[
        Claim(
            "5.2",
            "The tail of ranking errors grows from the Wasserstein model to KL to ERM.",
            _ordered({"confident_errors": -1, "error_cvar": -1}),
        ),
        Claim(
            "5.2",
            "When wrong, the Wasserstein model is the least confident and ERM the most.",
            _ordered({"mean_confidence_wrong": -1}),
        ),
        Claim(
            "5.2",
            "When right, the Wasserstein model is the most confident and ERM the least.",
            _ordered({"mean_confidence_right": 1}),
        ),
        Claim(
            "5.2",
            "The three models have similar accuracy and AUC, while FI falls from ERM to KL to "
            "Wasserstein.",
            _alike_but_for_the_index,
        ),
        Claim(
            "5.2",
            "A lower FI goes with a lower risk of confident misjudgment.",
            _index_follows_confidence,
        ),
    ],
)
