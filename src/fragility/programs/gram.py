r"""Weighted products of columns, :math:`\sum_n w_n x_n x_n^\top`: most of the time of a fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Floats

#: Rows per block: temporaries stay small against the data.
BLOCK = 8_192
#: Numbers in a table of products: it should stay in the cache of the processor.
_TABLE = 2**18
#: Up to this many stored numbers, products take less time than SciPy's checks of its matrices.
_FEW = 2**14


@cache
def lower_triangle(n: int) -> tuple[Any, Any]:
    """Rows and columns of a lower triangle, in the order of weights of pairs."""
    return np.tril_indices(n)


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


def estimated_gram(X: Any, weights: Floats, lengths: Floats, with_one: bool, count: int) -> Floats:
    """`weighted_gram`, estimated from `count` rows chosen by what they add to its trace.

    `lengths` are the squared lengths of the rows. The rows are those that equal steps through the
    sum of all contributions fall on: no chance, and a row that adds more than a step is in. The
    products are in single precision, whose errors are far below those of the estimate.
    """
    ends = np.cumsum(weights * lengths)
    step = float(ends[-1]) / count
    chosen = np.searchsorted(ends, step * (np.arange(count) + 0.5))
    if sparse.issparse(X):
        return weighted_gram(X[chosen], step / lengths[chosen], with_one)
    scale = 1.0 / np.sqrt(lengths[chosen])
    rows = np.ones((count, X.shape[1] + with_one), dtype=np.float32)
    rows[:, : X.shape[1]] = X.take(chosen, axis=0)
    rows *= scale.astype(np.float32)[:, np.newaxis]
    return step * (rows.T @ rows).astype(np.float64)


def weighted_grams(X: Any, weights: Floats, with_one: bool, single: bool = False) -> Floats:
    """`weighted_gram` for several columns of weights at once, (n, m) to (m, d, d).

    Each product of two columns is made once and serves all the weights, in one matrix product:
    of numbers of single precision, if that will do, in half the time.
    """
    if sparse.issparse(X) and X.nnz * weights.shape[1] <= _FEW:
        return _grams_of_few(X, weights, with_one)
    if weights.shape[1] == 1:
        return weighted_gram(X, weights[:, 0], with_one)[np.newaxis]
    if sparse.issparse(X):
        return np.stack([weighted_gram(X, column, with_one) for column in weights.T])
    size = X.shape[1] + with_one
    upper = np.triu_indices(size)
    length = max(16, _TABLE // upper[0].size)
    sums = np.zeros((upper[0].size, weights.shape[1]))
    kind = np.float32 if single else np.float64
    weights = weights.astype(kind, copy=False)
    for start in range(0, len(X), length):
        columns = np.ones((size, min(length, len(X) - start)), dtype=kind)
        columns[: X.shape[1]] = X[start : start + length].T
        products = np.empty((upper[0].size, columns.shape[1]), dtype=kind)
        filled = 0
        for i in range(size):
            np.multiply(columns[i], columns[i:], out=products[filled : filled + size - i])
            filled += size - i
        sums += products @ weights[start : start + length]
    total = np.empty((weights.shape[1], size, size))
    total[:, upper[0], upper[1]] = total[:, upper[1], upper[0]] = sums.T
    return total


def _grams_of_few(X: Any, weights: Floats, with_one: bool) -> Floats:
    """The same of a small CSR matrix: one product with all its weighted copies, side by side."""
    (n, d), m = X.shape, weights.shape[1]
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    data = X.data[:, np.newaxis] * weights[rows]
    columns = X.indices[:, np.newaxis] + d * np.arange(m)
    copies = sparse.csr_array((data.ravel(), columns.ravel(), m * X.indptr), shape=(n, m * d))
    total = np.empty((m, d + with_one, d + with_one))
    total[:, :d, :d] = (X.T @ copies).toarray().reshape(d, m, d).swapaxes(0, 1)
    if with_one:
        total[:, :d, d] = total[:, d, :d] = (X.T @ weights).T
        total[:, d, d] = weights.sum(axis=0)
    return total


def paired_gram(
    X: Any, outputs: int, with_one: bool, weights_of: Callable[[slice], Floats]
) -> Floats:
    """Matrix over (output, column) pairs: for each pair of outputs the products under its weights.

    `weights_of` gives for a part of the rows the weights of the pairs in the lower triangle of
    outputs, of shape (rows, pairs).
    """
    if outputs == 1 and X.shape[0] <= BLOCK:
        return weighted_gram(X, weights_of(slice(None))[:, 0], with_one)
    first, second = lower_triangle(outputs)
    size = X.shape[1] + with_one
    total = np.zeros((first.size, size, size))
    for start in range(0, X.shape[0], BLOCK):
        part = slice(start, start + BLOCK)
        total += weighted_grams(X[part], weights_of(part), with_one)
    blocks = np.empty((outputs, size, outputs, size))
    for one, i, j in zip(total, first, second, strict=True):
        blocks[i, :, j, :] = blocks[j, :, i, :] = one
    return blocks.reshape(outputs * size, outputs * size)
