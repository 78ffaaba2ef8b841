"""Groups of a report: figures, policies, simultaneous intervals, small groups, every path."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import fragility.scores.state as state_module
from fragility import AnswerState, Costs, GroupColumn, Report, ScoreState, in_ranges
from fragility.grouping import CROSS, Crossing, Ranges
from fragility.report.answer_reading import OutcomeBatch
from fragility.report.files import report_on_file
from fragility.report.model_figures import Settings
from fragility.report.outcomes import report_on_outcomes
from fragility.scores.answers import Answers
from fragility.tables import PredictionFile, open_table

from .reference import groups as reference

COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}


def drawn(n=900, seed=0, n_groups=3):
    rng = np.random.default_rng(seed)
    logit = 2.0 * rng.normal(size=n)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    p = 1.0 / (1.0 + np.exp(-logit - 0.5 * rng.normal(size=n)))
    groups = np.array(["a", "b", "c", "d", "e"])[rng.integers(0, n_groups, n)]
    return y, p, groups


def three_classes(n=900, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    logits = 1.5 * np.eye(3)[y] + rng.normal(size=(n, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return y, proba, np.array(["a", "b"])[rng.integers(0, 2, n)]


def named(report, group, model=None, column=None):
    found = [
        part
        for part in report.groups
        if part.group == group and model in (None, part.model) and column in (None, part.column)
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [drawn, three_classes])
def test_a_group_is_a_report_on_its_cases(make, weighted):
    y, p, groups = make()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, y.size) if weighted else None
    report = Report.from_predictions(y, p, groups=groups, sample_weight=weights, calibrate=False)
    n_groups = np.unique(groups).size
    for name in np.unique(groups):
        own = groups == name
        alone = Report.from_predictions(
            y[own],
            p[own],
            confidence=1.0 - 0.05 / n_groups,
            sample_weight=None if weights is None else weights[own],
            calibrate=False,
        )
        part = named(report, name)
        assert part.support == alone.support
        figures = alone.models[0].raw.figures
        assert set(part.figures) == set(figures)
        for figure, measured in part.figures.items():
            expected = figures[figure]
            assert measured.value == pytest.approx(expected.value, rel=1e-9), figure
            assert measured.interval == pytest.approx(expected.interval, rel=1e-8), figure
            assert measured.standard_error == pytest.approx(expected.standard_error, rel=1e-8)


def test_clusters_count_within_groups():
    y, p, groups = drawn()
    cluster = np.arange(y.size) // 3
    report = Report.from_predictions(y, p, groups=groups, cluster=cluster, calibrate=False)
    own = groups == "a"
    alone = Report.from_predictions(
        y[own], p[own], cluster=cluster[own], confidence=1.0 - 0.05 / 3, calibrate=False
    )
    part, figures = named(report, "a"), alone.models[0].raw.figures
    for name, measured in part.figures.items():
        assert measured.interval == pytest.approx(figures[name].interval, rel=1e-8), name


def few_scores(n=6000, seed=3):
    """Scores of so few values that all folds choose the same thresholds."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.02, 0.4, 0.97], size=n, p=[0.4, 0.3, 0.3])
    y = (rng.random(n) < p).astype(int)
    groups = np.where(rng.random(n) < 0.3, "few", "many")
    y = np.where((groups == "few") & (rng.random(n) < 0.2), 1 - y, y)
    return y, p, groups


@pytest.mark.parametrize("hold", [np.inf, 0])
def test_policies_by_group_are_those_of_a_literal_count(hold):
    y, p, groups = few_scores()
    state = ScoreState([0, 1], ["m"], ["few", "many"], hold=hold)
    state.update(y, {"m": p}, groups=groups)
    report = Report.from_state(state, COSTS)
    policy = report.models[0].policy
    expected = reference.at_policy(
        y.tolist(),
        p.tolist(),
        groups.tolist(),
        policy.lower,
        policy.upper,
        COSTS["error_cost"],
        COSTS["review_cost"],
    )
    for name, (alone, rate, share, cost) in expected.items():
        found = named(report, name).policy
        assert found.alone.value == pytest.approx(alone, abs=1e-12)
        assert found.error_rate.value == pytest.approx(rate, abs=1e-12)
        assert found.error_share.value == pytest.approx(share, abs=1e-12)
        assert found.cost.value == pytest.approx(cost, abs=1e-12)
        assert found.cost.exact


