"""Confidence of all predictions of a model, from its bins, and what follows: histograms, costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..confidence import HISTOGRAM_BINS, shares_by_confidence
from ..deferral import Costs
from ..deferral.cases import ROUNDING, first_of_least
from ..deferral.costs import chow_threshold
from ..index.inference import Interval
from ..measured import Measured
from ..moments import Floats
from ..ordered import running_totals
from .first_pass import ConfidentSums, ModelBins
from .prediction_atoms import prediction_atoms
from .rank_figures import Clusters, measured_between

__all__ = [
    "ConfidenceHistogram",
    "Confidences",
    "CostCurve",
    "confidences_of",
    "cost_curve",
    "histogram_of",
]

#: Thresholds that a curve keeps, at most.
_MOST_THRESHOLDS = 1_000


@dataclass(frozen=True, eq=False)
class ConfidenceHistogram:
    """Histograms of the confidence of wrong and of right predictions, as in `ConfidenceDisplay`.

    Attributes
    ----------
    edges : ndarray of shape (21,)
    wrong, right : ndarray of shape (20,)
        Share of the wrong, and of the right, predictions in each bin (zero if there are none).
        Cases next to an edge may be counted on its other side.
    n_wrong, n_right : int
        Their numbers, exact.
    n_confident_errors : int
        Wrong predictions of a confidence above 0.9, exact.
    confident : ConfidentSums
        The predictions of a confidence above 0.9, exact.
    """

    edges: Floats
    wrong: Floats
    right: Floats
    n_wrong: int
    n_right: int
    n_confident_errors: int
    confident: ConfidentSums


@dataclass(frozen=True, eq=False)
class CostCurve:
    """What deciding alone above each of some thresholds costs.

    Exact at each of them: between neighbours the order of the cases may not be known.

    Attributes
    ----------
    thresholds : ndarray
        Ascending, at most a thousand and one of all that were looked at. Cases of a confidence
        above the threshold are decided alone; at 0 all are.
    cost : ndarray
        Cost per case.
    automation_rate : ndarray
        Share of the cases that are decided alone.
    error_rate : ndarray
        Share of those that are wrong; NaN if there are none.
    allowed : ndarray of bool
        Whether no more cases are left to review than `capacity` says.
    best_threshold : float
        The cheapest of all that were looked at and are allowed; of equally cheap ones the least.
    best_cost : Measured
        Cost per case there. Its lower bound holds for every threshold that is allowed.
    best_automation_rate, best_error_rate : float
        At the best threshold.
    chow_threshold : float
        Of Chow's rule, see `fragility.deferral.costs.chow_threshold`; NaN where there is none.
    chow_cost : Measured
        Cost per case there, whatever the capacity is; NaN where there is no such threshold.
    """

    thresholds: Floats
    cost: Floats
    automation_rate: Floats
    error_rate: Floats
    allowed: NDArray[np.bool_]
    best_threshold: float
    best_cost: Measured
    best_automation_rate: float
    best_error_rate: float
    chow_threshold: float
    chow_cost: Measured


class Confidences(NamedTuple):
    """Predictions by confidence.

    `costs` has sums over each cluster: cost if decided alone, if reviewed, and the most that
    reviewing saves. None if nothing is known of costs.
    """

    clusters: Clusters
    costs: Floats | None


def confidences_of(bins: ModelBins) -> Confidences:
    """All predictions of a model by confidence."""
    parts = list(prediction_atoms(bins))
    low, high, weight, wrong, mean = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("low", "high", "weight", "wrong", "mean")
    )
    clusters = Clusters.of(low, high, weight, wrong, mean)
    if bins.costs is None:
        return Confidences(clusters, None)
    amounts = np.concatenate([part.costs for part in parts], axis=1)
    n = clusters.weight.size
    sums = [np.bincount(clusters.origin, amount, n) for amount in amounts]
    return Confidences(clusters, np.array(sums, dtype=np.float64))


def histogram_of(bins: ModelBins, clusters: Clusters, support: int) -> ConfidenceHistogram:
    """Histograms with a bin of fine bins counted where its mean is."""
    shares = shares_by_confidence(
        clusters.mean,
        clusters.wrong,
        clusters.weight - clusters.wrong,
        bins.classes.count,
        HISTOGRAM_BINS,
        bins.n_wrong,
        support - bins.n_wrong,
    )
    return ConfidenceHistogram(
        **shares._asdict(),
        n_confident_errors=bins.n_confident_errors,
        confident=bins.confident,
    )


def cost_curve(confidences: Confidences, costs: Costs) -> CostCurve:
    """Cost at every threshold between clusters, and the best of them."""
    clusters, sums = confidences
    assert sums is not None
    alone, reviewed, saved = sums
    total = float(clusters.weight.sum())
    # At place k the k least confident clusters are reviewed.
    cost = (running_totals(reviewed) + running_totals(alone[::-1])[::-1]) / total
    left = running_totals(clusters.weight[::-1])[::-1]
    wrong = running_totals(clusters.wrong[::-1])[::-1]
    thresholds = np.concatenate(([0.0], clusters.high))
    error_rate = np.full(left.size, nan)
    np.divide(wrong, left, out=error_rate, where=left > 0.0)
    most = inf if costs.capacity is None else costs.capacity + ROUNDING
    allowed = running_totals(clusters.weight) / total <= most
    least = float(cost[allowed].min())
    same = ROUNDING * float(cost.max())
    best = int(first_of_least(np.where(allowed, cost, inf), same))
    # Within a cluster that is not tied the cheapest order would review what is worth it first.
    within = np.where(clusters.tied, 0.0, saved)
    lowest = float((cost[:-1] + within / total)[allowed[:-1]].min(initial=least))
    bounds = Interval(lowest, float(cost[best])) if lowest < least - same else None
    chow = chow_threshold(costs)
    kept = np.unique(np.linspace(0, cost.size - 1, _MOST_THRESHOLDS).round().astype(np.intp))
    kept = np.union1d(kept, [best])
    return CostCurve(
        thresholds=thresholds[kept],
        cost=cost[kept],
        automation_rate=left[kept] / total,
        error_rate=error_rate[kept],
        allowed=allowed[kept],
        best_threshold=float(thresholds[best]),
        best_cost=Measured(float(cost[best]), bounds=bounds, estimator="same_cases"),
        best_automation_rate=float(left[best]) / total,
        best_error_rate=float(error_rate[best]),
        chow_threshold=chow,
        chow_cost=_cost_at(chow, clusters, sums, cost),
    )


def _cost_at(threshold: float, clusters: Clusters, sums: Floats, cost: Floats) -> Measured:
    """Cost at a given threshold, which may fall into a cluster."""
    if isnan(threshold):
        return Measured(nan)
    place = int(np.searchsorted(clusters.high, threshold, side="right"))
    if place == clusters.high.size or clusters.low[place] > threshold:
        return Measured(float(cost[place]))
    # Some cases of the cluster are reviewed, no one knows which.
    alone, reviewed, saved = sums[:, place] / clusters.weight.sum()
    added = reviewed - alone - saved
    return measured_between(float(cost[place] + saved), float(cost[place] + added))
