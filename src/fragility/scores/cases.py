"""Cases that models have scored, as checked arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers

#: Weights and costs outside this range would make exact sums very long.
LIGHTEST, HEAVIEST = 1e-30, 1e30


class Cases(NamedTuple):
    """Some cases of positive weight.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Place of each case's class in the labels.
    scores : dict of str to ndarray
        Of each model the probabilities of the positive class (n,), or of each class (n, C).
    weights, costs : ndarray of shape (n,), optional
        Weight of each case, and what an error on it costs.
    groups : ndarray of shape (n, n_columns), optional
        Place of each case's group, by column of groups.
    human : ndarray of int of shape (n,), optional
        Place of the class that a human decided.
    reviewer_errors : ndarray of shape (n,), optional
        Probability that a reviewer of the case errs.
    """

    codes: NDArray[Any]
    scores: dict[str, NDArray[Any]]
    weights: Floats | None = None
    groups: NDArray[Any] | None = None
    costs: Floats | None = None
    human: NDArray[Any] | None = None
    reviewer_errors: Floats | None = None

    @property
    def size(self) -> int:
        return self.codes.size

    def take(self, rows: NDArray[Any] | slice) -> Cases:
        """Some of the cases."""
        return Cases(
            self.codes[rows],
            {name: scores[rows] for name, scores in self.scores.items()},
            *(None if part is None else part[rows] for part in self[2:]),
        )

    @property
    def by_group(self) -> Cases:
        """The same in order of the groups in the first column: sums do not depend on it.

        What is summed for a group lies together, and is found faster if its cases do.
        """
        assert self.groups is not None
        order = np.argsort(self.groups[:, 0], kind="stable")
        return Cases(
            self.codes.take(order),
            {name: scores.take(order, axis=0) for name, scores in self.scores.items()},
            *(None if part is None else part.take(order, axis=0) for part in self[2:]),
        )

    def weighted(self) -> Cases:
        """The same with weights, one each if there were none."""
        return self if self.weights is not None else self._replace(weights=np.ones(self.size))

    @property
    def columns(self) -> list[NDArray[Any]]:
        """Everything that distinguishes the cases, as columns."""
        scores = [column for part in self.scores.values() for column in np.atleast_2d(part.T)]
        groups = [] if self.groups is None else [*self.groups.T]
        more = self.weights, self.costs, self.human, self.reviewer_errors
        others = [part for part in more if part is not None]
        return [self.codes, *scores, *others, *groups]

    @property
    def beside(self) -> NDArray[Any] | None:
        """What tells cases apart beside class, scores and weight: costs or reviews, never both."""
        given = (self.costs, self.human, self.reviewer_errors)
        return next((part for part in given if part is not None), None)

    @property
    def slips(self) -> Floats | None:
        """Probability that a review is wrong; of what a human decided it is 0 or 1."""
        if self.human is None:
            return self.reviewer_errors
        found: Floats = np.not_equal(self.human, self.codes).astype(np.float64)
        return found

    def hashes(self) -> NDArray[np.uint64]:
        """A pseudo-random number for each case, equal for equal cases; no weight counts as 1."""
        found = np.full(self.size, 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in self.weighted().columns:
            # Adding zero turns −0.0 into 0.0.
            bits = (column.astype(np.float64) + 0.0).view(np.uint64)
            # SplitMix64, whose constants these are.
            found = (found ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ (found >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            found ^= found >> np.uint64(32)
        return found


def fingerprint(cases: Cases) -> tuple[int, ...]:
    """Numbers that add up, modulo 2⁶⁴, over cases in any order: other cases have others.

    Their number, and by column the sum of the bits of its values times an odd number for the class.
    """
    factors = 2 * cases.codes.astype(np.uint64) + np.uint64(1)
    columns = (column.astype(np.float64, copy=False) for column in cases.columns[1:])
    # Adding zero turns −0.0 into 0.0.
    sums = (int((factors * (column + 0.0).view(np.uint64)).sum()) for column in columns)
    return cases.size, int(factors.sum()), *sums


def added_fingerprints(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The fingerprint of the cases of both."""
    return tuple((a + b) % 2**64 for a, b in zip(first, second, strict=True))


#: Sums over reviews with errors e: of we, w²e, w²e², and of the w with any e.
REVIEW_SUMS = ("review_errors", "review_crossed", "review_squares", "review_slips")


def case_amounts(
    n_cases: int, weights: Floats | None, costs: Floats | None, slips: Floats | None = None
) -> dict[str, Floats]:
    """Terms that cases add to sums by name: the fields of `fragility.scores.tally.Cells`.

    Without weights, costs and `slips` (errors of reviewers, or what they cost) the sum of "number"
    stands for "weight" and "squares", too. With slips there are those of `REVIEW_SUMS`.
    """
    amounts = {"number": np.ones(n_cases)}
    if weights is None and costs is None and slips is None:
        return amounts
    own = amounts["number"] if weights is None else weights
    amounts |= {"weight": own, "squares": own * own}
    if costs is not None:
        amounts |= {"costs": own * costs, "cost_squares": (own * costs) ** 2}
    if slips is not None:
        lost = own * slips
        terms = lost, own * lost, lost**2, own * (slips > 0.0)
        amounts |= dict(zip(REVIEW_SUMS, terms, strict=True))
    return amounts


def check_scale(amounts: Floats | None, name: str, what: str, holder: str) -> None:
    """Refuse positive weights or costs that exact sums cannot hold."""
    given = np.zeros(0) if amounts is None else amounts[amounts > 0.0]
    if given.size and (given.min() < LIGHTEST or given.max() > HEAVIEST):
        raise ValueError(
            f"{name} goes from {given.min():g} to {given.max():g}; a {holder} takes {what} from "
            f"{LIGHTEST:g} to {HEAVIEST:g} (and 0). Scale them (weights matter by their ratios "
            "only), or set negligible ones to 0."
        )


def check_total(counted: Integers, more: Integers, holder: str) -> None:
    """Refuse cases beyond what 64-bit integers can count."""
    total = sum(counted.tolist()) + sum(more.tolist())
    if total >= 2**63:
        raise ValueError(
            f"A {holder} counts up to 2**63 - 1 samples; these would be {total}. Was one merged "
            "with itself again and again?"
        )


def check_agreement(holder: str, what: str, own: object, others: object) -> None:
    """Refuse to merge sketches or states that differ in a setting."""
    if own != others:
        plural = {"sketch": "sketches", "state": "states"}[holder]
        raise ValueError(
            f"{plural.capitalize()} differ in {what}: {own!r} and {others!r}. Only {plural} of the "
            "same settings merge."
        )


def joined(parts: Sequence[Cases]) -> Cases:
    """Batches of cases as one batch."""
    if len(parts) == 1:
        return parts[0]

    def join(arrays: Iterable[Any]) -> Any:
        found = list(arrays)
        return None if found[0] is None else np.concatenate(found)

    return Cases(
        join(part.codes for part in parts),
        {name: join(part.scores[name] for part in parts) for name in parts[0].scores},
        *(join(part[place] for part in parts) for place in range(2, len(parts[0]))),
    )
