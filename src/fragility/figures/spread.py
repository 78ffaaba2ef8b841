"""Standard errors from the influences of cases, which may come in clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers
from ..index.influence import (
    LEAST_EFFECTIVE,
    clustered_error,
    error_of_squares,
    freedom_of_squares,
)
from ..moments import order_one_factor
from .case_influence import FIGURES_BY_CASE, OF_ANSWERS, OF_PAIRS

#: Figures whose influence by case is known, in the order of rows of moves.
MOVED = ("fragility_index", "ratio", *FIGURES_BY_CASE)
#: The same of answers.
MOVED_BY_ANSWERS = (*MOVED, *OF_ANSWERS)
#: Figures are of order one, or made so: a smaller standard error is none.
_ROUNDING = 1e-13
#: More than the order of terms changes in a sum, and less than nine digits show.
_ASIDE = 1.0 + 2.0**-36
#: Of these, the figures of pairs of classes: each class counts by itself.
_BY_CLASS = {"fragility_index", "ratio", *OF_PAIRS}


@dataclass(frozen=True, eq=False)
class Population:
    """Numbers, weights and effective numbers of the cases of each class."""

    support: Integers
    weight: Floats
    sizes: Floats

    @cached_property
    def size(self) -> float:
        """Effective number of all cases."""
        held = self.sizes > 0.0
        squares = float((self.weight[held] ** 2 / self.sizes[held]).sum())
        return float(self.weight.sum()) ** 2 / squares


class Spread(NamedTuple):
    """Standard error of a figure, and the degrees of freedom of that error (Satterthwaite)."""

    error: float
    freedom: float

    @property
    def rounded(self) -> Spread:
        """The same; an error of the size of rounding is none.

        Sums of moves that cancel, as within each class of clusters, leave such errors.
        """
        return self if not self.error < _ROUNDING else Spread(0.0, self.freedom)


class ClusterSums:
    """Sums over the cases of each cluster, which grow as clusters come.

    Parameters
    ----------
    n_rows : int
        Number of amounts that cases have.
    """

    def __init__(self, n_rows: int) -> None:
        self._sums = np.zeros((n_rows, 0))
        self._n_clusters = 0

    def add(self, clusters: Integers, *amounts: Floats) -> None:
        """Add cases by their clusters, numbered from 0."""
        n_clusters = int(clusters.max(initial=-1)) + 1
        self._n_clusters = max(self._n_clusters, n_clusters)
        more = n_clusters - self._sums.shape[1]
        if more > 0:  # room for as many again
            self._sums = np.pad(self._sums, ((0, 0), (0, more + n_clusters)))
        for row, sums in zip(amounts, self._sums, strict=True):
            sums[:n_clusters] += np.bincount(clusters, row, n_clusters)

    @property
    def totals(self) -> Floats:
        """By amount and cluster."""
        return self._sums[:, : self._n_clusters]


class MoveSums:
    """Sums over cases of how they move figures, or the difference of two models' figures.

    Parameters
    ----------
    population : Population
        All of the cases.
    scale : float
        Largest finite index: that of tiny scores moves so little that fourth powers would be zero.
    names : sequence of str
        Figures that are moved, `MOVED` or `MOVED_BY_ANSWERS`.
    """

    def __init__(self, population: Population, scale: float, names: Sequence[str] = MOVED) -> None:
        self.population, self.names = population, tuple(names)
        self._factors = np.ones(len(names))
        self._factors[0] = order_one_factor(scale)
        self._sums = np.zeros((2, len(names), population.support.size))
        self._clusters = ClusterSums(len(names) + 1)  # the last row has the weight
        self._in_parts = False

    @classmethod
    def of_units(
        cls,
        units: Iterable[tuple[Floats, Floats]],
        population: Population,
        scale: float,
        names: Sequence[str] = MOVED,
    ) -> MoveSums:
        """Of the cases of each class: moves that cases have in common, and how many have them."""
        sums = cls(population, scale, names)
        for code, (moves, counts) in enumerate(units):
            squares = moves * sums._factors[:, np.newaxis]
            squares *= squares
            sums._sums[0, :, code] = squares @ counts
            squares *= squares
            sums._sums[1, :, code] = squares @ counts
        return sums

    def add(
        self, code: int, moves: Floats, weights: Floats, clusters: Integers | None = None
    ) -> None:
        """Add cases of a class, by their moves of the figures, (10, n) or (11, n)."""
        moves = moves * self._factors[:, np.newaxis]
        if clusters is not None:
            self._clusters.add(clusters, *moves, weights)
        moves *= moves
        self._sums[0, :, code] += moves.sum(axis=1)
        self._sums[1, :, code] += np.einsum("fn,fn->f", moves, moves)

    def merge(self, other: MoveSums) -> None:
        """Add the sums of other cases of the same population, which come without clusters."""
        self._sums += other._sums
        self._in_parts = True

    @property
    def n_clusters(self) -> float:
        """Effective number of clusters; 0 if there are none."""
        weight = self._clusters.totals[-1]
        if not weight.size:
            return 0.0
        return float(weight.sum() ** 2 / (weight @ weight)) if weight.any() else 0.0

    @cached_property
    def _size(self) -> float:
        return self.population.size

    @cached_property
    def _sizes(self) -> dict[int, float]:
        """Effective number of cases of each class that has any."""
        counted = np.flatnonzero(self.population.support).tolist()
        return {code: float(self.population.sizes[code]) for code in counted}

    def spread(self, name: str, *, clustered: bool = True) -> Spread:
        """Standard error of a figure; without `clustered` as if cases were independent."""
        place, population = self.names.index(name), self.population
        if clustered and self.n_clusters:
            *moves, weight = self._clusters.totals
            found = Spread(*clustered_error(moves[place][weight > 0.0]))
        elif name in _BY_CLASS:
            squares, fourths = self._sums[:, place].tolist()
            unit = max(squares) or 1.0
            freedom = freedom_of_squares(
                [part / unit for part in squares],
                [part / unit**2 for part in fourths],
                population.support.tolist(),
            )
            found = Spread(error_of_squares(squares, self._sizes), freedom)
        else:
            total, fourth = map(sum, self._sums[:, place].tolist())
            n_cases = int(population.support.sum())
            found = spread_of_mean(total, fourth, self._size, n_cases)
        error, freedom = found.rounded
        error /= float(self._factors[place])
        if self._in_parts:
            error, freedom = nine_digits(error), nine_digits(freedom)
        return Spread(error, freedom)


def nine_digits(value: float) -> float:
    """A number that sums of floats over parts told: the same however the cases were spread.

    Such sums differ in the last digits with the order of their terms, which engines do not keep.
    Those of round numbers often lie half-way between two such numbers: all of these go one way.
    """
    return float(f"{value * _ASIDE:.9g}")


def spread_of_mean(squares: float, fourths: float, size: float, number: int) -> Spread:
    """Spread of a mean, or of a difference of means, of one sample.

    Parameters
    ----------
    squares, fourths : float
        Sums of the second and fourth powers of the moves of cases.
    size : float
        Effective number of cases.
    number : int
        Number of cases.
    """
    if not size >= LEAST_EFFECTIVE:
        return Spread(nan, nan)
    unit = float(squares) or 1.0
    freedom = freedom_of_squares([squares / unit], [fourths / unit**2], [number])
    return Spread(sqrt(squares * size / (size - 1.0)), freedom)
