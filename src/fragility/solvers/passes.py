r"""Searches whose steps are readings of the data: each asks for sums, and is told them.

In memory an evaluation is cheap and a search may ask for many. Here every one is a pass over data
that may take minutes. So searches for the lowest loss and for the least fragility go on together,
each with one model a pass, and a step that leads too far is shortened in the next one.
"""

from __future__ import annotations

from math import inf
from typing import Generic, TypeVar

import numpy as np

from .._typing import Floats, Mask
from ..programs.objective import Objective
from ..programs.row_sums import Request, RowSums, SummedPoint, TiltedPoint
from ..programs.satisficing import SatisficingProgram
from .geometry import Geometry
from .newton import Curvature
from .searching import result
from .tuning import Newton

#: A step is shortened by this factor, and not beyond that share of it.
_SHORTENED, _SHORTEST = 4.0, 1e-9
#: Differences of sums below this share are rounding.
_ROUNDING = 1e-12
#: Curvature that stands in where there is none, as a share of the mean one.
_DAMPED = 1e-6
#: A step that fails is tried again with so much more of it, up to this.
_MORE, _MOST_DAMPED = 100.0, 1e8
#: Accuracy of a least norm in an ellipsoid.
_ACCURACY = 1e-11
#: Sums under the tilt of an s tell the root of the model if it is nearer than this, relatively.
_NEAR_ROOT = 0.3
#: Gaps below this share are some 1e-8 after another step; so is the error of a root that is closer
#: than that now.
NEARLY, CLOSE_ROOT = 1e-4, 0.03
#: Error of a root over the cube of its distance, amply.
_CUBIC = 10.0

P = TypeVar("P", bound=SummedPoint)


class PassSearch(Generic[P]):
    """A search with one model a pass.

    Attributes
    ----------
    point : SummedPoint or None
        The best model that was summed.
    trial : ndarray
        Parameters of the model to sum next.
    gap : float
        How far what is minimised may be above its minimum, by the last sums.
    accepted : bool
        Whether the last trial was taken.
    failed : bool
        Whether no share of a step led down.
    """

    point: P | None = None
    gap = inf
    accepted = failed = False

    def __init__(self, objective: Objective, start: Floats) -> None:
        self.objective, self.trial = objective, start
        self._step = np.zeros_like(start)
        self._length = 1.0

    def _shorten(self) -> None:
        assert self.point is not None
        self.accepted = False
        self._length /= _SHORTENED
        self.failed = self._length < _SHORTEST
        self.trial = self.point.parameters + self._length * self._step

    def _go_on(self, step: Floats) -> None:
        assert self.point is not None
        self.accepted = True
        self._step, self._length = step, 1.0
        self.trial = self.point.parameters + step

    def request(self, order: int) -> Request:
        """What to sum next."""
        return Request(self.trial, order)


