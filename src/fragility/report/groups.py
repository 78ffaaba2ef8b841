"""The index of each model in each group of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan

import numpy as np

from .._typing import Floats, Indices, Integers, Interval
from ..figures.index import BinSource, IndexFigures, KnownIndex
from ..figures.influence import ScoreInfluence
from ..figures.spread import Population
from ..index.errors import RankingErrors
from ..index.fragility import measure
from ..measured import Measured
from ..scores.cases import Cases
from ..scores.state import ScoreState
from .parts import GroupFigures, ModelReport
from .rereading import Reader


class Groups:
    """Groups of the cases of a state.

    Parameters
    ----------
    state : ScoreState
    cases : Cases or None
        All cases, if the state holds them.
    confidence : float
        Of the intervals.
    clusters : ndarray of int, optional
        Cluster of each case, if the state holds them.
    """

    def __init__(
        self,
        state: ScoreState,
        cases: Cases | None,
        confidence: float,
        clusters: Integers | None = None,
    ) -> None:
        self._state, self._cases, self._confidence = state, cases, confidence
        self._clusters = clusters
        #: Column of groups and place in it, of each group.
        self._places = [
            (column, place)
            for column, names in enumerate(state.groups.values())
            for place in range(len(names))
        ]
        #: By model and group, if the cases are not held.
        self._known: dict[tuple[str, int], KnownIndex] = {}
        for name in state.models if cases is None else ():
            bins = state.sums().models[name].groups
            for group, support in enumerate(state.group_support):
                if bins is not None and np.count_nonzero(support) > 1:
                    source = BinSource(bins, group * state.labels.size)
                    self._known[name, group] = KnownIndex(source, support, state.positive)

    def readers(self) -> Iterator[Reader]:
        """Readers for the intervals of several classes, one for each group."""
        state, n_classes = self._state, self._state.labels.size
        for group, place in enumerate(self._places):
            influences = {
                name: ScoreInfluence(self._known[name, group], n_classes)
                for name in state.models
                if (name, group) in self._known
            }
            support = state.group_support[group]
            weight = support.astype(np.float64)
            bins = state.sums().models[state.models[0]].groups
            if state.weighted and bins is not None:
                weight = bins.table("weight").sum(axis=1).reshape(-1, n_classes)[group]
            population = Population(support, weight, weight)
            if influences:
                yield Reader(state, influences, population, intervals=True, group=place)

    def figures(self, models: Sequence[ModelReport]) -> Iterator[GroupFigures]:
        """The index of each model in each group; undefined in a group of one class."""
        state, names = self._state, self._state.group_names
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
                found, cautious = self._index(model.name, group)
                yield GroupFigures(
                    model.name,
                    name,
                    n,
                    found.index,
                    found.ratio.value,
                    cautious,
                    "",
                    _index_between(model.raw.pairs, present),
                    present.size < int(np.count_nonzero(state.support)),
                )

    def _index(self, model: str, group: int) -> tuple[IndexFigures, Interval | None]:
        """The index, and its interval at a confidence that allows for the number of groups."""
        cautious = 1.0 - (1.0 - self._confidence) / len(self._places)
        if self._cases is None:
            known = self._known[model, group]
            return known.figures(self._confidence), known.interval(cautious)
        assert self._cases.groups is not None
        column, place = self._places[group]
        own = self._cases.groups[:, column] == place
        clusters = None if self._clusters is None else self._clusters[own]
        data = self._state.labelled(model, self._cases.take(own))
        found = measure(RankingErrors(data), 0.0, "ovo", None, clusters)
        index = Measured(found.value, found.interval(self._confidence))
        figures = IndexFigures(index, Measured(found.ratio), found.pairs, found.n_infinite_pairs)
        return figures, found.interval(cautious)


def _index_between(pairs: Floats, classes: Indices) -> float:
    """Mean index of the pairs of some classes: a group may lack the others."""
    of_these = pairs[np.ix_(classes, classes)]
    return float(np.mean(of_these[~np.isnan(of_these)]))
