"""What a linear model is, recomputed from its coefficients in plain NumPy.

Two classes have one row of coefficients, that of the second class; more have one row each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from .pairs import bisected_index

DUAL = {1: np.inf, 2: 2, np.inf: 1}


def gap_directions(y, n_rows):
    """What the gaps u_c - u_y to the wrong classes are made of: (n, wrong classes, rows)."""
    if n_rows == 1:
        return np.where(np.asarray(y) == 1, -1.0, 1.0)[:, None, None]
    unit = np.eye(n_rows)
    return np.array([[unit[c] - unit[label] for c in range(n_rows) if c != label] for label in y])


def gaps(coef, intercept, X, y):
    scores = np.asarray(X) @ np.asarray(coef).T + intercept
    return np.einsum("ncr,nr->nc", gap_directions(y, len(coef)), scores)


def price(short, smoothing):
    """The price t >= 0 at which shares (z - t)₊ / γ sum to at most one, by bisection."""
    low, high = np.zeros(len(short)), np.maximum(short.max(axis=1), 0.0)
    for _ in range(70):  # to the last digit of the largest
        middle = (low + high) / 2
        wanted = np.maximum(short - middle[:, None], 0.0).sum(axis=1) / smoothing
        low, high = np.where(wanted > 1, middle, low), np.where(wanted > 1, high, middle)
    return np.where(np.maximum(short, 0.0).sum(axis=1) <= smoothing, 0.0, high)


def value_and_shares(loss, gap, smoothing=1.0):
    """Loss of each row of gaps and its slope in each gap (one of them, at a corner)."""
    if loss == "cross_entropy":
        top = np.maximum(gap.max(axis=1, keepdims=True), 0.0)
        moments = np.exp(gap - top)
        total = moments.sum(axis=1, keepdims=True) + np.exp(-top)
        return (top + np.log(total))[:, 0], moments / total
    if loss in ("hinge", "max_logistic"):
        # Both grow with the largest gap alone.
        largest = gap.max(axis=1)
        leader = np.eye(gap.shape[1])[gap.argmax(axis=1)]
        if loss == "hinge":
            return np.maximum(0.0, 1 + largest), (largest > -1)[:, None] * leader
        return np.logaddexp(0.0, largest), expit(largest)[:, None] * leader
    short = 1 + gap
    t = price(short, smoothing)
    beyond = np.maximum(short - t[:, None], 0.0)
    return t + (beyond**2).sum(axis=1) / (2 * smoothing), beyond / smoothing


def costs_of_gaps(y, pair_cost):
    """Cost of each wrong class for each sample: (n, wrong classes)."""
    table = np.asarray(pair_cost, float)
    return np.array([[table[label][c] for c in range(len(table)) if c != label] for label in y])


def costly_value(loss, gap, costs, smoothing=1.0):
    """Loss of each row of gaps, with a cost for each of them."""
    if loss == "cross_entropy":
        return value_and_shares(loss, gap + np.log(costs))[0]
    if loss == "hinge":
        return np.maximum(0.0, (costs * (1 + gap)).max(axis=1))
    if loss == "max_logistic":
        return (costs * np.logaddexp(0.0, gap)).max(axis=1)
    return value_and_shares("smoothed_hinge", costs * (1 + gap) - 1, smoothing)[0]


def losses(coef, intercept, X, y, loss, pair_cost=None):
    gap = gaps(coef, intercept, X, y)
    if pair_cost is None:
        return value_and_shares(loss, gap)[0]
    return costly_value(loss, gap, costs_of_gaps(y, pair_cost))


def slopes(coef, intercept, X, y, loss, weights, alpha=0.0):
    """Gradient of Σ weights ℓ + R by coefficients and by intercepts."""
    coef = np.asarray(coef)
    _, shares = value_and_shares(loss, gaps(coef, intercept, X, y))
    by_score = np.einsum("n,nc,ncr->nr", weights, shares, gap_directions(y, len(coef)))
    return by_score.T @ np.asarray(X) + 2 * alpha * coef, by_score.sum(axis=0)


def differences(coef):
    """β_i - β_j for each pair of classes, or the one row of two classes."""
    coef = np.asarray(coef)
    pairs = [coef[i] - coef[j] for i, j in combinations(range(len(coef)), 2)]
    return np.array(pairs or [coef[0]])


def dual_norms(coef, norm, feature_weight=None):
    """Of each difference of two rows; `norm` is that of the transport."""
    weight = np.ones(np.shape(coef)[1]) if feature_weight is None else np.asarray(feature_weight)
    return np.linalg.norm(differences(coef) / weight, ord=DUAL[norm], axis=1)


def steepest_pair(norms, y, n_classes, loss, pair_cost):
    """The largest dual norm of β_y - β_c, y a label, times the largest slope of its loss there."""
    pairs = list(combinations(range(n_classes), 2))
    steepest = 0.0
    for (i, j), norm in zip(pairs, norms, strict=True):
        for true, other in ((i, j), (j, i)):
            if true in y:
                slope = 1.0 if loss == "cross_entropy" else pair_cost[true][other]
                steepest = max(steepest, slope * norm)
    return steepest


@dataclass(frozen=True, eq=False)
class Judged:
    """A model as its definition sees it; `norm` is that of the transport, None for KL.

    sup_P E_P ℓ - k D + R falls as k grows; it is infinite for k below the least price, the largest
    dual norm of a difference of two rows (times its largest cost, if the loss has costs).
    """

    coef: Any
    intercept: Any
    X: Any
    y: Any
    loss: str
    norm: float | None = None
    label_cost: float = math.inf
    weights: Any = None
    alpha: float = 0.0
    penalty_kind: str = "l2"
    pair_cost: Any = None

    @cached_property
    def shares(self):
        given = np.ones(len(self.y)) if self.weights is None else np.asarray(self.weights, float)
        return given / given.sum()

    @cached_property
    def penalty(self):
        power = {"l1": 1, "l2": 2}[self.penalty_kind]
        return self.alpha * (np.abs(self.coef) ** power).sum()

    @cached_property
    def losses(self):
        return self._losses_at(self.y)

    def _losses_at(self, labels):
        return losses(self.coef, self.intercept, self.X, labels, self.loss, self.pair_cost)

    @cached_property
    def gains(self):
        """What the worst of the other labels adds to the loss of each sample."""
        n_classes = max(2, len(self.coef))
        steps = range(1, n_classes)
        relabelled = [self._losses_at((self.y + step) % n_classes) for step in steps]
        return np.max(relabelled, axis=0) - self.losses

    @cached_property
    def slopes(self):
        return dual_norms(self.coef, self.norm)

    @cached_property
    def least_price(self):
        if self.norm is None:
            return 0.0
        if self.pair_cost is None:
            return self.slopes.max()
        labels = set(range(len(self.pair_cost)) if np.isfinite(self.label_cost) else self.y)
        return steepest_pair(self.slopes, labels, len(self.pair_cost), self.loss, self.pair_cost)

    def supremum(self, k):
        """sup_P E_P ℓ - k D + R, for k not below the least price."""
        values, shares = self.losses, self.shares
        if self.norm is None:
            largest = values[shares > 0].max()
            if k == 0.0:
                return largest + self.penalty
            return largest + k * math.log(shares @ np.exp((values - largest) / k)) + self.penalty
        if math.isinf(self.label_cost):
            return shares @ values + self.penalty
        flips = np.maximum(self.gains - k * self.label_cost, 0.0)
        return shares @ (values + flips) + self.penalty

    def plain_fragility(self, target):
        """Least k with sup_P E_P ℓ - k D + R <= target, by bisection."""
        if self.norm is None:
            return bisected_index(self.losses, target - self.penalty, self.weights)
        low = self.least_price
        if math.isinf(self.label_cost) or self.supremum(low) <= target:
            return low
        high = self.gains.max() / self.label_cost  # nobody changes a label
        for _ in range(200):
            middle = (low + high) / 2
            if not low < middle < high:  # no float lies between
                break
            low, high = (low, middle) if self.supremum(middle) <= target else (middle, high)
        return high

    def worst(self, radius, at_least=0.0):
        """Least λ radius + sup_P {E_P ℓ - λ D} + R over prices λ."""
        low = max(self.least_price, at_least)

        def value(price):
            return price * radius + self.supremum(price)

        if self.norm is not None:
            if math.isinf(self.label_cost):
                return value(low)
            # Piecewise linear in the price: the minimum is at a corner.
            corners = self.gains / self.label_cost
            return min(value(price) for price in (low, *corners[corners > low]))
        # Hoeffding: above this the first term alone is more than the minimum.
        high = np.ptp(self.losses) / math.sqrt(2 * radius)
        if high <= low:
            return value(low)
        found = minimize_scalar(
            value, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * high}
        )
        return min(found.fun, value(low))

    def fragility(self, target, radius=math.inf):
        """Least k with λ radius + sup_P {E_P ℓ - (k + λ) D} + R <= target for some λ >= 0.

        With κ = k + λ, λ = (target - supremum(κ)) / radius is the most there is, and must not be
        negative; that leaves k = (κ radius + supremum(κ) - target) / radius, to be least in κ.
        """
        plain = self.plain_fragility(target)
        if math.isinf(radius) or math.isinf(plain):
            return plain
        return min(plain, max(0.0, (self.worst(radius, at_least=plain) - target) / radius))
