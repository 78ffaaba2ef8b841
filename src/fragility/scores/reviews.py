"""How reviewers decide, by true class: exact sums over any number of cases."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import encode_labels, listed, places_among
from .._typing import Floats, Integers
from .._validation import check_case_costs
from ..exact import MOST_TERMS, ExactSums
from .cases import Cases

#: What cases say of their reviews: nothing, what a human decided, or how probably one errs.
ReviewKind = Literal["", "human", "errors"]

BOTH_REVIEWS = (
    "human and reviewer_error were given; give one of both: what humans decided says how often "
    "they err."
)

BOTH_BY_CASE = (
    "Costs of errors and errors of reviewers (or decisions of humans) were both given by case; "
    "give error_cost as a number or a matrix, or reviewer_error as a number or by class."
)


def review_kind(cases: Cases) -> ReviewKind:
    """What some cases say of their reviews; costs by case beside them are refused."""
    check_one_review(cases.human, cases.reviewer_errors, cases.costs)
    if cases.human is None and cases.reviewer_errors is None:
        return ""
    return "errors" if cases.human is None else "human"


def check_one_review(human: object, errors: object, costs: object) -> None:
    """Refuse what cases, or columns of them, do not say together; None is what they do not say."""
    if human is not None and errors is not None:
        raise ValueError(BOTH_REVIEWS)
    if costs is not None and not (human is None and errors is None):
        raise ValueError(BOTH_BY_CASE)


def checked_reviews(
    reviewer_error: ArrayLike | None, human: ArrayLike | None, labels: NDArray[Any], n: int
) -> tuple[Integers | None, Floats | None]:
    """Classes that humans decided, as places in the labels, and errors of reviewers by case."""
    if human is not None and reviewer_error is not None:
        raise ValueError(BOTH_REVIEWS)
    return (
        None if human is None else human_codes(human, labels, n),
        None if reviewer_error is None else check_reviewer_errors(reviewer_error, n),
    )


def check_reviewer_errors(errors: ArrayLike, n: int) -> Floats:
    """Probability that a reviewer errs, of each of `n` cases."""
    given = check_case_costs(errors, n, "reviewer_error")
    if given.max(initial=0.0) > 1.0:
        place = int(np.argmax(given > 1.0))
        raise ValueError(
            f"reviewer_error must hold shares from 0 to 1; entry [{place}] is "
            f"{float(given[place])!r}."
        )
    return given


def human_codes(human: ArrayLike, labels: NDArray[Any], n: int) -> Integers:
    """What humans decided, as places in the labels; every one of `n` cases has a decision."""
    if np.shape(human) != (n,):
        raise ValueError(
            f"human has shape {np.shape(human)}; give one decision for each of the {n} cases."
        )
    try:
        found, codes = encode_labels(human)
    except ValueError as error:
        flaw = str(error).replace("y_true", "human", 1)
        raise ValueError(
            f"{flaw} Every case takes a decision of a human; where there is none, leave the case "
            "out, or give reviewer_error by class instead."
        ) from None
    places, unknown = places_among(found, labels)
    if unknown:
        raise ValueError(
            f"human holds {listed(unknown)}, but the classes are {listed(labels)}: humans decide "
            "for one of these."
        )
    decided: Integers = places[codes].astype(np.int64)
    return decided


class ReviewSums:
    """Sums by true class and by the class that the human decided.

    Where only the probability of an error is known, cases count as decided rightly, and the sum of
    "errors" says how probably they were not.

    Parameters
    ----------
    n_classes : int
    """

    def __init__(self, n_classes: int) -> None:
        self._n = n_classes

    @cached_property
    def sums(self) -> dict[str, ExactSums]:
        """Sums by name; states without reviews never make them."""
        names = ("number", "weight", "squares", "errors")
        return {name: ExactSums((1, self._n * self._n)) for name in names}

    def add(self, cases: Cases) -> None:
        """Add cases that have reviews."""
        for start in range(0, cases.size, MOST_TERMS):
            part = cases.take(slice(start, start + MOST_TERMS)).weighted()
            weights, slips = part.weights, part.slips
            assert weights is not None
            assert slips is not None
            decided = part.codes if part.human is None else part.human
            keys = part.codes.astype(np.int64) * self._n + decided
            terms = np.ones(part.size), weights, weights**2, weights * slips
            for sums, more in zip(self.sums.values(), terms, strict=True):
                sums.add_at(keys, more, 0)

    def merge(self, other: ReviewSums) -> None:
        """Add the cases of other sums."""
        for name, own in self.sums.items():
            own.merge(other.sums[name])

    def table(self, name: str) -> Floats:
        """One of the sums, true × decided class."""
        return self.sums[name].floats(0).reshape(self._n, self._n)
