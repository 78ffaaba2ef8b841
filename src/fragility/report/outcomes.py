"""Reports on answers that are right or wrong: a state and a builder for each model, one report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from .._labels import listed
from .._typing import Floats, Integers
from ..calibration.choice import CalibrationChoice, Candidates
from ..calibration.cross_fitting import CannotCalibrateError
from ..figures.spread import Population
from ..scores import HOLD
from ..scores.answer_state import AnswerState
from ..scores.state import ScoreState
from ..scores.tally import Task
from .answer_reading import (
    AnsweredModel,
    AnswerPairs,
    OutcomeBatch,
    OutcomeReading,
    blocks,
    costs_of,
)
from .calibrating import chosen_for
from .comparing import compared, cost_tests
from .cost_reading import CostReader
from .group_comparing import group_comparisons
from .group_sums import GroupSums
from .groups import Groups
from .inputs import check_confident, checked_settings
from .measuring import Builder
from .mistakes import SharedMistakes, made_answers
from .model_figures import Settings
from .parts import AnswerCounts, Comparison, GroupComparison, GroupFigures, ModelReport
from .provenance import Provenance
from .report import Report
from .rereading import CaseNames, CaseRows, Rereading
from .views import View


def report_on_outcomes(
    read: OutcomeReading,
    models: Sequence[str],
    settings: Settings,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    weighted: bool = False,
    clustered: bool = False,
    name_cases: CaseNames | None = None,
    hold: float = HOLD,
) -> Report:
    """Report on the answers of some models to the same cases, which come in batches.

    Parameters
    ----------
    read : callable
        Gives the batches, `OutcomeBatch`; the same ones whenever it is called. It is called once,
        and up to three times for each model if there are more cases than may be held.
    models : sequence of str
        Names of the models: the keys of the answers of every batch.
    settings : Settings
        Costs with an `error_cost` of None mean that batches have costs by case. A prevalence is
        that of right answers.
    groups : mapping of str to sequence of str, optional
        Names of the groups in each column of groups; batches hold their places.
    weighted, clustered : bool
        Whether batches have weights, and clusters.
    name_cases : callable, optional
        Names of the cases of some rows, for the lists of worst cases; without it there are none.
    hold : float, default=2**20
        Answers of all models together that may be held in memory. More are measured from exact sums
        over them, in constant memory.

    Returns
    -------
    Report
    """
    check_confident(settings.confident, Task(2, answers=True))  # before the long work
    each = hold / len(models)
    states = [AnswerState(name, groups or {}, weighted, each) for name in models]
    kept: list[OutcomeBatch] = []
    for given in read():
        batch = given.carrying()
        for state in states:
            own = batch.answers[state.model]
            state.add_answers(own, batch.weights, batch.groups, batch.costs)
        held = all(state.complete for state in states)
        kept = [*kept, batch] if held else []
    if not all(state.complete for state in states):
        return _joined(
            states, settings, lambda: (part.carrying() for part in read()), name_cases, clustered
        )
    return _joined(states, settings, lambda: kept, name_cases, clustered)


def report_on_states(given: Sequence[ScoreState], settings: Settings) -> Report:
    """Report on the answers of some models, each in a state of its own."""
    states = [state for state in given if isinstance(state, AnswerState)]
    if not states or len(states) < len(given):
        raise ValueError(
            f"state must be one ScoreState, or an AnswerState for each model; got {len(given)} "
            f"states, {len(states)} of answers."
        )
    numbers = {state.model: int(state.support.sum() + state.declined["number"]) for state in states}
    if len(numbers) < len(states):
        raise ValueError(
            f"The states are of {listed(state.model for state in states)}: merge states of the "
            "same model first."
        )
    if len(set(numbers.values())) > 1:
        told = ", ".join(f"{name!r}: {n:,}" for name, n in numbers.items())
        raise ValueError(
            f"The models were asked different numbers of cases ({told}, declined ones included): "
            "make a report of each."
        )
    return _joined(states, settings, None, None, False)


class AnswerBuilder(Builder):
    """Measures the answers of one model, whose calibration map is chosen with those of others.

    Parameters
    ----------
    state : AnswerState
    settings : Settings
    reading : callable, optional
        Gives the batches of answers again.
    name_cases, clustered
        As in `Builder`.
    """

    def __init__(
        self,
        state: AnswerState,
        settings: Settings,
        reading: OutcomeReading | None,
        name_cases: CaseNames | None,
        clustered: bool,
    ) -> None:
        self.reading, self.model, self.declined = reading, state.model, state.declined
        #: The builders of all models, this one among them.
        self.together: Sequence[AnswerBuilder] = [self]
        reread = None if reading is None else self._reread(reading)
        super().__init__(state, settings, reread, None, name_cases, clustered=clustered)
        if reading is not None and state.declined["number"]:
            self.unanswered = self._read_declined

    def _reread(self, reading: OutcomeReading) -> Rereading:
        return lambda: (batch.of_model(self.model) for batch in reading())

    def _read_declined(self) -> Iterator[CaseRows]:
        """The cases without an answer, if they can be read again."""
        for batch in () if self.reading is None else self.reading():
            found = batch.of_model(self.model, declined=True)
            if found.rows.size:
                yield found

    @property
    def candidates(self) -> dict[str, Candidates]:
        """Calibration maps to choose from; none if the model cannot be calibrated."""
        try:
            return {name: fits.candidates for name, fits in self.fits_of_two.items()}
        except CannotCalibrateError:
            return {}

    def _chosen(self, candidates: Mapping[str, Candidates]) -> dict[str, CalibrationChoice]:
        every = {name: part for own in self.together for name, part in own.candidates.items()}
        return {self.model: chosen_for(every)[self.model]}

    @cached_property
    def declined_clusters(self) -> tuple[Floats, Integers] | None:
        if self.clusters is None or self.reread is None:
            return None
        parts = [
            (found.cases.weighted().weights, found.clusters) for found in self._read_declined()
        ]
        if not parts:
            return None
        weights, named = (np.concatenate(part) for part in zip(*parts, strict=True))
        # Clusters of answers are numbered from 0, then come those without any answer.
        answered = [found.clusters for found in self.reread() if found.clusters is not None]
        known = np.unique(np.concatenate(answered))
        others = np.setdiff1d(named, known)
        order = np.concatenate([known, others])
        ranks = np.argsort(order, kind="stable")
        return weights, ranks[np.searchsorted(order, named, sorter=ranks)]

    def _read(self, groups: Groups) -> None:
        super()._read(groups)
        if self.cost_reader is None:
            return
        for cases, rows, clusters in self._read_declined():  # they cost a review
            costs = {name: own.cases(cases).cost for name, own in self.decided.items()}
            self.cost_reader.add_costs(costs, cases.weights, rows, clusters)


def _joined(
    states: Sequence[AnswerState],
    settings: Settings,
    reading: OutcomeReading | None,
    name_cases: CaseNames | None,
    clustered: bool,
) -> Report:
    """One report on the answers of every model."""
    for state in states:
        state.check_both()
    builders = [
        AnswerBuilder(state, checked_settings(settings, state), reading, name_cases, clustered)
        for state in states
    ]
    for builder in builders:
        builder.together = builders
    built = {builder.model: builder.build() for builder in builders}
    models = [
        replace(part, answers=_answers(builder))
        for builder in builders
        for part in built[builder.model].models
    ]
    notes = _notes({name: made.notes for name, made in built.items()})
    comparisons: tuple[Comparison, ...] = ()
    in_groups: tuple[GroupComparison, ...] = ()
    by_group = tuple(part for made in built.values() for part in made.groups)
    first = builders[0].settings
    shared: SharedMistakes | None = None
    if len(states) > 1 and reading is not None:
        n_listed = 0 if name_cases is None else first.n_worst
        shared = SharedMistakes(states[0], first.confident, n_listed)
        pairs = JointReading(builders)
        pairs.read(reading, shared)
        comparisons = pairs.comparisons(models, settings.confidence)
        in_groups = pairs.by_group(by_group, settings.confidence)
    elif len(states) > 1:
        also = ", nor comparisons by group" if by_group else ""
        notes.append(
            f"There are no paired tests{also}, nor a list of what all models get wrong: states of "
            "answers do not tell which case of one model is which of another."
        )
    rows = [] if shared is None else [case.row for case in shared.cases]
    names = {} if name_cases is None or not rows else name_cases(sorted(rows))
    return Report(
        tuple(models),
        comparisons,
        by_group,
        () if shared is None else shared.named(names),
        None if shared is None else shared.n,
        tuple(states[0].labels.tolist()),
        (),
        states[0].labels.tolist()[1],
        first.costs,
        first.confidence,
        notes=tuple(notes),
        streamed=not all(state.complete for state in states),
        weighted=states[0].weighted,
        confident=first.confident,
        prevalence=first.prevalence,
        clustered=clustered,
        min_cell=first.min_cell,
        provenance=Provenance.of(first),
        group_comparisons=in_groups,
        mute=first.mute,
    )


def _answers(builder: AnswerBuilder) -> AnswerCounts:
    declined, (wrong, right) = builder.declined, builder.state.support.tolist()
    share = declined["weight"] / float(_everything(builder).weight[0])
    return AnswerCounts(right, wrong, int(declined["number"]), declined["weight"], share)


def _notes(by_model: Mapping[str, Sequence[str]]) -> list[str]:
    """Notes of all models; what does not hold for each of them is said with the name."""
    found = []
    for name, notes in by_model.items():
        for note in notes:
            common = all(note in others for others in by_model.values())
            found.append(note if common else f"{name}: {note}")
    return list(dict.fromkeys(found))


def _everything(builder: AnswerBuilder) -> Population:
    """All cases as one class, declined ones among them."""
    declined, own = builder.declined, builder.population
    weight = float(own.weight.sum()) + declined["weight"]
    squares = float((own.weight**2 / own.sizes).sum()) + declined["squares"]
    number = int(own.support.sum() + declined["number"])
    return Population(np.array([number]), np.array([weight]), np.array([weight**2 / squares]))


class JointReading:
    """What a reading of the answers of all models together tells: how every two compare.

    Parameters
    ----------
    builders : sequence of AnswerBuilder
        One for each model, after it has built its report.
    """

    def __init__(self, builders: Sequence[AnswerBuilder]) -> None:
        raw = {part.model: part.raw[part.model] for part in builders}
        #: Models as they are, and after calibration, if all can be calibrated.
        self._views: list[Mapping[str, View]] = [raw]
        if all(part.after is not None for part in builders):
            self._views.append({part.model: (part.after or {})[part.model] for part in builders})
        everything = _everything(builders[0])
        populations = {part.model: part.population for part in builders}
        self._pairs = [
            AnswerPairs(
                {name: AnsweredModel(view, populations[name]) for name, view in views.items()},
                everything,
            )
            for views in self._views
        ]
        self._decided = {name: own for part in builders for name, own in part.decided.items()}
        self._costs = CostReader(self._decided, paired=True) if self._decided else None
        # By group, if there are groups.
        self._state = builders[0].state
        declined = any(part.declined["number"] for part in builders)
        n_groups, models = len(self._state.group_support), list(raw)
        self._losses = [
            GroupSums(n_groups, models, some_declined=declined) for _ in self._views if n_groups
        ]
        self._group_costs: GroupSums | None = None
        if n_groups and self._decided:
            self._group_costs = GroupSums(n_groups, models, centred=False)

    @np.errstate(over="ignore", under="ignore")
    def read(self, reading: OutcomeReading, shared: SharedMistakes) -> None:
        """Read all cases, which `shared` reads, too."""
        for block in blocks(reading):
            made = made_answers(block.answers, shared.level)
            shared.add_made(made, block.rows, np.zeros(block.rows.size, np.uint8), block.groups)
            for pairs in self._pairs:
                pairs.add(block)
            paid: dict[str, Floats] = {}
            if self._costs is not None:
                paid = costs_of(block, self._decided)
                self._costs.add_costs(paid, block.weights, block.rows, block.clusters)
            if self._losses:
                self._add_by_group(block, paid)

    def _add_by_group(self, block: OutcomeBatch, paid: Mapping[str, Floats]) -> None:
        about = block.weights, block.clusters
        any_model = next(iter(block.answers))
        places = list(self._state.shape.group_places(block.cases(any_model)))
        held = {name: part.answered for name, part in block.answers.items()}
        for sums, views in zip(self._losses, self._views, strict=True):
            losses = {}
            for name, part in block.answers.items():
                confidence = np.where(held[name], part.confidence, 0.5)  # any will do
                losses[name] = views[name].case_losses(part.correct.astype(np.intp), confidence)
            sums.add(places, losses, *about, held)
        if self._group_costs is not None:
            self._group_costs.add(places, paid, *about)

    def comparisons(
        self, models: Sequence[ModelReport], confidence: float
    ) -> tuple[Comparison, ...]:
        """Paired tests of every two models, over all cases."""
        tests = {} if self._costs is None else cost_tests(self._costs, confidence)
        raw, *after = (found.pairs for found in self._pairs)
        return compared(models, raw, after[0] if after else {}, tests, confidence)

    def by_group(
        self, groups: Sequence[GroupFigures], confidence: float
    ) -> tuple[GroupComparison, ...]:
        """The same of log-loss and cost in every group."""
        return group_comparisons(groups, self._losses, self._group_costs, confidence)
