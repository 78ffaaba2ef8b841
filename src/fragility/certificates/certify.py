"""Certificates for users: of any fitted linear classifier, on any samples that it can score."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from .._models import (
    LabelledSamples,
    LinearModel,
    check_labelled_samples,
    check_linear_model,
    class_weighted,
)
from .._parameters import check_not_negative, check_number, check_radius
from .._typing import Floats
from .._validation import column_names
from ..ambiguity import Ambiguity, Wasserstein, as_ambiguity
from ..losses import CrossEntropy, Loss, as_loss
from ..programs.objective import Penalty
from .certificate import Certificate, certificate_of


def certify(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    target: float | None = None,
    loss: str | Loss | None = None,
    ambiguity: str | Ambiguity | None = None,
    penalty: float | None = None,
    radius: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> Certificate:
    r"""What a fitted linear classifier guarantees, on these samples and near them.

    Parameters
    ----------
    model : fitted linear classifier
        With `coef_`, `intercept_` and `classes_`, of this library or of any other. What is not
        given below is read from a model of this library, and its `class_weight` counts.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels, all of them among the classes of the model.
    target : float, optional
        Level :math:`\tau` that the penalised mean loss must meet. Required for other models.
    loss : {"cross_entropy", "smoothed_hinge"} or Loss, optional
        For other models by default cross-entropy.
    ambiguity : {"kl", "wasserstein"} or Ambiguity, optional
        For other models by default ``Wasserstein()``. Deviations that ``Wasserstein.from_noise``
        takes from data are those of the training of such a model, for others those of these
        samples.
    penalty : float, optional
        The value R of the penalty, a number. For other models by default zero.
    radius : float, optional
        Distance from the data up to which the fragility is to hold, positive; inf: however far. By
        default the radius of a model trained inside a ball of the same `ambiguity`, else inf.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fragility.certificates import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> certificate = certify(LogisticRegression(C=0.01).fit(X, y), X, y, target=0.2)
    >>> round(certificate.fragility, 2), round(certificate.violation_bound(0.1), 2)
    (0.9, 0.29)

    Labels that may be wrong, each at the cost of one unit of a feature; no shift beyond 0.1:

    >>> from fragility.ambiguity import Wasserstein
    >>> model, labels_move = LogisticRegression(C=0.01).fit(X, y), Wasserstein(label_cost=1.0)
    >>> certificate = certify(model, X, y, target=0.2, ambiguity=labels_move, radius=0.1)
    >>> round(certificate.fragility, 2), round(certificate.worst_loss(0.1), 2)
    (6.64, 0.74)
    """
    asked = question_of(model, X, y, target, loss, ambiguity, penalty, radius, sample_weight)
    if asked.target is None:
        raise ValueError(
            f"{type(model).__name__} was not trained for a target; give target=, the level that "
            "its mean loss must meet."
        )
    return asked.certificate(asked.target)


class Question(NamedTuple):
    """A model, samples, and what is asked of them: arguments, checked and completed."""

    linear: LinearModel
    samples: LabelledSamples
    loss: Loss
    ambiguity: Ambiguity
    target: float | None
    penalty: float
    radius: float

    def certificate(self, target: float) -> Certificate:
        """The certificate at a target."""
        return certificate_of(
            self.linear,
            self.samples,
            loss=self.loss,
            ambiguity=self.ambiguity,
            target=target,
            penalty=self.penalty,
            radius=self.radius,
        )


def question_of(
    model: Any,
    X: Any,
    y: ArrayLike,
    target: float | None,
    loss: str | Loss | None,
    ambiguity: str | Ambiguity | None,
    penalty: float | None,
    radius: float | None,
    sample_weight: ArrayLike | None,
) -> Question:
    """Arguments of `certify`; what is missing is read from a model of this library."""
    linear = check_linear_model(model)
    samples = check_labelled_samples(model, linear, X, y, sample_weight)
    # SGDClassifier, too, has a loss, a penalty and an alpha, of another meaning.
    trained = hasattr(model, "target_") and hasattr(model, "ambiguity")
    own = trained or type(model).__module__.startswith("fragility.")
    if target is None and trained:
        target = model.target_
    if loss is None:
        loss = model.loss if own else CrossEntropy()
    if radius is None:
        # Not its parameter `radius`: under DRO that is where the loss is least, and no limit of
        # what is promised. A radius means nothing in another distance.
        own_radius = getattr(model, "_certificate_radius", inf) if trained else inf
        radius = own_radius if ambiguity is None else inf
    if ambiguity is None:
        ambiguity = getattr(model, "ambiguity_", model.ambiguity) if trained else Wasserstein()
    if penalty is None:
        # Cross-validation chooses the strength of the penalty: then it is not a parameter.
        alpha = getattr(model, "alpha_", getattr(model, "alpha", 0.0))
        penalty = penalty_of(model.penalty, alpha, linear.inside) if own else 0.0
    penalty = check_not_negative(penalty, "penalty")
    if own and getattr(model, "class_weight", None) is not None:
        given = linear.classes, samples.codes, samples.weights
        samples = replace(samples, weights=class_weighted(model.class_weight, *given))
    names = [name for name in column_names(X) if isinstance(name, str)]
    return Question(
        linear,
        samples,
        as_loss(loss).for_classes(linear.classes),
        as_ambiguity(ambiguity).fitted_to(samples.X, samples.weights, names),
        None if target is None else check_number(target, "target"),
        penalty,
        check_radius(radius),
    )


def penalty_of(penalty: str | None, alpha: float, coef: Floats) -> float:
    """Value of a penalty by name: alpha times the squared or absolute coefficients; None: zero."""
    return Penalty.named(penalty, alpha).of(coef)
