"""The second reading: exact sums at the roots, and what each index owes to the cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf
from typing import NamedTuple

import numpy as np

from ..index.errors import Pair
from ..index.inference import PseudoMove
from ..index.influence import (
    SolvedPair,
    counted_classes,
    error_of_squares,
    freedom_of_squares,
    group_movements,
)
from ..index.root import SampleEquation, solve
from ..moments import Floats, Sample, TestedGroup
from .batches import ClassRows
from .first_pass import Population
from .quadrature import PointSample
from .tilts import PairTilt, Side, Tilted, pair_tilts

__all__ = ["ModelTilts", "PopulationTilts"]

#: Cases at a time: what is computed of them stays in cache.
_ROWS = 1 << 14
#: Up to so large a share -ln(1 - x) comes from four terms of its series.
_SMALL_SHARE = 1e-3


class Moves(NamedTuple):
    """What the index owes to cases: to first order, and (also the ratio) if they are left out."""

    first_order: Floats
    of_index: Floats
    of_ratio: Floats


class ModelTilts:
    """The pairs of one model in a population, as evidence for its interval.

    Speaks `fragility.index.inference.Evidence`: movements are coefficients of the pairs.
    """

    def __init__(self, population: Population, model: str, compared: bool) -> None:
        self._population, self._compared = population, compared
        self.tilts = pair_tilts(population, model)
        n_classes = population.classes.count
        self._by_class: list[list[tuple[int, PairTilt, Side]]] = [[] for _ in range(n_classes)]
        for place, tilt in enumerate(self.tilts):
            for side in tilt.sides:
                self._by_class[side.code].append((place, tilt, side))
        self._squares = np.zeros(n_classes)
        self._with_mistakes = None if self.is_binary else _MistakenPairs.of(self.tilts)

    @property
    def solved(self) -> list[SolvedPair]:
        return [SolvedPair(tilt.pair, tilt.fragility, tilt.share) for tilt in self.tilts]

    @property
    def settled(self) -> bool:
        return all(tilt.settled for tilt in self.tilts)

    @property
    def needs_reading(self) -> bool:
        """Whether the cases have anything to tell that the bins have not."""
        return any(tilt.is_regular for tilt in self.tilts) or (
            self._with_mistakes is not None and self._with_mistakes.finite
        )

    def begin(self) -> None:
        """Prepare a reading."""
        self._squares[:] = 0.0
        for tilt in self.tilts:
            tilt.begin()
        if self._with_mistakes is not None:
            self._with_mistakes.begin(self._population.classes.count)

    def finish(self) -> None:
        """Make use of a whole reading."""
        for tilt in self.tilts:
            tilt.improve()

    def add(self, code: int, columns: Floats, weights: Floats | None) -> Moves | None:
        """Add cases of a class; what the index owes to them, unless it is zero or infinite."""
        total = float(self._population.weight[code])
        shares = 1.0 / total if weights is None else weights / total
        first_order = np.zeros(columns.shape[1])
        index, ratio = np.zeros_like(first_order), np.zeros_like(first_order)
        for _, tilt, side in self._by_class[code]:
            if not tilt.is_regular:
                continue
            found = side.add(tilt.s, tilt.centred, columns[side.column], weights)
            factor = tilt.share * tilt.scale
            excess = found.lift - 1.0
            excess *= factor * shares
            first_order += excess
            if self._compared:
                self._leave_out(tilt, side, found, shares, index, ratio)
        self._squares[code] += float(first_order @ first_order)
        if self._with_mistakes is not None:
            self._with_mistakes.add(code, self._by_class[code], columns, weights)
        infinite = any(tilt.fragility == inf for tilt in self.tilts)
        return None if infinite or not self._compared else Moves(first_order, index, ratio)

    @staticmethod
    def _leave_out(
        tilt: PairTilt,
        side: Side,
        found: Tilted,
        shares: float | Floats,
        index: Floats,
        ratio: Floats,
    ) -> None:
        """Add what the index and the ratio of a pair owe, if a case is left out."""
        tilted = found.lift * shares
        rest = np.maximum(1.0 - np.asarray(shares), 2.0**-53)
        # ln(1 - share) - ln(1 - tilted), as `fragility.index.influence` has it.
        excess = _minus_log_of_rest(tilted)
        excess -= _minus_log_of_rest(np.asarray(shares))
        excess *= rest * (tilt.share * tilt.scale)
        index += excess
        # Of FI / separation, where the separation falls with the values.
        deviation = found.distance + (side.pivot - side.mean)
        deviation *= shares
        deviation *= tilt.share * tilt.fragility / tilt.separation
        excess += deviation
        excess /= tilt.separation
        ratio += excess

    # What an interval asks for.

    @property
    def is_binary(self) -> bool:
        return self._population.classes.is_binary

    def effective_size(self, code: int) -> float:
        return self._population.effective_size(code)

    def factor(self, pair: Pair) -> float:
        return 1.0

    def _tilt(self, pair: Pair) -> tuple[int, PairTilt]:
        return next((k, tilt) for k, tilt in enumerate(self.tilts) if tilt.pair == pair)

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        assert factor in (None, 1.0)  # scores are from 0 to 1
        return self._tilt(pair)[1].samples

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        return iter([self.groups(part.pair)])

    def _sizes(self, solved: Sequence[SolvedPair]) -> dict[int, float]:
        return {code: self.effective_size(code) for code in counted_classes(solved)}

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        return error_of_squares(self._squares, self._sizes(solved))

    def no_moves(self) -> Floats:
        return np.zeros(len(self.tilts))

    def moves_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoMove]]:
        place, tilt = self._tilt(part.pair)
        moves = self.no_moves()
        moves[place] = 1.0 / (s * (s * SampleEquation(groups, target)(s).slope))
        return moves, [
            (side.code, float(move[-1]))
            for side, move in zip(tilt.sides, group_movements(groups, target, s), strict=True)
        ]

    def error_of_moves(
        self, solved: Sequence[SolvedPair], moves: Floats, *pseudo: PseudoMove
    ) -> float:
        assert self._with_mistakes is not None
        squares = self._with_mistakes.squares(moves)
        for code, move in pseudo:
            squares[code] += move * move
        return error_of_squares(squares, self._sizes(solved), 1.0 if pseudo else 0.0)


class _MistakenPairs:
    """Products of what pairs with a pseudo-mistake in each class owe to the cases."""

    def __init__(self, roots: list[float], groups: list[tuple[PointSample, PointSample]]) -> None:
        self._roots = roots
        #: Otherwise the upper limit is infinite, whatever the cases say.
        self.finite = all(root > 0.0 for root in roots)
        self._constants: list[dict[float, tuple[float, float, float]]] = []
        if self.finite:
            for s, pair in zip(roots, groups, strict=True):
                self._constants.append(
                    {
                        sign: (group.pivot, group.log_moment(s).value, group.weight)
                        for sign, group in zip((1.0, -1.0), pair, strict=True)
                    }
                )
        self._products: Floats = np.zeros((0, 0, 0))

    @classmethod
    def of(cls, tilts: list[PairTilt]) -> _MistakenPairs:
        groups = [
            (tilt.samples[0].with_value(1.0), tilt.samples[1].with_value(0.0)) for tilt in tilts
        ]
        return cls([solve(pair, 0.0) for pair in groups], groups)

    def begin(self, n_classes: int) -> None:
        pairs = len(self._roots) if self.finite else 0
        self._products = np.zeros((n_classes, pairs, pairs))

    def add(
        self,
        code: int,
        members: list[tuple[int, PairTilt, Side]],
        columns: Floats,
        weights: Floats | None,
    ) -> None:
        if not self.finite:
            return
        excesses = np.empty((len(members), columns.shape[1]))
        for row, (place, _, side) in zip(excesses, members, strict=True):
            pivot, log_moment, weight = self._constants[place][side.sign]
            np.multiply(columns[side.column], side.sign, out=row)
            row -= pivot
            row *= self._roots[place]
            row -= log_moment
            np.exp(row, out=row)
            row -= 1.0
            row /= weight
            if weights is not None:
                row *= weights
        places = [place for place, _, _ in members]
        self._products[code][np.ix_(places, places)] += excesses @ excesses.T

    def squares(self, moves: Floats) -> Floats:
        """Sums of the squares of what a combination of pairs owes, by class."""
        if not self.finite:  # they will not be made use of
            return np.zeros(len(self._products))
        squares: Floats = np.einsum("p,cpq,q->c", moves, self._products, moves)
        return squares


class PopulationTilts:
    """All models in a population, and how their indices move together."""

    def __init__(self, population: Population, compared: bool = True) -> None:
        names = list(population.models)
        self._population = population
        self._compared = compared and len(names) > 1
        self.models = {name: ModelTilts(population, name, self._compared) for name in names}
        self._pairs = list(combinations(names, 2)) if self._compared else []
        self._sums: dict[tuple[str, str], Floats] = {}
        self.begin()

    @property
    def needs_reading(self) -> bool:
        return any(model.needs_reading for model in self.models.values())

    @property
    def settled(self) -> bool:
        return all(model.settled for model in self.models.values())

    def begin(self) -> None:
        """Prepare a reading."""
        for model in self.models.values():
            model.begin()
        shape = 2, 2, self._population.classes.count  # index and ratio; second and fourth powers
        self._sums = {pair: np.zeros(shape) for pair in self._pairs}

    def finish(self) -> None:
        """Make use of a whole reading."""
        for model in self.models.values():
            model.finish()

    def add(self, rows: ClassRows) -> None:
        """Add cases of a class."""
        for start in range(0, rows.size, _ROWS):
            part = slice(start, start + _ROWS)
            weights = None if rows.weights is None else rows.weights[part]
            moves = {
                name: model.add(rows.code, rows.scores[name][:, part], weights)
                for name, model in self.models.items()
            }
            for pair in self._pairs:
                a, b = (moves[name] for name in pair)
                if a is None or b is None:
                    continue
                for kind, change in enumerate((a.of_index - b.of_index, a.of_ratio - b.of_ratio)):
                    change *= change
                    sums = self._sums[pair][kind, :, rows.code]
                    sums += float(change.sum()), float(change @ change)

    def difference_error(self, a: str, b: str, *, ratio: bool) -> tuple[float, float]:
        """Standard error of the difference of two models, and its degrees of freedom."""
        squares, fourths = self._sums[a, b][int(ratio)]
        solved = self.models[a].solved
        sizes = {code: self._population.effective_size(code) for code in counted_classes(solved)}
        error = error_of_squares(squares, sizes)
        if not squares.any():
            return error, inf
        unit = float(squares.max())
        return error, freedom_of_squares(
            squares / unit, fourths / unit**2, self._population.support
        )


def _minus_log_of_rest(shares: Floats) -> Floats:
    """-ln(1 - x) of shares of a weight, up to what influence functions can tell."""
    if shares.max(initial=0.0) > _SMALL_SHARE:
        return np.asarray(-np.log(np.maximum(1.0 - shares, 2.0**-53)))
    series = shares * 0.25
    series += 1.0 / 3.0
    series *= shares
    series += 0.5
    series *= shares
    series += 1.0
    series *= shares
    return np.asarray(series)
