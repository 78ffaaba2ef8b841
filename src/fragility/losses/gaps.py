r"""Losses of the widest gap to a wrong class, :math:`\max(0, \max_{c \ne y} \rho(u_c - u_y))`.

With :math:`\rho` smooth, convex and increasing. At a tie of two wrong classes, and at the corner at
zero, such a loss has no derivative; its pieces, one for each wrong class, do.
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
        return np.maximum(self.piece(widest_gap(scores, y)[0]), 0.0)

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        gap, rival = widest_gap(scores, y)
        slope = self.piece_slope(gap) * (self.piece(gap) > 0.0)
        if scores.ndim == 1:
            return -signs(y) * slope
        every = np.arange(y.size)
        gradient = np.zeros_like(scores)
        gradient[every, rival] = slope
        gradient[every, y] -= slope
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        gap, rival = widest_gap(scores, y)
        bend = self.piece_bend(gap) * (self.piece(gap) > 0.0)
        if scores.ndim == 1:
            return bend
        every = np.arange(y.size)
        curvature = np.zeros((*scores.shape, scores.shape[1]))
        curvature[every, rival, rival] = curvature[every, y, y] = bend
        curvature[every, rival, y] = curvature[every, y, rival] = -bend
        return curvature


def widest_gap(scores: Floats, y: Codes) -> tuple[Floats, Codes]:
    """How far the strongest wrong class is ahead of the true one, and which it is."""
    if scores.ndim == 1:
        return -signs(y) * scores, 1 - y
    every = np.arange(y.size)
    gaps = scores - scores[every, y][:, np.newaxis]
    gaps[every, y] = -np.inf
    rival = gaps.argmax(axis=1)
    return gaps[every, rival], rival
