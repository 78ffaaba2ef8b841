"""Gates: what is not known does not pass, and reasons are true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fragility import Interval, Report
from fragility.measured import Measured
from fragility.report.gates import Limits, check_gates

RNG = np.random.default_rng(0)
LOGIT = 2 * RNG.normal(size=400)
FAIR = 1 / (1 + np.exp(-LOGIT))
REPORT = Report.from_predictions(RNG.random(400) < FAIR, {"m": FAIR}, costs={"error_cost": 10.0})


def with_figure(name, figure):
    (model,) = REPORT.models
    raw = replace(model.raw, figures={**model.raw.figures, name: figure})
    return replace(REPORT, models=(replace(model, raw=raw),))


def verdict(report, **limits):
    (check,) = check_gates(report, Limits(**limits))
    return check


@pytest.mark.parametrize("name", ["fragility_index", "cost"])
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
        ({"auc": 0.8}, False),
    ],
)
def test_what_shrinking_would_pass_is_known(limits, expected):
    assert Limits(**limits).passed_by_shrinking == expected


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