def test_shares_have_the_limits_of_clopper_and_pearson():
    y, p, groups = few_scores(600)
    report = Report.from_predictions(y, p, groups=groups, costs=COSTS, calibrate=False)
    part = named(report, "few")
    n, positives = part.n, part.support[1]
    level = 1.0 - 0.05 / 2
    limits = reference.share_limits(positives, n, level)
    assert part.base_rate.interval == pytest.approx(limits, abs=1e-9)
    policy, own = report.models[0].policy, p[groups == "few"]
    alone = int(((own < policy.lower) | (own >= policy.upper)).sum())
    assert 0 < alone < n
    limits = reference.share_limits(alone, n, level)
    assert part.policy.alone.interval == pytest.approx(limits, abs=1e-9)


def test_costs_of_groups_average_to_the_cost_of_the_policy():
    y, p, groups = drawn(2000)
    report = Report.from_predictions(y, p, groups=groups, costs=COSTS)
    policy = report.models[0].policy
    total = sum(part.n * part.policy.cost.value for part in report.groups)
    assert total / y.size == pytest.approx(policy.cost, rel=1e-9)
    errors = sum(part.n * part.policy.error_share.value for part in report.groups)
    assert errors / y.size == pytest.approx(policy.error_share, rel=1e-9)
    for name in np.unique(groups):  # the printed policy, counted
        own = p[groups == name]
        alone = np.mean((own < policy.lower) | (own >= policy.upper))
        assert named(report, name).policy.alone.value == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("hold", [np.inf, 0])
@pytest.mark.parametrize("make", [drawn, three_classes])
def test_groups_decide_alone_as_often_as_all(make, hold, tmp_path, monkeypatch):
    y, p, groups = make(2000)
    columns = {"y": y, "g": groups}
    names = ["p"] if p.ndim == 1 else ["p0", "p1", "p2"]
    columns |= dict(zip(names, np.atleast_2d(p.T), strict=True))
    path = tmp_path / "cases.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    file = PredictionFile(open_table(path), label="y", models={"m": names}, groups=["g"])
    costs = Costs(5.0, 1.0)
    monkeypatch.setattr(state_module, "HOLD", 3000)  # a sample of several classes
    report = report_on_file(file, costs=costs, hold=hold if hold else 3000 * bool(p.ndim > 1))
    policy = report.models[0].policy
    assert report.streamed == (hold == 0)
    alone = sum(part.n * part.policy.alone.value for part in report.groups) / y.size
    assert alone == pytest.approx(policy.automation_rate, abs=2e-3 if report.streamed else 1e-12)
    cost = sum(part.n * part.policy.cost.value for part in report.groups) / y.size
    assert cost == pytest.approx(policy.cost, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_agree_with_cases_within_their_bounds(weighted):
    y, p, groups = drawn(60_000)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, y.size) if weighted else None
    reports = []
    for hold in (np.inf, 0):
        state = ScoreState([0, 1], ["m"], ["a", "b", "c"], weighted, hold=hold)
        for rows in np.array_split(np.arange(y.size), 3):
            own = None if weights is None else weights[rows]
            state.update(y[rows], {"m": p[rows]}, own, groups[rows])
        reports.append(Report.from_state(state, COSTS))
    held, summed = reports
    for exact, part in zip(held.groups, summed.groups, strict=True):
        assert part.support == exact.support
        assert part.base_rate.value == pytest.approx(exact.base_rate.value, rel=1e-12)
        both = [(part.figures[name], exact.figures[name]) for name in exact.figures]
        both += list(zip(vars(part.policy).values(), vars(exact.policy).values(), strict=True))
        for found, truth in both:
            low, high = found.bounds or (found.value, found.value)
            slack = 1e-9 * max(abs(truth.value), 1.0)
            assert low - slack <= truth.value <= high + slack
            assert high - low < 0.02
            assert found.interval.low <= truth.interval.low + 2e-3
            assert found.interval.high >= truth.interval.high - 2e-3


