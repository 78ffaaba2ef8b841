r"""Linear regression of the least fragility, through cvxpy.

.. math:: \min k \quad\text{s.t.}\quad
          \sum_n a_n \lVert B^T x_n + b - y_n \rVert_2 + R \le \tau,
          \quad \max_{\lVert \delta \rVert \le 1} \lVert B^T \delta \rVert_2 \le k

Features and y are centred and scaled first; identical samples are merged, so that weights and
repeated samples are the same program.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Floats, Mask
from .conic import cvxpy_for, run_clarabel

#: What Clarabel is asked for first. Where it cannot, its own accuracy has to do.
_ONCE, _ACCURATE = (0.99,), {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


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
        middle = np.zeros(y.shape[1]) if zero else a @ y
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
        self.steps = 0

    def lowest(self, allowed: Mask) -> tuple[Floats, Floats]:
        """The model of the lowest loss that uses only some of the features."""
        limits = [self.coef[:, np.flatnonzero(~allowed)] == 0.0] if not allowed.all() else []
        return self._run(self.loss, limits)

    def least_fragile(
        self, target: float, mobility: Floats, norm: float, inside: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """The model of the least slope at a target, moved to `inside` until it meets it."""
        errors, metric = self.errors, mobility / self.errors.scale
        metric = metric / metric.max()  # or Clarabel takes a small number for zero
        slope = slope_of(self.cp, self.coef @ sparse.diags_array(metric), norm)
        coef, intercept = self._run(slope, [self.loss <= target / errors.unit])

        def there(share: float) -> tuple[Floats, Floats]:
            return coef + share * (inside[0] - coef), intercept + share * (inside[1] - intercept)

        low, high = 0.0, 1.0
        if errors.loss(coef, intercept) <= target or errors.loss(*inside) > target:
            return coef, intercept
        while high - low > 1e-9 * high:
            middle = (low + high) / 2.0
            met = errors.loss(*there(middle)) <= target
            low, high = (low, middle) if met else (middle, high)
        return there(high)

    def _run(self, minimised: Any, limits: list[Any]) -> tuple[Floats, Floats]:
        problem = self.cp.Problem(self.cp.Minimize(minimised), [*self.limits, *limits])
        advice = " Give another target, or scale the data."
        with suppress(RuntimeError):
            run_clarabel(self.cp, problem, advice, _ONCE, **_ACCURATE)
        if problem.status != self.cp.OPTIMAL:
            run_clarabel(self.cp, problem, advice)
        self.steps += int(problem.solver_stats.num_iters or 1)
        return self.coef.value, self.intercept.value


def slope_of(cp: Any, coef: Any, norm: float) -> Any:
    """The number of `certificates.regression.steepest_error` for a variable (m, d)."""
    if coef.shape[0] == 1:
        return cp.norm(coef[0], {1: "inf", 2: 2, inf: 1}[norm])
    return cp.sigma_max(coef) if norm == 2 else cp.max(cp.norm(coef, 2, axis=0))
