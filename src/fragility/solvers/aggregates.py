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

from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from math import inf
from typing import Self

import numpy as np

from .._typing import Floats
from ..losses import Loss
from ..losses.base import lower_curvature
from ..programs.objective import Objective
from ..programs.piecewise import Hold, Piecewise
from .interior_parts import Correction, Direction, Move, PositivePart, System

#: How near k may come to zero in one step of an entropic risk, whose curvature grows as k falls.
_LEFT = 0.4


class Samples(PositivePart, ABC):
    """Epigraph variables above the functions of the samples; a subclass aggregates them.

    `flips` is -γ for functions of another label, else zero: how functions move with k.

    Attributes
    ----------
    s : ndarray of shape (n,)
        The epigraph variables.
    aggregate : float
        What they make up together.
    """

    has_t = True
    s: Floats
    aggregate: float

    def __init__(self, objective: Objective, pieces: Piecewise, flips: Floats) -> None:
        self.objective, self.pieces, self.flips = objective, pieces, flips
        self.weights = objective.rows.weights
        self.flipping = bool(flips.any())

    @abstractmethod
    def set_variables(self, s: Floats, k: float) -> None:
        """Set the epigraph variables, or raise them to one above all of these."""

    @abstractmethod
    def shares(self) -> Floats:
        """Derivative of the aggregate by the epigraph variables."""

    def slope_k(self) -> float:
        """Derivative of the aggregate by k."""
        return 0.0

    @abstractmethod
    def eliminate(self, system: System, D: Floats, nu: float) -> Hold:
        """Add to the system for weights D of the functions and a multiplier of the aggregate."""

    @abstractmethod
    def push_aimed(self, right: Floats, system: System, nu: float) -> tuple[Floats, float]:
        """Add to the right sides of k and t where the multipliers would be `aimed`.

        Returned are the right side by scores, and what is added to the row of the aggregate.
        """

    @abstractmethod
    def step(self, moved: Floats, direction: Direction) -> Floats:
        """Step of the epigraph variables when the functions move."""

    def begin(self, theta: Floats, k: float, lift: float, least: float = 0.0) -> None:
        """Set the variables above the losses by a share of their aggregate, or at least `least`."""
        self._evaluate(theta)
        heights = (self.at.values + self.flips * k).max(axis=0)
        self.set_variables(heights, k)
        self.room = max(lift * abs(self.value), least, 1e-12)
        self.set_variables(heights + self.room, k)
        self.margin = self.s - self.at.values - self.flips * k
        self.first_k = k

    def _evaluate(self, theta: Floats) -> None:
        scores = self.scores(theta)
        self.at, self.shared = self.pieces.at(scores), None
        if self.pieces.shared is not None:
            self.shared = _Shared(self.pieces.shared, scores, self.objective)

    @property
    def value(self) -> float:
        """The aggregate, with the mean of the loss that the functions leave out."""
        return self.aggregate + (0.0 if self.shared is None else self.shared.value)

    def balance(self, nu: float) -> None:
        """Set multipliers that agree with the multiplier of the aggregate."""
        dual = 1.0 / self.margin
        self.dual = dual * (nu * self.shares() / dual.sum(axis=0))

    def scores(self, theta: Floats) -> Floats:
        """Scores (outputs, n) of parameters."""
        coef, intercept = self.objective.split(theta)
        scores: Floats = np.ascontiguousarray(coef @ self.objective.rows.X.T)
        if self.objective.rows.fit_intercept:
            scores += intercept[:, np.newaxis]
        return scores

    def add_slope(self, slope: Floats, nu: float) -> float:
        """Add the slope of the Lagrangian's part by the parameters; return that by k."""
        by_scores = self.at.adjoint(self.dual)
        if self.shared is not None:
            by_scores = by_scores + nu * self.shared.slopes
        slope += self.objective.collected(by_scores)
        return float((self.flips * self.dual).sum()) + nu * self.slope_k()

    def rise(self, move: Move, direction: Direction) -> float:
        """Slope of the aggregate along a step."""
        rise = float(self.shares() @ move.rest)
        rise += self.slope_k() * direction.k
        if self.shared is not None:
            rise += float(self.objective.collected(self.shared.slopes) @ direction.theta)
        return rise

    def add(self, system: System, nu: float) -> None:
        self.D = self.dual / self.margin
        hold = self.eliminate(system, self.D, nu)
        at, D, dual, shared = self.at, self.D, self.dual, self.shared

        def form(part: slice) -> Floats:
            own = at.form(D, dual, hold, part).T
            return own if shared is None else own + nu * shared.curvature(part)

        system.matrix[: system.p, : system.p] += self.objective.collected_squares(form)
        if shared is not None:
            system.column[: system.p] += self.objective.collected(shared.slopes)

    def push(
        self, right: Floats, system: System, nu: float, correction: Correction | None
    ) -> float:
        """Add to the right side; return what is added to the row of the aggregate."""
        self.aimed = self.aim(correction)
        scores, row = self.push_aimed(right, system, nu)
        if self.shared is not None:
            scores = scores - nu * self.shared.slopes
        right[: system.p] += self.objective.collected(scores)
        return row

    def move(self, direction: Direction) -> Move:
        moved = self.at.forward(self.scores(direction.theta))
        if self.flipping:
            moved = moved + self.flips * direction.k
        s = self.step(moved, direction)
        margin = s - moved
        return Move(margin, self.aimed - self.dual - self.D * margin, s)

    def longest_k(self, direction: Direction) -> float:
        """How far a step may go for the sake of k."""
        return inf

    def moved(self, move: Move, length: float, theta: Floats, k: float) -> Self:
        """After a step. Functions that bend end higher than foreseen: variables are raised."""
        after = copy(self)
        after._evaluate(theta)
        s = self.s + length * move.rest
        exact = s - after.at.values - self.flips * k
        lift = (self.margin + length * move.margin - exact).max(axis=0)
        after.set_variables(s + np.maximum(lift, 0.0), k)
        after.margin = exact + (after.s - s)
        after.dual = self.dual + length * move.dual
        return after


