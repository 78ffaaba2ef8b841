"""Is a model good enough? Limits and baselines for continuous integration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

from .._labels import listed
from .._parameters import check_not_negative, check_target
from ..measured import FIGURES, Measured
from . import words
from .data import FORMAT
from .parts import ModelFigures
from .report import Report

__all__ = ["Check", "Limits", "check_gates", "read_baseline"]

#: The figures of a baseline: the index falls when scores shrink, the others then do not.
_HELD = ("fragility_index", "ratio", "log_loss", "auc", "cost")
_WITH_INTERVAL = ("fragility_index", "cost")
#: The same predictions pass their own baseline, however they are rounded in a file.
_ROUNDING = 1e-9

Baseline = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Limits:
    """Largest values allowed (of AUC: the least); None for no limit.

    With `upper_limit`, the upper limits of the confidence intervals must hold for the index and
    the cost, not only the estimates. A figure that is known between bounds must hold at the worse.
    """

    fragility_index: float | None = None
    ratio: float | None = None
    log_loss: float | None = None
    auc: float | None = None
    cost: float | None = None
    upper_limit: bool = False

    def __post_init__(self) -> None:
        for name in _HELD:
            limit = getattr(self, name)
            if limit is not None:
                check_target(limit, f"The limit of {FIGURES[name].title}")

    @property
    def empty(self) -> bool:
        """Whether there is no limit at all."""
        return all(getattr(self, name) is None for name in _HELD)

    @property
    def passed_by_shrinking(self) -> bool:
        """Whether smaller scores, which say less, would do: only the index or AUC are limited."""
        others = (self.ratio, self.log_loss, self.cost)
        return self.fragility_index is not None and all(limit is None for limit in others)


@dataclass(frozen=True)
class Check:
    """One figure of one model held to one limit."""

    model: str
    figure: str
    value: float
    limit: float
    source: str
    passed: bool
    reason: str
    part: str = "estimate"

    @property
    def title(self) -> str:
        """What is held to the limit."""
        return _title(self.figure, self.part)

    def cells(self) -> list[str]:
        """For a table: model, figure, value, relation, limit, verdict."""
        kind = FIGURES[self.figure]
        relation = "≤" if kind.better == "lower" else "≥"
        value, limit = _told_apart(self.value, self.limit, self.passed)
        return [
            words.shortened(self.model),
            self.title,
            value,
            relation,
            f"{limit} ({self.source})",
            "passed" if self.passed else "FAILED",
        ]


def check_gates(
    report: Report, limits: Limits, baseline: Baseline | None = None, tolerance: float = 0.0
) -> list[Check]:
    """Hold every model of a report to the limits and to its baseline."""
    check_not_negative(tolerance, "tolerance")
    checks = []
    for model in report.models:
        old = None if baseline is None else _own_baseline(model.name, report, baseline)
        checks += list(_checks(model.name, model.raw, limits, old, tolerance))
    return checks


def _checks(
    name: str,
    model: ModelFigures,
    limits: Limits,
    old: dict[str, float] | None,
    tolerance: float,
) -> Iterator[Check]:
    constant = ""
    if isnan(model.figures["ratio"].value):
        constant = "" if len(model.pairs) == 2 else " for some class"
        constant = f"gives every case the same score{constant}"
    for figure in _HELD:
        if figure not in model.figures:
            continue
        found = model.figures[figure]
        limit = getattr(limits, figure)
        if limit is not None:
            part = "estimate"
            value = _end(figure, found, better=False)
            if limits.upper_limit and figure in _WITH_INTERVAL:
                part = "upper limit"
                value = nan if found.interval is None else found.interval.high
            yield _check(name, figure, value, limit, 0.0, "limit", constant, part)
        if old is not None and not isnan(old.get(figure, nan)):
            # The same data must pass, read either way: a baseline has the worse end of its bounds.
            value = _end(figure, found, better=True)
            yield _check(name, figure, value, old[figure], tolerance, "baseline", constant)


def _end(figure: str, found: Measured, *, better: bool) -> float:
    """A figure, or the better or worse of its bounds."""
    if found.bounds is None:
        return found.value
    return found.bounds.low if (FIGURES[figure].better == "lower") == better else found.bounds.high


def _check(
    model: str,
    figure: str,
    value: float,
    limit: float,
    tolerance: float,
    source: str,
    constant: str,
    part: str = "estimate",
) -> Check:
    kind = FIGURES[figure]
    slack = (tolerance + _ROUNDING) * abs(limit) if abs(limit) < inf else 0.0
    passed = value <= limit + slack if kind.better == "lower" else value >= limit - slack
    shown = words.shortened(model)
    if constant and figure in ("fragility_index", "ratio"):
        # An index of 0 would pass every gate.
        passed = False
        reason = f"{shown} {constant}; its Fragility Index says nothing."
    elif passed:
        reason = ""
    elif isnan(value) and figure in _WITH_INTERVAL:
        reason = (
            f"{kind.title} of {shown} has no interval when it is measured in passes, so no upper "
            "limit: give --in-memory, or hold the estimate."
        )
    else:
        side = "above" if kind.better == "lower" else "below"
        ends = _told_apart(value, limit, passed)
        reason = (
            f"{_title(figure, part)} of {shown} is {ends[0]}, {side} the {source} of {ends[1]}."
        )
    return Check(model, figure, value, limit, source, passed, reason, part)


def _title(figure: str, part: str) -> str:
    title = FIGURES[figure].title
    return title if part == "estimate" else f"{title} ({part})"


def _told_apart(value: float, limit: float, passed: bool) -> tuple[str, str]:
    """Both numbers; where a check fails, with as many digits as show why."""
    for decimals in range(3, 10):
        shown = words.number(value, decimals), words.number(limit, decimals)
        if passed or shown[0] != shown[1] or not isfinite(value):
            return shown
    return repr(value), repr(limit)


def read_baseline(path: str) -> Baseline:
    """Figures by model of a report in JSON, as `fragility evaluate --json` prints it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"The baseline {path} cannot be read: {reason}.") from None
    try:
        content = json.loads(text)
        if content.get("format") != FORMAT:
            raise KeyError("format")
        found = {
            model["name"]: {
                name: _held(name, figure) for name, figure in model["raw"]["figures"].items()
            }
            for model in content["models"]
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} is no baseline: make one with `fragility evaluate ... --json > {path}`."
        ) from None
    return found


def _held(name: str, figure: dict[str, Any]) -> float:
    """What is held against: the worse of the bounds, if the figure is known between two."""
    if figure.get("bounds") is None or name not in FIGURES:
        return _number(figure["value"])
    low, high = map(_number, figure["bounds"])
    return high if FIGURES[name].better == "lower" else low


def _number(value: Any) -> float:
    return nan if value is None else float(value)  # float reads "Infinity", too


def _own_baseline(name: str, report: Report, baseline: Baseline) -> dict[str, float]:
    if name in baseline:
        return baseline[name]
    if len(baseline) == len(report.models) == 1:  # one model each: no need to agree on a name
        return next(iter(baseline.values()))
    raise ValueError(f"The baseline has no model {name!r}; it has {listed(baseline)}.")
