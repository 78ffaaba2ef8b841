"""Views of a model whose cases are not held: sums over them, or their calibrated bins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._typing import Floats, Integers
from ..calibration.table import ScoreTable, TableCalibration
from ..figures.case_influence import TableInfluences
from ..figures.confidence import PredictionAtoms, predictions_of_two
from ..figures.index import AtomSource, BinSource, KnownIndex
from ..figures.influence import TableInfluence
from ..figures.proper import log_losses, proper_scores
from ..figures.rank import Levels
from ..scores.atoms import Atoms
from ..scores.layout import Tails
from ..scores.sums import ModelSums, Shape
from ..scores.tally import Cells, Task, cells_of_cases
from .views import INFLUENCE_BINS, MOST_ATOMS, Units, View

#: Calibrated scores of a class are taken together where there are more than this many.
_MOST_CALIBRATED = 4096


class BinView(View):
    """Sums over cases that are not held: figures of ranks have bounds.

    Of a `part` of them the index may be `near` to that of all.
    """

    def __init__(
        self, sums: ModelSums, shape: Shape, support: Integers, part: int = 0, near: float = 0.0
    ) -> None:
        super().__init__(shape.task, support, whole=not shape.weighted)
        self._sums, self._bins, self._part, self._near = sums, sums.bins, part, near
        self._first = part * shape.n_classes
        #: Of two classes, which are asked for again and again.
        self._made: dict[tuple[int, bool], Atoms] = {}

    @cached_property
    def known(self) -> KnownIndex:
        return KnownIndex(
            BinSource(self._bins, self._first, self._near), self.support, self.positive
        )

    def atoms(self, column: int, code: int) -> Atoms:
        if self.n_classes > 2:
            return self._bins.atoms(column, self._first + code)
        if (code, False) not in self._made:
            self._made[code, False] = self._bins.atoms(column, self._first + code)
        return self._made[code, False]

    def levels(self) -> tuple[PredictionAtoms, Levels]:
        return self._levels

    @cached_property
    def _levels(self) -> tuple[PredictionAtoms, Levels]:
        return super().levels()

    def _confidence_by_outcome(self) -> tuple[Atoms, Atoms]:
        found, first = self._sums.confidence, 2 * self._part
        assert found is not None
        return found.atoms(0, first), found.atoms(0, first + 1)

    def _halved_atoms(self, code: int) -> Atoms:
        if (code, True) not in self._made:
            self._made[code, True] = self._divided_atoms(code)
        return self._made[code, True]

    def _divided_atoms(self, code: int) -> Atoms:
        """Scores of exactly one half are an atom of their own, whose weight the cells tell.

        There the first class is predicted, but above it the second.
        """
        atoms = self.atoms(0, code)
        place = int(np.searchsorted(atoms.low, 0.5))
        if self.positive == 0 or place == atoms.low.size or atoms.low[place] != 0.5:
            return atoms
        if self.task.answers:  # nothing changes at one half
            return atoms
        cells = self.cells
        half = int(np.searchsorted(self.task.thresholds, 0.5))
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
        return self._sums.tally.cells(self._part)

    def proper_scores(self) -> tuple[float, float]:
        weight, squares = float(self.cells.weight.sum()), 0.0
        for own in [self.positive] if self.n_classes == 2 else range(self.n_classes):
            column = 0 if self.n_classes == 2 else own
            for code in range(self.n_classes):
                place = self._first + code
                squares += self._bins.squared_distance(column, place, 1.0 if code == own else 0.0)
        return self._sums.log_loss(self._part) / weight, squares / weight

    def confident_sum(self) -> float:
        place = int(np.searchsorted(self.task.thresholds, self.confident))
        return float(self._sums.confidences()[place + 1 :].sum())


class CalibratedView(View):
    """Calibrated scores of two classes, each case by the value that it has in a table."""

    def __init__(
        self,
        table: ScoreTable,
        positive: int,
        support: Integers,
        calibration: TableCalibration,
        *,
        answers: bool = False,
    ) -> None:
        super().__init__(Task(2, positive, answers), support, whole=False)
        self.table, self.calibration = table, calibration
        self._predicted, self._confidence = (
            part.reshape(calibration.scores.shape)
            for part in self.task.predictions(calibration.scores.ravel())
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

    def _influential(self) -> tuple[list[Atoms], PredictionAtoms, Levels]:
        """Scores of many maps in bins, which influences hardly feel."""
        found = [self._halved_atoms(code) for code in range(2)]
        if max(part.low.size for part in found) <= MOST_ATOMS:
            return super()._influential()
        sides = np.nextafter(0.5, 1.0), 1.0 - self.confident, self.confident
        edges = np.unique(np.append(Tails(INFLUENCE_BINS).edges, sides))
        found = [part.grouped(edges) for part in found]
        made = predictions_of_two(found, self.task)
        return found, made, Levels.of(made)

    @cached_property
    def case_influences(self) -> TableInfluences:
        found, (scores, shares, *_) = self._of_scores(), self.calibration
        tables = np.zeros((2, found.tables[0].shape[0], scores.shape[1]))
        for code in range(2):
            for map_scores, map_shares in zip(scores, shares[code], strict=True):
                tables[code] += map_shares * found.values(code, map_scores[np.newaxis])
        return TableInfluences(tables, self.table.places, *found[2:])

    def unit_influences(self, code: int, columns: Floats) -> Floats:
        return self.case_influences.values(code, columns)

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
        return cells_of_cases(self.task, true, predicted, confidence, amounts)

    def case_losses(self, codes: Integers, scores: Floats) -> Floats:
        """Cases of a class and place are under several maps: the mean of their losses."""
        found: Floats = self._losses[codes, self.table.places(scores.astype(np.float64))]
        return found

    @cached_property
    def _losses(self) -> Floats:
        """Log-loss by class and place."""
        scores, shares = self.calibration.scores, self.calibration.shares
        by_class = (scores if code == self.positive else 1.0 - scores for code in range(2))
        return np.stack(
            [(log_losses(p) * own).sum(axis=0) for p, own in zip(by_class, shares, strict=True)]
        )

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
