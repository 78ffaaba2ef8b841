"""What a chosen threshold costs on cases that did not choose it.

Thresholds are chosen among those of `fragility.scores.tally.threshold_grid`, so that cells of cases
are all there is to know. Cells are dealt to folds with the law of random folds, and drawn again
with that of independent cases: nothing depends on the order of the cases, nor on whether they are
held.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..index.inference import Interval
from ..moments import Floats
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

    place: NDArray[np.int64]
    units: NDArray[np.int64]
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
    order = np.argsort(cells.place, kind="stable")
    units = cells.units
    folds = np.zeros((n_folds, units.size), dtype=np.int64)
    for code in np.unique(cells.true).tolist():
        own = np.flatnonzero(cells.true == code)
        folds[:, own] = dealt(units[own], n_folds, [code, *seed])
    sums = priced_sums(cells, costs)[:, np.newaxis] * (folds / units)
    return FoldCells(cells.place[order], folds[:, order], sums[..., order])


class Verdict(NamedTuple):
    """Thresholds that cases chose, and what others paid there.

    Attributes
    ----------
    threshold, chow_threshold : float
    cost, chow_cost : float
        Per case.
    automation_rate, error_rate : float
        Share decided alone, and of these the wrong ones.
    cost_interval, gap_interval, threshold_interval : Interval
        From draws; NaN without.
    automate_all, review_all : float
    fold_thresholds : ndarray of shape (n_splits, n_folds)
    """

    threshold: float
    chow_threshold: float
    cost: float
    chow_cost: float
    automation_rate: float
    error_rate: float
    cost_interval: Interval
    gap_interval: Interval
    threshold_interval: Interval
    automate_all: float
    review_all: float
    fold_thresholds: Floats


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
    table = _Table(thresholds, costs)
    paid = np.zeros(4)
    chosen = []
    for split in splits:
        sums = _by_place(split.sums, split.place, thresholds.size)
        others = (
            None if held_out is None else _by_place(held_out.sums, held_out.place, sums.shape[-1])
        )
        amounts, places = table.pay(sums, others)
        paid += amounts / amounts[0]
        chosen.append(places)
    paid /= len(splits)
    first = _by_place(splits[0].sums, splits[0].place, thresholds.size).sum(axis=1)
    judged = first
    if held_out is not None:
        judged = _by_place(held_out.sums, held_out.place, thresholds.size).sum(axis=1)
    best, chow = table.best(first), table.chow(first)
    draws = _draws(splits[0], held_out, table, n_draws, seed)
    _, alone, mistakes, cost = paid.tolist()
    everything, nothing = table.at(judged, 0)[3], table.at(judged, thresholds.size - 1)[3]
    weight = float(judged[0].sum())
    return Verdict(
        float(thresholds[best]),
        nan if chow is None else float(thresholds[chow]),
        cost,
        nan if chow is None else table.at(judged, chow)[3] / weight,
        alone,
        mistakes / alone if alone > 0.0 else nan,
        _percentiles(draws[0], confidence),
        _percentiles(draws[1], confidence),
        _percentiles(draws[2], confidence),
        everything / weight,
        nothing / weight,
        thresholds[np.array(chosen)],
    )


class _Table:
    """Costs at each threshold, from sums (4, ..., T) by the first one that sends to review."""

    def __init__(self, thresholds: Floats, costs: Costs) -> None:
        self.thresholds = thresholds
        self._capacity = 1.0 if costs.capacity is None else costs.capacity
        self._chow = chow_threshold(costs)

    def curve(self, sums: Floats) -> tuple[Floats, Floats]:
        """Cost at each threshold, and share of the weight that is reviewed."""
        reviewed = np.cumsum(sums[0], axis=-1)
        alone = np.cumsum(sums[2][..., ::-1], axis=-1)[..., ::-1]
        alone = np.concatenate([alone[..., 1:], np.zeros_like(alone[..., :1])], axis=-1)
        total = reviewed[..., -1:]
        return np.cumsum(sums[3], axis=-1) + alone, reviewed / np.where(total > 0.0, total, 1.0)

    def best(self, sums: Floats) -> NDArray[np.intp]:
        """Cheapest threshold that the capacity allows; of equally cheap ones the lowest."""
        cost, reviewed = self.curve(sums)
        scale = np.maximum(cost.max(axis=-1, keepdims=True), 1e-300)
        allowed = np.where(reviewed <= self._capacity + ROUNDING, cost, np.inf)
        return first_of_least(allowed, ROUNDING * scale)

    def chow(self, sums: Floats) -> int | None:
        """Chow's threshold, the nearest on offer, or the highest that the capacity allows."""
        if np.isnan(self._chow):
            return None
        place = int(np.abs(self.thresholds - self._chow).argmin())
        reviewed = self.curve(sums)[1]
        return min(place, int(np.flatnonzero(reviewed <= self._capacity + ROUNDING)[-1]))

    def at(self, sums: Floats, place: int) -> Floats:
        """Weight, of it decided alone, of that wrong, and cost, at a threshold."""
        above = sums[:2, place + 1 :].sum(axis=1)
        cost = sums[3, : place + 1].sum() + sums[2, place + 1 :].sum()
        return np.array([sums[0].sum(), above[0], above[1], cost])

    def pay(self, sums: Floats, held_out: Floats | None) -> tuple[Floats, NDArray[np.intp]]:
        """What the folds pay at the threshold of the others, added up; and those thresholds."""
        whole = sums.sum(axis=1, keepdims=True)
        if held_out is None:
            choosing, paying = np.maximum(whole - sums, 0.0), sums
        else:
            choosing, paying = whole, held_out.sum(axis=1, keepdims=True)
        places = self.best(choosing)
        parts = [self.at(paying[:, fold], int(place)) for fold, place in enumerate(places)]
        return np.sum(parts, axis=0), places


