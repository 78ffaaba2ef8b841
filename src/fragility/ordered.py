"""Sums by sorted value, for metrics of ranks; equal values count as one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._typing import Floats, Indices


class SumsByValue(NamedTuple):
    """Distinct values, ascending, and for each given amount a row of its sums by value."""

    values: Floats
    sums: Floats


def sums_by_value(values: Floats, *amounts: Floats) -> SumsByValue:
    """Distinct values with the sums of each of the amounts; with counts if no amount is given."""
    if not amounts:  # sorting alone is far faster than finding the order
        distinct, counts = np.unique(values, return_counts=True)
        return SumsByValue(distinct, counts.astype(np.float64)[np.newaxis])
    if not values.size:
        return SumsByValue(np.zeros(0), np.zeros((len(amounts), 0)))
    order = np.argsort(values)
    return sums_of_ordered(values[order], *(amount[order] for amount in amounts))


def sums_of_ordered(values: Floats, *amounts: Floats) -> SumsByValue:
    """The same of one value or more, which ascend."""
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    sums = np.stack([np.add.reduceat(amount, starts) for amount in amounts])
    return SumsByValue(values[starts], sums)


def running_totals(amounts: Floats) -> Floats:
    """Totals of the first 0, 1, ..., n amounts."""
    totals = np.zeros(amounts.size + 1)
    amounts.cumsum(out=totals[1:])
    return totals


def distinct_places(*parts: Floats) -> tuple[Floats, Indices]:
    """Distinct values of sorted parts, ascending, and the place of each value among them."""
    values = np.concatenate(parts)
    order = values.argsort(kind="stable")  # which merges what is sorted already
    ordered = values.take(order)
    begins = np.ones(values.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    places = np.empty(values.size, dtype=np.intp)
    places[order] = begins.cumsum() - 1
    return ordered[begins], places
