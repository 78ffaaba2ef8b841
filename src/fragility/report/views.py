"""What figures are computed from: cases in memory, sums over cases, or calibrated bins.

Each view answers the same questions; figures do not know which one they ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..calibration_table import ScoreTable, TableCalibration
from ..deferral.costs import Costs
from ..deferral.cross_fitting import SPLITS, FoldCells, dealt_cells, priced_sums
from ..figures.confidence import (
    PredictionAtoms,
    outcome_atoms,
    predictions,
    predictions_by_outcome,
    predictions_of_two,
    score_atoms,
)
from ..figures.index import AtomSource, BinSource, IndexFigures, KnownIndex
from ..index.errors import RankingErrors
from ..index.fragility import Fragility, measure
from ..measured import CONFIDENT, Measured
from ..scores.atoms import Atoms
from ..scores.cases import case_amounts
from ..scores.sums import ModelSums, Shape
from ..scores.tally import (
    Cells,
    cells_of_cases,
    most_probable,
    threshold_grid,
)

_EPS = float(np.finfo(np.float64).eps)
#: Folds of cases that choose a threshold and pay for it.
_FOLDS = 5


class View(Protocol):
    """One model's scores of some cases."""

    n_classes: int
    positive: int
    support: Integers
    #: Whether decisions are counted in whole numbers.
    whole: bool

    def atoms(self, column: int, code: int) -> Atoms:
        """Scores of a class in a column: two classes have one."""

    def outcomes(self) -> tuple[Atoms, Atoms]:
        """Probabilities of what did not happen, and of what did.

        Of two classes the positive one happens or not, of several the predicted one.
        """

    def predictions(self) -> PredictionAtoms:
        """Predictions by confidence."""

    @property
    def cells(self) -> Cells:
        """Cases by true class, predicted class and confidence."""

    def folds(self, costs: Costs, seed: int) -> Iterator[FoldCells]:
        """Cells dealt to folds, in several ways."""

    @property
    def proper_scores(self) -> tuple[float, float]:
        """Log-loss (as scikit-learn's, finite at 0) and Brier score."""

    @property
    def sure(self) -> float:
        """Weighted sum of the confidences above 90 %."""

    def index(self, confidence: float) -> IndexFigures:
        """The index and what comes with it."""


class DataView:
    """Cases in memory: every figure is exact."""

    def __init__(self, data: LabelledScores, costs: Floats | None = None) -> None:
        self.data, self._costs = data, costs
        self.n_classes, self.positive, self.support = data.labels.size, data.positive, data.support
        self.whole = data.weights is None
        self._made = predictions(data)

    @cached_property
    def errors(self) -> RankingErrors:
        return RankingErrors(self.data)

    @cached_property
    def found(self) -> Fragility:
        """The measured index."""
        return measure(self.errors, 0.0, "ovo", None)

    @cached_property
    def _by_class(self) -> list[Atoms]:
        return score_atoms(self.data)

    def atoms(self, column: int, code: int) -> Atoms:
        if self.n_classes == 2:
            return self._by_class[code]
        rows = self.data.codes == code
        weights = None if self.data.weights is None else self.data.weights[rows]
        return Atoms.of(self.data.scores[rows, column], weights)

    def outcomes(self) -> tuple[Atoms, Atoms]:
        if self.n_classes == 2:
            return self._by_class[1 - self.positive], self._by_class[self.positive]
        return outcome_atoms(self._made)

    def predictions(self) -> PredictionAtoms:
        if self.n_classes == 2:
            return predictions_of_two(self._by_class, self.positive)
        return predictions_by_outcome(*self.outcomes())

    @cached_property
    def cells(self) -> Cells:
        made = self._made
        amounts = case_amounts(made.wrong.size, self.data.weights, self._costs)
        return cells_of_cases(self.n_classes, made.true, made.predicted, made.confidence, amounts)

    def folds(self, costs: Costs, seed: int) -> Iterator[FoldCells]:
        return _dealt(self.cells, costs, seed)

    @property
    def proper_scores(self) -> tuple[float, float]:
        data = self.data
        if data.is_binary:
            happened = data.codes == data.positive
            positive = data.scores.astype(np.float64)
            squares = (positive - happened) ** 2
            own = np.where(happened, positive, 1.0 - positive)
        else:
            own = data.scores[np.arange(data.codes.size), data.codes].astype(np.float64)
            squares = np.einsum("ij,ij->i", data.scores, data.scores, dtype=np.float64)
            squares += 1.0 - 2.0 * own
        losses = -np.log(np.clip(own, _EPS, 1.0))
        weights = self._made.weights_or_ones
        return float(np.average(losses, weights=weights)), float(
            np.average(squares, weights=weights)
        )

    @property
    def sure(self) -> float:
        above = self._made.confidence > CONFIDENT
        weights = np.ones(above.size) if self.data.weights is None else self.data.weights
        return float(weights[above] @ self._made.confidence[above])

    def index(self, confidence: float) -> IndexFigures:
        found = self.found
        value = Measured(found.value, found.interval(confidence))
        return IndexFigures(value, Measured(found.ratio), found.pairs, found.n_infinite_pairs)


