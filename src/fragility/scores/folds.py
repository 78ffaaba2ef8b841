"""Random folds of counted cases, whatever the order in which the cases came.

Cases that share an atom (a bin, or a cell of a table) are alike, so only their number in each fold
matters. These numbers are drawn with the law of random folds: all ways to deal the cases into folds
of equal size are equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import Integers


def dealt(units: Integers, n_folds: int, seed: Sequence[int]) -> Integers:
    """Cases of each atom that fall into each fold.

    Parameters
    ----------
    units : ndarray of shape (n_atoms,)
        Cases of each atom, whole numbers.
    n_folds : int
        The folds are of equal size, or the first of them have one case more.
    seed : sequence of int
        The same seed gives the same folds, in every version of NumPy.

    Returns
    -------
    ndarray of shape (n_folds, n_atoms)

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.scores.folds import dealt
    >>> folds = dealt(np.array([5, 0, 7]), 3, [0, 1])
    >>> folds.sum(axis=0), folds.sum(axis=1)
    (array([5, 0, 7]), array([4, 4, 4]))
    """
    # The streams of RandomState are frozen; newer generators may change theirs.
    random = np.random.RandomState(list(seed))
    # A binary tree over the atoms: each node shares its cases of every fold out to its two halves.
    levels = [np.asarray(units, dtype=np.int64)]
    while levels[-1].size > 1:
        below = levels[-1]
        levels.append((below if below.size % 2 == 0 else np.append(below, 0)).reshape(-1, 2).sum(1))
    total = int(levels[-1].sum())
    sizes = total // n_folds + (np.arange(n_folds) < total % n_folds)
    folds = sizes.astype(np.int64)[:, np.newaxis]
    for level in reversed(levels[:-1]):
        left = level[0::2]
        own = _drawn(folds, left, random)
        both = np.stack([own, folds - own], axis=2).reshape(n_folds, -1)
        folds = both[:, : level.size]
    return folds


def _drawn(cases: Integers, left: Integers, random: np.random.RandomState) -> Integers:
    """How many of the cases of each fold are among those that the left halves hold.

    For every node (columns): `left` cases drawn without replacement from the cases of all folds.
    """
    drawn = np.zeros_like(cases)
    rest, missing = cases.sum(axis=0), left.copy()
    for fold, own in enumerate(cases[:-1]):
        rest -= own
        # Nothing is random where nothing is drawn, or all of it, or nothing is to be drawn from.
        open_ = np.flatnonzero((missing > 0) & (own > 0) & (rest > 0))
        drawn[fold] = np.where(rest > 0, 0, missing)
        drawn[fold, open_] = random.hypergeometric(own[open_], rest[open_], missing[open_])
        missing = missing - drawn[fold]
    drawn[-1] = missing
    return drawn
