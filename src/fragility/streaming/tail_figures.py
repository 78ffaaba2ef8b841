r"""Buffered AUC and CVaR of the ranking error from bins, with bounds.

Both are means of convex functions of the error, at their best: they grow (CVaR) or fall (bAUC) when
scores spread without moving their mean. Gathered at the mean of their bin scores are as close as
can be; moved to the ends of the bin, as far apart. The two differ by the square of the bin's width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..index.tails import ErrorTail, buffered_auc, conditional_value_at_risk
from ..moments import Floats
from ..ordered import SumsByValue, sums_by_value
from .fine_bins import Atoms

__all__ = ["TailBounds", "gathered_tail", "tail_bounds"]

#: More bins than these are merged, for one pair and for each of many: the bounds stay narrow.
_MOST_BINS, _LEAST_BINS = 1 << 13, 1 << 9
_ROUNDING = 32.0 * 2.0**-53


class TailBounds(NamedTuple):
    """Bounds on both figures of a pair of classes."""

    buffered_auc: tuple[float, float]
    cvar: tuple[float, float]


def tail_bounds(negatives: Atoms, positives: Atoms, level: float, n_pairs: int) -> TailBounds:
    """Bounds for one of so many pairs of classes; equal where all scores are known."""
    most = max(_MOST_BINS * 8 // (8 + n_pairs), _LEAST_BINS)
    groups = [_Merged.of(negatives, most), _Merged.of(positives, most)]
    close = _tail(groups[0].gathered(), groups[1].gathered())
    if all(group.known for group in groups):
        exact = buffered_auc(close), conditional_value_at_risk(close, level)
        return TailBounds((exact[0], exact[0]), (exact[1], exact[1]))
    apart = _tail(groups[0].spread(), groups[1].spread())
    # The means are rounded, which a figure that is free of units feels if scores are close.
    scale = (apart.largest - apart.smallest) or abs(apart.largest)
    rounding = _ROUNDING / scale if scale > 0.0 else 1.0
    return TailBounds(
        (max(buffered_auc(apart) - rounding, 0.0), min(buffered_auc(close) + rounding, 1.0)),
        (conditional_value_at_risk(close, level), conditional_value_at_risk(apart, level)),
    )


def gathered_tail(negatives: Atoms, positives: Atoms) -> ErrorTail:
    """Tail of the errors with every score at the mean of its bin."""
    groups = (SumsByValue(atoms.mean, atoms.weight[np.newaxis]) for atoms in (negatives, positives))
    return _tail(*groups)


def _tail(negatives: SumsByValue, positives: SumsByValue) -> ErrorTail:
    return ErrorTail(negatives, SumsByValue(-positives.values[::-1], positives.sums[:, ::-1]))


class _Merged(NamedTuple):
    low: Floats
    high: Floats
    weight: Floats
    mean: Floats

    @classmethod
    def of(cls, atoms: Atoms, most: int) -> _Merged:
        if atoms.low.size <= most:
            return cls(atoms.low, atoms.high, atoms.weight, atoms.mean)
        # Bins of equal width, so that the widest are not wider than they must be.
        places = np.floor(atoms.low * (most / 2))
        starts = np.flatnonzero(np.diff(places, prepend=-1.0))
        weight = np.add.reduceat(atoms.weight, starts)
        mean = np.add.reduceat(atoms.weight * atoms.mean, starts) / weight
        low, high = atoms.low[starts], np.maximum.reduceat(atoms.high, starts)
        return cls(low, high, weight, np.clip(mean, low, high))

    @property
    def known(self) -> bool:
        return bool(np.array_equal(self.low, self.high))

    def gathered(self) -> SumsByValue:
        return SumsByValue(self.mean, self.weight[np.newaxis])

    def spread(self) -> SumsByValue:
        width = self.high - self.low
        share = np.ones_like(width)
        np.divide(self.mean - self.low, width, out=share, where=width > 0.0)
        values = np.concatenate([self.low, self.high])
        weights = np.concatenate([self.weight * (1.0 - share), self.weight * share])
        carrying = weights > 0.0
        return sums_by_value(values[carrying], weights[carrying])
