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
from scipy.linalg import LinAlgError

from ..moments import Floats
from .cones import SecondOrder
from .factor import Cholesky
from .norm_cones import Normal, PairBallCone

_MAX_STEPS = 60
#: A norm is no better known than to this share of that of the centre.
_ROUNDING = 1e-14


class Ellipsoid(NamedTuple):
    """The points with (z - centre)ᵀ matrix (z - centre) ≤ radius².

    `matrix` is factor @ factor.T; `pull` is matrix @ centre, which its maker may know better.
    """

    matrix: Floats
    factor: Floats
    centre: Floats
    radius: float
    pull: Floats


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
    pull = ellipsoid.pull
    multiplier = length / (radius * sqrt(float(pull @ pull))) * sqrt(float(pull @ centre)) / length
    for _ in range(_MAX_STEPS):
        system = multiplier * matrix
        system[np.diag_indices(len(centre))] += 1.0
        factor = Cholesky(system)
        rest = factor.solve(centre)
        pull = matrix @ rest
        reach = sqrt(float(rest @ pull))
        if reach > radius:
            low = multiplier
        else:
            high = multiplier
        if abs(reach - radius) <= tol * radius:
            break
        # 1 / reach is nearly linear in the multiplier (Moré and Sorensen).
        slope = float(pull @ factor.solve(pull)) / reach
        following = multiplier + (reach / radius - 1.0) * reach / slope
        if not low < following < high:
            following = sqrt(low * high) if low > 0.0 else high / 10.0
            following = following if following < inf else 10.0 * multiplier
        multiplier = following
    # Not centre - rest, which cancels where the centre is far and the row short.
    row = multiplier * factor.solve(ellipsoid.pull)
    norm = sqrt(float(row @ row))
    return LeastNorm(row[np.newaxis], norm, multiplier / norm if norm > 0.0 else 0.0)


