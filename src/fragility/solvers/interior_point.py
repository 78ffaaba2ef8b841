r"""Programs whose losses have corners, by a primal-dual interior-point method, many at a time.

.. math:: \min_{\theta, k} \; c k + \tfrac12 \sum_j q_j \theta_j^2 + [A + R]
          \quad\text{s.t.}\quad A + R \le \tau, \quad
          f_{np}(u_n) - k \gamma_{np} \le s_n, \quad (\theta, k) \in K

where A is the mean, the entropic risk or the maximum of the epigraph variables s (`aggregates`),
R ridge and lasso, and K the cone of a norm (`norm_cones`). Either the aggregate A + R is bounded by
a target or it is minimised; k may be absent, and so may the samples: then the parameters are held
by an ellipsoid alone. Mehrotra's steps, Nesterov and Todd's scaling; a step costs one weighted
product of the columns, as a Newton step does.

Programs of the same kind are solved together: arrays have one row for each, so that the time of
Python counts once for all. What is solved leaves the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats
from ..programs.batched import Batched
from ..programs.objective import filled_gauge
from ..programs.piecewise import piecewise_of
from ..programs.stack import Stack
from .aggregates import Maximum, Samples
from .cone_parts import BallPart, NormPart
from .cones import Flags, inner
from .factor import BalancedStack
from .interior_costs import Costs
from .interior_parts import Aim, Direction, Goal, Lasso, Move, Part, System
from .interior_program import InteriorProgram, InteriorSolution
from .tuning import Interior as Tuning


def solve_together(programs: Sequence[InteriorProgram]) -> list[InteriorSolution]:
    """Minimise programs; those of a kind are solved together."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for place, program in enumerate(programs):
        kinds.setdefault(program.kind, []).append(place)
    found: dict[int, InteriorSolution] = {}
    for places in kinds.values():
        # Those on the same rows next to each other.
        rows = [id(getattr(programs[place].objective, "rows", None)) for place in places]
        order = sorted(range(len(places)), key=lambda i: rows.index(rows[i]))
        ordered = [places[i] for i in order]
        # No more at a time than memory, and the cache of the processor, can well hold.
        largest = max(programs[place].numbers for place in places)
        count = max(1, Tuning.together // largest)
        for start in range(0, len(ordered), count):
            some = ordered[start : start + count]
            # A problem that rounding has put out of its cones ends, while others go on.
            with np.errstate(divide="ignore", invalid="ignore"):
                solutions = _solved([programs[place] for place in some])
            found |= zip(some, solutions, strict=True)
    return [found[place] for place in range(len(programs))]


def _solved(programs: list[InteriorProgram]) -> list[InteriorSolution]:
    """Solutions of programs of one kind."""
    point = _Point(programs)
    search = _Progress(point, programs)
    solutions: list[Any] = [None] * len(programs)
    steps = 0
    while search.left.size:
        steps += 1
        ended, converged = search.ended(point, steps)
        moved = ~ended
        if moved.any():
            now = point if moved.all() else point.taken(moved)
            following, sound = now.next()
            moved[moved] = sound
            if not sound.all():  # as near as rounding lets us
                following = following.taken(sound)
        if not moved.all():
            for place in np.flatnonzero(~moved).tolist():
                which = int(search.left[place])
                solutions[which] = search.solution(point, place, steps, bool(converged[place]))
            search = search.taken(moved)
        if search.left.size:
            point = following
    return solutions


class _Progress(Batched):
    """How far each search has come."""

    def __init__(self, point: _Point, programs: list[InteriorProgram]) -> None:
        n = len(programs)
        self.left = np.arange(n)
        self.tol = np.array([program.tol for program in programs])
        nothing = Tuning.nothing if point.has_samples else Tuning.ball_rounding / self.tol
        self.floor = nothing * point.cost
        self.max_iter = np.array([program.max_iter for program in programs])
        self.limit = np.maximum(Tuning.flat, self.tol)
        self.flat, self.best = np.full(n, inf), np.full(n, inf)
        self.stalled = np.zeros(n, dtype=np.intp)

    def ended(self, point: _Point, steps: int) -> tuple[Flags, Flags]:
        """Which searches end here, and which of them have converged."""
        left, scale = np.maximum(point.gap, point.missed), self._scale(point)
        share = left / scale
        # Multipliers of a nearly closed cone lose digits again: one flat point is enough.
        unknown = (share <= Tuning.near) & (self.flat > self.limit)
        if unknown.any():
            self.flat = np.where(unknown, point.unevenness() / scale, self.flat)
        flat = self.flat <= self.limit
        converged: Flags = (share <= self.tol) & flat
        self.stalled = np.where(left < 0.5 * self.best, 0, self.stalled + 1)
        self.best = np.where(self.stalled > 0, self.best, left)
        ended = converged | (self.max_iter < steps) | ~point.inside()
        if self.stalled.max() > Tuning.near_patience:
            near = (share <= Tuning.enough * self.tol) & flat
            ended |= self.stalled > np.where(near, Tuning.near_patience, Tuning.patience)
        return ended, converged

    def _scale(self, point: _Point) -> Floats:
        """What gaps are measured by."""
        scale: Floats = np.maximum(np.abs(point.cost), self.floor)
        return np.maximum(scale, 1e-300)

    def solution(self, point: _Point, place: int, steps: int, converged: bool) -> InteriorSolution:
        gap = float(max(point.gap[place], point.missed[place]) / self._scale(point)[place])
        near = gap <= Tuning.enough * self.tol[place] and self.flat[place] <= self.limit[place]
        return InteriorSolution(
            point.theta[place].copy(),
            float(point.k[place]),
            float(point.cost[place]),
            gap,
            min(steps, int(self.max_iter[place])),
            bool(converged or near),
            point.multiplier(place),
        )


def _samples(programs: list[InteriorProgram]) -> Samples:
    """The samples' part, before its variables are set."""
    first, objectives = programs[0], [program.objective for program in programs]
    stack = Stack([objective for objective in objectives if objective is not None])
    assert first.objective is not None
    moving = first.label_cost < inf
    # Below a target of its own the largest margin of a hinge may be anywhere; what is minimised, or
    # shares the target with a penalty, ends at zero, as losses do.
    alone = first.target is not None and not first.objective.is_penalised
    floor = -1.0 if first.aggregate is Maximum and alone else 0.0
    pieces = piecewise_of(first.objective.loss, stack.y, stack.n_classes, moving, floor)
    if first.model is not None:
        pieces.shared = None
    costs = np.array([program.label_cost if moving else 0.0 for program in programs])
    return first.aggregate(stack, pieces, -costs[:, np.newaxis, np.newaxis] * pieces.flips)


class _Point(Batched):
    """Where searches are. `parts` are the samples, the lasso, the norm and the ball, if any."""

    theta: Floats
    k: Floats
    parts: list[Part]
    goal: Goal

    def __init__(self, programs: list[InteriorProgram]) -> None:
        first, n = programs[0], len(programs)
        self.has_k, self.has_samples = first.shape is not None, first.objective is not None
        self.costs = Costs(programs)
        theta = self.theta = np.stack([program.start for program in programs])
        self.k = np.array([program.k for program in programs])
        targets = [program.target for program in programs if program.target is not None]
        target = np.array(targets) if targets else None
        self.parts, self.goal = [], Goal(target, np.zeros(n), np.ones(n))
        if first.objective is not None:
            samples = _samples(programs)
            samples.begin(theta, self.k)
            known = np.array([program.multiplier for program in programs])
            lift = np.maximum(1e-12, self._lift(samples, programs, target))
            if known.any():  # between that and the lift whose multiplier it would be
                lift = np.where(known > 0.0, np.sqrt(lift * self.k / known), lift)
            samples.lift(lift)
            self.parts.append(samples)
            if target is not None:
                margin = target - samples.value - self.costs.smooth(theta)
                margin = np.maximum(margin, Tuning.first_margin * samples.room)
                cost = self.costs.of(theta, self.k)
                nu = np.where(known > 0.0, known, np.maximum(cost, 1e-12) / samples.room)
                self.goal = Goal(target, margin, nu)
            samples.balance(self.goal.nu)
            if self.costs.lasso.any():
                self.parts.append(Lasso(self.costs.lasso, theta, self.goal.nu, samples.room))
        if first.shape is not None:
            shapes = [program.shape for program in programs if program.shape is not None]
            norm = NormPart(shapes, theta, self.k, self.costs.k)
            self.parts.append(norm)
            balls = [program.ball for program in programs if program.ball is not None]
            if balls:
                factor, matrix = (
                    np.stack(tables)
                    for tables in zip(*((b.factor, b.matrix) for b in balls), strict=True)
                )
                radius = np.array([ball.radius for ball in balls])
                self.parts.append(BallPart(factor, matrix, radius, norm.first))

    def _lift(
        self, samples: Samples, programs: list[InteriorProgram], target: Floats | None
    ) -> Floats:
        """How far the epigraph variables start above the losses."""
        costs, theta = self.costs, self.theta
        penalty = 0.5 * inner(costs.ridge * theta, theta) + inner(costs.lasso, np.abs(theta))
        share = Tuning.lift if samples.at.shared is None else Tuning.higher
        if target is None:  # the model's own losses may all be zero, and measure nothing
            largest = np.array([_largest_loss_of_zero(program) for program in programs])
            least = np.maximum(Tuning.lift * penalty, Tuning.least_lift * largest)
            return np.maximum(share * np.abs(samples.value), least)
        height, least = samples.value + penalty, Tuning.lift * penalty
        if costs.model is not None:
            value = costs.model.value(theta)
            height, least = height + value, np.maximum(least, Tuning.higher * np.abs(value))
        room = np.maximum(target - height, 0.0)
        # Near the target a high start would miss it by far more than there is to give up.
        asked = Tuning.rooms * room / np.maximum(np.abs(samples.value), 1e-300)
        high = share * np.clip(asked, Tuning.target_lift, 1.0) * np.abs(samples.value)
        highest: Floats = np.maximum(high, np.maximum(least, room / 2.0))
        return highest

    @property
    def samples(self) -> Samples | None:
        return self.parts[0] if self.has_samples else None  # type: ignore[return-value]

    @property
    def bends(self) -> bool:
        """Whether functions of the samples are not linear."""
        return self.samples is not None and self.samples.at.bends

    @cached_property
    def height(self) -> Floats:
        """Aggregate with the penalty."""
        height = self.costs.smooth(self.theta)
        for part in self.parts:
            height = height + part.value
        return height

    @cached_property
    def cost(self) -> Floats:
        cost = self.costs.of(self.theta, self.k)
        return cost + self.height if self.goal.target is None else cost

    @cached_property
    def gap(self) -> Floats:
        gap = self.goal.gap()
        for part in self.parts:
            gap = gap + part.gap()
        return gap

    @cached_property
    def missed(self) -> Floats:
        """What missing the target is worth."""
        return np.abs(self.goal.miss(self.height)) * self.goal.nu

    def multiplier(self, place: int) -> float:
        """How fast the cost falls as the target, or half the squared radius of the ball, rises."""
        last = self.parts[-1]
        if isinstance(last, BallPart):
            return float(last.dual[place, 0, 0] / last.radius[place])
        return float(self.goal.nu[place])

    def inside(self) -> Flags:
        """Whether rounding has left margins and multipliers in their cones."""
        inside: Flags = np.logical_and.reduce([part.inside() for part in self.parts])
        return inside

    def unevenness(self) -> Floats:
        """What the slope of the Lagrangian would gain over the parameters' own length."""
        slope = self.costs.slope(self.theta, self.goal.nu)
        by_k: Floats | float = 0.0
        for part in self.parts:
            by_k = by_k + part.add_slope(slope, self.goal.nu)
        # Columns are scaled, so that a parameter may well be one, unless that costs much.
        own, weights = np.abs(self.theta), self.costs.lasso
        length = np.maximum(1.0, own.max(axis=1, initial=0.0))[:, np.newaxis]
        if weights.any():
            most = self.height[:, np.newaxis] / np.maximum(weights, 1e-300)
            length = np.where(weights > 0.0, np.maximum(own, np.minimum(1.0, most)), length)
        slopes: Floats = (np.abs(slope) * length).sum(axis=1) + np.abs(by_k) * self.k
        return slopes

    def next(self) -> tuple[_Point, Flags]:
        """The points after one step, and which of them exist."""
        step, samples = _Step(self), self.samples
        if samples is not None:
            # Of many constraints a few would make every step short, most of all where labels move:
            # samples change sides. Near the end none does.
            rough = step.far and samples.apart and not self.bends
            most = Tuning.movers if samples.flipping else Tuning.stragglers * step.system.single
            samples.stragglers = int(rough * most * samples.margin[0].size)
        every: list[Any] = [*self.parts, self.goal]
        # Straight to the optimum, first; then with what that shows, to a point before it.
        _, affine = step.towards(None)
        length = np.minimum(1.0, self._longest(affine))
        gap, degree = self.gap, sum(part.degree for part in every)
        # To first order a step straight to the optimum closes the gap by its own share.
        second = sum(inner(move.margin, move.dual) for move in affine)
        left = 1.0 - length + length**2 * second / gap
        aimed = gap / degree * np.maximum(0.0, left) ** 3
        if self.goal.target is not None:
            # The target has to be met about as well before the gap is closed further.
            aimed = np.where(self.missed > Tuning.behind * gap, gap / degree, aimed)
        if samples is not None and (self.bends or samples.cut):
            flat = (0.1 if self.bends else 1.0) * Tuning.flat
            uneven = np.maximum(Tuning.uneven * gap, flat * np.abs(self.cost))
            # Where the slope has to follow before the gap is closed further.
            behind = self.unevenness() > uneven
            aimed = np.where(behind, gap / degree, aimed)
            samples.cut &= bool(behind.any())
        corrected, share = self._taken(step, aimed, affine)
        if (share >= Tuning.good).all():
            return corrected, step.found & (share > 0.0)
        # Without the correction the step is Newton's on the barrier, and does lead down.
        plain, other = self._taken(step, aimed, [None] * len(every))
        better = (share >= Tuning.good) | (share >= other)
        return corrected.where(better, plain), step.found & (np.maximum(share, other) > 0.0)

    def _taken(
        self, step: _Step, aimed: Floats, affine: Sequence[Move | None]
    ) -> tuple[_Point, Floats]:
        """Where steps end that are short enough for what they foresee, and the share taken."""
        direction, moves = step.towards([Aim(aimed, move) for move in affine])
        longest = self._longest(moves)
        if self.samples is not None:
            longest = np.minimum(longest, self.samples.longest_k(direction))
        length = np.minimum(1.0, Tuning.nearly * longest)
        # Not "at most": a length that is not a number fails, too.
        share, fails = np.ones(length.size), ~(step.found & (length > Tuning.tiny))
        if self.samples is None:  # all is linear
            return self._moved(direction, moves, length), np.where(fails, 0.0, share)
        rise, height = self._rise(direction, moves), self.height
        # Where the target is missed anyway, missing it otherwise does no harm.
        allowed = np.maximum(self.gap, self.missed)
        weight = 2.0 * np.maximum(self.goal.nu, self.goal.nu + direction.nu)
        merit = self.merit(aimed, weight) if self.bends else None
        while True:
            trial = self._moved(direction, moves, length)
            nu, after = trial.goal.nu, trial.height
            surprise = (after - height - length * rise) * nu
            good = surprise <= Tuning.surprise * allowed + 1e-14 * nu * np.abs(after)
            if merit is not None:
                good &= trial.merit(aimed, weight) <= merit
            if (good | fails).all():
                return trial, np.where(fails, 0.0, share)
            halve = ~good & ~fails
            length, share = (
                np.where(halve, length / 2.0, length),
                np.where(halve, share / 2.0, share),
            )
            fails |= ~(np.minimum(share, length) > Tuning.tiny)

    def merit(self, aimed: Floats, penalty_weight: Floats) -> Floats:
        """Cost, penalty for missing the target, and barriers: a step must not raise their sum."""
        barrier = self.goal.barrier()
        for part in self.parts:
            barrier = barrier + part.barrier()
        missed = penalty_weight * np.abs(self.goal.miss(self.height))
        return self.cost + missed - aimed * barrier

    def _longest(self, moves: list[Move]) -> Floats:
        every: list[Any] = [*self.parts, self.goal]
        pairs = zip(every, moves, strict=True)
        longest: Floats = np.minimum.reduce([part.longest(move) for part, move in pairs])
        return longest

    def _rise(self, direction: Direction, moves: list[Move]) -> Floats:
        """Slope of the aggregate with the penalty along a step."""
        rise = inner(self.costs.slope(self.theta), direction.theta)
        for part, move in zip(self.parts, moves[:-1], strict=True):
            rise = rise + part.rise(move, direction)
        return rise

    def _moved(self, direction: Direction, moves: list[Move], length: Floats) -> _Point:
        after = _Point.__new__(_Point)
        after.has_k, after.has_samples, after.costs = self.has_k, self.has_samples, self.costs
        after.theta = self.theta + length[:, np.newaxis] * direction.theta
        after.k = self.k + length * direction.k
        pairs = zip(self.parts, moves[:-1], strict=True)
        after.parts = [part.moved(move, length, after.theta, after.k) for part, move in pairs]
        after.goal = self.goal.moved(moves[-1], length)
        return after


def _largest_loss_of_zero(program: InteriorProgram) -> float:
    assert program.objective is not None
    return float(program.objective.at(np.zeros(program.start.size)).losses.max())


class _Step:
    """The systems at a point, factorised: directions cost little more."""

    def __init__(self, point: _Point) -> None:
        self.point, samples, p = point, point.samples, point.theta.shape[1]
        effort = 0 if samples is None else samples.s.shape[1] * p**2
        self.far = bool((point.gap > Tuning.single_gap * np.abs(point.cost)).all())
        self._build(self.far and effort > Tuning.dear)
        if self.system.single and not self.found.all():
            self._build(single=False)

    def _build(self, single: bool) -> None:
        point, nu, costs = self.point, self.point.goal.nu, self.point.costs
        samples, p = point.samples, point.theta.shape[1]
        has_t = samples is not None and samples.has_t
        system = self.system = System(len(nu), p, point.has_k, has_t, single)
        self.steps = [part.add(system, nu) for part in point.parts]
        system.column[:, :p] += costs.slope(point.theta)
        main = system.matrix[:, :p, :p]
        np.einsum("bii->bi", main)[:] += nu[:, np.newaxis] * costs.ridge + costs.squared
        if costs.model is not None:
            main += nu[:, np.newaxis, np.newaxis] * costs.model.hessian
        if costs.n_outputs > 1:
            system.matrix[:, :p, :p] = filled_gauge(main, costs.n_outputs, costs.lasso)
        self.factor = BalancedStack(system.matrix, Tuning.stand_in)
        self.found = self.factor.found
        if point.goal.target is not None:
            self.answer = self.factor.solve(system.column)
            corner = system.corner + point.goal.margin / nu
            self.pivot = inner(system.column, self.answer) + corner

    def towards(self, aims: list[Aim] | None) -> tuple[Direction, list[Move]]:
        """Newton's step to where margins times multipliers are as wanted, or zero.

        Returned are the direction and the moves of all parts, of which the goal is the last.
        """
        point, system, goal = self.point, self.system, self.point.goal
        wanted: list[Aim | None] = [None] * (len(self.steps) + 1) if aims is None else [*aims]
        right = np.zeros(system.column.shape)
        right[:, : system.p] -= point.costs.slope(point.theta, goal.nu)
        pushed: list[Any] = []
        row: Floats | float = 0.0
        for step, aim in zip(self.steps, wanted[:-1], strict=True):
            kept, added = step.push(right, goal.nu, aim)
            pushed.append(kept)
            row = row + added
        x, change = self.factor.solve(right), np.zeros(goal.nu.size)
        if goal.target is not None:
            # slope · x - corner ν' = -(miss) - (margin as it would be with the multiplier as it is)
            missing = goal.miss(point.height) + goal.move(0.0, wanted[-1]).margin + row
            change = (inner(system.column, x) + missing) / self.pivot
            x = x - change[:, np.newaxis] * self.answer
        k, t = x[:, system.k].sum(axis=1), x[:, system.t].sum(axis=1)
        direction = Direction(x[:, : system.p], k, t, change)
        pairs = zip(self.steps, pushed, strict=True)
        moves = [step.move(direction, kept) for step, kept in pairs]
        return direction, [*moves, goal.move(direction.nu, wanted[-1])]
