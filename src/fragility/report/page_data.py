"""Data of the page of a report: one JSON object of aggregates, for its script."""

from __future__ import annotations

import json
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats
from ..deferral import Costs
from . import data, words
from .parts import ModelFigures, ModelReport

if TYPE_CHECKING:
    from .report import Report

#: Matrices of more classes would make a page of megabytes.
MOST_CLASSES = 20
#: Costs that the page starts with if none were given.
_SUGGESTED = Costs(10.0, 1.0)
#: Significant digits of indices and of what is drawn; of weights, beside the weight of all cases.
_DIGITS, _DRAWN_DIGITS, _WEIGHT_DIGITS = 8, 4, 8


def page_data(report: Report) -> dict[str, Any]:
    """Data for the script of the page, in values that strict JSON can hold.

    Infinity is the text "Infinity", an undefined number is None. Numbers of cases are exact,
    weights to a hundred millionth of the weight of all cases. No single case is in it.

    Examples
    --------
    >>> from fragility import Report
    >>> from fragility.report.page_data import page_data
    >>> report = Report.from_predictions([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8], calibrate=False)
    >>> page_data(report)["models"][0]["raw"]["decisions"]["errors"][:3]
    [1, 1, 1]
    """
    first = report.models[0].raw.decisions
    # Whatever the threshold, a case that a model declined is reviewed: all models have all cases.
    total = first.total + declined_weight(report.models[0])
    # Less than none for large weights, whose digits would make a large page. After calibration the
    # cases of one of four deals count a quarter each.
    decimals = 2 if any(model.calibrated is not None for model in report.models) else 0
    if report.weighted:
        decimals = _WEIGHT_DIGITS - floor(log10(total))
    labels = [words.shortened(label) for label in report.labels]
    found: dict[str, Any] = data.strict(
        {
            "total": _whole(round(total, decimals)),
            "answers": report.answers,
            "decimals": decimals,
            "labels": labels,
            "grid": first.thresholds.tolist(),
            "costs": _costs(report),
            "models": [
                {
                    key: None
                    if version is None
                    else _version(version, labels, decimals, declined_weight(model))
                    for key, version in (("raw", model.raw), ("calibrated", model.calibrated))
                }
                for model in report.models
            ],
        }
    )
    return found


