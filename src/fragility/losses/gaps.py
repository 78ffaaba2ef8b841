r"""Losses of the widest gap to a wrong class, :math:`\max(0, \max_{j \ne y} \rho(u_j - u_y))`.

With :math:`\rho` smooth, convex and increasing. At a tie of two wrong classes, and at the corner at
zero, such a loss has no derivative; its pieces, one for each wrong class, do. Where classes have
costs, :math:`\max(0, \max_{j \ne y} c_{yj} \rho(u_j - u_y))`: the costliest piece counts.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .._typing import Floats
from .base import Codes, Loss, signs


class GapLoss(Loss):
    """A loss of the widest gap; a subclass says what a gap costs."""

    @abstractmethod
    def piece(self, gap: Floats) -> Floats:
        """A smooth function of a gap: the loss of the gap is it, or zero if that is more."""

    @abstractmethod
    def piece_slope(self, gap: Floats) -> Floats:
        """Its derivative."""

    @abstractmethod
    def piece_bend(self, gap: Floats) -> Floats:
        """Its second derivative."""

    def value(self, scores: Floats, y: Codes) -> Floats:
        gap, _, cost = self._costliest(scores, y)
        worth = np.maximum(self.piece(gap), 0.0)
        return worth if cost is None else worth * cost

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        gap, rival, cost = self._costliest(scores, y)
        slope = self.piece_slope(gap) * (self.piece(gap) > 0.0)
        if cost is not None:
            slope = slope * cost
        if scores.ndim == 1:
            return -signs(y) * slope
        every = np.arange(y.size)
        gradient = np.zeros_like(scores)
        gradient[every, rival] = slope
        gradient[every, y] -= slope
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        gap, rival, cost = self._costliest(scores, y)
        bend = self.piece_bend(gap) * (self.piece(gap) > 0.0)
        if cost is not None:
            bend = bend * cost
        if scores.ndim == 1:
            return bend
        every = np.arange(y.size)
        curvature = np.zeros((*scores.shape, scores.shape[1]))
        curvature[every, rival, rival] = curvature[every, y, y] = bend
        curvature[every, rival, y] = curvature[every, y, rival] = -bend
        return curvature

    def _costliest(self, scores: Floats, y: Codes) -> tuple[Floats, Codes, Floats | None]:
        """The gap that the loss is of, its class, and what that class costs."""
        if self.pair_cost is None:
            return *widest_gap(scores, y), None
        table = np.asarray(self.pair_cost)
        if scores.ndim == 1:
            return *widest_gap(scores, y), table[y, 1 - y]
        every = np.arange(y.size)
        gaps = scores - scores[every, y][:, np.newaxis]
        costly = table[y] * self.piece(gaps)
        costly[every, y] = -np.inf
        rival = costly.argmax(axis=1)
        return gaps[every, rival], rival, table[y, rival]


def widest_gap(scores: Floats, y: Codes) -> tuple[Floats, Codes]:
    """How far the strongest wrong class is ahead of the true one, and which it is."""
    if scores.ndim == 1:
        return -signs(y) * scores, 1 - y
    every = np.arange(y.size)
    gaps = scores - scores[every, y][:, np.newaxis]
    gaps[every, y] = -np.inf
    rival = gaps.argmax(axis=1)
    return gaps[every, rival], rival
