r"""The loss of a sample as the maximum of smooth functions, for interior-point methods.

.. math:: \max_p f_p(u_n) - k \gamma \, \mathrm{flip}_p ,

with one function for each wrong class, for each label that the sample may get at a cost, or for
both. Scores have the shape (B, outputs, n), values (B, P, n): B problems are solved together.

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
from ..losses import GapLoss, Loss, Pieces
from ..losses.base import Codes, lower_curvature, signs
from .batched import Batched


class Hold(NamedTuple):
    """What holds the epigraph variable of each sample: 1/S and e/S. Zero and one if it is fixed."""

    inverse: Floats
    held: Floats


class Piecewise(Batched, ABC):
    """A loss as the maximum of smooth functions; after `at`, with their values at some scores.

    Attributes
    ----------
    flips : ndarray of shape (B, P, 1) or (B, P, n)
        One where a function belongs to another label than the sample has, else zero.
    bends : bool
        Whether the functions are not linear.
    shared : Loss, optional
        A smooth loss that all functions have in common. Their values leave it out.
    values : ndarray of shape (B, P, n)
        Set by `at`.
    """

    flips: Floats
    bends: bool
    shared: Loss | None = None
    values: Floats

    def at(self, scores: Floats) -> Self:
        """A copy with the values and slopes at scores (B, outputs, n)."""
        there = copy(self)
        there._evaluate(scores)
        return there

    @abstractmethod
    def _evaluate(self, scores: Floats) -> None:
        """Set the values, and what the methods below need."""

    @abstractmethod
    def forward(self, change: Floats) -> Floats:
        """Change (B, P, n) of the functions along a change (B, outputs, n) of the scores."""

    @abstractmethod
    def adjoint(self, weights: Floats) -> Floats:
        """Weighted sum (B, outputs, n) of the gradients; weights are (B, P, n)."""

    @abstractmethod
    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        """Lower triangles (B, pairs of outputs, n) of the form and of Σ z ∇²f, for some samples."""

    @abstractmethod
    def label(self, p: int) -> Codes:
        """The label (B, n) that each sample has under a function."""


def piecewise_of(
    loss: Loss, y: Codes, n_classes: int, labels_move: bool, floor: float = 0.0
) -> Piecewise:
    """A loss as the maximum of smooth functions, for samples (B, n) of these classes.

    `floor` is the constant function of a loss of gaps. It is zero, or less where only the largest
    loss of all samples counts and its bound is above zero.
    """
    if not loss.slopes_by_pair:
        pieces = loss.pieces(n_classes)
        if pieces is not None:
            return _LinearPieces(pieces, y, labels_move)
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
        self.loss, self.floor, self.bends, self.y = loss, floor, loss.bends, y
        own = -signs(y)
        self.directions = np.stack([own, -own] if labels_move else [own], axis=1)
        self.costly = loss.pair_cost is not None
        if self.costly:
            table = np.asarray(loss.pair_cost)
            costs = [table[y, 1 - y], table[1 - y, y]]
            self.costs = np.stack(costs if labels_move else costs[:1], axis=1)
        flips = np.array([[0.0], [0.0], [1.0]])[: 2 + labels_move]
        self.flips = np.tile(flips, (len(y), 1, 1))

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores * self.directions
        self.values = np.empty((len(gaps), gaps.shape[1] + 1, gaps.shape[2]))
        self.values[:, 0] = self.floor
        self.values[:, 1:] = self.loss.piece(gaps)
        self.slopes = self.directions
        if self.bends:
            self.slopes = self.directions * self.loss.piece_slope(gaps)
            self.curvatures = self.loss.piece_bend(gaps)
        if self.costly:
            self.values[:, 1:] *= self.costs
            self.slopes = self.slopes * self.costs
            if self.bends:
                self.curvatures *= self.costs

    def forward(self, change: Floats) -> Floats:
        moved = np.zeros(self.values.shape)
        np.multiply(change, self.slopes, out=moved[:, 1:])
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = weights[:, 1:] * self.slopes
        return total if total.shape[1] == 1 else total.sum(axis=1, keepdims=True)

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        slopes, D = self.slopes[..., part], weights[..., part]
        inverse = hold.inverse[:, part]
        # By pairs of functions, of which the first is constant.
        apart = D[:, 1:] * slopes**2 if self.bends or self.costly else D[:, 1:]
        held = D[:, 0] * inverse + hold.held[:, part]
        form: Floats = (apart[:, 0] if apart.shape[1] == 1 else apart.sum(axis=1)) * held
        if D.shape[1] == 3:
            form += D[:, 1] * D[:, 2] * inverse * (slopes[:, 0] - slopes[:, 1]) ** 2
        if self.bends:
            form += (multipliers[:, 1:, part] * self.curvatures[..., part]).sum(axis=1)
        return form[:, np.newaxis]

    def label(self, p: int) -> Codes:
        return 1 - self.y if p == 2 else self.y


class _OwnGaps(Piecewise):
    """The gaps of the own label; the floor has the row of the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.n_classes, self.floor = loss, n_classes, floor
        self.bends, self.y = loss.bends, y[:, np.newaxis]
        self.flips = np.zeros((len(y), n_classes, 1))
        self.costly = loss.pair_cost is not None
        if self.costly:
            self.costs = np.asarray(loss.pair_cost)[y].swapaxes(1, 2)
        if not self.bends:
            self._bend(np.zeros((len(y), n_classes, y.shape[1])))

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores - np.take_along_axis(scores, self.y, axis=1)
        self.values = self.loss.piece(gaps)
        if self.costly:
            self.values *= self.costs
        np.put_along_axis(self.values, self.y, self.floor, axis=1)
        if self.bends:
            self._bend(gaps)

    def _bend(self, gaps: Floats) -> None:
        self.slopes, self.curvatures = self.loss.piece_slope(gaps), self.loss.piece_bend(gaps)
        for derivative in (self.slopes, self.curvatures):
            if self.costly:
                derivative *= self.costs
            np.put_along_axis(derivative, self.y, 0.0, axis=1)

    def forward(self, change: Floats) -> Floats:
        moved: Floats = (change - np.take_along_axis(change, self.y, axis=1)) * self.slopes
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = weights * self.slopes
        np.put_along_axis(total, self.y, -total.sum(axis=1, keepdims=True), axis=1)
        return total

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        y, count = self.y[..., part], self.n_classes
        D, inverse = weights[..., part], hold.inverse[:, part]
        slopes = self.slopes[..., part].astype(D.dtype, copy=False)
        weighted = D * slopes  # zero for the class itself
        held = np.take_along_axis(D, y, axis=1)[:, 0] * inverse + hold.held[:, part]
        shares = D * inverse[:, np.newaxis]
        np.put_along_axis(shares, y, 0.0, axis=1)
        index = _triangle_index(count)
        form = np.empty((len(D), count * (count + 1) // 2, held.shape[1]), dtype=D.dtype)
        # Row sums over the wrong classes, and what is left on the diagonal: pair by pair.
        sums = slopes * held[:, np.newaxis]
        diagonal = sums + slopes * _of_others(shares)
        for one in range(count):
            scaled = -weighted[:, one] * inverse
            for other in range(one):
                np.multiply(scaled, weighted[:, other], out=form[:, index[one, other]])
            if self.bends or self.costly:
                for other in range(count):
                    if other != one:
                        sums[:, one] += shares[:, other] * (slopes[:, one] - slopes[:, other])
        across, own = weighted * sums, weighted * diagonal
        if self.bends:
            curved = multipliers[..., part] * self.curvatures[..., part]
            across, own = across + curved, own + curved
        form[:, index.diagonal()] = own
        # The row of the class itself has minus the sum over the wrong ones.
        np.put_along_axis(form, index[y, np.arange(count)[:, np.newaxis]], -across, axis=1)
        np.put_along_axis(form, index[y, y], across.sum(axis=1, keepdims=True), axis=1)
        return form

    def label(self, p: int) -> Codes:
        return self.y[:, 0]


class _AllGaps(Piecewise):
    """The gaps of every label, (label, class) by (label, class); the floor for the class itself."""

    def __init__(self, loss: GapLoss, y: Codes, n_classes: int, floor: float) -> None:
        self.loss, self.count, self.floor, self.bends = loss, n_classes, floor, loss.bends
        others = np.arange(n_classes)[:, np.newaxis] != y[:, np.newaxis]
        self.flips = np.repeat(others, n_classes, axis=1).astype(np.float64)

    def _evaluate(self, scores: Floats) -> None:
        gaps = scores[:, np.newaxis] - scores[:, :, np.newaxis]
        values, self.slopes = self.loss.piece(gaps), self.loss.piece_slope(gaps)
        self.curvatures = self.loss.piece_bend(gaps)
        if self.loss.pair_cost is not None:
            costs = np.asarray(self.loss.pair_cost)[:, :, np.newaxis]
            for of_gaps in (values, self.slopes, self.curvatures):
                of_gaps *= costs
        own = np.arange(self.count)
        values[:, own, own] = self.floor
        self.slopes[:, own, own] = self.curvatures[:, own, own] = 0.0
        self.values = values.reshape(len(scores), self.count**2, -1)

    def forward(self, change: Floats) -> Floats:
        moved: Floats = (change[:, np.newaxis] - change[:, :, np.newaxis]) * self.slopes
        return moved.reshape(self.values.shape)

    def adjoint(self, weights: Floats) -> Floats:
        weighted = weights.reshape(self.slopes.shape) * self.slopes
        total: Floats = weighted.sum(axis=1) - weighted.sum(axis=2)
        return total

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        slopes = self.slopes[..., part]
        curved = multipliers.reshape(self.slopes.shape)[..., part] * self.curvatures[..., part]
        first, second = np.tril_indices(self.count)
        form: Floats = -(curved[:, first, second] + curved[:, second, first])
        form[:, first == second] = curved.sum(axis=1) + curved.sum(axis=2)
        gradients = np.zeros((len(slopes), self.count**2, self.count, slopes.shape[-1]))
        for label, other in np.ndindex(self.count, self.count):
            gradients[:, label * self.count + other, other] += slopes[:, label, other]
            gradients[:, label * self.count + other, label] -= slopes[:, label, other]
        return form + _spread(gradients, weights[..., part], hold, part)

    def label(self, p: int) -> Codes:
        return np.full(self.values.shape[::2], p // self.count)


class _ByGradients(Piecewise):
    """Functions with gradients (B, P, outputs, n) by the scores."""

    gradients: Floats

    def forward(self, change: Floats) -> Floats:
        moved: Floats = np.einsum("bpon,bon->bpn", self.gradients, change)
        return moved

    def adjoint(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("bpon,bpn->bon", self.gradients, weights)
        return total


class _Labels(_ByGradients):
    """A smooth loss under the own label and, if labels move, under every other label."""

    bends = True

    def __init__(self, loss: Loss, y: Codes, n_classes: int, labels_move: bool) -> None:
        self.loss = loss
        shifts = np.arange(n_classes if labels_move else 1)
        self.labels = (y[:, np.newaxis] + shifts[:, np.newaxis]) % n_classes
        self.flips = np.tile((shifts > 0.0)[:, np.newaxis] * 1.0, (len(y), 1, 1))

    def _evaluate(self, scores: Floats) -> None:
        self.scores = scores
        shape, flat = scores.shape, as_samples(scores)
        by_label = [self.labels[:, p].ravel() for p in range(self.labels.shape[1])]
        values = [self.loss.value(flat, y).reshape(shape[0], -1) for y in by_label]
        self.values = np.stack(values, axis=1)
        gradients = [as_scores(self.loss.gradient(flat, y), shape) for y in by_label]
        self.gradients = np.stack(gradients, axis=1)

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        form = _spread(self.gradients[..., part], weights[..., part], hold, part)
        for p in range(self.labels.shape[1]):
            form += curvature_of(
                self.loss, self.scores[..., part], self.labels[:, p, part], multipliers[:, p, part]
            )
        return form

    def label(self, p: int) -> Codes:
        return self.labels[:, p]


class _LabelGaps(_ByGradients):
    """What other labels add to a loss such as cross-entropy: the gaps of scores, or nothing.

    The loss itself can be left out of these functions, which makes them linear.
    """

    bends = False

    def __init__(self, loss: Loss, y: Codes, n_classes: int) -> None:
        self.shared, self.y, self.n_classes = loss, y, n_classes
        self.flips = np.ones((len(y), n_classes, 1))
        self.flips[:, 0] = 0.0
        if n_classes == 2:
            own = signs(y)[:, np.newaxis]
            self.gradients = np.stack([np.zeros_like(own), own], axis=1)
        else:  # one for the own class, minus one for the label: zero for the own label
            classes = np.arange(n_classes)[:, np.newaxis]
            labels = (y[:, np.newaxis] + classes) % n_classes
            own = 1.0 * (classes == y[:, np.newaxis])
            self.gradients = own[:, np.newaxis] - 1.0 * (classes == labels[:, :, np.newaxis])

    def _evaluate(self, scores: Floats) -> None:
        self.values = self.forward(scores)

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        D = weights[..., part]
        if D.shape[1] == 2:
            both: Floats = D[:, 1] * (D[:, 0] * hold.inverse[:, part] + hold.held[:, part])
            return both[:, np.newaxis]
        return _spread(self.gradients[..., part], D, hold, part)

    def label(self, p: int) -> Codes:
        return (self.y + p) % self.n_classes


class _LinearPieces(_ByGradients):
    """Linear functions of the scores, of the own label and, if labels move, of every other."""

    bends = False

    def __init__(self, pieces: Pieces, y: Codes, labels_move: bool) -> None:
        count, size = pieces.offsets.shape
        labels = [(y + step) % count for step in range(count if labels_move else 1)]
        slopes = np.concatenate([pieces.slopes[label] for label in labels], axis=2)
        self.gradients = np.ascontiguousarray(np.moveaxis(slopes, 1, 3))
        offsets = np.concatenate([pieces.offsets[label] for label in labels], axis=2)
        self.offsets = np.ascontiguousarray(np.moveaxis(offsets, 1, 2))
        flips = np.repeat(np.arange(len(labels)) > 0, size)[:, np.newaxis] * 1.0
        self.flips = np.tile(flips, (len(y), 1, 1))
        self.labels, self.size = labels, size

    def label(self, p: int) -> Codes:
        label: Codes = self.labels[p // self.size]
        return label

    def _evaluate(self, scores: Floats) -> None:
        self.values = self.forward(scores) + self.offsets

    def form(self, weights: Floats, multipliers: Floats, hold: Hold, part: slice) -> Floats:
        return _spread(self.gradients[..., part], weights[..., part], hold, part)


def over_functions(values: Floats) -> Floats:
    """Sum over the functions of each sample."""
    if values.shape[1] == 2:  # most often, and in half the time
        return values[:, 0] + values[:, 1]
    total: Floats = values.sum(axis=1)
    return total


def as_samples(scores: Floats) -> Floats:
    """Scores (B, outputs, n) as losses have them: (B n,), or (B n, C)."""
    outputs = scores.shape[1]
    return scores.ravel() if outputs == 1 else scores.swapaxes(1, 2).reshape(-1, outputs)


def as_scores(by_sample: Floats, shape: tuple[int, ...]) -> Floats:
    """The way back, to the shape (B, outputs, n)."""
    return by_sample.reshape(shape[0], shape[2], shape[1]).swapaxes(1, 2)


def curvature_of(loss: Loss, scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Lower triangles of weighted second derivatives by the scores, (B, pairs of outputs, n)."""
    triangles = lower_curvature(loss, as_samples(scores), y.ravel())
    several = triangles.reshape(*y.shape, -1).swapaxes(1, 2)
    weighted: Floats = several * weights[:, np.newaxis]
    return weighted


def _spread(gradients: Floats, weights: Floats, hold: Hold, part: slice) -> Floats:
    """Σ D (g - ḡ)(g - ḡ)ᵀ + e ḡ ḡᵀ of gradients (B, P, outputs, n), lower triangle."""
    first, second = np.tril_indices(gradients.shape[2])
    total = np.einsum("bpon,bpn->bon", gradients, weights)
    mean = total * hold.inverse[:, np.newaxis, part]
    form: Floats = hold.held[:, np.newaxis, part] * mean[:, first] * total[:, second]
    for p in range(gradients.shape[1]):
        apart = gradients[:, p] - mean
        form += weights[:, p, np.newaxis] * apart[:, first] * apart[:, second]
    return form


def _of_others(shares: Floats) -> Floats:
    """For each function the sum of the others; a total less its own would lose digits."""
    others, count = np.zeros_like(shares), shares.shape[1]
    for way in (range(count), range(count - 1, -1, -1)):
        total = np.zeros_like(shares[:, 0])
        for one in way:
            others[:, one] += total
            total += shares[:, one]
    return others


def _triangle_index(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Row of each pair of outputs in the lower triangle."""
    first, second = np.tril_indices(count)
    index = np.empty((count, count), dtype=np.intp)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index
