"""Running sums that keep what rounding takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..moments import Floats

__all__ = ["RunningTotals"]


class RunningTotals:
    """An array of sums, compensated (Neumaier): as exact as if rounded a few times only.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.streaming.totals import RunningTotals
    >>> sums = RunningTotals(1)
    >>> for term in (1.0, 1e100, 1.0, -1e100):
    ...     sums.add(np.array([term]))
    >>> sums.values
    array([2.])
    """

    def __init__(self, *shape: int) -> None:
        self._sums, self._lost = np.zeros(shape), np.zeros(shape)

    def add(self, terms: NDArray[np.float64]) -> None:
        """Add a term to each sum."""
        sums = self._sums + terms
        larger = np.abs(self._sums) >= np.abs(terms)
        self._lost += np.where(larger, (self._sums - sums) + terms, (terms - sums) + self._sums)
        self._sums = sums

    @property
    def values(self) -> Floats:
        return self._sums + self._lost
