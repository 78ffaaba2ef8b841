"""Costs of errors and of reviews, and the review capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labelled_tables import in_class_order, own_classes
from .._labels import listed
from .._parameters import check_not_negative, check_share
from .._typing import Floats
from .._validation import check_nonnegative, check_values
from ..scores.reviews import BOTH_BY_CASE

#: Rows of a matrix of decisions sum to one up to this.
_ROW_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of deciding alone and of asking a human, all in one currency.

    Attributes
    ----------
    error_cost : float, (n_classes, n_classes) or (n_samples,) array-like
        What a wrong prediction costs that nobody looked at: one number, a matrix (true class ×
        predicted class, in the order of the labels; the diagonal is what right decisions cost, the
        least of its row; or a DataFrame with the classes as index and columns, in any order), or
        one number for each case, in the order of the cases (the index of a Series is ignored).
    review_cost : float, default=1.0
        What it costs to have a human look at a case, beside what the decision then costs.
    capacity : float, optional
        Largest share of the cases, from 0 to 1, that humans can review.
    reviewer_error : float, mapping or array-like, default=0.0
        Share of the reviewed cases, from 0 to 1, that the human gets wrong, too: one number; one
        for each class, in the order of the labels, as ``{label: share}`` or as a Series with the
        classes as index; or one for each case (as many numbers as there are classes are those of
        the classes).
        Such an error costs what `error_cost` says (a matrix: the mean over the wrong classes). Or a
        matrix, true × decided class, whose rows sum to one: how often humans decide for each class.
    """

    error_cost: Any
    review_cost: float = 1.0
    capacity: float | None = None
    reviewer_error: Any = 0.0

    def checked(
        self, n_classes: int, n_samples: int | None, labels: Sequence[Any] | None = None
    ) -> Costs:
        """The same costs as numbers and arrays that fit the numbers of classes and samples.

        Where cases come in batches, `n_samples` is None: no number for each can be matched.
        `labels` are the classes, by which a mapping, a DataFrame or a Series by class is read. As
        many numbers of reviewers as there are classes are those of the classes.
        """
        review = check_not_negative(self.review_cost, "review_cost")
        capacity = None if self.capacity is None else check_share(self.capacity, "capacity")
        reviewer = check_reviewer_error(self.reviewer_error, n_classes, n_samples, labels)
        error = _check_error_cost(self.error_cost, n_classes, n_samples, labels)
        found = Costs(error, review, capacity, reviewer)
        if np.ndim(error) == 1 and found.errors_by_case(n_classes) is not None:
            raise ValueError(BOTH_BY_CASE)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        arrays = ("error_cost", "reviewer_error")
        return {**vars(self), **{name: np.asarray(getattr(self, name)).tolist() for name in arrays}}

    def errors_by_case(self, n_classes: int) -> Floats | None:
        """How probably reviewers err on each case, if checked costs have a number for each."""
        rate = np.asarray(self.reviewer_error)
        return rate if rate.ndim == 1 and rate.size != n_classes else None

    def of_cases(
        self,
        n_classes: int,
        true: NDArray[Any],
        predicted: NDArray[Any],
        rows: NDArray[Any] | slice = slice(None),
    ) -> CaseCosts:
        """Cost of every case, decided alone and reviewed; the costs must be `checked`.

        `true` and `predicted` are places of classes in the labels, of the cases `rows` of those
        that `error_cost` and `reviewer_error` have a number for.
        """
        cost, slips = np.asarray(self.error_cost, dtype=np.float64), self.errors_by_case(n_classes)
        if cost.ndim == 1:
            error = cost[rows]
            alone = np.where(true != predicted, error, 0.0)
            return CaseCosts(alone, self.review_cost + self.rates(n_classes)[true] * error)
        matrix = self.matrix(n_classes)
        if slips is None:
            return CaseCosts(matrix[true, predicted], self.of_reviews(matrix)[true])
        lost = slips[rows] * mean_regrets(matrix)[true]
        reviewed = self.review_cost + matrix.diagonal()[true] + lost
        return CaseCosts(matrix[true, predicted], reviewed)

    def rates(self, n_classes: int) -> Floats:
        """Share of the reviewed cases of each class that humans get wrong; none of them by case."""
        rate = np.asarray(self.reviewer_error, dtype=np.float64)
        if rate.ndim == 2:
            return 1.0 - rate.diagonal()
        return np.broadcast_to(rate, (n_classes,))

    def matrix(self, n_classes: int) -> Floats:
        """Costs as a matrix, true × decided class; costs by case at their mean."""
        cost = np.asarray(self.error_cost, dtype=np.float64)
        if cost.ndim == 2:
            return cost
        return np.where(np.eye(n_classes, dtype=np.bool_), 0.0, float(cost.mean()))

    def of_reviews(self, matrix: Floats) -> Floats:
        """Mean cost of a reviewed case of each class, what the human then decides included.

        Reviewers do not err by case here: their errors are represented by those of the classes.
        """
        right, rate = matrix.diagonal(), np.asarray(self.reviewer_error, dtype=np.float64)
        if rate.ndim == 2:
            mean: Floats = self.review_cost + (rate * matrix).sum(axis=1)
            return mean
        wrong = (matrix.sum(axis=1) - right) / (len(matrix) - 1)
        found: Floats = self.review_cost + (1.0 - rate) * right + rate * wrong
        return found


