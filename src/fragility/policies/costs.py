r"""What decisions cost: `Costs` as users write them, and the cost of each decision on each case.

All kinds of costs end in one array, `action_costs`: entry :math:`[i, d]` is what decision d would
cost on case i, and its last column is the cost of a review. Searches, guarantees and tests of
policies read that array and never ask whether costs came as one number, as a matrix or by case, nor
how reviewers err. `DecisionCosts` also say what each decision would cost if the class of a case
were another one: expected costs and expected losses are made of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .._labelled_tables import in_class_order
from .._labels import listed
from .._names import did_you_mean
from .._parameters import check_not_negative, check_share, require
from .._typing import Floats, Indices, Integers
from .._validation import check_nonnegative, check_values
from ..cases.cases import Cases

#: Rows of a matrix of human decisions sum to one up to this.
_ROW_ROUNDING = 1e-9

_NO_COSTS = (
    "Costs has no costs of errors: give matrix, or miss and false_alarm, in the unit of review."
)
_TWO_COSTS = "Costs of errors were given for all cases and by case; give one of them."
_TWO_REVIEWERS = (
    "Errors of reviewers were given more than once, among human decisions, errors by case and "
    "reviewer_error of Costs: give one of them."
)


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of wrong decisions and of reviews, all in one currency.

    Parameters
    ----------
    matrix : float, array-like, DataFrame or mapping, optional
        What a decision costs that no human has reviewed. A number: what each error costs. A matrix
        of shape (n_classes, n_classes): true × decided class in the order of the labels, with the
        costs of right decisions on its diagonal. A DataFrame whose index and columns are the
        classes, in any order. A mapping ``{true: {decided: cost}}`` with an entry for each pair of
        different classes. An array of shape (n_samples,): what an error on each case costs.
    miss, false_alarm : float, optional
        Costs of the two errors of two classes, in place of a matrix: of a positive that is decided
        negative, and of a negative that is decided positive.
    review : float, optional
        Cost of the time of a human who reviews a case; the human's decision costs what the matrix
        says. Without it reviews are not on offer, and the model decides all cases.
    reviewer_error : float, array-like, Series or mapping, default=0
        Probability that a review is wrong: one number; by class, in the order of the labels or as
        ``{label: probability}``; by case; or a matrix, true × decided class, of how often humans
        decide for each class. A wrong review costs the mean over the wrong classes.

    Examples
    --------
    >>> from fragility.policies.costs import Costs
    >>> Costs(miss=5, false_alarm=1, review=0.3).checked(["healthy", "sick"]).matrix
    array([[0., 1.],
           [5., 0.]])
    >>> Costs({"cat": {"dog": 1}, "dog": {"cat": 2}}, review=0.3).checked(["cat", "dog"]).matrix
    array([[0., 1.],
           [2., 0.]])
    """

    matrix: Any = None
    _: KW_ONLY
    miss: float | None = None
    false_alarm: float | None = None
    review: float | None = None
    reviewer_error: Any = 0.0

    def __post_init__(self) -> None:
        two_errors = self.miss, self.false_alarm
        if self.matrix is not None:
            require(
                two_errors == (None, None),
                "Both a matrix of costs and miss or false_alarm were given; give one of them.",
            )
        elif two_errors != (None, None):
            name = "miss" if self.miss is None else "false_alarm"
            require(
                None not in two_errors, f"{name} is missing: say what both errors cost, or matrix."
            )

    def checked(
        self,
        labels: Sequence[Any],
        n_samples: int | None = None,
        *,
        positive: int = 1,
        answers: bool = False,
    ) -> Costs:
        """Return the same costs as arrays in the order of the labels.

        Parameters
        ----------
        labels : sequence
            The classes, in the order of the columns.
        n_samples : int, optional
            Number of cases; None: costs by case are refused.
        positive : int, default=1
            Place of the positive class of two.
        answers : bool, default=False
            Whether cases are answers, which have one kind of error.

        Returns
        -------
        Costs
            Whose `matrix` is an array of shape (n_classes, n_classes), or (n_samples,), and whose
            `reviewer_error` is a matrix of human decisions, or an array of shape (n_samples,).
        """
        matrix = self.matrix
        if self.miss is not None:
            matrix = self._matrix_of_two(labels, positive, answers)
        return Costs(
            _checked_matrix(matrix, labels, n_samples),
            review=None if self.review is None else check_not_negative(self.review, "review"),
            reviewer_error=_checked_reviewers(self.reviewer_error, labels, n_samples),
        )

    def _matrix_of_two(self, labels: Sequence[Any], positive: int, answers: bool) -> Floats:
        require(
            not answers,
            "miss and false_alarm are costs of two classes; an answer has one kind of error: give "
            "one number, such as Costs(4, review=0.5).",
        )
        if len(labels) > 2:
            first, second = (repr(label) for label in labels[:2])
            raise ValueError(
                f"miss and false_alarm are costs of two classes; of {len(labels)} give a cost for "
                f"each pair: Costs({{{first}: {{{second}: 1, ...}}, {second}: {{{first}: 5, ...}}, "
                "...})."
            )
        matrix = np.zeros((2, 2))
        matrix[positive, 1 - positive] = check_not_negative(self.miss or 0.0, "miss")
        matrix[1 - positive, positive] = check_not_negative(self.false_alarm or 0.0, "false_alarm")
        return matrix


