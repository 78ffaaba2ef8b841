"""The hinge loss, and Crammer and Singer's for several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Floats
from .gaps import GapLoss
from .piecewise_linear import Pieces
from .smoothed_hinge import SmoothedHinge


@dataclass(frozen=True)
class Hinge(GapLoss):
    r"""How much the true class lacks to be ahead by one.

    :math:`\max(0, 1 - m)`, or :math:`\max(0, \max_{c \ne y} 1 + u_c - u_y)` for several classes.
    """

    zero_from_some_margin: ClassVar[bool] = True
    bends: ClassVar[bool] = False

    def piece(self, gap: Floats) -> Floats:
        return 1.0 + gap

    def piece_slope(self, gap: Floats) -> Floats:
        return np.ones_like(gap)

    def piece_bend(self, gap: Floats) -> Floats:
        return np.zeros_like(gap)

    def pieces(self, n_classes: int) -> Pieces:
        if n_classes == 2:
            return Pieces(np.array([[[0.0], [1.0]], [[0.0], [-1.0]]]), np.array([[0.0, 1.0]] * 2))
        unit = np.eye(n_classes)
        # In the row of a class the piece of the class itself is the one that is zero.
        slopes = unit[np.newaxis] - unit[:, np.newaxis]
        return Pieces(slopes, 1.0 - unit)

    def best_constant(self, shares: Floats) -> Floats:
        # No class ahead costs one; the most frequent one ahead by one costs the others two.
        ahead = np.zeros(shares.size)
        ahead[shares.argmax()] = float(2.0 * (1.0 - shares.max()) < 1.0)
        return ahead

    def softened(self) -> SmoothedHinge:
        return SmoothedHinge()

    def is_smooth(self, n_classes: int) -> bool:
        return False
