"""The protocol of the real data: splits, choices, merits, and the rules that judge claims."""

import warnings
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from pandas import DataFrame
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from experiments import comparison, heart_confidence, heart_cost, protocol, real_data, scale_matched
from experiments import uci as uci_experiment
from experiments import uci_settings as settings_experiment
from experiments.experiment import find
from experiments.merit import MERITS, merits
from experiments.protocol import LinearModel, Settings, best, erm_model, split_data
from fragility import (
    KL,
    ERMClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    Wasserstein,
    fragility_index,
    fragility_ratio,
)
from tests.reference import merits as slow

OURS = [
    "heart",
    "heart_confidence",
    "heart_cost",
    "policies",
    "policy_shift",
    "noise",
    "uci",
    "uci_settings",
    "scale_matched",
]
FEW = Settings(alphas=(1e-3, 1e-1), ratios=(1.05, 1.15), n_folds=3)


@pytest.fixture(scope="module")
def data():
    return make_classification(160, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=1)


@pytest.fixture(scope="module")
def split(data):
    return split_data(*data, 0.1, 3, FEW)


# --- merits ---------------------------------------------------------------------------------------


def test_merits_are_those_of_the_definitions():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    p = np.round(expit(y - 0.5 + rng.normal(size=60)), 2)  # with ties
    found = merits(y, p)
    for name in ("accuracy", "auc", "log_loss", "brier"):
        assert found[name] == pytest.approx(getattr(slow, name)(y, p), rel=1e-12), name
    assert found["fragility_index"] == fragility_index(y, p)
    assert found["ratio"] == fragility_ratio(y, p)
    assert found == merits(y, np.column_stack([1.0 - p, p]))
    assert set(MERITS) <= set(found)


def test_merits_of_several_classes():
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=90)
    p = rng.dirichlet(np.ones(3), size=90) + np.eye(3)[y]
    p /= p.sum(axis=1, keepdims=True)
    found = merits(y, p)
    assert found["accuracy"] == np.mean(p.argmax(axis=1) == y)
    assert found["auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovo"))
    assert found["log_loss"] == pytest.approx(-np.mean(np.log(p[np.arange(90), y])))
    assert found["brier"] == pytest.approx(np.mean(((p - np.eye(3)[y]) ** 2).sum(axis=1)))


def test_calibrated_merits_do_not_see_the_scale_of_scores():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=300)
    u = 1.5 * (2 * y - 1) + rng.normal(size=300) * 2.0
    bold, shy = merits(y, expit(u)), merits(y, expit(0.1 * u))
    assert shy["fragility_index"] < 0.3 * bold["fragility_index"]
    for name in ("calibrated_fragility_index", "calibrated_log_loss", "auc"):
        assert shy[name] == pytest.approx(bold[name], rel=1e-6)


def test_a_constant_model_has_index_zero_and_says_so():
    found = merits([0, 1, 0, 1], np.full(4, 0.7))
    assert (found["auc"], found["fragility_index"]) == (0.5, 0.0)
    assert np.isnan(found["ratio"])
    assert np.isnan(found["calibrated_fragility_index"])


# --- splits ---------------------------------------------------------------------------------------


def test_splits_are_halves_and_noise_is_nested(data):
    X, y = data
    splits = [split_data(X, y, rate, 7) for rate in (0.0, 0.1, 0.3)]
    clean = splits[0]
    assert clean.X_train.shape == clean.X_test.shape == (80, 5)
    changed = [one.y_train != clean.y_train for one in splits]
    for one in splits:
        np.testing.assert_array_equal(one.X_train, clean.X_train)
        np.testing.assert_array_equal(one.y_test, clean.y_test)
    assert not (changed[1] & ~changed[2]).any()
    assert 0 < changed[1].sum() < changed[2].sum() < 80
    other = split_data(X, y, 0.0, 8)
    assert not np.array_equal(other.y_train, clean.y_train)


