"""Every call of the library that the recorded answers rest on.

When a public name changes, this file changes; the recorded numbers do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fragility as library
from fragility import PreviousPredictions, Report
from fragility.calibration import cross_fitted_calibration

from ..command import Ended
from ..command import fragility as command


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
    return command("evaluate", path.name, *options, "--json", cwd=path.parent)


#: Functions of labels and scores with one number as answer.
NUMBERS = (
    *("calibration_slope", "calibration_intercept", "observed_expected_ratio"),
    *("integrated_calibration_index", "equal_mass_calibration_error", "confident_error_rate"),
    *("buffered_auc_score", "ranking_error_cvar", "area_under_risk_coverage"),
    *("surest_error_rate", "gini_score", "ks_statistic"),
)


def metrics(y: Any, p: Any, weight: Any) -> dict[str, Any]:
    """Return every figure that has a function of its own."""
    options = {"sample_weight": weight}
    answers = {name: getattr(library, name)(y, p, **options) for name in NUMBERS}
    answers["net benefit"] = library.net_benefit(y, p, 0.3, **options)
    answers["operating points"] = vars(library.operating_points(y, p, [0.2, 0.5, 0.8], **options))
    answers["reliability curve"] = vars(library.reliability_curve(y, p, **options))
    answers["stability"] = library.population_stability_index(p, p**1.2)
    curve = library.risk_coverage_curve(y, p, **options)
    answers["risk and coverage"] = [curve.risk[::20], curve.coverage[::20]]
    return answers


def costs_compared(y: Any, one: Any, other: Any, costs: dict[str, Any], weight: Any) -> Any:
    """Return the paired test of the costs of two models."""
    return library.compare_costs(y, one, other, **costs, sample_weight=weight).to_dict()


def calibrated(y: Any, p: Any) -> Any:
    """Return probabilities after cross-fitted maps."""
    return cross_fitted_calibration(y, p)


def policy(y: Any, p: Any, costs: dict[str, Any]) -> Any:
    """Return the best policy as plain values."""
    return library.best_policy(y, p, **costs).to_dict()


def decisions(y: Any, p: Any, costs: dict[str, Any]) -> list[list[Any]]:
    """Return label, whether the model decides alone, and what that saves, of each case."""
    decided = library.best_policy(y, p, **costs).decide(p)
    columns = (decided.label, decided.automate, decided.saving)
    return [
        list(row) for row in zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    ]


def deferral(y: Any, p: Any, costs: dict[str, Any]) -> Any:
    """Return the cost at every threshold of the confidence."""
    return library.deferral_curve(y, p, **costs).to_dict()


def slices(columns: Any, y: Any, p: Any) -> list[dict[str, Any]]:
    """Return the conditions under which a model is surely wrong."""
    import pandas as pd

    found = library.find_slices(pd.DataFrame(columns), y, p, n_permutations=499)
    return [vars(entry) for entry in found]


def plan(y: Any, scores: Any, asked: dict[str, float]) -> Any:
    """Return how many cases an evaluation needs."""
    predictions = scores if "difference" in asked else scores["m0"]
    return vars(library.plan_evaluation(y, predictions, **asked))


def alarm(errors: list[int], decided: list[int], rate: float) -> Any:
    """Return what the alarm of errors says of several looks."""
    return vars(library.error_alarm(errors, decided, rate))
