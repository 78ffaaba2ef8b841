"""Best moves against cross-entropy of two classes, where they are known."""

from __future__ import annotations

from math import inf

import numpy as np
from scipy.special import expit

from .._typing import Floats, Indices
from ..ambiguity import Box, SquaredNorm, Transport
from ..losses.base import signs
from .adversaries import Adversary, LinearSamples

#: Steps to a root, at most: each halves what is left, or is one of Newton's.
_STEPS = 100


class SquaredLogistic(Adversary):
    r"""Cross-entropy of two classes at a squared cost: the logit moves along a line.

    With the wrong-side logit v and the slope W in units of the cost it is
    :math:`\max_u \ln(1 + e^u) - k (u - v)^2 / W^2`, whose stationary points are
    :math:`\sigma(u) = c (u - v)` with :math:`c = 2k / W^2`. If c is a quarter or more there is one,
    else up to three, of which the first and the last may be best.
    """

    least = 0.0

    def __init__(self, samples: LinearSamples, ambiguity: Transport) -> None:
        assert isinstance(ambiguity.cost, SquaredNorm)
        self.samples, self.norm = samples, ambiguity.cost.length
        self.mobility = ambiguity.mobility(samples.coef.shape[1])
        self.slope = samples.coef * self.mobility
        self.width = float(self.norm.dual(self.slope)[0])

    def values(self, k: float, labels: Indices) -> Floats:
        wrong = -signs(labels) * self.samples.scores[:, 0]
        if self.width == 0.0:
            return np.logaddexp(0.0, wrong)
        if k == 0.0:
            return np.full(wrong.size, inf)
        u = self._best(wrong, k)
        return np.logaddexp(0.0, u) - k * ((u - wrong) / self.width) ** 2

    def moves(self, k: float, labels: Indices) -> Floats:
        wrong = -signs(labels) * self.samples.scores[:, 0]
        if self.width == 0.0 or k == 0.0:
            return np.zeros((labels.size, self.mobility.size))
        lengths = (self._best(wrong, k) - wrong) / self.width
        directions = self.norm.direction(self.slope) * self.mobility
        moves: Floats = -(signs(labels) * lengths)[:, np.newaxis] * directions
        return moves

    def logits(self, k: float, labels: Indices) -> tuple[Floats, Floats]:
        """Logits on the wrong side, as they are and at their worst."""
        wrong = -signs(labels) * self.samples.scores[:, 0]
        return wrong, self._best(wrong, k) if self.width else wrong

    def width_slope(self) -> Floats:
        """Derivative of the width by the coefficients, where the norm is smooth."""
        direction: Floats = self.norm.direction(self.slope)[0] * self.mobility
        return direction

    def _best(self, wrong: Floats, k: float) -> Floats:
        c = 2.0 * k / self.width**2

        def root(low: Floats, high: Floats) -> Floats:
            """Where σ(u) falls below c (u - v), between two points of different sign."""
            u = (low + high) / 2.0
            for _ in range(_STEPS):
                share = expit(u)
                gap = share - c * (u - wrong)
                low, high = np.where(gap > 0.0, u, low), np.where(gap > 0.0, high, u)
                with np.errstate(divide="ignore", invalid="ignore"):
                    there = u - gap / (share * (1.0 - share) - c)  # by Newton
                there = np.where((low <= there) & (there <= high), there, (low + high) / 2.0)
                if (np.abs(there - u) <= 1e-12 * (1.0 + np.abs(u))).all():
                    return there
                u = there
            return u

        far = wrong + 1.0 / c
        if c >= 0.25:
            return root(wrong, far)
        # The slope of σ is c at ± turn.
        turn = 2.0 * np.arccosh(1.0 / (2.0 * np.sqrt(c)))
        first = root(wrong, np.maximum(wrong, np.full_like(wrong, -turn)))
        last = root(np.clip(turn, wrong, far), far)
        gains = [np.logaddexp(0.0, u) - k * ((u - wrong) / self.width) ** 2 for u in (first, last)]
        return np.where(gains[0] > gains[1], first, last)


class BoxLogistic(Adversary):
    """Cross-entropy of two classes in ℓ1 inside a box: the steepest features go to their bounds.

    The gain is convex in each feature, so the worst point has features at their bounds; and of
    those the steepest ones, one after the other.
    """

    def __init__(self, samples: LinearSamples, ambiguity: Transport) -> None:
        assert isinstance(ambiguity.support, Box)
        self.samples, self.box = samples, ambiguity.support
        self.mobility = ambiguity.mobility(samples.coef.shape[1])
        self.slope = samples.coef[0] * self.mobility
        classes = {0, 1} if ambiguity.moves_labels else {*np.unique(samples.y).tolist()}
        steep = [np.abs(self._open(label)).max(initial=0.0) for label in classes]
        self.least = float(max(steep))

    def _open(self, label: int) -> Floats:
        """Slopes of the wrong-side logit of a label along features that may go for ever."""
        low, high = self.box.ends
        rising = self.slope * (1.0 if label == 0 else -1.0)
        return np.where(np.isinf(np.where(rising > 0.0, high, low)), rising, 0.0)

    def endless(self, label: int) -> Floats:
        slopes = self._open(label)
        steepest = np.flatnonzero((np.abs(slopes) == self.least) & (slopes != 0.0))
        return (np.eye(slopes.size) * np.sign(slopes) * self.mobility)[steepest]

    def _steps(self, k: float, labels: Indices) -> tuple[Indices, Floats, Floats, Floats]:
        """Features in order, their moves, and logits and costs after each of them."""
        steep, side = np.abs(self.slope), -signs(labels)
        order = np.argsort(-steep, kind="stable")[: int((steep > k).sum())]
        moves = np.empty((labels.size, order.size))
        for sign in (-1.0, 1.0):
            rows = np.flatnonzero(side == sign)
            rooms = self.box.rooms(self.samples.places[rows], sign * self.slope)[:, order]
            moves[rows] = rooms / self.mobility[order]
        logits = side * self.samples.scores[:, 0]
        zero = np.zeros((labels.size, 1))
        risen = np.concatenate([zero, np.cumsum(moves * steep[order], axis=1)], axis=1)
        costs = np.concatenate([zero, np.cumsum(moves, axis=1)], axis=1)
        return order, moves, logits[:, np.newaxis] + risen, costs

    def values(self, k: float, labels: Indices) -> Floats:
        _, _, logits, costs = self._steps(k, labels)
        values: Floats = (np.logaddexp(0.0, logits) - k * costs).max(axis=1)
        return values

    def moves(self, k: float, labels: Indices) -> Floats:
        order, moves, logits, costs = self._steps(k, labels)
        last = (np.logaddexp(0.0, logits) - k * costs).argmax(axis=1)
        moves = np.where(np.arange(order.size) < last[:, np.newaxis], moves, 0.0)
        moved = np.zeros((labels.size, self.mobility.size))
        towards = np.sign(self.slope[order]) * self.mobility[order]
        moved[:, order] = -signs(labels)[:, np.newaxis] * moves * towards
        return moved
