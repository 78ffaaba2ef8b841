r"""Programs whose losses have corners, by a primal-dual interior-point method.

.. math:: \min_{\theta, k} \; c k + \tfrac12 \sum_j q_j \theta_j^2 + [A + R]
          \quad\text{s.t.}\quad A + R \le \tau, \quad
          f_{np}(u_n) - k \gamma_{np} \le s_n, \quad (\theta, k) \in K

where A is the mean, the entropic risk or the maximum of the epigraph variables s (`aggregates`),
R ridge and lasso, and K the cone of a norm (`norm_cones`). Either the aggregate A + R is bounded by
a target or it is minimised; k may be absent. Mehrotra's steps, Nesterov and Todd's scaling; a step
costs one weighted product of the columns, as a Newton step does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats
from ..programs.objective import Objective
from ..programs.piecewise import piecewise_of
from .aggregates import Maximum, Mean, Samples
from .factor import Cholesky
from .interior_parts import Correction, Direction, Goal, Lasso, Move, NormPart, System
from .norm_cones import Shape

#: How much of the way to the boundary a step goes.
_NEARLY = 0.99
#: What a step may add to the aggregate beyond what it foresaw, as a share of the gap.
_SURPRISE = 0.5
#: Epigraph variables start above the losses by this share of their aggregate; the margin of a
#: target starts at that share of this lift.
_LIFT, _FIRST_MARGIN = 1.0, 0.1
#: The same lift where the functions of a sample leave out the loss itself.
_HIGHER = 3.0
#: Without a target the lift is at least this share of the largest loss of the zero model.
_LEAST_LIFT = 1e-2
#: A slope of the Lagrangian that would gain this multiple of the gap must become less first.
_UNEVEN = 10.0
#: Steps in which the gap must halve.
_PATIENCE = 60
#: A step shorter than this leads nowhere; one that keeps this share of what was allowed is good.
_TINY, _GOOD = 1e-10, 0.3
#: A cost below this share of the first one counts as zero: it is not known any better.
_NOTHING = 1e-3
#: How flat the Lagrangian must have been once, relatively; the gap below which this is checked.
_FLAT, _NEAR = 1e-5, 1e-2
#: A search that rounding ended has converged if its gap is at most this multiple of the tolerance.
_ENOUGH = 1e3
#: Curvature that stands in where there is none, as a share of a parameter's own.
_STAND_IN = 1e-13
_NO_MOVE = Move(0.0, 0.0)


class InteriorSolution(NamedTuple):
    """Where the search ended; `gap` is how far the cost can be above its minimum, relatively."""

    parameters: Floats
    k: float
    cost: float
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A quadratic function of the parameters, by its value and derivatives at a centre."""

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
    aggregate : type of Samples
        How the losses of the samples are aggregated.
    target : float, optional
        Bound of the aggregate with the penalty; without one they are part of what is minimised.
    shape : Shape, optional
        Cone of (θ, k); without one there is no k.
    k_cost : float
    squared_cost : ndarray, optional
        Cost of the squared parameters.
    label_cost : float
        What a function of another label is lowered by, per unit of k.
    model : Quadratic, optional
        Part of the aggregate, in place of the loss that all functions of a sample have in common.
    """

    objective: Objective
    aggregate: type[Samples] = Mean
    target: float | None = None
    shape: Shape | None = None
    k_cost: float = 1.0
    squared_cost: Floats | float = 0.0
    label_cost: float = inf
    model: Quadratic | None = None

    def samples(self) -> Samples:
        """The samples' part, before its variables are set."""
        rows = self.objective.rows
        moving = self.label_cost < inf
        # Below a target of its own the largest margin of a hinge may be anywhere; what is
        # minimised, or shares the target with a penalty, ends at zero, as losses do.
        alone = self.target is not None and not self.objective.is_penalised
        floor = -1.0 if self.aggregate is Maximum and alone else 0.0
        pieces = piecewise_of(self.objective.loss, rows.y, rows.n_classes, moving, floor)
        if self.model is not None:
            pieces.shared = None
        flips = -(self.label_cost if moving else 0.0) * pieces.flips
        return self.aggregate(self.objective, pieces, flips)

    def height(self, parameters: Floats, k: float) -> float:
        """Aggregate of the samples' losses with the penalty, at a k."""
        samples = self.samples()
        samples.begin(parameters, k, 0.0)
        height = samples.value - samples.room + self.objective.penalty(parameters)
        return height + self.model_value(parameters)

    def model_value(self, parameters: Floats) -> float:
        return 0.0 if self.model is None else self.model.value(parameters)

    def slope(self, parameters: Floats, nu: float, squared_cost: Floats | float = 0.0) -> Floats:
        """Slope of a squared cost, plus nu times the slope of the ridge and of the model."""
        slope: Floats = (nu * self.objective.ridge + squared_cost) * parameters
        return slope if self.model is None else slope + nu * self.model.slope(parameters)

    def solve(
        self, start: Floats, *, tol: float, max_iter: int, k: float = 0.0
    ) -> InteriorSolution:
        """Minimise, from parameters and a k that is above their norm."""
        point = _Point.at_start(self, start, k)
        floor, flat, steps, converged = _NOTHING * point.cost, inf, 0, False
        best, stalled = inf, 0
        while steps < max_iter and stalled < _PATIENCE:
            steps += 1
            scale = max(abs(point.cost), floor)
            left = max(point.gap, point.missed)
            # Multipliers of a nearly closed cone lose digits again: one flat point is enough.
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
        return InteriorSolution(point.theta, point.k, point.cost, gap, steps, converged)


