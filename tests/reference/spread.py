"""Standard errors from influences, written out case by case."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt


def standard_error(influence, unit, classes=None, clusters=None):
    """Sum squared moves over classes or clusters, each with Bessel's correction."""
    moves = [w * i for w, i in zip(unit, influence, strict=True)]
    if clusters is not None:
        totals = defaultdict(float)
        for cluster, move in zip(clusters, moves, strict=True):
            totals[cluster] += move
        n = len(totals)
        return sqrt(sum(total**2 for total in totals.values()) * n / (n - 1))
    variance = 0.0
    labels = [0] * len(moves) if classes is None else classes
    for label in set(labels):
        rows = [k for k, other in enumerate(labels) if other == label]
        weights = [unit[k] for k in rows]
        size = sum(weights) ** 2 / sum(w * w for w in weights)
        variance += sum(moves[k] ** 2 for k in rows) * size / (size - 1)
    return sqrt(variance)


def standard_error_of_sample(influence, unit, count, cell):
    """The same for rows that were drawn from cells and stand for so many cases each."""
    moves = [w * i for w, i in zip(unit, influence, strict=True)]
    variance = 0.0
    for label in set(cell):
        rows = [k for k, other in enumerate(cell) if other == label]
        mean = sum(moves[k] for k in rows) / len(rows)
        for k in rows:
            rest = (moves[k] - mean) ** 2 * len(rows) / (len(rows) - 1) if len(rows) > 1 else None
            rest = moves[k] ** 2 if rest is None else rest
            variance += count[k] * (moves[k] ** 2 + max(count[k] - 1, 0) * rest)
    mass = sum(c * w for c, w in zip(count, unit, strict=True))
    size = mass**2 / sum(c * w * w for c, w in zip(count, unit, strict=True))
    return sqrt(variance * size / (size - 1))
