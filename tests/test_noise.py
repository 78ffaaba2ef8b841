"""Wasserstein.from_noise: weights of features from their known measurement errors."""

import pickle
from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from fragility import (
    DROClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    Wasserstein,
    certify,
    fragility_path,
)
from fragility.ambiguity import KL

from .reference import linear
from .reference.noise import feature_weights

SIGMA = (1.0, 0.0, 0.0, 0.4)
NAMED = {"pressure": 1.0, "dose": 0.4}


def _data(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [2.0, 30.0, 0.1, 1.0] + [100.0, 0.0, 0.0, -5.0]
    y = ((X - X.mean(0)) @ [0.4, 0.03, 8.0, 0.7] + rng.normal(size=n) > 0.0).astype(int)
    return X, y


X, Y = _data()
FRAME = pd.DataFrame(X, columns=["pressure", "age", "salt", "dose"])


def _weights(model):
    return np.array(model.ambiguity_.feature_weight)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("scale", [None, (1.0, 2.0, 0.0, 3.0)])
def test_weights_are_those_of_the_formula(floor, scale):
    ambiguity = Wasserstein.from_noise(SIGMA, floor, scale)
    model = SatisficingClassifier(ambiguity=ambiguity).fit(X, Y)
    literal = feature_weights(X.tolist(), SIGMA, floor, scale)
    assert _weights(model) == pytest.approx(literal, rel=1e-12)
    assert (np.isinf(_weights(model)) == [False, floor == 0.0, floor == 0.0, False]).all()


def test_weights_that_need_no_data_are_known_at_once():
    known = Wasserstein.from_noise([4.0, 0.0], scale=[10.0, 10.0])
    assert known.feature_weight == pytest.approx((0.2, 1 / 3))
    assert Wasserstein.from_noise([4.0, 0.0], floor=0).feature_weight == (0.25, inf)
    assert Wasserstein.from_noise([4.0, 0.0]).feature_weight is None
    assert known.fitted_to(X) is known
    assert KL().fitted_to(X) == KL()


def test_the_unit_is_what_a_feature_moves_by():
    """One feature moved by its own deviation is a distance of one, in every norm."""
    for norm in (1, 2, inf):
        ambiguity = Wasserstein.from_noise(SIGMA, norm=norm).fitted_to(X)
        for j in range(4):
            move = np.zeros(4)
            move[j] = np.hypot(0.3 * X[:, j].std(), SIGMA[j])
            cost = np.linalg.norm(np.array(ambiguity.feature_weight) * move, norm)
            assert cost == pytest.approx(1.0)


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_noise_is_a_shift_of_at_most_its_distance(norm):
    """Any errors of these deviations: the mean cost of the moves, which a coupling is."""
    ambiguity = Wasserstein.from_noise(SIGMA, norm=norm).fitted_to(X)
    rng, cost = np.random.default_rng(0), np.array(ambiguity.feature_weight)
    signs = np.sign(rng.normal(size=(4000, 4)))  # the largest mean length for their deviation
    for errors in (rng.normal(size=(4000, 4)), signs):
        far = np.linalg.norm(cost * SIGMA * errors, norm, axis=1).mean()
        assert far <= ambiguity.noise_distance * 1.05
    if norm != inf:
        assert far == pytest.approx(ambiguity.noise_distance)
    assert Wasserstein(norm).noise_distance == 0.0


def test_a_constant_column_is_not_free():
    """Nothing is known of how it may shift, so a model must not rely on it."""
    constant = np.column_stack([X, np.full(len(X), 0.1)])
    ambiguity = Wasserstein.from_noise((*SIGMA, 0.0))
    model = SatisficingClassifier(ambiguity=ambiguity).fit(constant, Y)
    assert _weights(model)[-1] == 1.0
    assert abs(model.coef_[0, -1]) < 1e-9
    without = SatisficingClassifier(ambiguity=Wasserstein.from_noise(SIGMA)).fit(X, Y)
    assert model.fragility_ == pytest.approx(without.fragility_, rel=1e-6)


def test_weighted_repeated_and_sparse_data_have_the_same_weights():
    counts = np.random.default_rng(1).integers(0, 4, len(Y))
    holes = np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0)
    ambiguity = Wasserstein.from_noise(SIGMA)
    literal = feature_weights(holes.tolist(), SIGMA, weights=counts.tolist())
    for features, weights in (
        (holes, counts),
        (sparse.csr_array(holes), counts),
        (np.repeat(holes, counts, axis=0), None),
        (sparse.csr_array(np.repeat(holes, counts, axis=0)), None),
    ):
        y = Y if weights is not None else np.repeat(Y, counts)
        model = SatisficingClassifier(ambiguity=ambiguity).fit(features, y, weights)
        assert _weights(model) == pytest.approx(literal, rel=1e-12)


