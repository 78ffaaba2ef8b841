"""What may be fitted to data out of memory, and by which columns: refused before any reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._labels import listed
from .._names import did_you_mean
from ..ambiguity import KL, Wasserstein, as_ambiguity
from ..linear_model import ERMClassifier, SatisficingClassifier
from ..losses import as_loss
from ..sources.source import Source
from .survey import TrainingColumns


def why_not(estimator: Any) -> str:
    """Why an estimator is not fitted to data out of memory; nothing if it is."""
    if type(estimator) not in (SatisficingClassifier, ERMClassifier):
        return (
            "fit takes a SatisficingClassifier or an ERMClassifier of this library; got "
            f"{type(estimator).__name__}."
        )
    estimator._check_parameters()
    loss, penalty = as_loss(estimator.loss), estimator._checked_penalty()
    if penalty.lasso > 0.0:
        return with_corners("penalty='l1'", "penalty='l2' or none")
    if not (loss.is_smooth(2) or loss.is_smooth(3)) or not loss.bends:
        return with_corners(repr(loss), "loss='cross_entropy'")
    if isinstance(estimator, ERMClassifier):
        return ""
    ambiguity = as_ambiguity(estimator.ambiguity)
    if type(ambiguity) not in (KL, Wasserstein) or ambiguity.solved_as(loss) is not ambiguity:
        return (
            f"Data out of memory are fitted under KL() and Wasserstein(); got {ambiguity!r}. "
            "Fit a sample in memory."
        )
    if ambiguity.moves_labels:
        return with_corners("a finite label_cost", "label_cost=inf")
    if estimator.radius is not None:
        return with_corners("a ball (radius)", "radius=None")
    if estimator.solver not in ("auto", "newton"):
        return f"solver={estimator.solver!r} needs the rows in memory; give solver='auto'."
    return ""


def with_corners(what: str, instead: str) -> str:
    """Why something with corners is not fitted, and what to give instead."""
    return (
        f"Data out of memory are fitted by smooth programs, and {what} has corners. Give "
        f"{instead}, or fit a sample in memory."
    )


def columns_of(
    source: Source, label: str, features: Sequence[str] | None, weight: str | None
) -> TrainingColumns:
    """The columns to train on, all of which the source has."""
    others = [label] if weight is None else [label, weight]
    if isinstance(features, str):
        raise ValueError(f"features must be a list of columns, such as [{features!r}].")
    names = [n for n in source.column_names if n not in others] if features is None else [*features]
    asked = [*others, *names]
    missing = [name for name in asked if name not in source.column_names]
    if missing:
        hint = did_you_mean(missing, source.column_names, cutoff=0.5)
        raise ValueError(
            f"{source.name} has no column {listed(missing)}. The columns are "
            f"{listed(source.column_names, most=20)}.{hint}"
        )
    twice = {name for name in asked if asked.count(name) > 1}
    if twice:
        raise ValueError(f"Column {listed(sorted(twice))} is named for two things.")
    if not names:
        raise ValueError("There is no feature: the data have the label and the weight alone.")
    return TrainingColumns(label, tuple(names), weight)
