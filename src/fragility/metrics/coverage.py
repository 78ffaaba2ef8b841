"""Errors among the surest predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_share, require
from .._typing import Labels
from .._validation import check_labelled_probabilities
from ..figures import coverage as figures
from ..figures.confidence import outcome_atoms, predictions, predictions_by_outcome
from ..figures.coverage import RiskCoverageCurve as RiskCoverageCurve
from ..figures.rank import Levels

# Products of small numbers may underflow without harm.
_quiet = np.errstate(over="ignore", under="ignore")


def _by_confidence(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: Labels,
    pos_label: Any,
    sample_weight: ArrayLike | None,
) -> Levels:
    data = check_labelled_probabilities(
        y_true, y_score, labels, pos_label, sample_weight, name="y_score"
    )
    return Levels.of(predictions_by_outcome(*outcome_atoms(predictions(data))))


@_quiet
def risk_coverage_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> RiskCoverageCurve:
    r"""Error rate among the surest samples, by how many of all they are.

    A point for each confidence :math:`q = \max_c p_c` that occurs: samples of equal confidence
    count together. The mean of the risk over the samples is `area_under_risk_coverage`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`.
    labels, pos_label, sample_weight
        As in `confident_error_rate`.

    Returns
    -------
    RiskCoverageCurve
        With `coverage`, `risk` and `confidence`.

    Examples
    --------
    >>> from fragility import risk_coverage_curve
    >>> curve = risk_coverage_curve([1, 1, 0, 0], [0.7, 0.9, 0.6, 0.2])
    >>> curve.coverage.tolist(), curve.risk.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.25])
    """
    return figures.risk_coverage_curve(
        _by_confidence(y_true, y_score, labels, pos_label, sample_weight)
    )


@_quiet
def surest_error_rate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    coverage: float = 0.9,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Error rate among the surest share of the samples.

    Samples of equal confidence at the boundary are taken in proportion, so that the order of the
    samples does not matter.

    Parameters
    ----------
    y_true, y_score, labels, pos_label, sample_weight
        As in `risk_coverage_curve`.
    coverage : float, default=0.9
        Share of the samples, above 0 and up to 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import surest_error_rate
    >>> surest_error_rate([1, 1, 0, 0], [0.7, 0.9, 0.6, 0.2], coverage=0.75)
    0.0
    """
    coverage = check_share(coverage, "coverage")
    require(coverage > 0.0, "coverage must be above 0: no samples have no error rate.")
    levels = _by_confidence(y_true, y_score, labels, pos_label, sample_weight)
    return figures.errors_in_surest(levels, coverage).value
