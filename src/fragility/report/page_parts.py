"""Parts of the page that are words: the verdict in four numbers, the costs, the table of models."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._summary import threshold
from .._typing import Interval
from ..measured import Measured
from . import words
from .page_data import cut_by, kind_of, starting_costs
from .parts import ModelReport

if TYPE_CHECKING:
    from ..deferral.policy import Policy
    from .report import Report

#: Risks, and rules of findings, that say something about costs.
COST_RISKS = frozenset({"dearest_group", "single_case", "too_few_cases"})
COST_RULES = frozenset({"cheapest", "who_decides", "costly_group"})


class Number(NamedTuple):
    """A large number with its title and what is to know of it."""

    title: str
    value: str
    note: str


class ModelRow(NamedTuple):
    """A model in the table of models: its full name, its short one, and its cost on new cases."""

    name: str
    shown: str
    new_cases: str


def finding_texts(report: Report, *, cases: bool) -> list[str]:
    """Sentences of the findings; without `cases` that on a dominant case does not name it."""
    texts = [finding.text for finding in report.findings]
    for model in report.models if not cases else ():
        for note in () if model.policy is None else model.policy.notes:
            bare = re.sub("^One case, .*, makes ", "One case makes ", note, flags=re.DOTALL)
            texts = [text.replace(note, bare) for text in texts]
    return texts


def verdict_numbers(report: Report) -> list[Number]:
    """The four large numbers of the verdict; without costs those of the best model."""
    found = report.verdict
    model = next(model for model in report.models if model.name == found.subject)
    if model.policy is None or found.cost is None:
        return _without_costs(report, model)
    policy, money, level = model.policy, report.context.money, words.level(report.confidence)
    ends = found.cost.interval
    alone = "answered alone" if report.answers else "decided alone"
    return [
        Number(
            "cost of 1,000 new cases",
            money(found.cost.value),
            "" if ends is None else f"{level} {money(ends.low)} to {money(ends.high)}",
        ),
        Number(alone, words.percent(policy.automation_rate), "of all cases; humans have the rest"),
        Number("wrong of these", words.wrong_of_alone(policy), "of new cases"),
        _thresholds(report, policy),
    ]


def _without_costs(report: Report, model: ModelReport) -> list[Number]:
    names = [name for name in ("log_loss", "auc", "calibration_error") if name in report.titles]
    found = []
    for name in names:
        figure = model.raw.figures[name]
        ends = "" if figure.interval is None else words.interval(figure.interval)
        note = f"{words.level(report.confidence)} {ends}" if ends else ""
        found.append(Number(report.titles[name], words.number(figure.value), note))
    sure = model.raw.confident
    title = f"wrong above {100 * report.confident:g} % confidence"
    share = "–" if sure.n == 0 else words.percent(sure.n_wrong / sure.n)
    return [*found, Number(title, share, f"{words.count(sure.n_wrong)} of {words.count(sure.n)}")]


def _thresholds(report: Report, policy: Policy) -> Number:
    kind = kind_of(report)
    if kind == "several":
        from ..deferral.decision_rules import LossLimit

        assert isinstance(policy.decision, LossLimit)
        limit, by = policy.decision.limit, cut_by(report)
        told = "always" if limit == inf else _told(limit, by)
        told = "never" if policy.automation_rate == 0.0 else told
        what = "an expected loss" if by == "loss" else "one minus the confidence"
        same = f"same cost: {_range(policy.lower_interval, by)}"
        return Number(f"alone up to {what} of", told, same)
    upper = words.FROM.get(policy.upper, threshold(policy.upper))
    same_upper = words.thresholds(policy.upper_interval, words.FROM)
    if kind == "answers":
        return Number("answer alone from a confidence of", upper, f"same cost: {same_upper}")
    negative = next(label for label in report.labels if label != report.positive)
    title = f"{words.shortened(negative)} below · {words.shortened(report.positive)} from"
    lower = words.BELOW.get(policy.lower, threshold(policy.lower))
    same_lower = words.thresholds(policy.lower_interval, words.BELOW)
    return Number(title, f"{lower} · {upper}", f"same cost: {same_lower} · {same_upper}")


def _told(end: float, by: str) -> str:
    return f"{end:.4g}" if by == "loss" else threshold(end)


def _range(ends: Interval, by: str) -> str:
    return " to ".join({inf: "all", -inf: "none"}.get(end, _told(end, by)) for end in ends)


def model_rows(report: Report) -> list[ModelRow]:
    """Every model with what it costs on new cases."""
    rows = []
    for model in report.models:
        told = "–"
        if model.policy is not None:
            told = report.context.cost(Measured(model.policy.cost, model.policy.cost_interval))
            if not model.policy.within_capacity:
                told += ", over capacity"
        rows.append(ModelRow(model.name, words.shortened(model.name), told))
    return rows


def fields(report: Report) -> list[tuple[str, str]]:
    """Costs to enter: key and label."""
    start, kind = starting_costs(report), kind_of(report)
    unit = f" ({words.shortened(report.context.currency)})" if report.context.currency else ""
    if start["factor"]:
        errors = [("err", "Errors cost, times those of the report")]
    elif kind == "two":
        errors = [("miss", f"A miss costs{unit}"), ("alarm", f"A false alarm costs{unit}")]
    else:
        what = "A wrong answer" if kind == "answers" else "An error"
        errors = [("err", f"{what} costs{unit}")]
    reviewers = "Reviewers err in (% of reviews)"
    if start["slip_factor"]:
        reviewers = "Reviewers’ errors, times those of the report"
    return [
        *errors,
        ("man", f"A review costs{unit}"),
        ("cap", "Reviews at most (% of cases)"),
        ("rev", reviewers),
    ]


def costs_in_words(report: Report) -> str:
    """The costs that all fixed numbers of the page are for."""
    start, kind, money = starting_costs(report), kind_of(report), report.context.money
    if start["factor"]:
        each = "case" if np.ndim(report.costs.error_cost) == 1 else "pair of classes"  # type: ignore[union-attr]
        errors = f"errors by {each}"
    elif kind == "two":
        errors = f"a miss {money(start['miss'])}, a false alarm {money(start['alarm'])}"
    else:
        errors = f"an error {money(start['alarm'])}"
    told = [errors, f"a review {money(start['man'])}"]
    if start["cap"] < 1.0:
        told.append(f"reviews at most {words.percent(start['cap'])}")
    if start["slip_factor"]:
        told.append("reviewers who err unequally")
    elif start["rev"] > 0.0:
        told.append(f"reviewers who err in {words.percent(start['rev'])}")
    return ", ".join(told)
