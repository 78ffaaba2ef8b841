r"""Probability against frequency: the reliability curve with a band, and what sums it up.

The scores foretell how frequent the cases that `happened` are: of two classes the positive ones, of
several the right predictions, by their confidence. Scores of an atom that is a bin count at its
mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

from .._typing import Floats, Indices, Integers, Mask
from ..ordered import distinct_places, running_totals
from ..scores.atoms import Atoms

Strategy = Literal["quantile", "uniform"]

#: Probabilities nearer to 0 and 1 count as this near, so that their log-odds are finite.
_NEAREST = 1e-12
#: Groups of equal mass that the smooth curve is fitted to, and the share of them in a window.
SMOOTHED_GROUPS, SPAN = 200, 0.75
#: A step of Newton's method that is smaller changes nothing; it takes a few steps.
_STEP, _MOST_STEPS = 1e-13, 200


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted against observed frequency, by bins of the score.

    Attributes
    ----------
    predicted : ndarray of shape (n_bins,)
        Mean score in each bin, ascending.
    observed : ndarray of shape (n_bins,)
        Frequency of the positive class (of several classes: of right predictions).
    lower, upper : ndarray of shape (n_bins,)
        Wilson's interval of the frequency.
    counts : ndarray of shape (n_bins,)
        Cases, or their weight. A case that is divided between bins counts in parts.
    effective : ndarray of shape (n_bins,)
        Number of independent cases of equal weight that would be as uncertain: what the band is
        made from. Equal to `counts` where there are no weights, clusters or other prevalence.
    confidence : float
        Confidence level of the band.
    """

    predicted: Floats
    observed: Floats
    lower: Floats
    upper: Floats
    counts: Floats
    effective: Floats
    confidence: float


class Forecasts(NamedTuple):
    """Cases by ascending score: weights of those that happened and of the others, and squares."""

    mean: Floats
    yes: Floats
    no: Floats
    yes_squares: Floats
    no_squares: Floats

    @property
    def weight(self) -> Floats:
        """Weight of all cases."""
        return self.yes + self.no

    @classmethod
    def of(cls, happened: Atoms, others: Atoms) -> Forecasts:
        """Both kinds together; atoms of the same range become one."""
        low, origin = distinct_places(happened.low, others.low)
        both = [np.concatenate(parts) for parts in zip(happened, others, strict=True)]
        places = np.split(origin, [happened.low.size])
        yes, no, *squares = (
            np.bincount(place, getattr(atoms, name), low.size).astype(np.float64)
            for name in ("weight", "squares")
            for place, atoms in zip(places, (happened, others), strict=True)
        )
        total = np.bincount(origin, both[2] * both[3], low.size)
        # Within the class means, however the quotient is rounded.
        least, most = np.full(low.size, inf), np.full(low.size, -inf)
        np.minimum.at(least, origin, both[3])
        np.maximum.at(most, origin, both[3])
        return cls(np.clip(total / (yes + no), least, most), yes, no, *squares)

    def summed(self, n_bins: int, strategy: Strategy) -> BinSums:
        """Sums in bins: of equal mass, cases on a boundary divided; or of equal width."""
        squares = self.yes_squares, self.no_squares
        amounts = self.weight, self.weight * self.mean, self.yes, *squares
        if strategy == "uniform":
            places = _equal_width(self.mean, n_bins)
            return BinSums(
                *(np.bincount(places, part, n_bins).astype(np.float64) for part in amounts)
            )
        mass = running_totals(self.weight)
        at = mass[-1] * (np.arange(n_bins + 1) / n_bins)
        return BinSums(*(np.diff(np.interp(at, mass, running_totals(part))) for part in amounts))


def _equal_width(scores: Floats, n_bins: int) -> Indices:
    """Bin of each score; an edge is the float next to its decimal number, and lies above."""
    return np.searchsorted(np.arange(1, n_bins) / n_bins, scores, side="right")


class BinSums(NamedTuple):
    """Sums by bin: weight, weight times score, weight of what happened, squares of both kinds."""

    weight: Floats
    score: Floats
    yes: Floats
    yes_squares: Floats
    no_squares: Floats

    def counts(self, others: float, happened: float) -> Floats:
        """Weights by bin before those of each kind were divided by such a factor."""
        if others == happened:
            return self.weight * others
        return self.yes * happened + (self.weight - self.yes) * others

    def curve(
        self,
        confidence: float,
        given: tuple[float, float] = (1.0, 1.0),
        alike: Floats | None = None,
    ) -> ReliabilityCurve:
        """The curve, with a band.

        Parameters
        ----------
        confidence : float
        given : (float, float)
            Factors that turn weights of the others, and of what happened, into the given ones.
            The band is that of the given cases, by Kish's effective number; at another base rate
            its odds are those of the given cases times a constant.
        alike : ndarray of shape (n_bins,), optional
            How many cases count as one in each bin.
        """
        held = np.flatnonzero(self.weight > 0.0)
        weight, score, yes, yes_squares, no_squares = (part[held] for part in self)
        observed = np.clip(yes / weight, 0.0, 1.0)
        others, happened = given
        counts, frequency = self.counts(*given)[held], observed
        if others != happened:
            frequency = np.clip(yes * happened / counts, 0.0, 1.0)
        squares = yes_squares * happened**2 + no_squares * others**2
        number = counts**2 / np.where(squares > 0.0, squares, 1.0)
        if alike is not None:
            number = number / alike[held]
        lower, upper = (
            end if others == happened else end / happened / (end / happened + (1.0 - end) / others)
            for end in wilson(frequency, number, confidence)
        )
        return ReliabilityCurve(score / weight, observed, lower, upper, counts, number, confidence)


