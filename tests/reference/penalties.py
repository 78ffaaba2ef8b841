"""The penalty of the regulariser, pair by pair as it is written, and its gradient."""

from math import inf

import numpy as np


def penalty(weight, k, strength, sharpness, norm, fixed_k=None):
    """`fixed_k` is the k in the factor of the sum, which counts as a constant."""
    rows = [*np.atleast_2d(np.asarray(weight, dtype=float))]
    if len(rows) == 1:
        rows.append(np.zeros_like(rows[0]))
    total = 0.0
    for i in range(len(rows)):
        for j in range(i):
            gaps = abs(rows[i] - rows[j])
            distance = {1: gaps.sum(), 2: (gaps**2).sum() ** 0.5, inf: gaps.max()}[norm]
            total += max(distance - k, 0.0) ** 2
    return strength * (k + sharpness / (fixed_k or k) / 2 * total)


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
