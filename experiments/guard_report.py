"""What is shown of the guard: differences over families, by size, and figures of every task."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame
from scipy.stats import t as student

from experiments import figures
from experiments.experiment import Report
from experiments.guard_claims import CLEAR, FIGURES, MATTERS, cell_means, contrast
from experiments.guard_models import METHODS
from experiments.guard_tasks import JUDGES, SIZES, TASKS
from experiments.tables import mean_error

__all__ = ["contrasts", "report", "tasks"]

OTHERS = tuple(name for name in METHODS if name != "guard")
#: Kinds of shift by their name in the tables.
_KINDS = {
    "shifted": ("natural", "made"),
    "natural": ("natural",),
    "made": ("made",),
    "unshifted": ("none",),
}
#: The rule in words, for the page; `experiments.guard_claims` is the rule.
_RULE = (
    f"The rule was written before any full run. Clear is {CLEAR:g} standard errors over families. "
    "`GuardedClassifier` is shipped if after a shift its log-loss is clearly lower than boosting's "
    "and neither Brier score nor a cost clearly higher; if without a shift no figure is clearly "
    "higher than boosting's; if its worst log-loss after a shift is lower than boosting's on "
    "average and in most families, or clearly; and if it is worth a class beside a plain average: "
    f"log-loss after a shift clearly lower, by {MATTERS:g} at least, on average or, no higher on "
    "average, at the worst, and no figure clearly higher anywhere. Else it is not shipped."
)


def contrasts(results: DataFrame) -> DataFrame:
    """The guard less each other method, over families: all sizes, and each."""
    rows = []
    for kind, shifts in _KINDS.items():
        for size in ("all", *SIZES):
            part = results if size == "all" else results[results["size"] == size]
            for other in OTHERS:
                row: dict[str, Any] = {"tasks": kind, "size": str(size), "against": other}
                row["families"] = len(contrast(part, "log_loss", other, shifts).families)
                if not row["families"]:
                    continue
                for figure in FIGURES:
                    found = contrast(part, figure, other, shifts)
                    row |= {figure: found.mean, f"{figure}_error": found.error}
                worst = contrast(part, "log_loss", other, shifts, worst=True)
                row |= {"worst_log_loss": worst.mean, "worst_log_loss_error": worst.error}
                rows.append(row)
    return DataFrame(rows)


def tasks(results: DataFrame) -> DataFrame:
    """Figures of every task, size and method: means over trials, the log-loss with its error."""
    rows = []
    for (task, _, method), part in results.groupby(["task", "size", "method"], sort=False):
        row: dict[str, Any] = {"task": task, "family": TASKS[task].family}
        row |= {"shift": TASKS[task].shift, "rows": int(part["rows"].median()), "method": method}
        row["log_loss"], row["log_loss_error"], row["trials"] = mean_error(part["log_loss"])
        row |= {figure: part[figure].mean() for figure in (*FIGURES[1:], "auc")}
        rows.append(row)
    return DataFrame(rows)


def report(results: DataFrame) -> Report:
    """Differences over families, and figures of every task."""
    return Report(
        {"contrasts": contrasts(results), "tasks": tasks(results)},
        {"log_loss": lambda: _figure(results)},
        "Boosting is LightGBM; leaves of a tree, cases of a leaf and the number of trees are tuned "
        "by cross-validated log-loss at the source. The average is that of the log-odds of "
        "boosting, a random forest and L2 logistic regression of tuned strength. The guard has the "
        "same classes, but its linear member clips features to 1–99 % of the training data and "
        "divides its log-odds by √(1 + πs²/8), s² = xᵀ(XᵀWX + I/C)⁻¹x, and the average is divided "
        "by √(1 + πv/8), v the variance of the members. Every member is calibrated by Platt's map "
        "of predictions out of fold, and so are average and guard. Up to "
        f"{', '.join(f'{size:,}' for size in SIZES)} cases of the source train, up to "
        f"{JUDGES:,} judge: after a natural shift, after one that is made (the larger a feature, "
        "the rather a case is after it), or without a shift (halves of a set). Costs are per case "
        "in reviews at the thresholds that the probabilities ask for; full review costs 1. "
        "Differences are guard less other; the worst is the highest log-loss of a family's tasks "
        "and sizes, of each method its own. Errors are those over families of tasks, which share "
        f"data.\n\n{_RULE}\n\n{_by_size(results)}{_quantile(results)}",
    )


def _by_size(results: DataFrame) -> str:
    """Where the gain over boosting is."""
    found = {
        size: contrast(results[results["size"] == size], "log_loss", "boosting") for size in SIZES
    }
    told = [f"{one} at {size:,}" for size, one in found.items() if len(one.families) > 1]
    return f"Log-loss after a shift less boosting's, by size: {', '.join(told)}. " if told else ""


def _quantile(results: DataFrame) -> str:
    """What stands in place of two in an interval of Student's, and what it would say."""
    found = contrast(results, "log_loss", "boosting")
    count = len(found.families)
    if count < 2:
        return ""
    width = float(student.ppf(0.975, count - 1))
    clear = "clearly lower" if found.mean < -width * found.error else "not clearly lower"
    return (
        f"Of a mean over {count} families a 95 % interval has {width:.2f} standard errors on "
        f"either side, not {CLEAR:g}: by that, the log-loss after a shift is {clear} than "
        "boosting's."
    )


def _figure(results: DataFrame) -> Figure:
    figure, axes = figures.panels(2, width=9.5, height=7.5)
    names = list(dict.fromkeys(results["task"]))
    places = dict(zip(names, range(len(names))[::-1], strict=True))
    cells = cell_means(results, "log_loss", ("natural", "made", "none"))
    for ax, other in zip(axes.flat, OTHERS, strict=True):
        for number, size in enumerate(SIZES):
            rows = cells[cells.index.get_level_values("size") == size]
            heights = [places[task] + 0.2 * (1 - number) for task, _ in rows.index]
            ax.plot(
                rows["guard"] - rows[other],
                np.array(heights),
                "osD"[number],
                color=figures.colour(number),
                label=f"up to {size:,} cases",
            )
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set(title=f"against {other}", xlabel="log-loss, guard − other")
        ax.set_yticks(list(places.values()), names if other == OTHERS[0] else [])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
