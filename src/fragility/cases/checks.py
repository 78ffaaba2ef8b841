"""The one door for cases in memory: arrays of a user become a checked table, or one sentence.

Everything below takes for granted what is checked here: classes as places in the labels,
probabilities from 0 to 1, positive weights of order one, clusters and groups as whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import check_clusters, listed
from .._typing import Floats, Integers, Labels
from .._validation import LabelledScores, check_labelled_probabilities, check_weights
from ..grouping import GroupColumn, group_columns
from ..moments import order_one_factor
from ..scores.answers import ANSWERS, check_answers
from .cases import Cases

#: One array for each model; a bare array is that of a single model, or holds for all of them.
ByModel = Mapping[str, ArrayLike] | ArrayLike
#: Groups as a user gives them: one column, or several by name.
Groups = Mapping[str, ArrayLike | GroupColumn] | ArrayLike | GroupColumn


@dataclass(frozen=True)
class CaseColumns:
    """What a user says of cases beside labels and predictions.

    Attributes
    ----------
    sample_weight : array-like of shape (n,), optional
    groups : one column of groups, or several by name, optional
    cross_groups : bool
        Whether several columns of groups are crossed, too.
    cluster : array-like of shape (n,), optional
    error_cost, reviewer_error : ndarray of shape (n,), optional
        Checked amounts by case.
    human : ndarray of int of shape (n,), optional
        Checked decisions of humans, as places in the labels.
    """

    sample_weight: ArrayLike | None = None
    groups: Groups | None = None
    cross_groups: bool = True
    cluster: ArrayLike | None = None
    error_cost: Floats | None = None
    reviewer_error: Floats | None = None
    human: Integers | None = None


def cases_of_predictions(
    y_true: ArrayLike,
    models: ByModel,
    columns: CaseColumns | None = None,
    *,
    labels: Labels = None,
    pos_label: Any = None,
) -> Cases:
    """Return the checked table of cases that models predicted probabilities for.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes.
    models : mapping of str to array-like, or array-like
        Probabilities of the positive class, (n,), or of each class, (n, C).
    columns : CaseColumns, optional
    labels : sequence, optional
        The classes in the order of the columns of probabilities; by default sorted.
    pos_label : optional
        Positive class of two; by default the last one.

    Raises
    ------
    ValueError
        In one sentence that names the model and the row at fault and says what to do.
    """
    columns = columns or CaseColumns()
    checked = {
        name: _checked_model(name, y_true, proba, labels, pos_label, columns.sample_weight)
        for name, proba in predictions_by_name(models).items()
    }
    first = next(iter(checked.values()))
    table = Cases(
        first.codes.astype(np.int64),
        {name: np.asarray(data.scores, np.float64) for name, data in checked.items()},
        tuple(first.labels.tolist()),
        first.positive,
    )
    return _with_columns(table, columns, first.weights)


def cases_of_answers(
    correct: ByModel,
    confidences: ByModel,
    abstained: ByModel | None = None,
    columns: CaseColumns | None = None,
) -> Cases:
    """Return the checked table of answers that are right or wrong, each with a confidence.

    Parameters
    ----------
    correct : mapping of str to array-like of shape (n,), or array-like
        Whether each answer of each model is right.
    confidences : mapping of str to array-like of shape (n,), or array-like
        Probability that each answer is right.
    abstained : mapping of str to array-like, or array-like, optional
        Cases that a model did not answer.
    columns : CaseColumns, optional
    """
    columns = columns or CaseColumns()
    by_name = predictions_by_name(confidences, "confidences")
    right = _by_model(correct, list(by_name), "correct")
    declined = _by_model(abstained, list(by_name), "declined")
    truth, scores = {}, {}
    for name, confidence in by_name.items():
        shown = name if isinstance(confidences, Mapping) else ""
        answers = check_answers(right[name], confidence, declined[name], shown)
        truth[name] = answers.correct
        scores[name] = np.where(answers.answered, answers.confidence, np.nan)
    sizes = {name: column.size for name, column in truth.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name!r}: {size}" for name, size in sizes.items())
        raise ValueError(
            f"The models have different numbers of cases ({shown}); they are compared on the same "
            "cases: give an entry for each, and say in declined which were not answered."
        )
    n = next(iter(sizes.values()))
    if not n:
        raise ValueError("correct is empty; give at least one right and one wrong answer.")
    weight = None if columns.sample_weight is None else check_weights(columns.sample_weight, n)
    return _with_columns(Cases(truth, scores, ANSWERS), columns, weight)


def predictions_by_name(models: ByModel, what: str = "models") -> dict[str, ArrayLike]:
    """Return predictions by the name of the model; a bare array is one model."""
    if not isinstance(models, Mapping):
        if hasattr(models, "columns") or hasattr(models, "column_names"):
            raise ValueError(
                f"{what} is a data frame: say which columns belong to which model, "
                'such as {"A": frame["a"], "B": frame["b"]}.'
            )
        return {"model": models}
    if not models:
        raise ValueError(f"{what} is empty; give at least one, {{name: probabilities}}.")
    odd = [name for name in models if not isinstance(name, str) or not name.strip()]
    if odd:
        raise ValueError(f"Models are named by text; got {listed(odd)}.")
    return dict(models)


def _checked_model(
    name: str, y_true: ArrayLike, proba: ArrayLike, labels: Labels, pos_label: Any, weights: Any
) -> LabelledScores:
    try:
        return check_labelled_probabilities(y_true, proba, labels, pos_label, weights)
    except ValueError as error:
        raise ValueError(f"Model {name!r}: {error}") from None


def _by_model(columns: ByModel | None, models: list[str], what: str) -> dict[str, Any]:
    if not isinstance(columns, Mapping):
        return dict.fromkeys(models, columns)
    if set(columns) != set(models):
        raise ValueError(
            f"{what} is of {listed(columns)}, but the confidences are of {listed(models)}: give "
            "both for the same models."
        )
    return dict(columns)


def _with_columns(table: Cases, columns: CaseColumns, weight: Floats | None) -> Cases:
    """Return the table with all that is said of cases, without those of no weight."""
    n = table.n
    by_column = {}
    if columns.groups is not None:
        by_column = group_columns(columns.groups, n, cross=columns.cross_groups)
    clusters = check_clusters(columns.cluster, n)
    if weight is not None:  # only the ratios of weights matter
        weight = weight * order_one_factor(float(weight.max()))
    full = Cases(
        table.y,
        table.scores,
        table.labels,
        table.positive,
        weight=weight,
        cluster=clusters,
        groups={name: column.codes.astype(np.int64) for name, column in by_column.items()},
        group_names={name: column.names for name, column in by_column.items()},
        error_cost=columns.error_cost,
        reviewer_error=columns.reviewer_error,
        human=columns.human,
    )
    if weight is None or weight.all():
        return full
    return full.take(weight > 0.0)
