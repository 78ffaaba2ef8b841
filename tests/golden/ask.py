"""Every call of the library that the recorded answers rest on.

When a public name changes, this file changes; the recorded numbers do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fragility import PreviousPredictions, Report

from ..command import Ended, fragility


def report_of(y: Any, models: Mapping[str, Any], **case: Any) -> Report:
    """Return the report on these predictions; with `correct` in the case, on these answers."""
    if "previous" in case:
        case = {**case, "previous": PreviousPredictions(**case["previous"])}
    if "correct" in case:
        return Report.from_outcomes(case.pop("correct"), models, **case)
    return Report.from_predictions(y, models, **case)


def flat(report: Report) -> dict[str, Any]:
    """Return the figures, tests, policies, worst rows and groups of a report as plain values."""
    return {
        "verdict": {"model": report.verdict.model, "sentences": list(report.verdict.sentences)},
        "models": {model.name: _model(model) for model in report.models},
        "comparisons": {
            f"{pair.a} - {pair.b}": {
                figure: [test.difference, test.standard_error, test.p_value]
                for figure, test in pair.raw.tests.items()
            }
            for pair in report.comparisons
        },
        "groups": {
            f"{group.model} {group.column}={group.group}": {
                figure: _measured(value) for figure, value in (group.figures or {}).items()
            }
            for group in report.groups
        },
    }


POLICY_FIGURES = (
    *("decision", "cost", "automation_rate", "error_rate", "misses", "false_alarms"),
    *("cost_without_review", "cost_review_all", "cost_interval"),
)


def _model(model: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {"raw": _figures(model.raw)}
    if model.calibrated is not None:
        answers |= {"calibrated": _figures(model.calibrated), "map": model.calibration.method}
    if model.policy is not None:
        policy = model.policy.to_dict()
        answers["policy"] = {name: policy[name] for name in POLICY_FIGURES}
    answers["worst_rows"] = [case.row for case in model.worst]
    return answers


def _figures(measurement: Any) -> dict[str, Any]:
    return {figure: _measured(value) for figure, value in measurement.figures.items()}


def _measured(measured: Any) -> list[float | None] | None:
    """Return value, standard error, lower and upper end."""
    if measured is None:
        return None
    return [measured.value, measured.standard_error, *(measured.interval or (None, None))]


def whole(report: Report) -> dict[str, Any]:
    """Return everything that a report says, without when, where and by which version."""
    content = report.to_dict()
    return {name: content[name] for name in content.keys() - {"provenance", "fragility_version"}}


def evaluate_file(path: Path, **asked: Any) -> Ended:
    """Run the command on a file; `asked` says which of its columns are what."""
    options = [
        part
        for name, given in asked.items()
        for value in (given if isinstance(given, tuple) else (given,))
        for part in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [value]))
    ]
    return fragility("evaluate", path.name, *options, "--json", cwd=path.parent)
