"""One model on the cases that it answered: what every figure is computed from.

A figure is a function of a `Scored` that returns an `Estimate`: a value and the influence of a
unit of mass of each case. Figures of several classes that compare two classes are means over the
ordered pairs of classes that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from .._validation import LabelledScores, score_ranges
from ..cases.cases import Cases, Spread
from ..index.fragility import Fragility, measure
from ..index.inference import SampleEvidence
from ..measured import CONFIDENT
from .ranking_errors import PairScores


class Estimate(NamedTuple):
    """The value of a figure, and how each case moves it.

    Attributes
    ----------
    value : float
    influence : ndarray of shape (n,)
        Derivative of the value by the mass of each case; the sum of mass · influence is zero.
    worst : ndarray of shape (C,), optional
        Of figures of pairs: influence, per share of its class, of the worst possible mistake.
    variances : ndarray, optional
        Of the calibration error: variance of the difference in each bin.
    largest : float, optional
        Of the log-loss: the largest loss of a case.
    removal : ndarray of shape (n,), optional
        Influences for the comparison of two models where these differ: of leaving each case out,
        which does not understate that of heavy cases.
    """

    value: float
    influence: Floats
    worst: Floats | None = None
    variances: Floats | None = None
    largest: float | None = None
    removal: Floats | None = None


class ClassPair(NamedTuple):
    """Two classes, one taken for the other, with their scores and the pair's share of the mean."""

    negative: int
    positive: int
    negatives: Indices
    positives: Indices
    scores: PairScores
    share: float


