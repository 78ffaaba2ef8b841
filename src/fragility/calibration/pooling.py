"""Isotonic regression: which neighbours are pooled so that no value falls.

SciPy has it, too, but importing `scipy.optimize` takes longer than most reports.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats, Indices

#: Blocks whose values differ by less than this are one.
_SAME = 1e-12
#: Rounds go on while at most this share of the blocks is left over by one.
_MANY_LEFT = 0.9


def pooled_blocks(values: Floats, weights: Floats) -> Indices:
    """Block of each value in the weighted isotonic regression.

    Neighbours that fall are always in one block, whatever else is pooled: a round pools all of them
    at once. Where rounds find few, one walk from left to right pools the rest, so that the time
    stays in proportion to the number of values.

    Parameters
    ----------
    values : ndarray of shape (n,)
        In the order in which they should rise.
    weights : ndarray of shape (n,)
        Above zero.

    Returns
    -------
    ndarray of shape (n,)
        Numbers from 0 that rise; blocks of the same value are one.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.calibration.pooling import pooled_blocks
    >>> pooled_blocks(np.array([0.1, 0.3, 0.2, 0.25, 0.9]), np.ones(5))
    array([0, 1, 1, 1, 2])
    """
    starts = np.arange(values.size)
    sums, masses = values * weights, weights
    while True:
        levels = sums / masses
        rising = np.flatnonzero(np.append(True, levels[1:] > levels[:-1]))
        if rising.size > _MANY_LEFT * starts.size:
            break
        starts = starts[rising]
        sums, masses = np.add.reduceat(sums, rising), np.add.reduceat(masses, rising)
    if rising.size < starts.size:
        starts, levels = _walked(starts, sums, masses)
    kept = starts[np.append(True, np.diff(levels) > _SAME)]
    blocks: Indices = np.cumsum(np.bincount(kept, minlength=values.size)) - 1
    return blocks


def _walked(starts: Indices, sums: Floats, masses: Floats) -> tuple[Indices, Floats]:
    """Starts and values of the blocks after one walk, which looks back where a value falls."""
    blocks: list[tuple[int, float, float]] = []
    for start, total, mass in zip(starts.tolist(), sums.tolist(), masses.tolist(), strict=True):
        while blocks and blocks[-1][1] / blocks[-1][2] >= total / mass:
            start, before, more = blocks.pop()
            total, mass = total + before, mass + more
        blocks.append((start, total, mass))
    found = np.array(blocks)
    return found[:, 0].astype(np.intp), found[:, 1] / found[:, 2]
