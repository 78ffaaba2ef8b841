"""What a chosen threshold costs on cases that did not choose it: other folds, or held-out cases."""

from __future__ import annotations

from math import nan
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._random import spread_over_folds
from ..index.inference import Interval
from ..moments import Floats
from .cases import Cases
from .choice import Chooser

__all__ = ["ByFolds", "ByOthers", "Judge", "Verdict", "percentiles", "resample"]


class Verdict(NamedTuple):
    """Thresholds that cases chose, and the mean cost of those that were judged by them."""

    threshold: float
    chow_threshold: float
    cost: float
    chow_cost: float
    fold_thresholds: Floats


class Judge(Protocol):
    """Chooses on some cases and judges on others, each of which may come several times."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of cases of each kind, which `judge` wants counts for."""

    @property
    def judged(self) -> Cases:
        """The cases that are judged."""

    def judge(self, *counts: Floats) -> Verdict:
        """Choose and judge, each case so many times."""

    def automated(self, verdict: Verdict) -> NDArray[np.bool_]:
        """Which of the judged cases the model decides alone."""


class ByFolds:
    """Every fold is judged at the threshold that the other folds chose."""

    def __init__(
        self,
        cases: Cases,
        n_folds: int,
        capacity: float | None,
        chow: float,
        rng: np.random.Generator,
    ) -> None:
        self.judged = cases.sorted()
        self.sizes = (cases.size,)
        self._folds = spread_over_folds(self.judged.true, min(n_folds, cases.size), rng)
        self._chooser = Chooser(self.judged, self._folds, capacity, chow)

    def judge(self, *counts: Floats) -> Verdict:
        (count,) = counts
        choice = self._chooser.choose(count)
        total = float(count @ self.judged.weights)
        return Verdict(
            self._chooser.threshold(int(choice.cuts[0])),
            choice.chow_threshold,
            choice.cost / total,
            choice.chow_cost / total,
            np.array([self._chooser.threshold(cut) for cut in choice.cuts[1:].tolist()]),
        )

    def automated(self, verdict: Verdict) -> NDArray[np.bool_]:
        return self.judged.confidence > verdict.fold_thresholds[self._folds]


class ByOthers:
    """Some cases choose, others are judged."""

    def __init__(self, cases: Cases, others: Cases, capacity: float | None, chow: float) -> None:
        self.judged = others.sorted()
        self.sizes = (cases.size, others.size)
        self._chooser = Chooser(cases.sorted(), None, capacity, chow)
        self._change = self.judged.weights * (self.judged.reviewed - self.judged.alone)
        self._alone = self.judged.weights * self.judged.alone

    def judge(self, *counts: Floats) -> Verdict:
        count, count_judged = counts
        choice = self._chooser.choose(count)
        threshold = self._chooser.threshold(int(choice.cuts[0]))
        cost = self._cost(threshold, count_judged)
        chow_cost = nan
        if not np.isnan(choice.chow_threshold):
            chow_cost = self._cost(choice.chow_threshold, count_judged)
        return Verdict(threshold, choice.chow_threshold, cost, chow_cost, np.empty(0))

    def _cost(self, threshold: float, counts: Floats) -> float:
        cut = int(np.searchsorted(self.judged.confidence, threshold, side="right"))
        total = float(counts @ self._alone) + float(counts[:cut] @ self._change[:cut])
        return total / float(counts @ self.judged.weights)

    def automated(self, verdict: Verdict) -> NDArray[np.bool_]:
        return self.judged.confidence > verdict.threshold


def resample(judge: Judge, n_bootstrap: int, rng: np.random.Generator) -> list[Verdict]:
    """Verdicts on cases drawn with replacement, as many as there are."""
    return [
        judge.judge(
            *(
                np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
                for n in judge.sizes
            )
        )
        for _ in range(n_bootstrap)
    ]


def percentiles(draws: list[float], confidence: float) -> Interval:
    """Interval that holds the middle of the draws; NaN if there are none."""
    if not draws or np.isnan(draws).any():
        return Interval(nan, nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail]).tolist()
    return Interval(low, high)
