"""Findings: what the figures of a report say, in plain words. One rule for each kind of sentence.

A rule reads a report and yields sentences, or none. A reader who doubts a sentence finds its rule
under the name that the finding has in JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts import Finding
from .basis import Rule
from .comparisons import (
    explained_by_scale,
    fewer_confident_mistakes,
    more_right_answers,
    no_difference,
    same_auc,
)
from .costs import cheapest, who_decides
from .groups import costly_group, fragile_group
from .mistakes import new_mistakes, shared_mistakes
from .single import (
    fragile_pair,
    infinite_pairs,
    no_separation,
    overconfident,
    perfect_ranking,
    too_few_cases,
)

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["RULES", "findings"]

#: The rules that a decision depends on come first.
RULES: tuple[Rule, ...] = (
    no_separation,
    infinite_pairs,
    more_right_answers,
    fewer_confident_mistakes,
    explained_by_scale,
    same_auc,
    no_difference,
    cheapest,
    who_decides,
    new_mistakes,
    shared_mistakes,
    overconfident,
    fragile_group,
    costly_group,
    fragile_pair,
    perfect_ranking,
    too_few_cases,
)


def findings(report: Report) -> tuple[Finding, ...]:
    """All findings of a report, in the order of the rules."""
    return tuple(
        Finding(rule.__name__, text, tuple(models))
        for rule in RULES
        for text, models in rule(report)
    )
