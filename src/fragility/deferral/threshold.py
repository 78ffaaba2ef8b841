"""The threshold to deploy, and what it will cost: measured on cases that did not choose it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_confidence, check_count
from .._summary import Summary, SummaryRow, percent
from .._typing import Interval
from .._validation import check_labelled_probabilities
from ..scores.tally import threshold_grid
from .costs import Costs, chow_threshold
from .cross_fitting import SPLITS, Verdict, dealt_cells, judge
from .curve import DeferralCurve, curve_of, errors_in_words

#: With fewer cases nothing is learned from some about the others.
_LEAST_CASES = 4
#: Attributes of a result in the order of `to_dict`.
_IN_ORDER = (
    *("threshold", "cost", "automation_rate", "error_rate"),
    *("chow_threshold", "chow_note", "chow_cost", "gap", "cost_automate_all", "cost_review_all"),
    *("cost_interval", "gap_interval", "threshold_interval", "confidence"),
    *("fold_thresholds", "n_samples", "n_held_out"),
)


@dataclass(frozen=True, eq=False, repr=False)
class BestThreshold(Summary, Verdict):
    """The best threshold of confidence, with what it costs on cases that did not choose it.

    Made by `best_threshold`.

    Attributes
    ----------
    threshold : float
        The one to deploy, chosen on all cases among those of
        `fragility.scores.tally.threshold_grid`: the model decides alone above it.
    cost : float
        Mean cost of a case, on other cases than those that chose: held out, or each fold at the
        threshold that the other folds chose.
    automation_rate, error_rate : float
        Share of these cases that is decided alone, and share of those that is wrong (NaN if none
        is decided alone).
    chow_threshold : float
        Threshold of Chow's rule, 1 − review_cost / error_cost − reviewer_error, which is best if a
        confidence of q is right with probability q: the nearest on offer. Where `capacity` does not
        allow it, the highest that is allowed instead. NaN where errors differ in cost.
    chow_note : str
        Why there is no such threshold, or that it was lowered; else empty.
    chow_cost : float
        Mean cost at Chow's threshold on the same cases as `cost`.
    gap : float
        ``chow_cost - cost``: what it costs per case to take the confidence at its word. Well above
        zero for an overconfident model. Near zero if the confidence is right, and then often a
        little below: a threshold that is found costs a little more than the best one. Well below
        zero, the cases are too few to find one: use Chow's, or get more.
    cost_interval, gap_interval, threshold_interval : Interval
        From the bootstrap; NaN without it.
    cost_automate_all, cost_review_all : float
        Mean cost if the model decided every case, and if humans did.
    fold_thresholds : ndarray of shape (n_splits, n_folds)
        Threshold that was chosen for each fold by the others, in each of several ways to deal the
        cases; with held-out cases the one that all others chose.
    n_samples : int
        Cases of positive weight that chose.
    n_held_out : int
        Held-out cases; 0 if the folds were used.
    confidence : float
        Of the intervals.
    costs : Costs
    """

    chow_note: str
    n_samples: int
    n_held_out: int
    confidence: float
    costs: Costs

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for logs; floats may be NaN."""
        found = {name: getattr(self, name) for name in _IN_ORDER}
        for name, value in found.items():
            if isinstance(value, Interval):
                found[name] = list(value)
        return {**found, "fold_thresholds": self.fold_thresholds.tolist(), **self.costs.to_dict()}

    def _between(self, interval: Interval) -> str:
        if isnan(interval.low):
            return ""
        level = f"{100 * self.confidence:g}%"
        return f"{level} interval {interval.low:.3g} to {interval.high:.3g}"

    def _measured_on(self) -> str:
        if self.n_held_out:
            return f"{self.n_held_out} held-out cases"
        n_splits, n_folds = self.fold_thresholds.shape
        folds = f"{n_splits} × {n_folds} folds"
        return f"{self.n_samples} cases, each at the threshold of others ({folds})"

    def _chow_words(self) -> str:
        if isnan(self.chow_threshold):
            return self.chow_note
        more = "more" if self.gap >= 0.0 else "less"
        words = f"would cost {abs(self.gap):.3g} {more} per case"
        between = self._between(self.gap_interval)
        note = f". {self.chow_note}" if self.chow_note else ""
        return f"{words} ({between}){note}" if between else words + note

    def _rows(self) -> Iterator[SummaryRow]:
        yield "threshold", f"{self.threshold:.4g}", self._between(self.threshold_interval)
        yield "cost per case", f"{self.cost:.4g}", self._between(self.cost_interval)
        yield "automated", percent(self.automation_rate), errors_in_words(self.error_rate)
        chow = "-" if isnan(self.chow_threshold) else f"{self.chow_threshold:.4g}"
        yield "Chow's rule", chow, self._chow_words()
        yield "automate all", f"{self.cost_automate_all:.4g}", "per case"
        yield "review all", f"{self.cost_review_all:.4g}", "per case"
        yield "measured on", str(self.n_held_out or self.n_samples), self._measured_on()


