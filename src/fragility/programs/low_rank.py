r"""Hessians of fewer samples than features, :math:`X^\top D X + R`, which are never formed.

With R diagonal, all that solvers need comes from products with X and from small systems: by the
Woodbury identity of the products of samples :math:`X R^{-1} X^\top`, n × n, which do not depend on
D and so serve many Hessians.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._typing import Floats, Indices
from .gram import weighted_gram

if TYPE_CHECKING:
    from .rows import TrainingRows

#: Weights that differ by less are the same but for rounding.
_SAME = 1e-13
#: What is left of the products of a sample when so much is taken away has lost too many digits.
_LOST = 1e-4


class SampleProducts:
    """X diag(w) Xᵀ for weights w of the features.

    The last products are kept: where few weights are new, only their columns are added.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._weights = np.zeros(X.shape[1])
        self._products = np.zeros((X.shape[0], X.shape[0]))

    def under(self, weights: Floats) -> Floats:
        """The products under these weights; not to be changed."""
        both = (weights > 0.0) & (self._weights > 0.0)
        ratios = np.sort(weights[both] / self._weights[both])
        factor = ratios[ratios.size // 2] if ratios.size else 0.0
        change = weights - factor * self._weights
        change[np.abs(change) <= _SAME * weights] = 0.0
        kept, products = factor * self._products, None
        if np.count_nonzero(change) < np.count_nonzero(weights):
            products = kept + self._product(change) if change.any() else kept
            if not (products.diagonal() > _LOST * kept.diagonal()).all():
                products = None
        self._weights = weights
        self._products = self._product(weights) if products is None else products
        return self._products

    def _product(self, weights: Floats) -> Floats:
        if weights.min() < 0.0:
            gained = self._product(np.maximum(weights, 0.0))
            return gained - self._product(np.maximum(-weights, 0.0))
        used = np.flatnonzero(weights)
        if sparse.issparse(self._X):
            some = self._X[:, used] @ sparse.diags_array(np.sqrt(weights[used]))
            return np.asarray((some @ some.T).toarray())
        some = self._X[:, used] * np.sqrt(weights[used])
        products: Floats = some @ some.T  # BLAS sees the symmetry and does half the work
        return products


class LowRank:
    """The Hessian Xᵀ diag(weights) X + diag(diagonal), an intercept being a last column of ones."""

    def __init__(self, rows: TrainingRows, weights: Floats, diagonal: Floats) -> None:
        self.rows, self.weights, self.diagonal = rows, weights, diagonal

    def __len__(self) -> int:
        return self.diagonal.size

    def __matmul__(self, move: Floats) -> Floats:
        return self._back(self.weights * self._scores(move)) + self.diagonal * move

    def trace(self) -> float:
        return float(self.weights @ self.rows.squared_lengths) + float(self.diagonal.sum())

    def columns(self, places: Indices) -> Floats:
        """Columns of X, dense."""
        d = self.rows.X.shape[1]
        some = self.rows.X[:, places[places < d]]
        some = some.toarray() if sparse.issparse(some) else some
        return np.hstack([some, np.ones((len(some), 1))]) if (places == d).any() else some

    def part(self, places: Indices) -> Floats:
        """The rows of the Hessian of some parameters."""
        some = self.columns(places) * self.weights[:, np.newaxis]
        part = np.array([self._back(column) for column in some.T]).reshape(-1, len(self))
        part[np.arange(places.size), places] += self.diagonal[places]
        return part

    def ridged(self, change: Floats) -> LowRank:
        """The same with another diagonal."""
        return LowRank(self.rows, self.weights, self.diagonal + change)

    def dense(self) -> Floats:
        """The Hessian as a table."""
        dense = weighted_gram(self.rows.X, self.weights, self.rows.fit_intercept)
        dense[np.diag_indices(len(self))] += self.diagonal
        return dense

    def _scores(self, move: Floats) -> Floats:
        d = self.rows.X.shape[1]
        scores: Floats = self.rows.X @ move[:d]
        return scores + move[d] if self.rows.fit_intercept else scores

    def _back(self, by_scores: Floats) -> Floats:
        by_features = np.asarray(self.rows.X.T @ by_scores)
        return np.append(by_features, by_scores.sum()) if self.rows.fit_intercept else by_features


def ridged(hessian: Floats | LowRank, change: Floats) -> Any:
    """The Hessian with a change of its diagonal."""
    if isinstance(hessian, LowRank):
        return hessian.ridged(change)
    return hessian + np.diag(change)
