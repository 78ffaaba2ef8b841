r"""The least norm in an ellipsoid where the answer is about known: one row in ℓ1 or ℓ∞.

Balls of these norms have faces, and on a given face the problem has a closed form. The face of a
point near the solution is tried first, then whatever face the signs of the multipliers point to:
a few small systems replace an interior-point search. A result meets all conditions of an optimum;
if no face meets them, the result is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats
from .ellipsoid import LeastNorm
from .norm_cones import BoxCone, OctahedronCone
from .quadratic import Form

#: Entries of at least this share of the largest are held there at first, and entries below that
#: share of it at zero. To hold too many costs a try, too few may lead nowhere.
_LONG, _SHORT = 0.5, 0.01
#: If so many free entries lead nowhere: parts of them.
_PARTS = (1, 4, 16)
#: Share of the entries on the wrong side that change it at least.
_LEAST_SHARE = 0.125
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


class _Trial(NamedTuple):
    """The best point on a face, and the face that it points to.

    A face is a sign for each entry: of those held at the largest size of a box, or of those that
    are not zero in an octahedron; the others have none. `violations` say by how much an entry is on
    the wrong side; `reached` whether the ellipsoid meets the face.
    """

    best: LeastNorm
    following: Floats
    violations: Floats
    reached: bool = True


def least_norm_near(body: Quadric, cone: Any, near: Floats) -> LeastNorm | None:
    """Least norm over an ellipsoid, from a point near the solution; None if no face is found."""
    ways: dict[Any, Any] = {
        BoxCone: (_box_guesses, _on_box),
        OctahedronCone: (_octahedron_guesses, _on_octahedron),
    }
    if cone.shape[0] > 1 or type(cone) not in ways or not near.any():
        return None
    guesses, trial_of = ways[type(cone)]
    tries = iter(range(body.form.tries))
    for signs in guesses(near, body.form.freedom):
        found = _from_face(body, signs, trial_of, tries)
        if found is not None:
            return found
    return None


def _from_face(body: Quadric, signs: Floats, trial_of: Any, tries: Iterator[int]) -> Any:
    """Go from face to face, to all entries that a face points to while that leads on.

    Where it leads nowhere, or to more violations, only to the worst of them.
    """
    last, fewest, share = None, inf, 1.0
    for _ in tries:
        try:
            trial = trial_of(body, signs)
        except LinAlgError:
            trial = None
        if trial is None and (last is None or share < 0.01):
            return None
        if trial is None:
            share /= 4.0
        else:
            count = np.count_nonzero(trial.violations)
            if count == 0:
                return trial.best if trial.reached else None
            share = min(1.0, 2.0 * share) if count < fewest else max(share / 2.0, _LEAST_SHARE)
            fewest, last = min(count, fewest), (signs, trial)
        signs = _followed(*last, share)
    return None


def _followed(signs: Floats, trial: _Trial, share: float) -> Floats:
    """The face that a trial points to, by a share of the violations of each kind."""
    if share == 1.0:
        return np.where(trial.violations > 0.0, trial.following, signs)
    signs = signs.copy()
    for kind in (signs == 0.0, signs != 0.0):
        (wrong,) = np.nonzero(kind & (trial.violations > 0.0))
        count = ceil(share * wrong.size)
        worst = wrong[np.argsort(-trial.violations[wrong])[:count]]
        signs[worst] = trial.following[worst]
    return signs


def _box_guesses(near: Floats, freedom: int) -> Iterator[Floats]:
    """Faces of a box near a point: entries held at the largest size."""
    sizes, signs = np.abs(near), np.sign(near)
    longest = sizes >= (1.0 - _EXACT) * sizes.max()
    if np.count_nonzero(longest) > 1:  # on a face itself
        yield np.where(longest, signs, 0.0)
    for part in _PARTS:
        least = min(_LONG * sizes.max(), np.sort(sizes)[min(freedom // part, sizes.size - 1)])
        yield np.where(sizes >= least, signs, 0.0)


def _octahedron_guesses(near: Floats, freedom: int) -> Iterator[Floats]:
    """Faces of an octahedron near a point: entries that are not zero."""
    sizes, signs = np.abs(near), np.sign(near)
    if not sizes.all():  # on a face itself
        yield signs
    for part in _PARTS:
        least = max(_SHORT * sizes.max(), np.sort(sizes)[-max(freedom // part, 1)])
        yield np.where(sizes >= least, signs, 0.0)


def _on_box(body: Quadric, signs: Floats) -> _Trial | None:
    """Minimise the largest entry t: those held there are ± t, the others free."""
    held, nothing = signs != 0.0, np.zeros(signs.size)
    # The best entries for t are linear in it: base + t * slope.
    face, fixed = body.form.face(~held), np.array([signs, nothing])
    (slope, base), (bent, turned) = face.point(fixed, np.array([nothing, body.pull]))
    away, force = base - body.point, turned - body.pull
    a, b = float(slope @ bent), -float(slope @ force)
    square = b**2 - a * (float(away @ (force + body.slope)) - 2.0 * body.room)
    if a <= 0.0:
        return None
    # A face that the ellipsoid does not reach is left where it is nearest.
    t = (b - sqrt(max(square, 0.0))) / a
    row = base + t * slope
    multipliers = -signs * (force + t * bent)
    total = float(np.abs(multipliers).sum())
    if t <= 0.0 or total == 0.0:
        return None
    too_long = ~held & (np.abs(row) > t * (1.0 + _EXACT)) & (square > 0.0)
    let_go = held & (multipliers < -_EXACT * total)
    violations = np.where(too_long, np.abs(row) / t, np.where(let_go, -multipliers / total, 0.0))
    following = np.where(too_long, np.sign(row), 0.0)
    return _Trial(LeastNorm(row[np.newaxis], t, 1.0 / total), following, violations, square > 0.0)


def _on_octahedron(body: Quadric, signs: Floats) -> _Trial | None:
    """Minimise the sum of the entries' sizes: some are zero, the signs of the others known."""
    if not signs.any():
        return None
    used, pulls = signs != 0.0, np.array([body.pull, signs])
    (best, way), (turned, bent) = body.form.face(used).point(np.zeros(pulls.shape), pulls)
    away, force = best - body.point, turned - body.pull
    room = 2.0 * body.room - float(away @ (force + body.slope))
    if room <= 0.0:  # the ellipsoid is beyond the face: to use all other entries leads nearest
        found = LeastNorm(best[np.newaxis], 0.0, 0.0)
        return _Trial(found, -np.sign(force), np.where(used, 0.0, np.abs(force)), False)
    step = sqrt(room / float(signs @ way))
    row = best - step * way
    slopes = force / step - bent
    norm = float(signs @ row)
    if norm <= 0.0:
        return None
    crossed = signs * row < 0.0
    wanted = ~used & (np.abs(slopes) > 1.0 + _EXACT)
    violations = np.where(crossed, -signs * row, np.where(wanted, np.abs(slopes), 0.0))
    following = np.where(wanted, -np.sign(slopes), 0.0)
    return _Trial(LeastNorm(row[np.newaxis], norm, 1.0 / step), following, violations)
