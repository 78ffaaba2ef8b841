"""Findings about models beside each other: where each must appear, must not, and its border."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from fragility import Interval, Report
from fragility.index.inference import PairedDifference
from fragility.measured import Measured
from tests.confident_models import logistic
from tests.said import LOGIT, NOISY, SICK, fair_and, rules, text, with_figures

BOLD, TIMID = logistic(3 * LOGIT), logistic(0.3 * LOGIT)
NOISY_REPORT, BOLD_REPORT = fair_and("noisy", logistic(NOISY)), fair_and("bold", BOLD)


def with_tests(pair, *, raw=None, calibrated=None, separations=(0.4, 0.6)):
    """The same pair with other tests of the index: (a, b, half of the interval, p-value).

    `separations` are those of the scores of both models, by which the index is their ratio.
    """
    parts = {"raw": pair.raw, "calibrated": pair.calibrated}
    for name, given in (("raw", raw), ("calibrated", calibrated)):
        if given is None:
            continue
        a, b, half, p_value = given
        limits = Interval(a - b - half, a - b + half)
        old = parts[name]
        tests = {
            **old.tests,
            "fragility_index": PairedDifference(a, b, a - b, half / 1.96, limits, p_value),
            "ratio": replace(old.ratio, a=a / separations[0], b=b / separations[1]),
        }
        adjusted = {**old.adjusted, "fragility_index": p_value}
        parts[name] = replace(old, tests=tests, adjusted=adjusted)
    return replace(pair, **parts)


def changed(report, **tests):
    """The same report on two models with other tests."""
    (pair,) = report.comparisons
    return replace(report, comparisons=(with_tests(pair, **tests),))


def test_lighter_tail():
    found = text(NOISY_REPORT, "lighter_tail")
    assert found.startswith("At equal calibration fair has a lighter tail than noisy (Fragility")
    test = NOISY_REPORT.comparisons[0].calibrated.index
    assert f"{test.a:.3f} against {test.b:.3f}, difference −{test.b - test.a:.3f}, 95 %" in found
    assert "confident mistakes" not in found  # which are a count
    swapped = Report.from_predictions(SICK, {"noisy": logistic(NOISY), "fair": logistic(LOGIT)})
    assert text(swapped, "lighter_tail") == found


@pytest.mark.parametrize("other", [BOLD, TIMID], ids=["bold", "timid"])
def test_not_lighter_tail_by_scale_alone(other):
    assert "lighter_tail" not in rules(fair_and("other", other))


@pytest.mark.parametrize(
    ("a", "p_value", "said"),
    [
        (0.19, 0.049, "lighter_tail"),
        (0.19, 0.0501, "cannot_tell"),
        (0.1961, 1e-9, "cannot_tell"),  # maps alone may do that
        (0.1959, 1e-9, "lighter_tail"),
    ],
)
def test_lighter_tail_has_borders(a, p_value, said):
    report = changed(NOISY_REPORT, raw=(a, 0.2, 0.1, 0.9), calibrated=(a, 0.2, 0.1, p_value))
    assert {"lighter_tail", "cannot_tell", "less_sure"} & set(rules(report)) == {said}


def test_equal_calibration_is_said_only_where_it_is():
    """No rising map mends scores that go up and down with the risk."""
    rng = np.random.default_rng(0)
    logit = 2.0 * rng.normal(size=4000)
    sick = rng.random(4000) < logistic(logit)
    odd = logistic(logit + 1.5 * np.sin(4.0 * logit))
    unequal = Report.from_predictions(sick, {"fair": logistic(logit), "odd": odd})
    test = unequal.comparisons[0].calibrated.tests["calibration_error"]
    assert test.p_value < 0.05
    found = text(unequal, "lighter_tail")
    assert found.startswith("After calibration fair has a lighter tail than odd (")
    assert found.endswith(f"; calibration errors {test.a:.3f} and {test.b:.3f}).")
    assert not any("equal calibration" in finding.text for finding in unequal.findings)
    assert NOISY_REPORT.comparisons[0].calibrated.tests["calibration_error"].p_value >= 0.05


def test_less_sure():
    found = text(fair_and("timid", TIMID), "less_sure")
    assert found.startswith(
        "timid is less sure of everything, not safer, than fair (Fragility Index 0.0"
    )
    assert " before calibration; after it difference " in found
    # One temperature turns powers of probabilities into each other; here in the same folds, too,
    # as these have the same order.
    rng = np.random.default_rng(0)
    codes, top = rng.integers(0, 3, 900), rng.uniform(0.4, 0.99, 900)
    guessed = np.where(rng.random(900) < top, codes, (codes + rng.integers(1, 3, 900)) % 3)
    p = np.where(np.eye(3, dtype=bool)[guessed], top[:, None], (1 - top[:, None]) / 2)
    power = p**0.3 / (p**0.3).sum(axis=1, keepdims=True)
    report = Report.from_predictions(codes, {"fair": p, "timid": power})
    found = text(report, "less_sure")
    assert found.startswith("timid is less sure of everything, not safer, than fair (")
    assert found.endswith("before calibration; after it nothing of that).")


def test_less_sure_and_with_a_heavier_tail():
    """Smaller scores hid that a model knows less."""
    report = fair_and("weak", logistic(0.15 * NOISY))
    assert text(report, "less_sure").startswith("weak is less sure of everything, not safer, than")
    assert "fair has a lighter tail than weak" in text(report, "lighter_tail")


def test_not_less_sure_where_tails_differ():
    assert "less_sure" not in rules(NOISY_REPORT)
    timid_and_better = Report.from_predictions(
        SICK, {"timid": logistic(0.5 * LOGIT), "noisy": logistic(NOISY)}
    )
    assert "less_sure" not in rules(timid_and_better)


@pytest.mark.parametrize(
    ("left", "half", "said"),
    [
        (0.001, 0.0089, "less_sure"),  # 5 % of the index of the other are 0.01
        (0.001, 0.0091, "cannot_tell"),
        (0.006, 0.0039, "less_sure"),
        (0.006, 0.0041, "cannot_tell"),
        (-0.1, 0.11, "less_sure"),  # it may be heavier
    ],
)
def test_less_sure_has_borders(left, half, said):
    report = changed(
        BOLD_REPORT, raw=(0.1, 0.2, 0.01, 1e-6), calibrated=(0.2 - left, 0.2, half, 0.5)
    )
    assert {"lighter_tail", "cannot_tell", "less_sure"} & set(rules(report)) == {said}
    if said == "cannot_tell":
        assert "before calibration fair has the lighter one" in text(report, said)


@pytest.mark.parametrize(("half", "said"), [(0.0039, True), (0.0041, False)])
def test_less_sure_is_not_said_where_half_of_the_lead_may_be_left(half, said):
    report = changed(BOLD_REPORT, raw=(0.19, 0.2, 0.001, 1e-6), calibrated=(0.199, 0.2, half, 0.5))
    assert ("less_sure" in rules(report)) == said


def test_not_less_sure_with_wider_scores_or_by_chance_before():
    raw, calibrated = (0.1, 0.2, 0.01, 1e-6), (0.199, 0.2, 0.001, 0.9)
    assert "less_sure" in rules(changed(BOLD_REPORT, raw=raw, calibrated=calibrated))
    for separations in ((0.6, 0.4), (0.5, 0.5)):
        own = {"raw": raw, "calibrated": calibrated, "separations": separations}
        assert "less_sure" not in rules(changed(BOLD_REPORT, **own))
    chance = changed(BOLD_REPORT, raw=(0.1, 0.2, 0.2, 0.0501), calibrated=calibrated)
    assert "less_sure" not in rules(chance)


def test_less_sure_allows_for_the_number_of_pairs():
    """Of three pairs the interval is wider by the ratio of Bonferroni's quantile to that of one."""
    three = Report.from_predictions(SICK, {"fair": logistic(LOGIT), "bold": BOLD, "timid": TIMID})
    widened = norm.isf(0.025 / 3) / norm.isf(0.025)
    first, *others = three.comparisons
    for half, said in ((0.0089 / widened, True), (0.0091 / widened, False)):
        pair = with_tests(first, raw=(0.1, 0.2, 0.01, 1e-6), calibrated=(0.199, 0.2, half, 0.5))
        report = replace(three, comparisons=(pair, *others))
        assert ("fair than bold" in text(report, "less_sure")) == said


