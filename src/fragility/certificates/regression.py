"""What a linear regression guarantees, from data and coefficients alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length

from .._parameters import check_not_negative, check_number
from .._sklearn import check_sample_weight
from .._summary import SummaryRow
from .._typing import Floats
from .._validation import column_names
from ..ambiguity import Ambiguity, Wasserstein, as_ambiguity
from ..losses.lipschitz import steepest_error
from .guarantee import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class RegressionCertificate(Guarantee):
    r"""What a linear regression guarantees on its samples and on distributions near them.

    The loss of a sample is the length :math:`\lVert \hat y - y \rVert_2` of its error, in the units
    of y. Made by `fragility.certificates.certify_regression`.

    Attributes
    ----------
    target : float
        Level :math:`\tau` that the penalised mean loss must meet.
    attained_loss : float
        Weighted mean loss plus penalty.
    penalty : float
        The penalty R alone.
    fragility : float
        Smallest k with :math:`E_P \ell + R \le \tau + k D(P, \hat P)` for every P, exactly.
        Infinite if the model misses its target.
    ambiguity : Wasserstein
        The distance D: features move, y does not.
    losses, weights : ndarray of shape (n_samples,)
        The weights sum to one.
    slope : float
        What a loss gains at most per unit of distance.
    """

    ambiguity: Wasserstein
    slope: float

    def _worst(self, radius: float) -> float:
        return self.attained_loss + self.slope * radius

    def _rows(self) -> Iterator[SummaryRow]:
        yield "target", f"{self.target:.6g}", "for the mean length of the errors, plus penalty"
        yield "attained loss", f"{self.attained_loss:.6g}", f"of which penalty {self.penalty:.4g}"
        just = abs(self.headroom) <= 1e-9 * abs(self.target)
        missed = "the target is missed" if self.fragility == inf else ""
        note = "the target is just met" if just else missed
        yield "headroom", "0" if just else f"{self.headroom:.4g}", note
        meaning = f"; a unit is {self.ambiguity.unit}" if self.ambiguity.unit else ""
        note = f"loss above the target per unit of {self.ambiguity!r}, at most{meaning}"
        yield "fragility k", f"{self.fragility:.6g}", note
        yield "samples", str(self.n_samples), ""


def certify_regression(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    target: float | None = None,
    ambiguity: str | Ambiguity | None = None,
    penalty: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> RegressionCertificate:
    r"""What a fitted linear regression guarantees, on these samples and near them.

    Parameters
    ----------
    model : fitted linear regression
        With `coef_` and `intercept_`, of this library or of any other. What is not given below is
        read from a `SatisficingRegressor`.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    target : float, optional
        Level that the penalised mean length of the errors must meet. Required for other models.
    ambiguity : "wasserstein" or Wasserstein, optional
        For other models by default ``Wasserstein()``.
    penalty : float, optional
        The value R of the penalty, a number. For other models by default zero.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    RegressionCertificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from fragility.certificates import certify_regression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = X / X.std(axis=0)
    >>> certificate = certify_regression(LinearRegression().fit(X, y), X, y, target=45.0)
    >>> round(certificate.fragility, 1), round(certificate.violation_bound(0.1), 1)
    (65.5, 51.6)
    """
    names = [name for name in column_names(X) if isinstance(name, str)]
    X = check_array(X, dtype=np.float64)
    table = check_array(y, dtype=np.float64, ensure_2d=False)
    check_consistent_length(X, table)
    own = hasattr(model, "target_") and hasattr(model, "ambiguity_")
    if target is None and not own:
        raise ValueError(
            f"{type(model).__name__} was not trained for a target; give target=, the level that "
            "its mean loss must meet."
        )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    table = table.reshape(len(X), -1)
    if coef.shape != (table.shape[1], X.shape[1]):
        raise ValueError(
            f"coef_ has shape {np.shape(model.coef_)}; {X.shape[1]} features and "
            f"{table.shape[1]} columns of y need {(table.shape[1], X.shape[1])}."
        )
    if ambiguity is None:
        ambiguity = model.ambiguity_ if own else Wasserstein()
    weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if penalty is None:
        alpha = model.alpha if own and model.penalty == "l2" else 0.0
        penalty = alpha * float((coef**2).sum())
    return regression_certificate(
        coef,
        np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(coef),)),
        X,
        table,
        weights / weights.sum(),
        check_transport(ambiguity, len(coef)).fitted_to(X, weights, names),
        target=check_number(model.target_ if target is None else target, "target"),
        penalty=check_not_negative(penalty, "penalty"),
    )


def regression_certificate(
    coef: Floats,
    intercept: Floats,
    X: Floats,
    y: Floats,
    weights: Floats,
    ambiguity: Wasserstein,
    *,
    target: float,
    penalty: float,
) -> RegressionCertificate:
    """Certificate of validated input: `coef` (m, d), `y` (n, m), weights that sum to one."""
    losses = error_lengths(X @ coef.T + intercept - y)
    attained = float(weights @ losses) + penalty
    slope = steepest_error(coef * ambiguity.mobility(coef.shape[1]), ambiguity.norm)
    met = attained <= target + 1e-9 * abs(target)
    return RegressionCertificate(
        target, attained, penalty, slope if met else inf, losses, weights, ambiguity, slope
    )


def check_transport(ambiguity: str | Ambiguity, n_outputs: int) -> Wasserstein:
    """A distance for which the fragility of a regression is known."""
    given = as_ambiguity(ambiguity)
    if not isinstance(given, Wasserstein):
        raise NotImplementedError(
            f"A regression is certified and trained under Wasserstein(); got {given!r}."
        )
    if given.moves_labels:
        raise NotImplementedError(
            f"y of a regression does not move, so a label has no cost; got {given!r}. Leave "
            "label_cost out."
        )
    if n_outputs > 1 and given.norm == inf:
        raise NotImplementedError(
            f"norm=inf with {n_outputs} columns of y has no form that can be computed: the slope "
            "is a maximum over all signs of the features. Give norm=2 or norm=1, or one column."
        )
    return given


def error_lengths(errors: Floats) -> Floats:
    """Length of each row."""
    if errors.shape[1] == 1:
        return np.abs(errors[:, 0])
    return np.asarray(np.linalg.norm(errors, axis=1))
