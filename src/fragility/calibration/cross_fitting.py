"""Calibration on equal terms: every model after a cross-fitted map, chosen by the same rule.

A model with smaller scores has a smaller Fragility Index, so models are compared after calibration.
Each case gets the map that was fitted to the other folds, so that no model is calibrated on its own
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_count
from .._random import content_order, random_generator, spread_over_folds
from .._typing import Floats, Indices, Integers
from .._validation import LabelledScores, check_labelled_probabilities
from .cases import FoldMaps, check_method
from .choice import AUTO, CalibrationChoice, Candidates


def cross_fitted_calibration(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    n_splits: int = 5,
    method: str = "auto",
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> Floats:
    r"""Probabilities after calibration, each by a map fitted without its own case.

    Use it to compare models on equal terms. By default the map is chosen: the simplest whose mean
    log-loss, each case by a map fitted without it, is within one standard error of the best one's
    and of Platt's (several classes: of one temperature's). Two classes: the scores as they are, a
    temperature, Platt scaling, isotonic regression. Several: the scores as they are, a temperature.
    `fragility.calibration.two_classes` and `several_classes` define them. A report gives models
    that it compares maps of one kind, if one will do: see `fragility.calibration.choice`.

    The maps of different folds differ a little, so that AUC may move a little, too. Where the
    likelihood has no maximum, maps are bounded: of two classes by Platt's smoothed targets, of
    several as `fragility.torch.fit_temperature` says. If the largest probability is right in all n
    cases, the mean log-loss on them becomes 1/(n + 1) at a temperature; if the probabilities are
    worse than none, nearly no confidence is left. Probabilities below 1e-12 count as 1e-12, so
    that a true class of probability 0 costs 28 nats and not infinitely many. No calibrated
    probability is exactly 0 or, of two classes, 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`.
    n_splits : int, default=5
        Folds, each with the same mix of classes; fewer if a class has fewer samples.
    method : {"auto", "identity", "temperature", "platt", "isotonic"}, default="auto"
        The map. Platt scaling and isotonic regression are for two classes only.
    labels, pos_label, sample_weight
        As in `fragility.confident_error_rate`.
    random_state : int, Generator, RandomState or None, default=0
        For the folds, which do not depend on the order of the samples.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        One column for two classes: the positive one.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.calibration import cross_fitted_calibration
    >>> logit = 2 * np.random.default_rng(0).normal(size=2000)
    >>> y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-logit))
    >>> bold = 1 / (1 + np.exp(-3 * logit))
    >>> fair = cross_fitted_calibration(y, bold)
    >>> bool(np.mean((fair - y) ** 2) < np.mean((bold - y) ** 2))
    True
    """
    data = check_labelled_probabilities(
        y_true, proba, labels, pos_label, sample_weight, name="proba"
    )
    n_splits = check_count(n_splits, "n_splits", least=2)
    check_method(method, data)
    try:
        check_can_calibrate(data.labels, data.support)
    except CannotCalibrateError as error:
        raise ValueError(f"These predictions cannot be calibrated: {error}.") from None
    found = CrossFit(data, n_splits, random_state, method=method)
    return found.calibrated(found.choice.method).scores


class CannotCalibrateError(Exception):
    """Why some predictions cannot be calibrated, in words without a full stop."""


def check_can_calibrate(labels: NDArray[Any], counts: Integers) -> None:
    """Refuse numbers of cases by class that cannot be cross-fitted."""
    present = np.flatnonzero(counts)
    if present.size < 2:
        raise CannotCalibrateError("only one class has samples")
    least = present[np.argmin(counts[present])]
    if counts[least] < 2:
        raise CannotCalibrateError(f"class {labels.tolist()[least]!r} has a single sample")


class CrossFit:
    """Predictions that can be calibrated by maps of several kinds, each fitted without the case.

    The folds are drawn from the cases in the order of what they are, so that the order in which
    they came does not matter. Cases that these predictions do not tell apart are in the order of
    what else is known of them, `beside`: the scores of other models, for paired tests, and costs.
    `folds` may be given, by case; `alike` is how many cases count as one when kinds are compared.
    """

    def __init__(
        self,
        data: LabelledScores,
        n_splits: int = 5,
        random_state: Any = 0,
        beside: Sequence[NDArray[Any]] = (),
        method: str = AUTO,
        folds: Indices | None = None,
        alike: float = 1.0,
    ) -> None:
        n_splits = min(n_splits, int(data.support[data.support > 0].min()))
        strata = _strata(data)
        self._data, self._order = data, content_order(strata, data.scores, data.weights, beside)
        # Sums in that order, too: their last digits decide about ties after calibration.
        order = self._order
        weights = None if data.weights is None else data.weights[order]
        ordered = replace(data, scores=data.scores[order], codes=data.codes[order], weights=weights)
        counted = None if weights is None else weights > 0.0
        if folds is None:
            rng = random_generator(random_state)
            self._folds = spread_over_folds(strata[order], n_splits, rng, counted)
        else:
            self._folds = folds[order]
        self._fits = FoldMaps(ordered, self._folds, method, alike=alike)

    @property
    def candidates(self) -> Candidates:
        """How each kind did."""
        return self._fits.candidates

    @property
    def choice(self) -> CalibrationChoice:
        """The kind that was wanted, or that these cases choose."""
        return self._fits.choice

    def calibrated(self, method: str) -> LabelledScores:
        """The same predictions after maps of a kind."""
        scores = np.empty(self._data.scores.shape)
        for fold, found in enumerate(self._fits.maps[method]):
            own = self._order[self._folds == fold]
            scores[own] = found(self._data.scores[own])
        return self._data.with_scores(scores)


def _strata(data: LabelledScores) -> NDArray[Any]:
    """Classes that folds have in equal parts; of two, whether it is the positive one."""
    return data.codes == data.positive if data.is_binary else data.codes
