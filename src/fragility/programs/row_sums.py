r"""Sums over the rows of a linear model, batch by batch: what training needs of data out of memory.

Solvers ask for a value, a gradient and a Hessian, never for rows. Here these are sums that batches
add to and that merge. Whatever is asked of one batch comes from `Evaluation`, as in memory.

Under KL ambiguity rows are tilted, :math:`q_n \propto a_n e^{s \ell_n}`, with s = 1/k; sums hold
the exponentials relative to the largest loss so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import exp, expm1, inf, log1p
from typing import NamedTuple

import numpy as np

from .._typing import Floats
from .objective import Evaluation, Objective


class Request(NamedTuple):
    """What is to be summed at one model.

    Attributes
    ----------
    parameters : ndarray
        In the coordinates of the objective.
    order : {0, 1, 2}
        Value only; gradient, too; Hessian, too.
    inverse : float, optional
        The s of a tilt, to which gradient and Hessian then belong.
    fold : int, optional
        Sum the rows of this fold alone.
    """

    parameters: Floats
    order: int = 2
    inverse: float | None = None
    fold: int | None = None


@dataclass
class Tilted:
    r"""Sums under the tilt of one s, in units of :math:`e^{s \cdot level}`."""

    level: float = -inf
    weight: float = 0.0
    #: Of each exponential less one: where s is small their sum has lost too many digits.
    excess: float = 0.0
    loss: float = 0.0
    square: float = 0.0
    gradient: Floats | float = 0.0
    #: Of each loss times its gradient.
    cross: Floats | float = 0.0
    hessian: Floats | float = 0.0

    def add(self, at: Evaluation, s: float, order: int) -> None:
        """Add the rows of an evaluation."""
        losses, own = at.losses, at.objective.rows.weights
        counted = own > 0.0
        level = float(losses.max(where=counted, initial=-inf))
        if level == -inf:
            return
        above = np.expm1(s * (np.where(counted, losses, level) - level))
        tilt = (1.0 + above) * own
        more = Tilted(level, float(own.sum()), float(above @ own))
        more.loss, more.square = float(tilt @ losses), float(tilt @ losses**2)
        if order:
            more.gradient, more.cross = at.collected(tilt), at.collected(tilt * losses)
        if order == 2:
            more.hessian = at.tilted_squares(tilt, 1.0 / s)
        self.merge(more, s)

    def merge(self, other: Tilted, s: float) -> None:
        """Add the sums of other rows."""
        level = max(self.level, other.level)
        for one in (self, other):
            if one.level not in (level, -inf):
                change = s * (one.level - level)
                one.excess = exp(change) * one.excess + expm1(change) * one.weight
                for name in _SCALED:
                    setattr(one, name, exp(change) * getattr(one, name))
        self.level = level
        for name in _TILTED_SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def total(self) -> float:
        """Sum of the exponentials."""
        return self.weight + self.excess


_TILTED_SUMS = tuple(one.name for one in fields(Tilted) if one.name != "level")
_SCALED = tuple(name for name in _TILTED_SUMS if name not in ("weight", "excess"))


@dataclass
class RowSums:
    """Sums at one model; those of several parts of the data merge.

    Attributes
    ----------
    weight : float
        Of all rows.
    loss : float
        Weighted sum of the losses.
    gradient, hessian : ndarray or float
        Of that sum; 0 where they were not asked for.
    largest : float
        Largest loss.
    least_margin : float
        Smallest lead of the score of the true class.
    spread : float
        Largest difference of two scores of a row; of two classes the largest score.
    tilted : Tilted
    """

    weight: float = 0.0
    loss: float = 0.0
    gradient: Floats | float = 0.0
    hessian: Floats | float = 0.0
    largest: float = -inf
    least_margin: float = inf
    spread: float = 0.0
    tilted: Tilted = field(default_factory=Tilted)

    def add(self, objective: Objective, request: Request) -> None:
        """Add rows, of which the objective has the weights as given and no penalty."""
        at, own = objective.at(request.parameters), objective.rows.weights
        if not own.any():
            return
        counted = own > 0.0
        scores = at.scores
        spread = np.abs(scores) if scores.ndim == 1 else np.ptp(scores, axis=1)
        self.weight += float(own.sum())
        self.loss += float(own @ at.losses)
        self.largest = max(self.largest, float(at.losses.max(where=counted, initial=-inf)))
        self.spread = max(self.spread, float(spread.max(where=counted, initial=0.0)))
        self.least_margin = min(self.least_margin, at.least_margin)
        if request.inverse is not None:
            self.tilted.add(at, request.inverse, request.order)
            return
        if request.order:
            self.gradient = self.gradient + at.collected(own)
        if request.order == 2:
            self.hessian = self.hessian + at.hessian

    def merge(self, other: RowSums, request: Request) -> RowSums:
        """The sums of both."""
        self.weight += other.weight
        self.loss += other.loss
        self.gradient = self.gradient + other.gradient
        self.hessian = self.hessian + other.hessian
        self.largest = max(self.largest, other.largest)
        self.least_margin = min(self.least_margin, other.least_margin)
        self.spread = max(self.spread, other.spread)
        if request.inverse is not None:
            self.tilted.merge(other.tilted, request.inverse)
        return self


class SummedPoint:
    """Penalised mean loss and derivatives at a model, from sums over all rows.

    The objective has no rows, but all that is known without them: penalty, scales, classes.
    """

    def __init__(self, objective: Objective, parameters: Floats, sums: RowSums) -> None:
        self.objective, self.parameters, self.sums = objective, parameters, sums
        self.penalty = objective.penalty(parameters)
        self.value = sums.loss / sums.weight + self.penalty

    @property
    def gradient(self) -> Floats:
        """Of the penalised mean loss."""
        return self.sums.gradient / self.sums.weight + self.objective.ridge * self.parameters

    @property
    def hessian(self) -> Floats | None:
        """Of the same; None if it was not summed."""
        if isinstance(self.sums.hessian, float):
            return None
        hessian: Floats = self.sums.hessian / self.sums.weight
        hessian[np.diag_indices(self.objective.size)] += self.objective.ridge
        return hessian


class TiltedPoint(SummedPoint):
    r"""The same with :math:`f = \frac1s \ln \sum_n a_n e^{s \ell_n} + R` and its derivatives."""

    def __init__(
        self, objective: Objective, parameters: Floats, sums: RowSums, inverse: float
    ) -> None:
        super().__init__(objective, parameters, sums)
        self.inverse, tilted = inverse, sums.tilted
        #: Logarithm of the mean of exponentials, relative to the largest loss.
        self.log_moment = log1p(tilted.excess / tilted.weight)
        self.tilted_loss = tilted.loss / tilted.total
        self.variance = max(tilted.square / tilted.total - self.tilted_loss**2, 0.0)
        #: KL divergence of the tilt.
        self.divergence = inverse * (self.tilted_loss - tilted.level) - self.log_moment
        self.worst = tilted.level + self.log_moment / inverse + self.penalty

    @property
    def gradient(self) -> Floats:
        """Of f by the parameters."""
        tilted = self.sums.tilted
        return tilted.gradient / tilted.total + self.objective.ridge * self.parameters

    @property
    def hessian(self) -> Floats | None:
        """Of f by the parameters; None if it was not summed."""
        tilted = self.sums.tilted
        if isinstance(tilted.hessian, float):
            return None
        mean = tilted.gradient / tilted.total
        hessian: Floats = tilted.hessian / tilted.total - self.inverse * np.multiply.outer(
            mean, mean
        )
        hessian[np.diag_indices(self.objective.size)] += self.objective.ridge
        return hessian

    @property
    def cross(self) -> Floats:
        """Derivative of the gradient by s."""
        tilted = self.sums.tilted
        slopes = tilted.gradient / tilted.total
        return np.asarray(tilted.cross / tilted.total - self.tilted_loss * slopes)

    def root(self, target: float) -> float:
        r"""The s at which f is the target, for this model, if it is near the one of the tilt.

        By Halley's step on :math:`\ln \sum a e^{s \ell} - s (\tau - R)`.
        """
        s, room = self.inverse, target - self.penalty
        value = self.log_moment + s * (self.sums.tilted.level - room)
        slope = self.tilted_loss - room
        if not slope > 0.0:
            return 0.0
        newton = value / slope
        return s - newton / max(1.0 - 0.5 * newton * self.variance / slope, 0.1)
