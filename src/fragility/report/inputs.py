"""Arguments of a report, checked before the long work."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import listed
from .._parameters import check_confidence, check_threshold
from .._typing import Floats
from .._validation import LabelledScores, check_labelled_probabilities
from ..deferral import Costs, PolicySettings
from ..deferral.reviews import check_one_source, measured_rates
from ..deferral.settings import POLICY_PARAMETERS
from ..measured import FIGURES
from ..scores.state import ScoreState
from ..scores.tally import Task
from .model_figures import Settings

#: Figure of labels and probabilities, with `sample_weight=` if it takes that.
Metric = Callable[..., float]


def named_predictions(
    models: Mapping[str, ArrayLike] | ArrayLike, what: str = "models"
) -> dict[str, ArrayLike]:
    """Models by name; a bare array is one model."""
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


def checked_model(
    name: str, y_true: ArrayLike, proba: ArrayLike, labels: Any, pos_label: Any, weights: Any
) -> LabelledScores:
    """Checked predictions of a model; an error names the model."""
    try:
        return check_labelled_probabilities(y_true, proba, labels, pos_label, weights)
    except ValueError as error:
        raise ValueError(f"Model {name!r}: {error}") from None


def as_costs(costs: Costs | Mapping[str, Any] | None) -> Costs | None:
    """Costs from a mapping."""
    if costs is None or isinstance(costs, Costs):
        return costs
    if not isinstance(costs, Mapping):
        raise ValueError(
            f'costs must be a mapping such as {{"error_cost": 10.0}} or Costs; got {costs!r}.'
        )
    known = list(Costs.__dataclass_fields__)
    unknown = [name for name in costs if name not in known]
    if unknown or "error_cost" not in costs:
        wrong = f"has {listed(unknown)}" if unknown else "lacks 'error_cost'"
        raise ValueError(f"costs {wrong}; it may have {listed(known)}, the first of them must be.")
    return Costs(**costs)


def as_policy(policy: PolicySettings | Mapping[str, Any] | None) -> PolicySettings:
    """How policies are chosen, from a mapping of parameters of `fragility.best_policy`."""
    if policy is None:
        return PolicySettings()
    if isinstance(policy, PolicySettings):
        return policy
    unknown = [name for name in policy if name not in POLICY_PARAMETERS]
    if unknown:
        raise ValueError(f"policy has {listed(unknown)}; it may have {listed(POLICY_PARAMETERS)}.")
    return PolicySettings.of(**policy)


def costs_of_state(costs: Costs | None, state: ScoreState) -> Costs | None:
    """Costs that fit the cases; costs of single cases are represented by their mean.

    Errors of reviewers by case are represented by the means of the classes.
    """
    n_classes = state.labels.size
    if state.reviewed:
        check_reviewed(costs)
    if costs is None:
        return None
    if state.answers:
        check_one_cost(costs)
    if state.reviewed:
        costs = replace(costs, reviewer_error=measured_rates(state.reviews, state.reviewed))
    if not state.priced:
        return costs.checked(n_classes, None, state.labels.tolist())
    if costs.error_cost is not None:
        raise ValueError(
            "The cases have costs of their own, and costs has error_cost, too; give one of both "
            "(error_cost=None for the costs of the cases)."
        )
    checked = replace(costs, error_cost=0.0).checked(n_classes, None, state.labels.tolist())
    return replace(checked, error_cost=np.array([state.mean_case_cost]))


def check_reviewed(costs: Costs | None) -> None:
    """Refuse costs that do not go with what cases say of their reviews."""
    if costs is None:
        raise ValueError(
            "human and reviewer_error say nothing without costs: say what an error costs "
            "(costs, --error-cost)."
        )
    check_one_source(costs, measured=True)


def check_one_cost(costs: Costs) -> None:
    """Refuse a matrix of costs, which answers do not have."""
    if np.ndim(costs.error_cost) == 2:
        raise ValueError(
            f"error_cost has shape {np.shape(costs.error_cost)}, a matrix of classes; answers are "
            "right or wrong: give what a wrong one costs, one number or one for each case."
        )


def checked_settings(settings: Settings, state: ScoreState) -> Settings:
    """Settings that fit the cases of a state."""
    costs, policy = costs_of_state(settings.costs, state), settings.policy
    n_classes = state.labels.size
    if costs is None and policy != PolicySettings():
        raise ValueError("policy says nothing without costs: give costs, too.")
    return replace(
        settings,
        costs=costs,
        policy=policy.checked(n_classes, answers=state.answers),
        confident=check_confident(settings.confident, state.task),
        prevalence=check_prevalence(settings.prevalence, n_classes),
    )


def check_confident(level: float, task: Task) -> float:
    """A level of confidence at which sums of cases are exact: one of the grid of thresholds."""
    level, grid = check_threshold(level, "confident"), task.thresholds[1:-1]
    nearest = float(grid[np.abs(grid - level).argmin()])
    if abs(nearest - level) > 1e-12:
        raise ValueError(
            f"confident must be a level that reports count at, from {grid[0]:g} to {grid[-1]:g} in "
            f"round steps; got {level!r}, the nearest is {nearest:g}."
        )
    return nearest


def check_prevalence(prevalence: float | None, n_classes: int) -> float | None:
    """A share of the positive class, between 0 and 1, of two."""
    if prevalence is None:
        return None
    if n_classes > 2:
        raise ValueError(
            f"prevalence is the share of the positive class of two; there are {n_classes} classes."
        )
    return check_confidence(prevalence, "prevalence", such_as="0.05")


def check_extra_metrics(metrics: Mapping[str, Metric] | None) -> dict[str, Metric]:
    """Functions by name; no name is that of a figure of the report."""
    extra = dict(metrics or {})
    taken = [name for name in extra if name in FIGURES]
    if taken:
        raise ValueError(f"extra_metrics names figures that are there: {listed(taken)}.")
    odd = [name for name, metric in extra.items() if not callable(metric)]
    if odd:
        raise ValueError(f"extra_metrics must hold functions; these are not: {listed(odd)}.")
    return extra


def shaped_like(proba: ArrayLike, data: LabelledScores) -> Floats:
    """Calibrated scores in the shape that the user gave."""
    if np.ndim(proba) == 1 or not data.is_binary:
        return data.scores
    columns = [1.0 - data.scores, data.scores]
    if np.shape(proba)[1] == 1:
        return data.scores[:, np.newaxis]
    return np.stack(columns if data.positive == 1 else columns[::-1], axis=1)


def extra_figures(
    metrics: Mapping[str, Metric], y_true: Any, proba: Any, weights: Floats | None
) -> dict[str, float]:
    """Figures by functions of the user's own."""
    values = {}
    for name, metric in metrics.items():
        options = {}
        if weights is not None:
            try:
                takes_weights = "sample_weight" in inspect.signature(metric).parameters
            except (TypeError, ValueError):  # some builtins have no signature
                takes_weights = False
            if not takes_weights:
                raise ValueError(
                    f"extra_metrics[{name!r}] takes no sample_weight, but weights were given; "
                    "give a function (y_true, proba, sample_weight=...)."
                )
            options["sample_weight"] = weights
        value = metric(y_true, proba, **options)
        try:
            values[name] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"extra_metrics[{name!r}] must return one number; it returned {value!r}."
            ) from None
    return values
