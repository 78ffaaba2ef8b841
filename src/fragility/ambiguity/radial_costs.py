"""Costs of the length of a move: its square, another power, or Huber's function."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np

from .._parameters import check_number, check_positive
from .._typing import Floats
from .costs import BORDER, NormCost, TransportCost, as_norm


class RadialCost(TransportCost):
    r"""A convex, increasing function :math:`\varphi` of the length of a move.

    Attributes
    ----------
    norm : {1, 2, inf}, Norm or Mahalanobis
    """

    norm: Any
    #: Largest slope of φ; infinite unless it becomes linear.
    steepest: ClassVar[float] = inf

    @cached_property
    def length(self) -> NormCost:
        """The norm as an object."""
        return as_norm(self.norm)

    @abstractmethod
    def of_length(self, t: Floats) -> Floats:
        """The function φ."""

    @abstractmethod
    def slope_at(self, t: Floats) -> Floats:
        """Its derivative."""

    @abstractmethod
    def conjugate_of(self, s: Floats) -> Floats:
        """Its conjugate, for slopes of zero or more."""

    @abstractmethod
    def length_for(self, s: Floats) -> Floats:
        """Derivative of the conjugate: the best length for a slope."""

    def value(self, moves: Floats) -> Floats:
        return self.of_length(self.length.value(moves))

    def conjugate(self, slopes: Floats) -> Floats:
        return self.conjugate_of(self.length.dual(slopes))

    def move(self, slopes: Floats) -> Floats:
        lengths = self.length_for(self.length.dual(slopes))
        return self.length.direction(slopes) * lengths[:, np.newaxis]

    def least_price(self, slopes: Floats) -> Floats:
        return np.zeros(len(slopes))


@dataclass(frozen=True)
class SquaredNorm(RadialCost):
    r"""The squared length of a move.

    A fragility is then loss per *squared* unit of distance. Slopes gain
    :math:`\lVert v \rVert_*^2 / 4k`.

    Parameters
    ----------
    norm : {1, 2, inf}, Norm or Mahalanobis, default=2
    """

    norm: Any = 2

    def __post_init__(self) -> None:
        as_norm(self.norm)

    def of_length(self, t: Floats) -> Floats:
        return t**2

    def slope_at(self, t: Floats) -> Floats:
        return 2.0 * t

    def conjugate_of(self, s: Floats) -> Floats:
        return s**2 / 4.0

    def length_for(self, s: Floats) -> Floats:
        return s / 2.0

    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        return _squares_over(cp, self.length.dual_cone(cp, slopes), k, 0.25)

    def rescaled(self, length: float) -> tuple[float, TransportCost]:
        return length**2, self


@dataclass(frozen=True)
class Power(RadialCost):
    r"""A power of the length of a move, :math:`\lVert e \rVert^p / p`.

    Parameters
    ----------
    p : float
        Above 1; for 1 take `Norm`. Below 1 the cost is not convex: no exact program is known.
    norm : {1, 2, inf}, Norm or Mahalanobis, default=2
    """

    p: float
    norm: Any = 2

    def __post_init__(self) -> None:
        check_number(self.p, "p")
        if not (isfinite(self.p) and self.p > 1.0):
            why = "a cost that is not convex" if self.p < 1.0 else "a norm: take Norm(2)"
            raise ValueError(f"p must be above 1; got {self.p!r}, {why}.")
        as_norm(self.norm)

    @property
    def q(self) -> float:
        """The conjugate exponent."""
        return self.p / (self.p - 1.0)

    def of_length(self, t: Floats) -> Floats:
        powers: Floats = t**self.p / self.p
        return powers

    def slope_at(self, t: Floats) -> Floats:
        slopes: Floats = t ** (self.p - 1.0)
        return slopes

    def conjugate_of(self, s: Floats) -> Floats:
        powers: Floats = s**self.q / self.q
        return powers

    def length_for(self, s: Floats) -> Floats:
        lengths: Floats = s ** (self.q - 1.0)
        return lengths

    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        # q t >= s^q / k^(q-1): the power cone (q t)^(1/q) k^(1/p) >= s.
        count = slopes.shape[0]
        bound, steep = cp.Variable(count, nonneg=True), cp.Variable(count, nonneg=True)
        price = k * np.ones(count)
        shares = np.full(count, 1.0 / self.q)
        cone = cp.constraints.PowCone3D(self.q * bound, price, steep, shares)
        return bound, [cone, self.length.dual_cone(cp, slopes) <= steep]

    def rescaled(self, length: float) -> tuple[float, TransportCost]:
        return float(length**self.p), self


@dataclass(frozen=True)
class Huber(RadialCost):
    r"""Half the squared length up to a border, a multiple of the length beyond.

    :math:`t^2 / 2` for :math:`t \le \delta`, else :math:`\delta t - \delta^2 / 2`: small moves are
    cheap, as measurement errors are, and long ones are paid by their length.

    Parameters
    ----------
    delta : float
        The border, positive.
    norm : {1, 2, inf}, Norm or Mahalanobis, default=2
    """

    delta: float
    norm: Any = 2

    def __post_init__(self) -> None:
        check_positive(self.delta, "delta")
        as_norm(self.norm)

    def of_length(self, t: Floats) -> Floats:
        short = np.minimum(t, self.delta)
        return short * (t - short / 2.0)

    def slope_at(self, t: Floats) -> Floats:
        return np.minimum(t, self.delta)

    def conjugate_of(self, s: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.where(s <= self.delta * BORDER, s**2 / 2.0, inf)

    def length_for(self, s: Floats) -> Floats:
        return np.minimum(s, self.delta)

    @property
    def steepest(self) -> float:  # type: ignore[override]
        return self.delta

    def least_price(self, slopes: Floats) -> Floats:
        return self.length.dual(slopes) / self.delta

    def cone(self, cp: Any, slopes: Any, k: Any) -> tuple[Any, list[Any]]:
        lengths = self.length.dual_cone(cp, slopes)
        bound, limits = _squares_over(cp, lengths, k, 0.5)
        return bound, [*limits, lengths <= self.delta * k]

    def rescaled(self, length: float) -> tuple[float, TransportCost]:
        return length**2, Huber(self.delta / length, self.norm)


def _squares_over(cp: Any, lengths: Any, k: Any, factor: float) -> tuple[Any, list[Any]]:
    """Upper bounds of factor · length² / k for each of some lengths."""
    count = lengths.shape[0]
    bound, steep = cp.Variable(count, nonneg=True), cp.Variable(count, nonneg=True)
    # bound · k >= factor · steep², a rotated cone: ‖(2 √factor steep, bound - k)‖ <= bound + k.
    price = k * np.ones(count)
    rows = cp.vstack([2.0 * np.sqrt(factor) * steep, bound - price])
    return bound, [cp.SOC(bound + price, rows, axis=0), lengths <= steep]