def test_shares_known_up_to_bounds_have_limits_around_those_of_the_cases():
    y, p, groups = drawn(1500)
    state = ScoreState([0, 1], ["m"], ["a", "b", "c"], hold=0).update(y, {"m": p}, groups=groups)
    summed = Report.from_state(state, COSTS)
    held = Report.from_predictions(y, {"m": p}, groups=groups, costs=COSTS)
    for part, exact in zip(summed.groups, held.groups, strict=True):
        assert part.policy.error_share.bounds is not None
        for name in ("alone", "error_share"):
            found, truth = (getattr(report.policy, name).interval for report in (part, exact))
            assert found.low <= truth.low
            assert found.high >= truth.high


def test_costs_that_are_all_the_same_may_be_lower():
    """A group in which every case was reviewed may have one that is decided alone, and right."""
    y, p, groups = drawn(900)
    costs = {"error_cost": 5.0, "review_cost": 0.3}
    own = groups == "a"
    p[own], n = 0.5, int(own.sum())
    report = Report.from_predictions(y, p, groups=groups, costs=costs, calibrate=False)
    found = named(report, "a").policy
    assert (found.alone.value, found.cost.value) == (0.0, pytest.approx(0.3))
    quantile = t.ppf(1.0 - 0.025 / 3, n - 1)
    lowest = 0.3 * n / (n + 1) * np.exp(-quantile / (n + 1))
    assert found.cost.interval.low == pytest.approx(lowest)
    # Where the policy decides nothing alone, nobody can pay less than for a review, nor more.
    limits = {"max_error_share": 1e-6}
    full = Report.from_predictions(y, p, groups=groups, costs=costs, policy=limits)
    for part in full.groups:
        assert part.policy.cost.interval == pytest.approx((0.3, 0.3))


def test_merged_states_have_the_groups_of_one():
    y, p, groups = drawn(3000)
    whole = ScoreState([0, 1], ["m"], ["a", "b", "c"], hold=0)
    whole.update(y, {"m": p}, groups=groups)
    parts = []
    for rows in np.array_split(np.arange(y.size), 4):
        part = ScoreState([0, 1], ["m"], ["a", "b", "c"], hold=0)
        parts.append(part.update(y[rows], {"m": p[rows]}, groups=groups[rows]))
    merged = ScoreState.from_bytes(parts[0].to_bytes())
    for part in reversed(parts[1:]):
        merged.merge(ScoreState.from_bytes(part.to_bytes()))
    assert merged.to_bytes() == whole.to_bytes()
    assert (
        json.loads(Report.from_state(merged, COSTS).to_json())["groups"]
        == json.loads(Report.from_state(whole, COSTS).to_json())["groups"]
    )


def test_small_groups_are_marked_and_not_ranked():
    rng = np.random.default_rng(0)
    y, p, _ = drawn(600)
    groups = np.where(np.arange(600) < 30, "tiny", np.where(rng.random(600) < 0.5, "x", "z"))
    p = np.where(groups == "tiny", 1.0 - p, p)  # the worst of all
    report = Report.from_predictions(y, p, groups=groups)
    assert [part.group for part in report.groups if part.too_small] == ["tiny"]
    assert not any("tiny" in finding.text for finding in report.findings)
    rows = report.to_text().splitlines()
    (few,) = [line for line in rows if line.startswith("tiny *")]
    assert rows.index(few) > max(i for i, line in enumerate(rows) if line.startswith(("x ", "z ")))
    assert 'class="few"' in report.to_html()
    assert not any(
        part.too_small for part in Report.from_predictions(y, p, groups=groups, min_cell=0).groups
    )


