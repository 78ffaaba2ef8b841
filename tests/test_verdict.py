"""The verdict of a report: held to paired tests by loops; what can go wrong, yes and no."""

from __future__ import annotations

import json
from itertools import permutations
from math import inf

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fragility import AnswerState, Report, ScoreState
from fragility._typing import Interval
from fragility.report import words
from fragility.report.answer_text import answer_table
from fragility.report.context import Context, Volume
from fragility.report.gates import check_gates, not_held
from fragility.report.limits import Limits
from fragility.report.page_data import page_data

from .reference import reviewers as reviewed
from .reference import verdicts as reference
from .test_reviewers import dealt

COSTS = {"error_cost": [[0.0, 1.0], [8.0, 0.0]], "review_cost": 0.4}


def drawn(seed, n=600, noise=(0.0, 0.0, 0.6), bold=(1.0, 1.0, 1.0)):
    """Labels, and scores of models with so much noise in their logits."""
    rng = np.random.default_rng(seed)
    logit = 1.6 * rng.normal(size=n)
    y = (rng.random(n) < expit(logit)).astype(int)
    scores = {
        f"m{k}": expit(by * (logit + own * rng.normal(size=n)))
        for k, (own, by) in enumerate(zip(noise, bold, strict=True))
    }
    return y, scores


#: Two p-values of these are so near .05 that another count of degrees of freedom decides.
AT_THE_BORDER = (0, 12)


