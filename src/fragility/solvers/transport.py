"""General transport: the least fragile model, and the model of the least worst-case loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from .._typing import Floats, Indices
from ..ambiguity import Box, LossProfile, Norm, SquaredNorm, Transport, TransportProfile, WorstLoss
from ..ambiguity.costs import NormCost
from ..losses import CrossEntropy, Loss
from ..losses.base import signs
from ..programs.adversaries import (
    ExactProfile,
    LinearSamples,
    SquaredLogistic,
    adversary_of,
    has_closed_form,
)
from ..programs.objective import Objective
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from . import conic
from .transport_cones import CostUnits, PieceCones, size_of

#: Numbers in the per-sample vectors of a program, at most: a few gigabytes of cones.
_MOST = 20_000_000
#: Rounds of cutting planes; a handful is the rule.
_ROUNDS = 60
#: Shares of the room that are left to the rounding of a conic solver, until what it found holds.
_FOR_ROUNDING = (1e-9, 1e-8, 1e-7, 1e-6)
#: The same of a model that is being chosen, of what lies between the lowest loss and the target.
_FOR_PROOF = 2e-7
#: Steps of a descent, at most.
_DESCENT = 500

Say = Callable[[str], None]
_ADVICE = " Scale the features, or give a larger target."


def why_not(loss: Loss, ambiguity: Transport, n_classes: int | None = None) -> str:
    """Why there is no exact program; nothing if there is one. The number of classes if known."""
    count = n_classes or (2 if loss.pair_cost is None else len(loss.pair_cost))
    if not loss.slopes_by_pair or loss.pieces(count) is not None:
        return ""
    if ambiguity.is_norm:
        return conic.why_not(loss)
    what = f"{loss!r} under {ambiguity!r}"
    if not isinstance(loss, CrossEntropy):
        return (
            f"No exact program is known for {what}. Give loss='hinge', a PiecewiseLinear, "
            "cross_entropy with two classes, or a norm without a support."
        )
    if loss.pair_cost is not None:
        return (
            f"No exact program is known for {what} with pair_cost. Give loss='hinge', or a norm "
            "without a support."
        )
    squared = ambiguity.support is None and isinstance(ambiguity.cost, SquaredNorm)
    box = isinstance(ambiguity.support, Box) and ambiguity.cost == Norm(1)
    if not (squared or box):
        return (
            f"No exact program is known for {what}: cross-entropy is solved at SquaredNorm "
            "without a support, or at Norm(1) inside a Box. Give one of these, or loss='hinge'."
        )
    if n_classes is not None and n_classes > 2:
        return (
            f"No exact program is known for {what} with {n_classes} classes: the worst case of a "
            "sample is then not a convex problem. Give two classes, loss='hinge', or a norm "
            "without a support."
        )
    return ""


def satisfice(program: SatisficingProgram, inside: Floats, say: Say | None = None) -> Solution:
    """Least fragility at a target, which the parameters `inside` meet with room to spare."""
    room = _Room(program, inside, say)
    if room.bends:
        return room.by_cuts(program.target.value, inf)
    if not has_closed_form(room.ambiguity):
        # Its certificate is proved by multipliers, which take a little room for rounding.
        target = program.target
        less = target.value - _FOR_PROOF * (target.value - target.erm_loss)
        program = replace(program, target=replace(target, value=less))
        room = _Room(program, inside, say)
    return room.by_cones()


def robust(program: RobustProgram, start: Floats, say: Say | None = None) -> Solution:
    """Least worst-case loss within a radius."""
    room = _Room(program, start, say)
    return room.by_cuts(inf, program.radius) if room.bends else room.by_cones()


@dataclass(frozen=True, eq=False)
class _Room:
    """A program, its samples in the user's units, and how it is told."""

    program: SatisficingProgram | RobustProgram
    start: Floats
    say: Say | None = None

    def __post_init__(self) -> None:
        objective = self.objective
        reason = why_not(objective.loss, self.ambiguity, objective.rows.n_classes)
        if reason:
            raise NotImplementedError(reason)

    @property
    def objective(self) -> Objective:
        return self.program.objective

    @property
    def ambiguity(self) -> Transport:
        assert isinstance(self.program.ambiguity, Transport)
        return self.program.ambiguity

    def _tell(self, message: str) -> None:
        if self.say is not None:
            self.say(message)

    @property
    def bends(self) -> bool:
        """Whether the worst case of a sample is not that of linear pieces."""
        pieces = self.objective.loss.pieces(self.objective.rows.n_classes)
        return pieces is None and not self.ambiguity.is_norm

    def by_cones(self) -> Solution:
        """A piecewise linear loss: one conic program."""
        begun, rows = perf_counter(), self.objective.rows
        pieces = self.objective.loss.pieces(rows.n_classes)
        size = 0
        if pieces is not None:
            size = size_of(pieces, rows.y, self.ambiguity, rows.X.shape[1])
        if size > _MOST:
            raise NotImplementedError(
                f"The support asks for a vector for each sample and piece, {size:,} numbers in "
                f"all; up to {_MOST:,} are supported. Give fewer samples, Norm(1) with a Box, or "
                "no support."
            )
        if size:
            self._tell(
                f"conic program with a vector for each sample and piece: {size:,} numbers, "
                f"about {max(1, round(size / 7_000))} s"
            )
        solution = (
            conic.solve(self.program)
            if isinstance(self.program, SatisficingProgram)
            else conic.solve_robust(self.program)
        )
        self._tell(f"conic program solved in {perf_counter() - begun:.1f} s")
        return solution

    def by_cuts(self, target: float, radius: float) -> Solution:
        """Cross-entropy of two classes: samples at their worst places are added until none is new.

        The loss of a sample at one place, less its cost, is convex in model and price. So the
        program with some of the places is a relaxation, whose optimum bounds the true one from
        below; the model itself bounds it from above.
        """
        smooth = _Descent(self, target, radius).run()
        return smooth or _Cuts(self, target, radius).run()


