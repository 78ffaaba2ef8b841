"""Gates that hold a model to another: limits by hand, levels, margins, groups, baselines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fragility import Report
from fragility.report.baseline_files import baseline_text, read_baseline
from fragility.report.baselines import Baseline
from fragility.report.gates import check_gates, not_held
from fragility.report.limits import Limits

from .reference import gates as reference

COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}


def drawn(seed, n=600):
    """Labels, honest probabilities, the same with noise, and bold ones."""
    rng = np.random.default_rng(seed)
    logit = 1.5 * rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    noisy = 0.75 * (logit + 0.8 * rng.normal(size=n))
    scores = {
        name: 1 / (1 + np.exp(-z))
        for name, z in (("old", logit), ("noisy", noisy), ("bold", 2.2 * logit))
    }
    return y, scores


Y, SCORES = drawn(0)
GROUPS = np.where(np.arange(600) % 3 == 0, "few", "many")


def raw_report(**options):
    return Report.from_predictions(Y, SCORES, calibrate=False, n_worst=0, **options)


RAW = raw_report()
LOSSES = {name: reference.losses(Y, p) for name, p in SCORES.items()}


def by_model(checks, figure="log_loss", group=None, part=None):
    return {
        check.model: check
        for check in checks
        if check.figure == figure and check.group == group and part in (None, check.part)
    }


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.2])
def test_paired_limits_are_those_of_the_cases(tolerance):
    found = by_model(check_gates(RAW, against="old", tolerance=tolerance))
    assert found.keys() == {"noisy", "bold"}
    for name, check in found.items():
        # Of the level of 5 % each of two tests has one half.
        limit = reference.paired_limit(LOSSES[name], LOSSES["old"], 0.025, tolerance)
        assert check.limit == pytest.approx(limit, rel=1e-6)
        assert check.value == pytest.approx(reference.mean(LOSSES[name]), rel=1e-9)
        assert check.passed == (reference.mean(LOSSES[name]) <= limit)
    assert not found["noisy"].passed or tolerance == 0.2


def test_a_few_cases_that_rule_the_difference_are_less_sure():
    p = SCORES["old"].copy()
    p[:3] = np.where(Y[:3] == 1, 1e-9, 1 - 1e-9)
    report = Report.from_predictions(Y, {"old": SCORES["old"], "new": p}, calibrate=False)
    (check,) = check_gates(report, against="old", tolerance=0.0)
    losses = reference.losses(Y, p)
    apart = [a - b for a, b in zip(losses, LOSSES["old"], strict=True)]
    assert reference.freedom(apart) < 10
    limit = reference.paired_limit(losses, LOSSES["old"], 0.05, 0.0)
    assert check.limit == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("margin", [0.001, 0.05, 0.5])
def test_a_margin_must_be_shown(margin):
    found = by_model(check_gates(RAW, against="old", margin=margin))
    for name, check in found.items():
        limit = reference.margin_limit(LOSSES[name], LOSSES["old"], margin, 0.95)
        assert check.limit == pytest.approx(limit, rel=1e-6)
        assert check.passed == (reference.mean(LOSSES[name]) < limit)
        assert check.source == f"against old, margin {margin:g}"
        assert bool(check.reason) != check.passed
    assert found["noisy"].passed == (margin == 0.5)


def test_unpaired_limits_are_those_of_two_samples():
    y, scores = drawn(1)
    before = Report.from_predictions(y, {"x": scores["old"]}, calibrate=False)
    found = by_model(check_gates(RAW, baseline=Baseline.of(before), tolerance=0.01))
    assert found.keys() == {"old", "noisy", "bold"}
    other = reference.losses(y, scores["old"])
    for name, check in found.items():
        limit = reference.unpaired_limit(LOSSES[name], other, 0.05 / 3, 0.01)
        assert check.limit == pytest.approx(limit, rel=1e-6)
        assert check.passed == (reference.mean(LOSSES[name]) <= limit)
    with_margin = by_model(check_gates(RAW, baseline=Baseline.of(before), margin=0.1))
    for name, check in with_margin.items():
        error = np.hypot(reference.standard_error(LOSSES[name]), reference.standard_error(other))
        limit = reference.mean(other) + 0.1 - 1.959963984540054 * error
        assert check.limit == pytest.approx(limit, rel=1e-6)


def test_the_level_is_shared_by_figures_models_and_groups():
    """Doubly by cost and calibrated log-loss; one half goes to groups."""
    y, scores = drawn(2)
    bold = scores["bold"] ** 1.3  # it takes a map
    report = Report.from_predictions(
        y, {"old": scores["old"], "bold": bold}, groups=GROUPS, n_worst=0
    )
    assert report.models[1].calibration.method != "identity"
    alone = check_gates(report, against="old", tolerance=0.0)
    assert {(c.figure, c.part) for c in alone} == {
        ("log_loss", "as given"),
        ("log_loss", "calibrated"),
        ("fragility_index", "calibrated"),
    }
    (given,) = by_model(alone, part="as given").values()
    own = reference.losses(y, bold), reference.losses(y, scores["old"])
    assert given.limit == pytest.approx(reference.paired_limit(*own, 0.05 / 4, 0.0), rel=1e-6)
    grouped = check_gates(report, against="old", tolerance=0.0, each_group=True)
    (given,) = by_model(grouped, part="as given").values()
    assert given.limit == pytest.approx(reference.paired_limit(*own, 0.025 / 4, 0.0), rel=1e-6)
    for name in ("few", "many"):
        (check,) = by_model(grouped, group=f"group: {name}", part="as given").values()
        part = [[v for v, g in zip(side, GROUPS, strict=True) if g == name] for side in own]
        limit = reference.group_limit(*part, 0.025 / 6, 2, 0.95)
        assert check.limit == pytest.approx(limit, rel=1e-6)
        (check,) = by_model(grouped, group=f"group: {name}", part="calibrated").values()
        assert check.limit < limit


def test_cost_is_held_where_there_are_costs_and_the_margin_is_money():
    report = raw_report(costs=COSTS)
    found = by_model(check_gates(report, against="old", tolerance=0.0), "cost")
    assert found
    pairs = {pair.b: pair.cost.test for pair in report.comparisons if pair.a == "old"}
    for name, check in found.items():
        test, p = pairs[name], pairs[name].p_value
        one_sided = 0.5 * p if test.b > test.a else 1.0 - 0.5 * p
        assert check.passed == (one_sided >= 0.05 * 2 / 8)
    checks = check_gates(report, against="old", margin=0.02)
    for name, check in by_model(checks, "cost").items():
        upper = -pairs[name].interval.low  # old − new
        assert check.passed == (upper < 0.02)
        assert check.value - check.limit == pytest.approx(upper - 0.02, abs=1e-9, nan_ok=True)
        assert ("there is no test (too few" in check.reason) == bool(pairs[name].why_no_test)
    assert all(check.source == "against old" for check in by_model(checks).values())


def test_a_cost_without_a_test_is_not_held_whichever_is_dearer():
    p = SCORES["old"].copy()
    p[np.flatnonzero((Y == 1) & (p > 0.9))[:2]] = 0.001  # two misses that are new
    for names in (("old", "new"), ("new", "old")):
        scores = dict(zip(names, (SCORES["old"], p), strict=True))
        report = Report.from_predictions(Y, scores, costs=COSTS, calibrate=False, n_worst=0)
        assert report.comparisons[0].cost.test.too_few
        assert not by_model(check_gates(report, against="old"), "cost")
        (said,) = (s for s in not_held(report, against="old") if "cost" in s)
        assert said == (
            "cost per case of new is not held: too few costly cases make the difference."
        )


@pytest.mark.slow
def test_the_order_of_models_changes_nothing():
    def told(names):
        report = Report.from_predictions(
            Y, {name: SCORES[name] for name in names}, costs=COSTS, groups=GROUPS, n_worst=0
        )
        found = check_gates(report, Limits({"brier": 0.2}), against="old", each_group=True)
        return {
            (c.model, c.figure, c.part, c.group, c.source): (round(c.limit, 9), c.passed)
            for c in found
        }

    first = told(["old", "noisy", "bold"])
    assert len(first) > 15
    assert first == told(["bold", "old", "noisy"]) == told(["noisy", "bold", "old"])


def test_a_group_that_alone_is_worse_fails_there():
    noisy = np.where(GROUPS == "few", SCORES["bold"] ** 3, SCORES["old"])
    report = Report.from_predictions(
        Y, {"old": SCORES["old"], "new": noisy}, groups=GROUPS, calibrate=False
    )
    checks = check_gates(report, against="old", each_group=True)
    passed = {check.group: check.passed for check in checks}
    assert passed == {None: False, "group: few": False, "group: many": True}
    baseline = Baseline.of(
        Report.from_predictions(Y, SCORES["old"], groups=GROUPS, calibrate=False)
    )
    checks = check_gates(report, Limits(), baseline=baseline, each_group=True, against=None)
    assert not by_model(checks, group="group: few")["new"].passed
    assert by_model(checks, group="group: many")["new"].passed


def test_equal_models_pass_whatever_is_asked():
    p = SCORES["old"]
    report = Report.from_predictions(Y, {"old": p, "new": p.copy()}, costs=COSTS, n_worst=0)
    for options in ({}, {"margin": 1e-6}, {"tolerance": 0.0}):
        checks = check_gates(report, against="old", **options)
        assert {check.figure for check in checks} == {"log_loss", "fragility_index", "cost"}
        assert all(check.passed for check in checks)
    assert not_held(report, against="old") == []


def test_what_is_not_known_does_not_pass():
    y, scores = drawn(3, 200)
    report = Report.from_predictions(y, {"old": scores["old"], "new": 1 - scores["old"]})
    model = report.comparisons[0]
    assert np.isnan(model.calibrated.index.p_value) or model.calibrated.index.b > 0
    checks = check_gates(report, against="old")
    assert not all(check.passed for check in checks)
    (one,) = Report.from_predictions(y, {"m": scores["old"]}, calibrate=False).models
    unsure = {name: replace(f, standard_error=None) for name, f in one.raw.figures.items()}
    before = Baseline.of(Report.from_predictions(y, {"m": scores["old"]}, calibrate=False))
    report = Report.from_predictions(y, {"m": 0.9 * scores["old"]}, calibrate=False)
    broken = replace(one, raw=replace(one.raw, figures=unsure))
    without = Baseline.of(replace(report, models=(broken,)))
    assert check_gates(report, baseline=before)
    with pytest.raises(ValueError, match="Nothing is held against model 'm'"):
        check_gates(report, baseline=without)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"against": "x"}, "No model is called 'x'; there are 'old', 'noisy', 'bold'"),
        ({"against": "old", "margin": 0.0}, "margin must be positive"),
        ({"against": "old", "tolerance": -0.1}, "tolerance must be zero or more"),
        ({"against": "old", "tolerance": 1.0}, "tolerance must be below 1"),
        ({"against": "old", "each_group": True}, "There are no groups to hold"),
        ({}, "Nothing is held against model 'old'"),
    ],
)
def test_bad_gates_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        check_gates(RAW, **options)
    with pytest.raises(ValueError, match=words):
        not_held(RAW, **options)


def test_the_present_model_alone_is_refused():
    report = Report.from_predictions(Y, {"old": SCORES["old"]}, calibrate=False)
    with pytest.raises(ValueError, match="no model but 'old', the present one"):
        check_gates(report, against="old")


def test_groups_too_small_are_said_and_held_nowhere():
    groups = np.where(np.arange(600) < 30, "tiny", "rest")
    report = raw_report(groups=groups)
    options = {"against": "old", "each_group": True}
    checks = check_gates(report, Limits({"log_loss": 0.9}), **options)
    assert {check.group for check in checks} == {None, "group: rest"}
    assert sum("group: tiny is not held" in said for said in not_held(report, **options)) == 1
    report = raw_report(groups=np.where(np.arange(600) < 300, "a", "b"), min_cell=500)
    with pytest.raises(ValueError, match="Nothing is held in any group"):
        check_gates(report, Limits({"log_loss": 0.9}), each_group=True)


def test_groups_that_are_not_compared_are_said():
    report = replace(raw_report(groups=GROUPS), group_comparisons=())
    options = {"against": "old", "each_group": True}
    checks = check_gates(report, Limits({"log_loss": 0.9}), **options)
    assert {check.source for check in checks if check.group} == {"limit"}
    said = not_held(report, Limits({"log_loss": 0.9}), **options)
    assert "no group is held to the present model: their differences are not known." in said


@pytest.mark.slow
def test_a_baseline_survives_its_file(tmp_path):
    report = Report.from_predictions(Y, SCORES, costs=COSTS, groups=GROUPS, n_worst=0)
    made = Baseline.of(report, without="noisy")
    path = tmp_path / "old.json"
    path.write_text(baseline_text(made, file="p.csv"))
    read = read_baseline(str(path))
    assert list(read.models) == ["old", "bold"]
    held = [
        check_gates(
            report,
            baseline=replace(part, models={"old": part.models["old"]}),
            each_group=True,
        )
        for part in (made, read)
    ]
    assert held[0] == held[1]
    assert {check.figure for check in held[0]} == {"cost", "log_loss", "fragility_index"}
    assert {check.group for check in held[0]} == {None, "group: few", "group: many"}
    assert all(check.passed for check in held[0] if check.model == "old")