def test_class_weights_are_weights():
    by_class = SatisficingClassifier(
        ambiguity=Wasserstein.from_noise(SIGMA), class_weight={0: 1.0, 1: 5.0}
    ).fit(X, Y)
    literal = feature_weights(X.tolist(), SIGMA, weights=np.where(Y == 1, 5.0, 1.0).tolist())
    assert _weights(by_class) == pytest.approx(literal, rel=1e-12)
    assert certify(by_class, X, Y).fragility == pytest.approx(by_class.fragility_, rel=1e-12)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_a_model_is_that_of_features_in_units_of_their_deviations(norm):
    """Moved into units in which every weight is one, it is the plain program."""
    weights = np.array(feature_weights(X.tolist(), SIGMA))
    model = SatisficingClassifier(ambiguity=Wasserstein.from_noise(SIGMA, norm=norm), slack=0.2)
    model.fit(X, Y)
    plain = SatisficingClassifier(ambiguity=Wasserstein(norm), slack=0.2).fit(X * weights, Y)
    assert model.fragility_ == pytest.approx(plain.fragility_, rel=1e-5)
    assert model.coef_ == pytest.approx(plain.coef_ * weights, rel=2e-3, abs=1e-6)
    assert model.fragility_ == pytest.approx(
        linear.dual_norms(model.coef_, norm, weights).max(), rel=1e-9
    )


@pytest.mark.outside
@pytest.mark.parametrize("labels", ["two", "three"])
def test_the_program_transcribed(labels):
    from .reference import programs

    y = Y if labels == "two" else Y + (X[:, 1] > 20.0)
    ambiguity = Wasserstein.from_noise(SIGMA)
    model = SatisficingClassifier(ambiguity=ambiguity).fit(X, y)
    weights = feature_weights(X.tolist(), SIGMA)
    centred = X - X.mean(axis=0)  # the reference has no preconditioning; the intercept is free
    found = programs.wasserstein(
        centred, y, len(set(y)), "cross_entropy", model.target_, feature_weight=weights
    )
    assert model.fragility_ == pytest.approx(found.value, rel=1e-5)


def test_units_of_the_data_do_not_matter():
    units = np.array([10.0, 0.01, 1e3, 1.0])
    first = SatisficingClassifier(ambiguity=Wasserstein.from_noise(SIGMA)).fit(X, Y)
    ambiguity = Wasserstein.from_noise(SIGMA * units)
    second = SatisficingClassifier(ambiguity=ambiguity).fit(X * units, Y)
    assert second.fragility_ == pytest.approx(first.fragility_, rel=1e-6)
    assert second.decision_function(X * units) == pytest.approx(
        first.decision_function(X), abs=1e-4
    )


@pytest.mark.parametrize(
    "estimator",
    [
        SatisficingClassifier(),
        SatisficingClassifier("hinge"),
        SatisficingClassifier(radius=0.1),
        DROClassifier(radius=0.1),
        SatisficingClassifierCV(cv=3, alphas=[1e-2], slacks=[0.1, 0.3]),
    ],
    ids=["plain", "hinge", "ball", "dro", "cv"],
)
def test_every_estimator_takes_names(estimator):
    ambiguity = Wasserstein.from_noise(NAMED)
    model = clone(estimator).set_params(ambiguity=ambiguity).fit(FRAME, Y)
    listed = clone(estimator).set_params(ambiguity=Wasserstein.from_noise(SIGMA)).fit(X, Y)
    assert model.ambiguity == ambiguity  # fit does not change its parameters
    assert _weights(model) == pytest.approx(feature_weights(X.tolist(), SIGMA), rel=1e-12)
    assert np.array_equal(model.coef_, listed.coef_)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.ambiguity_ == model.ambiguity_ == model.certificate_.ambiguity
    assert clone(model).ambiguity == ambiguity
    assert certify(copied, FRAME, Y).fragility == pytest.approx(model.fragility_, rel=1e-9)
    assert "one feature moved by its own √((0.3 sd)² + σ²)" in repr(model.certificate_)


