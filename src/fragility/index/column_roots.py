"""Roots of the class pairs of some columns from their bins, found together.

Each step of the root finder serves all pairs at once, which saves one Python call per pair. Merged
bins give the first guesses. The bins themselves give the last step and the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum, inf, isnan, nan
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Mask
from ..binned import BinnedColumn, remainder_factor, rounding_bound
from ..moments import EPS
from .binned_root import CLEAR_MEAN, CLEAR_REACH, TOLERANCE, BinnedRoot, pair_root
from .column_moments import FINE_STEPS, ColumnMoments, merge_bins
from .root import find_roots

#: Classes whose bins are read together: the bins of more classes would not fit the cache.
_NEIGHBOURS = 16
#: Beyond this tilt (s times the range) exponentials from one table overflow.
_STEEPEST = 600.0
#: Relative error and number of steps of the first guesses, on merged bins.
_FIRST_TOLERANCE, _FIRST_STEPS = 1e-7, 12
_MAX_STEPS = 60
#: Rounding of exponentials, products and logarithms, beyond that of a single pair (observed: 2).
_TABLE_ROUNDING = 4.0


class ColumnPairs(NamedTuple):
    """A binned column, its class, and the classes to compare it with."""

    column: BinnedColumn
    positive: int
    negatives: Sequence[int]

    def neighbours(self) -> Iterator[range]:
        """Ranges of classes whose bins are read together.

        They include unwanted classes, because leaving those out would copy the bins.
        """
        n_classes, wanted = self.column.drifts.size, set(self.negatives)
        for start in range(0, n_classes, _NEIGHBOURS):
            classes = range(start, min(start + _NEIGHBOURS, n_classes))
            if not wanted.isdisjoint(classes):
                yield classes


def column_roots(columns: Sequence[ColumnPairs], target: float) -> list[list[BinnedRoot | None]]:
    """`pair_root` of all pairs of some columns, which have bins of the same resolution."""
    fine: list[ColumnMoments] = []
    coarse: list[ColumnMoments] = []
    keys: list[tuple[int, int]] = []
    drifts = []
    for i, pairs in enumerate(columns):
        column, positive, _ = pairs
        bins = column.moments, column.grid.width
        levels = (fine, bins), (coarse, merge_bins(*bins))
        common = column.drifts[positive], column.longest_sum
        for classes in pairs.neighbours():
            rows = slice(classes.start, classes.stop)
            for members, (moments, width) in levels:
                members.append(ColumnMoments(moments[:, rows], moments[:, positive], width, target))
            own = column.drifts[rows]
            drifts.append(np.stack([own, *(np.full(own.size, same) for same in common)]))
            keys += [(i, c) for c in classes]
    roots = _roots(_Joined(fine), _Joined(coarse), np.concatenate(drifts, axis=1))
    found = dict(zip(keys, roots, strict=True))
    answers = []
    for i, (column, positive, negatives) in enumerate(columns):
        answers.append([found[i, c] for c in negatives])
        for row, root in enumerate(answers[-1]):
            if root is not None and isnan(root.s):
                # A root that is too steep for the tables may suit `pair_root`.
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
        #: Results of the last evaluation of each pair; see `ColumnMoments.__call__`.
        self.points = np.zeros((4, self.widths.size))

    def all(self, of: Callable[[ColumnMoments], Floats]) -> Floats:
        """An attribute of every member, joined."""
        return np.concatenate([of(m) for m in self._members], axis=-1)

    def evaluate(self, s: Floats, done: Mask) -> Iterator[Floats]:
        """h, h' and h'' of every pair, except for members whose pairs are all done."""
        for member, part in zip(self._members, self._parts, strict=True):
            if not done[part].all():
                self.points[:, part] = member(s[part])
        return iter(self.points[:3])


def _roots(equations: _Joined, first_look: _Joined, drifts: Floats) -> Iterator[BinnedRoot | None]:
    """Root of each pair: None if FI may be 0 or ∞, NaN where `equations` overflow."""
    widths, spreads = equations.widths, equations.all(lambda m: m.spreads)
    limits = min(2.0, _STEEPEST / equations.bins) / widths
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means, squares = first_look.all(ColumnMoments.means_and_squares)
        # As in `Equation`, but sums are rounded more than once: near cases stay undecided.
        margin = -(first_look.all(lambda m: m.gap) + means[0] + means[1])
        excess = equations.all(lambda m: m.gap) - widths
        spread = spreads[0] + spreads[1]
        has_root = (excess > 0.0) & (margin > 16.0 * EPS * spread)
        none_above, mean_above = excess < -CLEAR_REACH * widths, margin < -CLEAR_MEAN * spread
        lower = 8.0 * (1.0 - 1e-9) * margin / (spreads * spreads).sum(axis=0)
        top = equations.all(ColumnMoments.neg_log_top_shares).sum(axis=0)
        upper = (1.0 + 1e-12) * top / excess + 5e-324
        guess = 2.0 * margin / np.maximum(squares - means * means, 0.0).sum(axis=0)
        # Pairs without a root stay at some s where nothing overflows.
        low = np.where(has_root, np.minimum(lower, limits), limits / 2.0)
        high = np.where(has_root, np.minimum(upper, limits), limits / 2.0)
        s = np.where(has_root, guess, limits / 2.0)
        s, _ = find_roots(
            first_look.evaluate, low, high, s, ~has_root, _FIRST_TOLERANCE, _FIRST_STEPS
        )
        s, done = find_roots(equations.evaluate, low, high, s, ~has_root, max_steps=_MAX_STEPS)
        points = np.where(done, equations.points, nan)
        # Tables and sums of several pairs are rounded once more than in `pair_root`. In return the
        # length of sums is known, unless there are weights.
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
