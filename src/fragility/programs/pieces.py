r"""The loss of a sample as the largest of smooth pieces, for interior-point methods.

.. math:: \max_p f_p(u_n) - \kappa \gamma \, \mathrm{flip}_p ,

one piece for each wrong class, for each label that the sample may be given at a cost, or for both.
Arrays are piece by piece, each over the samples: scores (outputs, n), pieces (P, n).

Above its pieces a sample has a level s that is free to move. For weights D of the pieces, e of
whatever else holds the level, and S their sum, what is left of
:math:`\sum_p D_p (g_p \cdot \dot u - \dot s)^2 + e \dot s^2` at the best :math:`\dot s` is the form

.. math:: \sum_p D_p (g_p - \bar g) (g_p - \bar g)^\top + e \, \bar g \bar g^\top ,
          \qquad \bar g = \frac1S \sum_p D_p g_p .

Written so it loses no digits when one weight is far above the others, as in the end it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from .._typing import Floats
from ..losses import CrossEntropy, GapLoss, Loss
from ..losses.base import Codes, signs


class PiecesAt(ABC):
    """Pieces at some scores."""

    values: Floats

    @abstractmethod
    def forward(self, change: Floats) -> Floats:
        """Change (P, n) of the pieces along a change (outputs, n) of the scores."""

    @abstractmethod
    def adjoint(self, weights: Floats) -> Floats:
        """Weighted sum (outputs, n) of the gradients; weights are (P, n)."""

    @abstractmethod
    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        """Lower triangle, (pairs of outputs, n), of the form and of Σ z ∇²f, for some samples."""


class Level(NamedTuple):
    """What holds the level of each sample: 1/S, and e/S. Zero and one where nothing moves it."""

    inverse: Floats
    held: Floats


class Pieces(ABC):
    """A family of pieces.

    Attributes
    ----------
    flips : ndarray of shape (P, 1) or (P, n)
        One where a piece is that of another label than the sample has, else zero.
    bends : bool
        Whether pieces are not linear.
    shared : Loss, optional
        A smooth loss that all pieces have in common, and that their values leave out.
    """

    flips: Floats
    bends: bool
    shared: Loss | None = None

    @abstractmethod
    def at(self, scores: Floats) -> PiecesAt:
        """The pieces at scores (outputs, n)."""


def pieces_of(
    loss: Loss, y: Codes, n_classes: int, labels_move: bool, floor: float = 0.0
) -> Pieces:
    """The pieces of a loss for samples of these classes.

    `floor` is the constant piece of a loss of gaps: zero, or less where only the largest loss of
    all counts and something above zero bounds it.
    """
    if isinstance(loss, GapLoss) and not loss.is_smooth(n_classes):
        if n_classes == 2:
            return _TwoClassGaps(loss, y, labels_move, floor)
        return (_AllGaps if labels_move else _OwnGaps)(loss, y, n_classes, floor)
    if isinstance(loss, CrossEntropy) and labels_move:
        return _LabelGaps(loss, y, n_classes)
    return _Labels(loss, y, n_classes, labels_move)


class _TwoClassGaps(Pieces):
    """Zero, the gap of the own label and, if labels move, that of the other."""

    def __init__(self, loss: GapLoss, y: Codes, labels_move: bool, floor: float) -> None:
        self.loss, self.floor, self.bends = loss, floor, loss.bends
        own = -signs(y)
        self.directions = np.stack([own, -own] if labels_move else [own])
        self.flips = np.array([[0.0], [0.0], [1.0]])[: 2 + labels_move]

    def at(self, scores: Floats) -> PiecesAt:
        return _TwoClassGapsAt(self, scores[0] * self.directions)


class _TwoClassGapsAt(PiecesAt):
    def __init__(self, pieces: _TwoClassGaps, gaps: Floats) -> None:
        loss = pieces.loss
        self.values = np.concatenate([np.full((1, gaps.shape[1]), pieces.floor), loss.piece(gaps)])
        self.slopes = pieces.directions * loss.piece_slope(gaps)
        self.bends = loss.piece_bend(gaps)

    def forward(self, change: Floats) -> Floats:
        return np.concatenate([np.zeros_like(change), change * self.slopes])

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = (weights[1:] * self.slopes).sum(axis=0, keepdims=True)
        return total

    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        slopes, bends = self.slopes[:, part], self.bends[:, part]
        D, inverse = weights[:, part], level.inverse[part]
        # Pair by pair of pieces, of which the first is constant.
        apart = D[1:] * slopes**2
        form: Floats = (apart * (D[0] * inverse + level.held[part])).sum(axis=0)
        if len(D) == 3:
            form += D[1] * D[2] * inverse * (slopes[0] - slopes[1]) ** 2
        form += (multipliers[1:, part] * bends).sum(axis=0)
        return form[np.newaxis]


class _OwnGaps(Pieces):
    """The gaps of the own label; zero is in the place of the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.y, self.n_classes, self.floor = loss, y, n_classes, floor
        self.bends = loss.bends
        self.own = y * y.size + np.arange(y.size)
        self.flips = np.zeros((n_classes, 1))

    def at(self, scores: Floats) -> PiecesAt:
        return _OwnGapsAt(self, scores)


