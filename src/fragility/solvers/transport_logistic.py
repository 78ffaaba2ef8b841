"""Cross-entropy of two classes under general transport: a descent, or cutting planes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import expit

from .._typing import Floats, Indices
from ..ambiguity import Box, SquaredNorm, Transport
from ..losses.base import signs
from ..programs.adversaries import ExactProfile
from ..programs.logistic_moves import SquaredLogistic
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from . import conic
from .transport_cones import CostUnits
from .transport_profile import ADVICE, profile

#: Rounds of cutting planes; a handful is the rule.
_ROUNDS = 60
#: Steps of a descent, at most.
_DESCENT = 500

Program = SatisficingProgram | RobustProgram


def solve(program: Program, start: Floats, say: Callable[[str], None]) -> Solution:
    """The least fragile model, or the one of the least worst loss in a ball.

    The loss of a sample at one place, less its cost, is convex in model and price. So the program
    with some of the places is a relaxation, whose optimum bounds the true one from below; the model
    itself bounds it from above.
    """
    return _Descent(program, start).run() or _Cuts(program, start, say).run()


def _transport_of(program: Program) -> Transport:
    assert isinstance(program.ambiguity, Transport)
    return program.ambiguity


def _asked(program: Program) -> tuple[float, float]:
    """Target and radius, of which one is infinite."""
    if isinstance(program, SatisficingProgram):
        return program.target.value, inf
    return inf, program.radius


class _Descent:
    """A squared cost in a smooth norm: the worst loss has derivatives, where one place is worst.

    Descends on the fragility itself, or on the worst loss in a ball, by the method of Broyden,
    Fletcher, Goldfarb and Shanno. It ends without a solution where two places are equally bad.
    """

    def __init__(self, program: Program, start: Floats) -> None:
        self.objective, self.ambiguity = program.objective, _transport_of(program)
        self.start, (self.target, self.radius) = start, _asked(program)

    def run(self) -> Solution | None:
        objective, cost = self.objective, self.ambiguity.cost
        smooth = isinstance(cost, SquaredNorm) and cost.length.smooth
        if not smooth or objective.lasso or self.ambiguity.moves_labels:
            return None
        here = self.start
        value, slope = self._at(here)
        inverse = np.eye(here.size) / max(float(np.abs(slope).max()), 1e-300)
        for count in range(1, _DESCENT + 1):
            step = -inverse @ slope
            fall = float(slope @ step)
            if not fall < 0.0:
                return None
            if -fall <= 1e-13 * abs(value):
                gap = -fall / abs(value)
                far = 1.0 / self.distance
                return Solution(here, Outcome.SOLVED, count, "descent", gap, nan, slope=far)
            length = 1.0
            while True:
                there, (new, new_slope) = here + length * step, self._at(here + length * step)
                if new <= value + 1e-4 * length * fall:
                    break
                length /= 2.0
                if length < 1e-12:
                    return None
            moved, turned = there - here, new_slope - slope
            inner = float(moved @ turned)
            if inner > 1e-300:
                if count == 1:
                    inverse = np.eye(here.size) * (inner / float(turned @ turned))
                left = np.eye(here.size) - np.outer(moved, turned) / inner
                inverse = left @ inverse @ left.T + np.outer(moved, moved) / inner
            here, value, slope = there, new, new_slope
        return None

    def _at(self, parameters: Floats) -> tuple[float, Floats]:
        """The fragility, or the worst loss in the ball, and its derivative."""
        objective, ambiguity = self.objective, self.ambiguity
        rows, penalty = objective.rows, objective.penalty(parameters)
        own = profile(objective, ambiguity, parameters)
        assert isinstance(own, ExactProfile)
        assert isinstance(own.adversary, SquaredLogistic)
        if self.radius < inf:
            worst = own.worst(self.radius)
            value, k = worst.value + penalty, worst.multiplier
        else:
            value = k = own.fragility(self.target - penalty)
        if not 0.0 < k < inf:
            return inf, np.zeros(parameters.size)
        wrong, logits = own.adversary.logits(k, rows.y)
        shares = rows.weights * expit(logits)
        apart = logits - wrong
        coef, width = objective.split(parameters)[0], own.adversary.width
        slope = objective.collected(-signs(rows.y) * shares) + objective.ridge * parameters
        if width > 0.0:
            by_width = float(shares @ apart) / width
            steep = own.adversary.width_slope() / rows.scale
            slope[: coef.shape[1]] += by_width * steep
        # The target holds k: dk = -dF / (∂F/∂k), and ∂F/∂k is minus the distance.
        distance = float(rows.weights @ (apart / width) ** 2) if width else 0.0
        self.distance = max(distance, 1e-300)
        return value, slope if self.radius < inf else slope / self.distance


class _Cuts:
    """Cutting planes at the worst places of the samples."""

    def __init__(self, program: Program, start: Floats, say: Callable[[str], None]) -> None:
        self.objective = objective = program.objective
        self.ambiguity = ambiguity = _transport_of(program)
        self.start, self.say, (self.target, self.radius) = start, say, _asked(program)
        self.cp = cp = conic.cvxpy_for("General transport")
        rows = objective.rows
        self.X, self.y = rows.given, rows.y
        self.units = CostUnits.of(self.X, ambiguity, rows.scale)
        self.coef, self.intercept = cp.Variable(rows.X.shape[1]), cp.Variable()
        self.price = cp.Variable(nonneg=True)
        self.worst = cp.Variable(rows.y.size)
        self.k = self.price / self.units.price
        self.limits = [] if rows.fit_intercept else [self.intercept == 0.0]
        ridge = objective.ridge[: rows.X.shape[1]]
        self.penalty = 0.5 * cp.sum(cp.multiply(ridge, cp.square(self.coef)))
        if objective.lasso:
            self.penalty += objective.lasso * cp.sum(
                cp.abs(cp.multiply(1.0 / rows.scale, self.coef))
            )
        self._close_open_sides()
        #: Samples, their places without units, signs of labels, and costs: a tuple for each cut.
        self.cuts: list[tuple[Indices, Floats, Floats, Floats]] = []
        every = np.arange(rows.y.size)
        labels = (0, 1) if ambiguity.moves_labels else (0,)
        for step in labels:
            self._add(every, self.X, (self.y + step) % 2)

    def _close_open_sides(self) -> None:
        """Along an open side of a box the price must be at least the slope."""
        box = self.units.support
        if not isinstance(box, Box):
            return
        low, high = (np.broadcast_to(end, self.units.unit.size) for end in box.ends)
        for j in np.flatnonzero(self.units.moving & (np.isinf(low) | np.isinf(high))):
            slope = self.units.unit[j] / self.objective.rows.scale[j] * self.coef[int(j)]
            self.limits.append(self.cp.abs(slope) <= self.price)

    def _add(self, rows: Indices, places: Floats, labels: Indices) -> None:
        training = self.objective.rows
        moves = (places - self.X[rows]) / np.where(self.units.moving, self.units.unit, 1.0)
        costs = self.units.cost.value(np.where(self.units.moving, moves, 0.0))
        costs = costs + (labels != self.y[rows]) * self._label_cost
        at = (places - training.centre) / training.scale
        self.cuts.append((rows, at, np.where(labels == 1, -1.0, 1.0), costs))

    def _above(self) -> Any:
        """No worst loss is below its cuts: one constraint, as cvxpy takes long over many."""
        rows, at, turned, costs = map(np.concatenate, zip(*self.cuts, strict=True))
        margins = self.cp.multiply(turned, at @ self.coef + self.intercept)
        return self.cp.logistic(margins) - self.price * costs <= self.worst[rows]

    @property
    def _label_cost(self) -> float:
        cost = self.ambiguity.label_cost
        return 0.0 if cost == inf else cost / self.units.price

    def run(self) -> Solution:
        objective, cp = self.objective, self.cp
        weights, begun = objective.rows.weights, perf_counter()
        mean = weights @ self.worst + self.penalty
        best = self.start
        best_value, lower = self._judged(best, 0.0), 0.0
        # Few cuts say little of models far away: the next one is looked for near the best so far.
        reach, count = max(1.0, float(np.linalg.norm(best))), 0
        for count in range(1, _ROUNDS + 1):
            away = self._parameters() - best
            limits = [*self.limits, self._above(), cp.norm(away, 2) <= reach]
            if self.radius < inf:
                problem = cp.Problem(cp.Minimize(mean + self.k * self.radius), limits)
            else:
                met = mean <= self.target
                problem = cp.Problem(cp.Minimize(self.price), [*limits, met])
            conic.run_clarabel(cp, problem, ADVICE, accurately=True)
            lower = float(problem.value) / (1.0 if self.radius < inf else self.units.price)
            held = float(np.linalg.norm(away.value)) > 0.9 * reach
            parameters = np.array(self._parameters().value)
            value = self._judged(parameters, float(self.price.value) / self.units.price)
            if value < best_value:
                best, best_value = parameters, value
            known = "" if held else f"at least {lower:.6g}, "
            spent = perf_counter() - begun
            self.say(f"round {count}: {known}at most {best_value:.6g}, {spent:.1f} s")
            near = best_value - lower <= 1e-7 * abs(best_value)
            if near and not held:
                break
            if held:
                reach *= 2.0
        gap = (best_value - lower) / best_value if best_value else 0.0
        outcome = Outcome.SOLVED if gap <= 1e-6 and not held else Outcome.UNSETTLED
        slope = None
        if self.radius == inf and outcome is Outcome.SOLVED:
            slope = float(np.ravel(met.dual_value)[0]) / self.units.price
        return Solution(best, outcome, count, "cutting_planes", gap, nan, slope=slope)

    def _parameters(self) -> Any:
        parts = [self.coef]
        if self.objective.rows.fit_intercept:
            parts.append(self.cp.reshape(self.intercept, (1,), order="C"))
        return self.cp.hstack(parts)

    def _judged(self, parameters: Floats, price: float) -> float:
        """The true value of a model; its worst places at its own price, and at another, are cut."""
        objective = self.objective
        own = profile(objective, self.ambiguity, parameters)
        assert isinstance(own, ExactProfile)
        penalty = objective.penalty(parameters)
        if self.radius < inf:
            worst = own.worst(self.radius)
            value, at = worst.value + penalty, worst.multiplier
        else:
            value = at = own.fragility(self.target - penalty)
        for k in {max(price, own.adversary.least), at}:
            # A relaxation without cuts asks for next to nothing: at its price all go far away.
            if isfinite(k) and k > 1e-3 * min(at, 1e300):
                self._cut(own, k)
        return value

    def _cut(self, own: ExactProfile, k: float) -> None:
        values, labels = own.worst_labels(k)
        rows = np.flatnonzero(values > own.losses + 1e-12)
        if rows.size:
            places = self.X[rows] + own.adversary.moves(k, labels)[rows]
            self._add(rows, places, labels[rows])
