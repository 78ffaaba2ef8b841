"""The verdict of a report: which model to use, how sure that is, and what it saves.

Models are compared in money, each at its own best policy; without costs by log-loss, answers by the
share that is right. A model is named only if paired tests rule out all others (Holm, over all pairs
of models). What cases cannot tell apart stays so, and the present model, if there is one, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import TYPE_CHECKING, Literal

from .._typing import Interval
from ..deferral.paired_costs import PairedCosts
from ..measured import Measured
from .comparing import holm
from .findings.registry import STOPS
from .parts import ModelReport
from .risks import Risk, risks

if TYPE_CHECKING:
    from .report import Report

#: What models are compared by.
Basis = Literal["cost", "log_loss", "accuracy"]
#: Why no model is named: the scores are those of another class, the cases cannot tell, no test
#: could be made, no policy keeps the capacity, or costs are needed; empty if one is.
Reason = Literal["", "reversed", "tied", "no test", "capacity", "costs needed"]
#: Costs are told for so many cases.
CASES = 1000


@dataclass(frozen=True)
class Saving:
    """What a model saves over something else, per case; a loss is negative.

    Attributes
    ----------
    over : str
        Name of a model, "no review" or "full review".
    amount : float
        Money; without costs the difference of the log-losses, or of the shares of right answers.
    interval : Interval, optional
        None, as for `p_value`, where too few cases make a difference.
    p_value : float
        Of no difference; against models it allows for the number of their pairs (Holm).
    certain : bool
        Whether the saving, or the loss, is more than chance at the level of the report.
    why_no_test : str
        Empty if there is one.
    """

    over: str
    amount: float
    interval: Interval | None
    p_value: float
    certain: bool
    why_no_test: str = ""


@dataclass(frozen=True)
class Verdict:
    """What to do, how sure that is, and what can go wrong.

    Attributes
    ----------
    model : str or None
        The model to use; None if the cases cannot tell, see `reason`.
    basis : {"cost", "log_loss", "accuracy"}
        What models were compared by.
    reason : str
        Why no model is named: "reversed", "tied", "no test", "capacity" or "costs needed"; else
        empty.
    by_tests : bool
        Whether tests rule out all other models. If not, the model is the only one, or the one in
        use today.
    tied : tuple of str
        Models that the cases cannot tell from the best, the best one first; it is among them.
    over_capacity : tuple of str
        Models that are left out, since their policies need more reviews than there is capacity.
    subject : str
        The model that all else is about: `model`, or the best of those that are tied.
    cost : Measured or None
        Cost of 1,000 cases at its policy, with its interval.
    alone, error_rate : float or None
        Share of the cases that it decides alone, and of errors among these, on new cases.
    savings : tuple of Saving
        Over the other models, then over no review and over full review.
    risks : tuple of Risk
        What can go wrong, at most four.
    sentences : tuple of str
        All of it in words: what to do, what it saves; those of the risks are theirs.
    """

    model: str | None
    basis: Basis
    reason: Reason
    by_tests: bool
    tied: tuple[str, ...]
    over_capacity: tuple[str, ...]
    subject: str
    cost: Measured | None
    alone: float | None
    error_rate: float | None
    savings: tuple[Saving, ...]
    risks: tuple[Risk, ...]
    sentences: tuple[str, ...] = ()


def verdict(report: Report) -> Verdict:
    """The verdict of a report, without its sentences."""
    basis = _basis(report)
    kept = {model.name: model for model in report.models}
    over: tuple[str, ...] = ()
    if basis == "cost":
        over = tuple(sorted(name for name, m in kept.items() if not _within_capacity(m)))
        if len(over) < len(kept):
            kept = {name: model for name, model in kept.items() if name not in over}
    value = _values(basis)
    ranked = sorted(kept, key=lambda name: (value(kept[name]), name))
    best, tests = ranked[0], _tests(report, basis)
    alike = [name for name in ranked[1:] if not _is_worse(tests, name, best, report)]
    tied, against = (best, *alike), report.context.against
    model: str | None = best
    reason: Reason = ""
    if any(finding.code == STOPS.code for finding in report.findings):
        model, reason = None, "reversed"
    elif len(over) == len(report.models):
        model, reason = None, "capacity"
    elif alike:
        model, reason = None, "tied"
        if not any((best, name) in tests for name in alike):
            reason = "no test"
        if basis == "accuracy" and _any_declined(report):
            reason = "costs needed"
        if against in tied:
            model, reason = against, ""
    subject = model or best
    policy = {m.name: m.policy for m in report.models}[subject]
    cost = alone = error_rate = None
    if policy is not None:
        low, high = policy.cost_interval
        ends = None if isnan(low) else Interval(CASES * low, CASES * high)
        cost = Measured(CASES * policy.cost, ends)
        alone, error_rate = policy.automation_rate, policy.error_rate
    return Verdict(
        model,
        basis,
        reason,
        model is not None and not alike and len(ranked) > 1,
        tied,
        over,
        subject,
        cost,
        alone,
        error_rate,
        tuple(_savings(report, basis, subject, tests)),
        () if reason == "reversed" else risks(report, subject),
    )


def _basis(report: Report) -> Basis:
    if all(model.policy is not None for model in report.models):
        return "cost"
    return "accuracy" if report.answers else "log_loss"


def _within_capacity(model: ModelReport) -> bool:
    return model.policy is not None and model.policy.within_capacity


def _any_declined(report: Report) -> bool:
    return any(model.answers is not None and model.answers.declined for model in report.models)


def _values(basis: Basis) -> Callable[[ModelReport], float]:
    """What is to be small."""

    def value(model: ModelReport) -> float:
        if basis == "cost":
            return model.policy.cost if model.policy is not None else nan
        found = model.raw.figures[basis].value
        return -found if basis == "accuracy" else found

    return value


@dataclass(frozen=True)
class _Test:
    """What one model has more than another of what is to be small."""

    difference: float
    interval: Interval
    p_value: float
    why_no_test: str = ""


def _tests(report: Report, basis: Basis) -> Mapping[tuple[str, str], _Test]:
    """Tests of every two models, both ways round; none where the cases were not read again."""
    if basis == "accuracy" and _any_declined(report):
        return {}  # of other cases each
    found: dict[tuple[str, str], _Test] = {}
    pairs = [pair for pair in report.comparisons if basis != "cost" or pair.cost is not None]
    if basis == "cost":
        tests = [pair.cost.test for pair in pairs if pair.cost is not None]
        adjusted = [pair.cost.p_value for pair in pairs if pair.cost is not None]
        known = [
            _Test(t.difference, t.interval, p, t.why_no_test)
            for t, p in zip(tests, adjusted, strict=True)
        ]
    else:
        sign = -1.0 if basis == "accuracy" else 1.0
        given = [pair.raw.tests[basis] for pair in pairs]
        # Corrected for what the verdict asks, the pairs of models, not for all figures.
        adjusted = holm([test.p_value for test in given])
        known = [
            _Test(sign * t.difference, _signed(t.interval, sign), p)
            for t, p in zip(given, adjusted, strict=True)
        ]
    for pair, test in zip(pairs, known, strict=True):
        turned = replace(test, difference=-test.difference, interval=_signed(test.interval, -1.0))
        found[pair.a, pair.b], found[pair.b, pair.a] = test, turned
    return found


def _signed(interval: Interval, sign: float) -> Interval:
    low, high = sign * interval.low, sign * interval.high
    return Interval(low, high) if sign > 0.0 else Interval(high, low)


def _is_worse(tests: Mapping[tuple[str, str], _Test], name: str, best: str, report: Report) -> bool:
    test = tests.get((name, best))
    return test is not None and test.p_value < 1.0 - report.confidence and test.difference > 0.0


def _savings(
    report: Report, basis: Basis, subject: str, tests: Mapping[tuple[str, str], _Test]
) -> list[Saving]:
    level = 1.0 - report.confidence
    others = sorted(
        (m for m in report.models if m.name != subject),
        key=lambda model: (_values(basis)(model), model.name),
    )
    found = []
    for model in others:
        test = tests.get((model.name, subject))
        if test is not None:
            ends = None if isnan(test.p_value) else test.interval
            certain = test.p_value < level
            amount = test.difference + 0.0  # never minus zero
            told = ends, test.p_value, certain, test.why_no_test
            found.append(Saving(model.name, amount, *told))
    policy = next(model.policy for model in report.models if model.name == subject)
    if policy is not None:
        for over, paired in (
            ("no review", policy.against_no_review),
            ("full review", policy.against_full_review),
        ):
            if paired is not None:
                found.append(_against(over, paired, level))
    return found


def _against(over: str, test: PairedCosts, level: float) -> Saving:
    ends = None if isnan(test.p_value) else _signed(test.interval, -1.0)
    certain = test.p_value < level
    told = ends, test.p_value, certain, test.why_no_test
    return Saving(over, 0.0 - test.difference, *told)
