r"""How the levels above the samples' losses make up what is to be small.

Each sample has a level :math:`s_n \ge f_{np}` above its pieces (`programs.pieces`). Together they
count as their mean, as their log-moment :math:`\kappa \ln \sum_n a_n e^{s_n / \kappa}`, or as one
level above all. In an interior-point step the levels are eliminated, sample by sample: what is left
is a system in the parameters, κ, and one number t: the log-moment itself, which as
:math:`\min_t t + \kappa (\sum_n a_n e^{(s_n - t) / \kappa} - 1)` has a curvature that is diagonal,
or the one level. Calls come in the order `eliminate`, `push`, `step`: each keeps what the next
needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from .._typing import Floats
from ..programs.pieces import Level, PiecesAt


class Eliminated(NamedTuple):
    """What is left of the system: by scores (outputs, n) with κ and with t, and of these two.

    `slope_*` are those of the aggregate after elimination, `corner` what it adds to the corner of
    its multiplier.
    """

    level: Level
    scores_kappa: Floats | None = None
    scores_t: Floats | None = None
    kappa: float = 0.0
    kappa_t: float = 0.0
    t: float = 0.0
    slope_scores: Floats | None = None
    slope_kappa: float = 0.0
    slope_t: float = 0.0
    corner: float = 0.0


class Push(NamedTuple):
    """Right sides: by scores, κ and t; and what they add to the row of the aggregate."""

    scores: Floats
    kappa: float
    t: float
    row: float


class Levels(ABC):
    """What the three have in common.

    `flips` is -γ for pieces of another label, else zero: how pieces move with κ.
    """

    has_t = False

    def __init__(self, weights: Floats, flips: Floats) -> None:
        self.weights = weights
        self.flips = flips
        self.flipping = bool(flips.any())
        self.kappa = 0.0

    value: float
    s: Floats

    @abstractmethod
    def place(self, s: Floats, kappa: float) -> None:
        """Set the levels."""

    @abstractmethod
    def shares(self) -> Floats:
        """Derivative of the aggregate by the levels."""

    def slope_kappa(self) -> float:
        """Derivative of the aggregate by κ."""
        return 0.0

    @abstractmethod
    def eliminate(self, at: PiecesAt, D: Floats, multiplier: float) -> Eliminated:
        """Form the system for weights D of the pieces and a multiplier of the aggregate."""

    @abstractmethod
    def push(self, at: PiecesAt, aimed: Floats, multiplier: float) -> Push:
        """Right sides where the multipliers of the pieces would be `aimed`."""

    @abstractmethod
    def step(self, moved: Floats, kappa: float, t: float, multiplier: float) -> Floats:
        """Step of the levels when D-weighted pieces, κ, t and the multiplier move."""


class Mean(Levels):
    """Weighted mean of the levels."""

    def place(self, s: Floats, kappa: float) -> None:
        self.s, self.kappa = s, kappa
        self.value = float(self.weights @ s)

    def shares(self) -> Floats:
        return self.weights

    def eliminate(self, at: PiecesAt, D: Floats, multiplier: float) -> Eliminated:
        self.D = D
        self.inverse = 1.0 / D.sum(axis=0)
        self.total = at.adjoint(D)
        reach = self.weights * self.inverse
        kappa_scores, kappa, slope_kappa = None, 0.0, 0.0
        self.drift: Floats | float = 0.0
        if self.flipping:
            self.drift = (D * self.flips).sum(axis=0) * self.inverse
            apart = D * (self.flips - self.drift)
            kappa_scores = at.adjoint(apart)
            kappa = float((apart * (self.flips - self.drift)).sum())
            slope_kappa = float(self.weights @ self.drift)
        return Eliminated(
            Level(self.inverse, np.zeros_like(self.inverse)),
            kappa_scores,
            kappa=kappa,
            slope_scores=self.total * reach,
            slope_kappa=slope_kappa,
            corner=float(self.weights @ reach),
        )

    def push(self, at: PiecesAt, aimed: Floats, multiplier: float) -> Push:
        self.pushed = aimed.sum(axis=0) - multiplier * self.weights
        share = self.pushed * self.inverse
        kappa = 0.0
        if self.flipping:
            kappa = float(np.sum(self.drift * self.pushed)) - float((self.flips * aimed).sum())
        scores = self.total * share - at.adjoint(aimed)
        return Push(scores, kappa, 0.0, float(self.weights @ share))

    def step(self, moved: Floats, kappa: float, t: float, multiplier: float) -> Floats:
        total = (self.D * moved).sum(axis=0) + self.pushed - multiplier * self.weights
        step: Floats = total * self.inverse
        return step


class Moment(Levels):
    """Log-moment of the levels at κ; labels do not move."""

    has_t = True

    q: Floats
    v: Floats

    def place(self, s: Floats, kappa: float) -> None:
        self.s, self.kappa = s, kappa
        ahead = (s - s.max()) / kappa
        terms = self.weights * np.exp(ahead)
        total = float(terms.sum())
        self.q = terms / total
        self.t = float(s.max()) + kappa * np.log(total)
        self.value = self.t
        self.v = ahead - np.log(total)

    def shares(self) -> Floats:
        return self.q

    def slope_kappa(self) -> float:
        return -float(self.q @ self.v)

    def eliminate(self, at: PiecesAt, D: Floats, multiplier: float) -> Eliminated:
        self.D = D
        self.stiff = multiplier * self.q / self.kappa
        own = D.sum(axis=0)
        self.inverse = 1.0 / (own + self.stiff)
        self.held = self.stiff * self.inverse
        free = self.stiff * own * self.inverse
        self.total = at.adjoint(D)
        reach = self.q * self.inverse
        along = self.held * self.v
        return Eliminated(
            Level(self.inverse, self.held),
            -self.total * along,
            -self.total * self.held,
            float(free @ self.v**2),
            float(free @ self.v),
            float(free.sum()),
            self.total * reach,
            self.slope_kappa() + float(along @ self.q),
            float(self.held @ self.q),
            float(self.q @ reach),
        )

    def push(self, at: PiecesAt, aimed: Floats, multiplier: float) -> Push:
        self.pushed = aimed.sum(axis=0) - multiplier * self.q
        share = self.pushed * self.inverse
        scores = self.total * share - at.adjoint(aimed)
        held = self.held * self.pushed
        kappa = float(held @ self.v) - multiplier * self.slope_kappa()
        return Push(scores, kappa, float(held.sum()), float(self.q @ share))

    def step(self, moved: Floats, kappa: float, t: float, multiplier: float) -> Floats:
        total = (self.D * moved).sum(axis=0) + self.stiff * (t + self.v * kappa)
        step: Floats = (total + self.pushed - multiplier * self.q) * self.inverse
        return step


class Common(Levels):
    """One level above all pieces of all samples."""

    has_t = True

    def place(self, s: Floats, kappa: float) -> None:
        self.kappa = kappa
        self.value = float(s.max())
        self.s = np.full(s.size, self.value)

    def shares(self) -> Floats:
        return self.weights

    def eliminate(self, at: PiecesAt, D: Floats, multiplier: float) -> Eliminated:
        n = D.shape[1]
        kappa_scores, kappa, kappa_t = None, 0.0, 0.0
        if self.flipping:
            priced = D * self.flips
            kappa_scores = at.adjoint(priced)
            kappa, kappa_t = float((priced * self.flips).sum()), -float(priced.sum())
        return Eliminated(
            Level(np.zeros(n), np.ones(n)),
            kappa_scores,
            -at.adjoint(D),
            kappa,
            kappa_t,
            float(D.sum()),
            slope_t=1.0,
        )

    def push(self, at: PiecesAt, aimed: Floats, multiplier: float) -> Push:
        kappa = -float((self.flips * aimed).sum()) if self.flipping else 0.0
        return Push(-at.adjoint(aimed), kappa, float(aimed.sum()) - multiplier, 0.0)

    def step(self, moved: Floats, kappa: float, t: float, multiplier: float) -> Floats:
        return np.full(moved.shape[1], t)
