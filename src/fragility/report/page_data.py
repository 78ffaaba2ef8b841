"""Data of the page of a report: one JSON object of aggregates, for its script."""

from __future__ import annotations

import json
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._typing import Floats, Interval
from ..deferral import Costs
from ..measured import Measured
from . import data, words
from .group_text import name_of, speaks_of_costs
from .parts import ModelFigures, ModelReport
from .policy_cells import GRID, PolicyCells

if TYPE_CHECKING:
    from ..figures.reliability import ReliabilityCurve
    from .report import Report

#: Costs that the page starts with if none were given.
SUGGESTED = Costs(10.0, 1.0)
#: Points of a curve, and rows of groups, that are drawn; tables have the others.
_MOST_POINTS, _MOST_GROUPS = 60, 24
#: Significant digits of sums of costs, of what is chosen by, of what is drawn; of weights, beside
#: the weight of all cases.
_DIGITS, _CHOOSING_DIGITS, _DRAWN_DIGITS, _WEIGHT_DIGITS = 8, 6, 4, 8


def page_data(report: Report) -> dict[str, Any]:
    """Data for the script of the page, in values that strict JSON can hold.

    Infinity is the text "Infinity", an undefined number is None. Numbers of cases are exact,
    weights to a hundred millionth of the weight of all cases. No single case is in it.

    Examples
    --------
    >>> from fragility import Report
    >>> from fragility.report.page_data import page_data
    >>> report = Report.from_predictions([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8], calibrate=False)
    >>> page_data(report)["models"][0]["cells"]["wrong"]
    [[0, 1, 0, 1], [1, 0, 1, 0]]
    """
    cells = [model.cells for model in report.models]
    total = float(cells[0].weight.sum()) + cells[0].declined
    decimals = _WEIGHT_DIGITS - floor(log10(total)) if report.weighted else 0
    found: dict[str, Any] = data.strict(
        {
            "total": _whole(round(total, decimals)),
            "kind": kind_of(report),
            "by": cut_by(report),
            "labels": [words.shortened(label) for label in report.labels],
            "positive": None if report.positive is None else report.labels.index(report.positive),
            "grid": GRID[GRID < 0.5].tolist() if len(report.labels) == 2 else None,
            "costs": starting_costs(report),
            "currency": report.context.currency and words.shortened(report.context.currency),
            "z": float(-ndtri((1.0 - report.confidence) / 2.0)),
            "subject": [model.name for model in report.models].index(report.verdict.subject),
            "cheapest": cheapest_on_new_cases(report),
            "models": [
                _model(model, decimals, of_two=kind_of(report) != "several")
                for model in report.models
            ],
            "groups": _groups(report),
        }
    )
    return found


def script_json(found: dict[str, Any]) -> str:
    r"""The data as JSON to stand in a script element, which nothing in it can end.

    Examples
    --------
    >>> from fragility.report.page_data import script_json
    >>> print(script_json({"labels": ["</script>"], "models": []}))
    {"labels":["\u003c/script\u003e"],"models":[]}
    """
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def kind_of(report: Report) -> str:
    """What policies cut: "two" classes by a score, "answers" by their confidence, or "several"."""
    if report.answers:
        return "answers"
    return "two" if len(report.labels) == 2 else "several"


def cut_by(report: Report) -> str:
    """What is cut: a "score"; of several classes the "loss", "confidence", or its "rest" to one."""
    if kind_of(report) != "several":
        return "score"
    policies = [model.policy for model in report.models if model.policy is not None]
    if not policies:
        return "confidence"
    return "rest" if policies[0].rule == "confidence" else "loss"


def cheapest_on_new_cases(report: Report) -> int | None:
    """Place of the model that costs least at its policy and keeps the capacity, if there is one."""
    costs = {
        place: model.policy.cost
        for place, model in enumerate(report.models)
        if model.policy is not None and model.policy.within_capacity
    }
    return min(costs, key=lambda place: (costs[place], place)) if costs else None


def starting_costs(report: Report) -> dict[str, Any]:
    """Costs that the page starts with, those of the report.

    `factor` says that errors do not all cost the same: what is entered multiplies what they cost.
    `slip_factor` says the same of the errors of reviewers.
    """
    costs = SUGGESTED if report.costs is None else report.costs
    cells = report.models[0].cells
    kind = kind_of(report)
    error = np.asarray(costs.error_cost, dtype=np.float64)
    factor = error.ndim == 1 or (error.ndim == 2 and kind == "several")
    miss = alarm = 1.0 if factor else float(error.max())
    if not factor and error.ndim == 2:
        place = 1 if report.positive is None else report.labels.index(report.positive)
        miss = float(error[place, 1 - place] - error[place, place])
        alarm = float(error[1 - place, place] - error[1 - place, 1 - place])
    slip_factor = cells.slips is not None
    return {
        "given": report.costs is not None,
        "factor": factor,
        "slip_factor": slip_factor,
        "miss": miss,
        "alarm": alarm,
        "man": costs.review_cost,
        "cap": 1.0 if costs.capacity is None else costs.capacity,
        "rev": 1.0 if slip_factor else float(np.asarray(costs.reviewer_error)),
    }