def test_cross_validation_takes_the_deviations_of_all_data():
    ambiguity = Wasserstein.from_noise(SIGMA)
    options = {"cv": 3, "alphas": [1e-2], "slacks": [0.1, 0.3], "tol_cv": 1e-6}
    found = SatisficingClassifierCV(ambiguity=ambiguity, **options).fit(X, Y)
    weighted = Wasserstein(feature_weight=feature_weights(X.tolist(), SIGMA))
    literal = SatisficingClassifierCV(ambiguity=weighted, **options).fit(X, Y)
    assert found.fragilities_ == pytest.approx(literal.fragilities_, rel=1e-5)
    unfitted = SatisficingClassifierCV(ambiguity=ambiguity, refit=False, **options).fit(X, Y)
    assert unfitted.ambiguity_ == found.ambiguity_


def test_paths_and_searches():
    path = fragility_path(FRAME, Y, ambiguity=Wasserstein.from_noise(NAMED), slacks=[0.1, 0.4])
    single = SatisficingClassifier(ambiguity=Wasserstein.from_noise(NAMED), slack=0.1).fit(FRAME, Y)
    assert path.fragility[0] == pytest.approx(single.fragility_, rel=1e-5)
    assert path.ambiguity == single.ambiguity_
    offered = [Wasserstein(), Wasserstein.from_noise(NAMED)]
    search = GridSearchCV(SatisficingClassifier(), {"ambiguity": offered}, cv=2).fit(FRAME, Y)
    assert search.best_params_["ambiguity"] in offered


def test_other_models_are_certified_by_the_deviations_of_the_samples():
    other = LogisticRegression(max_iter=5000).fit(FRAME, Y)
    found = certify(other, FRAME, Y, target=0.6, ambiguity=Wasserstein.from_noise(NAMED))
    weights = feature_weights(X.tolist(), SIGMA)
    assert found.fragility == pytest.approx(
        linear.dual_norms(other.coef_, 2, weights).max(), rel=1e-9
    )


def test_equality_and_what_is_printed():
    first = Wasserstein.from_noise({"a": 1, "b": 0.5})
    assert first == Wasserstein.from_noise({"b": 0.5, "a": 1.0})
    assert hash(first) == hash(Wasserstein.from_noise({"b": 0.5, "a": 1.0}))
    assert first != Wasserstein.from_noise({"a": 1, "b": 0.5}, floor=0.2)
    assert first != Wasserstein.from_noise([1, 0.5])
    assert first != Wasserstein()
    assert repr(first) == "Wasserstein.from_noise({'a': 1, 'b': 0.5}, floor=0.3)"
    listed = Wasserstein.from_noise([1, 0], 0.1, {"a": 2, "b": 3}, norm=1, label_cost=2.0)
    given = "[1, 0], floor=0.1, scale={'a': 2, 'b': 3}, norm=1, label_cost=2.0"
    assert repr(listed) == f"Wasserstein.from_noise({given})"
    assert eval(repr(listed)) == listed
    fitted = first.fitted_to(X[:, :2], None, ["a", "b"])
    assert repr(fitted).startswith("Wasserstein(norm=2, feature_weight=(")
    assert replace(fitted) == fitted != first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5.0,), "sigma must be one finite number of zero or more for each feature"),
        (([1.0, -1.0],), "sigma must be one finite number of zero or more"),
        (([1.0, np.nan],), "sigma must be one finite number of zero or more"),
        (({"a": -1},), "sigma of 'a' must be zero or more; got -1"),
        (({"a": "x"},), "sigma of 'a' must be a number; got 'x'"),
        (({3: 1.0},), "sigma must have names of features for keys; got 3"),
        (([1.0], -0.1), "floor must be zero or more; got -0.1"),
        (([0.0, 0.0], 0.0), "sigma is 0 for every feature and floor=0"),
        (([],), "sigma must be one finite number of zero or more for each feature"),
        (({}, 0.3, {}), "scale has no entries"),
        ((pd.Series([1.0, 2.0], ["a", "a"]),), "sigma has several entries for 'a'"),
        ((pd.Series([1.0, 2.0], [1, 0]),), "sigma must have names of features for keys; got 1"),
        ((pd.DataFrame({"a": [1.0]}),), "sigma must be one finite number of zero or more"),
        (({}, 0.0), "sigma is 0 for every feature and floor=0"),
        (([1.0, 2.0], 0.3, [1.0]), "sigma has 2 entries and scale has 1"),
    ],
)
def test_bad_noise(arguments, words):
    with pytest.raises(ValueError, match=words):
        Wasserstein.from_noise(*arguments)


