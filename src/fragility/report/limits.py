"""Limits of figures: the largest or least values that a gate allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log

import numpy as np

from .._labels import listed
from .._parameters import check_number
from .._typing import Interval
from ..measured import ANSWER_FIGURES, EVIDENCE, FIGURES, LEAST_PROBABILITY, FigureKind, Measured
from .parts import GroupFigures, ModelReport
from .report import Report

#: Log-loss counts a probability of 0 as a small one: no model exceeds this.
LARGEST_LOG_LOSS = -log(LEAST_PROBABILITY)
#: What the policy of a model does, by the name it has in JSON.
POLICY_FIGURES: dict[str, FigureKind] = {
    "error_rate": FigureKind("error rate", "lower", "errors of the cases decided alone"),
    "error_share": FigureKind("error share", "lower", "errors decided alone, of all cases"),
    "automation_rate": FigureKind("decided alone", "higher", "share of the cases decided alone"),
    "misses": FigureKind("misses", "lower", "positives decided negative, of the positives"),
    "false_alarms": FigureKind("false alarms", "lower", "negatives decided positive, of these"),
}
#: What gates hold of answers in place of their accuracy: a figure that is better when smaller.
WRONG = "wrong_answers"
_WRONG = FigureKind("share wrong", "lower", "wrong answers, of the answers")
#: Every figure that can have a limit.
KINDS = {**ANSWER_FIGURES, WRONG: _WRONG, **FIGURES, **EVIDENCE, **POLICY_FIGURES}
#: Least and largest possible value, of figures that are not shares.
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("fragility_index", "ratio", "cost", "observed_expected_ratio"), (0.0, inf)),
    **dict.fromkeys(("calibration_slope", "calibration_intercept"), (-inf, inf)),
    **dict.fromkeys(("cvar", "gini"), (-1.0, 1.0)),
    "log_loss": (0.0, LARGEST_LOG_LOSS),
    "brier": (0.0, 2.0),
    "net_benefit": (-inf, 1.0),
}
#: Figures that shrinking the scores does not make better.
_KEPT_BY_SHRINKING = ("ratio", "log_loss", "brier", "calibration_error", "cost")


@dataclass(frozen=True)
class Limits:
    """Largest and least values allowed, by the name of the figure in JSON.

    With `upper_limit`, the worse end of the confidence interval must hold, not only the estimate.
    Of a figure known between bounds, the worse one must hold.

    Examples
    --------
    >>> Limits(largest={"log_loss": 0.4}, least={"auc": 0.8}).empty
    False
    >>> Limits(largest={"auc": 0.9})
    Traceback (most recent call last):
    ...
    ValueError: AUC is better when higher: give its least value (--min auc=0.9), not its largest.
    """

    largest: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    upper_limit: bool = False

    def __post_init__(self) -> None:
        for name, limit, is_largest in self.all:
            if name not in KINDS:
                raise ValueError(
                    f"No figure is called {name!r}; those that can have a limit are "
                    f"{listed(KINDS)}."
                )
            _check_can_fail(name, limit, is_largest)

    @property
    def all(self) -> list[tuple[str, float, bool]]:
        """Figure, limit, and whether it is the largest value."""
        return [(name, limit, True) for name, limit in self.largest.items()] + [
            (name, limit, False) for name, limit in self.least.items()
        ]

    @property
    def empty(self) -> bool:
        """Whether there is no limit at all."""
        return not self.largest and not self.least

    @property
    def passed_by_shrinking(self) -> bool:
        """Whether shrunk scores would pass: the index has a limit, and nothing that they raise."""
        held = self.largest.keys()
        return "fragility_index" in held and not held & set(_KEPT_BY_SHRINKING)


def _check_can_fail(name: str, limit: float, is_largest: bool) -> None:
    """Refuse a limit that every model passes, or none."""
    kind, (low, high) = KINDS[name], _RANGES.get(name, (0.0, 1.0))
    what = f"The limit of {kind.title}"
    check_number(limit, what)
    if kind.better == ("higher" if is_largest else "lower"):
        other = ("largest", "max"), ("least", "min")
        (right, option), (wrong, _) = other[::-1] if is_largest else other
        raise ValueError(
            f"{kind.title} is better when {kind.better}: give its {right} value (--{option} "
            f"{name}={limit:g}), not its {wrong}."
        )
    if is_largest and limit < low:
        least = "zero" if low == 0.0 else f"{low:g}"
        raise ValueError(f"{what} must be {least} or more, or no model passes; got {limit!r}.")
    if is_largest and limit >= high:
        raise ValueError(f"{what} must be below {high:.4g}, or no model fails; got {limit!r}.")
    if not is_largest and not low < limit <= high:
        raise ValueError(
            f"{what} must be above {low:g}, or no model fails, and at most {high:g}, or none "
            f"passes; got {limit!r}."
        )


def check_limits(report: Report, limits: Limits) -> None:
    """Refuse limits of figures that the report has not, or of a cost that nothing exceeds."""
    for name, limit, _ in limits.all:
        if any(figure_of(model, name) is None for model in report.models):
            raise ValueError(f"There is no {KINDS[name].title} to hold: {_why_not(report, name)}.")
        if name == "cost":
            _check_cost(report, limit)


def _why_not(report: Report, name: str) -> str:
    if name in (*ANSWER_FIGURES, WRONG):
        return "only answers, right or wrong, have it (--correct)"
    if name == "net_benefit" and report.costs is not None:
        return "these costs have no threshold"
    if name in ("cost", "net_benefit", *POLICY_FIGURES) and report.costs is None:
        return "it needs costs, say what an error costs (--error-cost)"
    return "it is a figure of two classes"


def _check_cost(report: Report, limit: float) -> None:
    """Refuse a limit of the cost that even the dearest decision does not exceed."""
    if report.costs is None or np.ndim(report.costs.error_cost) == 1:
        return  # the dearest case is not known
    matrix = report.costs.matrix(len(report.labels))
    dearest = float(max(matrix.max(), report.costs.of_reviews(matrix).max()))
    if report.reviewed:  # a single review may go as wrong as any decision
        dearest = report.costs.review_cost + float(matrix.max())
    if limit >= dearest:
        raise ValueError(
            f"The limit of the cost per case must be below {dearest:.4g}, what the dearest case "
            f"costs, or no model fails; got {limit!r}."
        )


def figure_of(model: ModelReport, name: str) -> Measured | None:
    """A figure of a model as it is, wherever the report has it."""
    if name == WRONG:
        right = model.raw.figures.get("accuracy")
        return None if right is None else _less_than_one(right)
    for figures in (model.raw.figures, model.raw.evidence.figures):
        if name in figures:
            return figures[name]
    value = getattr(model.policy, name, None) if name in POLICY_FIGURES else None
    # Positives and negatives are of two classes.
    return None if value is None or (np.isnan(value) and name in _OF_TWO) else Measured(value)


_OF_TWO = ("misses", "false_alarms")


def _less_than_one(share: Measured) -> Measured:
    """One minus a share."""
    ends = None
    if share.interval is not None:
        ends = Interval(1.0 - share.interval.high, 1.0 - share.interval.low)
    return Measured(1.0 - share.value, ends, standard_error=share.standard_error)


def group_figure(part: GroupFigures, name: str) -> Measured | None:
    """The same in one group."""
    if name in part.figures:
        return part.figures[name]
    known = {"automation_rate": "alone"}.get(name, name)
    found: Measured | None = getattr(part.policy, known, None)
    return found
