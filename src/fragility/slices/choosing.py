"""Which conditions are worth a test: chosen on cases that do not test them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    condition in units of the root of the sum of its squares: a single heavy case scores 1.

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
        self._excess = [cases.excess for cases in comparisons]
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
        codes, others = self._codes[place], self._others[place]
        indicators = column.indicators()
        counts = [indicators @ np.bincount(c, minlength=column.n_codes) for c in (codes, others)]
        sums = [
            [indicators @ np.bincount(codes, part, column.n_codes) for part in (e, e * e)]
            for e in self._excess
        ]
        return self._scores(counts, sums)

    def _pairs(self, a: int, b: int, singles: Sequence[Floats]) -> Iterator[Candidate]:
        columns = self._columns[a], self._columns[b]
        shape = columns[0].n_codes, columns[1].n_codes
        left, right = columns[0].indicators(), columns[1].indicators().T

        def table(codes: Sequence[Integers], amounts: Floats | None = None) -> Floats:
            joint = codes[a] * shape[1] + codes[b]
            cells = np.bincount(joint, amounts, shape[0] * shape[1]).reshape(shape)
            return np.asarray(left @ cells @ right)

        counts = [table(self._codes), table(self._others)]
        sums = [[table(self._codes, part) for part in (e, e * e)] for e in self._excess]
        scores = self._scores(counts, sums)
        least = np.maximum(singles[a][:, np.newaxis], singles[b])
        least = np.maximum(least + _CLEARLY_MORE, LEAST_SCORE)
        for i, j in np.argwhere(scores >= least).tolist():
            parts = (columns[0], columns[0].conditions[i]), (columns[1], columns[1].conditions[j])
            yield Candidate(float(scores[i, j]), parts)

    def _scores(self, counts: Sequence[Floats], sums: Sequence[Sequence[Floats]]) -> Floats:
        """Scores of conditions; minus infinity where a half has too few cases."""
        by_comparison = [
            np.divide(total, np.sqrt(squares), out=np.zeros(total.shape), where=squares > 0.0)
            for total, squares in sums
        ]
        enough = np.minimum(*counts) >= self._min_cases
        return np.where(enough, np.min(by_comparison, axis=0), -np.inf)

    def _distinct(self, ordered: Sequence[Candidate], most: int) -> Iterator[Candidate]:
        rest = np.ones(np.count_nonzero(self._half), dtype=np.bool_)
        chosen = 0
        for candidate in ordered:
            if chosen == most:
                return
            own = candidate.meets()[self._half] & rest
            scores = (
                float(e[own].sum()) / max(float(np.sqrt((e[own] ** 2).sum())), 1e-300)
                for e in self._excess
            )
            if min(scores) >= LEAST_SCORE:
                yield candidate
                chosen += 1
                rest &= ~own
