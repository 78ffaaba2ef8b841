"""A second reading of the cases: paired tests, standard errors of several classes, worst cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from .._typing import Floats, Indices, Integers
from ..figures.case_influence import CaseInfluences
from ..figures.influence import PairReading, ScoreInfluence, TableInfluence, Tilted, case_influences
from ..figures.spread import MoveSums, Population
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from .blocks import even_blocks, joined_arrays
from .moves import moved_figures
from .parts import WorstCase


class CaseRows(NamedTuple):
    """Cases, the row of each in the data of the user, and its cluster, if there are clusters."""

    cases: Cases
    rows: Integers
    clusters: Integers | None = None

    def take(self, part: slice | Indices) -> CaseRows:
        """Some of them."""
        own = None if self.clusters is None else self.clusters[part]
        return CaseRows(self.cases.take(part), self.rows[part], own)

    @staticmethod
    def joined(parts: list[CaseRows]) -> CaseRows:
        """Parts that follow each other as one."""
        cases = joined([part.cases for part in parts])
        rows, clusters = (joined_arrays(part[place] for part in parts) for place in (1, 2))
        return CaseRows(cases, rows, clusters)


#: The same cases with other scores.
Mapped = Callable[[Cases], Cases]
#: Gives the same cases whenever it is called.
Rereading = Callable[[], Iterable[CaseRows]]
#: Names of the cases of some rows.
CaseNames = Callable[[Sequence[int]], Mapping[int, str]]


def one_part(cases: Cases, clusters: Integers | None = None) -> Rereading:
    """A reading of cases in memory, whose rows nobody asks for."""
    return lambda: [CaseRows(cases, np.arange(cases.size), clusters)]


class PartReader:
    """A reader that can be sent to parts of the cases, where each part has one of its own.

    Attributes
    ----------
    KNOWN : tuple of str
        Attributes that no case changes, and that may be large: not copied, and not sent back.
    """

    KNOWN: ClassVar[tuple[str, ...]] = ()

    def anew(self) -> Self:
        """A copy that knows the same, for a reader that was told nothing yet."""
        shared = [getattr(self, name) for name in self.KNOWN]
        return deepcopy(self, {id(part): part for part in shared})

    def told(self) -> Self:
        """What it was told, which is enough to be merged."""
        found = copy(self)
        for name in self.KNOWN:
            setattr(found, name, None)
        return found


class Reader(PartReader):
    """What a second reading of some cases tells of some models.

    Parameters
    ----------
    state : ScoreState
        The state of the cases.
    influences : mapping of str to ScoreInfluence or TableInfluence
        Influence of the cases on the index of each model.
    population : Population
        All of the cases, by class.
    figures : mapping of str to CaseInfluences
        The same for the other figures.
    paired : bool
        Whether every two models are compared.
    spreads : bool
        Whether standard errors take sums over the cases.
    intervals : bool
        Whether intervals of the index of several classes take sums over the cases.
    n_worst : int
        Number of worst cases to list for each model.
    """

    KNOWN = ("_state", "_influences", "_population", "_figures")

    def __init__(
        self,
        state: ScoreState,
        influences: Mapping[str, ScoreInfluence | TableInfluence],
        population: Population,
        *,
        figures: Mapping[str, CaseInfluences] | None = None,
        paired: bool = False,
        spreads: bool = False,
        intervals: bool = False,
        n_worst: int = 0,
    ) -> None:
        self._state, self._influences = state.without_cases(), influences
        self._population = population
        self._n_worst = n_worst
        self._figures = figures or {}
        scales = {name: found.known.largest for name, found in influences.items()}
        names = moved_figures(state.task)
        #: By pair of models the sums of the differences of their influences.
        self.pairs = {
            (a, b): MoveSums(population, max(scales[a], scales[b]), names)
            for a, b in combinations(influences, 2)
            if paired
        }
        #: By model the sums of its own influences.
        self.own = {
            name: MoveSums(population, scale, names) for name, scale in scales.items() if spreads
        }
        self._readings = {
            name: PairReading(found, population.weight)
            for name, found in influences.items()
            if intervals and isinstance(found, ScoreInfluence)
        }
        #: By model and kind of mistake, the cases of the largest lift, still without their names.
        self._held: dict[str, dict[str, list[WorstCase]]] = {name: {} for name in influences}

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        block, rows, clusters = found
        columns = {
            name: np.ascontiguousarray(np.atleast_2d(block.scores[name].T), dtype=np.float64)
            for name in self._influences
        }
        for code in np.flatnonzero(np.bincount(block.codes)).tolist():
            own = np.flatnonzero(block.codes == code)
            weights = None if block.weights is None else block.weights[own]
            total = self._population.weight[code]
            shares = np.full(own.size, 1.0 / total) if weights is None else weights / total
            together = None if clusters is None else clusters[own]
            moves: dict[str, Floats] = {}
            for name, influence in self._influences.items():
                part = columns[name][:, own]
                tilted = list(influence.tilted(code, part))
                if name in self._figures:
                    figures = self._figures[name].values(code, part)
                    if weights is not None:
                        figures *= weights
                    if self.pairs:
                        moves[name] = figure_moves(tilted, shares, figures, left_out=True)
                    if name in self.own:
                        found_moves = figure_moves(tilted, shares, figures, left_out=False)
                        self.own[name].add(code, found_moves, shares * total, together)
                if name in self._readings:
                    self._readings[name].add(code, part, tilted, weights)
                if self._n_worst and tilted:
                    lift = sum((part.lift for part in tilted), start=np.zeros(own.size))
                    self._note_worst(name, block, own, rows, lift / len(tilted))
            for (a, b), sums in self.pairs.items():
                sums.add(code, moves[a] - moves[b], shares * total, together)

    def merge(self, other: Reader) -> None:
        """Add what a reader of other cases was told."""
        for pair, sums in self.pairs.items():
            sums.merge(other.pairs[pair])
        for name, sums in self.own.items():
            sums.merge(other.own[name])
        for name, reading in self._readings.items():
            reading.merge(other._readings[name])
        for name, kinds in other._held.items():
            for kind, cases in kinds.items():
                held = self._held[name].setdefault(kind, [])
                held += cases
                held.sort(key=_worst_first)
                del held[self._n_worst :]

    def _note_worst(
        self, name: str, block: Cases, own: Indices, rows: Integers, lift: Floats
    ) -> None:
        """Keep the worst of some cases of a class, by kind of mistake."""
        # Where no case stands out, there is none to show.
        standing = np.flatnonzero(lift >= 1.0 + 1e-9)
        predicted, _ = self._state.task.predictions(block.scores[name][own[standing]])
        wrong = predicted != block.codes[own[standing]]
        for part in (standing[wrong], standing[~wrong]):
            chosen = part[np.argsort(-lift[part], kind="stable")[: self._n_worst]]
            found = self._described(name, block, own[chosen], rows, lift[chosen])
            for kind in {case.kind for case in found}:
                held = self._held[name].setdefault(kind, [])
                held += [case for case in found if case.kind == kind]
                held.sort(key=_worst_first)
                del held[self._n_worst :]

    def _described(
        self, name: str, block: Cases, places: Indices, rows: Integers, lift: Floats
    ) -> list[WorstCase]:
        labels, positive = self._state.labels.tolist(), self._state.positive
        cases = block.take(places)
        scores = cases.scores[name]
        predicted, confidence = self._state.task.predictions(scores)
        found = []
        for place, row in enumerate(rows[places].tolist()):
            code = int(cases.codes[place])
            kind = ""
            if code != int(predicted[place]):
                kind = "mistake"
                if self._state.is_binary:
                    kind = "miss" if code == positive else "false alarm"
            found.append(
                WorstCase(
                    row,
                    "",
                    labels[code],
                    labels[int(predicted[place])],
                    float(scores[place] if scores.ndim == 1 else scores[place, code]),
                    float(confidence[place]),
                    float(lift[place]),
                    self._state.group_of(cases.groups, place),
                    kind,
                )
            )
        return found

    @property
    def worst(self) -> dict[str, list[WorstCase]]:
        """By model the cases of the largest lift: half misses and half false alarms of two classes.

        Where there are too few of a kind, there are more of the other; then cases that are
        predicted right, but stand out.
        """
        found = {}
        for name, held in self._held.items():
            kinds = [held.get(kind, []) for kind in ("miss", "false alarm")]
            chosen = held.get("mistake", [])
            if any(kinds):
                half = (self._n_worst + 1) // 2, self._n_worst // 2
                chosen = [case for part, n in zip(kinds, half, strict=True) for case in part[:n]]
                rest = [case for part, n in zip(kinds, half, strict=True) for case in part[n:]]
                chosen += sorted(rest, key=_worst_first)[: self._n_worst - len(chosen)]
            chosen = chosen + held.get("", [])[: self._n_worst - len(chosen)]
            found[name] = sorted(chosen, key=_worst_first)
        return found

    def finish(self) -> None:
        """Hand the sums to the indices that need them."""
        for name, reading in self._readings.items():
            self._influences[name].known.sums = reading.finish()


def _worst_first(case: WorstCase) -> tuple[float, int]:
    return -case.lift, case.row


def figure_moves(
    tilted: Sequence[Tilted], shares: Floats, figures: Floats, *, left_out: bool
) -> Floats:
    """How cases move the figures `fragility.figures.spread.MOVED`, and those of answers."""
    return np.concatenate([case_influences(tilted, shares, left_out=left_out), figures])


class BlockReader(Protocol):
    """Reads the cases block by block."""

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""

    def merge(self, other: Any) -> None:
        """Add what a reader of the same kind was told of other cases."""

    def finish(self) -> None:
        """Hand on what was read."""

    def anew(self) -> Self:
        """As in `PartReader`."""

    def told(self) -> Self:
        """As in `PartReader`."""


@runtime_checkable
class PartedReading(Protocol):
    """A reading of cases that lie in parts elsewhere, where readers are sent to."""

    def __call__(self) -> Iterable[CaseRows]:
        """The cases one after the other; few readings need that."""

    def readers_of_parts(
        self, readers: Sequence[BlockReader], mapped: Mapped | None
    ) -> Sequence[BlockReader]:
        """Copies of new readers that were told all cases, after a map of their scores."""


@dataclass(frozen=True)
class MappedReading:
    """A reading of cases with other scores."""

    reread: Rereading
    mapped: Mapped

    def __call__(self) -> Iterable[CaseRows]:
        return (found._replace(cases=self.mapped(found.cases)) for found in self.reread())


def read_again(reread: Rereading, readers: Sequence[BlockReader]) -> None:
    """One reading of all cases for all readers; none if there are no readers."""
    if not readers:
        return
    mapped = reread.mapped if isinstance(reread, MappedReading) else None
    source = reread.reread if isinstance(reread, MappedReading) else reread
    if isinstance(source, PartedReading):
        told = source.readers_of_parts(readers, mapped)
        for reader, found in zip(readers, told, strict=True):
            reader.merge(found)
    else:
        add_blocks(reread(), readers)
    for reader in readers:
        reader.finish()


def add_blocks(parts: Iterable[CaseRows], readers: Sequence[BlockReader]) -> None:
    """Tell all readers of some cases, in blocks of one size."""
    with np.errstate(over="ignore", under="ignore"):
        for block in even_blocks(parts, CaseRows.joined):
            for reader in readers:
                reader.add(block)