class _OwnGapsAt(PiecesAt):
    def __init__(self, pieces: _OwnGaps, scores: Floats) -> None:
        self.pieces, loss = pieces, pieces.loss
        gaps = scores - scores.ravel()[pieces.own]
        self.values = loss.piece(gaps)
        self.slopes = loss.piece_slope(gaps)
        self.bends = loss.piece_bend(gaps)
        self.values.ravel()[pieces.own] = pieces.floor
        self.slopes.ravel()[pieces.own] = self.bends.ravel()[pieces.own] = 0.0

    def forward(self, change: Floats) -> Floats:
        return (change - change.ravel()[self.pieces.own]) * self.slopes

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = weights * self.slopes
        total.ravel()[self.pieces.own] = -total.sum(axis=0)
        return total

    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        y, count = self.pieces.y[part], self.pieces.n_classes
        D, slopes, inverse = weights[:, part], self.slopes[:, part], level.inverse[part]
        rows, n = np.arange(y.size), y.size
        flat_own = y * n + rows
        floor = D.ravel()[flat_own] if D.flags.c_contiguous else D[y, rows]
        priced = D * slopes  # zero for the class itself
        held = floor * inverse + level.held[part]
        place = _places(count)
        form = np.empty((count * (count + 1) // 2, n))
        # Row sums over the wrong classes, and what is left on the diagonal: pair by pair.
        sums = slopes * held
        diagonal = slopes * held
        for one in range(count):
            scaled = priced[one] * inverse
            for other in range(one):
                np.multiply(scaled, priced[other], out=form[place[one, other]])
                np.negative(form[place[one, other]], out=form[place[one, other]])
            for other in range(count):
                if other != one:
                    wrong = D[other] * inverse * (y != other)
                    sums[one] += wrong * (slopes[one] - slopes[other])
                    diagonal[one] += wrong * slopes[one]
        bends = multipliers[:, part] * self.bends[:, part]
        form[place.diagonal()] = priced * diagonal + bends
        across = priced * sums + bends
        flat = form.ravel()
        for other in range(count):
            flat[place[y, other] * n + rows] = -across[other]
        flat[place[y, y] * n + rows] = across.sum(axis=0)
        return form


class _AllGaps(Pieces):
    """The gaps of every label, (label, class) by (label, class), with zero for the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.n_classes, self.floor = loss, n_classes, floor
        self.bends = loss.bends
        others = np.arange(n_classes)[:, np.newaxis] != y
        self.flips = np.repeat(others, n_classes, axis=0).astype(np.float64)

    def at(self, scores: Floats) -> PiecesAt:
        return _AllGapsAt(self, scores)


class _AllGapsAt(PiecesAt):
    def __init__(self, pieces: _AllGaps, scores: Floats) -> None:
        loss, count = pieces.loss, pieces.n_classes
        self.count = count
        gaps = scores[np.newaxis] - scores[:, np.newaxis]
        values, self.slopes = loss.piece(gaps), loss.piece_slope(gaps)
        self.bends = loss.piece_bend(gaps)
        own = np.arange(count)
        values[own, own] = pieces.floor
        self.slopes[own, own] = self.bends[own, own] = 0.0
        self.values = values.reshape(count * count, -1)

    def forward(self, change: Floats) -> Floats:
        moved: Floats = (change[np.newaxis] - change[:, np.newaxis]) * self.slopes
        return moved.reshape(self.values.shape)

    def adjoint(self, weights: Floats) -> Floats:
        priced = weights.reshape(self.slopes.shape) * self.slopes
        total: Floats = priced.sum(axis=0) - priced.sum(axis=1)
        return total

    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        slopes = self.slopes[..., part]
        bends = multipliers.reshape(self.slopes.shape)[..., part] * self.bends[..., part]
        first, second = np.tril_indices(self.count)
        form: Floats = -(bends[first, second] + bends[second, first])
        form[first == second] = bends.sum(axis=0) + bends.sum(axis=1)
        gradients = np.zeros((self.count**2, self.count, slopes.shape[-1]))
        for label, other in np.ndindex(self.count, self.count):
            gradients[label * self.count + other, other] += slopes[label, other]
            gradients[label * self.count + other, label] -= slopes[label, other]
        return form + _spread(gradients, weights[:, part], level, part)


class _Labels(Pieces):
    """A smooth loss under the own label and, if labels move, under every other."""

    bends = True

    def __init__(self, loss: Loss, y: Codes, n_classes: int, labels_move: bool) -> None:
        self.loss, self.n_outputs = loss, 1 if n_classes == 2 else n_classes
        shifts = range(n_classes if labels_move else 1)
        self.labels = [(y + shift) % n_classes for shift in shifts]
        self.flips = np.array([[float(shift > 0)] for shift in shifts])

    def at(self, scores: Floats) -> PiecesAt:
        return _LabelsAt(self, scores[0] if len(scores) == 1 else scores.T)


class _LabelsAt(PiecesAt):
    def __init__(self, pieces: _Labels, scores: Floats) -> None:
        self.pieces, self.scores = pieces, scores
        loss, labels = pieces.loss, pieces.labels
        n = len(scores)
        self.values = np.stack([loss.value(scores, y) for y in labels])
        gradients = [loss.gradient(scores, y).reshape(n, -1).T for y in labels]
        self.gradients = np.stack(gradients)

    def forward(self, change: Floats) -> Floats:
        moved: Floats = np.einsum("pon,on->pn", self.gradients, change)
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("pon,pn->on", self.gradients, weights)
        return total

    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        outputs = self.pieces.n_outputs
        first, second = np.tril_indices(outputs)
        form = _spread(self.gradients[..., part], weights[:, part], level, part)
        for p, y in enumerate(self.pieces.labels):
            bend = self.pieces.loss.curvature(self.scores[part], y[part])
            form += bend.reshape(-1, outputs, outputs)[:, first, second].T * multipliers[p, part]
        return form


class _LabelGaps(Pieces):
    """What other labels add to cross-entropy: the gaps of their scores, or nothing.

    So the loss itself can be left out of the pieces, which are linear then.
    """

    bends = False

    def __init__(self, loss: CrossEntropy, y: Codes, n_classes: int) -> None:
        self.shared = loss
        self.flips = np.ones((n_classes, 1))
        self.flips[0] = 0.0
        if n_classes == 2:
            self.apart = signs(y)[np.newaxis, np.newaxis]
        else:  # one for the own class, minus one for the other, (others, outputs, n)
            classes = np.arange(n_classes)[:, np.newaxis]
            others = (y + np.arange(1, n_classes)[:, np.newaxis]) % n_classes
            self.apart = 1.0 * (classes == y) - 1.0 * (classes == others[:, np.newaxis])

    def at(self, scores: Floats) -> PiecesAt:
        return _LabelGapsAt(self, scores)


class _LabelGapsAt(PiecesAt):
    def __init__(self, pieces: _LabelGaps, scores: Floats) -> None:
        self.apart = pieces.apart
        self.values = self.forward(scores)

    def forward(self, change: Floats) -> Floats:
        moved = np.zeros((len(self.apart) + 1, change.shape[1]))
        np.einsum("pon,on->pn", self.apart, change, out=moved[1:])
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("pon,pn->on", self.apart, weights[1:])
        return total

    def form(self, weights: Floats, multipliers: Floats, level: Level, part: slice) -> Floats:
        D, apart = weights[:, part], self.apart[..., part]
        if len(apart) == 1 and apart.shape[1] == 1:
            both: Floats = D[1] * (D[0] * level.inverse[part] + level.held[part])
            return both[np.newaxis]
        gradients = np.concatenate([np.zeros_like(apart[:1]), apart])
        return _spread(gradients, D, level, part)


def _spread(gradients: Floats, weights: Floats, level: Level, part: slice) -> Floats:
    """Σ D (g - ḡ)(g - ḡ)ᵀ + e ḡ ḡᵀ of gradients (P, outputs, n), lower triangle."""
    first, second = np.tril_indices(gradients.shape[1])
    total = np.einsum("pon,pn->on", gradients, weights)
    mean = total * level.inverse[part]
    form: Floats = level.held[part] * mean[first] * total[second]
    for gradient, weight in zip(gradients, weights, strict=True):
        apart = gradient - mean
        form += weight * apart[first] * apart[second]
    return form


def _places(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Where each pair of outputs is in the lower triangle."""
    first, second = np.tril_indices(count)
    places = np.empty((count, count), dtype=np.intp)
    places[first, second] = places[second, first] = np.arange(first.size)
    return places
