"""The predictions of a model by confidence, as the bins of the first reading tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..moments import Floats
from .first_pass import ModelBins

__all__ = ["PredictionAtoms", "prediction_atoms"]


class PredictionAtoms(NamedTuple):
    """Bins that hold predictions, of one class each or all wrong or right.

    Attributes
    ----------
    bins : ndarray
        Their places.
    low, high, mean : ndarray
        Of the confidence.
    weight : ndarray
    wrong : ndarray of bool
    of_positives : bool
        Whether they are of the positive class of two.
    costs : ndarray of shape (3, n_bins), or (3, 0) without costs
        Sums: cost if decided alone, if reviewed, and the most that reviewing saves.
    """

    bins: NDArray[np.intp]
    low: Floats
    high: Floats
    mean: Floats
    weight: Floats
    wrong: NDArray[np.bool_]
    of_positives: bool
    costs: Floats


def prediction_atoms(bins: ModelBins) -> Iterator[PredictionAtoms]:
    """All predictions, in parts."""
    return _of_column(bins) if bins.confidence is None else _of_confidence(bins)


def _of_confidence(bins: ModelBins) -> Iterator[PredictionAtoms]:
    assert bins.confidence is not None
    for is_right in (0, 1):
        found = bins.confidence.atoms(is_right)
        costs: NDArray[Any] = np.zeros((3, 0))
        if bins.case_costs is not None:
            costs = bins.case_costs[is_right][:, found.bins]
        wrong = np.full(found.low.size, not is_right)
        yield PredictionAtoms(
            *(found.bins, found.low, found.high, found.mean, found.weight),
            *(wrong, False, costs),
        )


def _of_column(bins: ModelBins) -> Iterator[PredictionAtoms]:
    (column,) = bins.columns
    positive = bins.classes.positive
    for code in (0, 1):
        found = column.atoms(code)
        is_high = found.bins >= column.n_half
        # The confidence in the other class falls where the score rises.
        low = np.where(is_high, found.low, 1.0 - found.high)
        high = np.where(is_high, found.high, 1.0 - found.low)
        mean = np.where(is_high, found.mean, 1.0 - found.mean)
        predicted = np.where(is_high, positive, 1 - positive)
        costs: NDArray[Any] = np.zeros((3, 0))
        if bins.costs is not None:
            each = bins.costs.of_cases(np.full(predicted.size, code), predicted)
            saved = np.minimum(each.reviewed - each.alone, 0.0)
            costs = np.stack([each.alone, np.broadcast_to(each.reviewed, saved.shape), saved])
            costs = costs * found.weight
        yield PredictionAtoms(
            *(found.bins, low, high, mean, found.weight),
            *(predicted != code, code == positive, costs),
        )
