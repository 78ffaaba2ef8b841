"""Findings about thresholds: at which confidence a model may act alone, and what that costs."""

from __future__ import annotations

from math import isnan, log
from typing import TYPE_CHECKING

import numpy as np

from ...deferral.cross_fitting import ROUNDING, first_of_least
from .. import words
from ..parts import ModelReport
from ..text import level
from ..words import shortened as short
from .basis import Sentences, of_each_model

if TYPE_CHECKING:
    from ..report import Report


def cheapest(report: Report) -> Sentences:
    """Which model costs least, each at its own threshold; none if two cost the same."""
    known = [(m.name, m.raw.figures["cost"]) for m in report.models if m.raw.threshold is not None]
    if len(known) < 2:
        return
    values = np.array([cost.value for _, cost in known])
    tolerance = ROUNDING * values.max()
    best = int(first_of_least(values, tolerance))
    others = np.where(np.arange(values.size) == best, np.inf, values)
    second = int(first_of_least(others, tolerance))
    if values[second] <= values[best] + tolerance:
        return
    (name, cost), (other_name, other_cost) = known[best], known[second]
    text = (
        f"{short(name)} is the cheapest, {words.amount(cost)} per case; next is "
        f"{short(other_name)} with {words.amount(other_cost)}"
    )
    ends = cost.interval, other_cost.interval
    if ends[0] is not None and ends[1] is not None and ends[0].high >= ends[1].low:
        text += "; the intervals overlap"
    yield text + ".", [name, other_name]


@of_each_model
def act_alone(report: Report, model: ModelReport) -> str | None:
    """When a model may decide alone, and what that saves."""
    found = model.raw.threshold
    if found is None:
        return None
    name, cost = short(model.name), words.amount(model.raw.figures["cost"])
    ways = {
        "humans review every case": found.cost_review_all,
        "they review none": found.cost_automate_all,
    }
    if isnan(found.cost_review_all):
        ways = {"humans review none": found.cost_automate_all}
    against = " and ".join(f"{words.money(price)} if {way}" for way, price in ways.items())
    # The cost of a threshold is measured on cases that did not choose it, and may disappoint.
    prices = np.array([*ways.values(), found.cost])
    lowest = int(first_of_least(prices, ROUNDING * prices.max()))
    better = list(ways)[lowest] if lowest < len(ways) else ""
    if found.automation_rate == 1.0:
        text = f"{name} may decide every case alone at these costs: {cost} per case"
    elif better.endswith("review none"):
        text = (
            f"{name} may decide every case alone at these costs: its threshold costs {cost} per "
            "case"
        )
    elif found.automation_rate == 0.0 or better:
        text = (
            f"No confidence of {name} is worth trusting at these costs: its threshold costs {cost} "
            "per case"
        )
    else:
        text = (
            f"{name} may decide alone above {words.percent(found.threshold)} confidence, "
            f"{words.percent(found.automation_rate)} of the cases, with "
            f"{words.percent(found.error_rate)} errors: {cost} per case"
        )
    return f"{text}, against {against}."


@of_each_model
def trust_chow(report: Report, model: ModelReport) -> str | None:
    """Too few cases to find a better threshold than Chow's rule."""
    found = model.raw.threshold
    if found is None or not found.gap_interval.high < 0.0:
        return None
    return (
        f"These cases are too few to choose a threshold for {short(model.name)} by: one found on "
        f"some of them costs {words.money(-found.gap)} more per case on the others than Chow's "
        f"rule, which costs {words.money(found.chow_cost)} (alone above "
        f"{words.percent(found.chow_threshold)})."
    )


@of_each_model
def chow_gap(report: Report, model: ModelReport) -> str | None:
    """What it would cost to take the confidence of a model at its word."""
    found = model.raw.threshold
    if found is None or not found.gap_interval.low > 0.0:
        return None
    direction = "over" if found.threshold > found.chow_threshold else "under"
    if direction == "under" and found.gap_interval.low <= _unseen_mistakes(report):
        return None  # few cases seldom show what is rare but dear
    return (
        f"{short(model.name)} is {direction}confident where it matters: taken at its word (Chow's "
        f"rule, alone above {words.percent(found.chow_threshold)}) it costs "
        f"{words.money(found.chow_cost)} per case; alone above {words.percent(found.threshold)} it "
        f"costs {words.money(found.cost)}. The gap is {words.money(found.gap)} per case "
        f"({level(report)} {words.money(found.gap_interval.low)} to "
        f"{words.money(found.gap_interval.high)}), {words.count(1000 * found.gap)} per thousand "
        "cases."
    )


def _unseen_mistakes(report: Report) -> float:
    """Cost per case of as many mistakes as other cases may have although these have none."""
    assert report.costs is not None
    alpha = 1.0 - report.confidence
    return -log(alpha) * float(np.max(report.costs.error_cost)) / report.n_samples
