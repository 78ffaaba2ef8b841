"""The index of each model in each group of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Interval
from ..figures.index import BinSource, KnownIndex
from ..figures.influence import Population, ScoreInfluence, TableInfluence
from ..index.errors import RankingErrors
from ..index.fragility import measure
from ..measured import Measured
from ..scores.cases import Cases
from ..scores.state import ScoreState
from ..scores.sums import Sums
from .parts import GroupFigures, ModelReport
from .rereading import Reader


class Groups:
    """Groups of the cases of a state.

    Parameters
    ----------
    state : ScoreState
    sums : Sums or None
        Over all cases, if these are not held.
    cases : Cases or None
        All cases, if they are.
    confidence : float
        Of the intervals.
    """

    def __init__(
        self, state: ScoreState, sums: Sums | None, cases: Cases | None, confidence: float
    ) -> None:
        self._state, self._sums, self._cases = state, sums, cases
        self._confidence = confidence
        #: Column of groups and place in it, of each group.
        self._places = [
            (column, place)
            for column, names in enumerate(state.groups.values())
            for place in range(len(names))
        ]
        #: By model and group, where sums tell the index.
        self._known: dict[tuple[str, int], KnownIndex] = {}
        for name in state.models if sums is not None else ():
            bins = sums.models[name].groups if sums is not None else None
            for group, support in enumerate(state.group_support):
                if bins is not None and np.count_nonzero(support) > 1:
                    source = BinSource(bins, group * state.labels.size)
                    self._known[name, group] = KnownIndex(source, support, state.positive)

    def readers(self) -> Iterator[Reader]:
        """What intervals of several classes need to know of the cases of each group."""
        state, n_classes = self._state, self._state.labels.size
        for group, place in enumerate(self._places):
            influences: dict[str, ScoreInfluence | TableInfluence] = {
                name: ScoreInfluence(self._known[name, group], n_classes)
                for name in state.models
                if (name, group) in self._known
            }
            support = state.group_support[group]
            weight = support.astype(np.float64)
            bins = None if self._sums is None else self._sums.models[state.models[0]].groups
            if state.weighted and bins is not None:
                weight = bins.table("weight").sum(axis=1).reshape(-1, n_classes)[group]
            yield Reader(influences, Population(support, weight, weight), paired=False, group=place)

    def figures(self, models: Sequence[ModelReport]) -> Iterator[GroupFigures]:
        """The index of each model in each group; a group of one class has none."""
        state, names = self._state, self._state.group_names
        cautious = 1.0 - (1.0 - self._confidence) / max(len(names), 1)
        labels = state.labels.tolist()
        for model in models:
            for group, name in enumerate(names):
                support = state.group_support[group]
                n, present = int(support.sum()), np.flatnonzero(support)
                if present.size < 2:
                    reason = "none of its cases has weight"
                    if n:
                        reason = f"all of its cases are {labels[present[0]]!r}"
                    yield GroupFigures(model.name, name, n, None, nan, None, reason)
                    continue
                index, ratio, interval = self._index(model.name, group, cautious)
                yield GroupFigures(
                    model.name,
                    name,
                    n,
                    index,
                    ratio,
                    interval,
                    "",
                    _index_between(model.raw.pairs, present),
                    present.size < int(np.count_nonzero(state.support)),
                )

    def _index(
        self, model: str, group: int, cautious: float
    ) -> tuple[Measured, float, Interval | None]:
        """Index with interval, ratio, and the interval that allows for the number of groups."""
        if self._cases is None:
            known = self._known[model, group]
            figures = known.figures(self._confidence)
            return figures.index, figures.ratio.value, known.interval(cautious)
        assert self._cases.groups is not None
        column, place = self._places[group]
        part = self._cases.take(self._cases.groups[:, column] == place)
        found = measure(RankingErrors(self._state.labelled(model, part)), 0.0, "ovo", None)
        index = Measured(found.value, found.interval(self._confidence))
        return index, found.ratio, found.interval(cautious)


def _index_between(pairs: Floats, classes: NDArray[Any]) -> float:
    """Mean index of the pairs of some classes: a group may lack the others."""
    of_these = pairs[np.ix_(classes, classes)]
    return float(np.mean(of_these[~np.isnan(of_these)]))
