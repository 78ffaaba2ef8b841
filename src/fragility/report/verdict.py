"""The verdict of a report: which model to use, how sure that is, and what it saves.

Models are compared in money, each at its own best policy; without costs by log-loss, answers by the
share that is right (the log-loss of answers that differ says nothing). A model is named only if
paired tests of the best one against each of the others rule them out (Holm, over these tests). What
cases cannot tell apart stays so, and the present model, if there is one, stays. A model that does
not tell the classes apart, or whose policy needs more reviews than there is capacity, is never
named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Literal

from .._typing import Interval
from ..deferral.paired_costs import ALWAYS, PairedCosts
from ..measured import Measured
from .comparing import holm
from .context import CASES
from .findings.registry import STOPS
from .parts import ModelReport
from .risks import Risk, risks

if TYPE_CHECKING:
    from .report import Report

#: What models are compared by.
Basis = Literal["cost", "log_loss", "accuracy"]
#: Why no model is named: the scores are those of another class, or tell nothing, the cases cannot
#: tell, no test could be made, no policy keeps the capacity, or costs are needed; empty if one is.
Reason = Literal["", "reversed", "no separation", "tied", "no test", "capacity", "costs needed"]
_UNDEFINED = Interval(nan, nan)


@dataclass(frozen=True)
class Saving:
    """What a model saves over something else, per case; a loss is negative.

    Attributes
    ----------
    over : str
        Name of a model, "no review" or "full review".
    kind : {"model", "review"}
    amount : float
        Money; without costs the difference of the log-losses, or of the shares of right answers.
    interval : Interval, optional
        None, as for `p_value`, where too few cases make a difference.
    p_value : float
        Of no difference; against models it is of that pair alone, `adjusted` allows for all tests
        against the best one (Holm).
    certain : bool
        Whether the saving, or the loss, is more than chance at the level of the report.
    why_no_test : str
        Empty if there is one.
    """

    over: str
    kind: Literal["model", "review"]
    amount: float
    interval: Interval | None
    p_value: float
    adjusted: float
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
        Why no model is named: "reversed", "no separation", "tied", "no test", "capacity" or "costs
        needed"; else empty.
    by_tests : bool
        Whether tests rule out all other models. If not, the model is the only one, or the one in
        use today.
    tied : tuple of str
        Models that the cases cannot tell from the best, the best one first; it is among them.
    over_capacity : tuple of str
        Models that are left out, since their policies need more reviews than there is capacity.
    know_nothing : tuple of str
        Models that are left out, since they do not tell the classes apart.
    subject : str
        The model that all else is about: `model`, or the best of those that are tied.
    cost : Measured or None
        Cost of 1,000 cases at its policy, with its interval.
    alone, error_rate : float or None
        Share of the cases that its thresholds decide alone, and of errors among those decided
        alone on new cases.
    savings : tuple of Saving
        Over the other models, then over no review and over full review.
    risks : tuple of Risk
        What can go wrong, at most four.
    sentences : tuple of str
        All of it in words: what to do, why, what it saves; those of the risks are theirs.
    """

    model: str | None
    basis: Basis
    reason: Reason
    by_tests: bool
    tied: tuple[str, ...]
    over_capacity: tuple[str, ...]
    know_nothing: tuple[str, ...]
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
    every = {model.name: model for model in report.models}
    nothing = tuple(sorted(name for name, model in every.items() if _knows_nothing(model)))
    over: tuple[str, ...] = ()
    if basis == "cost":
        over = tuple(sorted(name for name, m in every.items() if not _within_capacity(m)))
    kept = [name for name in every if name not in over and name not in nothing]
    value = _values(basis)
    ranked = sorted(kept or every, key=lambda name: (value(every[name]), name))
    best = ranked[0]
    tests = _tests(report, basis, best, ranked[1:])
    alike = [name for name in ranked[1:] if not tests[name].is_worse(report)]
    tied, against = (best, *alike), report.context.against
    model: str | None = best
    reason: Reason = ""
    if any(finding.code == STOPS.code for finding in report.findings):
        model, reason = None, "reversed"
    elif not kept:
        model, reason = None, "no separation" if len(nothing) == len(every) else "capacity"
    elif basis == "accuracy" and len(ranked) > 1 and _any_declined(report):
        model, reason = None, "costs needed"
    elif alike and all(tests[name].missing for name in alike):
        model, reason = None, "no test"
    elif alike:
        model, reason = (against, "") if against in tied else (None, "tied")
    subject = model or best
    policy = every[subject].policy
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
        nothing,
        subject,
        cost,
        alone,
        error_rate,
        tuple(_savings(report, basis, subject, ranked)),
        () if reason == "reversed" else risks(report, subject),
    )


