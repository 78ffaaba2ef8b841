r"""Programs whose losses have corners, by a primal-dual interior-point method.

.. math:: \min_{\theta, \kappa} \; c \kappa + \tfrac12 \sum_j p_j \theta_j^2 + [A + R]
          \quad\text{s.t.}\quad A + R \le \tau, \quad
          f_{np}(u_n) - \kappa \gamma_{np} \le s_n, \quad (\theta, \kappa) \in K

where A is the mean, the log-moment or the largest of the levels s (`levels`), R ridge and lasso,
and K the cone of a norm (`norm_cones`). Either the aggregate A + R is bounded by a target or it is
minimised; κ may be absent. Mehrotra's steps, Nesterov and Todd's scaling; a step costs one weighted
product of the columns, as a Newton step does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats
from ..programs.gram import paired_gram
from ..programs.objective import Objective
from ..programs.pieces import pieces_of
from .factor import Cholesky
from .interior_parts import (
    Correction,
    Direction,
    Goal,
    Lasso,
    Move,
    NormPart,
    Samples,
    System,
)
from .levels import Common, Levels, Mean
from .norm_cones import Shape

#: How much of the way to the boundary a step goes.
_NEARLY = 0.99
#: What a step may add to the aggregate beyond what it foresaw, as a share of the gap.
_SURPRISE = 0.5
#: Levels start above the losses by this share of their aggregate; the slack of a target starts at
#: this share of that.
_LIFT, _SLACK = 1.0, 0.1
#: The same where the loss itself is left out of the pieces.
_HIGHER = 3.0
#: Levels that may go anywhere start above the losses by this share of those without a model.
_LEAST_LIFT = 1e-2
#: A slope of the Lagrangian that would gain so many gaps has to become less first.
_UNEVEN = 10.0
#: Steps in which the gap must halve.
_PATIENCE = 60
#: A step shorter than this leads nowhere; one that keeps this share of what was allowed is good.
_TINY, _GOOD = 1e-10, 0.3
#: A cost of this share of the first one is none: it is known no better.
_NOTHING = 1e-3
#: How flat the Lagrangian must once have been, relatively, and the gap from which on to look.
_FLAT, _NEAR = 1e-5, 1e-2
#: A search that rounding ended has converged if its gap is at most so many tolerances.
_ENOUGH = 1e3
#: Curvature that stands in where there is none, as a share of a parameter's own.
_STAND_IN = 1e-13


_NO_MOVE = Move(0.0, 0.0)


class InteriorSolution(NamedTuple):
    """Where the search ended; `gap` is how far the cost can be above its minimum, relatively."""

    parameters: Floats
    kappa: float
    cost: float
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Bowl:
    """A quadratic of the parameters, by what it and its derivatives are at a centre."""

    centre: Floats
    height: float
    gradient: Floats
    hessian: Floats

    def value(self, parameters: Floats) -> float:
        away = parameters - self.centre
        return self.height + float(self.gradient @ away) + 0.5 * float(away @ self.hessian @ away)

    def slope(self, parameters: Floats) -> Floats:
        return self.gradient + self.hessian @ (parameters - self.centre)


@dataclass(frozen=True, eq=False)
class InteriorProgram:
    """A program; `solve` solves it.

    Attributes
    ----------
    objective : Objective
    levels : type of Levels
    target : float, optional
        Bound of the aggregate with the penalty; without one they are part of what is minimised.
    shape : Shape, optional
        Cone of (θ, κ); without one there is no κ.
    kappa_cost : float
    price : ndarray, optional
        Cost of the squared parameters.
    label_cost : float
        What a piece of another label is lowered by, per unit of κ.
    bowl : Bowl, optional
        Part of the aggregate, in place of a loss that all pieces of a sample have in common.
    """

    objective: Objective
    levels: type[Levels] = Mean
    target: float | None = None
    shape: Shape | None = None
    kappa_cost: float = 1.0
    price: Floats | float = 0.0
    label_cost: float = inf
    bowl: Bowl | None = None

    def samples(self) -> Samples:
        """The samples' part, not placed yet."""
        rows = self.objective.rows
        moving = self.label_cost < inf
        # Below a target of its own the level of a hinge's margins may be anywhere; what is
        # minimised, or shares the target with a penalty, ends at zero, as losses do.
        alone = self.target is not None and not self.objective.is_penalised
        floor = -1.0 if self.levels is Common and alone else 0.0
        pieces = pieces_of(self.objective.loss, rows.y, rows.n_classes, moving, floor)
        if self.bowl is not None:
            pieces.shared = None
        flips = -(self.label_cost if moving else 0.0) * pieces.flips
        return Samples(self.objective, pieces, flips, self.levels)

    def height(self, parameters: Floats, kappa: float) -> float:
        """Aggregate of the samples' losses with the penalty, at a κ."""
        samples = self.samples()
        samples.begin(parameters, kappa, 0.0)
        height = samples.value - samples.room + self.objective.penalty(parameters)
        return height if self.bowl is None else height + self.bowl.value(parameters)

    def solve(
        self, start: Floats, *, tol: float, max_iter: int, kappa: float = 0.0
    ) -> InteriorSolution:
        """Minimise, from parameters and a κ that is above their norm."""
        point = _Point.at_start(self, start, kappa)
        floor, flat, steps, converged = _NOTHING * point.cost, inf, 0, False
        best, stalled = inf, 0
        while steps < max_iter and stalled < _PATIENCE:
            steps += 1
            scale = max(abs(point.cost), floor)
            left = max(point.gap, point.missed)
            # Multipliers of a nearly closed cone lose digits again: to have been flat is enough.
            if left <= _NEAR * scale and flat > max(_FLAT, tol):
                flat = point.unevenness() / scale
            if left <= tol * scale and flat <= max(_FLAT, tol):
                converged = True
                break
            stalled = 0 if left < 0.5 * best else stalled + 1
            best = best if stalled else left
            following = point.next() if point.inside() else None
            if following is None:  # as near as rounding lets us
                break
            point = following
        scale = max(abs(point.cost), floor, 1e-300)
        gap = max(point.gap, point.missed) / scale
        converged = converged or (gap <= _ENOUGH * tol and flat <= max(_FLAT, tol))
        return InteriorSolution(point.theta, point.kappa, point.cost, gap, steps, converged)


