"""A paired test of what two models cost, each at its own policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from .._parameters import check_confidence, check_count
from .._summary import Summary, SummaryRow
from .._typing import Floats, Integers, Interval
from .._validation import check_labelled_probabilities
from .costs import Costs
from .policy import Policy, check_policies
from .policy_search import PolicyCases
from .solving import PolicySettings

#: Standard errors of costs at policies that the cases chose are larger than those of independent
#: cases: the thresholds are shared. Five folds, by simulation.
_SHARED_THRESHOLDS = 1.2
#: Costs that rest on fewer cases than this have no test.
_LEAST_CASES = 10.0


@dataclass(frozen=True)
class PairedCosts:
    """Difference of the mean costs of two models on the same cases, a − b.

    Attributes
    ----------
    a, b : float
        Mean cost of a case.
    difference : float
    interval : Interval
        NaN, as `p_value`, if too few cases make the difference.
    p_value : float
    effective : float
        Cases that the difference rests on: (ΣD²)² / ΣD⁴.
    too_few : bool
        Whether the costs differ, but in too few cases for a test.
    """

    a: float
    b: float
    difference: float
    interval: Interval
    p_value: float
    effective: float
    too_few: bool

    @property
    def why_no_test(self) -> str:
        """Why there is no p-value; empty if there is one."""
        if not isnan(self.p_value):
            return ""
        if self.too_few:
            return "too few costly cases make the difference"
        return "every case differs by the same" if self.difference else "the costs do not differ"


class CostSums(NamedTuple):
    """Sums over cases of powers of what the first model costs more, by which they are compared."""

    weight: float = 0.0
    squares: float = 0.0
    first: float = 0.0
    crossed: float = 0.0
    second: float = 0.0
    fourth: float = 0.0

    @classmethod
    def of(
        cls, difference: Floats, weights: Floats | None, clusters: Integers | None = None
    ) -> CostSums:
        """Of the differences of some cases; a cluster counts as one case."""
        w = np.ones(difference.size) if weights is None else weights
        terms = w * difference
        if clusters is not None:
            w, terms = (np.bincount(clusters, part).astype(np.float64) for part in (w, terms))
        return cls(
            float(w.sum()),
            float(w @ w),
            float(terms.sum()),
            float(w @ terms),
            float(terms @ terms),
            float((terms**2) @ (terms**2)),
        )

    def plus(self, other: CostSums) -> CostSums:
        """Of both."""
        return CostSums._make(a + b for a, b in zip(self, other, strict=True))

    def compared(
        self, a: float, b: float, confidence: float, factor: float = _SHARED_THRESHOLDS
    ) -> PairedCosts:
        """The test; `factor` times the standard error of independent cases is used."""
        mean = self.first / self.weight
        effective = self.second**2 / self.fourth if self.fourth > 0.0 else 0.0
        freedom = max(self.weight**2 / self.squares - 1.0, 1.0)
        variance = self.second - 2.0 * mean * self.crossed + mean**2 * self.squares
        error = factor * sqrt(max(variance, 0.0) * (1.0 + 1.0 / freedom)) / self.weight
        too_few = 0.0 < effective < _LEAST_CASES and factor > 1.0
        if too_few or error == 0.0:
            return PairedCosts(a, b, mean, Interval(nan, nan), nan, effective, too_few)
        reach = error * float(stdtrit(freedom, 0.5 + 0.5 * confidence))
        p = 2.0 * float(stdtr(freedom, -abs(mean) / error))
        interval = Interval(mean - reach, mean + reach)
        return PairedCosts(a, b, mean, interval, p, effective, False)


@dataclass(frozen=True, eq=False, repr=False)
class CostComparison(Summary):
    """Two models on the same cases at the same costs; made by `compare_costs`.

    Attributes
    ----------
    a, b : float
        Mean cost of a case, each at the policy of the model.
    difference : float
        ``a - b``.
    interval : Interval
    p_value : float
        Of no difference; NaN if the costs differ in too few cases.
    too_few : bool
        Whether they do.
    confidence : float
    n_samples : int
    """

    test: PairedCosts
    confidence: float
    n_samples: int

    @property
    def a(self) -> float:
        """Mean cost of the first model."""
        return self.test.a

    @property
    def b(self) -> float:
        """Mean cost of the second model."""
        return self.test.b

    @property
    def difference(self) -> float:
        """What the first model costs more."""
        return self.test.difference

    @property
    def interval(self) -> Interval:
        """Interval of the difference."""
        return self.test.interval

    @property
    def p_value(self) -> float:
        """Probability of such a difference, or a larger one, if there were none."""
        return self.test.p_value

    @property
    def too_few(self) -> bool:
        """Whether too few cases make the difference for a test."""
        return self.test.too_few

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values; floats may be NaN."""
        found = {name: getattr(self, name) for name in ("a", "b", "difference", "p_value")}
        return {
            **found,
            "interval": list(self.interval),
            "too_few": self.too_few,
            "confidence": self.confidence,
            "n_samples": self.n_samples,
        }

    def _rows(self) -> Iterator[SummaryRow]:
        yield "cost of a", f"{self.a:.4g}", "per case"
        yield "cost of b", f"{self.b:.4g}", "per case"
        low, high = self.interval
        between = f"{100 * self.confidence:g}% interval {low:.3g} to {high:.3g}"
        if isnan(self.p_value):
            between = f"no test: {self.test.why_no_test}"
        yield "difference", f"{self.difference:+.4g}", between
        yield "p-value", "-" if isnan(self.p_value) else f"{self.p_value:.3g}", ""
        yield "cases", str(self.n_samples), ""


