r"""The model of least norm in an ellipsoid.

.. math:: \min_Z \lVert Z \rVert \quad\text{s.t.}\quad (z - c)^\top A (z - c) \le r^2

where :math:`z` is the table Z as one vector. Its size does not depend on the number of samples.
For one row in ℓ2 it is one equation in the multiplier, else an interior-point program.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats
from .factor import Cholesky
from .interior_program import Ball, InteriorProgram
from .norm_cones import PairBallCone, Shape
from .searching import Search, solution_of

_MOST_STEPS = 60


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


def least_norm(ellipsoid: Ellipsoid, cone: Any, tol: float) -> Search[LeastNorm]:
    """Least norm over an ellipsoid, to a relative accuracy."""
    reach = ellipsoid.factor.T @ ellipsoid.centre
    if sqrt(float(reach @ reach)) <= ellipsoid.radius:
        return LeastNorm(np.zeros(cone.shape), 0.0, 0.0)
    if isinstance(cone, PairBallCone) and cone.shape[0] == 1:
        return _least_length(ellipsoid, tol)
    centre = ellipsoid.centre
    shape = Shape(cone, np.arange(centre.size), np.ones(centre.size))
    program = InteriorProgram(
        centre,
        tol,
        _MOST_STEPS,
        1.1 * shape.norm(centre),
        shape=shape,
        ball=Ball(ellipsoid.matrix, ellipsoid.factor, ellipsoid.radius),
    )
    found = yield from solution_of(program)
    table = found.parameters.reshape(cone.shape)
    return LeastNorm(table, shape.norm(found.parameters), found.multiplier)


def _least_length(ellipsoid: Ellipsoid, tol: float) -> LeastNorm:
    """One row in ℓ2: z = c - e with (1 + ν A) e = c, at the ν where e reaches the radius."""
    matrix, centre, radius = ellipsoid.matrix, ellipsoid.centre, ellipsoid.radius
    low, high = 0.0, inf
    length = sqrt(float(centre @ centre))
    pull = ellipsoid.pull
    multiplier = length / (radius * sqrt(float(pull @ pull))) * sqrt(float(pull @ centre)) / length
    for _ in range(_MOST_STEPS):
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
