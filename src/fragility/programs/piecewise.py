r"""The loss of a sample as the maximum of smooth functions, for interior-point methods.

.. math:: \max_p f_p(u_n) - k \gamma \, \mathrm{flip}_p ,

with one function for each wrong class, for each label that the sample may get at a cost, or for
both. Arrays hold one row for each function: scores have the shape (outputs, n), values (P, n).

The epigraph variable s of a sample lies above its functions and is free to move. Let D be the
weights of the functions, e the weight of whatever else holds s, and S their sum. What is left of
:math:`\sum_p D_p (g_p \cdot \dot u - \dot s)^2 + e \dot s^2` at the best :math:`\dot s` is the
quadratic form

.. math:: \sum_p D_p (g_p - \bar g) (g_p - \bar g)^\top + e \, \bar g \bar g^\top ,
          \qquad \bar g = \frac1S \sum_p D_p g_p .

In this form no digits are lost when one weight is far above the others, as it is near a solution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import NamedTuple, Self

import numpy as np

from .._typing import Floats
from ..losses import GapLoss, Loss
from ..losses.base import Codes, lower_curvature, signs


class Hold(NamedTuple):
    """What holds the epigraph variable of each sample: 1/S and e/S. Zero and one if it is fixed."""

    inverse: Floats
    held: Floats


class Piecewise(ABC):
    """A loss as the maximum of smooth functions; after `at`, with their values at some scores.

    Attributes
    ----------
    flips : ndarray of shape (P, 1) or (P, n)
        One where a function belongs to another label than the sample has, else zero.
    bends : bool
        Whether the functions are not linear.
    shared : Loss, optional
        A smooth loss that all functions have in common. Their values leave it out.
    values : ndarray of shape (P, n)
        Set by `at`.
    """

    flips: Floats
    bends: bool
    shared: Loss | None = None
    values: Floats

    def at(self, scores: Floats) -> Self:
        """A copy with the values and slopes at scores (outputs, n)."""
        there = copy(self)
        there._evaluate(scores)
        return there

    @abstractmethod
    def _evaluate(self, scores: Floats) -> None:
        """Set the values, and what the methods below need."""

    @abstractmethod
    def forward(self, change: Floats) -> Floats:
        """Change (P, n) of the functions along a change (outputs, n) of the scores."""

    @abstractmethod
    def adjoint(self, weights: Floats) -> Floats:
        """Weighted sum (outputs, n) of the gradients; weights are (P, n)."""

    @abstractmethod
    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        """Lower triangle, (pairs of outputs, n), of the form and of Σ z ∇²f, for some samples."""


def piecewise_of(
    loss: Loss, y: Codes, n_classes: int, labels_move: bool, floor: float = 0.0
) -> Piecewise:
    """A loss as the maximum of smooth functions, for samples of these classes.

    `floor` is the constant function of a loss of gaps. It is zero, or less where only the largest
    loss of all samples counts and its bound is above zero.
    """
    if isinstance(loss, GapLoss) and not loss.is_smooth(n_classes):
        if n_classes == 2:
            return _TwoClassGaps(loss, y, labels_move, floor)
        return (_AllGaps if labels_move else _OwnGaps)(loss, y, n_classes, floor)
    if loss.relabelled_by_gap and labels_move:
        return _LabelGaps(loss, y, n_classes)
    return _Labels(loss, y, n_classes, labels_move)


class _TwoClassGaps(Piecewise):
    """The floor, the gap of the own label and, if labels move, the gap of the other label."""

    def __init__(self, loss: GapLoss, y: Codes, labels_move: bool, floor: float) -> None:
        self.loss, self.floor, self.bends = loss, floor, loss.bends
        own = -signs(y)
        self.directions = np.stack([own, -own] if labels_move else [own])
        self.flips = np.array([[0.0], [0.0], [1.0]])[: 2 + labels_move]

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores[0] * self.directions
        floor = np.full((1, gaps.shape[1]), self.floor)
        self.values = np.concatenate([floor, self.loss.piece(gaps)])
        self.slopes = self.directions * self.loss.piece_slope(gaps)
        self.curvatures = self.loss.piece_bend(gaps)

    def forward(self, change: Floats) -> Floats:
        return np.concatenate([np.zeros_like(change), change * self.slopes])

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = (weights[1:] * self.slopes).sum(axis=0, keepdims=True)
        return total

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        slopes, D, inverse = self.slopes[:, part], weights[:, part], hold.inverse[part]
        # By pairs of functions, of which the first is constant.
        apart = D[1:] * slopes**2
        form: Floats = (apart * (D[0] * inverse + hold.held[part])).sum(axis=0)
        if len(D) == 3:
            form += D[1] * D[2] * inverse * (slopes[0] - slopes[1]) ** 2
        form += (multipliers[1:, part] * self.curvatures[:, part]).sum(axis=0)
        return form[np.newaxis]


class _OwnGaps(Piecewise):
    """The gaps of the own label; the floor has the row of the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.y, self.n_classes, self.floor = loss, y, n_classes, floor
        self.bends = loss.bends
        self.own = y * y.size + np.arange(y.size)
        self.flips = np.zeros((n_classes, 1))

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores - scores.ravel()[self.own]
        self.values = self.loss.piece(gaps)
        self.slopes = self.loss.piece_slope(gaps)
        self.curvatures = self.loss.piece_bend(gaps)
        self.values.ravel()[self.own] = self.floor
        self.slopes.ravel()[self.own] = self.curvatures.ravel()[self.own] = 0.0

    def forward(self, change: Floats) -> Floats:
        return (change - change.ravel()[self.own]) * self.slopes

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = weights * self.slopes
        total.ravel()[self.own] = -total.sum(axis=0)
        return total

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        y, count = self.y[part], self.n_classes
        D, slopes, inverse = weights[:, part], self.slopes[:, part], hold.inverse[part]
        rows, n = np.arange(y.size), y.size
        weighted = D * slopes  # zero for the class itself
        held = D[y, rows] * inverse + hold.held[part]
        index = _triangle_index(count)
        form = np.empty((count * (count + 1) // 2, n))
        # Row sums over the wrong classes, and what is left on the diagonal: pair by pair.
        sums = slopes * held
        diagonal = slopes * held
        for one in range(count):
            scaled = weighted[one] * inverse
            for other in range(one):
                np.multiply(scaled, -weighted[other], out=form[index[one, other]])
            for other in range(count):
                if other != one:
                    wrong = D[other] * inverse * (y != other)
                    sums[one] += wrong * (slopes[one] - slopes[other])
                    diagonal[one] += wrong * slopes[one]
        curved = multipliers[:, part] * self.curvatures[:, part]
        form[index.diagonal()] = weighted * diagonal + curved
        across = weighted * sums + curved
        flat = form.ravel()  # one index for each sample takes less time than two
        for other in range(count):
            flat[index[y, other] * n + rows] = -across[other]
        flat[index[y, y] * n + rows] = across.sum(axis=0)
        return form


class _AllGaps(Piecewise):
    """The gaps of every label, (label, class) by (label, class); the floor for the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.count, self.floor, self.bends = loss, n_classes, floor, loss.bends
        others = np.arange(n_classes)[:, np.newaxis] != y
        self.flips = np.repeat(others, n_classes, axis=0).astype(np.float64)

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores[np.newaxis] - scores[:, np.newaxis]
        values, self.slopes = self.loss.piece(gaps), self.loss.piece_slope(gaps)
        self.curvatures = self.loss.piece_bend(gaps)
        own = np.arange(self.count)
        values[own, own] = self.floor
        self.slopes[own, own] = self.curvatures[own, own] = 0.0
        self.values = values.reshape(self.count**2, -1)

    def forward(self, change: Floats) -> Floats:
        moved: Floats = (change[np.newaxis] - change[:, np.newaxis]) * self.slopes
        return moved.reshape(self.values.shape)

    def adjoint(self, weights: Floats) -> Floats:
        weighted = weights.reshape(self.slopes.shape) * self.slopes
        total: Floats = weighted.sum(axis=0) - weighted.sum(axis=1)
        return total

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        slopes = self.slopes[..., part]
        curved = multipliers.reshape(self.slopes.shape)[..., part] * self.curvatures[..., part]
        first, second = np.tril_indices(self.count)
        form: Floats = -(curved[first, second] + curved[second, first])
        form[first == second] = curved.sum(axis=0) + curved.sum(axis=1)
        gradients = np.zeros((self.count**2, self.count, slopes.shape[-1]))
        for label, other in np.ndindex(self.count, self.count):
            gradients[label * self.count + other, other] += slopes[label, other]
            gradients[label * self.count + other, label] -= slopes[label, other]
        return form + _spread(gradients, weights[:, part], hold, part)


class _ByGradients(Piecewise):
    """Functions with gradients (P, outputs, n) by the scores."""

    gradients: Floats

    def forward(self, change: Floats) -> Floats:
        moved: Floats = np.einsum("pon,on->pn", self.gradients, change)
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("pon,pn->on", self.gradients, weights)
        return total


class _Labels(_ByGradients):
    """A smooth loss under the own label and, if labels move, under every other label."""

    bends = True

    def __init__(self, loss: Loss, y: Codes, n_classes: int, labels_move: bool) -> None:
        self.loss = loss
        shifts = range(n_classes if labels_move else 1)
        self.labels = [(y + shift) % n_classes for shift in shifts]
        self.flips = np.array([[float(shift > 0)] for shift in shifts])

    def _evaluate(self, scores: Floats) -> None:
        self.scores = scores[0] if len(scores) == 1 else scores.T
        n, loss = len(self.scores), self.loss
        self.values = np.stack([loss.value(self.scores, y) for y in self.labels])
        gradients = [loss.gradient(self.scores, y).reshape(n, -1).T for y in self.labels]
        self.gradients = np.stack(gradients)

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        form = _spread(self.gradients[..., part], weights[:, part], hold, part)
        for y, multiplier in zip(self.labels, multipliers, strict=True):
            form += lower_curvature(self.loss, self.scores[part], y[part]).T * multiplier[part]
        return form


class _LabelGaps(_ByGradients):
    """What other labels add to a loss such as cross-entropy: the gaps of scores, or nothing.

    The loss itself can be left out of these functions, which makes them linear.
    """

    bends = False

    def __init__(self, loss: Loss, y: Codes, n_classes: int) -> None:
        self.shared = loss
        self.flips = np.ones((n_classes, 1))
        self.flips[0] = 0.0
        if n_classes == 2:
            self.gradients = np.stack([np.zeros((1, y.size)), signs(y)[np.newaxis]])
        else:  # one for the own class, minus one for the label: zero for the own label
            classes = np.arange(n_classes)[:, np.newaxis]
            labels = (y + classes) % n_classes
            self.gradients = 1.0 * (classes == y) - 1.0 * (classes == labels[:, np.newaxis])

    def _evaluate(self, scores: Floats) -> None:
        self.values = self.forward(scores)

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        D = weights[:, part]
        if len(D) == 2:
            both: Floats = D[1] * (D[0] * hold.inverse[part] + hold.held[part])
            return both[np.newaxis]
        return _spread(self.gradients[..., part], D, hold, part)


def _spread(gradients: Floats, weights: Floats, hold: Hold, part: slice) -> Floats:
    """Σ D (g - ḡ)(g - ḡ)ᵀ + e ḡ ḡᵀ of gradients (P, outputs, n), lower triangle."""
    first, second = np.tril_indices(gradients.shape[1])
    total = np.einsum("pon,pn->on", gradients, weights)
    mean = total * hold.inverse[part]
    form: Floats = hold.held[part] * mean[first] * total[second]
    for gradient, weight in zip(gradients, weights, strict=True):
        apart = gradient - mean
        form += weight * apart[first] * apart[second]
    return form


def _triangle_index(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Row of each pair of outputs in the lower triangle."""
    first, second = np.tril_indices(count)
    index = np.empty((count, count), dtype=np.intp)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index
