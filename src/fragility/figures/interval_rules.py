r"""Confidence intervals: one rule for each kind of figure, with what few cases cannot tell.

All use the standard error from influences, on the scale on which the figure is nearly normal:
log-odds for AUC and buffered AUC, the logarithm for losses, with Student's quantile at the degrees
of freedom of the standard error, so that a few heavy cases do not look like certainty. CVaR sees
few pairs: its upper limit allows for one more mistake in each class, as that of the index does.
Log-loss has no largest value: its upper limit allows for one case worse than any. Shares have
Clopper and Pearson's limits. `benchmarks/coverage.py` shows how often the intervals hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1, hypot, inf, isfinite, log, pi, sqrt

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from .._typing import Floats, Interval
from ..cases.cases import Spread
from ..index.inference import cluster_stretch, stretched
from ..measured import LEAST_PROBABILITY, Measured
from .scored import Estimate, Scored

#: With fewer degrees of freedom one or two cases are most of the error: it says nothing then.
LEAST_FREEDOM = 2.0
#: A log-loss that was not seen may be this many times the largest one that was.
_BEYOND_THE_WORST = 1.5
#: Largest log-loss and Brier score of a case.
WORST_LOSS, _WORST_SCORE = -log(LEAST_PROBABILITY), 2.0


@dataclass(frozen=True)
class IntervalQuestion:
    """What a rule needs to know of a figure and of the cases.

    Attributes
    ----------
    estimate : Estimate
    spread : Spread
        Its standard error.
    confidence_level : float
    class_sizes : ndarray of shape (C,)
        Effective number of cases of each class; 0 for classes without a case.
    size, n_independent : float
        Effective number of cases; and of independent ones, which are clusters where cases are not.
    """

    estimate: Estimate
    spread: Spread
    confidence_level: float
    class_sizes: Floats
    size: float
    n_independent: float

    @property
    def value(self) -> float:
        """Value of the figure."""
        return self.estimate.value

    @property
    def error(self) -> float:
        """Standard error of the figure."""
        return self.spread.error

    @property
    def tail(self) -> float:
        """Probability that each of the two limits may miss."""
        return 0.5 * (1.0 - self.confidence_level)

    @property
    def z(self) -> float:
        """Normal quantile."""
        return float(-ndtri(self.tail))

    @property
    def t(self) -> float:
        """Student's quantile at the degrees of freedom of the standard error."""
        return -float(stdtrit(self.spread.freedom, self.tail))

    @property
    def unseen_share(self) -> float:
        """Upper limit of the share of cases of a kind that was never seen."""
        return -expm1(log(self.tail) / self.n_independent)

    def with_mistakes(self, worst: Floats) -> tuple[float, float]:
        """Return change and error of a figure with one more worst mistake in each class."""
        present = np.flatnonzero(self.class_sizes)
        # Cases of one cluster are one witness.
        sizes = self.class_sizes[present] * (self.n_independent / self.size)
        moves = worst[present] / (sizes + 1.0)
        return float(moves.sum()), sqrt(self.error**2 + float(moves @ moves))


Rule = Callable[[IntervalQuestion], Interval | None]


def confidence_interval(
    rule: Rule,
    limits: tuple[float, float],
    model: Scored,
    estimate: Estimate,
    spread: Spread,
    confidence_level: float,
) -> Interval | None:
    """Return the interval of a figure by its rule, or None where none can be told."""
    if not isfinite(estimate.value) or not isfinite(spread.error):
        return None
    question = IntervalQuestion(
        estimate,
        spread,
        confidence_level,
        model.class_sizes,
        model.effective_size,
        model.n_independent,
    )
    interval = rule(question)
    if interval is None:
        return None
    return Interval(max(interval.low, limits[0]), min(interval.high, limits[1]))


def _on_log_odds(value: float, reach: float) -> Interval:
    centre, half = float(logit(value)), reach / (value * (1.0 - value))
    return Interval(float(expit(centre - half)), float(expit(centre + half)))


def auc_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the scale of log-odds; at 0 and 1 each class may have one more mistake."""
    assert of.estimate.worst is not None
    if of.value == 1.0:
        return Interval(_least_auc(of, of.estimate.worst), 1.0)
    if of.value == 0.0:  # nothing but mistakes: the same with scores the other way round
        share = -2.0 / np.count_nonzero(of.class_sizes)  # of the pairs with a class
        return Interval(0.0, 1.0 - _least_auc(of, np.full(of.class_sizes.size, share)))
    return buffered_auc_rule(of)


def _least_auc(of: IntervalQuestion, worst: Floats) -> float:
    """Return the lower limit of an AUC of 1."""
    change, error = of.with_mistakes(worst)
    return _on_log_odds(1.0 + change, of.z * error).low if 1.0 + change > 0.0 else 0.0


def buffered_auc_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the scale of log-odds."""
    if of.error == 0.0 or not 0.0 < of.value < 1.0 or of.spread.freedom < LEAST_FREEDOM:
        return None
    return _on_log_odds(of.value, of.t * of.error)


