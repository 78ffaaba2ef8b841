"""How sure a classifier was of each prediction, and whether it was right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._validation import LabelledScores
from .moments import Floats, order_one_factor
from .ordered import running_totals, sums_by_value

__all__ = [
    "HISTOGRAM_BINS",
    "ConfidenceShares",
    "Predictions",
    "calibration_error",
    "confidence_shares",
    "confident_errors",
    "most_probable",
    "predictions",
    "risk_coverage_area",
    "shares_by_confidence",
]

#: Bins of a histogram of confidence, unless told otherwise.
HISTOGRAM_BINS = 20


class Predictions(NamedTuple):
    """Confidence in each prediction, whether it was wrong, its weight, and the classes.

    Samples of no weight are left out; `rows` are those that are not. The weights are scaled to
    order one: only their ratios matter (None: all one). `true` and `predicted` are places of the
    classes in the labels.
    """

    confidence: Floats
    wrong: NDArray[np.bool_]
    weights: Floats | None
    true: NDArray[Any]
    predicted: NDArray[Any]
    rows: NDArray[Any] | slice

    @property
    def weights_or_ones(self) -> Floats:
        """Weights of the samples, one each if none were given."""
        return np.ones(self.confidence.size) if self.weights is None else self.weights


def most_probable(probabilities: NDArray[Any], positive: int = 1) -> tuple[NDArray[Any], Floats]:
    """Place of the most probable class of each sample, of equal ones the first; and how probable.

    `probabilities` has shape (n_samples, n_classes), or (n_samples,): of the class at place
    `positive` of two.
    """
    if probabilities.ndim == 1:
        column = probabilities.astype(np.float64)
        # At one half the first class is predicted, be it the positive one or not.
        first = column <= 0.5 if positive == 1 else column >= 0.5
        return (~first).view(np.uint8), np.maximum(column, 1.0 - column)
    return probabilities.argmax(axis=1), probabilities.max(axis=1).astype(np.float64)


def predictions(data: LabelledScores) -> Predictions:
    """The most probable class of each sample, of equal ones the first, against its label."""
    predicted, confidence = most_probable(data.scores, data.positive)
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


def risk_coverage_area(made: Predictions) -> float:
    """Mean over the samples of the error rate among those at least as confident."""
    weights = made.weights_or_ones
    groups = sums_by_value(made.confidence, weights, weights * made.wrong)
    weight, wrong = groups.sums[:, ::-1]  # from the most confident on
    covered = np.cumsum(weight)
    return float(weight @ (np.cumsum(wrong) / covered) / covered[-1])


def calibration_error(data: LabelledScores, n_bins: int) -> float:
    """Mean difference of probability and frequency over bins of equal mass."""
    weights = np.ones(data.codes.size) if data.weights is None else data.weights
    if data.is_binary:
        carrying = weights > 0.0
        weights = _scaled(weights[carrying])
        probability = data.scores[carrying].astype(np.float64)
        happened = data.codes[carrying] == data.positive
    else:
        made = predictions(data)
        probability, happened, weights = made.confidence, ~made.wrong, made.weights_or_ones
    groups = sums_by_value(probability, weights, weights * (happened - probability))
    mass, residual = (running_totals(sums) for sums in groups.sums)
    # Tied samples share one probability, so a boundary among them takes its part of their mass.
    edges = mass[-1] * (np.arange(n_bins + 1) / n_bins)
    within = np.diff(np.interp(edges, mass, residual))
    return float(np.abs(within).sum() / mass[-1])


class ConfidenceShares(NamedTuple):
    """Histograms of the confidence of wrong and of right predictions, as in `ConfidenceDisplay`.

    `edges` go from one over the number of classes to one, a bin holds its upper edge. `wrong` and
    `right` are shares of the weight, `n_wrong` and `n_right` numbers of cases.
    """

    edges: Floats
    wrong: Floats
    right: Floats
    n_wrong: int
    n_right: int


def confidence_shares(
    made: Predictions, n_classes: int, n_bins: int = HISTOGRAM_BINS
) -> ConfidenceShares:
    """Histograms of predictions."""
    weights, wrong = made.weights_or_ones, made.wrong
    n_wrong = int(np.count_nonzero(wrong))
    sides = made.confidence, weights * wrong, weights * ~wrong
    return shares_by_confidence(*sides, n_classes, n_bins, n_wrong, wrong.size - n_wrong)


def shares_by_confidence(
    confidence: Floats,
    wrong: Floats,
    right: Floats,
    n_classes: int,
    n_bins: int,
    n_wrong: int,
    n_right: int,
) -> ConfidenceShares:
    """Histograms of the weights of wrong and right predictions at each of some confidences."""
    edges = np.linspace(1.0 / n_classes, 1.0, n_bins + 1)
    return ConfidenceShares(
        edges,
        _shares_by_bin(confidence, wrong, edges),
        _shares_by_bin(confidence, right, edges),
        n_wrong,
        n_right,
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
