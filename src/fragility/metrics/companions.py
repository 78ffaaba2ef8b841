"""Metrics to show beside the Fragility Index: of the tail, and of confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_count, check_number, check_threshold
from .._typing import Labels
from .._validation import check_labelled_probabilities
from ..figures.confidence import (
    confident_errors,
    outcome_atoms,
    predictions,
    predictions_by_outcome,
    score_atoms,
)
from ..figures.rank import Levels, calibration_error, risk_coverage_area
from ..figures.tails import buffered_auc, conditional_value_at_risk, error_tails
from .functions import MultiClass, ranking_errors

# Products of small numbers may underflow without harm.
_quiet = np.errstate(over="ignore", under="ignore")


@_quiet
def buffered_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    multi_class: MultiClass = "ovo",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Buffered AUC: an AUC that counts how far a pair is misranked, not only whether.

    With the ranking error :math:`\varepsilon = p(x^-) - p(x^+)`,

    .. math:: bAUC = 1 - \min_{a \ge 0} E\,(a \varepsilon + 1)_+ .

    Larger is better, and at most AUC. One: every positive is scored above every negative. Zero: the
    negatives are scored as high as the positives on average. Scaling the scores or adding a
    constant does not change it. For several classes, the mean over the pairs of `fragility_index`.

    Parameters
    ----------
    y_true, y_score, multi_class, labels, pos_label, sample_weight
        As in `fragility_index`.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import buffered_auc_score
    >>> round(buffered_auc_score([1, 1, 0, 0], [0.6, 0.9, 0.2, 0.7]), 6)
    0.625
    >>> round(buffered_auc_score([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8]), 6)
    0.45
    """
    errors = ranking_errors(y_true, y_score, multi_class, labels, pos_label, sample_weight)
    return float(
        np.mean([buffered_auc(tail).value for tail, _ in error_tails(errors, multi_class)])
    )


@_quiet
def ranking_error_cvar(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    multi_class: MultiClass = "ovo",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Conditional value at risk of the ranking error: the mean of its worst pairs.

    .. math:: CVaR(\varepsilon) = \min_t\; t + \frac{E\,(\varepsilon - t)_+}{1 - level} ,

    the mean error of the worst share :math:`1 - level` of all pairs of a negative and a positive.
    Smaller is better; below zero even these pairs are ranked correctly. It has the unit of the
    scores, like the index. For several classes, the mean over the pairs of `fragility_index`.

    Parameters
    ----------
    y_true, y_score, multi_class, labels, pos_label, sample_weight
        As in `fragility_index`.
    level : float, default=0.95
        From 0 (the mean of all errors) to below 1 (towards 1: the largest error).

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import ranking_error_cvar
    >>> round(ranking_error_cvar([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8], level=0.5), 6)
    0.05
    """
    level = check_number(level, "level")
    if not 0.0 <= level < 1.0:
        raise ValueError(f"level must be 0 or more and below 1, such as 0.95; got {level!r}.")
    errors = ranking_errors(y_true, y_score, multi_class, labels, pos_label, sample_weight)
    tails = error_tails(errors, multi_class)
    risks = [conditional_value_at_risk(tail, level).value / factor for tail, factor in tails]
    return float(np.mean(risks))


@_quiet
def confident_error_rate(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    threshold: float = 0.9,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of all samples that are predicted wrongly at a confidence above the threshold.

    .. math:: P(q > \delta,\; \hat y \ne y), \qquad q = \max_c p_c .

    Smaller is better: these are the mistakes that no review below the threshold catches.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels. One class will do if `labels` names the others.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`. The most
        probable class is predicted, of equal ones the first.
    threshold : float, default=0.9
        Confidence :math:`\delta` from 0 to 1.
    labels : sequence, optional
        All classes, in the order of the columns of `y_proba`. By default those in `y_true`, sorted.
    pos_label : label, optional
        The positive class of two; by default the second of `labels`. Without `labels`, of ordered
        categories (of pandas, an Enum of polars) the later one; the columns stay sorted, as those
        of scikit-learn's ``predict_proba`` are, so give both columns of it.
    sample_weight : array-like of shape (n_samples,), optional
        Weights; an integer weight is the same as repeating the sample.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import confident_error_rate
    >>> confident_error_rate([1, 1, 0, 0], [0.05, 0.9, 0.6, 0.2])
    0.25
    """
    threshold = check_threshold(threshold)
    data = check_labelled_probabilities(y_true, y_proba, labels, pos_label, sample_weight)
    return confident_errors(predictions(data), threshold)


@_quiet
def area_under_risk_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area under the risk-coverage curve (AURC): errors when the least sure cases are left out.

    .. math:: AURC = \frac1n \sum_k P(\hat y \ne y \mid q \ge q_k), \qquad q = \max_c p_c ,

    the mean over the samples of the error rate among those at least as confident. Smaller is
    better: few errors, and those at low confidence. Equal confidences count together, so that the
    order of the samples does not matter.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label, sample_weight
        As in `confident_error_rate`.

    Returns
    -------
    float

    Examples
    --------
    The one mistake is the least sure prediction:

    >>> from fragility import area_under_risk_coverage
    >>> area_under_risk_coverage([1, 1, 0, 0], [0.7, 0.9, 0.6, 0.2])
    0.0625
    """
    data = check_labelled_probabilities(y_true, y_proba, labels, pos_label, sample_weight)
    atoms = predictions_by_outcome(*outcome_atoms(predictions(data)))
    return risk_coverage_area(Levels.of(atoms)).value


@_quiet
def equal_mass_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Calibration error over bins of equal mass.

    .. math:: \frac1B \sum_{b=1}^{B} \lvert \text{frequency}_b - \text{mean probability}_b \rvert

    Two classes: the probability of the positive class against its frequency. Several: the
    confidence in the predicted class against how often it is right. Sorted by probability, each bin
    holds exactly one B-th of the weight; a sample on a boundary, and samples of equal probability,
    are divided in proportion, so that the order of the samples does not matter.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label, sample_weight
        As in `confident_error_rate`.
    n_bins : int, default=15
        At most the number of samples (of positive weight).

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import equal_mass_calibration_error
    >>> round(equal_mass_calibration_error([1, 1, 0, 0], [0.8, 0.6, 0.4, 0.2], n_bins=2), 6)
    0.3
    """
    n_bins = check_count(n_bins, "n_bins")
    data = check_labelled_probabilities(y_true, y_proba, labels, pos_label, sample_weight)
    if n_bins > data.support.sum():
        raise ValueError(
            f"n_bins={n_bins} is more than the {data.support.sum()} samples (of positive weight); "
            "give at most as many bins as samples."
        )
    if data.is_binary:
        atoms = score_atoms(data)
        happened, others = atoms[data.positive], atoms[1 - data.positive]
    else:
        others, happened = outcome_atoms(predictions(data))
    return calibration_error(happened, others, n_bins).value