def cvar_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the log-odds of (CVaR + 1) / 2, the upper one with one more mistake."""
    assert of.estimate.worst is not None
    share = 0.5 * (of.value + 1.0)  # which is 1 also of the float below 1
    if of.error == 0.0 or not 0.0 < share < 1.0:
        return None
    low = _on_log_odds(share, 0.5 * of.t * of.error).low
    change, error = of.with_mistakes(of.estimate.worst)
    share = 0.5 * (of.value + change + 1.0)
    high = _on_log_odds(share, 0.5 * of.z * error).high if share < 1.0 else 1.0
    return Interval(2.0 * low - 1.0, 2.0 * high - 1.0)


def _loss_limits(of: IntervalQuestion, worst: float) -> Interval | None:
    """Return limits on the logarithmic scale for a mean of losses of at most `worst`."""
    if of.value <= 0.0:  # no case has lost anything
        return Interval(0.0, worst * of.unseen_share)
    return _log_limits(of.value, of.spread, of)


def _log_limits(value: float, spread: Spread, of: IntervalQuestion) -> Interval | None:
    if spread.error == 0.0 or spread.freedom < LEAST_FREEDOM:
        return None
    reach = -float(stdtrit(spread.freedom, of.tail)) * spread.error / value
    return Interval(value * exp(-reach), value * exp(reach) if reach < 700.0 else inf)


def brier_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the logarithmic scale."""
    interval = _loss_limits(of, _WORST_SCORE)
    if interval is not None and of.class_sizes.size == 2:  # that of the probability of one class
        return Interval(interval.low, min(interval.high, 1.0))
    return interval


def log_loss_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the logarithmic scale; the upper one allows for a case worse than any."""
    interval = _loss_limits(of, WORST_LOSS)
    if interval is None or of.value <= 0.0:
        return interval
    assert of.estimate.largest is not None
    n, loss = of.size, _BEYOND_THE_WORST * of.estimate.largest
    error = hypot(of.error * n / (n + 1.0), (loss - of.value) / (n + 1.0))
    higher = _log_limits((n * of.value + loss) / (n + 1.0), Spread(error, of.spread.freedom), of)
    return interval if higher is None else Interval(interval.low, max(interval.high, higher.high))


def aurc_rule(of: IntervalQuestion) -> Interval | None:
    """Return limits on the logarithmic scale; without errors the unseen ones may be the surest."""
    if of.value <= 0.0:
        share = of.unseen_share
        return Interval(0.0, share * (1.0 - log(share)))
    return _loss_limits(of, 1.0)


def share_rule(of: IntervalQuestion) -> Interval:
    """Return Clopper and Pearson's limits, for the number of cases that has this standard error."""
    n = of.n_independent
    if of.error > 0.0:
        n = min(of.value * (1.0 - of.value) / of.error**2, of.size)
    return share_interval(of.value, n, of.confidence_level)


def share_interval(value: float, n: float, confidence_level: float) -> Interval:
    """Return Clopper and Pearson's limits of a share of n cases, a whole number or not."""
    tail, hits = 0.5 * (1.0 - confidence_level), value * n
    low = float(betaincinv(hits, n - hits + 1.0, tail)) if hits > 0.0 else 0.0
    high = float(betaincinv(hits + 1.0, n - hits, 1.0 - tail)) if hits < n else 1.0
    return Interval(low, high)


def calibration_rule(of: IntervalQuestion) -> Interval:
    r"""Return limits of the mean :math:`|d_b|` over bins, which its estimate overstates.

    By the triangle inequality the mean of :math:`|\hat d_b|` is above the truth by no more than the
    mean of the errors' sizes, a sum of folded normals: that gives the lower limit. With the true
    signs the sum would be unbiased and no larger than the estimate: that gives the upper one.
    """
    assert of.estimate.variances is not None
    total = float(of.estimate.variances.sum())
    # Variances by bin do not know clusters; the error of the sum does.
    stretch = max(of.error / sqrt(total), 1.0) if total > 0.0 else 1.0
    mean = sqrt(2.0 / pi) * float(np.sqrt(of.estimate.variances).sum())
    reach = mean + of.z * sqrt((1.0 - 2.0 / pi) * total)
    above = of.z * max(of.error, stretch * sqrt(total))
    # Probabilities of exactly 0 and 1 say that nothing is uncertain.
    high = of.value + max(above, of.unseen_share)
    return Interval(max(of.value - stretch * reach, 0.0), high)


def index_interval(model: Scored, spread: Spread, confidence_level: float) -> Interval | None:
    """Return the interval of the index, by the test of its equation.

    That interval is of independent cases. In clusters and samples it is stretched as the standard
    error is: the logarithm of the index is nearly normal.
    """
    value = model.index.value
    interval = model.index.interval(confidence_level)
    if model.cases.cluster is None and model.cases.count is None:
        return interval
    if not 0.0 < value < inf or spread.error == 0.0:  # no case moves it, and no cluster
        return Interval(0.0, inf)
    if not isfinite(spread.error):
        return interval
    stretch = spread.error / model.index.standard_error
    return stretched(value, interval, cluster_stretch(stretch, spread.freedom, confidence_level))


def ratio_interval(model: Scored, index: Measured, ratio: Measured) -> Interval | None:
    """Return the interval of the ratio: that of the index, by their relative errors."""
    assert index.standard_error is not None
    assert ratio.standard_error is not None
    if index.interval is None or not (0.0 < index.value < inf and 0.0 < ratio.value < inf):
        return None
    relative = (ratio.standard_error / ratio.value) / (index.standard_error / index.value)
    interval = stretched(index.value, index.interval, relative)
    scale = ratio.value / index.value
    return Interval(interval.low * scale, interval.high * scale)