def wilson(observed: Floats, number: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Wilson's interval of frequencies among numbers of cases, which need not be whole."""
    z = float(ndtri(0.5 + 0.5 * confidence))
    shrunk = 1.0 + z * z / number
    middle = (observed + z * z / (2.0 * number)) / shrunk
    half = z * np.sqrt(observed * (1.0 - observed) / number + (z / (2.0 * number)) ** 2) / shrunk
    # Rounding must not push the ends beyond the frequencies 0 and 1.
    lower = np.where(observed <= 0.0, 0.0, np.clip(middle - half, 0.0, 1.0))
    upper = np.where(observed >= 1.0, 1.0, np.clip(middle + half, 0.0, 1.0))
    return lower, upper


def log_odds(p: Floats) -> Floats:
    """Log-odds of probabilities, which are clipped near 0 and 1."""
    found: Floats = logit(np.clip(p, _NEAREST, 1.0 - _NEAREST))
    return found


def _happens(found: Forecasts) -> bool:
    """Whether some of it happened and some did not, as far as the sum of weights tells."""
    held = bool(found.yes.any() and found.no.any())
    return held and 0.0 < float((found.yes / found.weight.sum()).sum()) < 1.0


def calibration_slope(found: Forecasts) -> float:
    """Slope of a logistic regression of what happened on the log-odds of the score.

    Infinite where a score separates what happened from the rest; NaN if all scores are the same, or
    nothing or everything happened.
    """
    x = log_odds(found.mean)
    ours, theirs = x[found.yes > 0.0], x[found.no > 0.0]
    if not _happens(found) or x.min() == x.max():
        return nan
    if theirs.max() <= ours.min():
        return inf
    if ours.max() <= theirs.min():
        return -inf
    weight, yes = found.weight / found.weight.sum(), found.yes / found.weight.sum()
    centre = float(weight @ x)
    scale = float(np.sqrt(weight @ (x - centre) ** 2))
    return _logistic_slope((x - centre) / scale, weight, yes) / scale


@np.errstate(over="ignore", invalid="ignore")
def _logistic_slope(x: Floats, weight: Floats, yes: Floats) -> float:
    """Slope of the greatest likelihood, which must exist: Newton's method, steps halved."""
    design = np.stack([np.ones(x.size), x])
    beta = np.array([float(logit(yes.sum())), 0.0])

    def loss(at: Floats) -> float:
        z = at @ design
        return float(weight @ np.logaddexp(0.0, z) - yes @ z)

    value = loss(beta)
    for _ in range(_MOST_STEPS):
        p = expit(beta @ design)
        gradient = design @ (weight * p - yes)
        spread = weight * p * (1.0 - p)
        total = float(spread.sum())
        centre = float(spread @ x) / total
        curvature = float(spread @ (x - centre) ** 2)
        if not curvature > 0.0:  # as steep as floating point tells
            break
        slope = float(gradient[1] - centre * gradient[0]) / curvature
        step = np.array([float(gradient[0]) / total - centre * slope, slope])
        length = 1.0
        while length > _STEP and not loss(beta - length * step) <= value + 1e-15 * abs(value):
            length *= 0.5
        beta = beta - length * step
        value = loss(beta)
        if float(np.abs(length * step).max()) <= _STEP * max(1.0, float(np.abs(beta).max())):
            break
    return float(beta[1])


def calibration_intercept(found: Forecasts) -> float:
    """Intercept of that regression with the slope held at one; NaN if all or nothing happened."""
    if not _happens(found):
        return nan
    x, weight = log_odds(found.mean), found.weight / found.weight.sum()
    share = float(found.yes.sum() / found.weight.sum())
    # The mean probability rises with the intercept, so the root lies between these.
    low, high = float(logit(share)) - float(x.max()), float(logit(share)) - float(x.min())
    a = min(max(0.0, low), high)
    for _ in range(_MOST_STEPS):
        p = expit(a + x)
        over, slope = float(weight @ p) - share, float(weight @ (p * (1.0 - p)))
        low, high = (low, min(a, high)) if over > 0.0 else (max(a, low), high)
        following = a - over / slope if slope > 0.0 else nan
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - a) <= _STEP * max(1.0, abs(a)):
            return following
        a = following
    return a