class _Descent:
    """A squared cost in a smooth norm: the worst loss has derivatives, where one place is worst.

    Descends on the fragility itself, or on the worst loss in a ball, by the method of Broyden,
    Fletcher, Goldfarb and Shanno. It ends without a solution where two places are equally bad.
    """

    def __init__(self, room: _Room, target: float, radius: float) -> None:
        self.room, self.target, self.radius = room, target, radius

    def run(self) -> Solution | None:
        objective, cost = self.room.objective, self.room.ambiguity.cost
        smooth = isinstance(cost, SquaredNorm) and cost.length.smooth
        if not smooth or objective.lasso or self.room.ambiguity.moves_labels:
            return None
        here = self.room.start
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
        objective, ambiguity = self.room.objective, self.room.ambiguity
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

    def __init__(self, room: _Room, target: float, radius: float) -> None:
        self.room, self.target, self.radius = room, target, radius
        self.cp = cp = conic.cvxpy_for("General transport")
        objective = room.objective
        rows, ambiguity = objective.rows, room.ambiguity
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
        scale = self.room.objective.rows.scale
        both = self.room.ambiguity.moves_labels or np.unique(self.y).size == 2
        assert both  # all classes have samples
        for j in np.flatnonzero(self.units.moving & (np.isinf(low) | np.isinf(high))):
            slope = self.units.unit[j] / scale[j] * self.coef[int(j)]
            self.limits.append(self.cp.abs(slope) <= self.price)

    def _add(self, rows: Indices, places: Floats, labels: Indices) -> None:
        cp, training = self.cp, self.room.objective.rows
        moves = (places - self.X[rows]) / np.where(self.units.moving, self.units.unit, 1.0)
        costs = self.units.cost.value(np.where(self.units.moving, moves, 0.0))
        costs = costs + (labels != self.y[rows]) * self._label_cost
        at = (places - training.centre) / training.scale
        scores = at @ self.coef + self.intercept
        margins = cp.multiply(np.where(labels == 1, -1.0, 1.0), scores)
        self.limits.append(cp.logistic(margins) - self.price * costs <= self.worst[rows])

    @property
    def _label_cost(self) -> float:
        cost = self.room.ambiguity.label_cost
        return 0.0 if cost == inf else cost / self.units.price

    def run(self) -> Solution:
        objective, cp = self.room.objective, self.cp
        weights, begun = objective.rows.weights, perf_counter()
        mean = weights @ self.worst + self.penalty
        best = self.room.start
        best_value, lower = self._judged(best, 0.0), 0.0
        # Few cuts say little of models far away: the next one is looked for near the best so far.
        reach, count = max(1.0, float(np.linalg.norm(best))), 0
        for count in range(1, _ROUNDS + 1):
            away = self._parameters() - best
            limits = [*self.limits, cp.norm(away, 2) <= reach]
            if self.radius < inf:
                problem = cp.Problem(cp.Minimize(mean + self.k * self.radius), limits)
            else:
                met = mean <= self.target
                problem = cp.Problem(cp.Minimize(self.price), [*limits, met])
            conic.run_clarabel(cp, problem, _ADVICE, accurately=True)
            lower = float(problem.value) / (1.0 if self.radius < inf else self.units.price)
            held = float(np.linalg.norm(away.value)) > 0.9 * reach
            parameters = np.array(self._parameters().value)
            value = self._judged(parameters, float(self.price.value) / self.units.price)
            if value < best_value:
                best, best_value = parameters, value
            known = "" if held else f"at least {lower:.6g}, "
            spent = perf_counter() - begun
            self.room._tell(f"round {count}: {known}at most {best_value:.6g}, {spent:.1f} s")
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
        if self.room.objective.rows.fit_intercept:
            parts.append(self.cp.reshape(self.intercept, (1,), order="C"))
        return self.cp.hstack(parts)

    def _judged(self, parameters: Floats, price: float) -> float:
        """The true value of a model; its worst places at its own price, and at another, are cut."""
        objective = self.room.objective
        own = profile(objective, self.room.ambiguity, parameters)
        assert isinstance(own, ExactProfile)
        assert own.adversary is not None
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
        assert own.adversary is not None
        values, labels = own.worst_labels(k)
        rows = np.flatnonzero(values > own.losses + 1e-12)
        if rows.size:
            self._add(rows, own.adversary.places(k, labels)[rows], labels[rows])


