"""The rule that decides the fate of the guard, written before any full run.

Boosting is tuned and calibrated on the source; the average is that of the log-odds of calibrated
boosting, a forest and L2 logistic regression, recalibrated. Differences are guard less other. A
task counts by the mean over its sizes and trials, a family by the mean of its tasks, and errors are
those over families: tasks of the same data are not independent. Clear is two standard errors.
The worst of a family is the highest mean of its tasks and sizes, of each method its own.

1. After a shift: the log-loss is clearly lower than boosting's, and neither the Brier score nor the
   cost at 10 or 20 reviews an error is clearly higher.
2. Without a shift: none of the four figures is clearly higher than boosting's.
3. Insurance: the worst log-loss of a family after a shift is clearly lower than boosting's. It
   holds partly if it is lower on average and in most families.
4. Worth a class beside a plain average: after a shift the log-loss is clearly lower, and by
   0.005 at least; or it is not higher, and the worst log-loss is clearly lower, and by
   0.005 at least. And none of the four figures is clearly higher, after a shift or without one.

`GuardedClassifier` is shipped if 1, 2 and 4 hold and 3 holds at least partly; else it is not.
"""

from __future__ import annotations

from typing import NamedTuple

from pandas import DataFrame, Series

from experiments.claims import Claim, Holds, Verdict
from experiments.guard_tasks import TASKS
from experiments.tables import mean_error

__all__ = ["CLAIMS", "ERRORS", "FIGURES", "Contrast", "contrast", "fate"]

#: An error costs so many reviews.
ERRORS = (10, 20)
FIGURES = ("log_loss", "brier", *(f"cost_{error}" for error in ERRORS))
#: Standard errors over families that make a difference clear.
CLEAR = 2.0
#: Of log-loss; a smaller gain over a plain average is no reason for a class.
MATTERS = 0.005
_LEAST_FAMILIES = 3
_SHIFTED, _UNSHIFTED = ("natural", "made"), ("none",)


class Contrast(NamedTuple):
    """The guard less another method: the mean over families, its error, and the families."""

    mean: float
    error: float
    families: Series

    @property
    def clearly_lower(self) -> bool:
        """Below zero by two standard errors over families."""
        return self.mean < -CLEAR * self.error

    @property
    def clearly_higher(self) -> bool:
        """Above zero by two standard errors over families."""
        return self.mean > CLEAR * self.error

    @property
    def matters(self) -> bool:
        """Clearly lower, and by enough."""
        return self.clearly_lower and self.mean <= -MATTERS

    def __str__(self) -> str:
        lower = int((self.families < 0.0).sum())
        return f"{self.mean:+.4f} ± {self.error:.4f} (lower in {lower} of {len(self.families)})"


def cell_means(results: DataFrame, figure: str, shifts: tuple[str, ...]) -> DataFrame:
    """Means over trials by task and size, a column for each method."""
    part = results[results["task"].map(lambda name: TASKS[name].shift).isin(shifts)]
    return part.pivot_table(index=["task", "size"], columns="method", values=figure, sort=False)


def contrast(
    results: DataFrame,
    figure: str,
    other: str,
    shifts: tuple[str, ...] = _SHIFTED,
    worst: bool = False,
) -> Contrast:
    """The guard less another method on tasks of these kinds of shift.

    `worst`: by the worst task and size of each family, of each method its own.
    """
    cells = cell_means(results, figure, shifts)
    if cells.empty:
        return Contrast(*mean_error([])[:2], Series(dtype=float))
    if worst:
        highest = cells.groupby([TASKS[task].family for task, _ in cells.index], sort=False).max()
        families = highest["guard"] - highest[other]
    else:
        tasks = (cells["guard"] - cells[other]).groupby("task", sort=False).mean()
        families = tasks.groupby([TASKS[str(task)].family for task in tasks.index]).mean()
    return Contrast(*mean_error(families)[:2], families)


def _words(figure: str) -> str:
    return figure.replace("_", " " if figure.startswith("cost") else "-")


def _clearly_higher(results: DataFrame, other: str, shifts: tuple[str, ...]) -> list[str]:
    found = {figure: contrast(results, figure, other, shifts) for figure in FIGURES}
    return [f"{_words(name)} {one}" for name, one in found.items() if one.clearly_higher]


def _told(results: DataFrame, other: str, shifts: tuple[str, ...]) -> str:
    return ", ".join(
        f"{_words(figure)} {contrast(results, figure, other, shifts)}" for figure in FIGURES
    )


def _too_few(results: DataFrame) -> bool:
    """Whether there are too few families to judge, with a shift or without one."""
    found = (contrast(results, "log_loss", "boosting", kind) for kind in (_SHIFTED, _UNSHIFTED))
    return any(len(one.families) < _LEAST_FAMILIES for one in found)


