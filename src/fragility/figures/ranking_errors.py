r"""Ranking errors of a pair of classes, from sorted scores: the pairs are never formed.

The error of a negative and a positive is :math:`\varepsilon = p^- - p^+`. Its share and its mean
excess above a level, :math:`P(\varepsilon > t)` and :math:`E(\varepsilon - t)_+`, take one search
per distinct score. CVaR and buffered AUC are minima of convex functions made of these two numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from .._brent import bracketed_root
from .._typing import Floats, Indices

#: Pairs of more distinct scores are searched for a level on so many cells of equal mass first.
_COARSE = 1 << 12
#: How near the level of an optimum is searched for, among few and among very many scores: the value
#: is flat there, so that a level that is off by this much changes it by far less.
_NEAR, _NEAR_AMONG_MANY = 1e-15, 1e-9


class Side(NamedTuple):
    """Distinct scores of a class, ascending; their mass; and the place of each case's score."""

    values: Floats
    mass: Floats
    places: Indices

    @property
    def total(self) -> float:
        """Mass of the class."""
        return float(self.mass.sum())

    @property
    def shares(self) -> Floats:
        """Share of each score in the mass of the class."""
        return self.mass / self.total

    @classmethod
    def of(cls, scores: Floats, mass: Floats) -> Self:
        values, places = np.unique(scores, return_inverse=True)
        return cls(values, np.bincount(places, mass).astype(np.float64), places)

    def coarse(self) -> Self:
        """Return means of neighbouring scores of about equal mass."""
        middle = (np.cumsum(self.mass) - 0.5 * self.mass) / self.total
        cells = np.unique((middle * _COARSE).astype(np.intp), return_inverse=True)[1]
        mass = np.bincount(cells, self.mass).astype(np.float64)
        return type(self)(np.bincount(cells, self.mass * self.values) / mass, mass, cells)


class PairScores:
    """Scores of the negatives and positives of a pair of classes.

    Parameters
    ----------
    negatives, positives : ndarray
        Scores of the positive class.
    negative_mass, positive_mass : ndarray
    """

    def __init__(
        self, negatives: Floats, positives: Floats, negative_mass: Floats, positive_mass: Floats
    ) -> None:
        sides = Side.of(negatives, negative_mass), Side.of(positives, positive_mass)
        self._take(*sides)

    def _take(self, negative: Side, positive: Side) -> None:
        self.negative, self.positive = negative, positive
        self.negative_shares, self.positive_shares = negative.shares, positive.shares
        # Excesses are differences of scores: about a common origin they keep all their digits.
        self.origin = float(positive.values[0])
        self._below = _running(self.positive_shares)
        self._sum_below = _running(self.positive_shares * (positive.values - self.origin))
        self._above = 1.0 - _running(self.negative_shares)
        centred = self.negative_shares * (negative.values - self.origin)
        self._sum_above = centred.sum() - _running(centred)

    @property
    def largest(self) -> float:
        """Largest ranking error."""
        return float(self.negative.values[-1] - self.positive.values[0])

    @property
    def smallest(self) -> float:
        """Smallest ranking error."""
        return float(self.negative.values[0] - self.positive.values[-1])

    @property
    def mean(self) -> float:
        """Mean ranking error."""
        negative = self.negative_shares @ (self.negative.values - self.origin)
        return float(negative - self._sum_below[-1])

    def share_above(self, level: float) -> float:
        """Return the share of the errors above a level."""
        below = self.positive.values.searchsorted(self.negative.values - level)
        return float(self.negative_shares @ self._below[below])

    def share_from(self, level: float) -> float:
        """Return the share of the errors at or above a level."""
        below = self.positive.values.searchsorted(self.negative.values - level, side="right")
        return float(self.negative_shares @ self._below[below])

    def excess_of_negatives(self, scores: Floats, level: float) -> Floats:
        """Return the mean excess above a level of negatives with these scores."""
        reach = scores - level
        below = self.positive.values.searchsorted(reach)
        return np.asarray((reach - self.origin) * self._below[below] - self._sum_below[below])

    def excess_of_positives(self, scores: Floats, level: float) -> Floats:
        """Return the mean excess above a level of positives with these scores."""
        reach = scores + level
        above = self.negative.values.searchsorted(reach, side="right")
        return np.asarray(self._sum_above[above] - (reach - self.origin) * self._above[above])

    def excess(self, level: float) -> float:
        """Return the mean excess of all errors above a level."""
        return float(self.negative_shares @ self.excess_of_negatives(self.negative.values, level))

    def excess_influences(self, level: float, factor: float) -> tuple[Floats, Floats, Floats]:
        """Return how each case moves `factor` times the mean excess above a level.

        Of the negatives, of the positives, and of the worst mistakes: a negative of score 1 and a
        positive of score 0.
        """
        sides, ends = [], []
        for side, excesses, worst in (
            (self.negative, self.excess_of_negatives, 1.0),
            (self.positive, self.excess_of_positives, 0.0),
        ):
            by_value = factor * excesses(side.values, level)
            mean = float(side.shares @ by_value)
            sides.append((by_value - mean)[side.places])
            ends.append(factor * float(excesses(np.array([worst]), level)[0]) - mean)
        return sides[0], sides[1], np.array(ends)

    def level_where(
        self, rising: Callable[[PairScores, float], float], low: float, high: float
    ) -> float:
        """Return where a rising function of the level turns positive.

        Very many distinct scores are searched on cells of them first, to bracket the level.
        """
        near_enough = _NEAR
        if max(self.negative.values.size, self.positive.values.size) > 2 * _COARSE:
            near_enough = _NEAR_AMONG_MANY
            coarse = object.__new__(PairScores)
            coarse._take(self.negative.coarse(), self.positive.coarse())
            near = coarse.level_where(rising, low, high)
            reach = 4.0 * (high - low) / _COARSE
            while rising(self, max(near - reach, low)) > 0.0 and near - reach > low:
                reach *= 8.0
            while rising(self, min(near + reach, high)) <= 0.0 and near + reach < high:
                reach *= 8.0
            low, high = max(near - reach, low), min(near + reach, high)
        at_low, at_high = rising(self, low), rising(self, high)
        if at_low > 0.0:
            return low
        if at_high <= 0.0:
            return high
        return bracketed_root(lambda t: rising(self, t), low, high, xtol=near_enough, rtol=_NEAR)


def _running(amounts: Floats) -> Floats:
    """Return the totals of the first 0, 1, ..., n amounts."""
    return np.concatenate([[0.0], np.cumsum(amounts)])
