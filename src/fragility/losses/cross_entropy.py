"""Cross-entropy: minus the logarithm of the probability of the true class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from .._typing import Floats
from .base import Codes, Loss, margins, signs


@dataclass(frozen=True)
class CrossEntropy(Loss):
    r"""Logistic loss: :math:`\ln(1 + e^{-m})`, or :math:`\ln \sum_c e^{u_c} - u_y`."""

    #: Another label changes it by the difference of two scores itself.
    relabelling: ClassVar[float] = 1.0
    relabelled_by_gap: ClassVar[bool] = True

    def value(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            m = margins(scores, y)
            # np.logaddexp(0, -m), which takes three times as long
            return np.log1p(np.exp(-np.abs(m))) - np.minimum(m, 0.0)
        rows = np.arange(y.size)
        behind = scores - scores[rows, y][:, np.newaxis]
        leader = behind.argmax(axis=1)
        lead = behind[rows, leader]
        others = np.exp(behind - lead[:, np.newaxis])
        others[rows, leader] = 0.0  # it counts one, and a small sum of the others keeps its digits
        several: Floats = lead + np.log1p(others.sum(axis=1))
        return several

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            slope: Floats = -signs(y) * expit(-margins(scores, y))
            return slope
        gradient = _shares(scores)
        gradient[np.arange(y.size), y] -= 1.0
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            p = expit(-np.abs(scores))
            bend: Floats = p * (1.0 - p)
            return bend
        p = _shares(scores)
        curvature: Floats = -p[:, :, np.newaxis] * p[:, np.newaxis, :]
        diagonal = np.arange(p.shape[1])
        curvature[:, diagonal, diagonal] += p
        return curvature


def _shares(scores: Floats) -> Floats:
    """Softmax of each row; SciPy's takes up to a third longer."""
    terms: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    terms /= terms.sum(axis=1, keepdims=True)
    return terms
