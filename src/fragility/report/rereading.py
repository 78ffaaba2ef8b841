"""A second reading of the cases: paired tests, standard errors of several classes, worst cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers
from ..figures.index import KnownIndex
from ..figures.influence import (
    PairedSums,
    PairReading,
    Population,
    ScoreInfluence,
    TableInfluence,
    Tilted,
    movements,
)
from ..scores.bins import BLOCK
from ..scores.cases import Cases
from ..scores.tally import most_probable


class CaseRows(NamedTuple):
    """Cases, and where each stands in what the user gave."""

    cases: Cases
    rows: Integers


#: Gives the same cases whenever it is called.
Rereading = Callable[[], Iterable[CaseRows]]


class Standout(NamedTuple):
    """A case that the index sits on."""

    lift: float
    row: int
    code: int
    score: float
    predicted: int
    confidence: float
    group: int


class Reader:
    """Some models of some cases, read once more.

    Parameters
    ----------
    population : Population
    paired : bool
        Whether every two models are compared.
    """

    def __init__(
        self,
        influences: dict[str, ScoreInfluence | TableInfluence],
        population: Population,
        *,
        paired: bool,
        mapped: dict[str, Callable[[NDArray[Any]], Floats]] | None = None,
        group: tuple[int, int] | None = None,
        n_worst: int = 0,
        positive: int = 1,
    ) -> None:
        self._influences, self._population, self._positive = influences, population, positive
        self._mapped, self._group = mapped, group
        n_classes = population.support.size
        self.pairs = {pair: PairedSums(n_classes) for pair in combinations(influences, 2) if paired}
        self.readings = {
            name: PairReading(found, population.weight)
            for name, found in influences.items()
            if n_classes > 2 and isinstance(found, ScoreInfluence)
        }
        self._n_worst = n_worst
        self.worst: dict[str, list[Standout]] = {name: [] for name in influences}

    @property
    def needed(self) -> bool:
        """Whether there is anything to read for."""
        return bool(self.pairs or self.readings or self._n_worst)

    def add(self, block: Cases, rows: Integers) -> None:
        """Add a block of cases."""
        if self._group is not None:
            assert block.groups is not None
            column, place = self._group
            own = np.flatnonzero(block.groups[:, column] == place)
            block, rows = block.take(own), rows[own]
        columns = {name: self._columns(name, block.scores[name]) for name in self._influences}
        for code in np.flatnonzero(np.bincount(block.codes)).tolist():
            own = np.flatnonzero(block.codes == code)
            weights = None if block.weights is None else block.weights[own]
            total = self._population.weight[code]
            shares = np.full(own.size, 1.0 / total) if weights is None else weights / total
            moves = {}
            for name, influence in self._influences.items():
                part = columns[name][:, own]
                tilted = list(influence.tilted(code, part))
                if self.pairs:
                    moves[name] = movements(tilted, shares)
                if name in self.readings:
                    self.readings[name].add(code, part, tilted, weights)
                if self._n_worst:
                    self._note_worst(name, block, own, code, tilted, rows)
            for (a, b), sums in self.pairs.items():
                sums.add(code, moves[a], moves[b])

    def _columns(self, name: str, scores: NDArray[Any]) -> Floats:
        """Scores by column."""
        if self._mapped is not None:
            scores = self._mapped[name](scores)
        return np.ascontiguousarray(np.atleast_2d(scores.T), dtype=np.float64)

    def _note_worst(
        self,
        name: str,
        block: Cases,
        own: Indices,
        code: int,
        tilted: Sequence[Tilted],
        rows: Integers,
    ) -> None:
        if not tilted:
            return
        n_pairs = sum(code in (p.positive, *p.negatives) for p in self._known(name).pairs)
        lift = sum((part.lift for part in tilted), start=np.zeros(own.size)) / n_pairs
        held = self.worst[name]
        least = held[-1].lift if len(held) == self._n_worst else 1.0 + 1e-9
        chosen = np.flatnonzero(lift >= least)
        if chosen.size > self._n_worst:
            chosen = chosen[np.argsort(-lift[chosen], kind="stable")[: self._n_worst]]
        if not chosen.size:
            return
        cases = block.take(own[chosen])
        scores = cases.scores[name]
        predicted, confidence = most_probable(scores, self._positive)
        found = scores if scores.ndim == 1 else scores[:, code]
        groups = np.full(chosen.size, -1) if cases.groups is None else cases.groups[:, 0]
        held += [
            Standout(float(amount), int(row), code, float(score), int(p), float(c), int(g))
            for amount, row, score, p, c, g in zip(
                lift[chosen], rows[own[chosen]], found, predicted, confidence, groups, strict=True
            )
        ]
        held.sort(key=lambda case: (-case.lift, case.row))
        del held[self._n_worst :]

    def _known(self, name: str) -> KnownIndex:
        return self._influences[name].known

    def finish(self) -> None:
        """Hand the sums to the indices that need them."""
        for name, reading in self.readings.items():
            self._known(name).sums = reading.sums


def read_again(reread: Rereading, readers: Sequence[Reader]) -> None:
    """One reading of all cases for all who need it."""
    needed = [reader for reader in readers if reader.needed]
    if not needed:
        return
    with np.errstate(over="ignore", under="ignore"):
        for cases, rows in reread():
            for start in range(0, cases.size, BLOCK):
                part = slice(start, start + BLOCK)
                block = cases.take(part)
                for reader in needed:
                    reader.add(block, rows[part])
    for reader in needed:
        reader.finish()