def script_json(found: dict[str, Any]) -> str:
    r"""The data as JSON to stand in a script element, which nothing in it can end.

    Amounts that rise or fall from threshold to threshold are written as their differences, in units
    of the last decimal; points at equal distances as the first and the last.

    Examples
    --------
    >>> from fragility.report.page_data import script_json
    >>> print(script_json({"labels": ["</script>"], "models": [], "decimals": 0}))
    {"labels":["\u003c/script\u003e"],"models":[],"decimals":0}
    """
    packed = found | {
        "models": [
            {
                key: None if version is None else _packed(version, found["decimals"])
                for key, version in model.items()
            }
            for model in found["models"]
        ]
    }
    text = json.dumps(packed, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def declined_weight(model: ModelReport) -> float:
    """Weight of the cases that a model declined to answer."""
    return 0.0 if model.answers is None else model.answers.declined_weight


def _version(
    found: ModelFigures, labels: list[str], decimals: int, declined: float
) -> dict[str, Any]:
    more = {"reviewed": declined}
    index = found.figures["fragility_index"]
    shown, ranking = found.histogram, found.ranking
    return {
        "index": {
            "value": _rounded(index.value, _DIGITS),
            "interval": None if index.interval is None else _rounded([*index.interval], _DIGITS),
        },
        "pairs": _drawn(found.pairs) if 2 < len(labels) <= MOST_CLASSES else None,
        "decisions": {
            name: None
            if amounts is None
            else [_whole(round(x + more.get(name, 0.0), decimals)) for x in amounts.tolist()]
            for name, amounts in vars(found.decisions).items()
            if name != "thresholds"
        },
        "histogram": {
            **{name: _drawn(getattr(shown, name)) for name in ("edges", "wrong", "right")},
            "n_wrong": round(shown.n_wrong),  # after calibration expected numbers
            "n_right": round(shown.n_right),
        },
        "ranking": None
        if ranking is None
        else {
            **{
                name: _drawn(getattr(ranking.curves, name))
                for name in ("edges", "density", "theta", "tail")
            },
            "fragility": _rounded(ranking.fragility, _DIGITS),
            "auc": _rounded(ranking.curves.auc, _DIGITS),
            "pair": None if ranking.pair is None else [labels[place] for place in ranking.pair],
        },
    }


def _packed(version: dict[str, Any], decimals: int) -> dict[str, Any]:
    decisions = {
        name: None if amounts is None else _differences(amounts, decimals)
        for name, amounts in version["decisions"].items()
    }
    if decisions["false_negatives"] is not None:
        del decisions["errors"]  # the sum of both kinds
    packed = version | {"decisions": decisions}
    for drawn, points in (("histogram", "edges"), ("ranking", "edges"), ("ranking", "theta")):
        if packed[drawn] is not None:
            packed[drawn] = packed[drawn] | {points: _ends(packed[drawn][points])}
    return packed


def _differences(amounts: list[float], decimals: int) -> list[int]:
    unit = 10 ** abs(decimals)  # a whole number, so that no unit is rounded
    whole = np.array([round(x / unit if decimals < 0 else x * unit) for x in amounts])
    found: list[int] = np.diff(whole, prepend=0).tolist()
    return found


def _ends(points: list[float]) -> list[float]:
    """First and last of points at equal distances; all of others."""
    even = np.linspace(points[0], points[-1], len(points))
    same = np.abs(even - points).max() <= 10.0 ** (1 - _DRAWN_DIGITS) * np.abs(points).max()
    return [points[0], points[-1]] if same else points


def _drawn(array: Floats) -> Any:
    return _rounded(array.tolist(), _DRAWN_DIGITS)


def _rounded(value: Any, digits: int) -> Any:
    """The same with this number of significant digits in every float."""
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    return _whole(float(f"{value:.{digits}g}"))


def _whole(value: float) -> float:
    """A whole number without its point."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def _costs(report: Report) -> dict[str, Any]:
    """Costs that the page starts with: one cost of errors, and a weight of false negatives.

    A matrix of two classes gives both; other matrices and costs by case give their mean.
    """
    costs = _SUGGESTED if report.costs is None else report.costs
    error, weight, _ = starting_cost(costs, report)
    return {
        "error_cost": error,
        "review_cost": costs.review_cost,
        "capacity": costs.capacity,
        "reviewer_error": _mean_reviewer_error(costs, report),
        "false_negative_weight": weight,
        "given": report.costs is not None,
    }


def _mean_reviewer_error(costs: Costs, report: Report) -> float:
    """One share of wrong reviews: the mean over the cases of all classes."""
    if np.ndim(costs.reviewer_error) == 0:
        return float(costs.reviewer_error)
    return float(np.average(costs.rates(len(report.labels)), weights=report.support))


def starting_cost(costs: Costs, report: Report) -> tuple[float, float, str]:
    """Cost of an error, weight of a false negative, and what the cost is a mean of, if it is."""
    cost = np.asarray(costs.error_cost, dtype=np.float64)
    if cost.ndim < 2:
        return float(cost.mean()), 1.0, "case" if cost.ndim else ""
    if len(cost) == 2 and not np.any(cost.diagonal()):
        positive = report.labels.index(report.positive)
        missed, alarm = float(cost[positive, 1 - positive]), float(cost[1 - positive, positive])
        if alarm > 0.0:
            return alarm, missed / alarm, ""
    return float(cost[~np.eye(len(cost), dtype=np.bool_)].mean()), 1.0, "pair of classes"
