"""What can go wrong with a model that a verdict names: each with a number and where to look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from ..figures.intervals import share_interval
from . import words
from .context import CASES
from .findings.comparisons import tails_differ
from .findings.confidence import overconfident_models
from .group_text import name_of, speaks_of_costs
from .parts import ModelReport
from .words import shortened as short

if TYPE_CHECKING:
    from .report import Report

#: A verdict names no more than these.
MOST = 4
#: A single case that makes this share of the cost is worth a look.
_RULES_THE_COST = 0.1
#: Findings that say the same, by which risks are muted, too.
_CODES = {
    "shared_mistakes": "FRA012",
    "confident_mistakes": "FRA013",
    "dishonest_confidence": "FRA014",
    "heavy_tail": "FRA005",
    "dearest_group": "FRA021",
    "too_few_cases": "FRA024",
}
#: Costs, or log-losses, that are known up to this share of themselves rest on too few cases.
_WIDE = 0.5


@dataclass(frozen=True)
class Risk:
    """Something that can go wrong.

    Attributes
    ----------
    kind : str
        "shared_mistakes", "confident_mistakes", "dearest_group", "dishonest_confidence",
        "heavy_tail", "single_case" or "too_few_cases".
    text : str
        A sentence with the number.
    value : float
        The number: of cases, of money in 1,000 cases of the group, or a share.
    where : str
        Where the report says more: a key of its JSON.
    """

    kind: str
    text: str
    value: float
    where: str


def risks(report: Report, subject: str) -> tuple[Risk, ...]:
    """What can go wrong with a model, the most telling first."""
    model = next(model for model in report.models if model.name == subject)
    rules = (
        _mistakes,
        _dearest_group,
        _dishonest_confidence,
        _heavy_tail,
        _single_case,
        _too_few_cases,
    )
    found = [risk for rule in rules for risk in rule(report, model)]
    return tuple(risk for risk in found if _CODES.get(risk.kind) not in report.mute)[:MOST]


def _mistakes(report: Report, model: ModelReport) -> Iterator[Risk]:
    """Confident errors that all models share, or those of the model, if it is alone."""
    level = f"{100 * report.confident:g} % confidence"
    n = report.n_shared_mistakes
    if n and len(report.models) > 1:
        who = "both models" if len(report.models) == 2 else f"all {len(report.models)} models"
        cases = "case is" if n == 1 else "cases are"
        suspect, _ = words.suspects(n, answers=report.answers)
        yield Risk(
            "shared_mistakes",
            f"{words.count(n)} {cases} wrong above {level} in {who}: check {suspect} first.",
            n,
            "shared_mistakes",
        )
    elif len(report.models) == 1 and model.raw.confident.n > 0:
        sure = model.raw.confident
        if sure.n_wrong:
            wrong = "case is wrong" if sure.n_wrong == 1 else "cases are wrong"
            yield Risk(
                "confident_mistakes",
                f"{words.count(sure.n_wrong)} {wrong} of {words.count(sure.n)} above {level} "
                f"({words.percent(sure.n_wrong / sure.n)}).",
                sure.n_wrong,
                "models.worst_cases",
            )


def _dearest_group(report: Report, model: ModelReport) -> Iterator[Risk]:
    """The group that costs most, if that is clearly more than all cases do."""
    policy = model.policy
    every = [part for part in report.groups if part.model == model.name]
    own = [part for part in every if not part.too_small]
    if policy is not None:
        money = report.context.money
        dear = [
            (part.policy.cost.value, part)
            for part in every
            if part.policy is not None
            and speaks_of_costs(report, part)
            and part.policy.cost.interval is not None
            and part.policy.cost.interval.low > policy.cost
        ]
        if dear:
            cost, part = max(dear, key=lambda found: (found[0], found[1].group))
            yield Risk(
                "dearest_group",
                f"Group {name_of(report, part)} costs {money(CASES * cost)} per 1,000 cases, all "
                f"cases {money(CASES * policy.cost)}.",
                CASES * cost,
                "groups",
            )
        return
    overall = model.raw.figures["log_loss"].value
    worse = [
        (part.figures["log_loss"].value, part)
        for part in own
        if part.figures
        and (limits := part.figures["log_loss"].interval) is not None
        and limits.low > overall
    ]
    if worse:
        loss, part = max(worse, key=lambda found: (found[0], found[1].group))
        yield Risk(
            "dearest_group",
            f"Group {name_of(report, part)} has a log-loss of {words.number(loss)}, all cases "
            f"{words.number(overall)}.",
            loss,
            "groups",
        )


def _dishonest_confidence(report: Report, model: ModelReport) -> Iterator[Risk]:
    """Confident predictions that are right less often than they claim."""
    sure = model.raw.confident
    if model in overconfident_models(report):
        yield Risk(
            "dishonest_confidence",
            f"Above {100 * report.confident:g} % confidence {short(model.name)} claims "
            f"{words.percent(sure.confidence)} and is right in {words.percent(sure.right)}: do not "
            "show its probabilities to people as they are.",
            sure.confidence - sure.right,
            "models.raw.confident_cases",
        )


def _heavy_tail(report: Report, model: ModelReport) -> Iterator[Risk]:
    """A rival whose worst mistakes are clearly less confident, at equal calibration."""
    lighter = []
    for pair in report.comparisons:
        if model.name not in (pair.a, pair.b) or pair.calibrated is None:
            continue
        test, own_first = pair.calibrated, pair.a == model.name
        more = test.index.difference if own_first else -test.index.difference
        if tails_differ(pair, report) and more > 0.0:
            own, other = test.index.a, test.index.b
            if not own_first:
                own, other = other, own
            lighter.append((other, pair.b if own_first else pair.a, own))
    if lighter:
        other, name, own = min(lighter)
        yield Risk(
            "heavy_tail",
            f"The tail of {short(model.name)} is heavier than that of {short(name)}: Fragility "
            f"Index {words.number(own)} against {words.number(other)} after calibration.",
            own - other,
            "comparisons",
        )


def _single_case(report: Report, model: ModelReport) -> Iterator[Risk]:
    """A case that makes much of the cost."""
    share = _largest_share(report, model)
    if share >= _RULES_THE_COST:
        yield Risk(
            "single_case",
            f"One case makes {100 * share:.0f} % of the cost of {short(model.name)}: without it "
            "the policy may be another.",
            share,
            "models.policy.notes",
        )


def _largest_share(report: Report, model: ModelReport) -> float:
    """Share of the cost that the dearest case makes; 0 if that is not known."""
    if model.dearest_share is not None:
        return model.dearest_share
    policy, confusion = model.policy, model.confusion
    if policy is None or confusion is None or report.weighted or report.costs is None:
        return 0.0
    if np.ndim(report.costs.error_cost) == 1:
        return 0.0
    matrix = report.costs.matrix(len(report.labels))
    seen = confusion[:, :-1] >= 0.5
    total = policy.cost * policy.n_samples
    return float((matrix * seen).max() / total) if total > 0.0 else 0.0


def _too_few_cases(report: Report, model: ModelReport) -> Iterator[Risk]:
    """Figures that the cases leave wide open."""
    policy, n = model.policy, words.count(report.n_samples)
    if policy is not None and policy.automation_rate > 0.0 and policy.error_rate == 0.0:
        alone = policy.automation_rate * policy.n_samples
        most = share_interval(0.0, alone, report.confidence).high
        done = "answered" if report.answers else "decided"
        yield Risk(
            "too_few_cases",
            f"No error was seen in {words.count(alone)} cases {done} alone: up to "
            f"{words.percent(most)} may be wrong.",
            most,
            "models.policy",
        )
        return
    if policy is not None and not isnan(policy.cost_interval.low) and policy.cost > 0.0:
        half = 0.5 * (policy.cost_interval.high - policy.cost_interval.low) / policy.cost
        if half > _WIDE:
            low, high = (report.context.money(CASES * end) for end in policy.cost_interval)
            yield Risk(
                "too_few_cases",
                f"{n} cases are few: they allow any cost from {low} to {high} per 1,000.",
                half,
                "models.policy.cost_interval",
            )
            return
    index = model.raw.figures["fragility_index"]
    limits = index.interval
    if limits is not None and limits.high == inf and 0.0 < index.value < inf:
        yield Risk(
            "too_few_cases",
            f"{n} cases are too few to bound the tail: its Fragility Index may be anything above "
            f"{words.number(limits.low)}.",
            inf,
            "models.raw.figures",
        )
