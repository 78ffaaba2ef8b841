r"""The least norm where a quadratic model of the loss meets the target.

The model is taken about a point. Parameters outside the norm, such as the intercept, are
eliminated, and what is left is the least norm in an ellipsoid.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Floats
from ..programs.low_rank import LowRank, ridged
from ..programs.objective import Evaluation
from ..programs.satisficing import SatisficingProgram
from .ellipsoid import Ellipsoid, LeastNorm, least_norm
from .faces import Quadric, least_norm_near
from .factor import Cholesky
from .norm_cones import Shape
from .quadratic import Reduced
from .searching import Search
from .tuning import QuadraticModels as Tuning


class Model(NamedTuple):
    """Parameters, their norm, and the multiplier: the fall of the norm per unit of loss."""

    parameters: Floats
    norm: float
    multiplier: float


class Geometry:
    """The norm of a model and the target of its loss, in the coordinates of its objective."""

    def __init__(self, program: SatisficingProgram, underdetermined: bool, headroom: float) -> None:
        self.objective, self.target = program.objective, program.target.value
        self.underdetermined, self.headroom = underdetermined, headroom
        self.shape = Shape.of(program.objective, program.ambiguity)
        self.cone, self.moves, self.metric = self.shape.cone, self.shape.moves, self.shape.metric
        self.free = np.delete(np.arange(self.objective.size), self.moves)
        self._known: tuple[Any, Floats, Reduced] | None = None

    def norm(self, point: Evaluation) -> float:
        return self.shape.norm(point.parameters)

    def duality_gap(self, point: Evaluation) -> float:
        r"""How far the norm of a model can be above the least one, for one row of scores.

        As L is convex, :math:`k \ge k + \nu (L(\theta) - \tau) \ge
        \nu (L_0 - \tau - g \cdot z_0)` where :math:`\nu g` is of unit length. The slope by the
        parameters outside the norm must be zero; the gap is infinite if it is not, or with several
        rows.
        """
        slope = point.gradient[self.moves] / self.metric
        length = float(np.linalg.norm(slope, ord=self.shape.order))
        loose = np.abs(point.gradient[self.free]).max(initial=0.0)
        if self.cone.shape[0] > 1 or length == 0.0 or loose > 1e-7 * length:
            return inf
        now = self.shape.table(point.parameters).ravel()
        bound = (point.value - self.target - float(slope @ now)) / length
        return max(0.0, self.norm(point) - bound)

    def scaled(
        self, point: Evaluation, exact: float = Tuning.exact, aim: float = 0.1
    ) -> Evaluation:
        """The model with the coefficients in the norm scaled so that it just meets the target.

        At an optimum this trades loss for norm at the rate of the optimum itself. `exact` is how
        far below the target it may end, relatively; `aim` is the share of `exact` to aim at.
        """
        moving, target = point.parameters.copy(), self.target
        moving[self.free] = 0.0
        for _ in range(20):
            excess, slope = point.value - target, float(point.gradient @ moving)
            if -exact * target <= excess <= 0.0 or slope >= 0.0:
                break
            # A little more than enough: rounding must not leave it above the target.
            stretch = -excess / slope + aim * exact * target / -slope
            if stretch > 0.1:  # at the minimum of the loss there is nothing to trade
                break
            stretch = max(stretch, -0.5)
            point = self.objective.at(point.parameters + stretch * moving)
            moving = (1.0 + stretch) * moving
        return point

    def step(
        self,
        point: Evaluation,
        hessian: Floats | LowRank,
        tol: float,
        damping: float,
        alike: Floats | None = None,
    ) -> Search[Model]:
        """Least norm where the quadratic model of the loss meets the target.

        `damping` is curvature that stands in where there is none, as before the corner of a hinge;
        `alike` are parameters on the face of the ball where the least norm may be, if not the
        point's own.
        """
        face = self.shape.table(point.parameters if alike is None else alike).ravel()
        boost = 1.0
        while True:
            try:
                return (yield from self._step(point, hessian, tol, damping, boost, face))
            except LinAlgError:  # rounding has used up the curvature
                if boost > 1e12:
                    raise
                boost *= 1e3

    def _step(
        self,
        point: Evaluation,
        hessian: Floats | LowRank,
        tol: float,
        damping: float,
        boost: float,
        face: Floats,
    ) -> Search[Model]:
        gradient, room = point.gradient, self.target - point.value
        tie = self._tie_breaker(hessian, point.parameters) * boost
        if self.underdetermined:
            gradient = gradient + tie * point.parameters
            room -= 0.5 * float(tie @ point.parameters**2)
        reduced = self._reduced(hessian, tie + damping)
        slope, gain = reduced.slope(gradient)
        now = self.shape.table(point.parameters).ravel()
        pull = reduced.form.times(now[np.newaxis])[0] - slope
        body = Quadric(reduced.form, now, slope, room + gain, pull)
        best = least_norm_near(body, self.cone, face)
        if best is None:
            best = yield from self._searched(body, tol)
        table = best.table - best.table.mean(axis=0) * (len(best.table) > 1)
        change = reduced.change(table.ravel() - now, gradient)
        return Model(point.parameters + change, best.norm, best.multiplier)

    def _reduced(self, hessian: Floats | LowRank, ridge: Floats) -> Reduced:
        """The Hessian and a ridge in the parameters of the norm; that of the last step is kept."""
        if self._known is None or self._known[0] is not hessian or (self._known[1] != ridge).any():
            whole = ridged(self.objective.fixed_gauge(hessian), ridge)
            self._known = hessian, ridge, Reduced(whole, self.moves, self.free, self.metric)
        return self._known[2]

    def _searched(self, body: Quadric, tol: float) -> Search[LeastNorm]:
        """The same by an interior-point search."""
        matrix = body.form.block(np.ones(body.point.size, dtype=bool))
        whole = Cholesky(matrix)
        reach = whole.half_solve(body.slope)
        centre = body.point - whole.other_half(reach)
        square = 2.0 * body.room + float(reach @ reach)
        if square <= 0.0:  # no model of the loss meets the target: go to its minimum
            table = centre.reshape(self.cone.shape)
            return LeastNorm(table, float(self.cone.norm(table[np.newaxis])[0]), 0.0)
        ellipsoid = Ellipsoid(matrix, whole.factor, centre, sqrt(square), body.pull)
        return (yield from least_norm(ellipsoid, self.cone, tol))

    def _tie_breaker(self, hessian: Floats | LowRank, parameters: Floats) -> Floats:
        """A ridge too small to matter, except between models of the same loss and norm."""
        mean = max(float(hessian.trace()) / len(hessian), 1e-12)
        if not self.underdetermined:
            return np.full(len(hessian), Tuning.stand_in * 1e-4 * mean)
        lengths = 1.0 / self.objective.rows.scale**2
        lengths = np.maximum(lengths / lengths.max(), 1e-6)
        tie: Floats = Tuning.stand_in * mean * self.objective.per_parameter(lengths, 1e-6)
        weight = 0.5 * float(tie @ parameters**2)
        return tie * min(1.0, 1e-7 * self.headroom / max(weight, 1e-300))
