r"""Scores in [0, 1] by class and bin, as exact sums: what a sketch remembers.

Per class and bin: the weight and the sums of :math:`x` and :math:`x^2`, where x is the distance of
a score to the centre of its bin in bin widths, rounded to a fixed number of digits. Rounded so, the
sums are exact, and do not depend on the order of the samples or on how they came in parts.

Centres are multiples of the width, a power of two: a score minus its centre is exact, and the
saturated scores 0 and 1 are centres.
"""

from __future__ import annotations

from math import ceil, inf, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..binned import Grid, binned_blocks
from ..exact import ExactSums
from ..moments import Floats
from .certified import BinMoments

__all__ = ["MEAN_UNIT", "SQUARE_UNIT", "ScoreBins"]

Integers = NDArray[np.int64]

#: Units of x and x². Half of them are the errors that `fragility.index.certified` allows for.
MEAN_UNIT, SQUARE_UNIT = 2.0**-37, 2.0**-23
#: Samples per block, at most `fragility.exact.MOST_TERMS`. Their sums of x stay below 2⁵², exact in
#: float64; those of x² stay below what a sample counts for, so that one sum holds both.
_BLOCK = 60_000
_COUNTER = 2.0**37


class ScoreBins:
    """State of some score columns and groups of samples.

    Parameters
    ----------
    n_bins, n_columns, n_groups : int
    """

    def __init__(self, n_bins: int, n_columns: int, n_groups: int) -> None:
        self._grid = Grid(0.0, 1.0 / n_bins)
        #: Places from group to group. Even, so that a score half-way between two centres, which is
        #: rounded to the even place, has the same bin in every group; the last place stays empty.
        self._stride = n_bins + 2
        self._mean_units, self._square_units = n_bins / MEAN_UNIT, n_bins**2 / SQUARE_UNIT
        shape = (n_columns, n_groups * self._stride)
        self._weights, self._sums, self._squares = (ExactSums(shape) for _ in range(3))
        self._smallest = np.full((n_columns, n_groups), inf)
        self._largest = np.full((n_columns, n_groups), -inf)
        self._lightest = np.full((n_columns, n_groups), inf)

    @staticmethod
    def state_bytes(
        n_bins: int, n_columns: int, n_groups: int, weights: Floats | None = None
    ) -> int:
        """Memory of a state of unweighted samples, or of samples of such weights."""
        digits = 5  # of the three exact sums
        if weights is not None:
            # From the last bit of the lightest product to room for many of the heaviest.
            spanned = log2(float(weights.max()) / float(weights.min())) + 53
            digits = 3 * (2 + ceil((spanned + 40) / 32))
        return 8 * digits * n_columns * n_groups * (n_bins + 2)

    def add(
        self,
        columns: NDArray[Any],
        codes: NDArray[Any],
        weights: Floats | None = None,
        first: int = 0,
    ) -> None:
        """Add samples: scores of the columns from `first` on, and the group of each sample.

        Weights must be positive, and their products with 2³⁷ in range.
        """
        grids = [self._grid] * columns.shape[1]
        for i, part, bins, d in binned_blocks(columns, codes, grids, self._stride, _BLOCK):
            if weights is None:
                held = self._count(first + i, bins, d)
            else:
                held = self._weigh(first + i, bins, d, weights[part])
            self._widen(first + i, bins, d, held)

    def _count(self, column: int, bins: NDArray[np.int64], d: Floats) -> NDArray[Any]:
        """Add unweighted samples; how many each bin got."""
        length = self._weights.shape[1]
        squares = d * d
        squares *= self._square_units
        np.rint(squares, out=squares)
        squares += _COUNTER
        both = np.bincount(bins, squares, length)
        counts = np.floor(both * (1.0 / _COUNTER))
        self._weights.add(counts, column)
        self._squares.add(both - counts * _COUNTER, column)
        sums = d * self._mean_units
        np.rint(sums, out=sums)
        self._sums.add(np.bincount(bins, sums, length), column)
        held: NDArray[Any] = counts.reshape(-1, self._stride)
        lightest = self._lightest[column]
        np.minimum(lightest, np.where(held.any(axis=1), 1.0, inf), out=lightest)
        return held

    def _weigh(
        self, column: int, bins: NDArray[np.int64], d: Floats, weights: Floats
    ) -> NDArray[Any]:
        """Add weighted samples; how many each bin got."""
        # The products are rounded once, each for itself: their sums are exact again, and weights
        # that are whole numbers count like repetitions.
        self._weights.add_at(bins, weights, column)
        self._squares.add_at(bins, np.rint(d * d * self._square_units) * weights, column)
        self._sums.add_at(bins, np.rint(d * self._mean_units) * weights, column)
        np.minimum.at(self._lightest[column], bins // self._stride, weights)
        return np.bincount(bins, minlength=self._weights.shape[1]).reshape(-1, self._stride)

    def _widen(self, column: int, bins: NDArray[np.int64], d: Floats, held: NDArray[Any]) -> None:
        """Take the extreme scores of each group into account, exactly."""
        # They are in the outermost bins that hold any: only those are looked through.
        for group, places in enumerate(map(np.flatnonzero, held)):
            if not places.size:
                continue
            for place, extreme, kept in (
                (int(places[0]), np.min, self._smallest),
                (int(places[-1]), np.max, self._largest),
            ):
                nearest = extreme(d[bins == group * self._stride + place])
                score = float(nearest) + place * self._grid.width
                kept[column, group] = extreme([kept[column, group], score])

    def merge(self, other: ScoreBins) -> None:
        """Add the samples of another state of the same shape."""
        for own, others in zip(self._exact_sums, other._exact_sums, strict=True):
            own.merge(others)
        np.minimum(self._smallest, other._smallest, out=self._smallest)
        np.maximum(self._largest, other._largest, out=self._largest)
        np.minimum(self._lightest, other._lightest, out=self._lightest)

    def add_sums(
        self, counts: Integers, sums: Integers, squares: Integers, extremes: tuple[Floats, Floats]
    ) -> None:
        """Add samples that were summed elsewhere.

        Of each column and group, per bin: how many, and the sums of x and x² in units of 2⁻³⁷ and
        2⁻²³, each term rounded to a whole number; and the smallest and largest scores.
        """
        for own, totals in zip(self._exact_sums, (counts, sums, squares), strict=True):
            padded = np.pad(totals, ((0, 0), (0, 0), (0, 1)))
            own.add_integers(padded.reshape(own.shape))
        np.minimum(self._smallest, extremes[0], out=self._smallest)
        np.maximum(self._largest, extremes[1], out=self._largest)
        held = np.where(counts.any(axis=-1), 1.0, inf)
        np.minimum(self._lightest, held, out=self._lightest)

    @property
    def _exact_sums(self) -> tuple[ExactSums, ExactSums, ExactSums]:
        return self._weights, self._sums, self._squares

    def moments(self, column: int, group: int) -> BinMoments:
        """What is known of the scores of a group, which must have samples."""
        place = column, slice(group * self._stride, (group + 1) * self._stride)
        weights, sums, squares = (part.floats(place) for part in self._exact_sums)
        held = np.flatnonzero(weights)
        weights = weights[held]
        return BinMoments(
            centres=held.astype(np.float64),
            weights=weights,
            means=sums[held] / weights * MEAN_UNIT,
            squares=squares[held] / weights * SQUARE_UNIT,
            width=self._grid.width,
            smallest=float(self._smallest[column, group]),
            largest=float(self._largest[column, group]),
            lightest=float(self._lightest[column, group]),
        )

    def to_arrays(self) -> list[NDArray[Any]]:
        """The state in few arrays, the same for the same samples."""
        for part in self._exact_sums:
            part.settle()
        held = np.flatnonzero(self._weights.digits.any(axis=0))
        digits = [part.digits.reshape(len(part.digits), -1)[:, held] for part in self._exact_sums]
        lowest = np.array([part.lowest for part in self._exact_sums])
        held -= held // self._stride  # without the empty places
        return [held, lowest, *digits, self._smallest, self._largest, self._lightest]

    def take_arrays(self, arrays: list[NDArray[Any]]) -> None:
        """Become the state that `to_arrays` gave, of the same shape; see `check_stored`."""
        held, lowest, *digits, smallest, largest, lightest = arrays
        held = held + held // (self._stride - 1)
        for part, exponent, rows in zip(self._exact_sums, lowest, digits, strict=True):
            part.take(int(exponent), rows, held)
        extremes = (self._smallest, smallest), (self._largest, largest), (self._lightest, lightest)
        for own, given in extremes:
            own[...] = given
