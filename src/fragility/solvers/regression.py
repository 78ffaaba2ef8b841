r"""Linear regression of the least fragility, through cvxpy.

.. math:: \min k \quad\text{s.t.}\quad
          \sum_n a_n \lVert B^T x_n + b - y_n \rVert_2 + R \le \tau,
          \quad \max_{\lVert \delta \rVert \le 1} \lVert B^T \delta \rVert_2 \le k

Features and y are centred and scaled first; identical samples are merged, so that weights and
repeated samples are the same program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Floats, Mask
from ..losses.lipschitz import steepest_error
from .conic import DUAL, cvxpy_for, run_clarabel
from .error_curvature import least_slope, lowest
from .feasible import first_share


@dataclass(frozen=True, eq=False)
class LinearErrors:
    """Samples in the coordinates of the solver.

    Attributes
    ----------
    X, y : ndarray of shape (n, d) and (n, m)
        ``(x - centre) / scale`` and ``(y - middle) / unit``.
    weights : ndarray of shape (n,)
        They sum to one.
    ridge : float
        Strength of the squared coefficients, in the user's units.
    """

    X: Floats
    y: Floats
    weights: Floats
    centre: Floats
    scale: Floats
    middle: Floats
    unit: float
    fit_intercept: bool
    ridge: float

    @classmethod
    def of(
        cls, X: Floats, y: Floats, weights: Floats, fit_intercept: bool, ridge: float
    ) -> LinearErrors:
        """Of validated samples: y (n, m), weights not negative and not all zero."""
        kept = weights > 0.0
        both, place = np.unique(np.hstack([X, y])[kept], axis=0, return_inverse=True)
        # By a power of two: sums of whole numbers stay what they are, and cannot overflow.
        a = np.bincount(place.ravel(), np.ldexp(weights[kept], -int(np.frexp(weights.max())[1])))
        a = a / a.sum()
        X, y = both[:, : X.shape[1]], both[:, X.shape[1] :]
        zero = not fit_intercept
        centre = np.zeros(X.shape[1]) if zero else a @ X
        # A constant is its own mean, whatever rounding makes of the sum: nothing is left to learn.
        mean = np.where((y == y[0]).all(axis=0), y[0], a @ y)
        middle = np.zeros(y.shape[1]) if zero else mean
        X, y = X - centre, y - middle
        scale, unit = np.sqrt(a @ X**2), float(np.sqrt((a @ y**2).sum()))
        scale = np.where(scale > 1e-13 * np.abs(centre), scale, 1.0)
        unit = unit if unit > 1e-13 * float(np.abs(middle).max()) else 1.0
        return cls(X / scale, y / unit, a, centre, scale, middle, unit, fit_intercept, ridge)

    def in_user_units(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients (m, d) and intercepts (m,) for the data as given."""
        given = self.unit * coef / self.scale
        return given, self.unit * intercept + self.middle - given @ self.centre

    def loss(self, coef: Floats, intercept: Floats) -> float:
        """Penalised mean loss, in the units of y."""
        errors = self.X @ coef.T + intercept - self.y
        penalty = self.ridge * float(((self.unit * coef / self.scale) ** 2).sum())
        return self.unit * float(self.weights @ np.linalg.norm(errors, axis=1)) + penalty


