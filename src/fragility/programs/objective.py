r"""Penalised mean loss of a linear model, with its derivatives.

.. math:: L(\theta) = \sum_n a_n \ell(u_n, y_n) + \tfrac12 \sum_j r_j \theta_j^2

Parameters are one vector: for two classes the coefficients, then the intercept if there is one; for
several classes the same for each class, one after the other. Everything is in the coordinates of
`TrainingRows`.
"""

from __future__ import annotations

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

    def value(self, parameters: Floats) -> float:
        rows = self.rows
        loss = float(rows.weights @ self.loss.value(self.scores(parameters), rows.y))
        return loss + 0.5 * float(self.ridge @ parameters**2)

    def gradient(self, parameters: Floats) -> Floats:
        rows = self.rows
        slopes = self.loss.gradient(self.scores(parameters), rows.y)
        slopes = (slopes.T * rows.weights).reshape(self.n_outputs, -1)
        table = np.asarray(slopes @ rows.X)
        if rows.fit_intercept:
            table = np.column_stack([table, slopes.sum(axis=1)])
        return table.ravel() + self.ridge * parameters

    def hessian(self, parameters: Floats) -> Floats:
        rows, scores = self.rows, self.scores(parameters)
        size = self.ridge.size // self.n_outputs
        blocks = np.zeros((self.n_outputs, size, self.n_outputs, size))
        for start in range(0, rows.y.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            bend = self.loss.curvature(scores[part], rows.y[part])
            bend = bend.reshape(-1, self.n_outputs, self.n_outputs)
            X = _with_ones(rows.X[part]) if rows.fit_intercept else rows.X[part]
            for i in range(self.n_outputs):
                for j in range(i + 1):
                    weighted = _scaled_rows(X, rows.weights[part] * bend[:, i, j])
                    blocks[i, :, j, :] += _dense(X.T @ weighted)
        for i in range(self.n_outputs):
            for j in range(i):
                blocks[j, :, i, :] = blocks[i, :, j, :].T
        hessian = blocks.reshape(self.ridge.size, -1)
        hessian[np.diag_indices(self.ridge.size)] += self.ridge
        return hessian


def _with_ones(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return (
        sparse.csr_array(sparse.hstack([X, ones])) if sparse.issparse(X) else np.hstack([X, ones])
    )


def _scaled_rows(X: Any, factors: Floats) -> Any:
    return sparse.diags_array(factors) @ X if sparse.issparse(X) else X * factors[:, np.newaxis]


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