def after_a_shift(results: DataFrame) -> Verdict | None:
    """Partly if the log-loss is lower, but not clearly, and nothing is clearly higher."""
    if _too_few(results):
        return None
    log_loss = contrast(results, "log_loss", "boosting")
    higher = _clearly_higher(results, "boosting", _SHIFTED)
    holds: Holds = "does not hold"
    if not higher and log_loss.mean < 0.0:
        holds = "holds" if log_loss.clearly_lower else "holds partly"
    natural = contrast(results, "log_loss", "boosting", ("natural",))
    return Verdict(
        holds,
        f"Guard less boosting, over families: {_told(results, 'boosting', _SHIFTED)}; log-loss of "
        f"natural shifts alone {natural}.",
    )


def without_a_shift(results: DataFrame) -> Verdict | None:
    """Partly if something is clearly higher, but not the log-loss."""
    if _too_few(results):
        return None
    higher = _clearly_higher(results, "boosting", _UNSHIFTED)
    holds: Holds = "holds"
    if higher:
        log_loss = contrast(results, "log_loss", "boosting", _UNSHIFTED)
        holds = "does not hold" if log_loss.clearly_higher else "holds partly"
    told = _told(results, "boosting", _UNSHIFTED)
    return Verdict(holds, f"Guard less boosting, over families: {told}.")


def insurance(results: DataFrame) -> Verdict | None:
    """Partly if the worst is lower on average and in most families, but not clearly."""
    if _too_few(results):
        return None
    worst = contrast(results, "log_loss", "boosting", worst=True)
    lower = worst.mean < 0.0 and (worst.families < 0.0).mean() > 0.5
    holds: Holds = "holds" if worst.clearly_lower else "holds partly" if lower else "does not hold"
    cells = cell_means(results, "log_loss", _SHIFTED)
    told = ", ".join(
        f"{name} {cells[name].max():.3f} ({cells[name].idxmax()[0]})" for name in cells
    )
    return Verdict(
        holds,
        f"Worst log-loss of a family, guard less boosting: {worst}. The worst of all: {told}.",
    )


def beside_an_average(results: DataFrame) -> Verdict | None:
    """Partly if mean and worst are lower, but not clearly or by too little, nothing higher."""
    if _too_few(results):
        return None
    mean = contrast(results, "log_loss", "average")
    worst = contrast(results, "log_loss", "average", worst=True)
    higher = [
        where + told
        for where, kind in (("after a shift ", _SHIFTED), ("without one ", _UNSHIFTED))
        for told in _clearly_higher(results, "average", kind)
    ]
    holds: Holds = "does not hold"
    if not higher and (mean.matters or (mean.mean <= 0.0 and worst.matters)):
        holds = "holds"
    elif not higher and mean.mean < 0.0 and worst.mean < 0.0:
        holds = "holds partly"
    after, without = (_told(results, "average", kind) for kind in (_SHIFTED, _UNSHIFTED))
    return Verdict(
        holds,
        f"Guard less average, over families: after a shift {after}, worst log-loss of a family "
        f"{worst}; without one {without}. Clearly higher: {', '.join(higher) or 'nothing'}.",
    )


def fate(results: DataFrame) -> Verdict | None:
    """Whether it is shipped; partly is no, but the log-loss after a shift is clearly lower."""
    verdicts = {
        "after a shift": after_a_shift(results),
        "without a shift": without_a_shift(results),
        "insurance": insurance(results),
        "beside an average": beside_an_average(results),
    }
    held = {name: verdict.holds for name, verdict in verdicts.items() if verdict is not None}
    if len(held) < len(verdicts):
        return None
    needed = all(held[name] == "holds" for name in held if name != "insurance")
    ships = needed and held["insurance"] != "does not hold"
    holds: Holds = "does not hold"
    if ships or held["after a shift"] == "holds":
        holds = "holds" if ships else "holds partly"
    told = ", ".join(f"{name}: {verdict}" for name, verdict in held.items())
    return Verdict(holds, f"{told}. GuardedClassifier is {'' if ships else 'not '}shipped.")


CLAIMS = [
    Claim("our question", says, rule)
    for says, rule in (
        (
            "After a shift the guard has a lower log-loss than tuned, calibrated boosting, and no "
            "higher Brier score or cost.",
            after_a_shift,
        ),
        ("Without a shift the guard is no worse than boosting.", without_a_shift),
        (
            "The guard is an insurance: the worst log-loss of a family of shifts is lower than "
            "boosting's.",
            insurance,
        ),
        (
            "The guard is worth a class beside a plain average of the same model classes.",
            beside_an_average,
        ),
        ("The guard should be shipped as GuardedClassifier.", fate),
    )
]
