"""The constraints of an interior-point program: margins, their multipliers, and how they move.

Each part holds one kind of constraint. The margin of a constraint is how far inside it a point is.
A part adds its curvature to the system and its pull to the right side, finds its own move from the
move of the parameters, and says how far it may go. Where constraints bend, margins are made exact
again after each step. A part that has moved is a new object, so a step that is too long costs
nothing. Calls come in the order `add`, `push`, `move`: each keeps what the next one needs.
"""

from __future__ import annotations

from copy import copy
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np

from .._typing import Floats
from ..programs.objective import Objective
from .cones import Orthant
from .norm_cones import Normal, Shape


class Direction(NamedTuple):
    """A step of the parameters, k, t, and the multiplier of the aggregate."""

    theta: Floats
    k: float
    t: float
    nu: float


class Move(NamedTuple):
    """A step of margins and multipliers, and of whatever else a part has."""

    margin: Any
    dual: Any
    rest: Any = None


class Correction(NamedTuple):
    """Where margin times multiplier shall be, and the move whose error is made up for."""

    aimed: float
    affine: Move


class System:
    """Normal equations in the parameters, k and t: slices that are empty where there are none.

    `column` is the slope of the aggregate with the penalty in them, after elimination; `corner` is
    what elimination adds to the corner of its multiplier.
    """

    def __init__(self, objective: Objective, has_k: bool, has_t: bool) -> None:
        self.objective, self.p = objective, objective.size
        self.size = self.p + has_k + has_t
        self.k = slice(self.p, self.p + has_k)
        self.t = slice(self.size - has_t, self.size)
        self.matrix = np.zeros((self.size, self.size))
        self.column = np.zeros(self.size)
        self.corner = 0.0

    def border(self, index: slice, by_scores: Floats) -> None:
        """Add products of the scores (outputs, n) with k or t."""
        by_parameters = self.objective.collected(by_scores)
        self.matrix[: self.p, index] += by_parameters[:, np.newaxis]
        self.matrix[index, : self.p] += by_parameters


class Part:
    """Margins and multipliers in a cone."""

    kind: Any
    margin: Floats
    dual: Floats

    @property
    def degree(self) -> int:
        return int(self.kind.degree(self.margin))

    def gap(self) -> float:
        return float(np.vdot(self.margin, self.dual))

    def inside(self) -> bool:
        return bool(self.kind.inside(self.margin) and self.kind.inside(self.dual))

    def barrier(self) -> float:
        """Logarithm of how far the margin is from the boundary."""
        return float(self.kind.barrier(self.margin))


class PositivePart(Part):
    """Margins and multipliers that are both positive numbers."""

    kind = Orthant()

    def aim(self, correction: Correction | None) -> Floats:
        """Multipliers that would close the gap as far as wanted, were the margins to stay."""
        if correction is None:
            return np.zeros_like(self.margin)
        aimed, affine = correction
        wanted: Floats = (aimed - affine.margin * affine.dual) / self.margin
        return wanted

    def longest(self, move: Move) -> float:
        pairs = ((self.margin, move.margin), (self.dual, move.dual))
        return float(min(self.kind.longest(now, step) for now, step in pairs))

    def gap_after(self, move: Move, length: float) -> float:
        margin, dual = self.margin + length * move.margin, self.dual + length * move.dual
        return float(np.vdot(margin, dual))


class Lasso(PositivePart):
    """Sizes of parameters that a lasso weighs, above them and above minus them."""

    def __init__(self, weights: Floats, theta: Floats, nu: float, room: float) -> None:
        self.indices = np.flatnonzero(weights > 0.0)
        self.weights = weights[self.indices]
        own = theta[self.indices]
        lift = np.minimum(np.maximum(np.abs(own), 1.0), room / (own.size * self.weights))
        self.sizes = np.abs(own) + lift
        self.margin = np.stack([self.sizes - own, self.sizes + own])
        dual = 1.0 / self.margin
        self.dual = dual * (nu * self.weights / dual.sum(axis=0))

    @property
    def value(self) -> float:
        return float(self.weights @ self.sizes)

    def add_slope(self, slope: Floats, nu: float) -> float:
        """Add the slope of the Lagrangian's part by the parameters; return that by k."""
        slope[self.indices] += self.dual[0] - self.dual[1]
        return 0.0

    def add(self, system: System, nu: float) -> None:
        # a (δ - σ)² + b (δ + σ)² at the best σ, the step of the size, is 4ab/(a+b) δ².
        upper, lower = self.dual / self.margin
        self.both, self.skew = upper + lower, lower - upper
        system.matrix[self.indices, self.indices] += 4.0 * upper * lower / self.both
        system.column[self.indices] -= self.skew * self.weights / self.both
        system.corner += float((self.weights**2 / self.both).sum())

    def push(
        self, right: Floats, system: System, nu: float, correction: Correction | None
    ) -> float:
        """Add to the right side; return what is added to the row of the aggregate."""
        self.aimed = self.aim(correction)
        self.pushed = self.aimed.sum(axis=0) - nu * self.weights
        right[self.indices] += self.aimed[1] - self.aimed[0] - self.skew * self.pushed / self.both
        return float((self.weights * self.pushed / self.both).sum())

    def move(self, direction: Direction) -> Move:
        own = direction.theta[self.indices]
        sizes = (self.pushed - direction.nu * self.weights - self.skew * own) / self.both
        margin = np.stack([sizes - own, sizes + own])
        return Move(margin, self.aimed - self.dual - self.dual / self.margin * margin, sizes)

    def moved(self, move: Move, length: float, theta: Floats, k: float) -> Lasso:
        after = copy(self)
        after.margin = self.margin + length * move.margin
        after.dual = self.dual + length * move.dual
        after.sizes = self.sizes + length * move.rest
        return after


