"""How the cases move the figures of a model, where they need not be read once more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import Floats
from ..figures.case_influence import RowInfluences, proper_influence
from ..figures.influence import case_influences
from ..figures.spread import MOVED, MOVED_BY_ANSWERS, MoveSums, Population
from ..scores.atoms import Atoms
from ..scores.tally import Task
from .views import View

#: Figures of several classes that sums over cases tell: by confidence, or by one score of each.
OF_SEVERAL = ("log_loss", "calibration_error", "confident_error_rate", "aurc")


def moves_of_two(view: View, population: Population) -> MoveSums:
    """How the cases of two classes move the figures, by what is known of their scores."""
    influence = view.influence

    def units() -> Iterator[tuple[Floats, Floats]]:
        for code, (scores, weight, squares) in enumerate(view.units()):
            columns, typical = scores[np.newaxis], squares / weight
            tilted = list(influence.tilted(code, columns))
            shares = typical / population.weight[code]
            moves = [
                case_influences(tilted, shares, left_out=False),
                view.unit_influences(code, columns) * typical,
            ]
            yield np.concatenate(moves), weight / typical

    return MoveSums.of_units(units(), population, influence.known.largest, moved_figures(view.task))


def moved_figures(task: Task) -> tuple[str, ...]:
    """Figures of a report whose influence by case is known."""
    return MOVED_BY_ANSWERS if task.answers else MOVED


def moves_of_several(view: View, population: Population) -> MoveSums:
    """The same for several classes, of the figures `OF_SEVERAL`; all others are unknown."""
    figures = view.case_influences
    assert isinstance(figures, RowInfluences)
    unknown = np.full(len(MOVED), np.nan)
    unknown[[MOVED.index(name) for name in OF_SEVERAL]] = 0.0

    def unit(names: tuple[str, ...], values: Floats, atoms: Atoms) -> tuple[Floats, Floats]:
        moves = np.repeat(unknown[:, np.newaxis], atoms.weight.size, axis=1)
        moves[[MOVED.index(name) for name in names]] = values * (atoms.squares / atoms.weight)
        return moves, atoms.weight**2 / atoms.squares

    parts = []
    for code in np.flatnonzero(population.support).tolist():
        atoms = view.atoms(code, code)
        losses = proper_influence(atoms.mean, atoms.mean)[:1] - figures.means[0]
        parts.append(unit(("log_loss",), losses / figures.total, atoms))
    for (_, table), atoms in zip(figures.outcomes, view.outcomes(), strict=True):
        parts.append(unit(OF_SEVERAL[1:], table, atoms))
    moves, counts = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    # These are figures of all cases: it does not matter which class they are counted in.
    return MoveSums.of_units([(moves, counts)], population, view.known.largest)