@pytest.mark.parametrize(
    ("ambiguity", "features", "words"),
    [
        (Wasserstein.from_noise({"presure": 1}), FRAME, "Did you mean 'pressure' for 'presure'"),
        (Wasserstein.from_noise(NAMED), X, "sigma names features .* but X has no column names"),
        (Wasserstein.from_noise([1, 2]), X, "sigma has 2 entries; X has 4 features"),
        (Wasserstein.from_noise(NAMED, scale=NAMED), FRAME, "scale has no entry for 'age', 'salt'"),
        (Wasserstein.from_noise(NAMED, scale=[1.0]), FRAME, "scale has 1 entries; X has 4"),
    ],
)
def test_noise_that_does_not_fit_the_data(ambiguity, features, words):
    for estimator in (SatisficingClassifier(), SatisficingClassifierCV(cv=2)):
        with pytest.raises(ValueError, match=words):
            estimator.set_params(ambiguity=ambiguity).fit(features, Y)


def test_a_series_is_read_by_its_names():
    sigma = pd.Series(NAMED)[::-1]
    scale = FRAME.std(ddof=0).sample(frac=1.0, random_state=1)
    assert list(scale.index) != list(FRAME.columns)
    assert Wasserstein.from_noise(sigma) == Wasserstein.from_noise(NAMED)
    found = Wasserstein.from_noise(sigma, scale=scale).fitted_to(X, None, list(FRAME.columns))
    wanted = feature_weights(X.tolist(), [NAMED.get(name, 0.0) for name in FRAME.columns])
    assert found.feature_weight == pytest.approx(wanted, rel=1e-12)
    # Without names, or with numbers from 0, it is a list.
    assert Wasserstein.from_noise(pd.Series(SIGMA)) == Wasserstein.from_noise(SIGMA)


@pytest.mark.parametrize("features", [X, FRAME])
def test_no_names_are_no_errors_of_measurement(features):
    ambiguity = Wasserstein.from_noise({})
    assert ambiguity == Wasserstein.from_noise({}) != Wasserstein.from_noise([0.0] * 4)
    assert replace(ambiguity) == ambiguity == eval(repr(ambiguity))
    model = SatisficingClassifier(ambiguity=ambiguity).fit(features, Y)
    zeros = feature_weights(X.tolist(), [0.0] * 4)
    assert model.ambiguity_.feature_weight == pytest.approx(zeros, rel=1e-12)
    assert model.ambiguity_.noise_distance == 0.0


@pytest.mark.parametrize("sigma", [SIGMA, NAMED, {}])
def test_a_distance_before_the_data(sigma):
    with pytest.raises(ValueError, match=r"not known yet\. Take the ambiguity_ of a fitted model"):
        _ = Wasserstein.from_noise(sigma).noise_distance


def test_weights_before_the_data():
    ambiguity = Wasserstein.from_noise(SIGMA)
    with pytest.raises(ValueError, match="Take the ambiguity_ of a fitted model"):
        ambiguity.dual_norms(np.ones((1, 4)))
    with pytest.raises(ValueError, match="not both"):
        replace(ambiguity, feature_weight=(1.0, 1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"made by Wasserstein\.from_noise; got 3"):
        Wasserstein(noise=3)
