"""The worst case of one model under general transport, by closed forms or by multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Floats, Indices
from ..ambiguity import Box, LossProfile, Norm, SquaredNorm, Transport, TransportProfile, WorstLoss
from ..ambiguity.costs import NormCost
from ..losses import CrossEntropy, Loss
from ..programs.adversaries import ExactProfile, LinearSamples, steepest_slopes
from ..programs.closed_forms import adversary_of
from ..programs.objective import Objective
from . import conic
from .transport_cones import CostUnits, PieceCones

#: Shares of the room that are left to the rounding of a conic solver, until what it found holds.
_FOR_ROUNDING = (1e-9, 1e-8, 1e-7, 1e-6)
#: What may help where a solver gives up.
ADVICE = " Scale the features, or give a larger target."


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
    where = None if ambiguity.support is None else table
    samples = LinearSamples(coef, scores, y, n_classes, where)
    losses = loss.value(scores[:, 0] if n_classes == 2 else scores, y)
    if ambiguity.is_norm and loss.slopes_by_pair:
        relabelled = None
        if ambiguity.moves_labels:
            relabelled = loss.relabelled(scores[:, 0] if n_classes == 2 else scores, y)
        slope = ambiguity.steepest(steepest_slopes(coef, loss, y, every=ambiguity.moves_labels))
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


class Shares(NamedTuple):
    """Shares of samples with one label, and where they go.

    `masses` are of the weight of all samples; `moves` are in the user's units.
    """

    rows: Indices
    label: int
    masses: Floats
    moves: Floats


@dataclass(frozen=True, eq=False)
class ConicProfile(TransportProfile):
    """The worst case of one model in a support of which no closed form is known.

    A conic program with the model fixed gives multipliers, and these an upper bound of each
    sample's worst loss that holds in NumPy whatever the solver did.
    """

    _: KW_ONLY
    samples: LinearSamples
    loss: Loss
    ambiguity: Transport

    def fragility(self, room: float) -> float:
        if self.mean > room + 1e-8 * abs(room):
            return inf
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
                    cp, cp.Problem(cp.Minimize(price), limits), ADVICE, accurately=True
                )
                proved = self._proved(cones, float(price.value), room)
                if proved < inf:
                    least = min(least, proved)
                    break
        return least / cones.units.price

    def _without_support(self, room: float) -> float:
        """Fragility on the whole space, which no support exceeds; infinite unless by a norm."""
        samples, loss, ambiguity = self.samples, self.loss, self.ambiguity
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
        cones, price = self._solved_in_ball(radius)
        unit = cones.units.price
        level, least = self._bounds(cones)
        price_found = max(float(price.value), least)
        found = float(self.weights @ level(price_found))
        k = price_found / unit
        return WorstLoss(found + k * radius, k, found)

    def worst_shares(self, radius: float) -> Iterator[Shares]:
        """Shares of samples that together are the worst case in a ball, but for rounding.

        Multipliers of the same program: of how bad a sample is by a piece, its share; of the slope
        that is paid for, the share times the move.
        """
        cones, _ = self._solved_in_ball(radius, traced=True)
        units = cones.units
        for bound, above in zip(cones.bounds, cones.above, strict=True):
            masses = np.maximum(np.ravel(above.dual_value), 0.0)
            moves = np.zeros((bound.rows.size, units.unit.size))
            if bound.rests is not None:
                pushed = -np.asarray(bound.rests.dual_value)
                with np.errstate(divide="ignore", invalid="ignore"):
                    there = np.nan_to_num(pushed / masses[:, np.newaxis], posinf=0.0, neginf=0.0)
                moves[:, units.moving] = there * units.unit[units.moving]
            yield Shares(bound.rows, bound.label, masses, moves)

    def _solved_in_ball(self, radius: float, traced: bool = False) -> tuple[PieceCones, Any]:
        cones, price = self._cones(traced)
        cp = conic.cvxpy_for("General transport")
        worst = self.weights @ cones.worst + price * (radius / cones.units.price)
        problem = cp.Problem(cp.Minimize(worst), cones.limits)
        conic.run_clarabel(cp, problem, ADVICE, accurately=True)
        return cones, price

    def _cones(self, traced: bool = False) -> tuple[PieceCones, Any]:
        samples, loss, ambiguity = self.samples, self.loss, self.ambiguity
        cp = conic.cvxpy_for("General transport")
        deviations = samples.places.std(axis=0)
        deviations = np.where(deviations > 0.0, deviations, 1.0)
        units = CostUnits.of(samples.places, ambiguity, deviations)
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
            traced,
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
