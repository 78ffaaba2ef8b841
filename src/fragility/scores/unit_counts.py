"""Numbers and moments of unweighted samples by bin, kept side by side until they are asked for.

Samples of many groups go to bins all over the memory, and each sum of its own would fetch another
part of it. Here the number of samples shares a whole number with the sum of squares, and the sum of
x lies next to it: one part of the memory is fetched for all three.
"""

from __future__ import annotations

import numpy as np

from .._typing import Integers

#: Bits of a sum of squares, of which each has half of them.
_SQUARE_BITS = 42
#: A bin may hold fewer samples than this.
MOST = 1 << (_SQUARE_BITS // 2)


class UnitCounts:
    """Sums over samples, fewer than `MOST` in each bin.

    Parameters
    ----------
    n_bins : int
    """

    def __init__(self, n_bins: int) -> None:
        self._pairs = np.zeros((n_bins, 2), dtype=np.int64)
        #: No bin holds more samples.
        self._fullest = 0

    def has_room(self, n: int) -> bool:
        """Whether so many samples may be added, whatever their bins."""
        if self._fullest + n >= MOST:
            self._fullest = int(self._pairs[:, 1].max()) >> _SQUARE_BITS
        return self._fullest + n < MOST

    def add(self, bins: Integers, x: Integers, squares: Integers) -> None:
        """Add samples by their bins, for which there must be room.

        Parameters
        ----------
        bins : ndarray of int
        x, squares : ndarray of int
            Of sizes up to 2³⁷, and from 0 to 2²¹. All three are written over.
        """
        self._fullest += bins.size
        pairs = self._pairs.reshape(-1)
        bins *= 2
        squares += 1 << _SQUARE_BITS
        np.add.at(pairs, bins, x)
        bins += 1
        np.add.at(pairs, bins, squares)

    def totals(self) -> tuple[Integers, Integers, Integers]:
        """By bin: number of samples, and sums of x and of squares."""
        x, counted = self._pairs.T
        return counted >> _SQUARE_BITS, x, counted & ((1 << _SQUARE_BITS) - 1)
