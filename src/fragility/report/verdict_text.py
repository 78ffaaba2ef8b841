"""The verdict in words: what to do, then what that saves."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from .._typing import Interval
from ..deferral.paired_costs import ALWAYS
from ..deferral.policy_text import why_not_proved
from . import words
from .context import CASES
from .words import shortened as short

if TYPE_CHECKING:
    from .report import Report
    from .verdict import Saving, Verdict

_BEST = {"cost": "cheapest", "log_loss": "best", "accuracy": "best"}
_TITLES = {"cost": "cost", "log_loss": "log-loss", "accuracy": "share of right answers"}


def verdict_sentences(report: Report, found: Verdict) -> tuple[str, ...]:
    """At most five: what to do, and why, what it saves, how humans do, and who was left out."""
    told = _Told(report, found)
    lines = told.what_to_do(), told.why(), told.what_it_saves(), told.humans()
    return tuple(filter(None, (*lines, told.who_is_left_out())))


def verdict_lines(report: Report, most: int = 5) -> list[str]:
    """The verdict and what can go wrong, in so many lines at most."""
    found = report.verdict
    return [*found.sentences, *(risk.text for risk in found.risks)][:most]


class _Told:
    """The sentences of a verdict."""

    def __init__(self, report: Report, found: Verdict) -> None:
        self._report, self._found = report, found
        self._model = next(model for model in report.models if model.name == found.subject)
        self._money, self._level = report.context.money, words.level(report.confidence)

    def what_to_do(self) -> str:
        found, n = self._found, words.count(self._report.n_samples)
        subject, others = short(found.subject), [n for n in found.tied if n != found.subject]
        if found.reason == "reversed":
            return self._report.findings[0].text
        if found.reason == "no separation":
            they = "the model" if len(found.know_nothing) == 1 else "the models"
            return f"None is to be used: {self._nothing(they)} ({_names(found.know_nothing)})."
        if self._none_alone:
            act = "answer" if self._report.answers else "decide"
            return f"No model is to {act} alone: {self._does()}."
        if found.reason == "capacity" and self._declined_too_often:
            return (
                f"{_names(self._declined_too_often)} declined more cases than can be reviewed at "
                f"the capacity of {self._capacity}: give more reviewers."
            )
        if found.reason == "capacity":
            return (
                "No policy keeps both the limits of errors and the capacity of "
                f"{self._capacity}: give more reviewers or looser limits."
            )
        if found.reason == "costs needed":
            left_out = (*found.know_nothing, *found.over_capacity)
            names = [m.name for m in self._report.models if m.name not in left_out]
            return (
                f"Which of {_names(names)} is better depends on what a wrong answer and a "
                "declined case cost: say so (--error-cost, --review-cost)."
            )
        if found.reason == "no test":
            return (
                f"{subject} has the best {_TITLES[found.basis]}, {self._value()}, but whether that "
                "is chance is not known: paired tests take the cases once more, which a merged "
                "state does not hold."
            )
        if found.reason == "tied":
            return (
                f"{n} cases cannot tell {_names(found.tied)} apart ({self._closest()}): take more "
                "cases, or choose by other reasons."
            )
        if others:
            return (
                f"Keep {subject}, the present model: {n} cases cannot tell it from "
                f"{_names(others)} ({self._closest()}); {self._does()}."
            )
        lead = f"Use {subject}" if len(self._report.models) > 1 else subject
        return f"{lead}: {self._does()}."

    def why(self) -> str:
        """Limits of errors that are not proved, so that less is decided alone."""
        policy = self._model.policy
        if policy is None or self._found.reason not in ("", "tied", "no test"):
            return ""
        parts = (why_not_proved(policy, part) for part in policy.guarantees if not part.kept)
        return " ".join(dict.fromkeys(parts))

    def what_it_saves(self) -> str:
        """Over the next best model, over no review and over full review."""
        found = self._found
        if self._none_alone:
            saved = next((part for part in found.savings if part.over == "no review"), None)
            subject = short(found.subject)
            return f"That {self._over(saved, f'{subject} without review')}." if saved else ""
        if found.reason == "tied":
            return f"The {_BEST[found.basis]} of them is {short(found.subject)}: {self._does()}."
        if found.reason:
            return ""
        told = []
        for saving in found.savings:
            if saving.kind == "review":
                told.append(self._over(saving, self._other_way(saving.over)))
            elif not told and len(found.tied) == 1:
                told.append(self._over(saving, f"{short(saving.over)}, the next best"))
        first, *rest = told or [""]
        if first.startswith("saves "):  # which is said once
            rest = [part.removeprefix("saves ") for part in rest]
        return f"It {_joined([first, *rest])}." if told else ""

    def humans(self) -> str:
        """What humans and the model cost alone, if decisions of humans are known."""
        policy = self._model.policy
        if policy is None or policy.reviewers is None or self._found.reason == "reversed":
            return ""
        found = policy.reviewers
        return (
            f"Humans alone cost {self._money(CASES * found.human.value)} per 1,000 and are wrong "
            f"in {words.percent(found.error_rate.value)}; {short(self._found.subject)} alone costs "
            f"{self._money(CASES * found.model.value)}."
        )

    def who_is_left_out(self) -> str:
        found = self._found
        if found.know_nothing and found.reason not in ("no separation", "reversed"):
            one = len(found.know_nothing) == 1
            return (
                f"{_names(found.know_nothing)} {'is' if one else 'are'} left out: "
                f"{self._nothing('it' if one else 'they')}."
            )
        if not found.over_capacity or found.reason in ("capacity", "reversed"):
            return ""
        one = len(found.over_capacity) == 1
        return (
            f"{_names(found.over_capacity)} {'is' if one else 'are'} left out: "
            f"{'it needs' if one else 'they need'} more reviews than the capacity of "
            f"{self._capacity} allows."
        )

    def _nothing(self, they: str) -> str:
        """What models that know nothing do not do."""
        one = len(self._found.know_nothing) == 1
        if self._report.answers:
            return f"{they} {'is' if one else 'are'} no surer of right answers than of wrong ones"
        return f"{they} {'does' if one else 'do'} not score what is true higher than what is not"

    def _does(self) -> str:
        """Policy and cost, or the figure that models were compared by."""
        report, policy = self._report, self._model.policy
        if policy is None:
            text = f"{_TITLES[self._found.basis]} {self._value()}"
            if len(report.models) > 1:
                return text
            figures = self._model.raw.figures
            beside = (f"{report.titles[n]} {words.number(figures[n].value)}" for n in _BESIDE)
            return (
                f"{text}, {', '.join(beside)}; when it may decide alone depends on what errors "
                "and reviews cost"
            )
        text = f"{policy.instruction()}, at {self._value()} per 1,000 cases"
        if (volume := report.context.volume) is not None:
            paid = self._money(policy.cost * volume.n)
            text += f", {paid} a {volume.per} for {volume.count} cases"
        wrong = words.percent(policy.error_rate)
        if policy.automation_rate == 1.0:
            return f"{text}; {wrong} of the cases wrong"
        if policy.automation_rate > 0.0:
            alone = "answered" if report.answers else "decided"
            text += f"; {words.percent(policy.automation_rate)} {alone} alone"
            if not isnan(policy.error_rate):
                text += f", {wrong} of these wrong"
        return text

    def _value(self) -> str:
        """What the model was chosen by, with its interval."""
        found = self._found
        if found.cost is None:
            figure = self._model.raw.figures[found.basis]
            return words.share(figure) if found.basis == "accuracy" else words.measured(figure)
        value, ends = self._money(found.cost.value), found.cost.interval
        if ends is None:
            return value
        return f"{value} ({self._level} {self._money(ends.low)} to {self._money(ends.high)})"

    def _closest(self) -> str:
        """Difference of the best two of those that cannot be told apart."""
        alike = (p for p in self._found.savings if p.kind == "model" and p.over in self._found.tied)
        saving = next(alike, None)
        if saving is None:
            return "there is no test"
        if saving.amount == 0.0:
            return "the same in every case" if saving.interval is None else "equal on average"
        low, high = (0.0, 0.0) if saving.interval is None else saving.interval
        if saving.amount < 0.0:  # the present model may be the dearer one
            low, high = -high, -low
        ends = "" if saving.interval is None else self._ends(Interval(low, high))
        why = f", no test: {saving.why_no_test}" if saving.why_no_test else ""
        if saving.interval is not None and not low <= 0.0 <= high:
            n_tests = sum(part.kind == "model" for part in self._found.savings)
            why = f", p = {saving.adjusted:.2g} corrected for {n_tests} tests"
        return f"{self._amount(abs(saving.amount))} apart{ends}{why}"

    def _over(self, saving: Saving, over: str) -> str:
        amount, ends = self._amount(abs(saving.amount)), saving.interval
        if saving.amount == 0.0:
            return f"is as good as {over}"
        if saving.amount < 0.0 and ends is not None:
            ends = Interval(-ends.high, -ends.low)
        does = {"cost": f"saves {amount} over", "log_loss": f"is {amount} below"}.get(
            self._found.basis, f"is right in {amount} of the cases more than"
        )
        if saving.amount < 0.0:
            does = f"costs {amount} more than"
        chance = "" if saving.certain else ", which could be chance"
        if saving.why_no_test == ALWAYS:
            chance = ", in every case"
        elif saving.why_no_test:
            chance = f", no test: {saving.why_no_test}"
        remark = f"{self._ends(ends)}{chance}".removeprefix(", ")
        return f"{does} {over} ({remark})" if remark else f"{does} {over}"

    def _amount(self, amount: float) -> str:
        if self._found.basis == "cost":
            return f"{self._money(CASES * amount)} per 1,000"
        return words.percent(amount) if self._found.basis == "accuracy" else words.number(amount)

    def _ends(self, interval: Interval | None) -> str:
        if interval is None:
            return ""
        if self._found.basis != "log_loss":
            ends = (self._percent_or_money(end) for end in interval)
            return f", {self._level} {' to '.join(ends)}"
        return f", {self._level} {words.interval(interval)}"

    def _percent_or_money(self, amount: float) -> str:
        if self._found.basis == "cost":
            return self._money(CASES * amount)
        return f"{100 * amount:.1f} %".replace("-", "−")

    def _other_way(self, over: str) -> str:
        costs = self._report.costs
        short_of = costs is not None and costs.capacity is not None and costs.capacity < 1.0
        if over == "full review" and short_of:
            return "full review, for which there are too few reviewers"
        return over

    @property
    def _none_alone(self) -> bool:
        """Whether of several models those that may be best decide nothing alone."""
        found, models = self._found, self._report.models
        if len(models) == 1 or found.reason not in ("", "tied", "no test"):
            return False
        policies = [model.policy for model in models if model.name in found.tied]
        return all(policy is not None and policy.automation_rate == 0.0 for policy in policies)

    @property
    def _declined_too_often(self) -> list[str]:
        """Models, if they all declined more cases than humans can review."""
        models = self._report.models
        often = [m.name for m in models if m.answers and m.answers.declined_share > self._reviewed]
        return often if len(often) == len(models) else []

    @property
    def _reviewed(self) -> float:
        """Largest share of the cases that humans can review."""
        costs = self._report.costs
        return 1.0 if costs is None or costs.capacity is None else float(costs.capacity)

    @property
    def _capacity(self) -> str:
        return words.percent(self._reviewed)


#: Figures that stand beside the one by which a single model without costs is told.
_BESIDE = ("auc", "calibration_error", "confident_error_rate")


def _names(names: Sequence[str]) -> str:
    return _joined([short(name) for name in names])


def _joined(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
