"""The penalty of the regulariser, pair by pair as it is written, and its gradient."""

from math import inf

import numpy as np


def distances(weight, norm):
    """Of every pair of rows; of a single row, to zero."""
    rows = [*np.atleast_2d(np.asarray(weight, dtype=float))]
    if len(rows) == 1:
        rows.append(np.zeros_like(rows[0]))
    found = []
    for i in range(len(rows)):
        for j in range(i):
            gaps = abs(rows[i] - rows[j])
            found.append({1: gaps.sum(), 2: (gaps**2).sum() ** 0.5, inf: gaps.max()}[norm])
    return np.array(found)


def zero(function, low, high):
    """Where a falling function is zero, by bisection."""
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:  # no float lies between
            break
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high


def bound(weight, sharpness, norm):
    """The k whose relative violations add up to one part in `sharpness`."""
    d = distances(weight, norm)
    return zero(lambda k: np.maximum(d / k - 1, 0).sum() - 1 / sharpness, 0.0, d.max())


def penalty(weight, strength, sharpness, norm, alpha=None):
    """With the best k for a factor `alpha` of the sum; without one, that of the formula."""
    d = distances(weight, norm)
    if alpha is None:
        k = bound(weight, sharpness, norm)
        alpha = sharpness / k
    else:
        k = zero(lambda k: alpha * np.maximum(d - k, 0).sum() - 1, -1 / alpha, d.max())
    return strength * (k + alpha / 2 * (np.maximum(d - k, 0) ** 2).sum())


def slopes(function, point, step=1e-6):
    """Central differences of a function of an array."""
    point = np.array(point, dtype=float)
    found = np.empty_like(point)
    for place in np.ndindex(point.shape):
        ends = []
        for sign in (1, -1):
            moved = point.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found
