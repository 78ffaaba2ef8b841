"""The report that the options of a command ask for.

What is slow to import is imported when it is needed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import click

from .._names import seen
from ..measured import CONFIDENT, MIN_CELL
from .console import progress_bar
from .options import as_costs, asked_models

if TYPE_CHECKING:
    from ..deferral import Costs
    from ..report import Report
    from ..tables import CaseFile, PredictionFile, Table


def make_report(
    file: str,
    *,
    label: str | None,
    scores: tuple[str, ...],
    classes: str | None,
    positive: str | None,
    correct: tuple[str, ...] = (),
    confidences: tuple[str, ...] = (),
    declined: tuple[str, ...] = (),
    hold: int,
    in_memory: bool,
    no_calibration: bool,
    confidence: float,
    confident: float = CONFIDENT,
    prevalence: float | None = None,
    min_cell: int | None = None,
    error_cost: str | None = None,
    error_cost_column: str | None = None,
    review_cost: float = 1.0,
    capacity: float | None = None,
    reviewer_error: str | None = None,
    reviewer_error_column: str | None = None,
    human: str | None = None,
    miss_cost: float | None = None,
    false_alarm_cost: float | None = None,
    against: str | None = None,
    title: str = "",
    currency: str = "",
    volume: str | None = None,
    n_worst: int | None = 0,
    case_column: str | None = None,
    previous: str | None = None,
    no_cross: bool = False,
    mute: tuple[str, ...] = (),
    watch: Callable[[CaseFile[Any]], None] = lambda _file: None,
    **others: Any,
) -> Report:
    """Report on the file that the options describe.

    By default cases are listed where they are asked for, or where several models are read twice
    anyway. Scores that are plainly those of another class are refused. `watch` is called with the
    file that was read.
    """
    from ..deferral.settings import POLICY_PARAMETERS, PolicySettings
    from ..report.context import Context
    from ..tables import open_table

    context = Context.of({"title": title, "currency": currency, "volume": volume})
    if against is not None and not confidences:
        scores = tuple(dict.fromkeys([*scores, against]))
    given, is_answers = asked_models(
        label, scores, correct, confidences, declined, classes, positive
    )
    if n_worst is None:
        n_worst = 10 if len(given) > 1 or case_column is not None else 0
    chosen = {name: others.pop(name) for name in POLICY_PARAMETERS if name in others}
    costs = as_costs(
        error_cost,
        error_cost_column,
        review_cost,
        capacity,
        reviewer_error,
        reviewer_error_column,
        human,
        miss_cost,
        false_alarm_cost,
    )
    policy = PolicySettings.of(**chosen)
    if costs is None and policy != PolicySettings():
        raise click.UsageError(
            "Limits and rules of policies need costs: give --error-cost, or --miss-cost and "
            "--false-alarm-cost, too."
        )
    n_columns = len(others.get("groups", ()))
    if min_cell is not None and not n_columns:
        raise click.UsageError("--min-cell is for groups: give --group, too.")
    if no_cross and n_columns < 2:
        raise click.UsageError("--no-cross is for several columns of groups: repeat --group.")
    opened = open_table(file)
    others |= {"error_cost": error_cost_column, "cross": not no_cross}
    settings: dict[str, Any] = {
        "costs": costs,
        "policy": policy,
        "confidence": confidence,
        "confident": confident,
        "prevalence": prevalence,
        "min_cell": MIN_CELL if min_cell is None else min_cell,
        "n_worst": n_worst,
        "case_column": case_column,
        "calibrate": not no_calibration,
        "hold": inf if in_memory else hold,
        "mute": mute,
    }
    if is_answers:
        from ..report.outcome_files import report_on_outcome_file
        from ..tables import OutcomeFile, parse_outcomes

        if previous is not None:
            raise click.UsageError("--previous is for classes (--label, --score), not for answers.")
        if human is not None or reviewer_error_column is not None:
            raise click.UsageError(
                "--human and --reviewer-error-column are for classes (--label, --score): of "
                "answers say how often reviewers err, --reviewer-error 0.02."
            )
        named = parse_outcomes(correct, confidences, declined, opened.column_names)
        if miss_cost is not None:
            raise click.UsageError("--miss-cost is for classes: of answers give --error-cost.")
        outcomes = OutcomeFile(opened, **named._asdict(), **others)
        context = replace(context, against=against)
        context.check(outcomes.models)
        with progress_bar("Measuring", None) as progress:
            made = report_on_outcome_file(outcomes, **settings, progress=progress)
        made = _not_reversed(made).with_context(context)
        watch(outcomes)
        return made
    from ..report.files import report_on_file
    from ..tables import PredictionFile, parse_models

    if previous == file == "-":
        raise click.UsageError("Only one of the files can be standard input (-).")
    if previous is not None and case_column is None:
        raise click.UsageError("--previous takes the column that names the cases: --case COLUMN.")

    def opened_predictions(table: Table, **columns: Any) -> PredictionFile:
        return PredictionFile(
            table,
            label=str(label),
            models=parse_models(scores, table.column_names),
            classes=None if classes is None else [name.strip() for name in classes.split(",")],
            positive=positive,
            **columns,
        )

    predictions = opened_predictions(
        opened, human=human, reviewer_error=reviewer_error_column, **others
    )
    if against is not None:
        (own,) = parse_models((against,), opened.column_names)
        context = replace(context, against=own)
    if miss_cost is not None:
        settings["costs"] = _by_kind(costs, predictions)
    if previous is not None:
        drop = {"drop_missing": others["drop_missing"]}
        settings["previous"] = opened_predictions(open_table(previous), **drop)
    several = max(map(len, predictions.columns.models.values())) > 2
    held = in_memory or (opened.n_rows or 0) * len(predictions.columns.all) <= hold
    readings = 1 if held else 3 if several and not no_calibration else 2
    readings += several and costs is not None and not held
    total = None if opened.n_rows is None else readings * opened.n_rows
    with progress_bar("Measuring", total) as progress:
        made = report_on_file(predictions, **settings, progress=progress)
    made = _not_reversed(made).with_context(context)
    watch(predictions)
    return made


def _not_reversed(made: Report) -> Report:
    """The report, unless its scores are plainly those of another class: that stops all else."""
    from ..report.findings import STOPS

    for finding in made.findings:
        if finding.code == STOPS.code:
            raise ValueError(finding.text)
    return made


def _by_kind(costs: Costs | None, predictions: PredictionFile) -> Costs | None:
    """Costs of misses and false alarms in the order of the classes."""
    classes = predictions.classes
    if len(classes) > 2:
        raise click.UsageError(
            f"--miss-cost and --false-alarm-cost are for two classes; the file has {len(classes)}: "
            "give --error-cost, one number or a matrix."
        )
    if costs is None or predictions.positive != classes[0]:
        return costs
    matrix = [row[::-1] for row in reversed(costs.error_cost)]
    return replace(costs, error_cost=matrix)


#: Options of `evaluate` alone: a flag, and others that have a value.
_FLAG, _OWN = "--full", ("--record", "--date", "--policy")


def next_command(made: Report) -> str:
    """What to type next: the same with costs, or a page to open; empty if that cannot be said.

    Standard input is read already, and what stands in a file of options is not known here.
    """
    context = click.get_current_context()
    given = list(context.find_root().obj or [])[1:]
    odd = any(part != seen(part) for part in given)
    if context.default_map or odd or "--" in given or "-" in given:
        return ""
    arguments, skip = [], False
    for part in given:
        name, equals, _ = part.partition("=")
        if skip or part == _FLAG:
            skip = False
        elif name in _OWN:
            skip = not equals
        else:
            arguments.append(part)
    if made.costs is None:
        costs = ["--miss-cost", "10", "--false-alarm-cost", "1"]
        if made.answers or len(made.labels) > 2:
            costs = ["--error-cost", "10"]
        return shlex.join(["fragility", "evaluate", *arguments, *costs, "--review-cost", "1"])
    return shlex.join(["fragility", "report", *arguments, "--output", "page.html"])
