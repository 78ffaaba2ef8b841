"""Cross-entropy: minus the logarithm of the probability of the true class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, softmax

from ..moments import Floats
from .base import Codes, Loss, margins, signs

__all__ = ["CrossEntropy"]


@dataclass(frozen=True)
class CrossEntropy(Loss):
    r"""Logistic loss: :math:`\ln(1 + e^{-m})`, or :math:`\ln \sum_c e^{u_c} - u_y`."""

    def value(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            return np.logaddexp(0.0, -margins(scores, y))
        total: Floats = logsumexp(scores, axis=1)
        return total - scores[np.arange(y.size), y]

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            slope: Floats = -signs(y) * expit(-margins(scores, y))
            return slope
        gradient: Floats = softmax(scores, axis=1)
        gradient[np.arange(y.size), y] -= 1.0
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        if scores.ndim == 1:
            bend: Floats = expit(scores) * expit(-scores)
            return bend
        p = softmax(scores, axis=1)
        curvature: Floats = -p[:, :, np.newaxis] * p[:, np.newaxis, :]
        diagonal = np.arange(p.shape[1])
        curvature[:, diagonal, diagonal] += p
        return curvature
