"""The Fragility Index of cases that are known by sums: its bounds, interval and ratio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers, Interval
from ..index.certified import CertifiedIndex, certify
from ..index.errors import Pair, PairIndex, class_pairs, pair_places
from ..index.inference import PseudoMove, confidence_interval
from ..index.influence import SolvedPair, counted_classes, error_of_squares, group_movements
from ..index.root import SampleEquation, solve
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


class BinSource:
    """Scores of all cases, or of one group, as bins know them.

    `first` is the class of the bins that is the first class here.
    """

    def __init__(self, bins: ScoreBins, first: int = 0) -> None:
        self._bins, self._first = bins, first

    def sample(self, column: int, code: int, sign: float) -> PointSample:
        return self._bins.points(column, self._first + code, sign)

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        negatives, positives = (
            self._bins.moments(column, self._first + code) for code in (negative, positive)
        )
        return certify(negatives, positives.negated(), 0.0)


class AtomSource:
    """Exact atoms of two classes."""

    def __init__(self, atoms: Sequence[Atoms]) -> None:
        self._atoms = atoms

    def sample(self, column: int, code: int, sign: float) -> PointSample:
        return PointSample.of(self._atoms[code], sign)

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        groups = self.sample(0, negative, 1.0), self.sample(0, positive, -1.0)
        s = solve(groups, 0.0)
        value = inf if s == 0.0 else 1.0 / s
        separation = -fsum(part for g in groups for part in (g.mean, g.mean_residual))
        return CertifiedIndex(value, value, value, separation)


#: Scores of a population, by column and class.
Source = BinSource | AtomSource


class PairSums(NamedTuple):
    """What a reading of the cases adds for several classes: how the pairs move together.

    Attributes
    ----------
    squares : ndarray of shape (C,)
        Sums over each class of the squared movements of the average index.
    products : ndarray of shape (C, P, P)
        Products of the movements of the pairs with a pseudo-mistake in each class.
    """

    squares: Floats
    products: Floats


class KnownIndex:
    """The pairs of one model in a population, as evidence for its interval.

    Speaks `fragility.index.inference.Evidence`: movements are coefficients of the pairs.

    Parameters
    ----------
    source : Source
    support : ndarray of shape (C,)
        Cases of each class.
    positive : int
        Of two classes.
    """

    def __init__(self, source: Source, support: Integers, positive: int) -> None:
        self._source, self._support = source, support
        self.is_binary = support.size == 2
        self.pairs = list(class_pairs(support, positive, "ovo"))
        self.found = [
            source.index(self._column(pair), pair.negatives[0], pair.positive)
            for pair in self.pairs
        ]
        #: Of several classes: from a reading of the cases, or None.
        self.sums: PairSums | None = None
        self._samples: dict[tuple[int, int, float], PointSample] = {}

    def _column(self, pair: Pair) -> int:
        return 0 if self.is_binary else pair.positive

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
            for place in pair_places(pair, n_classes, "ovo"):
                table[place] = part.fragility
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

    def interval(self, confidence: float) -> Interval | None:
        """Confidence interval of the index; None where these sums cannot tell it."""
        if not self.is_binary and self.sums is None:
            return None
        value, low, high = self._totals
        if low < high and not high - low <= _NEAR_ENOUGH * value:
            return None
        return confidence_interval(
            self, self.solved, 0.0, confidence=confidence, method="auto", score_range=(0.0, 1.0)
        )

    # What an interval asks for.

    def effective_size(self, code: int) -> float:
        """Effective number of cases of a class."""
        column = code if not self.is_binary else 0
        return 1.0 / self._sample(column, code, -1.0).concentration

    def factor(self, pair: Pair) -> float:
        """Scores are from 0 to 1."""
        return 1.0

    def _sample(self, column: int, code: int, sign: float) -> PointSample:
        key = column, code, sign
        if key not in self._samples:
            self._samples[key] = self._source.sample(*key)
        return self._samples[key]

    def groups(self, pair: Pair, factor: float | None = None) -> Sequence[Sample]:
        """Scores of the negatives, and scores of the positives times −1."""
        column = self._column(pair)
        return (
            self._sample(column, pair.negatives[0], 1.0),
            self._sample(column, pair.positive, -1.0),
        )

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

    def no_moves(self) -> Floats:
        """Coefficients of no pair."""
        return np.zeros(len(self.pairs))

    def moves_with_mistakes(
        self, part: SolvedPair, groups: Sequence[Sample], target: float, s: float
    ) -> tuple[Floats, list[PseudoMove]]:
        """Movements of the index of a pair whose groups have a pseudo-mistake each, root `s`."""
        moves = self.no_moves()
        moves[self.pairs.index(part.pair)] = pair_scale(groups, s)
        ends = part.pair.negatives[0], part.pair.positive
        return moves, [
            (code, float(move[-1]))
            for code, move in zip(ends, group_movements(groups, target, s), strict=True)
        ]

    def error_of_moves(
        self, solved: Sequence[SolvedPair], moves: Floats, *pseudo: PseudoMove
    ) -> float:
        """Standard error of an estimate that moves like this."""
        assert self.sums is not None
        squares = np.einsum("p,cpq,q->c", moves, self.sums.products, moves)
        for code, move in pseudo:
            squares[code] += move * move
        return error_of_squares(squares, self._sizes(solved), 1.0 if pseudo else 0.0)


def pair_scale(groups: Sequence[Sample], s: float) -> float:
    """Movement of the index with a case, over what the worst case adds to its share."""
    slope = SampleEquation(groups, 0.0)(s).slope
    return 1.0 / (s * (s * slope)) if slope > 0.0 else 0.0  # scores that differ by rounding alone


def _bounds(low: float, high: float) -> Interval | None:
    return Interval(low, high) if low < high else None
