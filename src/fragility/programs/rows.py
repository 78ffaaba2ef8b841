r"""Training data in coordinates that suit the solvers.

Rows of no weight are dropped and identical samples merged into one of their summed weight, so that
weighted and repeated data are the same problem. Columns are centred and scaled by their weighted
means and deviations: a column measured in millions costs no digits. Models go back to the user's
units by `TrainingRows.in_user_units`.

A priced intercept is the coefficient of a constant feature: here it is appended to the samples, and
here taken out of the model again. The solvers never hear of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._typing import Floats, Indices, Intercept
from .low_rank import SampleProducts
from .row_space import RowSpace, row_space

#: Rows read at once: they should stay in the cache of the processor.
_BLOCK = 1_024


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Samples ready for a solver.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        ``(x - centre) / scale``. Of a sparse matrix, only mostly filled columns are centred.
    y : ndarray of shape (n,)
        Class of each sample, 0, 1, ...
    weights : ndarray of shape (n,)
        Positive; they sum to one.
    n_classes : int
    centre, scale : ndarray of shape (d,)
    fit_intercept : bool
        Whether there is a free intercept.
    space : RowSpace, optional
        The space of X, if it is not the space of the features as given.
    priced : bool
        Whether the last feature is a constant, whose coefficient is the user's intercept.
    """

    X: Any
    y: Indices
    weights: Floats
    n_classes: int
    centre: Floats
    scale: Floats
    fit_intercept: bool
    space: RowSpace | None = None
    priced: bool = False

    @cached_property
    def squared_lengths(self) -> Floats:
        """Squared length of each sample, an intercept counted as one."""
        if sparse.issparse(self.X):
            squares = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", self.X, self.X)
        return squares + float(self.fit_intercept)

    @cached_property
    def given(self) -> Floats:
        """The samples in the user's units, dense, with a constant after them if it is priced."""
        table: Floats = self.X.toarray() if sparse.issparse(self.X) else self.X
        return table * self.scale + self.centre

    @cached_property
    def products(self) -> SampleProducts:
        """Products of the samples, where there are fewer of them than features."""
        return SampleProducts(self.X)

    def in_user_units(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients (k, d) and intercepts (k,) for the data as given."""
        given = coef / self.scale
        intercept = intercept - given @ self.centre
        if self.space is not None:
            given = self.space.lift(given)
            intercept = intercept - given @ self.space.origin
        return (given[:, :-1], given[:, -1]) if self.priced else (given, intercept)

    def from_user_units(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats] | None:
        """The way back; None in a space of its own, where there may be none."""
        if self.space is not None:
            return None
        if self.priced:
            coef, intercept = np.column_stack([coef, intercept]), np.zeros(len(coef))
        return coef * self.scale, intercept + coef @ self.centre


def training_rows(
    X: Any,
    y: Indices,
    n_classes: int,
    weights: Floats | None = None,
    *,
    fit_intercept: Intercept = True,
    reducible: bool = False,
) -> TrainingRows:
    """Prepare validated samples: dense float64 or CSR, classes as 0, 1, ..., weights not negative.

    Without a free intercept the columns are not centred: the model could not undo it, or a priced
    one only by a combination of features, of which norms know nothing. `reducible` says
    that the coefficients matter only by their scores and Euclidean length. Then more features than
    samples are reduced to the number of samples.
    """
    if weights is None and not _may_repeat(X):
        weights = np.ones(y.size)
    else:
        X, y, weights = distinct_rows(X, y, weights)
    weights = weights / weights.sum()
    free, priced = fit_intercept is True, fit_intercept == "priced"
    if priced:
        X = _with_constant(X)
    shift = np.zeros(X.shape[1])
    if sparse.issparse(X) and free:
        X, shift = _filled_columns_centred(X, weights)
    space = None
    if reducible and X.shape[1] > y.size:
        space = row_space(X, free)
        space = replace(space, origin=space.origin + shift)
        X = space.features
    if sparse.issparse(X):
        centre = shift
        scale = _or_one(np.sqrt(X.multiply(X).T @ weights), np.abs(centre))
        scaled = sparse.csr_array(X @ sparse.diags_array(1.0 / scale))
        return TrainingRows(scaled, y, weights, n_classes, centre, scale, free, priced=priced)
    centre = weights @ X if free else np.zeros(X.shape[1])
    squares = np.zeros(X.shape[1])
    shifted = np.empty_like(X)
    # Where a few samples have all the weight, the others still count a little for a column's size.
    say = weights if weights.min() > 1e-6 * weights.max() else weights + 1e-6 * weights.max()
    for start in range(0, y.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        np.subtract(X[part], centre, out=shifted[part])
        squares += say[part] @ (shifted[part] * shifted[part])
    scale = _or_one(np.sqrt(squares), np.abs(centre))
    shifted *= 1.0 / scale
    return TrainingRows(shifted, y, weights, n_classes, centre, scale, free, space, priced)


def _with_constant(X: Any) -> Any:
    """The samples with one more feature, which is 1."""
    ones = np.ones((X.shape[0], 1))
    return (
        sparse.csr_array(sparse.hstack([X, ones])) if sparse.issparse(X) else np.hstack([X, ones])
    )


def _filled_columns_centred(X: Any, weights: Floats) -> tuple[Any, Floats]:
    """A sparse matrix less the means of columns that are more than half filled, and those means.

    Such a column takes no more than twice its room, and may lie as far from zero as it likes.
    """
    columns = sparse.csc_array(X)
    filled = np.flatnonzero(np.diff(columns.indptr) > X.shape[0] / 2)
    shift = np.zeros(X.shape[1])
    if filled.size == 0:
        return X, shift
    dense = columns[:, filled].toarray()
    shift[filled] = weights @ dense
    kept = np.ones(X.shape[1])
    kept[filled] = 0.0
    rest = columns @ sparse.diags_array(kept)
    rest.eliminate_zeros()
    parts = sparse.csc_array(dense - shift[filled])
    # One row of the identity for each filled column puts it back where it was.
    back = sparse.eye_array(X.shape[1], format="csr")[filled]
    return sparse.csr_array(rest + parts @ back), shift


def _or_one(scale: Floats, magnitude: Floats | float = 0.0) -> Floats:
    """The scales, or one where a column is constant but for rounding."""
    return np.where(scale > 1e-13 * magnitude, scale, 1.0)


def distinct_rows(X: Any, y: Indices, weights: Floats | None) -> tuple[Any, Indices, Floats]:
    """One row for identical samples, with their summed weight; none for samples of no weight.

    The rows come in the order of their fingerprints: the same numbers in the same order make the
    same sums to the last digit, however the data were given.
    """
    if weights is None:
        weights = np.ones(y.size)
    kept = weights > 0.0
    if not kept.all():
        X, y, weights = X[kept], y[kept], weights[kept]
    # By a power of two: sums stay what they are, digit by digit, and cannot overflow.
    weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    _, first, group = np.unique(_fingerprints(X, y), return_index=True, return_inverse=True)
    if first.size < y.size and not _identical(X, y, first[group]):
        return X, y, weights
    summed = np.asarray(np.bincount(group, weights), dtype=np.float64)
    return X[first], y[first], summed


def _may_repeat(X: Any) -> bool:
    """Whether two rows have the same product with a random vector but for rounding."""
    if sparse.issparse(X):
        return True  # fingerprints of what is stored cost little
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    apart = np.diff(np.sort(X @ direction)).min(initial=np.inf)
    rounding = 4.0 * 2.0**-53 * X.shape[1] * float(np.linalg.norm(direction))
    if apart > rounding * float(np.linalg.norm(X)):  # no row is longer than all of them together
        return False
    return bool(apart <= rounding * np.sqrt(np.einsum("ij,ij->i", X, X).max(initial=0.0)))


def _identical(X: Any, y: Indices, twins: Indices) -> bool:
    """Whether each sample equals its twin; equal fingerprints of others have a chance of 1e-19."""
    repeated = np.flatnonzero(twins != np.arange(y.size))
    for start in range(0, repeated.size, _BLOCK):
        rows = repeated[start : start + _BLOCK]
        different = X[rows] != X[twins[rows]]
        if different.sum() or (y[rows] != y[twins[rows]]).any():
            return False
    return True


def _fingerprints(X: Any, y: Indices) -> NDArray[np.uint64]:
    """A number for each sample: random odd multiples of its bits, added modulo 2⁶⁴."""
    draw = np.random.default_rng(0).integers(0, 2**64, X.shape[1] + 1, dtype=np.uint64)
    multipliers = draw | np.uint64(1)
    marks: NDArray[np.uint64] = (y.astype(np.uint64) + np.uint64(1)) * multipliers[-1]
    if sparse.issparse(X):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        bits = _folded_bits(X.data) * multipliers[X.indices]
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        marks += ends[X.indptr[1:]] - ends[X.indptr[:-1]]
        return marks
    for start in range(0, y.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        marks[part] += (_folded_bits(X[part]) * multipliers[:-1]).sum(axis=1, dtype=np.uint64)
    return marks


def _folded_bits(values: Floats) -> NDArray[np.uint64]:
    """Bits of numbers with the high ones in low positions, too.

    The low bits of a round number are zero, and the high ones would be lost in the products.
    """
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding makes one zero of two
    return bits ^ (bits >> np.uint64(40))
