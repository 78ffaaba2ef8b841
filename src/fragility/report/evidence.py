"""What clinicians, banks and regulators ask of a model: calibration, thresholds, surest cases.

The curve of reliability and its numbers are measured on bins of the scores on every path, as
policies are: so they are the same for cases in memory and for sums. What happens at a threshold is
exact where the scores are known, and has bounds where they are known by bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np

from .._typing import Floats, Interval
from ..deferral.costs import Costs, chow_threshold
from ..figures.coverage import RiskCoverageCurve, errors_in_surest
from ..figures.operating import (
    BoundedPoints,
    implied_threshold,
    ks_statistic,
    odds,
    operating_points,
)
from ..figures.prevalence import at_prevalence
from ..figures.rank import Levels, measured_between
from ..figures.reliability import (
    Forecasts,
    ReliabilityCurve,
    calibration_intercept,
    calibration_slope,
    integrated_calibration_index,
    observed_expected_ratio,
)
from ..measured import SUREST, Measured
from ..scores.tally import DecisionCounts, Task
from .views import View

#: Bins of the reliability curve; as many as cases, if there are fewer.
RELIABILITY_BINS = 10
#: Thresholds of the operating table (that of the costs is added), and of the decision curve.
THRESHOLDS = np.arange(1, 10) / 10
CURVE_THRESHOLDS = np.arange(1, 100) / 100


@dataclass(frozen=True, eq=False)
class Evidence:
    """Calibration, thresholds and surest cases of one model.

    Attributes
    ----------
    figures : mapping of str to Measured
        Single numbers, by the names of `fragility.measured.EVIDENCE`.
    reliability : ReliabilityCurve
        Ten bins of equal mass. Of several classes: of the confidence. The band counts clusters of
        cases where the scores as they are are held, else cases.
    risk_coverage : RiskCoverageCurve
        Error rate among the cases whose confidence is above each of some thresholds.
    prevalence : float, optional
        Share of the positive class that calibration, predictive values and net benefit are for;
        None for several classes, which have none of what follows.
    operating : BoundedPoints, optional
        At the thresholds 0.1, 0.2, ..., 0.9, and at that which the costs imply.
    decision_curve : BoundedPoints, optional
        At the thresholds 0.01, 0.02, ..., 0.99.
    cost_threshold : float, optional
        The threshold that the costs imply, if there are any.
    """

    figures: Mapping[str, Measured]
    reliability: ReliabilityCurve
    risk_coverage: RiskCoverageCurve
    prevalence: float | None = None
    operating: BoundedPoints | None = None
    decision_curve: BoundedPoints | None = None
    cost_threshold: float | None = None

    def treat_all(self, thresholds: Floats) -> Floats:
        """Net benefit of flagging every case."""
        assert self.prevalence is not None
        return self.prevalence - (1.0 - self.prevalence) * odds(thresholds)


def evidence(
    view: View,
    levels: Levels,
    decisions: DecisionCounts,
    *,
    auc: Measured,
    confidence: float,
    costs: Costs | None,
    prevalence: float | None,
) -> Evidence:
    """Measure a model; `levels` are its predictions by confidence, `auc` was measured before."""
    surest = {
        f"error_rate_surest_{100 * share:.0f}": errors_in_surest(levels, share) for share in SUREST
    }
    binned = view.binned_outcomes()
    factors = 1.0, 1.0
    if view.n_classes == 2:
        before = [float(part.weight.sum()) for part in binned]
        *binned, _ = at_prevalence(*binned, prevalence)  # type: ignore[assignment]
        after = [float(part.weight.sum()) for part in binned]
        if prevalence is not None:
            factors = before[0] / after[0], before[1] / after[1]
    others, happened = binned
    n_bins = min(RELIABILITY_BINS, int(view.support.sum()))
    forecasts = Forecasts.of(happened, others)
    sums = forecasts.summed(n_bins, "quantile")
    curve = sums.curve(confidence, factors, view.cases_alike(n_bins, factors))
    covered = _risk_coverage(decisions)
    if view.n_classes > 2:
        return Evidence(surest, curve, covered)
    figures = {
        "calibration_slope": Measured(calibration_slope(forecasts)),
        "calibration_intercept": Measured(calibration_intercept(forecasts)),
        "observed_expected_ratio": Measured(observed_expected_ratio(forecasts)),
        "integrated_calibration_index": Measured(integrated_calibration_index(forecasts)),
    }
    negatives, positives, share = at_prevalence(*view.outcomes(), prevalence)
    figures |= {"gini": _gini(auc), "ks": ks_statistic(negatives, positives)}
    figures |= surest
    thresholds, threshold = THRESHOLDS, None
    if costs is not None and not isnan(found := cost_threshold(costs, view.task)):
        threshold = found
        thresholds = np.union1d(THRESHOLDS, [found])
        at = operating_points(negatives, positives, np.array([found]))
        figures["net_benefit"] = _net_benefit(at)
    return Evidence(
        figures,
        curve,
        covered,
        share,
        operating_points(negatives, positives, thresholds),
        operating_points(negatives, positives, CURVE_THRESHOLDS),
        threshold,
    )


def cost_threshold(costs: Costs, task: Task) -> float:
    """Probability of the positive class from which on it is cheaper to decide it.

    Answers are not decided otherwise, but passed on: there it is Chow's threshold, NaN at 0 and 1.
    """
    matrix, positive, negative = costs.matrix(2), task.positive, 1 - task.positive
    if task.answers:
        chow = chow_threshold(replace(costs, error_cost=float(matrix[negative, positive])))
        return chow if 0.0 < chow < 1.0 else nan
    alarm = float(matrix[negative, positive] - matrix[negative, negative])
    miss = float(matrix[positive, negative] - matrix[positive, positive])
    return implied_threshold(alarm, miss)


def _gini(auc: Measured) -> Measured:
    """Twice the AUC minus one, with its interval and bounds."""
    interval, bounds = (
        None if part is None else Interval(2.0 * part.low - 1.0, 2.0 * part.high - 1.0)
        for part in (auc.interval, auc.bounds)
    )
    error = None if auc.standard_error is None else 2.0 * auc.standard_error
    return Measured(2.0 * auc.value - 1.0, interval, bounds, auc.estimator, error)


def _net_benefit(at: BoundedPoints) -> Measured:
    value = float(at.points.net_benefit[0])
    if at.least is None or at.most is None:
        return Measured(value)
    return measured_between(float(at.least.net_benefit[0]), float(at.most.net_benefit[0]))


def _risk_coverage(decisions: DecisionCounts) -> RiskCoverageCurve:
    """A point for each threshold of the confidence above which there are cases, fewest first."""
    total = decisions.total
    alone = total - np.asarray(decisions.reviewed, dtype=np.float64)
    # Where no case is between two thresholds, the lower one says the same.
    new = np.diff(alone, append=0.0) < 0.0
    places = np.flatnonzero(new & (alone > 0.0))[::-1]
    return RiskCoverageCurve(
        alone[places] / total,
        decisions.errors[places] / alone[places],
        decisions.thresholds[places],
    )
