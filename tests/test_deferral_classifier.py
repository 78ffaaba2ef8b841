"""The classifier that knows when to ask: scikit-learn's checks, honest thresholds, decisions."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import fragility
from fragility import DeferralClassifier, best_policy
from fragility.deferral import Decisions


@parametrize_with_checks(
    [
        DeferralClassifier(error_cost=5),
        DeferralClassifier(GaussianNB(), error_cost=5, capacity=0.3, cv=3, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore:Higher scores do not mean")  # labels there are noise
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    """Two classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.normal(size=(240, 3)) + 0.8 * y[:, None]
    return X, y


def split(y):
    return PredefinedSplit(np.arange(y.size) % 4)


def drawn_seed(random_state):
    """The seed that a classifier with a splitter of its own draws for its policy."""
    return int(np.random.default_rng(random_state).integers(2**31))


def same_policy(one, other):
    """Whether two policies decide and cost the same."""
    for name in ("lower", "upper", "cost", "automation_rate", "error_share", "fragility"):
        left, right = getattr(one, name), getattr(other, name)
        assert left == pytest.approx(right, rel=1e-9, nan_ok=True), name
    left, right = (
        {name: part for name, part in policy.to_dict().items() if not isinstance(part, float)}
        for policy in (one, other)
    )
    for name in ("decision", "costs", "fragility_interval"):
        del left[name], right[name]
    for name in ("cost_interval", "lower_interval", "upper_interval"):
        del left[name], right[name]
        ends = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(*ends, rtol=1e-9, err_msg=name)
    assert left == right


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts the shares of the classes, and remembers what it was given."""

    fits: list  # of the class: clones share it

    def fit(self, X, y, sample_weight=None, note=None):
        self.classes_ = np.unique(y)
        type(self).fits.append((np.asarray(X)[:, 0].tolist(), sample_weight, note))
        return self

    def predict_proba(self, X):
        return np.tile([0.3, 0.7], (len(X), 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"capacity": 0.2}, {"reviewer_error": 0.1}, {"max_error_share": 0.1}]
)
def test_policy_is_that_of_out_of_fold_predictions(data, options):
    X, y = data
    model = RandomForestClassifier(30, random_state=0)
    found = DeferralClassifier(model, error_cost=6, cv=split(y), random_state=3, **options)
    found.fit(X, y)
    proba = cross_val_predict(model, X, y, cv=split(y), method="predict_proba")
    seed = drawn_seed(3)
    same_policy(found.policy_, best_policy(y, proba, error_cost=6, random_state=seed, **options))
    whole = clone(model).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), whole.predict_proba(X))
    np.testing.assert_array_equal(found.predict(X), whole.predict(X))
    # On its own training data it looks perfect; the cost that is told is not taken from there.
    seen = best_policy(y, whole.predict_proba(X), error_cost=6, rule="tuned")
    assert seen.cost < 0.3 < 0.7 < found.policy_.cost


@pytest.mark.parametrize(
    "options",
    [{"rule": "tuned"}, {"criterion": "fragility", "slack": 0.2}, {"max_misses": 0.2}],
)
def test_options_reach_the_policy(data, options):
    X, y = data
    found = DeferralClassifier(error_cost=6, cv=split(y), random_state=0, **options).fit(X, y)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=split(y), method="predict_proba")
    expected = best_policy(y, proba, error_cost=6, random_state=drawn_seed(0), **options)
    same_policy(found.policy_, expected)


def test_the_function_is_no_module():
    """Modules of its name would hide it, once others have imported them."""
    assert callable(best_policy)
    assert callable(fragility.deferral.best_policy)


def test_folds_by_number(data):
    X, y = data
    one, same, other = (
        DeferralClassifier(error_cost=6, cv=4, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    same_policy(one.policy_, same.policy_)
    assert one.policy_.cost != other.policy_.cost
    DeferralClassifier(error_cost=6, random_state=np.random.RandomState(0)).fit(X, y)


@pytest.mark.filterwarnings("ignore:Higher scores do not mean")  # its scores are all the same
def test_every_sample_is_predicted_by_others(data):
    X, y = data
    X = X.copy()
    X[:, 0] = np.arange(y.size)
    Recorder.fits = []
    DeferralClassifier(Recorder(), error_cost=6, cv=3).fit(X, y)
    whole, *parts = [set(rows) for rows, *_ in Recorder.fits]
    assert whole == set(range(y.size))
    assert len(parts) == 3
    left_out = [whole - part for part in parts]
    assert sorted(row for part in left_out for row in part) == sorted(whole)
    for rows in left_out:
        assert len(rows) == 80
        assert abs(y[[int(row) for row in rows]].mean() - y.mean()) < 0.02


def test_a_fitted_model_is_left_alone(data):
    X, y = data
    model = LogisticRegression().fit(X[:100], y[:100])
    coef = model.coef_.copy()
    found = DeferralClassifier(FrozenEstimator(model), error_cost=6, random_state=4)
    found.fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    expected = best_policy(
        y[100:], model.predict_proba(X[100:]), error_cost=6, random_state=drawn_seed(4)
    )
    same_policy(found.policy_, expected)
    # One class is enough where the model knows the others.
    ones = y == 1
    few = DeferralClassifier(FrozenEstimator(model), error_cost=6).fit(X[ones], y[ones])
    assert few.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="classes that labels does not name: 7"):
        DeferralClassifier(FrozenEstimator(model), error_cost=6).fit(X, np.where(y == 0, 7, y))
    weights = np.ones(y.size)
    DeferralClassifier(FrozenEstimator(model), error_cost=6).fit(X, y, sample_weight=weights)
    with pytest.raises(NotFittedError):
        DeferralClassifier(FrozenEstimator(LogisticRegression()), error_cost=6).fit(X, y)


def test_matrix_of_costs_and_several_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    matrix = np.array([[0, 4, 4], [4, 0, 50], [4, 50, 0]])
    folds = PredefinedSplit(np.arange(150) % 5)
    model = GaussianNB()
    found = DeferralClassifier(model, error_cost=matrix, cv=folds, random_state=1).fit(X, names)
    proba = cross_val_predict(model, X, names, cv=folds, method="predict_proba")
    expected = best_policy(names, proba, error_cost=matrix, random_state=drawn_seed(1))
    same_policy(found.policy_, expected)
    decided, alone = found.decide(X).label, found.decide(X).automate
    np.testing.assert_array_equal(decided, expected.decide(found.predict_proba(X)).label)
    assert 0 < alone.sum() < 150
    assert found.classes_.tolist() == ["a", "b", "c"]


def test_a_class_of_few_samples():
    """A class that a training part lacks has no chance there; that is no reason to stop."""
    X, y = load_iris(return_X_y=True)
    rows = np.r_[:50, 50:100, 100:102]
    found = DeferralClassifier(GaussianNB(), error_cost=6, random_state=0).fit(X[rows], y[rows])
    assert found.classes_.tolist() == [0, 1, 2]
    rows = np.r_[:50, 50:51]
    with pytest.raises(ValueError, match="leaves samples of one class only to fit to: 0"):
        DeferralClassifier(error_cost=6).fit(X[rows], y[rows])


def test_case_costs(data):
    X, y = data
    amounts = np.random.default_rng(1).integers(1, 40, y.size)
    found = DeferralClassifier(cv=split(y), random_state=0).fit(X, y, case_cost=amounts)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=split(y), method="predict_proba")
    expected = best_policy(y, proba, error_cost=amounts, random_state=drawn_seed(0))
    same_policy(found.policy_, expected)
    # In the place of error_cost; of those that are never tested none is needed.
    again = DeferralClassifier(error_cost=1e6, cv=split(y), random_state=0)
    same_policy(again.fit(X, y, case_cost=list(amounts)).policy_, expected)
    part = DeferralClassifier(cv=TimeSeriesSplit(4)).fit(X, y, case_cost=amounts)
    assert part.policy_.n_samples == 192


def test_weights_reach_the_model_and_the_costs(data):
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    found = DeferralClassifier(error_cost=6, cv=split(y), random_state=0)
    found.fit(X, y, sample_weight=weights)
    proba = np.empty(y.size)
    for train, test in split(y).split():
        part = LogisticRegression().fit(X[train], y[train], sample_weight=weights[train])
        proba[test] = part.predict_proba(X[test])[:, 1]
    expected = best_policy(
        y, proba, error_cost=6, sample_weight=weights, random_state=drawn_seed(0)
    )
    same_policy(found.policy_, expected)
    assert found.policy_.n_samples == np.count_nonzero(weights)
    whole = LogisticRegression().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.predict_proba(X), whole.predict_proba(X))
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not take sample_weight"):
        DeferralClassifier(KNeighborsClassifier(), error_cost=6).fit(X, y, sample_weight=weights)


# Decisions


def test_decisions(data):
    X, y = data
    model = DeferralClassifier(error_cost=6, random_state=0).fit(X[:200], y[:200])
    made = model.decide(X[200:])
    assert isinstance(made, Decisions)
    proba = model.predict_proba(X[200:])
    policy = model.policy_
    np.testing.assert_allclose(made.score, proba[:, 1], rtol=1e-15)
    positive, negative = made.score >= policy.upper, made.score < policy.lower
    np.testing.assert_array_equal(made.automate, positive | negative)
    np.testing.assert_array_equal(made.label[made.automate], positive[made.automate])
    assert 0 < made.automate.sum() < len(made) == 40
    for reason, alone in zip(made.reason, made.automate, strict=True):
        assert reason.endswith(": review") != alone
    frame = made.to_frame()
    assert frame.columns.tolist() == ["label", "automate", "score", "saving", "reason"]
    assert frame["automate"].tolist() == made.automate.tolist()
    assert f"decided alone    {made.automate.sum()}" in repr(made)
    assert f"for review       {(~made.automate).sum()}" in repr(made)
    assert made._repr_html_().count("<tr>") == 2


class TwoDecimals(LogisticRegression):
    """Its probabilities tie."""

    def predict_proba(self, X):
        positive = np.round(super().predict_proba(X)[:, 1], 2)
        return np.column_stack([1.0 - positive, positive])


def test_decisions_are_those_the_policy_was_chosen_for(data):
    X, y = data
    model = TwoDecimals().fit(X, y)
    found = DeferralClassifier(FrozenEstimator(model), error_cost=6).fit(X, y)
    made = found.decide(X)
    assert made.automate.mean() == pytest.approx(found.policy_.automation_rate)
    assert 0 < made.automate.sum() < y.size


def test_queue_has_the_largest_savings_first(data):
    X, y = data
    made = DeferralClassifier(error_cost=6, random_state=0).fit(X, y).decide(X)
    queue = made.review_queue()
    assert sorted(queue.tolist()) == np.flatnonzero(~made.automate).tolist()
    assert (np.diff(made.saving[queue]) <= 0).all()
    np.testing.assert_array_equal(made.review_queue(3), queue[:3])
    assert len(made.review_queue(0)) == 0


@pytest.mark.parametrize(
    ("score", "lower", "upper", "sentence"),
    [
        (0.03, 0.1, 0.9, "score 0.03 is below 0.1"),
        (0.97, 0.1, 0.93, "score 0.97 is not below 0.93"),
        (0.93, 0.1, 0.93, "score 0.93 is not below 0.93"),
        (0.61, 0.1, 0.93, "score 0.61 is between 0.1 and 0.93: review"),
        (0.1, 0.1, 0.93, "score 0.1 is between 0.1 and 0.93: review"),
        (0.9312, 0.1, 0.9341, "score 0.931 is between 0.1 and 0.934: review"),
        (0.61, 0.1, np.inf, "score 0.61 is not below 0.1: review"),
        (1 - 1e-12, 1.0, 1.0, "score 0.99999999999900002 is below 1"),
    ],
)
def test_reasons(score, lower, upper, sentence):
    one = np.ones(1)
    made = Decisions(one, one > 0, np.array([score]), one, lower, upper)
    assert made.reason.tolist() == [sentence]


def test_reasons_of_several_classes():
    one = np.ones(2)
    made = Decisions(one, one > 0, np.array([0.5, 0.504]), one, 0.5, np.inf, "loss")
    assert made.reason.tolist() == [
        "loss 0.5 is not above 0.5",
        "loss 0.504 is above 0.5: review",
    ]


def test_to_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    one = np.ones(1)
    with pytest.raises(ImportError, match=r'pip install "fragility\[cli\]"'):
        Decisions(one, one > 0, one, one, 0.5, 0.5).to_frame()


# Among scikit-learn's


@pytest.mark.slow
def test_search_pipeline_clone_pickle(data):
    X, y = data
    model = DeferralClassifier(LogisticRegression(), error_cost=6, random_state=0)
    search = GridSearchCV(model, {"estimator__C": [0.01, 1.0], "error_cost": [3, 9]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_.decide(X).automate.size == y.size
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    inside = DeferralClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), error_cost=6, random_state=0
    ).fit(X, y)
    # Scaled once, or within each fold: nearly the same.
    assert piped[-1].policy_.lower == pytest.approx(inside.policy_.lower, abs=0.02)
    again = pickle.loads(pickle.dumps(inside))
    np.testing.assert_array_equal(again.decide(X).automate, inside.decide(X).automate)
    assert repr(again.policy_) == repr(inside.policy_)


def test_names_of_features(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DeferralClassifier(error_cost=6).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Higher scores do not mean")
def test_metadata_routing(data):
    X, y = data
    weights, groups = np.arange(y.size) % 3 + 1.0, np.arange(y.size) // 20
    Recorder.fits = []
    with config_context(enable_metadata_routing=True):
        model = DeferralClassifier(
            Recorder().set_fit_request(sample_weight=True, note=True),
            error_cost=6,
            cv=GroupKFold(3),
        )
        model.fit(X, y, sample_weight=weights, groups=groups, note=list(range(y.size)))
        (_, whole, _), *parts = Recorder.fits
        np.testing.assert_array_equal(whole, weights)
        assert len(parts) == 3
        for rows, given, note in parts:
            np.testing.assert_array_equal(given, weights[note])
            assert X[note, 0].tolist() == rows
            assert len(set(groups[note])) == 8  # of 12: whole groups are left out
        # What nobody asked for is not passed on in silence.
        careless = DeferralClassifier(LogisticRegression(), error_cost=6)
        with pytest.raises(UnsetMetadataPassedError):
            careless.fit(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="unexpected"):
            careless.fit(X, y, colour="red")
        asked = LogisticRegression().set_fit_request(sample_weight=True)
        weighted = DeferralClassifier(asked, error_cost=6).fit(X, y, sample_weight=weights)
        expected = LogisticRegression().fit(X, y, sample_weight=weights).coef_
        np.testing.assert_allclose(weighted.estimator_.coef_, expected)
        refused = LogisticRegression().set_fit_request(sample_weight=False)
        for plain in (refused, KNeighborsClassifier()):
            found = DeferralClassifier(plain, error_cost=6, random_state=0)
            found.fit(X, y, sample_weight=weights)
            assert found.policy_.n_samples == y.size
        search = GridSearchCV(
            DeferralClassifier(LogisticRegression()).set_fit_request(case_cost=True),
            {"estimator__C": [0.1, 1.0]},
            cv=3,
        )
        search.fit(X, y, case_cost=weights)
        assert search.best_estimator_.policy_.lower >= 0.0
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        DeferralClassifier(error_cost=6).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "DeferralClassifier needs error_cost, what a wrong decision costs"),
        ({"error_cost": [1.0] * 240}, r"fit\(X, y, case_cost=...\)"),
        ({"error_cost": np.ones((3, 3))}, r"error_cost has shape \(3, 3\)"),
        ({"error_cost": 6, "capacity": 7}, "capacity must be a share from 0 to 1 .* got 7"),
        ({"error_cost": 6, "cv": 1}, "cv must be a whole number of 2 or more; got 1"),
        ({"error_cost": 6, "cv": ShuffleSplit(3, random_state=0)}, "more than once"),
        ({"error_cost": 6, "random_state": "x"}, "random_state must be a whole number"),
        ({"error_cost": 6, "estimator": LinearSVC()}, "LinearSVC has no predict_proba"),
    ],
)
def test_bad_parameters(data, options, message):
    with pytest.raises(ValueError, match=message):
        DeferralClassifier(**options).fit(*data)


def test_bad_data(data):
    X, y = data
    with pytest.raises(ValueError, match=r"case_cost has shape \(3,\); give one number for each"):
        DeferralClassifier().fit(X, y, case_cost=[1, 2, 3])
    with pytest.raises(ValueError, match="one class only, 1: nothing to decide"):
        DeferralClassifier(DummyClassifier(), error_cost=6).fit(X, np.ones(y.size, int))
    with pytest.raises(NotFittedError):
        DeferralClassifier(error_cost=6).decide(X)


def test_real_data():
    """On data that it has not seen the costs come out as promised."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    train, test = order[:350], order[350:]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = DeferralClassifier(model, error_cost=20, random_state=0).fit(X[train], y[train])
    made = found.decide(X[test])
    cost = np.where(made.automate, 20.0 * (made.label != y[test]), 1.0).mean()
    assert cost < 0.5 < 1.0 == found.policy_.cost_review_all
    assert found.policy_.cost == pytest.approx(cost, abs=0.25)
