"""A report as data: dictionaries, strict JSON, data frames, numbers for experiment trackers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from itertools import zip_longest
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from .._names import told_apart
from .._parameters import check_choice
from .._typing import Interval
from ..calibration.choice import CalibrationChoice
from ..figures.coverage import RiskCoverageCurve
from ..figures.operating import OperatingPoints
from ..figures.reliability import ReliabilityCurve
from ..measured import Measured
from .evidence import Evidence
from .parts import GroupComparison, GroupFigures, ModelFigures, PairedFigures

if TYPE_CHECKING:
    from .report import Report

#: Version of the dictionary, by which a reader tells old files.
FORMAT = 4


def to_dict(report: Report) -> dict[str, Any]:
    """The whole report in plain values."""
    from .. import __version__

    return {
        "format": FORMAT,
        "fragility_version": __version__,
        "n_samples": report.n_samples,
        "classes": [
            {"label": label, "n": n}
            for label, n in zip_longest(report.labels, report.support)  # by model, of answers
        ],
        "positive": report.positive,
        "weighted": report.weighted,
        "clustered": report.clustered,
        "confidence": report.confidence,
        "confident": report.confident,
        "prevalence": report.prevalence,
        "costs": _costs(report),
        "findings": [asdict(finding) for finding in report.findings],
        "notes": list(report.notes),
        "models": [
            {
                "name": model.name,
                "raw": _figures(model.raw),
                "calibrated": model.calibrated and _figures(model.calibrated),
                "why_not_calibrated": model.why_not_calibrated or None,
                "calibration": model.calibration and _choice(model.calibration),
                "policy": model.policy and model.policy.to_dict(),
                "confusion": None if model.confusion is None else model.confusion.tolist(),
                "answers": model.answers and asdict(model.answers),
                "worst_cases": [asdict(case) for case in model.worst],
            }
            for model in report.models
        ],
        "comparisons": [
            {
                "a": pair.a,
                "b": pair.b,
                "raw": _test(pair.raw),
                "calibrated": pair.calibrated and _test(pair.calibrated),
                "cost": pair.cost
                and {
                    **_plain(pair.cost.test),
                    "adjusted_p_value": pair.cost.p_value,
                    "n_tests": pair.cost.n_tests,
                },
            }
            for pair in report.comparisons
        ],
        "shared_mistakes": [asdict(case) for case in report.shared_mistakes],
        "n_shared_mistakes": report.n_shared_mistakes,
        "new_mistakes": [asdict(part) for part in report.new_mistakes],
        "min_cell": report.min_cell,
        "groups": [_group(part) for part in report.groups],
        "group_comparisons": [_group_comparison(part) for part in report.group_comparisons],
    }


def _group(part: GroupFigures) -> dict[str, Any]:
    """Intervals are simultaneous: they hold in all groups together."""
    return {
        "model": part.model,
        "column": part.column,
        "group": part.group,
        "n": part.n,
        "support": list(part.support),
        "base_rate": _plain(part.base_rate),
        "too_small": part.too_small,
        "undefined_because": part.reason or None,
        "figures": {name: _plain(figure) for name, figure in part.figures.items()},
        "policy": _plain(part.policy),
    }


def _group_comparison(part: GroupComparison) -> dict[str, Any]:
    """Intervals are simultaneous; adjusted p-values allow for all groups and pairs of models."""
    about = {name: getattr(part, name) for name in ("a", "b", "column", "group", "n", "too_small")}
    tests: dict[str, Any] = dict.fromkeys(_COMPARED)
    for name, test in _group_tests(part):
        tests[name] = {**_plain(test), "adjusted_p_value": part.adjusted[name]}
    return about | tests


#: What is compared by group.
_COMPARED = ("log_loss", "calibrated_log_loss", "cost")


def _group_tests(part: GroupComparison) -> list[tuple[str, Any]]:
    """The tests that there are, by name."""
    found = ((name, getattr(part, name)) for name in _COMPARED)
    return [(name, test) for name, test in found if test is not None]


def _costs(report: Report) -> dict[str, Any] | None:
    if report.costs is None:
        return None
    found = report.costs.to_dict()
    if isinstance(found["error_cost"], list) and not isinstance(found["error_cost"][0], list):
        found["error_cost"] = "one for each case"  # the numbers would be data of the cases
    if report.reviewed:  # whose means by class are in the policies
        found["reviewer_error"] = _REVIEWED[report.reviewed]
    return found


_REVIEWED = {"human": "measured from human decisions", "errors": "one for each case"}


def _figures(model: ModelFigures) -> dict[str, Any]:
    return {
        "figures": {name: _plain(figure) for name, figure in model.figures.items()},
        "pairs": model.pairs.tolist(),
        "n_infinite_pairs": model.n_infinite_pairs,
        "confident_cases": asdict(model.confident),
        "evidence": _evidence(model.evidence),
    }


def _evidence(found: Evidence) -> dict[str, Any]:
    """Single numbers, and the curves by column; limits only where points are not exact."""
    return {
        "figures": {name: _plain(figure) for name, figure in found.figures.items()},
        "prevalence": found.prevalence,
        "cost_threshold": found.cost_threshold,
        "reliability": _columns(found.reliability),
        "risk_coverage": _columns(found.risk_coverage),
        "operating": found.operating and _columns(found.operating),
        "decision_curve": found.decision_curve and _columns(found.decision_curve),
    }


def _columns(part: Any) -> Any:
    """Arrays of a curve as lists, by name."""
    if is_dataclass(part):
        return {name: _columns(value) for name, value in vars(part).items()}
    return part.tolist() if isinstance(part, np.ndarray) else part


def _choice(found: CalibrationChoice) -> dict[str, Any]:
    """Which map, the log-loss by each, and the standard error of its difference to the chosen."""
    losses, errors = dict(found.losses), dict(found.errors)
    return {"method": found.method, "log_loss": losses, "standard_error": errors}


def _test(test: PairedFigures) -> dict[str, Any]:
    return {
        name: {
            **_plain(found),
            "adjusted_p_value": test.adjusted[name],
            "n_tests": test.n_tests[name],
        }
        for name, found in test.tests.items()
    }


def _plain(part: Any) -> Any:
    """Fields of a dataclass as a dictionary, limits as a list; None if they are undefined."""
    if isinstance(part, Interval):
        return None if isnan(part.low) else list(part)
    if isinstance(part, Measured):
        value, interval, bounds = part.value, _plain(part.interval), _plain(part.bounds)
        certainty = {"interval": interval, "exact": part.exact, "bounds": bounds}
        return {
            "value": value,
            "standard_error": part.standard_error,
            **certainty,
            "estimator": part.estimator,
        }
    return {n: _plain(v) for n, v in vars(part).items()} if is_dataclass(part) else part


def json_text(value: Any, indent: int | None = 2) -> str:
    """Strict JSON of plain values: infinity as text, NaN as null."""
    return json.dumps(strict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def strict(value: Any) -> Any:
    """The same in plain values that strict JSON can hold."""
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, np.generic):
        return strict(value.item())
    if isinstance(value, float):
        if isnan(value):
            return None
        if isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, (str, bool, int, float)) or value is None else str(value)


def _versions(report: Report) -> Iterator[tuple[str, bool, ModelFigures]]:
    for model in report.models:
        yield model.name, False, model.raw
        if model.calibrated is not None:
            yield model.name, True, model.calibrated


def to_metrics(report: Report) -> dict[str, float]:
    """Flat names that experiment trackers accept."""
    found: dict[str, float] = {}
    for model, after, part in _versions(report):
        for name, figure in part.figures.items():
            key = "/".join([model, *(["calibrated"] if after else []), name])
            found[told_apart(re.sub(r"[^\w\-./ ]", "_", key), found)] = figure.value
    return found


def to_table(report: Report, table: str, library: str, constructor: str) -> Any:
    """A table, long: a row for each model, calibration, and figure or point; made by a library."""
    check_choice(table, tuple(_TABLES), "table")
    names, rows = _TABLES[table](report)
    columns = map(list, zip(*rows, strict=True)) if rows else [[] for _ in names]
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(
            f"This needs {library}, which is not installed: pip install {library}"
        ) from error
    return getattr(module, constructor)(dict(zip(names, columns, strict=True)))


#: Names of columns, and rows.
Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]
_MODEL = ("model", "calibrated")


def _measured_rows(report: Report, found: Callable[[ModelFigures], Mapping[str, Measured]]) -> Rows:
    names = (*_MODEL, "figure", "value", "standard_error", "low", "high", "exact", "least", "most")
    rows = []
    for model, after, part in _versions(report):
        for name, figure in found(part).items():
            rows.append((model, after, name, *_measured_cells(figure)))
    return names, rows


def _comparison_rows(report: Report) -> Rows:
    """A row for each two models, calibration and figure."""
    names = (
        *("a", "b", "calibrated", "figure", "value_a", "value_b", "difference", "standard_error"),
        *("low", "high", "p_value", "adjusted_p_value", "n_tests"),
    )
    rows: list[tuple[Any, ...]] = []
    for pair in report.comparisons:
        for after, found in ((False, pair.raw), (True, pair.calibrated)):
            if found is None:
                continue
            for name, test in found.tests.items():
                known = test.a, test.b, test.difference, test.standard_error, *test.interval
                corrected = test.p_value, found.adjusted[name], found.n_tests[name]
                rows.append((pair.a, pair.b, after, name, *known, *corrected))
    return names, rows


def _curve_rows(report: Report, kind: type, found: Callable[[Evidence], Any]) -> Rows:
    """A row for each point of a curve of each model that has it."""
    names = [field.name for field in fields(kind) if field.name != "confidence" or kind in _LEVELS]
    rows: list[tuple[Any, ...]] = []
    for model, after, part in _versions(report):
        curve = found(part.evidence)
        if curve is not None:
            arrays = [getattr(curve, name).tolist() for name in names]
            rows += [(model, after, *point) for point in zip(*arrays, strict=True)]
    return (*_MODEL, *names), rows


#: Curves whose `confidence` is that of each point, not of an interval.
_LEVELS = (RiskCoverageCurve,)


def _confusion(report: Report) -> Rows:
    rows: list[tuple[Any, ...]] = []
    for model in report.models:
        if model.confusion is not None:
            for true, cells in zip(report.labels, model.confusion.tolist(), strict=True):
                decided = (*map(str, report.labels), "review")
                rows += [
                    (model.name, str(true), label, weight)
                    for label, weight in zip(decided, cells, strict=True)
                ]
    return ("model", "true", "decided", "cases"), rows


def _group_rows(report: Report) -> Rows:
    """A row for each model, group and figure; intervals hold in all groups together."""
    names = (
        *("model", "column", "group", "n", "too_small", "figure", "value", "standard_error"),
        *("low", "high", "exact", "least", "most"),
    )
    rows = []
    for part in report.groups:
        found = dict(part.figures) if part.base_rate is None else {"base_rate": part.base_rate}
        found |= part.figures
        if part.policy is not None:
            found |= vars(part.policy)
        for name, figure in found.items():
            of = part.model, part.column, part.group, part.n, part.too_small, name
            rows.append((*of, *_measured_cells(figure)))
    return names, rows


def _group_comparison_rows(report: Report) -> Rows:
    """A row for each two models, group and figure; intervals hold in all groups together."""
    names = (
        *("a", "b", "column", "group", "n", "too_small", "figure", "value_a", "value_b"),
        *("difference", "low", "high", "p_value", "adjusted_p_value"),
    )
    rows = [
        (
            *(part.a, part.b, part.column, part.group, part.n, part.too_small, name),
            *(test.a, test.b, test.difference, *test.interval, test.p_value, part.adjusted[name]),
        )
        for part in report.group_comparisons
        for name, test in _group_tests(part)
    ]
    return names, rows


def _measured_cells(figure: Measured) -> tuple[Any, ...]:
    """Value, standard error, interval, whether it is exact, and bounds."""
    interval = figure.interval or (None, None)
    bounds = figure.bounds or (figure.value, figure.value)
    return figure.value, figure.standard_error, *interval, figure.exact, *bounds


def _reviewer_rows(report: Report) -> Rows:
    rows: list[tuple[Any, ...]] = []
    for model in report.models:
        if model.policy is not None and model.policy.reviewers is not None:
            for name, who, found in model.policy.reviewers.figures():
                interval = found.interval or (None, None)
                rows.append((model.name, name, who, found.value, *interval))
    return ("model", "figure", "of", "value", "low", "high"), rows


_TABLES: dict[str, Callable[[Report], Rows]] = {
    "figures": lambda report: _measured_rows(report, lambda part: part.figures),
    "evidence": lambda report: _measured_rows(report, lambda part: part.evidence.figures),
    "reliability": lambda report: _curve_rows(
        report, ReliabilityCurve, lambda found: found.reliability
    ),
    "operating": lambda report: _curve_rows(
        report, OperatingPoints, lambda found: found.operating and found.operating.points
    ),
    "decision_curve": lambda report: _curve_rows(
        report, OperatingPoints, lambda found: found.decision_curve and found.decision_curve.points
    ),
    "risk_coverage": lambda report: _curve_rows(
        report, RiskCoverageCurve, lambda found: found.risk_coverage
    ),
    "confusion": _confusion,
    "groups": _group_rows,
    "group_comparisons": _group_comparison_rows,
    "comparisons": _comparison_rows,
    "reviewers": _reviewer_rows,
}