class LowestLoss(PassSearch[SummedPoint]):
    """Newton's method for the lowest penalised mean loss, of the parameters that `free` has."""

    def __init__(self, objective: Objective, start: Floats, free: Mask | None = None) -> None:
        super().__init__(objective, start)
        self._free = np.ones(objective.size, dtype=bool) if free is None else free
        self.curvature: Curvature | None = None
        self.hessian: Floats | None = None
        self._damping, self._stand_in, self._promised = 0.0, Newton.stand_in, inf

    @property
    def loss(self) -> float:
        """The lowest loss, by the quadratic model of the last sums."""
        assert self.point is not None
        return self.point.value - self.gap

    @property
    def separates(self) -> bool:
        """Whether a model without a penalty classifies every row correctly."""
        return (
            self.point is not None
            and not self.objective.is_penalised
            and self.point.sums.least_margin > 0.0
        )

    def tell(self, sums: RowSums) -> None:
        """Take the sums of the trial, and choose the next."""
        there, here = SummedPoint(self.objective, self.trial, sums), self.point
        if here is not None:
            enough = here.value - 2e-4 * self._promised
            if not there.value <= enough + _ROUNDING * abs(here.value):
                self._damping = max(_MORE * self._damping, _DAMPED)
                self._stand_in = min(Newton.factor * self._stand_in, 1.0)
                self._step_from_here()
                self.accepted, self.failed = False, self._damping > _MOST_DAMPED
                return
        self.point = there
        self._damping = self._damping / _MORE if self._damping > _DAMPED else 0.0
        self._stand_in = max(self._stand_in / Newton.factor, Newton.floor)
        if there.hessian is not None:
            self.hessian = there.hessian
        self._step_from_here()

    def _step_from_here(self) -> None:
        """Newton's step; where it promises more than the whole loss the curvature is damped."""
        point, hessian, free = self.point, self.hessian, self._free
        assert point is not None
        assert hessian is not None
        fixed = self.objective.fixed_gauge(hessian)[np.ix_(free, free)]
        unit = float(fixed.trace()) / max(len(fixed), 1) or 1.0
        gradient = point.gradient[free]
        while True:
            damped = fixed + self._damping * unit * np.eye(len(fixed))
            self.curvature = Curvature(damped, self._stand_in * unit)
            move = self.curvature.step(gradient)
            self._promised = max(-0.5 * float(gradient @ move), 0.0)
            if self._promised <= abs(point.value) or self._damping > _MOST_DAMPED:
                break
            self._damping = max(_MORE * self._damping, _DAMPED)
        self.gap = self._promised
        if self.curvature.singular or self._damping > 0.0:
            # Where a step does not go for want of curvature the loss may fall all the same.
            curvatures, directions = np.linalg.eigh(fixed)
            least = Newton.no_curvature * max(float(curvatures[-1]), 1e-300)
            slopes = directions.T @ gradient
            own = 0.5 * float((slopes**2 / np.maximum(curvatures, least)).sum())
            self.gap = max(self.gap, own)
        step = np.zeros(self.objective.size)
        step[free] = move
        self._go_on(step)


class LeastNorm(PassSearch[SummedPoint]):
    """Least norm of a model that meets the target: quadratic models of the loss."""

    def __init__(
        self, program: SatisficingProgram, start: Floats, lowest: Floats, underdetermined: bool
    ) -> None:
        super().__init__(program.objective, start)
        headroom = max(program.target.value - program.target.erm_loss, 1e-9 * program.target.value)
        self._geometry = Geometry(program, underdetermined, headroom, near=False)
        self.target, self.k, self.multiplier = program.target.value, inf, 0.0
        self._hessian: Floats | None = None
        self._damping = 0.0
        # What a violation can gain at most, as the least norm is convex in the target.
        self._weight = self.norm(lowest) / headroom

    @property
    def error(self) -> float:
        """How far the fragility may be above its minimum, relatively."""
        return self.gap / max(self.k, 1e-300)

    @property
    def is_near(self) -> bool:
        """Whether the next model may be the last."""
        return self.error <= NEARLY

    def norm(self, parameters: Floats) -> float:
        return self._geometry.shape.norm(parameters)

    def retarget(self, target: float) -> None:
        """Go on with a target that is known better."""
        self.target = self._geometry.target = target

    def tell(self, sums: RowSums) -> None:
        """Take the sums of the trial, and choose the next."""
        there, k = SummedPoint(self.objective, self.trial, sums), self.norm(self.trial)
        if self.point is not None:
            before, now = self._merit(self.point, self.k), self._merit(there, k)
            if not now <= before * (1.0 + _ROUNDING) + self.gap * 0.9:
                self._damping = max(10.0 * self._damping, _DAMPED)
                self._shorten()
                return
        self.point, self.k = there, k
        if there.hessian is not None:
            self._hessian = there.hessian
            if Curvature(self.objective.fixed_gauge(self._hessian)).singular:
                self._damping = max(self._damping, _DAMPED)
        assert self._hessian is not None
        unit = float(self._hessian.trace()) / len(self._hessian)
        step = self._geometry.step(there, self._hessian, _ACCURACY, self._damping * unit)
        model = result(step)
        self._damping = 0.1 * self._damping if self._length == 1.0 else self._damping
        self.multiplier = model.multiplier
        self._weight = max(self._weight, 2.0 * model.multiplier)
        gain = k + model.multiplier * (there.value - self.target) - model.norm
        self.gap = abs(gain) if model.multiplier > 0.0 else inf
        self._go_on(model.parameters - there.parameters)

    def _merit(self, point: SummedPoint, k: float) -> float:
        return k + self._weight * max(0.0, point.value - self.target)

    def stretched(self, share: float) -> Floats:
        """The trial with its coefficients in the norm longer, so that the loss falls by a share."""
        moving = self.trial.copy()
        moving[self._geometry.free] = 0.0
        assert self.point is not None
        slope = float(self.point.gradient @ moving)
        if not slope < 0.0:
            return self.trial
        return self.trial + (share * self.target / -slope) * moving


