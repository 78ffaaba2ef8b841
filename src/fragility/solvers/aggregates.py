r"""The losses of the samples in an interior-point program, and how they make up what is minimised.

Each sample has an epigraph variable :math:`s_n \ge f_{np}` above the smooth functions that its loss
is the maximum of (`programs.piecewise`). Together they count as their mean, as their entropic risk
:math:`k \ln \sum_n a_n e^{s_n / k}`, or as their maximum. In an interior-point step they are
eliminated, sample by sample. What is left is a system in the parameters, k, and one number t. For
the entropic risk t is the risk itself, as
:math:`\min_t t + k (\sum_n a_n e^{(s_n - t) / k} - 1)` has a diagonal curvature; for the maximum t
is the one epigraph variable that all samples share.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from .._typing import Floats
from ..losses import Loss
from ..programs.batched import Batched
from ..programs.piecewise import (
    Hold,
    Piecewise,
    as_samples,
    as_scores,
    over_functions,
)
from ..programs.stack import Stack
from .cones import Flags, by_problem, inner, like
from .interior_parts import Aim, Direction, Move, PartStep, PositivePart, System
from .tuning import Aggregates as Tuning


def _longest_but(count: int, values: Floats, move: Floats) -> Floats:
    """How far positive numbers may go, if so many of each problem may be left behind.

    Not exactly where it is so far that it does not matter.
    """
    fastest = []
    for shrinking in by_problem(-move / values):
        fast = shrinking[shrinking > 0.9]
        many = fast.size > count
        fastest.append(np.partition(fast, -count - 1)[-count - 1] if many else 0.9)
    return 1.0 / np.array(fastest)


def _keep_inside(after: Floats, before: Floats) -> bool:
    """Raise what a step has left behind; whether there is any."""
    behind = after < Tuning.behind * before
    found = bool(behind.any())
    if found:
        after[behind] = Tuning.kept * before[behind]
    return found


class Samples(PositivePart):
    """Epigraph variables above the functions of the samples; a subclass aggregates them.

    `flips` is -γ for functions of another label, else zero: how functions move with k.

    Attributes
    ----------
    s : ndarray of shape (B, n)
        The epigraph variables.
    aggregate : ndarray of shape (B,)
        What they make up together.
    stragglers : int
        So many margins, and multipliers, may be left behind by a step that is too long for them.
    cut : bool
        Whether any multiplier ever was: their sums are no longer what they should be.
    room : ndarray of shape (B,)
        How far above the losses they were at the start.
    """

    has_t: ClassVar[bool] = True
    #: Whether each sample has an epigraph variable of its own.
    apart: ClassVar[bool] = True
    stragglers: int = 0
    cut: bool = False
    step: ClassVar[type[SampleStep]]
    s: Floats
    aggregate: Floats
    room: Floats

    def __init__(self, stack: Stack, pieces: Piecewise, flips: Floats) -> None:
        self.stack, self.at, self.flips = stack, pieces, flips
        self.shared: _Shared | None = None
        self.flipping = bool(flips.any())

    @abstractmethod
    def set_variables(self, s: Floats, k: Floats) -> None:
        """Set the epigraph variables, or raise them to one above all of these."""

    @abstractmethod
    def shares(self) -> Floats:
        """Derivative of the aggregate by the epigraph variables."""

    def slope_k(self) -> Floats | float:
        """Derivative of the aggregate by k."""
        return 0.0

    def begin(self, theta: Floats, k: Floats) -> None:
        """Set the variables to the losses themselves."""
        self._evaluate(theta)
        self.first_k, self.heights = k, (self.at.values + self._flipped(k)).max(axis=1)
        self.set_variables(self.heights, k)

    def lift(self, room: Floats) -> None:
        """Raise the variables by so much."""
        self.room = room
        self.set_variables(self.heights + self.room[:, np.newaxis], self.first_k)
        self.margin = self.s[:, np.newaxis] - self.at.values - self._flipped(self.first_k)
        del self.heights

    def _flipped(self, k: Floats) -> Floats | float:
        return self.flips * like(k, self.flips) if self.flipping else 0.0

    def _evaluate(self, theta: Floats) -> None:
        scores = self.stack.scores(theta)
        self.at = self.at.at(scores)
        if self.at.shared is not None:
            self.shared = _Shared(self.at.shared, scores, self.stack)

    @property
    def value(self) -> Floats:  # type: ignore[override]
        """The aggregate, with the mean of the loss that the functions leave out."""
        return self.aggregate if self.shared is None else self.aggregate + self.shared.value

    def balance(self, nu: Floats) -> None:
        """Set multipliers that agree with the multiplier of the aggregate."""
        dual = 1.0 / self.margin
        share = nu[:, np.newaxis] * self.shares() / over_functions(dual)
        self.dual = dual * share[:, np.newaxis]

    def add_slope(self, slope: Floats, nu: Floats) -> Floats:
        by_scores = self.at.adjoint(self.dual)
        if self.shared is not None:
            by_scores = by_scores + like(nu, by_scores) * self.shared.slopes
        slope += self.stack.collected(by_scores)
        by_k = nu * self.slope_k()
        return by_k + (self.flips * self.dual).sum(axis=(1, 2)) if self.flipping else by_k

    def rise(self, move: Move, direction: Direction) -> Floats:
        rise: Floats = inner(self.shares(), move.rest) + self.slope_k() * direction.k
        if self.shared is not None:
            rise += inner(self.shared.by_parameters, direction.theta)
        return rise

    def add(self, system: System, nu: Floats) -> SampleStep:
        return self.step(self, system, nu)

    def longest(self, move: Move) -> Floats:
        if not self.stragglers:
            return super().longest(move)
        pairs = (self.margin, move.margin), (self.dual, move.dual)
        return np.minimum(*(_longest_but(self.stragglers, *pair) for pair in pairs))

    def longest_k(self, direction: Direction) -> Floats | float:
        """How far a step may go for the sake of k."""
        return np.inf

    def moved(self, move: Move, length: Floats, theta: Floats, k: Floats) -> Self:
        """After a step. Functions that bend end higher than foreseen: variables are raised."""
        after = copy(self)
        after._evaluate(theta)
        s = self.s + length[:, np.newaxis] * move.rest
        exact = s[:, np.newaxis] - after.at.values - self._flipped(k)
        foreseen = self.margin + like(length, self.margin) * move.margin
        after.dual = self.dual + like(length, self.dual) * move.dual
        if self.stragglers:
            _keep_inside(foreseen, self.margin)
            after.cut |= _keep_inside(after.dual, self.dual)
        lift = np.maximum((foreseen - exact).max(axis=1), 0.0)
        after.set_variables(s + lift, k)
        after.margin = exact + (after.s - s)[:, np.newaxis]
        return after


class SampleStep(PartStep):
    """Samples whose curvature is in the system, eliminated."""

    inverse: Floats
    total: Floats

    def __init__(self, part: Any, system: System, nu: Floats) -> None:
        self.part, self.system, p = part, system, system.p
        self.D = part.dual / part.margin
        at, D, dual, shared, stack = part.at, self.D, part.dual, part.shared, part.stack
        hold = self.eliminate(nu)
        if system.single:
            kind: Any = np.float32
            D, hold = D.astype(kind), Hold(*(one.astype(kind) for one in hold))

        def form(rows: slice) -> Floats:
            own: Floats = at.form(D, dual, hold, rows)
            return own if shared is None else own + like(nu, own) * shared.bends[..., rows]

        system.matrix[:, :p, :p] += stack.squares(form, system.single)
        if shared is not None:
            system.column[:, :p] += shared.by_parameters

    @abstractmethod
    def eliminate(self, nu: Floats) -> Hold:
        """Add the borders of the system, for a multiplier of the aggregate."""

    @abstractmethod
    def pull(self, right: Floats, nu: Floats, aimed: Floats | None) -> tuple[Floats, Floats, Any]:
        """Add to the right sides of k and t where the multipliers would be `aimed`.

        Returned are the pull on the epigraph variables, the right side by scores, and what is added
        to the row of the aggregate.
        """

    def pulled(self, nu: Floats, aimed: Floats | None) -> Floats:
        """Multipliers as aimed, less their share of the multiplier of the aggregate."""
        pulled: Floats = -nu[:, np.newaxis] * self.part.shares()
        return pulled if aimed is None else pulled + over_functions(aimed)

    def by_scores(self, scores: Floats, aimed: Floats | None) -> Floats:
        """A right side by scores, less that of the multipliers as aimed."""
        return scores if aimed is None else scores - self.part.at.adjoint(aimed)

    @abstractmethod
    def raised(self, moved: Floats, direction: Direction, pulled: Floats) -> Floats:
        """Step of the epigraph variables when the functions move."""

    def push(self, right: Floats, nu: Floats, aim: Aim | None) -> tuple[Any, Floats | float]:
        part = self.part
        aimed = part.aim(aim)
        pulled, scores, row = self.pull(right, nu, aimed)
        if part.shared is not None:
            scores = scores - like(nu, scores) * part.shared.slopes
        right[:, : self.system.p] += part.stack.collected(scores)
        return (aimed, pulled), row

    def move(self, direction: Direction, pushed: Any) -> Move:
        (aimed, pulled), part = pushed, self.part
        moved = part.at.forward(part.stack.scores(direction.theta)) + part._flipped(direction.k)
        s = self.raised(moved, direction, pulled)
        margin = s[:, np.newaxis] - moved
        return Move(margin, part.followed(aimed, self.D, margin), s)


class _MeanStep(SampleStep):
    def eliminate(self, nu: Floats) -> Hold:
        part, system, p, k = self.part, self.system, self.system.p, self.system.k
        self.inverse = 1.0 / over_functions(self.D)
        self.total = part.at.adjoint(self.D)
        weights = part.stack.weights
        reach = weights * self.inverse
        system.column[:, :p] += part.stack.collected(self.total * reach[:, np.newaxis])
        system.corner += inner(weights, reach)
        if part.flipping:
            self.drift = over_functions(self.D * part.flips) * self.inverse
            away = part.flips - self.drift[:, np.newaxis]
            apart = self.D * away
            system.border(k, part.stack.collected(part.at.adjoint(apart)))
            system.cross(k, k, inner(apart, away))
            system.column[:, k] += inner(weights, self.drift)[:, np.newaxis]
        return Hold(self.inverse, np.zeros(self.inverse.shape))

    def pull(self, right: Floats, nu: Floats, aimed: Floats | None) -> tuple[Floats, Floats, Any]:
        part, pulled = self.part, self.pulled(nu, aimed)
        share = pulled * self.inverse
        if part.flipping:
            drifting = inner(self.drift, pulled)
            if aimed is not None:
                drifting -= (part.flips * aimed).sum(axis=(1, 2))
            right[:, self.system.k] += drifting[:, np.newaxis]
        scores = self.by_scores(self.total * share[:, np.newaxis], aimed)
        return pulled, scores, inner(part.stack.weights, share)

    def raised(self, moved: Floats, direction: Direction, pulled: Floats) -> Floats:
        total = over_functions(self.D * moved) + pulled
        total -= direction.nu[:, np.newaxis] * self.part.stack.weights
        raised: Floats = total * self.inverse
        return raised


class Mean(Samples):
    """Weighted mean of the losses."""

    has_t, step = False, _MeanStep

    def set_variables(self, s: Floats, k: Floats) -> None:
        self.s, self.aggregate = s, inner(self.stack.weights, s)

    def shares(self) -> Floats:
        return self.stack.weights


class _EntropicStep(SampleStep):
    def eliminate(self, nu: Floats) -> Hold:
        part, system, stack = self.part, self.system, self.part.stack
        q, v = part.q, part.v
        self.stiff = (nu / part.k)[:, np.newaxis] * q
        own = over_functions(self.D)
        self.inverse = 1.0 / (own + self.stiff)
        self.held = self.stiff * self.inverse
        free = self.stiff * own * self.inverse
        self.total = part.at.adjoint(self.D)
        reach = q * self.inverse
        along = self.held * v
        p, k, t = system.p, system.k, system.t
        outputs = [self.total * one[:, np.newaxis] for one in (-along, -self.held, reach)]
        by_k, by_t, slope = np.split(stack.collected(np.concatenate(outputs, axis=1)), 3, axis=1)
        system.border(k, by_k)
        system.border(t, by_t)
        system.cross(k, k, inner(free, v**2))
        system.cross(k, t, inner(free, v))
        system.cross(t, t, free.sum(axis=1))
        system.column[:, :p] += slope
        system.column[:, k] += (part.slope_k() + inner(along, q))[:, np.newaxis]
        system.column[:, t] += inner(self.held, q)[:, np.newaxis]
        system.corner += inner(q, reach)
        return Hold(self.inverse, self.held)

    def pull(self, right: Floats, nu: Floats, aimed: Floats | None) -> tuple[Floats, Floats, Any]:
        part, pulled = self.part, self.pulled(nu, aimed)
        share = pulled * self.inverse
        held = self.held * pulled
        right[:, self.system.k] += (inner(held, part.v) - nu * part.slope_k())[:, np.newaxis]
        right[:, self.system.t] += held.sum(axis=1)[:, np.newaxis]
        scores = self.by_scores(self.total * share[:, np.newaxis], aimed)
        return pulled, scores, inner(part.q, share)

    def raised(self, moved: Floats, direction: Direction, pulled: Floats) -> Floats:
        k, t, nu = (value[:, np.newaxis] for value in direction[1:])
        total = over_functions(self.D * moved) + self.stiff * (t + self.part.v * k)
        raised: Floats = (total + pulled - nu * self.part.q) * self.inverse
        return raised


class EntropicRisk(Samples):
    """Entropic risk of the losses at k; labels do not move."""

    step = _EntropicStep
    q: Floats
    v: Floats

    def set_variables(self, s: Floats, k: Floats) -> None:
        self.s, self.k = s, k
        highest = s.max(axis=1)
        ahead = (s - highest[:, np.newaxis]) / k[:, np.newaxis]
        terms = self.stack.weights * np.exp(ahead)
        total = terms.sum(axis=1)
        self.q = terms / total[:, np.newaxis]
        self.aggregate = highest + k * np.log(total)
        self.v = ahead - np.log(total)[:, np.newaxis]

    def shares(self) -> Floats:
        return self.q

    def slope_k(self) -> Floats:
        return -inner(self.q, self.v)

    def inside(self) -> Flags:
        return super().inside() & ~(self.k <= Tuning.no_k * self.first_k)

    def longest_k(self, direction: Direction) -> Floats:
        return (1.0 - Tuning.left) * self.k / np.maximum(-direction.k, 1e-300)


class _MaximumStep(SampleStep):
    def eliminate(self, nu: Floats) -> Hold:
        part, system, stack = self.part, self.system, self.part.stack
        k, t = system.k, system.t
        if part.flipping:
            weighted = self.D * part.flips
            system.border(k, stack.collected(part.at.adjoint(weighted)))
            system.cross(k, k, (weighted * part.flips).sum(axis=(1, 2)))
            system.cross(k, t, -weighted.sum(axis=(1, 2)))
        system.border(t, -stack.collected(part.at.adjoint(self.D)))
        system.cross(t, t, self.D.sum(axis=(1, 2)))
        system.column[:, t] += 1.0
        return Hold(np.zeros_like(part.s), np.ones_like(part.s))

    def pull(self, right: Floats, nu: Floats, aimed: Floats | None) -> tuple[Floats, Floats, Any]:
        part, system = self.part, self.system
        right[:, system.t] -= nu[:, np.newaxis]
        if aimed is not None:
            right[:, system.t] += aimed.sum(axis=(1, 2))[:, np.newaxis]
            if part.flipping:
                right[:, system.k] -= (part.flips * aimed).sum(axis=(1, 2))[:, np.newaxis]
        nothing = np.zeros((len(nu), part.stack.n_outputs, part.s.shape[1]))
        return nu, self.by_scores(nothing, aimed), 0.0

    def raised(self, moved: Floats, direction: Direction, pulled: Floats) -> Floats:
        return np.repeat(direction.t[:, np.newaxis], moved.shape[2], axis=1)


class Maximum(Samples):
    """The largest loss: one epigraph variable above all functions of all samples."""

    apart, step = False, _MaximumStep

    def set_variables(self, s: Floats, k: Floats) -> None:
        self.aggregate = s.max(axis=1)
        self.s = np.repeat(self.aggregate[:, np.newaxis], s.shape[1], axis=1)

    def shares(self) -> Floats:
        return self.stack.weights

    def balance(self, nu: Floats) -> None:
        dual = 1.0 / self.margin
        self.dual = dual * like(nu / dual.sum(axis=(1, 2)), dual)


class _Shared(Batched):
    """The mean of a smooth loss at some scores, and its derivatives by the scores."""

    def __init__(self, loss: Loss, scores: Floats, stack: Stack) -> None:
        point, weights = loss.at(as_samples(scores), stack.y.ravel()), stack.weights[:, np.newaxis]
        self.value = inner(stack.weights, point.value.reshape(stack.y.shape))
        #: (B, outputs, n).
        self.slopes = as_scores(point.gradient, scores.shape) * weights
        #: Lower triangles, (B, pairs of outputs, n).
        triangles = point.lower_curvature().reshape(*stack.y.shape, -1)
        self.bends = triangles.swapaxes(1, 2) * weights
        self.by_parameters = stack.collected(self.slopes)
