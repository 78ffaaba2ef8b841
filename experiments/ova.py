"""One versus all against one versus one: how class sizes enter the index.

The ranking errors of a class against all others are a mixture of those against each other class,
weighted by class sizes. The paper gives the index of the parts and of the mixtures, not the errors.
Ours are normal with mean −0.5, scaled so that each part has exactly the printed index. The one
mean serves all of it; of −0.3, −0.4, −0.5, −0.6 and −0.8 it comes nearest to the printed table. A
part without any risk is uniform on [−1, −0.3].
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pandas import DataFrame, read_csv

from experiments import figures, tables
from experiments.claims import Claim, Verdict, share
from experiments.experiment import Condition, Experiment, Report, Row
from fragility import loss_fragility

MEAN = -0.5
SAFE = (-1.0, -0.3)
SAMPLES, QUICK_SAMPLES = 5000, 200
RISKIER, SAFER = 0.077, 0.055
#: The conflict: class 2 is 49 times as large as class 3; index against each, OVO, OVA as printed.
SHARES = (49.0, 1.0)
CONFLICT = {"a": (0.0, 0.0824, 0.0412, 0.0531), "b": (0.0554, 0.0, 0.0277, 0.0552)}


def printed() -> DataFrame:
    """The paper's table."""
    return read_csv(Path(__file__).parent / "printed" / "ova_weights.csv")


def errors_of(rng: np.random.Generator, index: float, n: int) -> NDArray[np.float64]:
    """Ranking errors that have this index."""
    if index == 0.0:
        return rng.uniform(*SAFE, size=n)
    # Normal errors have the index variance / (−2 mean); scaling makes it exact for the sample. One
    # of few errors may have none above zero, hence no risk that a scale could change: draw again.
    found = 0.0
    while found == 0.0:
        errors = MEAN + np.sqrt(-2.0 * MEAN * index) * rng.normal(size=n)
        found = loss_fragility(errors, target=0.0)
    return np.asarray(errors * (index / found))


def mixed(
    first: NDArray[np.float64], second: NDArray[np.float64], shares: tuple[float, float]
) -> float:
    """Index of a mixture of two kinds of errors."""
    weights = np.repeat(shares, [first.size, second.size])
    return float(loss_fragility(np.r_[first, second], target=0.0, sample_weight=weights))


def conditions(quick: bool) -> list[Condition]:
    """The weights of the table, and the two classifiers of the conflict."""
    weights = printed()["weight_of_the_riskier_class"]
    mixtures = [{"part": "mixture", "case": f"{w:.1f}"} for w in weights]
    return [*mixtures, *({"part": "conflict", "case": name} for name in CONFLICT)]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """One drawing of the errors."""
    rng, n = np.random.default_rng(seed), QUICK_SAMPLES if quick else SAMPLES
    if condition["part"] == "mixture":
        indices, weight = (RISKIER, SAFER), float(condition["case"])
        shares = (weight, 1.0 - weight)
    else:
        first, second, _, _ = CONFLICT[str(condition["case"])]
        indices, shares = (first, second), SHARES
    parts = [errors_of(rng, index, n) for index in indices]
    found = [float(loss_fragility(part, target=0.0)) for part in parts]
    yield {
        "first": found[0],
        "second": found[1],
        "ovo": sum(found) / 2.0,
        "ova": mixed(parts[0], parts[1], shares),
    }


def report(results: DataFrame) -> Report:
    """Mixtures by weight beside the printed ones, and the conflict."""
    mixtures = results[results["part"] == "mixture"]
    weights = tables.summarise(mixtures, ["case"], ["ova"]).rename(columns={"case": "weight"})
    weights["paper"] = printed()["ova_index"].to_numpy()
    weights["difference"] = weights["ova"] - weights["paper"]
    conflict = tables.summarise(
        results[results["part"] == "conflict"], ["case"], ["first", "second", "ovo", "ova"]
    ).rename(
        columns={"case": "classifier", "first": "against_class_2", "second": "against_class_3"}
    )
    # Scaling makes the parts and their mean exact: only the mixture has an interval.
    exact = ("against_class_2", "against_class_3", "ovo")
    conflict = conflict.drop(columns=[c for c in conflict if c.startswith(("first_", "second_"))])
    conflict = conflict.drop(columns=["ovo_low", "ovo_high"])
    for name in exact:
        conflict[name] = conflict[name].round(6)
    conflict["ovo_in_the_paper"] = [CONFLICT[name][2] for name in conflict["classifier"]]
    conflict["ova_in_the_paper"] = [CONFLICT[name][3] for name in conflict["classifier"]]
    of = conflict.set_index("classifier")
    rare = of.loc["a", "ova"] / of.loc["a", "against_class_3"]
    frequent = of.loc["b", "ova"] / of.loc["b", "against_class_2"]
    return Report(
        {"weights": weights, "conflict": conflict},
        {"weights": lambda: _figure(weights)},
        "The index of a class against all others lies between those against each other class, "
        "nearer to the riskier than its weight says: one versus all does not hide a rare class. At "
        f"49:1 a risk in the rare class shows there with {100 * rare:.0f} % of its index, in the "
        f"large one with {100 * frequent:.0f} %; in the mean over pairs with 50 % each, so that "
        "the order may turn.\n\nThe paper does not give its ranking errors: ours are normal with "
        "one mean, chosen so that the mixtures come out near the printed ones. That shows that the "
        "printed numbers fit together, not that others could not.",
    )


