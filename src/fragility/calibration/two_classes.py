r"""Calibration maps of two classes: from the score of the positive class to its probability.

All are fitted to the same table: scores, how much each weighs, and how often it was positive. With
:math:`z = \operatorname{logit} p`, in the order of their freedom:

=============  ============================================================================
identity       :math:`p`
temperature    :math:`\sigma(z / T)`
Platt          :math:`\sigma(a z + b)`
isotonic       any map that rises, of few values, with straight lines between them
=============  ============================================================================

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import float_info
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from .._typing import Floats
from .fitting import LEAST_RISE, clipped, least, log_odds
from .pooling import pooled_blocks

#: Digits after the point that the log-odds of p and of 1 - p share.
_DIGITS = 12
#: From here on 1 - σ(z) has fewer digits than σ(-z).
_FAR = 5.0


class FitTable(NamedTuple):
    """What a map of two classes is fitted to.

    Attributes
    ----------
    z : ndarray of shape (B,)
        Log-odds of the scores.
    weights : ndarray of shape (B,)
        Weight of each; a score of no weight says nothing.
    aims : ndarray of shape (B,)
        How often each was positive, by Platt's smoothed targets.
    frequencies : ndarray of shape (B,)
        How often it was.
    numbers : ndarray of shape (B,)
        How many cases of equal weight each counts for.
    """

    z: Floats
    weights: Floats
    aims: Floats
    frequencies: Floats
    numbers: Floats


class ScoreMap(Protocol):
    """From scores of the positive class to calibrated ones."""

    def __call__(self, p: NDArray[Any], /) -> Floats: ...


def platt_targets(positives: int, negatives: int) -> tuple[float, float]:
    """Platt's targets: without them the slope has no limit where the classes do not overlap."""
    return (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)


@dataclass(frozen=True)
class Identity:
    """The scores as they are, but for those that are nearer to 0 or 1 than any map takes them."""

    @classmethod
    def fitted(cls, given: FitTable, start: Identity | None = None) -> Identity:
        """There is nothing to fit."""
        return cls()

    def __call__(self, p: NDArray[Any], /) -> Floats:
        return clipped(p)


@dataclass(frozen=True)
class Temperature:
    """Log-odds over a temperature, which never turns their order round."""

    temperature: float

    @classmethod
    def fitted(cls, given: FitTable, start: Temperature | None = None) -> Temperature:
        """Map of least log-loss; where it would fall, nearly no confidence is left."""
        largest = float(np.abs(given.z).max())
        if largest == 0.0:
            return cls(1.0)  # every temperature fits as well
        design = given.z[np.newaxis] / largest
        near = np.zeros(1) if start is None else np.array([largest / start.temperature])
        (slope,) = _least_log_loss(design, given, near)
        return cls(largest / max(float(slope), LEAST_RISE))

    def __call__(self, p: NDArray[Any], /) -> Floats:
        # p and 1 - p stay as sure as each other, though their log-odds are rounded differently.
        z = np.round(log_odds(p), _DIGITS) / self.temperature
        far = np.abs(z) > _FAR
        return _certain_of_nothing(np.where(far | (z > 0.0), expit(z), 1.0 - expit(-z)))


@dataclass(frozen=True)
class Platt:
    """Logistic map of the log-odds, which are brought to order one first."""

    slope: float
    intercept: float
    centre: float
    scale: float

    @classmethod
    def fitted(cls, given: FitTable, start: Platt | None = None) -> Platt:
        """Map of least log-loss; the search begins at zero, or at a map of the same log-odds."""
        z = given.z
        centre, scale = float(z.mean()), float(z.std())
        if z.min() == z.max():  # whose mean and spread are rounding errors
            centre, scale = float(z[0]), 1.0
        design = np.stack([(z - centre) / scale, np.ones_like(z)])
        near = np.zeros(2) if start is None else np.array([start.slope, start.intercept])
        slope, intercept = _least_log_loss(design, given, near)
        return cls(float(slope), float(intercept), centre, scale)

    def __call__(self, p: NDArray[Any], /) -> Floats:
        z = (log_odds(p) - self.centre) / self.scale
        return _certain_of_nothing(expit(self.slope * z + self.intercept))


@dataclass(frozen=True, eq=False)
class Isotonic:
    r"""Log-odds that rise: straight lines between the centres of blocks.

    Neighbours that would fall are pooled (weighted isotonic regression). A block of n cases, of
    which a share f was positive, gets (n f + ½) / (n + 1), so that no block is certain and few
    cases say little; blocks that this turns round are pooled again. A block's value stands at the
    mean log-odds of its scores. Beyond the first and the last block the map is flat. A rise of
    0.001 over all scores is added everywhere, so that scores that differ stay apart.
    """

    centres: Floats
    values: Floats
    rise: float

    @classmethod
    def fitted(cls, given: FitTable, start: Isotonic | None = None) -> Isotonic:
        """Isotonic regression of the frequencies, made smooth."""
        used = given.weights > 0.0
        if not used.any():
            return cls(np.zeros(1), np.zeros(1), 0.0)
        z, origin = np.unique(given.z[used], return_inverse=True)
        weights = given.weights[used]
        parts = weights, weights * given.frequencies[used], given.numbers[used]
        weight, happened, number = (
            np.bincount(origin, part, z.size).astype(np.float64) for part in parts
        )
        blocks = pooled_blocks(happened / weight, weight)
        sums = (np.bincount(blocks, part) for part in (weight, happened, number))
        mass, positives, n = (part.astype(np.float64) for part in sums)
        shrunk = (n * positives / mass + 0.5) / (n + 1.0)
        again = pooled_blocks(shrunk, n + 1.0)
        blocks = again[blocks]
        values = np.bincount(again, (n + 1.0) * shrunk) / np.bincount(again, n + 1.0)
        centres = np.bincount(blocks, weight * z) / np.bincount(blocks, weight)
        spread = float(z[-1] - z[0])
        return cls(centres, logit(values), LEAST_RISE / spread if spread else 0.0)

    def __call__(self, p: NDArray[Any], /) -> Floats:
        z = log_odds(p)
        values = np.interp(z, self.centres, self.values)
        return _certain_of_nothing(expit(values + self.rise * (z - self.centres[0])))


#: How each map is fitted, in the order of their freedom. The search may start at the map of other
#: cases, the optional second argument.
METHODS: Mapping[str, Callable[..., ScoreMap]] = {
    "identity": Identity.fitted,
    "temperature": Temperature.fitted,
    "platt": Platt.fitted,
    "isotonic": Isotonic.fitted,
}


def _least_log_loss(design: Floats, given: FitTable, start: Floats) -> Floats:
    """Parameters of a linear function of these columns of least log-loss."""
    weights, targets = given.weights, given.aims

    def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
        scores = parameters @ design
        probability = expit(scores)
        loss = weights @ (np.logaddexp(0.0, scores) - targets * scores)
        gradient = design @ (weights * (probability - targets))
        curvature = (design * (weights * probability * (1.0 - probability))) @ design.T
        return float(loss), gradient, curvature

    return least(derivatives, start)


def _certain_of_nothing(p: Floats) -> Floats:
    """Probabilities, none of them 0 or 1."""
    return np.clip(p, float_info.min, 1.0 - float_info.epsilon)
