r"""Where samples may go: closed convex sets of features.

A program needs the support function :math:`\delta^*(v) = \sup_{x \in \mathcal X} v^\top x` as
cones, and how far a sample can travel along a direction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Floats, Mask
from .._validation import check_values


@dataclass(frozen=True, eq=False)
class SupportDual:
    """Slopes v, one in each row, and an upper bound of the support function at each, for cvxpy.

    After the program is solved `read` gives both as numbers, made from the solver's multipliers
    so that the bound holds whatever they are.
    """

    slopes: Any
    bound: Any
    limits: list[Any]
    read: Callable[[], tuple[Floats, Floats]]


#: A sample this far outside, relative to the size of the numbers, is inside but for rounding.
_ROUNDING = 1e-9


class Support(ABC):
    """A closed convex set of features that samples, moved or not, lie in."""

    #: Number of features; None if it fits any.
    n_features: int | None = None

    @abstractmethod
    def contains(self, X: Floats) -> Mask:
        """Which rows lie in it, but for rounding."""

    @abstractmethod
    def travel(self, X: Floats, directions: Floats) -> Floats:
        """How far each row can go along its direction, which is not zero, before it leaves."""

    @abstractmethod
    def dual(self, cp: Any, count: int, n_features: int) -> SupportDual:
        """A number of slopes and their support function, for cvxpy."""

    @abstractmethod
    def in_units(self, centre: Floats, scale: Floats) -> Support:
        """The same set for features (x - centre) / scale; scales are positive."""

    def check(self, X: Floats) -> None:
        """Refuse samples that it leaves out, or that have another number of features."""
        if self.n_features not in (None, X.shape[1]):
            raise ValueError(
                f"The support {type(self).__name__} is for {self.n_features} features; X has "
                f"{X.shape[1]}."
            )
        outside = np.flatnonzero(~self.contains(X))
        if outside.size:
            raise ValueError(
                f"The support {type(self).__name__} leaves out {outside.size} of {len(X)} samples, "
                f"the first of them in row {outside[0]}. A distance from the data is finite only "
                "if the data lie inside: give a larger support, or leave those samples out."
            )


@dataclass(frozen=True, repr=False)
class Box(Support):
    """Each feature between two numbers.

    Parameters
    ----------
    lower, upper : float or sequence of d floats
        Infinite: no limit. A number is the same for every feature.

    Examples
    --------
    >>> from fragility.ambiguity import Box
    >>> Box(0, [1, 2]).contains([[0.5, 1.5], [0.5, 2.5]])
    array([ True, False])
    """

    lower: float | Sequence[float]
    upper: float | Sequence[float]

    def __post_init__(self) -> None:
        ends = [_numbers(self.lower, "lower", 1), _numbers(self.upper, "upper", 1)]
        sizes = {end.size for end in ends if end.ndim}
        if len(sizes) > 1:
            raise ValueError(f"lower and upper must be of one length; got {sorted(sizes)}.")
        low, high = np.broadcast_arrays(*ends)
        wrong = np.flatnonzero(~(low <= high) | (low == inf) | (high == -inf))
        if wrong.size:
            at = f" of feature {wrong[0]}" if low.ndim else ""
            raise ValueError(
                f"The box is empty: its lower end{at} is {low.ravel()[wrong[0]]:g}, its upper one "
                f"{high.ravel()[wrong[0]]:g}."
            )
        for name, end in zip(("lower", "upper"), ends, strict=True):
            object.__setattr__(self, name, tuple(end.tolist()) if end.ndim else float(end))
        object.__setattr__(self, "n_features", sizes.pop() if sizes else None)

    def __repr__(self) -> str:
        return f"Box({_shown(self.lower)}, {_shown(self.upper)})"

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The two ends as arrays."""
        return np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)

    def contains(self, X: ArrayLike) -> Mask:
        rows, (low, high) = np.asarray(X, dtype=np.float64), self.ends
        room = _ROUNDING * np.maximum(np.abs(rows), 1e-300)
        inside = (rows >= low - room) & (rows <= high + room)
        found: Mask = np.all(inside, axis=1)
        return found

    def travel(self, X: Floats, directions: Floats) -> Floats:
        low, high = self.ends
        room = np.where(directions > 0.0, high - X, X - low)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(directions == 0.0, inf, np.maximum(room, 0.0) / np.abs(directions))
        least: Floats = steps.min(axis=1)
        return least

    def rooms(self, X: Floats, slopes: Floats) -> Floats:
        """How far each feature can move the way that a slope asks for."""
        low, high = self.ends
        rooms: Floats = np.maximum(np.where(slopes > 0.0, high - X, X - low), 0.0)
        return rooms

    def dual(self, cp: Any, count: int, n_features: int) -> SupportDual:
        low, high = (np.broadcast_to(end, n_features) for end in self.ends)
        up = cp.Variable((count, n_features), nonneg=True)
        down = cp.Variable((count, n_features), nonneg=True)
        # Where a side is open no slope may point there.
        limits = [part[:, open_] == 0.0 for part, open_ in ((up, high == inf), (down, low == -inf))]
        finite_low, finite_high = (np.where(np.isinf(end), 0.0, end) for end in (low, high))
        bound = up @ finite_high - down @ finite_low

        def read() -> tuple[Floats, Floats]:
            rise = np.where(high == inf, 0.0, np.maximum(up.value, 0.0))
            fall = np.where(low == -inf, 0.0, np.maximum(down.value, 0.0))
            slopes = rise - fall  # what both have in common only loosens the bound
            tight = np.maximum(slopes, 0.0) @ finite_high - np.maximum(-slopes, 0.0) @ finite_low
            return slopes, tight

        return SupportDual(up - down, bound, [one for one in limits if one.size], read)

    def in_units(self, centre: Floats, scale: Floats) -> Box:
        return Box(*(tuple((end - centre) / scale) for end in self.ends))