@dataclass(eq=False)
class _Point:
    """Where a search is."""

    program: InteriorProgram
    theta: Floats
    kappa: float
    samples: Samples
    goal: Goal
    lasso: Lasso | None = None
    norm: NormPart | None = None

    @classmethod
    def at_start(cls, program: InteriorProgram, start: Floats, kappa: float) -> _Point:
        samples = program.samples()
        objective = program.objective
        least = _LIFT * objective.penalty(start)
        if program.target is None:  # where no loss is left, none of the model's is a measure
            none = objective.at(np.zeros(objective.size))
            least = max(least, _LEAST_LIFT * float(none.losses.max()))
        else:
            least = max(least, (program.target - program.height(start, kappa)) / 2.0)
        lift = _LIFT if samples.pieces.shared is None else _HIGHER
        if program.bowl is not None:
            least = max(least, _HIGHER * abs(program.bowl.value(start)))
        samples.begin(start, kappa, lift, least)
        point = cls(program, start.copy(), kappa, samples, Goal(None))
        if program.target is not None:
            cost = max(point.cost, 1e-12)
            left = program.target - point.height
            slack = max(left, _SLACK * samples.room)
            point.goal = Goal(program.target, slack, cost / samples.room)
        samples.balance(point.goal.nu)
        if objective.prices.any():
            point.lasso = Lasso(objective.prices, start, point.goal.nu, samples.room)
        if program.shape is not None:
            point.norm = NormPart(program.shape, start, kappa, program.kappa_cost)
        return point

    @property
    def parts(self) -> list[Any]:
        bounded = [self.goal] if self.program.target is not None else []
        return [self.samples, *(part for part in (self.lasso, self.norm) if part), *bounded]

    @property
    def penalty(self) -> float:
        ridge = 0.5 * float(self.program.objective.ridge @ self.theta**2)
        return ridge if self.lasso is None else ridge + self.lasso.value

    @property
    def height(self) -> float:
        """Aggregate with the penalty."""
        height = self.samples.value + self.penalty
        return height if self.program.bowl is None else height + self.program.bowl.value(self.theta)

    @property
    def cost(self) -> float:
        program = self.program
        cost = 0.5 * float(np.sum(program.price * self.theta**2))
        if program.shape is not None:
            cost += program.kappa_cost * self.kappa
        return cost + self.height if program.target is None else cost

    @property
    def gap(self) -> float:
        return float(sum(part.gap() for part in self.parts))

    @property
    def missed(self) -> float:
        """What missing the target is worth."""
        return abs(self.goal.miss(self.height)) * self.goal.nu

    def inside(self) -> bool:
        """Whether rounding has left slacks and multipliers in their cones."""
        return all(part.inside() for part in (self.samples, self.lasso, self.norm) if part)

    def unevenness(self) -> float:
        """What the slope of the Lagrangian would gain over the parameters' own length."""
        program = self.program
        slope, kappa = self.samples.slope(self.goal.nu)
        slope += (self.goal.nu * program.objective.ridge + program.price) * self.theta
        if program.bowl is not None:
            slope += self.goal.nu * program.bowl.slope(self.theta)
        if self.lasso is not None:
            slope[self.lasso.places] += self.lasso.dual[0] - self.lasso.dual[1]
        if self.norm is not None:
            pull, back = self.norm.slope()
            slope[self.norm.shape.moves] -= pull
            kappa += program.kappa_cost + self.goal.nu * self.samples.levels.slope_kappa() - back
        # Columns are scaled, so that one is what a parameter may well be, unless that costs much.
        length = np.full(slope.size, max(1.0, float(np.abs(self.theta).max(initial=0.0))))
        if self.lasso is not None:
            own, prices = np.abs(self.theta[self.lasso.places]), self.lasso.prices
            length[self.lasso.places] = np.maximum(own, np.minimum(1.0, self.height / prices))
        return float(np.abs(slope) @ length) + abs(kappa) * self.kappa

    def next(self) -> _Point | None:
        """The point after one step; None if there is none."""
        try:
            step = _Step(self)
        except LinAlgError:
            return None
        # Straight to the optimum, first; then with what that shows, to a point before it.
        affine = step.moves(step.direction(None), None)
        length = min(1.0, self._longest(affine))
        gap, parts = self.gap, self.parts
        left = sum(part.gap_after(move, length) for part, move in zip(parts, affine, strict=True))
        degree = sum(part.degree if part is not self.goal else 1 for part in parts)
        aimed = gap / degree * (max(0.0, left) / gap) ** 3
        bends = self.samples.pieces.bends
        if bends and self.unevenness() > max(_UNEVEN * gap, 0.1 * _FLAT * abs(self.cost)):
            aimed = gap / degree  # the slope has to follow before the gap is closed further
        corrected, share = self._taken(step, [Correction(aimed, move) for move in affine], aimed)
        if share >= _GOOD:
            return corrected
        # Without the correction the step is Newton's on the barrier, and does lead down.
        plain, other = self._taken(step, [Correction(aimed, _NO_MOVE)] * len(parts), aimed)
        return corrected if share >= other else plain

    def _taken(
        self, step: _Step, wanted: list[Correction], aimed: float
    ) -> tuple[_Point | None, float]:
        """Where a step ends that is short enough for what it foresees, and the share taken."""
        direction = step.direction(wanted)
        moves = step.moves(direction, wanted)
        longest = min(self._longest(moves), self.samples.longest_kappa(direction))
        length = min(1.0, _NEARLY * longest)
        rise, bends = self._rise(direction, moves), self.samples.pieces.bends
        price = 2.0 * max(self.goal.nu, self.goal.nu + direction.nu)
        gap, merit = self.gap, self.merit(aimed, price) if bends else inf
        share = 1.0
        while share > _TINY and length > _TINY:
            trial = self._moved(direction, moves, length)
            surprise = (trial.height - self.height - length * rise) * trial.goal.nu
            few = surprise <= _SURPRISE * gap + 1e-14 * trial.goal.nu * abs(trial.height)
            if few and (not bends or trial.merit(aimed, price) <= merit):
                return trial, share
            length, share = length / 2.0, share / 2.0
        return None, 0.0

    def merit(self, barrier: float, price: float) -> float:
        """Cost, price of missing the target, and barriers: what steps where pieces bend lower."""
        walls = sum(part.wall() for part in (self.samples, self.lasso, self.norm) if part)
        merit = self.cost - barrier * float(walls)
        if self.program.target is not None:
            merit += price * abs(self.goal.miss(self.height))
            merit -= barrier * float(np.log(self.goal.slack))
        return merit

    def _longest(self, moves: list[Move]) -> float:
        pairs = zip(self.parts, moves, strict=True)
        return float(min(part.longest(move) for part, move in pairs))

    def _rise(self, direction: Direction, moves: list[Move]) -> float:
        """Slope of the aggregate with the penalty along a step."""
        rise = self.samples.rise(moves[0], direction)
        rise += float((self.program.objective.ridge * self.theta) @ direction.theta)
        if self.program.bowl is not None:
            rise += float(self.program.bowl.slope(self.theta) @ direction.theta)
        return rise if self.lasso is None else rise + float(self.lasso.prices @ moves[1].rest)

    def _moved(self, direction: Direction, moves: list[Move], length: float) -> _Point:
        theta = self.theta + length * direction.theta
        kappa = self.kappa + length * direction.kappa
        rest = iter(moves[1:])
        lasso = self.lasso and self.lasso.moved(next(rest), length)
        norm = self.norm and self.norm.moved(next(rest), length)
        goal = self.goal
        if self.program.target is not None:
            goal = goal.moved(next(rest), length)
        samples = self.samples.moved(moves[0], length, theta, kappa)
        return replace(
            self, theta=theta, kappa=kappa, samples=samples, goal=goal, lasso=lasso, norm=norm
        )


