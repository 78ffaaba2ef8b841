"""Root of a class pair from the bins of its column, with a certificate of its error."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ..binned import BinnedColumn
from .root import Equation, find_root, separation

#: Bound on the relative error of FI below which a root on bins is final.
TOLERANCE = 1e-13
#: All errors are certainly at or below the target if their bins stay below it by this many widths.
#: Their mean is certainly above the target if it is by this fraction of the spread.
CLEAR_REACH, CLEAR_MEAN = 3.0, 1e-9


class BinnedRoot(NamedTuple):
    """Root of a pair on bins, with the errors of h(s) that the bins leave."""

    #: As from `root.solve`: 0 for FI = ∞, inf for FI = 0.
    s: float
    #: mean(positives) - mean(negatives)
    separation: float
    #: Error of h that leaves FI within the tolerance: FI changes by the error of h over s h'(s).
    allowed: float
    #: Error of h from truncated series, and from rounding.
    remainder: float
    rounding: float

    @classmethod
    def limit(cls, s: float, separation: float) -> BinnedRoot:
        """The cases FI = 0 and FI = ∞, which are certain."""
        return cls(s, separation, inf, 0.0, 0.0)

    @property
    def certain(self) -> bool:
        """Whether the root is final."""
        return self.remainder + self.rounding <= self.allowed

    @property
    def finer_bins_help(self) -> bool:
        """Whether finer bins may make an uncertain root certain."""
        return self.rounding <= self.allowed / 2 and self.remainder <= 1e6 * self.allowed


def pair_root(
    column: BinnedColumn, negatives: tuple[int, ...], positive: int, target: float
) -> BinnedRoot | None:
    """Root from bins; None if the bins are too wide for it, or cannot exclude FI = 0 or FI = ∞."""
    groups = (column.group(*negatives), column.group(positive, negate=True))
    equation = Equation(groups, target)
    limit = groups[0].steepest
    if equation.excess < -CLEAR_REACH * groups[0].width:
        return BinnedRoot.limit(inf, separation(groups))
    if equation.margin < -CLEAR_MEAN * sum(g.spread for g in groups):
        return BinnedRoot.limit(0.0, separation(groups))
    if equation.excess <= 0.0 or equation.margin <= equation.least_margin:
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
