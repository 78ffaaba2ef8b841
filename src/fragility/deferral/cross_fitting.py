"""What a chosen threshold costs on cases that did not choose it.

Thresholds are chosen from `fragility.scores.tally.threshold_grid`, so costs depend on the cells of
cases alone. Cells are dealt to folds with the law of random folds, and drawn again for intervals
with the law of independent cases: nothing depends on the order of the cases, nor on whether they
are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers, Interval, Mask
from ..scores.folds import dealt
from ..scores.tally import Cells
from .costs import Costs, chow_threshold

#: Costs and shares that differ by no more than this, relative to their scale, are equal.
ROUNDING = 1e-12
#: Ways to deal the cases to folds, whose costs are averaged.
SPLITS = 20
#: Draws at a time.
_TOGETHER = 50


class FoldCells(NamedTuple):
    """Cells by fold.

    Attributes
    ----------
    place : ndarray of shape (K,)
        First threshold that sends the cases of each cell to a human; ascending.
    units : ndarray of shape (n_folds, K)
        Cases that the cells count for.
    sums : ndarray of shape (4, n_folds, K)
        Weight of the cases, weight of the wrong ones, cost if decided alone, cost if reviewed.
    """

    place: Integers
    units: Integers
    sums: Floats


def priced_sums(cells: Cells, costs: Costs) -> Floats:
    """Weight, weight of the wrong, cost if decided alone and if reviewed, of each cell."""
    wrong = np.where(cells.wrong, cells.weight, 0.0)
    if cells.costs is not None:
        alone = np.where(cells.wrong, cells.costs, 0.0)
        reviewed = cells.weight * costs.review_cost + costs.reviewer_error * cells.costs
        return np.stack([cells.weight, wrong, alone, reviewed])
    each = costs.of_cases(cells.true, cells.predicted)
    return np.stack([cells.weight, wrong, cells.weight * each.alone, cells.weight * each.reviewed])


def dealt_cells(cells: Cells, costs: Costs, n_folds: int, seed: Sequence[int]) -> FoldCells:
    """Cells dealt to folds, each true class spread evenly."""
    units, sums = cells.units, priced_sums(cells, costs)
    order = np.lexsort((cells.wrong, cells.true, cells.place))
    kinds = np.column_stack([cells.place, cells.true])[order]
    if cells.costs is None and _alike(cells.weight, cells.number):
        # Cases of a class that cost the same are equals, whatever was predicted.
        price = costs.of_cases(cells.true, cells.predicted).alone
        alike = np.column_stack([cells.place, cells.true, price])
        kinds, origin = np.unique(alike, axis=0, return_inverse=True)
        units = np.bincount(origin.ravel(), units).astype(np.int64)
        sums = np.stack([np.bincount(origin.ravel(), part) for part in sums])
    else:
        units, sums = units[order], sums[:, order]
    place, true = kinds[:, :2].astype(np.int64).T
    folds = np.zeros((n_folds, units.size), dtype=np.int64)
    for code in np.unique(true).tolist():
        own = np.flatnonzero(true == code)
        folds[:, own] = dealt(units[own], n_folds, [code, *seed])
    return FoldCells(place, folds, sums[:, np.newaxis] * (folds / units))


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Thresholds that some cases chose, and what other cases cost there.

    The attributes are described in `fragility.BestThreshold`.
    """

    threshold: float
    cost: float
    automation_rate: float
    error_rate: float
    chow_threshold: float
    chow_cost: float
    cost_interval: Interval
    gap_interval: Interval
    threshold_interval: Interval
    cost_automate_all: float
    cost_review_all: float
    fold_thresholds: Floats

    @property
    def gap(self) -> float:
        """What Chow's rule costs more per case; zero where that is rounding."""
        gap = self.chow_cost - self.cost
        return 0.0 if abs(gap) <= ROUNDING * abs(self.cost) else gap


