"""Sums by sorted value: what a metric of ranks needs, with ties that count as one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._typing import Floats, Indices


class SumsByValue(NamedTuple):
    """Distinct values, ascending, and one row of sums over each of them per given amount."""

    values: Floats
    sums: Floats


def sums_by_value(values: Floats, *amounts: Floats) -> SumsByValue:
    """Distinct values with the sums of each of the amounts; without any, with their counts."""
    if not values.size:
        return SumsByValue(np.zeros(0), np.zeros((max(len(amounts), 1), 0)))
    if not amounts:  # sorting alone is far faster than finding the order
        ordered = np.sort(values)
        starts = _starts(ordered)
        counts = np.diff(starts, append=ordered.size).astype(np.float64)
        return SumsByValue(ordered[starts], counts[np.newaxis])
    order = np.argsort(values)
    ordered = values[order]
    starts = _starts(ordered)
    sums = np.stack([np.add.reduceat(amount[order], starts) for amount in amounts])
    return SumsByValue(ordered[starts], sums)


def running_totals(amounts: Floats) -> Floats:
    """Totals of the first 0, 1, ..., n amounts."""
    totals = np.zeros(amounts.size + 1)
    np.cumsum(amounts, out=totals[1:])
    return totals


def _starts(ordered: Floats) -> Indices:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
