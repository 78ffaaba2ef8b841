r"""More features than samples: work in the space that the samples span.

Where only the Euclidean length of the coefficients matters, the best ones are combinations of the
samples. With rows :math:`D` (samples less the last one if there is an intercept, which takes up the
shift) and :math:`D^\top = Q R`, the model :math:`w = Q \theta` has the scores :math:`R^\top \theta`
and the length of :math:`\theta`: a problem of n features in place of d. Sparse samples are not made
dense: there R comes from the products of the samples, :math:`D D^\top = R^\top R`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh, qr, solve_triangular

from .._typing import Floats, Mask


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Samples as points of the space that they span.

    Attributes
    ----------
    features : ndarray of shape (n, r)
        The samples, less the origin.
    origin : ndarray of shape (d,)
    lift : callable
        Makes coefficients (k, r) those (k, d) of the features as given.
    """

    features: Floats
    origin: Floats
    lift: Callable[[Floats], Floats]


def row_space(X: Any, fit_intercept: bool) -> RowSpace:
    """The space of the rows of X, seen from the last one if there is an intercept."""
    is_sparse = sparse.issparse(X)
    origin = np.zeros(X.shape[1])
    if fit_intercept:
        origin = X[[-1]].toarray()[0] if is_sparse else X[-1].copy()
    if not is_sparse:
        basis, triangle = qr((X - origin).T, mode="economic", overwrite_a=True, check_finite=False)
        seen = _seen(triangle)
        axes = basis[:, seen].T
        return RowSpace(np.ascontiguousarray(triangle[seen].T), origin, lambda coef: coef @ axes)
    products = (X @ X.T).toarray()
    if fit_intercept:
        last = products[-1].copy()
        products = products - last - last[:, np.newaxis] + last[-1]
    features, combinations = _factors(products, int(fit_intercept))

    def lift(coef: Floats) -> Floats:
        parts = coef @ combinations  # of each sample
        whole = np.asarray((X.T @ parts.T).T)
        lifted: Floats = whole - np.multiply.outer(parts.sum(axis=1), origin)
        return lifted

    return RowSpace(features, origin, lift)


def _seen(triangle: Floats) -> Mask:
    """Axes along which some sample lies."""
    sizes = np.abs(triangle).max(axis=1)
    seen: Mask = sizes > 1e-13 * sizes.max(initial=0.0)
    return seen


def _factors(products: Floats, shift: int) -> tuple[Floats, Floats]:
    """Features F with F Fᵀ = products, and the combinations of samples that are their axes."""
    n = len(products)
    try:
        inner = cholesky(products[: n - shift, : n - shift], lower=True, check_finite=False)
        if np.diag(inner).min() ** 2 <= 1e-10 * np.diag(inner).max() ** 2:
            raise LinAlgError
    except LinAlgError:  # samples that others are made of
        sizes, axes = eigh(products, check_finite=False)
        kept = sizes > 1e-12 * sizes[-1]
        roots, axes = np.sqrt(sizes[kept]), axes[:, kept]
        return np.ascontiguousarray(axes * roots), (axes / roots).T
    features, combinations = np.zeros((n, n - shift)), np.zeros((n - shift, n))
    features[: n - shift] = inner
    combinations[:, : n - shift] = solve_triangular(
        inner, np.eye(n - shift), lower=True, check_finite=False
    )
    return features, combinations
