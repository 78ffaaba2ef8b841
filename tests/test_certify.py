"""Certificates of models and data as users give them, and what is said where that fails."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from fragility.ambiguity import KL, Wasserstein, as_ambiguity
from fragility.certificates import Certificate, certify, penalty_of
from fragility.losses import CrossEntropy, SmoothedHinge, as_loss

from .test_certificates import LOSSES, certified, problem


def test_sparse_text_frames_and_weights_change_nothing():
    X, y, weights, model = problem(3)
    plain = certify(model, X, y, target=2.0, sample_weight=weights)
    for given in (sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X), X.tolist()):
        other = certify(model, given, list(y), target=2.0, sample_weight=weights)
        assert other.losses == pytest.approx(plain.losses, rel=1e-12)
        assert other.fragility == plain.fragility
    names = np.array(["a", "b", "c"])[y]
    named = LogisticRegression(C=model.C, max_iter=2000).fit(X, names)
    assert certify(named, X, names, target=2.0).classes.tolist() == ["a", "b", "c"]
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    again = certify(model, X[repeated], y[repeated], target=2.0)
    assert again.attained_loss == pytest.approx(plain.attained_loss, rel=1e-13)
    assert again.label_flip_bound(0.1) == pytest.approx(plain.label_flip_bound(0.1), rel=1e-13)


def test_other_models():
    X, y, _, _ = problem(3)
    model = LinearSVC(max_iter=50_000, tol=1e-3).fit(StandardScaler().fit_transform(X), y)
    assert certify(model, X, y, target=99.0).fragility > 0
    for fit_intercept in (True, False):
        binary = LogisticRegression(fit_intercept=fit_intercept).fit(X, y > 0)
        dense = certify(binary, X, y > 0, target=9.0)
        assert dense.losses.mean() == pytest.approx(dense.attained_loss)
        binary.sparsify()
        assert certify(binary, X, y > 0, target=9.0).fragility == dense.fragility
    bare = SimpleNamespace(coef_=[1.0, 0, 0, 0], intercept_=0.0, classes_=[0, 1])
    assert certify(bare, X, y > 0, target=99.0).fragility == 1.0


def test_models_of_this_library_bring_their_settings():
    X, y, _, model = problem()
    own = SimpleNamespace(
        coef_=model.coef_, intercept_=model.intercept_, classes_=model.classes_, target_=0.9,
        loss="smoothed_hinge", ambiguity=KL(), penalty="l2", alpha=0.5,
    )  # fmt: skip
    result = certify(own, X, y)
    assert (result.target, result.loss, result.ambiguity) == (0.9, SmoothedHinge(), KL())
    assert result.penalty == pytest.approx(0.5 * np.sum(model.coef_**2))
    own.penalty = "l1"
    assert certify(own, X, y).penalty == pytest.approx(0.5 * np.abs(model.coef_).sum())
    own.penalty = None
    assert certify(own, X, y).penalty == 0.0
    given = certify(own, X, y, target=0.7, loss=CrossEntropy(), ambiguity="wasserstein", penalty=1)
    assert (given.target, given.loss, given.ambiguity, given.penalty) == (
        0.7, CrossEntropy(), Wasserstein(), 1.0,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"penalty must be one of 'l1', 'l2', None; got 'l3'"):
        penalty_of("l3", 1.0, model.coef_)


def test_strict_floating_point_and_pickles():
    X, y, weights, model = problem()
    with np.errstate(all="raise"):
        for ambiguity in (KL(), Wasserstein()):
            for loss in LOSSES:
                # Scores of some thousands: the losses underflow, and so does the tilt.
                result = certify(
                    model, X * 1e3, y, target=2e3, loss=loss, ambiguity=ambiguity,
                    sample_weight=weights * 1e-300,
                )  # fmt: skip
                repr(result)
                result.violation_bound(1e308)
                assert pickle.loads(pickle.dumps(result)).fragility == result.fragility
        assert certify(model, X * 1e3, y, target=2e3, ambiguity="kl").worst_case_weights().sum()


def test_printed():
    X, y, _, model = problem()
    result = certify(model, X, y, target=0.7, penalty=0.01)
    text = repr(result)
    for number in (
        result.target, result.attained_loss, result.fragility, result.label_flip_bound(0.01)
    ):  # fmt: skip
        assert f"{number:.6g}" in text
    assert f"{result.headroom:.4g}" in text
    assert f"{result.index_bound().bound:.4g}" in text
    assert "penalty 0.01" in text
    assert "CrossEntropy()" in text
    assert "Wasserstein(" in text
    assert "target is missed" not in text
    assert len(text.splitlines()) == 7
    assert "target is missed" in repr(certify(model, X, y, target=0.01))
    assert "of each two classes: index_bounds()" in repr(certified(problem(3)))
    assert isinstance(result, Certificate)


def test_names():
    assert as_loss("cross_entropy") == CrossEntropy()
    assert as_loss(SmoothedHinge(2.0)) == SmoothedHinge(2.0)
    assert as_ambiguity("wasserstein") == Wasserstein()
    assert as_ambiguity(KL()) == KL()
    with pytest.raises(ValueError, match=r"'cross_entropy', 'hinge'.*got 'huber'"):
        as_loss("huber")
    with pytest.raises(ValueError, match=r"an object such as SmoothedHinge"):
        as_loss(CrossEntropy)
    with pytest.raises(ValueError, match=r"'kl', 'wasserstein'.*got None"):
        as_ambiguity(None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "LogisticRegression was not trained for a target; give target="),
        ({"target": math.nan}, "target must be finite"),
        ({"penalty": -1.0}, "penalty must be zero or more; got -1.0"),
        ({"penalty": "l2"}, "penalty must be a number"),
        ({"loss": "squared"}, "loss must be one of"),
        ({"ambiguity": "tv"}, "ambiguity must be one of"),
        ({"ambiguity": Wasserstein(feature_weight=[1, 2])}, "feature_weight has 2 entries"),
        ({"sample_weight": [1.0]}, "sample_weight has shape"),
        ({"X": np.ones((60, 3))}, "X has 3 features; the model has coefficients for 4"),
        ({"X": np.full((60, 4), np.nan)}, "contains NaN"),
        ({"X": np.full((60, 4), 1e307)}, "overflow on these samples; scale the features"),
        ({"y": np.zeros(59)}, "X has 60 samples but y has 59"),
        ({"y": np.full(60, 2)}, "labels that the model does not know: 2; its classes are 0, 1"),
        ({"model": LogisticRegression()}, "has no coef_, intercept_, classes_; give a fitted"),
        ({"model": make_pipeline(StandardScaler(), LogisticRegression())}, "model is a Pipeline"),
    ],
)
def test_bad_input(change, message):
    X, y, _, model = problem()
    model.coef_ = np.full((1, 4), 10.0)
    given = {"model": model, "X": X, "y": y, "target": 1e3, **change}
    with pytest.raises(ValueError, match=message):
        certify(given.pop("model"), given.pop("X"), given.pop("y"), **given)


def test_bad_models():
    X, y, _, model = problem(3)
    with pytest.raises(ValueError, match="LinearRegression has no classes_"):
        certify(LinearRegression().fit(X, y), X, y, target=1.0)
    with pytest.raises(ValueError, match=r"belong to pairs of classes.*LinearSVC"):
        certify(SVC(kernel="linear").fit(X, y), X, y, target=1.0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = LogisticRegression(max_iter=2000).fit(frame, y)
    assert certify(named, frame, y, target=2.0).fragility > 0
    with pytest.raises(ValueError, match=r"X has the columns 'b', 'a', .* fitted with 'a', 'b'"):
        certify(named, frame[list("bacd")], y, target=1.0)
    model.coef_ = model.coef_[:2]
    with pytest.raises(ValueError, match=r"coef_ has shape \(2, 4\)"):
        certify(model, X, y, target=1.0)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.zeros(2)
    with pytest.raises(ValueError, match="intercept_ has 2 entries for 3 rows"):
        certify(model, X, y, target=1.0)
    model.intercept_ = np.array([0.0, 1.0, math.inf])
    with pytest.raises(ValueError, match="this model has diverged"):
        certify(model, X, y, target=1.0)


@pytest.mark.parametrize("distance", [-1.0, math.nan, math.inf, [0.1, -0.1]])
def test_bad_distance(distance):
    with pytest.raises(ValueError, match="distance must be finite and zero or more"):
        certified(problem()).violation_bound(distance)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_bad_rate(rate):
    with pytest.raises(ValueError, match="rate must be finite and from 0 to 1"):
        certified(problem()).label_flip_bound(rate)
