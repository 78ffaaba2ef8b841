"""Shifted distributions that try to break a promise: random ones, and ascent by the losses alone.

A shift gives each sample a move and perhaps another label. It costs the weighted mean of the
lengths of the moves, in a norm with a price for each feature, and of the labels. Nothing here knows
a certificate: `losses` is a function of (X, y).
"""

from __future__ import annotations

import numpy as np


def lengths(moves, norm, prices):
    return np.linalg.norm(moves * prices, ord=norm, axis=1)


def steepest(slopes, norm, prices):
    """Moves of length one that gain most by slopes in x (rows)."""
    scaled = slopes / prices
    if norm == 2:
        moves = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-300)
    elif norm == 1:
        moves = np.zeros_like(scaled)
        best = np.abs(scaled).argmax(axis=1)
        rows = np.arange(len(scaled))
        moves[rows, best] = np.sign(scaled[rows, best])
    else:
        moves = np.sign(scaled)
    return moves / prices


def slopes_of(losses, X, y):
    """Derivatives by x, by differences."""
    found = np.empty_like(X)
    for j in range(X.shape[1]):
        step = np.zeros_like(X)
        step[:, j] = 1e-5 * (1.0 + np.abs(X[:, j]))
        rise = losses(X + step, y) - losses(X - step, y)
        found[:, j] = rise / (2.0 * step[:, j])
    return found


def shifts(
    losses,
    X,
    y,
    weights,
    *,
    norm,
    prices,
    label_cost=np.inf,
    n_classes=1,
    rng,
    rounds=6,
    climb=5,
):
    """Pairs of the distance of a shifted distribution and its mean loss."""
    a, n = weights / weights.sum(), len(X)

    def judged(moves, labels):
        paid = lengths(moves, norm, prices)
        if np.isfinite(label_cost):
            paid = paid + label_cost * (labels != y)
        return float(a @ paid), float(a @ losses(X + moves, labels))

    def relabelled(share):
        if not np.isfinite(label_cost):
            return y
        turned = (y + rng.integers(1, n_classes, size=n)) % n_classes
        return np.where(rng.random(n) < share, turned, y)

    for _ in range(rounds):
        labels = relabelled(rng.random())
        far = 10.0 ** rng.uniform(-3, 4, size=(n, 1)) * (rng.random((n, 1)) < rng.random())
        yield judged(far * rng.normal(size=X.shape) / prices, labels)
        moves = steepest(rng.normal(size=X.shape), norm, prices)
        for _ in range(climb):  # where the last direction led, the loss rises in another
            slopes = slopes_of(losses, X + np.maximum(far, 1e3) * moves, labels)
            better = steepest(slopes, norm, prices)
            moves = np.where(slopes.any(axis=1, keepdims=True), better, moves)
        yield judged(far * moves, labels)
        alone = np.zeros((n, 1))  # one sample, as far as it takes
        alone[rng.integers(n)] = 1e6
        yield judged(alone * moves, np.where(alone[:, 0] > 0, labels, y))
    if np.isfinite(label_cost):  # the labels that gain most, and nothing else
        every = np.stack([losses(X, (y + turn) % n_classes) for turn in range(n_classes)])
        order = np.argsort(every[0] - every.max(axis=0))
        for count in {1, 2, n // 4, n // 2, n}:
            labels = y.copy()
            chosen = order[:count]
            labels[chosen] = (y + every.argmax(axis=0))[chosen] % n_classes
            yield judged(np.zeros_like(X), labels)
