"""Is a model good enough? Limits and baselines for continuous integration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan

import numpy as np

from .._parameters import check_not_negative, check_number
from ..measured import FIGURES, Measured
from . import words
from .baselines import HELD, LARGEST_LOG_LOSS, Baseline, can_fail
from .parts import ModelFigures
from .report import Report

_WITH_INTERVAL = ("fragility_index", "cost")
#: The same predictions pass their own baseline, however they are rounded in a file.
_ROUNDING = 1e-9


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
        for name in HELD:
            limit = getattr(self, name)
            if limit is None:
                continue
            what = f"The limit of {FIGURES[name].title}"
            check_number(limit, what)
            if name == "auc" and not 0.0 < limit <= 1.0:
                raise ValueError(
                    f"{what} must be above 0, or no model fails, and at most 1, or none passes; "
                    f"got {limit!r}."
                )
            if limit < 0.0:
                raise ValueError(f"{what} must be zero or more, or no model passes; got {limit!r}.")
            if name == "log_loss" and limit >= LARGEST_LOG_LOSS:
                raise ValueError(
                    f"{what} must be below {LARGEST_LOG_LOSS:.4g}, or no model fails; got "
                    f"{limit!r}."
                )

    @property
    def empty(self) -> bool:
        """Whether there is no limit at all."""
        return all(getattr(self, name) is None for name in HELD)

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
    """Hold every model of a report to the limits and to its baseline.

    Raises
    ------
    ValueError
        If nothing would be checked, if a check could not fail, or if the baseline is of other
        classes or costs: such a gate would pass every model.
    """
    if not check_not_negative(tolerance, "tolerance") < 1.0:
        raise ValueError(
            f"tolerance must be below 1, or no AUC fails; got {tolerance!r}. It is relative: 0.05 "
            "allows figures 5 % worse than the baseline."
        )
    _check_cost_limit(report, limits)
    if baseline is not None:
        baseline.check_comparable(report)
    checks = []
    for model in report.models:
        old = None if baseline is None else baseline.of_model(model.name, report)
        found = list(_checks(model.name, model.raw, limits, old, tolerance))
        if not found:
            raise ValueError(
                f"Nothing is held against model {model.name!r}: give limits of figures that it has."
            )
        checks += found
    return checks


def _check_cost_limit(report: Report, limits: Limits) -> None:
    """Refuse a limit that the dearest way to treat a case does not exceed."""
    if limits.cost is None:
        return
    if report.costs is None:
        raise ValueError("A limit of the cost per case needs costs: say what an error costs.")
    if report.costs.error_cost is None:  # by case, read from a file and forgotten
        return
    error = float(np.max(report.costs.error_cost))
    dearest = max(error, report.costs.review_cost + report.costs.reviewer_error * error)
    if limits.cost >= dearest:
        raise ValueError(
            f"The limit of the cost per case must be below {dearest:.4g}, what the dearest case "
            f"costs, or no model fails; got {limits.cost!r}."
        )


def _checks(
    name: str,
    model: ModelFigures,
    limits: Limits,
    old: Mapping[str, float] | None,
    tolerance: float,
) -> Iterator[Check]:
    constant = ""
    if isnan(model.figures["ratio"].value):
        constant = "" if len(model.pairs) == 2 else " for some class"
        constant = f"gives every case the same score{constant}"
    for figure in HELD:
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
        if old is not None and figure in old and can_fail(figure, old[figure]):
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
            f"{kind.title} of {shown} has no interval, since its scores differ too little for the "
            "bins of a large file, so no upper limit: give --in-memory, or hold the estimate."
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
