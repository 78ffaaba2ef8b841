"""Constraints of interior-point programs in cones: the norm of a model, and an ellipsoid."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from .._typing import Floats
from .cones import Flags, SecondOrder, like
from .interior_parts import Aim, Columns, Direction, Move, Part, PartStep, System
from .norm_cones import Normal, Shape


class ConePart(Part):
    """Margins and multipliers in any cone. Their moves are as the scaling sees them."""

    scaling: Any = None

    def inside(self) -> Flags:
        both: Flags = self.kind.inside(np.stack([self.margin, self.dual], axis=1))
        return both

    def aimed(self, aim: Aim | None) -> Floats | None:
        """What margin and multiplier shall add up to, as the scaling sees them."""
        if aim is None:
            return None
        point = self.scaling.point
        wanted = like(aim.product, point) * self.kind.one(point)
        if aim.affine is not None:
            wanted = wanted - self.kind.product(aim.affine.margin, aim.affine.dual)
        pull: Floats = self.kind.divide(point, wanted)
        return pull

    def along(self, change: Floats, pull: Floats | None, rest: Any = None) -> Move:
        """The move for a change of the margin and a pull."""
        point, margin = self.scaling.point, self.scaling.undo(change)
        return Move(margin, (-point if pull is None else pull - point) - margin, rest)

    def longest(self, move: Move) -> Floats:
        longest: Floats = self.kind.longest(self.scaling.point, move.margin, move.dual)
        return longest

    def after(self, move: Move, length: Floats) -> Self:
        """The part after a share of a move."""
        after, share = copy(self), like(length, self.margin)
        after.margin = self.margin + share * self.scaling.apply(move.margin)
        after.dual = self.dual + share * self.scaling.undo(move.dual)
        after.scaling = None
        return after


class NormPart(ConePart):
    """The norm of the model, below k."""

    def __init__(self, shapes: list[Shape], theta: Floats, k: Floats, cost: Floats) -> None:
        self.columns = Columns(shapes[0].moves)
        self.metric = np.stack([shape.metric for shape in shapes])
        self.plain = bool((self.metric == 1.0).all())
        self.cone, self.cost = shapes[0].cone, cost
        self.kind = self.cone.cone
        table = theta[:, self.columns.indices] * self.metric
        self.x = self.cone.start(table.reshape(len(table), *self.cone.shape), k)
        self.margin = self.cone.forward(self.x)
        dual = self.kind.inverse(self.margin)
        #: Margin times multiplier, which is the same for all margins at the start.
        self.first = cost / self.cone.adjoint(dual)[:, self.cone.n_main]
        self.dual = dual * like(self.first, dual)

    def add_slope(self, slope: Floats, nu: Floats) -> Floats:
        back, main = self.cone.adjoint(self.dual), self.cone.n_main
        slope[:, self.columns.indices] -= back[:, :main] * self.metric
        by_k: Floats = self.cost - back[:, main]
        return by_k

    def add(self, system: System, nu: Floats) -> _NormStep:
        return _NormStep(self, system)

    def moved(self, move: Move, length: Floats, theta: Floats, k: Floats) -> Self:
        after = self.after(move, length)
        after.x = self.x + length[:, np.newaxis] * move.rest
        return after


class _NormStep(PartStep):
    def __init__(self, part: NormPart, system: System) -> None:
        self.part, cone, self.k = part, part.cone, system.k
        part.scaling = part.kind.scaling(part.margin, part.dual)
        normal = Normal(len(part.margin), cone.n_main)
        cone.add_normal(normal, part.scaling)
        metric, moves = part.metric, part.columns.indices
        if not part.plain:
            normal.main *= metric[:, :, np.newaxis]
            normal.main *= metric[:, np.newaxis]
        border = normal.border * metric
        if moves.size == system.p:
            system.matrix[:, : system.p, : system.p] += normal.main
        else:
            system.matrix[:, moves[:, np.newaxis], moves] += normal.main
            border, some = np.zeros((len(metric), system.p)), border
            border[:, moves] = some
        system.border(system.k, border)
        system.cross(system.k, system.k, normal.corner)

    def push(self, right: Floats, nu: Floats, aim: Aim | None) -> tuple[Any, float]:
        part, cone = self.part, self.part.cone
        right[:, self.k] -= part.cost[:, np.newaxis]
        pull, pulled = part.aimed(aim), np.zeros(part.x.shape)
        if pull is not None:
            pulled = cone.adjoint(part.scaling.undo(pull))
            reduced = cone.eliminate(pulled, part.scaling)
            right[:, part.columns.indices] += reduced[:, : cone.n_main] * part.metric
            right[:, self.k] += reduced[:, cone.n_main :]
        return (pull, pulled), 0.0

    def move(self, direction: Direction, pushed: Any) -> Move:
        (pull, pulled), part = pushed, self.part
        table = direction.theta[:, part.columns.indices] * part.metric
        main = np.concatenate([table, direction.k[:, np.newaxis]], axis=1)
        x = part.cone.complete(main, pulled, part.scaling)
        return part.along(part.cone.forward(x), pull, x)


class BallPart(ConePart):
    """Parameters in an ellipsoid: ‖Fᵀ (θ - centre)‖ ≤ radius, from its centre."""

    kind = SecondOrder()

    def __init__(self, factor: Floats, matrix: Floats, radius: Floats, product: Floats) -> None:
        self.factor, self.matrix, self.radius = factor, matrix, radius
        self.margin = np.zeros((len(factor), 1, factor.shape[1] + 1))
        self.margin[:, 0, 0] = radius
        dual = self.kind.inverse(self.margin)
        self.dual = dual * like(product, dual)

    def back(self, dual: Floats) -> Floats:
        """By the parameters."""
        return (self.factor @ dual[:, 0, 1:, np.newaxis])[..., 0]

    def add_slope(self, slope: Floats, nu: Floats) -> float:
        slope -= self.back(self.dual)
        return 0.0

    def add(self, system: System, nu: Floats) -> _BallStep:
        return _BallStep(self, system)

    def moved(self, move: Move, length: Floats, theta: Floats, k: Floats) -> Self:
        return self.after(move, length)


class _BallStep(PartStep):
    def __init__(self, part: BallPart, system: System) -> None:
        self.part, p = part, system.p
        part.scaling = part.kind.scaling(part.margin, part.dual)
        eta = part.scaling.eta[:, :, np.newaxis]
        pull = part.back(np.sqrt(2.0) / eta * part.scaling.w)
        system.matrix[:, :p, :p] += part.matrix / eta**2
        system.matrix[:, :p, :p] += pull[:, :, np.newaxis] * pull[:, np.newaxis]

    def push(self, right: Floats, nu: Floats, aim: Aim | None) -> tuple[Any, float]:
        pull = self.part.aimed(aim)
        if pull is not None:
            back = self.part.back(self.part.scaling.undo(pull))
            right[:, : back.shape[1]] += back
        return pull, 0.0

    def move(self, direction: Direction, pushed: Any) -> Move:
        change = np.zeros(self.part.margin.shape)
        change[:, 0, 1:] = (direction.theta[:, np.newaxis] @ self.part.factor)[:, 0]
        return self.part.along(change, pushed)
