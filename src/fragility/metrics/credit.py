"""What credit scoring asks for: Gini, Kolmogorov–Smirnov, and the stability of a population."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_count, require
from .._typing import Floats, Labels
from .._validation import check_values
from ..figures import operating as figures
from ..figures.operating import KSCurve
from ..figures.stability import StabilityBins, stability_bins
from .outcomes import two_class_outcomes

# Products of small numbers may underflow without harm.
_quiet = np.errstate(over="ignore", under="ignore")


@_quiet
def gini_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Gini coefficient (accuracy ratio): twice the AUC minus one.

    One: every positive is scored above every negative. Zero: no better than chance.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Scores, higher for the positive class.
    labels, pos_label, sample_weight
        As in `confident_error_rate`.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import gini_score
    >>> gini_score([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    0.5
    """
    found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, presence=True)
    return figures.gini(found.others, found.happened).value


@_quiet
def ks_statistic(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Kolmogorov–Smirnov statistic: how far apart the scores of the two classes lie at most.

    .. math:: \max_t \lvert F_1(t) - F_0(t) \rvert

    with the distribution functions of the scores of both classes: the largest difference of true
    and false positive rate over all thresholds.

    Parameters
    ----------
    y_true, y_score, labels, pos_label, sample_weight
        As in `gini_score`.

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import ks_statistic
    >>> ks_statistic([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    0.5

    See Also
    --------
    fragility.metrics.ks_curve : Both distribution functions, and the score between them.
    """
    found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, presence=True)
    return figures.ks_statistic(found.others, found.happened).value


@_quiet
def ks_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> KSCurve:
    """Return the distribution functions of the scores of both classes.

    Parameters
    ----------
    y_true, y_score, labels, pos_label, sample_weight
        As in `gini_score`.

    Returns
    -------
    KSCurve
        With the distinct scores, the share of each class up to each score, `ks`, `threshold`, the
        score at which the difference is largest, and ``to_frame()``.

    Examples
    --------
    >>> from fragility.metrics import ks_curve
    >>> curve = ks_curve([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    >>> curve.ks, curve.threshold
    (0.5, 0.1)
    """
    found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, presence=True)
    return figures.ks_curve(found.others, found.happened)


def population_stability_index(
    expected: ArrayLike, actual: ArrayLike, *, n_bins: int = 10
) -> float:
    r"""Population stability index (PSI) of scores against those that were expected.

    .. math:: \sum_b (a_b - e_b) \ln \frac{a_b}{e_b}

    with the shares of both in bins of equal mass of the expected scores. Zero: the same. By custom,
    below 0.1 is stable and above 0.25 a shift to act on.

    Parameters
    ----------
    expected, actual : array-like of shape (n_samples,)
        Scores, such as those of training and of today.
    n_bins : int, default=10
        Bins between quantiles of the expected scores; equal quantiles make one bin of several. A
        score on an edge lies above it. A share below 0.0001 counts as so much.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import population_stability_index
    >>> expected = np.arange(100) / 100
    >>> population_stability_index(expected, expected)
    0.0
    >>> round(population_stability_index(expected, np.sqrt(expected)), 3)
    0.467

    See Also
    --------
    fragility.metrics.population_stability : The shares and the term of each bin.
    """
    return population_stability(expected, actual, n_bins=n_bins).index


def population_stability(
    expected: ArrayLike, actual: ArrayLike, *, n_bins: int = 10
) -> StabilityBins:
    """Return the bins that the population stability index is the sum of.

    They show at which scores a population has changed.

    Parameters
    ----------
    expected, actual, n_bins
        As in `population_stability_index`.

    Returns
    -------
    StabilityBins
        With the edges, the shares of both populations, `terms`, `index` and ``to_frame()``.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.metrics import population_stability
    >>> expected = np.arange(100) / 100
    >>> bins = population_stability(expected, np.sqrt(expected), n_bins=2)
    >>> bins.actual.round(2).tolist(), bins.terms.round(3).tolist()
    ([0.25, 0.75], [0.173, 0.101])
    """
    n_bins = check_count(n_bins, "n_bins", 2)
    return stability_bins(_scores(expected, "expected"), _scores(actual, "actual"), n_bins)


def _scores(given: ArrayLike, name: str) -> Floats:
    found = check_values(given, name).astype(np.float64)
    require(
        found.ndim == 1 and found.size > 0,
        f"{name} must be one row of scores, at least one; got shape {found.shape}.",
    )
    require(np.isfinite(found).all(), f"{name} must hold finite scores; it has NaN or infinity.")
    return found