def test_every_sample_is_in_one_half_with_its_label(data):
    X, y = data
    one = split_data(X, y, 0.0, 5, Settings(scaling="none"))
    both = np.vstack([one.X_train, one.X_test])
    labels = np.concatenate([one.y_train, one.y_test])
    order, given = np.lexsort(both.T), np.lexsort(X.T)
    np.testing.assert_array_equal(both[order], X[given])
    np.testing.assert_array_equal(labels[order], y[given])


def test_scaling_knows_the_training_half_only(data):
    X, y = data
    raw = split_data(X, y, 0.0, 1, Settings(scaling="none"))
    standard = split_data(X, y, 0.0, 1, Settings(scaling="standard"))
    ranged = split_data(X, y, 0.0, 1, Settings(scaling="range"))
    mean, spread = raw.X_train.mean(axis=0), raw.X_train.std(axis=0)
    np.testing.assert_allclose(standard.X_test, (raw.X_test - mean) / spread)
    low, high = raw.X_train.min(axis=0), raw.X_train.max(axis=0)
    np.testing.assert_allclose(ranged.X_test, (raw.X_test - low) / (high - low))


def test_folds_hold_each_class_evenly(split):
    for label in (0, 1):
        counts = np.bincount(split.folds[split.y_train == label])
        assert counts.max() - counts.min() <= 1
    tested = np.concatenate([test for _, test in split.parts()])
    assert sorted(tested) == list(range(80))


# --- models ---------------------------------------------------------------------------------------


def folds_of(split):
    return [(train, test) for train, test in split.parts()]


KINDS = {"priced": "priced", "free": True, "none": False}


def ours(penalty, alpha):
    """The paper's alpha as the library's, of two classes."""
    return alpha / 2 if penalty == "l2" else alpha


def exact_accuracies(split, settings):
    """Mean accuracy over the folds by penalty and strength: fits of the library, one by one."""
    means = {}
    for penalty in settings.penalties:
        for alpha in settings.alphas:
            model = ERMClassifier(
                "hinge", penalty, ours(penalty, alpha), fit_intercept=KINDS[settings.intercept]
            )
            accuracies = []
            for train, test in folds_of(split):
                model.fit(split.X_train[train], split.y_train[train])
                accuracies.append(model.score(split.X_train[test], split.y_train[test]))
            means[penalty, alpha] = np.mean(accuracies)
    return means


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("intercept", ["priced", "free", "none"])
@pytest.mark.parametrize("seed", [3])
def test_erm_is_the_best_of_its_penalties(data, scaling, intercept, seed):
    """Against fits and accuracies made by hand, on features of very different sizes."""
    settings = replace(FEW, scaling=scaling, intercept=intercept)
    X, y = data
    split = split_data(X * [1.0, 1.0, 100.0, 0.1, 1.0], y, 0.1, seed, settings)
    found = erm_model(split, settings)
    means = exact_accuracies(split, settings)
    chosen = max(means, key=lambda one: (round(means[one], 12), one[1], one[0]))
    assert (found.penalty, found.alpha) == chosen
    mine = [
        np.mean((found.out_of_fold[test] > 0) == split.y_train[test]) for _, test in split.parts()
    ]
    assert np.mean(mine) == pytest.approx(means[chosen])
    final = ERMClassifier("hinge", chosen[0], ours(*chosen), fit_intercept=KINDS[intercept])
    final.fit(split.X_train, split.y_train)
    np.testing.assert_allclose(found.coef, final.coef_, atol=1e-6)
    np.testing.assert_allclose(
        found.scores(split.X_test), final.decision_function(split.X_test), atol=1e-4
    )


def test_collinear_columns_do_not_stop_the_search(data):
    """Indicators of both of two classes of patients, one column twice, one constant."""
    X, y = data
    both = np.column_stack([X, X[:, 0], X[:, 1] > 0, X[:, 1] <= 0, np.ones(len(X))])
    for scaling in ("standard", "range", "none"):
        settings = replace(FEW, scaling=scaling)
        split = split_data(both, y, 0.1, 3, settings)
        found = erm_model(split, settings)
        means = exact_accuracies(split, settings)
        assert means[found.penalty, found.alpha] == pytest.approx(max(means.values()), abs=1 / 80)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein(), Wasserstein(label_cost=1.0)])