class Mean(Samples):
    """Weighted mean of the losses."""

    has_t = False

    def set_variables(self, s: Floats, k: float) -> None:
        self.s, self.aggregate = s, float(self.weights @ s)

    def shares(self) -> Floats:
        return self.weights

    def eliminate(self, system: System, D: Floats, nu: float) -> Hold:
        self.inverse = 1.0 / D.sum(axis=0)
        self.total = self.at.adjoint(D)
        reach = self.weights * self.inverse
        system.column[: system.p] += self.objective.collected(self.total * reach)
        system.corner += float(self.weights @ reach)
        if self.flipping:
            self.drift = (D * self.flips).sum(axis=0) * self.inverse
            apart = D * (self.flips - self.drift)
            system.border(system.k, self.at.adjoint(apart))
            system.matrix[system.k, system.k] += float((apart * (self.flips - self.drift)).sum())
            system.column[system.k] += float(self.weights @ self.drift)
        return Hold(self.inverse, np.zeros_like(self.inverse))

    def push_aimed(self, right: Floats, system: System, nu: float) -> tuple[Floats, float]:
        self.pushed = self.aimed.sum(axis=0) - nu * self.weights
        share = self.pushed * self.inverse
        if self.flipping:
            drifting = float(np.sum(self.drift * self.pushed))
            right[system.k] += drifting - float((self.flips * self.aimed).sum())
        return self.total * share - self.at.adjoint(self.aimed), float(self.weights @ share)

    def step(self, moved: Floats, direction: Direction) -> Floats:
        total = (self.D * moved).sum(axis=0) + self.pushed - direction.nu * self.weights
        step: Floats = total * self.inverse
        return step


