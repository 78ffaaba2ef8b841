r"""The two cones that interior-point methods here work on, with Nesterov and Todd's scaling.

Margins s of constraints and their multipliers y are arrays: the first axis counts problems, which
are solved together, and the last one holds one cone each. The scaling is the symmetric map W of the
cone with :math:`W y = W^{-1} s = \lambda`. What is one number for each problem has the shape (B,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats

Flags = NDArray[np.bool_]


def by_problem(values: Any) -> Any:
    """One row for each problem."""
    return values if values.ndim == 2 else values.reshape(len(values), -1)


def like(of_problems: Any, values: Floats) -> Any:
    """One number for each problem, to be broadcast over arrays of the problems."""
    return of_problems.reshape(-1, *(1,) * (values.ndim - 1))


def inner(a: Floats, b: Floats) -> Floats:
    """Inner product of the arrays of each problem."""
    n = len(a)
    if n == 1:
        return np.array([np.vdot(a, b)])
    found: Floats = a.reshape(n, 1, -1) @ b.reshape(n, -1, 1)
    return found.ravel()


class OrthantScaling:
    """Numbers that are not negative: W is diagonal."""

    def __init__(self, s: Floats, y: Floats) -> None:
        self.point = np.sqrt(s * y)
        self._factor = np.sqrt(s / y)
        self.weights = y / s

    def apply(self, v: Floats) -> Floats:
        """W v."""
        return self._factor * v

    def undo(self, v: Floats) -> Floats:
        """W⁻¹ v."""
        return v / self._factor


class Orthant:
    """Products and steps of numbers that are not negative."""

    scaling = OrthantScaling

    def degree(self, s: Floats) -> int:
        return int(s[0].size)

    def inside(self, s: Floats) -> Flags:
        least: Floats = by_problem(s).min(axis=1, initial=1.0)
        return least > 0.0

    def barrier(self, s: Floats) -> Floats:
        """Logarithm of how far from the boundary."""
        inside = self.inside(s)
        logs = np.log(np.where(like(inside, s), s, 1.0))
        return np.where(inside, by_problem(logs).sum(axis=1), -np.inf)

    one = staticmethod(np.ones_like)
    inverse = staticmethod(np.reciprocal)
    product = staticmethod(np.multiply)

    def divide(self, a: Floats, b: Floats) -> Floats:
        """X with a∘x = b."""
        return b / a

    def longest(self, a: Floats, *steps: Floats) -> Floats:
        """How far a may go along each of some steps before it leaves the cone."""
        size = np.maximum(a, 1e-300)
        shrinking = [by_problem(step / size).min(axis=1, initial=0.0) for step in steps]
        longest: Floats = 1.0 / np.maximum(-np.minimum.reduce(shrinking), 1e-300)
        return longest


class SecondOrderScaling:
    r"""Pairs :math:`(s_0, s_1)` with :math:`s_0 \ge \lVert s_1 \rVert`.

    :math:`W^2 = \eta^2 (2 w w^\top - J)` with :math:`J = diag(1, -1, ..., -1)`.
    """

    def __init__(self, s: Floats, y: Floats) -> None:
        both = np.stack([s, y])
        sizes: Floats = np.sqrt(_size(both))
        size_s, size_y = sizes
        s, y = both / sizes[..., np.newaxis]
        middle = np.sqrt((1.0 + np.einsum("...i,...i->...", s, y)) / 2.0)
        self.w = (s + _reflected(y)) / (2.0 * middle)[..., np.newaxis]
        self.eta: Floats = np.sqrt(size_s / size_y)
        self.point = self.apply(y) * size_y[..., np.newaxis]

    def apply(self, v: Floats) -> Floats:
        return self._turn(v, self.w) * self.eta[..., np.newaxis]

    def undo(self, v: Floats) -> Floats:
        return self._turn(v, _reflected(self.w)) / self.eta[..., np.newaxis]

    @staticmethod
    def _turn(v: Floats, w: Floats) -> Floats:
        along = np.einsum("...i,...i->...", w[..., 1:], v[..., 1:])
        turned: Floats = v + w * (v[..., 0] + along / (1.0 + w[..., 0]))[..., np.newaxis]
        turned[..., 0] = w[..., 0] * v[..., 0] + along
        return turned


class SecondOrder:
    """Products and steps of second-order cones."""

    scaling = SecondOrderScaling

    def degree(self, s: Floats) -> int:
        return s[0, ..., 0].size

    def inside(self, s: Floats) -> Flags:
        room = s[..., 0] - np.sqrt(np.einsum("...i,...i->...", s[..., 1:], s[..., 1:]))
        found: Flags = by_problem(room).min(axis=1) > 0.0
        return found

    def barrier(self, s: Floats) -> Floats:
        """Logarithm of how far from the boundary."""
        size = by_problem(_size(s))
        inside = size.min(axis=1) > 0.0
        logs = np.log(np.where(inside[:, np.newaxis], size, 1.0))
        return np.where(inside, 0.5 * logs.sum(axis=1), -np.inf)

    def one(self, s: Floats) -> Floats:
        one = np.zeros_like(s)
        one[..., 0] = 1.0
        return one

    def inverse(self, s: Floats) -> Floats:
        return _reflected(s) / _size(s)[..., np.newaxis]

    def product(self, a: Floats, b: Floats) -> Floats:
        product: Floats = a[..., :1] * b + b[..., :1] * a
        product[..., 0] = np.einsum("...i,...i->...", a, b)
        return product

    def divide(self, a: Floats, b: Floats) -> Floats:
        """X with a∘x = b."""
        along = np.einsum("...i,...i->...", a[..., 1:], b[..., 1:])
        first = (a[..., 0] * b[..., 0] - along) / _size(a)
        quotient: Floats = (b - first[..., np.newaxis] * a) / a[..., :1]
        quotient[..., 0] = first
        return quotient

    def longest(self, a: Floats, *steps: Floats) -> Floats:
        """How far a may go along each of some steps before it leaves the cone."""
        # In the frame where a is the unit, the cone is left at one over how much the step shrinks.
        size = np.sqrt(np.maximum(_size(a), 1e-300))[..., np.newaxis]
        unit, move = a / size, np.stack(steps) / size
        first = unit[..., 0] * move[..., 0]
        first -= np.einsum("...i,...i->...", unit[..., 1:], move[..., 1:])
        along = (move[..., 0] + first) / (unit[..., 0] + 1.0)
        rest = move[..., 1:] - along[..., np.newaxis] * unit[..., 1:]
        shrinking = np.sqrt(np.einsum("...i,...i->...", rest, rest)) - first
        longest: Floats = 1.0 / by_problem(shrinking.max(axis=0)).max(axis=-1, initial=1e-300)
        return longest


def _size(v: Floats) -> Floats:
    """The first entry squared less the others squared: positive inside the cone."""
    length = np.sqrt(np.einsum("...i,...i->...", v[..., 1:], v[..., 1:]))
    size: Floats = (v[..., 0] - length) * (v[..., 0] + length)
    return size


def _reflected(v: Floats) -> Floats:
    result = -v
    result[..., 0] = v[..., 0]
    return result
