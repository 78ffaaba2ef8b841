"""How many cases a human reviews, and how many errors pass, at each of some thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..confidence import Predictions
from ..moments import Floats

__all__ = ["DecisionCounts", "DecisionTally", "decision_counts", "threshold_grid"]

#: Of more classes than this the thresholds below one half lie wider apart.
_FEW_CLASSES = 20


def threshold_grid(n_classes: int) -> Floats:
    """Thresholds of confidence to choose from, for any model: round numbers, finer towards one.

    First 0, where everything is automated; then from 1 / n_classes, the least confidence there is,
    in steps of 0.005 to 0.95, 0.001 to 0.99, 0.0005 to 0.999, 0.0001 to 0.9999; last 1, where
    nothing is. At most 250.

    Examples
    --------
    >>> from fragility.deferral.decision_counts import threshold_grid
    >>> threshold_grid(2)[:4].tolist()
    [0.0, 0.5, 0.505, 0.51]
    """
    # In units of 0.0001: a quotient of whole numbers is the float next to the decimal number.
    coarse = 50 if n_classes <= _FEW_CLASSES else 100
    first = -(-10_000 // n_classes)
    low = np.arange(-(-first // coarse) * coarse, 5_000, coarse)
    steps = [(5_000, 9_500, 50), (9_500, 9_900, 10), (9_900, 9_990, 5), (9_990, 10_000, 1)]
    ticks = np.concatenate([[0], low, *(np.arange(*step) for step in steps), [10_000]])
    return np.asarray(ticks / 10_000, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DecisionCounts:
    """What happens at each threshold δ: a model decides alone where its confidence is above δ.

    All arrays have one entry for each threshold, the weight of the cases: whole numbers, if the
    cases have no weights.

    Attributes
    ----------
    thresholds : ndarray
        Ascending; the last one is 1.
    reviewed : ndarray
        Cases of a confidence of at most δ.
    errors : ndarray
        Wrong predictions of a confidence above δ.
    false_negatives, false_positives : ndarray or None
        Those of the positive and of the negative class; None for several classes.
    reviewed_positives : ndarray or None
        Reviewed cases of the positive class; None for several classes.
    """

    thresholds: Floats
    reviewed: NDArray[Any]
    errors: NDArray[Any]
    false_negatives: NDArray[Any] | None
    false_positives: NDArray[Any] | None
    reviewed_positives: NDArray[Any] | None

    @property
    def total(self) -> float:
        """Weight of all cases: at the threshold 1 all are reviewed."""
        return float(self.reviewed[-1])


class DecisionTally:
    """Counts decisions as cases come.

    Parameters
    ----------
    thresholds : ndarray
        Ascending; the last one is 1.
    """

    def __init__(self, thresholds: Floats) -> None:
        if thresholds.size == 0 or thresholds[-1] != 1.0 or np.any(np.diff(thresholds) <= 0.0):
            raise ValueError("thresholds must be ascending, and the last of them 1.")
        self.thresholds = thresholds
        #: By class (is it the positive one?) and wrongness, and by the first threshold that sends
        #: a case to a human.
        self._sums = np.zeros((4, thresholds.size))

    def add(
        self,
        confidence: Floats,
        wrong: NDArray[np.bool_],
        is_positive: NDArray[np.bool_] | bool,
        weights: Floats | None,
    ) -> None:
        """Add cases; of several classes none is the positive one."""
        places = np.searchsorted(self.thresholds, confidence)
        # Rounding may push a probability above one, but no threshold lies there.
        np.minimum(places, self.thresholds.size - 1, out=places)
        self.add_at(places, wrong, is_positive, weights)

    def add_at(
        self,
        places: NDArray[np.intp],
        wrong: NDArray[np.bool_],
        is_positive: NDArray[np.bool_] | bool,
        weights: Floats | None,
    ) -> None:
        """Add cases, each at the first threshold that its confidence is not above."""
        cells = wrong + 2 * np.asarray(is_positive, dtype=np.intp)
        cells *= self.thresholds.size
        cells += places
        self._sums += np.bincount(cells, weights, self._sums.size).reshape(self._sums.shape)

    def counts(self, *, two_classes: bool, weighted: bool) -> DecisionCounts:
        """What was counted; `weighted` says whether the cases had weights."""
        dtype = np.float64 if weighted else np.int64
        # Above a threshold is summed from the top, so that the errors end at exactly zero.
        sums = np.maximum(self._sums, 0.0)  # what was added and taken away may leave rounding
        above = np.zeros_like(sums)
        above[:, :-1] = np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1]
        alarms, missed = above[1].astype(dtype), above[3].astype(dtype)
        return DecisionCounts(
            self.thresholds,
            np.cumsum(sums.sum(axis=0)).astype(dtype),
            alarms + missed,
            missed if two_classes else None,
            alarms if two_classes else None,
            np.cumsum(sums[2] + sums[3]).astype(dtype) if two_classes else None,
        )


def decision_counts(made: Predictions, n_classes: int, positive: int) -> DecisionCounts:
    """Decisions on predictions in memory, at the thresholds of `threshold_grid`."""
    tally = DecisionTally(threshold_grid(n_classes))
    is_positive = (made.true == positive) & (n_classes == 2)
    tally.add(made.confidence, made.wrong, is_positive, made.weights)
    return tally.counts(two_classes=n_classes == 2, weighted=made.weights is not None)
