"""The figures of one table of cases are those that reports gave when they were recorded."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fragility.cases.checks import CaseColumns, cases_of_answers, cases_of_predictions
from fragility.figures.measuring import measure_models

from ..golden import banks
from ..golden.compare import differences, relative_above_one
from ..golden.test_figures import MORE_SETS, SETS, drawn

RECORDED = {**SETS, **{name: entry["figures"] for name, entry in MORE_SETS.items()}}
VALUES, ERRORS = relative_above_one(1e-9), relative_above_one(1e-6)
#: The 5 % quantile of the errors is reached between two errors, and any level there is an optimum:
#: the least is taken, an average was. Of the limits with one more mistake a small change remains.
NOT_UNIQUE = {"cvar": relative_above_one(1e-5)}
BETWEEN_ERRORS = {"nine cases", "groups, 3 classes"}
#: An infinite index has no standard error: it was said to be zero, or that of its finite pairs.
INFINITE = ("fragility_index", "ratio")


def measured(name):
    case = drawn()[name]
    options = {key: case.get(key) for key in ("sample_weight", "groups", "cluster")}
    columns = CaseColumns(**options, cross_groups=case.get("cross_groups", True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "correct" in case:
            asked = case["correct"], case["models"], case.get("declined")
            cases = cases_of_answers(*asked, columns)
        else:
            labels = {key: case.get(key) for key in ("labels", "pos_label")}
            cases = cases_of_predictions(case["y"], case["models"], columns, **labels)
    levels = {
        "confidence_level": case.get("confidence", 0.95),
        "confident_above": case.get("confident", 0.9),
    }
    return cases, measure_models(cases, **levels), levels


def numbers(figure):
    return [figure.value, figure.standard_error, *(figure.interval or (None, None))]


def compared(recorded, figures, name):
    """Differences of figures, each a list of value, standard error and limits."""
    tolerances = {"": ERRORS, **NOT_UNIQUE}
    lines = []
    for figure, entry in figures.items():
        expected, actual = list(recorded[figure]), banks.recordable(numbers(entry))
        if figure in INFINITE and not np.isfinite(entry.value):
            expected[1] = None
        if figure == "cvar" and name in BETWEEN_ERRORS:
            expected, actual = expected[:1], actual[:1]
        lines += differences({figure: expected[0]}, {figure: actual[0]}, VALUES)
        lines += differences({figure: expected}, {figure: actual}, tolerances)
    return lines


@pytest.mark.parametrize("name", RECORDED)
def test_figures_of_models(name):
    cases, result, _ = measured(name)
    for model in cases.scores:
        recorded = RECORDED[name]["models"][model]["raw"]
        assert compared(recorded, result.figures[model], name) == [], model


@pytest.mark.parametrize("name", [name for name in RECORDED if RECORDED[name]["comparisons"]])
def test_differences_of_models(name):
    cases, result, _ = measured(name)
    # Of answers the spread does not split by class: two models have no classes in common.
    errors = relative_above_one(1e-2) if cases.answers else ERRORS
    for (a, b), tests in result.differences.items():
        recorded = RECORDED[name]["comparisons"][f"{a} - {b}"]
        for figure, test in tests.items():
            if figure == "cvar" and name in BETWEEN_ERRORS:
                continue
            actual = [test.difference, test.standard_error, test.p_value]
            actual = banks.recordable(actual)
            assert differences(recorded[figure][0], actual[0], VALUES) == [], figure
            assert differences(recorded[figure], actual, errors) == [], figure


@pytest.mark.parametrize("name", [name for name in RECORDED if RECORDED[name]["groups"]])
def test_figures_of_groups(name):
    cases, _, levels = measured(name)
    # Intervals hold in all groups together (Bonferroni).
    n_groups = sum(np.unique(codes).size for codes in cases.groups.values())
    levels["confidence_level"] = 1 - (1 - levels["confidence_level"]) / n_groups
    seen = 0
    for column, codes in cases.groups.items():
        for code, group in enumerate(cases.group_names[column]):
            if not (codes == code).any():
                continue
            result = measure_models(cases.group(column, code), **levels)
            for model, figures in result.figures.items():
                recorded = RECORDED[name]["groups"].get(f"{model} {column}={group}")
                if recorded:
                    assert compared(recorded, figures, name) == [], (model, column, group)
                    seen += 1
    assert seen > 1
