r"""Reviews of single cases: what they cost, and what they say of each class.

A reviewed case of class y costs :math:`r + c_{yy} + u`. The loss u is :math:`c_{yh} - c_{yy}` if a
human decided h, and the probability of an error times the mean regret of the wrong classes if only
that is known. Sums over cases have the losses of `fragility.scores.cases.REVIEW_SUMS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import Floats
from .._validation import LabelledScores
from ..scores.cases import REVIEW_SUMS, Cases
from ..scores.reviews import (
    BOTH_BY_CASE,
    BOTH_REVIEWS,
    ReviewKind,
    ReviewSums,
    checked_reviews,
)
from .costs import Costs, mean_regrets


@dataclass(frozen=True, eq=False)
class CaseReviews:
    """What is known of the review of each case: the decision of a human, or how probably one errs.

    Attributes
    ----------
    true : ndarray of int
        Place of each case's class in the labels.
    human : ndarray of int, optional
    errors : ndarray, optional
    """

    true: NDArray[Any]
    human: NDArray[Any] | None
    errors: Floats | None

    @classmethod
    def of(cls, cases: Cases) -> CaseReviews | None:
        """Of cases; None if nothing is known of their reviews."""
        if cases.human is None and cases.reviewer_errors is None:
            return None
        return cls(cases.codes, cases.human, cases.reviewer_errors)

    @property
    def kind(self) -> ReviewKind:
        return "errors" if self.human is None else "human"

    @property
    def column(self) -> NDArray[Any]:
        """What tells the reviews of cases apart that are alike in all else."""
        found = self.errors if self.human is None else self.human
        assert found is not None
        return found

    @property
    def slips(self) -> Floats:
        """Probability that each review is wrong; of what a human decided it is 0 or 1."""
        found = self.cases(None).slips
        assert found is not None
        return found

    def take(self, rows: Any) -> CaseReviews:
        """Of some of the cases."""
        human, errors = (None if p is None else p[rows] for p in (self.human, self.errors))
        return CaseReviews(self.true[rows], human, errors)

    def cases(self, weights: Floats | None) -> Cases:
        """The same without scores."""
        return Cases(self.true, {}, weights, None, None, self.human, self.errors)

    def sums(self, n_classes: int, weights: Floats | None) -> ReviewSums:
        """Sums by class."""
        found = ReviewSums(n_classes)
        found.add(self.cases(weights))
        return found

    def losses(self, matrix: Floats) -> Floats:
        """What each review costs beyond its price and the right decision."""
        if self.human is None:
            assert self.errors is not None
            found: Floats = self.errors * mean_regrets(matrix)[self.true]
            return found
        lost: Floats = matrix[self.true, self.human] - matrix.diagonal()[self.true]
        return lost

    def costs(self, costs: Costs, n_classes: int) -> Floats:
        """What each case costs, if it is reviewed."""
        matrix = costs.matrix(n_classes)
        found: Floats = costs.review_cost + matrix.diagonal()[self.true] + self.losses(matrix)
        return found


def given_reviews(
    data: LabelledScores, costs: Costs, human: ArrayLike | None
) -> CaseReviews | None:
    """Reviews of cases as a user gives them; the costs are `checked`."""
    n_classes, n = data.labels.size, data.codes.size
    errors = costs.errors_by_case(n_classes)
    check_one_source(costs, human is not None)
    if human is not None and np.ndim(costs.error_cost) == 1:
        raise ValueError(BOTH_BY_CASE)
    decided, errors = checked_reviews(errors, human, data.labels, n)
    if decided is None and errors is None:
        return None
    return CaseReviews(data.codes, decided, errors)


def check_one_source(costs: Costs, measured: bool) -> None:
    """Refuse a `reviewer_error` beside what humans decided, which says it, too."""
    if measured and (np.ndim(costs.reviewer_error) > 0 or costs.reviewer_error != 0.0):
        raise ValueError(BOTH_REVIEWS)


def measured_rates(sums: ReviewSums, kind: ReviewKind) -> Floats:
    """Errors of reviewers by class, as `Costs.reviewer_error` has them.

    Of several classes that humans decided it is the share of each decision, true × decided class. A
    class without cases has the errors of all.
    """
    weight, errors = sums.table("weight"), sums.table("errors").sum(axis=1)
    total, n = weight.sum(axis=1), len(weight)
    held, overall = total > 0.0, float(errors.sum() / total.sum())
    rates: Floats = np.divide(errors, total, out=np.full(n, overall), where=held)
    if kind == "errors" or n == 2:
        return rates
    spread = np.where(np.eye(n, dtype=np.bool_), 1.0 - overall, overall / (n - 1))
    return np.where(held[:, np.newaxis], weight / np.where(held, total, 1.0)[:, np.newaxis], spread)


class ReviewedKinds(NamedTuple):
    """Reviews of cases of some kinds: what a right one costs, and sums over what others cost more.

    Attributes
    ----------
    base : ndarray of shape (C, 1)
        Cost of a right review of each class.
    lost : ndarray of shape (4, C, R)
        Sums of `fragility.scores.cases.REVIEW_SUMS` with losses for errors, by class and row.
    """

    base: Floats
    lost: Floats

    @classmethod
    def of_two(cls, amounts: Mapping[str, Floats], costs: Costs) -> ReviewedKinds | None:
        """Of the sums of errors in a table of two classes; None if there are none."""
        if REVIEW_SUMS[0] not in amounts:
            return None
        matrix = costs.matrix(2)
        regret = mean_regrets(matrix)[:, np.newaxis]
        scale = np.stack([regret, regret, regret**2, np.ones_like(regret)])
        lost = scale * np.stack([amounts[name] for name in REVIEW_SUMS])
        return cls.of_losses(lost, costs)

    @classmethod
    def of_losses(cls, lost: Floats, costs: Costs) -> ReviewedKinds:
        """Of sums of losses."""
        matrix = costs.matrix(lost.shape[1])
        return cls((costs.review_cost + matrix.diagonal())[:, np.newaxis], lost)

    def scaled(self, shares: Floats) -> ReviewedKinds:
        """Of shares (C, R) of the cases."""
        return self._replace(lost=self.lost * shares)

    def moments(self, weight: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums over reviewed cases of w v, (w v)² and w² v, where v is what a case costs."""
        losses, crossed, lost_squares, _ = self.lost
        base = self.base
        return (
            base * weight + losses,
            base**2 * squares + 2.0 * base * crossed + lost_squares,
            base * squares + crossed,
        )

    def prices(self, code: int, weight: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Weight of the cases of a class by row, and what one costs reviewed: right, then others.

        Those that may go wrong are at the mean of their losses in the row.
        """
        losses, slips = self.lost[0, code], self.lost[3, code]
        base = np.full(weight.shape, self.base[code, 0])
        yield np.maximum(weight - slips, 0.0), base
        yield slips, base + np.divide(losses, slips, out=np.zeros(slips.size), where=slips > 0.0)
