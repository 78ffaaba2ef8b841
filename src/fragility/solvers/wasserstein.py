r"""Robust satisficing under Wasserstein ambiguity: the model of least norm that meets the target.

.. math:: \min_\theta \max_{i<j} \lVert \beta_i - \beta_j \rVert_* \quad\text{s.t.}\quad
          L(\theta) \le \tau .

Each step replaces the loss by its quadratic model, exact or a little old, which makes the problem
one of least norm in an ellipsoid, of a size that does not depend on the number of samples. Between
two of them the model's errors fall quadratically, so a handful of passes over the data suffices.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from ..moments import Floats
from ..programs.objective import Evaluation, Objective
from .ellipsoid import Ellipsoid, LeastNorm, least_norm
from .factor import Cholesky
from .feasible import meeting
from .newton import Curvature
from .norm_cones import norm_cone

__all__ = ["WassersteinSolution", "satisfice"]

#: A Hessian serves again while it makes the error fall at least this much.
_GOOD_ENOUGH = 0.01
#: Multiplications in a Hessian that cost no more than a search in an ellipsoid.
_CHEAP = 1e8
#: The norm is settled when its error is this share of the tolerance: coefficients, whose errors are
#: as the root of it, then have digits, too.
_SETTLED, _ROUNDING = 1e-3, 1e-12
#: Steps without progress after which there is none to be had.
_PATIENCE = 4
#: How exactly the target is met in the end, relatively.
_EXACT = 1e-12
#: Damping to begin with where it is needed, and the factor by which it changes.
_DAMPED, _BOLDER = 1e-4, 30.0
#: Curvature, as a share of the mean one, that stands in where there is none.
_STAND_IN = 1e-9


class WassersteinSolution(NamedTuple):
    """Where a search ended; `gap` estimates how far the norm is above its minimum."""

    point: Evaluation
    norm: float
    gap: float
    iterations: int
    converged: bool


def satisfice(
    objective: Objective,
    target: float,
    start: Evaluation,
    *,
    norm: float,
    mobility: Floats,
    tol: float,
    max_iter: int,
    hessian: Floats | None = None,
    underdetermined: bool = False,
) -> WassersteinSolution:
    """Model of least norm whose penalised mean loss meets the target.

    Parameters
    ----------
    start : Evaluation
        A model that meets the target with room to spare.
    norm : {1, 2, inf}
        Norm of a move; that of models is its dual.
    mobility : ndarray of shape (d,)
        How far each feature moves at a price of one, in the user's units.
    hessian : ndarray, optional
        At or near the start.
    underdetermined : bool
        Whether different coefficients may have the same loss: the shortest are wanted then.
    """
    geometry = _Geometry(objective, norm, mobility, underdetermined)
    point, size = start, geometry.norm(start)
    hessian = start.hessian if hessian is None else hessian
    curvature, fresh = Curvature(objective.fixed_gauge(hessian)), False
    # The price of a violation must be above what it can gain: as the least norm is convex in the
    # target, that is at most what the start gives.
    slack = max(target - start.value, 1e-9 * target)
    price = size / slack
    accuracy, error, damping = 1e-4, inf, _DAMPED if curvature.singular else 0.0
    settled = max(_SETTLED * tol, _ROUNDING)
    cheap = objective.rows.y.size * objective.size**2 <= _CHEAP
    iteration = stalled = 0
    while iteration < max_iter:
        iteration += 1
        model = geometry.step(point, hessian, target, accuracy, damping)
        # By how much the norm may still fall, at the same loss.
        gain = size + model.price * (point.value - target) - model.norm
        if fresh and model.price > 0.0 and abs(gain) <= settled * size:
            error = abs(gain)
            break
        price = max(price, 2.0 * model.price)
        merit = size + price * max(0.0, point.value - target)
        length, move = 1.0, model.parameters - point.parameters
        while True:
            trial = objective.at(point.parameters + length * move)
            trial_size = geometry.norm(trial)
            trial_merit = trial_size + price * max(0.0, trial.value - target)
            if trial_merit <= merit - 1e-4 * length * (merit - model.norm) or length < 1e-8:
                break
            length /= 2.0
        if length < 1e-8 and fresh and damping >= 1.0:  # no descent within rounding
            break
        if length < 1e-8:
            damping = max(_DAMPED, _BOLDER * damping) if fresh else damping
            hessian, fresh = point.hessian, True
            curvature = Curvature(point.model_hessian)
            continue
        stalled = stalled + 1 if merit - trial_merit <= _ROUNDING * merit else 0
        if stalled == _PATIENCE:
            error = max(0.0, gain)
            break
        damping *= 1.0 / _BOLDER if length == 1.0 else _BOLDER
        # What the gradient turned out to be, against what the model said.
        surprise = trial.gradient - point.gradient - hessian @ (length * move)
        missed = -float(surprise @ curvature.step(surprise))
        expected = length**2 * float(move @ hessian @ move)
        point, size = trial, trial_size
        # In the end the model is scaled to the target: what is left of that error is its square.
        error = model.price * (missed + (point.value - target) ** 2 / slack)
        near = length == 1.0 and model.price > 0.0 and error <= settled * size
        # Where curvatures jump, an old one, or one that damping outweighs, proves nothing.
        proven = fresh and damping <= 1e-2 * _DAMPED
        if near and (proven or not objective.loss.curvature_jumps):
            break
        contraction = missed / max(expected, 1e-300)
        accuracy = settled if error <= 1e-2 * size else max(settled, 1e-6)
        unfinished = error * contraction > settled * size
        if near or length < 1.0 or contraction > _GOOD_ENOUGH or (unfinished and cheap):
            hessian, fresh = point.hessian, True
            curvature = Curvature(point.model_hessian)
        else:
            fresh = False
    point = meeting(geometry.scaled_to(point, target), start, target)
    size = geometry.norm(point)
    return WassersteinSolution(point, size, error, iteration, error <= tol * size)


class _Model(NamedTuple):
    parameters: Floats
    norm: float
    price: float


class _Geometry:
    """The norm of a model, in the coordinates of its objective."""

    def __init__(
        self, objective: Objective, norm: float, mobility: Floats, underdetermined: bool
    ) -> None:
        self.objective = objective
        self.underdetermined = underdetermined
        rows = objective.rows
        one = mobility / rows.scale
        if rows.fit_intercept:
            one = np.append(one, 0.0)
        metric = np.tile(one, objective.n_outputs)
        self.moves = np.flatnonzero(metric > 0.0)
        self.free = np.flatnonzero(metric == 0.0)
        self.metric = metric[self.moves]
        self.cone = norm_cone(norm, objective.n_outputs, self.moves.size // objective.n_outputs)

    def table(self, parameters: Floats) -> Floats:
        scaled: Floats = (parameters[self.moves] * self.metric).reshape(self.cone.shape)
        return scaled

    def norm(self, point: Evaluation) -> float:
        return float(self.cone.norm(self.table(point.parameters)))

    def scaled_to(self, point: Evaluation, target: float) -> Evaluation:
        """The model with its priced coefficients scaled so that it meets the target just so.

        At an optimum that trades loss for norm at the rate of the optimum itself.
        """
        moving = point.parameters.copy()
        moving[self.free] = 0.0
        for _ in range(20):
            excess, slope = point.value - target, float(point.gradient @ moving)
            if -_EXACT * target <= excess <= 0.0 or slope >= 0.0:
                break
            # A little more than enough: rounding must not leave it above the target.
            stretch = -excess / slope + 0.1 * _EXACT * target / -slope
            if abs(stretch) > 0.1:  # at the minimum of the loss there is nothing to trade
                break
            point = self.objective.at(point.parameters + stretch * moving)
            moving = (1.0 + stretch) * moving
        return point

    def step(
        self, point: Evaluation, hessian: Floats, target: float, tol: float, damping: float
    ) -> _Model:
        """Least norm where the quadratic model of the loss meets the target.

        `damping` is curvature that stands in where there is none, as before the corner of a hinge.
        """
        boost = 1.0
        while True:
            try:
                return self._step(point, hessian, target, tol, damping, boost)
            except LinAlgError:  # rounding has eaten the curvature that is left
                if boost > 1e12:
                    raise
                boost *= 1e3

    def _step(
        self,
        point: Evaluation,
        hessian: Floats,
        target: float,
        tol: float,
        damping: float,
        boost: float,
    ) -> _Model:
        moves, free = self.moves, self.free
        hessian = self.objective.fixed_gauge(hessian)
        gradient, room = point.gradient, target - point.value
        tie = self._tie_breaker(hessian) * boost
        hessian = hessian + np.diag(tie + damping)
        if self.underdetermined:
            gradient = gradient + tie * point.parameters
            room -= 0.5 * float(tie @ point.parameters**2)
        slope, matrix = gradient[moves], hessian[np.ix_(moves, moves)]
        if free.size:
            # What has no price takes its best value for whatever the rest is.
            factor = Cholesky(hessian[np.ix_(free, free)])
            cross = hessian[np.ix_(free, moves)]
            answer = factor.solve(np.column_stack([cross, gradient[free]]))
            matrix = matrix - cross.T @ answer[:, :-1]
            slope = slope - cross.T @ answer[:, -1]
            room += 0.5 * float(gradient[free] @ answer[:, -1])
        slope, matrix = slope / self.metric, matrix / np.multiply.outer(self.metric, self.metric)
        whole = Cholesky(matrix)
        reach = whole.half_solve(slope)
        now = self.table(point.parameters).ravel()
        centre = now - whole.other_half(reach)
        square = 2.0 * room + float(reach @ reach)
        if square <= 0.0:  # no model of the loss meets the target: go to its minimum
            best = LeastNorm(centre.reshape(self.cone.shape), 0.0, 0.0)
            best = best._replace(norm=float(self.cone.norm(best.table)))
        else:
            root = whole.factor
            if self.cone.needs_gauge:
                root = self._without_gauge(root)
                matrix = self._without_gauge(self._without_gauge(matrix).T)
            best = least_norm(Ellipsoid(matrix, root, centre, sqrt(square)), self.cone, tol)
        table = best.table - best.table.mean(axis=0) * (len(best.table) > 1)
        parameters = point.parameters.copy()
        change = (table.ravel() - now) / self.metric
        parameters[moves] += change
        if free.size:
            parameters[free] -= answer[:, :-1] @ change + answer[:, -1]
        return _Model(parameters, best.norm, best.price)

    def _tie_breaker(self, hessian: Floats) -> Floats:
        """A ridge too small to matter, except between models of the same loss and norm."""
        mean = max(np.trace(hessian) / len(hessian), 1e-6)
        if not self.underdetermined:
            return np.full(len(hessian), _STAND_IN * 1e-4 * mean)
        lengths = 1.0 / self.objective.rows.scale**2
        lengths = np.maximum(lengths / lengths.max(), 1e-6)
        if self.objective.rows.fit_intercept:
            lengths = np.append(lengths, 1e-6)
        tie: Floats = _STAND_IN * mean * np.tile(lengths, self.objective.n_outputs)
        return tie

    def _without_gauge(self, matrix: Floats) -> Floats:
        """Rows with the mean over the classes taken out."""
        blocks = matrix.reshape(*self.cone.shape, -1)
        rest: Floats = (blocks - blocks.mean(axis=0)).reshape(matrix.shape)
        return rest
