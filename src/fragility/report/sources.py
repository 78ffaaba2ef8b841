"""A report on rows wherever they are: parts fill states where they lie, and states are merged.

What takes the cases once more (paired tests, costs of models) is read by readers that are sent to
the parts, and merged there, too. Only names, states and readers travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from .._labels import listed
from .._typing import Labels
from ..exceptions import TableError
from ..scores.cases import Cases, added_fingerprints, fingerprint
from ..scores.reviews import check_one_review
from ..scores.state import ScoreState
from ..scores.tally import Task
from ..sources.opening import open_source
from ..sources.source import Part, Source, first_seen
from ..sources.tables import BatchTable, PartRows, SourceTable
from ..tables import PredictionFile
from ..tables.group_columns import GroupSurvey
from ..tables.reading import Reading
from .files import case_rows, dropped_rows, with_columns
from .inputs import check_confident, check_prevalence, check_reviewed
from .model_figures import Settings
from .report import Report
from .rereading import BlockReader, CaseRows, Mapped, Rereading, add_blocks, one_part


@dataclass(frozen=True, kw_only=True)
class SourceColumns:
    """Columns of a source, and what they are for."""

    label: str
    scores: str | Sequence[str] | Mapping[str, str | Sequence[str]]
    groups: str | Sequence[str] | None = None
    cross_groups: bool = True
    labels: Labels = None
    pos_label: Any = None
    weight: str | None = None
    error_cost: str | None = None
    human: str | None = None
    reviewer_error: str | None = None
    drop_missing: bool = False

    def models(self) -> dict[str, tuple[str, ...]]:
        """Columns of each model; a bare column names its model."""
        given = [self.scores] if isinstance(self.scores, str) else self.scores
        if not isinstance(given, Mapping):
            given = list(given)
            twice = {name for name in given if given.count(name) > 1}
            if twice:
                raise ValueError(
                    f"scores names {listed(sorted(twice))} twice; each column is one model."
                )
            given = {name: name for name in given}
        return {
            str(name): (own,) if isinstance(own, str) else tuple(own) for name, own in given.items()
        }

    def file(self, source: Source) -> PredictionFile:
        """The source as a file of predictions, of which nothing is read yet."""
        groups = [self.groups] if isinstance(self.groups, str) else self.groups
        return PredictionFile(
            SourceTable(source),
            label=self.label,
            models=self.models(),
            classes=None if self.labels is None else [str(name) for name in self.labels],
            positive=None if self.pos_label is None else str(self.pos_label),
            weight=self.weight,
            groups=list(groups or ()),
            cross=self.cross_groups,
            error_cost=self.error_cost,
            human=self.human,
            reviewer_error=self.reviewer_error,
            drop_missing=self.drop_missing,
        )


def report_on_source(data: Any, columns: SourceColumns, settings: Settings, hold: float) -> Report:
    """Report on the rows of a source; `Report.from_source` describes the arguments."""
    check_one_review(columns.human, columns.reviewer_error, columns.error_cost)  # before all work
    if columns.human is not None or columns.reviewer_error is not None:
        check_reviewed(settings.costs)
    source = open_source(data)
    file = columns.file(source)
    _find_names(source, file)
    labels = file.labels if columns.labels is None else list(columns.labels)
    check_confident(settings.confident, Task(len(labels)))  # before the long work
    check_prevalence(settings.prevalence, len(labels))
    positive = None if file.positive is None else labels[file.classes.index(file.positive)]
    weighted = columns.weight is not None
    about = list(file.columns.models), file.groups, weighted, hold
    fill = _Fill(file, lambda: ScoreState(labels, *about, pos_label=positive))
    fill.empty()  # which refuses what cannot be
    filled = source.reduce(fill, _Filled.merge, file.columns.all)
    if filled is None:
        raise ValueError(f"There are no rows in {source.name}.")
    file.finish(filled.reading)
    state = filled.state
    reread: Rereading = SourceReading(source, file, filled.cases.seen)
    if state.complete and state.held:
        # In an order that does not depend on the parts, which some engines do not keep in order.
        cases = state.cases()
        state.held, reread = [cases], one_part(cases)
    made = Report.from_cases(state, settings, reread=reread)
    source_of = replace(made.provenance, source="rows of a source")
    made = replace(made, models=with_columns(made.models, file.score_columns), provenance=source_of)
    return made.with_notes(*dropped_rows(file))


# Names of classes and groups.


@dataclass
class _Names:
    """Names that some rows have."""

    file: PredictionFile
    survey: GroupSurvey
    rows: PartRows
    #: By label the first part that has it.
    parts: dict[Any, Part]

    def merge(self, other: _Names) -> _Names:
        self.parts = other.parts | self.parts
        self.file.merge_names(other.file)
        self.survey.merge(other.survey)
        return self


def _find_names(source: Source, file: PredictionFile) -> None:
    """Classes and groups, from a reading of their columns."""
    survey = file.new_survey()
    asked = file.asked_first(survey)
    parts: dict[Any, Part] = {}
    if asked:
        found = source.reduce(_Look(file), _Names.merge, asked)
        if found is None:
            raise ValueError(f"There are no rows in {source.name}.")
        file.merge_names(found.file)
        survey.merge(found.survey)
        parts = found.parts
        if file.has_orders:
            file.table.has_order = source.keeps_order(file.columns.label)
    try:
        file.take_names(survey)
    except TableError as error:
        if len(parts) < 3:  # two classes: where they are is no help
            raise
        parts = source.first_parts(file.columns.label) or parts
        raise TableError(f"{error}{first_seen('labels', parts)}") from error


@dataclass(frozen=True)
class _Look:
    """Looks through rows for names."""

    file: PredictionFile

    def __call__(self, names: _Names | None, batch: Any, part: Part) -> _Names:
        if names is None:
            names = _Names(deepcopy(self.file), self.file.new_survey(), PartRows(), {})
        table = names.file.table = names.survey.table = names.rows.table(batch, part)
        with self.file.explained(table):
            names.file.look(names.survey, batch)
        names.file.table = names.survey.table = self.file.table
        for label in names.file.seen_labels:
            names.parts.setdefault(label, part)
        return names


@dataclass
class _Seen:
    """The fingerprint of the cases that were read; empty if there are none yet."""

    seen: tuple[int, ...] = ()

    def add(self, cases: Cases) -> None:
        self.merge(_Seen(fingerprint(cases)))

    def merge(self, other: _Seen) -> None:
        both = self.seen and other.seen
        self.seen = added_fingerprints(self.seen, other.seen) if both else self.seen or other.seen


# The state.


@dataclass
class _Filled:
    """The state of some rows, and what was counted when they were read."""

    state: ScoreState
    reading: Reading[Any]
    rows: PartRows
    cases: _Seen

    def merge(self, other: _Filled) -> _Filled:
        self.state.merge(other.state)
        self.cases.merge(other.cases)
        self.reading.merge(other.reading)
        return self


@dataclass(frozen=True)
class _Fill:
    """Fills a state with rows."""

    file: PredictionFile
    empty: Callable[[], ScoreState]

    def __call__(self, filled: _Filled | None, batch: Any, part: Part) -> _Filled:
        if filled is None:
            filled = _Filled(self.empty(), self.file.new_reading(), PartRows(), _Seen())
        found = _cases(self.file, filled.reading, filled.rows.table(batch, part), batch)
        if found is not None:
            filled.cases.add(found.cases)
            filled.state.add(found.cases)
        return filled


def _cases(
    file: PredictionFile, reading: Reading[Any], table: BatchTable, batch: Any
) -> CaseRows | None:
    """Checked cases of a batch; None if all of its rows are left out."""
    whole = reading.table
    reading.table = table
    with file.explained(table):
        made = reading.batch(batch, 1.0)
    reading.table = whole
    return None if made is None else case_rows(file, made)


# Further readings.


@dataclass(frozen=True)
class SourceReading:
    """Reads the cases once more, where they lie."""

    source: Source
    file: PredictionFile
    #: Fingerprint of the cases in the first reading.
    seen: tuple[int, ...]

    def __call__(self) -> Iterable[CaseRows]:
        raise NotImplementedError("the rows of a source are read in parts")

    def readers_of_parts(
        self, readers: Sequence[BlockReader], mapped: Mapped | None
    ) -> Sequence[BlockReader]:
        """Copies of new readers that were told all cases, after a map of their scores."""
        tell = _Tell(self.file, list(readers), mapped)
        found = self.source.reduce(tell, _Told.merge, self.file.columns.all)
        if found is None or found.cases.seen != self.seen:
            seen = () if found is None else found.cases.seen
            n, before = seen[0] if seen else 0, self.seen[0]
            counts = f"{before:,} and then {n:,}" if n != before else f"both times {n:,}"
            raise ValueError(
                f"{self.source.name} gave other rows when it was read once more ({counts} rows): "
                "files were replaced meanwhile, or a query draws at random. Write the rows to a "
                "file and report on that, or hold all of them (hold=inf)."
            )
        return found.readers


@dataclass
class _Told:
    """Readers that were told some cases."""

    readers: list[BlockReader]
    reading: Reading[Any] | None
    rows: PartRows | None
    cases: _Seen

    def __getstate__(self) -> dict[str, Any]:
        """What leaves the part: only what was told, not what all readers know."""
        readers = [own.told() for own in self.readers]
        return {"readers": readers, "reading": None, "rows": None, "cases": self.cases}

    def merge(self, other: _Told) -> _Told:
        self.cases.merge(other.cases)
        for own, more in zip(self.readers, other.readers, strict=True):
            own.merge(more)
        return self


@dataclass(frozen=True)
class _Tell:
    """Tells readers of rows."""

    file: PredictionFile
    readers: list[BlockReader]
    mapped: Mapped | None

    def __call__(self, told: _Told | None, batch: Any, part: Part) -> _Told:
        if told is None:
            new = [reader.anew() for reader in self.readers]
            told = _Told(new, self.file.new_reading(), PartRows(), _Seen())
        assert told.reading is not None  # it has not left yet
        assert told.rows is not None
        found = _cases(self.file, told.reading, told.rows.table(batch, part), batch)
        if found is not None and found.rows.size:
            told.cases.add(found.cases)
            if self.mapped is not None:
                found = found._replace(cases=self.mapped(found.cases))
            add_blocks([found], told.readers)
        return told
