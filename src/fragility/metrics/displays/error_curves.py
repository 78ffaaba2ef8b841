"""Density and tail of the ranking errors, as curves to draw."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from ...index.tails import ErrorTail
from ...moments import Floats

__all__ = ["ErrorCurves", "error_curves"]

#: Up to this many errors the tail has every step it takes.
_FEW_ERRORS = 10_000
_TAIL_POINTS = 101


class ErrorCurves(NamedTuple):
    """See `RankingErrorDisplay`, whose attributes these are."""

    edges: Floats
    density: Floats
    share_above: float
    theta: Floats
    tail: Floats
    steps: bool
    auc: float


def error_curves(tail: ErrorTail, factor: float, target: float, n_bins: int) -> ErrorCurves:
    """Curves of a tail whose errors are scaled by the factor; the target is not."""
    scaled_target = target * factor
    edges = _bin_edges(tail, scaled_target, n_bins)
    # Differences of round scores may miss an edge by rounding: they belong to the bin below it.
    # At the target itself the comparison is exact.
    reach = np.where(edges == scaled_target, edges, edges + 1e-9 * np.diff(edges)[0])
    above = np.array([tail.share_above(edge) for edge in reach])
    theta, reached = _tail_curve(tail, scaled_target)
    return ErrorCurves(
        edges=edges / factor,
        density=(above[:-1] - above[1:]) / np.diff(edges) * factor,
        share_above=tail.share_above(scaled_target),
        theta=theta / factor,
        tail=reached,
        steps=tail.n_distinct_pairs <= _FEW_ERRORS,
        auc=tail.auc,
    )


def _bin_edges(tail: ErrorTail, target: float, n_bins: int) -> Floats:
    """Bins of equal width over all errors and the target, one edge on it, the lowest below all."""
    low, high = min(tail.smallest, target), max(tail.largest, target)
    if high == low:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / n_bins
    first = ceil((low - target) / width) - 1
    last = max(ceil((high - target) / width), first + 1)
    return target + width * np.arange(first, last + 1, dtype=np.float64)


def _tail_curve(tail: ErrorTail, target: float) -> tuple[Floats, Floats]:
    """Points of the tail, from the target on; if no error is past it, over all errors."""
    low = target if tail.largest > target else tail.smallest
    if tail.n_distinct_pairs > _FEW_ERRORS:
        theta = np.linspace(low, max(tail.largest, target), _TAIL_POINTS, dtype=np.float64)
        return theta, np.array([tail.share_from(t) for t in theta])
    errors, (shares,) = tail.distinct_errors()
    rounding = 1e-12 * max(abs(tail.smallest), abs(tail.largest))
    from_low, past_low = errors >= low - rounding, errors > low + rounding
    reached = np.cumsum(shares[::-1])[::-1]
    return np.append(low, errors[past_low]), np.append(shares[from_low].sum(), reached[past_low])
