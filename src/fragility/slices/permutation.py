"""A permutation test of a subset of cases: whether it holds more of a value than by chance.

Cases lie in strata. Under the null hypothesis every subset of a stratum of the same size is equally
probable. Within a stratum, cases of one kind count with the mean of their values, so that a draw is
one of a multivariate hypergeometric distribution: exact, at a cost that does not grow with the
number of cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import Floats, Integers, Mask

#: Draws at a time.
_BATCH = 500
#: Exceedances after which a p-value is known well enough (Besag and Clifford).
_ENOUGH = 50
#: Sums that differ by less than this part of all values are equal: the rest is rounding.
_ROUNDING = 1e-12


class StratifiedCases:
    """Cases by stratum and kind, with the mean value of each kind in each stratum.

    Parameters
    ----------
    strata, kinds : ndarray of shape (n,)
        Numbers of the stratum and kind of each case.
    values : ndarray of shape (n,)
    """

    def __init__(self, strata: Integers, kinds: Integers, values: Floats) -> None:
        _, self.strata = np.unique(strata, return_inverse=True)
        pairs = np.stack([self.strata, kinds], axis=1)
        cells, self._cell, counts = np.unique(
            pairs, axis=0, return_inverse=True, return_counts=True
        )
        self._cell = self._cell.reshape(-1)
        self._counts = counts.astype(np.int64)
        self._means = np.bincount(self._cell, values) / counts
        _, first = np.unique(cells[:, 0], return_index=True)
        #: Cells of one stratum follow each other.
        self._parts = [slice(a, b) for a, b in zip(first, [*first[1:], len(cells)], strict=True)]
        self._sizes = np.bincount(self.strata)
        means = np.bincount(self.strata, self._means[self._cell]) / self._sizes
        self._deviations = self._means - means[cells[:, 0]]
        self._unit = float(np.abs(self._deviations * self._counts).sum())

    @property
    def n_strata(self) -> int:
        """Number of strata, which `strata` counts from 0."""
        return int(self._sizes.size)

    @property
    def excess(self) -> Floats:
        """Mean value of the kind of each case, beyond the mean of its stratum."""
        found: Floats = self._deviations[self._cell]
        return found

    def standardised(self, totals: Floats, members: Floats, squares: Floats) -> Floats:
        """Sums of the excess over subsets, in standard deviations that the subsets tell.

        `members` and `squares` (of the excess), with one axis more than `totals`, are sums over the
        members of a subset by stratum. A single heavy case gives about 1; a subset that has all or
        none of each stratum 0.
        """
        variance = (squares * (1.0 - members / self._sizes)).sum(axis=-1)
        least = _ROUNDING * squares.sum(axis=-1)
        found: Floats = np.divide(
            totals, np.sqrt(variance), out=np.zeros(np.shape(totals)), where=variance > least
        )
        return found

    def p_value(self, inside: Mask, rng: np.random.Generator, n_draws: int) -> float:
        """One-sided p-value of the sum over the cases `inside`, exact for any number of draws.

        (1 + number of draws at least as large) / (1 + number of draws); drawing ends early once 50
        draws were at least as large, then 50 / number of draws.
        """
        own = np.bincount(self._cell[inside], minlength=self._counts.size)
        level = float(own @ self._deviations) - _ROUNDING * self._unit
        larger = drawn = 0
        while drawn < n_draws:
            size = min(_BATCH, n_draws - drawn)
            hits = np.flatnonzero(self._draws(own, rng, size) >= level)
            if larger + hits.size >= _ENOUGH:
                return _ENOUGH / (drawn + int(hits[_ENOUGH - larger - 1]) + 1)
            larger, drawn = larger + hits.size, drawn + size
        return (1 + larger) / (1 + n_draws)

    def _draws(self, own: Integers, rng: np.random.Generator, size: int) -> Floats:
        """Sums over random subsets with as many cases of each stratum."""
        total = np.zeros(size)
        for part, n_inside in self._uncertain(own):
            drawn = rng.multivariate_hypergeometric(self._counts[part], n_inside, size=size)
            total += drawn @ self._deviations[part]
        return total

    def _uncertain(self, own: Integers) -> Iterator[tuple[slice, int]]:
        """Strata of several kinds; of one kind any subset has the same sum, which is zero."""
        for part in self._parts:
            if part.stop - part.start > 1:
                yield part, int(own[part].sum())
