"""Gates for continuous integration: limits, a present model and baselines that models must hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite, isnan, nan

from .._labels import listed
from .._parameters import check_not_negative, check_positive
from ..measured import Measured
from . import words
from .baselines import Baseline
from .contrasts import TOLERANCE, Contrast, Verdict, group_name, judged, paired, paired_by_group
from .group_text import errs_more
from .limits import KINDS, POLICY_FIGURES, Limits, check_limits, figure_of, group_figure
from .parts import ModelReport
from .report import Report

#: The same predictions pass a limit that is their own figure, however it is rounded.
_ROUNDING = 1e-9
_NONE_ALONE = "error rate of {} is not held: no case is decided alone."


@dataclass(frozen=True)
class Check:
    """One figure of one model held to one limit, in all cases or in one group.

    Attributes
    ----------
    model, figure : str
    value, limit : float
        `limit` is the value beyond which the check fails, whatever it comes from.
    source : str
        What the limit comes from: a limit that was given, the present model, a baseline.
    passed : bool
    reason : str
        Why it fails; empty if it passes.
    part : str
        Which part of the figure is held.
    group : str or None
        None for all cases.
    least : bool
        Whether `limit` is the least value allowed.
    """

    model: str
    figure: str
    value: float
    limit: float
    source: str
    passed: bool = False
    reason: str = ""
    part: str = "estimate"
    group: str | None = None
    least: bool = False

    @property
    def title(self) -> str:
        """Title of the figure, with the part of it that is held to the limit."""
        title = KINDS[self.figure].title
        return title if self.part in ("estimate", "") else f"{title} ({self.part})"

    def cells(self) -> list[str]:
        """For a table: model, figure, value, relation, limit, verdict."""
        value, limit = _told_apart(self.value, self.limit, self.passed)
        where = "" if self.group is None else f", {self.group}"
        return [
            words.shortened(self.model) + where,
            self.title,
            value,
            "≥" if self.least else "≤",
            f"{limit} ({self.source})",
            "passed" if self.passed else "FAILED",
        ]


def check_gates(
    report: Report,
    limits: Limits | None = None,
    *,
    against: str | None = None,
    baseline: Baseline | None = None,
    margin: float | None = None,
    tolerance: float = TOLERANCE,
    each_group: bool = False,
) -> list[Check]:
    """Hold every model of a report to limits, to the present model and to a baseline.

    Parameters
    ----------
    report : Report
    limits : Limits, optional
    against : str, optional
        The present model, of the same report. It is held to nothing itself.
    baseline : Baseline, optional
        Figures on other cases.
    margin : float, optional
        How much worse than the present model or the baseline is acceptable and must be shown, in
        units of the cost, or of log-loss where there are no costs (of answers the share of wrong
        ones). Without it a model fails where
        it is clearly worse: see `fragility.report.contrasts`.
    tolerance : float, default 0.01
        How much the figures of one training differ from those of the next, as a share of them: a
        standard deviation, which adds to the standard error of the tests.
    each_group : bool, default False
        Whether all of this must hold in each group, too.

    Raises
    ------
    ValueError
        If nothing would be checked, if a check could not fail, or if the baseline is of other
        classes or costs: such a gate would pass every model.
    """
    held = _held(report, limits or Limits(), against, baseline, margin, tolerance, each_group)
    return [part for part in held if isinstance(part, Check)]


def not_held(
    report: Report,
    limits: Limits | None = None,
    *,
    against: str | None = None,
    baseline: Baseline | None = None,
    margin: float | None = None,
    tolerance: float = TOLERANCE,
    each_group: bool = False,
) -> list[str]:
    """Sentences on what `check_gates` does not hold with the same arguments, each once."""
    held = _held(report, limits or Limits(), against, baseline, margin, tolerance, each_group)
    return list(dict.fromkeys(part for part in held if isinstance(part, str)))


def _held(
    report: Report,
    limits: Limits,
    against: str | None,
    baseline: Baseline | None,
    margin: float | None,
    tolerance: float,
    each_group: bool,
) -> list[Check | str]:
    """Checks, and sentences on what is not held."""
    if not check_not_negative(tolerance, "tolerance") < 1.0:
        raise ValueError(
            f"tolerance must be below 1; got {tolerance!r}. It is how much, relative, one training "
            "differs from the next, such as 0.01."
        )
    if margin is not None:
        check_positive(margin, "margin")
    models = _new_models(report, against)
    if each_group and not report.groups:
        raise ValueError("There are no groups to hold: name the columns of groups (--group).")
    check_limits(report, limits)
    found: list[Check | str] = []
    for model in models:
        found += _limit_checks(model, limits)
        if each_group:
            found += _group_checks(report, model, limits)
    contrasts: list[Contrast] = []
    if against is not None:
        contrasts += paired(report, against)
        found += _not_compared(report, models)
        by_group = list(paired_by_group(report, against)) if each_group else []
        contrasts += by_group
        if each_group and not by_group:
            found.append("no group is held to the present model: their differences are not known.")
    if baseline is not None:
        baseline.check_comparable(report, models)
        contrasts += baseline.contrasts(report, models, each_group)
        found += baseline.not_held(report, models, each_group)
    for verdict in judged(contrasts, report.confidence, tolerance, margin):
        found.append(_check(verdict) if isinstance(verdict, Verdict) else verdict)
    _check_not_empty(found, models, each_group)
    return found


def _new_models(report: Report, against: str | None) -> list[ModelReport]:
    """The models that are held."""
    names = [model.name for model in report.models]
    if against is not None and against not in names:
        raise ValueError(
            f"No model is called {words.shortened(against)!r}; there are "
            f"{listed(map(words.shortened, names))}."
        )
    models = [model for model in report.models if model.name != against]
    if not models:
        raise ValueError(
            f"There is no model but {words.shortened(against)!r}, the present one: name a new one "
            "(--score)."
        )
    return models


def _check_not_empty(found: list[Check | str], models: list[ModelReport], each_group: bool) -> None:
    """A gate that holds nothing has failed."""
    checks = [part for part in found if isinstance(part, Check)]
    for model in models:
        if not any(check.model == model.name for check in checks):
            raise ValueError(
                f"Nothing is held against model {words.shortened(model.name)!r}: give limits of "
                "figures that it has."
            )
    if each_group and all(check.group is None for check in checks):
        raise ValueError(
            "Nothing is held in any group: all are too small, or lack the figures. Give "
            "--min-cell, or leave --each-group out."
        )


def _not_compared(report: Report, models: list[ModelReport]) -> Iterator[str]:
    for model in models:
        if model.calibrated is None:
            name, why = words.shortened(model.name), model.why_not_calibrated
            yield (
                f"log-loss and Fragility Index after calibration of {name} are not held: "
                f"{why or 'there is no calibration'}".rstrip(".")
                + "."
            )


def _check(verdict: Verdict) -> Check:
    part = verdict.contrast
    return Check(
        part.model,
        part.figure,
        part.new,
        verdict.limit,
        verdict.source,
        verdict.passed,
        verdict.reason,
        part.part,
        part.group,
    )


def _limit_checks(model: ModelReport, limits: Limits) -> Iterator[Check | str]:
    """Checks of one model against the limits, in all cases."""
    constant = ""
    if isnan(model.raw.figures["ratio"].value):
        constant = "" if len(model.raw.pairs) == 2 else " for some class"
        constant = f"gives every case the same score{constant}"
    for figure, limit, is_largest in limits.all:
        found = figure_of(model, figure)
        assert found is not None
        if figure == "error_rate" and isnan(found.value):
            yield _NONE_ALONE.format(words.shortened(model.name))
            continue
        yield _limited(model.name, figure, found, limit, is_largest, limits, None, constant)


def _group_checks(report: Report, model: ModelReport, limits: Limits) -> Iterator[Check | str]:
    """The same in each group; sentences on groups and figures that are not held."""
    for part in report.groups:
        if part.model != model.name:
            continue
        group = group_name(part.column, part.group)
        held = limits.all
        if part.too_small or not part.figures:
            why = part.reason or (
                f"a class has fewer than {report.min_cell} of its {words.count(part.n)} cases"
            )
            told = "not held"
            if errs_more(report, part):  # which nothing may hide
                told = "not held but for its policy"
                held = [each for each in held if each[0] in ("cost", *POLICY_FIGURES)]
            else:
                held = []
            yield f"group {group} is {told}: {why}."
        for figure, limit, is_largest in held:
            found = group_figure(part, figure)
            if found is None:
                yield f"{KINDS[figure].title} is not held in groups: it is not known there."
                continue
            if figure == "error_rate" and isnan(found.value):
                yield _NONE_ALONE.format(f"{words.shortened(model.name)} in {group}")
                continue
            yield _limited(model.name, figure, found, limit, is_largest, limits, group, "")


def _limited(
    model: str,
    figure: str,
    found: Measured,
    limit: float,
    is_largest: bool,
    limits: Limits,
    group: str | None,
    constant: str,
) -> Check:
    """A figure held to a limit; `constant` says that scores are constant, or is empty."""
    part, value = "estimate", found.value
    if found.bounds is not None:
        value = found.bounds.high if is_largest else found.bounds.low
    if limits.upper_limit:
        part, interval = ("upper" if is_largest else "lower") + " limit", found.interval
        value = nan if interval is None else interval.high if is_largest else interval.low
    check = Check(
        model, figure, value, limit, "limit", part=part, group=group, least=not is_largest
    )
    slack = _ROUNDING * abs(limit)
    passed = value <= limit + slack if is_largest else value >= limit - slack
    name, title = words.shortened(model), KINDS[figure].title
    where = "" if group is None else f" in {group}"
    if constant and figure in ("fragility_index", "ratio"):
        # An index of 0 would pass every gate.
        reason = f"{name} {constant}; its Fragility Index says nothing."
    elif passed:
        return replace(check, passed=True)
    elif isnan(value) and limits.upper_limit:
        reason = (
            f"{title} of {name}{where} has no interval, so no {part}: hold the estimate, without "
            "--upper-limit."
        )
        if figure == "fragility_index":
            reason = (
                f"{title} of {name}{where} has no interval, since its scores differ too little for "
                "the bins of a large file, so no upper limit: give --in-memory, or hold the "
                "estimate."
            )
    else:
        shown, side = _told_apart(value, limit, passed), "above" if is_largest else "below"
        reason = f"{check.title} of {name}{where} is {shown[0]}, {side} the limit of {shown[1]}."
    return replace(check, reason=reason)


def _told_apart(value: float, limit: float, passed: bool) -> tuple[str, str]:
    """Both numbers as text; where a check fails, with enough digits to tell them apart."""
    for decimals in range(3, 10):
        shown = words.number(value, decimals), words.number(limit, decimals)
        if passed or shown[0] != shown[1] or not isfinite(value):
            return shown
    return repr(value), repr(limit)
