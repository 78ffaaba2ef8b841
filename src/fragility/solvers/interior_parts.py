"""The constraints of interior-point programs: margins, their multipliers, and how they move.

Each part holds one kind of constraint of all problems that are solved together. The margin of a
constraint is how far inside it a point is. `add` puts the curvature of a part into the system and
returns its step: that adds a pull to the right side (`push`), and with what that returns finds the
part's own move from the move of the parameters (`move`). Where constraints bend, margins are made
exact again after each step. A part that has moved is a new object, so a step that is too long costs
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from .._typing import Floats, Indices
from ..programs.batched import Batched
from .cones import Flags, Orthant, by_problem, inner, like


class Direction(NamedTuple):
    """A step of the parameters, k, t, and the multiplier of the aggregate."""

    theta: Floats
    k: Floats
    t: Floats
    nu: Floats


class Move(NamedTuple):
    """A step of margins and multipliers, and of whatever else a part has."""

    margin: Any
    dual: Any
    rest: Any = None


class Aim(NamedTuple):
    """Where margin times multiplier shall be, and the move whose error is made up for, if any."""

    product: Floats
    affine: Move | None


class System:
    """Normal equations in the parameters, k and t: slices that are empty where there are none.

    `column` is the slope of the aggregate with the penalty in them, after elimination; `corner` is
    what elimination adds to the corner of its multiplier. `single` says that products of columns
    are wanted in single precision only.
    """

    def __init__(self, n_problems: int, p: int, has_k: bool, has_t: bool, single: bool) -> None:
        self.p, self.size, self.single = p, p + has_k + has_t, single
        self.k = slice(p, p + has_k)
        self.t = slice(self.size - has_t, self.size)
        self.matrix = np.zeros((n_problems, self.size, self.size))
        self.column = np.zeros((n_problems, self.size))
        self.corner = np.zeros(n_problems)

    def border(self, index: slice, by_parameters: Floats) -> None:
        """Add products of the parameters with k or t."""
        self.matrix[:, : self.p, index] += by_parameters[..., np.newaxis]
        self.matrix[:, index, : self.p] += by_parameters[:, np.newaxis]

    def cross(self, one: slice, other: slice, values: Floats) -> None:
        """Add to what k and t share."""
        self.matrix[:, one, other] += values[:, np.newaxis, np.newaxis]
        if one != other:
            self.matrix[:, other, one] += values[:, np.newaxis, np.newaxis]


class PartStep(ABC):
    """A part at a point whose curvature is in the system."""

    @abstractmethod
    def push(self, right: Floats, nu: Floats, aim: Aim | None) -> tuple[Any, Floats | float]:
        """Add to the right side.

        Returned are what `move` needs, and what is added to the row of the aggregate.
        """

    @abstractmethod
    def move(self, direction: Direction, pushed: Any) -> Move:
        """The part's own move along a direction."""


class Part(Batched, ABC):
    """Margins and multipliers in a cone."""

    kind: Any
    margin: Floats
    dual: Floats
    #: What it adds to the aggregate.
    value: Floats | float = 0.0

    @property
    def degree(self) -> int:
        return int(self.kind.degree(self.margin))

    def gap(self) -> Floats:
        return inner(self.margin, self.dual)

    def inside(self) -> Flags:
        both: Flags = self.kind.inside(self.margin) & self.kind.inside(self.dual)
        return both

    def barrier(self) -> Floats:
        """Logarithm of how far the margin is from the boundary."""
        barrier: Floats = self.kind.barrier(self.margin)
        return barrier

    def rise(self, move: Move, direction: Direction) -> Floats | float:
        """Slope along a step of what it adds to the aggregate."""
        return 0.0

    @abstractmethod
    def add_slope(self, slope: Floats, nu: Floats) -> Floats | float:
        """Add the slope of the Lagrangian's part by the parameters; return that by k."""

    @abstractmethod
    def add(self, system: System, nu: Floats) -> PartStep:
        """Add the curvature to the system."""

    @abstractmethod
    def longest(self, move: Move) -> Floats:
        """How far a move may go before margin or multiplier leave their cone."""

    @abstractmethod
    def moved(self, move: Move, length: Floats, theta: Floats, k: Floats) -> Self:
        """The part after a share of a move, where parameters and k are these."""


class PositivePart(Part):
    """Margins and multipliers that are both positive numbers."""

    kind = Orthant()

    def aim(self, aim: Aim | None) -> Floats | None:
        """Multipliers that would close the gap as far as wanted, were the margins to stay.

        None if it is to be closed altogether: all of them would be zero.
        """
        if aim is None:
            return None
        wanted: Floats = like(aim.product, self.margin)
        if aim.affine is not None:
            wanted = wanted - aim.affine.margin * aim.affine.dual
        return wanted / self.margin

    def followed(self, aimed: Floats | None, D: Floats, margin: Floats) -> Floats:
        """The move of the multipliers that goes with one of the margins; D are their ratios."""
        move = D * margin
        move += self.dual
        return np.negative(move, out=move) if aimed is None else aimed - move

    def longest(self, move: Move) -> Floats:
        ratios = by_problem(move.margin / self.margin), by_problem(move.dual / self.dual)
        least = np.minimum(*(ratio.min(axis=1, initial=-1e-300) for ratio in ratios))
        longest: Floats = -1.0 / least
        return longest


