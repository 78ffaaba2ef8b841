r"""Penalised mean loss of a linear model, with its derivatives.

.. math:: L(\theta) = \sum_n a_n \ell(u_n, y_n) + \tfrac12 \sum_j r_j \theta_j^2
          + \sum_j l_j |\theta_j|

Parameters are one vector: for two classes the coefficients, then the intercept if there is one; for
several classes the same for each class, one after the other. Everything is in the coordinates of
`TrainingRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._parameters import check_choice
from .._typing import Floats
from ..losses import Loss
from ..losses.base import LossPoint
from ..losses.gaps import widest_gap
from .gram import estimated_gram, paired_gram
from .low_rank import LowRank
from .rows import TrainingRows

#: Shares of the largest coefficient below which others may be set to zero, if the loss allows it.
_ZERO_BUT_FOR_ROUNDING = (1e-6, 1e-7, 1e-8, 1e-9)
#: Rows per parameter in an estimate of a Hessian, which is worth its time with this multiple of
#: them.
_ROWS_PER_PARAMETER, _WORTH_IT = 20, 4
#: Up to this many features a Hessian costs less to form than to go without.
_FEW_FEATURES = 100


class Penalty(NamedTuple):
    """Strengths of the squared and of the absolute coefficients."""

    ridge: float = 0.0
    lasso: float = 0.0

    @classmethod
    def named(cls, name: str | None, strength: float) -> Penalty:
        """The penalty "l1" or "l2" of a strength; None for no penalty."""
        check_choice(name, ("l1", "l2", None), "penalty")
        return cls(strength if name == "l2" else 0.0, strength if name == "l1" else 0.0)

    def of(self, coef: Floats) -> float:
        """Value for coefficients in the user's units."""
        with np.errstate(over="ignore", under="ignore"):
            terms = ((self.ridge, coef**2), (self.lasso, np.abs(coef)))
            return float(sum(strength * term.sum() for strength, term in terms if strength != 0.0))


