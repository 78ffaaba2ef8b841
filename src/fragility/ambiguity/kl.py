"""Kullback–Leibler divergence: the samples stay what they are, their weights change."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import ClassVar

import numpy as np

from .._typing import Floats
from ..index.root import STEEP, inverse, solve
from ..moments import LogMoment, Sample
from .base import Ambiguity
from .profile import LossProfile, WorstLoss

_MAX_STEPS = 500


@dataclass(frozen=True)
class KL(Ambiguity):
    r"""Shifts of the samples' weights, at the cost of their relative entropy.

    The fragility of a model is the Fragility Index of its losses, the root of
    :math:`k \ln \sum_n a_n e^{\ell_n / k} = \tau - R`.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.ambiguity import KL, LossProfile
    >>> profile = LossProfile(np.array([0.1, 0.2, 1.5]), np.full(3, 1 / 3))
    >>> round(KL().fragility(profile, 0.8), 6)
    1.096794
    >>> round(KL().worst_loss(profile, 0.1).value, 6)
    0.895045
    """

    #: The lowest loss is just met, and almost every shift of the weights exceeds it.
    unlearned: ClassVar[float] = inf
    reweights: ClassVar[bool] = True

    @property
    def is_euclidean(self) -> bool:
        return True

    @np.errstate(over="ignore", under="ignore")
    def fragility(self, profile: LossProfile, room: float) -> float:
        s = solve([Sample(profile.losses, weights=profile.weights)], room)
        return inverse(s)

    @np.errstate(over="ignore", under="ignore")
    def worst_loss(self, profile: LossProfile, radius: float) -> WorstLoss:
        sample = Sample(profile.losses, weights=profile.weights)
        s = _tilt_at(sample, radius)
        if s == inf:
            return WorstLoss(sample.pivot, 0.0, sample.pivot)
        if s == 0.0:
            return WorstLoss(profile.mean, inf, profile.mean)
        centre, moment = _moment(sample, s)
        level = centre + moment.value / s
        # At the root this is the mean of the tilted losses, too, but a minimum over s: an error
        # of s hardly matters to it.
        return WorstLoss(min(level + radius / s, sample.pivot), 1.0 / s, level)

    def tilt(self, losses: Floats, weights: Floats, fragility: float) -> Floats:
        r"""Weights :math:`\propto a_n e^{\ell_n / k}`; at k = 0 shared by the largest losses."""
        with np.errstate(over="ignore", under="ignore"):
            return Sample(losses, weights=weights).tilted_weights(inverse(fragility))


def _moment(sample: Sample, s: float) -> tuple[float, LogMoment]:
    """A centre, and the log-moment at s of the values less it."""
    if s * sample.spread <= STEEP:
        return sample.mean, sample.centred_log_moment(s)
    return sample.pivot, sample.log_moment(s)


def _tilt_at(sample: Sample, radius: float) -> float:
    r"""The s at which weights :math:`\propto a e^{s v}` are at KL divergence `radius`.

    Infinite where `radius` is at least the divergence of the largest values alone.
    """
    if radius >= sample.neg_log_top_share:
        return inf
    if radius == 0.0:
        return 0.0
    # The divergence grows with s, at the rate s times the variance of the tilted values, which is
    # at most a quarter of their squared spread.
    low, high = sqrt(8.0 * radius) / sample.spread * (1.0 - 1e-9), inf
    normal = sample.variance > 1e-300  # not lost in underflow
    s = max(low, sqrt(2.0 * radius / sample.variance)) if normal else low
    leap = 2.0
    for _ in range(_MAX_STEPS):
        _, moment = _moment(sample, s)
        divergence = s * moment.slope - moment.value
        if divergence < radius:
            low = s
        else:
            high = s
        # Newton in logarithms, where the divergence starts out as a straight line.
        following = 0.0
        if divergence > 0.0 and moment.curvature > 0.0:
            rate = s * (s * moment.curvature) / divergence
            following = s * exp(min(max(log(radius / divergence) / rate, -700.0), 700.0))
        if abs(following - s) <= 1e-9 * s:  # the next step is the square of it
            return following
        if not low < following < min(high, s * leap):
            following = sqrt(low) * sqrt(high) if high < inf else s * leap
            leap *= leap
        if low >= high * (1.0 - 4e-16):
            return high
        if following * sample.spread > 1e300:  # all but the largest values are gone
            return inf
        s = following
    return high
