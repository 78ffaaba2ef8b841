"""Best moves against a linear piece of a loss: on the whole space, and inside a box."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats, Indices
from ..ambiguity import Box, Huber, SquaredNorm, Transport
from ..ambiguity.costs import NormCost
from ..ambiguity.radial_costs import RadialCost
from ..losses.piecewise_linear import Pieces
from .adversaries import Adversary, LinearSamples

_HALVINGS = 70
_FAR = 1e7
#: Slopes that are the steepest one but for rounding.
_SAME = 1e-9


class FreePieces(Adversary):
    """A piecewise linear loss on the whole space: each piece gains the same for all samples."""

    def __init__(self, samples: LinearSamples, ambiguity: Transport, pieces: Pieces) -> None:
        self.samples, self.cost, self.pieces = samples, ambiguity.cost, pieces
        self.mobility = ambiguity.mobility(samples.coef.shape[1])
        self.slopes = pieces.slopes @ samples.coef * self.mobility
        flat = self.slopes.reshape(-1, self.slopes.shape[-1])
        used = self._used(ambiguity.moves_labels)
        self.least = float(self._least(flat, np.repeat(used, self.slopes.shape[1])))

    def _used(self, labels_move: bool) -> Any:
        """Labels that some sample may have."""
        classes = np.arange(len(self.slopes))
        return np.ones(classes.size, bool) if labels_move else np.isin(classes, self.samples.y)

    def _least(self, slopes: Floats, used: Any) -> float:
        return float(self.cost.least_price(self._open(slopes[used])).max(initial=0.0))

    def _open(self, slopes: Floats) -> Floats:
        """Slopes along features that may go for ever."""
        return slopes

    def endless(self, label: int) -> Floats:
        length = getattr(self.cost, "length", self.cost)
        if self.least == 0.0 or not isinstance(length, NormCost):
            return super().endless(label)
        slopes = self._open(self.slopes[label])
        steepest = self.cost.least_price(slopes) >= self.least * (1.0 - _SAME)
        return length.direction(slopes[steepest]) * self.mobility

    def values(self, k: float, labels: Indices) -> Floats:
        worst: Floats = self._by_piece(k, labels).max(axis=1)
        return worst

    def _by_piece(self, k: float, labels: Indices) -> Floats:
        slopes, offsets = self.pieces
        table: Floats = np.einsum("nio,no->ni", slopes[labels], self.samples.scores)
        table += offsets[labels]
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            for i, slope in enumerate(self.slopes[label]):
                if slope.any():
                    table[rows, i] += self._gain(slope, k, rows)
        return table

    def _gain(self, slope: Floats, k: float, rows: Indices) -> Any:
        return self.cost.gain(slope[np.newaxis], k)[0]

    def _move(self, slope: Floats, k: float, rows: Indices) -> Floats:
        """Best moves in units of the cost."""
        if k == 0.0:
            return np.zeros((rows.size, slope.size))
        best: Floats = self.cost.move(slope[np.newaxis] / k)
        return np.broadcast_to(best, (rows.size, slope.size))

    def moves(self, k: float, labels: Indices) -> Floats:
        best = self._by_piece(k, labels).argmax(axis=1)
        moved = np.zeros((labels.size, self.mobility.size))
        for label, i in {*zip(labels.tolist(), best.tolist(), strict=True)}:
            rows = np.flatnonzero((labels == label) & (best == i))
            slope = self.slopes[label, i]
            if slope.any():
                moved[rows] = self._move(slope, k, rows) * self.mobility
        return moved


class BoxPieces(FreePieces):
    r"""A piecewise linear loss inside a box, at a cost :math:`\varphi` of a length in ℓ1, ℓ2, ℓ∞.

    A move of length t gains V(t), concave: the features go up to their bounds, in ℓ1 one after the
    other by steepness, in ℓ∞ all at the same pace, in ℓ2 each in proportion to its slope.
    """

    def __init__(self, samples: LinearSamples, ambiguity: Transport, pieces: Pieces) -> None:
        assert isinstance(ambiguity.support, Box)
        self.box = ambiguity.support
        self.radial = _Length(ambiguity.cost)
        super().__init__(samples, ambiguity, pieces)

    def _open(self, slopes: Floats) -> Floats:
        low, high = self.box.ends
        return np.where(np.isinf(np.where(slopes > 0.0, high, low)), slopes, 0.0)

    def _rooms(self, slope: Floats, rows: Indices) -> Floats:
        rooms = self.box.rooms(self.samples.places[rows], slope)
        moves = slope != 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(moves, rooms / np.where(moves, self.mobility, 1.0), 0.0)

    def _gain(self, slope: Floats, k: float, rows: Indices) -> Any:
        moves = self._move(slope, k, rows)
        return moves @ slope - k * self.radial.value(moves)

    def _move(self, slope: Floats, k: float, rows: Indices) -> Floats:
        rooms, steep = self._rooms(slope, rows), np.abs(slope)
        if self.radial.order == 2:
            return np.sign(slope) * self._euclidean(steep, k, rooms)
        if self.radial.order == 1:
            order = np.argsort(-steep, kind="stable")
            lengths = rooms[:, order]
            slopes = np.broadcast_to(steep[order], lengths.shape)
            t = self._best_length(slopes, lengths, k)
            filled = np.empty_like(rooms)
            left = np.maximum(t[:, np.newaxis] - _before(lengths), 0.0)
            filled[:, order] = np.minimum(left, lengths)
        else:
            order = np.argsort(rooms, axis=1)
            ends = np.take_along_axis(rooms, order, axis=1)
            with np.errstate(invalid="ignore"):
                lengths = np.diff(ends, axis=1, prepend=0.0)
            lengths = np.where(np.isnan(lengths), 0.0, lengths)
            slopes = np.cumsum(steep[order][:, ::-1], axis=1)[:, ::-1]
            t = self._best_length(slopes, lengths, k)
            filled = np.minimum(t[:, np.newaxis], rooms)
        return np.sign(slope) * filled

    def _best_length(self, slopes: Floats, lengths: Floats, k: float) -> Floats:
        """Length at which a concave function of falling slopes, less k φ, is largest."""
        # It pays to go on through a segment as long as its slope is above k φ'.
        ends, starts = np.cumsum(lengths, axis=1), _before(lengths)
        wanted = self.radial.length_for(slopes, k)
        inside = np.clip(wanted, starts, ends)
        pays = wanted > starts
        reached: Floats = np.where(pays & np.isfinite(inside), inside, 0.0).max(axis=1)
        return reached

    def _euclidean(self, steep: Floats, k: float, rooms: Floats) -> Floats:
        """Moves min(s · slope, room), with s the length t of the move over k φ'(t)."""
        if k == 0.0:
            return np.where(np.isfinite(rooms), rooms, 0.0)
        cost, least = self.radial.cost, 1.0 / k

        def moved(s: Floats) -> Floats:
            found: Floats = np.minimum(s[:, np.newaxis] * steep, rooms)
            return found

        def length(s: Floats) -> Floats:
            found: Floats = np.linalg.norm(moved(s), axis=1)
            return found

        if isinstance(cost, SquaredNorm):
            return moved(np.full(len(rooms), least / 2.0))
        if isinstance(cost, Huber):
            short = np.full(len(rooms), least)
            far = _slope_times(steep, rooms, k * cost.delta)
            return moved(np.where(length(short) <= cost.delta, short, far))
        if not isinstance(cost, RadialCost):
            return moved(_slope_times(steep, rooms, k))

        def excess(u: Floats) -> Floats:
            """Logarithm of s k φ'(t) / t at s = e^u, which rises; zero where nothing moves."""
            t = length(np.exp(u))
            some = np.where(t > 0.0, t, 1.0)
            return np.where(t > 0.0, u + np.log(k * cost.slope_at(some) / some), 0.0)

        return moved(np.exp(_rising_root(excess, np.full(len(rooms), np.log(least)))))