@pytest.mark.parametrize("seed", [seed for seed in range(26) if seed not in AT_THE_BORDER])
def test_by_log_loss_it_is_that_of_paired_losses(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = 300, 2 + seed % 2
    logits = rng.normal(size=(n, n_classes))
    y = np.array([rng.choice(n_classes, p=row) for row in softmax(logits, axis=1)])
    spread = rng.uniform(0.0, 1.5, 2 + seed % 3)
    proba = {
        f"m{k}": softmax(logits + own * rng.normal(size=logits.shape), axis=1)
        for k, own in enumerate(spread)
    }
    losses = {name: (-np.log(p[np.arange(n), y])).tolist() for name, p in proba.items()}
    against = [None, "m0"][seed % 2]
    given = proba if n_classes > 2 else {name: p[:, 1] for name, p in proba.items()}
    report = Report.from_predictions(y, given, calibrate=False, context={"against": against})
    model, tied, nearest = reference.verdict(losses, against)
    assert nearest > 0.003  # Student's freedom differs a little: choose another seed
    found = report.verdict
    assert (found.model, found.tied, found.basis) == (model, tied, "log_loss")
    assert found.by_tests == (len(tied) == 1)
    for saving in found.savings:
        mean, _, ends = reference.paired(losses[saving.over], losses[found.subject])
        assert saving.amount == pytest.approx(mean, rel=1e-9)
        assert saving.interval == pytest.approx(ends, abs=0.02 * (ends[1] - ends[0]))


def held_out_costs(y, p, matrix, price):
    """What each case costs at policies that other folds chose, by loops over pairs of thresholds.

    The scores come in few steps, which are their own bins.
    """
    right = y.tolist()  # reviewers who never err
    cases = reviewed.cases_of_two(y.tolist(), p.tolist(), None, 1, matrix, price, None, right)
    scores = sorted(set(p.tolist()))
    cells = {}
    for score, weight, *costs, true in cases:
        old = cells.get((true, score), [(0, 0)])[0]
        key = true, score, costs[1]
        cells[true, score] = [(old[0] + 1, old[1] + weight, costs, key)]
    units = np.array([[sum(k[0] for k in cells[c, s]) for s in scores] for c in (0, 1)])
    splits = []
    for split in range(4):
        parts = [dealt(units[code], 5, [int(code == 1), split, 0]) for code in (0, 1)]
        splits.append({(c, s): parts[c][:, k] for c in (0, 1) for k, s in enumerate(scores)})
    at_policy, alone = reviewed.held_out(cells, splits)
    keys = [(case[5], case[0], case[3]) for case in cases]
    return ([float(at_policy[key]) for key in keys], [float(alone[key]) for key in keys])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_by_cost_it_is_that_of_paired_costs(seed):
    """Each model at its own policy, on cases that did not choose it."""
    rng = np.random.default_rng(seed)
    n, matrix, price = 420, [[0.0, 1.0], [4.0, 0.0]], 0.3
    truth = rng.integers(1, 6, n) / 6
    y = (rng.random(n) < truth).astype(int)
    moved = {"a": 0.0, "b": [0.1, 0.2, 0.5, 0.9][seed % 4], "c": 0.15}
    scores = {
        name: np.where(rng.random(n) < share, rng.integers(1, 6, n) / 6, truth)
        for name, share in moved.items()
    }
    costs = {"error_cost": matrix, "review_cost": price}
    report = Report.from_predictions(
        y, scores, costs=costs, policy={"rule": "tuned"}, calibrate=False
    )
    paid = {name: held_out_costs(y, p, matrix, price) for name, p in scores.items()}
    spent = {name: own for name, (own, _) in paid.items()}
    model, tied, nearest = reference.verdict(spent, factor=1.2)
    found = report.verdict
    assert nearest > 1e-6
    assert (found.model, found.tied, found.basis) == (model, tied, "cost")
    assert found.cost.value == pytest.approx(1000 * np.mean(spent[found.subject]), rel=1e-9)
    savings = {saving.over: saving for saving in found.savings}
    own = spent[found.subject]
    others = {name: spent[name] for name in scores if name != found.subject}
    others |= {"no review": paid[found.subject][1], "full review": [price] * n}
    assert set(savings) == set(others)
    for name, other in others.items():
        mean, p, ends = reference.paired(other, own, 1.2)
        assert savings[name].amount == pytest.approx(mean, rel=1e-9)
        if savings[name].interval is not None:
            assert savings[name].interval == pytest.approx(ends, rel=1e-9)
        if name.endswith("review"):
            assert savings[name].p_value == pytest.approx(p, rel=1e-7)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_the_order_of_the_models_changes_nothing(costs):
    y, scores = drawn(1, 400)
    groups = np.where(np.arange(400) % 3 == 0, "x", "y")
    verdicts = set()
    for order in permutations(scores):
        report = Report.from_predictions(
            y, {name: scores[name] for name in order}, costs=costs, groups=groups
        )
        content = json.loads(report.to_json())["verdict"]
        verdicts.add(json.dumps(content, sort_keys=True))
    assert len(verdicts) == 1


def test_the_present_model_stays_where_cases_cannot_tell():
    y, scores = drawn(2, 500, (0.0, 0.05, 1.5))
    without = Report.from_predictions(y, scores, calibrate=False)
    assert without.verdict.model is None
    assert without.verdict.reason == "tied"
    assert set(without.verdict.tied) == {"m0", "m1"}
    assert "500 cases cannot tell" in without.verdict.sentences[0]
    for name in ("m0", "m1"):
        found = without.with_context({"against": name}).verdict
        assert (found.model, found.reason, found.by_tests) == (name, "", False)
        assert found.sentences[0].startswith(f"Keep {name}, the present model")
    worse = without.with_context({"against": "m2"}).verdict
    assert worse.model is None  # the present one is ruled out, the others are not told apart
    with pytest.raises(ValueError, match="against must be one of the models 'm0', 'm1', 'm2'"):
        without.with_context({"against": "other"})


def test_a_policy_over_capacity_is_never_named():
    """Only by reviewing nearly all cases is a limit of errors proved for a poor model."""
    y, scores = drawn(3, 900, (0.0, 6.0), (1.0, 0.1))
    costs = {"error_cost": 10.0, "review_cost": 0.2, "capacity": 0.9}
    limits = {"max_error_share": 0.03}
    report = Report.from_predictions(y, scores, costs=costs, policy=limits, calibrate=False)
    within = {model.name: model.policy.within_capacity for model in report.models}
    assert within == {"m0": True, "m1": False}
    assert report.verdict.model == "m0"
    assert report.verdict.over_capacity == ("m1",)
    assert report.verdict.tied == ("m0",)
    assert any("m1 is left out" in line for line in report.verdict.sentences)
    assert not any("next best" in line for line in report.verdict.sentences)
    alone = Report.from_predictions(
        y, scores["m1"], costs=costs, policy=limits, calibrate=False
    ).verdict
    assert (alone.model, alone.reason) == (None, "capacity")
    assert "No policy keeps" in alone.sentences[0]


def outcomes(seed=21, n=600):
    """Answers of two models with confidences that mean little, of which some were declined."""
    rng = np.random.default_rng(seed)
    right = {name: rng.random(n) < share for name, share in (("a", 0.7), ("b", 0.6))}
    sure = {name: np.clip(0.4 * own + 0.6 * rng.random(n), 0, 1) for name, own in right.items()}
    declined = {"a": rng.random(n) < 0.1, "b": rng.random(n) < 0.05}
    return right, sure, declined


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("against", [None, 1])
def test_models_that_may_decide_nothing_alone_are_not_told_apart(answers, against):
    """All are reviewed under each of them: more cases would not say which one is better."""
    limits, costs = {"max_error_rate": 0.0001}, {"error_cost": 5.0, "review_cost": 1.0}
    if answers:
        right, sure, declined = outcomes()
        names, n = list(right), 600 - int(declined["a"].sum())
        made = Report.from_outcomes(right, sure, declined=declined, costs=costs, policy=limits)
        act, does = "answer", "pass every case on, a human answers"
    else:
        y, scores = drawn(3, 500, (0.0, 1.0), (1.0, 1.0))
        names, n = list(scores), 500
        made = Report.from_predictions(y, scores, costs=costs, policy=limits, calibrate=False)
        act, does = "decide", "a human reviews every case"
    report = made.with_context({"against": None if against is None else names[against]})
    subject = names[against or 0]
    alone = next(m.policy.cost_without_review for m in report.models if m.name == subject)
    first, why, saves = report.verdict.sentences[:3]
    assert first == (
        f"No model is to {act} alone: {does}, at 1,000 (95 % interval 1,000 to 1,000) per 1,000 "
        "cases."
    )
    counted = n if answers is False or subject == "a" else 600 - int(declined["b"].sum())
    assert why == (
        f"Humans decide every case, since {counted:,} cases are too few for "
        "max_error_rate=0.0001: it takes 29,956 decided alone, even if none of them is wrong."
    )
    saved = float(saves.removeprefix("That saves ").split(" per 1,000")[0].replace(",", ""))
    assert saved == pytest.approx(1000 * (alone - 1), rel=5e-3)
    assert f"per 1,000 over {subject} without review" in saves
    assert not any("cheapest" in line or "Keep" in line for line in report.verdict.sentences)


def test_a_limit_that_is_not_proved_is_said_with_its_reason():
    y, scores = drawn(3, 500, (0.0,), (1.0,))
    limits = {"max_misses": 0.001}
    report = Report.from_predictions(y, scores, costs=COSTS, policy=limits, calibrate=False)
    policy, said = report.models[0].policy, report.verdict.sentences
    assert said[0].startswith("m0: ")
    assert said[1] == f"The model never decides 0, since {policy.guarantees[0].reason}."
    card = report.to_model_card()
    assert card.count("The model never decides 0") == 1
    free = Report.from_predictions(y, scores, costs=COSTS, calibrate=False)
    assert not any("since" in line for line in free.verdict.sentences)


@pytest.mark.parametrize("capacity", [0.02, 0.07])
def test_too_many_declined_cases_are_no_matter_of_limits(capacity):
    right, sure, declined = outcomes()
    costs = {"error_cost": 5.0, "capacity": capacity}
    found = Report.from_outcomes(right, sure, declined=declined, costs=costs).verdict
    if capacity < 0.05:
        assert (found.model, found.reason) == (None, "capacity")
        (said,) = found.sentences
        assert said.startswith("a and b declined more cases than can be reviewed at the capacity")
        assert "limits" not in said
    else:
        assert (found.model, found.over_capacity) == ("b", ("a",))


def test_one_model_and_what_it_does():
    y, scores = drawn(4, 800)
    plain = Report.from_predictions(y, scores["m0"], calibrate=False).verdict
    assert (plain.model, plain.by_tests, plain.cost) == ("model", False, None)
    context = {"currency": "EUR", "volume": "50000/month", "title": "Triage"}
    report = Report.from_predictions(y, scores["m0"], costs=COSTS, calibrate=False, context=context)
    policy, found = report.models[0].policy, report.verdict
    assert found.cost.value == 1000 * policy.cost
    assert (found.alone, found.error_rate) == (policy.automation_rate, policy.error_rate)
    text = found.sentences[0]
    assert f"{100 * policy.lower:.4g} %" in text
    in_a_month = float(f"{50000 * policy.cost:.4g}")
    assert f"{in_a_month:,.0f} EUR a month for 50,000 cases" in text
    assert report.to_markdown().startswith("# Triage\n")
    assert [saving.over for saving in found.savings] == ["no review", "full review"]


def test_answers_by_the_share_that_is_right():
    rng = np.random.default_rng(5)
    n = 800
    right = {"good": rng.random(n) < 0.8, "poor": rng.random(n) < 0.6}
    sure = {
        name: np.clip(0.5 + 0.3 * own + 0.1 * rng.normal(size=n), 0, 1)
        for name, own in right.items()
    }
    found = Report.from_outcomes(right, sure, calibrate=False).verdict
    assert (found.model, found.basis, found.by_tests) == ("good", "accuracy", True)
    mean = right["good"].mean() - right["poor"].mean()
    assert found.savings[0].amount == pytest.approx(mean)
    declined = {name: rng.random(n) < 0.1 for name in right}
    for context in (None, {"against": "poor"}):
        unsure = Report.from_outcomes(
            right, sure, declined=declined, calibrate=False, context=context
        ).verdict
        assert (unsure.model, unsure.reason) == (None, "costs needed")
    priced = Report.from_outcomes(
        right, sure, declined=declined, calibrate=False, costs={"error_cost": 5.0}
    ).verdict
    assert (priced.model, priced.basis) == ("good", "cost")


def test_merged_states_know_no_test():
    y, scores = drawn(6, 1500)
    state = ScoreState([0, 1], list(scores), hold=0).update(y, scores)
    for context in (None, {"against": "m2"}):  # which nobody may keep without a test
        found = Report.from_state(state, COSTS, context=context).verdict
        assert (found.model, found.reason) == (None, "no test")
    assert found.cost is not None
    one = ScoreState([0, 1], ["m0"], hold=0).update(y, {"m0": scores["m0"]})
    alone = Report.from_state(one, COSTS).verdict
    in_memory = Report.from_predictions(y, {"m0": scores["m0"]}, costs=COSTS).verdict
    assert alone.model == in_memory.model == "m0"
    for ours, theirs in zip(alone.savings, in_memory.savings, strict=True):
        assert ours.amount == pytest.approx(theirs.amount, rel=1e-9)
        assert ours.interval == pytest.approx(theirs.interval, rel=1e-6)


def test_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    models = {
        "line": LogisticRegression(max_iter=1000),
        "stump": DecisionTreeClassifier(max_depth=1),
    }
    scores = {
        name: cross_val_predict(
            make_pipeline(StandardScaler(), model), X, y, method="predict_proba"
        )[:, 1]
        for name, model in models.items()
    }
    losses = {
        name: (-np.log(np.where(y == 1, p, 1 - p).clip(np.finfo(float).eps))).tolist()
        for name, p in scores.items()
    }
    found = Report.from_predictions(y, scores).verdict
    assert (found.model, found.tied) == reference.verdict(losses)[:2] == ("line", ("line",))


# What can go wrong.


def kinds(report):
    return {risk.kind: risk for risk in report.verdict.risks}


def test_shared_and_own_confident_mistakes():
    y, scores = drawn(7, 500)
    several = Report.from_predictions(y, scores, confident=0.8)
    assert kinds(several)["shared_mistakes"].value == several.n_shared_mistakes > 0
    one = Report.from_predictions(y, scores["m0"], confident=0.8)
    sure = np.maximum(scores["m0"], 1 - scores["m0"]) > 0.8
    wrong = ((scores["m0"] > 0.5) != y) & sure
    assert kinds(one)["confident_mistakes"].value == pytest.approx(wrong.sum())
    none = Report.from_predictions(y, scores["m0"] * 0.2 + 0.4)
    assert "confident_mistakes" not in kinds(none)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_the_dearest_group(costs):
    rng = np.random.default_rng(8)
    y, scores = drawn(8, 1500, (0.0,), (1.0,))
    groups = rng.choice(["a", "b", "c"], y.size)
    bad = groups == "b"
    scores["m0"][bad] = rng.permutation(scores["m0"][bad])
    report = Report.from_predictions(y, scores, groups=groups, costs=costs)
    risk, own = kinds(report)["dearest_group"], next(g for g in report.groups if g.group == "b")
    assert "Group b" in risk.text
    figure = own.figures["log_loss"].value if costs is None else 1000 * own.policy.cost.value
    assert risk.value == pytest.approx(figure)
    even = Report.from_predictions(y[~bad], {"m0": scores["m0"][~bad]}, groups=groups[~bad])
    assert "dearest_group" not in kinds(even)


def test_a_group_whose_cases_are_all_wrong_is_the_dearest():
    """No figure can be told of one class alone, but what its errors cost can."""
    rng = np.random.default_rng(0)
    n = 800
    group = np.where(np.arange(n) < 60, "bad", "good")
    right = (rng.random(n) < 0.8) & (group == "good")
    sure = np.where(group == "bad", 0.9, np.clip(0.5 * right + 0.5 * rng.random(n), 0, 1))
    for n_bad, named in ((60, True), (39, False)):  # as many as two classes of 20 have, or not
        some = np.arange(n) >= 60 - n_bad
        report = Report.from_outcomes(
            right[some], sure[some], groups=group[some], costs={"error_cost": 5.0}
        )
        bad = next(part for part in report.groups if part.group == "bad")
        assert bad.too_small
        shown = [row["name"] for row in page_data(report)["groups"]]
        assert shown == (["bad", "good"] if named else ["good"])
        limits = Limits({"cost": 2.0, "error_rate": 0.5, "log_loss": 9.0})
        checks = check_gates(report, limits, each_group=True)
        failed = {(check.group, check.figure) for check in checks if not check.passed}
        assert failed == {("group: bad", part) for part in ("cost", "error_rate") if named}
        (said,) = not_held(report, limits, each_group=True)
        what = "not held but for its policy" if named else "not held"
        assert said == f"group group: bad is {what}: all of its cases are 'wrong'."
        assert bad.policy.error_share.value > 0.9
        findings = {found.code: found.text for found in report.findings}
        assert ("dearest_group" in kinds(report)) == named
        assert ("FRA021" in findings) == named
        assert ("cost per 1,000, bad" in dict(row[:2] for row in answer_table(report)[1])) == named
        if named:
            assert kinds(report)["dearest_group"].text.startswith("Group bad costs")
            assert "60 cases (costs 5.0000" in findings["FRA021"]
            assert "; answers 99.9" in findings["FRA021"]


def test_dishonest_confidence():
    y, scores = drawn(9, 2000, (0.0, 0.0), (1.0, 3.0))
    bold = kinds(Report.from_predictions(y, scores["m1"]))
    sure = np.maximum(scores["m1"], 1 - scores["m1"])
    own = sure > 0.9
    right = ((scores["m1"] > 0.5) == y)[own].mean()
    assert bold["dishonest_confidence"].value == pytest.approx(sure[own].mean() - right)
    assert "dishonest_confidence" not in kinds(Report.from_predictions(y, scores["m0"]))


def test_a_heavier_tail_than_that_of_a_rival():
    """The better model by log-loss makes a few mistakes of which it is quite sure."""
    rng = np.random.default_rng(10)
    n = 4000
    y = rng.integers(0, 2, n)
    meek = expit(np.where(y == 1, 1, -1) * 1.2 + 0.9 * rng.normal(size=n))
    bold = np.where(rng.random(n) < 0.04, 1 - y, y) * 0.96 + 0.02
    report = Report.from_predictions(y, {"meek": meek, "bold": bold})
    own, other = (report.models[k].calibrated.figures["fragility_index"].value for k in (1, 0))
    assert report.verdict.model == "bold"
    assert own > other
    assert kinds(report)["heavy_tail"].value == pytest.approx(own - other)
    assert "heavy_tail" not in kinds(Report.from_predictions(y, {"meek": meek, "same": meek}))
    near = np.clip(bold + 0.001 * rng.normal(size=n), 0.001, 0.999)
    alike = Report.from_predictions(y, {"bold": bold, "near": near})
    assert "heavy_tail" not in kinds(alike)


def test_rounding_names_no_model():
    """Policies that review every case cost the same, whatever the scores."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    scores = {name: rng.random(400) * 0.2 + 0.4 for name in "ab"}
    for name in scores:
        scores[name] += 0.02 * y
    report = Report.from_predictions(y, scores, costs={"error_cost": 100.0, "review_cost": 0.05})
    assert {model.policy.automation_rate for model in report.models} == {0.0}
    assert report.verdict.model is None
    assert report.verdict.savings[-1].amount == 0.0


def test_models_that_know_nothing_are_never_named():
    y, scores = drawn(15, 300, (0.0, 3.0), (1.0, 1.0))
    half = np.full(300, 0.5)
    alone = Report.from_predictions(y, half, calibrate=False).verdict
    assert (alone.model, alone.reason) == (None, "no separation")
    both = Report.from_predictions(y, {"half": half, "m0": scores["m0"]}, calibrate=False).verdict
    assert (both.model, both.know_nothing, both.tied) == ("m0", ("half",), ("m0",))
    assert any("half is left out" in line for line in both.sentences)


def test_poor_candidates_do_not_hide_a_difference():
    """Only tests against the best model count."""
    y, scores = drawn(16, 700, (0.0, 0.55, 4.0, 4.0, 4.0, 4.0), (1.0,) * 6)
    two = Report.from_predictions(
        y, {name: scores[name] for name in ("m0", "m1")}, calibrate=False
    ).verdict
    six = Report.from_predictions(y, scores, calibrate=False).verdict
    assert two.model == six.model == "m0"


def test_a_model_may_be_called_full_review():
    y, scores = drawn(17, 600, (0.0, 2.0), (1.0, 1.0))
    named = {"good": scores["m0"], "full review": scores["m1"]}
    found = Report.from_predictions(y, named, costs=COSTS, calibrate=False).verdict
    assert [(saving.over, saving.kind) for saving in found.savings] == [
        ("full review", "model"),
        ("no review", "review"),
        ("full review", "review"),
    ]


def test_muted_findings_are_no_risks():
    y, scores = drawn(7, 500)
    report = Report.from_predictions(y, scores["m0"], confident=0.8)
    muted = Report.from_predictions(y, scores["m0"], confident=0.8, mute=("FRA013",))
    assert "confident_mistakes" in kinds(report)
    assert "confident_mistakes" not in kinds(muted)
    assert any("FRA013" in note for note in muted.notes)


def test_a_single_case_that_rules_the_cost():
    y, scores = drawn(11, 300, (0.0,), (1.0,))
    price = np.ones(y.size)
    wrong = np.flatnonzero(((scores["m0"] > 0.95) & (y == 0)) | ((scores["m0"] < 0.05) & (y == 1)))
    price[wrong[0]] = 200.0
    costs = {"error_cost": price, "review_cost": 0.5}
    report = Report.from_predictions(y, scores, costs=costs, calibrate=False)
    assert kinds(report)["single_case"].value > 0.1
    even = Report.from_predictions(
        y, scores, costs={"error_cost": np.ones(y.size), "review_cost": 0.5}, calibrate=False
    )
    assert "single_case" not in kinds(even)
    few = Report.from_predictions(
        y[:60], {"m0": scores["m0"][:60]}, costs={"error_cost": 2.0, "review_cost": 0.01}
    )
    assert "single_case" not in kinds(few)


def test_too_few_cases():
    y = np.array([0] * 6 + [1] * 6)
    p = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.8, 0.9, 0.8, 0.7, 0.9, 0.8, 0.3])
    few = Report.from_predictions(y, p, calibrate=False, confident=0.99)
    assert few.models[0].raw.figures["fragility_index"].interval.high == np.inf
    assert "may be anything above" in kinds(few)["too_few_cases"].text
    y, scores = drawn(12, 2000, (0.0,), (1.0,))
    many = Report.from_predictions(y, scores, costs=COSTS, calibrate=False, confident=0.99)
    assert "too_few_cases" not in kinds(many)
    constant = Report.from_predictions(y, np.full(2000, 0.5), calibrate=False)
    assert "too_few_cases" not in kinds(constant)  # more of them would tell nothing, either


def test_costs_that_few_cases_leave_open():
    rng = np.random.default_rng(0)
    y = np.zeros(400, dtype=int)
    y[:40] = 1
    p = np.where(y == 1, 0.95, 0.02) + 0.01 * rng.random(400)
    p[:2] = 0.02  # two misses, which cost a lot
    costs = {"error_cost": [[0.0, 1.0], [100.0, 0.0]], "review_cost": 3.0}
    wide = Report.from_predictions(y, p, costs=costs, calibrate=False, confident=0.99)
    low, high = wide.models[0].policy.cost_interval
    risk = kinds(wide)["too_few_cases"]
    assert risk.value == pytest.approx((high - low) / 2 / wide.models[0].policy.cost)
    assert risk.value > 0.5
    sure = Report.from_predictions(y[2:], p[2:], costs=costs, calibrate=False, confident=0.99)
    risk = kinds(sure)["too_few_cases"]
    assert sure.models[0].policy.error_rate == 0.0
    assert risk.value == pytest.approx(1.0 - 0.025 ** (1 / 398))  # Clopper and Pearson


def test_no_more_than_four_risks_and_five_lines():
    from fragility.report.verdict_text import verdict_lines

    rng = np.random.default_rng(13)
    y, scores = drawn(13, 400, (0.0, 0.1), (4.0, 4.0))
    groups = rng.choice(["a", "b"], y.size)
    for name in scores:
        scores[name] = np.where(groups == "b", rng.permutation(scores[name]), scores[name])
    report = Report.from_predictions(
        y, scores, groups=groups, costs={"error_cost": 3.0, "review_cost": 0.3}
    )
    assert 2 <= len(report.verdict.risks) <= 4
    assert len(verdict_lines(report)) <= 5


# Context.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"volume": "many"}, "such as 50000/month; got 'many'"),
        ({"volume": "0/day"}, "more than no cases"),
        ({"volume": "1,5/day"}, "such as 50000/month"),
        ({"volume": "9" * 400 + "/day"}, "no more than anyone counts"),
        ({"volume": "-5/day"}, "such as 50000/month"),
        ({"currency": 3}, "currency must be text; got 3"),
        ({"currency": "Doubloons of Spain"}, "currency must be short"),
        ({"titel": "x"}, "some of 'title', 'against', 'currency', 'volume'"),
        ("Triage", "context must be a mapping"),
    ],
)
def test_bad_contexts(given, message):
    with pytest.raises(ValueError, match=message):
        Context.of(given)


def test_money_and_volume_as_people_write_them():
    euro, code = Context.of({"currency": "€"}), Context.of({"currency": "EUR"})
    shown = [euro.money(x) for x in (1234.5, -1234.5, 12.345, 0.0, 0.0001234, 1e20)]
    assert shown == ["€1,234", "−€1,234", "€12.3", "€0", "€1.23e−04", "€1.00e+20"]
    assert code.money(12.345) == "12.3 EUR"
    assert str(Volume.of("50,000 / month")) == "50,000 cases a month"


def test_provenance_says_where_a_report_comes_from(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    y, scores = drawn(14, 100)
    report = Report.from_predictions(y, scores, calibrate=False, random_state=7)
    found = json.loads(report.to_json())["provenance"]
    assert found["created"] == "1970-01-02T00:00:00+00:00"
    assert (found["source"], found["sha256"], found["random_state"]) == ("arrays", None, 7)
    assert found["versions"]["numpy"] == np.__version__
    assert any("Holm" in line for line in found["methods"])
    assert "## Paper trail" in report.to_markdown()


def test_answer_states_have_a_verdict():
    state = AnswerState("model", hold=0)
    state.update_answers([1, 0, 1, 1, 0, 1], [0.9, 0.4, 0.8, 0.7, 0.6, 0.9])
    assert Report.from_state([state]).verdict.model == "model"


def test_ranges_of_thresholds_say_never_and_always_as_the_thresholds_do():
    for ends, below, above in (
        ((0.0, 0.0), "never", "always"),
        ((inf, inf), "always", "never"),
        ((0.0, 0.25), "0 % to 25 %", "0 % to 25 %"),
        ((0.5, inf), "50 % to always", "50 % to never"),
    ):
        assert words.thresholds(Interval(*ends), words.BELOW) == below
        assert words.thresholds(Interval(*ends), words.FROM) == above