def _model(model: ModelReport, decimals: int, *, of_two: bool) -> dict[str, Any]:
    ranking = model.raw.ranking
    return {
        "cells": _cells(model.cells, decimals, of_two=of_two),
        "same": None
        if model.policy is None
        else [_ends(model.policy.lower_interval), _ends(model.policy.upper_interval)],
        "cost": None if model.policy is None else model.policy.cost,
        "error_rate": None if model.policy is None else model.policy.error_rate,
        "within": model.policy is None or model.policy.within_capacity,
        "coverage": _coverage(model.raw),
        "reliability": [
            None if part is None else _reliability(part.evidence.reliability)
            for part in (model.raw, model.calibrated)
        ],
        "histogram": _histogram(model.raw),
        "tail": None
        if ranking is None
        else {
            "theta": _drawn(ranking.curves.theta),
            "share": _drawn(ranking.curves.tail),
            "fragility": _rounded(ranking.fragility, _DIGITS),
        },
    }


def _ends(interval: Interval) -> list[float]:
    return [float(end) for end in interval]


def _cells(cells: PolicyCells, decimals: int, *, of_two: bool) -> dict[str, Any]:
    """Cells with what cannot be had from other numbers."""

    def weights(amounts: Floats) -> list[float]:
        return [_whole(round(x, decimals)) for x in amounts.tolist()]

    def money(amounts: Floats | None, digits: int = _DIGITS) -> Any:
        if amounts is None:
            return None
        return _rounded((amounts if of_two else amounts[:1]).tolist(), digits)

    found: dict[str, Any] = {}
    if of_two:
        inner = cells.cuts[1:-1]
        places = np.searchsorted(GRID, inner).clip(max=GRID.size - 1)
        known = GRID[places] == inner
        found |= {"cuts": places[known].tolist(), "more": inner[~known].tolist()}
        found["wrong"] = [weights(part) for part in cells.wrong]
    else:
        found["cuts"] = _rounded(cells.cuts.tolist(), _DIGITS)
        found |= {"weight": weights(cells.weight), "wrong": [weights(cells.wrong[0])]}
    if not np.array_equal(cells.lost, cells.wrong):
        found["lost"] = money(cells.lost)
    if cells.blend > 0.0:
        # The smaller their share in what is chosen by, the fewer digits matter.
        digits = max(1, ceil(_CHOOSING_DIGITS + log10(cells.blend)))
        found["expected"] = money(cells.expected, digits)
        found["expected_slips"] = money(cells.expected_slips, digits)
    return found | {
        "slips": money(cells.slips),
        "declined": _whole(round(cells.declined, decimals)),
        "declined_slips": cells.declined_slips,
        "base": cells.base,
        "blend": cells.blend,
        "n_cases": cells.n_cases,
        "falling": cells.falling,
        "start": None if cells.start is None else list(cells.start),
    }


def _coverage(found: ModelFigures) -> list[list[float]]:
    curve = found.evidence.risk_coverage
    places = _some(curve.coverage.size)
    return [_drawn(curve.coverage[places]), _drawn(curve.risk[places])]


def _reliability(curve: ReliabilityCurve) -> list[list[float]]:
    """Predicted and observed frequency, limits of the latter, and number of cases, by bin."""
    parts = curve.predicted, curve.observed, curve.lower, curve.upper, curve.counts
    return [_drawn(part) for part in parts]


def _histogram(found: ModelFigures) -> dict[str, Any]:
    """Numbers of right and of wrong predictions by confidence."""
    shown = found.histogram
    amounts = (shown.right * shown.n_right, shown.wrong * shown.n_wrong)
    right, wrong = ([_whole(round(x, 1)) for x in part.tolist()] for part in amounts)
    return {"edges": _drawn(shown.edges), "right": right, "wrong": wrong}


def _groups(report: Report) -> list[dict[str, Any]]:
    """What groups cost at the policy of each model, the dearest first; too small ones are left."""
    rows = []
    for place, model in enumerate(report.models):
        own = [part for part in report.groups if part.model == model.name]
        priced = [
            (part.policy.cost.value, part)
            for part in own
            if part.policy is not None and speaks_of_costs(report, part)
        ]
        for _, part in sorted(priced, key=lambda pair: -pair[0])[:_MOST_GROUPS]:
            assert part.policy is not None
            found = part.policy
            rows.append(
                {
                    "model": place,
                    "name": name_of(report, part),
                    "n": part.n,
                    "cost": _with_ends(found.cost),
                    "alone": found.alone.value,
                    "wrong": _with_ends(found.error_rate),
                }
            )
    return rows


def _with_ends(found: Measured) -> list[float]:
    """A figure, and the ends of its interval, if that is known."""
    ends = () if found.interval is None else found.interval
    return [float(value) for value in (found.value, *ends)]


def _some(n: int) -> list[int]:
    """Places of so many points at most, the first and the last among them."""
    return sorted(set(np.linspace(0, n - 1, min(n, _MOST_POINTS)).round().astype(int).tolist()))


def _drawn(array: Floats) -> Any:
    return _rounded(np.asarray(array, dtype=np.float64).tolist(), _DRAWN_DIGITS)


def _rounded(value: Any, digits: int) -> Any:
    """The same with this number of significant digits in every float."""
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    return _whole(float(f"{value:.{digits}g}"))


def _whole(value: float) -> float:
    """A whole number without its point."""
    return int(value) if isfinite(value) and value == int(value) and abs(value) < 1e15 else value
