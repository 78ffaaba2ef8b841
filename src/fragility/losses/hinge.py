"""The hinge loss, and Crammer and Singer's for several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Floats
from .base import PairCost
from .gaps import GapLoss
from .pair_costs import CostlyGaps, mean_cost
from .piecewise_linear import Pieces
from .smoothed_hinge import SmoothedHinge


@dataclass(frozen=True, repr=False)
class Hinge(CostlyGaps, GapLoss):
    r"""How much the true class lacks to be ahead by one.

    :math:`\max(0, 1 - m)`, or :math:`\max(0, \max_{j \ne y} 1 + u_j - u_y)` for several classes.

    Parameters
    ----------
    pair_cost : array-like or DataFrame of shape (n_classes, n_classes), optional
        Cost of each class (row) taken for each other one, positive; zero on the diagonal. Rows and
        columns are the sorted classes, or those that label a DataFrame. The loss is
        :math:`\max(0, \max_{j \ne y} c_{yj} (1 + u_j - u_y))`.

    Examples
    --------
    To take the second class for the first costs five times as much as the other way round:

    >>> import numpy as np
    >>> from fragility.losses import Hinge
    >>> loss = Hinge(pair_cost=[[0, 1], [5, 0]])
    >>> loss.value(np.array([0.5, 0.5]), np.array([0, 1]))
    array([1.5, 2.5])
    """

    pair_cost: PairCost | None = None
    zero_from_some_margin: ClassVar[bool] = True
    bends: ClassVar[bool] = False

    def piece(self, gap: Floats) -> Floats:
        return 1.0 + gap

    def piece_slope(self, gap: Floats) -> Floats:
        return np.ones_like(gap)

    def piece_bend(self, gap: Floats) -> Floats:
        return np.zeros_like(gap)

    def pieces(self, n_classes: int) -> Pieces:
        unit = np.eye(n_classes)
        costs = 1.0 - unit if self.pair_cost is None else np.asarray(self.pair_cost)
        # In the row of a class the piece of the class itself is the one that is zero.
        slopes = costs[:, :, np.newaxis] * (unit[np.newaxis] - unit[:, np.newaxis])
        # Two classes have one score, that of the second.
        return Pieces(slopes[:, :, 1:] if n_classes == 2 else slopes, costs)

    def best_constant(self, shares: Floats) -> Floats | None:
        if self.pair_cost is not None:
            return None
        # No class ahead costs one; the most frequent one ahead by one costs the others two.
        ahead = np.zeros(shares.size)
        ahead[shares.argmax()] = float(2.0 * (1.0 - shares.max()) < 1.0)
        return ahead

    def softened(self) -> SmoothedHinge:
        return SmoothedHinge(mean_cost(self.pair_cost), self.pair_cost)

    def is_smooth(self, n_classes: int) -> bool:
        return False