def test_satisficing_is_that_of_the_library(split, penalty, ambiguity):
    like = LinearModel(np.ones((1, 5)), np.zeros(1), np.zeros(80), penalty, 1e-2)
    found = protocol.satisficing_models(split, like, ambiguity, FEW)
    for model in found:
        alone = SatisficingClassifier(
            "hinge",
            ambiguity,
            target_ratio=model.ratio,
            penalty=penalty,
            alpha=ours(penalty, 1e-2),
            fit_intercept="priced",
        ).fit(split.X_train, split.y_train)
        assert model.fragility == pytest.approx(alone.fragility_, rel=1e-4)
        np.testing.assert_allclose(
            model.scores(split.X_test), alone.decision_function(split.X_test), atol=5e-3
        )
    searched = SatisficingClassifierCV(
        "hinge",
        ambiguity,
        target_ratios=FEW.ratios,
        alphas=(ours(penalty, 1e-2),),
        penalty=penalty,
        fit_intercept="priced",
        cv=folds_of(split),
    ).fit(split.X_train, split.y_train)
    chosen = best(split, found, "accuracy")
    assert chosen.ratio == searched.target_ratio_
    for model, scores in zip(found, searched.scores_[0], strict=True):
        mine = [
            np.mean((model.out_of_fold[test] > 0) == split.y_train[test])
            for _, test in folds_of(split)
        ]
        np.testing.assert_allclose(mine, scores)


def test_robust_models_take_over_the_penalty_of_erm(split):
    models = protocol.fitted_models(split, FEW)
    assert list(models) == ["ERM", "KL", "Wasserstein"]
    assert len({(model.penalty, model.alpha) for model in models.values()}) == 1
    assert models["ERM"].ratio == 1.0
    assert all(models[name].ratio in FEW.ratios for name in ("KL", "Wasserstein"))
    assert models["Wasserstein"].norm < models["ERM"].norm


def test_equal_scores_choose_the_largest_target(split):
    same = [
        LinearModel(np.ones((1, 5)), np.zeros(1), np.ones(80), "l2", 0.1, ratio)
        for ratio in (1.15, 1.05, 1.1)
    ]
    assert best(split, same, "accuracy").ratio == 1.15


@pytest.mark.parametrize("score", protocol.SCORES)
def test_scores_prefer_better_models(split, score):
    signs = 2.0 * split.y_train - 1.0
    good = LinearModel(np.ones((1, 5)), np.zeros(1), 2.0 * signs, "l2", 0.1, 1.05)
    bad = LinearModel(np.ones((1, 5)), np.zeros(1), -signs, "l2", 0.1, 1.15)
    none = LinearModel(np.ones((1, 5)), np.zeros(1), np.full(80, np.nan), "l2", 0.1, 1.2)
    assert best(split, [none, bad, good], score) is good
    assert best(split, [good, bad, none], score) is good
    with pytest.raises(ValueError, match="no model"):
        best(split, [], score)


def test_coefficients_of_rounding_are_zero():
    X = np.array([[0.0, 0.0, -5.0], [1e6, 1.0, 5.0]])
    coef = np.array([[1e-10, 1e-10, -0.3]])
    np.testing.assert_array_equal(protocol._without_rounding(coef, X), [[1e-10, 0.0, -0.3]])


def test_platt_maps_are_fitted_to_out_of_fold_scores(split):
    """With many samples Platt's smoothing is small: near a logistic regression on the scores."""
    rng = np.random.default_rng(0)
    n = 20_000
    u = 2.0 * rng.normal(size=n)
    y = (rng.random(n) < expit(0.5 * u + 0.3)).astype(int)
    X = u[:, None]
    one = protocol.Split(X, y, X[:50], y[:50], np.arange(n) % 5)
    model = LinearModel(np.ones((1, 1)), np.zeros(1), u, "l2", 0.1)
    p = model.proba(one, "platt")
    known = LogisticRegression(C=1e9).fit(X, y)
    np.testing.assert_allclose(logit(p), known.decision_function(X[:50]), atol=2e-2)
    np.testing.assert_allclose(model.proba(one, "sigmoid"), expit(u[:50]))


