"""Example 1: four patients, two models, equal AUC, and more than twice the index."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from experiments import figures
from experiments.claims import Claim, Verdict
from experiments.experiment import Condition, Experiment, Report, Row
from fragility import fragility_index, measure_fragility

#: Scores of the two positives and the two negatives.
POSITIVES = (0.6, 0.9)
NEGATIVES = {"A": (0.2, 0.7), "B": (0.1, 0.8)}
#: As printed in the paper, to three digits.
PRINTED = {"A": 0.073, "B": 0.163}
LABELS = np.array([1, 1, 0, 0])


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Every figure of both models."""
    for model, negatives in NEGATIVES.items():
        scores = np.array([*POSITIVES, *negatives])
        found = measure_fragility(LABELS, scores)
        yield {
            "model": model,
            "positive_1": POSITIVES[0],
            "positive_2": POSITIVES[1],
            "negative_1": negatives[0],
            "negative_2": negatives[1],
            "accuracy": accuracy_score(LABELS, scores > 0.5),
            "auc": roc_auc_score(LABELS, scores),
            "fragility_index": fragility_index(LABELS, scores),
            "ratio": found.ratio,
            "log_loss": log_loss(LABELS, scores),
            "brier": brier_score_loss(LABELS, scores),
            "paper": PRINTED[model],
        }


def report(results: DataFrame) -> Report:
    """The table of the example, and each model's scores."""
    results = _once(results)
    names = ["model", "accuracy", "auc", "fragility_index", "paper", "ratio", "log_loss", "brier"]
    table = results[names].rename(columns={"paper": "fragility_index_in_the_paper"})
    index = results.set_index("model")["fragility_index"]
    return Report(
        {"models": table},
        {"scores": lambda: _scores(results)},
        f"Both models rank one negative above one positive. B is surer of that mistake: its index "
        f"is {index['B'] / index['A']:.2f} times that of A, while accuracy and AUC are the same.",
    )


def _once(results: DataFrame) -> DataFrame:
    """The first trial: nothing is random, the others are the same."""
    return results[results["trial"] == 0]


def _scores(results: DataFrame) -> Figure:
    figure, axes = figures.panels(1, width=6.2, height=1.9)
    ax = axes[0, 0]
    for place, row in enumerate(results.to_dict("records")):
        for kind, marker, number in (("positive", "o", 0), ("negative", "X", 1)):
            ax.scatter(
                [row[f"{kind}_1"], row[f"{kind}_2"]],
                [place, place],
                marker=marker,
                s=70,
                color=figures.colour(number),
                label=kind if place == 0 else None,
                zorder=3,
            )
        ax.text(1.02, place, f"FI {row['fragility_index']:.3f}", va="center")
    ax.set(xlim=(0, 1), ylim=(-0.6, 1.6), xlabel="score", yticks=[0, 1])
    ax.set_yticklabels(list(results["model"]))
    ax.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _equal_but_for_the_index(results: DataFrame) -> Verdict:
    results = _once(results)
    of = results.set_index("model")
    equal = all(of.loc["A", name] == of.loc["B", name] for name in ("accuracy", "auc"))
    a, b = of["fragility_index"]
    near = all(abs(row.fragility_index - row.paper) <= 5e-4 for row in results.itertuples())
    because = (
        f"Accuracy {of.loc['A', 'accuracy']:.2f} and AUC {of.loc['A', 'auc']:.2f} of both, FI "
        f"{a:.4f} and {b:.4f}; printed {PRINTED['A']} and {PRINTED['B']}."
    )
    return Verdict(
        "holds" if equal and b > a and near else "holds partly" if b > a else "does not hold",
        because,
    )


EXPERIMENT = Experiment(
    name="example1",
    title="four patients, two models: equal AUC, unequal risk",
    trials=1,
    quick_trials=1,
    conditions=lambda quick: [{}],
    trial=trial,
    report=report,
    claims=[
        Claim(
            "Example 1",
            "Two models of equal accuracy and AUC differ in their index, the surer mistake having "
            "the larger one.",
            _equal_but_for_the_index,
        )
    ],
)