def profile(objective: Objective, ambiguity: Transport, parameters: Floats) -> LossProfile:
    """The worst case of a model with these parameters."""
    rows = objective.rows
    coef, intercept = objective.split(parameters)
    user = coef / rows.scale
    return profile_of_model(
        objective.loss,
        ambiguity,
        user,
        intercept - user @ rows.centre,
        rows.given,
        rows.y,
        rows.weights,
        rows.n_classes,
    )


def profile_of_model(
    loss: Loss,
    ambiguity: Transport,
    coef: Floats,
    intercept: Floats,
    X: Any,
    y: Indices,
    weights: Floats,
    n_classes: int,
) -> LossProfile:
    """The worst case of a linear model on samples of positive weight, in the user's units."""
    reason = why_not(loss, ambiguity, n_classes)
    if reason:
        raise NotImplementedError(reason)
    table: Floats = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if ambiguity.support is not None:
        ambiguity.support.check(table)
    scores = table @ coef.T + intercept
    samples = LinearSamples(coef, scores, table, y, n_classes)
    losses = loss.value(scores[:, 0] if n_classes == 2 else scores, y)
    if ambiguity.is_norm and loss.slopes_by_pair:
        relabelled = None
        if ambiguity.moves_labels:
            relabelled = loss.relabelled(scores[:, 0] if n_classes == 2 else scores, y)
        slope = ambiguity.steepest(_steepest_differences(loss, coef, n_classes))
        return LossProfile(losses, weights, slope, relabelled)
    adversary = adversary_of(loss, ambiguity, samples)
    if adversary is None:
        return ConicProfile(losses, weights, samples=samples, loss=loss, ambiguity=ambiguity)
    return ExactProfile(
        losses,
        weights,
        adversary=adversary,
        y=y,
        n_classes=n_classes,
        label_cost=ambiguity.label_cost,
    )


def _steepest_differences(loss: Loss, coef: Floats, n_classes: int) -> Floats:
    """Differences of the coefficients of each two classes, times the steepness between them."""
    ways = loss.pair_steepness(n_classes)
    first, second = np.triu_indices(n_classes, 1)
    steepness = np.maximum(ways, ways.T)[first, second][:, np.newaxis]
    return steepness * (coef if len(coef) == 1 else coef[first] - coef[second])