def _figure(weights: DataFrame) -> Figure:
    figure, axes = figures.panels(1, width=5.4, height=3.4)
    ax = axes[0, 0]
    at = weights["weight"].astype(float)
    figures.band(
        ax,
        at,
        weights["ova"],
        weights["ova_low"],
        weights["ova_high"],
        label="one versus all, ours",
        place=0,
    )
    ax.scatter(
        at, weights["paper"], marker="x", s=40, color=figures.colour(1), label="printed", zorder=3
    )
    for level, words in ((SAFER, "safer class"), (RISKIER, "riskier class")):
        ax.axhline(level, color=figures.GREY, linewidth=0.8)
        ax.text(0.92, level, words, va="bottom", ha="right", color=figures.GREY, fontsize=8)
    mean = (SAFER + RISKIER) / 2.0
    ax.axhline(mean, color=figures.GREY, linewidth=0.8, linestyle="--")
    ax.text(
        0.92, mean, "mean of the pairs", va="bottom", ha="right", color=figures.GREY, fontsize=8
    )
    ax.set(xlabel="weight of the riskier class", ylabel="Fragility Index", ylim=(0.053, 0.0795))
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.94))
    return figure


def _between(results: DataFrame) -> Verdict:
    pair = results[["first", "second"]]
    inside = (results["ova"] >= pair.min(axis=1)) & (results["ova"] <= pair.max(axis=1))
    held = int(inside.sum())
    return share(held, len(results), f"In {held} of {len(results)} mixtures.")


def _grows(results: DataFrame) -> Verdict:
    table = results[results["part"] == "mixture"].pivot(index="trial", columns="case", values="ova")
    held = int((np.diff(table.to_numpy(), axis=1) > 0).all(axis=1).sum())
    means, paper = table.mean(), printed()["ova_index"].to_numpy()
    gap = float(np.abs(means.to_numpy() - paper).max())
    return share(
        held,
        len(table),
        f"In {held} of {len(table)} drawings, from {means.iloc[0]:.3f} at weight 0.1 to "
        f"{means.iloc[-1]:.3f} at 0.9; the means differ from the printed ones by at most "
        f"{gap:.4f}.",
    )


def _conflict(results: DataFrame) -> Verdict:
    table = results[results["part"] == "conflict"].pivot(index="trial", columns="case")
    opposed = (table["ovo"]["b"] < table["ovo"]["a"]) & (table["ova"]["a"] < table["ova"]["b"])
    held, ovo, ova = int(opposed.sum()), table["ovo"].mean(), table["ova"].mean()
    return share(
        held,
        len(table),
        f"In {held} of {len(table)} drawings; one versus one {ovo['a']:.4f} and {ovo['b']:.4f} "
        f"(printed 0.0412 and 0.0277), one versus all {ova['a']:.4f} and {ova['b']:.4f} on average "
        "(printed 0.0531 and 0.0552).",
    )


EXPERIMENT = Experiment(
    name="ova",
    title="one versus all against one versus one: how class sizes enter",
    trials=100,
    quick_trials=5,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[
        Claim(
            "A.2, proposition",
            "The index of a class against all others lies between the smallest and the largest "
            "against each.",
            _between,
        ),
        Claim(
            "A.2, table",
            "It grows with the weight of the riskier class.",
            _grows,
        ),
        Claim(
            "A.2, example",
            "At a class ratio of 49:1 one versus all prefers the classifier that one versus one "
            "rejects.",
            _conflict,
        ),
    ],
)
