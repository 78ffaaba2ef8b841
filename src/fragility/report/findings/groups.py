"""Findings about groups of cases: where a model is more fragile, or costs more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import words
from ..group_text import name_of
from ..words import shortened as short
from .basis import Sentences

if TYPE_CHECKING:
    from ..report import Report


def fragile_group(report: Report) -> Sentences:
    """Groups in which a model is more fragile than in all cases."""
    for part in report.groups:
        index = part.index
        if index is None or part.too_small or index.interval is None:
            continue
        if not index.interval.low > part.in_all:
            continue
        these = " between its classes" if part.lacks_classes else ""
        yield (
            f"{short(part.model)} is more fragile in the group {name_of(report, part)} "
            f"({words.count(part.n)} cases): Fragility Index {words.measured(index)}, against "
            f"{words.number(part.in_all)} in all{these}.",
            [part.model],
        )


def costly_group(report: Report) -> Sentences:
    """Groups that cost more than all cases do, or are decided wrongly more often."""
    policies = {model.name: model.policy for model in report.models}
    for part in report.groups:
        common, own = policies[part.model], part.policy
        if common is None or own is None or part.too_small:
            continue
        told, cost, errors = [], own.cost, own.error_share
        if cost.interval is not None and cost.interval.low > common.cost:
            told.append(
                f"costs {words.amount(cost)} per case at its policy "
                f"({words.money(common.cost)} in all)"
            )
        if errors.interval is not None and errors.interval.low > common.error_share:
            share, of_all = map(words.percent, (errors.value, common.error_share))
            told.append(f"decides {share} of the cases alone and wrongly ({of_all} in all)")
        if told:
            yield (
                f"In the group {name_of(report, part)} ({words.count(part.n)} cases) "
                f"{short(part.model)} {' and '.join(told)}.",
                [part.model],
            )
