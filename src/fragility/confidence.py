"""How sure a classifier was of each prediction, and whether it was right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._validation import LabelledScores
from .moments import Floats, order_one_factor
from .ordered import running_totals, sums_by_value

__all__ = [
    "Predictions",
    "calibration_error",
    "confident_errors",
    "predictions",
    "risk_coverage_area",
]


class Predictions(NamedTuple):
    """Confidence in each prediction, whether it was wrong, and its weight.

    Samples of no weight are left out. The weights are scaled to order one: only their ratios matter
    (None: all one).
    """

    confidence: Floats
    wrong: NDArray[np.bool_]
    weights: Floats | None

    @property
    def weights_or_ones(self) -> Floats:
        """Weights of the samples, one each if none were given."""
        return np.ones(self.confidence.size) if self.weights is None else self.weights


def predictions(data: LabelledScores) -> Predictions:
    """The most probable class of each sample, of equal ones the first, against its label."""
    if data.is_binary:
        positive = data.scores.astype(np.float64)
        confidence = np.maximum(positive, 1.0 - positive)
        # At one half the first class is predicted, be it the positive one or not.
        chosen = positive > 0.5 if data.positive == 1 else positive >= 0.5
        wrong = chosen != (data.codes == data.positive)
    else:
        chosen = data.scores.argmax(axis=1)
        confidence = data.scores.max(axis=1).astype(np.float64)
        wrong = chosen != data.codes
    if data.weights is None:
        return Predictions(confidence, wrong, None)
    carrying = data.weights > 0.0
    return Predictions(confidence[carrying], wrong[carrying], _scaled(data.weights[carrying]))


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


def _scaled(weights: Floats) -> Floats:
    factor = order_one_factor(float(weights.max()))
    return weights if factor == 1.0 else weights * factor
