"""Pictures of the deep networks: the frozen recipe, and what each method changes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from pandas import DataFrame

from experiments import figures
from experiments.medmnist_search import SETS
from experiments.merit import CAP

__all__ = ["beside_best_printed", "changes_of_index"]

_NAMES = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "log_loss": "cross-entropy",
    "fragility_index": "index",
}


def beside_best_printed(cells: DataFrame) -> Figure:
    """Every cell of the frozen recipe: its gain on the better of both printed columns."""
    figure, axes = figures.panels(len(SETS), width=9.6, height=2.6)
    for place, (dataset, ax) in enumerate(zip(SETS, axes[0], strict=True)):
        part = cells[cells["dataset"] == dataset]
        y = np.arange(len(part))[::-1]
        ax.axvline(0.0, color=figures.GREY, linewidth=0.8)
        ax.errorbar(
            100.0 * part["gain"],
            y,
            xerr=200.0 * part["gain_error"],
            fmt="o",
            color=figures.colour(place),
            capsize=2.0,
        )
        labels = [_NAMES[name] for name in part["figure"]] if place == 0 else [""] * len(part)
        ax.set_yticks(y, labels)
        ax.set_title(dataset.capitalize())
        ax.margins(y=0.15)
        ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel("better than printed by %")
    return figure


def changes_of_index(against: DataFrame, stem: str) -> Figure:
    """The index less that of ERM, as it is and after temperature scaling, with one stem."""
    shown = (
        ("capped_fragility_index", "as it is"),
        ("scaled_common_pairs", "after temperature scaling"),
    )
    figure, axes = figures.panels(2, 2, width=9.6, height=6.8)
    figure.suptitle(f"{stem.replace('x', '×')} stem")
    part = against[(against["stem"] == stem) & (against["pick"] == "ce")]
    for dataset, ax in zip(SETS, axes.flat, strict=True):
        rows = part[part["dataset"] == dataset]
        y = np.arange(len(rows))[::-1]
        ax.axvline(0.0, color=figures.GREY, linewidth=0.8)
        for place, (measure, name) in enumerate(shown):
            if measure not in rows:
                continue
            ax.errorbar(
                rows[measure],
                y + 0.14 - 0.28 * place,
                xerr=2.0 * rows[f"{measure}_error"],
                fmt="os"[place],
                color=figures.colour(place),
                capsize=2.0,
                label=name,
            )
        ax.set_yticks(y, list(rows["method"]))
        ax.set_title(dataset.capitalize())
        if dataset == "retina":
            ax.set_title(f"Retina (infinite pairs as {CAP:g}, then left out)")
            ax.set_xscale("symlog", linthresh=1.0)  # one pair of classes can outweigh all others
            ax.xaxis.set_major_formatter(ScalarFormatter())  # 10, and not 10¹
        else:
            ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel("index less that of ERM")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
