"""A report on a file of predictions: from its rows, or in passes if these are too many to hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from .._parameters import check_count
from ..deferral import Costs
from ..tables import PredictionBatch, PredictionFile, require_columns
from ..tables.prediction_batch import joined
from .report import Report
from .streamed import streamed_report

__all__ = ["HOLD", "report_on_file"]

#: Scores (rows times columns) that are held in memory, unless told otherwise.
HOLD = 2**20
#: A score takes this many bytes of text, at least.
_BYTES_OF_A_SCORE = 2


def report_on_file(
    file: PredictionFile,
    *,
    costs: Costs | None = None,
    confidence: float = 0.95,
    n_worst: int = 10,
    id_column: str | None = None,
    calibrate: bool = True,
    hold: float = HOLD,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Report on the predictions in a file.

    Parameters
    ----------
    file : PredictionFile
    costs : Costs, optional
        With an `error_cost` of None the file has a column of it.
    confidence, n_worst : float, int
        As in `Report.from_predictions`.
    id_column : str, optional
        Column that names the cases; by default they are called by their rows, from 1.
    calibrate : bool, default=True
        Whether to show the figures after calibration, too.
    hold : float, default=2**20
        Scores (rows times columns) that may be held in memory. A file of no more is measured from
        its rows, one of more in passes over batches, in constant memory.
    progress : function, optional
        Called with the number of rows done.
    """
    check_count(n_worst, "n_worst", least=0)
    if id_column is not None:
        require_columns(file.table, [id_column])
    batch = _held(file, hold)
    if batch is None:
        made = streamed_report(
            file, costs=costs, confidence=confidence, calibrate=calibrate, progress=progress
        )
        if n_worst:
            made = made.with_notes(
                "The worst cases are not listed: a file measured in passes is not searched for "
                "them; give --in-memory if it fits."
            )
        return made.with_notes(*_dropped_rows(file))
    if costs is not None and batch.error_costs is not None:
        costs = replace(costs, error_cost=batch.error_costs)
    classes = np.array(file.classes)
    groups = None
    if batch.groups is not None:
        groups = np.array(file.group_names, dtype=object)[batch.groups]
    made = Report.from_predictions(
        classes[batch.codes],
        batch.scores,
        groups=groups,
        costs=costs,
        labels=classes,
        pos_label=file.positive if classes.size == 2 else None,
        sample_weight=batch.weights,
        cases=_case_names(file, batch, id_column) if n_worst else None,
        n_worst=n_worst,
        confidence=confidence,
        calibrate=calibrate,
    )
    return made.with_notes(*_dropped_rows(file))


def _dropped_rows(file: PredictionFile) -> list[str]:
    """What was left out, in a sentence."""
    if not file.n_dropped:
        return []
    rows = "1 row with missing values was" if file.n_dropped == 1 else None
    rows = rows or f"{file.n_dropped:,} rows with missing values were"
    return [f"{rows} left out (--drop-missing)."]


def _held(file: PredictionFile, hold: float) -> PredictionBatch | None:
    """All rows of a file, if these are no more scores than may be held; else None."""
    columns = sum(len(part) for part in file.columns.models.values())
    table = file.table
    most_rows: float | None = table.n_rows
    if most_rows is None and not table.is_compressed:
        most_rows = table.size_bytes / (_BYTES_OF_A_SCORE * columns)
    if hold == inf or (most_rows is not None and most_rows * columns <= hold):
        return file.read()
    if table.n_rows is not None:
        return None
    parts = []
    for batch in file.batches():
        if batch.row_numbers[-1] * columns > hold:
            return None
        parts.append(batch)
    return joined(parts)


def _case_names(file: PredictionFile, batch: PredictionBatch, id_column: str | None) -> list[str]:
    rows = batch.row_numbers.tolist()
    if id_column is None:
        return [f"row {row}" for row in rows]
    names = file.table.read([id_column]).column(0)
    return [str(names[row - 1]) for row in rows]
