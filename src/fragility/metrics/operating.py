"""What thresholds do: operating points and net benefit."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from .._labelled_tables import in_class_order, own_classes
from .._parameters import check_number, require
from .._typing import Floats, Labels
from .._validation import check_labels, check_values, positive_index
from ..figures import operating as figures
from ..figures.operating import OperatingPoints as OperatingPoints
from .outcomes import two_class_outcomes

# Products of small numbers may underflow without harm.
_quiet = np.errstate(over="ignore", under="ignore")


@_quiet
def operating_points(
    y_true: ArrayLike,
    y_score: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    alert_rates: ArrayLike | None = None,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> OperatingPoints:
    r"""Sensitivity, specificity, predictive values and workload at some thresholds.

    A sample is flagged if its score is at least the threshold.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Scores or probabilities, higher for the positive class.
    thresholds : array-like of shape (n_points,), optional
        By default 0.1, 0.2, ..., 0.9.
    alert_rates : array-like of shape (n_points,), optional
        Instead of thresholds: shares of the samples that may be flagged, from 0 to 1. For each the
        smallest threshold at which no more are. Equal scores are flagged together, so that it may
        be fewer; infinity flags nothing.
    prevalence : float, optional
        Share of the positive class, between 0 and 1. The classes are weighed so, and the scores
        stay: predictive values, workload and net benefit where the positive class is so frequent.
    labels, pos_label, sample_weight
        As in `confident_error_rate`.

    Returns
    -------
    OperatingPoints
        With `thresholds`, `sensitivity`, `specificity`, `ppv`, `npv`, `flagged`,
        `number_needed_to_evaluate` and `net_benefit`, an entry for each threshold.

    Examples
    --------
    >>> from fragility import operating_points
    >>> y, p = [0, 0, 1, 0, 1], [0.1, 0.3, 0.4, 0.6, 0.9]
    >>> points = operating_points(y, p, [0.4, 0.8])
    >>> points.sensitivity.tolist(), points.ppv.round(3).tolist()
    ([1.0, 0.5], [0.667, 1.0])
    >>> operating_points(y, p, alert_rates=[0.4]).thresholds.tolist()
    [0.6]
    """
    given = thresholds is not None, alert_rates is not None
    require(not all(given), "Give thresholds or alert_rates, not both.")
    found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    if alert_rates is not None:
        rates = _one_row(alert_rates, "alert_rates")
        require(
            ((rates >= 0.0) & (rates <= 1.0)).all(),
            f"alert_rates must be shares of the samples, from 0 to 1; got {rates.tolist()}.",
        )
        at = figures.alert_thresholds(found.others, found.happened, rates)
    else:
        at = np.arange(1, 10) / 10 if thresholds is None else _one_row(thresholds, "thresholds")
    return figures.operating_points(found.others, found.happened, at).points


def _one_row(values: ArrayLike, name: str) -> Floats:
    """Numbers in one row, at least one; a single number is a row of one."""
    found = np.atleast_1d(check_values(values, name)).astype(np.float64)
    require(
        found.ndim == 1 and found.size > 0,
        f"{name} must be a number or a row of numbers; got shape {found.shape}.",
    )
    require(not np.isnan(found).any(), f"{name} must hold numbers; got NaN.")
    return found


@overload
def net_benefit(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: float,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float: ...
@overload
def net_benefit(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float | Floats: ...
@_quiet
def net_benefit(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float | Floats:
    r"""Net benefit of treating the samples whose risk is at least a threshold.

    .. math:: \frac{TP}{n} - \frac{FP}{n} \cdot \frac{t}{1 - t}

    The threshold t says what a false alarm is worth: t / (1 − t) of a true positive. To treat none
    has a net benefit of zero, to treat all that of constant scores of one: a model that is worth
    using has more than both. `NetBenefitDisplay` draws it for all thresholds (decision curve).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class.
    threshold : float or array-like of shape (n_points,)
        From 0 to below 1. Costs imply `implied_threshold`.
    prevalence, labels, pos_label, sample_weight
        As in `operating_points`.

    Returns
    -------
    float, or ndarray of shape (n_points,) for several thresholds

    Examples
    --------
    >>> from fragility import net_benefit
    >>> y, p = [0, 0, 1, 0, 1], [0.1, 0.3, 0.4, 0.6, 0.9]
    >>> net_benefit(y, p, 0.5)  # one true positive and one false alarm among five
    0.0
    >>> net_benefit(y, p, [0.2, 0.5]).round(6).tolist()
    [0.3, 0.0]
    """
    at = _one_row(threshold, "threshold")
    require(
        ((at >= 0.0) & (at < 1.0)).all(),
        f"threshold must lie from 0 to below 1, such as 0.2; got {np.asarray(threshold).tolist()}.",
    )
    options = labels, pos_label, sample_weight, prevalence
    found = two_class_outcomes(y_true, y_score, *options, probabilities=True)
    points = figures.operating_points(found.others, found.happened, at).points
    return float(points.net_benefit[0]) if np.ndim(threshold) == 0 else points.net_benefit


def implied_threshold(
    error_cost: ArrayLike, *, labels: Labels = None, pos_label: Any = None
) -> float:
    r"""Probability from which on it is cheaper to decide positive, if errors cost so much.

    .. math:: t = \frac{c_{01} - c_{00}}{c_{01} - c_{00} + c_{10} - c_{11}}

    Parameters
    ----------
    error_cost : float, array-like or DataFrame of shape (2, 2)
        True × decided class, negative before positive; the diagonal is what right decisions cost.
        A DataFrame has the classes as index and columns, in any order. One number: both errors
        cost the same.
    labels : sequence, optional
        Both classes, in the order of the rows and columns of an array; by default the sorted
        labels of a DataFrame.
    pos_label : label, optional
        The positive class; by default the second of the classes.

    Returns
    -------
    float
        NaN if no error costs anything.

    Examples
    --------
    >>> from fragility import implied_threshold
    >>> implied_threshold([[0, 1], [9, 0]])  # a miss is nine times as bad as a false alarm
    0.1
    """
    classes = None
    if np.ndim(error_cost) == 0:
        cost = check_number(error_cost, "error_cost")  # type: ignore[arg-type]
        matrix = np.array([[0.0, cost], [cost, 0.0]])
    else:
        classes = own_classes(error_cost, "error_cost") if labels is None else check_labels(labels)
        matrix = in_class_order(error_cost, classes, "error_cost")
        matrix = check_values(matrix, "error_cost").astype(np.float64)
    require(
        matrix.shape == (2, 2),
        f"error_cost must be one number or a matrix of shape (2, 2); got shape {matrix.shape}.",
    )
    if pos_label is not None and np.ndim(error_cost) > 0:
        if classes is None:
            raise ValueError(
                f"pos_label={pos_label!r} names a class, but the rows of error_cost have no names; "
                "give labels=, both classes in the order of the rows, or error_cost as a DataFrame."
            )
        if positive_index(classes, pos_label) == 0:
            matrix = matrix[::-1, ::-1]
    alarm, miss = float(matrix[0, 1] - matrix[0, 0]), float(matrix[1, 0] - matrix[1, 1])
    require(
        np.isfinite(matrix).all() and alarm >= 0.0 and miss >= 0.0,
        f"error_cost must be finite, and no error cheaper than being right; got {matrix.tolist()}.",
    )
    return figures.implied_threshold(alarm, miss)
