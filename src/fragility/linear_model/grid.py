"""Many penalties and targets on one part of the data, each search begun where another ended.

The searches on a first part of the data lead. On any other part the same ones end nearby, and how
far off those for the penalty and the target before ended says most of the rest: what is left is
often a single step, with the curvature that the lead knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats
from ..exceptions import TargetError
from ..programs.objective import Objective
from ..programs.satisficing import NO_HINT, Hint, Outcome, Solution
from ..programs.targets import Target
from ..solvers.erm import ReferenceModels
from ..solvers.newton import Curvature
from ..solvers.robust import fragility_of
from ..solvers.searching import Search, side_by_side
from .base import TrainingData
from .satisficing import SatisficingClassifier
from .training import Training

#: Row of the penalty and column of the target; column 0 is the lowest loss.
_Index = tuple[int, int]


class Cell(NamedTuple):
    """A model for one penalty and one target, in the user's units."""

    coef: Floats
    intercept: Floats
    target: Target
    fragility: float
    settled: bool


class _End(NamedTuple):
    """Where a search ended: parameters, and what its solver may begin with next to them."""

    parameters: Floats
    curvature: Any

    @property
    def size(self) -> float:
        return sqrt(float(self.parameters @ self.parameters)) or 1.0


@dataclass(frozen=True, eq=False)
class Trace:
    """Where the searches on one part of the data ended, in the coordinates of that part."""

    objective: Objective
    ends: dict[_Index, _End] = field(default_factory=dict)

    def seen_from(self, objective: Objective) -> Trace:
        """The same in the coordinates of another part of the data; nothing if it has not got them.

        Curvatures stay: columns scaled alike have about the same ones.
        """
        mine, ends = self.objective, {}
        for index, end in self.ends.items() if mine.n_outputs == objective.n_outputs else ():
            given = mine.in_user_units(mine.centred(end.parameters))
            known = objective.from_user_units(*given)
            if known is None or mine.rows.space is not None:
                return Trace(objective)
            ends[index] = _End(known, end.curvature)
        return Trace(objective, ends)

    def guess(self, index: _Index, lead: Trace) -> Hint | None:
        """Where a search will end, by the lead and the cells before; None if nothing is known.

        How far the two are apart, relative to the size of the lead's parameters, changes little
        from cell to cell, and so does the change.
        """
        end = lead.ends.get(index)
        if end is None:
            return None
        j, i = index
        before = (j, i - 1) if i else (j - 1, 0)
        if before not in self.ends or before not in lead.ends:
            return Hint(*end, alike=end.parameters)
        apart = self._apart(before, lead)
        if i and (j - 1, i) in self.ends and (j - 1, i) in lead.ends:
            apart = apart + self._apart((j - 1, i), lead) - self._apart((j - 1, i - 1), lead)
        curvature = end.curvature
        tables = curvature, self.ends[before].curvature, lead.ends[before].curvature
        if all(isinstance(table, np.ndarray) for table in tables):
            curvature = tables[0] + (tables[1] - tables[2])
        return Hint(end.parameters + end.size * apart, curvature, end.parameters)

    def _apart(self, index: _Index, lead: Trace) -> Floats:
        other = lead.ends[index]
        return (self.ends[index].parameters - other.parameters) / other.size