class _InteriorPoint:
    """Primal-dual steps on: minimise k, the ellipsoid and the norm being cones.

    The slacks are exact throughout: they start so, and move with the variables.
    """

    def __init__(self, ellipsoid: Ellipsoid, cone: Any) -> None:
        self.ellipsoid = ellipsoid
        self.norm_cone = cone
        self.n_main = cone.n_main
        self.cones = (SecondOrder, cone.cone)

    def forward(self, x: Floats) -> list[Floats]:
        """Linear part of the slacks."""
        inside = np.empty(self.n_main + 1)
        inside[0] = 0.0
        inside[1:] = self.ellipsoid.factor.T @ x[: self.n_main]
        return [inside, self.norm_cone.forward(x)]

    def adjoint(self, y: list[Floats]) -> Floats:
        total: Floats = self.norm_cone.adjoint(y[1])
        total[: self.n_main] += self.ellipsoid.factor @ y[0][1:]
        return total

    def solve(self, tol: float) -> LeastNorm:
        ellipsoid, norm_cone = self.ellipsoid, self.norm_cone
        centre = ellipsoid.centre.reshape(norm_cone.shape)
        x = norm_cone.start(centre, 1.1 * norm_cone.norm(centre))
        slack = self.forward(x)
        slack[0] = np.zeros(self.n_main + 1)  # at the centre
        slack[0][0] = ellipsoid.radius
        dual = [cone.inverse(s) for cone, s in zip(self.cones, slack, strict=True)]
        share = 1.0 / self.adjoint(dual)[self.n_main]
        dual = [share * y for y in dual]
        degree = sum(cone.degree(s) for cone, s in zip(self.cones, slack, strict=True))
        cost = np.zeros(x.size)
        cost[self.n_main] = 1.0
        floor = _ROUNDING * x[self.n_main]
        for _ in range(_MAX_STEPS):
            gap = _inner(slack, dual)
            if gap <= max(tol * x[self.n_main], floor) or not self._inside(slack, dual):
                break
            scalings = [c.scaling(s, y) for c, s, y in zip(self.cones, slack, dual, strict=True)]
            points = [scaling.point for scaling in scalings]
            if not self._inside(points, points):
                break
            try:
                system = self._factorised(scalings)
            except LinAlgError:
                break  # as near as rounding lets us
            # Straight to the optimum, first; then with what that shows, to a point before it.
            step = self._direction(system, scalings, -cost, [-point for point in points])
            length = min(1.0, self._longest(points, step))
            left = (1.0 - length) * gap + length**2 * _inner(step.slack, step.dual)
            aimed = gap / degree * max(0.0, left / gap) ** 3
            pulls = []
            for cone, point, ds, dy in zip(self.cones, points, step.slack, step.dual, strict=True):
                pulls.append(cone.divide(point, aimed * cone.one(point) - cone.product(ds, dy)))
            back = [scaling.undo(pull) for scaling, pull in zip(scalings, pulls, strict=True)]
            aim = [pull - point for pull, point in zip(pulls, points, strict=True)]
            step = self._direction(system, scalings, self.adjoint(back) - cost, aim)
            length = min(1.0, 0.99 * self._longest(points, step))
            if length < 1e-8:
                break
            x = x + length * step.x
            for i, scaling in enumerate(scalings):
                slack[i] = slack[i] + length * scaling.apply(step.slack[i])
                dual[i] = dual[i] + length * scaling.undo(step.dual[i])
        table, _, _ = norm_cone.split(x)
        # The multiplier of ½ (z - c)ᵀ A (z - c) ≤ ½ r² is that of the cone over the radius.
        return LeastNorm(table, norm_cone.norm(table), float(dual[0][0]) / ellipsoid.radius)

    def _inside(self, slack: list[Floats], dual: list[Floats]) -> bool:
        """Whether rounding has left slacks and multipliers in their cones."""
        return all(
            cone.inside(s) and cone.inside(y)
            for cone, s, y in zip(self.cones, slack, dual, strict=True)
        )

    def _factorised(self, scalings: list[Any]) -> tuple[Cholesky, Floats]:
        w, eta = scalings[0].w, float(scalings[0].eta)
        normal = Normal(self.ellipsoid.matrix / eta**2)
        pull = self.ellipsoid.factor @ (sqrt(2.0) / eta * w[1:])
        normal.main += np.multiply.outer(pull, pull)
        self.norm_cone.add_normal(normal, scalings[1])
        matrix = normal.matrix()
        balance = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= balance
        matrix *= balance[:, np.newaxis]
        matrix[np.diag_indices(len(matrix))] += 1e-15
        return Cholesky(matrix), balance

    def _direction(
        self,
        system: tuple[Cholesky, Floats],
        scalings: list[Any],
        right: Floats,
        aim: list[Floats],
    ) -> _Step:
        """Move x by the normal equations; slacks and multipliers, scaled, then add up to `aim`."""
        factor, balance = system
        reduced = self.norm_cone.eliminate(right, scalings[1])
        main = factor.solve(reduced * balance) * balance
        x = self.norm_cone.complete(main, right, scalings[1])
        slack = [
            scaling.undo(move) for scaling, move in zip(scalings, self.forward(x), strict=True)
        ]
        return _Step(x, slack, [a - ds for a, ds in zip(aim, slack, strict=True)])

    def _longest(self, points: list[Floats], step: _Step) -> float:
        longest = np.inf
        for cone, point, *moves in zip(self.cones, points, step.slack, step.dual, strict=True):
            for move in moves:
                longest = min(longest, cone.longest(point, move))
        return longest


class _Step(NamedTuple):
    """A step of the variables, and those of slacks and multipliers as the scaling sees them."""

    x: Floats
    slack: list[Floats]
    dual: list[Floats]


def _inner(a: list[Floats], b: list[Floats]) -> float:
    return sum(float(np.vdot(one, other)) for one, other in zip(a, b, strict=True))