@pytest.mark.parametrize("priced", [False, True])
def test_limits_of_tiny_groups_are_no_larger_than_any_case(priced):
    """On the scale of the logarithm a few cases reach far beyond what one can lose or cost."""
    y, p, groups = drawn()
    groups = np.where(np.arange(y.size) < 3, "tiny", groups)
    y[:3], p[:3] = [1, 0, 0], [0.99, 0.01, 0.45]
    costs = {"error_cost": np.full(y.size, 5.0), "review_cost": 0.3} if priced else COSTS
    report = Report.from_predictions(y, p, groups=groups, costs=costs, calibrate=False)
    tiny = named(report, "tiny")
    assert tiny.figures["brier"].interval.high == 1.0
    assert tiny.figures["log_loss"].interval.high == -np.log(np.finfo(float).eps)
    # What a case may cost is known from a matrix, and not from costs by case.
    assert (tiny.policy.cost.interval.high == 5.0) != priced
    classes, proba, _ = three_classes()
    groups = np.where(np.arange(classes.size) < 4, "tiny", "rest")
    classes[:4] = [0, 1, 2, 2]
    proba[:4] = [[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98], [0.4, 0.2, 0.4]]
    several = Report.from_predictions(classes, proba, groups=groups, calibrate=False)
    assert named(several, "tiny").figures["brier"].interval.high == 2.0


def test_a_group_of_one_class_has_a_policy_but_no_figures():
    y, p, _ = drawn(400)
    groups = np.where(y == 1, "sick", "mixed")
    groups[:100] = "mixed"
    part = named(Report.from_predictions(y, p, groups=groups, costs=COSTS), "sick")
    assert part.figures == {}
    assert part.index is None
    assert part.reason == "all of its cases are 1"
    assert part.policy is not None
    assert part.too_small


def test_columns_are_crossed():
    y, p, groups = drawn(800)
    age = np.random.default_rng(5).integers(20, 80, 800)
    report = Report.from_predictions(y, p, groups={"site": groups, "age": in_ranges(age, [40, 60])})
    columns = list(dict.fromkeys(part.column for part in report.groups))
    assert columns == ["site", "age", f"site{CROSS}age"]
    crossed = named(report, f"b{CROSS}40 to under 60")
    own = (groups == "b") & (age >= 40) & (age < 60)
    assert crossed.n == own.sum()
    alone = Report.from_predictions(y[own], p[own], calibrate=False)
    expected = alone.models[0].raw.figures["fragility_index"].value
    assert crossed.index.value == pytest.approx(expected, rel=1e-9)
    plain = Report.from_predictions(
        y, p, groups=pd.DataFrame({"site": groups, "half": age > 50}), cross_groups=False
    )
    assert {part.column for part in plain.groups} == {"site", "half"}


def test_ranges():
    assert Ranges((1.5,)).names == ("under 1.5", "1.5 and over")
    assert in_ranges([1, 2, 3], [2]).codes.tolist() == [0, 1, 1]
    for cuts in ([], [2, 1], [1, 1], [np.nan], [np.inf], ["x"]):
        with pytest.raises(ValueError, match="cuts must be numbers"):
            in_ranges([1.0, 2.0], cuts)
    with pytest.raises(ValueError, match=r"values and cuts must be numbers .*'old'"):
        in_ranges(["40", "old"], [2])
    with pytest.raises(ValueError, match=r"missing values in 1 of 2 rows .* leave these cases out"):
        in_ranges([1.0, np.nan], [2])
    with pytest.raises(ValueError, match="one dimension"):
        in_ranges([[1.0, 2.0]], [2])