def solve_grid(
    model: SatisficingClassifier,
    data: TrainingData,
    alphas: Sequence[float],
    targets: Sequence[dict[str, Any]],
    lead: Trace | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Search[tuple[list[list[Cell | TargetError]], Trace]]:
    """Models for every penalty and target, or why there is none; and the trace of the searches.

    Best with the penalties from strong to weak and the targets from tight to loose: the next model
    is then near the last. `lead` is the trace of another part of the data; `tick` is called after
    each penalty.
    """
    given = {name: getattr(model, name) for name in ("target", "target_ratio", "slack")}
    every = [given | wanted for wanted in targets]
    trainings = []
    for alpha in alphas:
        model.alpha = alpha
        trainings.append(Training.of(model, data))
    objective = trainings[0].objective
    trace = Trace(objective)
    if not objective.is_smooth:
        rows = (_corner_row(training, every, tick) for training in trainings)
        return (yield from side_by_side(rows)), trace
    known = trace if lead is None else lead.seen_from(objective)
    leads = not known.ends
    before: ReferenceModels | None = None
    searches = []
    for j, training in enumerate(trainings):
        hint = None if leads else trace.guess((j, 0), known)
        before = yield from _references(training, before, hint)
        minimum = before.minimum
        exact = None if minimum.curvature is None else minimum.point.hessian
        trace.ends[j, 0] = _End(minimum.point.parameters, exact)
        searches.append(_row(training, before, every, j, trace, known, tick))
    if leads:  # nothing is known from one penalty to the next
        return (yield from side_by_side(searches)), trace
    cells = []
    for search in searches:
        cells.append((yield from search))
    return cells, trace


def _row(
    training: Training,
    references: ReferenceModels,
    targets: Sequence[dict[str, Any]],
    j: int,
    trace: Trace,
    known: Trace,
    tick: Callable[[], None],
) -> Search[list[Cell | TargetError]]:
    """Models of one penalty for all targets, each from the one before or from what is known."""
    minimum, leads = references.minimum, known is trace or not known.ends
    row: list[Cell | TargetError] = []
    last = NO_HINT
    for i, wanted in enumerate(targets, start=1):
        hint = last if leads else trace.guess((j, i), known) or last
        if i == 1 and hint.curvature is None:  # the lowest loss has one, and is as near
            hint = NO_HINT
        try:
            target, solution = yield from training.solve(references, hint=hint, **wanted)
        except TargetError as error:
            row.append(error)
            continue
        row.append(_cell(training, target, solution, minimum.converged))
        end = _End(solution.parameters, solution.curvature)
        if leads and isinstance(end.curvature, np.ndarray):
            # A search ends with a curvature that is a step old; later searches need a new one.
            end = end._replace(curvature=training.objective.at(end.parameters).hessian)
        trace.ends[j, i], last = end, Hint(*end, alike=end.parameters)
    tick()
    return row


def _corner_row(
    training: Training, targets: Sequence[dict[str, Any]], tick: Callable[[], None]
) -> Search[list[Cell | TargetError]]:
    """The same side by side, where losses have corners: no search begins where another ended."""
    references = yield from training.references(np.zeros(training.objective.size))

    def one(wanted: dict[str, Any]) -> Search[Cell | TargetError]:
        try:
            target, solution = yield from training.solve(references, **wanted)
        except TargetError as error:
            return error
        return _cell(training, target, solution, references.minimum.converged)

    cells = yield from side_by_side(one(wanted) for wanted in targets)
    tick()
    return cells


def _references(
    training: Training, before: ReferenceModels | None, hint: Hint | None
) -> Search[ReferenceModels]:
    """Reference models, from a hint or else from the models of the penalty before."""
    objective = training.objective
    start, curvature = np.zeros(objective.size), None
    if hint is not None and hint.start is not None:
        start = hint.start
        if hint.curvature is not None:
            curvature = Curvature(objective.fixed_gauge(hint.curvature))
    elif before is not None:
        point = before.minimum.point
        start, curvature = point.parameters, before.minimum.curvature
        if curvature is not None:
            curvature = curvature.ridged(objective.ridge - point.objective.ridge)
    return (yield from training.references(start, curvature, before and before.trivial))


def _cell(training: Training, target: Target, solution: Solution, certain: bool) -> Cell:
    fragility = 0.0 if solution.fragility is None else solution.fragility
    if solution.outcome is Outcome.NOTHING_LEARNED:
        fragility = training.ambiguity.unlearned
    elif solution.fragility is None and solution.outcome in (Outcome.SOLVED, Outcome.UNSETTLED):
        point = training.objective.at(solution.parameters)
        fragility = fragility_of(training.ambiguity, point, target.value)
    linear = training.in_user_units(solution)
    settled = certain and solution.outcome is not Outcome.UNSETTLED
    return Cell(linear.coef, linear.intercept, target, fragility, settled)
