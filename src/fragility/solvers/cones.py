r"""The two cones that interior-point methods here work on, with Nesterov and Todd's scaling.

Margins s of constraints and their multipliers y are arrays whose last axis holds one cone each. The
scaling is the symmetric map W of the cone with :math:`W y = W^{-1} s = \lambda`.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats


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
        return s.size

    def inside(self, s: Floats) -> bool:
        return bool(s.min(initial=1.0) > 0.0)

    def barrier(self, s: Floats) -> float:
        """Logarithm of how far from the boundary."""
        return float(np.log(s).sum()) if s.min(initial=1.0) > 0.0 else -np.inf

    one = staticmethod(np.ones_like)
    inverse = staticmethod(np.reciprocal)
    product = staticmethod(np.multiply)

    def divide(self, a: Floats, b: Floats) -> Floats:
        """X with a∘x = b."""
        return b / a

    def longest(self, a: Floats, step: Floats) -> float:
        """How far a may go along a step before it leaves the cone."""
        shrinking = -float((step / np.maximum(a, 1e-300)).min(initial=0.0))
        return 1.0 / shrinking if shrinking > 0.0 else np.inf


class SecondOrderScaling:
    r"""Pairs :math:`(s_0, s_1)` with :math:`s_0 \ge \lVert s_1 \rVert`.

    :math:`W^2 = \eta^2 (2 w w^\top - J)` with :math:`J = diag(1, -1, ..., -1)`.
    """

    def __init__(self, s: Floats, y: Floats) -> None:
        size_s, size_y = np.sqrt(_size(s)), np.sqrt(_size(y))
        s, y = s / size_s[..., np.newaxis], y / size_y[..., np.newaxis]
        middle = np.sqrt((1.0 + (s * y).sum(axis=-1)) / 2.0)
        self.w = (s + _reflected(y)) / (2.0 * middle)[..., np.newaxis]
        self.eta = np.sqrt(size_s / size_y)
        self.point = self.apply(y) * size_y[..., np.newaxis]

    def apply(self, v: Floats) -> Floats:
        return self._turn(v, self.w) * self.eta[..., np.newaxis]

    def undo(self, v: Floats) -> Floats:
        return self._turn(v, _reflected(self.w)) / self.eta[..., np.newaxis]

    @staticmethod
    def _turn(v: Floats, w: Floats) -> Floats:
        along = (w[..., 1:] * v[..., 1:]).sum(axis=-1)
        first = w[..., 0] * v[..., 0] + along
        rest = v[..., 1:] + w[..., 1:] * (v[..., 0] + along / (1.0 + w[..., 0]))[..., np.newaxis]
        return np.concatenate([first[..., np.newaxis], rest], axis=-1)


class SecondOrder:
    """Products and steps of second-order cones."""

    scaling = SecondOrderScaling

    def degree(self, s: Floats) -> int:
        return s[..., 0].size

    def inside(self, s: Floats) -> bool:
        return bool(_size(s).min() > 0.0 and s[..., 0].min() > 0.0)

    def barrier(self, s: Floats) -> float:
        """Logarithm of how far from the boundary."""
        size = _size(s)
        return 0.5 * float(np.log(size).sum()) if size.min() > 0.0 else -np.inf

    def one(self, s: Floats) -> Floats:
        one = np.zeros_like(s)
        one[..., 0] = 1.0
        return one

    def inverse(self, s: Floats) -> Floats:
        return _reflected(s) / _size(s)[..., np.newaxis]

    def product(self, a: Floats, b: Floats) -> Floats:
        first = (a * b).sum(axis=-1, keepdims=True)
        return np.concatenate([first, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:]], axis=-1)

    def divide(self, a: Floats, b: Floats) -> Floats:
        """X with a∘x = b."""
        along = (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
        first = (a[..., :1] * b[..., :1] - along) / _size(a)[..., np.newaxis]
        return np.concatenate([first, (b[..., 1:] - first * a[..., 1:]) / a[..., :1]], axis=-1)

    def longest(self, a: Floats, step: Floats) -> float:
        """How far a may go along a step before it leaves the cone."""
        # In the frame where a is the unit, the cone is left at one over how much the step shrinks.
        size = np.sqrt(np.maximum(_size(a), 1e-300))[..., np.newaxis]
        unit, move = a / size, step / size
        first = unit[..., 0] * move[..., 0] - (unit[..., 1:] * move[..., 1:]).sum(axis=-1)
        along = (move[..., 0] + first) / (unit[..., 0] + 1.0)
        rest = move[..., 1:] - along[..., np.newaxis] * unit[..., 1:]
        shrinking = float((np.sqrt((rest**2).sum(axis=-1)) - first).max())
        return 1.0 / shrinking if shrinking > 0.0 else np.inf


def _size(v: Floats) -> Floats:
    """The first entry squared less the others squared: positive inside the cone."""
    length = np.sqrt((v[..., 1:] ** 2).sum(axis=-1))
    size: Floats = (v[..., 0] - length) * (v[..., 0] + length)
    return size


def _reflected(v: Floats) -> Floats:
    result = -v
    result[..., 0] = v[..., 0]
    return result