class DecisionCosts(NamedTuple):
    """What each decision costs on each case, and what it would cost on a case of each class.

    If case i were of class c, decision d would cost ``amount[i] * matrix[c, d]`` and a review
    ``amount[i] * reviewed[c] + price``.

    Attributes
    ----------
    paid : ndarray of shape (n, n_classes + 1)
        Cost of each decision on each case, given its class; the last column is the review.
    matrix : ndarray of shape (n_classes, n_classes)
        Costs, true × decided class; costs by case are at their mean.
    reviewed : ndarray of shape (n_classes,)
        What the decisions of reviewers cost on average, without the price of the review.
    price : float
        Cost of the review itself; infinite if reviews are not on offer.
    amount : ndarray of shape (n,)
        Cost of an error on each case, relative to the mean of all cases.
    """

    paid: Floats
    matrix: Floats
    reviewed: Floats
    price: float
    amount: Floats

    def of_class(self, code: int, decisions: Integers, rows: Indices) -> Floats:
        """Return the costs of decisions of shape (n, k) on some rows, were all of one class.

        Decisions are places of classes in the labels; a review follows the last of them.
        """
        unit_costs = np.append(self.matrix[code], self.reviewed[code])
        prices = np.append(np.zeros(len(self.matrix)), self.price)
        costs: Floats = self.amount[rows, np.newaxis] * unit_costs[decisions] + prices[decisions]
        return costs


def action_costs(cases: Cases, costs: Costs, model: str) -> Floats:
    """Return what each decision would cost on each case.

    Parameters
    ----------
    cases : Cases
    costs : Costs
        Costs and reviewer errors by case may stand here or in the columns of `cases`.
    model : str
        Name of the model, whose answers are right or wrong; classes do not depend on it.

    Returns
    -------
    ndarray of shape (n, n_classes + 1)
        The last column is the cost of a review, infinite if reviews are not on offer.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.cases.cases import Cases
    >>> from fragility.policies.costs import Costs, action_costs
    >>> cases = Cases(np.array([0, 1]), {"model": np.array([0.2, 0.7])})
    >>> costs = Costs(miss=5, false_alarm=1, review=0.3, reviewer_error=0.1)
    >>> action_costs(cases, costs, "model")
    array([[0. , 1. , 0.4],
           [5. , 0. , 0.8]])
    """
    return decision_costs(cases, costs, model).paid


