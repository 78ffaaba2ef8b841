r"""Policies of several classes: the model decides where its expected loss is small enough.

With calibrated probabilities p, deciding d costs :math:`e_d = \sum_y p_y c_{yd}` in expectation,
and what a reviewer decides :math:`Q = \sum_y p_y (v_y - r)`. The model decides the cheapest class
:math:`d^*`; its loss is :math:`s = e_{d^*} - Q`. A human decides where s is above a limit: r, if
the probabilities are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers, Mask
from .._validation import LabelledScores
from ..calibration.temperature import tempered
from ..scores.cases import REVIEW_SUMS, case_amounts
from .choosing import Allowed, Layer, Part, Pay, Steps
from .costs import Costs
from .held_out import Outcomes
from .reviews import CaseReviews, ReviewedKinds
from .two_thresholds import Box, Cuts

#: Losses that differ by less, relative to the dearest error, are equal.
_ROUNDING = 2.0**-40


@dataclass(frozen=True, eq=False)
class ExpectedLoss:
    """The cheapest decision by calibrated probabilities, and its loss.

    Attributes
    ----------
    matrix : ndarray of shape (n_classes, n_classes)
        Cost, true × decided class.
    reviewed : ndarray of shape (n_classes,)
        What reviewers decide costs, the mean of each class.
    temperature : float
    """

    matrix: Floats
    reviewed: Floats
    temperature: float

    @classmethod
    def of(cls, costs: Costs, n_classes: int, temperature: float, rule: str) -> ExpectedLoss:
        """Of these costs; by the rule "confidence" the loss is one minus the confidence."""
        if rule == "confidence":
            return cls(1.0 - np.eye(n_classes), np.zeros(n_classes), 1.0)
        matrix = costs.matrix(n_classes)
        return cls(matrix, replace(costs, review_cost=0.0).of_reviews(matrix), temperature)

    def probabilities(self, scores: NDArray[Any]) -> Floats:
        """Calibrated probabilities."""
        return tempered(scores, self.temperature)

    def decide(self, p: Floats) -> tuple[Indices, Floats]:
        """Cheapest class of each case, of equal ones the first, and its loss."""
        expected, scale = p @ self.matrix, float(self.matrix.max()) or 1.0
        # Losses that differ by rounding alone are equal, whatever the order of the cases.
        least = expected.min(axis=1)
        decided = (expected <= least[:, np.newaxis] + _ROUNDING * scale).argmax(axis=1)
        unit, losses = _ROUNDING * scale, least - p @ self.reviewed
        loss: Floats = np.rint(losses / unit) * unit
        return decided, loss


class DecidedRows(NamedTuple):
    """Cases, or cases that are alike: what the model would decide, and its loss.

    Attributes
    ----------
    loss : ndarray of shape (R,)
    decided : ndarray of shape (R,)
    units : ndarray of shape (n_classes, R)
        Number of cases by true class.
    weight, squares : ndarray of shape (n_classes, R)
        Sums of weights, and of their squares, by true class.
    expected : ndarray of shape (n_classes, R)
        Weight by class as the probabilities have it.
    costs, cost_squares : ndarray of shape (n_classes, R), optional
        Sums of weight times cost of an error, and of its square, if costs differ by case.
    reviews : ndarray of shape (4, n_classes, R), optional
        Sums over what reviews cost more than right ones, see `fragility.deferral.reviews`, if that
        differs by case.
    """

    loss: Floats
    decided: Integers
    units: Floats
    weight: Floats
    squares: Floats
    expected: Floats
    costs: Floats | None = None
    cost_squares: Floats | None = None
    reviews: Floats | None = None

    def take(self, rows: NDArray[Any]) -> DecidedRows:
        """Some of the rows."""
        return DecidedRows._make(None if part is None else part[..., rows] for part in self)

    def scaled(self, shares: Floats) -> DecidedRows:
        """Shares (n_classes, R) of the cases; expected weights in proportion."""
        weight = self.weight * shares
        before, after = self.weight.sum(axis=0), weight.sum(axis=0)
        ratio = np.divide(after, before, out=np.zeros(before.size), where=before > 0.0)
        return self._replace(
            units=self.units * shares,
            weight=weight,
            expected=self.expected * ratio,
            costs=None if self.costs is None else self.costs * shares,
            reviews=None if self.reviews is None else self.reviews * shares,
        )

    def prices(self, costs: Costs, *, expected: bool = False) -> Floats:
        """Mean cost of a case by class, decided alone and reviewed, (2, n_classes, R).

        Reviewers that err by case are at the mean of each class.
        """
        n_classes = len(self.weight)
        if self.costs is None:
            matrix = costs.matrix(n_classes)
            reviewed = costs.of_reviews(matrix)[:, np.newaxis]
            return np.stack([matrix[:, self.decided], np.broadcast_to(reviewed, self.weight.shape)])
        sums, weight = self.costs, self.weight
        if expected:
            sums, weight = (
                np.broadcast_to(part.sum(axis=0), weight.shape) for part in (sums, weight)
            )
        mean = np.divide(sums, weight, out=np.zeros(weight.shape), where=weight > 0.0)
        wrong = np.arange(n_classes)[:, np.newaxis] != self.decided
        rates = costs.rates(n_classes)[:, np.newaxis]
        return np.stack([np.where(wrong, mean, 0.0), costs.review_cost + rates * mean])

    def outcomes(self, costs: Costs) -> Outcomes:
        """Kinds are the classes of each row, (n_classes, R) in a row."""
        each = self.prices(costs)
        each = np.stack([each[0], each[1], np.zeros(each[0].shape)])
        wrong = np.zeros(each.shape, dtype=np.bool_)
        wrong[0] = np.arange(len(self.weight))[:, np.newaxis] != self.decided
        squares = self.squares * each**2
        if self.cost_squares is not None:
            squares[0] = np.where(wrong[0], self.cost_squares, 0.0)
        totals, crossed = self.weight * each, None
        if self.reviews is not None:
            reviews = ReviewedKinds.of_losses(self.reviews, costs)
            totals[1], squares[1], of_reviews = reviews.moments(self.weight, self.squares)
            crossed = of_reviews.ravel()
        return Outcomes(
            self.weight.ravel(),
            self.squares.ravel(),
            totals.reshape(3, -1),
            squares.reshape(3, -1),
            wrong.reshape(3, -1),
            crossed=crossed,
        )


class SeveralClassPart(Part):
    """Cases of several classes, by the loss of deciding them alone.

    Parameters
    ----------
    rows : DecidedRows
    costs : Costs
    cross_fitted : DecidedRows, optional
        The same cases, each decided by a map fitted to others; by default `rows`.
    binned : bool, default=False
        Whether the losses of `rows` are the least ones of bins.
    """

    def __init__(
        self,
        rows: DecidedRows,
        costs: Costs,
        cross_fitted: DecidedRows | None = None,
        *,
        binned: bool = False,
    ) -> None:
        self._binned = binned
        rows = rows.take(np.flatnonzero(rows.weight.any(axis=0)))
        order = np.argsort(rows.loss, kind="stable")
        self._rows, self._costs = rows.take(order), costs
        self._honest = rows if cross_fitted is None else cross_fitted
        loss = self._rows.loss
        self._starts = np.flatnonzero(np.concatenate([[True], loss[1:] != loss[:-1]]))
        self._ends = np.append(self._starts[1:], loss.size)
        self.losses = loss[self._starts]
        self.n_places = self._starts.size
        self.weight = self.by_place(self._rows.weight.sum(axis=0))
        self.n_cases = float(rows.units.sum())

    @property
    def rows(self) -> DecidedRows:
        """The cases in ascending order of their loss."""
        return self._rows

    @property
    def widest(self) -> Box:
        return Box(self.n_places, self.n_places)

    def by_place(self, amounts: Floats) -> Floats:
        found: Floats = np.add.reduceat(amounts, self._starts, axis=-1)
        return found

    def decided(self, cuts: Cuts) -> Integers:
        rows = np.ones(self._rows.loss.size, dtype=np.int64)
        rows[: self._first_row(cuts.lower)] = 0
        return rows

    def _first_row(self, place: int) -> int:
        return int(self._starts[place]) if place < self.n_places else self._rows.loss.size

    def layers(self, blend: float) -> Iterator[Layer]:
        rows, never = self._rows, np.zeros(self._rows.loss.size)
        for share, weight, expected in (
            (1.0 - blend, rows.weight, False),
            (blend, rows.expected, True),
        ):
            if share > 0.0:
                prices = rows.prices(self._costs, expected=expected)
                reviews = None
                if rows.reviews is not None and not expected:
                    reviews = ReviewedKinds.of_losses(rows.reviews, self._costs)
                for code, own in enumerate(weight):
                    parts = [(own, prices[1, code])]
                    if reviews is not None:
                        parts = list(reviews.prices(code, own))
                    for part, reviewed in parts:
                        costs = np.stack([prices[0, code], reviewed, never])
                        yield Layer(share * part, costs)

    def translated(self, allowed: Allowed, other: Part) -> Allowed:
        assert isinstance(other, SeveralClassPart)

        def places(lowers: Indices) -> Indices:
            limits = np.append(other.losses, inf)[lowers]
            return np.searchsorted(self.losses, limits)

        box = Box(int(places(np.array([allowed.box.highest_lower]))[0]), self.n_places)
        if allowed.points is None:
            return Allowed(box)
        lowers = places(allowed.points[0])
        return Allowed(box, (lowers, np.full(lowers.shape, self.n_places)))

    def class_counts(self) -> Floats:
        return np.zeros((2, self.n_places))

    def steps(self) -> Steps:
        """By the loss, of which a limit can be deployed; the best path if all errors cost alike."""
        rows = self._honest
        right = rows.units[rows.decided, np.arange(rows.loss.size)]
        number = rows.units.sum(axis=0)
        return Steps(-rows.loss, number, number - right)

    def boxes_at(self, keys: Floats) -> tuple[Indices, Indices]:
        lowers = np.searchsorted(self.losses, -keys)
        return lowers, np.full(lowers.shape, self.n_places)

    def symmetric(self) -> tuple[Indices, Indices]:
        lowers = np.arange(self.n_places + 1)
        return lowers, np.full(lowers.shape, self.n_places)

    def limit(self, cuts: Cuts) -> float:
        """Largest loss that is decided alone, midway between the losses on both sides."""
        if cuts.lower == 0:
            return -inf
        if cuts.lower == self.n_places:
            return inf
        below, above = self.losses[cuts.lower - 1 : cuts.lower + 1].tolist()
        if self._binned:
            return float(np.nextafter(above, -inf))
        middle = below + (above - below) / 2.0
        return float(middle if below <= middle < above else below)

    def largest_loss(self, cuts: Cuts) -> float:
        """Largest loss before the cut, which is not the first."""
        return self.limit(cuts) if self._binned else float(self.losses[cuts.lower - 1])


@dataclass(frozen=True, eq=False)
class SeveralClasses:
    """Cases of several classes, each fold with a temperature of the others.

    Attributes
    ----------
    data : LabelledScores
        Cases of positive weight.
    case_costs : ndarray, optional
    reviews : CaseReviews, optional
    costs : Costs
    rule : str
    folds : ndarray of shape (n,)
        Fold of each case.
    temperatures : sequence of float
        By fold, fitted to the others.
    temperature : float
        Fitted to all.
    calibrated : bool
        Whether temperatures were fitted.
    """

    data: LabelledScores
    case_costs: Floats | None
    reviews: CaseReviews | None
    costs: Costs
    rule: str
    folds: Indices
    temperatures: Sequence[float]
    temperature: float
    calibrated: bool = True

    def loss(self, temperature: float) -> ExpectedLoss:
        """Losses at a temperature."""
        return ExpectedLoss.of(self.costs, self.data.labels.size, temperature, self.rule)

    def _rows(self, temperature: float) -> DecidedRows:
        lost = None
        if self.reviews is not None:
            lost = self.reviews.losses(self.costs.matrix(self.data.labels.size))
        return decided_cases(self.data, self.case_costs, self.loss(temperature), lost)

    @cached_property
    def cross_fitted(self) -> DecidedRows:
        """Each case decided by the map of the other folds."""
        found = self._rows(self.temperatures[0])
        for fold, temperature in enumerate(self.temperatures[1:], start=1):
            own = np.flatnonzero(self.folds == fold)
            rows = self._rows(temperature)
            for to, part in zip(found, rows, strict=True):
                if to is not None and part is not None:
                    to[..., own] = part[..., own]
        return found

    @cached_property
    def whole(self) -> SeveralClassPart:
        return SeveralClassPart(self._rows(self.temperature), self.costs, self.cross_fitted)

    @cached_property
    def outcomes(self) -> Outcomes:
        return self.cross_fitted.outcomes(self.costs)

    @property
    def decisions(self) -> Integers:
        """Class that is decided on each case before the lower cut; the upper one is the last."""
        return np.stack([self.cross_fitted.decided] * 2)

    def parts(self) -> Iterator[tuple[Part, Pay]]:
        """For each fold the cases that choose for it, and what it does with their choice."""
        for fold, temperature in enumerate(self.temperatures):
            others = np.flatnonzero(self.folds != fold)
            part = SeveralClassPart(self._rows(temperature).take(others), self.costs)
            yield part, partial(self._pay, fold, part)

    def alone(self, cuts: Cuts) -> Mask:
        """Which kinds are decided alone at cuts of the whole."""
        alone = self._rows(self.temperature).loss <= self.whole.limit(cuts)
        return np.tile(alone, self.data.labels.size)

    def _pay(self, fold: int, part: SeveralClassPart, cuts: Cuts) -> Floats:
        n_classes = self.data.labels.size
        own, alone = self.folds == fold, self.cross_fitted.loss <= part.limit(cuts)
        mix = np.zeros((3, own.size))
        mix[0], mix[1] = own & alone, own & ~alone
        return np.tile(mix, n_classes)


def decided_cases(
    data: LabelledScores, case_costs: Floats | None, loss: ExpectedLoss, lost: Floats | None
) -> DecidedRows:
    """What a model would decide on every case; `lost` is what a review of it costs more."""
    n, n_classes = data.codes.size, data.labels.size
    p = loss.probabilities(data.scores)
    decided, losses = loss.decide(p)
    weights = np.ones(n) if data.weights is None else data.weights
    own = np.zeros((n_classes, n))
    own[data.codes, np.arange(n)] = 1.0
    reviews = None
    if lost is not None:
        amounts = case_amounts(n, weights, None, lost)
        reviews = own * np.stack([amounts[name] for name in REVIEW_SUMS])[:, np.newaxis]
    return DecidedRows(
        losses,
        decided,
        own,
        own * weights,
        own * weights**2,
        p.T * weights,
        None if case_costs is None else own * weights * case_costs,
        None if case_costs is None else own * (weights * case_costs) ** 2,
        reviews,
    )
