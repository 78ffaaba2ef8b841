r"""Prices at which relabelling samples no longer pays.

At a price t of another label the best that relabelling adds to the mean loss is
:math:`\sum_n a_n (g_n - t)_+`, with :math:`g_n` the gain of a sample: piecewise linear, convex and
falling in t, so that sorting the gains solves it exactly.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats


class LabelMoves:
    """Relabelling at prices from `floor` on.

    Parameters
    ----------
    gains, weights : ndarray of shape (n,)
        What another label adds to the loss of each sample, of any sign, and the sample's weight.
    floor : float
        Lowest price, zero or more; samples that gain no more than it do not matter.
    """

    def __init__(self, gains: Floats, weights: Floats, floor: float) -> None:
        paying = np.flatnonzero(gains > floor)
        order = paying[np.argsort(-gains[paying])]
        self._gains, self._weights = gains[order], weights[order]
        #: Where the slope changes, from the largest gain down to the floor; and the weight of the
        #: samples that pay between each of these prices and the next.
        self._prices = np.append(self._gains, floor)
        self._moved = np.cumsum(self._weights)

    def added(self, price: float) -> float:
        """What relabelling adds to the mean loss at a price from the floor on."""
        return float(self._weights @ np.maximum(self._gains - price, 0.0))

    def price_of_sum(self, allowed: float) -> float:
        """Lowest price at which relabelling adds no more than `allowed`, zero or more."""
        # Terms of one sign, so small sums keep their digits.
        steps = self._moved * -np.diff(self._prices)
        added = np.concatenate([[0.0], np.cumsum(steps)])
        last = int(np.searchsorted(added, allowed, side="right")) - 1
        if last == steps.size:
            return float(self._prices[-1])
        price = self._prices[last + 1] + (added[last + 1] - allowed) / self._moved[last]
        return float(min(price, self._prices[last]))

    def price_of_share(self, allowed: float) -> float:
        """Lowest price at which relabelling pays for no more weight than `allowed`."""
        return float(self._prices[np.searchsorted(self._moved, allowed, side="right")])
