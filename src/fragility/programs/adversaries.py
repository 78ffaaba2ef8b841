r"""The worst case of one model under optimal transport, sample by sample, in plain NumPy.

For a price k of transport a sample with the label y becomes as bad as

.. math:: \sup_{x \in \mathcal X} \ell(u(x), y) - k \, h(x - \hat x) ,

and mean and price together bound every expected loss. Slopes are in units of the cost: feature by
feature times what a unit of cost moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.special import expit

from .._brent import bracketed_root
from .._typing import Floats, Indices
from ..ambiguity import Box, Huber, Norm, SquaredNorm, Transport, TransportProfile, WorstLoss
from ..ambiguity.costs import RadialCost
from ..losses.base import signs
from ..losses.piecewise_linear import Pieces

_HALVINGS = 70
_FAR = 1e7


@dataclass(frozen=True, eq=False)
class LinearSamples:
    """A linear model and samples, in the user's units.

    `coef` is (outputs, d), `scores` (n, outputs); `y` are classes from 0 on.
    """

    coef: Floats
    scores: Floats
    X: Floats
    y: Indices
    n_classes: int


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
    def places(self, k: float, labels: Indices) -> Floats:
        """Where each sample is worst, with these labels."""


@dataclass(frozen=True, eq=False)
class ExactProfile(TransportProfile):
    """The worst case of one model by an adversary whose moves are known exactly."""

    adversary: Adversary | None = None
    y: Indices | None = None
    n_classes: int = 2
    label_cost: float = inf

    def level(self, k: float) -> float:
        """Largest expected loss less k times the distance; infinite below the least price."""
        return float(self.weights @ self.worst_labels(k)[0])

    def worst_labels(self, k: float) -> tuple[Floats, Indices]:
        """Loss less cost of each sample at its worst, and the label that it has there."""
        assert self.adversary is not None
        assert self.y is not None
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
        assert self.adversary is not None
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
        assert self.adversary is not None
        # Convex in k: the least of level + k · radius is where the tangent is level.
        low = self.adversary.least
        if radius == 0.0:
            return WorstLoss(self.mean, inf, self.mean)
        high = max(2.0 * low, 1e-12)

        def total(k: float) -> float:
            return self.level(k) + k * radius

        while total(2.0 * high) < total(high) and high < 1e200:
            high *= 2.0
        high *= 2.0
        for _ in range(_HALVINGS):
            one, two = low + (high - low) / 3.0, high - (high - low) / 3.0
            if total(one) <= total(two):
                high = two
            else:
                low = one
        ends = [self.adversary.least, low, (low + high) / 2.0, high]
        k = min(ends, key=total)
        level = self.level(k)
        return WorstLoss(level + k * radius, k, level)


class FreePieces(Adversary):
    """A piecewise linear loss on the whole space: each piece gains the same for all samples."""

    def __init__(self, samples: LinearSamples, ambiguity: Transport, pieces: Pieces) -> None:
        self.samples, self.cost, self.pieces = samples, ambiguity.cost, pieces
        self.mobility = ambiguity.mobility(samples.X.shape[1])
        self.slopes = pieces.slopes @ samples.coef * self.mobility
        flat = self.slopes.reshape(-1, self.slopes.shape[-1])
        used = self._used(ambiguity.moves_labels)
        self.least = float(self._least(flat, np.repeat(used, self.slopes.shape[1])))

    def _used(self, labels_move: bool) -> Any:
        """Labels that some sample may have."""
        classes = np.arange(len(self.slopes))
        return np.ones(classes.size, bool) if labels_move else np.isin(classes, self.samples.y)

    def _least(self, slopes: Floats, used: Any) -> float:
        return float(self.cost.least_price(slopes[used]).max(initial=0.0))

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

    def places(self, k: float, labels: Indices) -> Floats:
        best = self._by_piece(k, labels).argmax(axis=1)
        moved = self.samples.X.copy()
        for label, i in {*zip(labels.tolist(), best.tolist(), strict=True)}:
            rows = np.flatnonzero((labels == label) & (best == i))
            slope = self.slopes[label, i]
            if slope.any():
                moved[rows] += self._move(slope, k, rows) * self.mobility
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

    def _least(self, slopes: Floats, used: Any) -> float:
        # Along an open side a sample may go for ever.
        low, high = self.box.ends
        towards = np.where(slopes > 0.0, high, low)
        return super()._least(np.where(np.isinf(towards), slopes, 0.0), used)

    def _rooms(self, slope: Floats, rows: Indices) -> Floats:
        rooms = self.box.rooms(self.samples.X[rows], slope)
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
        low, high = np.zeros(len(rooms)), np.full(len(rooms), least)

        def too_far(s: Floats) -> Any:
            t = length(s)
            return s * k * cost.slope_at(t) >= t

        for _ in range(400):
            short_of = ~too_far(high)
            if not short_of.any():
                break
            high = np.where(short_of, 4.0 * high, high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            far = too_far(middle)
            low, high = np.where(far, low, middle), np.where(far, middle, high)
        return moved(low)


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
        self.mobility = ambiguity.mobility(samples.X.shape[1])
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

    def places(self, k: float, labels: Indices) -> Floats:
        wrong = -signs(labels) * self.samples.scores[:, 0]
        if self.width == 0.0 or k == 0.0:
            return self.samples.X.copy()
        lengths = (self._best(wrong, k) - wrong) / self.width
        directions = self.norm.direction(self.slope) * self.mobility
        return self.samples.X - (signs(labels) * lengths)[:, np.newaxis] * directions

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
            for _ in range(_HALVINGS):
                middle = (low + high) / 2.0
                above = expit(middle) > c * (middle - wrong)
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            return (low + high) / 2.0

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
        self.mobility = ambiguity.mobility(samples.X.shape[1])
        self.slope = samples.coef[0] * self.mobility
        ends = np.broadcast_arrays(*self.box.ends, self.slope)
        classes = {0, 1} if ambiguity.moves_labels else {*np.unique(samples.y).tolist()}
        open_ = np.zeros(self.slope.size, dtype=bool)
        for label in classes:  # a wrong-side logit rises with minus the sign of the label
            rising = self.slope * (1.0 if label == 0 else -1.0)
            open_ |= np.isinf(np.where(rising > 0.0, ends[1], ends[0])) & (rising != 0.0)
        self.least = float(np.abs(self.slope[open_]).max(initial=0.0))

    def _steps(self, k: float, labels: Indices) -> tuple[Indices, Floats, Floats, Floats]:
        """Features in order, their moves, and logits and costs after each of them."""
        steep, side = np.abs(self.slope), -signs(labels)
        order = np.argsort(-steep, kind="stable")[: int((steep > k).sum())]
        moves = np.empty((labels.size, order.size))
        for sign in (-1.0, 1.0):
            rows = np.flatnonzero(side == sign)
            rooms = self.box.rooms(self.samples.X[rows], sign * self.slope)[:, order]
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

    def places(self, k: float, labels: Indices) -> Floats:
        order, moves, logits, costs = self._steps(k, labels)
        last = (np.logaddexp(0.0, logits) - k * costs).argmax(axis=1)
        moves = np.where(np.arange(order.size) < last[:, np.newaxis], moves, 0.0)
        moved = self.samples.X.copy()
        towards = np.sign(self.slope[order]) * self.mobility[order]
        moved[:, order] += -signs(labels)[:, np.newaxis] * moves * towards
        return moved


def adversary_of(loss: Any, ambiguity: Transport, samples: LinearSamples) -> Adversary | None:
    """An adversary whose moves are known exactly; None if there is none for such a support."""
    if not has_closed_form(ambiguity):
        return None
    pieces = loss.pieces(samples.n_classes)
    if pieces is None:
        kind = SquaredLogistic if ambiguity.support is None else BoxLogistic
        return kind(samples, ambiguity)
    return (FreePieces if ambiguity.support is None else BoxPieces)(samples, ambiguity, pieces)


def has_closed_form(ambiguity: Transport) -> bool:
    """Whether best moves of linear pieces are known: without a support, or in boxes."""
    length = getattr(ambiguity.cost, "length", ambiguity.cost)
    box = isinstance(ambiguity.support, Box) and isinstance(length, Norm)
    return ambiguity.support is None or box


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
