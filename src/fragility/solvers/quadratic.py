r"""Quadratic forms in the parameters of a norm, dense or of low rank, and their faces.

A face holds some entries and leaves the others free. Its `point` is where the free ones make
:math:`\tfrac12 x^\top A x - p \cdot x` least, and A x there; several points are rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats, Indices, Mask
from ..programs.low_rank import LowRank
from .factor import Cholesky

#: Curvatures above this share of the others are not lost to rounding.
_CLEAR = 1e-10


class DenseForm:
    """A as a table."""

    #: Faces that cost no more than a search by other means.
    tries = 15

    def __init__(self, matrix: Floats) -> None:
        #: How many entries may be free where nothing is known.
        self.freedom = len(matrix)
        self._matrix = matrix
        self._face: _BlockFace | None = None

    def times(self, rows: Floats) -> Floats:
        """A times each row."""
        return rows @ self._matrix

    def block(self, free: Mask) -> Floats:
        """The part of A of free entries."""
        places = np.flatnonzero(free)
        return self._matrix[places[:, np.newaxis], places]

    def face(self, free: Mask) -> Face:
        """That of these free entries; searches ask for the last one again."""
        if self._face is None or (self._face.free != free).any():
            self._face = _BlockFace(self, free)
        return self._face


class LowRankForm:
    """A = Xᵀ M X + R of a Hessian, in units of the norm.

    M is what is left of the weights D of the samples after the best values of the parameters
    outside the norm: D - D E B⁻¹ Eᵀ D for their columns E and their own block B.
    """

    tries = 60

    def __init__(
        self, hessian: LowRank, moves: Indices, outside: Indices, metric: Floats, border: Cholesky
    ) -> None:
        self.hessian, self.moves, self.units = hessian, moves, 1.0 / metric
        self.outside, self.border = hessian.columns(outside), border
        self.outer_ridge = hessian.diagonal[outside]
        self.ridge = hessian.diagonal[moves] * self.units**2
        self.freedom = hessian.weights.size // 2

    def forward(self, rows: Floats) -> Floats:
        """Scores X x of each row."""
        by_feature = np.zeros((len(rows), self.hessian.rows.X.shape[1]))
        by_feature[:, self.moves] = rows * self.units
        return np.array([self.hessian.rows.X @ row for row in by_feature])

    def back(self, forces: Floats) -> Floats:
        """The transpose of `forward`."""
        by_feature = np.array([row @ self.hessian.rows.X for row in forces])
        return by_feature[:, self.moves] * self.units

    def times(self, rows: Floats) -> Floats:
        """A times each row."""
        forces = self.forward(rows) * self.hessian.weights
        best = self.border.solve((forces @ self.outside).T).T
        forces -= (best @ self.outside.T) * self.hessian.weights
        return self.back(forces) + self.ridge * rows

    def block(self, free: Mask) -> Floats:
        """The part of A of free entries."""
        columns = self.hessian.columns(self.moves[free])
        half = columns * np.sqrt(self.hessian.weights)[:, np.newaxis]
        cross = (self.outside.T * self.hessian.weights) @ columns
        block = half.T @ half  # BLAS sees the symmetry and does half the work
        block -= cross.T @ self.border.solve(cross)
        block *= np.multiply.outer(self.units[free], self.units[free])
        block[np.diag_indices(len(block))] += self.ridge[free]
        return block

    def face(self, free: Mask) -> Face:
        few = np.count_nonzero(free) <= self.hessian.weights.size
        return _BlockFace(self, free) if few else _LargeFace(self, free)


class _BlockFace:
    """The block of the free entries is formed."""

    def __init__(self, form: Form, free: Mask) -> None:
        self._form, self.free, self._factor = form, free, Cholesky(form.block(free))

    def point(self, fixed: Floats, pull: Floats) -> tuple[Floats, Floats]:
        """Points x and A x: `fixed` is x where it is held, and zero elsewhere."""
        x, rest = fixed.copy(), pull - self._form.times(fixed)
        x[:, self.free] = self._factor.solve(rest[:, self.free].T).T
        return x, self._form.times(x)


class _LargeFace:
    """More free entries than samples: the Woodbury identity.

    Forces f = M X x have x = R⁻¹ (p - Xᵀ f) where it is free. With G = X R⁻¹ Xᵀ of those columns,
    f = M (s - G f), where s are the scores of R⁻¹ p and of what is held.
    """

    def __init__(self, form: LowRankForm, free: Mask) -> None:
        self._form, self._free = form, free
        weights = np.zeros(form.hessian.rows.X.shape[1])
        weights[form.moves[free]] = form.units[free] ** 2 / form.ridge[free]
        self._root = np.sqrt(form.hessian.weights)
        system = form.hessian.rows.products.under(weights)
        system = system * np.multiply.outer(self._root, self._root)
        system[np.diag_indices(len(system))] += 1.0
        self._factor = Cholesky(system)
        self._weighed = self._weigh(form.outside.T)
        self._outer = Cholesky(self._weighed @ form.outside + np.diag(form.outer_ridge))

    def _weigh(self, scores: Floats) -> Floats:
        """Scores times (D⁻¹ + G)⁻¹."""
        return self._factor.solve((scores * self._root).T).T * self._root

    def point(self, fixed: Floats, pull: Floats) -> tuple[Floats, Floats]:
        """Points x and A x: `fixed` is x where it is held, and zero elsewhere."""
        form = self._form
        forces = self._weigh(form.forward(np.where(self._free, pull / form.ridge, fixed)))
        forces -= self._outer.solve((forces @ form.outside).T).T @ self._weighed
        across = form.back(forces)
        x = np.where(self._free, (pull - across) / form.ridge, fixed)
        return x, across + form.ridge * x


Form = DenseForm | LowRankForm
Face = _BlockFace | _LargeFace


class Reduced:
    """A Hessian as a form in the parameters of a norm.

    Parameters outside the norm take their best values for whatever the rest is.
    """

    def __init__(
        self, hessian: Floats | LowRank, moves: Indices, outside: Indices, metric: Floats
    ) -> None:
        self._moves, self._outside, self._metric = moves, outside, metric
        part = hessian.part(outside) if isinstance(hessian, LowRank) else hessian[outside]
        self._border, self._cross = Cholesky(part[:, outside]), part[:, moves]
        self.form: Form
        if isinstance(hessian, LowRank):
            self.form = LowRankForm(hessian, moves, outside, metric, self._border)
        else:
            matrix = hessian[np.ix_(moves, moves)]
            if outside.size:
                matrix = matrix - self._cross.T @ self._border.solve(self._cross)
            self.form = DenseForm(matrix / np.multiply.outer(metric, metric))

    def slope(self, gradient: Floats) -> tuple[Floats, float]:
        """Slope by the entries, and how much the parameters outside lower the value alone."""
        answer = self._border.solve(gradient[self._outside])
        slope = gradient[self._moves] - self._cross.T @ answer
        return slope / self._metric, 0.5 * float(gradient[self._outside] @ answer)

    def change(self, entries: Floats, gradient: Floats) -> Floats:
        """Change of all parameters that belongs to one of the entries."""
        change = np.zeros(gradient.size)
        change[self._moves] = entries / self._metric
        force = self._cross @ change[self._moves] + gradient[self._outside]
        change[self._outside] = -self._border.solve(force)
        return change


def low_rank_steps(hessian: LowRank) -> Callable[[Floats], Floats] | None:
    """Newton's step for a gradient; None where a dense Hessian is safer."""
    ridge = hessian.diagonal[: hessian.rows.X.shape[1]]
    try:
        if not ridge.any():
            return _shortest_steps(hessian)
        clear = ridge.min() > _CLEAR * hessian.trace() / len(hessian)
        return _definite_steps(hessian) if clear else None
    except LinAlgError:
        return None


