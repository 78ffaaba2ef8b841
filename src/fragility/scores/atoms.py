"""Scores of a class as atoms: distinct values, or bins that are known by their sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats
from ..moments import BLOCK, Sample, order_one_factor
from ..ordered import SumsByValue, sums_by_value


class Atoms(NamedTuple):
    """Parts of the weight of a class, by ascending score; none is empty.

    In a column, an atom of one class and an atom of another have the same range or disjoint ranges.

    Attributes
    ----------
    low, high : ndarray
        Least and largest score of each atom. Where they are equal, the atom is known exactly.
    weight, mean, squares : ndarray
        Weight, mean score, and sum of squared weights.
    """

    low: Floats
    high: Floats
    weight: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def of(
        cls, values: NDArray[Any], weights: Floats | None = None, squares: Floats | None = None
    ) -> Atoms:
        """Atoms of single scores; by default `squares` are the squared weights."""
        values = values.astype(np.float64, copy=False)
        if weights is None:
            distinct, (weight,) = sums_by_value(values)
            return cls(distinct, distinct, weight, distinct, weight)
        distinct, sums = sums_by_value(values, weights, weights**2 if squares is None else squares)
        return cls(distinct, distinct, sums[0], distinct, sums[1])

    def grouped(self, edges: Floats) -> Atoms:
        """Atoms of the scores between ascending edges, the first of which no score is below."""
        places = np.searchsorted(edges, self.low, side="right") - 1
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        low, highest = edges[places[starts]], np.append(edges[1:], np.inf)[places[starts]]
        high = np.maximum(np.nextafter(highest, -np.inf), low)
        high = np.where(np.isinf(highest), max(self.high[-1], edges[-1]), high)
        weight, total, squares = (
            np.add.reduceat(part, starts)
            for part in (self.weight, self.weight * self.mean, self.squares)
        )
        return Atoms(low, high, weight, np.clip(total / weight, low, high), squares)

    @property
    def known(self) -> bool:
        """Whether every score is known."""
        return bool(np.array_equal(self.low, self.high))

    @property
    def by_mean(self) -> SumsByValue:
        """Means with their weights."""
        return SumsByValue(self.mean, self.weight[np.newaxis])


class PointSample(Sample):
    """Values with weights, each standing for many samples.

    Parameters
    ----------
    values, weights, squares : ndarray
        Points, the weight of the samples at each, and the sum of their squared weights.
    """

    def __init__(self, values: Floats, weights: Floats, squares: Floats) -> None:
        factor = order_one_factor(float(weights.max()))  # their squares are finite then
        if factor != 1.0:
            weights, squares = weights * factor, squares * factor * factor
        super().__init__(values, weights=weights)
        self._points = values, weights, squares

    @classmethod
    def of(cls, atoms: Atoms, sign: float) -> PointSample:
        """The scores of exact atoms, or minus them."""
        return cls(sign * atoms.mean, atoms.weight, atoms.squares)

    def _weighed_blocks(self) -> Iterator[tuple[Floats, Floats | None, Floats | None]]:
        if self._points[0].size <= BLOCK:
            yield self._points
            return
        for start in range(0, self._points[0].size, BLOCK):
            values, weights, squares = (part[start : start + BLOCK] for part in self._points)
            yield values, weights, squares

    def with_value(self, value: float) -> PointSample:
        values, weights, squares = self._points
        added = self.concentration * self.weight
        return PointSample(
            np.append(values, value), np.append(weights, added), np.append(squares, added * added)
        )
