r"""The least norm in an ellipsoid where the answer is about known: one row in ℓ1 or ℓ∞.

Balls of these norms have faces, and on a given face the problem has a closed form. The face of a
point near the solution is tried first, then whatever face the signs of the multipliers point to:
a few small systems replace an interior-point search. A result meets all conditions of an optimum;
if no face meets them, the result is None.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats, Indices
from .ellipsoid import Ellipsoid, LeastNorm
from .factor import Cholesky
from .norm_cones import BoxCone, OctahedronCone

#: Faces that are tried.
_TRIES = 15
#: Entries of at least this share of the largest are held there at first, and entries below that
#: share of it at zero. To hold too many costs a try, too few may lead nowhere.
_LONG, _SHORT = 0.5, 0.01
#: Rounding that does not break a condition.
_EXACT = 1e-10


def least_norm_near(ellipsoid: Ellipsoid, cone: Any, near: Floats) -> LeastNorm | None:
    """Least norm over an ellipsoid, from a point near the solution; None if no face is found."""
    faces = {BoxCone: _on_box, OctahedronCone: _on_octahedron}
    if cone.shape[0] > 1 or type(cone) not in faces:
        return None
    try:
        return faces[type(cone)](ellipsoid, near)
    except LinAlgError:
        return None


def _on_box(ellipsoid: Ellipsoid, near: Floats) -> LeastNorm | None:
    """Minimise the largest entry t: those held there are ± t, the others free."""
    matrix, pull = ellipsoid.matrix, ellipsoid.pull
    held = np.abs(near) >= _LONG * np.abs(near).max()
    signs = np.sign(near)
    for _ in range(_TRIES):
        # The best entries for t are linear in it: base + t * slope.
        slope = np.where(held, signs, 0.0)
        base = np.zeros(near.size)
        free = np.flatnonzero(~held)
        if free.size:
            factor = Cholesky(matrix[np.ix_(free, free)])
            base[free] = factor.solve(pull[free])
            slope[free] = -factor.solve(matrix[free] @ slope)
        away = base - ellipsoid.centre
        bent, turned = matrix @ slope, matrix @ away
        a, b = float(slope @ bent), -float(slope @ turned)
        square = b**2 - a * (float(away @ turned) - ellipsoid.radius**2)
        if a <= 0.0:
            return None
        # A face that the ellipsoid does not reach is left where it is nearest.
        t = (b - sqrt(max(square, 0.0))) / a
        row = base + t * slope
        multipliers = -signs * (matrix @ row - pull)
        total = float(np.abs(multipliers[held]).sum())
        if t <= 0.0:
            return None
        too_long = ~held & (np.abs(row) > t * (1.0 + _EXACT))
        let_go = held & (multipliers < -_EXACT * total)
        if not (too_long.any() or let_go.any()):
            found = LeastNorm(row[np.newaxis], t, 1.0 / total)
            return found if square > 0.0 and total > 0.0 else None
        signs = np.where(too_long, np.sign(row), signs)
        held = held & ~let_go if square <= 0.0 else (held & ~let_go) | too_long
        if not held.any():
            return None
    return None


def _on_octahedron(ellipsoid: Ellipsoid, near: Floats) -> LeastNorm | None:
    """Minimise the sum of the entries' sizes: some are zero, the signs of the others known."""
    matrix, pull = ellipsoid.matrix, ellipsoid.pull
    signs = np.where(np.abs(near) > _SHORT * np.abs(near).max(), np.sign(near), 0.0)
    for _ in range(_TRIES):
        used: Indices = np.flatnonzero(signs)
        if used.size == 0:
            return None
        factor = Cholesky(matrix[np.ix_(used, used)])
        best, way = factor.solve(pull[used]), factor.solve(signs[used])
        away = -ellipsoid.centre
        away[used] += best
        room = ellipsoid.radius**2 - float(away @ matrix @ away)
        if room <= 0.0:
            return None
        step = sqrt(room / float(signs[used] @ way))
        row = np.zeros(near.size)
        row[used] = best - step * way
        slopes = (matrix @ row - pull) / step
        norm = float(signs @ row)
        crossed = signs * row < 0.0
        wanted = (signs == 0.0) & (np.abs(slopes) > 1.0 + _EXACT)
        if norm <= 0.0:
            return None
        if not (crossed.any() or wanted.any()):
            return LeastNorm(row[np.newaxis], norm, 1.0 / step)
        signs = np.where(crossed, 0.0, np.where(wanted, -np.sign(slopes), signs))
    return None
