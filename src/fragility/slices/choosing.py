"""Which conditions are worth a test: chosen on cases that do not test them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers, Mask
from .conditions import CodedColumn, Condition
from .permutation import StratifiedCases

#: Least score of a condition that is worth a test.
LEAST_SCORE = 1.645
#: How much more a condition on two columns must score than either of its parts.
_CLEARLY_MORE = 0.5
#: Conditions on two columns are made of these many columns, those of the largest scores.
MOST_PAIRED = 30
#: The best conditions, of which those are chosen that do not say the same.
_BEST = 500


class Candidate(NamedTuple):
    """A condition on one or two columns, and its score."""

    score: float
    parts: tuple[tuple[CodedColumn, Condition], ...]

    @property
    def text(self) -> str:
        """The condition in words."""
        return " and ".join(condition.text for _, condition in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column, _ in self.parts)

    def meets(self) -> Mask:
        """The cases that meet the condition, of all cases."""
        found = [column.meets(condition) for column, condition in self.parts]
        return found[0] if len(found) == 1 else found[0] & found[1]


class Chooser:
    """Scores conditions by the cases of one half.

    The score is the least, over the comparisons, of the sum of the excess over the cases of a
    condition, in standard deviations: a single heavy case scores 1.

    Parameters
    ----------
    columns : sequence of CodedColumn
        Of all cases.
    half : ndarray of bool, of shape (n,)
        The cases that choose.
    comparisons : sequence of StratifiedCases
        Of these cases.
    min_cases : int
        Fewest cases of a condition in each half.
    """

    def __init__(
        self,
        columns: Sequence[CodedColumn],
        half: Mask,
        comparisons: Sequence[StratifiedCases],
        min_cases: int,
    ) -> None:
        self._columns, self._half, self._min_cases = columns, half, min_cases
        self._comparisons = comparisons
        self._codes = [column.codes[half] for column in columns]
        self._others = [column.codes[~half] for column in columns]

    def candidates(self, most: int) -> list[Candidate]:
        """The best conditions, at most `most`, best first.

        Each must have a score of its own, on cases that none of those before it holds.
        """
        singles = [self._single(place) for place in range(len(self._columns))]
        best = [scores.max(initial=-np.inf) for scores in singles]
        order = np.argsort(-np.array(best), kind="stable")[:MOST_PAIRED]
        found = [
            Candidate(float(score), ((column, condition),))
            for column, scores in zip(self._columns, singles, strict=True)
            for condition, score in zip(column.conditions, scores, strict=True)
            if score >= LEAST_SCORE
        ]
        for a, b in combinations(sorted(order.tolist()), 2):
            found += self._pairs(a, b, singles)
        found.sort(key=lambda candidate: (-candidate.score, len(candidate.parts), candidate.text))
        return list(self._distinct(found[:_BEST], most))

    def _single(self, place: int) -> Floats:
        column = self._columns[place]
        indicators = column.indicators()
        codes = self._codes[place], self._others[place]
        return self._scores(codes, column.n_codes, lambda cells: np.asarray(indicators @ cells))

    def _pairs(self, a: int, b: int, singles: Sequence[Floats]) -> Iterator[Candidate]:
        columns = self._columns[a], self._columns[b]
        shape = columns[0].n_codes, columns[1].n_codes
        left, right = columns[0].indicators(), columns[1].indicators()

        def of_conditions(cells: Floats) -> Floats:
            rows = left @ cells.reshape(shape[0], -1)
            found = right @ rows.reshape(len(left), shape[1], -1)
            return np.asarray(found.reshape(len(left), len(right), *cells.shape[1:]))

        joint = [codes[a] * shape[1] + codes[b] for codes in (self._codes, self._others)]
        scores = self._scores(joint, shape[0] * shape[1], of_conditions)
        least = np.maximum(singles[a][:, np.newaxis], singles[b])
        least = np.maximum(least + _CLEARLY_MORE, LEAST_SCORE)
        for i, j in np.argwhere(scores >= least).tolist():
            parts = (columns[0], columns[0].conditions[i]), (columns[1], columns[1].conditions[j])
            yield Candidate(float(scores[i, j]), parts)

    def _scores(
        self,
        codes: Sequence[Integers],
        n_codes: int,
        of_conditions: Callable[[Floats], Floats],
    ) -> Floats:
        """Scores of conditions; minus infinity where a half has too few cases.

        Parameters
        ----------
        codes : sequence of two ndarrays
            Of the cases that choose, and of the others.
        n_codes : int
        of_conditions : callable
            From sums by code to sums by condition.
        """
        counts = [of_conditions(_sums(part, n_codes)) for part in codes]
        by_comparison = []
        for cases in self._comparisons:
            total = of_conditions(_sums(codes[0], n_codes, cases.excess))
            cells, shape = codes[0] * cases.n_strata + cases.strata, (n_codes, cases.n_strata)
            members, squares = (
                of_conditions(_sums(cells, n_codes * cases.n_strata, part).reshape(shape))
                for part in (None, cases.excess**2)
            )
            by_comparison.append(cases.standardised(total, members, squares))
        enough = np.minimum(*counts) >= self._min_cases
        return np.where(enough, np.min(by_comparison, axis=0), -np.inf)

    def _score(self, inside: Mask) -> float:
        """Score of some of the cases that choose."""
        found = []
        for cases in self._comparisons:
            excess, strata = cases.excess[inside], cases.strata[inside]
            members, squares = (_sums(strata, cases.n_strata, part) for part in (None, excess**2))
            found.append(float(cases.standardised(np.asarray(excess.sum()), members, squares)))
        return min(found)

    def _distinct(self, ordered: Sequence[Candidate], most: int) -> Iterator[Candidate]:
        rest = np.ones(np.count_nonzero(self._half), dtype=np.bool_)
        chosen = 0
        for candidate in ordered:
            if chosen == most:
                return
            own = candidate.meets()[self._half] & rest
            if self._score(own) >= LEAST_SCORE:
                yield candidate
                chosen += 1
                rest &= ~own


def _sums(codes: Integers, n_codes: int, amounts: Floats | None = None) -> Floats:
    """Sum of some amounts by code; without them, the number of cases."""
    return np.bincount(codes, amounts, n_codes).astype(np.float64, copy=False)