class BinView:
    """Sums over cases that are not held: figures of ranks have bounds."""

    def __init__(self, sums: ModelSums, shape: Shape, support: Integers) -> None:
        self._sums, self._bins = sums, sums.bins
        self.n_classes, self.positive, self.support = shape.n_classes, shape.positive, support
        self.whole = not shape.weighted
        self.known = KnownIndex(BinSource(sums.bins), support, shape.positive)

    def atoms(self, column: int, code: int) -> Atoms:
        return self._bins.atoms(column, code)

    def outcomes(self) -> tuple[Atoms, Atoms]:
        if self.n_classes == 2:
            return self.atoms(0, 1 - self.positive), self.atoms(0, self.positive)
        assert self._sums.confidence is not None
        wrong, right = (self._sums.confidence.atoms(0, code) for code in range(2))
        return wrong, right

    def predictions(self) -> PredictionAtoms:
        if self.n_classes > 2:
            return predictions_by_outcome(*self.outcomes())
        atoms = [self._half_apart(self.atoms(0, code), code) for code in range(2)]
        return predictions_of_two(atoms, self.positive)

    def _half_apart(self, atoms: Atoms, code: int) -> Atoms:
        """Scores of exactly one half as an atom of their own, whose weight the cells tell.

        There the first class is predicted, but above it the second.
        """
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

    def folds(self, costs: Costs, seed: int) -> Iterator[FoldCells]:
        return _dealt(self.cells, costs, seed)

    @property
    def proper_scores(self) -> tuple[float, float]:
        bins, weight = self._bins, float(self.cells.weight.sum())
        if self.n_classes == 2:
            squares = bins.squared_distances(0, 1.0)[self.positive]
            squares += bins.squared_distances(0, 0.0)[1 - self.positive]
        else:
            columns = range(self.n_classes)
            squares = sum(
                (bins.squared_distances(c, 0.0).sum() for c in columns), start=np.float64(0.0)
            )
            for c in columns:  # of their own class, the distance to 1 instead of that to 0
                own = bins.squared_distances(c, 1.0)[c] - bins.squared_distances(c, 0.0)[c]
                squares += own
        return self._sums.log_loss / weight, float(squares) / weight

    @property
    def sure(self) -> float:
        return self._sums.confident

    def index(self, confidence: float) -> IndexFigures:
        return self.known.figures(confidence)


class CalibratedView:
    """Calibrated scores of two classes, each case by the value that it has in a table."""

    whole = False

    def __init__(
        self,
        table: ScoreTable,
        positive: int,
        support: Integers,
        calibration: TableCalibration,
    ) -> None:
        self.n_classes, self.positive, self.support = 2, positive, support
        self.table, self.calibration = table, calibration
        self._amounts = table.amounts
        self._predicted, self._confidence = (
            part.reshape(calibration.scores.shape)
            for part in most_probable(calibration.scores.ravel(), positive)
        )
        self.known = KnownIndex(AtomSource(self._by_class), support, positive)

    @cached_property
    def _by_class(self) -> list[Atoms]:
        found = []
        for shares, weight, squares in zip(
            self.calibration.shares,
            self._amounts["weight"],
            self._amounts["squares"],
            strict=True,
        ):
            under = shares > 0.0
            parts = ((part * shares)[under] for part in (weight, squares))
            found.append(Atoms.of(self.calibration.scores[under], *parts))
        return found

    def atoms(self, column: int, code: int) -> Atoms:
        return self._by_class[code]

    def outcomes(self) -> tuple[Atoms, Atoms]:
        return self._by_class[1 - self.positive], self._by_class[self.positive]

    def predictions(self) -> PredictionAtoms:
        return predictions_of_two(self._by_class, self.positive)

    @cached_property
    def cells(self) -> Cells:
        return self._cells(slice(None), self.calibration.shares)

    def _cells(self, maps: slice, shares: Floats) -> Cells:
        """Cells of the cases under some maps, of which these are the shares (2, n_maps, B)."""
        under = shares > 0.0
        true = np.nonzero(under)[0]
        amounts = {
            name: (table[:, np.newaxis] * shares)[under] for name, table in self._amounts.items()
        }
        predicted, confidence = (
            np.broadcast_to(part[maps], shares.shape)[under]
            for part in (self._predicted, self._confidence)
        )
        return cells_of_cases(2, true, predicted, confidence, amounts)

    def folds(self, costs: Costs, seed: int) -> Iterator[FoldCells]:
        """As the cases were dealt for calibration: the folds that chose a map choose, too."""
        found, grid = self.calibration, threshold_grid(2)
        n_folds = len(found.scores) // found.n_splits
        places = np.repeat(np.arange(grid.size), 4)
        for split in range(found.n_splits):
            units = np.zeros((n_folds, places.size), dtype=np.int64)
            sums = np.zeros((4, n_folds, places.size))
            for fold in range(n_folds):
                place = split * n_folds + fold
                maps = slice(place, place + 1)
                cells = self._cells(maps, found.n_splits * found.shares[:, maps])
                keys = cells.place * 4 + cells.true * 2 + cells.predicted
                units[fold, keys] = np.maximum(cells.units, 1)
                sums[:, fold, keys] = priced_sums(cells, costs)
            yield FoldCells(places, units, sums)

    @property
    def proper_scores(self) -> tuple[float, float]:
        losses = squares = weight = 0.0
        for code, atoms in enumerate(self._by_class):
            own = atoms.mean if code == self.positive else 1.0 - atoms.mean
            losses -= float(atoms.weight @ np.log(np.clip(own, _EPS, 1.0)))
            squares += float(atoms.weight @ (1.0 - own) ** 2)
            weight += float(atoms.weight.sum())
        return losses / weight, squares / weight

    @property
    def sure(self) -> float:
        made = self.predictions()
        above = made.mean > CONFIDENT
        return float(made.weight[above] @ made.mean[above])

    def index(self, confidence: float) -> IndexFigures:
        return self.known.figures(confidence)


def _dealt(cells: Cells, costs: Costs, seed: int) -> Iterator[FoldCells]:
    n_folds = min(_FOLDS, int(cells.units.sum()))
    for split in range(SPLITS):
        yield dealt_cells(cells, costs, n_folds, [split, seed])
