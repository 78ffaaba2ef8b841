"""Policies of two classes: negative below one threshold of the score, positive above another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from ..calibration.table import ScoreTable, TableCalibration, fitted_to_table
from ..calibration.two_classes import Platt
from .choosing import Allowed, Layer, Part, Pay, Steps
from .costs import Costs
from .held_out import Outcomes
from .reviews import ReviewedKinds
from .two_thresholds import Box, Cuts


class Stakes(NamedTuple):
    """What two classes cost, in regrets: beyond what the right decision costs.

    Attributes
    ----------
    alarm, miss : float
        Regret of a negative decided positive, and of a positive decided negative.
    review : float
    wrong_alarms, wrong_misses : float
        Share of the reviewed negatives, and of the reviewed positives, that humans get wrong.
    """

    alarm: float
    miss: float
    review: float
    wrong_alarms: float
    wrong_misses: float

    @classmethod
    def of(cls, costs: Costs, positive: int) -> Stakes:
        """Of checked costs; costs by case at their mean."""
        matrix, negative, rates = costs.matrix(2), 1 - positive, costs.rates(2)
        return cls(
            float(matrix[negative, positive] - matrix[negative, negative]),
            float(matrix[positive, negative] - matrix[positive, positive]),
            costs.review_cost,
            float(rates[negative]),
            float(rates[positive]),
        )

    @property
    def even(self) -> float:
        """Probability of the positive class at which both decisions cost the same."""
        both = self.alarm + self.miss
        return self.alarm / both if both > 0.0 else 0.5

    def loss_of_negative(self, p: Floats) -> Floats:
        """Expected cost of deciding negative, beyond that of what a reviewer decides."""
        saved = (1.0 - self.wrong_misses) * self.miss * p
        found: Floats = saved - self.wrong_alarms * self.alarm * (1.0 - p)
        return found

    def loss_of_positive(self, p: Floats) -> Floats:
        """Expected cost of deciding positive, beyond that of what a reviewer decides."""
        saved = (1.0 - self.wrong_alarms) * self.alarm * (1.0 - p)
        found: Floats = saved - self.wrong_misses * self.miss * p
        return found

    def price_of_negative(self, p: Floats) -> Floats:
        """Price of an error at which deciding negative is worth no more than a review."""
        return (self.review - self.loss_of_negative(p)) / p

    def price_of_positive(self, p: Floats) -> Floats:
        """Price of an error at which deciding positive is worth no more than a review."""
        return (self.review - self.loss_of_positive(p)) / (1.0 - p)


class TwoClassPart(Part):
    """Cases of two classes, by score.

    Parameters
    ----------
    table : ScoreTable
    positive : int
    costs : Costs
    p : ndarray of shape (n_places,)
        Calibrated probability of the positive class at each place.
    shares : ndarray of shape (2, n_places), optional
        Of the cases of each class and place; all by default.
    blocks : sequence of (shares, map), optional
        The same cases in parts, each with a map fitted to the others; by default one part, with p.
    answers : bool
        Whether cases are answers: they are given (decided positive) or reviewed, never decided
        negative, and those without a score are always reviewed.
    """

    def __init__(
        self,
        table: ScoreTable,
        positive: int,
        costs: Costs,
        calibration: Platt | None,
        shares: Floats | None = None,
        blocks: Sequence[tuple[Floats, Platt | None]] = (),
        *,
        answers: bool = False,
    ) -> None:
        self._table, self._positive, self._costs = table, positive, costs
        self._map, self._blocks, self._answers = calibration, blocks, answers
        self._shares = np.ones((2, table.scores.size)) if shares is None else shares
        self._by_class = table.amounts["weight"] * self._shares
        self._reviews = ReviewedKinds.of_two(table.amounts, costs)
        self.n_places = table.scores.size
        self.weight = self._by_class.sum(axis=0)
        self._units = table.units
        self.n_cases = float((self._units * self._shares).sum())
        self._stakes = Stakes.of(costs, positive)

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        return self._table.spans

    @cached_property
    def p(self) -> Floats:
        """Calibrated probability of the positive class at each place."""
        return mapped(self._map, self._table.scores)

    @property
    def widest(self) -> Box:
        return Box(0, self._table.n_unscored) if self._answers else super().widest

    def _negative(self, p: Floats) -> Mask:
        """Where the path decides negative, if it decides."""
        return np.zeros(p.size, dtype=np.bool_) if self._answers else p < self._stakes.even

    @property
    def falling(self) -> bool:
        return self._map is not None and self._map.slope <= 0.0

    def layers(self, blend: float) -> Iterator[Layer]:
        negative, positive = 1 - self._positive, self._positive
        costs = self._costs_by_class()
        for code in (negative, positive) if blend < 1.0 else ():
            if self._reviews is None:
                yield Layer((1.0 - blend) * self._by_class[code], costs[:, code])
                continue
            shared = self._reviews.scaled(self._shares)
            for weight, reviewed in shared.prices(code, self._by_class[code]):
                sides = np.repeat(costs[:, code], weight.size, axis=1)
                sides[1] = reviewed
                yield Layer((1.0 - blend) * weight, sides)
        if blend > 0.0:
            costs = self._costs_by_class(expected=True)
            yield Layer(blend * self.weight * (1.0 - self.p), costs[:, negative])
            yield Layer(blend * self.weight * self.p, costs[:, positive])

    def _costs_by_class(self, *, expected: bool = False) -> Floats:
        """Mean cost of a case, (3, 2, n_places or 1): as negative, reviewed, as positive.

        With costs by case it is the mean over the cases of a place, of their own class or of both.
        Reviewers that err by case are at the mean of each class.
        """
        costs, order = self._costs, [1 - self._positive, self._positive]
        sums = self._table.amounts.get("costs")
        if sums is None:
            matrix = costs.matrix(2)
            rows = [matrix[:, order[0]], costs.of_reviews(matrix), matrix[:, order[1]]]
            return np.stack(rows)[:, :, np.newaxis]
        sums, weight = sums * self._shares, self._by_class
        if expected:
            sums, weight = (
                np.broadcast_to(part.sum(axis=0), weight.shape) for part in (sums, weight)
            )
        mean = np.divide(sums, weight, out=np.zeros(weight.shape), where=weight > 0.0)
        found = np.zeros((3, *mean.shape))
        found[0, order[1]], found[2, order[0]] = mean[order[1]], mean[order[0]]
        found[1] = costs.review_cost + costs.rates(2)[:, np.newaxis] * mean
        return found

    def class_counts(self) -> Floats:
        counts = self._units * self._shares
        return counts[[1 - self._positive, self._positive]]

    def steps(self) -> Steps:
        parts = [
            self._steps(self._units * shares, found)
            for shares, found in self._blocks or [(self._shares, self._map)]
        ]
        return Steps(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _steps(self, units: Floats, found: Platt | None) -> Steps:
        """Every place is a step: it is automated when its far end is."""
        low = self._negative(mapped(found, self._table.scores))
        keys = self._prices(found, low)
        wrong = np.where(low, units[self._positive], units[1 - self._positive])
        return Steps(keys, units.sum(axis=0), wrong)

    def _prices(self, found: Platt | None, low: Mask) -> Floats:
        if self._answers:  # any rising key orders them alike, and the score has seen no label
            prices = self._spans[0].copy()
        else:
            first, last = (mapped(found, part) for part in self._spans)
            prices = np.where(
                low, self._stakes.price_of_negative(last), self._stakes.price_of_positive(first)
            )
        prices[: self._table.n_unscored] = -inf  # never automated
        return prices

    def boxes_at(self, keys: Floats) -> tuple[Indices, Indices]:
        low = self._negative(self.p)
        prices, middle = self._prices(self._map, low), int(np.count_nonzero(low))
        # Prices fall up to the middle and rise from there.
        lowers = np.searchsorted(-prices[:middle], -keys)
        uppers = middle + np.searchsorted(prices[middle:], keys, side="right")
        return lowers, uppers

    def symmetric(self) -> tuple[Indices, Indices]:
        scores = self._table.scores
        if self._answers:  # the confidence is the score itself
            uppers = np.arange(self._table.n_unscored, self.n_places + 1)
            return np.zeros_like(uppers), uppers
        # At one half the first class is predicted, be it the positive one or not.
        side: Literal["left", "right"] = "right" if self._positive == 1 else "left"
        middle = int(np.searchsorted(scores, 0.5, side=side))
        confidence = np.maximum(scores, 1.0 - scores)
        limits = np.unique(np.append(confidence, 0.0))
        lowers = np.searchsorted(-confidence[:middle], -limits)
        uppers = middle + np.searchsorted(confidence[middle:], limits, side="right")
        return lowers, uppers

    def key_of(self, places: Indices, found: Platt | None) -> tuple[Floats, Mask]:
        """Key of the step of each place under a map, and whether it is decided negative."""
        low = self._negative(mapped(found, self._table.scores))
        return self._prices(found, low)[places], low[places]

    def refined(self, allowed: Allowed, other: TwoClassPart) -> Allowed:
        """Cuts that other, wider places allow, as cuts of these: rounded inwards."""
        box, points = allowed
        lowers, uppers = self._refined(np.array([box[0]]), np.array([box[1]]), other)
        inner = Box(int(lowers[0]), int(uppers[0]))
        return Allowed(inner, None if points is None else self._refined(*points, other))

    def _refined(
        self, lowers: Indices, uppers: Indices, other: TwoClassPart
    ) -> tuple[Indices, Indices]:
        (first, last), (highest, lowest) = self._spans, other.ends_of(lowers, uppers)
        return np.searchsorted(last, highest), np.searchsorted(first, lowest)

    def ends_of(self, lowers: Indices, uppers: Indices) -> tuple[Floats, Floats]:
        """Thresholds that automate the places of these cuts and nothing beside them.

        Nobody has seen what lies between these places and the next; a limit may not hold there. If
        all places are automated on one side, all scores are.
        """
        first, last = self._spans
        highest = np.concatenate([[0.0], np.nextafter(last, inf)])
        lowest = np.append(first, inf)
        highest[-1], lowest[: 1 + self._table.n_unscored] = inf, 0.0
        return highest[lowers], lowest[uppers]

    def thresholds(self, cuts: Cuts) -> tuple[float, float]:
        """Thresholds at the cuts: midway between the scores; on the nearest edge of bins."""
        return self.threshold(cuts.lower), self.threshold(cuts.upper)

    def threshold(self, cut: int) -> float:
        """A threshold between the places before a cut and those from it on, that hold any case."""
        held = self._held
        place = int(np.searchsorted(held, cut))
        if place == 0:
            return 0.0
        if place == held.size:
            return inf
        below, above = float(self._table.high[held[place - 1]]), float(self._table.low[held[place]])
        middle = below + (above - below) / 2.0
        edges = self._table.edges
        if edges is None:
            return middle if below < middle <= above else above
        first, last = np.searchsorted(edges, [below, above], side="right")
        between = edges[first:last]
        return float(between[np.abs(between - middle).argmin()])

    @cached_property
    def _held(self) -> Indices:
        """Places of scores that hold any case."""
        first = self._table.n_unscored
        return np.flatnonzero(self.weight[first:]) + first

    def settled(self, cuts: Cuts) -> Cuts:
        """The cuts of all places that the thresholds between these cases make."""
        if cuts.fixed:
            return cuts
        lower, upper = np.searchsorted(self._table.low, self.thresholds(cuts)).tolist()
        # Cases without a score are before every threshold, and still not decided negative.
        return cuts._replace(lower=min(lower, self.widest.highest_lower), upper=upper)


def mapped(found: Platt | None, scores: Floats) -> Floats:
    """Calibrated probabilities; without a map the scores themselves."""
    if found is None:
        return np.clip(scores, 1e-12, 1.0 - 1e-12)
    return found(scores)


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Cases of two classes that choose a policy, and pay for policies that others chose.

    Attributes
    ----------
    scored : ScoreTable
        Cases by score.
    positive : int
    costs : Costs
    calibration : TableCalibration or None
        By Platt maps; None if a class has too few cases for maps, the scores are taken as they are
        then.
    folds : sequence of ndarray
        Cases of each class, fold and value, for several ways to deal them.
    answers : bool
        Whether cases are answers, which are given or reviewed.
    declined : mapping of str to float, optional
        Amounts, as in a `ScoreTable`, of the cases without an answer, which are always reviewed.
    """

    scored: ScoreTable
    positive: int
    costs: Costs
    calibration: TableCalibration | None
    folds: Sequence[Integers | Floats]
    answers: bool = False
    declined: Mapping[str, float] | None = None

    @cached_property
    def table(self) -> ScoreTable:
        """All cases, those without an answer before all others."""
        if self.declined is None or not self.declined["number"]:
            return self.scored
        return self.scored.with_unscored(self.declined, self.positive)

    def _part(
        self,
        found: Platt | None,
        shares: Floats | None = None,
        blocks: Sequence[tuple[Floats, Platt | None]] = (),
    ) -> TwoClassPart:
        return TwoClassPart(
            self.table, self.positive, self.costs, found, shares, blocks, answers=self.answers
        )

    @cached_property
    def map(self) -> Platt | None:
        """Map fitted to all cases."""
        if self.calibration is None:
            return None
        return fitted_to_table(self.scored, self.positive, self.calibration.platt_maps[0])

    def map_of(self, fold: int) -> Platt | None:
        """Map fitted to the other folds of the first split."""
        return None if self.calibration is None else self.calibration.platt_maps[fold]

    @cached_property
    def whole(self) -> TwoClassPart:
        """All cases; those of each fold have a map of the others."""
        blocks = [(shares, found) for shares, found, split in self._folds() if split == 0]
        return self._part(self.map, None, blocks)

    def refined(self, table: ScoreTable) -> TwoClassPart:
        """The same cases by finer scores."""
        return TwoClassPart(table, self.positive, self.costs, self.map)

    def _folds(self) -> Iterator[tuple[Floats, Platt | None, int]]:
        """Share of the cases in each fold, the map of the others, and which split it is of."""
        units = np.maximum(self.scored.units, 1)
        first = np.ones((2, self.table.n_unscored))  # dealt evenly: nothing tells them apart
        maps = iter(() if self.calibration is None else self.calibration.platt_maps)
        for split, folds in enumerate(self.folds):
            for own in np.moveaxis(folds, 1, 0):
                even = first / folds.shape[1]
                yield np.hstack([even, own / units]), next(maps, None), split

    def parts(self) -> Iterator[tuple[Part, Pay]]:
        """For each fold the cases that choose for it, and what it does with their choice."""
        for own, found, _ in self._folds():
            part = self._part(found, 1.0 - own)
            yield part, partial(self._pay, part, own / len(self.folds))

    @cached_property
    def outcomes(self) -> Outcomes:
        """What every class and place costs under each decision."""
        return Outcomes.of_two_classes(self.table, self.positive, self.costs)

    @property
    def decisions(self) -> Integers:
        """Class that is decided at each place before the lower cut, and from the upper on."""
        sides = np.array([[1 - self.positive], [self.positive]])
        return np.repeat(sides, self.table.scores.size, axis=1)

    def alone(self, cuts: Cuts) -> Mask:
        """Which kinds are decided alone at cuts of the whole."""
        places = np.arange(self.table.scores.size)
        return np.tile((places < cuts.lower) | (places >= cuts.upper), 2)

    def _pay(self, part: TwoClassPart, shares: Floats, cuts: Cuts) -> Floats:
        """Shares of each kind that are decided negative, reviewed and decided positive."""
        lower, upper = part.settled(cuts)[:2]
        found = np.zeros((3, *shares.shape))
        found[0, :, :lower] = shares[:, :lower]
        found[1, :, lower:upper] = shares[:, lower:upper]
        found[2, :, upper:] = shares[:, upper:]
        return found.reshape(3, -1)
