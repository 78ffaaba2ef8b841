r"""The scores of a class as a few thousand points that have the same exponential moments.

Bins are merged where that changes nothing: at distance :math:`d` from the largest value the worst
case weighs :math:`e^{-s d}`, so bins as wide as a small part of :math:`d` are alike for every
:math:`s` that matters there. Two points stand for each, with the right first three moments.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..moments import BLOCK, Floats, Sample
from .fine_bins import Atoms

__all__ = ["PointSample"]

#: Merged bins are at most so many times narrower than their distance to the largest value, and at
#: most one over the second number wide.
_PARTS_OF_DISTANCE, _PARTS_OF_RANGE = 400.0, 4096.0


class PointSample(Sample):
    """Values with weights, each standing for many samples.

    Parameters
    ----------
    values, weights, squares : ndarray
        Points, the weight of the samples at each, and the sum of their squared weights.
    unresolved : float, default=0.0
        Share of the variance that lies within bins.
    """

    def __init__(
        self, values: Floats, weights: Floats, squares: Floats, unresolved: float = 0.0
    ) -> None:
        super().__init__(values, weights=weights)
        self._points = values, weights, squares
        self.unresolved = unresolved

    @classmethod
    def of(cls, atoms: Atoms, sign: float) -> PointSample:
        """The scores of a class, or minus them."""
        if sign < 0.0:
            atoms = atoms.negated()
        mean, count = atoms.mean, float(atoms.weight.sum())
        within = float(atoms.weight @ _variance_within(atoms)) / count
        between = float(atoms.weight @ (mean - atoms.weight @ mean / count) ** 2) / count
        total = within + between
        return cls(*_points(atoms), within / total if total > 0.0 else 0.0)

    def _weighed_blocks(self) -> Iterator[tuple[Floats, Floats | None, Floats | None]]:
        for start in range(0, self._points[0].size, BLOCK):
            values, weights, squares = (part[start : start + BLOCK] for part in self._points)
            yield values, weights, squares

    def with_value(self, value: float) -> PointSample:
        values, weights, squares = self._points
        added = self.concentration * self.weight
        return PointSample(
            np.append(values, value), np.append(weights, added), np.append(squares, added * added)
        )


def _points(atoms: Atoms) -> tuple[Floats, Floats, Floats]:
    """Points, weights and squared weights."""
    last = atoms.part(slice(-1, None))
    rest = atoms.part(slice(-1))
    parts = [_ends(last)] + [_two_points(rest, float(last.high[0]))] * bool(rest.low.size)
    values, weights, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
    carrying = weights > 0.0
    return values[carrying], weights[carrying], squares[carrying]


def _ends(atoms: Atoms) -> tuple[Floats, Floats, Floats]:
    """Points at both ends of a bin: the largest value decides whether the index is zero."""
    width = atoms.high - atoms.low
    share = np.ones_like(width)
    np.divide(atoms.mean - atoms.low, width, out=share, where=width > 0.0)
    return _shared(atoms.low, atoms.high, share, atoms.weight, atoms.squares)


def _two_points(atoms: Atoms, largest: float) -> tuple[Floats, Floats, Floats]:
    """Two points for each of the merged bins."""
    mean, variance = atoms.mean, _variance_within(atoms)
    starts = _merged(largest - mean)
    counts = np.diff(starts, append=mean.size)
    weight = np.add.reduceat(atoms.weight, starts)

    def average(values: Floats) -> Floats:
        return np.add.reduceat(atoms.weight * values, starts) / weight

    offset = mean - np.repeat(mean[starts], counts)  # small numbers, whose powers are accurate
    first = average(offset)
    offset = offset - np.repeat(first, counts)
    spread = average(variance + offset**2)
    skew = average(offset * (3.0 * variance + offset**2))
    # The two x with x² - (skew / spread) x - spread = 0 have these moments.
    half = np.zeros_like(spread)
    np.divide(0.5 * skew, spread, out=half, where=spread > 0.0)
    root = np.sqrt(half * half + spread)
    share = np.ones_like(root)
    np.divide(root - half, 2.0 * root, out=share, where=root > 0.0)
    centre = mean[starts] + first
    squares = np.add.reduceat(atoms.squares, starts)
    return _shared(centre + half - root, centre + half + root, share, weight, squares)


def _variance_within(atoms: Atoms) -> Floats:
    """Of each bin: both of its ends occur; the rest as if even between them."""
    mean = atoms.mean
    count = np.full_like(mean, 2.0)  # as if two, where the squares of tiny weights vanish
    np.divide(atoms.weight**2, atoms.squares, out=count, where=atoms.squares > 0.0)
    np.maximum(count, 2.0, out=count)
    largest: Floats = (atoms.high - mean) * (mean - atoms.low)
    return largest * (count + 1.0) / (3.0 * (count - 1.0))


def _shared(
    low: Floats, high: Floats, share: Floats, weight: Floats, squares: Floats
) -> tuple[Floats, Floats, Floats]:
    """Two points for each bin, of which the upper one has a share of the weight."""
    shares = np.concatenate([1.0 - share, share])
    values = np.concatenate([low, high])
    return values, np.tile(weight, 2) * shares, np.tile(squares, 2) * shares


def _merged(distance: Floats) -> NDArray[np.intp]:
    """Where merged bins begin, by the distances of the bins to the largest value, descending."""
    turn = _PARTS_OF_DISTANCE / _PARTS_OF_RANGE  # as wide by both rules
    near = np.clip(distance, 1e-300, turn)
    steps = np.ceil(_PARTS_OF_DISTANCE * np.log(near / turn))
    steps += np.ceil(_PARTS_OF_RANGE * (np.maximum(distance, turn) - turn))
    return np.flatnonzero(np.diff(steps, prepend=np.inf))
