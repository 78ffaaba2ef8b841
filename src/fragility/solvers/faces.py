r"""The least norm in an ellipsoid where the answer is about known: one row in ℓ1 or ℓ∞.

Balls of these norms have faces, and on a given face the problem has a closed form. The face of a
point near the solution is tried first, then whatever face the signs of the multipliers point to:
a few small systems replace an interior-point search. A result meets all conditions of an optimum;
if no face meets them, the result is None.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats
from .ellipsoid import LeastNorm
from .norm_cones import BoxCone, OctahedronCone
from .quadratic import Form

#: Faces that are tried.
_TRIES = 15
#: Entries of at least this share of the largest are held there at first, and entries below that
#: share of it at zero. To hold too many costs a try, too few may lead nowhere.
_LONG, _SHORT = 0.5, 0.01
#: Rounding that does not break a condition.
_EXACT = 1e-10


class Quadric(NamedTuple):
    """The points with slope · δ + ½ δᵀ A δ ≤ room for their distance δ to one of them.

    `form` is A; `pull` is A @ point - slope, minus the slope at zero.
    """

    form: Form
    point: Floats
    slope: Floats
    room: float
    pull: Floats

    @classmethod
    def about(cls, point: Floats, form: Form, slope: Floats, room: float) -> Quadric:
        """The points near one where the slope is known."""
        return cls(form, point, slope, room, form @ point - slope)


def least_norm_near(body: Quadric, cone: Any, near: Floats) -> LeastNorm | None:
    """Least norm over an ellipsoid, from a point near the solution; None if no face is found."""
    faces = {BoxCone: _on_box, OctahedronCone: _on_octahedron}
    if cone.shape[0] > 1 or type(cone) not in faces or not near.any():
        return None
    try:
        return faces[type(cone)](body, near)
    except LinAlgError:
        return None


def _on_box(body: Quadric, near: Floats) -> LeastNorm | None:
    """Minimise the largest entry t: those held there are ± t, the others free."""
    sizes, signs = np.abs(near), np.sign(near)
    held = sizes >= (1.0 - _EXACT) * sizes.max()
    if np.count_nonzero(held) <= 1:  # not on a face itself
        held = sizes >= min(_LONG * sizes.max(), np.sort(sizes)[body.form.freedom - 1])
    nothing = np.zeros(near.size)
    for _ in range(_TRIES):
        # The best entries for t are linear in it: base + t * slope.
        fixed = np.array([np.where(held, signs, 0.0), nothing])
        parts = body.form.face(~held).point(fixed, np.array([nothing, body.pull]))
        (slope, base), (bent, turned) = parts
        away, force = base - body.point, turned - body.pull
        a, b = float(slope @ bent), -float(slope @ force)
        square = b**2 - a * (float(away @ (force + body.slope)) - 2.0 * body.room)
        if a <= 0.0:
            return None
        # A face that the ellipsoid does not reach is left where it is nearest.
        t = (b - sqrt(max(square, 0.0))) / a
        row = base + t * slope
        multipliers = -signs * (force + t * bent)
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


def _on_octahedron(body: Quadric, near: Floats) -> LeastNorm | None:
    """Minimise the sum of the entries' sizes: some are zero, the signs of the others known."""
    sizes, signs = np.abs(near), np.sign(near)
    guesses = [signs]
    if sizes.all():  # not on a face itself
        least = max(_SHORT * sizes.max(), np.sort(sizes)[-body.form.freedom])
        guesses = [np.where(sizes >= size, signs, 0.0) for size in (_SHORT * sizes.max(), least)]
    signs = guesses.pop()
    for _ in range(_TRIES):
        used = signs != 0.0
        if not used.any():
            return None
        pulls = np.array([body.pull, signs])
        (best, way), (turned, bent) = body.form.face(used).point(np.zeros(pulls.shape), pulls)
        away, force = best - body.point, turned - body.pull
        room = 2.0 * body.room - float(away @ (force + body.slope))
        if room <= 0.0 and not guesses:
            return None
        if room <= 0.0:  # the ellipsoid does not reach so small a face
            signs = guesses.pop()
            continue
        step = sqrt(room / float(signs @ way))
        row = best - step * way
        slopes = (force - step * bent) / step
        norm = float(signs @ row)
        crossed = signs * row < 0.0
        wanted = ~used & (np.abs(slopes) > 1.0 + _EXACT)
        if norm <= 0.0:
            return None
        if not (crossed.any() or wanted.any()):
            return LeastNorm(row[np.newaxis], norm, 1.0 / step)
        signs = np.where(crossed, 0.0, np.where(wanted, -np.sign(slopes), signs))
    return None
