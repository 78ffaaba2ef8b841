"""A report as data: dictionaries, strict JSON, data frames, numbers for experiment trackers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from .._names import told_apart
from .._typing import Interval
from ..index.inference import PairedDifference
from ..measured import Measured
from .parts import Comparison, GroupFigures, ModelFigures, PairedFigures, ThresholdFigures

if TYPE_CHECKING:
    from .report import Report

#: Of the dictionary; a reader of old files can tell.
FORMAT = 1


def to_dict(report: Report) -> dict[str, Any]:
    """Everything, in plain values."""
    from .. import __version__

    return {
        "format": FORMAT,
        "fragility_version": __version__,
        "n_samples": report.n_samples,
        "classes": [
            {"label": label, "n": n} for label, n in zip(report.labels, report.support, strict=True)
        ],
        "positive": report.positive,
        "weighted": report.weighted,
        "confidence": report.confidence,
        "costs": _costs(report),
        "findings": [asdict(finding) for finding in report.findings],
        "notes": list(report.notes),
        "models": [
            {
                "name": model.name,
                "raw": _figures(model.raw),
                "calibrated": None if model.calibrated is None else _figures(model.calibrated),
                "why_not_calibrated": model.why_not_calibrated or None,
                "worst_cases": [asdict(case) for case in model.worst],
            }
            for model in report.models
        ],
        "comparisons": [comparison_data(pair) for pair in report.comparisons],
        "groups": [group_data(part) for part in report.groups],
    }


def _costs(report: Report) -> dict[str, Any] | None:
    if report.costs is None:
        return None
    found = report.costs.to_dict()
    if isinstance(found["error_cost"], list) and not isinstance(found["error_cost"][0], list):
        found["error_cost"] = "one for each case"  # the numbers would be data of the cases
    return found


def _figures(model: ModelFigures) -> dict[str, Any]:
    return {
        "figures": {name: measured_data(figure) for name, figure in model.figures.items()},
        "pairs": model.pairs.tolist(),
        "n_infinite_pairs": model.n_infinite_pairs,
        "threshold": None if model.threshold is None else _threshold(model.threshold),
        "confident_cases": asdict(model.confident),
    }


def measured_data(figure: Measured) -> dict[str, Any]:
    """A figure with how sure it is."""
    return {
        "value": figure.value,
        "interval": _limits(figure.interval),
        "exact": figure.exact,
        "bounds": _limits(figure.bounds),
        "estimator": figure.estimator,
    }


def _limits(limits: Interval | None) -> list[float] | None:
    return None if limits is None or isnan(limits.low) else list(limits)


def _threshold(found: ThresholdFigures) -> dict[str, Any]:
    return {
        **vars(found),
        "cost": measured_data(found.cost),
        "gap_interval": _limits(found.gap_interval),
    }


def comparison_data(pair: Comparison) -> dict[str, Any]:
    """Both tests of two models."""
    return {
        "a": pair.a,
        "b": pair.b,
        "raw": _test(pair.raw),
        "calibrated": None if pair.calibrated is None else _test(pair.calibrated),
    }


def _test(test: PairedFigures) -> dict[str, Any]:
    return {
        "fragility_index": _paired(test.index),
        "ratio": _paired(test.ratio),
        "adjusted_p_value": test.p_value,
    }


def _paired(part: PairedDifference) -> dict[str, Any]:
    return {
        "a": part.a,
        "b": part.b,
        "difference": part.difference,
        "standard_error": part.standard_error,
        "interval": _limits(part.interval),
        "p_value": part.p_value,
    }


def group_data(part: GroupFigures) -> dict[str, Any]:
    """The index of a model in a group."""
    return {
        "model": part.model,
        "group": part.group,
        "n": part.n,
        "fragility_index": None if part.index is None else measured_data(part.index),
        "ratio": part.ratio,
        "undefined_because": part.reason or None,
    }


def to_json(report: Report, indent: int | None) -> str:
    """Strict JSON of the whole report."""
    return json_text(to_dict(report), indent)


def json_text(value: Any, indent: int | None = 2) -> str:
    """Strict JSON of plain values: infinity as text, NaN as null."""
    return json.dumps(strict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def strict(value: Any) -> Any:
    """Plain values that strict JSON can hold."""
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


def _columns(report: Report) -> dict[str, list[Any]]:
    """The table, long: one row for each model, calibration and figure."""
    names = ("model", "calibrated", "figure", "value", "low", "high", "exact", "least", "most")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for model, after, part in _versions(report):
        for name, figure in part.figures.items():
            low, high = figure.interval or (None, None)
            least, most = figure.bounds or (figure.value, figure.value)
            row = (model, after, name, figure.value, low, high, figure.exact, least, most)
            for column, cell in zip(names, row, strict=True):
                columns[column].append(cell)
    return columns


def to_pandas(report: Report) -> Any:
    """The table as a pandas DataFrame."""
    return _library("pandas").DataFrame(_columns(report))


def to_polars(report: Report) -> Any:
    """The table as a polars DataFrame."""
    return _library("polars").DataFrame(_columns(report))


def to_arrow(report: Report) -> Any:
    """The table as a pyarrow Table."""
    return _library("pyarrow").table(_columns(report))


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"This needs {name}, which is not installed: pip install {name}"
        ) from error
