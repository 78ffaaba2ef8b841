"""The problem that a first reading leaves: coordinates, weights of classes, a sample solved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._models import class_factors
from .._typing import Floats, Indices
from ..ambiguity import KL, Ambiguity, Wasserstein, as_ambiguity
from ..exceptions import TargetError
from ..linear_model import SatisficingClassifier
from ..linear_model.training import Training
from ..losses import as_loss
from ..programs.objective import Objective
from ..programs.rows import TrainingRows, or_one
from ..programs.satisficing import Outcome
from ..solvers.newton import minimise
from ..solvers.searching import result
from .joint_search import Start
from .survey import ClassSurvey, TrainingColumns

#: Parameters at most: a reading holds some tables of their square for each thread.
_MOST_PARAMETERS = 3_000
#: Ridge of the start where the sample has no lowest loss, for features of deviation one.
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved.

    Attributes
    ----------
    classes : list
    factors : ndarray of shape (C,)
        On the weights of the rows of each class.
    objective : Objective
        Without rows, but for one of zeros for each class, weighted by its share.
    given, ambiguity : Ambiguity
        The distance of the user, and that of the features of the objective.
    start : Start
        The sample, solved.
    """

    classes: list[Any]
    factors: Floats
    objective: Objective
    given: Ambiguity
    ambiguity: Ambiguity
    start: Start


def problem_of(
    estimator: Any, columns: TrainingColumns, classes: list[Any], held: list[ClassSurvey]
) -> Problem:
    """The problem of an estimator on the classes of a survey, in their order."""
    totals = np.array([own.weight for own in held])
    labels = np.array(classes)
    factors = np.ones(totals.size)
    if estimator.class_weight is not None:
        places = np.arange(totals.size)
        factors = class_factors(estimator.class_weight, labels, places, totals)
    weights = factors * totals
    if not (weights > 0.0).all():
        raise ValueError(
            "Every class needs a row of positive weight; these classes have none: "
            f"{listed(labels[weights <= 0.0])}. Leave their rows out, or give them weight."
        )
    shares = weights / weights.sum()
    mean = shares @ np.array([own.mean for own in held])
    inside = [own.squares / own.weight + (own.mean - mean) ** 2 for own in held]
    deviation = np.sqrt(shares @ np.array(inside))
    objective = _objective(estimator, labels, shares, mean, deviation)
    if objective.size > _MOST_PARAMETERS:
        raise NotImplementedError(
            f"{columns.n_features} features and {objective.n_outputs} scores are {objective.size} "
            f"parameters; up to {_MOST_PARAMETERS} are supported on data out of memory. Select "
            "features."
        )
    given: Ambiguity = KL()  # which a plain lowest loss does not need
    if isinstance(estimator, SatisficingClassifier):
        # Two rows that are as far apart have the deviations of all rows.
        two = np.stack([-deviation, deviation])
        given = known_distance(as_ambiguity(estimator.ambiguity), two, None, columns)
    ambiguity = given.with_constant() if objective.rows.priced else given
    X, codes, own_weights = sample_of(held)
    start = _solved(estimator, objective, ambiguity, X, codes, own_weights * factors[codes])
    return Problem(classes, factors, objective, given, ambiguity, start)


def known_distance(
    given: Ambiguity, X: Floats, weights: Floats | None, columns: TrainingColumns
) -> Ambiguity:
    """The distance, with the weights of `from_noise` by the deviations of some rows."""
    if isinstance(given, Wasserstein) and given.noise is not None:
        given = given.fitted_to(X, weights, columns.inputs)
    given.fixed(columns.n_features)  # which refuses other numbers of weights
    return given


def sample_of(held: list[ClassSurvey], plain: bool = False) -> tuple[Floats, Indices, Floats]:
    """Rows of the sample, codes and weights: as they are, or of each class what all rows have.

    They are taken out of the survey.
    """
    X = np.concatenate([own.X for own in held])
    for own in held:
        own.X = own.X[:0]  # not twice in memory
    codes = np.repeat(np.arange(len(held)), [own.keys.size for own in held])
    weights = [own.weights for own in held]
    if not plain:
        weights = [own.weights * (own.weight / own.weights.sum()) for own in held]
    return X, codes, np.concatenate(weights)


def _objective(
    estimator: Any, classes: NDArray[Any], shares: Floats, mean: Floats, deviation: Floats
) -> Objective:
    """Penalised mean loss in coordinates that suit the solvers, as `training_rows` has them."""
    intercept, loss = estimator._checked_intercept(), as_loss(estimator.loss)
    free, priced = intercept is True, intercept == "priced"
    centre = mean if free else np.zeros_like(mean)
    scale = or_one(np.sqrt(deviation**2 + (mean - centre) ** 2), np.abs(centre))
    if priced:
        centre, scale = np.append(centre, 0.0), np.append(scale, 1.0)
    C = shares.size
    zeros, codes = np.zeros((C, scale.size)), np.arange(C)
    rows = TrainingRows(zeros, codes, shares, C, centre, scale, free, None, priced)
    return Objective(rows, loss.for_classes(classes), estimator._checked_penalty().ridge)


def _solved(
    estimator: Any,
    whole: Objective,
    ambiguity: Ambiguity,
    X: Floats,
    codes: Indices,
    weights: Floats,
) -> Start:
    """The sample, solved in memory, in the coordinates of all rows."""
    rows = whole.rows
    if rows.priced:
        X = np.column_stack([X, np.ones(len(X))])
    X -= rows.centre
    X *= 1.0 / rows.scale
    few = replace(rows, X=X, y=codes, weights=weights / weights.sum())
    objective = replace(whole, rows=few)
    search = {"solver": "auto", "tol": 1e-6, "max_iter": estimator.max_iter, "say": None}
    training = Training(None, objective, ambiguity, ambiguity, search)
    start = np.zeros(objective.size)
    references = result(training.references(start))
    minimum = references.minimum
    lowest = minimum.point.parameters
    settled = minimum.converged and not minimum.separable
    if not settled:
        even = replace(few, scale=np.ones_like(rows.scale))
        ridged = replace(objective, rows=even, alpha=_RIDGE)
        lowest = minimise(ridged.at, start, tol=1e-6, max_iter=100).point.parameters

    def solve(wanted: dict[str, Any]) -> tuple[Floats, float] | None:
        if not settled:
            return None
        try:
            _, solution = result(training.solve(references, **wanted))
        except TargetError:
            return None
        k = solution.fragility
        if solution.outcome not in (Outcome.SOLVED, Outcome.UNSETTLED) or not k or k == inf:
            return None
        return solution.parameters - lowest, 1.0 / k

    def losses(parameters: Floats) -> tuple[Floats, Floats]:
        return objective.at(parameters).losses, few.weights

    return Start(lowest, solve, losses)