@dataclass(frozen=True, repr=False)
class Polytope(Support):
    """The points x with C x <= d.

    Parameters
    ----------
    C : array-like of shape (m, n_features)
    d : array-like of shape (m,)
    """

    C: Any
    d: Any

    def __post_init__(self) -> None:
        table, limits = _numbers(self.C, "C", 2), _numbers(self.d, "d", 1)
        if table.ndim != 2 or limits.shape != (len(table),) or not len(table):
            raise ValueError(
                f"C must be a table with one row for each entry of d; got shapes {table.shape} and "
                f"{limits.shape}."
            )
        if not (np.isfinite(table).all() and np.isfinite(limits).all()):
            raise ValueError("C and d must be finite; leave rows out that limit nothing.")
        from scipy.optimize import linprog  # slow to import

        found = linprog(np.zeros(table.shape[1]), table, limits, bounds=(None, None))
        if found.status == 2:
            raise ValueError("The polytope is empty: no point meets C x <= d.")
        object.__setattr__(self, "C", tuple(map(tuple, table.tolist())))
        object.__setattr__(self, "d", tuple(limits.tolist()))
        object.__setattr__(self, "n_features", table.shape[1])

    def __repr__(self) -> str:
        return f"Polytope({len(self.d)} limits, {self.n_features} features)"

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        return np.array(self.C), np.array(self.d)

    def contains(self, X: ArrayLike) -> Mask:
        rows, (table, limits) = np.asarray(X, dtype=np.float64), self._arrays
        sizes = np.abs(rows) @ np.abs(table).T + np.abs(limits)
        found: Mask = np.all(rows @ table.T <= limits + _ROUNDING * sizes, axis=1)
        return found

    def travel(self, X: Floats, directions: Floats) -> Floats:
        table, limits = self._arrays
        room, speed = np.maximum(limits - X @ table.T, 0.0), directions @ table.T
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(speed > 0.0, room / speed, inf)
        least: Floats = steps.min(axis=1)
        return least

    def dual(self, cp: Any, count: int, n_features: int) -> SupportDual:
        table, limits = self._arrays
        # max vᵀx over C x <= d is, by duality, min dᵀλ over λ >= 0 with Cᵀλ = v.
        multipliers = cp.Variable((count, len(limits)), nonneg=True)

        def read() -> tuple[Floats, Floats]:
            found = np.maximum(multipliers.value, 0.0)
            return found @ table, found @ limits

        return SupportDual(multipliers @ table, multipliers @ limits, [], read)

    def in_units(self, centre: Floats, scale: Floats) -> Polytope:
        table, limits = self._arrays
        return Polytope(table * scale, limits - table @ centre)