class _Step:
    """The system at a point, factorised: directions cost little more."""

    def __init__(self, point: _Point) -> None:
        self.point, self.program = point, point.program
        objective, rows = self.program.objective, self.program.objective.rows
        samples, goal = point.samples, point.goal
        system = System(objective.size, self.program.shape is not None, samples.levels.has_t)
        self.system = system

        def gram(form: Any) -> Floats:
            return paired_gram(rows.X, objective.n_outputs, rows.fit_intercept, form)

        samples.add(system, goal.nu, gram)
        p, own = system.p, np.arange(system.p)
        system.column[:p] += objective.ridge * point.theta
        system.matrix[own, own] += goal.nu * objective.ridge + self.program.price
        bowl = self.program.bowl
        if bowl is not None:
            system.column[:p] += bowl.slope(point.theta)
            system.matrix[:p, :p] += goal.nu * bowl.hessian
        if point.lasso is not None:
            point.lasso.add(system)
        if point.norm is not None:
            point.norm.add(system)
        system.matrix[:p, :p] = objective.fixed_gauge(system.matrix[:p, :p])
        diagonal = system.matrix.diagonal()
        self.balance = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        balanced = system.matrix * np.multiply.outer(self.balance, self.balance)
        balanced[np.diag_indices(system.size)] += _STAND_IN
        self.factor = Cholesky(balanced)
        if self.program.target is not None:
            self.answer = self._solved(system.column)
            corner = system.corner + goal.slack / goal.nu
            self.pivot = float(system.column @ self.answer) + corner

    def _solved(self, right: Floats) -> Floats:
        return self.factor.solve(right * self.balance) * self.balance

    def direction(self, corrections: list[Correction] | None) -> Direction:
        """Newton's step to where slacks times multipliers are as wanted, or zero."""
        point, program, system = self.point, self.program, self.system
        nu = point.goal.nu
        wanted = repeat(None) if corrections is None else iter(corrections)
        right = np.zeros(system.size)
        right[: system.p] -= (nu * program.objective.ridge + program.price) * point.theta
        if program.bowl is not None:
            right[: system.p] -= nu * program.bowl.slope(point.theta)
        row = point.samples.push(right, system, nu, next(wanted))
        if point.lasso is not None:
            row += point.lasso.push(right, nu, next(wanted))
        if point.norm is not None:
            right[system.kappa] -= program.kappa_cost
            point.norm.push(right, system, next(wanted))
        x, change = self._solved(right), 0.0
        if program.target is not None:
            # slope · x - corner ν' = -(miss) - (slack as it would be with the multiplier as it is)
            kept = point.goal.move(0.0, next(wanted)).slack
            missing = point.goal.miss(point.height) + kept + row
            change = (float(system.column @ x) + missing) / self.pivot
            x = x - change * self.answer
        kappa, t = float(x[system.kappa].sum()), float(x[system.t].sum())
        return Direction(x[: system.p], kappa, t, change)

    def moves(self, direction: Direction, corrections: list[Correction] | None) -> list[Move]:
        """What each part does along a direction."""
        point = self.point
        moves = [part.move(direction) for part in (point.samples, point.lasso, point.norm) if part]
        if self.program.target is not None:
            last = None if corrections is None else corrections[-1]
            moves.append(point.goal.move(direction.nu, last))
        return moves
