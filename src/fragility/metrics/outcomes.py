"""Labels and scores as what happened and what did not: the door of the evidence functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._labels import check_clusters, listed
from .._parameters import check_confidence, require
from .._typing import Floats, Integers, Labels, Mask
from .._validation import LabelledScores, check_labelled_probabilities, check_labelled_scores
from ..figures.confidence import outcome_atoms, predictions, score_atoms
from ..figures.prevalence import at_prevalence
from ..figures.reliability import Forecasts
from ..moments import order_one_factor
from ..scores.atoms import Atoms


class Outcomes(NamedTuple):
    """Atoms of what did not happen and of what did.

    Attributes
    ----------
    others, happened : Atoms
        At the prevalence that was asked for.
    prevalence : float
        Share of the weight that happened.
    as_given : (float, float)
        Weight of the others and of what happened in the data, over that of these atoms.
    data : LabelledScores
    """

    others: Atoms
    happened: Atoms
    prevalence: float
    as_given: tuple[float, float]
    data: LabelledScores

    @property
    def forecasts(self) -> Forecasts:
        """Both kinds together, by score."""
        return Forecasts.of(self.happened, self.others)


def probability_outcomes(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: Labels,
    pos_label: Any,
    sample_weight: ArrayLike | None,
    prevalence: float | None = None,
) -> Outcomes:
    """Two classes: the positive one happens or not; several: the predicted one does."""
    data = check_labelled_probabilities(
        y_true, y_score, labels, pos_label, sample_weight, name="y_score"
    )
    if data.is_binary:
        atoms = score_atoms(data)
        return _at(data, atoms[1 - data.positive], atoms[data.positive], prevalence)
    require(
        prevalence is None,
        f"prevalence is the share of the positive class of two; there are {data.labels.size} "
        f"classes ({listed(data.labels)}).",
    )
    others, happened = outcome_atoms(predictions(data))
    return _at(data, others, happened, None)


def two_class_outcomes(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: Labels,
    pos_label: Any,
    sample_weight: ArrayLike | None,
    prevalence: float | None = None,
    *,
    probabilities: bool = False,
    presence: bool = False,
) -> Outcomes:
    """Scores of two classes; `presence` says that both must have samples."""
    check = check_labelled_probabilities if probabilities else check_labelled_scores
    options = {"name": "y_score", "presence": presence}
    data = check(y_true, y_score, labels, pos_label, sample_weight, **options)  # type: ignore[arg-type]
    require(
        data.is_binary,
        f"This is a figure of two classes; there are {data.labels.size} ({listed(data.labels)}). "
        "Give one class against the others: y_true == label, and the column of that class.",
    )
    atoms = score_atoms(data)
    return _at(data, atoms[1 - data.positive], atoms[data.positive], prevalence)


def _at(data: LabelledScores, others: Atoms, happened: Atoms, prevalence: float | None) -> Outcomes:
    if prevalence is not None:
        prevalence = check_confidence(prevalence, "prevalence", such_as="0.05")
        require(
            others.weight.size and happened.weight.size,
            "prevalence weighs the classes against each other, but only one has samples (of "
            "positive weight).",
        )
    weighed = at_prevalence(others, happened, prevalence)
    unit = 1.0 if data.weights is None else order_one_factor(float(data.weights.max()))
    given = [
        1.0 if before is after else float(before.weight.sum()) / float(after.weight.sum())
        for before, after in zip((others, happened), weighed[:2], strict=True)
    ]
    return Outcomes(*weighed, (given[0] / unit, given[1] / unit), data)


class CaseOutcomes(NamedTuple):
    """The same case by case, of positive weight: score, whether it happened, and weight."""

    score: Floats
    happened: Mask
    weight: Floats

    @classmethod
    def of(cls, found: Outcomes) -> CaseOutcomes:
        """Cases of atoms, weighed as these are."""
        made, data = predictions(found.data), found.data
        if not data.is_binary:
            return cls(made.confidence, ~made.wrong, made.weights_or_ones)
        yes = data.codes[made.rows] == data.positive
        weight = made.weights_or_ones.copy()
        for part, atoms in ((yes, found.happened), (~yes, found.others)):
            if part.any():
                weight[part] *= float(atoms.weight.sum()) / float(weight[part].sum())
        return cls(data.scores[made.rows].astype(np.float64), yes, weight)


def checked_clusters(cluster: ArrayLike, data: LabelledScores) -> Integers:
    """Number of the cluster of each case of positive weight."""
    codes = check_clusters(cluster, data.codes.size)
    assert codes is not None
    found: Integers = codes[predictions(data).rows]
    return found
