"""Views of a model's scores: cases in memory, sums over cases, or calibrated bins.

All views answer the same questions, so figures do not know which one they ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..calibration.table import ScoreTable, TableCalibration
from ..figures.case_influence import (
    CaseInfluences,
    RowInfluences,
    ScoreInfluences,
    TableInfluences,
    outcome_influences,
    pair_influence,
    score_influences,
)
from ..figures.confidence import (
    PredictionAtoms,
    Predictions,
    outcome_atoms,
    predictions,
    predictions_by_outcome,
    predictions_of_two,
    score_atoms,
)
from ..figures.index import AtomSource, BinSource, CaseSource, IndexFigures, KnownIndex
from ..figures.influence import ScoreInfluence, TableInfluence
from ..figures.proper import proper_scores
from ..figures.rank import auc
from ..figures.reliability import cases_alike
from ..figures.tails import TailBounds, merged, tail_bounds
from ..index.errors import Pair, RankingErrors, class_pairs
from ..index.fragility import Fragility, measure
from ..measured import CONFIDENT, CVAR_LEVEL, LEAST_PROBABILITY, Measured
from ..scores.atoms import Atoms
from ..scores.cases import case_amounts
from ..scores.layout import Tails
from ..scores.sums import ModelSums, Shape, binned_scores
from ..scores.tally import (
    Cells,
    cells_of_cases,
    most_probable,
    threshold_grid,
)

#: Calibrated scores of a class are taken together where there are more than this many.
_MOST_CALIBRATED = 4096
#: Scores of several classes, or under many maps, in more atoms than these are merged for
#: influences: in bins of this power of one half in the middle, and narrower towards 0 and 1.
_MOST_ATOMS, _INFLUENCE_BINS = 1 << 13, 10


class RankedPair(NamedTuple):
    """A pair of classes: bounds on its AUC and on the tail of its ranking errors."""

    pair: Pair
    auc: tuple[float, float]
    tails: TailBounds


class Units(NamedTuple):
    """Cases of one of two classes that figures do not tell apart, by score."""

    scores: Floats
    weight: Floats
    squares: Floats


class View(ABC):
    """One model's scores of some cases.

    Parameters
    ----------
    n_classes, positive : int
    support : ndarray of shape (n_classes,)
        Cases of each class.
    whole : bool
        Whether decisions are counted in whole numbers.

    Attributes
    ----------
    confident : float
        A prediction above this confidence is a confident one: one of the grid of thresholds.
    """

    confident: float = CONFIDENT

    def __init__(self, n_classes: int, positive: int, support: Integers, *, whole: bool) -> None:
        self.n_classes, self.positive, self.support = n_classes, positive, support
        self.whole = whole

    @abstractmethod
    def atoms(self, column: int, code: int) -> Atoms:
        """Scores of a class in a column; two classes have one column."""

    def outcomes(self) -> tuple[Atoms, Atoms]:
        """Probabilities of what did not happen, and of what did.

        Of two classes the positive one happens or not, of several the predicted one.
        """
        if self.n_classes > 2:
            return self._confidence_by_outcome()
        return self.atoms(0, 1 - self.positive), self.atoms(0, self.positive)

    def _confidence_by_outcome(self) -> tuple[Atoms, Atoms]:
        """Confidence of wrong and of right predictions of several classes."""
        raise NotImplementedError

    def binned_outcomes(self) -> tuple[Atoms, Atoms]:
        """The same as `outcomes` in bins, whether the scores are known or not."""
        return self.outcomes()

    def predictions(self) -> PredictionAtoms:
        """Predictions by confidence."""
        if self.n_classes > 2:
            return predictions_by_outcome(*self.outcomes())
        return predictions_of_two([self._halved_atoms(code) for code in range(2)], self.positive)

    def _halved_atoms(self, code: int) -> Atoms:
        """Scores of one of two classes, in atoms that lie on one side of one half."""
        return self.atoms(0, code)

    def cases_alike(self, n_bins: int, factors: tuple[float, float]) -> Floats | None:
        """How many cases count as one in bins of `outcomes` of equal mass; None if each does.

        `factors` are what the weights of both kinds are divided by.
        """
        return None

    @property
    @abstractmethod
    def cells(self) -> Cells:
        """Cases by true class, predicted class and confidence."""

    @abstractmethod
    def proper_scores(self) -> tuple[float, float]:
        """Log-loss (finite at 0, as scikit-learn's) and Brier score."""

    @abstractmethod
    def confident_sum(self) -> float:
        """Weighted sum of the confidences above the level of confident predictions."""

    @property
    @abstractmethod
    def known(self) -> KnownIndex:
        """The pairs of classes with their indices."""

    def index(self, confidence: float) -> IndexFigures:
        """The index with its interval, ratio and table of pairs."""
        return self.known.figures(confidence)

    @cached_property
    def influence(self) -> ScoreInfluence | TableInfluence:
        """Influence of each case on the index."""
        return ScoreInfluence(self.known, self.n_classes)

    @cached_property
    def ranked(self) -> list[RankedPair]:
        """Every pair of classes; two classes are one."""
        pairs = list(class_pairs(self.support, self.positive, "ovo"))
        found = []
        for pair in pairs:
            groups = self._groups(pair)
            tails = tail_bounds(*groups, CVAR_LEVEL, len(pairs))
            found.append(RankedPair(pair, auc(*groups), tails))
        return found

    def _groups(self, pair: Pair) -> tuple[Atoms, Atoms]:
        """Scores of the negatives and of the positives."""
        column = 0 if self.n_classes == 2 else pair.positive
        return self.atoms(column, pair.negatives[0]), self.atoms(column, pair.positive)

    @cached_property
    def case_influences(self) -> CaseInfluences:
        """Influence of each case on the figures beside the index."""
        return self._of_scores() if self.n_classes == 2 else self._of_rows()

    def _of_scores(self) -> ScoreInfluences:
        atoms = self._influential_atoms()
        made = predictions_of_two(atoms, self.positive)
        tails, n_cases = self.ranked[0].tails, int(self.support.sum())
        return score_influences(atoms, made, self.positive, tails, self.confident, n_cases)

    def _influential_atoms(self) -> list[Atoms]:
        """By class of two, atoms that lie on one side of one half."""
        return [self._halved_atoms(code) for code in range(2)]

    def _of_rows(self) -> RowInfluences:
        tables: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        worst = np.zeros((self.n_classes, 3))
        share = 1.0 / len(self.ranked)
        for pair, _, tails in self.ranked:
            groups = [merged(part, _MOST_ATOMS) for part in self._groups(pair)]
            found = pair_influence(groups[0], groups[1], tails)
            codes = pair.negatives[0], pair.positive
            for code, atoms, table, end in zip(codes, groups, found[:2], found.worst, strict=True):
                key = code, pair.positive
                before = tables[key][1] if key in tables else 0.0
                tables[key] = atoms.low, before + share * table
                worst[code] += share * end
        wrong, right = self.outcomes()
        outcomes, calibration = outcome_influences(
            wrong, right, self.predictions(), self.confident, int(self.support.sum())
        )
        means, total = np.array(self.proper_scores()), float(self.cells.weight.sum())
        least = min(self.atoms(c, c).mean[0] for c in np.flatnonzero(self.support).tolist())
        largest = -float(np.log(max(least, LEAST_PROBABILITY)))
        return RowInfluences(tables, outcomes, means, total, worst, calibration, largest)

    def units(self) -> Iterator[Units]:
        """By class of two, cases that figures do not tell apart."""
        for code in range(2):
            atoms = self._halved_atoms(code)
            yield Units(atoms.mean, atoms.weight, atoms.squares)


class DataView(View):
    """Cases in memory: every figure is exact.

    With `clusters` the band of the reliability curve counts these.
    """

    def __init__(self, data: LabelledScores, clusters: Integers | None = None) -> None:
        super().__init__(data.labels.size, data.positive, data.support, whole=data.weights is None)
        self.data, self.clusters = data, clusters
        self._errors = RankingErrors(data)

    @cached_property
    def _made(self) -> Predictions:
        return predictions(self.data)

    @cached_property
    def found(self) -> Fragility:
        """The measured index."""
        return measure(self._errors, 0.0, "ovo", None)

    @cached_property
    def known(self) -> KnownIndex:
        source = CaseSource(self._errors, self.found.pairs)
        return KnownIndex(source, self.support, self.positive)

    @cached_property
    def _by_class(self) -> list[Atoms]:
        return score_atoms(self.data)

    def atoms(self, column: int, code: int) -> Atoms:
        if self.n_classes == 2:
            return self._by_class[code]
        rows = self.data.codes == code
        weights = None if self.data.weights is None else self.data.weights[rows]
        return Atoms.of(self.data.scores[rows, column], weights)

    def _confidence_by_outcome(self) -> tuple[Atoms, Atoms]:
        return outcome_atoms(self._made)

    @cached_property
    def cells(self) -> Cells:
        made = self._made
        amounts = case_amounts(made.wrong.size, self.data.weights, None)
        return cells_of_cases(self.n_classes, made.true, made.predicted, made.confidence, amounts)

    def proper_scores(self) -> tuple[float, float]:
        data = self.data
        if data.is_binary:
            happened = data.codes == data.positive
            positive = data.scores.astype(np.float64)
            squares = (positive - happened) ** 2
            p_true = np.where(happened, positive, 1.0 - positive)
        else:
            p_true = data.scores[np.arange(data.codes.size), data.codes].astype(np.float64)
            squares = np.einsum("ij,ij->i", data.scores, data.scores, dtype=np.float64)
            squares += 1.0 - 2.0 * p_true
        return proper_scores(p_true, squares, self._made.weights_or_ones)

    def binned_outcomes(self) -> tuple[Atoms, Atoms]:
        data, weights = self.data, self.data.weights
        if self.n_classes == 2:
            scores, codes = data.scores, data.codes
            places = 1 - self.positive, self.positive
        else:
            scores, codes = self._made.confidence.clip(max=1.0), ~self._made.wrong
            places = 0, 1
        bins = binned_scores(scores, codes, weights, None)
        return bins.atoms(0, places[0]), bins.atoms(0, places[1])

    def cases_alike(self, n_bins: int, factors: tuple[float, float]) -> Floats | None:
        if self.clusters is None:
            return None
        made, scores = self._made, self.data.scores
        happened = ~made.wrong
        if self.n_classes == 2:
            happened, scores = self.data.codes == self.positive, scores.astype(np.float64)
        else:
            scores = made.confidence
        weights = made.weights_or_ones / np.where(happened, factors[1], factors[0])
        return cases_alike(scores, happened, weights, self.clusters, n_bins, "quantile")

    def confident_sum(self) -> float:
        above = self._made.confidence > self.confident
        weights = np.ones(above.size) if self.data.weights is None else self.data.weights
        return float(weights[above] @ self._made.confidence[above])

    def index(self, confidence: float) -> IndexFigures:
        found = self.found
        value = Measured(found.value, found.interval(confidence))
        return IndexFigures(value, Measured(found.ratio), found.pairs, found.n_infinite_pairs)


class BinView(View):
    """Sums over cases that are not held: figures of ranks have bounds."""

    def __init__(self, sums: ModelSums, shape: Shape, support: Integers) -> None:
        super().__init__(shape.n_classes, shape.positive, support, whole=not shape.weighted)
        self._sums, self._bins = sums, sums.bins

    @cached_property
    def known(self) -> KnownIndex:
        return KnownIndex(BinSource(self._bins), self.support, self.positive)

    def atoms(self, column: int, code: int) -> Atoms:
        return self._bins.atoms(column, code)

    def _confidence_by_outcome(self) -> tuple[Atoms, Atoms]:
        assert self._sums.confidence is not None
        return self._sums.confidence.atoms(0, 0), self._sums.confidence.atoms(0, 1)

    def _halved_atoms(self, code: int) -> Atoms:
        """Scores of exactly one half are an atom of their own, whose weight the cells tell.

        There the first class is predicted, but above it the second.
        """
        atoms = self.atoms(0, code)
        place = int(np.searchsorted(atoms.low, 0.5))
        if self.positive == 0 or place == atoms.low.size or atoms.low[place] != 0.5:
            return atoms
        cells = self.cells
        half = int(np.searchsorted(threshold_grid(2), 0.5))
        own = (cells.true == code) & (cells.place == half)
        weight, squares = float(cells.weight[own].sum()), float(cells.squares[own].sum())
        rest = atoms.weight[place] - weight
        parts: list[tuple[float, ...]] = []
        if weight > 0.0:
            parts.append((0.5, 0.5, weight, 0.5, squares))
        if rest > 1e-9 * atoms.weight[place]:
            low, high = np.nextafter(0.5, 1.0), atoms.high[place]
            mean = (atoms.weight[place] * atoms.mean[place] - 0.5 * weight) / rest
            mean = min(max(mean, low), high)
            parts.append((low, high, rest, mean, atoms.squares[place] - squares))
        columns = zip(*parts, strict=True)
        return Atoms(
            *(
                np.concatenate([whole[:place], new, whole[place + 1 :]])
                for whole, new in zip(atoms, columns, strict=True)
            )
        )

    @cached_property
    def cells(self) -> Cells:
        return self._sums.tally.cells()

    def proper_scores(self) -> tuple[float, float]:
        weight, squares = float(self.cells.weight.sum()), 0.0
        for own in [self.positive] if self.n_classes == 2 else range(self.n_classes):
            column = 0 if self.n_classes == 2 else own
            distances = self._bins.squared_distances(column, 0.0)
            distances[own] = self._bins.squared_distances(column, 1.0)[own]
            squares += float(distances.sum())
        return self._sums.log_loss / weight, squares / weight

    def confident_sum(self) -> float:
        place = int(np.searchsorted(threshold_grid(self.n_classes), self.confident))
        return float(self._sums.confidences[place + 1 :].sum())


class CalibratedView(View):
    """Calibrated scores of two classes, each case by the value that it has in a table."""

    def __init__(
        self,
        table: ScoreTable,
        positive: int,
        support: Integers,
        calibration: TableCalibration,
    ) -> None:
        super().__init__(2, positive, support, whole=False)
        self.table, self.calibration = table, calibration
        self._predicted, self._confidence = (
            part.reshape(calibration.scores.shape)
            for part in most_probable(calibration.scores.ravel(), positive)
        )

    @cached_property
    def known(self) -> KnownIndex:
        return KnownIndex(AtomSource(self._by_class), self.support, self.positive)

    @cached_property
    def influence(self) -> TableInfluence:
        found = self.calibration
        return TableInfluence(self.known, found.scores, found.shares, self.table.places)

    @cached_property
    def _by_class(self) -> list[Atoms]:
        amounts = self.table.amounts
        found = []
        for shares, weight, squares in zip(
            self.calibration.shares, amounts["weight"], amounts["squares"], strict=True
        ):
            under = shares > 0.0
            parts = ((part * shares)[under] for part in (weight, squares))
            found.append(Atoms.of(self.calibration.scores[under], *parts))
        return found

    def _influential_atoms(self) -> list[Atoms]:
        """Scores of many maps in bins, which influences hardly feel."""
        found = super()._influential_atoms()
        if max(part.low.size for part in found) <= _MOST_ATOMS:
            return found
        sides = np.nextafter(0.5, 1.0), 1.0 - self.confident, self.confident
        edges = np.unique(np.append(Tails(_INFLUENCE_BINS).edges, sides))
        return [part.grouped(edges) for part in found]

    @cached_property
    def case_influences(self) -> TableInfluences:
        found, (scores, shares, *_) = self._of_scores(), self.calibration
        tables = np.zeros((2, found.tables[0].shape[0], scores.shape[1]))
        for code in range(2):
            for map_scores, map_shares in zip(scores, shares[code], strict=True):
                tables[code] += map_shares * found.values(code, map_scores[np.newaxis])
        return TableInfluences(tables, self.table.places, *found[2:])

    def units(self) -> Iterator[Units]:
        amounts = self.table.amounts
        for weight, squares in zip(amounts["weight"], amounts["squares"], strict=True):
            held = np.flatnonzero(weight)
            yield Units(self.table.scores[held], weight[held], squares[held])

    def atoms(self, column: int, code: int) -> Atoms:
        return self._by_class[code]

    def binned_outcomes(self) -> tuple[Atoms, Atoms]:
        """Scores of neighbours together: each bin has a score under each of many maps."""
        found = self.outcomes()
        steps = [-(-part.mean.size // _MOST_CALIBRATED) for part in found]
        if max(steps) == 1:
            return found
        edges = [part.mean[::step] for part, step in zip(found, steps, strict=True)]
        others, happened = (part.grouped(np.unique(np.concatenate(edges))) for part in found)
        return others, happened

    @cached_property
    def cells(self) -> Cells:
        shares = self.calibration.shares
        under = shares > 0.0
        true = np.nonzero(under)[0]
        amounts = {
            name: (table[:, np.newaxis] * shares)[under]
            for name, table in self.table.amounts.items()
        }
        predicted, confidence = (
            np.broadcast_to(part, shares.shape)[under]
            for part in (self._predicted, self._confidence)
        )
        return cells_of_cases(2, true, predicted, confidence, amounts)

    def proper_scores(self) -> tuple[float, float]:
        p_true = np.concatenate(
            [
                atoms.mean if code == self.positive else 1.0 - atoms.mean
                for code, atoms in enumerate(self._by_class)
            ]
        )
        weights = np.concatenate([atoms.weight for atoms in self._by_class])
        return proper_scores(p_true, (1.0 - p_true) ** 2, weights)

    def confident_sum(self) -> float:
        made = self.predictions()
        above = made.mean > self.confident
        return float(made.weight[above] @ made.mean[above])