class ConePart(Part):
    """Margins and multipliers in any cone. Their moves are as the scaling sees them."""

    def __init__(self, kind: Any, margin: Floats) -> None:
        self.kind, self.margin = kind, margin
        self.dual = kind.inverse(margin)

    def rescale(self) -> None:
        """Find the scaling of the present point."""
        self.scaling = self.kind.scaling(self.margin, self.dual)

    def pull(self, aimed: float, affine: Move) -> Floats:
        """What margin and multiplier shall add up to, as the scaling sees them."""
        point = self.scaling.point
        wanted = aimed * self.kind.one(point)
        if np.ndim(affine.margin):
            wanted = wanted - self.kind.product(affine.margin, affine.dual)
        pull: Floats = self.kind.divide(point, wanted)
        return pull

    def along(self, change: Floats, pull: Floats | None, rest: Any = None) -> Move:
        """The move for a change of the margin and a pull."""
        point, margin = self.scaling.point, self.scaling.undo(change)
        return Move(margin, (-point if pull is None else pull - point) - margin, rest)

    def longest(self, move: Move) -> float:
        point = self.scaling.point
        return float(min(self.kind.longest(point, step) for step in (move.margin, move.dual)))

    def after(self, move: Move, length: float) -> Self:
        """The part after a share of a move."""
        after = copy(self)
        after.margin = self.margin + length * self.scaling.apply(move.margin)
        after.dual = self.dual + length * self.scaling.undo(move.dual)
        return after


class NormPart(ConePart):
    """The norm of the model, below k."""

    def __init__(self, shape: Shape, theta: Floats, k: float, cost: float) -> None:
        self.shape, self.cone, self.cost = shape, shape.cone, cost
        self.x = self.cone.start(shape.table(theta), k)
        super().__init__(self.cone.cone, self.cone.forward(self.x))
        self.dual = self.dual * (cost / float(self.cone.adjoint(self.dual)[self.cone.n_main]))

    def add_slope(self, slope: Floats, nu: float) -> float:
        back = self.cone.adjoint(self.dual)
        slope[self.shape.moves] -= back[: self.cone.n_main] * self.shape.metric
        return self.cost - float(back[self.cone.n_main])

    def add(self, system: System, nu: float) -> None:
        self.rescale()
        normal = Normal(np.zeros((self.cone.n_main, self.cone.n_main)))
        self.cone.add_normal(normal, self.scaling)
        metric, moves, k = self.shape.metric, self.shape.moves, system.k
        system.matrix[np.ix_(moves, moves)] += normal.main * np.multiply.outer(metric, metric)
        system.matrix[moves, k] += (normal.border * metric)[:, np.newaxis]
        system.matrix[k, moves] += normal.border * metric
        system.matrix[k, k] += normal.corner

    def push(
        self, right: Floats, system: System, nu: float, correction: Correction | None
    ) -> float:
        right[system.k] -= self.cost
        self.pulled: Floats | None = None
        self.right = np.zeros(self.x.size)
        if correction is not None:
            self.pulled = self.pull(*correction)
            self.right = self.cone.adjoint(self.scaling.undo(self.pulled))
            reduced = self.cone.eliminate(self.right, self.scaling)
            right[self.shape.moves] += reduced[: self.cone.n_main] * self.shape.metric
            right[system.k] += reduced[self.cone.n_main]
        return 0.0

    def move(self, direction: Direction) -> Move:
        main = np.append(direction.theta[self.shape.moves] * self.shape.metric, direction.k)
        x = self.cone.complete(main, self.right, self.scaling)
        return self.along(self.cone.forward(x), self.pulled, x)

    def gap_after(self, move: Move, length: float) -> float:
        point = self.scaling.point
        return float(np.vdot(point + length * move.margin, point + length * move.dual))

    def moved(self, move: Move, length: float, theta: Floats, k: float) -> Self:
        after = self.after(move, length)
        after.x = self.x + length * move.rest
        return after


class Goal(NamedTuple):
    """The target of the aggregate, its margin and multiplier; without one the multiplier is 1."""

    target: float | None
    margin: float = 0.0
    nu: float = 1.0

    @property
    def degree(self) -> int:
        return int(self.target is not None)

    def gap(self) -> float:
        return self.margin * self.nu

    def barrier(self) -> float:
        return 0.0 if self.target is None else float(np.log(self.margin))

    def miss(self, height: float) -> float:
        """Residual of the constraint: aggregate plus penalty plus margin, minus the target."""
        return 0.0 if self.target is None else height + self.margin - self.target

    def move(self, nu: float, correction: Correction | None) -> Move:
        both = 0.0
        if correction is not None and self.target is not None:
            both = correction.aimed - correction.affine.margin * correction.affine.dual
        return Move((both - self.margin * nu) / self.nu - self.margin, nu)

    def longest(self, move: Move) -> float:
        pairs = ((self.margin, move.margin), (self.nu, move.dual))
        return float(min((-now / step for now, step in pairs if step < 0.0), default=inf))

    def gap_after(self, move: Move, length: float) -> float:
        return float((self.margin + length * move.margin) * (self.nu + length * move.dual))

    def moved(self, move: Move, length: float) -> Goal:
        return Goal(self.target, self.margin + length * move.margin, self.nu + length * move.dual)
