"""The logistic loss of the strongest wrong class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .._typing import Floats
from .base import Codes, LossPoint
from .cross_entropy import CrossEntropy
from .gaps import GapLoss


@dataclass(frozen=True)
class MaxLogistic(GapLoss):
    r"""Logistic loss against the wrong class of the highest score.

    :math:`\max_{c \ne y} \ln(1 + e^{u_c - u_y})`; for two classes it is cross-entropy.
    """

    def piece(self, gap: Floats) -> Floats:
        return np.log1p(np.exp(-np.abs(gap))) + np.maximum(gap, 0.0)

    def piece_slope(self, gap: Floats) -> Floats:
        slope: Floats = expit(gap)
        return slope

    def piece_bend(self, gap: Floats) -> Floats:
        share = expit(-np.abs(gap))
        bend: Floats = share * (1.0 - share)
        return bend

    def at(self, scores: Floats, y: Codes) -> LossPoint:
        return CrossEntropy().at(scores, y) if scores.ndim == 1 else super().at(scores, y)

    def softened(self) -> CrossEntropy:
        return CrossEntropy()

    def is_smooth(self, n_classes: int) -> bool:
        return n_classes == 2
