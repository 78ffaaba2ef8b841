"""Groups of a report as tables: worst first, those that are too small at the end."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import TYPE_CHECKING

from ..measured import Measured
from . import words
from .parts import GroupComparison, GroupFigures
from .words import Table

if TYPE_CHECKING:
    from .report import Report

#: What marks a group that is too small.
FEW = "*"


def ranked(report: Report) -> list[GroupFigures]:
    """Groups by column and model, the most fragile first, those that are too small last."""
    columns = list(dict.fromkeys(part.column for part in report.groups))
    models = [model.name for model in report.models]

    def rank(part: GroupFigures) -> tuple[int, int, bool, float]:
        value = -inf if part.index is None else part.index.value
        return columns.index(part.column), models.index(part.model), part.too_small, -value

    return sorted(report.groups, key=rank)


def name_of(report: Report, part: GroupFigures | GroupComparison) -> str:
    """Name of a group, after that of its column if there are several."""
    several = len({other.column for other in report.groups}) > 1
    name = words.shortened(part.group)
    return f"{words.shortened(part.column)}: {name}" if several else name


def speaks_of_costs(report: Report, part: GroupFigures) -> bool:
    """Whether what a policy costs in a group is held against other groups."""
    return not part.too_small or errs_more(report, part)


def errs_more(report: Report, part: GroupFigures) -> bool:
    """Whether the policy of a model surely errs more in a group than in all cases.

    Errors need no cases of every class, as other figures do: a group without any right answer is
    the worst of all. As many cases as the smallest group that is compared has will do.
    """
    common = next(model.policy for model in report.models if model.name == part.model)
    if common is None or part.policy is None:
        return False
    if part.too_small and part.n < len(part.support) * report.min_cell:
        return False
    limits = part.policy.error_share.interval
    return limits is not None and limits.low > common.error_share


def about_groups(report: Report, *, policies: bool = True) -> str:
    """What the rows of `group_rows` are; without `policies` those of `all_rows`."""
    n = len({(part.column, part.group) for part in report.groups if part.n})
    parts = [f"Intervals hold in all {n} groups together ({100 * report.confidence:g} %)."]
    if policies and any(part.policy is not None for part in report.groups):
        alone = "Answered" if report.answers else "Decided"
        parts.append(
            f"{alone} alone: by the policy chosen on all cases; errors and costs: of new cases."
        )
    if any(model.answers is not None and model.answers.declined for model in report.models):
        parts.append("Figures leave declined cases out; policies pass them on.")
    return " ".join(filter(None, (*parts, about_small(report))))


def about_small(report: Report) -> str:
    """What marks groups that are too small; empty if none is."""
    if not any(part.too_small for part in report.groups):
        return ""
    return f"{FEW} fewer than {report.min_cell} cases of a class: too few to be compared."


def group_rows(report: Report, groups: Sequence[GroupFigures] | None = None) -> Table:
    """The figures that matter most by group, of all or of some."""
    shown = ranked(report) if groups is None else groups
    several = len(report.models) > 1
    decided = any(part.policy is not None for part in report.groups)
    head = ["group", *(["model"] * several), "cases"]
    head += ["right" if report.answers else "base rate"] * (report.positive is not None)
    head += ["Fragility Index", "ratio", "AUC", report.titles["confident_error_rate"]]
    alone = "answered alone" if report.answers else "decided alone"
    head += [alone, "wrong of these", "cost per case"] * decided
    return head, [_row(report, part, several, decided) for part in shown]


def _row(report: Report, part: GroupFigures, several: bool, decided: bool) -> list[str]:
    mark = f" {FEW}" if part.too_small else ""
    cells = [name_of(report, part) + mark, *([words.shortened(part.model)] * several)]
    cells.append(words.count(part.n))
    if report.positive is not None:
        cells.append(_percent(part.base_rate))
    if part.index is None:
        cells += [f"undefined: {part.reason}", "–", "–", "–"]
    else:
        cells += [words.measured(part.index)]
        cells += [words.number(part.figures[name].value) for name in ("ratio", "auc")]
        cells.append(_percent(part.figures["confident_error_rate"]))
    if decided and part.policy is not None:
        found = part.policy
        cells += [_percent(found.alone), _percent(found.error_rate), words.amount(found.cost)]
    elif decided:
        cells += ["–"] * 3
    return cells


def all_rows(report: Report, model: str) -> Table:
    """Every figure of one model by group, with intervals."""
    shown = [part for part in ranked(report) if part.model == model and part.figures]
    names = [name for name in report.titles if any(name in part.figures for part in shown)]
    rows = [
        [
            name_of(report, part) + (f" {FEW}" if part.too_small else ""),
            *(words.measured(part.figures[name]) for name in names),
        ]
        for part in shown
    ]
    return ["group", *(report.titles[name] for name in names)], rows


def _percent(share: Measured | None) -> str:
    return "–" if share is None or isnan(share.value) else words.percent(share.value)
