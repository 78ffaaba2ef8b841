r"""Confidence intervals of the figures beside the index.

All from a standard error by influences, on the scale on which the figure is nearly normal:
log-odds for AUC and buffered AUC, the logarithm for losses, with Student's quantile at the degrees
of freedom of the standard error, so that a few heavy cases do not look like certainty. CVaR sees
few pairs: its upper limit allows for one more mistake in each class, as that of the index does;
that of log-loss, which has no largest value, for one case worse than any. The rate of confident
errors is a share (Clopper and Pearson). `benchmarks/coverage.py` shows how often they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp, hypot, inf, isfinite, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from .._typing import Floats, Interval
from ..index.inference import cluster_stretch, stretched
from ..measured import LEAST_PROBABILITY, Measured
from .spread import Population, Spread

#: With fewer degrees of freedom one or two cases are most of the error: it says nothing then.
LEAST_FREEDOM = 2.0
#: A log-loss that was not seen may be this many times the largest one that was.
_BEYOND_THE_WORST = 1.5


_SHARES = "auc", "buffered_auc", "calibration_error", "confident_error_rate", "aurc", "accuracy"
_Rule = Callable[[float, Spread, "Circumstances"], Interval | None]


class Circumstances(NamedTuple):
    """What intervals need to know besides standard errors.

    Attributes
    ----------
    population : Population
    worst : ndarray of shape (C, 3)
        Influence of the worst mistakes, see `fragility.figures.case_influence.CaseInfluences`.
    calibration : ndarray
        Variances of the bins of the calibration error.
    largest_loss : float
        Largest log-loss of a case.
    confidence : float
    n_independent : float
        Effective number of cases, or of clusters.
    """

    population: Population
    worst: Floats
    calibration: Floats
    largest_loss: float
    confidence: float
    n_independent: float

    @property
    def tail(self) -> float:
        """Probability that each of the two limits may miss."""
        return 0.5 * (1.0 - self.confidence)

    @property
    def z(self) -> float:
        return float(-ndtri(self.tail))


def with_interval(name: str, figure: Measured, spread: Spread, about: Circumstances) -> Measured:
    """A figure with its standard error and its interval, or without where none can be told.

    Where the figure is known up to bounds, the interval is wider by as much.
    """
    if not isfinite(figure.value) or not isfinite(spread.error):
        return figure
    found = _RULES[name](figure.value, spread, about)
    if found is not None:
        least, most = (end - figure.value for end in figure.bounds or (figure.value,) * 2)
        lowest, highest = _LIMITS[name]
        if name == "brier" and about.population.support.size == 2:
            highest = 1.0  # of two classes it is that of the probability of one
        found = Interval(max(found.low + least, lowest), min(found.high + most, highest))
    return Measured(figure.value, found, figure.bounds, figure.estimator, spread.error)


def _quantile(spread: Spread, about: Circumstances) -> float:
    return -float(stdtrit(spread.freedom, about.tail))


def _on_log_odds(value: float, reach: float) -> Interval:
    centre, half = float(logit(value)), reach / (value * (1.0 - value))
    return Interval(float(expit(centre - half)), float(expit(centre + half)))


def _with_mistakes(place: int, error: float, about: Circumstances) -> tuple[float, float]:
    """Change and error of a figure of pairs with one more mistake, the worst, in each class."""
    sizes, found = about.population.sizes, np.flatnonzero(about.population.support)
    # Cases of one cluster are one witness.
    ratio = about.n_independent / about.population.size
    moves = about.worst[found, place] / (sizes[found] * ratio + 1.0)
    return float(moves.sum()), sqrt(error**2 + float(moves @ moves))


def _auc(value: float, spread: Spread, about: Circumstances) -> Interval | None:
    if value == 1.0:  # no mistakes: one more in each class must be possible
        return Interval(_least_auc(spread, about), 1.0)
    if value == 0.0:  # nothing but mistakes: the same with scores the other way round
        found = np.count_nonzero(about.population.support)
        turned = np.full_like(about.worst, -2.0 / found)  # the share of the pairs with a class
        return Interval(0.0, 1.0 - _least_auc(spread, about._replace(worst=turned)))
    return _buffered_auc(value, spread, about)


def _least_auc(spread: Spread, about: Circumstances) -> float:
    """Lower limit of an AUC of 1."""
    change, error = _with_mistakes(0, spread.error, about)
    return _on_log_odds(1.0 + change, about.z * error).low if 1.0 + change > 0.0 else 0.0


def _buffered_auc(value: float, spread: Spread, about: Circumstances) -> Interval | None:
    if spread.error == 0.0 or not 0.0 < value < 1.0 or spread.freedom < LEAST_FREEDOM:
        return None
    return _on_log_odds(value, _quantile(spread, about) * spread.error)


def _cvar(value: float, spread: Spread, about: Circumstances) -> Interval | None:
    share = 0.5 * (value + 1.0)  # which is 1 also of the float below 1
    if spread.error == 0.0 or not 0.0 < share < 1.0:
        return None
    low = _on_log_odds(share, 0.5 * _quantile(spread, about) * spread.error).low
    change, error = _with_mistakes(2, spread.error, about)
    high, share = 1.0, 0.5 * (value + change + 1.0)
    if share < 1.0:
        high = _on_log_odds(share, 0.5 * about.z * error).high
    return Interval(2.0 * low - 1.0, 2.0 * high - 1.0)


def _most_unseen(about: Circumstances) -> float:
    """Upper limit of the share of cases of a kind that was never seen."""
    return -float(np.expm1(log(about.tail) / about.n_independent))


def _loss(worst: float) -> _Rule:
    """Rule for the mean of losses of at most `worst`."""

    def rule(value: float, spread: Spread, about: Circumstances) -> Interval | None:
        if value <= 0.0:  # no case has lost anything
            return Interval(0.0, worst * _most_unseen(about))
        if spread.error == 0.0 or spread.freedom < LEAST_FREEDOM:
            return None
        reach = _quantile(spread, about) * spread.error / value
        return Interval(value * exp(-reach), value * exp(reach) if reach < 700.0 else inf)

    return rule


def _log_loss(value: float, spread: Spread, about: Circumstances) -> Interval | None:
    """Losses may be large: the upper limit allows for a case half as bad again as the worst."""
    found = _loss(_WORST_LOSS)(value, spread, about)
    if found is None or value <= 0.0:
        return found
    n, loss = about.population.size, _BEYOND_THE_WORST * about.largest_loss
    more = spread._replace(error=hypot(spread.error * n / (n + 1.0), (loss - value) / (n + 1.0)))
    higher = _loss(inf)((n * value + loss) / (n + 1.0), more, about)
    return found if higher is None else Interval(found.low, max(found.high, higher.high))


def _aurc(value: float, spread: Spread, about: Circumstances) -> Interval | None:
    if value <= 0.0:  # no errors: at worst the few that went unseen are the surest
        share = _most_unseen(about)
        return Interval(0.0, share * (1.0 - log(share)))
    found = _loss(1.0)(value, spread, about)
    return None if found is None else Interval(found.low, min(found.high, 1.0))


def _share(value: float, spread: Spread, about: Circumstances) -> Interval:
    """Clopper and Pearson's limits, with the number of cases that has this standard error."""
    n = about.n_independent
    if spread.error > 0.0:
        n = min(value * (1.0 - value) / spread.error**2, about.population.size)
    return share_interval(value, n, about.confidence)


