"""A report on a file of predictions: batches fill a state, and the report is made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from .._parameters import check_confidence, check_count
from ..deferral import Costs, PolicySettings
from ..deferral.costs import check_reviewer_error
from ..measured import CONFIDENT, MIN_CELL
from ..scores import HOLD
from ..scores.cases import Cases
from ..scores.state import ScoreState
from ..scores.tally import Task
from ..tables import CaseFile, PredictionBatch, PredictionFile, Table, require_columns
from .findings import check_mute
from .inputs import check_confident, check_prevalence
from .mistakes import found_rows
from .model_figures import Settings
from .parts import ModelReport
from .report import Report
from .rereading import CaseRows, Rereading

#: A score in a text file takes at least this many bytes.
_BYTES_OF_A_SCORE = 2


def report_on_file(
    file: PredictionFile,
    *,
    costs: Costs | None = None,
    policy: PolicySettings | None = None,
    confidence: float = 0.95,
    n_worst: int = 10,
    case_column: str | None = None,
    calibrate: bool = True,
    hold: float = HOLD,
    progress: Callable[[int], None] | None = None,
    confident: float = CONFIDENT,
    prevalence: float | None = None,
    min_cell: int = MIN_CELL,
    mute: Sequence[str] = (),
    previous: PredictionFile | None = None,
) -> Report:
    """Report on the predictions in a file.

    Parameters
    ----------
    file : PredictionFile
    costs : Costs, optional
        An `error_cost` of None means that the file has a column of costs.
    policy : PolicySettings, optional
    confidence, n_worst : float, int
        As in `Report.from_predictions`.
    case_column : str, optional
        Column with the names of the cases; by default a case is named by its row, from 1.
    calibrate : bool, default=True
        Whether to add the figures after calibration.
    hold : float, default=2**20
        Number of scores (rows times columns) that may be held in memory. A larger file is
        measured from exact sums over its rows, in constant memory.
    progress : function, optional
        Called with the number of rows read so far.
    confident, prevalence, min_cell, mute
        As in `Report.from_predictions`.
    previous : PredictionFile, optional
        Earlier predictions of the same models, whose cases the same column names: lists what is
        newly confidently wrong.
    """
    check_count(n_worst, "n_worst", least=0)
    mute = check_mute(mute)
    n_classes = len(file.classes)  # before the long work
    check_confident(confident, Task(n_classes))
    check_prevalence(prevalence, n_classes)
    if costs is not None:
        check_reviewer_error(costs.reviewer_error, n_classes, None, file.classes)
    if case_column is not None:
        require_columns(file.table, [case_column])
    named = None
    if previous is not None:
        named = _named_cases(file, case_column), _named_cases(previous, case_column)
    state = ScoreState(
        file.classes,
        list(file.columns.models),
        file.groups,
        file.columns.weight is not None,
        hold,
        pos_label=file.positive,
    )
    done = 0

    def read(batches: Iterable[PredictionBatch]) -> Iterator[CaseRows]:
        nonlocal done
        for batch in batches:
            yield case_rows(file, batch)
            done += batch.n_rows
            if progress is not None:
                progress(done)

    rows: list[CaseRows] = []
    n_columns = sum(len(part) for part in file.columns.models.values())
    for found in read([file.read()] if is_small(file.table, n_columns, hold) else file.batches()):
        state.add(found.cases)
        rows = [*rows, found] if state.complete else []
    made = Report.from_cases(
        state,
        Settings(
            check_confidence(confidence),
            costs,
            calibrate,
            n_worst,
            policy=policy or PolicySettings(),
            confident=confident,
            prevalence=prevalence,
            min_cell=min_cell,
            mute=mute,
        ),
        reread=(lambda: rows) if state.complete else (lambda: read(file.batches())),
        name_cases=lambda chosen: case_names(file.table, chosen, case_column),
        clustered=file.columns.cluster is not None,
    )
    if named is not None:
        made = made.with_new_mistakes(*named, n_worst)
    return finished(made, file, file.score_columns)


def finished(made: Report, file: CaseFile[Any], columns: Mapping[str, Sequence[str]]) -> Report:
    """The same report with policies that know their columns, and a note on rows left out."""
    source = made.provenance.from_files(file.table.paths, file.table.name)
    made = replace(made, models=with_columns(made.models, columns), provenance=source)
    return made.with_notes(*dropped_rows(file))


def with_columns(
    models: Sequence[ModelReport], columns: Mapping[str, Sequence[str]]
) -> tuple[ModelReport, ...]:
    """The same models with policies that know their columns."""
    return tuple(
        part
        if part.policy is None
        else replace(part, policy=replace(part.policy, columns=tuple(columns[part.name])))
        for part in models
    )


def case_rows(file: PredictionFile, batch: PredictionBatch) -> CaseRows:
    """Rows that have weight, with one column of scores for two classes, and their numbers."""
    scores = {}
    for name, values in batch.scores.items():
        if file.positive is not None and values.ndim == 2:  # which sum to one
            values = values[:, file.classes.index(file.positive)]
        if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):
            values = np.clip(values, 0.0, 1.0)  # rounding
        scores[name] = values
    reviews = batch.human, batch.reviewer_errors
    cases = Cases(batch.codes, scores, batch.weights, batch.groups, batch.error_costs, *reviews)
    found = CaseRows(cases, batch.row_numbers, batch.clusters)
    if batch.weights is not None and not batch.weights.all():
        return found.take(np.flatnonzero(batch.weights))
    return found


@dataclass(frozen=True, eq=False)
class FileCases:
    """Cases of a file that a column names, to tell what is newly confidently wrong."""

    file: PredictionFile
    state: ScoreState
    case_column: str

    @property
    def read(self) -> Rereading:
        """Gives the cases with the numbers of their rows."""
        return lambda: (case_rows(self.file, batch) for batch in self.file.batches())

    def names(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Names of the cases of some rows."""
        return case_names(self.file.table, rows, self.case_column)

    def rows(self, names: set[str]) -> Mapping[str, int]:
        """Rows of the cases of these names."""
        numbered = _numbered_names(self.file.table, self.case_column)
        return found_rows(names, numbered, str(self.file.table.path))