# --- experiments ----------------------------------------------------------------------------------


def rows(name, monkeypatch, seed=5):
    monkeypatch.delenv("FRAGILITY_DATA", raising=False)
    real_data.real_data.cache_clear()
    one = find(name)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for condition in one.conditions(True):
            rows_of_one = one.trial(condition, seed, True)
            found += [{**condition, "trial": 0, **row} for row in rows_of_one]
    real_data.real_data.cache_clear()
    return one, found


@pytest.mark.parametrize("name", OURS)
def test_trials_on_stand_ins_report(name, monkeypatch):
    """Two trials of a quick run without any data at hand: tables, figures and verdicts come out."""
    if name in ("heart", "heart_cost"):
        pytest.importorskip("xgboost")
        pytest.importorskip("lightgbm")
    one, found = rows(name, monkeypatch)
    assert all(row["dataset"].startswith("stand-in for ") for row in found)
    results = DataFrame([*found, *({**row, "trial": 1} for row in found)])
    shown = one.report(results)
    assert shown.text
    for draw in shown.figures.values():
        assert draw().axes
    for claim in one.claims:
        verdict = claim.rule(results)
        assert verdict is None or verdict.because


@pytest.mark.parametrize("name", ["uci", "heart_confidence"])
def test_trials_are_the_same_bit_for_bit(name, monkeypatch):
    _, first = rows(name, monkeypatch)
    _, second = rows(name, monkeypatch)
    assert [repr(row) for row in first] == [repr(row) for row in second]
    _, other = rows(name, monkeypatch, seed=6)
    assert repr(other) != repr(first)


def test_stand_ins_are_for_quick_runs_only(monkeypatch, tmp_path):
    monkeypatch.setenv("FRAGILITY_DATA", str(tmp_path))
    real_data.real_data.cache_clear()
    data = real_data.real_data("sonar", True)
    assert (data.name, data.X.shape) == ("stand-in for sonar", (208, 60))

    def absent(*_, **__):
        raise FileNotFoundError("not there")

    monkeypatch.setattr(real_data, "load_uci", absent)
    with pytest.raises(FileNotFoundError):
        real_data.real_data("sonar", False)
    real_data.real_data.cache_clear()


def test_densities_are_histograms():
    rng = np.random.default_rng(0)
    y, p = rng.integers(2, size=40), rng.random(40)
    row = heart_confidence._confidences(y, p)
    errors = [a - b for a in p[y == 0] for b in p[y == 1]]
    wrong = [max(q, 1 - q) for label, q in zip(y, p, strict=True) if (q >= 0.5) != (label == 1)]
    expected = slow.histogram_density(errors, -1.0, 1.0, 40)
    np.testing.assert_allclose([row[f"error_{i:02d}"] for i in range(40)], expected, atol=1e-5)
    expected = slow.histogram_density(wrong, 0.5, 1.0, 20)
    np.testing.assert_allclose([row[f"wrong_{i:02d}"] for i in range(20)], expected, atol=1e-5)
    assert row["confident_errors"] == np.mean(np.array(errors) > 0.5)
    assert row["mean_confidence_wrong"] == pytest.approx(np.mean(wrong))


def test_costs_are_those_of_the_paper():
    rng = np.random.default_rng(3)
    y, p = rng.integers(2, size=50), np.round(rng.random(50), 3)
    results = DataFrame([{"cases": 50, **heart_cost._counts(y, p)}])
    for error_cost in (10, 20):
        per_patient = heart_cost.costs(results, error_cost)
        for threshold in (50, 63, 88, 100):
            expected = slow.cost(y, p, threshold / 100.0, error_cost) / 50
            assert per_patient.loc[0, threshold] == pytest.approx(expected)


def test_cheapest_thresholds_leave_out_where_all_are_equal():
    means = DataFrame(
        {"A": [1.0, 2.0, 5.0, 3.0], "B": [2.0, 1.0, 5.0, 3.0], "C": [2.0, 1.0, 5.0, 9.0]}
    )
    assert heart_cost._cheapest(means) == {"A": 2, "B": 2, "C": 1}