@dataclass(frozen=True, repr=False)
class Ellipsoid(Support):
    r"""The points with :math:`(x - c)^\top M (x - c) \le 1`.

    Parameters
    ----------
    centre : sequence of d floats
    matrix : array-like of shape (d, d)
        M, symmetric and positive definite.
    """

    centre: Any
    matrix: Any

    def __post_init__(self) -> None:
        centre, table = _numbers(self.centre, "centre", 1), _numbers(self.matrix, "matrix", 2)
        if centre.ndim != 1 or table.shape != (centre.size, centre.size):
            raise ValueError(
                f"matrix must be square, of the size of centre; got shapes {table.shape} and "
                f"{centre.shape}."
            )
        if not (np.isfinite(centre).all() and np.isfinite(table).all()):
            raise ValueError("centre and matrix must be finite.")
        even = np.allclose(table, table.T, rtol=1e-10, atol=1e-10 * np.abs(table).max())
        least = float(np.linalg.eigvalsh((table + table.T) / 2.0)[0]) if even else -inf
        if not least > 1e-14 * np.abs(table).max():
            raise ValueError("matrix of an Ellipsoid must be symmetric and positive definite.")
        object.__setattr__(self, "centre", tuple(centre.tolist()))
        object.__setattr__(self, "matrix", tuple(map(tuple, table.tolist())))
        object.__setattr__(self, "n_features", centre.size)

    def __repr__(self) -> str:
        return f"Ellipsoid({self.n_features} features)"

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        """The centre, and A with M = AᵀA."""
        table = np.array(self.matrix)
        return np.array(self.centre), np.linalg.cholesky((table + table.T) / 2.0).T

    def contains(self, X: ArrayLike) -> Mask:
        centre, root = self._arrays
        rows = np.asarray(X, dtype=np.float64) - centre
        inside: Mask = np.linalg.norm(rows @ root.T, axis=1) <= 1.0 + _ROUNDING
        return inside

    def travel(self, X: Floats, directions: Floats) -> Floats:
        centre, root = self._arrays
        here, way = (X - centre) @ root.T, directions @ root.T
        # ‖here + t way‖ = 1: the larger root, without cancellation.
        a, b = (way**2).sum(axis=1), (here * way).sum(axis=1)
        room = np.maximum(1.0 - (here**2).sum(axis=1), 0.0)
        spread = np.sqrt(b**2 + a * room)
        steps: Floats = np.where(b > 0.0, room / np.where(b > 0.0, b + spread, 1.0), 0.0)
        return np.where(b > 0.0, steps, (spread - b) / a)

    def dual(self, cp: Any, count: int, n_features: int) -> SupportDual:
        centre, root = self._arrays
        turn = np.linalg.inv(root)
        slopes = cp.Variable((count, n_features))

        def read() -> tuple[Floats, Floats]:
            found: Floats = slopes.value
            return found, found @ centre + np.linalg.norm(found @ turn, axis=1)

        return SupportDual(slopes, slopes @ centre + cp.norm(slopes @ turn, 2, axis=1), [], read)

    def in_units(self, centre: Floats, scale: Floats) -> Ellipsoid:
        middle, _ = self._arrays
        table = np.array(self.matrix) * np.multiply.outer(scale, scale)
        return Ellipsoid((middle - centre) / scale, (table + table.T) / 2.0)