class LeastTilt(PassSearch[TiltedPoint]):
    r"""Least fragility under KL: Newton's method for :math:`\nabla_\theta f = 0, f = \tau`."""

    def __init__(self, program: SatisficingProgram, start: Floats, inverse: float) -> None:
        super().__init__(program.objective, start)
        self.target, self.inverse = program.target.value, inverse
        self.k = inf
        self.curvature: Curvature | None = None
        self._away = inf

    @property
    def error(self) -> float:
        """How far the fragility may be above its minimum, or off by its root: relatively."""
        return self.gap / self.k + self.root_error

    @property
    def root_error(self) -> float:
        """How far the fragility of the model may be off, relatively: Halley's step is cubic."""
        return _CUBIC * self._away**3

    @property
    def is_close(self) -> bool:
        """Whether the fragility of the model is known well."""
        return self._away <= CLOSE_ROOT

    @property
    def is_near(self) -> bool:
        """Whether the next model may be the last."""
        return self.gap / self.k <= NEARLY and self._away <= CLOSE_ROOT

    def request(self, order: int) -> Request:
        return Request(self.trial, order, self.inverse)

    def retarget(self, target: float) -> None:
        """Go on with a target that is known better, at which the model has another fragility."""
        self.target = target
        if self.point is None:
            return
        root = self.point.root(target) if self.point.value < target else 0.0
        self.k = 1.0 / root if root > 0.0 else inf
        self._away = abs(root / self.point.inverse - 1.0)

    @property
    def multiplier(self) -> float:
        """Fall of the fragility as the target rises."""
        assert self.point is not None
        return 1.0 / max(self.point.divergence, 1e-300)

    def tell(self, sums: RowSums) -> None:
        """Take the sums of the trial, and choose the next."""
        there = TiltedPoint(self.objective, self.trial, sums, self.inverse)
        root = there.root(self.target)
        away = abs(root / self.inverse - 1.0)
        if not (there.value < self.target and root > 0.0 and there.divergence > 0.0):
            self._reject()
            return
        if away > _NEAR_ROOT:  # the tilt is of another s than the model has: the same model again
            self.inverse = min(max(root, self.inverse / 4.0), self.inverse * 4.0)
            self.accepted = False
            return
        k = 1.0 / root
        doubt = _CUBIC * (away**3 + self._away**3) if self.point is not None else 0.0
        allowed = self.k * (1.0 + _ROUNDING + doubt) + 0.9 * self.gap
        if self.point is not None and not k <= allowed:
            self._reject()
            return
        self.point, self.k, self._away = there, k, away
        hessian = there.hessian
        if hessian is not None:
            self.curvature = Curvature(self.objective.fixed_gauge(hessian))
        assert self.curvature is not None
        down = self.curvature.step(there.gradient)
        fall = max(-0.5 * float(there.gradient @ down), 0.0)
        self.gap = fall / there.divergence
        # By k: the derivative of f is minus the divergence, that of s is -s².
        own = 1.0 / there.inverse
        better = own + (there.worst - fall - self.target) / there.divergence
        better = min(max(better, 0.5 * k), 2.0 * k)
        along = self.curvature.step(there.cross)
        self.inverse = 1.0 / better
        self._go_on(down + (self.inverse - there.inverse) * along)

    def _reject(self) -> None:
        if self.point is None:
            self.failed = True
            return
        self.inverse = self.point.inverse if self.k == inf else 1.0 / self.k
        self._shorten()