def test_crossings_hold_what_occurs():
    codes = np.array([[0, 1], [1, 0], [0, 1]])
    crossing = Crossing.of(codes, (2, 2))
    assert crossing.names([["a", "b"], ["x", "y"]]) == (f"a{CROSS}y", f"b{CROSS}x")
    assert crossing.places(codes).tolist() == [0, 1, 0]
    more = crossing.plus(Crossing.of(np.array([[1, 1]]), (2, 2)))
    assert more.held.size == 3


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({}, "groups is empty"),
        ({"a": ["x"]}, "has 1 entries for 60 samples"),
        ({"a": ["x"] * 60, "b": ["y"]}, r"groups\['b'\] has 1 entries"),
        (GroupColumn(("x",), np.zeros(3, int)), "has 3 entries"),
        (
            {"a": np.full(60, 0.5)},
            "^groups holds numbers that are not names of groups, such as 0.5; give text, booleans "
            r"or integers, or cut them into ranges: fragility.in_ranges\(values, \[40, 60\]\).$",
        ),
    ],
)
def test_bad_groups(groups, said):
    y, p, _ = drawn(60)
    with pytest.raises(ValueError, match=said):
        Report.from_predictions(y, p, groups=groups)


def test_numbers_that_are_no_clusters():
    y, p, _ = drawn(60)
    said = "^cluster holds numbers that are not names of groups, such as 0.5; give text, booleans"
    with pytest.raises(ValueError, match=f"{said} or integers.$"):
        Report.from_predictions(y, p, cluster=np.full(60, 0.5))


@pytest.mark.parametrize("make", [drawn, three_classes])
def test_costs_by_case_reach_the_groups(make):
    y, p, groups = make(1200)
    costs = np.random.default_rng(2).uniform(1.0, 9.0, y.size)
    report = Report.from_predictions(
        y, p, groups=groups, costs={"error_cost": costs, "review_cost": 0.5}
    )
    policy = report.models[0].policy
    total = sum(part.n * part.policy.cost.value for part in report.groups)
    assert total / y.size == pytest.approx(policy.cost, rel=1e-9)


def test_a_merged_state_says_what_it_cannot_tell_of_groups():
    y, p, groups = drawn(1200)
    state = ScoreState([0, 1], ["m"], ["a", "b", "c"], hold=0)
    state.update(y, {"m": p}, groups=groups, case_costs=np.ones(y.size))
    report = Report.from_state(state, {"review_cost": 0.5})
    assert all(part.policy is None for part in report.groups)
    assert any("What policies do in each group" in note for note in report.notes)


def test_a_frame_has_a_row_for_each_group_and_figure():
    y, p, groups = drawn(400)
    report = Report.from_predictions(y, p, groups=groups, costs=COSTS, calibrate=False)
    frame = report.to_frame("groups")
    assert set(frame["group"]) == {"a", "b", "c"}
    cost = frame[(frame["group"] == "b") & (frame["figure"] == "cost")]
    assert cost["value"].item() == named(report, "b").policy.cost.value


@pytest.mark.parametrize("hold", [np.inf, 0])
def test_declined_cases_are_passed_on_in_their_groups(hold):
    rng = np.random.default_rng(4)
    n = 3000
    sure = rng.choice([0.3, 0.6, 0.95], size=n)
    right, declined = rng.random(n) < sure, rng.random(n) < 0.4
    groups = rng.choice(["a", "b"], n)
    batch = OutcomeBatch(
        {"m": Answers(right, np.where(declined, 0.0, sure), declined)},
        np.arange(n),
        groups=(groups == "b").astype(int)[:, np.newaxis],
    )
    settings = Settings(costs=Costs(5.0, 1.0), calibrate=False)
    own = {"groups": {"g": ["a", "b"]}, "hold": hold}
    report = report_on_outcomes(lambda: [batch], ["m"], settings, **own)
    policy = report.models[0].policy
    for name in "ab":
        cases = groups == name
        alone = cases & ~declined & (sure >= policy.upper)
        wrong = alone & ~right
        found = named(report, name).policy
        assert found.alone.value == pytest.approx(alone.sum() / cases.sum(), abs=1e-9)
        assert found.error_share.value == pytest.approx(wrong.sum() / cases.sum(), abs=1e-9)
        reviewed = (cases & ~alone).sum()
        cost = (5.0 * wrong.sum() + 1.0 * reviewed) / cases.sum()
        assert found.cost.value == pytest.approx(cost, abs=1e-9)
    assert "costly_group" not in [finding.rule for finding in report.findings]


