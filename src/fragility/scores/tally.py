"""Counts of cases by true class, predicted class and confidence, for decisions and costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers, Mask
from .._validation import LabelledScores
from ..exact import ExactSums
from .cases import case_amounts

#: Of more classes than this the thresholds below one half lie wider apart.
_FEW_CLASSES = 20
#: Up to this number of possible cells all are counted, beyond it only the cells that occur.
_MOST_CELLS = 1 << 21


def threshold_grid(n_classes: int, *, answers: bool = False) -> Floats:
    """Thresholds of confidence to choose from, for any model: round numbers, finer towards one.

    First 0, where everything is automated; then from 1 / n_classes, the least confidence there is,
    in steps of 0.005 to 0.95, 0.001 to 0.99, 0.0005 to 0.999, 0.0001 to 0.9999; last 1, where
    nothing is. At most 260. The confidence in `answers` may be as low as 0: the steps begin there.

    Examples
    --------
    >>> from fragility.scores.tally import threshold_grid
    >>> threshold_grid(2)[:4].tolist()
    [0.0, 0.5, 0.505, 0.51]
    """
    # In units of 0.0001: a quotient of whole numbers is the float next to the decimal number.
    coarse = 50 if n_classes <= _FEW_CLASSES else 100
    first = 1 if answers else -(-10_000 // n_classes)
    low = np.arange(-(-first // coarse) * coarse, 5_000, coarse)
    steps = [(5_000, 9_500, 50), (9_500, 9_900, 10), (9_900, 9_990, 5), (9_990, 10_000, 1)]
    ticks = np.concatenate([[0], low, *(np.arange(*step) for step in steps), [10_000]])
    return np.asarray(ticks / 10_000, dtype=np.float64)


def most_probable(probabilities: NDArray[Any], positive: int = 1) -> tuple[NDArray[Any], Floats]:
    """Place of the most probable class of each sample, of equal ones the first; and how probable.

    `probabilities` has shape (n_samples, n_classes), or (n_samples,): of the class at place
    `positive` of two.
    """
    if probabilities.ndim == 1:
        column = probabilities.astype(np.float64, copy=False)
        # At one half the first class is predicted, be it the positive one or not.
        first = column <= 0.5 if positive == 1 else column >= 0.5
        return (~first).view(np.uint8), np.maximum(column, complement(column))
    return probabilities.argmax(axis=1), probabilities.max(axis=1).astype(np.float64)


def complement(p: Floats) -> Floats:
    """One minus probabilities: above one half where these are below it, however it is rounded."""
    found: Floats = 1.0 - p
    found[(found == 0.5) & (p != 0.5)] = np.nextafter(0.5, 1.0)
    return found


@dataclass(frozen=True)
class Task:
    """What models are asked: which class a case is of, or a question that has any answer.

    Answers are right or wrong. A model always claims to be right, the positive class of two, and
    its confidence is the probability of that: never one minus it.

    Attributes
    ----------
    n_classes, positive : int
    answers : bool
        Whether cases are answers, wrong (the first class) or right (the second, positive one).
    """

    n_classes: int
    positive: int = 1
    answers: bool = False

    @classmethod
    def of(cls, data: LabelledScores) -> Task:
        """What the scores were asked for."""
        return cls(data.labels.size, data.positive, data.answers)

    @property
    def least_confidence(self) -> float:
        """The least that a confidence can be."""
        return 0.0 if self.answers else 1.0 / self.n_classes

    @cached_property
    def thresholds(self) -> Floats:
        """Thresholds of confidence to choose from."""
        return threshold_grid(self.n_classes, answers=self.answers)

    def predictions(self, scores: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """Place of the class that is predicted for each case, and the confidence in it."""
        if self.answers:
            sure = scores.astype(np.float64, copy=False)
            return np.full(scores.shape, self.positive, np.uint8), sure
        return most_probable(scores, self.positive)


def cells_of(thresholds: Floats, confidence: Floats) -> Indices:
    """Place of the first threshold that sends each case to a human: it is not above that one.

    At the first threshold, 0, everything is automated, whatever its confidence.
    """
    places = np.searchsorted(thresholds, confidence)
    # Rounding may push a probability above one, but no threshold lies there.
    return np.clip(places, 1, thresholds.size - 1, out=places)


class Cells(NamedTuple):
    """What is known of the cases of each true class, predicted class and cell of confidence.

    Attributes
    ----------
    true, predicted, place : ndarray of int
        Classes, and the first threshold that the confidence is not above. Sorted.
    number, weight, squares : ndarray
        Number of cases (perhaps an expected one), sums of their weights and of their squares.
    costs, cost_squares : ndarray, optional
        Sums of weight times the cost of an error, and of the squares of these, if costs differ by
        case.
    """

    true: Integers
    predicted: Integers
    place: Integers
    number: Floats
    weight: Floats
    squares: Floats
    costs: Floats | None = None
    cost_squares: Floats | None = None

    @property
    def wrong(self) -> Mask:
        return np.not_equal(self.true, self.predicted)

    @property
    def units(self) -> Integers:
        """Cases that each cell counts for: fewer where some outweigh the others."""
        by_weight = units_of(self.weight, self.squares)
        if self.costs is None or self.cost_squares is None:
            return by_weight
        return np.where(self.costs > 0.0, units_of(self.costs, self.cost_squares), by_weight)


def units_of(weight: Floats, squares: Floats) -> Integers:
    """Effective numbers of cases, rounded, at least one where there is any weight."""
    counts = np.zeros(weight.shape)
    np.divide(weight**2, squares, out=counts, where=squares > 0.0)
    # A hair above one half counts as one half: sums may differ in their last digit.
    counts = np.floor(counts * (1.0 + 1e-12) + 0.5)
    found: Integers = np.maximum(counts, np.where(weight > 0.0, 1.0, 0.0)).astype(np.int64)
    return found


def cell_keys(
    shape: tuple[int, int, int], true: NDArray[Any], predicted: NDArray[Any], places: NDArray[Any]
) -> Integers:
    """Number of the cell of each case."""
    keys: Integers = (true.astype(np.int64) * shape[1] + predicted) * shape[2] + places
    return keys


class AmountSums:
    """Exact sums of what cases amount to: the fields of `Cells` from `number` on.

    Parameters
    ----------
    size : int
        Number of cells.
    weighted, priced : bool
        Whether cases have weights, and costs of their own, which need weights.
    n_parts : int, default=1
        Parts of the cases, such as groups, that are counted apart.
    """

    def __init__(self, size: int, weighted: bool, priced: bool, n_parts: int = 1) -> None:
        self._size = size
        names = ["number"] + ["weight", "squares"] * weighted + ["costs", "cost_squares"] * priced
        self.sums = {name: ExactSums((n_parts, size)) for name in names}

    def add(
        self,
        keys: Integers,
        weights: Floats | None,
        costs: Floats | None,
        parts: Integers | None = None,
    ) -> None:
        """Add cases by their cells, and the part of each; at most `fragility.exact.MOST_TERMS`."""
        if parts is not None:
            keys = keys + parts * self._size
        self.sums["number"].add_each(keys, 1, most=1)
        if weights is not None:
            for name, terms in case_amounts(keys.size, weights, costs).items():
                if name != "number":
                    self.sums[name].add_at(keys, terms)

    def merge(self, other: AmountSums) -> None:
        """Add the cases of other sums of the same kind; without weights each weighs one."""
        for name, own in self.sums.items():
            own.merge(other.sums.get(name, other.sums["number"]))


class Tally(AmountSums):
    """Counts decisions as cases come, exactly.

    Parameters
    ----------
    task : Task
    weighted, priced : bool
        Whether cases have weights, and costs of their own.
    n_parts : int, default=1
        Parts of the cases, such as groups, that are counted apart.
    """

    def __init__(self, task: Task, weighted: bool, priced: bool, n_parts: int = 1) -> None:
        n_classes = task.n_classes
        self.thresholds = task.thresholds
        self.shape = n_classes, n_classes, self.thresholds.size
        size = n_classes * n_classes * self.thresholds.size
        if n_parts * size > 4 * _MOST_CELLS:
            of_groups = f" in {n_parts:,} groups" if n_parts > 1 else ""
            raise ValueError(
                f"{n_classes} classes{of_groups} are too many to count decisions of cases that are "
                "not held: hold all of them (hold=inf, --in-memory)."
            )
        super().__init__(size, weighted, priced, n_parts)

    def cells(self, part: int = 0) -> Cells:
        """The cells of a part that hold at least one case."""
        totals = {name: sums.floats(part) for name, sums in self.sums.items()}
        held = np.flatnonzero(totals["number"])
        return _cells(held, self.shape, {name: part[held] for name, part in totals.items()})


def _cells(keys: Integers, shape: tuple[int, int, int], totals: dict[str, Floats]) -> Cells:
    true, predicted, place = np.unravel_index(keys, shape)
    number = totals["number"]
    found = totals.get("weight", number), totals.get("squares", number)
    priced = totals.get("costs"), totals.get("cost_squares")
    return Cells(true, predicted, place, number, *found, *priced)


def _summed(keys: Integers, amounts: Floats, size: int) -> Floats:
    return np.bincount(keys, amounts, size).astype(np.float64, copy=False)


def cells_of_cases(
    task: Task,
    true: NDArray[Any],
    predicted: NDArray[Any],
    confidence: Floats,
    amounts: dict[str, Floats],
) -> Cells:
    """Cells of cases in memory, by their amounts."""
    thresholds, n_classes = task.thresholds, task.n_classes
    shape = n_classes, n_classes, thresholds.size
    keys = cell_keys(shape, true, predicted, cells_of(thresholds, confidence))
    size = n_classes * n_classes * thresholds.size
    if size <= _MOST_CELLS:
        held = np.flatnonzero(np.bincount(keys, minlength=size))
        totals = {name: _summed(keys, part, size)[held] for name, part in amounts.items()}
    else:
        held, keys = np.unique(keys, return_inverse=True)
        totals = {name: _summed(keys, part, held.size) for name, part in amounts.items()}
    return _cells(held, shape, totals)


@dataclass(frozen=True, eq=False)
class DecisionCounts:
    """What happens at each threshold δ: a model decides alone where its confidence is above δ.

    All arrays have one entry for each threshold, the weight of the cases: whole numbers, if the
    cases have no weights and nothing was calibrated.

    Attributes
    ----------
    thresholds : ndarray
        Ascending; the last one is 1.
    reviewed : ndarray
        Cases of a confidence of at most δ.
    errors : ndarray
        Wrong predictions of a confidence above δ.
    false_negatives, false_positives : ndarray or None
        Those of the positive and of the negative class; None for several classes.
    reviewed_positives : ndarray or None
        Reviewed cases of the positive class; None for several classes.
    """

    thresholds: Floats
    reviewed: NDArray[Any]
    errors: NDArray[Any]
    false_negatives: NDArray[Any] | None
    false_positives: NDArray[Any] | None
    reviewed_positives: NDArray[Any] | None

    @property
    def total(self) -> float:
        """Weight of all cases: at the threshold 1 all are reviewed."""
        return float(self.reviewed[-1])


def decision_counts(
    cells: Cells, thresholds: Floats, positive: int | None, *, whole: bool
) -> DecisionCounts:
    """Decisions at each threshold.

    `positive` is the positive class of two, `whole` says that the cells hold whole numbers.
    """
    dtype = np.int64 if whole else np.float64

    def by_place(chosen: Mask | None = None) -> Floats:
        weight = cells.weight if chosen is None else np.where(chosen, cells.weight, 0.0)
        return _summed(cells.place, weight, thresholds.size)

    def up_to(amounts: Floats) -> NDArray[Any]:
        return np.cumsum(amounts).astype(dtype)

    def above(amounts: Floats) -> NDArray[Any]:
        # Summed from the top, so that the errors end at exactly zero.
        return np.append(np.cumsum(amounts[:0:-1])[::-1], 0.0).astype(dtype)

    of_two = positive is not None
    is_positive = cells.true == positive
    missed, alarms = (above(by_place(cells.wrong & part)) for part in (is_positive, ~is_positive))
    return DecisionCounts(
        thresholds,
        up_to(by_place()),
        missed + alarms,
        missed if of_two else None,
        alarms if of_two else None,
        up_to(by_place(is_positive)) if of_two else None,
    )
