r"""The least norm in an ellipsoid where the answer is about known: one row in ℓ1 or ℓ∞.

Balls of these norms have faces, and on a given face the problem has a closed form. The face of a
point near the solution is tried first, then whatever face the signs of the multipliers point to:
a few small systems replace an interior-point search. A result meets all conditions of an optimum;
if no face meets them, the result is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats, Mask
from .ellipsoid import LeastNorm
from .norm_cones import BoxCone, OctahedronCone
from .quadratic import Form
from .tuning import Faces as Tuning


class Quadric(NamedTuple):
    """The points with slope · δ + ½ δᵀ A δ ≤ room for their distance δ to one of them.

    `form` is A; `pull` is A @ point - slope, minus the slope at zero.
    """

    form: Form
    point: Floats
    slope: Floats
    room: float
    pull: Floats


class _Trial(NamedTuple):
    """The best point on a face, if there is one, and the face that it points to.

    A face is a sign for each entry: of those held at the largest size of a box, or of those that
    are not zero in an octahedron; the others have none. `violations` say how far entries are on the
    wrong side.
    """

    best: LeastNorm | None
    following: Floats
    violations: Floats


def least_norm_near(body: Quadric, cone: Any, near: Floats) -> LeastNorm | None:
    """Least norm over an ellipsoid, from a point near the solution; None if no face is found."""
    trials: dict[Any, Any] = {BoxCone: _on_box, OctahedronCone: _on_octahedron}
    if cone.shape[0] > 1 or type(cone) not in trials or not near.any():
        return None
    tries = iter(range(body.form.tries))
    for signed in _guesses(np.abs(near), body.form.freedom, type(cone) is BoxCone):
        found = _from_face(body, np.where(signed, np.sign(near), 0.0), trials[type(cone)], tries)
        if found is not None:
            return found
    return None


def _guesses(sizes: Floats, freedom: int, box: bool) -> Iterator[Mask]:
    """The face of a point, then faces near it: entries that have a sign."""
    longest = sizes.max()
    on_face = sizes >= (1.0 - Tuning.exact) * longest if box else sizes > 0.0
    if 1 < np.count_nonzero(on_face) < sizes.size:
        yield on_face
    order = np.sort(sizes)
    for part in Tuning.parts:
        free = min(max(freedom // part, 1), sizes.size)
        if box:
            yield sizes >= min(Tuning.long * longest, order[min(free, sizes.size - 1)])
        else:
            yield sizes >= max(Tuning.short * longest, order[-free])


def _from_face(
    body: Quadric, signs: Floats, trial_of: Any, tries: Iterator[int]
) -> LeastNorm | None:
    """Go from face to face, to all entries that a face points to while that leads on.

    Where it leads nowhere, or to more violations, only to the worst of them.
    """
    last, fewest, share = None, signs.size + 1, 1.0
    for _ in tries:
        try:
            trial: _Trial | None = trial_of(body, signs)
        except LinAlgError:
            trial = None
        if trial is not None:
            count = int(np.count_nonzero(trial.violations))
            if count == 0:
                return trial.best
            share = (
                min(1.0, 2.0 * share) if count < fewest else max(share / 2.0, Tuning.least_share)
            )
            fewest, last = min(count, fewest), (trial, signs)
        elif last is None or share < 0.01:
            return None
        else:
            share /= 4.0
        signs = _followed(*last, share)
    return None


def _followed(trial: _Trial, signs: Floats, share: float) -> Floats:
    """The face that a trial points to, by a share of the violations of each kind."""
    if share == 1.0:
        return np.where(trial.violations > 0.0, trial.following, signs)
    followed = signs.copy()
    for kind in (signs == 0.0, signs != 0.0):
        wrong = np.flatnonzero(kind & (trial.violations > 0.0))
        worst = wrong[np.argsort(-trial.violations[wrong])[: ceil(share * wrong.size)]]
        followed[worst] = trial.following[worst]
    return followed


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
    too_long = (np.abs(row) > t * (1.0 + Tuning.exact)) & (square > 0.0)
    let_go = multipliers < -Tuning.exact * total
    violations = np.where(let_go, -multipliers / total, 0.0)
    if too_long.any():
        violations[too_long] = np.abs(row[too_long]) / t
    best = LeastNorm(row[np.newaxis], t, 1.0 / total) if square > 0.0 else None
    return _Trial(best, np.where(too_long, np.sign(row), 0.0), violations)


def _on_octahedron(body: Quadric, signs: Floats) -> _Trial | None:
    """Minimise the sum of the entries' sizes: some are zero, the signs of the others known."""
    if not signs.any():
        return None
    used, pulls = signs != 0.0, np.array([body.pull, signs])
    (best, way), (turned, bent) = body.form.face(used).point(np.zeros(pulls.shape), pulls)
    away, force = best - body.point, turned - body.pull
    room = 2.0 * body.room - float(away @ (force + body.slope))
    if room <= 0.0:  # the ellipsoid is beyond the face: to use all other entries leads nearest
        return _Trial(None, -np.sign(force), np.where(used, 0.0, np.abs(force)))
    step = sqrt(room / float(signs @ way))
    row = best - step * way
    slopes = force / step - bent
    norm = float(signs @ row)
    if norm <= 0.0:
        return None
    crossed = signs * row < 0.0
    wanted = ~used & (np.abs(slopes) > 1.0 + Tuning.exact)
    violations = np.where(crossed, -signs * row, np.where(wanted, np.abs(slopes), 0.0))
    found = LeastNorm(row[np.newaxis], norm, 1.0 / step)
    return _Trial(found, np.where(wanted, -np.sign(slopes), 0.0), violations)
