"""Probability against frequency: the reliability curve, and numbers that sum it up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_choice, check_confidence, check_count
from .._typing import Labels
from ..figures import reliability as figures
from ..figures.reliability import ReliabilityCurve as ReliabilityCurve
from ..figures.reliability import Strategy
from .outcomes import CaseOutcomes, checked_clusters, probability_outcomes

# Products of small numbers may underflow without harm.
_quiet = np.errstate(over="ignore", under="ignore")


@_quiet
def reliability_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    confidence: float = 0.95,
    cluster: ArrayLike | None = None,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    r"""Predicted against observed frequency, with a band and the number of cases.

    Two classes: the probability of the positive class against its frequency. Several: the
    confidence in the predicted class against how often it is right. The band is Wilson's interval
    of each frequency. Weights count by the effective number of cases of Kish,
    :math:`(\sum w)^2 / \sum w^2`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`.
    n_bins : int, default=10
        At most; fewer if there are fewer samples.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass, those of `equal_mass_calibration_error`: a sample on a boundary, and
        samples of equal probability, are divided in proportion. Or bins of equal width, of which
        empty ones are left out; a score on an edge lies above it.
    confidence : float, default=0.95
        Confidence level of the band, for each bin by itself.
    cluster : array-like of shape (n_samples,), optional
        What each sample belongs to, such as its patient: samples of a cluster may be alike. The
        band then follows from sums of residuals by cluster.
    prevalence : float, optional
        Share of the positive class, between 0 and 1. The classes are weighed so, and the scores
        stay: what this model would show where the positive class is so frequent.
    labels, pos_label, sample_weight
        As in `confident_error_rate`.

    Returns
    -------
    ReliabilityCurve
        With `predicted`, `observed`, `lower`, `upper`, `counts` by bin.

    Examples
    --------
    >>> from fragility import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], n_bins=2)
    >>> curve.predicted.round(3).tolist(), curve.observed.tolist(), curve.counts.tolist()
    ([0.2, 0.7], [0.0, 1.0], [2.0, 2.0])
    >>> curve.lower.round(3).tolist(), curve.upper.round(3).tolist()
    ([0.0, 0.342], [0.658, 1.0])
    """
    n_bins, confidence = check_count(n_bins, "n_bins"), check_confidence(confidence)
    check_choice(strategy, ("quantile", "uniform"), "strategy")
    found = probability_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    n_bins = min(n_bins, int(found.data.support.sum()))
    sums = found.forecasts.summed(n_bins, strategy)
    alike = None
    if cluster is not None:
        cases, clusters = CaseOutcomes.of(found), checked_clusters(cluster, found.data)
        alike = figures.cases_alike(*cases, clusters, n_bins, strategy)
    return sums.curve(confidence, found.as_given, alike)


@_quiet
def calibration_slope(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Slope of a logistic regression of the outcome on the log-odds of the score.

    .. math:: \operatorname{logit} P(y = 1) = a + b \operatorname{logit} p

    One: the spread of the probabilities is right. Below one: they are too extreme, as those of an
    overfitted model; above one: too moderate. Probabilities nearer to 0 and 1 than 1e-12 count as
    so near.

    Parameters
    ----------
    y_true, y_score, prevalence, labels, pos_label, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    float
        Infinite if a score separates the classes (−inf: the wrong way round). NaN if all scores
        are the same, or all samples are of one class.

    Examples
    --------
    >>> from fragility import calibration_slope
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.35, 0.6, 0.7, 0.8, 0.9]
    >>> round(calibration_slope(y, p), 3)
    1.635
    """
    found = probability_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    return figures.calibration_slope(found.forecasts)


@_quiet
def calibration_intercept(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Calibration in the large: intercept of the recalibration whose slope is held at one.

    .. math:: \operatorname{logit} P(y = 1) = a + \operatorname{logit} p

    Zero: as many positives as the probabilities say. Above zero: more (the risks are too low);
    below zero: fewer. Probabilities nearer to 0 and 1 than 1e-12 count as so near.

    Parameters
    ----------
    y_true, y_score, prevalence, labels, pos_label, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    float
        NaN if all samples are of one class.

    Examples
    --------
    >>> from fragility import calibration_intercept
    >>> round(calibration_intercept([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 6)  # log(3)
    1.098612
    """
    found = probability_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    return figures.calibration_intercept(found.forecasts)


@_quiet
def observed_expected_ratio(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Observed positives over those expected, the sum of the probabilities (O : E).

    One: as many as expected. Above one: the risks are too low.

    Parameters
    ----------
    y_true, y_score, prevalence, labels, pos_label, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import observed_expected_ratio
    >>> observed_expected_ratio([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    1.5
    """
    found = probability_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    return figures.observed_expected_ratio(found.forecasts)


@_quiet
def integrated_calibration_index(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    prevalence: float | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Integrated calibration index (ICI): mean distance of the scores to a smooth curve.

    .. math:: \frac1n \sum_i \lvert \hat f(p_i) - p_i \rvert

    With Austin and Steyerberg (2019), f is a local regression. Here: by ascending probability, the
    samples make 200 groups of equal mass (a sample on a boundary, and equal ones, are divided in
    proportion). At the mean probability of each group, f is the value of a straight line fitted to
    the frequencies of the 150 groups that are nearest to it, weighted by
    :math:`(1 - (d/h)^3)^3`, d their distance and h the largest of these; where all of them are at
    one place, f is their mean. It is cut to [0, 1]. The index is the mean of the absolute
    differences over the groups.

    Parameters
    ----------
    y_true, y_score, prevalence, labels, pos_label, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    float

    References
    ----------
    Austin and Steyerberg: The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models. Statistics in Medicine 38, 2019.

    Examples
    --------
    >>> from fragility import integrated_calibration_index
    >>> round(integrated_calibration_index([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 6)
    0.25
    """
    found = probability_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
    return figures.integrated_calibration_index(found.forecasts)