def simultaneous(confidence: float, n: int) -> float:
    """Confidence of each of some intervals with which all hold together (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(n, 1)


def share_interval(value: float, n: float, confidence: float) -> Interval:
    """Clopper and Pearson's limits of a share of so many cases, whole numbers or not."""
    tail, hits = 0.5 * (1.0 - confidence), value * n
    low = float(betaincinv(hits, n - hits + 1.0, tail)) if hits > 0.0 else 0.0
    high = float(betaincinv(hits + 1.0, n - hits, 1.0 - tail)) if hits < n else 1.0
    return Interval(low, high)


def _calibration(value: float, spread: Spread, about: Circumstances) -> Interval:
    r"""Limits of the mean :math:`|d_b|`, which its estimate overstates.

    By the triangle inequality the mean of :math:`|\hat d_b|` is above the truth by no more than the
    mean of the errors' sizes, a sum of folded normals: that gives the lower limit. With the true
    signs the sum would be unbiased and no larger than the estimate: that gives the upper one.
    """
    # Variances by bin do not know clusters; the error of the sum does.
    total = float(about.calibration.sum())
    stretch = max(spread.error / sqrt(total), 1.0) if total > 0.0 else 1.0
    mean = sqrt(2.0 / pi) * float(np.sqrt(about.calibration).sum())
    reach = mean + about.z * sqrt((1.0 - 2.0 / pi) * total)
    above = about.z * max(spread.error, stretch * sqrt(total))
    # Scores of exactly 0 and 1 say that nothing is uncertain.
    high = value + max(above, _most_unseen(about))
    return Interval(max(value - stretch * reach, 0.0), min(high, 1.0))


