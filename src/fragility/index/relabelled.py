r"""The Wasserstein index where labels move, too, at a cost.

A shift may move features and labels: mass that ends in a class pays for its way there, the cost of
a label included, and each class counts by its own mean, whatever its share becomes. With
:math:`r_n` the part of sample n that ends as a positive, P its price as one (1 - score, after the
best move, plus the cost of the label if it was a negative) and Q its price as a negative, the
target is met if the least

.. math:: J(r) = \frac{\sum_n w_n r_n P_n}{\sum_n w_n r_n}
               + \frac{\sum_n w_n (1 - r_n) Q_n}{\sum_n w_n (1 - r_n)}

is at least 1 - target; `shares` finds it. J at a fixed r is concave and grows with the multiplier,
hence so does its least value, and Newton's method from the left never oversteps.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Mask
from ..moments import Sample
from .shares import TOLERANCE, Label, Relabelling, ShareSearch
from .wasserstein import least_lack, moves, smallest_multiplier

_MAX_STEPS = 200


@np.errstate(over="ignore", under="ignore")
def least_multiplier(
    logits: NDArray[Any],
    positive: Mask,
    weights: Floats | None,
    target: float,
    label_cost: float = inf,
) -> float:
    """Smallest multiplier κ at which no shift of features and labels misses the target.

    Parameters
    ----------
    logits : ndarray of shape (n,)
    positive : ndarray of bool
    weights : ndarray of shape (n,) or None
        Samples of no weight do not count; None: all alike. Where labels move, weights that are
        apart by more than a factor of 1e8 may be beyond the rounding.
    target : float
    label_cost : float
        Cost of a label in units of the logit: its cost in units of the features times the dual norm
        of the coefficients. Infinite: labels stay.
    """
    carrying = np.True_ if weights is None else weights > 0.0
    sides = (1.0, ~positive & carrying), (-1.0, positive & carrying)
    groups = [Sample(logits, factor=f, selection=part, weights=weights) for f, part in sides]
    fixed = smallest_multiplier(groups, target)
    if label_cost == inf or fixed in (0.0, inf):
        return fixed
    share = np.ones(logits.size) if weights is None else weights / weights.max()
    share = share / share.sum()
    z = np.asarray(logits, dtype=np.float64)
    labels = [Label(z[part], share[part]) for _, part in sides]
    return _moving_labels(labels, 1.0 - target, label_cost, fixed)


def _moving_labels(labels: list[Label], allowed: float, label_cost: float, start: float) -> float:
    """The multiplier by Newton's method from one that is not too large."""
    multiplier = start
    for _ in range(_MAX_STEPS):
        cost = label_cost * multiplier
        labels[0].price(multiplier, cost, 0.0)
        labels[1].price(multiplier, 0.0, cost)
        worst = ShareSearch(labels, allowed).worst()
        if worst is None:
            break
        value, slope = _total(labels, worst, multiplier, label_cost)
        following = multiplier + (allowed - value) / slope if slope > 0.0 else inf
        if not value < allowed * (1.0 - TOLERANCE) or not multiplier < following:
            break
        multiplier = following
        if multiplier == inf:  # labels that cost less than floating point can tell from nothing
            break
    return multiplier


def _total(
    labels: list[Label], worst: Relabelling, multiplier: float, label_cost: float
) -> tuple[float, float]:
    """J of a relabelling, and its slope in the multiplier."""
    sums = np.zeros((2, 3))  # as positives and as negatives: weight, price, slope of the price
    alone = np.zeros((2, 3))  # the same of the sample that is split
    for number, label in enumerate(labels):
        split = slice(worst[number], worst[number] + (number == worst.partial))
        part = np.zeros(label.logits.size)
        part[: worst[number]] = label.weights[: worst[number]]
        part[split] = worst.part
        for place, (sign, weights) in enumerate(((-1.0, part), (1.0, label.weights - part))):
            cost = label_cost if number == place else 0.0  # a negative that ends as a positive
            price = least_lack(sign * label.logits, multiplier) + multiplier * cost
            slope = moves(sign * label.logits, multiplier) + cost
            sums[place] += weights.sum(), weights @ price, weights @ slope
            alone[place] += price[split].size, price[split].sum(), slope[split].sum()
    # A class with nothing in it is the limit of one with little of the sample that is split.
    sums = np.where(sums[:, :1] > 0.0, sums, alone)
    value, slope = (sums[:, 1:] / sums[:, :1]).sum(axis=0)
    return float(value), float(slope)
