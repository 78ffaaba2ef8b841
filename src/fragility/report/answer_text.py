"""The short answer of a report: at most eight rows, and the verdict in at most five sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..measured import Measured
from . import words
from .group_text import name_of, speaks_of_costs
from .parts import GroupFigures, ModelReport
from .words import Table

if TYPE_CHECKING:
    from .report import Report

#: Rows of the short table, and how many of them are for groups, if there are any.
MOST_ROWS, _FOR_GROUPS = 8, 4
#: Figures of the short table, with costs and without; the index is never alone.
_WITH_COSTS = ("log_loss", "auc", "calibration_error", "confident_error_rate", "fragility_index")
_WITHOUT_COSTS = (
    *("log_loss", "auc", "brier", "calibration_error", "aurc", "confident_error_rate"),
    *("fragility_index", "ratio"),
)


def answer_table(report: Report) -> Table:
    """Heading and rows: what matters for the verdict, a column for each model."""
    rows = list(_rows(report))
    groups = list(_group_rows(report))[:_FOR_GROUPS]
    shown = [*rows[: MOST_ROWS - len(groups)], *groups]
    return ["", *(words.shortened(model.name) for model in report.models)], shown


def _rows(report: Report) -> Iterator[list[str]]:
    models, priced = report.models, any(model.policy is not None for model in report.models)
    if priced:
        alone = "answered alone" if report.answers else "decided alone"
        yield ["cost per 1,000 cases", *(_cost(report, model) for model in models)]
        policies = [model.policy for model in models]
        shares = ["–" if p is None else words.percent(p.automation_rate) for p in policies]
        yield [alone, *shares]
        wrong = ["–" if p is None else words.wrong_of_alone(p) for p in policies]
        yield ["wrong of these", *wrong]
    names = _WITH_COSTS if priced else _WITHOUT_COSTS
    if report.answers:
        names = ("accuracy", *names)
    for name in names:
        cells = [words.measured(model.raw.figures[name]) for model in models]
        yield [report.titles[name], *cells]


def _cost(report: Report, model: ModelReport) -> str:
    if model.policy is None:
        return "–"
    return report.context.cost(Measured(model.policy.cost, model.policy.cost_interval))


def _group_rows(report: Report) -> Iterator[list[str]]:
    """The groups that cost most, or have the largest log-loss, of the model of the verdict."""
    subject, found = report.verdict.subject, dict[tuple[str, str, str], GroupFigures]()
    for part in report.groups:
        found[part.column, part.group, part.model] = part

    def cell(part: GroupFigures) -> Measured | None:
        if part.policy is not None:
            return part.policy.cost
        return part.figures.get("log_loss")

    own = [
        (figure.value, part)
        for part in report.groups
        if part.model == subject
        and speaks_of_costs(report, part)
        and (figure := cell(part)) is not None
    ]
    what = "cost per 1,000" if any(part.policy is not None for _, part in own) else "log-loss"
    for _, part in sorted(own, key=lambda pair: (-pair[0], pair[1].column, pair[1].group)):
        cells = []
        for model in report.models:
            figure = cell(found[part.column, part.group, model.name])
            cells.append("–" if figure is None else _told(report, figure, what))
        yield [f"{what}, {name_of(report, part)}", *cells]


def no_group(report: Report) -> str:
    """Why no group is in the short table though groups were asked for; empty if one is."""
    if not report.groups or not all(part.too_small for part in report.groups):
        return ""
    return (
        f"No group has {words.count(report.min_cell)} cases of each class, so that none is "
        "compared: --full shows them, wider ranges or --min-cell compare them."
    )


def _told(report: Report, figure: Measured, what: str) -> str:
    return words.measured(figure) if what == "log-loss" else report.context.cost(figure)