def decision_costs(cases: Cases, costs: Costs, model: str) -> DecisionCosts:
    """Return what each decision costs on each case, and would cost on a case of each class.

    The parameters are those of `action_costs`.
    """
    n_classes, truth = len(cases.labels), cases.truth(model)
    if cases.answers:
        # Nobody knows whether an answer that was not given would have been right: its review costs
        # what that of a right one does.
        truth = np.where(np.isnan(cases.scores[model]), 1, truth)
    if cases.error_cost is not None:
        require(costs.matrix is None and costs.miss is None, _TWO_COSTS)
        costs = replace(costs, matrix=cases.error_cost)
    costs = costs.checked(cases.labels, cases.n, positive=cases.positive, answers=cases.answers)
    matrix, amount = costs.matrix, np.ones(cases.n)
    if matrix.ndim == 1:
        mean = float(np.average(matrix, weights=cases.mass))
        amount = matrix / (mean or 1.0)
        matrix = np.where(np.eye(n_classes, dtype=np.bool_), 0.0, mean)
    reviewers, error_by_case = costs.reviewer_error, cases.reviewer_error
    if reviewers.ndim == 1:
        reviewers, error_by_case = np.eye(n_classes), reviewers
    elif cases.human is not None or error_by_case is not None:
        require(np.array_equal(reviewers, np.eye(n_classes)), _TWO_REVIEWERS)
    require(cases.human is None or error_by_case is None, _TWO_REVIEWERS)
    if cases.human is not None:
        decided = np.eye(n_classes)[cases.human]
        reviewers, of_case = _mean_decisions(decided, truth, cases.mass, n_classes), cases.human
        reviewed = matrix[truth, of_case]
    elif error_by_case is not None:
        decided = _decisions(error_by_case, truth, n_classes)
        reviewers = _mean_decisions(decided, truth, cases.mass, n_classes)
        reviewed = (decided * matrix[truth]).sum(axis=1)
    else:
        reviewed = (reviewers * matrix).sum(axis=1)[truth]
    price = inf if costs.review is None else costs.review
    paid = amount[:, np.newaxis] * np.column_stack([matrix[truth], reviewed])
    paid[:, -1] += price
    return DecisionCosts(paid, matrix, (reviewers * matrix).sum(axis=1), price, amount)


def _decisions(error: Any, truth: Integers, n_classes: int) -> Floats:
    """Return how often reviewers decide for each class, whose errors fall on all classes alike."""
    wrong = np.asarray(error, dtype=np.float64)[:, np.newaxis]
    right = np.eye(n_classes, dtype=np.bool_)[truth]
    decisions: Floats = np.where(right, 1.0 - wrong, wrong / (n_classes - 1))
    return decisions


def _mean_decisions(decisions: Floats, truth: Integers, mass: Floats, n_classes: int) -> Floats:
    """Return the mean decisions of reviewers on each class, (n_classes, n_classes).

    Reviewers are taken to err on a class without cases as often as on all cases.
    """
    of_class = [np.flatnonzero(truth == code) for code in range(n_classes)]
    sums = np.stack([mass[rows] @ decisions[rows] for rows in of_class])
    total = sums.sum(axis=1, keepdims=True)
    overall = 1.0 - float(sums.trace() / sums.sum())
    mean = _decisions(np.full(n_classes, overall), np.arange(n_classes), n_classes)
    np.divide(sums, total, out=mean, where=total > 0.0)
    return mean


def _checked_matrix(table: Any, labels: Sequence[Any], n_samples: int | None) -> Floats:
    """Return a matrix of costs in the order of the labels, or the amounts of all cases."""
    require(table is not None, _NO_COSTS)
    n_classes = len(labels)
    if isinstance(table, Mapping):
        table = _matrix_by_name(table, labels)
    elif np.ndim(table) == 0:
        table = check_not_negative(table, "matrix") * (1.0 - np.eye(n_classes))
    elif np.ndim(table) == 2:  # a Series has one amount for each case, in their order
        table = in_class_order(table, labels, "matrix")
    matrix = check_values(table, "matrix").astype(np.float64)
    if matrix.shape not in ((n_classes, n_classes), (n_samples,)):
        by_case = "" if n_samples is None else f", or one number for each of the {n_samples} cases"
        raise ValueError(
            f"matrix has shape {matrix.shape}; give one number, a matrix of shape "
            f"({n_classes}, {n_classes}) (true × decided class){by_case}."
        )
    check_nonnegative(matrix, "matrix")
    if matrix.ndim == 2 and np.any(matrix < matrix.diagonal()[:, np.newaxis]):
        true, decided = np.argwhere(matrix < matrix.diagonal()[:, np.newaxis])[0].tolist()
        raise ValueError(
            f"matrix has an error that is cheaper than being right: row {true} has "
            f"{matrix[true, decided]:g} in column {decided} and {matrix[true, true]:g} on the "
            "diagonal. Rows are true classes, columns decided ones; is it transposed?"
        )
    return matrix


