r"""Calibration on equal terms: every model after the same cross-fitted map.

A model with smaller scores has a smaller Fragility Index, so models are compared after calibration:
Platt scaling of the log-odds for two classes, one temperature for several. Each case gets the map
that was fitted to the other folds, so that no model is calibrated on its own answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, softmax

from ._parameters import check_count
from ._random import content_order, random_generator, spread_over_folds
from ._typing import Floats, Integers, Mask
from ._validation import LabelledScores, check_labelled_probabilities

#: From scores to calibrated scores.
CalibrationMap = Callable[[NDArray[Any]], Floats]

#: Probabilities nearer to 0 or 1 are taken as this near: their log-odds are rounding errors.
_NEAREST = 1e-12
#: Steps of Newton's method; a dozen are usual.
_MOST_STEPS = 100
#: Where a step gains less than this share of the loss, rounding hides whether it gains at all.
_NEAR = 1e-10
_ACCURACY = 1e-26
#: A logarithm of a temperature that moves by less than this has arrived.
_CLOSE = 1e-13
#: Logits of a case that differ by this share of their size are the same but for rounding.
_SAME = 2.0 * float_info.epsilon
#: The largest temperature, in units of the largest difference between two logits of a case: no
#: confidence is left (0.1 % between two classes), and even float32 still tells their order.
_HOTTEST = 1e3
#: The logarithm of the smallest one: a limit of floating-point numbers, not of the method.
_COLDEST = -700.0


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
    targets. Several: one temperature of maximum likelihood, :math:`p_c^{1/T}` normalised. Use it
    to compare models on equal terms; the maps of different folds differ a little, so that AUC may
    move a little, too.

    Where the likelihood has no maximum T is bounded, as `fragility.torch.fit_temperature` says: if
    the largest probability is right in all n cases, the mean log-loss on them becomes 1/(n + 1),
    and if the probabilities are worse than none, nearly no confidence is left. Probabilities below
    1e-12 count as 1e-12, so that a true class of probability 0 costs 28 nats and not infinitely
    many. No calibrated probability is exactly 0 or, of two classes, 1.

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
        For the folds, which do not depend on the order of the samples.

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
        y_true, proba, labels, pos_label, sample_weight, name="proba"
    )
    n_splits = check_count(n_splits, "n_splits", least=2)
    try:
        check_can_calibrate(data.labels, data.support)
    except CannotCalibrateError as error:
        raise ValueError(f"These predictions cannot be calibrated: {error}.") from None
    return calibrated(data, n_splits, random_state).scores


class CannotCalibrateError(Exception):
    """Why some predictions cannot be calibrated, in words without a full stop."""


def check_can_calibrate(labels: NDArray[Any], counts: Integers) -> None:
    """Refuse numbers of cases by class that cannot be cross-fitted."""
    present = np.flatnonzero(counts)
    if present.size < 2:
        raise CannotCalibrateError("only one class has samples")
    least = present[np.argmin(counts[present])]
    if counts[least] < 2:
        raise CannotCalibrateError(f"class {labels.tolist()[least]!r} has a single sample")


def calibrated(
    data: LabelledScores,
    n_splits: int = 5,
    random_state: Any = 0,
    beside: Sequence[NDArray[Any]] = (),
) -> LabelledScores:
    """The same predictions after cross-fitted calibration.

    The folds are drawn from the cases in the order of what they are, so that the order in which
    they came does not matter. Cases that these predictions do not tell apart are in the order of
    what else is known of them, `beside`: the scores of other models, for paired tests, and costs.
    """
    n_splits = min(n_splits, int(data.support[data.support > 0].min()))
    strata = _strata(data)
    order = content_order(strata, data.scores, data.weights, beside)
    # Sums in that order, too: their last digits decide about ties after calibration.
    weights = None if data.weights is None else data.weights[order]
    ordered = replace(data, scores=data.scores[order], codes=data.codes[order], weights=weights)
    counted = None if weights is None else weights > 0.0
    folds = spread_over_folds(strata[order], n_splits, random_generator(random_state), counted)
    scores = np.empty(data.scores.shape)
    for fold in range(n_splits):
        own = folds == fold
        scores[order[own]] = fitted_map(ordered, ~own)(ordered.scores[own])
    return data.with_scores(scores)


def _strata(data: LabelledScores) -> NDArray[Any]:
    """Classes that folds have in equal parts; of two, whether it is the positive one."""
    return data.codes == data.positive if data.is_binary else data.codes


def fitted_map(data: LabelledScores, rows: Mask | None = None) -> CalibrationMap:
    """The map fitted to these rows (all by default) of the predictions."""
    if not data.is_binary:
        temperature = fitted_temperature(data, rows)
        return lambda p: tempered(p, temperature)
    used, weights = _used_rows(data, rows)
    truth = data.codes[used] == data.positive
    positives = int(np.count_nonzero(truth))
    high, low = platt_targets(positives, truth.size - positives)
    return Platt.fitted(log_odds(data.scores[used]), weights, np.where(truth, high, low))


def fitted_temperature(data: LabelledScores, rows: Mask | None = None) -> float:
    """The temperature fitted to these rows (all by default) of predictions of several classes."""
    used, weights = _used_rows(data, rows)
    return best_temperature(_logs(data.scores[used]), data.codes[used], weights, np)


def tempered(p: NDArray[Any], temperature: float) -> Floats:
    """Probabilities of several classes at a temperature."""
    found: Floats = np.maximum(softmax(_logs(p) / temperature, axis=1), float_info.min)
    return found


def _used_rows(data: LabelledScores, rows: Mask | None) -> tuple[Mask, Floats]:
    """Rows that have weight, and their weights, the largest of which is one."""
    weights = np.ones(data.codes.size) if data.weights is None else data.weights
    used = weights > 0.0 if rows is None else rows & (weights > 0.0)
    return used, weights[used] / weights[used].max()


def platt_targets(positives: int, negatives: int) -> tuple[float, float]:
    """Platt's targets: without them the slope has no limit where the classes do not overlap."""
    return (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)


