"""The pictures of the README. Run with ``make pictures``."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from equal_auc import predictions
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import (
    ConfidenceDisplay,
    RankingErrorDisplay,
    Wasserstein,
    fragility_path,
)

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def confidences(y, scores):
    figure, axes = plt.subplots(1, len(scores), figsize=(10.5, 4), layout="constrained")
    for ax, (name, p) in zip(axes, scores.items(), strict=True):
        ConfidenceDisplay.from_predictions(y, p, name=name, ax=ax)
    return figure


def what_a_target_costs():
    """What a target costs on the tumours, all features in deviations, where any may shift."""
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    found = fragility_path(X, data.target, ambiguity=Wasserstein(norm=inf), penalty="l2")
    return replace(found, feature_names=data.feature_names.tolist()).plot().figure_


def main() -> None:
    y, scores = predictions()
    name, p = list(scores.items())[-1]
    figures = {
        "confidence": confidences(y, scores),
        "path": what_a_target_costs(),
        "ranking_errors": RankingErrorDisplay.from_predictions(y, p, name=name).figure_,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, figure in figures.items():
        path = FOLDER / f"{kind}.png"
        figure.savefig(path, dpi=100)
        print(path)


if __name__ == "__main__":
    main()
