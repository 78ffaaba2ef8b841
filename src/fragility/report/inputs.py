"""What a report is asked for, checked before the long work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import encode_labels, listed
from .._validation import LabelledScores, check_labelled_probabilities, check_presence
from ..deferral import Costs
from ..measured import FIGURES
from .measuring import Metric

__all__ = [
    "absent_classes",
    "as_costs",
    "check_extra_metrics",
    "check_groups",
    "checked_model",
    "named_predictions",
    "shaped_like",
]


def named_predictions(models: Mapping[str, ArrayLike] | ArrayLike) -> dict[str, ArrayLike]:
    """Models by name; a bare array is one model."""
    if not isinstance(models, Mapping):
        if hasattr(models, "columns") or hasattr(models, "column_names"):
            raise ValueError(
                "models is a data frame: say which columns belong to which model, "
                'such as {"A": frame["a"], "B": frame["b"]}.'
            )
        return {"model": models}
    if not models:
        raise ValueError("models is empty; give at least one, {name: probabilities}.")
    odd = [name for name in models if not isinstance(name, str) or not name.strip()]
    if odd:
        raise ValueError(f"Models are named by text; got {listed(odd)}.")
    return dict(models)


def checked_model(
    name: str, y_true: ArrayLike, proba: ArrayLike, labels: Any, pos_label: Any, weights: Any
) -> LabelledScores:
    """Predictions of a model; what is wrong with them names it."""
    try:
        return check_labelled_probabilities(
            y_true, proba, labels=labels, pos_label=pos_label, sample_weight=weights
        )
    except ValueError as error:
        raise ValueError(f"Model {name!r}: {error}") from None


def absent_classes(data: LabelledScores) -> list[str]:
    """A note on classes without a case; at least two must have some."""
    absent = data.labels[data.support == 0]
    if data.labels.size - absent.size < 2:
        check_presence(data.labels, data.support)
    if not absent.size:
        return []
    return [f"No case of {listed(absent)}: the pairs with these classes are left out."]


def check_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """Name of the group of each case."""
    try:
        names, codes = encode_labels(groups)
    except ValueError as error:
        raise ValueError(str(error).replace("y_true", "groups")) from None
    if codes.size != n:
        raise ValueError(f"groups has {codes.size} entries for {n} samples; give one for each.")
    return np.array([str(name) for name in names.tolist()], dtype=object)[codes]


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


def check_extra_metrics(metrics: Mapping[str, Metric] | None) -> dict[str, Metric]:
    """Functions by name, none of which is that of a figure."""
    extra = dict(metrics or {})
    taken = [name for name in extra if name in FIGURES]
    if taken:
        raise ValueError(f"extra_metrics names figures that are there: {listed(taken)}.")
    odd = [name for name, metric in extra.items() if not callable(metric)]
    if odd:
        raise ValueError(f"extra_metrics must hold functions; these are none: {listed(odd)}.")
    return extra


def shaped_like(proba: ArrayLike, data: LabelledScores) -> NDArray[np.float64]:
    """Calibrated scores in the shape that the user gave."""
    if np.ndim(proba) == 1 or not data.is_binary:
        return data.scores
    columns = [1.0 - data.scores, data.scores]
    if np.shape(proba)[1] == 1:
        return data.scores[:, np.newaxis]
    return np.stack(columns if data.positive == 1 else columns[::-1], axis=1)
