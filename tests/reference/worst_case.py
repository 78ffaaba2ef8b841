"""Worst cases from their definitions: mass that moves, exact sums, and grids of multipliers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy.optimize import linprog, minimize

mpmath.mp.dps = 60


def _transport(losses, own, weights, label_cost, slope):
    """Mass from each sample to each label, and distance spent on features far away."""
    n, n_classes = losses.shape
    gain = np.append(losses.ravel(), slope)
    cost = np.full((n, n_classes), label_cost)
    cost[np.arange(n), own] = 0.0
    rows = np.hstack([np.kron(np.eye(n), np.ones(n_classes)), np.zeros((n, 1))])
    return gain, np.append(cost.ravel(), 1.0), rows


def transported_loss(losses, own, weights, label_cost, slope, radius):
    """Largest mean loss over all plans of cost `radius`; losses of shape (n, n_classes)."""
    gain, cost, rows = _transport(losses, own, weights, label_cost, slope)
    found = linprog(-gain, cost[None], [radius], rows, weights)
    return -found.fun


def transported_fragility(losses, own, weights, label_cost, slope, room, radius=math.inf):
    """Largest (mean loss - room) / cost over all plans of cost up to `radius`.

    A linear-fractional program, made linear by dividing plans by their cost: the last variable is
    one over it.
    """
    gain, cost, rows = _transport(losses, own, weights, label_cost, slope)
    rows = np.hstack([rows, -np.asarray(weights)[:, None]])
    rows = np.vstack([rows, np.append(cost, 0.0)])
    least = 0.0 if radius == math.inf else 1.0 / radius
    bounds = [(0, None)] * gain.size + [(least, None)]
    found = linprog(-np.append(gain, -room), A_eq=rows, b_eq=[0.0] * len(weights) + [1.0],
                    bounds=bounds)  # fmt: skip
    return math.inf if found.status == 3 else max(-found.fun, 0.0)


def relabelled_sum(losses, relabelled, weights, price):
    """Σ a max(o, f - price), without rounding."""
    return sum(
        Fraction(float(a)) * max(Fraction(float(o)), Fraction(float(f)) - price)
        for o, f, a in zip(losses, relabelled, weights, strict=True)
    )


def soft_maximum(losses, weights, k):
    """k ln Σ a exp(ℓ / k) to sixty digits; k = 0: the maximum."""
    if k == 0:
        return mpmath.mpf(max(losses))
    k = mpmath.mpf(k)
    total = mpmath.fsum(weights)
    terms = [mpmath.mpf(a) / total * mpmath.exp(mpmath.mpf(v) / k)
             for v, a in zip(losses, weights, strict=True)]  # fmt: skip
    return k * mpmath.log(mpmath.fsum(terms))


def divergence(q, a):
    """KL divergence of shares, to sixty digits."""
    total, whole = mpmath.fsum(q), mpmath.fsum(a)
    return mpmath.fsum(
        mpmath.mpf(s) / total * mpmath.log(mpmath.mpf(s) / total * whole / mpmath.mpf(w))
        for s, w in zip(q, a, strict=True)
        if s > 0
    )


def reweighted_loss(losses, weights, radius):
    """Largest mean loss over shares q of divergence up to `radius`, by a general optimiser."""

    def spare(q):
        return radius - np.sum(np.where(q > 0, q * np.log(np.maximum(q, 1e-300) / weights), 0.0))

    return max(
        -minimize(
            lambda q: -q @ losses,
            start,
            bounds=[(0, 1)] * len(weights),
            method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": spare},
                {"type": "eq", "fun": lambda q: q.sum() - 1.0},
            ],
            options={"ftol": 1e-12, "maxiter": 1000},
        ).fun
        for start in (weights, 0.5 * weights + 0.5 / len(weights))
    )


def fragility_on_a_grid(level, room, radius, least, multipliers):
    """Smallest k with λ radius + level(k + λ) <= room for a λ >= 0 and k + λ >= least.

    Every pair of sums κ = k + λ from `multipliers` and k from as many between 0 and κ.
    """
    best = math.inf
    for total in multipliers:
        if total < least:
            continue
        k = np.linspace(0.0, total, 20_001)
        met = (total - k) * radius + level(total) <= room + 1e-12
        if met.any():
            best = min(best, float(k[met][0]))
    return best