@dataclass(frozen=True)
class Platt:
    """Logistic map of the log-odds, which are brought to order one first."""

    slope: float
    intercept: float
    centre: float
    scale: float

    @classmethod
    def fitted(
        cls, z: Floats, weights: Floats, targets: Floats, start: Platt | None = None
    ) -> Platt:
        """Map of least log-loss of weighted log-odds with these target frequencies.

        The search begins at zero, or at another map of the same log-odds.
        """
        centre, scale = float(z.mean()), float(z.std())
        if z.min() == z.max():  # whose mean and spread are rounding errors
            centre, scale = float(z[0]), 1.0
        design = np.stack([(z - centre) / scale, np.ones_like(z)])

        def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
            scores = parameters @ design
            probability = expit(scores)
            loss = weights @ (np.logaddexp(0.0, scores) - targets * scores)
            gradient = design @ (weights * (probability - targets))
            curvature = (design * (weights * probability * (1.0 - probability))) @ design.T
            return float(loss), gradient, curvature

        near = None if start is None else np.array([start.slope, start.intercept])
        slope, intercept = _least(derivatives, near)
        return cls(float(slope), float(intercept), centre, scale)

    def __call__(self, p: NDArray[Any], /) -> Floats:
        least, largest = float_info.min, 1.0 - float_info.epsilon  # nothing is certain
        z = (log_odds(p) - self.centre) / self.scale
        found: Floats = np.clip(expit(self.slope * z + self.intercept), least, largest)
        return found


