"""Metrics as functions of labels and scores, in scikit-learn's manner."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from .._labels import check_clusters
from .._parameters import check_choice, check_number
from .._typing import Floats, Labels
from .._validation import check_index_weights, check_labelled_scores, check_values, check_weights
from ..index.errors import RankingErrors
from ..index.fragility import Fragility, PairTable, measure, solve_pairs
from ..index.root import inverse, solve
from ..moments import Sample, order_one_factor

MultiClass = Literal["ovo", "ovr"]


class _Options(TypedDict, total=False):
    """Options that the overloads below share; their defaults are in the functions."""

    multi_class: MultiClass
    labels: Labels
    pos_label: Any
    sample_weight: ArrayLike | None
    pair_cost: ArrayLike | None


@overload
def fragility_index(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    target: float = ...,
    average: Literal["macro"] = ...,
    **options: Unpack[_Options],
) -> float: ...
@overload
def fragility_index(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    target: float = ...,
    average: None,
    **options: Unpack[_Options],
) -> Floats: ...
def fragility_index(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    target: float = 0.0,
    multi_class: MultiClass = "ovo",
    average: Literal["macro"] | None = "macro",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    pair_cost: ArrayLike | None = None,
) -> float | Floats:
    r"""Fragility Index: the tail risk of a classifier's confident mistakes.

    With the ranking error :math:`\varepsilon = p(x^-) - p(x^+)`, positive when a negative is scored
    above a positive,

    .. math:: FI = \min \{ k \ge 0 :\; k \ln E\, e^{\varepsilon / k} \le \tau \}.

    Smaller is better. Zero: no negative is scored above a positive by more than the target.
    Infinite: the mean error already misses the target. Exact and in linear time.

    FI alone is easy to game: it shrinks with the scores (a constant model has FI 0), while AUC does
    not change. Show it beside `fragility_ratio`, a proper score and AUC, and compare models at
    equal calibration.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels: text, booleans or integers.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores of the positive class, or of each class in the order of `labels` (for two classes
        the positive column counts). Usually probabilities; scores outside [0, 1] are allowed, but
        then the index cannot be compared between models, because it has the unit of the scores.
    target : float, default=0.0
        Level :math:`\tau` that the expected ranking error must meet.
    multi_class : {"ovo", "ovr"}, default="ovo"
        Every ordered pair of classes, or each class against the rest.
    average : {"macro"} or None, default="macro"
        Mean over the pairs (infinite if any of them is), or all of them: the matrix whose entry
        [i, j] is the index of samples of class j scored as class i (NaN on the diagonal), the
        vector of classes for "ovr".
    labels : sequence, optional
        All classes, in the order of the columns of `y_score`. By default those in `y_true`, sorted.
        A class without samples is named in a warning and left out.
    pos_label : label, optional
        The positive class of two; by default the second of `labels`. Without `labels`, of ordered
        categories (of pandas, an Enum of polars) the later one; the columns stay sorted, as those
        of scikit-learn's ``predict_proba`` are, so give both columns of it.
    sample_weight : array-like of shape (n_samples,), optional
        Weights; an integer weight is the same as repeating the sample.
    pair_cost : array-like or DataFrame of shape (n_classes, n_classes), optional
        Cost of taking true class i for class j, entry [i, j], zero on the diagonal; in the order of
        `labels`, or a DataFrame with the classes as index and columns. It weighs ``pairs[j, i]``,
        the samples of class i scored as class j, in the mean. Only for "ovo". The same table
        trains a model (``Hinge(pair_cost=...)``), and `fragility.pair_cost_of` makes it from the
        costs of a policy.

    Returns
    -------
    float or ndarray

    See Also
    --------
    measure_fragility : The index with everything that explains it.
    fragility_ratio : The companion that shrinking the scores does not change.

    Examples
    --------
    Two models with the same AUC of 0.75; the second is more confident in its mistake:

    >>> from fragility import fragility_index
    >>> y = [1, 1, 0, 0]
    >>> round(fragility_index(y, [0.6, 0.9, 0.2, 0.7]), 6)
    0.073051
    >>> round(fragility_index(y, [0.6, 0.9, 0.1, 0.8]), 6)
    0.163282
    """
    errors = ranking_errors(y_true, y_score, multi_class, labels, pos_label, sample_weight)
    table = _table(errors, target, multi_class, average, pair_cost)
    return table.values if average is None else table.average(table.values)


@overload
def fragility_ratio(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Literal["macro"] = ...,
    **options: Unpack[_Options],
) -> float: ...
@overload
def fragility_ratio(
    y_true: ArrayLike, y_score: ArrayLike, *, average: None, **options: Unpack[_Options]
) -> Floats: ...
def fragility_ratio(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    multi_class: MultiClass = "ovo",
    average: Literal["macro"] | None = "macro",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    pair_cost: ArrayLike | None = None,
) -> float | Floats:
    r"""Fragility Index divided by the mean separation of the classes.

    .. math:: \frac{FI}{\operatorname{mean} p(x^+) - \operatorname{mean} p(x^-)}

    at target 0. Scaling the scores or adding a constant does not change it, so it cannot be
    improved by shrinking them. Infinite when the positives are not scored higher on average, NaN
    for constant scores. For several classes, the mean of the pairs' ratios.

    Parameters
    ----------
    y_true, y_score, multi_class, average, labels, pos_label, sample_weight, pair_cost
        As in `fragility_index`.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import fragility_index, fragility_ratio
    >>> y, p = [1, 1, 0, 0], np.array([0.6, 0.9, 0.1, 0.8])
    >>> round(fragility_index(y, p / 10), 6), round(fragility_ratio(y, p / 10), 6)
    (0.016328, 0.544274)
    >>> round(fragility_ratio(y, p), 6)
    0.544274
    """
    errors = ranking_errors(y_true, y_score, multi_class, labels, pos_label, sample_weight)
    table = _table(errors, 0.0, multi_class, average, pair_cost)
    return table.ratios if average is None else table.average(table.ratios)


def measure_fragility(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    target: float = 0.0,
    multi_class: MultiClass = "ovo",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    pair_cost: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> Fragility:
    """Fragility Index with ratio, worst case, class pairs, bounds and attribution.

    Parameters
    ----------
    y_true, y_score, target, multi_class, labels, pos_label, sample_weight, pair_cost
        As in `fragility_index`.
    cluster : array-like of shape (n_samples,), optional
        Samples that belong together, such as those of one patient: standard error and interval
        count clusters, not samples.

    Returns
    -------
    Fragility

    Examples
    --------
    >>> from fragility import measure_fragility
    >>> result = measure_fragility([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8])
    >>> result
    Fragility Index  0.163282           target 0
    95% interval     0.04819 to inf     for the population the samples are from
    ratio            0.544274           scale-free: compare models by this too
    shift D*         0.914355           KL divergence of the worst case from the data
    samples          4                  0: 2, 1: 2
    worst sample     #3                 label 0, score 0.8, lift 1.97
    >>> result.tail_bound(0.2) >= 0.25  # one of four pairs has an error of 0.2
    True
    """
    target = check_number(target, "target")
    errors = ranking_errors(y_true, y_score, multi_class, labels, pos_label, sample_weight)
    weights = check_index_weights(pair_cost, errors.data.labels, multi_class)
    clusters = check_clusters(cluster, errors.data.codes.size)
    return measure(errors, target, multi_class, weights, clusters)


@np.errstate(over="ignore", under="ignore")
def loss_fragility(
    losses: ArrayLike, *, target: float, sample_weight: ArrayLike | None = None
) -> float:
    r"""Fragility Index of per-sample losses: how fast shifts can raise their mean past the target.

    The smallest :math:`k` with :math:`k \ln E\, e^{\ell / k} \le \tau`. Zero when no loss exceeds
    the target, infinite when their mean does.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        Hinge, cross-entropy, 0-1 or any other values, one per sample.
    target : float
        Level :math:`\tau` that the expected loss must meet.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> from fragility import loss_fragility
    >>> round(loss_fragility([0.1, 0.2, 0.9], target=0.5), 6)
    0.679083
    """
    values = check_values(losses, "losses")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"losses has shape {values.shape}; give one loss per sample.")
    largest = float(np.max(np.abs(values)))
    if not isfinite(largest):
        rows = np.flatnonzero(~np.isfinite(values))
        raise ValueError(
            f"losses has {rows.size} NaN or infinite values (first at {rows[0]}); give finite ones."
        )
    weights = None if sample_weight is None else check_weights(sample_weight, values.size)
    carrying = None if weights is None else weights > 0.0
    factor = order_one_factor(largest)
    group = Sample(values, factor=factor, selection=carrying, weights=weights)
    s = solve([group], check_number(target, "target") * factor)
    return inverse(s) / factor


def ranking_errors(
    y_true: ArrayLike,
    y_score: ArrayLike,
    multi_class: str,
    labels: Labels,
    pos_label: Any,
    sample_weight: ArrayLike | None,
) -> RankingErrors:
    """Ranking errors of checked scores."""
    check_choice(multi_class, ("ovo", "ovr"), "multi_class")
    data = check_labelled_scores(y_true, y_score, labels, pos_label, sample_weight)
    return RankingErrors(data)


def _table(
    errors: RankingErrors,
    target: float,
    multi_class: str,
    average: str | None,
    pair_cost: ArrayLike | None,
) -> PairTable:
    check_choice(average, ("macro", None), "average")
    weights = check_index_weights(pair_cost, errors.data.labels, multi_class, average)
    return solve_pairs(errors, check_number(target, "target"), multi_class, weights)
