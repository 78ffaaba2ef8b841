"""The index of many samples, from two plain means and a generic root finder."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq


def factorised_index(
    negatives, positives, target=0.0, negative_weights=None, positive_weights=None
):
    negatives = np.asarray(negatives, np.longdouble)
    positives = np.asarray(positives, np.longdouble)
    a = np.ones_like(negatives) if negative_weights is None else negative_weights
    b = np.ones_like(positives) if positive_weights is None else positive_weights
    negatives, a = negatives[a > 0], np.asarray(a, np.longdouble)[a > 0]
    positives, b = positives[b > 0], np.asarray(b, np.longdouble)[b > 0]
    top, bottom = negatives.max(), positives.min()
    if top - bottom <= target:
        return 0.0
    mean = (a @ negatives) / a.sum() - (b @ positives) / b.sum()
    if mean >= target:
        return math.inf

    def equation(kind):
        below, above = (negatives - top).astype(kind), (bottom - positives).astype(kind)
        v, w = (a / a.sum()).astype(kind), (b / b.sum()).astype(kind)

        def h_over_s(log_s):
            s = np.exp(kind(log_s))
            first, second = np.log(v @ np.exp(s * below)), np.log(w @ np.exp(s * above))
            return (first + second) / s + kind(top - bottom - target)

        return h_over_s

    low, high = -8.0, 25.0  # s from 3e-4 to 7e10
    # Double precision, which is ten times as fast, tells where long double has to look.
    exactly, guess = equation(np.longdouble), brentq(equation(np.float64), low, high, xtol=1e-12)
    for width in (1e-11, 1e-9, 1e-6):
        if exactly(guess - width) * exactly(guess + width) < 0.0:
            low, high = guess - width, guess + width
            break
    return math.exp(-brentq(exactly, low, high, xtol=1e-15, rtol=1e-15, maxiter=500))