def observed_expected_ratio(found: Forecasts) -> float:
    """Weight of what happened over the sum of the probabilities."""
    observed, expected = float(found.yes.sum()), float(found.weight @ found.mean)
    if expected > 0.0:
        return observed / expected
    return inf if observed > 0.0 else nan


def integrated_calibration_index(found: Forecasts) -> float:
    """Mean distance of the scores to a smooth curve of the frequencies.

    The cases, by score, in 200 groups of equal mass (a case may be in several, in parts). At each
    group, a straight line is fitted to the frequencies of the three quarters of the groups whose
    mean scores are nearest, with tricube weights (1 − (d/h)³)³, h the distance of the farthest of
    them.
    """
    groups = found.summed(SMOOTHED_GROUPS, "quantile")
    x, y = groups.score / groups.weight, groups.yes / groups.weight
    return float(np.abs(_smooth(x, y) - x).mean())


def _smooth(x: Floats, y: Floats) -> Floats:
    """Local straight lines at each of some ascending points of equal weight."""
    near = _nearest(x, int(np.ceil(SPAN * x.size)))
    apart = np.abs(x[near] - x[:, np.newaxis])
    width = apart.max(axis=1, keepdims=True)
    ratio = np.divide(apart, width, out=np.zeros_like(apart), where=width > 0.0)
    weight = (1.0 - ratio**3) ** 3
    weight /= weight.sum(axis=1, keepdims=True)
    offset, height = x[near] - x[:, np.newaxis], y[near]
    mean_x, mean_y = (weight * offset).sum(axis=1), (weight * height).sum(axis=1)
    centred = offset - mean_x[:, np.newaxis]
    spread = (weight * centred**2).sum(axis=1)
    joint = (weight * centred * height).sum(axis=1)
    # Where all scores in reach are the same but for rounding, their mean is the curve.
    flat = spread <= 1e-24
    slope = np.divide(joint, spread, out=np.zeros_like(joint), where=~flat)
    return np.asarray(np.clip(mean_y - slope * mean_x, 0.0, 1.0), dtype=np.float64)


def _nearest(x: Floats, count: int) -> Indices:
    """Places of the `count` points nearest to each of some ascending points, (n, count)."""
    first = np.zeros(x.size, dtype=np.intp)
    start = 0
    for place, value in enumerate(x.tolist()):
        while start + count < x.size and x[start + count] - value < value - x[start]:
            start += 1
        first[place] = start
    return first[:, np.newaxis] + np.arange(count)


def cases_alike(
    score: Floats,
    happened: Mask,
    weight: Floats,
    clusters: Integers,
    n_bins: int,
    strategy: Strategy,
) -> Floats:
    r"""How many cases count as one in each bin, if those of a cluster are alike: one or more.

    The design effect. With the residuals :math:`e_i = w_i (y_i - \bar y)` of the n cases of a bin
    and G clusters it is

    .. math:: \frac{G}{G - 1} \sum_g \Bigl(\sum_{i \in g} e_i\Bigr)^2 \Big/
              \frac{n}{n - 1} \sum_i e_i^2 .

    Where all or none happened, there are no residuals: there every cluster counts as one.
    """
    values, origin = np.unique(score, return_inverse=True)
    mass = running_totals(np.bincount(origin, weight, values.size).astype(np.float64))
    at = mass[-1] * (np.arange(n_bins + 1) / n_bins)
    places = _equal_width(values, n_bins)
    found = np.ones(n_bins)
    for place in range(n_bins):
        if strategy == "uniform":
            shares = (places == place).astype(np.float64)
        else:
            inside, whole = np.diff(np.clip(mass, at[place], at[place + 1])), np.diff(mass)
            # A weight that is lost in the sum of the others is in no bin.
            shares = np.divide(inside, whole, out=np.zeros_like(whole), where=whole > 0.0)
        own = weight * shares[origin]
        total = float(own.sum())
        if total == 0.0:
            continue
        mean = float(own @ happened) / total
        sums = np.bincount(clusters, own)
        count, cases = int(np.count_nonzero(sums)), int(np.count_nonzero(own))
        if count == 1 or not 1e-9 < mean < 1.0 - 1e-9:  # but for rounding
            found[place] = float(sums @ sums) / float(own @ own)
            continue
        residuals = own * (happened - mean)
        by_cluster = np.bincount(clusters, residuals)
        alike = float(by_cluster @ by_cluster) * count / (count - 1)
        effect = alike / (float(residuals @ residuals) * cases / (cases - 1))
        found[place] = max(effect, 1.0)
    return found
