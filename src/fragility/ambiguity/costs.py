r"""Costs of moving a sample by e: convex, zero for no move, with their conjugates.

.. math:: h^*(v) = \sup_e \, v^\top e - h(e)

What a program needs of a cost is :math:`k h^*(v / k)`, which is how much a linear function of
slope v gains at most by a move that is paid for at the price k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from .._parameters import check_choice
from .._typing import Floats
from .._validation import check_values

_DUAL = {1: inf, 2: 2, inf: 1}
#: A slope at the border of where a conjugate is finite, but for rounding, is inside.
BORDER = 1.0 + 1e-10


class TransportCost(ABC):
    r"""A convex cost h of a move, with :math:`h(0) = 0`.

    Subclass it, as a frozen dataclass if it has parameters, for a cost of your own: give `value`,
    `conjugate`, `move` and `cone`. When a model is fitted the four are compared on random moves.
    """

    @abstractmethod
    def value(self, moves: Floats) -> Floats:
        """Cost of each move (rows)."""

    @abstractmethod
    def conjugate(self, slopes: Floats) -> Floats:
        """The conjugate at each slope (rows); infinite where moving for ever pays."""

    @abstractmethod
    def move(self, slopes: Floats) -> Floats:
        """A best move for each slope (rows): one at which slope times move less cost is largest.

        Zero, or any other, where the conjugate is infinite or many moves are best.
        """

    @abstractmethod
    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        """An upper bound of k times the conjugate at slopes / k, for cvxpy.

        `slopes` is an expression with one slope in each row. Returned are an expression (or a
        number) for each row, and constraints; the bound is tight where something holds it down.
        """

    def least_price(self, slopes: Floats) -> Floats:
        """For each slope (rows) the price below which moving for ever pays; zero if there is none.

        For a cost of your own it is found by bisection.
        """
        return np.array([_least_price(self, slope) for slope in slopes])

    def rescaled(self, length: float) -> tuple[float, TransportCost]:
        """The factor c and the cost g with h(length · e) = c g(e)."""
        return 1.0, _InUnits(self, length)

    def gain(self, slopes: Floats, k: float) -> Floats:
        """What each slope gains at most by moves paid for at a price k: k h*(slope / k)."""
        gains = np.zeros(len(slopes))
        used = slopes.any(axis=1)
        if k == 0.0:
            gains[used] = inf
        elif used.any():
            with np.errstate(over="ignore"):
                gains[used] = k * self.conjugate(slopes[used] / k)
        return gains


class NormCost(TransportCost):
    """A norm as the cost; it may be the norm of another cost, too."""

    #: Whether it has a derivative everywhere but at zero, and its dual norm, too.
    smooth: bool = True

    @abstractmethod
    def dual(self, slopes: Floats) -> Floats:
        """Dual norm of each row."""

    @abstractmethod
    def dual_cone(self, cp: Any, slopes: Any) -> Any:
        """Dual norm of each row, for cvxpy."""

    @abstractmethod
    def direction(self, slopes: Floats) -> Floats:
        """A move of length one along which each slope rises fastest."""

    def conjugate(self, slopes: Floats) -> Floats:
        return np.where(self.dual(slopes) <= BORDER, 0.0, inf)

    def move(self, slopes: Floats) -> Floats:
        return np.zeros_like(slopes)

    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        return np.zeros(slopes.shape[0]), [self.dual_cone(cp, slopes) <= k]

    def least_price(self, slopes: Floats) -> Floats:
        return self.dual(slopes)

    def rescaled(self, length: float) -> tuple[float, TransportCost]:
        return length, self


@dataclass(frozen=True)
class Norm(NormCost):
    """The length of a move.

    Parameters
    ----------
    order : {1, 2, inf}, default=2

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.ambiguity import Norm
    >>> Norm(1).value(np.array([[3.0, -4.0]]))
    array([7.])
    """

    order: float = 2

    def __post_init__(self) -> None:
        if isinstance(self.order, bool):
            raise ValueError(f"order must be one of 1, 2, inf; got {self.order!r}.")
        check_choice(self.order, (1, 2, inf), "order")

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.order == 2

    def value(self, moves: Floats) -> Floats:
        lengths: Floats = np.linalg.norm(moves, ord=self.order, axis=1)
        return lengths

    def dual(self, slopes: Floats) -> Floats:
        lengths: Floats = np.linalg.norm(slopes, ord=_DUAL[self.order], axis=1)
        return lengths

    def dual_cone(self, cp: Any, slopes: Any) -> Any:
        return cp.norm(slopes, {1: "inf", 2: 2, inf: 1}[self.order], axis=1)

    def direction(self, slopes: Floats) -> Floats:
        if self.order == inf:
            return np.sign(slopes)
        if self.order == 1:
            best = np.abs(slopes).argmax(axis=1)[:, np.newaxis]
            unit = np.zeros_like(slopes)
            signs = np.sign(np.take_along_axis(slopes, best, axis=1))
            np.put_along_axis(unit, best, signs, axis=1)
            return unit
        size = np.abs(slopes).max(axis=1, keepdims=True, initial=0.0)  # its square may overflow
        plain = slopes / np.where(size > 0.0, size, 1.0)
        lengths = np.linalg.norm(plain, axis=1, keepdims=True)
        return plain / np.where(lengths > 0.0, lengths, 1.0)


@dataclass(frozen=True, repr=False)
class Mahalanobis(NormCost):
    r"""The length :math:`\sqrt{e^\top M e}` of a move.

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        M, symmetric and positive definite, such as the inverse of a covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.ambiguity import Mahalanobis
    >>> Mahalanobis([[4.0, 0.0], [0.0, 1.0]]).value(np.array([[1.0, 0.0]]))
    array([2.])
    """

    matrix: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        given = check_values(self.matrix, "matrix").astype(np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.isfinite(given).all():
            raise ValueError(f"matrix must be square and finite; got shape {given.shape}.")
        if not np.allclose(given, given.T, rtol=1e-10, atol=1e-10 * np.abs(given).max()):
            raise ValueError("matrix must be symmetric; this one is not. Give (M + M.T) / 2.")
        least = float(np.linalg.eigvalsh((given + given.T) / 2.0)[0])
        if not least > 1e-14 * np.abs(given).max():
            raise ValueError(
                f"matrix must be positive definite; its smallest eigenvalue is {least:.3g}. A "
                "direction that costs nothing, or less, has no worst case."
            )
        object.__setattr__(self, "matrix", tuple(map(tuple, given.tolist())))

    def __repr__(self) -> str:
        return f"Mahalanobis({len(self.matrix)} x {len(self.matrix)})"

    @cached_property
    def _root(self) -> Floats:
        """A with M = AᵀA: the length of e is the Euclidean one of A e."""
        table = np.array(self.matrix)
        root: Floats = np.linalg.cholesky((table + table.T) / 2.0).T
        return root

    @cached_property
    def _inverse(self) -> Floats:
        """A⁻¹: the dual norm of v is the Euclidean one of vᵀ A⁻¹."""
        inverse: Any = np.linalg.inv(self._root)
        return np.asarray(inverse)

    def value(self, moves: Floats) -> Floats:
        lengths: Floats = np.linalg.norm(moves @ self._root.T, axis=1)
        return lengths

    def dual(self, slopes: Floats) -> Floats:
        lengths: Floats = np.linalg.norm(slopes @ self._inverse, axis=1)
        return lengths

    def dual_cone(self, cp: Any, slopes: Any) -> Any:
        return cp.norm(slopes @ self._inverse, 2, axis=1)

    def direction(self, slopes: Floats) -> Floats:
        lengths = self.dual(slopes)[:, np.newaxis]
        steep: Floats = slopes @ self._inverse @ self._inverse.T
        return steep / np.where(lengths > 0.0, lengths, 1.0)


def as_norm(given: Any) -> NormCost:
    """The norm of a cost: 1, 2, inf or a norm itself."""
    return given if isinstance(given, NormCost) else Norm(given)


@dataclass(frozen=True)
class _InUnits(TransportCost):
    """A cost of moves in another unit of length."""

    cost: TransportCost
    unit: float = field(default=1.0)

    def value(self, moves: Floats) -> Floats:
        return self.cost.value(moves * self.unit)

    def conjugate(self, slopes: Floats) -> Floats:
        return self.cost.conjugate(slopes / self.unit)

    def move(self, slopes: Floats) -> Floats:
        return self.cost.move(slopes / self.unit) / self.unit

    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        return self.cost.cone(cp, slopes / self.unit, k)


def _least_price(cost: TransportCost, slope: Floats) -> float:
    """Smallest k with a finite conjugate of slope / k, for a cost of which no more is known."""
    row = slope[np.newaxis]
    if not slope.any() or np.isfinite(cost.conjugate(row * 1e12)[0]):
        return 0.0
    low, high = 1e-12, 1.0
    while not np.isfinite(cost.conjugate(row / high)[0]):
        high *= 4.0
        if high > 1e100:
            return inf
    for _ in range(200):
        middle = (low + high) / 2.0
        if np.isfinite(cost.conjugate(row / middle)[0]):
            high = middle
        else:
            low = middle
    return high
