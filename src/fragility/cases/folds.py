"""Folds of cases: some of them fit maps and choose thresholds, the others tell how good these are.

Classes are spread evenly over folds, clusters are not divided, and rows of a sample are dealt so
that each fold is such a sample itself.
"""

from __future__ import annotations

import numpy as np

from .._random import random_generator, spread_over_folds
from .._typing import Integers
from .cases import Cases

N_FOLDS = 5


def fold_assignments(
    cases: Cases, truth: Integers, random_state: int, n_deals: int = 1
) -> list[Integers]:
    """Return the fold of each case, for each of several ways to deal cases to folds.

    Parameters
    ----------
    cases : Cases
    truth : ndarray of int of shape (n,)
        Class of each case, or whether an answer was right. Every class that has two cases or more
        is outside of every fold.
    random_state : int
    n_deals : int, default=1
        A sample has one deal, by the numbers of its rows.
    """
    if cases.number is not None:
        return [_folds_of_sample(cases)]
    generator = random_generator(random_state)
    if cases.cluster is not None:
        n_clusters = int(cases.cluster.max()) + 1
        orders = [generator.permutation(n_clusters) for _ in range(n_deals)]
        return [order[cases.cluster] % min(N_FOLDS, n_clusters) for order in orders]
    numbers = np.bincount(truth)
    numbers = numbers[numbers > 0]
    most = int(numbers.min()) if numbers.size > 1 and numbers.min() > 1 else cases.n
    n_folds = min(N_FOLDS, most)
    return [spread_over_folds(truth, n_folds, generator).astype(np.int64) for _ in range(n_deals)]


def _folds_of_sample(cases: Cases) -> Integers:
    """Return the rank of each row's number modulo the folds: in its cell, or of its cluster."""
    assert cases.number is not None
    if cases.cluster is not None:
        return np.unique(cases.number, return_inverse=True)[1] % N_FOLDS
    cell = np.zeros(cases.n, dtype=np.int64) if cases.cell is None else cases.cell
    order = np.lexsort((cases.number, cell))
    sizes = np.bincount(cell)
    folds = np.empty(cases.n, dtype=np.int64)
    folds[order] = np.arange(cases.n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return folds % N_FOLDS
