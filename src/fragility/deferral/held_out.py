"""What policies do on cases that did not choose them."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from .._typing import Floats, Integers, Interval, Mask
from ..calibration.table import ScoreTable
from .costs import Costs
from .paired_costs import CostSums
from .reviews import ReviewedKinds

#: Variances of less than this share of the mean square are rounding errors.
_ROUNDING = 1e-13


class Outcomes(NamedTuple):
    """Kinds of cases, and what each costs under each decision.

    Decisions are: before the lower cut, review, from the upper cut on.

    Attributes
    ----------
    weight, squares : ndarray of shape (K,)
        Sums of the weights and of the squared weights of the cases of a kind.
    costs, cost_squares : ndarray of shape (3, K)
        Sums of weight times cost, and of the squares of these.
    wrong : ndarray of bool of shape (3, K)
        Whether a decision is an error of the model; never of a review.
    positive : ndarray of bool of shape (K,), optional
        Whether the cases are of the positive class of two.
    crossed : ndarray of shape (K,), optional
        Sums of squared weight times the cost of a review, if reviews of a kind differ in cost.
    """

    weight: Floats
    squares: Floats
    costs: Floats
    cost_squares: Floats
    wrong: Mask
    positive: Mask | None = None
    crossed: Floats | None = None

    @classmethod
    def of_two_classes(cls, table: ScoreTable, positive: int, costs: Costs) -> Outcomes:
        """Kinds are the classes at each place, (2, n_places) in a row."""
        weight, squares = table.amounts["weight"], table.amounts["squares"]
        is_positive = np.zeros(weight.shape, dtype=np.bool_)
        is_positive[positive] = True
        wrong = np.stack([is_positive, np.zeros_like(is_positive), ~is_positive])
        sums, crossed = table.amounts.get("costs"), None
        if sums is None:
            matrix, negative = costs.matrix(2), 1 - positive
            rows = [matrix[:, negative], costs.of_reviews(matrix), matrix[:, positive]]
            each = np.stack(rows)[:, :, np.newaxis]
            totals, total_squares = weight * each, squares * each**2
            reviews = ReviewedKinds.of_two(table.amounts, costs)
            if reviews is not None:
                totals[1], total_squares[1], crossed = reviews.moments(weight, squares)
        else:
            own_squares = table.amounts["cost_squares"]
            rate, price = costs.rates(2)[:, np.newaxis], costs.review_cost
            reviewed = price * weight + rate * sums
            # Of the product of both parts only a bound is known; it is exact if a reviewer never
            # errs, or all cases of a kind cost the same.
            both = 2.0 * price * rate * np.sqrt(squares * own_squares)
            totals = np.where(wrong, sums, 0.0)
            totals[1] = reviewed
            total_squares = np.where(wrong, own_squares, 0.0)
            total_squares[1] = price**2 * squares + both + rate**2 * own_squares
        return cls(
            weight.ravel(),
            squares.ravel(),
            totals.reshape(3, -1),
            total_squares.reshape(3, -1),
            wrong.reshape(3, -1),
            is_positive.ravel(),
            None if crossed is None else crossed.ravel(),
        )

    @property
    def total(self) -> float:
        return float(self.weight.sum())

    def mean_cost(self, mix: Floats) -> float:
        """Mean cost of a case, if these shares of each kind are decided so."""
        return float((mix * self.costs).sum()) / self.total

    def confusion(
        self, mix: Floats, n_classes: int, decisions: Integers, n_unscored: int = 0
    ) -> Floats:
        """Weight by true class and by decision, (n_classes, n_classes + 1); the last is review.

        Kinds are the classes of each of some rows, (n_classes, R) in a row. `decisions`, of shape
        (2, R), are the classes that are decided before the lower and from the upper cut on. The
        first `n_unscored` rows are of cases whose true class nobody knows: they are left out.
        """
        weight = (mix * self.weight).reshape(3, n_classes, -1)
        weight[:, :, :n_unscored] = 0.0
        found = np.zeros((n_classes, n_classes + 1))
        for row, decided in zip((0, 2), decisions, strict=True):
            for true in range(n_classes):
                found[true, :-1] += np.bincount(decided, weight[row, true], n_classes)
        found[:, -1] = weight[1].sum(axis=1)
        return found

    def sums_against(self, mix: Floats, other: Floats) -> CostSums:
        """What cases cost more if they are decided by shares (3, K) of their kinds than by others.

        Within a kind costs are lines in what an error on a case, or its review, costs: so are their
        differences, and two moments tell these. Fourth powers are those of cases alike.
        """
        shares, weight, squares = mix - other, self.weight, self.squares
        held = weight > 0.0
        none = np.zeros_like(self.costs)
        each = np.divide(self.costs, weight, out=none.copy(), where=held)
        # By squared weight: the mean is another one where weights go with costs.
        typical = each.copy()
        if self.crossed is not None:
            np.divide(self.crossed, squares, out=typical[1], where=held)
        squared = np.divide(self.cost_squares, squares, out=none, where=held)
        deviation = np.sqrt(np.maximum(squared - typical**2, 0.0))
        deviation[deviation**2 <= _ROUNDING * squared] = 0.0
        mean = (shares * typical).sum(axis=0)
        second = squares * (mean**2 + (shares * deviation).sum(axis=0) ** 2)
        alike = np.divide(squares, weight**2, out=np.zeros(weight.size), where=held)
        return CostSums(
            self.total,
            float(squares.sum()),
            float((shares * self.costs).sum()),
            float(squares @ mean),
            float(second.sum()),
            float(alike @ second**2),
        )

    def costs_by_kind(self, mix: Floats) -> Floats:
        """Mean cost of a case of each kind."""
        paid = (mix * self.costs).sum(axis=0)
        found: Floats = np.divide(
            paid, self.weight, out=np.zeros(paid.size), where=self.weight > 0.0
        )
        return found


def paid_by_case(
    outcomes: Outcomes,
    mix: Floats,
    kinds: Integers,
    codes: NDArray[Any],
    costs: Costs,
    case_costs: Floats | None,
    reviewed: Floats | None,
) -> Floats:
    """Cost of cases of these kinds and classes, if each kind is decided by shares (3, K).

    `case_costs` are what errors on the cases cost, `reviewed` is what a review of each costs, where
    these differ by case.
    """
    if reviewed is not None:
        return paid_of_reviewed(outcomes, mix, kinds, reviewed)
    if case_costs is None:
        return outcomes.costs_by_kind(mix)[kinds]
    rate = np.asarray(costs.reviewer_error, dtype=np.float64)
    rates = rate if rate.ndim == 0 else costs.rates(len(rate))[codes]
    errors = (mix * outcomes.wrong).sum(axis=0)[kinds] + rates * mix[1, kinds]
    found: Floats = errors * case_costs + costs.review_cost * mix[1, kinds]
    return found


def paid_of_reviewed(outcomes: Outcomes, mix: Floats, kinds: Integers, reviewed: Floats) -> Floats:
    """Cost of cases of these kinds that cost so much if they are reviewed."""
    alone = mix.copy()
    alone[1] = 0.0
    found: Floats = outcomes.costs_by_kind(alone)[kinds] + mix[1, kinds] * reviewed
    return found


@dataclass(frozen=True)
class HeldOut:
    """What a policy does on cases that did not choose it.

    Attributes
    ----------
    cost, standard_error : float
        Mean cost of a case.
    automation_rate : float
        Share of the cases that the model decides alone.
    error_share, error_rate : float
        Its errors, as a share of all cases and of those it decides alone (NaN if none).
    misses, false_alarms : float
        Positives decided negative, as a share of the positives; negatives decided positive, as a
        share of the negatives. NaN for several classes.
    """

    cost: float
    standard_error: float
    automation_rate: float
    error_share: float
    error_rate: float
    misses: float
    false_alarms: float

    @classmethod
    def of(cls, outcomes: Outcomes, mix: Floats, clusters: ClusterCosts | None = None) -> HeldOut:
        """Of decisions that are mixed by shares (3, K) of the kinds."""
        total, cost = outcomes.total, outcomes.mean_cost(mix)
        alone = (mix[0] + mix[2]) @ outcomes.weight / total
        errors = (mix * outcomes.wrong).sum(axis=0) * outcomes.weight
        share = float(errors.sum()) / total
        misses = alarms = nan
        if outcomes.positive is not None:
            misses, alarms = (
                _over(float(errors[part].sum()), float(outcomes.weight[part].sum()))
                for part in (outcomes.positive, ~outcomes.positive)
            )
        error = standard_error(outcomes, mix, cost)
        if clusters is not None:
            error = clusters.standard_error(outcomes, mix, cost)
        return cls(cost, error, float(alone), share, _over(share, float(alone)), misses, alarms)

    def interval(self, confidence: float, n_cases: float) -> Interval:
        """Interval of the cost."""
        z = float(stdtrit(max(n_cases - 1.0, 1.0), 0.5 + 0.5 * confidence))
        reach = z * self.standard_error
        return Interval(max(self.cost - reach, 0.0), self.cost + reach)


class ClusterCosts(NamedTuple):
    """Clusters of cases that are drawn together: the kind, weight and cluster of each case.

    `reviewed` is what each case costs if it is reviewed, where that differs by case.
    """

    kind: Integers
    weight: Floats
    cluster: Integers
    reviewed: Floats | None = None

    def costs(self, outcomes: Outcomes, mix: Floats) -> Floats:
        """Cost of every case, if the cases of each kind are decided so."""
        if self.reviewed is not None:
            return paid_of_reviewed(outcomes, mix, self.kind, self.reviewed)
        found: Floats = outcomes.costs_by_kind(mix)[self.kind]
        return found

    def sums_against(self, outcomes: Outcomes, mix: Floats, other: Floats) -> CostSums:
        """`Outcomes.sums_against` of clusters."""
        more = self.costs(outcomes, mix) - self.costs(outcomes, other)
        return CostSums.of(more, self.weight, self.cluster)

    def standard_error(self, outcomes: Outcomes, mix: Floats, mean: float) -> float:
        """Standard error of the mean cost, if the cases of each kind are decided so."""
        costs = self.costs(outcomes, mix)
        apart = np.bincount(self.cluster, self.weight * (costs - mean))
        n = apart.size
        return sqrt(float(apart @ apart) * n / max(n - 1, 1)) / float(self.weight.sum())


def standard_error(outcomes: Outcomes, mix: Floats, mean: float) -> float:
    """Standard error of the mean cost of independent cases."""
    squares = np.broadcast_to(outcomes.squares, mix.shape)
    each = np.divide(
        outcomes.costs, outcomes.weight, out=np.zeros(mix.shape), where=outcomes.weight > 0.0
    )
    crossed = each * squares
    if outcomes.crossed is not None:
        crossed[1] = outcomes.crossed
    terms = outcomes.cost_squares - 2.0 * mean * crossed + mean**2 * squares
    n = outcomes.total**2 / float(outcomes.squares.sum())
    variance, largest = float((mix * terms).sum()), float((mix * outcomes.cost_squares).sum())
    if variance <= _ROUNDING * largest:  # every case costs the same
        return 0.0
    return sqrt(variance * n / max(n - 1.0, 1.0)) / outcomes.total


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else nan
