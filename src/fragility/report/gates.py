"""Gates for continuous integration: limits and baselines that a model must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan

import numpy as np

from .._parameters import check_not_negative, check_number
from ..measured import FIGURES, Measured
from . import words
from .baselines import HELD, LARGEST_LOG_LOSS, Baseline, can_fail
from .parts import ModelFigures
from .report import Report

#: Figures that reports give with an interval.
_WITH_INTERVAL = ("fragility_index", "cost")
#: The same predictions pass their own baseline, however they are rounded in a file.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Limits:
    """Largest values allowed (for AUC: the smallest); None for no limit.

    With `upper_limit`, the upper limits of the confidence intervals must hold for the index and
    the cost, not only the estimates. Of a figure known between bounds, the worse one must hold.
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
        """Whether shrunk scores would pass: only the index, or AUC beside it, has a limit."""
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
    passed: bool = False
    reason: str = ""
    part: str = "estimate"

    @property
    def title(self) -> str:
        """Title of the figure, with the part of it that is held to the limit."""
        title = FIGURES[self.figure].title
        return title if self.part == "estimate" else f"{title} ({self.part})"

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
    """Refuse a limit of the cost that even the dearest decision does not exceed."""
    if limits.cost is None:
        return
    if report.costs is None:
        raise ValueError("A limit of the cost per case needs costs: say what an error costs.")
    if np.ndim(report.costs.error_cost) == 1:
        return  # the dearest case is not known
    matrix = report.costs.matrix(len(report.labels))
    dearest = float(max(matrix.max(), report.costs.of_reviews(matrix).max()))
    if report.reviewed:  # a single review may go as wrong as any decision
        dearest = report.costs.review_cost + float(matrix.max())
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
    """Checks of one model, against the limits and against its figures in the baseline."""
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
            value, part = _end(figure, found, better=False), "estimate"
            if limits.upper_limit and figure in _WITH_INTERVAL:
                part = "upper limit"
                value = nan if found.interval is None else found.interval.high
            yield _judged(Check(name, figure, value, limit, "limit", part=part), 0.0, constant)
        if old is not None and figure in old and can_fail(figure, old[figure]):
            # The same data must pass, read either way: a baseline has the worse end of its bounds.
            value = _end(figure, found, better=True)
            check = Check(name, figure, value, old[figure], "baseline")
            yield _judged(check, tolerance, constant)


def _end(figure: str, found: Measured, *, better: bool) -> float:
    """A figure, or the better or worse of its bounds."""
    if found.bounds is None:
        return found.value
    return found.bounds.low if (FIGURES[figure].better == "lower") == better else found.bounds.high


def _judged(check: Check, tolerance: float, constant: str) -> Check:
    """A check with its verdict, and the reason if it fails.

    `constant` says that the scores are constant, or is empty.
    """
    value, limit, kind = check.value, check.limit, FIGURES[check.figure]
    lower = kind.better == "lower"
    slack = (tolerance + _ROUNDING) * abs(limit) if abs(limit) < inf else 0.0
    passed = value <= limit + slack if lower else value >= limit - slack
    model = words.shortened(check.model)
    if constant and check.figure in ("fragility_index", "ratio"):
        # An index of 0 would pass every gate.
        reason = f"{model} {constant}; its Fragility Index says nothing."
    elif passed:
        return replace(check, passed=True)
    elif isnan(value) and check.figure in _WITH_INTERVAL:
        reason = (
            f"{kind.title} of {model} has no interval, since its scores differ too little for the "
            "bins of a large file, so no upper limit: give --in-memory, or hold the estimate."
        )
    else:
        shown, side = _told_apart(value, limit, passed), "above" if lower else "below"
        reason = f"{check.title} of {model} is {shown[0]}, {side} the {check.source} of {shown[1]}."
    return replace(check, reason=reason)


def _told_apart(value: float, limit: float, passed: bool) -> tuple[str, str]:
    """Both numbers as text; where a check fails, with enough digits to tell them apart."""
    for decimals in range(3, 10):
        shown = words.number(value, decimals), words.number(limit, decimals)
        if passed or shown[0] != shown[1] or not isfinite(value):
            return shown
    return repr(value), repr(limit)
