r"""The model of least norm in an ellipsoid.

.. math:: \min_Z \lVert Z \rVert \quad\text{s.t.}\quad (z - c)^\top A (z - c) \le r^2

where :math:`z` is the table Z as one vector. Its size does not depend on the number of samples.
For one row in ℓ2 it is one equation in the multiplier; else a primal-dual interior-point method
(Mehrotra's steps, Nesterov and Todd's scaling) on the cones of `norm_cones`.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..moments import Floats
from .cones import SecondOrder
from .norm_cones import Normal, PairBallCone

__all__ = ["Ellipsoid", "LeastNorm", "least_norm"]

_MAX_STEPS = 60


class Ellipsoid(NamedTuple):
    """The points with (z - centre)ᵀ matrix (z - centre) ≤ radius²; `factor` is lower triangular."""

    matrix: Floats
    factor: Floats
    centre: Floats
    radius: float


class LeastNorm(NamedTuple):
    """The model, its norm, and by how much the norm falls as ½ radius² grows."""

    table: Floats
    norm: float
    price: float


def least_norm(ellipsoid: Ellipsoid, cone: Any, tol: float) -> LeastNorm:
    """Least norm over an ellipsoid, to a relative accuracy."""
    reach = ellipsoid.factor.T @ ellipsoid.centre
    if sqrt(float(reach @ reach)) <= ellipsoid.radius:
        return LeastNorm(np.zeros(cone.shape), 0.0, 0.0)
    if isinstance(cone, PairBallCone) and cone.shape[0] == 1:
        return _least_length(ellipsoid, tol)
    return _InteriorPoint(ellipsoid, cone).solve(tol)


def _least_length(ellipsoid: Ellipsoid, tol: float) -> LeastNorm:
    """One row in ℓ2: z = c - e with (1 + ν A) e = c, at the ν where e reaches the radius."""
    matrix, centre, radius = ellipsoid.matrix, ellipsoid.centre, ellipsoid.radius
    low, high = 0.0, inf
    length = sqrt(float(centre @ centre))
    pull = matrix @ centre
    multiplier = length / (radius * sqrt(float(pull @ pull))) * sqrt(float(pull @ centre)) / length
    for _ in range(_MAX_STEPS):
        system = multiplier * matrix
        system[np.diag_indices(len(centre))] += 1.0
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        rest = cho_solve(factor, centre, check_finite=False)
        pull = matrix @ rest
        reach = sqrt(float(rest @ pull))
        if reach > radius:
            low = multiplier
        else:
            high = multiplier
        if abs(reach - radius) <= tol * radius:
            break
        # 1 / reach is nearly linear in the multiplier (Moré and Sorensen).
        slope = float(pull @ cho_solve(factor, pull, check_finite=False)) / reach
        following = multiplier + (reach / radius - 1.0) * reach / slope
        if not low < following < high:
            following = sqrt(low * high) if low > 0.0 else high / 10.0
            following = following if following < inf else 10.0 * multiplier
        multiplier = following
    row = centre - rest
    norm = sqrt(float(row @ row))
    return LeastNorm(row[np.newaxis], norm, multiplier / norm)


class _InteriorPoint:
    """Primal-dual steps on: minimise k, the ellipsoid and the norm being cones."""

    def __init__(self, ellipsoid: Ellipsoid, cone: Any) -> None:
        self.ellipsoid = ellipsoid
        self.norm_cone = cone
        self.n_main = cone.n_main
        self.cones = (SecondOrder, cone.cone)

    def forward(self, x: Floats) -> list[Floats]:
        """Linear part of the slacks."""
        inside = self.ellipsoid.factor.T @ x[: self.n_main]
        return [np.concatenate([[0.0], inside]), self.norm_cone.forward(x)]

    def adjoint(self, y: list[Floats]) -> Floats:
        total: Floats = self.norm_cone.adjoint(y[1])
        total[: self.n_main] += self.ellipsoid.factor @ y[0][1:]
        return total

    def solve(self, tol: float) -> LeastNorm:
        ellipsoid, norm_cone = self.ellipsoid, self.norm_cone
        start = ellipsoid.centre.reshape(norm_cone.shape)
        constant = np.concatenate([[ellipsoid.radius], -(ellipsoid.factor.T @ ellipsoid.centre)])
        x = norm_cone.start(start, 1.1 * norm_cone.norm(start))
        # The centre in the gauge of the norm, which is one of all classes alike, is still a centre.
        constant[1:] = -(ellipsoid.factor.T @ x[: self.n_main])
        slack = self.forward(x)
        slack[0] = slack[0] + constant
        dual = [cone.inverse(s) for cone, s in zip(self.cones, slack, strict=True)]
        share = 1.0 / self.adjoint(dual)[self.n_main]
        dual = [share * y for y in dual]
        degree = sum(cone.degree(s) for cone, s in zip(self.cones, slack, strict=True))
        cost = np.zeros(x.size)
        cost[self.n_main] = 1.0
        for _ in range(_MAX_STEPS):
            primal = self.forward(x)
            primal[0] = primal[0] + constant
            gaps = [s - p for s, p in zip(slack, primal, strict=True)]
            stationary = cost - self.adjoint(dual)
            mean = sum(float((s * y).sum()) for s, y in zip(slack, dual, strict=True)) / degree
            if mean * degree <= tol * x[self.n_main]:
                break
            scalings = [c.scaling(s, y) for c, s, y in zip(self.cones, slack, dual, strict=True)]
            try:
                system = self._factorised(scalings)
            except LinAlgError:
                break  # as near as rounding lets us
            aim = [-scaling.point for scaling in scalings]
            step = self._direction(system, scalings, stationary, gaps, aim)
            length = min(1.0, self._longest(scalings, step))
            following = (
                sum(
                    float(((s + length * ds) * (y + length * dy)).sum())
                    for s, y, ds, dy in zip(slack, dual, step.slack, step.dual, strict=True)
                )
                / degree
            )
            centring = max(0.0, following / mean) ** 3
            aim = []
            for cone, scaling, ds, dy in zip(
                self.cones, scalings, step.slack, step.dual, strict=True
            ):
                second = cone.product(scaling.undo(ds), scaling.apply(dy))
                point = scaling.point
                wanted = centring * mean * cone.one(point) - cone.product(point, point) - second
                aim.append(cone.divide(point, wanted))
            step = self._direction(system, scalings, stationary, gaps, aim)
            length = min(1.0, 0.99 * self._longest(scalings, step))
            if length < 1e-8:
                break
            x = x + length * step.x
            slack = [s + length * ds for s, ds in zip(slack, step.slack, strict=True)]
            dual = [y + length * dy for y, dy in zip(dual, step.dual, strict=True)]
        table, _, _ = norm_cone.split(x)
        # The multiplier of ½ (z - c)ᵀ A (z - c) ≤ ½ r² is that of the cone over the radius.
        return LeastNorm(table, norm_cone.norm(table), float(dual[0][0]) / ellipsoid.radius)

    def _factorised(self, scalings: list[Any]) -> Any:
        w, eta = scalings[0].w, float(scalings[0].eta)
        normal = Normal(self.ellipsoid.matrix / eta**2)
        pull = self.ellipsoid.factor @ (sqrt(2.0) / eta * w[1:])
        normal.main += np.multiply.outer(pull, pull)
        self.norm_cone.add_normal(normal, scalings[1])
        matrix = normal.matrix()
        balance = np.sqrt(np.diag(matrix))
        matrix /= np.multiply.outer(balance, balance)
        matrix[np.diag_indices(len(matrix))] += 1e-15
        return cho_factor(matrix, overwrite_a=True, check_finite=False), balance

    def _direction(
        self,
        system: Any,
        scalings: list[Any],
        stationary: Floats,
        gaps: list[Floats],
        aim: list[Floats],
    ) -> _Step:
        """Solve the linearised conditions for the scaled complementarity `aim`."""
        factor, balance = system
        pushed = [
            scaling.undo(scaling.undo(-gap - scaling.apply(a)))
            for scaling, gap, a in zip(scalings, gaps, aim, strict=True)
        ]
        right = -stationary - self.adjoint(pushed)
        reduced = self.norm_cone.eliminate(right, scalings[1])
        main = cho_solve(factor, reduced / balance, check_finite=False) / balance
        x = self.norm_cone.complete(main, right, scalings[1])
        moved = self.forward(x)
        slack = [m - gap for m, gap in zip(moved, gaps, strict=True)]
        dual = [
            scaling.undo(a - scaling.undo(ds))
            for scaling, a, ds in zip(scalings, aim, slack, strict=True)
        ]
        return _Step(x, slack, dual)

    def _longest(self, scalings: list[Any], step: _Step) -> float:
        longest = np.inf
        for cone, scaling, ds, dy in zip(self.cones, scalings, step.slack, step.dual, strict=True):
            for move in (scaling.undo(ds), scaling.apply(dy)):
                longest = min(longest, cone.longest(scaling.point, move))
        return longest


class _Step(NamedTuple):
    x: Floats
    slack: list[Floats]
    dual: list[Floats]