def _rising_root(function: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Where each of some rising functions is zero: false position, with one end halved."""
    low, high = start, start
    at_low = at_high = function(start)
    step = np.ones_like(start)
    for _ in range(_HALVINGS):
        below, above = at_high < 0.0, at_low > 0.0
        if not (below.any() or above.any()):
            break
        step = 2.0 * step
        low, high = np.where(above, low - step, low), np.where(below, high + step, high)
        at_low = np.where(above, function(low), at_low)
        at_high = np.where(below, function(high), at_high)
    for _ in range(_HALVINGS):
        apart = at_high - at_low
        share = np.where(apart > 0.0, -at_low / np.where(apart > 0.0, apart, 1.0), 0.0)
        root = low + share * (high - low)
        value = function(root)
        done = (np.abs(value) <= 1e-15) | (high - low <= 1e-15)
        if done.all():
            return root
        left = value < 0.0
        # The end that stays counts half, so that it, too, is left behind.
        at_low, at_high = np.where(left, value, at_low / 2.0), np.where(left, at_high / 2.0, value)
        low, high = np.where(left, root, low), np.where(left, high, root)
    return root


def _slope_times(steep: Floats, rooms: Floats, price: float) -> Floats:
    r"""The s > 0 with :math:`\lVert \min(s w, room) \rVert = s \cdot price`; zero if there is none.

    Between two places where a feature meets its bound both sides squared are linear in s².
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        caps = np.where(steep > 0.0, rooms / np.where(steep > 0.0, steep, 1.0), 0.0)
    order = np.argsort(caps, axis=1)
    ends = np.take_along_axis(caps, order, axis=1)
    squares = steep[order] ** 2
    spent = np.take_along_axis(np.where(np.isfinite(rooms), rooms, 0.0), order, axis=1) ** 2
    # Before each end: squared rooms of the features at their bounds, squared slopes of the others.
    full = _before(spent)
    free = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        reached = np.where(
            np.isinf(ends), free <= price**2, full + ends**2 * free <= (ends * price) ** 2
        )
        reached &= ends > 0.0  # features without room, or without a slope, meet nothing
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
        at = np.arange(len(rooms)), first
        found = np.sqrt(full[at] / (price**2 - free[at]))
    # Beyond the last bound nothing grows: all features are at their bounds.
    last: Floats = np.linalg.norm(np.where(np.isfinite(rooms), rooms, 0.0), axis=1) / price
    beyond = np.maximum(last, np.where(np.isfinite(ends), ends, 0.0).max(axis=1))
    s: Floats = np.where(first >= 0, np.where(full[at] > 0.0, found, 0.0), beyond)
    return np.minimum(s, _FAR)  # along an open side at its very price no place is the worst


def _before(lengths: Floats) -> Floats:
    """Length of all segments before each."""
    return np.cumsum(np.insert(lengths[:, :-1], 0, 0.0, axis=1), axis=1)


class _Length:
    """A norm of order 1, 2 or ∞, and the cost of its length."""

    def __init__(self, cost: Any) -> None:
        self.cost = cost
        norm: Any = cost.length if isinstance(cost, RadialCost) else cost
        self.order = norm.order

    def value(self, moves: Floats) -> Floats:
        values: Floats = self.cost.value(moves)
        return values

    def slope_at(self, t: Floats) -> Floats:
        return self.cost.slope_at(t) if isinstance(self.cost, RadialCost) else np.ones_like(t)

    def length_for(self, slopes: Floats, k: float) -> Floats:
        """Largest t with k φ'(t) at most each slope."""
        if not isinstance(self.cost, RadialCost):
            return np.where(slopes > k, inf, 0.0)
        if k == 0.0:
            return np.where(slopes > 0.0, inf, 0.0)
        lengths = self.cost.length_for(slopes / k)
        # Beyond the steepest slope of a cost that becomes linear it pays to go on for ever.
        return np.where(slopes > k * self.cost.steepest * (1.0 + 1e-12), inf, lengths)
