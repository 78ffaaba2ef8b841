r"""What a threshold of the score does: operating points, net benefit, Gini, Kolmogorov–Smirnov.

A case is flagged if its score is at least the threshold. Of an atom that is a bin with scores on
both sides of it, only that is known: counts lie between two limits then, and so does what follows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from .._optional import data_frame
from .._typing import Floats
from ..measured import Measured
from ..ordered import distinct_places, running_totals
from ..scores.atoms import Atoms
from .rank import auc, measured_between


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """What happens at each of some thresholds, where cases of at least this score are flagged.

    Attributes
    ----------
    thresholds : ndarray of shape (n_points,)
        Infinite: nothing is flagged.
    sensitivity, specificity : ndarray of shape (n_points,)
        Share of the positives that is flagged, of the negatives that is not. NaN without any.
    ppv, npv : ndarray of shape (n_points,)
        Positive and negative predictive value: share of positives among the flagged, of negatives
        among the others. NaN without any.
    flagged : ndarray of shape (n_points,)
        Share of all cases that is flagged.
    number_needed_to_evaluate : ndarray of shape (n_points,)
        Flagged cases for each positive among them, 1 / `ppv`; infinite if there is none, NaN if
        nothing is flagged.
    net_benefit : ndarray of shape (n_points,)
        As in `fragility.net_benefit`, where the threshold is between 0 and 1; else NaN.
    """

    thresholds: Floats
    sensitivity: Floats
    specificity: Floats
    ppv: Floats
    npv: Floats
    flagged: Floats
    number_needed_to_evaluate: Floats
    net_benefit: Floats

    @classmethod
    def of(
        cls, thresholds: Floats, hits: Floats, alarms: Floats, positives: float, negatives: float
    ) -> OperatingPoints:
        """Of the weight of flagged positives and of flagged negatives, and of all of them."""
        total, flagged = positives + negatives, hits + alarms
        quiet, correct = total - flagged, negatives - alarms
        return cls(
            thresholds,
            _over(hits, positives),
            _over(correct, negatives),
            _over(hits, flagged),
            _over(correct, quiet),
            flagged / total,
            _over(flagged, hits),
            (hits - alarms * odds(thresholds)) / total,
        )


def _over(part: Floats, whole: Floats | float) -> Floats:
    """A quotient: infinite over nothing, NaN where both are nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part / np.asarray(whole, dtype=np.float64), dtype=np.float64)


def odds(thresholds: Floats) -> Floats:
    """What a false alarm costs in true positives at each threshold; NaN if not in [0, 1)."""
    found = np.full(thresholds.shape, nan)
    inside = (thresholds >= 0.0) & (thresholds < 1.0)
    found[inside] = thresholds[inside] / (1.0 - thresholds[inside])
    return found


class Flagged(NamedTuple):
    """Weight of the flagged cases of one class at each threshold: no less, and no more, than."""

    least: Floats
    most: Floats

    @classmethod
    def of(cls, atoms: Atoms, thresholds: Floats) -> Flagged:
        """Count the scores from each threshold on."""
        # Summed from the top, so that nothing is exactly zero; all of them are their sum.
        above = np.append(np.cumsum(atoms.weight[::-1])[::-1], 0.0)
        above[0] = atoms.weight.sum()
        return cls(*(above[np.searchsorted(end, thresholds)] for end in (atoms.low, atoms.high)))

    @property
    def middle(self) -> Floats:
        return np.asarray(self.least + 0.5 * (self.most - self.least))


@dataclass(frozen=True, eq=False)
class BoundedPoints:
    """Operating points, and limits of each number, where the scores are known by bins.

    Attributes
    ----------
    points : OperatingPoints
    least, most : OperatingPoints or None
        Each number is between these; None if all of them are exact.
    """

    points: OperatingPoints
    least: OperatingPoints | None = None
    most: OperatingPoints | None = None