def judge(
    splits: Sequence[FoldCells],
    thresholds: Floats,
    costs: Costs,
    *,
    held_out: FoldCells | None = None,
    n_draws: int = 500,
    confidence: float = 0.95,
    seed: int = 0,
) -> Verdict:
    """Choose on some folds, pay on the others: the mean over several ways to deal the cases.

    Parameters
    ----------
    splits : sequence of FoldCells
        The same cases, dealt in several ways.
    thresholds : ndarray
        On offer.
    costs : Costs
    held_out : FoldCells, optional
        One fold of other cases, which pay instead.
    n_draws, confidence, seed : int, float, int
        Draws of all cases for the intervals.
    """
    table = CostTable(thresholds, costs)
    sums = np.stack([_by_place(split, thresholds.size) for split in splits], axis=1)
    others = None if held_out is None else _by_place(held_out, thresholds.size)[:, np.newaxis]
    paid, chosen = table.pay(sums, others)
    _, alone, mistakes, cost = (paid / paid[0]).mean(axis=1).tolist()
    whole = sums[:, 0].sum(axis=1)
    judged = whole if others is None else others[:, 0].sum(axis=1)
    chow = table.chow(whole)
    found = table.curves(judged)[3] / judged[0].sum()
    draws = _draws(splits[0], held_out, table, n_draws, seed)
    cost_interval, gap_interval, threshold_interval = (
        _percentiles(part, confidence) for part in draws
    )
    return Verdict(
        float(thresholds[table.best(whole)]),
        cost,
        alone,
        mistakes / alone if alone > 0.0 else nan,
        nan if chow is None else float(thresholds[chow]),
        nan if chow is None else float(found[chow]),
        cost_interval,
        gap_interval,
        threshold_interval,
        float(found[0]),
        float(found[-1]),
        thresholds[chosen],
    )


class CostTable:
    """What happens at each threshold, from sums (4, ..., T) by the first that sends to review."""

    def __init__(self, thresholds: Floats, costs: Costs) -> None:
        self.thresholds = thresholds
        self._capacity = 1.0 if costs.capacity is None else costs.capacity
        self._chow = chow_threshold(costs)

    def curves(self, sums: Floats) -> Floats:
        """Weight of all, of those decided alone, of these the wrong; cost, at each threshold."""
        above = np.zeros_like(sums)
        # Summed from the top, so that nothing is left at the last threshold.
        above[..., :-1] = np.cumsum(sums[..., :0:-1], axis=-1)[..., ::-1]
        total = np.broadcast_to(sums[0].sum(axis=-1, keepdims=True), sums.shape[1:])
        return np.stack([total, above[0], above[1], np.cumsum(sums[3], axis=-1) + above[2]])

    def allowed(self, sums: Floats) -> Mask:
        """Thresholds at which the humans can do all reviews."""
        reviewed = np.cumsum(sums[0], axis=-1)
        found: Mask = reviewed <= (self._capacity + ROUNDING) * reviewed[..., -1:]
        return found

    def best(self, sums: Floats) -> Indices:
        """Cheapest threshold that the capacity allows; of equally cheap ones the lowest."""
        cost = self.curves(sums)[3]
        scale = cost.max(axis=-1, keepdims=True)
        return first_of_least(np.where(self.allowed(sums), cost, np.inf), ROUNDING * scale)

    def chow(self, sums: Floats) -> Indices | None:
        """Chow's threshold, the nearest on offer, or the highest that the capacity allows."""
        if np.isnan(self._chow):
            return None
        last = np.count_nonzero(self.allowed(sums), axis=-1) - 1
        nearest = np.abs(self.thresholds - self._chow).argmin()
        return np.asarray(np.minimum(nearest, last))

    def pay(self, sums: Floats, held_out: Floats | None) -> tuple[Floats, Indices]:
        """What folds (4, ..., n_folds, T) pay in all at the thresholds of the others; and these."""
        whole = sums.sum(axis=-2, keepdims=True)
        choosing = np.maximum(whole - sums, 0.0) if held_out is None else whole
        places = self.best(choosing)
        paid = self.curves(sums if held_out is None else held_out)
        at = np.take_along_axis(paid, places[np.newaxis, ..., np.newaxis], axis=-1)
        return at[..., 0].sum(axis=-1), places


