r"""The index under class-wise Wasserstein shifts, for a linear logistic score.

With :math:`p = \sigma(z)`, :math:`z = w^\top x + b`, a shift of the features by one unit of
transport moves the logit by at most :math:`\lVert w \rVert_*`, so the worst case of each sample is
one-dimensional: the sample stays, or it moves up to the point :math:`z_\kappa` where the slope of
the logistic curve falls to the multiplier :math:`\kappa` of the transport cost. The index is twice
the dual norm times the smallest multiplier at which the expected ranking error meets the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, inf, log, log1p, sqrt

import numpy as np
from scipy.special import expit

from .._brent import bracketed_root
from .._typing import Floats
from ..moments import EPS, Sample, weighted_sum


@np.errstate(over="ignore", under="ignore")
def smallest_multiplier(groups: Sequence[Sample], target: float) -> float:
    """Smallest multiplier κ at which the worst-case mean error is at most `target`.

    `groups` are the logits of the negatives and the negated logits of the positives. Everything is
    computed from 1 - score, so that targets near one lose no digits.
    """
    allowed = 1.0 - target  # the two means of 1 - score must add up to at least this
    if allowed <= 0.0:  # no ranking error exceeds one
        return 0.0
    margin = fsum([*(_mean(g, lambda z: expit(-z)) for g in groups), -allowed])
    if margin < -8.0 * EPS * (1.0 + abs(target)):
        return inf
    highest = max(_indifference(g) for g in groups)
    if margin <= 8.0 * EPS * (1.0 + abs(target)):
        return highest  # the mean meets the target: any move would break it
    low = high = highest
    while _violation(low, groups, allowed) <= 0.0:  # the root may be anywhere below a quarter
        low, high = low / 16.0, low
    return bracketed_root(
        lambda k: _violation(k, groups, allowed), low, high, xtol=5e-324, rtol=8.0 * EPS
    )


def _violation(multiplier: float, groups: Sequence[Sample], allowed: float) -> float:
    """Worst-case mean error minus the target, which falls with the multiplier."""
    return fsum([allowed, *(-_mean(g, lambda z: least_lack(z, multiplier)) for g in groups)])


def least_lack(z: Floats, multiplier: float) -> Floats:
    """Least 1 - σ(u) + κ|u - z| over all moves from z to u."""
    reach, lack_at_reach = _reach(multiplier)
    moved = lack_at_reach + multiplier * np.maximum(reach - z, 0.0)
    lack: Floats = np.minimum(expit(-z), moved)
    return lack


def moves(z: Floats, multiplier: float) -> Floats:
    """How far each logit moves where that is best: the slope of `least_lack` in the multiplier."""
    reach, lack_at_reach = _reach(multiplier)
    way = np.maximum(reach - z, 0.0)
    return np.where(lack_at_reach + multiplier * way < expit(-z), way, 0.0)


def _reach(multiplier: float) -> tuple[float, float]:
    """The logit z_κ up to which samples move, and 1 - σ(z_κ).

    Above a quarter no move pays; then the line from the point that is returned is never below the
    curve.
    """
    root = sqrt(max(1.0 - 4.0 * multiplier, 0.0))
    return 2.0 * log((1.0 + root) / 2.0) - log(multiplier), 2.0 * multiplier / (1.0 + root)


def _mean(group: Sample, function: Callable[[Floats], Floats]) -> float:
    return fsum(weighted_sum(function(z), w) for z, w in group.blocks()) / group.weight


def _indifference(group: Sample) -> float:
    """Smallest multiplier at which no sample of the group gains by moving.

    The multiplier of a sample is largest next to z = 0, so the nearest sample on either side of
    zero has the largest.
    """
    found = []
    for z, _ in group.blocks():
        if (z >= 0.0).any():
            nearest = float(z[z >= 0.0].min())
            found.append(float(expit(nearest) * expit(-nearest)))
        if (z < 0.0).any():
            found.append(_tangent_slope(float(z[z < 0.0].max())))
    return max(found)


def _tangent_slope(z: float) -> float:
    """Slope of the line from (z, σ(z)), z < 0, that touches the logistic curve further up."""

    def gap(u: float) -> float:
        return float(expit(u) * expit(-u) * (u - z) - (expit(u) - expit(z)))

    u = -z / 2.0  # exact for a cubic, as the curve is near zero
    if z < -1e-3:  # the curve is flat far up: u is at most about the logarithm of the distance
        u = bracketed_root(gap, 0.0, 2.0 + 2.0 * log1p(-z), xtol=1e-15, rtol=1e-15)
    return float(exp(-u) / (1.0 + exp(-u)) ** 2)
