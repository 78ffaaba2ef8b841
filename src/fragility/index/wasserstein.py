r"""The index under class-wise Wasserstein shifts, for a linear logistic score.

With :math:`p = \sigma(z)`, :math:`z = w^\top x + b`, a shift of the features by one unit of
transport moves the logit by at most :math:`\lVert w \rVert_*`, so the worst case of each sample is
one-dimensional: it stays, or it moves up to the point :math:`z_\kappa` where the logistic curve is
no steeper than the price :math:`\kappa`. The index is twice the dual norm times the lowest price at
which the expected ranking error meets the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, inf, log, log1p, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from .._typing import Floats
from ..moments import Sample, weighted_sum

_EPS = 2.0**-53


@np.errstate(over="ignore", under="ignore")
def lowest_price(groups: Sequence[Sample], target: float) -> float:
    """Lowest price κ at which the worst-case mean error is at most `target`.

    `groups` are the logits of the negatives and minus the logits of the positives. Everything is
    computed from what scores lack to one, so that targets near one lose no digits.
    """
    allowed = 1.0 - target  # the two means of 1 - score must add up to this at least
    if allowed <= 0.0:  # no ranking error exceeds one
        return 0.0
    slack = fsum([*(_mean(g, lambda z: expit(-z)) for g in groups), -allowed])
    if slack < -8.0 * _EPS * (1.0 + abs(target)):
        return inf
    highest = max(_indifference_price(g) for g in groups)
    if slack <= 8.0 * _EPS * (1.0 + abs(target)):
        return highest  # the mean meets the target: any move would break it
    low, high, price = 0.0, highest, highest
    for _ in range(200):
        value, slope = _violation(groups, allowed, price)
        if value > 0.0:
            low = price
        else:
            high = price
        # The violation is convex and falls with the price: from its left, Newton's steps stay on
        # the left. Elsewhere bisect, in ratio: the price may be anywhere below a quarter.
        following = price - value / slope if slope < 0.0 else 0.0
        if not low < following < high:
            following = sqrt(low * high) if low > 0.0 else high / 16.0
        if abs(following - price) <= 2.0 * _EPS * price or high - low <= 2.0 * _EPS * high:
            return following
        price = following
    return price


def _violation(groups: Sequence[Sample], allowed: float, price: float) -> tuple[float, float]:
    """Worst-case mean error minus the target, and its derivative in the price."""
    root = sqrt(max(1.0 - 4.0 * price, 0.0))
    lack_at_reach = 2.0 * price / (1.0 + root)  # 1 - σ(z_κ)
    reach = 2.0 * log((1.0 + root) / 2.0) - log(price)  # z_κ

    def least_lack(z: Floats) -> Floats:
        lack: Floats = np.minimum(expit(-z), lack_at_reach + price * np.maximum(reach - z, 0.0))
        return lack

    def distance(z: Floats) -> Floats:
        far = np.maximum(reach - z, 0.0)
        return np.where(lack_at_reach + price * far < expit(-z), far, 0.0)

    value = fsum([allowed, *(-_mean(g, least_lack) for g in groups)])
    return value, -sum(_mean(g, distance) for g in groups)


def _mean(group: Sample, function: Callable[[Floats], Floats]) -> float:
    return fsum(weighted_sum(function(z), w) for z, w in group.blocks()) / group.weight


def _indifference_price(group: Sample) -> float:
    """Lowest price at which no sample of the group gains by moving.

    The price of a sample is highest next to z = 0, so the nearest on either side decide.
    """
    prices = []
    for z, _ in group.blocks():
        if (z >= 0.0).any():
            nearest = float(z[z >= 0.0].min())
            prices.append(float(expit(nearest) * expit(-nearest)))
        if (z < 0.0).any():
            prices.append(_tangent_price(float(z[z < 0.0].max())))
    return max(prices)


def _tangent_price(z: float) -> float:
    """Slope of the line from (z, σ(z)), z < 0, that touches the logistic curve further up."""

    def gap(u: float) -> float:
        return float(expit(u) * expit(-u) * (u - z) - (expit(u) - expit(z)))

    u = -z / 2.0  # exact for the cubic that the curve is next to zero
    if z < -1e-3:  # far up it is flat: the point lies below about the logarithm of the distance
        u = brentq(gap, 0.0, 2.0 + 2.0 * log1p(-z), xtol=1e-15, rtol=1e-15)
    return float(exp(-u) / (1.0 + exp(-u)) ** 2)
