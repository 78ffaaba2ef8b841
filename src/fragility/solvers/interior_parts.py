"""What an interior-point step is made of: slacks, their multipliers, and how they move.

Each part holds one kind of constraint. It adds its curvature to the system, its pull to the right
side, finds its own move from that of the parameters, and says how far it may go. Slacks are never
stored apart from what they are slacks of for long: where constraints bend they are made exact again
after each step. A part that has moved is a new one, so that a step that was too bold costs nothing.
Calls come in the order `add`, `push`, `move`: each keeps what the next needs.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np

from .._typing import Floats
from ..losses import Loss
from ..programs.objective import Objective
from ..programs.pieces import Pieces
from .cones import Orthant
from .levels import Common, Levels, Moment
from .norm_cones import Normal, Shape

#: How near κ may come to zero in one step of a log-moment, which bends as sharply as κ is small.
_LEFT = 0.4


class Direction(NamedTuple):
    """A step of the parameters, κ, t, and the multiplier of the aggregate."""

    theta: Floats
    kappa: float
    t: float
    nu: float


class Move(NamedTuple):
    """A step of slacks and multipliers, and of whatever else a part has."""

    slack: Any
    dual: Any
    rest: Any = None


class Correction(NamedTuple):
    """Where slack times multiplier shall be, and the move whose error is made up for."""

    aimed: float
    affine: Move


class System:
    """Normal equations in the parameters, κ and t: slices that are empty where there are none.

    `column` is the slope of the aggregate with the penalty in them, after elimination; `corner` is
    what elimination adds to the corner of its multiplier.
    """

    def __init__(self, n_parameters: int, has_kappa: bool, has_t: bool) -> None:
        self.p = n_parameters
        self.size = n_parameters + has_kappa + has_t
        self.kappa = slice(n_parameters, n_parameters + has_kappa)
        self.t = slice(self.size - has_t, self.size)
        self.matrix = np.zeros((self.size, self.size))
        self.column = np.zeros(self.size)
        self.corner = 0.0

    def border(self, place: slice, by_parameters: Floats) -> None:
        """Add to a row and column beyond the parameters."""
        self.matrix[: self.p, place] += by_parameters[:, np.newaxis]
        self.matrix[place, : self.p] += by_parameters


class _Part:
    """Slacks and multipliers in a cone."""

    kind: Any
    slack: Floats
    dual: Floats

    @property
    def degree(self) -> int:
        return int(self.kind.degree(self.slack))

    def gap(self) -> float:
        return float(np.vdot(self.slack, self.dual))

    def inside(self) -> bool:
        return bool(self.kind.inside(self.slack) and self.kind.inside(self.dual))

    def wall(self) -> float:
        """Logarithm of how far the slack is from the boundary."""
        return float(self.kind.wall(self.slack))


class _Pairs(_Part):
    """Slacks and multipliers that are both positive numbers."""

    kind = Orthant

    def aim(self, correction: Correction | None) -> Floats:
        """Multipliers that would close the gap as far as wanted, were the slacks to stay."""
        if correction is None:
            return np.zeros_like(self.slack)
        aimed, affine = correction
        wanted: Floats = (aimed - affine.slack * affine.dual) / self.slack
        return wanted

    def longest(self, move: Move) -> float:
        return min(Orthant.longest(self.slack, move.slack), Orthant.longest(self.dual, move.dual))

    def gap_after(self, move: Move, length: float) -> float:
        slack, dual = self.slack + length * move.slack, self.dual + length * move.dual
        return float(np.vdot(slack, dual))


class Samples(_Pairs):
    """Levels above the pieces of the samples."""

    def __init__(
        self, objective: Objective, pieces: Pieces, flips: Floats, levels: type[Levels]
    ) -> None:
        self.objective, self.pieces, self.flips = objective, pieces, flips
        self.levels = levels(objective.rows.weights, flips)

    def begin(self, theta: Floats, kappa: float, lift: float, least: float = 0.0) -> None:
        """Place the levels above the losses, by a share of their aggregate, or at least so much."""
        scores = self.scores(theta)
        self.at, self.shared = self.pieces.at(scores), self._shared(scores)
        heights = (self.at.values + self.flips * kappa).max(axis=0)
        self.levels.place(heights, kappa)
        self.room = max(lift * abs(self.value), least, 1e-12)
        self.levels.place(heights + self.room, kappa)
        self.slack = self.levels.s - self.at.values - self.flips * kappa
        self.first_kappa = kappa

    def _shared(self, scores: Floats) -> _Shared | None:
        if self.pieces.shared is None:
            return None
        return _Shared(self.pieces.shared, scores, self.objective)

    @property
    def value(self) -> float:
        """Aggregate of the levels, with the mean of what the pieces leave out."""
        return self.levels.value + (0.0 if self.shared is None else self.shared.value)

    def balance(self, nu: float) -> None:
        """Multipliers that agree with the multiplier of the aggregate."""
        dual = 1.0 / self.slack
        if isinstance(self.levels, Common):
            self.dual = dual * (nu / dual.sum())
        else:
            self.dual = dual * (nu * self.levels.shares() / dual.sum(axis=0))

    def scores(self, theta: Floats) -> Floats:
        """Scores (outputs, n) of parameters."""
        coef, intercept = self.objective.split(theta)
        X = self.objective.rows.X
        if isinstance(X, np.ndarray):
            scores: Floats = coef @ X.T
        else:
            scores = np.ascontiguousarray((X @ coef.T).T)
        if self.objective.rows.fit_intercept:
            scores += intercept[:, np.newaxis]
        return scores

    def slope(self, nu: float) -> tuple[Floats, float]:
        """Slope of the Lagrangian's part by the parameters, and by κ."""
        kappa = float((self.flips * self.dual).sum()) if self.levels.flipping else 0.0
        by_scores = self.at.adjoint(self.dual)
        if self.shared is not None:
            by_scores = by_scores + nu * self.shared.slopes
        return self.objective.collected(by_scores), kappa

    def rise(self, move: Move, direction: Direction) -> float:
        """Slope of the aggregate along a step."""
        rise = float(self.levels.shares() @ move.rest)
        rise += self.levels.slope_kappa() * direction.kappa
        if self.shared is not None:
            rise += float(self.objective.collected(self.shared.slopes) @ direction.theta)
        return rise

    def inside(self) -> bool:
        # As κ vanishes only the largest level counts, and that is `Common`.
        vanished = isinstance(self.levels, Moment) and self.levels.kappa <= 1e-9 * self.first_kappa
        return super().inside() and not vanished

    def add(self, system: System, nu: float, gram: Any) -> None:
        self.D = self.dual / self.slack
        left = self.levels.eliminate(self.at, self.D, nu)
        at, D, dual, p = self.at, self.D, self.dual, system.p
        shared = self.shared

        def form(part: slice) -> Floats:
            own = at.form(D, dual, left.level, part)
            return (own if shared is None else own + nu * shared.form(part)).T

        system.matrix[:p, :p] += gram(form)
        if shared is not None:
            system.column[:p] += self.objective.collected(shared.slopes)
        system.corner += left.corner
        if left.slope_scores is not None:
            system.column[:p] += self.objective.collected(left.slope_scores)
        kappa, t = system.kappa, system.t
        system.column[kappa] += left.slope_kappa
        system.column[t] += left.slope_t
        system.matrix[kappa, kappa] += left.kappa
        system.matrix[t, t] += left.t
        system.matrix[kappa, t] += left.kappa_t
        system.matrix[t, kappa] += left.kappa_t
        for place, scores in ((kappa, left.scores_kappa), (t, left.scores_t)):
            if scores is not None:
                system.border(place, self.objective.collected(scores))

    def push(
        self, right: Floats, system: System, nu: float, correction: Correction | None
    ) -> float:
        """Add to the right side; returned is what is added to that of the aggregate."""
        self.aimed = self.aim(correction)
        push = self.levels.push(self.at, self.aimed, nu)
        scores = push.scores if self.shared is None else push.scores - nu * self.shared.slopes
        right[: system.p] += self.objective.collected(scores)
        right[system.kappa] += push.kappa
        right[system.t] += push.t
        return push.row

    def move(self, direction: Direction) -> Move:
        moved = self.at.forward(self.scores(direction.theta))
        if self.levels.flipping:
            moved = moved + self.flips * direction.kappa
        s = self.levels.step(moved, direction.kappa, direction.t, direction.nu)
        slack = s - moved
        return Move(slack, self.aimed - self.dual - self.D * slack, s)

    def longest_kappa(self, direction: Direction) -> float:
        if isinstance(self.levels, Moment) and direction.kappa < 0.0:
            return (1.0 - _LEFT) * self.levels.kappa / -direction.kappa
        return inf

    def moved(self, move: Move, length: float, theta: Floats, kappa: float) -> Samples:
        """After a step; pieces that bend end higher than it foresaw: levels are lifted there."""
        after = copy(self)
        after.levels = copy(self.levels)
        scores = self.scores(theta)
        after.at, after.shared = self.pieces.at(scores), self._shared(scores)
        levels = self.levels.s + length * move.rest
        exact = levels - after.at.values - self.flips * kappa
        lift = (self.slack + length * move.slack - exact).max(axis=0)
        after.levels.place(levels + np.maximum(lift, 0.0), kappa)
        after.slack = exact + (after.levels.s - levels)
        after.dual = self.dual + length * move.dual
        return after


