"""Answers of several models to the same cases: batches of them, and what a joint reading tells.

Which answers are right differs by model, so every model has a state and figures of its own. The
cases are the same: a paired test adds up, case by case, the difference of the moves of two models'
figures. A case that a model declined does not move its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers
from ..figures.spread import MOVED_BY_ANSWERS, MoveSums, Population
from ..scores.answer_state import answered_cases
from ..scores.answers import Answers
from ..scores.cases import Cases
from .blocks import even_blocks, joined_arrays
from .cost_reading import Decided
from .rereading import CaseRows, figure_moves
from .views import View

#: Score that stands for none, of a case that was declined.
_NO_SCORE = -1.0


class OutcomeBatch(NamedTuple):
    """Some cases, with the answers of every model.

    Attributes
    ----------
    answers : mapping of str to Answers
        By model, all of the same cases: see `fragility.scores.answers.check_answers`.
    rows : ndarray of int of shape (n,)
        Row of each case in the data of the user.
    weights : ndarray of shape (n,), optional
    groups : ndarray of int of shape (n, n_columns), optional
        Place of each case's group, by column of groups.
    costs : ndarray of shape (n,), optional
        What a wrong answer to each case costs.
    clusters : ndarray of int of shape (n,), optional
        Number of each case's cluster, from 0.
    """

    answers: Mapping[str, Answers]
    rows: Integers
    weights: Floats | None = None
    groups: NDArray[Any] | None = None
    costs: Floats | None = None
    clusters: Integers | None = None

    def take(self, rows: NDArray[Any] | slice) -> OutcomeBatch:
        """Some of the cases."""
        return OutcomeBatch(
            {name: part.take(rows) for name, part in self.answers.items()},
            self.rows[rows],
            *(None if part is None else part[rows] for part in self[2:]),  # type: ignore[arg-type]
        )

    @staticmethod
    def joined(parts: list[OutcomeBatch]) -> OutcomeBatch:
        """Parts that follow each other as one."""
        answers = {
            name: Answers(
                *(joined_arrays(part.answers[name][place] for part in parts) for place in range(3))
            )
            for name in parts[0].answers
        }
        rest = (joined_arrays(part[place] for part in parts) for place in range(1, 6))
        return OutcomeBatch(answers, *rest)

    def carrying(self) -> OutcomeBatch:
        """The cases that have weight."""
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))

    def cases(self, model: str) -> Cases:
        """All cases as those of one model; declined ones are of no score, in the second class."""
        found = self.answers[model]
        if found.declined is not None:
            confidence = np.where(found.declined, _NO_SCORE, found.confidence)
            found = Answers(found.correct | found.declined, confidence)
        return answered_cases(found, model, self.weights, self.groups, self.costs)

    def of_model(self, model: str, *, declined: bool = False) -> CaseRows:
        """The cases that a model answered, or those that it declined."""
        own, found = self.answers[model], CaseRows(self.cases(model), self.rows, self.clusters)
        if own.declined is None and not declined:
            return found
        return found.take(np.flatnonzero(own.answered != declined))


#: Gives the same batches whenever it is called.
OutcomeReading = Callable[[], Iterable[OutcomeBatch]]


def blocks(reading: OutcomeReading) -> Iterator[OutcomeBatch]:
    """All cases in blocks."""
    return even_blocks(reading(), OutcomeBatch.joined)


class AnsweredModel(NamedTuple):
    """What a joint reading needs to know of a model: its view, and its answers by class."""

    view: View
    population: Population


class AnswerPairs:
    """Sums of the differences of every two models' moves, over all cases.

    Parameters
    ----------
    models : mapping of str to AnsweredModel
    everything : Population
        All cases as one class.
    """

    def __init__(self, models: Mapping[str, AnsweredModel], everything: Population) -> None:
        self._models = models
        scales = {name: part.view.influence.known.largest for name, part in models.items()}
        self.pairs = {
            (a, b): MoveSums(everything, max(scales[a], scales[b]), MOVED_BY_ANSWERS)
            for a, b in combinations(models, 2)
        }

    def add(self, block: OutcomeBatch) -> None:
        """Add a block of cases."""
        weights = np.ones(block.rows.size) if block.weights is None else block.weights
        moves = {
            name: self._moves(part, block.answers[name], weights)
            for name, part in self._models.items()
        }
        for (a, b), sums in self.pairs.items():
            sums.add(0, moves[a] - moves[b], weights, block.clusters)

    @staticmethod
    def _moves(model: AnsweredModel, answers: Answers, weights: Floats) -> Floats:
        """How each case moves the figures of a model."""
        found = np.zeros((len(MOVED_BY_ANSWERS), weights.size))
        for code in range(2):
            own = np.flatnonzero(answers.answered & (answers.correct == bool(code)))
            if not own.size:
                continue
            columns, weight = answers.confidence[own][np.newaxis], weights[own]
            tilted = list(model.view.influence.tilted(code, columns))
            figures = model.view.case_influences.values(code, columns) * weight
            shares = weight / model.population.weight[code]
            found[:, own] = figure_moves(tilted, shares, figures, left_out=True)
        return found


def costs_of(block: OutcomeBatch, decided: Mapping[str, Decided]) -> dict[str, Floats]:
    """What every case costs at the policy of each model; declined ones are reviewed."""
    return {model: own.cases(block.cases(model)).cost for model, own in decided.items()}