@dataclass(frozen=True, eq=False)
class ConicProfile(TransportProfile):
    """The worst case of one model in a support of which no closed form is known.

    A conic program with the model fixed gives multipliers, and these an upper bound of each
    sample's worst loss that holds in NumPy whatever the solver did.
    """

    samples: LinearSamples | None = None
    loss: Loss | None = None
    ambiguity: Transport | None = None

    def fragility(self, room: float) -> float:
        if self.mean > room + 1e-8 * abs(room):
            return inf
        assert self.samples is not None
        if not self.samples.coef.any():
            return 0.0
        cones, price = self._cones()
        least = self._without_support(room) * cones.units.price
        if self.mean < room:  # else there is no room for any vectors
            cp = conic.cvxpy_for("General transport")
            mean = self.weights @ cones.worst
            # A little less room, so that the multipliers prove it after rounding.
            for share in _FOR_ROUNDING:
                less = min(share * abs(room), 0.5 * (room - self.mean))
                limits = [*cones.limits, mean <= room - less]
                conic.run_clarabel(
                    cp, cp.Problem(cp.Minimize(price), limits), _ADVICE, accurately=True
                )
                proved = self._proved(cones, float(price.value), room)
                if proved < inf:
                    least = min(least, proved)
                    break
        return least / cones.units.price

    def _without_support(self, room: float) -> float:
        """Fragility on the whole space, which no support exceeds; infinite unless by a norm."""
        samples, loss, ambiguity = self.samples, self.loss, self.ambiguity
        assert samples is not None
        assert loss is not None
        assert ambiguity is not None
        if not isinstance(ambiguity.cost, NormCost):
            return inf
        labels = slice(None) if ambiguity.moves_labels else np.unique(samples.y)
        slopes = loss.pieces(samples.n_classes).slopes[labels].reshape(-1, len(samples.coef))
        relabelled = None
        if ambiguity.moves_labels:
            scores = samples.scores[:, 0] if samples.n_classes == 2 else samples.scores
            relabelled = loss.relabelled(scores, samples.y)
        slope = float(ambiguity.dual_norms(slopes @ samples.coef).max())
        free = LossProfile(self.losses, self.weights, slope, relabelled)
        return ambiguity.fragility(free, max(room, self.mean))

    def worst(self, radius: float) -> WorstLoss:
        if radius == 0.0:
            return WorstLoss(self.mean, inf, self.mean)
        cones, price = self._cones()
        cp, unit = conic.cvxpy_for("General transport"), cones.units.price
        problem = cp.Problem(
            cp.Minimize(self.weights @ cones.worst + price * (radius / unit)), cones.limits
        )
        conic.run_clarabel(cp, problem, _ADVICE, accurately=True)
        level, least = self._bounds(cones)
        price_found = max(float(price.value), least)
        found = float(self.weights @ level(price_found))
        k = price_found / unit
        return WorstLoss(found + k * radius, k, found)

    def _cones(self) -> tuple[PieceCones, Any]:
        samples, loss, ambiguity = self.samples, self.loss, self.ambiguity
        assert samples is not None
        assert loss is not None
        assert ambiguity is not None
        cp = conic.cvxpy_for("General transport")
        deviations = samples.X.std(axis=0)
        deviations = np.where(deviations > 0.0, deviations, 1.0)
        units = CostUnits.of(samples.X, ambiguity, deviations)
        price = cp.Variable(nonneg=True)
        cones = PieceCones(
            cp,
            loss.pieces(samples.n_classes),
            samples.y,
            samples.scores,
            samples.coef * units.unit,
            price,
            units,
            ambiguity.label_cost,
        )
        return cones, price

    def _bounds(self, cones: PieceCones) -> tuple[Callable[[float], Floats], float]:
        """Upper bounds of the worst losses at a price, and the price from which they hold."""
        units, parts, least = cones.units, [], 0.0
        for bound in cones.bounds:
            base = np.asarray(
                bound.base if isinstance(bound.base, np.ndarray) else bound.base.value
            )
            rest = np.zeros((1, int(units.moving.sum())))
            if bound.dual is not None:
                slopes, reached = bound.dual.read()
                base = base + reached - (units.z[bound.rows] * slopes).sum(axis=1)
                rest = (np.asarray(bound.slope) - slopes)[:, units.moving]
                least = max(least, float(units.cost.least_price(rest).max()))
            parts.append((bound.rows, bound.flipped, base, rest))

        def level(price: float) -> Floats:
            worst = np.full(self.losses.size, -inf)
            for rows, flipped, base, rest in parts:
                paid = price * cones.label_cost / units.price if flipped else 0.0
                value = base + units.cost.gain(rest, price) - paid
                worst[rows] = np.maximum(worst[rows], value)
            return worst

        return level, least

    def _proved(self, cones: PieceCones, price: float, room: float) -> float:
        """The price, or a little more, at which the multipliers prove that the room is enough."""
        level, least = self._bounds(cones)
        price = max(price, least)
        for power in range(-40, -16):
            if float(self.weights @ level(price)) <= room:
                return price
            price *= 1.0 + 2.0**power
        return inf
