"""Plans of evaluations: held to references, to repeated pilots, and to new cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm

from fragility import (
    EvaluationPlan,
    Report,
    compare_fragility,
    measure_fragility,
    plan_evaluation,
)
from tests.reference import inference, influence


def population(rng, n, intercept=0.0):
    """Labels, and probabilities of a model and of a worse one."""
    z = 2.0 * rng.normal(size=n) + intercept
    y = (rng.random(n) < expit(z)).astype(int)
    return y, {"a": expit(z), "b": expit(0.8 * z + rng.normal(size=n))}


Y, MODELS = population(np.random.default_rng(0), 400)
TITLES = ("ratio", "auc", "buffered_auc", "cvar", "log_loss", "brier", "confident_error_rate")


def repeated_width(times, figure="fragility_index", y=Y, proba=MODELS["a"], **options):
    """Width of the interval of every case repeated, literally."""
    part = {k: None if v is None else np.tile(v, times) for k, v in options.items()}
    scores = np.concatenate([proba] * times)
    report = Report.from_predictions(np.tile(y, times), scores, calibrate=False, n_worst=0, **part)
    low, high = report.models[0].raw.figures[figure].interval
    return high - low


@pytest.mark.parametrize("figure", ["fragility_index", *TITLES])
@pytest.mark.parametrize("narrower", [0.4, 0.95])
def test_the_interval_of_so_many_repeated_cases_has_the_width(figure, narrower):
    width = narrower * repeated_width(1, figure)
    plan = plan_evaluation(Y, MODELS["a"], width=width, figure=figure)
    assert plan.n_pilot == 400
    assert plan.pilot_width == pytest.approx(repeated_width(1, figure))
    assert not plan.reached
    times = max(1, round(plan.n_cases / 400))
    found = repeated_width(times, figure) * math.sqrt(400 * times / plan.n_cases)
    assert found == pytest.approx(width, rel=0.02)
    assert plan.value == pytest.approx(
        Report.from_predictions(Y, MODELS["a"], calibrate=False).models[0].raw.figures[figure].value
    )


def test_a_narrow_interval_is_as_wide_as_its_standard_error_says():
    negatives, positives = MODELS["a"][Y == 0], MODELS["a"][Y == 1]
    error = inference.standard_error(negatives, positives)
    plan = plan_evaluation(Y, MODELS["a"], width=0.0005, confidence=0.9)
    assert plan.n_cases == math.ceil(400 * (2.0 * norm.ppf(0.95) * error / 0.0005) ** 2)


def test_differences_of_the_index_by_influences_of_loops():
    parts = [MODELS[name][code == Y] for name in "ab" for code in (0, 1)]
    error, _ = inference.paired_test(*parts)
    plan = plan_evaluation(Y, MODELS, difference=-0.01, power=0.9, confidence=0.99)
    z = norm.ppf(0.995) + norm.ppf(0.9)
    assert plan.n_cases == math.ceil(400 * (z * error / 0.01) ** 2)
    assert plan.pilot_difference == pytest.approx(z * error)
    assert plan.assumption == ""


def test_differences_of_auc_are_delongs():
    (a, b), covariance = influence.delong(Y, MODELS["a"], MODELS["b"])
    error = math.sqrt(covariance[0][0] + covariance[1][1] - 2.0 * covariance[0][1])
    plan = plan_evaluation(Y, MODELS, difference=a - b, figure="auc")
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert plan.n_cases == math.ceil(400 * (z * error / (a - b)) ** 2)


def test_of_one_model_the_correlation_is_assumed():
    error = measure_fragility(Y, MODELS["a"]).standard_error
    z = norm.ppf(0.975) + norm.ppf(0.8)
    for correlation in (-0.5, 0.0, 0.5, 0.9):
        plan = plan_evaluation(Y, MODELS["a"], difference=0.01, correlation=correlation)
        pair = error * math.sqrt(2.0 - 2.0 * correlation)
        assert plan.n_cases == pytest.approx(400 * (z * pair / 0.01) ** 2, abs=1.0)
        assert f"correlate by {correlation:g}" in str(plan)


def test_classes_are_as_frequent_as_in_the_pilot_and_are_never_too_few():
    y, models = population(np.random.default_rng(1), 600, intercept=-3.0)
    plan = plan_evaluation(y, models["a"], width=0.05)
    assert plan.n_by_class == {
        0: pytest.approx(plan.n_cases * np.mean(y == 0), abs=1.0),
        1: pytest.approx(plan.n_cases * np.mean(y == 1), abs=1.0),
    }
    assert f"{plan.n_by_class[1]:,} of them 1" in str(plan)
    wide = plan_evaluation(y, models["a"], width=10.0)
    assert wide.reached
    assert wide.n_by_class[1] == 10
    assert str(wide).endswith("so that they are enough.")


def test_several_classes_weights_and_clusters():
    rng = np.random.default_rng(0)
    p = softmax(1.5 * rng.normal(size=(300, 3)), axis=1)
    y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    names = np.array(["low", "middle", "high"])[y]
    plan = plan_evaluation(names, p, width=0.04, labels=["low", "middle", "high"])
    assert list(plan.n_by_class) == ["low", "middle", "high"]
    same = plan_evaluation(y, p, width=0.04)
    assert (plan.n_cases, plan.pilot_width) == (same.n_cases, same.pilot_width)
    times = round(same.n_cases / 300)
    width = repeated_width(times, y=y, proba=p) * math.sqrt(300 * times / same.n_cases)
    assert width == pytest.approx(0.04, rel=0.02)
    ones = plan_evaluation(Y, MODELS["a"], width=0.04, sample_weight=np.full(400, 3.0))
    assert ones.n_cases == plan_evaluation(Y, MODELS["a"], width=0.04).n_cases
    # Every case twice, in clusters of two: half of the information, for all cases the same need.
    twice = np.repeat(np.arange(400), 2)
    pairs = plan_evaluation(Y[twice], MODELS["a"][twice], width=0.002, cluster=twice)
    single = plan_evaluation(Y, MODELS["a"], width=0.002)
    assert pairs.n_cases == pytest.approx(2 * single.n_cases, rel=0.01)


def test_a_pilot_whose_interval_is_infinite_still_tells():
    y, models = population(np.random.default_rng(5), 60)
    weak = 0.5 + 0.08 * (models["a"] - 0.5) + 0.2 * np.random.default_rng(1).normal(size=60)
    plan = plan_evaluation(y, np.clip(weak, 0.0, 1.0), width=0.3)
    assert plan.pilot_width == math.inf
    assert "the 60 here give an infinite one" in str(plan)
    assert plan.n_cases > 60


@pytest.mark.slow
def test_new_cases_are_as_sure_as_planned():
    rng = np.random.default_rng(3)
    ratios, found = [], []
    y, models = population(rng, 100_000)
    true = compare_fragility(y, models["a"], models["b"]).difference
    for _ in range(50):
        y, models = population(rng, 600)
        plan = plan_evaluation(y, models["a"], width=0.05)
        y_new, new = population(rng, plan.n_cases)
        low, high = measure_fragility(y_new, new["a"]).interval()
        ratios.append((high - low) / 0.05)
        plan = plan_evaluation(y, models, difference=true)
        y_new, new = population(rng, plan.n_cases)
        found.append(compare_fragility(y_new, new["a"], new["b"]).p_value <= 0.05)
    assert abs(np.mean(ratios) - 1.0) < 0.1
    assert abs(np.mean(found) - 0.8) < 0.15  # nearly three standard errors of 50 tests


def test_a_plan_says_what_it_is():
    plan = EvaluationPlan(
        2300, {"sick": 230, "well": 2070}, "auc", 0.8, 0.05, None, 0.95, 0.8, 500, 0.11, None
    )
    assert str(plan) == (
        "About 2,300 cases (230 of them 'sick') give a 95 % interval of the AUC of width 0.05; the "
        "500 here give 0.11."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Give width or difference, one of them; got width=None, difference=None"),
        ({"width": 0.1, "difference": 0.1}, "Give width or difference, one of them"),
        ({"width": 0.0}, "width must be positive; got 0.0"),
        ({"width": -1}, "width must be positive; got -1"),
        ({"width": "x"}, "width must be a number"),
        ({"difference": 0.0}, "difference must not be 0"),
        ({"difference": math.nan}, "difference must be finite"),
        ({"width": 0.1, "figure": "accuracy"}, "figure must be one of 'fragility_index'"),
        ({"width": 0.1, "confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"difference": 0.1, "power": 2}, "power must lie between 0 and 1, such as 0.8; got 2"),
        ({"difference": 0.1, "power": 0.025}, "power must be above 0.025: equal models, too"),
        ({"difference": 0.1, "correlation": 1.0}, "correlation must be -1 or more and below 1"),
        ({"width": 0.1, "proba": MODELS}, "width is for one model; got 'a', 'b'"),
        (
            {"difference": 0.1, "proba": {**MODELS, "c": MODELS["a"]}},
            "difference is for two models; got 'a', 'b', 'c'",
        ),
        ({"difference": 0.1, "proba": {"a": MODELS["a"], "b": MODELS["a"]}}, "No case .* apart"),
        ({"width": 0.1, "proba": Y * 0.8 + 0.1}, "fragility_index is 0 in the pilot"),
        ({"width": 0.1, "proba": 1 - MODELS["a"]}, "fragility_index is inf in the pilot"),
        ({"width": 0.1, "proba": Y * 0.8 + 0.1, "figure": "ratio"}, "fragility_index is 0"),
        ({"width": 0.1, "proba": Y * 0.8 + 0.1, "figure": "brier"}, "figure, such as 'log_loss'."),
        ({"width": 1e-9}, "cases would be needed; ask for a larger"),
        ({"width": 0.1, "y_true": np.arange(400) < 9}, "fewer than 10 cases .* of True"),
        ({"width": 0.1, "proba": MODELS["a"][:9]}, "y_true has 400 samples but"),
        ({"width": 0.1, "cluster": np.zeros(400)}, "at least 2 clusters"),
    ],
)
def test_bad_input_gets_a_sentence(given, words):
    options = {"y_true": Y, "proba": MODELS["a"], **given}
    with pytest.raises(ValueError, match=words):
        plan_evaluation(options.pop("y_true"), options.pop("proba"), **options)