class _Shared:
    """The mean of a smooth loss at some scores, and its derivatives."""

    def __init__(self, loss: Loss, scores: Floats, objective: Objective) -> None:
        self.loss, self.rows = loss, objective.rows
        self.scores = scores[0] if len(scores) == 1 else scores.T
        self.value = float(self.rows.weights @ loss.value(self.scores, self.rows.y))

    @cached_property
    def slopes(self) -> Floats:
        """By the scores, (outputs, n)."""
        slopes = self.loss.gradient(self.scores, self.rows.y)
        return slopes.reshape(self.rows.y.size, -1).T * self.rows.weights

    def form(self, part: slice) -> Floats:
        """Curvature by the scores, lower triangle."""
        outputs = 1 if self.scores.ndim == 1 else self.scores.shape[1]
        first, second = np.tril_indices(outputs)
        bend = self.loss.curvature(self.scores[part], self.rows.y[part])
        form: Floats = bend.reshape(-1, outputs, outputs)[:, first, second].T
        return form * self.rows.weights[part]


class Lasso(_Pairs):
    """Sizes of priced parameters, above them and above minus them."""

    def __init__(self, prices: Floats, theta: Floats, nu: float, room: float) -> None:
        self.places = np.flatnonzero(prices > 0.0)
        self.prices = prices[self.places]
        own = theta[self.places]
        lift = np.minimum(np.maximum(np.abs(own), 1.0), room / (own.size * self.prices))
        self.sizes = np.abs(own) + lift
        self.slack = np.stack([self.sizes - own, self.sizes + own])
        dual = 1.0 / self.slack
        self.dual = dual * (nu * self.prices / dual.sum(axis=0))

    @property
    def value(self) -> float:
        return float(self.prices @ self.sizes)

    def add(self, system: System) -> None:
        # a (δ - σ)² + b (δ + σ)² at the best σ, the step of the size, is 4ab/(a+b) δ².
        upper, lower = self.dual / self.slack
        self.both, self.skew = upper + lower, lower - upper
        system.matrix[self.places, self.places] += 4.0 * upper * lower / self.both
        system.column[self.places] -= self.skew * self.prices / self.both
        system.corner += float((self.prices**2 / self.both).sum())

    def push(self, right: Floats, nu: float, correction: Correction | None) -> float:
        self.aimed = self.aim(correction)
        self.pushed = self.aimed.sum(axis=0) - nu * self.prices
        right[self.places] += self.aimed[1] - self.aimed[0] - self.skew * self.pushed / self.both
        return float((self.prices * self.pushed / self.both).sum())

    def move(self, direction: Direction) -> Move:
        own = direction.theta[self.places]
        sizes = (self.pushed - direction.nu * self.prices - self.skew * own) / self.both
        slack = np.stack([sizes - own, sizes + own])
        return Move(slack, self.aimed - self.dual - self.dual / self.slack * slack, sizes)

    def moved(self, move: Move, length: float) -> Lasso:
        after = copy(self)
        after.slack = self.slack + length * move.slack
        after.dual = self.dual + length * move.dual
        after.sizes = self.sizes + length * move.rest
        return after


