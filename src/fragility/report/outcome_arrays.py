"""Arrays of answers, as a user gives them, as the cases of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import check_clusters, listed
from .._validation import check_weights
from ..grouping import group_columns
from ..moments import order_one_factor
from ..scores.answers import ANSWERS, Answers, check_answers
from .answer_reading import OutcomeBatch
from .arrays import Groups, case_names, check_names
from .inputs import check_one_cost, named_predictions
from .model_figures import Settings
from .outcomes import report_on_outcomes
from .report import Report

#: Arrays by model; a bare one holds for every model.
ByModel = Mapping[str, ArrayLike] | ArrayLike


class AboutCases(NamedTuple):
    """What else a user says of cases; groups with whether their columns are crossed."""

    sample_weight: ArrayLike | None
    groups: tuple[Groups, bool] | None
    cluster: ArrayLike | None
    names: Sequence[Any] | NDArray[Any] | None


def report_on_arrays(
    correct: ByModel,
    confidences: ByModel,
    declined: ByModel | None,
    about: AboutCases,
    settings: Settings,
) -> Report:
    """Check arrays, which `Report.from_outcomes` describes, and report on them."""
    answers = named_answers(correct, confidences, declined)
    n = next(iter(answers.values())).correct.size
    given = about.sample_weight
    weights = None if given is None else check_weights(given, n)
    if weights is not None:  # only their ratios matter
        weights = weights * order_one_factor(float(weights.max()))
    columns = {}
    if about.groups is not None:
        columns = group_columns(about.groups[0], n, cross=about.groups[1])
    codes = np.stack([part.codes for part in columns.values()], axis=1) if columns else None
    check_names(about.names, n)
    costs, case_costs = settings.costs, None
    if costs is not None:
        check_one_cost(costs)
        costs = costs.checked(2, n, ANSWERS)
        if np.ndim(costs.error_cost) == 1:
            case_costs, costs = costs.error_cost, replace(costs, error_cost=None)
    clusters = check_clusters(about.cluster, n)
    batch = OutcomeBatch(answers, np.arange(n), weights, codes, case_costs, clusters)
    return report_on_outcomes(
        lambda: [batch],
        list(answers),
        replace(settings, costs=costs),
        groups={name: part.names for name, part in columns.items()},
        weighted=weights is not None,
        clustered=clusters is not None,
        name_cases=partial(case_names, about.names),
        hold=inf,
    )


def named_answers(
    correct: ByModel, confidences: ByModel, declined: ByModel | None
) -> dict[str, Answers]:
    """Checked answers by model, all to the same cases; bare arrays hold for every model."""
    sure = named_predictions(confidences, "confidences")
    right, left_out = (
        _by_model(part, list(sure), name)
        for part, name in ((correct, "correct"), (declined, "declined"))
    )
    named = isinstance(confidences, Mapping)
    found = {
        name: check_answers(right[name], part, left_out[name], name if named else "")
        for name, part in sure.items()
    }
    sizes = {name: part.correct.size for name, part in found.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name!r}: {size}" for name, size in sizes.items())
        raise ValueError(
            f"The models have different numbers of cases ({told}); they are compared on the same "
            "cases: give an entry for each, and say in declined which were not answered."
        )
    if not next(iter(sizes.values())):
        raise ValueError("correct is empty; give at least one right and one wrong answer.")
    return found


def _by_model(given: ByModel | None, models: Sequence[str], what: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(models, given)
    if set(given) != set(models):
        raise ValueError(
            f"{what} is of {listed(given)}, but the confidences are of {listed(models)}: give both "
            "for the same models."
        )
    return dict(given)
