"""Every model in each group of cases: all figures, and what the common policy does there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Self

import numpy as np

from .._typing import Floats, Indices, Integers
from ..figures.intervals import share_interval, simultaneous
from ..figures.spread import MoveSums, Population
from ..measured import Measured
from ..scores.answer_state import AnswerState
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from .group_policies import CaseCost, DecisionSums, GroupDecisions, with_clusters
from .model_figures import Settings, measured_figures
from .moves import moves_of_several, moves_of_two
from .parts import GroupFigures, GroupPolicy, ModelReport
from .rereading import BlockReader, CaseRows, PartReader, Reader, Rereading, read_again
from .sum_views import BinView
from .views import DataView, View, levelled

if TYPE_CHECKING:
    from .cost_reading import Decided

#: There may be many groups: bounds of their tails come from fewer atoms than those of all cases.
_TAIL_BINS = 512
#: Cases that are split by group at once: few of each would take more time than many.
_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class _Place:
    """A group: its column, its name, and its place among the groups of that column."""

    column: int
    title: str
    name: str
    place: int


class Groups:
    """Groups of the cases of a state.

    Parameters
    ----------
    state : ScoreState
    cases : Cases or None
        All cases, if the state holds them.
    settings : Settings
    clusters : ndarray of int, optional
        Cluster of each case, if the state holds them.
    decided : mapping of str to Decided
        Policies of the models, if there are costs.
    unanswered : callable, optional
        Gives the cases that a model declined to answer, which policies pass on.
    declined_clusters : ndarray of int, optional
        Cluster of each of these, if `clusters` are known.
    """

    def __init__(
        self,
        state: ScoreState,
        cases: Cases | None,
        settings: Settings,
        clusters: Integers | None,
        decided: Mapping[str, Decided],
        unanswered: Rereading | None = None,
        declined_clusters: Integers | None = None,
    ) -> None:
        self._state, self._cases, self._settings = state, cases, settings
        self._unanswered, self._declined_clusters = unanswered, declined_clusters
        self._clusters, self._decided = clusters, decided
        self._places = [
            _Place(column, title, name, place)
            for column, (title, names) in enumerate(state.groups.items())
            for place, name in enumerate(names)
        ]
        n_groups = int(np.count_nonzero(state.group_support.any(axis=1)))
        self._confidence = simultaneous(settings.confidence, n_groups)
        #: By group, what a reading tells of several classes, and the views that it is told of.
        self._summed: dict[int, dict[str, View]] = {}
        self._readers: dict[int, Reader] = {}
        self._decisions: GroupDecisions | None = None
        #: Index of all cases, by model, once it is known.
        self._near: dict[str, float] = {}

    def _summed_views(self, group: int) -> dict[str, View]:
        sums, support = self._state.sums(), self._state.group_support[group]
        views = {
            name: BinView(part, sums.shape, support, group, self._near.get(name, 0.0))
            for name, part in sums.groups.items()
        }
        for view in views.values():
            view.tail_bins = _TAIL_BINS
        return levelled(views, self._settings.confident)

    @property
    def _measurable(self) -> list[int]:
        """Groups of two classes or more."""
        support = self._state.group_support
        found: list[int] = np.flatnonzero(np.count_nonzero(support, axis=1) > 1).tolist()
        return found

    def readers(self) -> list[BlockReader]:
        """What takes a reading of cases that are not held.

        That is intervals of several classes, and policies that bins do not tell.
        """
        state, found = self._state, list[BlockReader]()
        if self._cases is not None or not self._places:
            return found
        if not state.is_binary:
            self._summed = {group: self._summed_views(group) for group in self._measurable}
            self._readers = {
                group: self._reader(views, group, intervals=True)
                for group, views in self._summed.items()
            }
            found.append(_ByGroup(self._places, self._readers))
        if self._decided and not self._bins_tell:
            self._decisions = GroupDecisions(state, self._decided)
            found.append(self._decisions)
        return found

    @property
    def _bins_tell(self) -> bool:
        """Whether sums in bins tell what policies do: of two classes whose cases cost the same."""
        return self._state.is_binary and not self._state.priced and not self._state.reviewed

    def _reader(self, views: Mapping[str, View], group: int, *, intervals: bool) -> Reader:
        return Reader(
            self._state,
            {name: view.influence for name, view in views.items()},
            self._population(group),
            figures={name: view.case_influences for name, view in views.items()},
            spreads=True,
            intervals=intervals,
        )

    def note(self) -> str:
        """A sentence on what is not known by group, and why; empty if all is."""
        if not self._decided or not self._places or not self._untold:
            return ""
        return (
            f"What policies do in each group is not told: {self._untold} it takes the cases once "
            "more, which a merged state does not hold."
        )

    @property
    def _untold(self) -> str:
        """Why policies are not told by group; empty if they are."""
        state = self._state
        declined = state.declined["number"] if isinstance(state, AnswerState) else 0.0
        if declined and self._unanswered is None:
            return "with declined cases"
        told = self._cases is not None or self._bins_tell or self._decisions is not None
        return "" if told else "with costs or reviewers by case"

    # Figures.

    def figures(self, models: Sequence[ModelReport]) -> Iterator[GroupFigures]:
        """Every model in every group; undefined in a group of one class."""
        state = self._state
        self._near = {model.name: model.raw.figures["fragility_index"].value for model in models}
        measured = {group: self._measured(group) for group in self._measurable}
        counted = state.group_support[:, state.support > 0]
        for model in models:
            policies = self._policies(model.name)
            for group, place in enumerate(self._places):
                support = state.group_support[group]
                present = np.flatnonzero(support)
                known = group in measured
                yield GroupFigures(
                    model.name,
                    place.title,
                    place.name,
                    tuple(support.tolist()),
                    self._base_rate(group),
                    measured[group][model.name] if known else {},
                    None if policies is None else policies(group),
                    bool(counted[group].min() < self._settings.min_cell),
                    "" if known else self._why_not(present),
                    _index_between(model.raw.pairs, present) if known else np.nan,
                    present.size < counted.shape[1],
                )

    def _why_not(self, present: Indices) -> str:
        if not present.size:
            answers = isinstance(self._state, AnswerState)
            return f"none of its cases has {'an answer' if answers else 'weight'}"
        return f"all of its cases are {self._state.labels.tolist()[present[0]]!r}"

    def _measured(self, group: int) -> dict[str, dict[str, Measured]]:
        """Figures of every model in one group."""
        views, moves = self._in_memory(group) if self._cases is not None else self._in_sums(group)
        return {
            name: measured_figures(
                view,
                view.index(self._confidence),
                view.levels()[1],
                moves[name],
                self._confidence,
            )
            for name, view in views.items()
        }

    def _in_sums(self, group: int) -> tuple[Mapping[str, View], Mapping[str, MoveSums]]:
        if group in self._readers:
            return self._summed[group], self._readers[group].own
        views, population = self._summed_views(group), self._population(group)
        of_classes = moves_of_two if self._state.is_binary else moves_of_several
        return views, {name: of_classes(view, population) for name, view in views.items()}

    def _in_memory(self, group: int) -> tuple[Mapping[str, View], Mapping[str, MoveSums]]:
        state, rows = self._state, self._rows(group)
        assert self._cases is not None
        cases, clusters = self._cases.take(rows), None
        if self._clusters is not None:
            clusters = np.unique(self._clusters[rows], return_inverse=True)[1]
        views = levelled(
            {name: DataView(state.labelled(name, cases), clusters) for name in state.models},
            self._settings.confident,
        )
        if state.is_binary and clusters is None:
            population = self._population(group)
            return views, {name: moves_of_two(view, population) for name, view in views.items()}
        reader = self._reader(views, group, intervals=False)
        read_again(lambda: [CaseRows(cases, np.arange(rows.size), clusters)], [reader])
        return views, reader.own

    def _rows(self, group: int) -> Indices:
        """Cases in memory that are of a group."""
        assert self._cases is not None
        assert self._cases.groups is not None
        place = self._places[group]
        return np.flatnonzero(self._cases.groups[:, place.column] == place.place)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """Sums of the weights and of their squares, by group and class."""
        state, shape = self._state, self._state.group_support.shape
        if not state.weighted:
            counts = state.group_support.astype(np.float64)
            return counts, counts
        found = np.zeros((2, *shape))
        if self._cases is None:
            bins = next(iter(state.sums().groups.values())).bins
            for place, name in enumerate(("weight", "squares")):
                found[place] = bins.table(name).sum(axis=1).reshape(shape)
        else:
            weights = self._cases.weights
            assert weights is not None
            for places in state.shape.group_places(self._cases):
                keys = places * shape[1] + self._cases.codes
                for place, amounts in enumerate((weights, weights**2)):
                    found[place] += np.bincount(keys, amounts, found[0].size).reshape(shape)
        return found[0], found[1]

    def _population(self, group: int) -> Population:
        weight, squares = (part[group] for part in self._weights)
        sizes = np.zeros(weight.size)
        np.divide(weight**2, squares, out=sizes, where=squares > 0.0)
        return Population(self._state.group_support[group], weight, sizes)

    def _base_rate(self, group: int) -> Measured | None:
        """Share of the positive class of two."""
        state, population = self._state, self._population(group)
        if not state.is_binary or not population.support.any():
            return None
        value = float(population.weight[state.positive] / population.weight.sum())
        n = population.size
        if self._clusters is not None:
            n = min(n, np.unique(self._clusters[self._rows(group)]).size)
        return Measured(value, share_interval(value, n, self._confidence))

    # Policies.

    def _policies(self, model: str) -> Callable[[int], GroupPolicy | None] | None:
        """What the policy of a model does in each group; None if that is not known.

        None of a group without cases of weight, answered or not.
        """
        decided = self._decided.get(model)
        if decided is None or not self._places or self._untold:
            return None
        state, dearest = self._state, 0.0
        if self._cases is None and self._decisions is None:
            bins = state.sums().groups[model].bins
            found = DecisionSums.of_bins(decided, bins, len(self._places))
        elif self._cases is None and self._decisions is not None:
            found, dearest = self._decisions.sums(model)
        else:
            assert self._cases is not None
            reader = GroupDecisions(state, {model: decided})
            reader.add(CaseRows(self._cases, np.arange(self._cases.size)))
            found, dearest = reader.sums(model)
        declined: list[Cases] = []
        if self._unanswered is not None:
            passed_on = GroupDecisions(state, {model: decided})
            for part in self._unanswered():
                passed_on.add(part)
                if self._clusters is not None:
                    declined.append(part.cases)
            more, dearest_declined = passed_on.sums(model)
            found, dearest = found.plus(more), max(dearest, dearest_declined)
        if self._clusters is not None and self._cases is not None:
            cases, clusters = joined([self._cases, *declined]), self._clusters
            if self._declined_clusters is not None:
                clusters = np.concatenate([clusters, self._declined_clusters])
            found = with_clusters(found, cases, decided.cases(cases).cost, clusters, state)
        known, case = found.sums[0] > 0.0, self._case_cost(found.some_alone, dearest)
        return lambda group: found.policy(group, self._confidence, case) if known[group] else None

    def _case_cost(self, some_alone: bool, dearest: float) -> CaseCost:
        """What a case may cost, where the dearest one that was seen cost so much."""
        state, costs = self._state, self._settings.costs
        assert costs is not None
        matrix = costs.matrix(state.labels.size)
        reviews: Floats = costs.of_reviews(matrix)
        if state.reviewed:  # each ends in a decision of its own
            reviews = costs.review_cost + matrix
        lowest, highest, most = float(reviews.min()), float(reviews.max()), float(reviews.max())
        if some_alone:
            lowest, most = min(lowest, float(matrix.min())), max(most, float(matrix.max()))
            highest = max(float(costs.of_reviews(matrix).max()), float(matrix.max()))
        return CaseCost(lowest, max(highest, dearest), inf if state.priced else most)


class _ByGroup(PartReader):
    """Hands the cases of each group to its reader."""

    def __init__(self, places: Sequence[_Place], readers: Mapping[int, Reader]) -> None:
        self._places, self._readers = places, readers
        self._held: list[CaseRows] = []
        #: By column of groups and place in it.
        self._by_place = {
            (place.column, place.place): readers[group]
            for group, place in enumerate(places)
            if group in readers
        }

    def add(self, found: CaseRows) -> None:
        """Add a block of cases; small ones are held until they are many."""
        self._held.append(found)
        if sum(part.rows.size for part in self._held) >= _AT_ONCE:
            self._hand_on()

    def _hand_on(self) -> None:
        if not self._held:
            return
        found, self._held = CaseRows.joined(self._held), []
        assert found.cases.groups is not None
        for column, places in enumerate(found.cases.groups.T):
            order = np.argsort(places, kind="stable")
            own, starts = np.unique(places[order], return_index=True)
            for place, rows in zip(own.tolist(), np.split(order, starts[1:]), strict=True):
                reader = self._by_place.get((column, place))
                if reader is not None:
                    reader.add(found.take(rows))

    def anew(self) -> Self:
        """A copy that knows the same."""
        return type(self)(self._places, {k: reader.anew() for k, reader in self._readers.items()})

    def told(self) -> Self:
        """What the readers were told."""
        self._hand_on()
        return type(self)([], {k: reader.told() for k, reader in self._readers.items()})

    def merge(self, other: _ByGroup) -> None:
        """Add what another one was told of other cases."""
        for part in (self, other):
            part._hand_on()
        for group, reader in self._readers.items():
            reader.merge(other._readers[group])

    def finish(self) -> None:
        """Hand on what was read."""
        self._hand_on()
        for reader in self._readers.values():
            reader.finish()


def _index_between(pairs: Floats, classes: Indices) -> float:
    """Mean index of the pairs of some classes: a group may lack the others."""
    of_these = pairs[np.ix_(classes, classes)]
    return float(np.mean(of_these[~np.isnan(of_these)]))
