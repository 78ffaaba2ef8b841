"""Every finding: its code, its rule, how much it matters, what it means in a line.

A code is never used again for another rule. `docs/findings.md` has an entry for each. Severities:

high
    Settle this before the model decides anything: its scores are not what they are taken for.
medium
    Look at this before you choose a model or thresholds.
low
    A limit of what these cases can tell, or a detail.
info
    A fact to decide with; nothing is to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parts import Severity
from .basis import Speaks
from .comparisons import cannot_tell, less_sure, lighter_tail, more_right_answers, same_auc
from .confidence import (
    confident_mistakes,
    dishonest_confidence,
    honest_confidence,
    honesty_unknown,
    overconfident,
    ranked_errors,
    unranked_errors,
)
from .costs import cheapest, who_decides
from .groups import costly_group, fragile_group
from .mistakes import new_mistakes, shared_mistakes
from .scores import (
    fragile_pair,
    infinite_pairs,
    no_separation,
    perfect_ranking,
    reversed_scores,
    too_few_cases,
)


@dataclass(frozen=True)
class Rule:
    """A rule: `speaks` yields its sentences about a report.

    `compares` says that it is about models beside each other.
    """

    code: str
    speaks: Speaks
    severity: Severity
    meaning: str
    compares: bool = False

    @property
    def name(self) -> str:
        """Name of the rule, as in JSON."""
        return self.speaks.__name__


#: What a decision depends on comes first.
RULES = (
    Rule("FRA001", reversed_scores, "high", "scores are plainly those of another class"),
    Rule("FRA002", no_separation, "high", "scores do not tell the two classes apart"),
    Rule("FRA003", infinite_pairs, "high", "scores do not tell some of several classes apart"),
    Rule("FRA004", more_right_answers, "info", "which answers are right more often", True),
    Rule("FRA005", lighter_tail, "medium", "whose tail is lighter after calibration", True),
    Rule("FRA006", less_sure, "info", "who is less sure of everything, and not safer", True),
    Rule("FRA007", same_auc, "info", "AUC does not show that tails differ", True),
    Rule("FRA008", cannot_tell, "low", "whose tails these cases cannot tell apart", True),
    Rule("FRA009", cheapest, "info", "which model costs least at its own policy", True),
    Rule("FRA010", who_decides, "info", "what a policy decides alone, and what that costs"),
    Rule("FRA011", new_mistakes, "medium", "cases that are newly confidently wrong"),
    Rule("FRA012", shared_mistakes, "medium", "cases that all models get confidently wrong", True),
    Rule("FRA013", confident_mistakes, "info", "how many cases are confidently wrong"),
    Rule("FRA014", overconfident, "high", "confident predictions are right less often than said"),
    Rule("FRA015", dishonest_confidence, "medium", "confidence is off by more than chance"),
    Rule("FRA016", honest_confidence, "info", "confidence is shown to be nearly right"),
    Rule("FRA017", honesty_unknown, "low", "these cases cannot tell if confidence is honest"),
    Rule("FRA018", ranked_errors, "info", "errors are rarer where the model is surer"),
    Rule("FRA019", unranked_errors, "medium", "errors are not shown to be rarer there"),
    Rule("FRA020", fragile_group, "medium", "groups in which a tail is heavier"),
    Rule("FRA021", costly_group, "medium", "groups that cost more, or are decided worse"),
    Rule("FRA022", fragile_pair, "low", "classes that are most confidently mixed up"),
    Rule("FRA023", perfect_ranking, "low", "an index of 0, and what it may be in truth"),
    Rule("FRA024", too_few_cases, "low", "too few cases to bound the index from above"),
)

#: Where this is said nothing else is, and it cannot be muted: every other figure is meaningless.
STOPS = RULES[0]


def check_mute(mute: Sequence[str]) -> tuple[str, ...]:
    """Codes of findings that are not wanted, each once and in order."""
    known = [rule.code for rule in RULES if rule is not STOPS]
    if isinstance(mute, str):
        raise ValueError(f"mute must be a sequence of codes, such as ({mute!r},); got {mute!r}.")
    if STOPS.code in mute:
        raise ValueError(
            f"{STOPS.code} cannot be muted: {STOPS.meaning}, so that nothing else can be said."
        )
    unknown = [code for code in mute if code not in known]
    if unknown:
        raise ValueError(
            f"mute has {', '.join(map(repr, unknown))}; the codes are {', '.join(known)} "
            "(docs/findings.md)."
        )
    return tuple(code for code in known if code in mute)