@dataclass(frozen=True)
class Product(Support):
    """Supports of some features each; features of none are free.

    Parameters
    ----------
    parts : sequence of (columns, Support)
        Columns are places of features; no feature in two parts.

    Examples
    --------
    >>> from fragility.ambiguity import Box, Ellipsoid, Product
    >>> both = Product([([0], Box(0, 1)), ([1, 2], Ellipsoid([0, 0], [[1, 0], [0, 1]]))])
    >>> both.contains([[0.5, 0.6, 0.6, 9.0], [0.5, 0.9, 0.9, 9.0]])
    array([ True, False])
    """

    parts: Any

    def __post_init__(self) -> None:
        parts: list[tuple[tuple[int, ...], Support]] = []
        taken: set[int] = set()
        for columns, support in self.parts:
            places = tuple(int(c) for c in np.atleast_1d(np.asarray(columns)))
            if not isinstance(support, Support):
                raise ValueError(f"A part must be (columns, Support); got {support!r}.")
            if min(places, default=-1) < 0 or taken & {*places} or len({*places}) < len(places):
                raise ValueError(
                    f"Columns of the parts must be places from 0 on, each in one part only; got "
                    f"{list(places)}."
                )
            if support.n_features not in (None, len(places)):
                raise ValueError(
                    f"A part has {len(places)} columns, its support is for {support.n_features}."
                )
            taken |= {*places}
            parts.append((places, support))
        if not parts:
            raise ValueError("Product needs one part at least.")
        object.__setattr__(self, "parts", tuple(parts))

    def check(self, X: Floats) -> None:
        last = max(max(columns) for columns, _ in self.parts)
        if last >= X.shape[1]:
            raise ValueError(f"The support has a column {last}; X has {X.shape[1]} features.")
        super().check(X)

    def contains(self, X: ArrayLike) -> Mask:
        rows = np.asarray(X, dtype=np.float64)
        inside: Mask = np.all([s.contains(rows[:, list(c)]) for c, s in self.parts], axis=0)
        return inside

    def travel(self, X: Floats, directions: Floats) -> Floats:
        steps = np.full(len(X), inf)
        for columns, support in self.parts:
            at = list(columns)
            moved = directions[:, at].any(axis=1)
            if moved.any():
                far = support.travel(X[moved][:, at], directions[moved][:, at])
                steps[moved] = np.minimum(steps[moved], far)
        return steps

    def dual(self, cp: Any, count: int, n_features: int) -> SupportDual:
        duals = [support.dual(cp, count, len(columns)) for columns, support in self.parts]
        places = [np.eye(n_features)[list(columns)] for columns, _ in self.parts]
        slopes = sum(one.slopes @ place for one, place in zip(duals, places, strict=True))

        def read() -> tuple[Floats, Floats]:
            found = [one.read() for one in duals]
            table = sum(part @ place for (part, _), place in zip(found, places, strict=True))
            return table, sum(bound for _, bound in found)

        limits = [limit for one in duals for limit in one.limits]
        return SupportDual(slopes, sum(one.bound for one in duals), limits, read)

    def in_units(self, centre: Floats, scale: Floats) -> Product:
        return Product([(c, s.in_units(centre[list(c)], scale[list(c)])) for c, s in self.parts])


def _numbers(given: Any, name: str, most: int) -> Floats:
    values = check_values(given, name).astype(np.float64)
    if values.ndim > most or np.isnan(values).any():
        raise ValueError(f"{name} must be numbers in at most {most} dimensions; got {given!r}.")
    return values


def _shown(end: Any) -> str:
    """Numbers of one end, few of them."""
    if isinstance(end, float):
        return f"{end:g}"
    return "[" + ", ".join(f"{one:g}" for one in end[:4]) + ", ..." * (len(end) > 4) + "]"
