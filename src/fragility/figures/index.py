"""The Fragility Index of cases that are known by sums: its bounds, interval and ratio."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, inf, log
from typing import ClassVar, NamedTuple

import numpy as np

from .._typing import Floats, Integers, Interval
from ..index.certified import BinMoments, CertifiedIndex, certify
from ..index.errors import Pair, PairIndex, RankingErrors, SolvedPair, class_pairs, pair_entries
from ..index.inference import confidence_interval
from ..index.influence import (
    PseudoInfluence,
    counted_classes,
    error_of_squares,
    group_influences,
)
from ..index.root import SampleEquation, separation, solve
from ..measured import Measured
from ..moments import Sample, TestedGroup
from ..scores.atoms import Atoms, PointSample
from ..scores.bins import ScoreBins

#: Where bins leave more than this share of an index in doubt, they cannot tell its interval.
_NEAR_ENOUGH = 1e-5


@dataclass(frozen=True)
class IndexFigures:
    """Index with its interval, ratio, and the index of each pair of classes."""

    index: Measured
    ratio: Measured
    pairs: Floats
    n_infinite_pairs: int


@dataclass(eq=False)
class Source(ABC):
    """Scores of a population, by column and class."""

    _samples: dict[tuple[int, int, float], Sample] = field(init=False, default_factory=dict)
    #: A smaller index is rounding: the scores that it depends on differ by rounding alone.
    least_index: ClassVar[float] = 1e-12

    def sample(self, column: int, code: int, sign: float) -> Sample:
        """The scores of a class, or minus them; made once."""
        key = column, code, sign
        if key not in self._samples:
            self._samples[key] = self._new_sample(*key)
        return self._samples[key]

    @abstractmethod
    def _new_sample(self, column: int, code: int, sign: float) -> Sample: ...

    def groups(self, column: int, negative: int, positive: int) -> tuple[Sample, Sample]:
        """Scores of the negatives, and scores of the positives times −1."""
        return self.sample(column, negative, 1.0), self.sample(column, positive, -1.0)

    @abstractmethod
    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        """Index of a pair of classes."""

    def top(self, column: int, code: int, sign: float) -> tuple[float, float]:
        """Largest value of that sample, and the logarithm of its share of the weight."""
        sample = self.sample(column, code, sign)
        return sample.pivot, -sample.neg_log_top_share


@dataclass(eq=False)
class CaseSource(Source):
    """Scores of cases in memory, whose index of each pair of classes has been measured."""

    errors: RankingErrors
    pairs: Floats
    least_index = 0.0

    def _new_sample(self, column: int, code: int, sign: float) -> Sample:
        _, rows = self.errors.group_rows(Pair(code, (code,)))
        weights = self.errors.data.weights
        return Sample(self.errors.column(column), factor=sign, selection=rows, weights=weights)

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        value = float(self.pairs[positive, negative])
        apart = separation(self.groups(column, negative, positive))
        return CertifiedIndex(value, value, value, apart)


@dataclass(eq=False)
class BinSource(Source):
    """Scores of all cases, or of one group, as bins know them.

    `first` is the class of the bins that is the first class here, and `near` what the index may be
    near to; 0 if nothing is known of it.
    """

    bins: ScoreBins
    first: int = 0
    near: float = 0.0
    #: Of the latest pair of classes, whose samples may be asked for next, by column and class.
    _moments: dict[tuple[int, int], BinMoments] = field(init=False, default_factory=dict)

    def _new_sample(self, column: int, code: int, sign: float) -> Sample:
        return self.bins.points(column, self.first + code, sign, self._moments.get((column, code)))

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        negatives, positives = (
            self.bins.moments(column, self.first + code) for code in (negative, positive)
        )
        self._moments = {(column, negative): negatives, (column, positive): positives}
        return certify(negatives, positives.negated(), 0.0, self.near)

    def top(self, column: int, code: int, sign: float) -> tuple[float, float]:
        """Least value of the topmost bin, whose values bins cannot tell apart, and its share."""
        if not self.bins.ranges.size:  # of groups, whose cases are not listed
            return inf, 0.0
        atoms = self.bins.atoms(column, self.first + code)
        least, place = (atoms.low[-1], -1) if sign > 0.0 else (-atoms.high[0], 0)
        return float(least), log(atoms.weight[place] / atoms.weight.sum())


@dataclass(eq=False)
class AtomSource(Source):
    """Exact atoms of two classes."""

    atoms: Sequence[Atoms]

    def _new_sample(self, column: int, code: int, sign: float) -> Sample:
        return PointSample.of(self.atoms[code], sign)

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        groups = self.groups(column, negative, positive)
        s = solve(groups, 0.0)
        value = inf if s == 0.0 else 1.0 / s
        return CertifiedIndex(value, value, value, separation(groups))


class PairSums(NamedTuple):
    """What a reading of the cases adds for several classes: how the pairs move together.

    Attributes
    ----------
    squares : ndarray of shape (C,)
        Sums over each class of the squared influences of the average index.
    products : ndarray of shape (C, P, P)
        Products of the influences on the pairs with a pseudo-mistake in each class.
    """

    squares: Floats
    products: Floats


class KnownIndex:
    """The pairs of one model in a population, as evidence for its interval.

    Speaks `fragility.index.inference.Evidence`: influences are coefficients of the pairs.

    Parameters
    ----------
    source : Source
    support : ndarray of shape (C,)
        Cases of each class.
    positive : int
        Of two classes.
    """

    def __init__(self, source: Source, support: Integers, positive: int) -> None:
        self.source, self._support = source, support
        self.is_binary = support.size == 2
        self.pairs = list(class_pairs(support, positive, "ovo"))
        self.found = [
            source.index(self._column(pair), pair.negatives[0], pair.positive)
            for pair in self.pairs
        ]
        #: Of several classes: from a reading of the cases, or None.
        self.sums: PairSums | None = None

    def _column(self, pair: Pair) -> int:
        return 0 if self.is_binary else pair.positive

    @property
    def largest(self) -> float:
        """Largest finite index of a pair."""
        return max((part.fragility for part in self.found if part.fragility < inf), default=1.0)

    @property
    def share(self) -> float:
        """Of each pair in the average."""
        return 1.0 / len(self.pairs)

    @cached_property
    def solved(self) -> list[SolvedPair]:
        """The pairs with their indices."""
        found = zip(self.pairs, self.found, strict=True)
        return [SolvedPair(pair, part.fragility, self.share) for pair, part in found]

    @cached_property
    def _totals(self) -> list[float]:
        """Sums over the pairs of the index and of its bounds."""
        return [fsum(part[end] for part in self.found) for end in range(3)]

    def figures(self, confidence: float) -> IndexFigures:
        """Index with interval, ratio and table of pairs."""
        n_classes = self._support.size
        table = np.full((n_classes, n_classes), np.nan)
        for pair, part in zip(self.pairs, self.found, strict=True):
            for entry in pair_entries(pair, n_classes, "ovo"):
                table[entry] = part.fragility
        value, low, high = (total / len(self.found) for total in self._totals)
        ratio, least, most = (
            fsum(PairIndex(part[end], part.separation).ratio for part in self.found)
            / len(self.found)
            for end in range(3)
        )
        return IndexFigures(
            Measured(value, self.interval(confidence), _bounds(low, high)),
            Measured(ratio, None, _bounds(least, most)),
            table,
            sum(part.fragility == inf for part in self.found),
        )

    @property
    def is_near(self) -> bool:
        """Whether the bounds of the index are so near that sums can tell its interval."""
        value, low, high = self._totals
        return not low < high or high - low <= _NEAR_ENOUGH * value

    def interval(self, confidence: float, target: float = 0.0) -> Interval | None:
        """Confidence interval of the index; None where these sums cannot tell it."""
        if not self.is_near or (not self.is_binary and self.sums is None):
            return None
        return self.rough_interval(confidence, target)

    def rough_interval(self, confidence: float, target: float = 0.0) -> Interval:
        """The same, however wide bins are: of two classes, or with sums over pairs."""
        return confidence_interval(
            self, self.solved, target, confidence=confidence, method="auto", score_range=(0.0, 1.0)
        )

    # What an interval asks for.

    def effective_size(self, code: int) -> float:
        """Effective number of cases of a class."""
        # As `groups` has them: of two classes the negatives are not negated.
        column, sign = (0, 1.0 if code == self.pairs[0].negatives[0] else -1.0)
        if not self.is_binary:
            column, sign = code, -1.0
        return 1.0 / self.source.sample(column, code, sign).concentration

    def factor(self, pair: Pair) -> float:
        """Scores are from 0 to 1."""
        return 1.0

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        """Scores of the negatives, and scores of the positives times −1."""
        return self.source.groups(self._column(pair), pair.negatives[0], pair.positive)

    def groups_with_mistakes(self, pair: Pair) -> list[Sample]:
        """The same with the worst possible mistake added to each."""
        ends = zip(self.groups(pair), (1.0, 0.0), strict=True)
        return [group.with_value(end) for group, end in ends]

    def readings(self, part: SolvedPair, target: float) -> Iterator[Sequence[TestedGroup]]:
        """The groups of two classes."""
        return iter([self.groups(part.pair)])

    def _sizes(self, solved: Sequence[SolvedPair]) -> dict[int, float]:
        return {code: self.effective_size(code) for code in counted_classes(solved)}

    def index_error(self, solved: Sequence[SolvedPair], target: float) -> float:
        """Standard error of the average index of finite pairs."""
        assert self.sums is not None
        return error_of_squares(self.sums.squares, self._sizes(solved))

    def no_influences(self) -> Floats:
        """Coefficients of no pair."""
        return np.zeros(len(self.pairs))

    def influences_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoInfluence]]:
        """Influences on the index of a pair whose groups have a pseudo-mistake each, root `s`."""
        vector = self.no_influences()
        vector[self.pairs.index(part.pair)] = pair_scale(SampleEquation(groups, 0.0), s)
        ends = part.pair.negatives[0], part.pair.positive
        return vector, [
            (code, float(influence[-1]))
            for code, influence in zip(ends, group_influences(groups, target, s), strict=True)
        ]

    def error_of_influences(
        self, solved: Sequence[SolvedPair], vector: Floats, *pseudo: PseudoInfluence
    ) -> float:
        """Standard error of an estimate with these influences."""
        assert self.sums is not None
        squares = np.einsum("p,cpq,q->c", vector, self.sums.products, vector)
        for code, influence in pseudo:
            squares[code] += influence * influence
        return error_of_squares(squares, self._sizes(solved), 1.0 if pseudo else 0.0)


def pair_scale(equation: SampleEquation, s: float) -> float:
    """Movement of the index with a case, over what the worst case adds to its share."""
    slope = equation(s).slope
    return 1.0 / (s * (s * slope)) if slope > 0.0 else 0.0  # scores that differ by rounding alone


def _bounds(low: float, high: float) -> Interval | None:
    return Interval(low, high) if low < high else None
