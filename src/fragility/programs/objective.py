r"""Penalised mean loss of a linear model, with its derivatives.

.. math:: L(\theta) = \sum_n a_n \ell(u_n, y_n) + \tfrac12 \sum_j r_j \theta_j^2

Parameters are one vector: for two classes the coefficients, then the intercept if there is one; for
several classes the same for each class, one after the other. Everything is in the coordinates of
`TrainingRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..losses import Loss
from ..moments import Floats
from .rows import TrainingRows

__all__ = ["Objective"]

#: Rows per block of a Hessian: its temporaries stay small against the data.
_BLOCK = 8_192


@dataclass(frozen=True, eq=False)
class Objective:
    """Mean loss of linear scores plus a ridge.

    Attributes
    ----------
    rows : TrainingRows
    loss : Loss
    alpha : float
        Ridge, times the squared coefficients in the user's units; the intercept is free of it.
    """

    rows: TrainingRows
    loss: Loss
    alpha: float = 0.0

    @property
    def n_outputs(self) -> int:
        """Columns of scores: one for two classes."""
        return 1 if self.rows.n_classes == 2 else self.rows.n_classes

    @cached_property
    def ridge(self) -> Floats:
        """Second derivative of the penalty, per parameter."""
        one = 2.0 * self.alpha / self.rows.scale**2
        if self.rows.fit_intercept:
            one = np.append(one, 0.0)
        return np.tile(one, self.n_outputs)

    def split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Coefficients (outputs, d) and intercepts (outputs,)."""
        table = parameters.reshape(self.n_outputs, -1)
        if self.rows.fit_intercept:
            return table[:, :-1], table[:, -1]
        return table, np.zeros(self.n_outputs)

    def scores(self, parameters: Floats) -> Floats:
        """Scores of the samples: (n,), or (n, C)."""
        coef, intercept = self.split(parameters)
        scores: Floats = self.rows.X @ coef.T + intercept
        return scores[:, 0] if self.n_outputs == 1 else scores

    def losses(self, parameters: Floats) -> Floats:
        """Loss of each sample."""
        return self.loss.value(self.scores(parameters), self.rows.y)

    def penalty(self, parameters: Floats) -> float:
        """The ridge."""
        return 0.5 * float(self.ridge @ parameters**2)

    def value(self, parameters: Floats) -> float:
        """Penalised mean loss."""
        return float(self.rows.weights @ self.losses(parameters)) + self.penalty(parameters)

    def gradient(self, parameters: Floats) -> Floats:
        slopes = self.loss.gradient(self.scores(parameters), self.rows.y)
        return self._collect(slopes, self.rows.weights) + self.ridge * parameters

    def hessian(self, parameters: Floats) -> Floats:
        scores, y = self.scores(parameters), self.rows.y
        return self._collect_squares(lambda part: self.loss.curvature(scores[part], y[part]), None)

    def tilted_derivatives(
        self, parameters: Floats, tilted: Floats, k: float
    ) -> tuple[Floats, Floats]:
        r"""Gradient and Hessian of :math:`k \ln \sum_n a_n e^{\ell_n / k}` plus the ridge.

        `tilted` are the worst-case weights, :math:`\propto a_n e^{\ell_n / k}`.
        """
        scores, y = self.scores(parameters), self.rows.y
        slopes = self.loss.gradient(scores, y)
        mean = self._collect(slopes, tilted)

        def curvature(part: slice) -> Floats:
            table = slopes[part].reshape(-1, self.n_outputs)
            squares = table[:, :, np.newaxis] * table[:, np.newaxis, :] / k
            bend = self.loss.curvature(scores[part], y[part])
            return bend.reshape(squares.shape) + squares

        hessian = self._collect_squares(curvature, tilted)
        hessian -= np.multiply.outer(mean, mean) / k
        return mean + self.ridge * parameters, hessian

    def _collect(self, slopes: Floats, weights: Floats) -> Floats:
        """Weighted sum over the samples of slopes by scores, as one by parameters."""
        weighted = (slopes.T * weights).reshape(self.n_outputs, -1)
        table = np.asarray(weighted @ self.rows.X)
        if self.rows.fit_intercept:
            table = np.column_stack([table, weighted.sum(axis=1)])
        return table.ravel()

    def _collect_squares(
        self, curvature: Callable[[slice], Floats], weights: Floats | None
    ) -> Floats:
        """The same of curvatures by scores, with that of the ridge."""
        rows, outputs, size = self.rows, self.n_outputs, self.ridge.size // self.n_outputs
        weights = rows.weights if weights is None else weights
        blocks = np.zeros((outputs, size, outputs, size))
        for start in range(0, rows.y.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            bend = curvature(part).reshape(-1, outputs, outputs)
            for i in range(outputs):
                for j in range(i + 1):
                    _add_gram(blocks[i, :, j, :], rows.X[part], weights[part] * bend[:, i, j])
        for i in range(outputs):
            for j in range(i):
                blocks[j, :, i, :] = blocks[i, :, j, :].T
        hessian = blocks.reshape(self.ridge.size, -1)
        hessian[np.diag_indices(self.ridge.size)] += self.ridge
        return hessian


def _add_gram(total: Floats, X: Any, weights: Floats) -> None:
    """Add the weighted products of the columns and, if the total has room for it, of a one."""
    d = X.shape[1]
    if sparse.issparse(X):
        total[:d, :d] += (X.T @ sparse.diags_array(weights) @ X).toarray()
    elif weights.min() >= 0.0:
        halved = X * np.sqrt(weights)[:, np.newaxis]
        total[:d, :d] += halved.T @ halved  # BLAS sees the symmetry and does half the work
    else:
        total[:d, :d] += X.T @ (X * weights[:, np.newaxis])
    if len(total) > d:
        border = X.T @ weights
        total[:d, d] += border
        total[d, :d] += border
        total[d, d] += weights.sum()
