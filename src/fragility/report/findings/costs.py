"""At which confidence a model may act alone, and what that costs."""

from __future__ import annotations

from math import isnan, log

import numpy as np

from .. import words
from ..parts import ModelReport, ThresholdFigures
from ..words import shortened as short
from .basis import Figures, Sentences


def cheapest(figures: Figures) -> Sentences:
    """Which model costs least, each at its own threshold."""
    known = sorted(_with_threshold(figures), key=lambda pair: pair[1].cost.value)
    if len(known) < 2:
        return
    (best, found), (second, other) = known[:2]
    if found.cost.value == other.cost.value:
        return
    text = (
        f"{short(best.name)} is the cheapest, {words.amount(found.cost)} per case; next is "
        f"{short(second.name)} with {words.amount(other.cost)}"
    )
    ends = found.cost.interval, other.cost.interval
    if ends[0] is not None and ends[1] is not None and ends[0].high >= ends[1].low:
        text += "; the intervals overlap"
    yield text + ".", [best.name, second.name]


def act_alone(figures: Figures) -> Sentences:
    """When a model may decide, and what that saves."""
    for model, found in _with_threshold(figures):
        name, cost = short(model.name), words.amount(found.cost)
        simple = {
            "humans review every case": found.review_all,
            "they review none": found.automate_all,
        }
        allowed = {way: price for way, price in simple.items() if not isnan(price)}
        if list(allowed) == ["they review none"]:
            allowed = {"humans review none": found.automate_all}
        against = " and ".join(f"{words.money(allowed[way])} if {way}" for way in allowed)
        # What a threshold costs is measured on cases that did not choose it, and may disappoint.
        better = [way for way, price in allowed.items() if price <= found.cost.value]
        if found.automation_rate == 1.0:
            text = f"{name} may decide every case alone at these costs: {cost} per case"
        elif better and min(allowed, key=allowed.__getitem__).endswith("review none"):
            text = (
                f"{name} may decide every case alone at these costs: its threshold costs {cost} "
                "per case"
            )
        elif found.automation_rate == 0.0 or better:
            text = (
                f"No confidence of {name} is worth trusting at these costs: its threshold costs "
                f"{cost} per case"
            )
        else:
            text = (
                f"{name} may decide alone above {words.percent(found.threshold)} confidence, "
                f"{words.percent(found.automation_rate)} of the cases, with "
                f"{words.percent(found.error_rate)} errors: {cost} per case"
            )
        yield f"{text}, against {against}.", [model.name]


def trust_chow(figures: Figures) -> Sentences:
    """Too few cases to find a better threshold than the textbook's."""
    for model, found in _with_threshold(figures):
        if found.gap_interval is None or not found.gap_interval.high < 0.0:
            continue
        yield (
            f"These cases are too few to choose a threshold for {short(model.name)} by: one found "
            f"on some of them costs {words.money(-found.gap)} more per case on the others than "
            f"Chow's rule, which costs {words.money(found.chow_cost)} (alone above "
            f"{words.percent(found.chow_threshold)}).",
            [model.name],
        )


def chow_gap(figures: Figures) -> Sentences:
    """What trusting the confidence as it is would cost."""
    for model, found in _with_threshold(figures):
        if found.gap_interval is None or not found.gap_interval.low > 0.0:
            continue
        direction = "over" if found.threshold > found.chow_threshold else "under"
        if direction == "under" and found.gap_interval.low <= _unseen_mistakes(figures):
            continue  # few cases seldom show what is rare but dear
        yield (
            f"{short(model.name)} is {direction}confident where it matters: taken at its word "
            f"(Chow's rule, alone above {words.percent(found.chow_threshold)}) it costs "
            f"{words.money(found.chow_cost)} per case; alone above "
            f"{words.percent(found.threshold)} it costs {words.money(found.cost.value)}. The gap "
            f"is {words.money(found.gap)} per case ({figures.level} "
            f"{words.money(found.gap_interval.low)} to {words.money(found.gap_interval.high)}), "
            f"{words.count(1000 * found.gap)} per thousand cases.",
            [model.name],
        )


def _unseen_mistakes(figures: Figures) -> float:
    """Cost per case of as many mistakes as may happen in other cases though none did in these."""
    assert figures.costs is not None
    return -log(figures.alpha) * float(np.max(figures.costs.error_cost)) / figures.n


def _with_threshold(figures: Figures) -> list[tuple[ModelReport, ThresholdFigures]]:
    return [(m, m.raw.threshold) for m in figures.models if m.raw.threshold is not None]
