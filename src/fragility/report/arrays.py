"""Arrays of a user as the cases of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import check_clusters, in_rows, is_missing, later_category, listed
from .._validation import LabelledScores
from ..calibration.cross_fitting import CrossFit
from ..deferral import Costs
from ..deferral.reviews import check_one_source
from ..grouping import GroupColumn, group_columns
from ..metrics.displays.estimator import check_can_predict, named_models
from ..moments import order_one_factor
from ..scores.reviews import checked_reviews
from ..scores.state import ScoreState
from .inputs import Metric, checked_model, extra_figures, named_predictions, shaped_like
from .measuring import ExtraFigures
from .mistakes import ArrayCases
from .rereading import CaseNames, CaseRows, Rereading

#: Groups as a user gives them: one column, or several by name.
Groups = Mapping[str, ArrayLike | GroupColumn] | ArrayLike | GroupColumn


@dataclass(frozen=True, eq=False)
class GivenCases:
    """Cases of a report: their state, how to read them again, and what else was said of them.

    `costs` have no `error_cost` where the cases have costs of their own, and no `reviewer_error`
    where these have errors of reviewers of their own.
    """

    state: ScoreState
    costs: Costs | None
    reread: Rereading
    extra: ExtraFigures
    name_cases: CaseNames
    clustered: bool


def given_cases(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike] | ArrayLike,
    *,
    groups: Groups | None,
    cross_groups: bool,
    costs: Costs | None,
    human: ArrayLike | None,
    extra_metrics: Mapping[str, Metric],
    labels: Sequence[Any] | NDArray[Any] | None,
    pos_label: Any,
    sample_weight: ArrayLike | None,
    cluster: ArrayLike | None,
    cases: Sequence[Any] | NDArray[Any] | None,
    random_state: int,
) -> GivenCases:
    """Check arrays, which `Report.from_predictions` describes, and fill a state with them."""
    probabilities = named_predictions(models)
    data = {
        name: checked_model(name, y_true, proba, labels, pos_label, sample_weight)
        for name, proba in probabilities.items()
    }
    first = next(iter(data.values()))
    n, weights = first.codes.size, first.weights
    if weights is not None:  # only their ratios matter
        scaled = weights * order_one_factor(float(weights.max()))
        data = {name: replace(part, weights=scaled) for name, part in data.items()}
    columns = {} if groups is None else group_columns(groups, n, cross=cross_groups)
    group_codes = np.stack([part.codes for part in columns.values()], axis=1) if columns else None
    clusters = check_clusters(cluster, n)
    check_names(cases, n)
    case_costs = errors = None
    if costs is not None:
        costs = costs.checked(first.labels.size, n, first.labels.tolist())  # before the long work
        case_costs = costs.error_cost if np.ndim(costs.error_cost) == 1 else None
        errors = costs.errors_by_case(first.labels.size)
        check_one_source(costs, human is not None)
    reviews = checked_reviews(errors, human, first.labels, n)

    def calibrated_extra(name: str, method: str) -> dict[str, float]:
        fits = CrossFit(data[name], random_state=random_state, method=method)
        found = shaped_like(probabilities[name], fits.calibrated(method))
        return extra_figures(extra_metrics, y_true, found, weights)

    extra: ExtraFigures = {
        name: (
            extra_figures(extra_metrics, y_true, proba, weights),
            partial(calibrated_extra, name),
        )
        for name, proba in (probabilities.items() if extra_metrics else ())
    }
    state = ScoreState(
        first.labels,
        list(data),
        {name: part.names for name, part in columns.items()},
        weights is not None,
        hold=np.inf,
        pos_label=_positive(first),
    )
    state.add_checked(data, group_codes, case_costs, *reviews)
    if case_costs is not None and costs is not None:
        costs = replace(costs, error_cost=None)
    if errors is not None and costs is not None:
        costs = replace(costs, reviewer_error=0.0)
    rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0.0)
    return GivenCases(
        state,
        costs,
        lambda: [
            CaseRows(part, rows, None if clusters is None else clusters[rows])
            for part in state.held
        ],
        extra,
        partial(case_names, cases),
        clusters is not None,
    )


class EstimatorPredictions(NamedTuple):
    """What fitted classifiers predict, by name, for their classes; the positive one, if told."""

    probabilities: dict[str, Any]
    classes: NDArray[Any] | None
    positive: Any


def estimator_predictions(
    estimators: Mapping[str, Any] | Sequence[Any], X: Any, y: ArrayLike
) -> EstimatorPredictions:
    """Predictions of fitted classifiers, which must know the same classes."""
    if not isinstance(estimators, (Mapping, list, tuple)):
        estimators = [estimators]
    named = named_models(estimators)
    classes = None
    for name, estimator in named.items():
        check_can_predict(estimator, name)
        own = np.asarray(estimator.classes_)
        if classes is not None and own.tolist() != classes.tolist():
            raise ValueError(
                f"{name} knows the classes {listed(own)}, another model {listed(classes)}; "
                "models are compared on the same classes."
            )
        classes = own
    positive = None if classes is None else later_category(y, classes)
    probabilities = {name: model.predict_proba(X) for name, model in named.items()}
    return EstimatorPredictions(probabilities, classes, positive)


def _positive(data: LabelledScores) -> Any:
    return data.labels.tolist()[data.positive] if data.is_binary else None


def check_names(cases: Sequence[Any] | NDArray[Any] | None, n_samples: int) -> None:
    """Refuse names of cases that are not one for each."""
    if cases is not None and len(cases) != n_samples:
        raise ValueError(
            f"cases has {len(cases)} entries for {n_samples} samples; give one for each."
        )


def case_names(cases: Sequence[Any] | NDArray[Any] | None, chosen: Sequence[int]) -> dict[int, str]:
    """Names of the cases of some rows: by default the row itself."""
    return {row: str(row if cases is None else cases[row]) for row in chosen}


@dataclass(frozen=True, eq=False)
class PreviousPredictions:
    """Earlier predictions, to tell what is newly confidently wrong.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    models : mapping of str to array-like
        Probabilities of the same models, in the same order of classes.
    cases : sequence of length n_samples
        Name of each case: cases of the same name are the same.
    """

    y_true: ArrayLike
    models: Mapping[str, ArrayLike] | ArrayLike
    cases: Sequence[Any] | NDArray[Any]


def named_cases(
    given: GivenCases,
    cases: Sequence[Any] | NDArray[Any] | None,
    previous: PreviousPredictions,
) -> tuple[ArrayCases, ArrayCases]:
    """These cases and previous ones, with the name of each."""
    if cases is None:
        raise ValueError(
            "previous tells cases apart by their names: give cases=, the name of each, too."
        )
    state = given.state
    labels = state.labels.tolist()
    try:
        old = given_cases(
            previous.y_true,
            previous.models,
            groups=None,
            cross_groups=False,
            costs=None,
            human=None,
            extra_metrics={},
            labels=labels,
            pos_label=labels[state.positive] if state.is_binary else None,
            sample_weight=None,
            cluster=None,
            cases=previous.cases,
            random_state=0,
        )
    except ValueError as error:
        raise ValueError(f"previous: {error}") from error
    for what, part in (("cases", cases), ("previous.cases", previous.cases)):
        missing = np.array([is_missing(name) for name in part], dtype=np.bool_)
        if missing.any():
            raise ValueError(
                f"{what} has missing names in {in_rows(missing)}; to be found in other "
                "predictions, every case needs a name."
            )
    names = [list(map(str, part)) for part in (cases, previous.cases)]
    return (
        ArrayCases(state, given.reread, names[0]),
        ArrayCases(old.state, old.reread, names[1]),
    )
