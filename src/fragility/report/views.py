"""Views of a model's scores: cases in memory, sums over cases, or calibrated bins.

All views answer the same questions, so figures do not know which one they ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..figures.case_influence import (
    CaseInfluences,
    RowInfluences,
    ScoreInfluences,
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
from ..figures.index import CaseSource, IndexFigures, KnownIndex
from ..figures.influence import ScoreInfluence, TableInfluence
from ..figures.proper import log_losses, proper_scores
from ..figures.rank import Levels, auc
from ..figures.reliability import cases_alike
from ..figures.tails import MOST_BINS, TailBounds, merged, tail_bounds
from ..index.errors import Pair, RankingErrors, class_pairs
from ..index.fragility import Fragility, measure
from ..measured import CONFIDENT, CVAR_LEVEL, LEAST_PROBABILITY, Measured
from ..scores.atoms import Atoms
from ..scores.cases import case_amounts
from ..scores.sums import binned_scores
from ..scores.tally import Cells, Task, cells_of_cases

#: Scores of several classes, or under many maps, in more atoms than these are merged for
#: influences: in bins of this power of one half in the middle, and narrower towards 0 and 1.
MOST_ATOMS, INFLUENCE_BINS = 1 << 13, 10


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
    task : Task
        What the model was asked.
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
    #: Atoms of a class, at most, that bounds of buffered AUC and CVaR come from.
    tail_bins: int = MOST_BINS

    def __init__(self, task: Task, support: Integers, *, whole: bool) -> None:
        self.task, self.support, self.whole = task, support, whole
        self.n_classes, self.positive = task.n_classes, task.positive

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
        return predictions_of_two([self._halved_atoms(code) for code in range(2)], self.task)

    def levels(self) -> tuple[PredictionAtoms, Levels]:
        """The same, and the levels of confidence that they tell apart."""
        made = self.predictions()
        return made, Levels.of(made)

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

    def case_losses(self, codes: Integers, scores: Floats) -> Floats:
        """Log-loss of cases by class and score: `proper_scores` has their mean."""
        return log_losses(_of_true_class(codes, scores, self.positive))

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
            tails = tail_bounds(*groups, CVAR_LEVEL, len(pairs), self.tail_bins)
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
        atoms, made, levels = self._influential()
        tails, n_cases = self.ranked[0].tails, int(self.support.sum())
        return score_influences(
            atoms,
            made,
            levels,
            self.positive,
            tails,
            self.confident,
            n_cases,
            answers=self.task.answers,
        )

    def _influential(self) -> tuple[list[Atoms], PredictionAtoms, Levels]:
        """By class of two, atoms that lie on one side of one half, and their predictions."""
        return [self._halved_atoms(code) for code in range(2)], *self.levels()

    def _of_rows(self) -> RowInfluences:
        tables: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        worst = np.zeros((self.n_classes, 3))
        share = 1.0 / len(self.ranked)
        for pair, _, tails in self.ranked:
            groups = [merged(part, MOST_ATOMS) for part in self._groups(pair)]
            found = pair_influence(groups[0], groups[1], tails)
            codes = pair.negatives[0], pair.positive
            for code, atoms, table, end in zip(codes, groups, found[:2], found.worst, strict=True):
                key = code, pair.positive
                before = tables[key][1] if key in tables else 0.0
                tables[key] = atoms.low, before + share * table
                worst[code] += share * end
        wrong, right = self.outcomes()
        outcomes, calibration = outcome_influences(
            wrong, right, *self.levels(), self.confident, int(self.support.sum())
        )
        means, total = np.array(self.proper_scores()), float(self.cells.weight.sum())
        least = min(self.atoms(c, c).mean[0] for c in np.flatnonzero(self.support).tolist())
        largest = -float(np.log(max(least, LEAST_PROBABILITY)))
        return RowInfluences(tables, outcomes, means, total, worst, calibration, largest)

    def unit_influences(self, code: int, columns: Floats) -> Floats:
        """Influences of the `units` of a class of two, whose scores are `columns`."""
        found = self.case_influences
        assert isinstance(found, ScoreInfluences)  # of the same atoms, which need not be looked up
        return found.tables[code]

    def units(self) -> Iterator[Units]:
        """By class of two, cases that figures do not tell apart."""
        for code in range(2):
            atoms = self._halved_atoms(code)
            yield Units(atoms.mean, atoms.weight, atoms.squares)


def _of_true_class(codes: Integers, scores: Floats, positive: int) -> Floats:
    """Probability that each case gave to its class; of two classes scores are of the positive."""
    if scores.ndim == 1:
        p = scores.astype(np.float64)
        return np.where(codes == positive, p, 1.0 - p)
    found: Floats = scores[np.arange(codes.size), codes].astype(np.float64)
    return found


def levelled(views: Mapping[str, View], confident: float) -> dict[str, View]:
    """Views that know what confidence is asked for."""
    for view in views.values():
        view.confident = confident
    return dict(views)


class DataView(View):
    """Cases in memory: every figure is exact.

    With `clusters` the band of the reliability curve counts these.
    """

    def __init__(self, data: LabelledScores, clusters: Integers | None = None) -> None:
        super().__init__(Task.of(data), data.support, whole=data.weights is None)
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
        return cells_of_cases(self.task, made.true, made.predicted, made.confidence, amounts)

    def proper_scores(self) -> tuple[float, float]:
        data = self.data
        p_true = _of_true_class(data.codes, data.scores, data.positive)
        if data.is_binary:
            squares = (data.scores.astype(np.float64) - (data.codes == data.positive)) ** 2
        else:
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
