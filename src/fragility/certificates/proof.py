"""Whether a model is the least fragile one that meets its target: a proof by a plane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._summary import Summary, SummaryRow
from .._typing import Floats, Intercept
from ..ambiguity import Transport
from ..losses import LipschitzLoss
from ..programs.objective import Objective, Penalty
from ..programs.rows import training_rows
from ..programs.satisficing import RobustProgram
from ..solvers import transport
from ..solvers.multipliers import multipliers_of
from ..solvers.robust import worst_penalised
from .certify import question_of

#: A share of the fragility that is rounding, and the tolerance of a fit.
_PROVED = 1e-6


@dataclass(frozen=True, repr=False)
class OptimalityProof(Summary):
    """What no linear model that meets the target can fall below.

    Made by `prove`.

    Attributes
    ----------
    lower : float
        Every linear model whose penalised mean loss on these samples meets the target is at least
        this fragile.
    upper : float
        How fragile the model is; infinite if it misses the target.
    target : float
    critical_distance : float
        Distance from the data at which the lower bound is the least worst-case loss less the
        target, per unit; NaN if there is none.
    """

    lower: float
    upper: float
    target: float
    critical_distance: float

    @property
    def gap(self) -> float:
        """By which share of its fragility the model may be above the least one."""
        return 0.0 if self.upper == 0.0 else 1.0 - self.lower / self.upper

    @property
    def proved(self) -> bool:
        """Whether the model is the least fragile one, to a share of 1e-6."""
        return self.gap <= _PROVED

    def _rows(self) -> Iterator[SummaryRow]:
        yield "fragility k", f"{self.upper:.6g}", f"of the model at target {self.target:.6g}"
        note = "of every linear model that meets the target"
        if self.lower == 0.0 < self.upper:
            note = "nothing is known of other models: the model is too far from the least fragile"
        yield "at least", f"{self.lower:.6g}", note
        note = "the model is the least fragile one, but for rounding"
        if not self.proved:
            note = "of the fragility, at most, could be saved by another linear model"
        # What rounding leaves no two machines share.
        yield "gap", "0" if self.proved else f"{self.gap:.1e}", note


def prove(
    model: Any, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> OptimalityProof:
    r"""Prove that a fitted model is the least fragile one at its target.

    The loss is convex, so a plane that touches it lies below it everywhere: with k the fragility of
    any linear model, its robust loss is at least :math:`c - r k`. If it meets the target
    :math:`\tau`, then :math:`k \ge (c - \tau) / r`. Nothing of that is taken from the solver: the
    plane is computed here, from data and coefficients, and the bound holds whatever the model is.
    It is tight at the least fragile model, with r the critical distance.

    Parameters
    ----------
    model : fitted SatisficingClassifier, SatisficingClassifierCV or DROClassifier
        One of a ``radius`` is not proved; a DROClassifier is least fragile at its `target_`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples that it was fitted to.
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
        As in training; `class_weight` is the model's own.

    Returns
    -------
    OptimalityProof

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fragility import SatisficingClassifier
    >>> from fragility.certificates import prove
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SatisficingClassifier("hinge", slack=0.1).fit(scale(X), y)
    >>> prove(model, scale(X), y).proved
    True
    """
    if not (hasattr(model, "target_") and hasattr(model, "ambiguity_")):
        raise ValueError(
            f"{type(model).__name__} was not trained for a target; give a fitted "
            "SatisficingClassifier, of which it can be proved that no model is less fragile."
        )
    asked = question_of(model, X, y, None, None, None, None, None, sample_weight)
    if asked.radius < inf:
        raise ValueError(
            f"The model promises nothing beyond radius={asked.radius:g}, and a proof is about all "
            "distances; fit it without radius, or DROClassifier with it."
        )
    if isinstance(asked.loss, LipschitzLoss):
        raise NotImplementedError(
            f"The fragility of {asked.loss!r} is an upper bound, and a proof is about fragilities "
            "themselves; give a loss of the library or a PiecewiseLinear."
        )
    certificate = asked.certificate(model.target_)
    k, linear = certificate.fragility, asked.linear
    if not 0.0 < k < inf:
        return OptimalityProof(0.0, k, model.target_, nan)
    intercept: Intercept = "priced" if linear.priced else bool(model.fit_intercept)
    samples = asked.samples.X, asked.samples.codes, linear.classes.size, asked.samples.weights
    alpha = getattr(model, "alpha_", model.alpha)
    with np.errstate(over="ignore", under="ignore"):
        rows = training_rows(*samples, fit_intercept=intercept)
        objective = Objective(rows, asked.loss, *Penalty.named(model.penalty, alpha))
        parameters = objective.from_user_units(linear.coef, linear.intercept)
        assert parameters is not None  # of the features as given
        ambiguity = asked.ambiguity.with_constant() if linear.priced else asked.ambiguity
        ambiguity = ambiguity.solved_as(asked.loss)
        if isinstance(ambiguity, Transport):
            far = model.certificate_.critical_distance
            lower = _by_robust_model(objective, ambiguity, parameters, model.target_, far)
        else:
            found = multipliers_of(objective, ambiguity, parameters, model.target_)
            lower, far = found.lower, found.critical_distance
    return OptimalityProof(lower if lower > 0.0 else 0.0, k, model.target_, far)


def _by_robust_model(
    objective: Objective, ambiguity: Transport, parameters: Floats, target: float, far: float
) -> float:
    r"""A lower bound by the least worst loss W at one distance r: :math:`(W - \tau) / r`.

    Every model that meets the target has a worst loss of at most :math:`\tau + k r` there.
    """
    if not far > 0.0:
        return 0.0
    ball = RobustProgram(objective, ambiguity, far)
    point = objective.at(transport.solve(ball, parameters).parameters)
    return (worst_penalised(ball, point).value - target) / far
