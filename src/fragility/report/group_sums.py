"""Sums over the cases of each group, by which the means of two models are compared there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from math import factorial, prod

import numpy as np

from .._typing import Floats, Integers, Mask
from ..deferral.paired_costs import CostSums
from ..figures.spread import Spread, nine_digits, spread_of_mean
from ..index.influence import clustered_error

#: Sums by key wait until there are so many, or as many as are known.
_WAITING = 1 << 16
_NINE_DIGITS = np.vectorize(nine_digits, otypes=[np.float64])


class GroupSums:
    r"""Sums over the cases of each group of a value that models have of every case.

    The mean of model a in a group is :math:`\mu_a = \sum y_a v_a / Y_a`, with :math:`y_a` the
    weight of a case, or 0 if the model has no value of it, and :math:`Y_a = \sum y_a`. A case moves
    the difference of two means by
    :math:`m = y_a (v_a - \mu_a) / Y_a - y_b (v_b - \mu_b) / Y_b`, which is linear in a few amounts
    of the case. Sums of products of two and of four of these amounts tell :math:`\sum m^2` and
    :math:`\sum m^4` after one reading, whatever the means turn out to be.

    Parameters
    ----------
    n_groups : int
        Of all columns of groups together.
    models : sequence of str
    some_declined : bool, default=False
        Whether a model may have no value of a case that another has.
    centred : bool, default=True
        Whether values are taken from the first mean of their group: values that differ little then
        lose no digits. Costs are not, since their own powers are asked for.
    pivots : mapping of str to ndarray of shape (n_groups,), optional
        What values are taken from instead, by model. Sums merge if they have the same.
    """

    def __init__(
        self,
        n_groups: int,
        models: Sequence[str],
        *,
        some_declined: bool = False,
        centred: bool = True,
        pivots: Mapping[str, Floats] | None = None,
    ) -> None:
        self.models, self._some_declined, self._centred = tuple(models), some_declined, centred
        #: Cases by group, their weight and its square.
        self.number, self.weight, self._squares = np.zeros((3, n_groups))
        #: By model and group: what values are taken from, Σ y, and Σ y times the rest.
        start = np.nan if centred else 0.0
        self._pivots = {name: np.full(n_groups, start) for name in self.models}
        if pivots is not None:
            self._pivots = {name: pivots[name].copy() for name in self.models}
        self._in_parts = False
        self._totals = {name: np.zeros((2, n_groups)) for name in self.models}
        self._products = {
            pair: {powers: np.zeros(n_groups) for powers in _powers(4 if some_declined else 2)}
            for pair in combinations(self.models, 2)
        }
        self._largest = {pair: np.zeros(n_groups) for pair in self._products}
        #: Of every cluster within a group: rests of all models, then their weights.
        self._clusters = KeyedSums(2 * len(self.models))

    def add(
        self,
        by_column: Iterable[Integers],
        values: Mapping[str, Floats],
        weights: Floats | None,
        clusters: Integers | None = None,
        held: Mapping[str, Mask] | None = None,
    ) -> None:
        """Add cases.

        Parameters
        ----------
        by_column : iterable of ndarray of int
            For each column of groups, the group of every case among those of all columns.
        values : mapping of str to ndarray
            By model the value of every case; finite also where the model has none.
        weights : ndarray, optional
        clusters : ndarray of int, optional
            Numbered from 0.
        held : mapping of str to ndarray of bool, optional
            By model, of which cases it has a value; by default of all.
        """
        n = next(iter(values.values())).size
        weight = np.ones(n) if weights is None else weights
        masses = {name: weight if held is None else weight * held[name] for name in values}
        for places in by_column:
            self._add(places, values, weight, masses, clusters)

    def _add(
        self,
        places: Integers,
        values: Mapping[str, Floats],
        weight: Floats,
        masses: Mapping[str, Floats],
        clusters: Integers | None,
    ) -> None:
        n_groups = self.number.size

        def summed(amounts: Floats | None) -> Floats:
            return np.bincount(places, amounts, n_groups).astype(np.float64, copy=False)

        self.number += summed(None)
        self.weight += summed(weight)
        self._squares += summed(weight * weight)
        rests: dict[str, Floats] = {}
        for name, value in values.items():
            mass = summed(masses[name])
            if self._centred:
                pivots = self._pivots[name]
                new = np.flatnonzero(np.isnan(pivots) & (mass > 0.0))
                pivots[new] = summed(masses[name] * value)[new] / mass[new]
                value = value - np.nan_to_num(pivots)[places]
            rests[name] = masses[name] * value
            self._totals[name] += mass, summed(rests[name])
        for (a, b), products in self._products.items():
            amounts = self._amounts((rests[a], rests[b]), (masses[a], masses[b]))
            apart = np.abs(masses[a] * values[a] - masses[b] * values[b])
            np.maximum.at(self._largest[a, b], places, apart)
            pairs: dict[tuple[int, ...], Floats] = {
                both: amounts[both[0]] * amounts[both[1]]
                for both in combinations_with_replacement(range(len(amounts)), 2)
            }
            for powers, sums in products.items():
                first, second = powers[:2], powers[2:]
                sums += summed(pairs[first] * pairs[second] if second else pairs[first])
        if clusters is not None:
            keys = clusters.astype(np.int64) * n_groups + places
            self._clusters.add(keys, [*rests.values(), *masses.values()])

    def merge(self, other: GroupSums) -> None:
        """Add the sums of other cases, which have the same pivots and no clusters."""
        same = all(np.array_equal(own, other._pivots[name]) for name, own in self._pivots.items())
        assert same, "values were taken from different pivots"
        self.number += other.number
        self.weight += other.weight
        self._squares += other._squares
        for name, totals in self._totals.items():
            totals += other._totals[name]
        for pair, products in self._products.items():
            for powers, sums in products.items():
                sums += other._products[pair][powers]
            np.maximum(self._largest[pair], other._largest[pair], out=self._largest[pair])
        self._in_parts = True

    def _told(self, values: Floats) -> Floats:
        """Values that sums tell, to as many digits as do not depend on the order of cases."""
        return _NINE_DIGITS(values) if self._in_parts else values

    def _amounts(
        self, rests: Sequence[Floats] | Floats, masses: Sequence[Floats] | Floats
    ) -> list[Floats]:
        """What moves of the difference of two means are linear in, by case or by cluster.

        Differences come first: where two models agree, they vanish exactly.
        """
        found = [rests[0] - rests[1], masses[1]]
        if self._some_declined:
            found += [rests[1], masses[0] - masses[1]]
        return found

    def _factors(self, a: str, b: str) -> Floats:
        """By amount and group, the factor of `_amounts` in the moves."""
        (mass_a, rest_a), (mass_b, rest_b) = self._totals[a], self._totals[b]
        with np.errstate(divide="ignore", invalid="ignore"):
            over_a, over_b = 1.0 / mass_a, 1.0 / mass_b
            shift_a, shift_b = rest_a * over_a**2, rest_b * over_b**2
            found = np.stack([over_a, shift_b - shift_a, over_a - over_b, -shift_a])
        found[:, (mass_a == 0.0) | (mass_b == 0.0)] = np.nan
        return found if self._some_declined else found[:2]

    def means(self, model: str) -> Floats:
        """Mean by group; NaN where the model has no value."""
        mass, rest = self._totals[model]
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._told(np.asarray(self._pivots[model] + rest / mass))

    def farthest(self, a: str, b: str, *, of_all: bool = False) -> Floats:
        r"""By group, how far a single case or cluster is from telling two models alike.

        That is the largest :math:`|y_a v_a - y_b v_b|`, of the group or of all groups, over the
        smaller weight of both models.
        """
        largest = self._largest[a, b]
        if self._clusters.known:
            largest = np.zeros(self.number.size)
            for group, (rests, masses) in enumerate(self._by_cluster(a, b)):
                pivots = [self._pivots[name][group] for name in (a, b)]
                first, second = (
                    rest + mass * pivot if mass.any() else rest
                    for rest, mass, pivot in zip(rests, masses, pivots, strict=True)
                )
                largest[group] = np.abs(first - second).max(initial=0.0)
        if of_all:
            largest = np.full(self.number.size, largest.max(initial=0.0))
        weight = np.minimum(self._totals[a][0], self._totals[b][0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._told(np.asarray(largest / weight))

    def spreads(self, a: str, b: str) -> list[Spread]:
        """By group, the standard error of the difference of two means."""
        factors = self._factors(a, b)
        if self._clusters.known:
            return [
                Spread(*clustered_error(own @ np.stack(self._amounts(rests, masses)))).rounded
                for own, (rests, masses) in zip(factors.T, self._by_cluster(a, b), strict=True)
            ]
        moved = {2: np.zeros(self.number.size), 4: np.zeros(self.number.size)}
        for powers, sums in self._products[a, b].items():
            ways = factorial(len(powers)) / prod(factorial(powers.count(p)) for p in set(powers))
            moved[len(powers)] += ways * np.prod(factors[list(powers)], axis=0) * sums
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = self.weight**2 / self._squares
        found = [
            spread_of_mean(max(square, 0.0), fourth, size, int(number)).rounded
            for square, fourth, size, number in zip(
                *(part.tolist() for part in (moved[2], moved[4], sizes, self.number)), strict=True
            )
        ]
        return [Spread(*map(nine_digits, part)) for part in found] if self._in_parts else found

    def cost_sums(self, a: str, b: str) -> list[CostSums]:
        """By group, what two costs are compared by; clusters count as cases."""
        assert not self._centred
        if self._clusters.known:
            return [
                CostSums.of((rests[0] - rests[1]) / masses[0], masses[0])
                for rests, masses in self._by_cluster(a, b)
            ]
        products = self._products[a, b]
        first = self._totals[a][1] - self._totals[b][1]
        powers = products[0, 1], products[0, 0], products[0, 0, 0, 0]
        columns = np.stack([self.weight, self._squares, first, *powers])
        return [CostSums(*column) for column in self._told(columns).T.tolist()]

    def _by_cluster(self, a: str, b: str) -> Iterator[tuple[Floats, Floats]]:
        """By group, rests and weights of two models, (2, n_clusters) each."""
        keys, sums = self._clusters.totals()
        n, n_groups = len(self.models), self.number.size
        places = [self.models.index(name) for name in (a, b)]
        order = np.argsort(keys % n_groups, kind="stable")
        own = sums[places + [n + place for place in places]][:, order]
        ends = np.cumsum(np.bincount(keys % n_groups, minlength=n_groups))[:-1]
        for part in np.split(own, ends, axis=1):
            yield part[:2], part[2:]


def _powers(n_amounts: int) -> Iterator[tuple[int, ...]]:
    """Products of two and of four of some amounts, by the places of their factors."""
    for degree in (2, 4):
        yield from combinations_with_replacement(range(n_amounts), degree)


class KeyedSums:
    """Sums by key, where few of all possible keys occur.

    Parameters
    ----------
    n_rows : int
        Number of amounts that are summed.
    """

    def __init__(self, n_rows: int) -> None:
        self._keys, self._sums = np.zeros(0, dtype=np.int64), np.zeros((n_rows, 0))
        self._waiting: list[tuple[Integers, Floats]] = []

    @property
    def known(self) -> bool:
        """Whether anything was added."""
        return bool(self._waiting) or self._keys.size > 0

    def add(self, keys: Integers, rows: Sequence[Floats]) -> None:
        """Add amounts by key."""
        self._waiting.append(_by_key(keys, rows))
        n_waiting = sum(part.size for part, _ in self._waiting)
        if n_waiting > max(_WAITING, self._keys.size):  # so that each is moved a few times only
            self._settle()

    def _settle(self) -> None:
        parts = [(self._keys, self._sums), *self._waiting]
        keys, sums = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        self._keys, self._sums = _by_key(keys, sums)
        self._waiting = []

    def totals(self) -> tuple[Integers, Floats]:
        """All keys that occur, ascending, and their sums."""
        self._settle()
        return self._keys, self._sums


def _by_key(keys: Integers, rows: Sequence[Floats] | Floats) -> tuple[Integers, Floats]:
    own, places = np.unique(keys, return_inverse=True)
    return own, np.stack([np.bincount(places, row, own.size) for row in rows])
