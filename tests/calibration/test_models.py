"""Cross-fitted maps of all models of a table, against maps fitted one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fragility.calibration.cross_fitting import CannotCalibrateError
from fragility.calibration.models import MOST_GROUPS, calibrate_models
from fragility.cases.cases import Cases
from fragility.cases.folds import fold_assignments

from ..reference import cross_fitting as reference


def drawn(seed, n=300, n_classes=2, *, sharp=1.0, weighted=False, answers=False):
    rng = np.random.default_rng([seed, n, n_classes])
    logit = 1.5 * rng.standard_normal((n, n_classes))
    p = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    bold = np.exp(sharp * logit) / np.exp(sharp * logit).sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    scores = {"a": bold[:, 1] if n_classes == 2 else bold}
    if answers:
        return Cases({"a": y == 1}, scores, ("wrong", "right"), weight=weight)
    return Cases(y, scores, tuple(range(n_classes)), weight=weight)


def mean_log_loss(cases, model="a"):
    p, y = cases.scores[model], cases.truth(model)
    own = p[np.arange(y.size), y] if p.ndim == 2 else np.where(y == 1, p, 1 - p)
    return float(cases.mass @ -np.log(own) / cases.mass.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("answers", [False, True])
def test_two_classes_by_platt_fold_by_fold(weighted, answers):
    cases = drawn(1, sharp=3.0, weighted=weighted, answers=answers)
    shifted = replace(cases, scores={"a": cases.scores["a"] ** 3})  # a shift that Platt's map mends
    calibrated = calibrate_models(shifted)
    assert calibrated.choices["a"].method in ("platt", "isotonic")
    truth = cases.truth("a")
    (folds,) = fold_assignments(shifted, truth, 0)
    by_hand = np.empty(cases.n)
    for fold in range(5):
        others, members = folds != fold, folds == fold
        mapped = reference.platt(
            shifted.scores["a"][others], truth[others] == 1, cases.mass[others]
        )
        by_hand[members] = mapped(shifted.scores["a"][members])
    if calibrated.choices["a"].method == "platt":
        np.testing.assert_allclose(calibrated.cases.scores["a"], by_hand, atol=2e-6)
    expected = mean_log_loss(replace(cases, scores={"a": by_hand}))
    assert calibrated.choices["a"].losses["platt"] == pytest.approx(expected, abs=1e-7)


def test_several_classes_by_temperature_fold_by_fold():
    cases = drawn(2, n_classes=3, sharp=2.5, weighted=True)
    calibrated = calibrate_models(cases)
    assert calibrated.choices["a"].method == "temperature"
    (folds,) = fold_assignments(cases, cases.y, 0)
    for fold in range(5):
        others, members = folds != fold, folds == fold
        p = cases.scores["a"]
        mapped = reference.temperature(p[others], cases.y[others], cases.mass[others])
        np.testing.assert_allclose(
            calibrated.cases.scores["a"][members], mapped(p[members]), atol=1e-6
        )


def test_scores_that_are_calibrated_stay_as_they_are():
    cases = drawn(3, n=2000)
    calibrated = calibrate_models(cases)
    assert calibrated.choices["a"].method == "identity"
    np.testing.assert_allclose(calibrated.cases.scores["a"], cases.scores["a"], atol=1e-12)


def test_models_that_are_compared_have_maps_of_one_kind():
    cases = drawn(4, n=1500)
    bold = drawn(4, n=1500, sharp=3.0)
    both = replace(cases, scores={"fair": cases.scores["a"], "bold": bold.scores["a"]})
    calibrated = calibrate_models(both)
    assert len({choice.method for choice in calibrated.choices.values()}) == 1
    assert calibrated.choices["bold"].method != "identity"
    # The same model with sharper scores is the same model after calibration.
    fair, sharp = (mean_log_loss(calibrated.cases, name) for name in ("fair", "bold"))
    assert fair == pytest.approx(sharp, abs=1e-3)


def test_the_label_of_a_case_does_not_change_its_own_calibrated_score():
    """Clusters of one case keep the folds as they are when a label changes."""
    cases = replace(drawn(5, n=2000, sharp=3.0), cluster=np.arange(2000))
    before = calibrate_models(cases)
    y = cases.y.copy()
    y[7] = 1 - y[7]
    after = calibrate_models(replace(cases, y=y))
    assert before.choices["a"].method == after.choices["a"].method
    assert after.cases.scores["a"][7] == before.cases.scores["a"][7]
    assert (after.cases.scores["a"] != before.cases.scores["a"]).any()


def test_abstained_cases_stay_so_and_fit_nothing():
    cases = drawn(6, n=200, sharp=2.0, answers=True)
    p = cases.scores["a"].copy()
    p[::5] = np.nan
    calibrated = calibrate_models(replace(cases, scores={"a": p}))
    np.testing.assert_array_equal(np.isnan(calibrated.cases.scores["a"]), np.isnan(p))


def test_many_scores_are_fitted_in_groups():
    cases = drawn(7, n=4 * MOST_GROUPS, sharp=2.0)
    grouped = calibrate_models(cases).choices["a"].losses
    few = cases.take(np.arange(0, cases.n, 8))
    assert few.n < MOST_GROUPS
    exact = calibrate_models(few).choices["a"].losses
    for name, loss in grouped.items():
        assert loss == pytest.approx(exact[name], rel=0.05), name
    assert grouped["platt"] < grouped["identity"]


class TestRefusals:
    def test_one_class(self):
        with pytest.raises(CannotCalibrateError, match="only one class has samples"):
            calibrate_models(Cases(np.zeros(9, dtype=int), {"a": np.linspace(0.1, 0.9, 9)}))

    def test_a_single_case_of_a_class(self):
        y = np.r_[1, np.zeros(8, dtype=int)]
        with pytest.raises(CannotCalibrateError, match="class 1 has a single sample"):
            calibrate_models(Cases(y, {"a": np.linspace(0.1, 0.9, 9)}))

    def test_clusters_that_separate_the_classes(self):
        y = np.repeat([0, 1], 10)
        cases = Cases(y, {"a": np.linspace(0.1, 0.9, 20)}, cluster=y)
        with pytest.raises(CannotCalibrateError, match="keep clusters whole cannot be drawn"):
            calibrate_models(cases)


class TestFolds:
    def test_classes_are_spread_evenly(self):
        cases = drawn(8, n=103, n_classes=3)
        for folds in fold_assignments(cases, cases.y, 0, n_deals=4):
            for code in range(3):
                sizes = np.bincount(folds[cases.y == code], minlength=5)
                assert sizes.max() - sizes.min() <= 1

    def test_a_rare_class_is_outside_of_every_fold(self):
        y = np.r_[1, 1, np.zeros(50, dtype=int)]
        cases = Cases(y, {"a": np.linspace(0, 1, 52)})
        (folds,) = fold_assignments(cases, y, 0)
        assert folds.max() == 1
        assert set(folds[:2]) == {0, 1}

    def test_clusters_are_not_divided(self):
        cases = replace(drawn(9, n=200), cluster=np.arange(200) // 7)
        (folds,) = fold_assignments(cases, cases.y, 0)
        for cluster in range(29):
            assert np.unique(folds[cases.cluster == cluster]).size == 1

    def test_rows_of_a_sample_are_dealt_by_their_number_within_the_cell(self):
        rng = np.random.default_rng(0)
        cases = replace(drawn(10, n=60), cell=np.arange(60) % 4, number=rng.random(60))
        (folds,) = fold_assignments(replace(cases, count=np.ones(60)), cases.y, 0, n_deals=4)
        for cell in range(4):
            rows = np.flatnonzero(cases.cell == cell)
            ranks = np.argsort(np.argsort(cases.number[rows]))
            np.testing.assert_array_equal(folds[rows], ranks % 5)

    def test_clusters_of_a_sample_are_dealt_by_their_number(self):
        number = np.repeat([0.4, 0.1, 0.9, 0.2, 0.7, 0.5], 10)
        cases = replace(drawn(11, n=60), number=number, cluster=np.repeat(np.arange(6), 10))
        (folds,) = fold_assignments(replace(cases, count=np.ones(60)), cases.y, 0)
        np.testing.assert_array_equal(folds, np.repeat([2, 0, 0, 1, 4, 3], 10))

    def test_a_single_case_of_a_class_does_not_make_one_fold_of_all(self):
        y = np.r_[1, np.zeros(30, dtype=int)]
        (folds,) = fold_assignments(Cases(y, {"a": np.linspace(0, 1, 31)}), y, 0)
        assert folds.max() == 4
