"""Findings about groups of cases: where a tail is heavier, or a policy costs more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .. import words
from ..group_text import errs_more, name_of
from ..parts import GroupFigures
from ..words import shortened as short
from .basis import Sentences

if TYPE_CHECKING:
    from ..report import Report

#: Groups that a sentence names, the worst.
_NAMED = 3


def fragile_group(report: Report) -> Sentences:
    """Groups in which the tail of a model is heavier than in all cases, the worst first."""
    found: dict[tuple[float, str, str, str], tuple[str, str]] = {}
    for part in report.groups:
        index = part.index
        if index is None or part.too_small or index.interval is None:
            continue
        if not index.interval.low > part.in_all:
            continue
        these = " between its classes" if part.lacks_classes else ""
        found[_worst_first(index.interval.low - part.in_all, part)] = (
            part.model,
            (
                f"{_of(report, part)} (Fragility Index {words.measured(index)}, against "
                f"{words.number(part.in_all)} in all{these})"
            ),
        )
    if found:
        yield f"Tails are heavier in some groups: {_listed(found)}.", _models(found)


def costly_group(report: Report) -> Sentences:
    """Groups that cost more than all cases do, or are decided wrongly more often."""
    policies = {model.name: model.policy for model in report.models}
    found: dict[tuple[float, str, str, str], tuple[str, str]] = {}
    for part in report.groups:
        common, own = policies[part.model], part.policy
        if common is None or own is None:
            continue
        more_errors = errs_more(report, part)
        if part.too_small and not more_errors:
            continue
        told, cost, errors = [], own.cost, own.error_share
        if cost.interval is not None and cost.interval.low > common.cost:
            told.append(
                f"costs {words.amount(cost)} per case at its policy, "
                f"{words.money(common.cost)} in all"
            )
        if more_errors:
            share, of_all = map(words.percent, (errors.value, common.error_share))
            does = "answers" if report.answers else "decides"
            told.append(f"{does} {share} of the cases alone and wrongly, {of_all} in all")
        if told:
            more = own.cost.value - common.cost
            text = f"{_of(report, part)} ({'; '.join(told)})"
            found[_worst_first(more, part)] = part.model, text
    if found:
        yield f"Some groups cost more, or err more: {_listed(found)}.", _models(found)


def _of(report: Report, part: GroupFigures) -> str:
    return f"{short(part.model)} in the group {name_of(report, part)}, {words.count(part.n)} cases"


def _worst_first(excess: float, part: GroupFigures) -> tuple[float, str, str, str]:
    return -excess, part.model, part.column, part.group


def _listed(found: Mapping[tuple[float, str, str, str], tuple[str, str]]) -> str:
    """The worst groups, and how many more there are."""
    told = [found[key][1] for key in sorted(found)]
    more = f"; and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return "; ".join(told[:_NAMED]) + more


def _models(found: Mapping[tuple[float, str, str, str], tuple[str, str]]) -> list[str]:
    return list(dict.fromkeys(found[key][0] for key in sorted(found)))