def _definite_steps(hessian: LowRank) -> Callable[[Floats], Floats]:
    d = hessian.rows.X.shape[1]
    places = np.arange(len(hessian))
    reduced = Reduced(hessian, places[:d], places[d:], np.ones(d))
    face, nothing = reduced.form.face(np.ones(d, dtype=bool)), np.zeros((1, d))

    def step(gradient: Floats) -> Floats:
        slope, _ = reduced.slope(gradient)
        return reduced.change(face.point(nothing, -slope[np.newaxis])[0][0], gradient)

    return step


def _shortest_steps(hessian: LowRank) -> Callable[[Floats], Floats] | None:
    """Without a ridge: of many steps the shortest, in the user's units."""
    rows, weights = hessian.rows, hessian.weights
    squares = rows.scale**2 / np.mean(rows.scale**2)
    system = rows.products.under(squares) + float(rows.fit_intercept)
    factor = Cholesky(system)
    clear = factor.factor.diagonal() ** 2 > _CLEAR * system.diagonal()
    if not clear.all() or weights.min() <= _CLEAR * weights.max():
        return None

    def step(gradient: Floats) -> Floats:
        by_feature, rest = np.split(gradient, [squares.size])
        # The slopes by scores that the gradient is made of, and the change of the scores.
        slopes = factor.solve(rows.X @ (squares * by_feature) + rest.sum())
        by_scores = factor.solve(-slopes / weights)
        change = squares * np.asarray(rows.X.T @ by_scores)
        return np.append(change, np.full(rest.size, by_scores.sum()))

    return step
