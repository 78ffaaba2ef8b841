"""The index under shifts of features and labels, of linear scores, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from .._labelled_tables import in_class_order
from .._labels import listed
from .._parameters import check_number, check_positive_or_inf, require
from .._typing import Floats, Labels, Mask
from .._validation import LabelledScores, check_labelled_scores, check_values
from ..index.relabelled import least_multiplier


def wasserstein_fragility_index(
    y_true: ArrayLike,
    logits: ArrayLike,
    *,
    weight_norm: float,
    target: float = 0.0,
    label_cost: float = inf,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Fragility Index of a linear logistic score under class-wise 1-Wasserstein shifts.

    For :math:`p = \sigma(w^\top x + b)` and shifts measured by
    :math:`\tfrac12 (W_1(P_0, \hat P_0) + W_1(P_1, \hat P_1))`. Exact, from the logits alone. If
    labels stay, at most :math:`\lVert w \rVert_* / 2`. Infinite when the mean ranking error exceeds
    the target. It falls when all logits grow, unlike `fragility_index`: it measures how far
    features may move, not how confident mistakes are.

    Where labels move, mass may come to a class from samples of the other, too, at `label_cost` on
    top of the way: the distance is half the sum of what each class costs on average. The shares of
    the classes may shift then, down to a single sample, so that a class of few samples is emptied
    at little cost. The index is never below that of fixed labels and grows like one over the cost.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes; the second in sorted order is positive (also of ordered categories,
        as in `decision_function` of a linear model).
    logits : array-like of shape (n_samples,)
        :math:`w^\top x + b`.
    weight_norm : float
        Dual norm of the coefficients: for shifts measured in ℓ2, ``np.linalg.norm(coef_)``; in ℓ1
        the largest absolute coefficient; in ℓ∞ their sum.
    target : float, default=0.0
    label_cost : float, default=inf
        Cost of a label in units of the features, positive; infinite: labels do not move.
    sample_weight : array-like of shape (n_samples,), optional
        Where labels move they may differ by a factor of 1e8.

    Returns
    -------
    float

    See Also
    --------
    wasserstein_pair_index : For several classes, pair by pair.

    Examples
    --------
    >>> from fragility import wasserstein_fragility_index
    >>> y, logits = [0, 0, 1, 1], [-2, 1, -1, 3]
    >>> round(wasserstein_fragility_index(y, logits, weight_norm=1.5), 6)
    0.423869
    >>> round(wasserstein_fragility_index(y, logits, weight_norm=1.5, label_cost=1.0), 6)
    1.992023
    """
    if np.ndim(logits) > 1 and np.shape(logits)[1] > 1:
        raise ValueError(
            f"logits has shape {np.shape(logits)}; give one column, w·x + b of the positive class "
            "(several classes: wasserstein_pair_index)."
        )
    data = check_labelled_scores(y_true, logits, sample_weight=sample_weight, name="logits")
    norm = check_number(weight_norm, "weight_norm")
    told = (
        f"weight_norm must be a positive number; got {weight_norm!r}. Give the dual norm of the "
        "coefficients, such as np.linalg.norm(model.coef_)."
    )
    require(norm >= 0.0, told)
    # Class 1 is positive as in linear models: ordered categories are sorted, too.
    index = _Index.of(target, label_cost)
    return index(data.scores, data.codes == 1, data.weights, norm, told)


