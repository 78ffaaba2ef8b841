"""Thresholds chosen on some cases for others, as often as a bootstrap needs it.

Cases lie in ascending order of confidence, so a threshold is a *cut*: the number of cases that are
reviewed. A resample of the cases is a count for each; nothing is sorted again. Going on from one
cut to a later one lowers the cost only where a case is passed that is cheaper reviewed than decided
alone, which most often means a wrong one. Only cuts behind such cases can be best: few, and the
same in every resample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..moments import Floats
from .cases import ROUNDING, Cases, first_of_least

__all__ = ["Choice", "Chooser"]

_BLOCK = 512

Cuts = NDArray[np.intp]


class Choice(NamedTuple):
    """The cuts chosen on all cases (first) and on those outside each fold.

    `chow_threshold` is Chow's, lowered to the capacity on all cases. `cost` and `chow_cost` are
    those of all cases, each at the cut that the other folds chose, times weight; without folds, at
    the cut that the cases chose themselves.
    """

    cuts: Cuts
    chow_threshold: float
    cost: float
    chow_cost: float


class Chooser:
    """Chooses the best cut on all cases, and for each fold on the others.

    Parameters
    ----------
    cases : Cases
        Sorted.
    folds : ndarray of int, optional
        Fold of each case.
    capacity : float, optional
        Largest share of the weight that may be reviewed.
    chow : float
        Threshold of Chow's rule, which is lowered to the capacity; NaN where there is none.
    """

    def __init__(
        self, cases: Cases, folds: NDArray[np.intp] | None, capacity: float | None, chow: float
    ) -> None:
        self.cases = cases
        self.capacity = capacity
        self._in_folds = folds is not None
        self._folds = np.zeros(cases.size, dtype=np.intp) if folds is None else folds
        self.n_folds = int(self._folds.max()) + 1
        self._change = cases.weights * (cases.reviewed - cases.alone)
        self._alone = cases.weights * cases.alone
        starts = np.flatnonzero(np.diff(cases.confidence, prepend=-1.0))
        self._ends = np.append(starts[1:], cases.size)
        dips = np.minimum.reduceat(self._change, starts) < 0.0
        #: Cuts that can be best.
        self._cuts = np.append(0, self._ends[dips])
        passed_at = np.searchsorted(self._cuts, np.arange(cases.size), side="right")
        self._width = self._cuts.size + 1  # the last column is for cases behind every cut
        self._place = self._folds * self._width + passed_at
        self._n_blocks = -(-cases.size // _BLOCK)
        self._block = self._folds * self._n_blocks + np.arange(cases.size) // _BLOCK
        self.chow = chow
        self._chow_cut = int(np.searchsorted(cases.confidence, chow, side="right"))

    def threshold(self, cut: int) -> float:
        """The lowest threshold at which so many are reviewed."""
        return float(self.cases.confidence[cut - 1]) if cut else 0.0

    def choose(self, counts: Floats) -> Choice:
        """Choose on cases that each come so many times."""
        change = counts * self._change
        sums = np.bincount(self._place, change, self.n_folds * self._width)
        own: Floats = sums.reshape(self.n_folds, self._width)[:, :-1].cumsum(axis=1)
        cost = self._of_rows(own)
        weights = None if self.capacity is None else counts * self.cases.weights
        limits = None if weights is None else self._limits(weights)
        if limits is not None:
            cost[self._cuts > limits[:, np.newaxis]] = np.inf
        best = first_of_least(cost, ROUNDING * self.cases.scale)
        base = float(counts @ self._alone)
        used = best[1:] if self._in_folds else best
        total = base + float(own[np.arange(self.n_folds), used].sum())
        if np.isnan(self.chow):
            return Choice(self._cuts[best], np.nan, total, np.nan)
        chow_cuts = self._chow_cuts(weights, limits)
        chow_total = base + self._change_at(change, chow_cuts)
        lowered = chow_cuts[0] < self._chow_cut
        chow = self.threshold(int(chow_cuts[0])) if lowered else self.chow
        return Choice(self._cuts[best], chow, total, chow_total)

    def _of_rows(self, own: Floats) -> Floats:
        """Sums over all cases, and over those outside each fold."""
        every = own.sum(axis=0)
        return np.vstack([every, every - own]) if self._in_folds else every[np.newaxis]

    def _limits(self, weights: Floats) -> Cuts:
        """The last cut that the capacity allows, on all cases and outside each fold."""
        assert self.capacity is not None
        blocks = np.bincount(self._block, weights, self.n_folds * self._n_blocks)
        own: Floats = blocks.reshape(self.n_folds, -1).cumsum(axis=1)
        reviewed = self._of_rows(own)
        room = (self.capacity + ROUNDING) * reviewed[:, -1]
        limits = np.empty(len(room), dtype=np.intp)
        for row, (sums, most) in enumerate(zip(reviewed, room, strict=True)):
            full = int(np.searchsorted(sums, most, side="right"))  # blocks that fit wholly
            start = full * _BLOCK
            within = self._weights_of_row(weights, row, start, start + _BLOCK)
            before = float(sums[full - 1]) if full else 0.0
            fitting = start + int(np.searchsorted(before + np.cumsum(within), most, side="right"))
            limits[row] = self._whole(min(fitting, self.cases.size))
        return limits

    def _weights_of_row(self, weights: Floats, row: int, start: int, stop: int) -> Floats:
        part = weights[start:stop]
        return part * (self._folds[start:stop] != row - 1) if row else part

    def _whole(self, cut: int) -> int:
        """The last cut up to this one that does not part equal confidences."""
        place = int(np.searchsorted(self._ends, cut, side="right"))
        return int(self._ends[place - 1]) if place else 0

    def _chow_cuts(self, weights: Floats | None, limits: Cuts | None) -> Cuts:
        """Chow's cut, lowered to the last confidence in the row that the capacity allows."""
        rows = self.n_folds + 1 if self._in_folds else 1
        cuts = np.full(rows, self._chow_cut, dtype=np.intp)
        if weights is not None and limits is not None:
            for row in np.flatnonzero(limits < cuts).tolist():
                cuts[row] = self._last_present(weights, row, int(limits[row]))
        return cuts

    def _last_present(self, weights: Floats, row: int, cut: int) -> int:
        """Cut behind the last case that is there at all, none of it if none is."""
        stop = cut
        while stop > 0:
            start = max(0, stop - _BLOCK)
            there = np.flatnonzero(self._weights_of_row(weights, row, start, stop))
            if there.size:
                last = start + int(there[-1])
                return int(self._ends[np.searchsorted(self._ends, last, side="right")])
            stop = start
        return 0

    def _change_at(self, change: Floats, cuts: Cuts) -> float:
        """Sum of the changes of the cases before their fold's cut."""
        if self.capacity is None or not self._in_folds:
            return float(change[: int(cuts[0])].sum())
        reviewed = np.arange(change.size) < cuts[1:][self._folds]
        return float(change @ reviewed)