def _named_cases(file: PredictionFile, case_column: str | None) -> FileCases:
    if case_column is None:
        raise file.table.error(
            "previous predictions are matched by the names of cases: name their column (--case)."
        )
    require_columns(file.table, [case_column])
    state = ScoreState(file.classes, list(file.columns.models), pos_label=file.positive)
    return FileCases(file, state, case_column)


def dropped_rows(file: CaseFile[Any]) -> list[str]:
    """A sentence on the rows that were left out, if there are any."""
    if not file.n_dropped:
        return []
    rows, were = ("row", "was") if file.n_dropped == 1 else ("rows", "were")
    return [f"{file.n_dropped:,} {rows} with missing values {were} left out (--drop-missing)."]


def is_small(table: Table, columns: int, hold: float) -> bool:
    """Whether a file certainly has no more scores, in some columns, than may be held."""
    most_rows: float | None = table.n_rows
    if most_rows is None and not table.is_compressed:
        most_rows = table.size_bytes / (_BYTES_OF_A_SCORE * columns)
    return hold == inf or (most_rows is not None and most_rows * columns <= hold)


def case_names(table: Table, rows: Sequence[int], case_column: str | None) -> dict[int, str]:
    """Names of cases, by the numbers of their rows."""
    if case_column is None:
        return {row: f"row {row}" for row in rows}
    found, first, wanted = {}, 1, np.sort(np.asarray(rows, dtype=np.int64))
    for batch in table.batches([case_column]):
        start, stop = np.searchsorted(wanted, (first, first + batch.num_rows))
        for row in wanted[start:stop].tolist():
            name = batch.column(0)[row - first].as_py()
            found[row] = f"row {row}" if name is None else str(name)
        first += batch.num_rows
    return found


def _numbered_names(table: Table, case_column: str) -> Iterator[tuple[int, str]]:
    """Row and name of every case."""
    first = 1
    for batch in table.batches([case_column]):
        for row, name in enumerate(batch.column(0).to_pylist(), start=first):
            if name is None:
                raise table.error(
                    f"column {case_column!r} names no case in data row {row}; to be found in other "
                    "predictions, every case needs a name."
                )
            yield row, str(name)
        first += batch.num_rows