def test_same_auc():
    report = changed(BOLD_REPORT, calibrated=(0.1, 0.2, 0.01, 1e-6))
    auc = BOLD_REPORT.models[0].raw.figures["auc"].value
    assert text(report, "same_auc") == (
        f"AUC hardly tells fair ({auc:.3f}) from bold ({auc:.3f}), although their tails differ."
    )
    before = replace(
        BOLD_REPORT, comparisons=(replace(BOLD_REPORT.comparisons[0], calibrated=None),)
    )
    assert "same_auc" in rules(before)


def test_not_same_auc():
    assert "same_auc" not in rules(NOISY_REPORT)
    assert "same_auc" not in rules(BOLD_REPORT)  # whose tails do not differ
    report = changed(BOLD_REPORT, calibrated=(0.1, 0.2, 0.01, 1e-6))

    def with_aucs(*aucs):
        return rules(with_figures(report, *({"auc": auc} for auc in aucs)))

    assert "same_auc" in with_aucs(Measured(0.9), Measured(0.9049))
    assert "same_auc" not in with_aucs(Measured(0.9), Measured(0.9051))
    # One ranks many times fewer pairs wrongly.
    assert "same_auc" not in with_aucs(Measured(0.9999), Measured(0.9955))
    narrow, wide = (
        Measured(0.6, bounds=Interval(0.6 - width, 0.6 + width)) for width in (1e-3, 0.3)
    )
    assert "same_auc" in with_aucs(narrow, narrow)
    assert "same_auc" not in with_aucs(wide, wide)


TWINS = {
    name: logistic(LOGIT + np.random.default_rng(seed).normal(size=LOGIT.size))
    for seed, name in enumerate("abc")
}


