r"""The hinge loss with its corners rounded.

The hinge loss is the largest of :math:`z_c = 1 + u_c - u_y` over the wrong classes c, and of 0: the
maximum of :math:`\sum_c a_c z_c` over shares :math:`a_c \ge 0` that sum to at most one. Subtracting
:math:`\tfrac{\gamma}{2} \sum_c a_c^2` inside makes it smooth, by at most :math:`\gamma / 2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from .._parameters import check_positive
from .._typing import Floats, Indices
from .base import Codes, LossPoint, PairCost, margins, signs
from .pair_costs import CostlyGaps, mean_cost


@dataclass(frozen=True, repr=False)
class SmoothedHinge(CostlyGaps):
    r"""Hinge loss (Crammer–Singer for several classes), smoothed over a width :math:`\gamma`.

    For two classes: 0 for margins from 1 on, :math:`(1 - m)^2 / 2\gamma` down to
    :math:`1 - \gamma`, and :math:`1 - m - \gamma / 2` below.

    Parameters
    ----------
    smoothing : float, default=1.0
        The width :math:`\gamma`.
    pair_cost : array-like or DataFrame of shape (n_classes, n_classes), optional
        Cost of each class (row) taken for each other one, positive; zero on the diagonal. Rows and
        columns are the sorted classes, or those that label a DataFrame. What is
        smoothed is the hinge loss with these costs, whose :math:`z_c` are :math:`c_{yc}` times
        those without.
    """

    smoothing: float = 1.0
    pair_cost: PairCost | None = None
    curvature_jumps: ClassVar[bool] = True
    zero_from_some_margin: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(self.smoothing, "smoothing")
        super().__post_init__()

    def softened(self) -> SmoothedHinge | None:
        wide = mean_cost(self.pair_cost)
        if self.smoothing >= wide:
            return None
        return SmoothedHinge(min(wide, 4.0 * self.smoothing), self.pair_cost)

    def at(self, scores: Floats, y: Codes) -> LossPoint:
        return _Point(self, scores, y)

    def value(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).value

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).curvature()


class _Point(LossPoint):
    """Everything from the shortfalls and the shares that attain the maximum."""

    loss: SmoothedHinge

    @cached_property
    def _costs(self) -> Floats:
        return self.loss.costs(self.y, 2 if self.scores.ndim == 1 else self.scores.shape[1])

    @cached_property
    def _shortfalls(self) -> Floats:
        """How much each wrong class lacks to be beaten by one, at its cost; 0 for the true one."""
        scores, y = self.scores, self.y
        if scores.ndim == 1:
            short = 1.0 - margins(scores, y)
            return short if self.loss.pair_cost is None else short * self._costs
        rows = np.arange(y.size)
        short = 1.0 + scores - scores[rows, y][:, np.newaxis]
        short[rows, y] = 0.0
        return short if self.loss.pair_cost is None else short * self._costs

    @cached_property
    def _shares(self) -> Floats:
        """Shortfalls over the width, cut to sum to one."""
        short, width = self._shortfalls, self.loss.smoothing
        if short.ndim == 1:
            return np.clip(short / width, 0.0, 1.0)
        free = np.maximum(short / width, 0.0)
        excess = free.sum(axis=1) > 1.0
        if excess.any():
            free[excess] = _on_simplex(short[excess] / width)
        return free

    @cached_property
    def value(self) -> Floats:
        share = self._shares
        value: Floats = share * self._shortfalls - self.loss.smoothing / 2.0 * share**2
        return value if self.scores.ndim == 1 else value.sum(axis=1)

    @cached_property
    def gradient(self) -> Floats:
        slopes = self._shares
        if self.loss.pair_cost is not None:
            slopes = slopes * self._costs
        if self.scores.ndim == 1:
            return -signs(self.y) * slopes
        gradient = slopes.copy()
        gradient[np.arange(self.y.size), self.y] = -gradient.sum(axis=1)
        return gradient

    def curvature(self, part: slice = slice(None)) -> Floats:
        width = self.loss.smoothing
        if self.scores.ndim == 1:
            short = self._shortfalls[part]
            bend = ((short > 0.0) & (short <= width)) / width
            return bend if self.loss.pair_cost is None else bend * self._costs[part] ** 2
        share, y = self._shares[part], self.y[part]
        active = (share > 0.0).astype(np.float64)
        # Where the shares sum to one they can only be exchanged.
        full = share.sum(axis=1) > 1.0 - 1e-12
        count = np.where(full, np.maximum(active.sum(axis=1), 1.0), np.inf)
        bend = -active[:, :, np.newaxis] * (active / count[:, np.newaxis])[:, np.newaxis, :]
        rows, diagonal = np.arange(y.size), np.arange(share.shape[1])
        bend[:, diagonal, diagonal] += active
        if self.loss.pair_cost is not None:
            costs = self._costs[part]
            bend *= costs[:, :, np.newaxis] * costs[:, np.newaxis, :]
        # By differences to the true class: what a wrong class gains, the true one loses.
        bend[rows, :, y] -= bend.sum(axis=2)
        bend[rows, y, :] -= bend.sum(axis=1)
        return bend / width


def _on_simplex(points: Floats) -> Floats:
    """Nearest points with entries of zero or more that sum to one (rows)."""
    # Entries that are one or more below the largest get nothing, however large they all are.
    below = np.maximum(points - points.max(axis=1, keepdims=True), -2.0)
    ordered = -np.sort(-below, axis=1)
    cut = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
    last: Indices = (ordered > cut).sum(axis=1) - 1
    shares: Floats = np.maximum(below - cut[np.arange(last.size), last][:, np.newaxis], 0.0)
    return shares