def best_threshold(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    error_cost: ArrayLike,
    review_cost: float = 1.0,
    capacity: float | None = None,
    reviewer_error: float = 0.0,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    pos_label: Any = None,
    held_out: DeferralCurve | None = None,
    cv: int = 5,
    n_bootstrap: int = 500,
    confidence: float = 0.95,
    random_state: int = 0,
) -> BestThreshold:
    """Confidence above which a model should decide alone, and what that will cost.

    A threshold looks cheaper on the cases that chose it than it will be. So its cost is measured on
    others: on `held_out`, or by cross-fitting, where each fold of the cases is decided at the
    threshold that is best on the other folds; the mean over 20 ways to deal the cases to folds.

    Parameters
    ----------
    y_true, proba, error_cost, review_cost, capacity, reviewer_error, sample_weight, labels, \
    pos_label
        As in `fragility.deferral_curve`.
    held_out : DeferralCurve, optional
        Other cases at the same costs, to measure on. By default the folds.
    cv : int, default=5
        Number of folds, at random and each class spread evenly. No more than there are cases; a
        class of fewer cases than folds is in some of them only.
    n_bootstrap : int, default=500
        Resamples for the intervals; 0 for none. In each the cases are drawn anew, with their
        folds, and all thresholds chosen anew: every case a random number of times (Poisson).
    confidence : float, default=0.95
        Of the intervals.
    random_state : int, default=0
        Seed of the folds and of the bootstrap. The order of the cases does not matter.

    Returns
    -------
    BestThreshold

    Notes
    -----
    `capacity` is kept on the cases that choose, on others up to chance. A case of weight 2 counts
    as two cases for the choice, but stays one in folds and in resamples. Cases of the same class,
    prediction and confidence (but for a step of the thresholds on offer) are dealt as equals.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import best_threshold
    >>> logit = np.random.default_rng(0).normal(scale=2, size=2000)
    >>> y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-logit))
    >>> overconfident = 1 / (1 + np.exp(-2.5 * logit))
    >>> best_threshold(y, overconfident, error_cost=10)  # doctest: +ELLIPSIS
    threshold        0.99...     95% interval ...
    cost per case    0.8...
    automated        ...
    Chow's rule      0.9                would cost ... more per case (95% interval ...)
    automate all     ...
    review all       1                  per case
    measured on      2000               2000 cases, each at the threshold of others (20 × 5 folds)
    """
    n_folds = check_count(cv, "cv", 2)
    n_bootstrap = check_count(n_bootstrap, "n_bootstrap", 0)
    confidence = check_confidence(confidence)
    seed = check_count(random_state, "random_state", 0)
    data = check_labelled_probabilities(
        y_true, proba, labels, pos_label, sample_weight, name="proba"
    )
    curve = curve_of(data, Costs(error_cost, review_cost, capacity, reviewer_error))
    if held_out is not None:
        _check_same_costs(curve.costs, held_out)
    elif curve.n_samples < _LEAST_CASES:
        raise ValueError(
            f"A threshold is chosen on some cases and measured on others, which takes at least "
            f"{_LEAST_CASES} cases (of positive weight); got {curve.n_samples}. Give more, or "
            "other cases to measure on: held_out=deferral_curve(...)."
        )
    n_folds, n_splits, others = min(n_folds, curve.n_samples), SPLITS, None
    if held_out is not None:
        n_folds = n_splits = 1
        others = dealt_cells(held_out._cells, held_out.costs, 1, [0, seed])
    splits = [
        dealt_cells(curve._cells, curve.costs, n_folds, [split, seed]) for split in range(n_splits)
    ]
    verdict = judge(
        splits,
        threshold_grid(data.labels.size),
        curve.costs,
        held_out=others,
        n_draws=n_bootstrap,
        confidence=confidence,
        seed=seed,
    )
    return BestThreshold(
        **vars(verdict),
        chow_note=_chow_note(curve.costs, verdict.chow_threshold),
        n_samples=curve.n_samples,
        n_held_out=0 if held_out is None else held_out.n_samples,
        confidence=confidence,
        costs=curve.costs,
    )


def _chow_note(costs: Costs, used: float) -> str:
    chow = chow_threshold(costs)
    if isnan(chow):
        kind = "each pair of classes" if np.ndim(costs.error_cost) == 2 else "each case"
        return (
            f"Chow's rule has no threshold here: errors have a cost for {kind}, so that no one "
            "confidence is enough for all."
        )
    if used > chow - 0.01:  # the nearest on offer
        return ""
    return f"Chow's {chow:.4g} would need more reviews than the capacity allows: lowered."


def _check_same_costs(costs: Costs, held_out: Any) -> None:
    if not isinstance(held_out, DeferralCurve):
        raise ValueError(
            f"held_out must be a DeferralCurve of other cases, made by deferral_curve(y, proba, "
            f"error_cost=...); got {type(held_out).__name__}."
        )
    others = held_out.costs
    for name in ("error_cost", "review_cost", "reviewer_error"):
        ours, theirs = np.asarray(getattr(costs, name)), np.asarray(getattr(others, name))
        by_case = ours.ndim == theirs.ndim == 1  # other cases, other numbers
        if not by_case and not np.array_equal(ours, theirs):
            raise ValueError(
                f"held_out has other costs: {name} is {_in_short(theirs)} there and "
                f"{_in_short(ours)} here. Give both the same."
            )


def _in_short(cost: NDArray[Any]) -> str:
    kinds = {0: f"{cost!s}", 1: "one number for each case", 2: f"the matrix {cost.tolist()}"}
    return kinds[cost.ndim]
