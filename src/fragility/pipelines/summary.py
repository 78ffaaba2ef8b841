"""The findings of a training, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, log_loss

from .._typing import Floats, Intercept
from .._validation import check_labelled_scores
from ..ambiguity import Ambiguity, Wasserstein
from ..certificates import Certificate
from ..figures.tails import error_tails
from ..index.errors import RankingErrors

#: Every pair of classes has an AUC: with more classes than this it takes too long.
_MOST_PAIRED = 50


@dataclass(frozen=True, repr=False)
class TrainingSummary:
    """What `train_pipeline` found; no row of the data can be read from it.

    Attributes
    ----------
    n_samples, n_dropped : int
        Rows that were used, and rows left out for missing values.
    n_features, n_inputs : int
        Columns that are used, and what the classifier sees of them: one number for each level of a
        categorical column.
    numeric : tuple of str
    categorical : dict of str to int
        Numbers of levels.
    constant : tuple of str
        Columns left out, since they have one value only.
    imputed : dict of str to int
        Missing values that were filled in, by column.
    classes : tuple of (label, int)
        Classes with the numbers of their samples.
    method, loss, ambiguity : str
    target, erm_loss : float or None
        Acceptable loss, and the lowest loss that any model reaches.
    target_origin : str
        How cross-validation found the target, in words; empty if it was given otherwise.
    fragility : float or None
        The k of the model, in `units`; None for ``method="erm"``.
    units, guarantee : str
        What k means, in words.
    certificate : tuple of (name, value, meaning)
    auc, log_loss, accuracy : float or None
        Of the training data: better than they will be on new ones. No AUC beyond 50 classes.
    noise : dict of str to float
        Measurement errors that new data will have, by column and in its units, as given.
    notes : tuple of str
        What deserves a second look.
    """

    n_samples: int
    n_dropped: int
    n_features: int
    n_inputs: int
    numeric: tuple[str, ...]
    categorical: dict[str, int]
    constant: tuple[str, ...]
    imputed: dict[str, int]
    classes: tuple[tuple[Any, int], ...]
    method: str
    loss: str
    ambiguity: str | None
    target: float | None
    target_origin: str
    erm_loss: float | None
    fragility: float | None
    units: str
    guarantee: str
    certificate: tuple[tuple[str, str, str], ...]
    auc: float | None
    log_loss: float
    accuracy: float
    noise: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields, as numbers, text, lists and dicts."""
        found = asdict(self)
        found["classes"] = [{"class": label, "count": count} for label, count in self.classes]
        found["certificate"] = [list(row) for row in self.certificate]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
        }

    def _rows(self) -> list[tuple[str, str]]:
        dropped = f", {self.n_dropped} dropped for missing values" if self.n_dropped else ""
        rows = [
            ("samples", f"{self.n_samples}{dropped}"),
            ("classes", ", ".join(f"{label!r}: {count}" for label, count in self.classes)),
            ("numeric", ", ".join(self.numeric) or "none"),
            ("categorical", _counted(self.categorical) or "none"),
            ("inputs", f"{self.n_inputs} of {self.n_features} columns"),
        ]
        if self.constant:
            rows.append(("left out", f"{', '.join(self.constant)} (one value only)"))
        if self.imputed:
            rows.append(("filled in", _counted(self.imputed)))
        if self.noise:
            errors = ", ".join(f"{name} ± {sigma:g}" for name, sigma in self.noise.items())
            rows.append(("new data have", f"measurement errors of {errors}, else none"))
        if self.target_origin:
            rows.append(("target", self.target_origin.removeprefix("target ")))
        if self.fragility is not None:
            rows += [("fragility k", f"{self.fragility:.6g} {self.units}")]
        rows.append(("guarantee", self.guarantee))
        figures = [f"log-loss {self.log_loss:.4g}", f"accuracy {self.accuracy:.4g}"]
        if self.auc is not None:
            figures.insert(0, f"AUC {self.auc:.4g}")
        rows.append(("training data", f"{', '.join(figures)} (new data may well be worse)"))
        return rows + [("note", note) for note in self.notes]

    def __repr__(self) -> str:
        head = f"{self.method}, {self.loss}" + (f", {self.ambiguity}" if self.ambiguity else "")
        return "\n".join([head, *(f"{name:<16} {text}" for name, text in self._rows())])


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def units_of(ambiguity: Ambiguity, has_levels: bool, fit_intercept: Intercept) -> str:
    """What a unit of distance is, for columns that are standardised or one-hot."""
    if not isinstance(ambiguity, Wasserstein):
        return "per nat of change in the weights of the samples"
    text = "per unit of shift, which is one standard deviation of a numeric column"
    if ambiguity.noise is not None:
        text = f"per unit of shift, which is {ambiguity.unit}"
        if has_levels:
            text += "; an indicator of a level is a feature, too, measured exactly"
    elif has_levels:
        # A sample that changes its level changes two indicators, each by one.
        price = {1: "2", 2: "√2", inf: "1"}[ambiguity.norm]
        text += f"; another level of a categorical column is a shift of {price}"
    if ambiguity.moves_labels:
        text += f", another label one of {ambiguity.label_cost:g}"
    if fit_intercept == "priced":
        text += "; the constant of the priced intercept may shift, too"
    return text


def guarantee_of(certificate: Certificate | None) -> str:
    """The certificate in a sentence."""
    if certificate is None:
        return "none: trained for the lowest loss on these data"
    if certificate.fragility == inf:
        return f"none: {certificate.target:.4g} is exceeded by the smallest shift"
    within = f" of up to {certificate.radius:g}" if certificate.radius < inf else ""
    ambiguity = certificate.ambiguity
    noise = ambiguity.noise_distance if isinstance(ambiguity, Wasserstein) else 0.0
    known = 0.0 < noise <= certificate.radius
    example = noise if known else min(0.1, certificate.radius)
    why = ", as far as the measurement errors alone move the data" if known else ""
    return (
        f"after a shift of d{within} the mean loss is at most {certificate.target:.4g} + "
        f"{certificate.fragility:.4g} d, such as {certificate.violation_bound(example):.4g} at "
        f"d = {example:.4g}{why}"
    )


def training_figures(
    labels: NDArray[Any], classes: NDArray[Any], probabilities: Floats, weights: Floats | None
) -> dict[str, Any]:
    """AUC, log-loss and accuracy of probabilities, one column for each class."""
    auc = None
    if classes.size <= _MOST_PAIRED:
        data = check_labelled_scores(labels, probabilities, classes.tolist(), None, weights)
        with np.errstate(over="ignore", under="ignore"):
            auc = float(np.mean([t.auc for t, _ in error_tails(RankingErrors(data), "ovo")]))
    return {
        "auc": auc,
        "log_loss": float(log_loss(labels, probabilities, labels=classes, sample_weight=weights)),
        "accuracy": float(
            accuracy_score(labels, classes[probabilities.argmax(axis=1)], sample_weight=weights)
        ),
    }