def first_of_least(cost: Floats, tolerance: Floats | float) -> Indices:
    """Place of the least cost in each row; of those that are equal but for rounding, the first."""
    least = cost.min(axis=-1, keepdims=True)
    places: Indices = (cost <= least + tolerance).argmax(axis=-1)
    return places


def _by_place(part: FoldCells, n: int, times: Floats | None = None) -> Floats:
    """Sums over the cells of each place, each cell as often as is said."""
    starts = np.flatnonzero(np.diff(part.place, prepend=-1))
    sums = part.sums if times is None else part.sums[:, np.newaxis] * times
    found = np.zeros((*sums.shape[:-1], n))
    found[..., part.place[starts]] = np.add.reduceat(sums, starts, axis=-1)
    return found


def _draws(
    split: FoldCells, held_out: FoldCells | None, table: CostTable, n_draws: int, seed: int
) -> tuple[list[float], list[float], list[float]]:
    """Cost, gap of Chow's rule, and threshold, of cases drawn anew with their folds."""
    random = np.random.RandomState([seed, n_draws])
    parts = [_gathered(part) for part in (split, held_out) if part is not None]
    found: tuple[list[float], list[float], list[float]] = [], [], []
    for start in range(0, n_draws, _TOGETHER):
        n = min(_TOGETHER, n_draws - start)
        drawn = []
        for part in parts:
            times = random.poisson(part.units, (n, *part.units.shape)) / np.maximum(part.units, 1)
            drawn.append(_by_place(part, table.thresholds.size, times))
        judged = drawn[-1].sum(axis=-2)
        whole = drawn[0].sum(axis=-2)
        # Of very few cases none may be drawn.
        some = (judged[0].sum(axis=-1) > 0.0) & (whole[0].sum(axis=-1) > 0.0)
        sums, others = drawn[0][:, some], drawn[1][:, some] if held_out else None
        whole, judged = whole[:, some], judged[:, some]
        paid, _ = table.pay(sums, others)
        cost = paid[3] / paid[0]
        found[0].extend(cost.tolist())
        found[2].extend(table.thresholds[table.best(whole)].tolist())
        chow = table.chow(whole)
        if chow is not None:
            at = np.take_along_axis(table.curves(judged), chow[np.newaxis, :, np.newaxis], axis=-1)
            found[1].extend((at[3, :, 0] / at[0, :, 0] - cost).tolist())
    return found


def _gathered(part: FoldCells) -> FoldCells:
    """The same with cells of one place and price as one: a sum of Poisson numbers is one, too."""
    units = part.units.sum(axis=0)
    if not _alike(part.sums[0], part.units):
        return part  # weights make every cell a price of its own
    each = part.sums.sum(axis=1) / np.maximum(units, 1)
    each /= max(float(each[0].max()), 1e-300)  # only the ratios of weights matter
    alike = np.column_stack([part.place, *(np.round(row, 9) for row in each)])
    kinds, origin = np.unique(alike, axis=0, return_inverse=True)
    onto = np.zeros((units.size, len(kinds)))
    onto[np.arange(units.size), origin.ravel()] = 1.0
    gathered = (part.units @ onto).astype(np.int64)
    return FoldCells(kinds[:, 0].astype(np.int64), gathered, part.sums @ onto)


def _alike(weight: NDArray[Any], number: NDArray[Any]) -> bool:
    """Whether all cases weigh the same, by the weights of cells and their numbers of cases."""
    held = number > 0
    each = weight[held] / number[held]
    return bool(np.allclose(each, each.max(initial=0.0), rtol=1e-9, atol=0.0))


def _percentiles(draws: list[float], confidence: float) -> Interval:
    """Interval that holds the middle of the draws; NaN if there are none."""
    if not draws:
        return Interval(nan, nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail]).tolist()
    return Interval(low, high)