class CaseCosts(NamedTuple):
    """What each case costs if the model decides alone, and if a human reviews it."""

    alone: Floats
    reviewed: Floats


def mean_regrets(matrix: Floats) -> Floats:
    """What errors of each class cost beyond the right decision, the mean over the wrong classes."""
    right = matrix.diagonal()
    found: Floats = (matrix.sum(axis=1) - right) / (len(matrix) - 1) - right
    return found


def pair_cost_of(error_cost: ArrayLike | Costs) -> tuple[tuple[float, ...], ...] | Any:
    r"""What confusions cost, from the cost matrix of a policy: for training and for the index.

    Entry [i][j] is what it costs to take true class i for class j beyond the right decision,
    :math:`c_{ij} - c_{ii}`, over the mean of these regrets: a loss with costs of one is the loss
    without costs, and costs of any currency train the same model. A policy takes `error_cost`
    itself, whose unit is that of its reviews.

    Parameters
    ----------
    error_cost : array-like or DataFrame of shape (n_classes, n_classes), or Costs
        True class × decided class, in the order of the sorted labels, or a DataFrame with the
        classes as index and columns.

    Returns
    -------
    tuple of tuples of float; for a DataFrame a DataFrame with the same labels
        For `pair_cost` of `fragility.losses` (all confusions must cost something there) and of
        `fragility.fragility_index`.

    Examples
    --------
    Right decisions for the second class cost one each, too:

    >>> from fragility import pair_cost_of
    >>> pair_cost_of([[0, 1], [6, 1]])
    ((0.0, 0.3333333333333333), (1.6666666666666667, 0.0))
    """
    given: Any = error_cost.error_cost if isinstance(error_cost, Costs) else error_cost
    classes = own_classes(given, "error_cost") if np.ndim(given) == 2 else None
    costs = given if classes is None else in_class_order(given, classes, "error_cost")
    costs = check_values(costs, "error_cost")
    if costs.ndim < 2:
        raise ValueError(
            "error_cost must be a matrix, true × decided class; with one number, or one for each "
            "case, all confusions cost the same: leave pair_cost out."
        )
    costs = np.asarray(_check_error_cost(costs, len(costs), None, None))
    regrets = costs - costs.diagonal()[:, np.newaxis]
    count = len(costs)
    if not regrets.any():
        raise ValueError("error_cost has no error that costs more than the right decision.")
    mean = regrets.sum() / (count * (count - 1))
    if classes is not None:  # labels, so that whoever takes the table can align it again
        return type(given)(regrets / mean, index=classes, columns=classes)
    return tuple(map(tuple, (regrets / mean).tolist()))


