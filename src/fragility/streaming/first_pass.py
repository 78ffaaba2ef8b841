"""The first reading: scores into bins, and everything that is a plain sum."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..confidence import most_probable
from ..deferral import Costs
from ..measured import CONFIDENT
from ..moments import Floats, weighted_sum
from .batches import ClassRows
from .cut_bins import CutBins
from .fine_bins import FineBins
from .totals import RunningTotals

__all__ = ["Classes", "ConfidentSums", "ModelBins", "Population"]

_EPS = float(np.finfo(np.float64).eps)
#: So many probabilities, each at least eps, have a product that does not underflow.
_FACTORS = 16
#: Places of the plain sums.
_LOG_LOSS, _BRIER, _CONFIDENT_WRONG = range(3)


@dataclass(frozen=True)
class Classes:
    """How many classes there are, and which of two is the positive one."""

    count: int
    positive: int

    @property
    def is_binary(self) -> bool:
        return self.count == 2

    @property
    def n_columns(self) -> int:
        """Columns of scores: two classes need one."""
        return 1 if self.is_binary else self.count


class ConfidentSums:
    """The cases above 90 % confidence: number, weight, how confident, how often right."""

    def __init__(self) -> None:
        self.n = 0
        self._sums = RunningTotals(4)

    def add(
        self, confidence: Floats, wrong: NDArray[np.bool_], weights: Floats | None
    ) -> NDArray[np.bool_]:
        """Add those of some cases; which they are."""
        above = confidence > CONFIDENT
        n = int(np.count_nonzero(above))
        self.n += n
        own = None if weights is None else weights[above]
        weight, squares = (n, n) if own is None else (float(own.sum()), float(own @ own))
        right = weighted_sum(~wrong[above], own)
        self._sums.add(np.array([weight, squares, weighted_sum(confidence[above], own), right]))
        return above

    @property
    def effective(self) -> float:
        """Their number where all weigh the same, less where few outweigh the others."""
        weight, squares, _, _ = self._sums.values.tolist()
        return weight * weight / squares if squares > 0.0 else 0.0

    @property
    def mean(self) -> float:
        """Mean confidence; NaN if there are none."""
        return self._mean_of(2)

    @property
    def right(self) -> float:
        """Share of right predictions; NaN if there are none."""
        return self._mean_of(3)

    def _mean_of(self, place: int) -> float:
        sums = self._sums.values
        return float(sums[place] / sums[0]) if self.n else nan


class ModelBins:
    """What one reading keeps of one model's scores.

    Parameters
    ----------
    classes : Classes
    steps, confidence_steps : int
        Of the bins of the scores and of the confidence, see `FineBins`.
    costs : Costs, optional
        Checked; with one number or a matrix.
    thresholds : ndarray, optional
        Of confidence, to count decisions at.
    """

    def __init__(
        self,
        classes: Classes,
        steps: int,
        confidence_steps: int,
        costs: Costs | None,
        thresholds: Floats | None,
    ) -> None:
        self.classes, self.costs = classes, costs
        half_is_high = classes.is_binary and classes.positive == 0
        self.columns = [
            FineBins(classes.count, steps, half_is_high) for _ in range(classes.n_columns)
        ]
        #: Confidence of wrong (0) and right (1) predictions; two classes have it in their column.
        self.confidence = None if classes.is_binary else FineBins(2, confidence_steps)
        #: Decisions on the cases next to a threshold.
        self.cut: CutBins | None = None
        if thresholds is not None:
            of_confidence = self.confidence or self.columns[0]
            self.cut = CutBins(thresholds, of_confidence, of_score=classes.is_binary)
        #: Sums over these bins: cost if decided alone, if reviewed, and the most that review saves.
        self.case_costs: Floats | None = None
        if costs is not None and self.confidence is not None:
            self.case_costs = np.zeros((2, 3, self.confidence.weight.shape[1]))
        self._sums = RunningTotals(3)
        self._origins: list[float] = []
        self._offsets = RunningTotals(classes.n_columns, classes.count)
        self.confident = ConfidentSums()
        self.n_wrong = self.n_confident_errors = 0

    def add(self, code: int, columns: Floats, weights: Floats | None) -> None:
        """Add cases of a class."""
        places = [
            fine.add(code, scores, weights)
            for fine, scores in zip(self.columns, columns, strict=True)
        ]
        scores = columns[0] if self.classes.is_binary else columns.T
        predicted, confidence = most_probable(scores, self.classes.positive)
        wrong = predicted != code
        if self.confidence is not None:
            self._add_confidence(code, confidence, predicted, wrong, weights)
        elif self.cut is not None:
            self.cut.add(places[0], confidence, wrong, code == self.classes.positive, weights)
        confident = wrong & self.confident.add(confidence, wrong, weights)
        self.n_wrong += int(np.count_nonzero(wrong))
        self.n_confident_errors += int(np.count_nonzero(confident))
        self._origins = self._origins or [float(scores[0]) for scores in columns]
        offsets = np.zeros((self.classes.n_columns, self.classes.count))
        offsets[:, code] = [
            weighted_sum(scores - origin, weights)
            for scores, origin in zip(columns, self._origins, strict=True)
        ]
        self._offsets.add(offsets)
        own = columns[0 if self.classes.is_binary else code]
        if self.classes.is_binary and code != self.classes.positive:
            own = 1.0 - own
        self._sums.add(
            np.array(
                [
                    _log_loss(own, weights),
                    self._brier(code, columns, own, weights),
                    weighted_sum(confident, weights),
                ]
            )
        )

    def _add_confidence(
        self,
        code: int,
        confidence: Floats,
        predicted: NDArray[Any],
        wrong: NDArray[np.bool_],
        weights: Floats | None,
    ) -> None:
        assert self.confidence is not None
        for is_right in (0, 1):
            rows = np.flatnonzero(wrong != bool(is_right))
            if not rows.size:
                continue
            own = None if weights is None else weights[rows]
            bins = self.confidence.add(is_right, confidence[rows], own)
            if self.cut is not None:
                self.cut.add(bins, confidence[rows], wrong[rows], False, own)
            if self.case_costs is None or self.costs is None:
                continue
            costs = self.costs.of_cases(np.full(rows.size, code), predicted[rows])
            saved = np.minimum(costs.reviewed - costs.alone, 0.0)
            for kept, amount in zip(
                self.case_costs[is_right], (costs.alone, costs.reviewed, saved), strict=True
            ):
                amount = amount if own is None else amount * own
                kept += np.bincount(bins, amount, kept.size)

    def _brier(self, code: int, columns: Floats, own: Floats, weights: Floats | None) -> float:
        total = 0.0
        others = [] if self.classes.is_binary else range(len(columns))
        for misses in (1.0 - own, *(columns[i] for i in others if i != code)):
            total += float(misses @ (misses if weights is None else weights * misses))
        return total

    def origin(self, column: int) -> float:
        """Some score of a column."""
        return self._origins[column]

    def offset_sum(self, column: int, code: int) -> float:
        """Sum of the scores of a class less the origin, weighted."""
        return float(self._offsets.values[column, code])

    @property
    def log_loss(self) -> float:
        return float(self._sums.values[_LOG_LOSS])

    @property
    def brier(self) -> float:
        return float(self._sums.values[_BRIER])

    @property
    def confident_errors(self) -> float:
        """Weight of the wrong predictions that were made with confidence."""
        return float(self._sums.values[_CONFIDENT_WRONG])


class Population:
    """All cases, or those of a group: what the first reading keeps of them, for each model.

    Parameters
    ----------
    models : list of str
    classes : Classes
    n_populations : int
        How many like this one share the memory for the bins.
    costs : Costs, optional
    thresholds : ndarray, optional
    """

    def __init__(
        self,
        models: list[str],
        classes: Classes,
        n_populations: int = 1,
        costs: Costs | None = None,
        thresholds: Floats | None = None,
    ) -> None:
        self.classes = classes
        sharing = n_populations * len(models)
        steps = FineBins.affordable_steps(sharing * classes.n_columns * classes.count)
        confidence_steps = FineBins.affordable_steps(sharing * 2)
        self.models = {
            name: ModelBins(classes, steps, confidence_steps, costs, thresholds) for name in models
        }
        self.support = np.zeros(classes.count, dtype=np.int64)
        self._weights = RunningTotals(2, classes.count)

    def add(self, rows: ClassRows) -> None:
        """Add cases of a class."""
        self.support[rows.code] += rows.size
        weights = rows.weights
        terms = np.zeros((2, self.classes.count))
        terms[:, rows.code] = (
            rows.size if weights is None else (float(weights.sum()), float(weights @ weights))
        )
        self._weights.add(terms)
        for name, model in self.models.items():
            model.add(rows.code, rows.scores[name], weights)

    def check_weights(self) -> None:
        """No class has weights that vanish beside those of the others."""
        if np.any((self.support > 0) & (self._weights.values[1] == 0.0)):
            raise ValueError(
                "The weights of some class or group are so much smaller than the largest one that "
                "floating point cannot hold both; give cases of negligible weight the weight zero."
            )

    @property
    def weight(self) -> Floats:
        """Of each class."""
        return np.asarray(self._weights.values[0])

    def effective_size(self, code: int) -> float:
        """Effective number of cases of a class."""
        weight, squares = self._weights.values[:, code]
        return float(weight * weight / squares) if squares > 0.0 else 0.0


def _log_loss(own: Floats, weights: Floats | None) -> float:
    """Minus the sum of the logarithms of probabilities, finite at 0."""
    clipped = np.clip(own, _EPS, 1.0)
    if weights is not None:
        return -float(weights @ np.log(clipped))
    # One logarithm of a product for many.
    whole = clipped.size // _FACTORS * _FACTORS
    products = np.multiply.reduce(clipped[:whole].reshape(_FACTORS, -1), axis=0)
    return -float(np.log(products).sum() + np.log(clipped[whole:]).sum())
