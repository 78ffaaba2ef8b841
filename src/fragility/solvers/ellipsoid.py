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

from .._typing import Floats
from .cones import SecondOrder
from .factor import Cholesky
from .interior_parts import ConePart, Move
from .norm_cones import Normal, PairBallCone

_MAX_STEPS = 60
#: A norm is known at best to this share of the norm of the centre.
_ROUNDING = 1e-14


class Ellipsoid(NamedTuple):
    """The points with (z - centre)ᵀ matrix (z - centre) ≤ radius².

    `matrix` is factor @ factor.T; `pull` is matrix @ centre, perhaps known more exactly.
    """

    matrix: Floats
    factor: Floats
    centre: Floats
    radius: float
    pull: Floats


class LeastNorm(NamedTuple):
    """The model, its norm, and the multiplier: how fast the norm falls as ½ radius² grows."""

    table: Floats
    norm: float
    multiplier: float


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
    """Primal-dual steps that minimise k, with the ellipsoid and the norm as cones.

    The margins stay exact: they start so, and move with the variables.
    """

    def __init__(self, ellipsoid: Ellipsoid, cone: Any) -> None:
        self.ellipsoid = ellipsoid
        self.norm_cone = cone
        self.n_main = cone.n_main
        centre = ellipsoid.centre.reshape(cone.shape)
        self.x = cone.start(centre, 1.1 * cone.norm(centre))
        self.cost = np.zeros(self.x.size)
        self.cost[self.n_main] = 1.0
        at_centre = np.zeros(self.n_main + 1)
        at_centre[0] = ellipsoid.radius
        self.parts = [ConePart(SecondOrder(), at_centre), ConePart(cone.cone, cone.forward(self.x))]
        share = 1.0 / self.adjoint([part.dual for part in self.parts])[self.n_main]
        for part in self.parts:
            part.dual = share * part.dual

    def forward(self, x: Floats) -> list[Floats]:
        """Linear part of the margins."""
        inside = np.empty(self.n_main + 1)
        inside[0] = 0.0
        inside[1:] = self.ellipsoid.factor.T @ x[: self.n_main]
        return [inside, self.norm_cone.forward(x)]

    def adjoint(self, y: list[Floats]) -> Floats:
        total: Floats = self.norm_cone.adjoint(y[1])
        total[: self.n_main] += self.ellipsoid.factor @ y[0][1:]
        return total

    def solve(self, tol: float) -> LeastNorm:
        degree = sum(part.degree for part in self.parts)
        floor = _ROUNDING * self.x[self.n_main]
        for _ in range(_MAX_STEPS):
            gap = sum(part.gap() for part in self.parts)
            near = gap <= max(tol * self.x[self.n_main], floor)
            if near or not all(part.inside() for part in self.parts):
                break
            for part in self.parts:
                part.rescale()
            if not all(part.kind.inside(part.scaling.point) for part in self.parts):
                break
            try:
                system = self._factorised()
            except LinAlgError:
                break  # as near as rounding lets us
            # Straight to the optimum, first; then with what that shows, to a point before it.
            _, moves = self._direction(system, -self.cost, [None, None])
            length = min(1.0, self._longest(moves))
            left = sum(float(np.vdot(move.margin, move.dual)) for move in moves)
            left = (1.0 - length) * gap + length**2 * left
            aimed = gap / degree * max(0.0, left / gap) ** 3
            pulls = [part.pull(aimed, move) for part, move in zip(self.parts, moves, strict=True)]
            back = [part.scaling.undo(p) for part, p in zip(self.parts, pulls, strict=True)]
            step, moves = self._direction(system, self.adjoint(back) - self.cost, [*pulls])
            length = min(1.0, 0.99 * self._longest(moves))
            if length < 1e-8:
                break
            self.x = self.x + length * step
            pairs = zip(self.parts, moves, strict=True)
            self.parts = [part.after(move, length) for part, move in pairs]
        table, _, _ = self.norm_cone.split(self.x)
        # The multiplier of ½ (z - c)ᵀ A (z - c) ≤ ½ r² is the cone's multiplier over the radius.
        multiplier = float(self.parts[0].dual[0]) / self.ellipsoid.radius
        return LeastNorm(table, self.norm_cone.norm(table), multiplier)

    def _factorised(self) -> tuple[Cholesky, Floats]:
        ball, norm = (part.scaling for part in self.parts)
        eta = float(ball.eta)
        normal = Normal(self.ellipsoid.matrix / eta**2)
        pull = self.ellipsoid.factor @ (sqrt(2.0) / eta * ball.w[1:])
        normal.main += np.multiply.outer(pull, pull)
        self.norm_cone.add_normal(normal, norm)
        matrix = normal.matrix()
        balance = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= balance
        matrix *= balance[:, np.newaxis]
        matrix[np.diag_indices(len(matrix))] += 1e-15
        return Cholesky(matrix), balance

    def _direction(
        self, system: tuple[Cholesky, Floats], right: Floats, pulls: list[Floats | None]
    ) -> tuple[Floats, list[Move]]:
        """A step of the variables by the normal equations, and what the parts do along it."""
        factor, balance = system
        scaling = self.parts[1].scaling
        reduced = self.norm_cone.eliminate(right, scaling)
        main = factor.solve(reduced * balance) * balance
        x = self.norm_cone.complete(main, right, scaling)
        changes = zip(self.parts, self.forward(x), pulls, strict=True)
        return x, [part.along(change, pull) for part, change, pull in changes]

    def _longest(self, moves: list[Move]) -> float:
        pairs = zip(self.parts, moves, strict=True)
        return min(part.longest(move) for part, move in pairs)
