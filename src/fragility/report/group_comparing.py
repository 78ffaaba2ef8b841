"""Two models in each group of cases: paired tests of log-loss and of cost, corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan, nan

import numpy as np

from .._typing import Floats
from ..deferral.paired_costs import PairedCosts
from ..figures.intervals import simultaneous
from ..figures.spread import Spread
from ..index.inference import PairedDifference, cautious_test
from ..scores.state import ScoreState
from .comparing import holm
from .group_sums import GroupSums
from .parts import GroupComparison, GroupFigures
from .rereading import CaseRows, PartReader
from .views import View

#: Figures that are compared by group.
_FIGURES = ("log_loss", "calibrated_log_loss", "cost")


class LossReader(PartReader):
    """Reads cases, and sums what every model loses on those of each group.

    Parameters
    ----------
    state : ScoreState
    views : mapping of str to View
        The models, as they are or after calibration.
    """

    KNOWN = ("_state", "_views")

    def __init__(self, state: ScoreState, views: Mapping[str, View]) -> None:
        self._state, self._views = state.without_cases(), views
        pivots = None if state.complete or not state.groups else _mean_losses(state)
        self.sums = GroupSums(len(state.group_support), list(views), pivots=pivots)

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        cases = found.cases
        losses = {
            name: view.case_losses(cases.codes, cases.scores[name])
            for name, view in self._views.items()
        }
        places = self._state.shape.group_places(cases)
        self.sums.add(places, losses, cases.weights, found.clusters)

    def merge(self, other: LossReader) -> None:
        """Add what a reader of other cases was told."""
        self.sums.merge(other.sums)

    def finish(self) -> None:
        """Nothing is handed on."""


def _mean_losses(state: ScoreState) -> dict[str, Floats]:
    """Mean log-loss by group, over all models as they are: near that after calibration, too.

    The same for every model, so that models which lose the same differ by exactly nothing.
    """
    found = {}
    for name, own in state.sums().groups.items():
        groups = range(len(state.group_support))
        weights = [max(float(own.tally.cells(group).weight.sum()), 1e-300) for group in groups]
        losses = [own.log_loss(group) for group in groups]
        found[name] = np.array(losses) / np.array(weights)
    common: Floats = np.mean(list(found.values()), axis=0)
    return {name: common.copy() for name in found}


def group_comparisons(
    groups: Sequence[GroupFigures],
    losses: Sequence[GroupSums],
    costs: GroupSums | None,
    confidence: float,
) -> tuple[GroupComparison, ...]:
    """Every two models in every group.

    Parameters
    ----------
    groups : sequence of GroupFigures
        Every model in every group.
    losses : sequence of GroupSums
        Of log-losses as given, then of those after calibration; either may be absent.
    costs : GroupSums, optional
    confidence : float
        Of the intervals in all groups together.
    """
    if not losses:
        return ()
    raw, n_groups = losses[0], int(np.count_nonzero(losses[0].number))
    level = simultaneous(confidence, n_groups)
    pairs = list(combinations(raw.models, 2))
    tests = dict[str, list[PairedDifference | None] | list[PairedCosts | None]]()
    for name, sums in zip(_FIGURES, losses, strict=False):
        tests[name] = [test for pair in pairs for test in _of_losses(sums, *pair, level)]
    if costs is not None:
        tests["cost"] = [test for pair in pairs for test in _of_costs(costs, *pair, level)]
    adjusted = {
        name: holm([nan if test is None else test.p_value for test in found])
        for name, found in tests.items()
    }
    too_small = dict[tuple[str, str], bool]()  # in the order of places
    for part in groups:
        key = part.column, part.group
        too_small[key] = part.too_small or too_small.get(key, False)
    places = [
        (*pair, *key, int(n), few)
        for pair in pairs
        for (key, few), n in zip(too_small.items(), raw.number.tolist(), strict=True)
    ]
    found = []
    for place, about in enumerate(places):
        own = {name: tests[name][place] if name in tests else None for name in _FIGURES}
        p_values = {name: adjusted[name][place] for name, test in own.items() if test is not None}
        found.append(GroupComparison(*about, **own, adjusted=p_values))  # type: ignore[arg-type]
    return tuple(found)


def _of_losses(sums: GroupSums, a: str, b: str, confidence: float) -> list[PairedDifference | None]:
    """By group; None where a model has no case."""
    parts = (part.tolist() for part in (sums.means(a), sums.means(b), sums.farthest(a, b)))
    return [
        None
        if isnan(first) or isnan(second)
        else _cautious(first, second, spread, farthest, confidence)
        for first, second, farthest, spread in zip(*parts, sums.spreads(a, b), strict=True)
    ]


def _cautious(
    a: float, b: float, spread: Spread, farthest: float, confidence: float
) -> PairedDifference:
    """A test of the difference of two log-losses in a group, which may be small."""
    error = spread.error or nan  # 0 if no case tells the models apart
    found = cautious_test(a - b, error, spread.freedom, farthest, confidence)
    return PairedDifference(a, b, a - b, error, *found)


def _of_costs(sums: GroupSums, a: str, b: str, confidence: float) -> list[PairedCosts | None]:
    """By group; None where there is no case. Dear errors are rare: those of any group may come."""
    farthest = sums.farthest(a, b, of_all=True)
    parts = (part.tolist() for part in (sums.means(a), sums.means(b), farthest))
    return [
        part.compared(first, second, confidence, farthest=one) if part.weight > 0.0 else None
        for first, second, one, part in zip(*parts, sums.cost_sums(a, b), strict=True)
    ]