class Scored:
    """One model on the cases that it answered.

    Parameters
    ----------
    cases : Cases
    model : str
    confident_above : float, default=0.9
        A prediction above this confidence is a confident one.
    """

    def __init__(self, cases: Cases, model: str, confident_above: float = CONFIDENT) -> None:
        scores = cases.scores[model]
        abstained = np.isnan(scores if scores.ndim == 1 else scores[:, 0])
        #: Rows of `cases` that the model answered; None: all of them.
        self.answered: Mask | None = ~abstained if abstained.any() else None
        self.model, self.confident_above = model, confident_above
        self.all_cases = cases
        self.cases = cases if self.answered is None else cases.take(self.answered)
        self.y = self.cases.truth(model)
        self.p: Floats = self.cases.scores[model]
        self.mass, self.total = self.cases.mass, float(self.cases.mass.sum())

    @property
    def is_binary(self) -> bool:
        """Whether scores are of the positive class of two."""
        return self.p.ndim == 1

    @property
    def n_classes(self) -> int:
        """Number of classes, also of those without a case."""
        return len(self.cases.labels)

    @cached_property
    def class_counts(self) -> Integers:
        """Number of rows of each class."""
        return np.bincount(self.y, minlength=self.n_classes)

    @cached_property
    def class_mass(self) -> Floats:
        """Mass of each class."""
        return np.bincount(self.y, self.mass, self.n_classes).astype(np.float64)

    @cached_property
    def class_sizes(self) -> Floats:
        """Effective number of cases of each class (Kish); 0 for classes without a case."""
        squares = np.bincount(self.y, self.mass * self.cases.unit, self.n_classes)
        sizes = np.zeros(self.n_classes)
        return np.divide(self.class_mass**2, squares, out=sizes, where=squares > 0.0)

    @cached_property
    def effective_size(self) -> float:
        """Effective number of all cases."""
        return self.total**2 / float(self.mass @ self.cases.unit)

    @cached_property
    def n_independent(self) -> float:
        """Effective number of independent observations: of cases, or of clusters."""
        if self.cases.cluster is None:
            return self.effective_size
        mass = np.bincount(self.cases.cluster, self.mass)
        return float(mass.sum() ** 2 / (mass @ mass))

    # Predictions.

    @cached_property
    def predicted(self) -> Integers:
        """Predicted class of each case; of equally probable classes the first."""
        if self.cases.answers:
            return np.full(self.y.size, self.cases.positive)
        if not self.is_binary:
            return np.asarray(self.p.argmax(axis=1))
        is_first = self.p <= 0.5 if self.cases.positive == 1 else self.p >= 0.5
        return (~is_first).astype(np.int64)

    @cached_property
    def confidence(self) -> Floats:
        """Probability of the predicted class."""
        if self.cases.answers:
            return self.p
        if not self.is_binary:
            return np.asarray(self.p.max(axis=1), dtype=np.float64)
        complement = 1.0 - self.p
        # However it is rounded, one minus a probability below one half lies above one half.
        complement[(complement == 0.5) & (self.p != 0.5)] = np.nextafter(0.5, 1.0)
        return np.maximum(self.p, complement)

    @cached_property
    def wrong(self) -> Mask:
        """Whether each prediction is wrong."""
        return np.not_equal(self.predicted, self.y)

    @cached_property
    def p_true(self) -> Floats:
        """Probability of the class that each case is of."""
        if self.is_binary:
            return np.where(self.y == self.cases.positive, self.p, 1.0 - self.p)
        return np.asarray(self.p[np.arange(self.y.size), self.y], dtype=np.float64)

    @property
    def forecast(self) -> tuple[Floats, Mask]:
        """A probability for each case, and whether what it foretells happened.

        Of two classes that the case is positive; of several that the prediction is right.
        """
        if self.is_binary:
            return self.p, self.y == self.cases.positive
        return np.minimum(self.confidence, 1.0), ~self.wrong

    # Pairs of classes.

    @cached_property
    def pairs(self) -> list[ClassPair]:
        """Ordered pairs of classes that occur; two classes make one."""
        rows = [np.flatnonzero(self.y == code) for code in range(self.n_classes)]
        if self.is_binary:
            kinds = [(1 - self.cases.positive, self.cases.positive)]
        else:
            present = np.flatnonzero(self.class_counts).tolist()
            kinds = [(j, i) for i in present for j in present if i != j]
        return [self._pair(j, i, rows, 1.0 / len(kinds)) for j, i in kinds]

    def _pair(self, negative: int, positive: int, rows: list[Indices], share: float) -> ClassPair:
        column = self.p if self.is_binary else self.p[:, positive]
        negatives, positives = rows[negative], rows[positive]
        scores = PairScores(
            column[negatives], column[positives], self.mass[negatives], self.mass[positives]
        )
        return ClassPair(negative, positive, negatives, positives, scores, share)

    @cached_property
    def index(self) -> Fragility:
        """The Fragility Index with everything that explains it."""
        weights = None
        if self.cases.weight is not None or self.cases.count is not None:
            weights = self.mass
        data = LabelledScores(
            self.p,
            self.y,
            np.asarray(self.cases.labels),
            self.cases.positive,
            weights,
            self.class_counts,
            score_ranges(self.p),
            self.cases.answers,
        )
        return measure(SampleEvidence(data), 0.0, "ovo", None)

    # Figures.

    def mean(self, values: Floats) -> Estimate:
        """Estimate a mean over the cases."""
        value = float(self.mass @ values / self.total)
        return Estimate(value, (values - value) / self.total)

    def over_pairs(
        self, figure: Callable[[PairScores], tuple[float, Floats, Floats, Floats]]
    ) -> Estimate:
        """Estimate a mean over pairs of classes.

        `figure` returns the value of a pair, the influences of its negatives and positives per
        share of the mass of their class, and those of the worst mistake of both classes.
        """
        value, influence, worst = 0.0, np.zeros(self.y.size), np.zeros(self.n_classes)
        for pair in self.pairs:
            of_pair, *sides, ends = figure(pair.scores)
            value += pair.share * of_pair
            classes = (pair.negative, pair.negatives), (pair.positive, pair.positives)
            for (code, rows), side, end in zip(classes, sides, ends, strict=True):
                influence[rows] += pair.share * side / self.class_mass[code]
                worst[code] += pair.share * end
        return Estimate(value, influence, worst)

    def spread(self, influence: Floats, by_class: bool) -> Spread:
        """Return the standard error of a figure from its influences on the answered cases."""
        return self.cases.spread(influence, self.y if by_class else None)

    def on_all_cases(self, influence: Floats) -> Floats:
        """Return influences with zeros for the cases that the model abstained from."""
        if self.answered is None:
            return influence
        padded = np.zeros(self.all_cases.n)
        padded[self.answered] = influence
        return padded


def scored_models(cases: Cases, confident_above: float) -> Iterator[Scored]:
    """Yield every model of the table."""
    for model in cases.scores:
        yield Scored(cases, model, confident_above)