def first_of_least(cost: Floats, tolerance: Floats | float) -> NDArray[np.intp]:
    """Place of the least cost in each row; of those that are equal but for rounding, the first."""
    least = cost.min(axis=-1, keepdims=True)
    places: NDArray[np.intp] = (cost <= least + tolerance).argmax(axis=-1)
    return places


def _by_place(sums: Floats, place: NDArray[np.int64], n: int) -> Floats:
    """Sums over the cells of each place, along the last axis."""
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    found = np.zeros((*sums.shape[:-1], n))
    found[..., place[starts]] = np.add.reduceat(sums, starts, axis=-1)
    return found


def _draws(
    split: FoldCells, held_out: FoldCells | None, table: _Table, n_draws: int, seed: int
) -> list[list[float]]:
    """Cost, gap of Chow's rule, and threshold, of cases drawn anew with their folds."""
    random = np.random.RandomState([seed, split.units.shape[1] % 2**31])
    found: list[list[float]] = [[], [], []]
    parts = [split] if held_out is None else [split, held_out]
    for start in range(0, n_draws, _TOGETHER):
        drawn = [_redrawn(part, table, min(_TOGETHER, n_draws - start), random) for part in parts]
        for number in range(drawn[0].shape[1]):
            sums, others = drawn[0][:, number], drawn[1][:, number] if held_out else None
            judged = sums if others is None else others
            if not (sums[0].sum() > 0.0 and judged[0].sum() > 0.0):
                continue  # of very few cases none may be drawn
            amounts, _ = table.pay(sums, others)
            whole = sums.sum(axis=1)
            chow = table.chow(whole)
            cost = float(amounts[3] / amounts[0])
            found[0].append(cost)
            if chow is not None:
                at = table.at(judged.sum(axis=1), chow)
                found[1].append(float(at[3] / at[0]) - cost)
            found[2].append(float(table.thresholds[table.best(whole)]))
    return found


def _redrawn(part: FoldCells, table: _Table, n_draws: int, random: np.random.RandomState) -> Floats:
    """Sums (4, n_draws, n_folds, T) of cases that are drawn independently of each other."""
    units = np.maximum(part.units, 1)
    times = random.poisson(part.units, (n_draws, *part.units.shape)) / units
    sums = part.sums[:, np.newaxis] * times
    return _by_place(sums, part.place, table.thresholds.size)


def _percentiles(draws: list[float], confidence: float) -> Interval:
    """Interval that holds the middle of the draws; NaN if there are none."""
    if not draws:
        return Interval(nan, nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail]).tolist()
    return Interval(low, high)