def chow_threshold(costs: Costs) -> float:
    """Threshold of Chow's rule, 1 − C_man / C_err − reviewer's error rate, within [0, 1].

    The best one if a confidence of q is right with probability q. NaN where errors differ in cost,
    or reviewers in their errors: there the rule is no threshold on the confidence.
    """
    if np.ndim(costs.error_cost) > 0 or np.ndim(costs.reviewer_error) > 0:
        return nan
    error = float(costs.error_cost)
    if error <= 0.0:
        return 0.0
    return min(max(1.0 - costs.review_cost / error - float(costs.reviewer_error), 0.0), 1.0)


def _is_by_case(given: Any, n_classes: int, n_samples: int | None) -> bool:
    """Return True for one value a case, also where their number is wrong: that is said later."""
    if np.ndim(given) != 1 or n_samples is None:
        return False
    return len(given) > n_classes or (len(given) == n_samples and n_samples != n_classes)


def check_reviewer_error(
    given: Any, n_classes: int, n_samples: int | None, labels: Sequence[Any] | None
) -> float | Floats:
    """How often reviewers err: a number, or by class, by case, or true × decided class."""
    if isinstance(given, Mapping):
        given = _by_label(given, [] if labels is None else list(labels))
    elif not _is_by_case(given, n_classes, n_samples):
        given = in_class_order(given, labels, "reviewer_error")
    if np.ndim(given) == 0:
        return check_share(given, "reviewer_error")
    rates = check_values(given, "reviewer_error")
    each = "" if n_samples is None else f", one for each of the {n_samples} cases"
    if rates.shape not in ((n_classes,), (n_classes, n_classes), (n_samples,)):
        raise ValueError(
            f"reviewer_error has shape {rates.shape}; give one number, one for each of the "
            f"{n_classes} classes{each}, or a matrix of shape ({n_classes}, {n_classes}) (true × "
            "decided class)."
        )
    rates = check_nonnegative(rates, "reviewer_error")
    if rates.max() > 1.0:
        place = np.argwhere(rates > 1.0)[0].tolist()
        raise ValueError(
            f"reviewer_error must hold shares from 0 to 1; entry {place} is "
            f"{float(rates[tuple(place)])!r}."
        )
    if rates.ndim == 2 and np.abs(rates.sum(axis=1) - 1.0).max() > _ROW_ROUNDING:
        row = int(np.abs(rates.sum(axis=1) - 1.0).argmax())
        raise ValueError(
            "reviewer_error as a matrix says how often humans decide for each class: its rows, the "
            f"true classes, must sum to 1; row {row} sums to {float(rates[row].sum()):g}."
        )
    return rates


def _by_label(given: Mapping[Any, Any], labels: Sequence[Any]) -> list[float]:
    """Shares in the order of the labels."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    unlike = [*(key for key in given if key not in plain), *(c for c in plain if c not in given)]
    if unlike:
        raise ValueError(
            f"reviewer_error must have a share for each of the classes {listed(plain)}; these are "
            f"missing, or are not classes: {listed(unlike)}."
        )
    return [check_share(given[label], f"reviewer_error[{label!r}]") for label in plain]


def _check_error_cost(
    error_cost: ArrayLike,
    n_classes: int,
    n_samples: int | None,
    labels: Sequence[Any] | None,
) -> float | Floats:
    if error_cost is None:
        raise ValueError(
            "error_cost is missing: say what a wrong decision costs, in the unit of review_cost."
        )
    if np.ndim(error_cost) == 0:
        return check_not_negative(error_cost, "error_cost")  # type: ignore[arg-type]
    if np.ndim(error_cost) == 2:  # a Series has one amount for each case, in their order
        error_cost = in_class_order(error_cost, labels, "error_cost")
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