class RegressionSolver:
    """A linear model of some samples, as variables; each question is one program."""

    def __init__(self, errors: LinearErrors) -> None:
        self.cp = cp = cvxpy_for("SatisficingRegressor")
        self.errors = errors
        n, m = errors.y.shape
        self.coef, self.intercept = cp.Variable((m, errors.X.shape[1])), cp.Variable(m)
        self.limits = [] if errors.fit_intercept else [self.intercept == 0.0]
        shift = np.ones((n, 1)) @ cp.reshape(self.intercept, (1, m), order="C")
        left = errors.X @ self.coef.T + shift - errors.y
        lengths = cp.abs(left[:, 0]) if m == 1 else cp.norm(left, 2, axis=1)
        self.loss = errors.weights @ lengths
        if errors.ridge > 0.0:
            squares = cp.sum_squares(self.coef @ sparse.diags_array(1.0 / errors.scale))
            self.loss = self.loss + errors.ridge * errors.unit * squares
        #: Steps of all programs; whether the last was accurate, and all that a result rests on.
        self.steps, self.accurate, self.settled = 0, True, True

    def lowest(self, allowed: Mask) -> tuple[Floats, Floats]:
        """The model of the lowest loss that uses only some of the features."""
        if not self.errors.y.any():  # which no program would find to the last digit
            return np.zeros(self.coef.shape), np.zeros(self.intercept.shape)
        found = lowest(self.errors, allowed) if self.errors.y.shape[1] > 1 else None
        if found is not None:
            return self._split(found)
        limits = [self.coef[:, np.flatnonzero(~allowed)] == 0.0] if not allowed.all() else []
        self._run(self.loss, [*self.limits, *limits])
        self.settled &= self.accurate
        return self.coef.value, self.intercept.value

    def least_fragile(
        self, target: float, mobility: Floats, norm: float, inside: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """The model of the least slope at a target, moved to `inside` until it meets it."""
        cp, errors, metric = self.cp, self.errors, mobility / self.errors.scale
        metric = metric / metric.max()  # or Clarabel takes a small number for zero
        slope = slope_of(cp, self.coef @ sparse.diags_array(metric), norm)
        level, centre = target / errors.unit, self._joined(*inside)

        def met(parameters: Floats) -> Floats:
            way = centre - parameters
            if self._meets(parameters, target) or not self._meets(centre, target):
                return parameters
            share = first_share(lambda share: self._meets(parameters + share * way, target))
            return parameters + share * way

        def minimised(bounds: list[Any]) -> tuple[Floats, float]:
            value = self._run(slope, [*self.limits, *bounds])
            return self._joined(self.coef.value, self.intercept.value), value

        def met_with_slope(parameters: Floats) -> tuple[Floats, float]:
            there = met(parameters)
            moved = self._split(there)[0] * metric
            return there, steepest_error(moved, norm)

        found = None
        if errors.y.shape[1] > 1:
            column = cp.reshape(self.intercept, (errors.y.shape[1], 1), order="C")
            table = cp.hstack([self.coef, column]) if errors.fit_intercept else self.coef
            model = cp.reshape(table, (centre.size,), order="C")
            # The mean error is no longer than the mean of the errors' lengths: all is centred.
            known = [cp.norm(self.intercept) <= level]
            found = least_slope(errors, centre, level, minimised, met_with_slope, model, known, cp)
        if found is None:
            found = met(minimised([self.loss <= level])[0])
            self.settled &= self.accurate
        return self._split(found)

    def _meets(self, parameters: Floats, target: float) -> bool:
        return self.errors.loss(*self._split(parameters)) <= target

    def _joined(self, coef: Floats, intercept: Floats) -> Floats:
        """A model as one vector: the columns of y one after the other."""
        return np.ravel(np.column_stack([coef, intercept]) if self.errors.fit_intercept else coef)

    def _split(self, parameters: Floats) -> tuple[Floats, Floats]:
        table = parameters.reshape(self.errors.y.shape[1], -1)
        if self.errors.fit_intercept:
            return table[:, :-1], table[:, -1]
        return table, np.zeros(len(table))

    def _run(self, minimised: Any, limits: list[Any]) -> float:
        problem = self.cp.Problem(self.cp.Minimize(minimised), limits)
        advice = " Give another target, or scale the data."
        run_clarabel(self.cp, problem, advice, accurately=True)
        self.steps += int(problem.solver_stats.num_iters or 1)
        self.accurate = problem.status == self.cp.OPTIMAL
        return float(problem.value)


def slope_of(cp: Any, coef: Any, norm: float) -> Any:
    """The number of `losses.lipschitz.steepest_error` for a variable (m, d)."""
    if coef.shape[0] == 1:
        return cp.norm(coef[0], DUAL[norm])
    return cp.sigma_max(coef) if norm == 2 else cp.max(cp.norm(coef, 2, axis=0))
