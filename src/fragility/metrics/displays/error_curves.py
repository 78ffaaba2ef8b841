"""Density and tail of the ranking errors, as curves to draw."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from ..._typing import Floats
from ...figures.tails import ErrorTail

#: Up to this many errors the tail has a step for each.
_FEW_ERRORS = 10_000
_TAIL_POINTS = 101
#: For a page: most points, and number of bins (there may be two more).
_MOST_POINTS, _PAGE_BINS = 60, 58
#: From this many pairs of distinct scores on, a page takes them from cells a hundred times narrower
#: than its bins.
_MANY_PAIRS, _CELLS = 1 << 26, 1 << 13


class ErrorCurves(NamedTuple):
    """See `RankingErrorDisplay`, whose attributes these are."""

    edges: Floats
    density: Floats
    share_above: float
    theta: Floats
    tail: Floats
    steps: bool
    auc: float


def page_curves(tail: ErrorTail) -> ErrorCurves:
    """Curves of few points, for a page."""
    shown = tail.gathered(_CELLS) if tail.n_distinct_pairs > _MANY_PAIRS else tail
    curves = error_curves(shown, 1.0, 0.0, _PAGE_BINS, _MOST_POINTS - 1, _MOST_POINTS)
    return curves._replace(auc=tail.auc)


def error_curves(
    tail: ErrorTail,
    factor: float,
    target: float,
    n_bins: int,
    few_errors: int = _FEW_ERRORS,
    n_points: int = _TAIL_POINTS,
) -> ErrorCurves:
    """Curves of a tail. The factor scales the errors of the tail, but not the target.

    The tail has a step for each of up to `few_errors` errors, otherwise `n_points` points.
    """
    scaled_target = target * factor
    edges = _bin_edges(tail, scaled_target, n_bins)
    # Differences of round scores may miss an edge by rounding: they belong to the bin below it.
    # At the target itself the comparison is exact.
    reach = np.where(edges == scaled_target, edges, edges + 1e-9 * np.diff(edges)[0])
    above = np.array([tail.share_above(edge) for edge in reach])
    steps = tail.n_distinct_pairs <= few_errors
    theta, reached = (
        _tail_steps(tail, scaled_target) if steps else _tail_points(tail, scaled_target, n_points)
    )
    return ErrorCurves(
        edges=edges / factor,
        density=(above[:-1] - above[1:]) / np.diff(edges) * factor,
        share_above=tail.share_above(scaled_target),
        theta=theta / factor,
        tail=reached,
        steps=steps,
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


def _tail_start(tail: ErrorTail, target: float) -> float:
    """The tail is shown from the target on; if no error is past it, over all errors."""
    return target if tail.largest > target else tail.smallest


def _tail_points(tail: ErrorTail, target: float, n: int) -> tuple[Floats, Floats]:
    low, high = _tail_start(tail, target), max(tail.largest, target)
    theta = np.linspace(low, high, n, dtype=np.float64)
    return theta, np.array([tail.share_from(t) for t in theta])


def _tail_steps(tail: ErrorTail, target: float) -> tuple[Floats, Floats]:
    low = _tail_start(tail, target)
    errors, (shares,) = tail.distinct_errors()
    rounding = 1e-12 * max(abs(tail.smallest), abs(tail.largest))
    from_low, past_low = errors >= low - rounding, errors > low + rounding
    reached = np.cumsum(shares[::-1])[::-1]
    return np.append(low, errors[past_low]), np.append(shares[from_low].sum(), reached[past_low])
