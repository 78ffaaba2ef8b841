"""Gates: what is not known does not pass, and reasons are true."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from fragility import Interval, Report
from fragility.measured import Measured
from fragility.report.gates import check_gates, not_held
from fragility.report.limits import KINDS, POLICY_FIGURES, Limits

RNG = np.random.default_rng(0)
LOGIT = 2 * RNG.normal(size=400)
FAIR = 1 / (1 + np.exp(-LOGIT))
REPORT = Report.from_predictions(RNG.random(400) < FAIR, {"m": FAIR}, costs={"error_cost": 10.0})


def with_figure(name, figure):
    (model,) = REPORT.models
    raw = replace(model.raw, figures={**model.raw.figures, name: figure})
    return replace(REPORT, models=(replace(model, raw=raw),))


def limits_of(upper_limit=False, **limits):
    """Limits by figure: the least value of AUC, the largest of all others."""
    least = {name: limit for name, limit in limits.items() if name == "auc"}
    largest = {name: limit for name, limit in limits.items() if name != "auc"}
    return Limits(largest, least, upper_limit)


def verdict(report, **limits):
    (check,) = check_gates(report, limits_of(**limits))
    return check


@pytest.mark.parametrize("name", ["fragility_index", "cost", "log_loss", "calibration_error"])
def test_upper_limit_holds_the_end_of_the_interval(name):
    figure = REPORT.models[0].raw.figures[name]
    between = {name: (figure.value + figure.interval.high) / 2}
    assert verdict(REPORT, **between).passed
    assert not verdict(REPORT, **between, upper_limit=True).passed
    assert verdict(REPORT, **{name: 1.01 * figure.interval.high}, upper_limit=True).passed


@pytest.mark.parametrize("name", ["fragility_index", "cost"])
def test_no_upper_limit_is_passed_without_an_interval(name):
    without = with_figure(name, Measured(0.1))
    assert verdict(without, **{name: 0.5}).passed
    check = verdict(without, **{name: 0.5}, upper_limit=True)
    assert not check.passed
    assert "has no interval" in check.reason


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"fragility_index": 0.2}, True),
        ({"fragility_index": 0.2, "auc": 0.8}, True),  # shrinking does not move AUC
        ({"fragility_index": 0.2, "ratio": 0.5}, False),
        ({"fragility_index": 0.2, "log_loss": 0.5}, False),
        ({"fragility_index": 0.2, "brier": 0.5}, False),
        ({"auc": 0.8}, False),
    ],
)
def test_what_shrinking_would_pass_is_known(limits, expected):
    assert limits_of(**limits).passed_by_shrinking == expected


def test_bounds_hold_at_the_worse_end():
    bounds = Interval(0.75, 0.85)
    known = with_figure("auc", Measured(0.8, bounds=bounds))
    assert verdict(known, auc=0.74).passed
    assert not verdict(known, auc=0.78).passed
    known = with_figure("cost", Measured(0.8, bounds=bounds))
    assert not verdict(known, cost=0.82).passed
    assert verdict(known, cost=0.86).passed


def test_one_constant_column_is_not_called_the_same_score():
    p = np.column_stack([0.2 + 0.6 * FAIR, 0.8 - 0.6 * FAIR, np.zeros(400)])
    codes = np.where(np.arange(400) % 10 == 0, 2, (p[:, 1] > RNG.random(400)).astype(int))
    report = Report.from_predictions(codes, {"m": p}, calibrate=False)
    assert "same score for some class;" in verdict(report, fragility_index=9.0).reason
    constant = Report.from_predictions([0, 1, 0, 1], {"m": np.full(4, 0.3)}, calibrate=False)
    assert "same score;" in verdict(constant, fragility_index=9.0).reason


def test_any_figure_can_have_a_limit():
    """Each is held where the report has it, just above and just below its value."""
    model = REPORT.models[0]
    values = {name: figure.value for name, figure in model.raw.figures.items()}
    values |= {name: figure.value for name, figure in model.raw.evidence.figures.items()}
    values |= {name: getattr(model.policy, name) for name in POLICY_FIGURES}
    assert len(values) > 20
    assert values.keys() | {"accuracy", "wrong_answers"} == KINDS.keys()
    for name, value in values.items():
        for is_largest, better in ((True, "higher"), (False, "lower")):
            if KINDS[name].better == better or value in (0.0, 1.0):
                continue
            for step in (1e-6, -1e-6):
                held = {name: value + step}
                limits = Limits(held) if is_largest else Limits(least=held)
                (check,) = check_gates(REPORT, limits)
                assert check.value == value
                assert check.passed == ((step > 0) == is_largest), name
                assert check.least != is_largest


@pytest.mark.parametrize(
    ("largest", "least", "words"),
    [
        ({"loss": 1.0}, {}, "No figure is called 'loss'; those that can have a limit are"),
        ({}, {"log_loss": 0.1}, "better when lower: give its largest value (--max log_loss=0.1)"),
        ({"auc": 0.9}, {}, "AUC is better when higher: give its least value (--min auc=0.9)"),
        ({"brier": 2.0}, {}, "must be below 2, or no model fails"),
        ({"cvar": -1.5}, {}, "must be -1 or more, or no model passes"),
        ({}, {"gini": -1.0}, "must be above -1, or no model fails"),
        ({"error_rate": 1.0}, {}, "must be below 1, or no model fails"),
    ],
)
def test_limits_that_say_nothing_are_refused(largest, least, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Limits(largest, least)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("accuracy", "There is no accuracy to hold: only answers"),
        ("wrong_answers", "only answers, right or wrong, have it"),
        ("calibration_slope", "There is no calibration slope to hold: it is a figure of two"),
        ("error_rate", "There is no error rate to hold: it needs costs"),
        ("net_benefit", "There is no net benefit to hold: it needs costs"),
        ("cost", "There is no cost per case to hold: it needs costs"),
    ],
)
def test_figures_that_are_not_there_are_refused(name, words):
    y, p = np.arange(60) % 3, np.full((60, 3), 1 / 3)
    report = Report.from_predictions(y, {"m": p}, calibrate=False)
    held = {name: 0.5}
    limits = Limits(held) if KINDS[name].better == "lower" else Limits(least=held)
    with pytest.raises(ValueError, match=words):
        check_gates(report, limits)


def test_limits_hold_in_each_group():
    groups = np.where(np.arange(400) < 200, "a", "b")
    y = (RNG.random(400) < FAIR).astype(int)
    bold = np.where(groups == "b", 1 / (1 + np.exp(-4 * LOGIT)), FAIR)
    report = Report.from_predictions(
        y, {"m": bold}, groups={"site": groups}, costs={"error_cost": 4.0}, calibrate=False
    )
    own = {part.group: part for part in report.groups}
    limit = (own["a"].figures["log_loss"].value + own["b"].figures["log_loss"].value) / 2
    for upper in (False, True):
        limits = Limits(
            {"log_loss": limit, "error_rate": 0.5, "ratio": 9.0}, {"automation_rate": 1e-6}, upper
        )
        checks = check_gates(report, limits, each_group=True)
        held = {(c.group, c.figure): c for c in checks}
        assert len(held) == 3 * 4
        for name, part in own.items():
            figure = part.figures["log_loss"]
            value = figure.interval.high if upper else figure.value
            check = held[f"site: {name}", "log_loss"]
            assert (check.value, check.passed) == (value, value <= limit)
            rate = part.policy.error_rate
            value = rate.interval.high if upper else rate.value
            assert held[f"site: {name}", "error_rate"].value == value
    limits = Limits({"integrated_calibration_index": 0.5, "log_loss": 5.0})
    said = not_held(report, limits, each_group=True)
    assert said == ["ICI is not held in groups: it is not known there."]


def test_where_nothing_is_decided_alone_there_is_no_error_rate():
    costs = {"error_cost": 1000.0, "review_cost": 0.001}
    y = (RNG.random(400) < FAIR).astype(int)
    report = Report.from_predictions(y, {"m": FAIR}, costs=costs, calibrate=False)
    assert np.isnan(report.models[0].policy.error_rate)
    limits = Limits({"error_rate": 0.01, "log_loss": 9.0})
    assert [check.figure for check in check_gates(report, limits)] == ["log_loss"]
    said = "error rate of m is not held: no case is decided alone."
    assert not_held(report, limits) == [said]
    with pytest.raises(ValueError, match="Nothing is held against model 'm'"):
        check_gates(report, Limits({"error_rate": 0.01}))
