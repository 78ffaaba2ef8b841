"""Empirical risk minimisation: the lowest penalised mean loss, which targets start from."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Mask
from ..programs.gram import weighted_gram
from ..programs.objective import Evaluation, Objective
from .corners import lowest_loss, shortest_meeting, smallest_largest_loss
from .newton import Curvature, minimise
from .searching import Search
from .tuning import LowestLoss as Tuning


class RiskMinimum(NamedTuple):
    """Where a search ended.

    `loss` is the infimum: the loss of `point`, or 0 if the data are `separable`. In that case
    `point` separates all classes, and the infimum may be `attained` further out, as for hinges.
    """

    point: Evaluation
    curvature: Curvature | None
    loss: float
    iterations: int
    converged: bool
    separable: bool = False
    attained: bool = True

    @classmethod
    def zero(cls, point: Evaluation, iterations: int, attained: bool) -> RiskMinimum:
        """The minimum of separable data, with a model that separates them."""
        return cls(point, None, 0.0, iterations, True, True, attained)


def accuracy_of_minimum(tol: float) -> float:
    """How near to its minimum the loss is brought.

    Targets are relative to this minimum: an error would be taken for room to give up. Errors of
    coefficients are as the root of the error of the loss.
    """
    return min(1e-4 * tol, 1e-8)


def erm(
    objective: Objective,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    curvature: Curvature | None = None,
    rough: bool = False,
) -> Search[RiskMinimum]:
    """Minimise the penalised mean loss; separable data end the search without a minimum.

    `curvature` is a curvature near the start, if one is known; `rough` says that nobody needs an
    accurate one at the end.
    """
    if not objective.is_smooth:
        return (yield from _with_corners(objective, start, tol, max_iter))
    few = max(Tuning.least_sample, Tuning.rows_per_parameter * objective.size)
    point = objective.at(start)
    if objective.rows.y.size >= Tuning.worth_it * few and not start.any():
        sample = minimise(objective.sampled(few).at, start, tol=Tuning.rough, max_iter=8)
        there = objective.at(sample.point.parameters)
        if there.value < point.value:
            point, curvature = there, sample.curvature
    stop = _separates if objective.alpha == 0.0 else None
    found = minimise(
        objective.at,
        point,
        tol=tol,
        max_iter=max_iter,
        stop=stop,
        curvature=curvature,
        rough=rough,
    )
    if not found.converged and objective.alpha == 0.0 and _separates(found.point):
        smallest = found.point.least_margin
        far = objective.at(found.point.parameters * (Tuning.far / smallest))
        if far.value == 0.0:
            near = objective.at(found.point.parameters * (Tuning.near / smallest))
            return RiskMinimum.zero(found.point, found.iterations, near.value == 0.0)
        found = minimise(objective.at, found.point, tol=tol, max_iter=max_iter)
    return RiskMinimum(
        found.point, found.curvature, found.point.value, found.iterations, found.converged
    )


def _with_corners(
    objective: Objective, start: Floats, tol: float, max_iter: int
) -> Search[RiskMinimum]:
    """`erm` where the loss or the penalty has corners."""
    loss = objective.loss
    smooth = replace(objective, loss=loss.softened() or loss, lasso=0.0)
    soft = yield from erm(smooth, start, tol=Tuning.rough, max_iter=max_iter)
    near, steps = objective.at(soft.point.parameters), soft.iterations
    if soft.separable and not objective.is_penalised and not loss.zero_from_some_margin:
        return RiskMinimum.zero(near, steps, attained=False)
    near = _not_too_far(near)
    found = yield from lowest_loss(objective, near.parameters, tol=tol, max_iter=max_iter)
    point, steps = objective.at(found.parameters), steps + found.iterations
    nothing = Tuning.zero * objective.at(np.zeros(objective.size)).value
    if not objective.is_penalised and point.value <= nothing and _separates(point):
        return RiskMinimum.zero(point, steps, attained=True)
    return RiskMinimum(point, None, point.value, steps, found.converged)


def _not_too_far(point: Evaluation) -> Evaluation:
    """The model, or a better one found by halving its parameters."""
    while True:
        shorter = point.objective.at(0.5 * point.parameters)
        if not shorter.value < point.value:
            return point
        point = shorter


def descend_below(
    objective: Objective, start: Floats, level: float, *, max_iter: int
) -> Evaluation:
    """A model whose penalised mean loss is at most `level`, if there is one."""
    return minimise(
        objective.at,
        start,
        tol=0.0,
        max_iter=max_iter,
        stop=lambda point: point.value <= level,
    ).point


def separating_model(
    objective: Objective, minimum: RiskMinimum, *, tol: float, max_iter: int
) -> Search[Evaluation]:
    """A model of separable data: the shortest of zero loss, or one of almost zero loss."""
    if minimum.attained:
        point = yield from _shortest_separation(objective, minimum.point, max_iter=max_iter)
        return objective.at(point.parameters)  # without the vanishing penalty
    level = tol * objective.at(np.zeros(objective.size)).value
    return descend_below(objective, minimum.point.parameters, level, max_iter=max_iter)


def _shortest_separation(
    objective: Objective, start: Evaluation, *, max_iter: int
) -> Search[Evaluation]:
    """The model of zero loss and nearly the least norm: the minimiser under a vanishing penalty."""
    smallest = start.least_margin
    if not objective.is_smooth:
        ample = start.parameters * (2.0 / smallest)
        found = yield from shortest_meeting(objective, 0.0, ample, tol=1e-6, max_iter=max_iter)
        return objective.at(found.parameters)
    coef, _ = objective.split(start.parameters / smallest)
    squared = float(((coef / objective.rows.scale) ** 2).sum())
    trivial = objective.at(np.zeros(objective.size)).value
    penalised = replace(objective, alpha=1e-9 * trivial / squared)
    return minimise(penalised.at, start.parameters, tol=1e-6, max_iter=max_iter).point


def trivial_model(objective: Objective, fixed: Mask, *, max_iter: int) -> Search[Evaluation]:
    """Best model of the features that cannot shift, `fixed` (d,), and the intercept."""
    rows = objective.rows
    kept = np.flatnonzero(fixed)
    if kept.size == 0 and not rows.fit_intercept:
        return objective.at(np.zeros(objective.size))
    few = replace(rows, X=rows.X[:, kept], scale=rows.scale[kept], centre=rows.centre[kept])
    if kept.size == 0:  # one row per class is enough
        shares = np.bincount(rows.y, rows.weights, rows.n_classes)
        known = objective.loss.best_constant(shares / shares.sum())
        if known is not None:
            scores = known[1:] - known[:1] if objective.n_outputs == 1 else known - known.mean()
            return objective.at(objective.join(np.zeros((scores.size, rows.X.shape[1])), scores))
        few = replace(few, X=np.empty((rows.n_classes, 0)), y=np.arange(rows.n_classes))
        few = replace(few, weights=shares / shares.sum())
    restricted = replace(objective, rows=few)
    found = yield from erm(restricted, np.zeros(restricted.size), tol=1e-14, max_iter=max_iter)
    parameters = found.point.parameters
    if found.separable:  # the loss is zero far enough out
        parameters = parameters * (Tuning.far / found.point.least_margin)
    some, intercept = restricted.split(parameters)
    coef = np.zeros((objective.n_outputs, rows.X.shape[1]))
    coef[:, kept] = some
    return objective.at(objective.join(coef, intercept))


def same_for_all_labels(objective: Objective, *, max_iter: int) -> Search[Evaluation]:
    """The model of no features whose loss is least where every sample has its worst label."""
    rows, zero = objective.rows, objective.at(np.zeros(objective.size))
    if objective.loss.pair_cost is None or not rows.fit_intercept:
        return zero  # classes are alike
    every = np.arange(rows.n_classes)
    few = replace(rows, X=np.empty((every.size, 0)), y=every, scale=rows.scale[:0])
    few = replace(few, centre=rows.centre[:0], weights=np.full(every.size, 1.0 / every.size))
    constant = replace(objective, rows=few)
    start = np.zeros(constant.size)
    found = yield from smallest_largest_loss(constant, start, tol=1e-12, max_iter=max_iter)
    coef = np.zeros((objective.n_outputs, rows.X.shape[1]))
    point = objective.at(objective.join(coef, constant.split(found.parameters)[1]))
    return point if found.converged else zero


def least_norm_equivalent(objective: Objective, parameters: Floats) -> Floats:
    """Parameters of the same scores whose coefficients in the user's units are shortest."""
    rows = objective.rows
    gram = weighted_gram(rows.X, rows.weights, rows.fit_intercept)
    curvatures, directions = np.linalg.eigh(gram)
    idle = directions[:, curvatures <= 1e-13 * curvatures[-1]]
    lengths = 1.0 / rows.scale
    scaled = idle[: lengths.size] * lengths[:, np.newaxis]
    table = parameters.reshape(objective.n_outputs, -1)
    change = np.linalg.lstsq(scaled, -(table[:, : lengths.size] * lengths).T, rcond=None)[0]
    shorter = objective.at(np.ravel(table + (idle @ change).T))
    # Columns that are nearly equal differ a little: the difference must not be lost.
    moved = np.abs(shorter.scores - objective.at(parameters).scores).max()
    same = moved <= 1e-9 * max(1.0, float(np.abs(shorter.scores).max()))
    return shorter.parameters if same else parameters


def underdetermined(objective: Objective, minimum: RiskMinimum) -> bool:
    """Whether different coefficients may have the same loss."""
    rows = objective.rows
    if objective.is_penalised:
        return False
    if rows.X.shape[0] < rows.X.shape[1] + rows.fit_intercept:
        return True
    if minimum.curvature is not None and not minimum.curvature.singular:
        return False
    return Curvature(weighted_gram(rows.X, rows.weights, rows.fit_intercept)).singular


def _separates(point: Evaluation) -> bool:
    """Whether the model classifies every sample correctly."""
    return point.least_margin > 0.0


class ReferenceModels(NamedTuple):
    """The models that targets lie between: the best one, and the best trivial one.

    A trivial model uses no feature that may shift.
    """

    minimum: RiskMinimum
    trivial: Evaluation