class Columns(NamedTuple):
    """The same for all problems."""

    indices: Indices


class Lasso(PositivePart):
    """Sizes of parameters that a lasso weighs, above them and above minus them."""

    def __init__(self, weights: Floats, theta: Floats, nu: Floats, room: Floats) -> None:
        self.columns = Columns(np.flatnonzero(weights[0] > 0.0))
        self.weights = weights[:, self.columns.indices]
        own = theta[:, self.columns.indices]
        most = room[:, np.newaxis] / (own.shape[1] * self.weights)
        self.sizes = np.abs(own) + np.minimum(np.maximum(np.abs(own), 1.0), most)
        self.margin = np.stack([self.sizes - own, self.sizes + own], axis=1)
        dual = 1.0 / self.margin
        share = nu[:, np.newaxis] * self.weights / dual.sum(axis=1)
        self.dual = dual * share[:, np.newaxis]

    @property
    def value(self) -> Floats:  # type: ignore[override]
        return inner(self.weights, self.sizes)

    def rise(self, move: Move, direction: Direction) -> Floats:
        return inner(self.weights, move.rest)

    def add_slope(self, slope: Floats, nu: Floats) -> float:
        slope[:, self.columns.indices] += self.dual[:, 0] - self.dual[:, 1]
        return 0.0

    def add(self, system: System, nu: Floats) -> _LassoStep:
        return _LassoStep(self, system)

    def moved(self, move: Move, length: Floats, theta: Floats, k: Floats) -> Self:
        after = copy(self)
        after.margin = self.margin + like(length, self.margin) * move.margin
        after.dual = self.dual + like(length, self.dual) * move.dual
        after.sizes = self.sizes + length[:, np.newaxis] * move.rest
        return after


class _LassoStep(PartStep):
    def __init__(self, part: Lasso, system: System) -> None:
        # a (δ - σ)² + b (δ + σ)² at the best σ, the step of the size, is 4ab/(a+b) δ².
        self.part, indices = part, part.columns.indices
        self.D = part.dual / part.margin
        upper, lower = self.D[:, 0], self.D[:, 1]
        self.both, self.skew = upper + lower, lower - upper
        system.matrix[:, indices, indices] += 4.0 * upper * lower / self.both
        system.column[:, indices] -= self.skew * part.weights / self.both
        system.corner += (part.weights**2 / self.both).sum(axis=1)

    def push(self, right: Floats, nu: Floats, aim: Aim | None) -> tuple[Any, Floats]:
        part = self.part
        aimed, pushed = part.aim(aim), -nu[:, np.newaxis] * part.weights
        if aimed is not None:
            pushed = pushed + aimed.sum(axis=1)
            right[:, part.columns.indices] += aimed[:, 1] - aimed[:, 0]
        right[:, part.columns.indices] -= self.skew * pushed / self.both
        return (aimed, pushed), (part.weights * pushed / self.both).sum(axis=1)

    def move(self, direction: Direction, pushed: Any) -> Move:
        (aimed, pull), part = pushed, self.part
        own = direction.theta[:, part.columns.indices]
        sizes = pull - direction.nu[:, np.newaxis] * part.weights - self.skew * own
        sizes = sizes / self.both
        margin = np.stack([sizes - own, sizes + own], axis=1)
        return Move(margin, part.followed(aimed, self.D, margin), sizes)


class Goal(Batched):
    """The target of the aggregate, its margin and multiplier; without one the multiplier is 1."""

    def __init__(self, target: Floats | None, margin: Floats, nu: Floats) -> None:
        self.target, self.margin, self.nu = target, margin, nu

    @property
    def degree(self) -> int:
        return int(self.target is not None)

    def gap(self) -> Floats:
        return self.margin * self.nu

    def barrier(self) -> Floats:
        return np.zeros(self.nu.size) if self.target is None else np.log(self.margin)

    def miss(self, height: Floats) -> Floats:
        """Residual of the constraint: aggregate plus penalty plus margin, minus the target."""
        return np.zeros(height.size) if self.target is None else height + self.margin - self.target

    def move(self, nu: Floats | float, aim: Aim | None) -> Move:
        both: Floats | float = 0.0
        if aim is not None and self.target is not None:
            both = aim.product
            if aim.affine is not None:
                both = both - aim.affine.margin * aim.affine.dual
        return Move((both - self.margin * nu) / self.nu - self.margin, nu)

    def longest(self, move: Move) -> Floats:
        shrinking = np.maximum(-move.dual / self.nu, 1e-300)
        if self.target is not None:
            shrinking = np.maximum(shrinking, -move.margin / self.margin)
        longest: Floats = 1.0 / shrinking
        return longest

    def moved(self, move: Move, length: Floats) -> Goal:
        margin, nu = self.margin + length * move.margin, self.nu + length * move.dual
        return Goal(self.target, margin, nu)
