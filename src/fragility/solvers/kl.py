r"""Robust satisficing under KL ambiguity: the model of the smallest fragility.

For a model :math:`\theta` the fragility at target :math:`\tau` is the root :math:`k(\theta)` of

.. math:: f(\theta, k) = k \ln \sum_n a_n e^{\ell_n(\theta) / k} + R(\theta) = \tau ,

the Fragility Index of its losses. As f is convex in both, and falls in k, so is the root, and we go
down on it directly: a Newton step on :math:`f(\cdot, k)` at the present k, its length chosen by
:math:`k(\theta)` itself. As :math:`\partial f / \partial k = -D`, the KL divergence of the worst
case, k falls by the fall of f over D.
"""

from __future__ import annotations

from functools import cached_property
from math import inf, log

import numpy as np

from .._typing import Floats
from ..index.root import Point, SampleEquation, halley_step, solve
from ..moments import EPS, Sample
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Found
from .newton import Curvature, minimise
from .tuning import LeastFragility as Tuning


def satisfice(
    objective: Objective,
    target: float,
    start: Evaluation | Floats,
    *,
    tol: float,
    max_iter: int,
    curvature: Curvature | None = None,
) -> Found:
    """Least fragile model whose penalised mean loss meets the target.

    `start` must meet it with room to spare, as the minimiser of the mean loss does. The fragility
    is 0, and the search ends, when no loss of a model exceeds the target. `curvature` comes from a
    search that ended nearby. The last step is taken without an evaluation, which would only confirm
    it.
    """
    first = objective.at(start) if isinstance(start, np.ndarray) else start
    of_zero = objective.loss.of_zero_scores(objective.rows.n_classes)
    if float(of_zero.max()) <= target:  # the search would only come near it
        return Found(first.scaled(0.0), 0.0, 0.0, 1, True)
    near: float | None = None

    def at(parameters: Floats) -> _Fragility:
        nonlocal near
        point = _Fragility(objective.at(parameters), target, near)
        near = point.inverse
        return point

    found = minimise(
        at,
        _shrunk(_Fragility(first, target)) if curvature is None else _Fragility(first, target),
        tol=max(Tuning.settled * tol, Tuning.rounding),
        max_iter=max_iter,
        stop=lambda point: point.value in (0.0, inf),
        curvature=curvature,
        rough=True,
    )
    k = found.point.value
    converged = k == 0.0 or (found.gap <= tol * k < inf)
    point = found.point.losses_at
    if found.converged and found.curvature is not None:
        point = objective.at(point.parameters + found.curvature.step(found.point.gradient))
    return Found(point, k, found.gap, found.iterations, converged, found.curvature)


def _shrunk(point: _Fragility) -> _Fragility:
    """The least fragile multiple of a model, roughly, by secants of its slope.

    From the lowest loss this is most of the way. It costs little, as the scores are known.
    """
    if not 0.0 < point.value < inf or point.radial <= 0.0:
        return point
    best, factor, slope, low, trial = point, 1.0, point.radial, 0.0, 1.0 - Tuning.shrinkage
    for _ in range(Tuning.few_steps):
        there = point.scaled(trial)
        if there.value == 0.0:
            return there
        if there.value >= best.value:  # much too far, perhaps beyond the target
            low, trial = trial, 0.5 * (trial + factor)
            continue
        slope_there = there.radial / trial
        change = (slope - slope_there) / (factor - trial)
        best, factor, slope = there, trial, slope_there
        if not change > 0.0 or slope * slope <= 2.0 * Tuning.rough * best.value * change:
            break
        trial = min(max(factor - slope / change, Tuning.at_once * factor), 1.0)
        if trial <= low:
            trial = 0.5 * (low + factor)
    return best


