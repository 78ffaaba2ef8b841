"""How sure a classifier was of each prediction, and whether it was right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Mask
from .._validation import LabelledScores
from ..moments import order_one_factor
from ..scores.atoms import Atoms
from ..scores.tally import Task, complement

#: Bins of a histogram of confidence, unless told otherwise.
HISTOGRAM_BINS = 20


class Predictions(NamedTuple):
    """Confidence in each prediction, whether it was wrong, its weight, and the classes.

    Samples of no weight are left out; `rows` are those that are not. The weights are scaled to
    order one: only their ratios matter (None: all one). `true` and `predicted` are places of the
    classes in the labels.
    """

    confidence: Floats
    wrong: Mask
    weights: Floats | None
    true: NDArray[Any]
    predicted: NDArray[Any]
    rows: NDArray[Any] | slice

    @property
    def weights_or_ones(self) -> Floats:
        """Weights of the samples, one each if none were given."""
        return np.ones(self.confidence.size) if self.weights is None else self.weights


def predictions(data: LabelledScores) -> Predictions:
    """The predicted class of each sample, of equally probable ones the first, against its label."""
    predicted, confidence = Task.of(data).predictions(data.scores)
    wrong = predicted != data.codes
    if data.weights is None:
        return Predictions(confidence, wrong, None, data.codes, predicted, slice(None))
    rows = np.flatnonzero(data.weights > 0.0)
    weights = _scaled(data.weights[rows])
    return Predictions(
        confidence[rows], wrong[rows], weights, data.codes[rows], predicted[rows], rows
    )


def confident_errors(made: Predictions, threshold: float) -> float:
    """Share of all samples whose prediction is wrong at a confidence above the threshold."""
    counted = made.wrong & (made.confidence > threshold)
    if made.weights is None:
        return float(np.count_nonzero(counted)) / counted.size
    return float(made.weights[counted].sum() / made.weights.sum())


class PredictionAtoms(NamedTuple):
    """Predictions by confidence, in atoms that are all right or all wrong.

    Attributes
    ----------
    low, high, mean : ndarray
        Of the confidence.
    weight : ndarray
    wrong : ndarray of bool
    """

    low: Floats
    high: Floats
    mean: Floats
    weight: Floats
    wrong: Mask


def predictions_of_two(atoms: Sequence[Atoms], task: Task) -> PredictionAtoms:
    """Predictions of two classes, by the atoms of each class: none has scores on both sides of ½.

    One half itself is an atom of its own, or the upper end of an atom below. Answers, which all
    claim to be right, have atoms of any kind.
    """
    if task.answers:
        return predictions_by_outcome(*atoms)
    positive, parts = task.positive, []
    for code, found in enumerate(atoms):
        # At one half the first class is predicted.
        above = found.high > 0.5 if positive == 1 else found.low >= 0.5
        low = np.where(above, found.low, complement(found.high))
        high = np.where(above, found.high, complement(found.low))
        mean = np.where(above, found.mean, complement(found.mean))
        wrong = np.where(above, positive, 1 - positive) != code
        parts.append((low, high, mean, found.weight, wrong))
    return PredictionAtoms(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def predictions_by_outcome(wrong: Atoms, right: Atoms) -> PredictionAtoms:
    """Predictions by the atoms of the confidence of wrong and of right ones."""
    low, high, weight, mean, _ = (np.concatenate(part) for part in zip(wrong, right, strict=True))
    is_wrong = np.arange(low.size) < wrong.low.size
    return PredictionAtoms(low, high, mean, weight, is_wrong)


def outcome_atoms(made: Predictions) -> tuple[Atoms, Atoms]:
    """Atoms of the confidence of wrong and of right predictions."""
    wrong, right = (
        Atoms.of(made.confidence[rows], made.weights_or_ones[rows])
        for rows in (made.wrong, ~made.wrong)
    )
    return wrong, right


def score_atoms(data: LabelledScores) -> list[Atoms]:
    """Atoms of the scores of two classes, by class; cases of no weight are left out."""
    weights = None if data.weights is None else _scaled(data.weights)
    found = []
    for code in range(2):
        rows = data.codes == code
        if weights is not None:
            rows &= weights > 0.0
        found.append(Atoms.of(data.scores[rows], None if weights is None else weights[rows]))
    return found


class ConfidenceShares(NamedTuple):
    """Histograms of the confidence of wrong and of right predictions, as in `ConfidenceDisplay`.

    `edges` go from one over the number of classes to one, a bin holds its upper edge. `wrong` and
    `right` are shares of the weight, `n_wrong` and `n_right` numbers of cases, which may be
    expected ones.
    """

    edges: Floats
    wrong: Floats
    right: Floats
    n_wrong: float
    n_right: float


def confidence_shares(
    confidence: Floats, wrong: Mask, weights: Floats, edges: Floats, counts: Floats
) -> ConfidenceShares:
    """Histograms of predictions; `counts` are their numbers of cases."""
    return ConfidenceShares(
        edges,
        _shares_by_bin(confidence, weights * wrong, edges),
        _shares_by_bin(confidence, weights * ~wrong, edges),
        float(counts[wrong].sum()),
        float(counts[~wrong].sum()),
    )


def _shares_by_bin(confidence: Floats, weights: Floats, edges: Floats) -> Floats:
    """Share of the weight in each bin of a histogram; zeros if there is none."""
    # The upper edge belongs to a bin (but for rounding), as a confidence at the threshold is not
    # above it. Rows that sum to a little less than one may lie below the least edge.
    places = np.maximum(np.searchsorted(edges, confidence - 1e-9) - 1, 0)
    heights = np.bincount(places, weights, minlength=edges.size - 1)
    total = heights.sum()
    return np.asarray(heights / total if total > 0.0 else heights, dtype=np.float64)


def _scaled(weights: Floats) -> Floats:
    factor = order_one_factor(float(weights.max()))
    return weights if factor == 1.0 else weights * factor