class ConePart(_Part):
    """Slacks and multipliers in any cone. Their moves are as the scaling sees them."""

    def __init__(self, kind: Any, slack: Floats) -> None:
        self.kind, self.slack = kind, slack
        self.dual = kind.inverse(slack)

    def rescale(self) -> None:
        """Have the scaling of where it is."""
        self.scaling = self.kind.scaling(self.slack, self.dual)

    def pull(self, aimed: float, affine: Move) -> Floats:
        """What slack and multiplier shall add up to, as the scaling sees them."""
        point = self.scaling.point
        wanted = aimed * self.kind.one(point)
        if np.ndim(affine.slack):
            wanted = wanted - self.kind.product(affine.slack, affine.dual)
        pull: Floats = self.kind.divide(point, wanted)
        return pull

    def along(self, change: Floats, pull: Floats | None, rest: Any = None) -> Move:
        """The move for a change of the slack and what was pulled at."""
        point, slack = self.scaling.point, self.scaling.undo(change)
        return Move(slack, (-point if pull is None else pull - point) - slack, rest)

    def longest(self, move: Move) -> float:
        point = self.scaling.point
        return float(min(self.kind.longest(point, step) for step in (move.slack, move.dual)))

    def moved(self, move: Move, length: float) -> Self:
        after = copy(self)
        after.slack = self.slack + length * self.scaling.apply(move.slack)
        after.dual = self.dual + length * self.scaling.undo(move.dual)
        return after