def test_cannot_tell():
    two = Report.from_predictions(SICK, {name: TWINS[name] for name in "ab"})
    found = text(two, "cannot_tell")
    test = two.comparisons[0].calibrated.index
    first, second = ("a", "b") if test.a < test.b else ("b", "a")
    assert found.startswith(
        f"900 cases cannot tell the tails of {first} and {second} apart, at equal calibration "
        f"(difference −{abs(test.difference):.3f}, 95 % interval −"
    )
    three = text(Report.from_predictions(SICK, TWINS), "cannot_tell")
    assert three.count("apart, at equal calibration (") == 1
    assert " differ most: difference −" in three
    same = fair_and("same", logistic(LOGIT))
    assert text(same, "cannot_tell").endswith("(equal but for rounding).")


def test_cannot_tell_some_pairs():
    """One sentence orders the models where tests are certain, one lists the others."""
    report = Report.from_predictions(SICK, TWINS)
    index = {"a": 0.21, "b": 0.2, "c": 0.3}
    pairs = []
    for pair in report.comparisons:
        a, b = index[pair.a], index[pair.b]
        p_value = 1e-3 if "c" in (pair.a, pair.b) else 0.5
        tests = dict.fromkeys(("raw", "calibrated"), (a, b, 0.05, p_value))
        pairs.append(with_tests(pair, **tests))
    found = replace(report, comparisons=tuple(pairs))
    assert text(found, "lighter_tail") == (
        "At equal calibration b has a lighter tail than c (Fragility Index 0.200 against 0.300, "
        "difference −0.100, 95 % interval −0.150 to −0.050); a than c (Fragility Index 0.210 "
        "against 0.300, difference −0.090, 95 % interval −0.140 to −0.040)."
    )
    assert text(found, "cannot_tell") == (
        "900 cases cannot tell the tails of b and a apart, at equal calibration (difference "
        "−0.010, 95 % interval −0.060 to +0.040)."
    )
    one_pair = replace(found, comparisons=tuple(pairs[1:]))  # a and b are not compared
    assert "cannot_tell" not in rules(one_pair)


def test_many_pairs_are_told_in_short():
    noise = np.random.default_rng(1).normal(size=(5, LOGIT.size))
    models = {f"m{k}": logistic(LOGIT + (1 + k) * noise[k]) for k in range(5)}
    report = Report.from_predictions(SICK, models, n_worst=0)
    for finding in report.findings:
        assert len(finding.text) < 700, finding
    assert len({finding.code for finding in report.findings}) == len(report.findings)


def test_not_cannot_tell_where_there_is_a_difference():
    assert "cannot_tell" not in rules(NOISY_REPORT)
    assert "cannot_tell" not in rules(BOLD_REPORT)
    undefined = changed(NOISY_REPORT, calibrated=(0.1, 0.1, np.nan, np.nan))
    assert "cannot_tell" not in rules(undefined)
    before = replace(
        NOISY_REPORT, comparisons=(replace(NOISY_REPORT.comparisons[0], calibrated=None),)
    )
    assert "cannot_tell" not in rules(before)


def test_chance_beside_an_interval_without_zero_is_explained():
    """The interval is that of one test, the p-value allows for all of them."""
    both = {"raw": (0.2, 0.216, 0.014, 0.08), "calibrated": (0.2, 0.216, 0.014, 0.08)}
    report = changed(NOISY_REPORT, **both)
    found = text(report, "cannot_tell")
    assert "−0.030 to −0.002 (p = 0.08 alone, 0.08 corrected for 2 tests)" in found
    both = {name: (*part[:2], 0.017, 0.08) for name, part in both.items()}
    assert "corrected" not in text(changed(NOISY_REPORT, **both), "cannot_tell")


def answers_of(*rates, n=400):
    """Answers of models that are right so often."""
    rng = np.random.default_rng(7)
    names = "abc"[: len(rates)]
    correct = {name: rng.random(n) < rate for name, rate in zip(names, rates, strict=True)}
    sure = {name: 0.3 * own + 0.7 * rng.random(n) for name, own in correct.items()}
    return Report.from_outcomes(correct, sure, calibrate=False)


def test_more_right_answers():
    report = answers_of(0.5, 0.7)
    found = text(report, "more_right_answers")
    a, b = (model.raw.figures["accuracy"].value for model in report.models)
    assert found.startswith(
        f"b is right more often than a ({100 * b:.1f} % against {100 * a:.1f} %, difference "
        f"+{b - a:.3f}, 95 % interval +0."
    )
    three = text(answers_of(0.2, 0.8, 0.5), "more_right_answers")
    assert three.startswith("b is right more often than c (")
    assert "; c than a (" in three
    assert three.count("is right more often") == 1


def test_not_more_right_answers_by_chance():
    assert "more_right_answers" not in rules(answers_of(0.6, 0.6))
    assert "more_right_answers" not in rules(NOISY_REPORT)
    report = answers_of(0.5, 0.7)
    (pair,) = report.comparisons
    for p_value, said in ((0.0499, True), (0.0501, False)):
        raw = replace(pair.raw, adjusted={**pair.raw.adjusted, "accuracy": p_value})
        at = replace(report, comparisons=(replace(pair, raw=raw),))
        assert ("more_right_answers" in rules(at)) == said