def fake(method, values, **more):
    return [{"trial": i, "method": method, "accuracy": v, **more} for i, v in enumerate(values)]


def test_paired_differences_use_the_same_trials():
    results = DataFrame([*fake("A", [0.9, 0.8, 0.7, inf]), *fake("B", [0.8, 0.7, 0.6, 0.1])])
    mean, low, high = comparison.paired(results, "accuracy", "A", "B")
    assert mean == pytest.approx(0.1)
    assert high - low == pytest.approx(0.0, abs=1e-9)
    assert comparison.paired(results, "accuracy", "A", "C") is None


@pytest.mark.parametrize(
    ("gains", "holds"),
    [
        ([0.1, 0.1], "holds"),
        ([0.1, 0.0], "holds partly"),
        ([0.1, 0.1, -0.1], "holds partly"),
        ([-0.1, 0.1], "does not hold"),
    ],
)
def test_verdicts_follow_clear_differences(gains, holds):
    noise = np.array([0.01, -0.01, 0.005, -0.005, 0.0])
    results = []
    for flip, gain in enumerate(gains):
        base = np.array([0.7, 0.72, 0.68, 0.71, 0.7])
        results += fake("ERM", base, flip=flip)
        results += fake("KL", base + gain + noise, flip=flip)
    sides = comparison.compared(DataFrame(results), "flip", ("KL",), measures=("accuracy",))
    verdict = comparison.share_better(sides, "KL")
    assert verdict.holds == holds
    assert len(sides["better"]) == sum(gain > 0 for gain in gains)


def test_scale_explains_all_where_models_are_the_same_but_for_scale():
    rows = [
        {"dataset": "d", "flip": 0.0, "trial": t, "method": m, "fragility_index": v + 0.01 * t}
        for t in range(3)
        for m, v in (
            ("ERM", 0.2),
            ("ERM, scores as KL", 0.2),
            ("KL", 0.15),
            ("ERM, scores as Wasserstein", 0.1),
            ("Wasserstein", 0.1),
        )
    ]
    found = scale_matched.explained(DataFrame(rows)).set_index("method")["explained"]
    assert found["Wasserstein"] == pytest.approx(1.0)
    assert found["KL"] == pytest.approx(0.0)


def test_printed_values_are_all_there():
    table = uci_experiment.printed()
    assert len(table) == 8 * 2 * 3
    assert set(table["dataset"]) == set(real_data.UCI)
    for measure in ("accuracy", "auc", "fragility_index"):
        assert (table[f"{measure}_low"] <= table[measure]).all()
        assert (table[measure] <= table[f"{measure}_high"]).all()


def test_the_nearest_setting_is_found():
    """Results that are the printed values under one setting only."""
    paper = uci_experiment.printed()
    rows = []
    for line in paper.to_dict("records"):
        for scaling in ("standard", "none"):
            for cost in (np.nan,) if line["method"] != "Wasserstein" else (inf, 1.0):
                off = 0.05 * (scaling == "standard") + 0.1 * (cost == inf)
                rows.append(
                    {
                        "dataset": line["dataset"],
                        "flip": line["flip"],
                        "scaling": scaling,
                        "intercept": "priced",
                        "trial": 0,
                        "penalty": "l1",
                        "either": 1,
                        "method": line["method"],
                        "label_cost": cost,
                        "chosen_by": "accuracy;auc",
                        **{f"{m}_sigmoid": line[m] + off for m in comparison.GAINS},
                        **{f"{m}_platt": line[m] + 0.2 for m in comparison.GAINS},
                    }
                )
    found = settings_experiment.distances(settings_experiment.cells(DataFrame(rows)))
    first = found.iloc[0]
    assert (first["scaling"], first["label_cost"], first["probability"]) == ("none", 1.0, "sigmoid")
    assert first["distance"] == pytest.approx(0.0, abs=1e-12)
    assert first["inside"] == first["cells"] == 144
    (verdict,) = [claim.rule(DataFrame(rows)) for claim in find("uci_settings").claims]
    assert verdict.holds == "holds"