class NormPart(ConePart):
    """The model's norm, below κ."""

    def __init__(self, shape: Shape, theta: Floats, kappa: float, cost: float) -> None:
        self.shape, self.cone = shape, shape.cone
        self.x = self.cone.start(shape.table(theta), kappa)
        super().__init__(self.cone.cone, self.cone.forward(self.x))
        self.dual = self.dual * (cost / float(self.cone.adjoint(self.dual)[self.cone.n_main]))

    def slope(self) -> tuple[Floats, float]:
        """What the multipliers pull at the parameters that move, and at κ."""
        back = self.cone.adjoint(self.dual)
        return back[: self.cone.n_main] * self.shape.metric, float(back[self.cone.n_main])

    def add(self, system: System) -> None:
        self.rescale()
        normal = Normal(np.zeros((self.cone.n_main, self.cone.n_main)))
        self.cone.add_normal(normal, self.scaling)
        metric, moves, kappa = self.shape.metric, self.shape.moves, system.kappa
        system.matrix[np.ix_(moves, moves)] += normal.main * np.multiply.outer(metric, metric)
        system.matrix[moves, kappa] += (normal.border * metric)[:, np.newaxis]
        system.matrix[kappa, moves] += normal.border * metric
        system.matrix[kappa, kappa] += normal.corner

    def push(self, right: Floats, system: System, correction: Correction | None) -> None:
        self.pulled: Floats | None = None
        self.right = np.zeros(self.x.size)
        if correction is None:
            return
        self.pulled = self.pull(*correction)
        self.right = self.cone.adjoint(self.scaling.undo(self.pulled))
        reduced = self.cone.eliminate(self.right, self.scaling)
        right[self.shape.moves] += reduced[: self.cone.n_main] * self.shape.metric
        right[system.kappa] += reduced[self.cone.n_main]

    def move(self, direction: Direction) -> Move:
        main = np.append(direction.theta[self.shape.moves] * self.shape.metric, direction.kappa)
        x = self.cone.complete(main, self.right, self.scaling)
        return self.along(self.cone.forward(x), self.pulled, x)

    def gap_after(self, move: Move, length: float) -> float:
        point = self.scaling.point
        return float(np.vdot(point + length * move.slack, point + length * move.dual))

    def moved(self, move: Move, length: float) -> Self:
        after = super().moved(move, length)
        after.x = self.x + length * move.rest
        return after


class Goal(NamedTuple):
    """The target of the aggregate, its slack and multiplier; without one the multiplier is 1."""

    target: float | None
    slack: float = 0.0
    nu: float = 1.0

    def gap(self) -> float:
        return 0.0 if self.target is None else self.slack * self.nu

    def miss(self, height: float) -> float:
        """By how much the aggregate with the penalty and the slack are off the target."""
        return 0.0 if self.target is None else height + self.slack - self.target

    def move(self, nu: float, correction: Correction | None) -> Move:
        both = 0.0
        if correction is not None:
            both = correction.aimed - correction.affine.slack * correction.affine.dual
        return Move((both - self.slack * nu) / self.nu - self.slack, nu)

    def longest(self, move: Move) -> float:
        pairs = ((self.slack, move.slack), (self.nu, move.dual))
        return float(min((-now / step for now, step in pairs if step < 0.0), default=inf))

    def gap_after(self, move: Move, length: float) -> float:
        return float((self.slack + length * move.slack) * (self.nu + length * move.dual))

    def moved(self, move: Move, length: float) -> Goal:
        return Goal(self.target, self.slack + length * move.slack, self.nu + length * move.dual)
