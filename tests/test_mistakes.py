"""Mistakes by case: shared by all models, by kind, and new since previous predictions."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fragility import PreviousPredictions, Report, ScoreState

from .reference import groups as reference


def two_models(n=400, seed=0):
    rng = np.random.default_rng(seed)
    logit = 3.0 * rng.normal(size=n)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    flipped = rng.random(n) < 0.06
    y = np.where(flipped, 1 - y, y)  # wrong labels, which every model "gets wrong"
    models = {
        name: 1.0 / (1.0 + np.exp(-k * logit - rng.normal(size=n)))
        for name, k in (("a", 1.5), ("b", 1.2))
    }
    return y, models


def three_class_models(n=400, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    seen = np.where(rng.random(n) < 0.1, (y + 1) % 3, y)
    models = {}
    for name in "ab":
        logits = 4.0 * np.eye(3)[seen] + rng.normal(size=(n, 3))
        models[name] = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return y, models


@pytest.mark.parametrize("make", [two_models, three_class_models])
@pytest.mark.parametrize("confident", [0.8, 0.9])
def test_shared_mistakes_are_those_of_a_loop(make, confident):
    y, models = make()
    expected = reference.shared(
        y.tolist(), {name: p.tolist() for name, p in models.items()}, confident
    )
    names = [f"case {row}" for row in range(y.size)]
    report = Report.from_predictions(y, models, cases=names, confident=confident, n_worst=5)
    assert report.n_shared_mistakes == len(expected) > 5
    assert [case.row for case in report.shared_mistakes] == expected[:5]
    assert [case.case for case in report.shared_mistakes] == [names[row] for row in expected[:5]]
    for case in report.shared_mistakes:
        assert case.true == y[case.row]
        for name, p in models.items():
            guess, confidence = reference.predicted(p[case.row].tolist())
            assert case.predicted[name] == guess != case.true
            assert case.confidence[name] == pytest.approx(confidence)
    listed = json.loads(report.to_json())["shared_mistakes"]
    assert [case["case"] for case in listed] == [names[row] for row in expected[:5]]
    assert f"The 5 surest of {len(expected)}" in report.to_text()


def test_one_model_shares_its_mistakes_with_nobody():
    y, models = two_models()
    report = Report.from_predictions(y, {"a": models["a"]})
    assert report.n_shared_mistakes is None
    assert report.shared_mistakes == ()


def test_no_case_is_listed_if_none_is_asked_for():
    y, models = two_models()
    report = Report.from_predictions(y, models, n_worst=0)
    assert report.shared_mistakes == ()
    assert report.n_shared_mistakes > 0


def test_a_merged_state_lists_no_cases_and_says_so():
    y, models = two_models()
    for hold in (np.inf, 0):
        state = ScoreState([0, 1], ["a", "b"], hold=hold).update(y, models)
        report = Report.from_state(state)
        assert report.shared_mistakes == ()
        assert all(model.worst == () for model in report.models)
        assert any("nor those that all models get wrong" in note for note in report.notes)


def test_worst_cases_are_half_misses_and_half_false_alarms():
    y, models = two_models(n=2000)
    report = Report.from_predictions(y, models["a"], n_worst=7)
    kinds = [case.kind for case in report.models[0].worst]
    assert kinds.count("miss") == 4
    assert kinds.count("false alarm") == 3
    p = models["a"]
    lift = {case.row: case.lift for case in report.models[0].worst}
    for kind, label in (("miss", 1), ("false alarm", 0)):
        shown = {case.row for case in report.models[0].worst if case.kind == kind}
        wrong = np.flatnonzero((y == label) & ((p > 0.5) != label))
        surest = wrong[np.argsort(-np.abs(p[wrong] - 0.5), kind="stable")][: len(shown)]
        assert shown == set(surest.tolist())
    assert list(lift.values()) == sorted(lift.values(), reverse=True)


def test_a_kind_that_is_rare_leaves_room_for_the_other():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 500)
    p = np.where(y == 1, 0.9, 0.2) + 0.05 * rng.random(500)
    p[np.flatnonzero(y == 0)[:6]] = 0.97
    p[np.flatnonzero(y == 1)[:1]] = 0.1
    worst = Report.from_predictions(y, p, n_worst=6).models[0].worst
    assert sorted(case.kind for case in worst) == ["false alarm"] * 5 + ["miss"]


def versions():
    """New and old predictions of partly the same cases."""
    y, models = two_models(n=600)
    rng = np.random.default_rng(9)
    old = np.where(rng.random(600) < 0.2, 1.0 - models["a"], models["a"])
    names = [f"id{row}" for row in range(600)]
    return y, models["a"], old, names


def test_new_mistakes_are_those_of_a_loop():
    y, new, old, names = versions()
    keep = np.arange(100, 600)[::-1]  # the previous file lacks cases, and has another order
    previous = PreviousPredictions(y[keep], {"m": old[keep]}, [names[row] for row in keep])
    report = Report.from_predictions(y, {"m": new}, cases=names, previous=previous, n_worst=1000)
    expected = reference.newly_wrong(
        {name: (y[row], float(new[row])) for row, name in enumerate(names)},
        {names[row]: (y[row], float(old[row])) for row in keep},
        0.9,
    )
    (found,) = report.new_mistakes
    fresh, mended, unknown = expected
    assert (found.n_new, found.n_mended, found.n_unknown) == (len(fresh), len(mended), len(unknown))
    assert min(map(len, expected)) > 3
    assert {case.case for case in found.cases} == fresh
    sure = [case.confidence for case in found.cases]
    assert sure == sorted(sure, reverse=True)
    for case in found.cases:
        row = names.index(case.case)
        assert case.row == row
        assert (case.true, case.predicted) == (y[row], 1 - y[row])
        before = reference.predicted(float(old[row]))
        assert (case.previously_predicted, case.previous_confidence) == pytest.approx(before)
    assert json.loads(report.to_json())["new_mistakes"][0]["n_new"] == len(fresh)


def test_previous_predictions_must_fit():
    y, new, old, names = versions()
    previous = PreviousPredictions(y, {"m": old}, names)
    with pytest.raises(ValueError, match="give cases="):
        Report.from_predictions(y, {"m": new}, previous=previous)
    previous = PreviousPredictions(y, {"other": old}, names)
    with pytest.raises(ValueError, match="other models"):
        Report.from_predictions(y, {"m": new}, cases=names, previous=previous)
    previous = PreviousPredictions(y, {"m": old}, ["id1"] * 600)
    with pytest.raises(ValueError, match="occurs twice"):
        Report.from_predictions(y, {"m": new}, cases=["id1"] * 600, previous=previous)
    previous = PreviousPredictions(y, {"m": old}, [f"other {name}" for name in names])
    with pytest.raises(ValueError, match="Do both name their cases in the same way"):
        Report.from_predictions(y, {"m": new}, cases=names, previous=previous)
    for missing in (None, np.nan, pd.NA):
        previous = PreviousPredictions(y, {"m": old}, [missing, *names[1:]])
        with pytest.raises(ValueError, match=r"previous\.cases has missing names in 1 of 600 rows"):
            Report.from_predictions(y, {"m": new}, cases=names, previous=previous)
    previous = PreviousPredictions(y, {"m": old}, names[1:])
    with pytest.raises(ValueError, match="previous: cases has 599 entries for 600 samples"):
        Report.from_predictions(y, {"m": new}, cases=names, previous=previous)
    twice = PreviousPredictions(y, {"m": old}, names)
    with pytest.raises(ValueError, match="occurs twice"):
        Report.from_predictions(y, {"m": new}, cases=["id1"] * 600, previous=twice)