@dataclass(eq=False)
class _Point:
    """Where a search is. The parts are the samples, and the lasso and the norm if there are any."""

    program: InteriorProgram
    theta: Floats
    k: float
    parts: list[Any]
    goal: Goal

    @classmethod
    def at_start(cls, program: InteriorProgram, start: Floats, k: float) -> _Point:
        samples, objective, target = program.samples(), program.objective, program.target
        least = _LIFT * objective.penalty(start)
        if target is None:  # the model's own losses may all be zero, and measure nothing
            zero = objective.at(np.zeros(objective.size))
            least = max(least, _LEAST_LIFT * float(zero.losses.max()))
        else:
            least = max(least, (target - program.height(start, k)) / 2.0)
        lift = _LIFT if samples.pieces.shared is None else _HIGHER
        least = max(least, _HIGHER * abs(program.model_value(start)))
        samples.begin(start, k, lift, least)
        point = cls(program, start.copy(), k, [samples], Goal(None))
        if target is not None:
            height = samples.value + objective.ridge_value(start) + program.model_value(start)
            margin = max(target - height, _FIRST_MARGIN * samples.room)
            point.goal = Goal(target, margin, max(point.cost, 1e-12) / samples.room)
        samples.balance(point.goal.nu)
        if objective.lasso_weights.any():
            point.parts.append(Lasso(objective.lasso_weights, start, point.goal.nu, samples.room))
        if program.shape is not None:
            point.parts.append(NormPart(program.shape, start, k, program.k_cost))
        return point

    @property
    def samples(self) -> Samples:
        samples: Samples = self.parts[0]
        return samples

    @property
    def lasso(self) -> Lasso | None:
        return self.parts[1] if self.program.objective.lasso_weights.any() else None

    @property
    def height(self) -> float:
        """Aggregate with the penalty."""
        penalty = self.program.objective.ridge_value(self.theta)
        if self.lasso is not None:
            penalty += self.lasso.value
        return self.samples.value + penalty + self.program.model_value(self.theta)

    @property
    def cost(self) -> float:
        program = self.program
        cost = 0.5 * float(np.sum(program.squared_cost * self.theta**2))
        if program.shape is not None:
            cost += program.k_cost * self.k
        return cost + self.height if program.target is None else cost

    @property
    def gap(self) -> float:
        return float(sum(part.gap() for part in (*self.parts, self.goal)))

    @property
    def missed(self) -> float:
        """What missing the target is worth."""
        return abs(self.goal.miss(self.height)) * self.goal.nu

    def inside(self) -> bool:
        """Whether rounding has left margins and multipliers in their cones."""
        return all(part.inside() for part in self.parts)

    def unevenness(self) -> float:
        """What the slope of the Lagrangian would gain over the parameters' own length."""
        slope = self.program.slope(self.theta, self.goal.nu, self.program.squared_cost)
        by_k = sum(part.add_slope(slope, self.goal.nu) for part in self.parts)
        # Columns are scaled, so that a parameter may well be one, unless that costs much.
        length = np.full(slope.size, max(1.0, float(np.abs(self.theta).max(initial=0.0))))
        if self.lasso is not None:
            own, weights = np.abs(self.theta[self.lasso.indices]), self.lasso.weights
            length[self.lasso.indices] = np.maximum(own, np.minimum(1.0, self.height / weights))
        return float(np.abs(slope) @ length + abs(by_k) * self.k)

    def next(self) -> _Point | None:
        """The point after one step; None if there is none."""
        try:
            step = _Step(self)
        except LinAlgError:
            return None
        every = [*self.parts, self.goal]
        # Straight to the optimum, first; then with what that shows, to a point before it.
        _, affine = step.towards([None] * len(every))
        length = min(1.0, self._longest(affine))
        gap, bends = self.gap, self.samples.pieces.bends
        left = sum(part.gap_after(move, length) for part, move in zip(every, affine, strict=True))
        degree = sum(part.degree for part in every)
        aimed = gap / degree * (max(0.0, left) / gap) ** 3
        if bends and self.unevenness() > max(_UNEVEN * gap, 0.1 * _FLAT * abs(self.cost)):
            aimed = gap / degree  # the slope has to follow before the gap is closed further
        corrected, share = self._taken(step, [Correction(aimed, move) for move in affine], aimed)
        if share >= _GOOD:
            return corrected
        # Without the correction the step is Newton's on the barrier, and does lead down.
        plain, other = self._taken(step, [Correction(aimed, _NO_MOVE)] * len(every), aimed)
        return corrected if share >= other else plain

    def _taken(
        self, step: _Step, wanted: list[Correction | None], aimed: float
    ) -> tuple[_Point | None, float]:
        """Where a step ends that is short enough for what it foresees, and the share taken."""
        direction, moves = step.towards(wanted)
        longest = min(self._longest(moves), self.samples.longest_k(direction))
        length = min(1.0, _NEARLY * longest)
        rise, bends = self._rise(direction, moves), self.samples.pieces.bends
        penalty_weight = 2.0 * max(self.goal.nu, self.goal.nu + direction.nu)
        gap, merit = self.gap, self.merit(aimed, penalty_weight) if bends else inf
        share = 1.0
        while share > _TINY and length > _TINY:
            trial = self._moved(direction, moves, length)
            surprise = (trial.height - self.height - length * rise) * trial.goal.nu
            few = surprise <= _SURPRISE * gap + 1e-14 * trial.goal.nu * abs(trial.height)
            if few and (not bends or trial.merit(aimed, penalty_weight) <= merit):
                return trial, share
            length, share = length / 2.0, share / 2.0
        return None, 0.0

    def merit(self, aimed: float, penalty_weight: float) -> float:
        """Cost, penalty for missing the target, and barriers: a step must not raise their sum."""
        merit = self.cost - aimed * float(sum(part.barrier() for part in self.parts))
        merit += penalty_weight * abs(self.goal.miss(self.height))
        return float(merit - aimed * self.goal.barrier())

    def _longest(self, moves: list[Move]) -> float:
        pairs = zip((*self.parts, self.goal), moves, strict=True)
        return float(min(part.longest(move) for part, move in pairs))

    def _rise(self, direction: Direction, moves: list[Move]) -> float:
        """Slope of the aggregate with the penalty along a step."""
        rise = self.samples.rise(moves[0], direction)
        rise += float(self.program.slope(self.theta, 1.0) @ direction.theta)
        return rise if self.lasso is None else rise + float(self.lasso.weights @ moves[1].rest)

    def _moved(self, direction: Direction, moves: list[Move], length: float) -> _Point:
        theta = self.theta + length * direction.theta
        k = self.k + length * direction.k
        pairs = zip(self.parts, moves[:-1], strict=True)
        parts = [part.moved(move, length, theta, k) for part, move in pairs]
        return _Point(self.program, theta, k, parts, self.goal.moved(moves[-1], length))


