"""The pictures of the README, of the models of the demo. Run with ``make pictures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from equal_auc import predictions

from fragility import ConfidenceDisplay, RankingErrorDisplay

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def confidences(y, scores):
    figure, axes = plt.subplots(1, len(scores), figsize=(10.5, 4), layout="constrained")
    for ax, (name, p) in zip(axes, scores.items(), strict=True):
        ConfidenceDisplay.from_predictions(y, p, name=name, ax=ax)
    return figure


def main() -> None:
    y, scores = predictions()
    name, p = list(scores.items())[-1]
    figures = {
        "confidence": confidences(y, scores),
        "ranking_errors": RankingErrorDisplay.from_predictions(y, p, name=name).figure_,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, figure in figures.items():
        path = FOLDER / f"{kind}.png"
        figure.savefig(path, dpi=100)
        print(path)


if __name__ == "__main__":
    main()
