"""A policy in words: what to do, what that costs, and what is promised."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isinf, isnan, nan
from typing import TYPE_CHECKING

from .._names import seen, shortened
from .._summary import SummaryRow, percent, threshold
from .decision_rules import LossLimit, TwoThresholds

if TYPE_CHECKING:
    from .guarantees import Guarantee
    from .policy import Policy

_LONGEST_NAME = 60


def sentences(policy: Policy) -> list[str]:
    """What to do, what it costs, and what is promised, in about three lines."""
    compared = () if policy.reviewers is None else policy.reviewers.sentences()
    told = _what_to_do(policy), _what_it_costs(policy), *_promises(policy)
    return [*told, *compared, *policy.notes]


def _what_to_do(policy: Policy) -> str:
    share = percent(policy.automation_rate)
    told = instruction(policy)
    alone = "Answered" if policy.answers else "Decided"
    more = f" {alone} alone: {share}." if policy.automation_rate not in (0.0, 1.0) else ""
    return f"{told[0].upper()}{told[1:]}.{more}"


def instruction(policy: Policy) -> str:
    """What to do with a case, in a clause; thresholds are in per cent."""
    if isinstance(policy.decision, LossLimit):
        limit = f"{policy.decision.limit:.4g}"
        if policy.automation_rate == 0.0:
            return "a human reviews every case"
        if policy.automation_rate == 1.0:
            return "the model decides every case alone"
        what = "expected loss"
        if policy.decision.by_confidence:
            what, limit = "one minus the confidence", threshold(policy.decision.limit)
        return (
            f"the model decides alone where its {what} is at most {limit}, a human reviews the rest"
        )
    negative, positive = _sides(policy)
    lower, upper = policy.lower, policy.upper
    if policy.answers:
        return _answers_alone(upper)
    if lower == upper:
        if lower == 0.0 or isinf(lower):
            only = positive if lower == 0.0 else negative
            return f"decide {only} in every case, without a review"
        return f"decide {negative} below {threshold(lower)}, {positive} from there on; no review"
    parts = []
    if lower > 0.0:
        parts.append(f"{negative} below {threshold(lower)}")
    if upper < inf:
        parts.append(f"{positive} from {threshold(upper)} on")
    if not parts:
        return "a human reviews every case"
    return f"decide {', '.join(parts)}, a human reviews the rest"


def _what_it_costs(policy: Policy) -> str:
    low, high = policy.cost_interval
    parts = [
        f"Cost per case {policy.cost:.4g} ({100 * policy.confidence:g} % interval {low:.4g} to "
        f"{high:.4g}); without any review {policy.cost_without_review:.4g}, with full review "
        f"{policy.cost_review_all:.4g}{_beyond(policy)}"
    ]
    if errs_alone(policy):
        alone = "answers given alone" if policy.answers else "cases decided alone"
        parts.append(f"of the {alone} {percent(policy.error_rate)} are wrong")
    if not isnan(policy.misses):
        parts.append(
            f"{percent(policy.misses)} of the positives are missed, "
            f"{percent(policy.false_alarms)} of the negatives are false alarms"
        )
    return "; ".join(parts) + " (on new cases)."


def errs_alone(policy: Policy) -> bool:
    """Whether errors among cases decided alone are known, and there are such cases.

    Policies that other cases chose may decide some alone where this one decides none.
    """
    return policy.automation_rate > 0.0 and not isnan(policy.error_rate)


def _beyond(policy: Policy) -> str:
    """A remark on the cost of full review, if there are too few humans for it."""
    capacity = policy.costs.capacity
    return "" if capacity is None or capacity >= 1.0 else " (beyond the capacity)"


def _promises(policy: Policy) -> Iterator[str]:
    for part in policy.guarantees:
        if part.kept:
            yield (
                f"Guaranteed with {100 * part.level:g} % probability: {_limited(policy, part)}, "
                f"at most {part.percent}."
            )
        else:
            yield why_not_proved(policy, part)


def why_not_proved(policy: Policy, part: Guarantee) -> str:
    """What a limit that is not proved does to a policy, and why it is not."""
    never = {"max_misses": 1 - policy.positive, "max_false_alarms": policy.positive}
    if part.name in never:
        label = seen(policy.labels[never[part.name]])
        return f"The model never decides {label}, since {part.reason}."
    return f"Humans decide every case, since {part.reason}."


def _limited(policy: Policy, part: Guarantee) -> str:
    """What a guarantee limits: answers are given, not decided."""
    return part.words.replace("decided", "answered") if policy.answers else part.words


def rows(policy: Policy) -> Iterator[SummaryRow]:
    """Numbers with their names and notes."""
    level = f"{100 * policy.confidence:g}% interval"
    same = "same cost {} to {}"
    if isinstance(policy.decision, TwoThresholds):
        negative, positive = _sides(policy)
        if not policy.answers:
            yield (
                f"{negative} below"[:16],
                "none" if policy.lower == 0.0 else _threshold(policy.lower),
                same.format(*map(_threshold, policy.lower_interval)),
            )
        yield (
            "answer from" if policy.answers else f"{positive} from"[:16],
            _upper(policy.upper),
            same.format(*map(_upper, policy.upper_interval)),
        )
    else:
        limit = -inf if policy.automation_rate == 0.0 else policy.decision.limit
        between = same.format(*map(_loss, policy.lower_interval))
        yield "largest loss", _loss(limit), f"that is decided alone; {between}"
    low, high = policy.cost_interval
    yield "cost per case", f"{policy.cost:.4g}", f"{level} {low:.3g} to {high:.3g}"
    wrong = f"of these {percent(policy.error_rate)} wrong" if errs_alone(policy) else ""
    yield "decided alone", percent(policy.automation_rate), wrong
    if not isnan(policy.misses):
        alarms = f"false alarms {percent(policy.false_alarms)} of the negatives"
        yield "misses", percent(policy.misses), f"of the positives; {alarms}"
    yield "without review", f"{policy.cost_without_review:.4g}", "per case, at its best"
    yield "full review", f"{policy.cost_review_all:.4g}", f"per case{_beyond(policy)}"
    if policy.reviewers is not None:
        slips = policy.reviewers.error_rate
        low, high = slips.interval or (nan, nan)
        between = f"of all cases, {level} {percent(low)} to {percent(high)}"
        yield "human errors", percent(slips.value), between
    low, high = policy.fragility_interval
    between = f"{low:.3g} to {high:.3g}"
    if isinf(high):
        between = f"{low:.3g} or more"
    elif policy.fragility == 0.0:
        between = f"{high:.3g} or less"
    yield (
        "fragility",
        f"{policy.fragility:.3g}",
        f"of a cost above {policy.fragility_bound:.4g}, {level} {between}",
    )
    for part in policy.guarantees:
        words = "guaranteed" if part.kept else "not proved"
        yield words, f"{part.percent} at {100 * part.level:g}%", _limited(policy, part)
    for note in [*(p.reason for p in policy.guarantees if p.reason), *policy.notes]:
        yield "note", "", note
    yield "cases", str(policy.n_samples), "cost and errors: on new cases"


def _sides(policy: Policy) -> tuple[str, str]:
    """The negative and the positive class, in one line each."""
    negative, positive = policy.labels[1 - policy.positive], policy.labels[policy.positive]
    return shortened(seen(negative), _LONGEST_NAME), shortened(seen(positive), _LONGEST_NAME)


def _answers_alone(least: float) -> str:
    """From which confidence on answers are given."""
    if least == inf:
        return "pass every case on, a human answers"
    if least == 0.0:
        return "give every answer, without a review"
    return f"answer alone from a confidence of {threshold(least)} on, pass on the rest"


def _threshold(value: float) -> str:
    """What is below a threshold, in words: an infinite one is never reached, or always."""
    if isnan(value):
        return "-"
    return {inf: "all", -inf: "none"}.get(value, threshold(value))


def _upper(value: float) -> str:
    """What is decided from a threshold on, in words."""
    if isnan(value):
        return "-"
    return {inf: "none", 0.0: "all", -inf: "all"}.get(value, threshold(value))


def _loss(value: float) -> str:
    """A limit of the loss in words: an infinite one is kept always, or never."""
    if isnan(value):
        return "-"
    return {inf: "all", -inf: "none"}.get(value, f"{value:.4g}")
