r"""The worst case of one model under optimal transport, sample by sample, in plain NumPy.

For a price k of transport a sample with the label y becomes as bad as

.. math:: \sup_{x \in \mathcal X} \ell(u(x), y) - k \, h(x - \hat x) ,

and mean and price together bound every expected loss. Slopes are in units of the cost: feature by
feature times what a unit of cost moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from math import inf

import numpy as np

from .._brent import bracketed_root
from .._typing import Floats, Indices
from ..ambiguity import TransportProfile, WorstLoss
from ..losses import Loss

_GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class LinearSamples:
    """A linear model and samples, in the user's units.

    `coef` is (outputs, d), `scores` (n, outputs); `y` are classes from 0 on. The features X are
    there where a support asks how much room they have: certificates keep what is here.
    """

    coef: Floats
    scores: Floats
    y: Indices
    n_classes: int
    X: Floats | None = None

    @property
    def places(self) -> Floats:
        """The features, of which there must be some."""
        assert self.X is not None
        return self.X


def steepest_slopes(coef: Floats, loss: Loss, codes: Indices, *, every: bool) -> Floats:
    """Steepest slopes of the loss by the features, one row for each pair that it depends on."""
    # A loss depends on differences to the sample's own class: one of the two must have samples,
    # or be a label that a sample may get. Each way round has its own steepness.
    n_classes = max(2, len(coef))
    present = (np.bincount(codes, minlength=n_classes) > 0) | every
    ways = loss.pair_steepness(n_classes) * present[:, np.newaxis]
    first, second = np.triu_indices(n_classes, 1)
    steepness = np.maximum(ways, ways.T)[first, second][:, np.newaxis]
    if len(coef) == 1:
        return steepness * coef
    felt = steepness[:, 0] > 0.0
    rows: Floats = steepness[felt] * (coef[first[felt]] - coef[second[felt]])
    return rows


class Adversary(ABC):
    """Best moves of the features against one model.

    Attributes
    ----------
    least : float
        Smallest price at which no sample gains for ever.
    samples : LinearSamples
    """

    least: float
    samples: LinearSamples

    @abstractmethod
    def values(self, k: float, labels: Indices) -> Floats:
        """Loss less cost of each sample at its worst place, with these labels."""

    @abstractmethod
    def moves(self, k: float, labels: Indices) -> Floats:
        """The move of each sample to where it is worst, with these labels."""

    def endless(self, label: int) -> Floats:
        """Ways (rows) along which a loss gains, in the long run, the least price for its cost."""
        return np.zeros((0, self.samples.coef.shape[1]))


@dataclass(frozen=True, eq=False)
class ExactProfile(TransportProfile):
    """The worst case of one model by an adversary whose moves are known exactly."""

    _: KW_ONLY
    adversary: Adversary
    y: Indices
    n_classes: int
    label_cost: float

    def level(self, k: float) -> float:
        """Largest expected loss less k times the distance; infinite below the least price."""
        return float(self.weights @ self.worst_labels(k)[0])

    def worst_labels(self, k: float) -> tuple[Floats, Indices]:
        """Loss less cost of each sample at its worst, and the label that it has there."""
        best, labels = self.adversary.values(k, self.y), self.y.copy()
        if self.label_cost < inf:
            for step in range(1, self.n_classes):
                other = (self.y + step) % self.n_classes
                value = self.adversary.values(k, other) - k * self.label_cost
                labels = np.where(value > best, other, labels)
                best = np.maximum(best, value)
        return best, labels

    def fragility(self, room: float) -> float:
        if self.mean > room + 1e-8 * abs(room):
            return inf
        low = self.adversary.least
        # Where no move pays the level is the mean, but for rounding.
        room = max(room, self.mean) + 1e-13 * abs(room)
        if self.level(low) <= room:
            return low
        high = max(2.0 * low, 1e-12)
        while not self.level(high) <= room:
            low, high = high, 4.0 * high
            if high > 1e200:
                # The target is met but for rounding, or by the data alone: no shift is allowed.
                return inf
        return _first_below(self.level, low, high, room)

    def worst(self, radius: float) -> WorstLoss:
        # Convex in k: the least of level + k · radius is where the tangent is level.
        low = self.adversary.least
        if radius == 0.0:
            return WorstLoss(self.mean, inf, self.mean)

        def total(k: float) -> float:
            return self.level(k) + k * radius

        high = max(2.0 * low, 1e-3 * self.mean / radius, 1e-12)
        at_high, further = total(high), total(4.0 * high)
        while further < at_high and high < 1e200:
            high, at_high, further = 4.0 * high, further, total(16.0 * high)
        high *= 4.0
        # Golden sections: each has one new point. A price of zero is only come near to.
        nothing = 1e-12 * high
        one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_one, at_two = total(one), total(two)
        while high - low > max(1e-12 * high, nothing):
            if at_one <= at_two:
                high, two, at_two = two, one, at_one
                one = high - _GOLDEN * (high - low)
                at_one = total(one)
            else:
                low, one, at_one = one, two, at_two
                two = low + _GOLDEN * (high - low)
                at_two = total(two)
        ends = [self.adversary.least, low, (low + high) / 2.0, high]
        k = min(ends, key=total)
        level = self.level(k)
        return WorstLoss(level + k * radius, k, level)


def _first_below(
    function: Callable[[float], float], low: float, high: float, bound: float
) -> float:
    """Smallest k with function(k) <= bound, of a falling function; both ends are known."""
    root = bracketed_root(
        lambda k: min(function(k), 1e300) - bound, low, high, xtol=1e-300, rtol=1e-14
    )
    for step in _steps_up(root):
        if function(step) <= bound:
            return step
    return high


def _steps_up(k: float) -> Iterator[float]:
    yield k
    for power in range(-52, -20):
        yield k * (1.0 + 2.0**power)
