"""What the experiments on drawn data show: one table, and the figures against what varies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from experiments import figures
from experiments.comparison import merit_table
from experiments.experiment import Report
from experiments.tables import mean_interval

__all__ = ["report_along"]

#: As the paper shows, and what it does not show.
_PAPER = (("accuracy", "accuracy"), ("auc", "AUC"), ("fragility_index", "FI"))
_OURS = (
    ("ratio", "FI / score gap"),
    ("calibrated_fragility_index", "FI after calibration"),
    ("log_loss", "log-loss"),
)


def report_along(
    results: DataFrame, along: str, label: str, text: str, lead: str = "Wasserstein"
) -> Report:
    """Every figure of merit of every model along what varies.

    `lead`: the first model whose name begins so is compared with ERM in the text.
    """
    table = merit_table(results, [along, "model"])
    infinite = np.isinf(results["fragility_index"]).groupby(results["model"], sort=False).sum()
    found = ", ".join(f"{name} {count}" for name, count in infinite.items() if count)
    ending = f" Trials with an infinite FI, left out of its mean: {found}." if found else ""
    return Report(
        {"along": table},
        {"paper": lambda: _figure(table, along, label, _PAPER),
         "more": lambda: _figure(table, along, label, _OURS)},
        f"{text} {_at_equal_terms(results, along, lead)}{ending} `trivial` counts models that use "
        "no feature: their index is 0, and they tell no class apart.",
    )  # fmt: skip


def _at_equal_terms(results: DataFrame, along: str, lead: str) -> str:
    """How much of a model's lower index is left when it and ERM are calibrated."""
    names = [m for m in results["model"].unique() if str(m).startswith(lead)]
    telling = results[results["trivial"] == 0]  # a constant model has index 0 on any terms
    differences = {}
    for measure in ("fragility_index", "calibrated_fragility_index"):
        values = telling.pivot(index=[along, "trial"], columns="model", values=measure)
        change = values[names[0]] - values["ERM"]
        differences[measure] = mean_interval(change)
    raw, calibrated = (
        f"{mean:+.3f} ({low:+.3f} to {high:+.3f})" for mean, low, high in differences.values()
    )
    return (
        f"Over all conditions {names[0]} changes the FI of ERM by {raw}; after both are "
        f"calibrated, by {calibrated}."
    )


def _figure(table: DataFrame, along: str, label: str, shown: Sequence[tuple[str, str]]) -> Figure:
    figure, axes = figures.panels(len(shown), height=3.6)
    for ax, (measure, name) in zip(axes[0], shown, strict=True):
        for place, (model, rows) in enumerate(table.groupby("model", sort=False)):
            figures.band(
                ax,
                rows[along],
                rows[measure],
                rows[f"{measure}_low"],
                rows[f"{measure}_high"],
                label=str(model),
                place=place,
            )
        ax.set(xlabel=label, ylabel=name)
        if measure not in ("accuracy", "auc"):
            ax.set_ylim(bottom=0.0)
        ax.set_xticks(sorted(table[along].unique()))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure
