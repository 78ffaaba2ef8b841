"""Temperature scaling: one number that calibrates several classes, or logits of any."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from .._typing import Floats
from .fitting import logs

#: Steps of the search; a dozen are usual.
_MOST_STEPS = 100
#: A logarithm of a temperature that moves by less than this has arrived.
_CLOSE = 1e-13
#: Logits of a case that differ by this share of their size are the same but for rounding.
_SAME = 2.0 * float_info.epsilon
#: The largest temperature, in units of the largest difference between two logits of a case: no
#: confidence is left (0.1 % between two classes), and even float32 still tells their order.
_HOTTEST = 1e3
#: The logarithm of the smallest one: a limit of floating-point numbers, not of the method.
_COLDEST = -700.0


def tempered(p: NDArray[Any], temperature: float) -> Floats:
    """Probabilities of several classes at a temperature."""
    found: Floats = np.maximum(softmax(logs(p) / temperature, axis=1), float_info.min)
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
