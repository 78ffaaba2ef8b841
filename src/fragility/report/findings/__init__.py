"""What the figures say, in plain words. One function for each kind of sentence.

Each rule reads the figures and yields sentences, or none; a reader who doubts a sentence finds its
rule here under the name that the finding has in JSON.
"""

from __future__ import annotations

from collections.abc import Callable

from ..parts import Finding
from .basis import Figures, Sentences
from .comparisons import explained_by_scale, fewer_confident_mistakes, no_difference, same_auc
from .costs import act_alone, cheapest, chow_gap, trust_chow
from .single import (
    fragile_group,
    fragile_pair,
    infinite_pairs,
    no_separation,
    overconfident,
    perfect_ranking,
    too_few_cases,
)

__all__ = ["RULES", "Figures", "findings"]

#: Those that a decision hangs on first.
RULES: tuple[Callable[[Figures], Sentences], ...] = (
    no_separation,
    infinite_pairs,
    fewer_confident_mistakes,
    explained_by_scale,
    same_auc,
    no_difference,
    cheapest,
    act_alone,
    trust_chow,
    chow_gap,
    overconfident,
    fragile_group,
    fragile_pair,
    perfect_ranking,
    too_few_cases,
)


def findings(figures: Figures) -> tuple[Finding, ...]:
    """All findings, in the order of the rules."""
    return tuple(
        Finding(rule.__name__, text, tuple(models))
        for rule in RULES
        for text, models in rule(figures)
    )