class _Step:
    """The system at a point, factorised: directions cost little more."""

    def __init__(self, point: _Point) -> None:
        self.point, self.program = point, point.program
        objective, goal = self.program.objective, point.goal
        system = System(objective, self.program.shape is not None, point.samples.has_t)
        self.system, p = system, system.p
        point.samples.add(system, goal.nu)
        system.column[:p] += self.program.slope(point.theta, 1.0)
        diagonal = goal.nu * objective.ridge + self.program.squared_cost
        system.matrix[np.diag_indices(p)] += diagonal
        if self.program.model is not None:
            system.matrix[:p, :p] += goal.nu * self.program.model.hessian
        for part in point.parts[1:]:
            part.add(system, goal.nu)
        system.matrix[:p, :p] = objective.fixed_gauge(system.matrix[:p, :p])
        diagonal = system.matrix.diagonal()
        self.balance = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        balanced = system.matrix * np.multiply.outer(self.balance, self.balance)
        balanced[np.diag_indices(system.size)] += _STAND_IN
        self.factor = Cholesky(balanced)
        if self.program.target is not None:
            self.answer = self._solved(system.column)
            corner = system.corner + goal.margin / goal.nu
            self.pivot = float(system.column @ self.answer) + corner

    def _solved(self, right: Floats) -> Floats:
        return self.factor.solve(right * self.balance) * self.balance

    def towards(self, wanted: list[Correction | None]) -> tuple[Direction, list[Move]]:
        """Newton's step to where margins times multipliers are as wanted, or zero.

        Returned are the direction and the moves of all parts, of which the goal is the last.
        """
        point, system, goal = self.point, self.system, self.point.goal
        right = np.zeros(system.size)
        right[: system.p] -= self.program.slope(point.theta, goal.nu, self.program.squared_cost)
        pairs = zip(point.parts, wanted[:-1], strict=True)
        row = sum(part.push(right, system, goal.nu, correction) for part, correction in pairs)
        x, change = self._solved(right), 0.0
        if self.program.target is not None:
            # slope · x - corner ν' = -(miss) - (margin as it would be with the multiplier as it is)
            kept = goal.move(0.0, wanted[-1]).margin
            missing = goal.miss(point.height) + kept + row
            change = (float(system.column @ x) + missing) / self.pivot
            x = x - change * self.answer
        k, t = float(x[system.k].sum()), float(x[system.t].sum())
        direction = Direction(x[: system.p], k, t, change)
        moves = [part.move(direction) for part in point.parts]
        return direction, [*moves, goal.move(direction.nu, wanted[-1])]