#: Largest log-loss and Brier score of a case.
_WORST_LOSS, _WORST_SCORE = -log(LEAST_PROBABILITY), 2.0
#: Least and largest possible value.
_LIMITS = {
    **dict.fromkeys(_SHARES, (0.0, 1.0)),
    "cvar": (-1.0, 1.0),
    "log_loss": (0.0, _WORST_LOSS),
    "brier": (0.0, _WORST_SCORE),
}
_RULES: dict[str, _Rule] = {
    "auc": _auc,
    "buffered_auc": _buffered_auc,
    "cvar": _cvar,
    "log_loss": _log_loss,
    "brier": _loss(_WORST_SCORE),
    "calibration_error": _calibration,
    "confident_error_rate": _share,
    "aurc": _aurc,
    "accuracy": _share,
}


def index_intervals(
    index: Measured,
    ratio: Measured,
    spreads: Mapping[str, Spread],
    independent: Spread | None,
    about: Circumstances,
) -> dict[str, Measured]:
    """Index and ratio with standard errors and intervals.

    The interval of the index is that of independent cases. In clusters it is stretched as its
    standard error is, and so is that of the ratio by its relative error: both are nearly normal on
    the scale of the logarithm. `independent` is the spread of the index if cases were independent;
    None if they are.
    """
    of_index, of_ratio = spreads["fragility_index"], spreads["ratio"]
    if not isfinite(of_index.error):
        return {"fragility_index": index, "ratio": ratio}
    index = replace(index, standard_error=of_index.error)
    ratio = replace(ratio, standard_error=of_ratio.error)
    if not (0.0 < index.value < inf and 0.0 < of_index.error < inf):
        if independent is not None:  # where no case moves the index, no cluster does
            index = replace(index, interval=Interval(0.0, inf))
        return {"fragility_index": index, "ratio": ratio}
    if independent is not None and index.interval is not None:
        relative = of_index.error / independent.error
        stretch = cluster_stretch(relative, of_index.freedom, about.confidence)
        index = replace(index, interval=stretched(index.value, index.interval, stretch))
    if index.interval is not None and 0.0 < ratio.value < inf and of_ratio.error < inf:
        relative = (of_ratio.error / ratio.value) / (of_index.error / index.value)
        found = stretched(index.value, index.interval, relative)
        scale = ratio.value / index.value
        ratio = replace(ratio, interval=Interval(found.low * scale, found.high * scale))
    return {"fragility_index": index, "ratio": ratio}