@dataclass(frozen=True, eq=False)
class Objective:
    """Mean loss of linear scores plus a penalty.

    Attributes
    ----------
    rows : TrainingRows
    loss : Loss
    alpha : float
        Ridge, times the squared coefficients in the user's units; the intercept is free of it.
    lasso : float
        The same for the absolute coefficients.
    """

    rows: TrainingRows
    loss: Loss
    alpha: float = 0.0
    lasso: float = 0.0

    @property
    def is_smooth(self) -> bool:
        """Whether it has derivatives everywhere; the derivatives below are of its smooth part."""
        return self.lasso == 0.0 and self.loss.is_smooth(self.rows.n_classes)

    @property
    def is_penalised(self) -> bool:
        """Whether long coefficients cost something."""
        return self.alpha > 0.0 or self.lasso > 0.0

    @property
    def n_outputs(self) -> int:
        """Columns of scores: one for two classes."""
        return 1 if self.rows.n_classes == 2 else self.rows.n_classes

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.ridge.size

    @property
    def estimates_pay(self) -> bool:
        """Whether Hessians from some of the rows save time."""
        enough = _WORTH_IT * _ROWS_PER_PARAMETER * self.size
        return self.n_outputs == 1 and self.rows.y.size >= enough

    @cached_property
    def ridge(self) -> Floats:
        """Second derivative of the penalty, per parameter."""
        return self.per_parameter(2.0 * self.alpha / self.rows.scale**2)

    @cached_property
    def lasso_weights(self) -> Floats:
        """Weight of each absolute parameter in the penalty."""
        return self.per_parameter(self.lasso / self.rows.scale)

    @cached_property
    def length_weights(self) -> Floats:
        """Weight of each squared parameter in the squared length in the user's units.

        Intercepts have none.
        """
        return self.per_parameter(1.0 / self.rows.scale**2)

    def per_parameter(self, of_features: Floats, of_intercept: float = 0.0) -> Floats:
        """A number for each parameter, the same for every class."""
        one = np.append(of_features, of_intercept) if self.rows.fit_intercept else of_features
        return np.tile(one, self.n_outputs)

    def split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Coefficients (outputs, d) and intercepts (outputs,)."""
        table = parameters.reshape(self.n_outputs, -1)
        if self.rows.fit_intercept:
            return table[:, :-1], table[:, -1]
        return table, np.zeros(self.n_outputs)

    def join(self, coef: Floats, intercept: Floats) -> Floats:
        """Parameters of coefficients and intercepts: the way back from `split`."""
        if self.rows.fit_intercept:
            coef = np.column_stack([coef, intercept])
        return np.ravel(coef)

    def in_user_units(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts for the data as given."""
        return self.rows.in_user_units(*self.split(parameters))

    def from_user_units(self, coef: Floats, intercept: Floats) -> Floats | None:
        """The way back; None in a space of its own, where there may be none."""
        known = self.rows.from_user_units(coef, intercept)
        return None if known is None else self.join(*known)

    def centred(self, parameters: Floats) -> Floats:
        """The shortest parameters with the same loss.

        Adding one vector to the parameters of every class changes no loss; the mean over the
        classes is therefore removed.
        """
        if self.n_outputs == 1 or not self.loss.may_be_centred:
            return parameters
        table = parameters.reshape(self.n_outputs, -1)
        middle = table.mean(axis=0)
        if self.lasso > 0.0:  # absolute values are least at a median, and at all between two
            ordered, half = np.sort(table, axis=0), self.n_outputs // 2
            weighted = self.lasso_weights.reshape(table.shape)[0] > 0.0
            nearest = np.clip(middle, ordered[(self.n_outputs - 1) // 2], ordered[half])
            middle = np.where(weighted, nearest, middle)
        return np.ravel(table - middle)

    def tidied(self, parameters: Floats) -> Floats:
        """Centred parameters, without coefficients that a lasso left at zero but for rounding."""
        parameters = self.centred(parameters)
        if self.lasso == 0.0:
            return parameters
        weighted, loss = self.lasso_weights > 0.0, self.at(parameters).value
        largest = np.abs(parameters[weighted]).max(initial=0.0)
        for share in _ZERO_BUT_FOR_ROUNDING:
            small = weighted & (np.abs(parameters) <= share * largest)
            sparse = np.where(small, 0.0, parameters)
            if self.at(sparse).value <= loss * (1.0 + 1e-11):
                return sparse
        return parameters

    def at(self, parameters: Floats) -> Evaluation:
        """The objective at a point; nothing is computed before it is asked for."""
        return Evaluation(self, parameters)

    def ridge_value(self, parameters: Floats) -> float:
        """The squared part of the penalty."""
        return 0.5 * float(self.ridge @ parameters**2)

    def penalty(self, parameters: Floats) -> float:
        """Ridge and lasso."""
        lasso = float(self.lasso_weights @ np.abs(parameters)) if self.lasso > 0.0 else 0.0
        return self.ridge_value(parameters) + lasso

    def sampled(self, n: int) -> Objective:
        """The objective of about n rows, evenly spaced."""
        stride = max(1, self.rows.y.size // n)
        rows, every = self.rows, slice(None, None, stride)
        weights = rows.weights[every] / rows.weights[every].sum()
        few = replace(rows, X=rows.X[every], y=rows.y[every], weights=weights)
        return replace(self, rows=few)

    def collected(self, by_scores: Floats) -> Floats:
        """Sum over the samples of slopes by scores, (n,) or (outputs, n), as one by parameters."""
        rows = self.rows
        if by_scores.ndim == 1:
            row = np.asarray(by_scores @ rows.X)
            return np.append(row, by_scores.sum()) if rows.fit_intercept else row
        table = np.asarray((rows.X.T @ by_scores.T).T)
        if rows.fit_intercept:
            table = np.column_stack([table, by_scores.sum(axis=1)])
        return table.ravel()

    def collected_squares(self, weights_of: Callable[[slice], Floats]) -> Floats:
        """The same for second derivatives: `weights_of` is as in `paired_gram`."""
        return paired_gram(self.rows.X, self.n_outputs, self.rows.fit_intercept, weights_of)

    def fixed_gauge(self, hessian: Any) -> Any:
        """The Hessian with curvature added along the gauge, where losses have none.

        With several classes, the same change of all scores changes no loss. Gradients and Newton's
        steps have no part in that direction, but a factorisation needs a number there. A lasso
        does depend on it.
        """
        if self.n_outputs == 1:
            return hessian
        return filled_gauge(hessian, self.n_outputs, self.lasso_weights)


def filled_gauge(hessian: Floats, n_outputs: int, lasso_weights: Floats) -> Floats:
    """The same of any number of Hessians, of problems whose lassos weigh the same columns."""
    filled, size = hessian.copy(), hessian.shape[-1] // n_outputs
    blocks = filled.reshape(*hessian.shape[:-2], n_outputs, size, n_outputs, size)
    weighted = lasso_weights.reshape(-1, n_outputs * size)[0, :size] > 0.0
    fill = np.einsum("...ii->...", hessian)[..., np.newaxis] / hessian.shape[-1]
    if weighted.any():  # weights of columns in different units are orders apart
        fill = np.einsum("...iaia->...a", blocks)[..., ~weighted] / n_outputs
    # A view of the entries of one column and two classes.
    same_column = np.einsum("...iaja->...ija", blocks)
    same_column[..., ~weighted] += fill[..., np.newaxis, np.newaxis, :]
    return filled


class Evaluation:
    """Value and derivatives of an objective at one point."""

    def __init__(self, objective: Objective, parameters: Floats) -> None:
        self.objective = objective
        self.parameters = parameters

    def scaled(self, factor: float) -> Evaluation:
        """The objective at a multiple of the point, where the scores are known."""
        there = Evaluation(self.objective, factor * self.parameters)
        there.scores = factor * self.scores
        return there

    @cached_property
    def scores(self) -> Floats:
        """Scores of the samples: (n,), or (n, C)."""
        coef, intercept = self.objective.split(self.parameters)
        X = self.objective.rows.X
        if not self.parameters.any():
            return np.zeros(X.shape[0] if len(coef) == 1 else (X.shape[0], len(coef)))
        if len(coef) == 1:
            one: Floats = X @ coef[0] + intercept[0]
            return one
        several: Floats = X @ coef.T + intercept
        return several

    @cached_property
    def by_scores(self) -> LossPoint:
        """The losses as functions of the scores."""
        return self.objective.loss.at(self.scores, self.objective.rows.y)

    @property
    def losses(self) -> Floats:
        """Loss of each sample."""
        return self.by_scores.value

    @property
    def slopes(self) -> Floats:
        """Derivative of each loss by the scores."""
        return self.by_scores.gradient

    @cached_property
    def penalty(self) -> float:
        """Ridge and lasso."""
        return self.objective.penalty(self.parameters)

    @cached_property
    def value(self) -> float:
        """Penalised mean loss."""
        return float(self.objective.rows.weights @ self.losses) + self.penalty

    @cached_property
    def gradient(self) -> Floats:
        return self.gradient_under(self.objective.rows.weights)

    @cached_property
    def hessian(self) -> Floats:
        return self._collect_squares(self.objective.rows.weights, None)

    @property
    def structured_hessian(self) -> Floats | LowRank:
        """The Hessian; one of fewer samples than features is not formed."""
        objective, rows = self.objective, self.objective.rows
        if objective.n_outputs > 1 or rows.X.shape[1] <= max(rows.y.size, _FEW_FEATURES):
            return self.hessian
        weights = self._second_derivatives(slice(None), rows.weights, None)[:, 0]
        return LowRank(rows, weights, objective.ridge)

    @property
    def model_hessian(self) -> Floats | LowRank:
        """The same with curvature added along the gauge."""
        hessian: Floats | LowRank = self.objective.fixed_gauge(self.structured_hessian)
        return hessian

    @property
    def rough_hessian(self) -> Floats | None:
        """The Hessian from some of the rows; None where that saves no time."""
        return self._estimate_squares(self.objective.rows.weights, None)

    @cached_property
    def relabelled(self) -> Floats:
        """Loss of each sample with the worst of the other labels."""
        return self.objective.loss.relabelled(self.scores, self.objective.rows.y)

    @property
    def least_margin(self) -> float:
        """Smallest lead of the score of the true class over the others."""
        gaps, _ = widest_gap(self.scores, self.objective.rows.y)
        return -float(gaps.max())

    @property
    def curvature_jumps(self) -> bool:
        """Whether the curvature of the loss may jump."""
        return self.objective.loss.curvature_jumps

    def gradient_under(self, weights: Floats) -> Floats:
        """Gradient with other weights of the samples."""
        return self.collected(weights) + self.objective.ridge * self.parameters

    def moment_hessian(self, tilted: Floats, mean: Floats, k: float) -> Floats:
        r"""Hessian of :math:`k \ln \sum_n a_n e^{\ell_n / k}` plus the ridge.

        `tilted` are the worst-case weights, :math:`\propto a_n e^{\ell_n / k}`, and `mean` is what
        is collected under them.
        """
        return self._collect_squares(tilted, tilted / k) - np.multiply.outer(mean, mean / k)

    def rough_moment_hessian(self, tilted: Floats, mean: Floats, k: float) -> Floats | None:
        """The same from some of the rows; None where that saves no time."""
        squares = self._estimate_squares(tilted, tilted / k)
        return None if squares is None else squares - np.multiply.outer(mean, mean / k)

    def collected(self, weights: Floats) -> Floats:
        """Weighted sum over the samples of slopes by scores, as one by parameters."""
        return self.objective.collected(self.slopes.T * weights)

    def _collect_squares(self, weights: Floats, slope_weights: Floats | None) -> Floats:
        """Hessian of the weighted losses, of squared slopes if asked, and of the ridge."""
        objective = self.objective

        def pairs(part: slice) -> Floats:
            of_slopes = None if slope_weights is None else slope_weights[part]
            return self._second_derivatives(part, weights[part], of_slopes)

        hessian = objective.collected_squares(pairs)
        hessian[np.diag_indices(objective.size)] += objective.ridge
        return hessian

    def _estimate_squares(self, weights: Floats, slope_weights: Floats | None) -> Floats | None:
        """The same from some of the rows; None where that saves no time."""
        objective, rows = self.objective, self.objective.rows
        if not objective.estimates_pay:
            return None
        count = _ROWS_PER_PARAMETER * objective.size
        own = self._second_derivatives(slice(None), weights, slope_weights)[:, 0]
        hessian = estimated_gram(rows.X, own, rows.squared_lengths, rows.fit_intercept, count)
        hessian[np.diag_indices(objective.size)] += objective.ridge
        return hessian

    def _second_derivatives(
        self, part: slice, weights: Floats, slope_weights: Floats | None
    ) -> Floats:
        """Weighted second derivatives by pairs of scores, with squared slopes if asked."""
        table = self.by_scores.lower_curvature(part) * weights[:, np.newaxis]
        if slope_weights is None:
            return table
        slopes = self.slopes[part]
        if slopes.ndim == 1:
            table[:, 0] += slopes * slopes * slope_weights
            return table
        i, j = np.tril_indices(slopes.shape[1])
        table += slopes[:, i] * slopes[:, j] * slope_weights[:, np.newaxis]
        return table