def test_declined_cases_count_in_the_clusters_of_their_groups():
    rng = np.random.default_rng(4)
    n = 3000
    sure = rng.choice([0.3, 0.6, 0.95], size=n)  # of which all folds choose the same threshold
    right = rng.random(n) < sure
    groups, cluster = rng.choice(["a", "b"], n), np.arange(n) // 3
    declined = rng.random(n) < np.where(groups == "a", 0.7, 0.1)
    declined[30:60] = True  # clusters without any answer
    about = {"declined": declined, "groups": groups, "costs": {"error_cost": 5.0}}
    about |= {"calibrate": False}
    report = Report.from_outcomes(right, sure, **about, cluster=cluster)
    upper = report.models[0].policy.upper
    cost = np.where(declined | (sure < upper), 1.0, 5.0 * ~right)
    for name in "ab":
        found = named(report, name).policy.cost
        own = groups == name
        mean, total, parts = cost[own].mean(), own.sum(), np.unique(cluster[own])
        apart = [(cost[own & (cluster == part)] - mean).sum() for part in parts]
        error = np.sqrt(np.sum(np.square(apart)) * parts.size / (parts.size - 1)) / total
        assert found.value == pytest.approx(mean)
        assert found.standard_error == pytest.approx(error)
    # Cases that are clusters of their own are cases.
    each = Report.from_outcomes(right, sure, **about, cluster=np.arange(n))
    none = Report.from_outcomes(right, sure, **about)
    for name in "ab":
        one, other = (named(part, name).policy for part in (each, none))
        assert one.cost.interval == pytest.approx(other.cost.interval)
        assert one.alone.interval == pytest.approx(other.alone.interval)


@pytest.mark.parametrize("hold", [np.inf, 0])
def test_a_group_that_was_declined_is_passed_on(hold):
    rng = np.random.default_rng(4)
    sure = rng.random(300)
    right, groups = rng.random(300) < sure, np.arange(300) % 3
    batch = OutcomeBatch(
        {"m": Answers(right, sure, groups == 1)}, np.arange(300), groups=groups[:, np.newaxis]
    )
    settings = Settings(costs=Costs(5.0, 1.0), calibrate=False)
    own = {"groups": {"g": ["a", "b", "c", "d"]}, "hold": hold}
    report = report_on_outcomes(lambda: [batch], ["m"], settings, **own)
    found = named(report, "b")
    assert found.reason == "none of its cases has an answer"
    assert (found.policy.cost.value, found.policy.alone.value) == (pytest.approx(1.0), 0.0)
    assert np.isnan(found.policy.error_rate.value)
    assert named(report, "d").policy is None  # of which there is no case
    assert "none of its cases has an answer" in report.to_text(full=True)
    assert "<html" in report.to_html()


def test_merged_answers_with_declined_ones_tell_no_policy_by_group():
    rng = np.random.default_rng(4)
    sure = rng.random(500)
    state = AnswerState("m", ["a", "b"], hold=0)
    state.update_answers(
        rng.random(500) < sure, sure, rng.random(500) < 0.2, groups=rng.choice(["a", "b"], 500)
    )
    report = Report.from_state(state, {"error_cost": 5.0})
    assert all(part.policy is None and part.figures for part in report.groups)
    assert any("with declined cases" in note for note in report.notes)
