"""Choice by cross-validation: run all folds, report failures, find the best cell of the grid."""

from __future__ import annotations

import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._labels import listed
from .._parameters import check_number
from .._typing import Floats
from ..exceptions import AbsentClassWarning
from ..solvers.searching import result, side_by_side
from .folds import Folds, FoldScores

#: Scores that differ by less, relatively, are the same but for rounding.
_ROUNDING = 1e-12
#: Numbers in the samples of folds that are in memory at the same time, at most.
_TOGETHER = 2**22


def run_folds(
    folds: Folds, parts: list[tuple[Any, Any]], n_jobs: int | None, progress: Progress
) -> list[FoldScores]:
    """The first fold, which leads, and then the others, as many at the same time as asked."""
    first, lead = _together(folds, parts[:1], None, progress.tick)[0]
    parallel = Parallel(n_jobs=n_jobs)
    if parallel.n_jobs in (None, 1):
        rest = _together(folds, parts[1:], lead, progress.tick)
    else:
        found = parallel(delayed(_together)(folds, [part], lead) for part in parts[1:])
        rest = [one for (one,) in found]
        progress.tick((len(parts) - 1) * len(folds.alphas))
    return [first, *(scores for scores, _ in rest)]


def _together(
    folds: Folds, parts: list[tuple[Any, Any]], lead: Any, tick: Any = lambda: None
) -> list[tuple[FoldScores, Any]]:
    """Folds side by side, as many at a time as memory can well hold."""
    rows = max((len(train) for train, _ in parts), default=0)
    count = max(1, _TOGETHER // max(1, rows * folds.data.X.shape[1]))
    found = []
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, len(parts), count):
            some = parts[start : start + count]
            found += result(side_by_side(folds.run(*part, lead, tick) for part in some))
    return found


def report(found: list[FoldScores], scores: Floats, max_iter: int) -> None:
    """Say once what went wrong in folds; an error if nothing is left to choose from."""
    problems = [f"fold {i}: {why}" for i, one in enumerate(found) for why in one.problems]
    undefined = int(np.isnan(scores).sum())
    said = f"{undefined} of {scores.size} fits in folds have no score"
    said += f", as in {problems[0].rstrip('.')}" if problems else ": the scorer gave NaN"
    if np.isnan(scores).any(axis=2).all():
        raise ValueError(
            f"No penalty and target has a score in every fold. {said}. Give other folds "
            "(stratified ones have every class), targets (slacks always exist), or another scorer."
        )
    if undefined:
        warnings.warn(
            f"{said}. What has no score in some fold is not chosen from; `scores_` shows which.",
            UserWarning,
            stacklevel=3,
        )
    lacking = [i for i, one in enumerate(found) if one.absent]
    if lacking:
        warnings.warn(
            f"The training parts of the folds {listed(lacking)} lack classes, as the first of them "
            f"{listed(found[lacking[0]].absent)}: their test samples cannot be right. Give "
            "stratified folds, or shuffle.",
            AbsentClassWarning,
            stacklevel=3,
        )
    unsettled = sum(one.unsettled for one in found)
    if unsettled:
        warnings.warn(
            f"{unsettled} of {scores.size} searches in folds did not settle within max_iter="
            f"{max_iter} steps. Give more, or scale the features.",
            ConvergenceWarning,
            stacklevel=3,
        )


def best_cell(mean_scores: Floats, alphas: Floats, targets: Floats) -> tuple[int, int]:
    """Row and column of the best score; of ties the loosest target, then the strongest penalty."""
    best = float(np.nanmax(mean_scores))
    margin = _ROUNDING * max(1.0, abs(best)) if np.isfinite(best) else 0.0
    ties = np.argwhere(mean_scores >= best - margin)
    j, i = max(ties.tolist(), key=lambda cell: (targets[cell[1]], alphas[cell[0]]))
    return j, i


def checked_list(given: Any, name: str) -> Floats:
    """One number or more."""
    try:
        values = [] if isinstance(given, str) else list(given)
    except TypeError:
        values = []
    if not values:
        raise ValueError(
            f"{name} must be a sequence of one number or more, such as (0.01, 0.1); got {given!r}."
        )
    return np.array([check_number(value, name) for value in values])


class Progress:
    """How far a long computation is, on standard error.

    Counts parts of a whole: one line that is rewritten on a terminal, else a line each.
    """

    def __init__(self, name: str, total: int, shown: bool) -> None:
        self.name, self.total, self.shown = name, total, shown
        self._done, self._begun, self._width = 0, perf_counter(), 0

    def tick(self, parts: int = 1) -> None:
        """Some parts are done."""
        self._done += parts
        if not self.shown:
            return
        spent = perf_counter() - self._begun
        left = spent / self._done * (self.total - self._done)
        text = f"[{self.name}] {self._done}/{self.total} fits of a fold and a penalty, "
        text += f"{spent:.1f} s" if self._done == self.total else f"about {left:.1f} s left"
        if sys.stderr.isatty():
            end = "\n" if self._done == self.total else ""
            sys.stderr.write("\r" + text.ljust(self._width) + end)
            self._width = len(text)
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
