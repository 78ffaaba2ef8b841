r"""AUC, AURC and calibration error: exact where the order of the scores is known, else with bounds.

Scores of different atoms are in order; within an atom the order is known where all its scores are
the same. Each figure is evaluated for the worst and for the best order within the other atoms.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Indices, Interval, Mask
from ..measured import Measured
from ..ordered import distinct_places, running_totals
from ..scores.atoms import Atoms
from .confidence import PredictionAtoms

#: Bounds closer than this say no more than rounding: the figures are of order one.
_ROUNDING = 2e-15


def measured_between(low: float, high: float) -> Measured:
    """The middle of two bounds; exact where they differ by rounding only.

    What is added for rounding leads from a share to no number below 0 or above 1.
    """
    value = low + 0.5 * (high - low)
    if high - low <= _ROUNDING:
        return Measured(value)
    least, most = max(low - _ROUNDING, min(low, 0.0)), min(high + _ROUNDING, max(high, 1.0))
    return Measured(value, bounds=Interval(least, most))


def auc(negatives: Atoms, positives: Atoms) -> tuple[float, float]:
    """Bounds on the share of pairs in which the positive has the higher score, ties half."""
    before = running_totals(negatives.weight)
    place = negatives.low.searchsorted(positives.low)
    ranked = float(positives.weight.dot(before.take(place)))
    # Pairs within an atom: both classes have the same range there.
    own = np.flatnonzero(np.append(negatives.low, np.nan)[place] == positives.low)
    pairs = positives.weight[own] * negatives.weight[place[own]]
    tied = positives.low[own] == positives.high[own]
    least = ranked + 0.5 * float(pairs[tied].sum())
    total = float(positives.weight.sum() * negatives.weight.sum())
    return least / total, min((least + float(pairs[~tied].sum())) / total, 1.0)


class Levels(NamedTuple):
    """Cases by ascending confidence: all cases of a level are below all cases of the next.

    Attributes
    ----------
    low, high : ndarray
        Least and largest confidence.
    weight, wrong : ndarray
        Weight of the cases, and of those predicted wrongly.
    places : ndarray of int
        Level of each of the atoms that they were made of.
    """

    low: Floats
    high: Floats
    weight: Floats
    wrong: Floats
    places: Indices

    @classmethod
    def of(cls, atoms: PredictionAtoms) -> Levels:
        """Levels of atoms whose ranges may overlap."""
        low, high, _, weight, wrong = atoms
        order = low.argsort(kind="stable")
        ordered, reach = low.take(order), np.maximum.accumulate(high.take(order))
        begins = np.ones(order.size, dtype=np.bool_)
        np.greater(ordered[1:], reach[:-1], out=begins[1:])
        starts = begins.nonzero()[0]
        sums = [np.add.reduceat(amount.take(order), starts) for amount in (weight, weight * wrong)]
        ends = np.append(starts[1:], order.size) - 1
        places = np.empty(order.size, dtype=np.intp)
        places[order] = begins.cumsum() - 1
        return cls(ordered.take(starts), reach.take(ends), sums[0], sums[1], places)

    @property
    def tied(self) -> Mask:
        """Levels of one confidence."""
        return np.equal(self.low, self.high)


def risk_coverage_area(levels: Levels) -> Measured:
    """Mean over the cases of the error rate among those at least as confident."""
    weight, wrong = levels.weight[::-1], levels.wrong[::-1]  # from the most confident on
    after, wrong_after = np.cumsum(weight), np.cumsum(wrong)
    before, wrong_before = after - weight, wrong_after - wrong
    tied = levels.tied[::-1]
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


def calibration_error(happened: Atoms, others: Atoms, n_bins: int) -> Measured:
    """Mean difference of score and frequency over bins of equal mass.

    The scores foretell how frequent the cases that `happened` are.
    """
    low, origin = distinct_places(happened.low, others.low)
    both = [np.concatenate(parts) for parts in zip(happened, others, strict=True)]
    high = np.zeros_like(low)
    high[origin] = both[1]
    weight, total = (
        np.bincount(origin, part).astype(np.float64) for part in (both[2], both[2] * both[3])
    )
    yes = np.bincount(origin[: happened.low.size], happened.weight, low.size)
    mean = np.clip(total / weight, low, high)
    mass, residual = running_totals(weight), running_totals(yes - weight * mean)
    edges = mass[-1] * (np.arange(n_bins + 1) / n_bins)
    middle = np.interp(edges, mass, residual)
    # The bin that an edge falls in, and how much of it lies below.
    place = np.clip(np.searchsorted(mass, edges, side="right") - 1, 0, low.size - 1)
    taken = np.clip(edges - mass[place], 0.0, weight[place])
    inside = (taken > 0.0) & (taken < weight[place]) & (low[place] < high[place])
    least_yes = np.maximum(taken - (weight - yes)[place], 0.0)
    most_yes = np.minimum(taken, yes[place])
    # The lower scores of a bin come first: their mean is at most the mean of the bin.
    lowest = np.where(inside, residual[place] + least_yes - taken * mean[place], middle)
    highest = np.where(inside, residual[place] + most_yes - taken * low[place], middle)
    value = float(np.abs(np.diff(middle)).sum() / mass[-1])
    if not inside.any():
        return Measured(value)
    bounds = [
        variation(lowest, highest) / float(mass[-1])
        for variation in (_least_variation, _most_variation)
    ]
    found = measured_between(bounds[0], min(bounds[1], 1.0))
    return found if found.bounds is None else Measured(value, bounds=found.bounds)


def _least_variation(lowest: Floats, highest: Floats) -> float:
    """Least sum of absolute steps of a sequence with each member between two limits.

    It need not move while the limits have a point in common, and then no farther than it must.
    """
    total, low, high = 0.0, -inf, inf
    for least, most in zip(lowest.tolist(), highest.tolist(), strict=True):
        apart = max(least - high, low - most, 0.0)
        total += apart
        low, high = min(max(low, least), most), max(min(high, most), least)
    return total


def _most_variation(lowest: Floats, highest: Floats) -> float:
    """The same at most: a sum of absolute values is largest with every member at a limit."""
    at_low, at_high = 0.0, 0.0
    limits = zip(lowest.tolist(), highest.tolist(), strict=True)
    for (low, high), following in pairwise(limits):
        at_low, at_high = (
            max(at_low + abs(end - low), at_high + abs(end - high)) for end in following
        )
    return max(at_low, at_high)
