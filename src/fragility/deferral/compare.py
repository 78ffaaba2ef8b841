"""A paired test of what two models cost, each at its own policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_confidence, check_count
from .._summary import Summary, SummaryRow
from .._typing import Interval
from .._validation import check_labelled_probabilities
from .costs import Costs
from .paired_costs import SHARED_THRESHOLDS, CostSums, PairedCosts
from .policy import Policy, check_policies
from .policy_search import PolicyCases
from .settings import PolicySettings


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
    reviewer_error: Any = 0.0,
    human: ArrayLike | None = None,
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
    error_cost, review_cost, capacity, reviewer_error, human, rule, criterion, slack, cluster, \
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
        cases = PolicyCases.of(data, costs, cluster, human)
        if policies is None:
            found.append(cases.held_out_costs(settings.checked(n_classes), seed))
        else:
            names = "proba_a", "proba_b"
            pair = check_policies(policies, data.labels, data.positive, names)
            found.append(cases.costs_at(pair[len(found)]))
    weights = cases.data.weights
    sums = CostSums.of(found[0] - found[1], weights, cases.clusters)
    a, b = (float(np.average(part, weights=weights)) for part in found)
    factor = SHARED_THRESHOLDS if policies is None else 1.0
    return CostComparison(sums.compared(a, b, confidence, factor), confidence, found[0].size)
