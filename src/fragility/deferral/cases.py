"""Cases with what they cost, and the rule for the best of several thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import LabelledScores
from ..confidence import predictions
from ..moments import Floats
from .costs import Costs

__all__ = ["ROUNDING", "Cases", "first_of_least", "priced_cases"]

#: Costs and shares that differ by no more than this, relative to their scale, are equal.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Cases:
    """One entry for each case of positive weight.

    Attributes
    ----------
    confidence : ndarray
        Probability of the predicted class.
    true : ndarray of int
        Place of the true class in the labels.
    wrong : ndarray of bool
    weights : ndarray
    alone, reviewed : ndarray
        What the case costs, decided by the model alone and by a human.
    """

    confidence: Floats
    true: NDArray[np.intp]
    wrong: NDArray[np.bool_]
    weights: Floats
    alone: Floats
    reviewed: Floats

    @property
    def size(self) -> int:
        """Number of cases."""
        return self.confidence.size

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def scale(self) -> float:
        """Largest cost that decisions could have, times weight: rounding is relative to it."""
        return float(self.weights @ np.maximum(self.alone, self.reviewed))

    def sorted(self) -> Cases:
        """The same by ascending confidence; whatever the order they were given in, the same."""
        parts = (self.weights, self.reviewed, self.alone, self.wrong, self.true)
        varying = [part for part in parts if part.size and (part != part[0]).any()]
        order = np.lexsort((*varying, self.confidence))
        return Cases(
            self.confidence[order],
            self.true[order],
            self.wrong[order],
            self.weights[order],
            self.alone[order],
            self.reviewed[order],
        )


def priced_cases(data: LabelledScores, costs: Costs) -> Cases:
    """Cases of checked predictions at checked costs."""
    made = predictions(data)
    priced = costs.of_cases(made.true, made.predicted, made.rows)
    return Cases(
        # Rounding may push a probability above one, but no threshold lies there.
        np.minimum(made.confidence, 1.0),
        made.true.astype(np.intp),
        made.wrong,
        made.weights_or_ones,
        priced.alone,
        priced.reviewed,
    )


def first_of_least(cost: Floats, tolerance: float) -> NDArray[np.intp]:
    """Place of the least cost in each row; of those that are equal but for rounding, the first."""
    least = cost.min(axis=-1, keepdims=True)
    places: NDArray[np.intp] = (cost <= least + tolerance).argmax(axis=-1)
    return places
