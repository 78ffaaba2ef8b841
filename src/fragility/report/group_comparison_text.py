"""Models against each other by group, as tables: the largest difference first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

from ..deferral.paired_costs import PairedCosts
from ..index.inference import PairedDifference
from . import words
from .group_text import FEW, about_small, name_of
from .parts import GroupComparison, GroupFigures, GroupPolicy
from .words import Table

if TYPE_CHECKING:
    from .report import Report

#: Rows of a table that is not a full one.
MOST_ROWS = 12
_RAW, _CALIBRATED = "log_loss", "calibrated_log_loss"


def loss_tables(report: Report, *, full: bool) -> Iterator[tuple[str, str, Table]]:
    """Differences of log-loss by group, if there are any; a full table has all rows."""
    shown = _ranked(report, _RAW)
    if not shown:
        return
    head = _head(report, "log-loss")
    calibrated = any(part.calibrated_log_loss is not None for part in shown)
    head += ["calibrated", "p (Holm)"] * calibrated
    rows = []
    for part in shown:
        cells = [*_about(report, part), *_cells(part, _RAW)]
        if calibrated:
            _, difference, _, p = _cells(part, _CALIBRATED)
            cells += [difference, p]
        rows.append(cells)
    yield _limited("Log-loss by group", _about_tests(report, _RAW), head, rows, full)
    if full and calibrated:
        found = _ranked(report, _CALIBRATED)
        rows = [[*_about(report, part), *_cells(part, _CALIBRATED)] for part in found]
        note = _about_tests(report, _CALIBRATED)
        yield "Log-loss by group after calibration", note, (_head(report, "log-loss"), rows)


def cost_tables(report: Report, *, full: bool) -> Iterator[tuple[str, str, Table]]:
    """Differences of costs by group, each model at its policy, if there are any."""
    shown = _ranked(report, "cost")
    if shown:
        rows = [[*_about(report, part), *_cells(part, "cost")] for part in shown]
        found = _about_tests(report, "cost"), _head(report, "cost per case"), rows
        yield _limited("Cost against cost by group", *found, full)


def policy_tables(report: Report, *, full: bool) -> Iterator[tuple[str, str, Table]]:
    """What the policy of each model does in each group, the dearest first."""
    found = [(part, part.policy) for part in report.groups if part.policy is not None]
    if not found:
        return
    found.sort(key=lambda both: (both[0].too_small, -both[1].cost.value))
    several = len(report.models) > 1
    alone = "answered alone" if report.answers else "decided alone"
    head = ["group", *(["model"] * several), "cases", "cost per case", alone]
    head += ["wrong of these", "errors of all"]
    rows = [_policy_row(report, part, policy, several) for part, policy in found]
    note = (
        f"{alone.capitalize()}: by the policy chosen on all cases; errors and costs: of new cases. "
        f"{_about_intervals(report)}"
    )
    yield _limited("Cost by group", f"{note} {about_small(report)}".rstrip(), head, rows, full)


def _policy_row(
    report: Report, part: GroupFigures, policy: GroupPolicy, several: bool
) -> list[str]:
    shares = policy.alone, policy.error_rate, policy.error_share
    return [
        _named(report, part),
        *([words.shortened(part.model)] * several),
        words.count(part.n),
        words.amount(policy.cost),
        *("–" if isnan(share.value) else words.percent(share.value) for share in shares),
    ]


def _ranked(report: Report, figure: str) -> list[GroupComparison]:
    """Comparisons that have a figure, those of the largest difference first, small groups last."""

    def rank(part: GroupComparison) -> tuple[bool, float]:
        return part.too_small, -abs(getattr(part, figure).difference)

    found = (part for part in report.group_comparisons if getattr(part, figure) is not None)
    return sorted(found, key=rank)


def _head(report: Report, values: str) -> list[str]:
    about = ["group", *(["models"] * (len(report.models) > 2)), "cases"]
    return [*about, values, "difference", words.level(report.confidence), "p (Holm)"]


def _about(report: Report, part: GroupComparison) -> list[str]:
    pair = f"{words.shortened(part.a)} − {words.shortened(part.b)}"
    return [
        _named(report, part),
        *([pair] * (len(report.models) > 2)),
        words.count(part.n),
    ]


def _named(report: Report, part: GroupFigures | GroupComparison) -> str:
    return name_of(report, part) + (f" {FEW}" if part.too_small else "")


def _cells(part: GroupComparison, figure: str) -> list[str]:
    """Values of both, difference, interval, p-value."""
    test: PairedDifference | PairedCosts | None = getattr(part, figure)
    if test is None:
        return ["–"] * 4
    p = part.adjusted[figure]
    why, p_value = "no test", "–" if isnan(p) else f"{p:.2g}"
    if isinstance(test, PairedCosts):
        values, difference = map(words.money, (test.a, test.b)), words.signed(test.difference, 4)
        limits, why = " to ".join(map(words.money, test.interval)), f"no test: {test.why_no_test}"
    else:
        values, decimals = map(words.number, (test.a, test.b)), words.decimals_for(test.interval)
        difference, limits = words.signed(test.difference, decimals), words.interval(test.interval)
    return [", ".join(values), difference, why if isnan(p) else limits, p_value]


def _about_tests(report: Report, figure: str) -> str:
    """What the rows of differences are."""
    tests = [part.adjusted.get(figure, float("nan")) for part in report.group_comparisons]
    n_tests = sum(not isnan(p) for p in tests)
    first = report.group_comparisons[0]
    whose = "Differences: the first model less the second"
    if len(report.models) == 2:
        whose = f"Differences: {words.shortened(first.a)} less {words.shortened(first.b)}"
    of_costs = figure == "cost"
    parts = [
        f"{whose}{', each at its policy' if of_costs else ''}.",
        _about_intervals(report),
        "They and p allow for one more case as far as the farthest.",
        f"p allows for all {n_tests} tests (Holm)." if n_tests > 1 else "",
        about_small(report),
    ]
    return " ".join(filter(None, parts))


def _about_intervals(report: Report) -> str:
    n = len({(part.column, part.group) for part in report.groups if part.n})
    level = 100 * report.confidence
    return f"Intervals hold in all {n} groups together ({level:g} %, Bonferroni)."


def _limited(
    title: str, note: str, head: list[str], rows: Sequence[list[str]], full: bool
) -> tuple[str, str, Table]:
    """A table of all rows, or of the first ones with a sentence on the others."""
    more = 0 if full else len(rows) - MOST_ROWS
    if more > 0:
        plural = "row" if more == 1 else "rows"
        note = f"{note} {more:,} more {plural}: see the full table (--full)."
    return title, note, (head, list(rows if full else rows[:MOST_ROWS]))
