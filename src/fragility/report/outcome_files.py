"""A report on a file of outcomes: its batches, as the report on answers takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .._parameters import check_confidence, check_count
from ..deferral import Costs, PolicySettings
from ..measured import CONFIDENT, MIN_CELL
from ..scores import HOLD
from ..scores.answers import Answers
from ..tables import OutcomeBatch as OutcomeRows
from ..tables import OutcomeFile, require_columns
from .answer_reading import OutcomeBatch
from .files import case_names, finished, is_small
from .findings import check_mute
from .model_figures import Settings
from .outcomes import report_on_outcomes
from .report import Report


def report_on_outcome_file(
    file: OutcomeFile,
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
) -> Report:
    """Report on the outcomes in a file.

    Parameters
    ----------
    file : OutcomeFile
    costs : Costs, optional
        An `error_cost` of None means that the file has a column of costs.
    policy : PolicySettings, optional
    confidence, n_worst, calibrate, confident, prevalence, min_cell, mute
        As in `Report.from_outcomes`; a prevalence is that of right answers.
    case_column : str, optional
        Column with the names of the cases; by default a case is named by its row, from 1.
    hold : float, default=2**20
        Number of answers, of all models together, that may be held in memory.
    progress : function, optional
        Called with the number of rows read so far.
    """
    check_count(n_worst, "n_worst", least=0)
    mute = check_mute(mute)
    if case_column is not None:
        require_columns(file.table, [case_column])
    at_once = is_small(file.table, len(file.models), hold)
    done = 0

    def read() -> Iterator[OutcomeBatch]:
        nonlocal done
        for batch in [file.read()] if at_once else file.batches():
            yield _answers(batch)
            done += batch.n_rows
            if progress is not None:
                progress(done)

    made = report_on_outcomes(
        read,
        file.models,
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
        groups=file.groups,
        weighted=file.columns.weight is not None,
        clustered=file.columns.cluster is not None,
        name_cases=lambda chosen: case_names(file.table, chosen, case_column),
        hold=hold,
    )
    declined = file.columns.declined
    columns = {
        name: [column, *([declined[name]] if name in declined else [])]
        for name, column in file.columns.confidence.items()
    }
    return finished(made, file, columns)


def _answers(batch: OutcomeRows) -> OutcomeBatch:
    """Rows of a file as answers by model."""
    answers = {}
    for name, correct in batch.correct.items():
        declined, confidence = batch.declined[name], batch.confidence[name]
        if declined is not None:
            confidence = np.where(declined, 0.0, confidence)  # which means nothing
        answers[name] = Answers(correct, confidence, declined)
    return OutcomeBatch(
        answers,
        batch.row_numbers,
        batch.weights,
        batch.groups,
        batch.error_costs,
        batch.clusters,
    )