def best_temperature(logits: Any, truth: Any, weights: Any, xp: Any) -> float:
    """Temperature of maximum likelihood, within the bounds of `fragility.torch.fit_temperature`.

    Parameters
    ----------
    logits : array of shape (n, C), float64, finite
    truth : array of shape (n,)
        Class numbers from 0.
    weights : array of shape (n,), float64
        Positive.
    xp : module
        Where the arrays come from and the work is done: NumPy or PyTorch.
    """
    half = logits / 2.0  # the difference of the largest numbers would be infinite
    below = half - xp.amax(half, 1)[:, None]
    below = xp.where(below < -_SAME * xp.amax(abs(half), 1)[:, None], below, 0.0)
    spread = -float(below.min())
    if spread == 0.0:  # every temperature fits as well
        return 1.0
    below = below / spread
    missed = -below[xp.arange(len(truth)), truth]
    weights = weights / weights.sum()

    def loss(power: float) -> tuple[float, float, float]:
        """Mean cross-entropy at this power of the probabilities, its slope and curvature."""
        parts = xp.exp(power * below)
        total = parts.sum(1)
        parts = parts * below
        mean = parts.sum(1) / total
        variance = (parts * below).sum(1) / total - mean * mean
        values = power * missed + xp.log(total), missed + mean, variance
        value, slope, curvature = (float(weights @ value) for value in values)
        return value, slope, curvature

    if float(missed.max()) > 0.0:
        power = _increasing_root(lambda power: loss(power)[1:])
    else:
        # No case speaks against any confidence. We stop where the log-likelihood is about 1 below
        # its limit: a larger temperature fits clearly worse, a smaller one hardly better. Of
        # calibrated models whose few cases happen to be right, half get a T below 1 to 3.
        least = loss(exp(-_COLDEST))[0]  # more than 0 where the true class is tied with others
        squares = float((weights * weights).sum())  # 1/n; with weights, n counts equal ones
        goal = min(squares / (1.0 + squares), 0.5 * (loss(0.0)[0] - least))

        def missing(power: float) -> tuple[float, float]:
            value, slope, _ = loss(power)
            return goal - (value - least), -slope

        power = _increasing_root(missing)
    return min(max(2.0 * (spread / power), float_info.min), float_info.max)


def _increasing_root(function: Callable[[float], tuple[float, float]]) -> float:
    """Positive root of an increasing function, given as value and slope, within the bounds.

    Newton's method in the logarithm of the root, from zero, where a log-loss is most curved. Steps
    that leave the bracket or do not shrink are not trusted: the bracket is halved instead. Far up
    the curve is flat and says nothing, so that the way up is taken in steps that double.
    """
    low, high = -log(_HOTTEST), -_COLDEST
    value, slope = function(exp(low))
    if value >= 0.0:
        return exp(low)
    guess = -value / slope if slope > 0.0 else inf
    place = log(guess) if 0.0 < guess < inf else 0.0
    last, before, reach = inf, inf, 2.0
    for _ in range(_MOST_STEPS):
        place = min(max(place, low), high)
        value, slope = function(exp(place))
        if value < 0.0:
            low = place
        else:
            high = place
        rate = slope * exp(place)
        step = -value / rate if rate > 0.0 else inf
        if not (low <= place + step <= high and abs(step) <= 0.5 * before):
            step = 0.5 * (low + high) - place
        if step > reach:
            step, reach = reach, 2.0 * reach
        before, last = last, abs(step)
        place += step
        if last <= _CLOSE:
            break
    return exp(place)


def _least(
    derivatives: Callable[[Floats], tuple[float, Floats, Floats]], start: Floats | None = None
) -> Floats:
    """Minimum of a log-loss of two parameters: Newton's method with halved steps.

    By default from zero, where the function is most curved: where probabilities are near 0 or 1
    already its curvature says nothing.
    """
    point = np.zeros(2) if start is None else start
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


def log_odds(p: NDArray[Any]) -> Floats:
    """Log-odds of probabilities, which are clipped near 0 and 1."""
    values: Floats = logit(np.clip(p.astype(np.float64), _NEAREST, 1.0 - _NEAREST))
    return values


def _logs(p: NDArray[Any]) -> Floats:
    values: Floats = np.log(np.clip(p.astype(np.float64), _NEAREST, 1.0))
    return values