def wasserstein_pair_index(
    y_true: ArrayLike,
    logits: ArrayLike,
    *,
    pair_norms: ArrayLike,
    target: float = 0.0,
    label_cost: float = inf,
    labels: Labels = None,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    r"""Wasserstein index of every pair of several classes, of one against the other.

    The pair i, j is scored by :math:`\sigma((\beta_i - \beta_j)^\top x + b_i - b_j)`, the
    probability of i where it is one of the two, on the samples of these classes: a linear logistic
    score, so the index is exact, as that of `wasserstein_fragility_index`, and the same for i|j and
    j|i. At most half the dual norm of :math:`\beta_i - \beta_j` if labels stay and the mean ranking
    error meets the target. The softmax itself depends on all classes and has a bound instead:
    `wasserstein_pair_bound`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    logits : array-like of shape (n_samples, n_classes)
        :math:`\beta_i^\top x + b_i`, in the order of `labels`; three classes or more.
    pair_norms : array-like or DataFrame of shape (n_classes, n_classes)
        Dual norms of the differences of the coefficients: for shifts in ℓ2
        ``np.linalg.norm(coef_[:, None] - coef_, axis=2)``. In the order of `labels`, or a DataFrame
        with the classes as index and columns.
    target : float, default=0.0
    label_cost : float, default=inf
        Cost of turning a label of the pair into the other one.
    labels : sequence, optional
        All classes, in the order of the columns. By default those in `y_true`, sorted.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Entry [i, j]: samples of class j scored as i. NaN on the diagonal and for classes without
        samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import wasserstein_pair_bound, wasserstein_pair_index
    >>> coef = np.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])
    >>> X = np.array([[1.0, 0.2], [0.1, 0.0], [-1.0, 0.7], [0.3, 0.4], [-0.8, -1.0], [0.0, -0.6]])
    >>> y, norms = [0, 0, 1, 1, 2, 2], np.linalg.norm(coef[:, None] - coef, axis=2)
    >>> wasserstein_pair_index(y, X @ coef.T, pair_norms=norms).round(3)
    array([[  nan, 0.46 , 0.424],
           [0.46 ,   nan, 0.398],
           [0.424, 0.398,   nan]])
    >>> wasserstein_pair_bound(y, X @ coef.T, pair_norms=norms).round(3)
    array([[  nan, 0.486, 0.468],
           [0.504,   nan, 0.459],
           [0.445, 0.446,   nan]])
    """
    return _pair_table(
        (y_true, logits, labels, sample_weight),
        (pair_norms, target, label_cost),
        lambda u, norms, i, j: (u[:, i] - u[:, j], float(norms[i, j])),
    )


def wasserstein_pair_bound(
    y_true: ArrayLike,
    logits: ArrayLike,
    *,
    pair_norms: ArrayLike,
    target: float = 0.0,
    label_cost: float = inf,
    labels: Labels = None,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    r"""Upper bound of the Wasserstein index of softmax probabilities, for every ordered pair.

    The ranking error :math:`p_i(x^j) - p_i(x^i)` of the softmax has no one-dimensional worst case.
    But the log-odds of :math:`p_i` change by at most :math:`K_i = \max_l \lVert \beta_i - \beta_l
    \rVert_*` per unit of transport, their slope being a mean of the differences :math:`\beta_i -
    \beta_l`. So no shift does more harm than one of a linear logistic score with these log-odds and
    this norm, whose index is returned: at most :math:`K_i / 2` if labels stay and the mean ranking
    error meets the target, infinite, and exact, where it does not. Exact also where all differences
    are the same, as with two classes.

    Parameters
    ----------
    y_true, logits, pair_norms, target, label_cost, labels, sample_weight
        As in `wasserstein_pair_index`.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Entry [i, j]: samples of class j scored as i. NaN on the diagonal and for classes without
        samples.
    """

    def log_odds(u: Floats, norms: Floats, i: int, j: int) -> tuple[Floats, float]:
        others = logsumexp(np.delete(u, i, axis=1), axis=1)
        return u[:, i] - others, float(norms[i].max())

    return _pair_table(
        (y_true, logits, labels, sample_weight), (pair_norms, target, label_cost), log_odds
    )


#: The rarest sample may be the one that is relabelled: its share is then told from rounding.
_WEIGHTS_APART = 1e8


class _Index(NamedTuple):
    """The index of samples at a checked target and cost of a label."""

    target: float
    label_cost: float

    @classmethod
    def of(cls, target: float, label_cost: float) -> _Index:
        return cls(check_number(target, "target"), check_positive_or_inf(label_cost, "label_cost"))

    def __call__(
        self, scores: Floats, positive: Mask, weights: Floats | None, norm: float, told: str
    ) -> float:
        """Of logits with the dual norm of their coefficients; what is told where it is not."""
        if norm == 0.0:  # then nothing moves them, and they do not differ but for rounding
            require(bool(np.ptp(scores) <= 1e-9 * np.abs(scores).max()), told)
        cost = norm * self.label_cost if norm else inf
        if cost < inf and weights is not None:
            some = weights[weights > 0.0]
            apart = float(some.max() / some.min())
            require(
                apart <= _WEIGHTS_APART,
                f"Where labels move, sample_weight may differ by a factor of {_WEIGHTS_APART:.0e}, "
                f"beyond which rounding decides; got {apart:.0e}. Give samples of next to no "
                "weight a weight of 0, or leave out label_cost.",
            )
        multiplier = least_multiplier(scores, positive, weights, self.target, cost)
        return multiplier if multiplier == inf else 2.0 * norm * multiplier


def _pair_table(
    samples: tuple[ArrayLike, ArrayLike, Labels, ArrayLike | None],
    settings: tuple[ArrayLike, float, float],
    score: Callable[[Floats, Floats, int, int], tuple[Floats, float]],
) -> Floats:
    """Index of each ordered pair that has samples; `score` gives logits and norm of a pair."""
    y_true, logits, labels, sample_weight = samples
    data = check_labelled_scores(y_true, logits, labels, None, sample_weight, name="logits")
    if data.is_binary:
        raise ValueError(
            "Pairs are for three classes or more; for two give wasserstein_fragility_index one "
            "column of logits, w·x + b of the positive class."
        )
    norms, index = _check_pair_norms(settings[0], data), _Index.of(*settings[1:])
    table = np.full(norms.shape, np.nan)
    present = np.flatnonzero(data.support > 0)
    for i, j in permutations(present.tolist(), 2):
        rows = (data.codes == i) | (data.codes == j)
        if data.weights is not None:
            rows &= data.weights > 0.0
        u, norm = score(np.asarray(data.scores[rows], dtype=np.float64), norms, i, j)
        told = (
            f"pair_norms is zero for {listed(data.labels[[i, j]])}, whose logits differ; give the "
            "dual norms of the differences of the coefficients."
        )
        weights = None if data.weights is None else data.weights[rows]
        table[i, j] = index(u, data.codes[rows] == i, weights, norm, told)
    return table


def _check_pair_norms(pair_norms: ArrayLike, data: LabelledScores) -> Floats:
    table = in_class_order(pair_norms, data.labels, "pair_norms")
    norms = np.asarray(check_values(table, "pair_norms"), dtype=np.float64)
    size = data.labels.size
    if norms.shape != (size, size):
        raise ValueError(
            f"pair_norms has shape {norms.shape}; give ({size}, {size}), the dual norm of the "
            "difference of the coefficients of each two classes."
        )
    wrong = ~np.isfinite(norms).all() or (norms < 0.0).any() or np.diagonal(norms).any()
    if wrong or not np.allclose(norms, norms.T, rtol=1e-6, atol=0.0):
        raise ValueError(
            "pair_norms must be finite, zero on the diagonal, the same for [i, j] and [j, i], and "
            "not negative; in ℓ2 it is np.linalg.norm(coef_[:, None] - coef_, axis=2)."
        )
    return norms
