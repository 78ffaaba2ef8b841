r"""AUC, AURC and calibration error from bins: exact where the order is known, else with bounds.

Scores of different bins are in order; within a bin the order is known where all its scores are the
same. Each figure is evaluated for the worst and for the best order within the other bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..index.inference import Interval
from ..measured import Measured
from ..moments import Floats
from ..ordered import running_totals
from .fine_bins import Atoms, FineBins

__all__ = ["Clusters", "auc", "calibration_error", "measured_between", "risk_coverage_area"]

#: Bounds closer than this, relative to the size of the figure, say no more than rounding.
_ROUNDING = 2e-15


def measured_between(low: float, high: float, scale: float = 1.0) -> Measured:
    """The middle of two bounds; exact where they differ by rounding only."""
    value = low + 0.5 * (high - low)
    if high - low <= _ROUNDING * scale:
        return Measured(value)
    slack = _ROUNDING * scale
    return Measured(value, bounds=Interval(low - slack, high + slack))


def auc(negatives: Atoms, positives: Atoms) -> tuple[float, float]:
    """Bounds on the share of pairs in which the positive has the higher score, ties half."""
    before = running_totals(negatives.weight)
    place = np.searchsorted(negatives.bins, positives.bins)
    ranked = float(positives.weight @ before[place])
    # Pairs within a bin.
    shared = np.flatnonzero(np.append(negatives.bins, -1)[place] == positives.bins)
    own, other = shared, place[shared]
    pairs = positives.weight[own] * negatives.weight[other]
    right = positives.low[own] > negatives.high[other]
    wrong = positives.high[own] < negatives.low[other]
    tied = (positives.low[own] == negatives.high[other]) & (
        positives.high[own] == negatives.low[other]
    )
    least = ranked + float(pairs[right].sum() + 0.5 * pairs[tied].sum())
    open_pairs = float(pairs[~(right | wrong | tied)].sum())
    total = float(positives.weight.sum() * negatives.weight.sum())
    return least / total, min((least + open_pairs) / total, 1.0)


class Clusters(NamedTuple):
    """Cases by ascending confidence: those of different clusters are in order.

    Attributes
    ----------
    low, high : ndarray
        Least and largest confidence.
    weight, wrong : ndarray
        Weight of the cases, and of those predicted wrongly.
    mean : ndarray
        Mean confidence.
    origin : ndarray
        For each atom the place of its cluster.
    """

    low: Floats
    high: Floats
    weight: Floats
    wrong: Floats
    mean: Floats
    origin: NDArray[np.intp]

    @classmethod
    def of(
        cls, low: Floats, high: Floats, weight: Floats, wrong: NDArray[np.bool_], mean: Floats
    ) -> Clusters:
        """Clusters of atoms, each all right or all wrong, whose ranges may overlap."""
        order = np.argsort(low, kind="stable")
        reach = np.maximum.accumulate(high[order])
        begins = np.concatenate(([True], low[order][1:] > reach[:-1]))
        starts = np.flatnonzero(begins)
        sums = [
            np.add.reduceat(amount[order], starts)
            for amount in (weight, weight * wrong, weight * mean)
        ]
        ends = np.append(starts[1:], order.size) - 1
        origin = np.empty(order.size, dtype=np.intp)
        origin[order] = np.cumsum(begins) - 1
        return cls(low[order][starts], reach[ends], sums[0], sums[1], sums[2] / sums[0], origin)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Clusters of one confidence."""
        return np.equal(self.low, self.high)


def risk_coverage_area(clusters: Clusters) -> Measured:
    """Mean over the cases of the error rate among those at least as confident."""
    weight, wrong = clusters.weight[::-1], clusters.wrong[::-1]  # from the most confident on
    after, wrong_after = np.cumsum(weight), np.cumsum(wrong)
    before, wrong_before = after - weight, wrong_after - wrong
    tied = clusters.tied[::-1]
    exact = weight * wrong_after / after
    # Lowest with the right ones first: the error rate falls until the first wrong one, at `turn`,
    # then rises. Whatever the single weights are, a case counts at the end of its own: so no less
    # than the least rate up to the turn, and than the integral beyond.
    turn = after - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.where(turn > 0.0, (weight - wrong) * wrong_before / turn, 0.0)
        rising = wrong - np.where(turn > 0.0, (turn - wrong_before) * np.log1p(wrong / turn), 0.0)
        low = np.where(tied, exact, falling + rising)
        # Highest with the wrong ones first, the same the other way round.
        turn = before + wrong
        peak = np.where(turn > 0.0, wrong_after / turn, 0.0)
        beyond = np.where(turn > 0.0, wrong_after * np.log1p((weight - wrong) / turn), 0.0)
        high = np.where(tied, exact, np.minimum(wrong * peak + beyond, weight))
    total = float(after[-1])
    return measured_between(float(low.sum()) / total, float(high.sum()) / total)


def calibration_error(fine: FineBins, happened: int, n_bins: int) -> Measured:
    """Mean difference of score and frequency over bins of equal mass.

    `fine` holds two classes, of which `happened` is the one whose frequency the scores foretell.
    """
    weight = fine.weight.sum(axis=0)
    held = np.flatnonzero(weight)
    weight, yes = weight[held], fine.weight[happened][held]
    low, high = fine.low[:, held].min(axis=0), fine.high[:, held].max(axis=0)
    mean = np.clip(fine.total[:, held].sum(axis=0) / weight, low, high)
    mass, residual = running_totals(weight), running_totals(yes - weight * mean)
    edges = mass[-1] * (np.arange(n_bins + 1) / n_bins)
    middle = np.interp(edges, mass, residual)
    # The bin that an edge falls in, and how much of it lies below.
    place = np.clip(np.searchsorted(mass, edges, side="right") - 1, 0, held.size - 1)
    taken = np.clip(edges - mass[place], 0.0, weight[place])
    inside = (taken > 0.0) & (taken < weight[place]) & (low[place] < high[place])
    least_yes = np.maximum(taken - (weight - yes)[place], 0.0)
    most_yes = np.minimum(taken, yes[place])
    # The lower scores of a bin come first: their mean is at most that of the bin.
    lowest = np.where(inside, residual[place] + least_yes - taken * mean[place], middle)
    highest = np.where(inside, residual[place] + most_yes - taken * low[place], middle)
    value = float(np.abs(np.diff(middle)).sum() / mass[-1])
    if not inside.any():
        return Measured(value)
    bounds = [
        _total_variation(lowest, highest, extreme) / float(mass[-1]) for extreme in (np.min, np.max)
    ]
    found = measured_between(bounds[0], min(bounds[1], 1.0))
    return found if found.bounds is None else Measured(value, bounds=found.bounds)


def _total_variation(lowest: Floats, highest: Floats, extreme: Callable[..., Any]) -> float:
    """Least or most sum of absolute steps of a sequence with each member between two limits.

    A sum of absolute values is extreme where every member is at one of the limits.
    """
    candidates = np.unique([lowest, highest])
    best = np.zeros(1)
    at = lowest[:1]
    for low, high in zip(lowest[1:], highest[1:], strict=True):
        following = candidates[(candidates >= low) & (candidates <= high)]
        best = extreme(best + np.abs(following[:, np.newaxis] - at), axis=1)
        at = following
    return float(extreme(best))
