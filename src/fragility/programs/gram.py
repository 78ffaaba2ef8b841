r"""Weighted products of columns, :math:`\sum_n w_n x_n x_n^\top`: where the time of a fit goes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..moments import Floats

__all__ = ["weighted_gram", "weighted_grams"]

#: Numbers in a table of products: it should stay in the cache of the processor.
_TABLE = 2**18


def weighted_gram(X: Any, weights: Floats, with_one: bool) -> Floats:
    """Products of the columns and, if asked, of a last column of ones."""
    d = X.shape[1]
    total = np.empty((d + with_one, d + with_one))
    if sparse.issparse(X):
        total[:d, :d] = (X.T @ sparse.diags_array(weights) @ X).toarray()
    elif weights.min(initial=0.0) >= 0.0:
        halved = X * np.sqrt(weights)[:, np.newaxis]
        total[:d, :d] = halved.T @ halved  # BLAS sees the symmetry and does half the work
    else:
        total[:d, :d] = X.T @ (X * weights[:, np.newaxis])
    if with_one:
        total[:d, d] = total[d, :d] = X.T @ weights
        total[d, d] = weights.sum()
    return total


def weighted_grams(X: Any, weights: Floats, with_one: bool) -> Floats:
    """The same for several columns of weights at once, (n, m) to (m, d, d).

    Each product of two columns is made once and serves all the weights, in one matrix product.
    """
    if sparse.issparse(X) or weights.shape[1] == 1:
        return np.stack([weighted_gram(X, column, with_one) for column in weights.T])
    size = X.shape[1] + with_one
    upper = np.triu_indices(size)
    length = max(16, _TABLE // upper[0].size)
    sums = np.zeros((upper[0].size, weights.shape[1]))
    for start in range(0, len(X), length):
        columns = np.ones((size, min(length, len(X) - start)))
        columns[: X.shape[1]] = X[start : start + length].T
        products = np.empty((upper[0].size, columns.shape[1]))
        filled = 0
        for i in range(size):
            np.multiply(columns[i], columns[i:], out=products[filled : filled + size - i])
            filled += size - i
        sums += products @ weights[start : start + length]
    total = np.empty((weights.shape[1], size, size))
    total[:, upper[0], upper[1]] = total[:, upper[1], upper[0]] = sums.T
    return total