def compare_costs(
    y_true: ArrayLike,
    proba_a: ArrayLike,
    proba_b: ArrayLike,
    *,
    error_cost: ArrayLike,
    review_cost: float = 1.0,
    capacity: float | None = None,
    reviewer_error: float = 0.0,
    policies: tuple[Policy, Policy] | None = None,
    rule: str = "auto",
    criterion: str = "cost",
    slack: float = 0.1,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> CostComparison:
    """Test whether one model costs less than another, each at its own best policy.

    Every case pays at policies that other cases chose, and the costs of both models are compared
    case by case.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    proba_a, proba_b : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of both models for the same cases.
    error_cost, review_cost, capacity, reviewer_error, rule, criterion, slack, cluster, \
    sample_weight, labels, pos_label, random_state
        As in `fragility.best_policy`.
    policies : pair of Policy, optional
        Policies that were fixed beforehand, on other cases. By default each model has the best one,
        by cross-fitting.
    confidence : float, default=0.95
        Of the interval.

    Returns
    -------
    CostComparison

    Notes
    -----
    With policies fixed beforehand it is a plain paired t test. With cross-fitted ones the standard
    error is multiplied by 1.2, because thresholds are shared by many cases, and if fewer than ten
    cases make the difference, there is no test. ``make coverage`` measures the level.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import compare_costs
    >>> logit = np.random.default_rng(0).normal(-1, 2, size=3000)
    >>> sick = np.random.default_rng(1).random(3000) < 1 / (1 + np.exp(-logit))
    >>> noisy = logit + np.random.default_rng(2).normal(0, 2, size=3000)
    >>> found = compare_costs(sick, 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-noisy)),
    ...                       error_cost=[[0, 1], [5, 0]], review_cost=0.5)
    >>> bool(found.difference < 0 and found.p_value < 0.01)
    True
    """
    settings = PolicySettings.of(rule=rule, criterion=criterion, slack=slack)
    confidence = check_confidence(confidence)
    seed = check_count(random_state, "random_state", 0)
    found = []
    for name, proba in (("proba_a", proba_a), ("proba_b", proba_b)):
        data = check_labelled_probabilities(
            y_true, proba, labels, pos_label, sample_weight, name=name
        )
        n_classes = data.labels.size
        costs = Costs(error_cost, review_cost, capacity, reviewer_error)
        cases = PolicyCases.of(data, costs.checked(n_classes, data.codes.size), cluster)
        if policies is None:
            found.append(cases.held_out_costs(settings.checked(n_classes), seed))
        else:
            names = "proba_a", "proba_b"
            pair = check_policies(policies, data.labels, data.positive, names)
            found.append(cases.costs_at(pair[len(found)]))
    weights = cases.data.weights
    sums = CostSums.of(found[0] - found[1], weights, cases.clusters)
    a, b = (float(np.average(part, weights=weights)) for part in found)
    factor = _SHARED_THRESHOLDS if policies is None else 1.0
    return CostComparison(sums.compared(a, b, confidence, factor), confidence, found[0].size)
