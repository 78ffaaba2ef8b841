"""The logistic loss of the strongest wrong class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .._typing import Floats
from .base import Codes, LossPoint, PairCost
from .cross_entropy import CrossEntropy
from .gaps import GapLoss
from .pair_costs import CostlyGaps


@dataclass(frozen=True, repr=False)
class MaxLogistic(CostlyGaps, GapLoss):
    r"""Logistic loss against the wrong class of the highest score.

    :math:`\max_{j \ne y} \ln(1 + e^{u_j - u_y})`; for two classes it is cross-entropy.

    Parameters
    ----------
    pair_cost : array-like or DataFrame of shape (n_classes, n_classes), optional
        Cost of each class (row) taken for each other one, positive; zero on the diagonal. Rows and
        columns are the sorted classes, or those that label a DataFrame. The loss is
        :math:`\max_{j \ne y} c_{yj} \ln(1 + e^{u_j - u_y})`.
    """

    pair_cost: PairCost | None = None

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
        plain = scores.ndim == 1 and self.pair_cost is None
        return CrossEntropy().at(scores, y) if plain else super().at(scores, y)

    def softened(self) -> CrossEntropy | None:
        if self.pair_cost is not None and self.is_smooth(len(self.pair_cost)):
            return None
        return CrossEntropy(self.pair_cost)

    def is_smooth(self, n_classes: int) -> bool:
        return n_classes == 2
