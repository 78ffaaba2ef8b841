"""A report on a file of predictions: batches fill a state, and the report is made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from .._parameters import check_confidence, check_count
from ..deferral import Costs, PolicySettings
from ..deferral.costs import check_reviewer_error
from ..measured import CONFIDENT
from ..scores import HOLD
from ..scores.cases import Cases
from ..scores.state import ScoreState
from ..tables import PredictionBatch, PredictionFile, require_columns
from .inputs import check_confident, check_prevalence
from .model_figures import Settings
from .report import Report
from .rereading import CaseRows

#: A score in a text file takes at least this many bytes.
_BYTES_OF_A_SCORE = 2


def report_on_file(
    file: PredictionFile,
    *,
    costs: Costs | None = None,
    policy: PolicySettings | None = None,
    confidence: float = 0.95,
    n_worst: int = 10,
    id_column: str | None = None,
    calibrate: bool = True,
    hold: float = HOLD,
    progress: Callable[[int], None] | None = None,
    confident: float = CONFIDENT,
    prevalence: float | None = None,
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
    id_column : str, optional
        Column with the names of the cases; by default a case is named by its row, from 1.
    calibrate : bool, default=True
        Whether to add the figures after calibration.
    hold : float, default=2**20
        Number of scores (rows times columns) that may be held in memory. A larger file is
        measured from exact sums over its rows, in constant memory.
    progress : function, optional
        Called with the number of rows read so far.
    confident, prevalence : float
        As in `Report.from_predictions`.
    """
    check_count(n_worst, "n_worst", least=0)
    n_classes = len(file.classes)  # before the long work
    check_confident(confident, n_classes)
    check_prevalence(prevalence, n_classes)
    if costs is not None:
        check_reviewer_error(costs.reviewer_error, n_classes, None, file.classes)
    if id_column is not None:
        require_columns(file.table, [id_column])
    state = ScoreState(
        file.classes,
        list(file.columns.models),
        file.group_names,
        file.columns.weight is not None,
        hold,
        pos_label=file.positive,
    )
    done = 0

    def read(batches: Iterable[PredictionBatch]) -> Iterator[CaseRows]:
        nonlocal done
        for batch in batches:
            yield _cases(file, batch)
            done += batch.n_rows
            if progress is not None:
                progress(done)

    rows: list[CaseRows] = []
    for found in read([file.read()] if _is_small(file, hold) else file.batches()):
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
        ),
        reread=(lambda: rows) if state.complete else (lambda: read(file.batches())),
        name_cases=lambda chosen: _case_names(file, chosen, id_column),
        clustered=file.columns.cluster is not None,
    )
    columns = file.score_columns
    models = [
        part
        if part.policy is None
        else replace(part, policy=replace(part.policy, columns=tuple(columns[part.name])))
        for part in made.models
    ]
    return replace(made, models=tuple(models)).with_notes(*_dropped_rows(file))


def _cases(file: PredictionFile, batch: PredictionBatch) -> CaseRows:
    """Rows that have weight, with one column of scores for two classes, and their numbers."""
    scores = {}
    for name, values in batch.scores.items():
        if file.positive is not None and values.ndim == 2:  # which sum to one
            values = values[:, file.classes.index(file.positive)]
        if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):
            values = np.clip(values, 0.0, 1.0)  # rounding
        scores[name] = values
    groups = None if batch.groups is None else batch.groups[:, np.newaxis]
    reviews = batch.human, batch.reviewer_errors
    cases = Cases(batch.codes, scores, batch.weights, groups, batch.error_costs, *reviews)
    found = CaseRows(cases, batch.row_numbers, batch.clusters)
    if batch.weights is not None and not batch.weights.all():
        return found.take(np.flatnonzero(batch.weights))
    return found


def _dropped_rows(file: PredictionFile) -> list[str]:
    """A sentence on the rows that were left out, if there are any."""
    if not file.n_dropped:
        return []
    rows, were = ("row", "was") if file.n_dropped == 1 else ("rows", "were")
    return [f"{file.n_dropped:,} {rows} with missing values {were} left out (--drop-missing)."]


def _is_small(file: PredictionFile, hold: float) -> bool:
    """Whether a file certainly has no more scores than may be held."""
    columns = sum(len(part) for part in file.columns.models.values())
    table = file.table
    most_rows: float | None = table.n_rows
    if most_rows is None and not table.is_compressed:
        most_rows = table.size_bytes / (_BYTES_OF_A_SCORE * columns)
    return hold == inf or (most_rows is not None and most_rows * columns <= hold)


def _case_names(file: PredictionFile, rows: Sequence[int], id_column: str | None) -> dict[int, str]:
    """Names of cases, by the numbers of their rows."""
    if id_column is None:
        return {row: f"row {row}" for row in rows}
    found, first = {}, 1
    for batch in file.table.batches([id_column]):
        for row in rows:
            if first <= row < first + batch.num_rows:
                found[row] = str(batch.column(0)[row - first])
        first += batch.num_rows
    return found