def operating_points(others: Atoms, happened: Atoms, thresholds: Floats) -> BoundedPoints:
    """What happens at each threshold."""
    negatives, positives = float(others.weight.sum()), float(happened.weight.sum())
    alarms, hits = (Flagged.of(atoms, thresholds) for atoms in (others, happened))
    totals = positives, negatives
    points = OperatingPoints.of(thresholds, hits.middle, alarms.middle, *totals)
    if all(np.array_equal(*part) for part in (alarms, hits)):
        return BoundedPoints(points)
    corners = [
        OperatingPoints.of(thresholds, hit, alarm, *totals) for hit in hits for alarm in alarms
    ]
    # Every figure is monotone in either count, so that its extremes are at the corners.
    extremes = []
    for extreme in (np.fmin, np.fmax):
        found = {
            field.name: extreme.reduce([getattr(corner, field.name) for corner in corners])
            for field in fields(OperatingPoints)
        }
        extremes.append(OperatingPoints(**found))
    return BoundedPoints(points, *extremes)


def alert_thresholds(others: Atoms, happened: Atoms, rates: Floats) -> Floats:
    """Smallest score from which on no more than each share of the cases lies; inf if there is none.

    Equal scores are flagged together, so that the share may be smaller.
    """
    scores, origin = distinct_places(others.high, happened.high)
    weight = np.bincount(origin, np.concatenate([others.weight, happened.weight]), scores.size)
    above = np.append(np.cumsum(weight[::-1])[::-1], 0.0)  # from each score on
    shares = above / above[0]
    # A share that differs by rounding only is not larger.
    place = np.searchsorted(-shares, -(rates * (1.0 + 1e-12)))
    return np.asarray(np.append(scores, inf)[place], dtype=np.float64)


def gini(others: Atoms, happened: Atoms) -> Measured:
    """Twice the AUC minus one."""
    least, most = auc(others, happened)
    return measured_between(2.0 * least - 1.0, 2.0 * most - 1.0)


def ks_statistic(others: Atoms, happened: Atoms) -> Measured:
    """Largest difference of the shares of both kinds that lie below a score."""
    low, origin = distinct_places(happened.low, others.low)
    high = np.zeros(low.size)
    high[origin] = np.concatenate([happened.high, others.high])
    split = happened.low.size
    yes, no = (
        np.bincount(part, atoms.weight, low.size) / atoms.weight.sum()
        for part, atoms in ((origin[:split], happened), (origin[split:], others))
    )
    apart = running_totals(yes - no)
    least = float(np.abs(apart).max())
    # Inside a bin, the difference is the farthest if all of one kind come first.
    open_bins = low < high
    ends = np.stack([apart[:-1] + yes, apart[:-1] - no])[:, open_bins]
    most = max(least, float(np.abs(ends).max(initial=0.0)))
    return measured_between(min(least, 1.0), min(most, 1.0))


@dataclass(frozen=True, eq=False)
class KSCurve:
    """Distribution functions of the scores of two classes.

    Made by `fragility.metrics.ks_curve`.

    Attributes
    ----------
    scores : ndarray of shape (n_scores,)
        Distinct scores, ascending.
    negatives, positives : ndarray of shape (n_scores,)
        Share of each class that has at most this score.
    """

    scores: Floats
    negatives: Floats
    positives: Floats

    @property
    def ks(self) -> float:
        """Kolmogorov–Smirnov statistic: the largest difference of both functions."""
        return float(np.abs(self.positives - self.negatives).max())

    @property
    def threshold(self) -> float:
        """Score at which the difference is largest."""
        return float(self.scores[np.abs(self.positives - self.negatives).argmax()])

    def to_frame(self) -> Any:
        """Return the curve as a pandas DataFrame with a row for each distinct score."""
        return data_frame(vars(self))


def ks_curve(others: Atoms, happened: Atoms) -> KSCurve:
    """Return the distribution functions of scores that are all known."""
    scores = np.unique(np.concatenate([others.mean, happened.mean]))
    negatives, positives = (
        running_totals(atoms.weight)[np.searchsorted(atoms.mean, scores, side="right")]
        / atoms.weight.sum()
        for atoms in (others, happened)
    )
    return KSCurve(scores, negatives, positives)


def implied_threshold(false_alarm: float, miss: float) -> float:
    """Probability from which on it is cheaper to flag, by what each error costs more than right.

    NaN if no error costs anything.
    """
    return false_alarm / (false_alarm + miss) if false_alarm + miss > 0.0 else nan