def _matrix_by_name(table: Mapping[Any, Any], labels: Sequence[Any]) -> list[list[float]]:
    """Return the rows of a mapping of costs; right decisions cost nothing if they are left out."""
    names = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for true, costs in [(None, table), *table.items()]:
        row = "" if true is None else f" in the row of true class {true!r}"
        require(
            isinstance(costs, Mapping),
            f"matrix{row} must be a mapping of classes to costs, such as {{'sick': {{'well': 5}}, "
            f"'well': {{'sick': 1}}}}; got {costs!r}.",
        )
        unknown = [name for name in costs if name not in names]
        hint = did_you_mean(unknown, [str(name) for name in names])
        require(
            not unknown,
            f"matrix has costs{row} for {listed(unknown)}, but the classes are {listed(names)}."
            f"{hint}",
        )
        missing = [name for name in names if name not in costs and name != true]
        require(
            not missing,
            f"matrix has no cost{row} for {listed(missing)}: give a cost for each pair of "
            "different classes.",
        )
    return [
        [
            check_not_negative(table[true].get(name, 0.0), f"matrix[{true!r}][{name!r}]")
            for name in names
        ]
        for true in names
    ]


def _checked_reviewers(error: Any, labels: Sequence[Any], n_samples: int | None) -> Floats:
    """Return how often reviewers decide for each class, by true class, or their errors by case."""
    n_classes = len(labels)
    if isinstance(error, Mapping):
        error = _shares_by_name(error, labels)
    elif np.shape(error) != (n_samples,) or n_samples == n_classes:  # not one for each case
        error = in_class_order(error, labels, "reviewer_error")
    if np.ndim(error) == 0:
        error = np.full(n_classes, check_share(error, "reviewer_error"))
    rates = check_values(error, "reviewer_error").astype(np.float64)
    if rates.shape not in ((n_classes,), (n_classes, n_classes), (n_samples,)):
        by_case = "" if n_samples is None else f", one for each of the {n_samples} cases"
        raise ValueError(
            f"reviewer_error has shape {rates.shape}; give one number, one for each of the "
            f"{n_classes} classes{by_case}, or a matrix of shape ({n_classes}, {n_classes}) (true "
            "× decided class)."
        )
    check_nonnegative(rates, "reviewer_error")
    if rates.max() > 1.0:
        entry = np.argwhere(rates > 1.0)[0].tolist()
        raise ValueError(
            f"reviewer_error must hold shares from 0 to 1; entry {entry} is "
            f"{float(rates[tuple(entry)])!r}."
        )
    if rates.ndim == 2:
        excess = np.abs(rates.sum(axis=1) - 1.0)
        row = int(excess.argmax())
        require(
            excess[row] <= _ROW_ROUNDING,
            "reviewer_error as a matrix says how often humans decide for each class: its rows, the "
            f"true classes, must sum to 1; row {row} sums to {float(rates[row].sum()):g}.",
        )
    elif rates.size == n_classes:
        rates = _decisions(rates, np.arange(n_classes), n_classes)
    return rates


def _shares_by_name(shares: Mapping[Any, Any], labels: Sequence[Any]) -> list[float]:
    """Return shares in the order of the labels."""
    names = [label.item() if isinstance(label, np.generic) else label for label in labels]
    unlike = [*(key for key in shares if key not in names), *(c for c in names if c not in shares)]
    require(
        not unlike,
        f"reviewer_error must have a share for each of the classes {listed(names)}; these are "
        f"missing, or are not classes: {listed(unlike)}.",
    )
    return [check_share(shares[name], f"reviewer_error[{name!r}]") for name in names]
