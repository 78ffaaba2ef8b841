r"""Robust satisficing under KL ambiguity: the model of the smallest fragility.

For a model :math:`\theta` the fragility at target :math:`\tau` is the root :math:`k(\theta)` of

.. math:: f(\theta, k) = k \ln \sum_n a_n e^{\ell_n(\theta) / k} + R(\theta) = \tau ,

the Fragility Index of its losses. It is quasi-convex in :math:`\theta`, so we go down on it
directly: a Newton step on :math:`f(\cdot, k)` at the present k, its length chosen by
:math:`k(\theta)` itself. As :math:`\partial f / \partial k = -D`, the KL divergence of the worst
case, k falls by the fall of f over D.
"""

from __future__ import annotations

from functools import cached_property
from math import inf

from .._typing import Floats
from ..index.root import SampleEquation, solve
from ..moments import Sample
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Found
from .newton import Curvature, minimise

#: The fragility is settled when its error is this share of the tolerance. Errors of coefficients
#: are as its root, so they have digits, too.
_SETTLED, _ROUNDING = 1e-3, 1e-13
#: The same where one more step is taken without evaluation: it gains more than the difference.
_UNSEEN = 1e-2


def satisfice(
    objective: Objective,
    target: float,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    curvature: Curvature | None = None,
) -> Found:
    """Least fragile model whose penalised mean loss meets the target.

    `start` must meet it with room to spare, as the minimiser of the mean loss does. The fragility
    is 0, and the search ends, when no loss of a model exceeds the target. `curvature` comes from a
    search that ended nearby. Then the last step is taken without an evaluation, which would only
    confirm it.
    """
    unseen = curvature is not None
    found = minimise(
        lambda parameters: _Fragility(objective.at(parameters), target),
        start,
        tol=max((_UNSEEN if unseen else _SETTLED) * tol, _ROUNDING),
        max_iter=max_iter,
        stop=lambda point: point.value in (0.0, inf),
        curvature=curvature,
    )
    k = found.point.value
    converged = k == 0.0 or (found.gap <= tol * k < inf)
    point = found.point.losses_at
    if unseen and found.converged and found.curvature is not None:
        point = objective.at(point.parameters + found.curvature.step(found.point.gradient))
    return Found(point, k, found.gap, found.iterations, converged, found.curvature)


class _Fragility:
    """The fragility k of a model, with the worst case of its losses."""

    def __init__(self, losses_at: Evaluation, target: float) -> None:
        self.losses_at = losses_at
        self.parameters = losses_at.parameters
        self._group = Sample(losses_at.losses, weights=losses_at.objective.rows.weights)
        self._room = target - losses_at.penalty
        self._inverse = solve([self._group], self._room)

    @property
    def value(self) -> float:
        return inf if self._inverse == 0.0 else 1.0 / self._inverse

    @cached_property
    def divergence(self) -> float:
        """KL divergence of the worst case."""
        return self._inverse * SampleEquation([self._group], self._room)(self._inverse).slope

    @cached_property
    def worst_case(self) -> Floats:
        """Weights of the samples in the worst case."""
        return self._group.tilted_weights(self._inverse)

    @property
    def curvature_jumps(self) -> bool:
        return self.losses_at.curvature_jumps

    @cached_property
    def gradient(self) -> Floats:
        return self.losses_at.gradient_under(self.worst_case) / self.divergence

    @property
    def model_hessian(self) -> Floats:
        hessian = self.losses_at.moment_hessian(self.worst_case, self.value)
        return self.losses_at.objective.fixed_gauge(hessian) / self.divergence
