"""Decisions at given thresholds, exact: bins tell of all cases but those next to a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..deferral.decision_counts import DecisionCounts, DecisionTally
from ..moments import Floats
from .fine_bins import FineBins

if TYPE_CHECKING:
    from .prediction_atoms import PredictionAtoms

__all__ = ["CutBins"]

#: The confidence 1 − p is rounded by less than this.
_ROUNDING = 2.0**-52


class CutBins:
    """The bins of confidence that a threshold cuts, and the decisions on the cases in them.

    All other bins lie above or below each threshold as a whole.

    Parameters
    ----------
    thresholds : ndarray
        Ascending; the last one is 1.
    fine : FineBins
        Of the confidence, or of the score of one of two classes.
    of_score : bool
        Which of the two.
    """

    def __init__(self, thresholds: Floats, fine: FineBins, of_score: bool) -> None:
        self._tally = DecisionTally(thresholds)
        self._weighted = False
        # The first threshold that cuts each bin: its place (-1: none does), and itself.
        self._first = np.full(fine.weight.shape[1], -1, dtype=np.intp)
        for place in range(thresholds.size - 1, -1, -1):
            if 0.0 < thresholds[place] < 1.0:  # nothing is beyond 0 and 1
                for bins in _cut_by(float(thresholds[place]), fine, of_score):
                    self._first[bins] = place
        self._level = np.where(self._first < 0, np.inf, thresholds[self._first])

    def add(
        self,
        bins: NDArray[np.int64],
        confidence: Floats,
        wrong: NDArray[np.bool_],
        of_positives: bool,
        weights: Floats | None,
    ) -> None:
        """Add cases; their bins are told of by `counts`, only those above a threshold here."""
        self._weighted |= weights is not None
        rows = np.flatnonzero(confidence > self._level.take(bins))
        if rows.size:
            own = np.ones(rows.size) if weights is None else weights[rows]
            self._tally.add(confidence[rows], wrong[rows], of_positives, own)
            told = self._first[bins[rows]]  # where `counts` has them
            self._tally.add_at(told, wrong[rows], of_positives, -own)

    def counts(self, atoms: Iterable[PredictionAtoms], two_classes: bool) -> DecisionCounts:
        """Decisions on all cases, from the bins that hold them. To be called once."""
        for part in atoms:
            first = self._first[part.bins]
            whole, cut = first < 0, first >= 0
            wrong, is_positive, weight = part.wrong, part.of_positives, part.weight
            self._tally.add(part.mean[whole], wrong[whole], is_positive, weight[whole])
            self._tally.add_at(first[cut], wrong[cut], is_positive, weight[cut])
        return self._tally.counts(two_classes=two_classes, weighted=self._weighted)


def _cut_by(threshold: float, fine: FineBins, of_score: bool) -> Iterator[slice]:
    """Bins in which some confidences may be above a threshold and some not."""
    yield _between(threshold, threshold, fine)
    if of_score:  # of the other class the confidence is 1 − p
        yield _between(1.0 - threshold - _ROUNDING, 1.0 - threshold + _ROUNDING, fine)


def _between(low: float, high: float, fine: FineBins) -> slice:
    first, last = fine.places(np.clip([low, high], 0.0, 1.0)).tolist()
    return slice(first, last + 1)
