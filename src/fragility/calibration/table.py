"""Cross-fitted calibration of two classes by a table of scores.

Figures of cases that are not held need calibration, too. The scores of two classes are kept by
value or by bin, cases of a class and value are dealt to folds as equals, and each fold's map is
fitted to the table without its cases. The first way to deal them chooses the kind of map, all of
them are calibrated by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers
from .._validation import LabelledScores
from ..scores.bins import ScoreBins
from ..scores.cases import case_amounts
from ..scores.folds import dealt
from ..scores.layout import Tails
from ..scores.tally import units_of
from .choice import AUTO, CalibrationChoice, Candidates, log_loss
from .cross_fitting import check_can_calibrate
from .fitting import log_odds
from .two_classes import METHODS, FitTable, Platt, ScoreMap, platt_targets

#: Folds of a calibration, and ways to deal bins to them: one way will do for many cases.
FOLDS, SPLITS, MANY_CASES = 5, 4, 50_000
#: Stands for the score of cases that have none.
_NO_SCORE = -1.0


class ScoreTable(NamedTuple):
    """Scores of two classes by value: distinct scores, or bins at the mean of their scores.

    Attributes
    ----------
    scores : ndarray of shape (B,)
        Ascending.
    amounts : dict of str to ndarray of shape (2, B)
        By class and value: "number", "weight" and "squares" of the cases; "costs" and
        "cost_squares", if they have costs of their own; `fragility.scores.cases.REVIEW_SUMS`, if
        reviewers err by case.
    places : callable
        Place in the table of each of some scores.
    low, high : ndarray of shape (B,)
        Least and largest score at each place.
    edges : ndarray, optional
        Least score of each bin, empty ones included; None if the scores themselves are known.
    n_unscored : int
        Places before all others whose cases have no score: that of declined ones, or none.
    """

    scores: Floats
    amounts: dict[str, Floats]
    places: Callable[[Floats], Indices]
    low: Floats
    high: Floats
    edges: Floats | None = None
    n_unscored: int = 0

    @classmethod
    def of_bins(cls, bins: ScoreBins) -> ScoreTable:
        """Every score at the mean of its bin."""
        held = np.flatnonzero(bins.table("weight").any(axis=0))
        names = (
            "weight",
            "number",
            "squares",
            *(n for n in bins.sums if n.startswith(("cost", "review_"))),
        )
        amounts = {name: bins.table(name)[:, held] for name in names}
        means = bins.score_sums()[:, held].sum(axis=0) / amounts["weight"].sum(axis=0)
        lookup = np.zeros(bins.layout.length, dtype=np.intp)
        lookup[held] = np.arange(held.size)
        low, high = bins.ranges[:, 0, held]
        assert isinstance(bins.layout, Tails)
        return cls(
            means,
            amounts,
            lambda scores: lookup.take(bins.layout.places(scores)),
            low,
            high,
            bins.layout.edges,
        )

    @classmethod
    def of_cases(
        cls, data: LabelledScores, costs: Floats | None, slips: Floats | None = None
    ) -> ScoreTable:
        """Distinct scores of cases in memory."""
        scores, origin = np.unique(data.scores.astype(np.float64), return_inverse=True)
        keys = data.codes.astype(np.intp) * scores.size + origin
        amounts = case_amounts(keys.size, data.weights, costs, slips)
        tables = {
            name: np.bincount(keys, part, 2 * scores.size).reshape(2, -1).astype(np.float64)
            for name, part in amounts.items()
        }
        tables.setdefault("weight", tables["number"])
        tables.setdefault("squares", tables["number"])
        return cls(scores, tables, lambda values: np.searchsorted(scores, values), scores, scores)

    def with_unscored(self, amounts: Mapping[str, float], code: int) -> ScoreTable:
        """The same with a place for cases of a class that have no score, before all others.

        Where scores are looked up, any negative number stands for none.
        """
        first = np.zeros((2, 1))
        tables = {}
        for name, table in self.amounts.items():
            first[code] = amounts[name]
            tables[name] = np.hstack([first, table])
        scores, low, high = (
            np.append(_NO_SCORE, part) for part in (self.scores, self.low, self.high)
        )

        def places(values: Floats) -> Indices:
            found = self.places(np.maximum(values, 0.0)) + 1
            return np.where(values < 0.0, 0, found)

        return ScoreTable(scores, tables, places, low, high, self.edges, 1)

    @property
    def units(self) -> Integers:
        """Cases that each class and value counts for."""
        return units_of(self.amounts["weight"], self.amounts["squares"])

    @property
    def spans(self) -> tuple[Floats, Floats]:
        """Least and largest score that would be at each place."""
        if self.edges is None:
            return self.scores, self.scores
        rest = self.low[self.n_unscored :]
        bins = np.searchsorted(self.edges, rest, side="right") - 1
        ends = np.append(np.nextafter(self.edges[1:], 0.0), 1.0)
        nowhere = self.low[: self.n_unscored]
        return np.append(nowhere, self.edges[bins]), np.append(nowhere, ends[bins])


class TableCalibration(NamedTuple):
    """Cross-fitted calibration of two classes.

    Cases of a class and value are dealt to folds as equals: a share of them is under the map of
    each fold.

    Attributes
    ----------
    scores : ndarray of shape (n_maps, B)
        Calibrated score of each value under each map.
    shares : ndarray of shape (2, n_maps, B)
        Share of the cases of each class and value that is under each map.
    n_splits : int
    maps : tuple of ScoreMap
        The maps themselves, one for each split and fold; one for all if nothing is fitted.
    choice : CalibrationChoice
        Of which kind they are, and why.
    folds : sequence of ndarray of shape (2, n_folds, B)
        Cases of each class, fold and value, by split; none, if no map was fitted.
    """

    scores: Floats
    shares: Floats
    n_splits: int
    maps: tuple[ScoreMap, ...]
    choice: CalibrationChoice
    folds: Sequence[Integers | Floats] = ()

    @property
    def n_folds(self) -> int:
        return len(self.maps) // self.n_splits

    @property
    def platt_maps(self) -> tuple[Platt, ...]:
        """The maps, which must be of this kind: policies are chosen by it."""
        assert self.choice.method == "platt"
        return cast("tuple[Platt, ...]", self.maps)


def calibrated_table(
    table: ScoreTable,
    positive: int,
    labels: NDArray[Any],
    seed: int = 0,
    folds: Sequence[Integers | Floats] | None = None,
    method: str = AUTO,
) -> TableCalibration:
    """Cross-fitted maps of two classes; raises `CannotCalibrateError` if there are none.

    `folds` are the cases of each class, fold and value, (2, n_folds, B), for one or several ways to
    deal them; by default they are dealt at random.
    """
    fits = TableFits(table, positive, labels, seed, folds, method)
    auto = method == AUTO
    return fits.calibrated(fits.candidates.chosen() if auto else CalibrationChoice(method))


class TableFits:
    """Maps of several kinds of two classes, each fitted to all folds but one of the first split.

    The parameters are those of `calibrated_table`; `alike` is how many cases count as one when
    kinds are compared.
    """

    def __init__(
        self,
        table: ScoreTable,
        positive: int,
        labels: NDArray[Any],
        seed: int = 0,
        folds: Sequence[Integers | Floats] | None = None,
        method: str = AUTO,
        alike: float = 1.0,
    ) -> None:
        self.table, self._positive, self._units = table, positive, table.units
        self._alike = alike
        check_can_calibrate(labels, self._units.sum(axis=1))
        self._splits = dealt_folds(table, positive, seed) if folds is None else folds
        first = list(_others(table, positive, self._units, self._splits[0]))
        names = METHODS if method == AUTO else (method,)
        self._maps = {name: _fitted(name, first) for name in names}

    @cached_property
    def candidates(self) -> Candidates:
        """How each kind did on the cases of the folds that it was not fitted to."""
        table = self.table
        shares = self._splits[0] / np.maximum(self._units, 1)[:, np.newaxis]
        under = shares > 0.0
        weights, squares = (
            (table.amounts[name][:, np.newaxis] * shares)[under] for name in ("weight", "squares")
        )
        largest = float(weights.max())
        losses = {}
        for name, maps in self._maps.items():
            p = np.stack([each(table.scores) for each in maps])
            both = np.stack([p, 1.0 - p] if self._positive == 0 else [1.0 - p, p])
            losses[name] = log_loss(both[under])
        return Candidates.of(losses, weights / largest, self._alike * squares / largest**2)

    def calibrated(self, choice: CalibrationChoice) -> TableCalibration:
        """The table after maps of a kind, fitted for every split."""
        table, units, splits = self.table, self._units, self._splits
        maps = list(self._maps[choice.method])
        if choice.method == "identity":
            shares = (units > 0).astype(np.float64)[:, np.newaxis]
            means = np.clip(table.scores, table.low, table.high)  # which rounding may move
            return TableCalibration(maps[0](means)[np.newaxis], shares, 1, (maps[0],), choice)
        for split in splits[1:]:
            others = list(_others(table, self._positive, units, split))
            maps += _fitted(choice.method, others, maps[-1])
        scores = np.stack([each(table.scores) for each in maps])
        joined = np.concatenate(splits, axis=1)
        shares = joined.astype(np.float64) / np.maximum(len(splits) * units, 1)[:, np.newaxis]
        return TableCalibration(scores, shares, len(splits), tuple(maps), choice, splits)


def _others(
    table: ScoreTable, positive: int, units: Integers, split: Integers | Floats
) -> Iterator[FitTable]:
    """What the maps of each fold are fitted to: the table without its cases."""
    z = log_odds(table.scores)
    for own in np.moveaxis(split, 1, 0):
        rest = np.divide(units - own, units, out=np.zeros(own.shape), where=units > 0)
        yield fit_table(table, positive, rest, z)


def _fitted(
    method: str, tables: Sequence[FitTable], start: ScoreMap | None = None
) -> list[ScoreMap]:
    """Return a map for each of some similar tables; each search starts at the map before it."""
    maps: list[ScoreMap] = []
    for table in tables:
        start = METHODS[method](table, start)
        maps.append(start)
    return maps


def dealt_folds(
    table: ScoreTable, positive: int, seed: int = 0, n_folds: int | None = None
) -> list[Integers]:
    """Cases of each class, fold and value, for several ways to deal them at random.

    By default every fold has cases of both classes.
    """
    units = table.units
    sizes = units.sum(axis=1)
    n_folds = min(FOLDS, int(sizes.min())) if n_folds is None else min(n_folds, int(sizes.sum()))
    n_splits = SPLITS if int(sizes.sum()) <= MANY_CASES else 1
    return [
        np.stack(
            [dealt(units[code], n_folds, [int(code == positive), split, seed]) for code in range(2)]
        )
        for split in range(n_splits)
    ]


def folds_by_place(table: ScoreTable, data: LabelledScores, drawn: Indices) -> Floats:
    """Cases of each class, fold and value, if each case was drawn to a fold.

    By weight, where some outweigh the others.
    """
    n_folds, n_places = int(drawn.max()) + 1, table.scores.size
    places = table.places(data.scores.astype(np.float64))
    keys = (data.codes.astype(np.int64) * n_folds + drawn) * n_places + places
    weights = np.ones(keys.size) if data.weights is None else data.weights
    sums = np.bincount(keys, weights, 2 * n_folds * n_places).reshape(2, n_folds, n_places)
    total = sums.sum(axis=1, keepdims=True)
    shares = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0.0)
    found: Floats = shares * table.units[:, np.newaxis]
    return found


def fitted_to_table(table: ScoreTable, positive: int, start: Platt | None = None) -> Platt:
    """Platt map of all cases of a table."""
    shares = np.ones(table.amounts["weight"].shape)
    return Platt.fitted(fit_table(table, positive, shares), start)


def fit_table(
    table: ScoreTable, positive: int, shares: Floats, z: Floats | None = None
) -> FitTable:
    """What a map is fitted to: these shares (2, B) of the cases of a table."""
    weights = table.amounts["weight"]
    rest = weights / weights.max() * shares
    numbers = table.units * shares
    counts = np.rint(numbers.sum(axis=1)).tolist()
    high, low = platt_targets(counts[positive], counts[1 - positive])
    total = rest.sum(axis=0)
    aim = high * rest[positive] + low * rest[1 - positive]
    np.divide(aim, total, out=aim, where=total > 0.0)
    happened = np.divide(rest[positive], total, out=np.zeros(total.size), where=total > 0.0)
    return FitTable(
        log_odds(table.scores) if z is None else z, total, aim, happened, numbers.sum(axis=0)
    )
