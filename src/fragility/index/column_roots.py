"""Roots of the class pairs of some columns from their bins, found together.

Each step of the root finder serves all pairs, so that its cost is that of its arithmetic, not of so
many calls. Merged bins give the starts; the bins themselves the last step, and the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum, inf, isnan, nan
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Mask
from ..binned import BinnedColumn, remainder_factor, rounding_bound
from .binned_root import CLEAR_MEAN, CLEAR_REACH, TOLERANCE, BinnedRoot, pair_root
from .column_moments import FINE_STEPS, ColumnMoments, merge_bins

_EPS = 2.0**-53
#: Classes whose bins are read together: those of more would not fit the cache.
_NEIGHBOURS = 16
#: Beyond this tilt (s times the range) exponentials from one table overflow.
_STEEPEST = 600.0
#: The first look: error allowed in its roots, and steps. The roots are only starts.
_FIRST_LOOK, _FIRST_STEPS = 1e-7, 12
_MAX_STEPS = 60
#: Errors of exponentials, products and logarithms, beyond those of a single pair (observed: 2).
_TABLE_ROUNDING = 4.0


class ColumnPairs(NamedTuple):
    """A binned column, its class, and the classes to compare it with."""

    column: BinnedColumn
    positive: int
    negatives: Sequence[int]

    def neighbours(self) -> Iterator[range]:
        """Classes whose bins are read together: asked for or not, so that none are copied."""
        n_classes, wanted = self.column.drifts.size, set(self.negatives)
        for start in range(0, n_classes, _NEIGHBOURS):
            classes = range(start, min(start + _NEIGHBOURS, n_classes))
            if not wanted.isdisjoint(classes):
                yield classes


def column_roots(columns: Sequence[ColumnPairs], target: float) -> list[list[BinnedRoot | None]]:
    """`pair_root` of all pairs of some columns, which were binned alike."""
    fine: list[ColumnMoments] = []
    coarse: list[ColumnMoments] = []
    keys: list[tuple[int, int]] = []
    drifts = []
    for place, pairs in enumerate(columns):
        column, positive, _ = pairs
        bins = column.moments, column.grid.width
        levels = (fine, bins), (coarse, merge_bins(*bins))
        common = column.drifts[positive], column.longest_sum
        for classes in pairs.neighbours():
            rows = slice(classes.start, classes.stop)
            for members, (moments, width) in levels:
                group = ColumnMoments(moments[:, rows], moments[:, positive], width, target)
                members.append(group)
            own = column.drifts[rows]
            drifts.append(np.stack([own, *(np.full(own.size, same) for same in common)]))
            keys += [(place, c) for c in classes]
    roots = _roots(_Joined(fine), _Joined(coarse), np.concatenate(drifts, axis=1))
    found = dict(zip(keys, roots, strict=True))
    answers = []
    for place, (column, positive, negatives) in enumerate(columns):
        answers.append([found[place, c] for c in negatives])
        for row, root in enumerate(answers[-1]):
            if root is not None and isnan(root.s):
                # What is too steep for the tables may be within the reach of a single pair.
                answers[-1][row] = pair_root(column, (negatives[row],), positive, target)
    return answers


class _Joined:
    """The equations of several `ColumnMoments`, side by side."""

    def __init__(self, members: Sequence[ColumnMoments]) -> None:
        self._members = members
        ends = np.cumsum([m.gap.size for m in members]).tolist()
        self._parts = [slice(end - m.gap.size, end) for m, end in zip(members, ends, strict=True)]
        self.orders, self.bins = members[0].orders, members[0].bins
        self.widths = np.repeat([m.width for m in members], [m.gap.size for m in members])

    def all(self, of: Callable[[ColumnMoments], Floats]) -> Floats:
        """Something that all have."""
        return np.concatenate([of(m) for m in self._members], axis=-1)

    def evaluate(self, s: Floats, done: Mask, points: Floats) -> None:
        """Fill `points` of shape (4, pairs), as far as not all of a column are done."""
        for member, part in zip(self._members, self._parts, strict=True):
            if not done[part].all():
                points[:, part] = member(s[part])


def _roots(equations: _Joined, first_look: _Joined, drifts: Floats) -> Iterator[BinnedRoot | None]:
    """Root of each pair: None in doubt of the case (0, ∞), NaN where `equations` overflow."""
    widths, spreads = equations.widths, equations.all(lambda m: m.spreads)
    limits = min(2.0, _STEEPEST / equations.bins) / widths
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means, squares = first_look.all(ColumnMoments.means_and_squares)
        # As in `Equation`, but sums are rounded more than once: what is near stays in doubt.
        slack = -(first_look.all(lambda m: m.gap) + means[0] + means[1])
        excess = equations.all(lambda m: m.gap) - widths
        spread = spreads[0] + spreads[1]
        has_root = (excess > 0.0) & (slack > 16.0 * _EPS * spread)
        none_above, mean_above = excess < -CLEAR_REACH * widths, slack < -CLEAR_MEAN * spread
        lower = 8.0 * (1.0 - 1e-9) * slack / (spreads * spreads).sum(axis=0)
        surprises = equations.all(ColumnMoments.surprises).sum(axis=0)
        upper = (1.0 + 1e-12) * surprises / excess + 5e-324
        guess = 2.0 * slack / np.maximum(squares - means * means, 0.0).sum(axis=0)
        # Pairs without a root stand still at some s that is safe.
        low = np.where(has_root, np.minimum(lower, limits), limits / 2.0)
        high = np.where(has_root, np.minimum(upper, limits), limits / 2.0)
        s = np.where(has_root, guess, limits / 2.0)
        s, _ = _find_roots(first_look, low, high, s, ~has_root, _FIRST_LOOK, _FIRST_STEPS)
        s, points = _find_roots(equations, low, high, s, ~has_root, _EPS, _MAX_STEPS)
        # Tables and sums of several pairs are rounded once more than those of a single one. In
        # return the length of sums is known, unless there are weights.
        reach = _TABLE_ROUNDING + s * (2.0 * spreads + 2.0 * FINE_STEPS * widths)
        drift = drifts[:2] / equations.all(lambda m: m.weights)
        rounding = rounding_bound(reach, s * widths / 2.0 * drifts[2], drift).sum(axis=0)
        remainder = s * s * points[3] * remainder_factor(s * widths / 2.0, equations.orders)
        allowed = TOLERANCE * s * points[1]
    s = np.where(s < limits * (1.0 - 1e-9), s, nan)
    separations = [
        -fsum(p) for p in np.stack([first_look.all(lambda m: m.apart), *means]).T.tolist()
    ]
    errors = np.stack([allowed, remainder, rounding]).T.tolist()
    for row, (root, separation) in enumerate(zip(s.tolist(), separations, strict=True)):
        if has_root[row]:
            yield BinnedRoot(root, separation, *errors[row])
        elif none_above[row] or mean_above[row]:
            yield BinnedRoot.limit(inf if none_above[row] else 0.0, separation)
        else:
            yield None


def _find_roots(
    equations: _Joined,
    low: Floats,
    high: Floats,
    start: Floats,
    done: Mask,
    tolerance: float,
    steps: int,
) -> tuple[Floats, Floats]:
    """`root.find_root` of several equations, to the relative `tolerance`, but of those `done`.

    The points are those of the last evaluation. Where `steps` are not enough they are not numbers.
    """
    s = np.clip(start, low, high)
    points = np.zeros((4, s.size))
    for _ in range(steps):
        equations.evaluate(s, done, points)
        value, slope, curvature, _ = points
        negative = value < 0.0
        low = np.where(negative, np.maximum(low, s), low)
        high = np.where(negative, high, np.minimum(high, s))
        # The tangent of a convex function crosses zero right of the root.
        crossing = np.minimum(high, np.maximum(s - value / slope, low))
        high = np.where(slope > 0.0, crossing, high)
        following = _halley_steps(s, value, slope, curvature)
        inside = (low <= following) & (following <= high) & (abs(following - s) <= 0.5 * s)
        following = np.where(done, s, np.where(inside, following, high))
        step = abs(following - s) / s
        s = following
        # The error of a Halley step is of third order in its length.
        done = done | (10.0 * step * step * step < tolerance) | (high - low <= 2.0 * _EPS * high)
        if done.all():
            return s, points
    return s, np.where(done, points, np.nan)


def _halley_steps(s: Floats, value: Floats, slope: Floats, curvature: Floats) -> Floats:
    """`root.halley_step` of several equations; not a number where it sees no root."""
    slope = s * slope - value
    curvature = s * (s * curvature) - 2.0 * slope
    bend = slope * slope - 0.5 * value * curvature
    newton = np.where(slope > 0.0, s - s * (value / slope), np.nan)
    trusted = bend > 0.25 * slope * slope
    return np.where(trusted, s - s * (value * slope / bend), newton)
