"""Costs of errors and of reviews, and the review capacity."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_not_negative, check_share
from .._typing import Floats
from .._validation import check_nonnegative, check_values


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of deciding alone and of asking a human, all in one currency.

    Attributes
    ----------
    error_cost : float, (n_classes, n_classes) or (n_samples,) array-like
        What a wrong prediction costs that nobody looked at: one number, a matrix (true class ×
        predicted class, in the order of the labels; the diagonal is what right decisions cost, the
        least of its row), or one number for each case.
    review_cost : float, default=1.0
        What it costs to have a human look at a case, beside what the decision then costs.
    capacity : float, optional
        Largest share of the cases, from 0 to 1, that humans can review.
    reviewer_error : float, default=0.0
        Share of the reviewed cases, from 0 to 1, that the human gets wrong, too. Such an error
        costs what `error_cost` says (a matrix: the mean over the wrong classes).
    """

    error_cost: Any
    review_cost: float = 1.0
    capacity: float | None = None
    reviewer_error: float = 0.0

    def checked(self, n_classes: int, n_samples: int | None) -> Costs:
        """The same costs as numbers and arrays that fit the numbers of classes and samples.

        Where cases come in batches, `n_samples` is None: no number for each can be matched.
        """
        review = check_not_negative(self.review_cost, "review_cost")
        capacity = None if self.capacity is None else check_share(self.capacity, "capacity")
        reviewer = check_share(self.reviewer_error, "reviewer_error")
        error = _check_error_cost(self.error_cost, n_classes, n_samples)
        return Costs(error, review, capacity, reviewer)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {**vars(self), "error_cost": np.asarray(self.error_cost).tolist()}

    def of_cases(
        self, true: NDArray[Any], predicted: NDArray[Any], rows: NDArray[Any] | slice = slice(None)
    ) -> CaseCosts:
        """Cost of every case, decided alone and reviewed; the costs must be `checked`.

        `true` and `predicted` are places of classes in the labels, of the cases `rows` of those
        that `error_cost` has a number for.
        """
        cost = np.asarray(self.error_cost, dtype=np.float64)
        if cost.ndim == 2:
            return CaseCosts(cost[true, predicted], self.of_reviews(cost)[true])
        error = np.broadcast_to(cost if cost.ndim == 0 else cost[rows], true.shape)
        alone = np.where(true != predicted, error, 0.0)
        return CaseCosts(alone, self.review_cost + self.reviewer_error * error)

    def matrix(self, n_classes: int) -> Floats:
        """Costs as a matrix, true × decided class; costs by case at their mean."""
        cost = np.asarray(self.error_cost, dtype=np.float64)
        if cost.ndim == 2:
            return cost
        return np.where(np.eye(n_classes, dtype=np.bool_), 0.0, float(cost.mean()))

    def of_reviews(self, matrix: Floats) -> Floats:
        """Mean cost of a reviewed case of each class, what the human then decides included."""
        right = matrix.diagonal()
        wrong = (matrix.sum(axis=1) - right) / (len(matrix) - 1)
        rate = self.reviewer_error
        found: Floats = self.review_cost + (1.0 - rate) * right + rate * wrong
        return found


class CaseCosts(NamedTuple):
    """What each case costs if the model decides alone, and if a human reviews it."""

    alone: Floats
    reviewed: Floats


def chow_threshold(costs: Costs) -> float:
    """Threshold of Chow's rule, 1 − C_man / C_err − reviewer's error rate, within [0, 1].

    The best one if a confidence of q is right with probability q. NaN where errors differ in cost:
    there the rule is no threshold on the confidence.
    """
    if np.ndim(costs.error_cost) > 0:
        return nan
    error = float(costs.error_cost)
    if error <= 0.0:
        return 0.0
    return min(max(1.0 - costs.review_cost / error - costs.reviewer_error, 0.0), 1.0)


def _check_error_cost(
    error_cost: ArrayLike, n_classes: int, n_samples: int | None
) -> float | Floats:
    if error_cost is None:
        raise ValueError(
            "error_cost is missing: say what a wrong decision costs, in the unit of review_cost."
        )
    if np.ndim(error_cost) == 0:
        return check_not_negative(error_cost, "error_cost")  # type: ignore[arg-type]
    costs = check_values(error_cost, "error_cost")
    if n_samples is None and costs.ndim == 1:
        raise ValueError(
            "error_cost has a number for each case, which batches cannot be matched with; give one "
            f"number or a matrix of shape ({n_classes}, {n_classes})."
        )
    if costs.shape not in ((n_classes, n_classes), (n_samples,)):
        each = "" if n_samples is None else f", or one number for each of the {n_samples} cases"
        raise ValueError(
            f"error_cost has shape {costs.shape}; give one number, a matrix of shape "
            f"({n_classes}, {n_classes}) (true × predicted class){each}."
        )
    costs = check_nonnegative(costs, "error_cost")
    if costs.ndim == 2 and np.any(costs < costs.diagonal()[:, np.newaxis]):
        true, decided = np.argwhere(costs < costs.diagonal()[:, np.newaxis])[0].tolist()
        raise ValueError(
            f"error_cost has an error that is cheaper than being right: row {true} has "
            f"{costs[true, decided]:g} in column {decided} and {costs[true, true]:g} on the "
            "diagonal. Rows are true classes, columns decided ones; is it transposed?"
        )
    return costs
