"""A random sample of cases that does not depend on their order or batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Indices, Integers
from .cases import Cases, joined


class CountedCases(NamedTuple):
    """Distinct cases and how often each came."""

    cases: Cases
    counts: Integers

    @classmethod
    def of(cls, cases: Cases) -> CountedCases:
        """Cases that came once each."""
        return cls(cases, np.ones(cases.size, dtype=np.int64))

    def take(self, rows: Indices) -> CountedCases:
        """Some of them."""
        return CountedCases(self.cases.take(rows), self.counts[rows])


class LowestHashes:
    """The distinct cases of lowest hash: a random sample, and the same one on every path.

    Parameters
    ----------
    most : int
        Distinct cases to keep; with 0 nothing is drawn.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[CountedCases] = []
        #: Cases of this hash and more are not in the sample.
        self._below = 2**64

    def add(self, more: CountedCases) -> None:
        """Add cases."""
        if not self._most:
            return
        self._parts.append(more.take(np.flatnonzero(more.cases.hashes() < self._below)))
        if sum(part.counts.size for part in self._parts) > 2 * self._most:
            self.found()

    def merge(self, other: LowestHashes, weighted: bool) -> None:
        """Add the sample of other cases, if `weighted` with a weight for each of them."""
        self._below = min(self._below, other._below)
        for part in other._parts:
            self.add(part._replace(cases=part.cases.weighted()) if weighted else part)

    def found(self) -> CountedCases:
        """The sample, by ascending hash."""
        cases = joined([part.cases for part in self._parts])
        counts = np.concatenate([part.counts for part in self._parts])
        hashes, first, origin = np.unique(cases.hashes(), return_index=True, return_inverse=True)
        sums = np.zeros(hashes.size, dtype=np.int64)
        np.add.at(sums, origin, counts)
        if hashes.size >= self._most:
            self._below = min(self._below, int(hashes[self._most - 1]) + 1)
        kept = np.flatnonzero(hashes < self._below)
        self._parts = [CountedCases(cases.take(first[kept]), sums[kept])]
        return self._parts[0]