class _Fragility:
    """The fragility k of a model, with the worst case of its losses.

    `near` is the inverse of the fragility of a model nearby, if one is known.
    """

    def __init__(self, losses_at: Evaluation, target: float, near: float | None = None) -> None:
        self.losses_at = losses_at
        self.parameters = losses_at.parameters
        self._weights = losses_at.objective.rows.weights
        self._target, self._room = target, target - losses_at.penalty
        self._largest = float(losses_at.losses.max())
        self._excess = self._largest - self._room
        # Sums about the largest loss have lost too many digits where the room is small against it.
        self._delicate = self._excess > Tuning.delicate * (target - losses_at.value)
        found = None
        if not self._delicate and self._excess > 0.0:
            guess = near if near is not None and 0.0 < near < inf else self._guess
            found = near_root(self._below, self._weights, self._excess, guess)
        self.inverse = solve([self._group], self._room) if found is None else found

    @property
    def _below(self) -> Floats:
        """Losses less the largest; not kept, as searches hold several points."""
        return self.losses_at.losses - self._largest

    @property
    def _guess(self) -> float:
        """The inverse for normally distributed losses."""
        below = self._below
        mean = float(self._weights @ below)
        variance = float(self._weights @ (below - mean) ** 2)
        return -2.0 * (mean + self._excess) / variance if variance > 0.0 else inf

    @property
    def _group(self) -> Sample:
        return Sample(self.losses_at.losses, weights=self._weights)

    @property
    def value(self) -> float:
        return inf if self.inverse == 0.0 else 1.0 / self.inverse

    @cached_property
    def divergence(self) -> float:
        """KL divergence of the worst case."""
        if self._delicate:
            return self.inverse * SampleEquation([self._group], self._room)(self.inverse).slope
        return self.inverse * (float(self.worst_case @ self._below) + self._excess)

    @cached_property
    def worst_case(self) -> Floats:
        """Weights of the samples in the worst case."""
        tilted: Floats = np.exp(self.inverse * self._below)
        tilted *= self._weights
        tilted /= tilted.sum()
        return tilted

    @cached_property
    def radial(self) -> float:
        """Derivative of k by a factor on the parameters: their product with the gradient."""
        here = self.losses_at
        products = (here.slopes * here.scores).reshape(self._weights.size, -1).sum(axis=1)
        ridge = 2.0 * here.objective.ridge_value(self.parameters)
        return (float(self.worst_case @ products) + ridge) / self.divergence

    def scaled(self, factor: float) -> _Fragility:
        """The same for a multiple of the model."""
        return _Fragility(self.losses_at.scaled(factor), self._target, self.inverse)

    @property
    def curvature_jumps(self) -> bool:
        return self.losses_at.curvature_jumps

    @cached_property
    def _mean_slope(self) -> Floats:
        """Gradient of the losses in the worst case."""
        return self.losses_at.collected(self.worst_case)

    @cached_property
    def gradient(self) -> Floats:
        ridge = self.losses_at.objective.ridge * self.parameters
        return (self._mean_slope + ridge) / self.divergence

    @property
    def model_hessian(self) -> Floats:
        hessian = self.losses_at.moment_hessian(self.worst_case, self._mean_slope, self.value)
        fixed: Floats = self.losses_at.objective.fixed_gauge(hessian)
        return fixed / self.divergence

    @property
    def rough_hessian(self) -> Floats | None:
        hessian = self.losses_at.rough_moment_hessian(self.worst_case, self._mean_slope, self.value)
        return None if hessian is None else hessian / self.divergence


def near_root(below: Floats, weights: Floats, excess: float, near: float) -> float | None:
    r"""The s with :math:`\ln \sum_n a_n e^{s (\ell_n - \max \ell)} + s\,(\max \ell - \tau) = 0`.

    From a guess, by Halley's method; None if it does not come near a root at once. `below` are the
    losses less their maximum, `excess` is the maximum less the target.
    """
    s = near
    if not 0.0 < s < inf:
        return None
    for _ in range(Tuning.few_steps):
        tilted: Floats = np.exp(s * below)
        tilted *= weights
        total = float(tilted.sum())
        tilted *= below
        slope = float(tilted.sum()) / total
        curvature = float(tilted @ below) / total - slope * slope
        point = Point(s, log(total) + s * excess, slope + excess, curvature)
        following = halley_step(point, -1.0)
        if not 0.1 * s < following < 10.0 * s:
            return None
        step, s = abs(following / s - 1.0), following
        if 10.0 * step**3 < EPS:  # the error of a step is of third order in its length
            return s if point.slope > 0.0 else None
    return None