def _basis(report: Report) -> Basis:
    if all(model.policy is not None for model in report.models):
        return "cost"
    return "accuracy" if report.answers else "log_loss"


def _within_capacity(model: ModelReport) -> bool:
    return model.policy is not None and model.policy.within_capacity


def _knows_nothing(model: ModelReport) -> bool:
    """Whether its scores are constant, or not higher for what is true, on average."""
    found = model.raw.figures
    return isnan(found["ratio"].value) or found["fragility_index"].value == inf


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
    """What one model has more than another of what is to be small.

    `missing` says that the cases were not read again.
    """

    difference: float = nan
    interval: Interval = _UNDEFINED
    p_value: float = nan
    adjusted: float = nan
    why_no_test: str = ""
    missing: bool = False

    def is_worse(self, report: Report) -> bool:
        """Whether it has more, by more than chance, or in every case the same."""
        always = self.why_no_test == ALWAYS and self.difference > 0.0
        return always or (self.adjusted < 1.0 - report.confidence and self.difference > 0.0)


def _tests(report: Report, basis: Basis, subject: str, others: Sequence[str]) -> dict[str, _Test]:
    """Tests of other models against one, corrected for their number."""
    found = {name: _test(report, basis, name, subject) for name in others}
    adjusted = holm([test.p_value for test in found.values()])
    return {
        name: replace(test, adjusted=p)
        for (name, test), p in zip(found.items(), adjusted, strict=True)
    }


def _test(report: Report, basis: Basis, a: str, b: str) -> _Test:
    """What `a` has more than `b`."""
    pair = next((p for p in report.comparisons if {p.a, p.b} == {a, b}), None)
    if pair is None or (basis == "cost" and pair.cost is None):
        return _Test(missing=True)
    sign = 1.0 if pair.a == a else -1.0
    if basis == "cost" and pair.cost is not None:
        of_costs = pair.cost.test
        why, difference, interval = of_costs.why_no_test, of_costs.difference, of_costs.interval
        p_value = of_costs.p_value
    else:
        test, why = pair.raw.tests[basis], ""
        difference, interval, p_value = test.difference, test.interval, test.p_value
        sign *= -1.0 if basis == "accuracy" else 1.0
    return _Test(sign * difference, _signed(interval, sign), p_value, nan, why)


def _signed(interval: Interval, sign: float) -> Interval:
    low, high = sign * interval.low, sign * interval.high
    return Interval(low, high) if sign > 0.0 else Interval(high, low)


def _savings(report: Report, basis: Basis, subject: str, ranked: Sequence[str]) -> list[Saving]:
    """Over the other models that may be named, the best one first, and over other ways."""
    level, found = 1.0 - report.confidence, []
    tests = _tests(report, basis, subject, [name for name in ranked if name != subject])
    for name, test in tests.items():
        if test.missing:
            continue
        ends = None if isnan(test.p_value) else test.interval
        amount = test.difference + 0.0  # never minus zero
        certain = test.adjusted < level or (test.why_no_test == ALWAYS and amount != 0.0)
        told = test.p_value, test.adjusted, certain, test.why_no_test
        found.append(Saving(name, "model", amount, ends, *told))
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
    amount, why = 0.0 - test.difference, test.why_no_test
    certain = test.p_value < level or (why == ALWAYS and amount != 0.0)
    return Saving(over, "review", amount, ends, test.p_value, test.p_value, certain, why)
