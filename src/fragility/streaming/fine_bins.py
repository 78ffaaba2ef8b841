r"""Scores by class in many bins that keep their order: what a figure of ranks needs to know.

The bins are narrow where scores crowd: with :math:`r = \min(p, 1 - p)` a bin is one step of
:math:`\sqrt[4]{r}`, so that scores of 1e-9 and 1e-12 are told apart like those of 0.3 and 0.31.
Each keeps its weight, the sum of its scores and the least and the largest of them: a bin whose
least and largest score are the same is known exactly, and scores of different bins are in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..moments import Floats

__all__ = ["Atoms", "FineBins"]

#: Steps of the fourth root, least and most; powers of two.
_LEAST_STEPS, _MOST_STEPS = 1 << 7, 1 << 16
#: Adding and subtracting it leaves the multiples of 2⁻²² next to scores.
_LEADING = 1.5 * 2.0**30
#: State of all models together.
_STATE_BYTES = 100_000_000


class Atoms(NamedTuple):
    """The bins that hold any weight, by ascending score.

    Attributes
    ----------
    bins : ndarray
        Their places.
    low, high : ndarray
        Least and largest score.
    weight, total, squares : ndarray
        Weight, sum of weight times score, and sum of squared weights.
    """

    bins: NDArray[np.intp]
    low: Floats
    high: Floats
    weight: Floats
    total: Floats
    squares: Floats

    @property
    def mean(self) -> Floats:
        """Mean score, exact where all are the same."""
        return np.clip(self.total / self.weight, self.low, self.high)

    def part(self, places: slice) -> Atoms:
        """Some of the bins."""
        columns: list[NDArray[Any]] = [column[places] for column in self]
        return Atoms(*columns)

    def negated(self) -> Atoms:
        """The same for minus the scores."""
        bins, low, high, weight, total, squares = self.part(slice(None, None, -1))
        return Atoms(bins, -high, -low, weight, -total, squares)


class FineBins:
    """Bins of one column of scores, for each class.

    Parameters
    ----------
    n_classes : int
    steps : int
        Steps of the fourth root of r, a power of two.
    half_is_high : bool
        Whether a score of exactly one half is among those above it.
    """

    def __init__(self, n_classes: int, steps: int, half_is_high: bool = False) -> None:
        self._steps, self._half_is_high = float(steps), half_is_high
        #: Bins up to one half, and above.
        self.n_half = int(np.ceil(steps * 0.5**0.25)) + 1
        shape = (n_classes, 2 * self.n_half)
        self.weight, self.total = np.zeros(shape), np.zeros(shape)
        self.low, self.high = np.full(shape, np.inf), np.full(shape, -np.inf)
        self._squares: Floats | None = None

    @staticmethod
    def affordable_steps(n_tables: int) -> int:
        """Steps for so many pairs of a column and a class, within the memory for the state."""
        steps = _MOST_STEPS
        while steps > _LEAST_STEPS and n_tables * steps * 1.7 * 40 > _STATE_BYTES:
            steps //= 2
        return steps

    def places(self, scores: Floats) -> NDArray[np.int64]:
        """Bin of each score: never falls where the score rises."""
        above = scores >= 0.5 if self._half_is_high else scores > 0.5
        roots = np.subtract(1.0, scores)
        np.minimum(roots, scores, out=roots)
        np.sqrt(roots, out=roots)
        np.sqrt(roots, out=roots)
        roots *= self._steps
        np.ceil(roots, out=roots)  # zero alone is in the first bin
        # Above one half the bins are mirrored: x becomes last - x.
        signs = 1.0 - 2.0 * above
        roots *= signs
        signs -= 1.0
        signs *= -0.5 * (2 * self.n_half - 1)
        roots += signs
        return roots.astype(np.int64)

    def add(self, code: int, scores: Floats, weights: Floats | None) -> NDArray[np.int64]:
        """Add scores of a class; their bins."""
        bins = self.places(scores)
        length = self.weight.shape[1]
        if weights is None:
            self.weight[code] += np.bincount(bins, minlength=length)
            # Long sums of nearly equal numbers drift: the leading digits, added exactly, and the
            # rest apart.
            leading = scores + _LEADING
            leading -= _LEADING
            sums = np.bincount(bins, leading, length)
            np.subtract(scores, leading, out=leading)
            sums += np.bincount(bins, leading, length)
            self.total[code] += sums
        else:
            if self._squares is None:
                self._squares = np.zeros_like(self.weight)
            self.weight[code] += np.bincount(bins, weights, length)
            self.total[code] += np.bincount(bins, weights * scores, length)
            self._squares[code] += np.bincount(bins, weights * weights, length)
        np.minimum.at(self.low[code], bins, scores)
        np.maximum.at(self.high[code], bins, scores)
        return bins

    def atoms(self, code: int) -> Atoms:
        """What is known of a class."""
        held = np.flatnonzero(self.weight[code])
        squares = self.weight if self._squares is None else self._squares
        tables = (self.low, self.high, self.weight, self.total, squares)
        return Atoms(held, *(table[code, held] for table in tables))
