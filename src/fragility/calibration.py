r"""Calibration on equal terms: every model after the same cross-fitted map.

A model with smaller scores has a smaller Fragility Index, so models are compared after calibration:
Platt scaling of the log-odds for two classes, one temperature for several. Each case gets the map
that was fitted to the other folds, so that no model is calibrated on its own answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_softmax, logit, softmax

from ._parameters import check_count
from ._random import random_generator, spread_over_folds
from ._validation import LabelledScores, check_labelled_probabilities
from .moments import Floats

__all__ = [
    "CalibrationMap",
    "calibrated",
    "cross_fitted_calibration",
    "fitted_map",
    "why_not_calibrated",
]

#: From scores to calibrated scores.
CalibrationMap = Callable[[NDArray[Any]], Floats]

#: Probabilities nearer to 0 or 1 are taken as this near: their log-odds are rounding errors.
_NEAREST = 1e-12
#: Steps of Newton's method; a dozen are usual.
_MOST_STEPS = 100
#: Where a step gains less than this share of the loss, rounding hides whether it gains at all.
_NEAR = 1e-10
_ACCURACY = 1e-26
#: Logarithms of the probabilities of a case that are this close are the same but for rounding.
_SAME = 1e-13


def cross_fitted_calibration(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    n_splits: int = 5,
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> Floats:
    r"""Probabilities after calibration, each by a map fitted without its own case.

    Two classes: Platt scaling, :math:`\sigma(a \operatorname{logit} p + b)`, with Platt's smoothed
    targets. Several: one temperature, :math:`p_c^\beta` normalised. Use it to compare models on
    equal terms; the maps of different folds differ a little, so that AUC may move a little, too.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`.
    n_splits : int, default=5
        Folds, each with the same mix of classes; fewer if a class has fewer samples.
    labels, pos_label, sample_weight
        As in `fragility.confident_error_rate`.
    random_state : int, Generator, RandomState or None, default=0
        For the folds.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        One column for two classes: the positive one.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.calibration import cross_fitted_calibration
    >>> logit = 2 * np.random.default_rng(0).normal(size=2000)
    >>> y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-logit))
    >>> bold = 1 / (1 + np.exp(-3 * logit))
    >>> fair = cross_fitted_calibration(y, bold)
    >>> bool(np.mean((fair - y) ** 2) < np.mean((bold - y) ** 2))
    True
    """
    data = check_labelled_probabilities(
        y_true,
        proba,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
        name="proba",
    )
    n_splits = check_count(n_splits, "n_splits", least=2)
    reason = why_not_calibrated(data)
    if reason:
        raise ValueError(f"These predictions cannot be calibrated: {reason}.")
    return calibrated(data, n_splits, random_state).scores


def why_not_calibrated(data: LabelledScores) -> str:
    """Why cross-fitting is impossible; empty if it is not."""
    present = np.flatnonzero(data.support)
    if present.size < 2:
        return "only one class has samples"
    least = present[np.argmin(data.support[present])]
    if data.support[least] < 2:
        return f"class {data.labels.tolist()[least]!r} has a single sample"
    return ""


def calibrated(data: LabelledScores, n_splits: int = 5, random_state: Any = 0) -> LabelledScores:
    """The same predictions after cross-fitted calibration."""
    n_splits = min(n_splits, int(data.support[data.support > 0].min()))
    counted = None if data.weights is None else data.weights > 0.0
    folds = spread_over_folds(data.codes, n_splits, random_generator(random_state), counted)
    scores = np.empty(data.scores.shape)
    for fold in range(n_splits):
        own = folds == fold
        scores[own] = fitted_map(data, ~own)(data.scores[own])
    ends = scores.min(axis=0, keepdims=True), scores.max(axis=0, keepdims=True)
    return replace(data, scores=scores, ranges=np.stack(ends).reshape(2, -1))


def fitted_map(data: LabelledScores, rows: NDArray[np.bool_] | None = None) -> CalibrationMap:
    """The map fitted to these rows (all by default) of the predictions."""
    weights = np.ones(data.codes.size) if data.weights is None else data.weights
    used = weights > 0.0 if rows is None else rows & (weights > 0.0)
    codes, weights = data.codes[used], weights[used] / weights.max()
    if data.is_binary:
        return _platt(data.scores[used], codes == data.positive, weights)
    return _temperature(data.scores[used], codes, weights)


def _platt(p: NDArray[Any], truth: NDArray[np.bool_], weights: Floats) -> CalibrationMap:
    """Logistic map of the log-odds, of least smoothed log-loss."""
    z = _log_odds(p)
    centre, scale = z.mean(), z.std()
    if z.min() == z.max():  # whose mean and spread are rounding errors
        centre, scale = z[0], 1.0
    positives = np.count_nonzero(truth)
    # Platt's targets: without them the slope has no limit where the classes do not overlap.
    high, low = (positives + 1.0) / (positives + 2.0), 1.0 / (truth.size - positives + 2.0)
    targets = np.where(truth, high, low)
    design = np.stack([(z - centre) / scale, np.ones_like(z)])

    def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
        scores = parameters @ design
        probability = expit(scores)
        loss = weights @ (np.logaddexp(0.0, scores) - targets * scores)
        gradient = design @ (weights * (probability - targets))
        curvature = (design * (weights * probability * (1.0 - probability))) @ design.T
        return float(loss), gradient, curvature

    slope, intercept = _least(derivatives, 2)
    return lambda p: expit(slope * ((_log_odds(p) - centre) / scale) + intercept)


def _temperature(p: NDArray[Any], truth: NDArray[Any], weights: Floats) -> CalibrationMap:
    """Power of the probabilities of least smoothed log-loss."""
    logs = _logs(p)
    n, n_classes = logs.shape
    if np.ptp(logs, axis=1).max() <= _SAME:  # every power fits as well, rounding would choose one
        return lambda p: softmax(_logs(p), axis=1)
    # The same smoothing as Platt's, with as many classes: a perfect model gets no limit otherwise.
    missing = 1.0 / (n + n_classes)
    own = logs[np.arange(n), truth]
    target = (1.0 - n_classes * missing) * own + missing * logs.sum(axis=1)

    def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
        powers = log_softmax(parameters[0] * logs, axis=1)
        probability = np.exp(powers)
        mean = (probability * logs).sum(axis=1)
        variance = (probability * (logs - mean[:, np.newaxis]) ** 2).sum(axis=1)
        normaliser = parameters[0] * logs[:, 0] - powers[:, 0]
        loss = weights @ (normaliser - parameters[0] * target)
        return float(loss), np.array([weights @ (mean - target)]), np.array([[weights @ variance]])

    (power,) = _least(derivatives, 1)
    return lambda p: softmax(power * _logs(p), axis=1)


def _least(
    derivatives: Callable[[Floats], tuple[float, Floats, Floats]], n_parameters: int
) -> Floats:
    """Minimum of a log-loss of few parameters: Newton's method with halved steps.

    From zero, where the function is most curved: where probabilities are near 0 or 1 already its
    curvature says nothing.
    """
    point = np.zeros(n_parameters)
    value, gradient, curvature = derivatives(point)
    for _ in range(_MOST_STEPS):
        ridge = 1e-14 * np.trace(curvature) + 1e-300
        step = np.linalg.solve(curvature + ridge * np.eye(point.size), gradient)
        decrement = float(gradient @ step)
        length = 1.0
        while True:
            trial = point - length * step
            found = derivatives(trial)
            near = decrement <= _NEAR * abs(value)
            if near or found[0] <= value - 1e-4 * length * decrement or length < 1e-9:
                break
            length /= 2.0
        point, (value, gradient, curvature) = trial, found
        if decrement <= _ACCURACY * abs(value):
            break
    return point


def _log_odds(p: NDArray[Any]) -> Floats:
    values: Floats = logit(np.clip(p.astype(np.float64), _NEAREST, 1.0 - _NEAREST))
    return values


def _logs(p: NDArray[Any]) -> Floats:
    values: Floats = np.log(np.clip(p.astype(np.float64), _NEAREST, 1.0))
    return values
