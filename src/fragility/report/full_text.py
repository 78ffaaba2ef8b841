"""Tables of a full report: calibration, operating points, surest cases, what policies decide."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from .._summary import threshold as percent_of
from ..figures.operating import BoundedPoints
from ..measured import EVIDENCE
from . import words
from .evidence import Evidence
from .group_comparison_text import cost_tables, loss_tables
from .group_text import about_groups, all_rows
from .parts import ModelReport
from .words import Table

if TYPE_CHECKING:
    from .report import Report

#: Rows of the table of surest cases: those above such a confidence.
_CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def full_tables(report: Report) -> Iterator[tuple[str, str, Table]]:
    """Title, what the rows are, heading and rows."""
    note = "" if report.prevalence is None else f"At a prevalence of {_share(report.prevalence)}."
    if report.comparisons:
        yield (
            "Every figure, model against model",
            about_differences(report),
            difference_rows(report),
        )
    yield from loss_tables(report, full=True)
    yield from cost_tables(report, full=True)
    restated = note and f"{note[:-1]}, but for ranks and surest cases."
    yield "Calibration, ranks and surest cases", restated, evidence_rows(report)
    for model in report.models:
        name, found = words.shortened(model.name), model.raw.evidence
        independent = report.clustered and report.streamed
        count = "The band counts cases, not clusters." if independent else ""
        yield f"Reliability of {name}", f"{note} {count}".strip(), reliability_rows(found)
        if found.operating is not None:
            what = "Flagged: scores of at least the threshold."
            if report.answers:
                what = "Answered: a confidence of at least the threshold, of the cases answered."
            table = operating_rows(found, answers=report.answers)
            yield f"Operating points of {name}", f"{what} {note}".strip(), table
        surest = coverage_rows(found, report.confident, answers=report.answers)
        yield f"Surest cases of {name}", "", surest
        if any(part.model == model.name and part.figures for part in report.groups):
            title = f"Every figure of {name} by group"
            about = about_groups(report, policies=False)
            yield title, about, all_rows(report, model.name)
        if model.confusion is not None:
            what = "Of new cases."
            yield f"Decisions of the policy of {name}", what, confusion_rows(report, model)


def about_differences(report: Report) -> str:
    """What the p-values of `difference_rows` allow for."""
    n_tests = report.comparisons[0].raw.n_tests
    return (
        f"p: of each test alone; Holm: corrected for the {n_tests['fragility_index']} tests of the "
        f"Fragility Index, and for the {n_tests['auc']} of the other figures."
    )


def difference_rows(report: Report) -> Table:
    """Paired differences of every figure, before and after calibration."""
    head = ["", "", "a", "b", "a − b", words.level(report.confidence), "p", "Holm"]
    rows = []
    for pair in report.comparisons:
        name = f"{words.shortened(pair.a)} − {words.shortened(pair.b)}"
        for found, after in ((pair.raw, ""), (pair.calibrated, ", calibrated")):
            if found is None:
                continue
            for figure, test in found.tests.items():
                cells = [name, report.titles[figure] + after]
                cells += [words.number(test.a), words.number(test.b)]
                if abs(test.difference) <= 1e-12 * (abs(test.a) + abs(test.b)):
                    cells += ["0", "equal but for rounding", "–", "–"]
                elif isnan(test.p_value):
                    cells += [words.signed(test.difference), "no test", "–", "–"]
                else:
                    decimals = words.decimals_for(test.interval)
                    cells += [
                        words.signed(test.difference, decimals),
                        words.interval(test.interval),
                        f"{test.p_value:.2g}",
                        f"{found.adjusted[figure]:.2g}",
                    ]
                rows.append(cells)
    return head, rows


def evidence_rows(report: Report) -> Table:
    """Single numbers, as they are and after calibration: a column for each model."""
    rows = []
    for after in (False, True):
        found = [model.calibrated if after else model.raw for model in report.models]
        for name, kind in EVIDENCE.items():
            cells = [
                words.measured(part.evidence.figures[name])
                if part is not None and name in part.evidence.figures
                else "–"
                for part in found
            ]
            if any(cell != "–" for cell in cells):
                title = f"{kind.title}, calibrated" if after else kind.title
                if name == "net_benefit":
                    at = report.models[0].raw.evidence.cost_threshold
                    assert at is not None  # or there is no net benefit
                    title = f"{title}, at {percent_of(at)}"
                rows.append([title, *cells])
    return ["", *(words.shortened(model.name) for model in report.models)], rows


def reliability_rows(found: Evidence) -> Table:
    """Predicted and observed frequency with its band, by bins of equal mass."""
    curve = found.reliability
    head = ["predicted", "observed", f"{100 * curve.confidence:g} % band", "cases"]
    rows = [
        [_share(p), _share(o), f"{_share(low)} to {_share(high)}", f"{n:,.4g}"]
        for p, o, low, high, n in zip(
            curve.predicted, curve.observed, curve.lower, curve.upper, curve.counts, strict=True
        )
    ]
    return head, rows


def operating_rows(found: Evidence, *, answers: bool = False) -> Table:
    """What happens at each threshold; that of the costs is named."""
    assert found.operating is not None
    points = found.operating.points
    head = ["threshold", "sensitivity", "specificity", "PPV", "NPV", "flagged"]
    head += ["to evaluate", "net benefit", "treat all"]
    if answers:
        head = ["threshold", "right ones given", "wrong ones held back", "right of these"]
        head += ["wrong of the rest", "answered", "for one right", "net benefit", "answer all"]
    names = ("sensitivity", "specificity", "ppv", "npv", "flagged")
    treat_all = found.treat_all(points.thresholds)
    rows = []
    for place, threshold in enumerate(points.thresholds.tolist()):
        own = " (costs)" if threshold == found.cost_threshold else ""
        rows.append(
            [
                f"{percent_of(threshold)}{own}",
                *(_between(found.operating, name, place) for name in names),
                words.number(points.number_needed_to_evaluate[place], 1),
                words.number(points.net_benefit[place], 4),
                words.number(float(treat_all[place]), 4),
            ]
        )
    return head, rows


def coverage_rows(found: Evidence, confident: float, *, answers: bool) -> Table:
    """Cases above some confidences, that of confident ones among them, and their errors."""
    curve = found.risk_coverage
    rows = []
    for level in sorted({*_CONFIDENCES, confident}):
        # The point at the lowest threshold that is not below: no case lies between.
        place = int(np.searchsorted(-curve.confidence, -level, side="right")) - 1
        if place >= 0:
            cells = [_share(curve.coverage[place]), _share(curve.risk[place])]
            rows.append([f"above {_share(level)}", *cells])
    every = "answers" if answers else "cases"  # declined cases have no confidence
    return ["confidence", f"of all {every}", "wrong of these"], rows


def confusion_rows(report: Report, model: ModelReport) -> Table:
    """Cases by true class, and what the policy decides."""
    assert model.confusion is not None
    names = [words.shortened(label) for label in report.labels]
    if report.answers:
        return ["", "given", "passed on"], [
            [f"{name} answers", *(f"{n:,.5g}" for n in cells[1:])]
            for name, cells in zip(names, model.confusion.tolist(), strict=True)
        ]
    rows = [
        [f"true {name}", *(f"{n:,.5g}" for n in cells)]
        for name, cells in zip(names, model.confusion.tolist(), strict=True)
    ]
    return ["", *(f"decided {name}" for name in names), "reviewed"], rows


def _share(value: float) -> str:
    return words.percent(float(value))


def _between(found: BoundedPoints, name: str, place: int) -> str:
    """A share; where it is known between bounds that a reader sees, with both."""
    value = _share(getattr(found.points, name)[place])
    if found.least is None or found.most is None:
        return value
    low, high = (_share(getattr(part, name)[place]) for part in (found.least, found.most))
    return value if low == high else f"{low} to {high}"
