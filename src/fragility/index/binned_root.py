"""Root of a class pair from the bins of its column, with a certificate of its error."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf
from typing import NamedTuple

from ..binned import BinnedColumn
from ..moments import ValueGroup
from .root import Equation, find_root

#: Bound on the relative error of FI below which a root on bins is final.
TOLERANCE = 1e-13
#: Beyond doubt: all errors at the target or below it, if their bins stay below by so many widths;
#: and their mean above the target, if by this share of the spread.
CLEAR_REACH, CLEAR_MEAN = 3.0, 1e-9


class BinnedRoot(NamedTuple):
    """Root of a pair on bins, and how far the bins are to be trusted."""

    #: As of `root.solve`: 0 for FI = ∞, inf for FI = 0.
    s: float
    #: mean(positives) - mean(negatives)
    separation: float
    #: Error of h that leaves FI within the tolerance: FI changes by the error of h over s h'(s).
    allowed: float
    remainder: float
    rounding: float

    @classmethod
    def limit(cls, s: float, separation: float) -> BinnedRoot:
        """Of the cases FI = 0 or ∞, beyond doubt."""
        return cls(s, separation, inf, 0.0, 0.0)

    @property
    def certain(self) -> bool:
        """Whether the root is final."""
        return self.remainder + self.rounding <= self.allowed

    @property
    def finer_bins_help(self) -> bool:
        """Whether finer bins may make an uncertain root certain."""
        return self.rounding <= self.allowed / 2 and self.remainder <= 1e6 * self.allowed


def separation(groups: Sequence[ValueGroup]) -> float:
    """Mean of the positives minus that of the negatives; the positives are given negated."""
    return -fsum(part for g in groups for part in (g.mean, g.mean_residual))


def pair_root(
    column: BinnedColumn, negatives: tuple[int, ...], positive: int, target: float
) -> BinnedRoot | None:
    """Root from bins; None when it is out of their reach or the case (0, ∞) in doubt."""
    groups = (column.group(*negatives), column.group(positive, negate=True))
    equation = Equation(groups, target)
    limit = groups[0].steepest
    if equation.excess < -CLEAR_REACH * groups[0].width:
        return BinnedRoot.limit(inf, separation(groups))
    if equation.slack < -CLEAR_MEAN * sum(g.spread for g in groups):
        return BinnedRoot.limit(0.0, separation(groups))
    if equation.excess <= 0.0 or equation.slack <= equation.least_slack:
        return None
    if equation.upper > limit and equation(limit).value < 0.0:
        return None  # too steep for these bins
    point = find_root(equation, limit=limit)
    return BinnedRoot(
        point.s,
        separation(groups),
        allowed=TOLERANCE * point.s * point.slope,
        remainder=sum(g.remainder(point.s) for g in groups),
        rounding=sum(g.rounding(point.s) for g in groups),
    )