class EntropicRisk(Samples):
    """Entropic risk of the losses at k; labels do not move."""

    q: Floats
    v: Floats

    def set_variables(self, s: Floats, k: float) -> None:
        self.s, self.k = s, k
        ahead = (s - s.max()) / k
        terms = self.weights * np.exp(ahead)
        total = float(terms.sum())
        self.q = terms / total
        self.aggregate = float(s.max()) + k * np.log(total)
        self.v = ahead - np.log(total)

    def shares(self) -> Floats:
        return self.q

    def slope_k(self) -> float:
        return -float(self.q @ self.v)

    def inside(self) -> bool:
        # As k vanishes only the largest loss counts, and that is `Maximum`.
        return super().inside() and not self.k <= 1e-9 * self.first_k

    def longest_k(self, direction: Direction) -> float:
        return (1.0 - _LEFT) * self.k / -direction.k if direction.k < 0.0 else inf

    def eliminate(self, system: System, D: Floats, nu: float) -> Hold:
        self.stiff = nu * self.q / self.k
        own = D.sum(axis=0)
        self.inverse = 1.0 / (own + self.stiff)
        self.held = self.stiff * self.inverse
        free = self.stiff * own * self.inverse
        self.total = self.at.adjoint(D)
        reach = self.q * self.inverse
        along = self.held * self.v
        p, k, t = system.p, system.k, system.t
        system.border(k, -self.total * along)
        system.border(t, -self.total * self.held)
        system.matrix[k, k] += float(free @ self.v**2)
        system.matrix[k, t] += float(free @ self.v)
        system.matrix[t, k] += float(free @ self.v)
        system.matrix[t, t] += float(free.sum())
        system.column[:p] += self.objective.collected(self.total * reach)
        system.column[k] += self.slope_k() + float(along @ self.q)
        system.column[t] += float(self.held @ self.q)
        system.corner += float(self.q @ reach)
        return Hold(self.inverse, self.held)

    def push_aimed(self, right: Floats, system: System, nu: float) -> tuple[Floats, float]:
        self.pushed = self.aimed.sum(axis=0) - nu * self.q
        share = self.pushed * self.inverse
        held = self.held * self.pushed
        right[system.k] += float(held @ self.v) - nu * self.slope_k()
        right[system.t] += float(held.sum())
        return self.total * share - self.at.adjoint(self.aimed), float(self.q @ share)

    def step(self, moved: Floats, direction: Direction) -> Floats:
        total = (self.D * moved).sum(axis=0) + self.stiff * (direction.t + self.v * direction.k)
        step: Floats = (total + self.pushed - direction.nu * self.q) * self.inverse
        return step


class Maximum(Samples):
    """The largest loss: one epigraph variable above all functions of all samples."""

    def set_variables(self, s: Floats, k: float) -> None:
        self.aggregate = float(s.max())
        self.s = np.full(s.size, self.aggregate)

    def shares(self) -> Floats:
        return self.weights

    def balance(self, nu: float) -> None:
        dual = 1.0 / self.margin
        self.dual = dual * (nu / dual.sum())

    def eliminate(self, system: System, D: Floats, nu: float) -> Hold:
        k, t = system.k, system.t
        if self.flipping:
            weighted = D * self.flips
            system.border(k, self.at.adjoint(weighted))
            system.matrix[k, k] += float((weighted * self.flips).sum())
            system.matrix[k, t] -= float(weighted.sum())
            system.matrix[t, k] -= float(weighted.sum())
        system.border(t, -self.at.adjoint(D))
        system.matrix[t, t] += float(D.sum())
        system.column[t] += 1.0
        return Hold(np.zeros(D.shape[1]), np.ones(D.shape[1]))

    def push_aimed(self, right: Floats, system: System, nu: float) -> tuple[Floats, float]:
        if self.flipping:
            right[system.k] -= float((self.flips * self.aimed).sum())
        right[system.t] += float(self.aimed.sum()) - nu
        return -self.at.adjoint(self.aimed), 0.0

    def step(self, moved: Floats, direction: Direction) -> Floats:
        return np.full(moved.shape[1], direction.t)


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

    def curvature(self, part: slice) -> Floats:
        """By the scores of some samples: lower triangles, (n, pairs of outputs)."""
        curvature = lower_curvature(self.loss, self.scores[part], self.rows.y[part])
        return curvature * self.rows.weights[part, np.newaxis]
