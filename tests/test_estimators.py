"""The estimators among scikit-learn's: its own checks, and what people do with estimators."""

import pickle
from math import inf

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fragility import (
    KL,
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    Wasserstein,
    certify,
    fragility_path,
    neg_fragility_index_scorer,
)
from fragility.losses import CrossEntropy, Hinge, MaxLogistic, SmoothedHinge


@pytest.mark.filterwarnings("ignore::UserWarning")
# Each class once, and each kind of solver: other programs of a class take the same way in and out.
@parametrize_with_checks(
    [
        SatisficingClassifier(),
        SatisficingClassifier("smoothed_hinge", "kl", penalty="l2", slack=0.1),
        DROClassifier("hinge", "kl"),
        ERMClassifier(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.array(["no", "yes"])[(X @ [1.0, -1.0, 0.5] + rng.logistic(size=120) > 0).astype(int)]
    return X, y


def test_clone_keeps_the_ambiguity(data):
    model = SatisficingClassifier(
        SmoothedHinge(0.5), Wasserstein(1, feature_weight=[1, 2, inf]), slack=0.2
    )
    copy = clone(model.fit(*data))
    assert copy.ambiguity == model.ambiguity
    assert copy.loss == model.loss
    assert not hasattr(copy, "coef_")
    assert copy.fit(*data).coef_.tolist() == model.coef_.tolist()


def test_clone_of_a_robust_model(data):
    model = DROClassifier(
        Hinge(), Wasserstein(2, 0.5, [1, 2, inf]), radius=0.05, penalty="l1", alpha=1e-2
    )
    copy = clone(model.fit(*data))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    assert copy.fit(*data).coef_.tolist() == model.coef_.tolist()


@pytest.mark.parametrize(
    "model",
    [
        SatisficingClassifier(ambiguity="kl", slack=0.1),
        SatisficingClassifier(ambiguity=Wasserstein(norm=inf), slack=0.1),
        SatisficingClassifier("hinge", Wasserstein(label_cost=1.0), radius=0.1, slack=0.1),
        DROClassifier("hinge", "kl", penalty="l1"),
        DROClassifier(MaxLogistic(), Wasserstein(label_cost=1.0)),
    ],
    ids=repr,
)
def test_pickle(data, model):
    X, y = data
    model = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert again.certificate_.violation_bound(0.1) == model.certificate_.violation_bound(0.1)


def test_grid_search_over_objects(data):
    X, y = data
    grid = {
        "satisficingclassifier__loss": [CrossEntropy(), SmoothedHinge(0.5)],
        "satisficingclassifier__ambiguity": [KL(), Wasserstein(norm=1)],
        "satisficingclassifier__slack": [0.1, 0.3],
    }
    model = make_pipeline(StandardScaler(), SatisficingClassifier(slack=0.1))
    search = GridSearchCV(model, grid, cv=3, scoring=neg_fragility_index_scorer).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores.round(12))) == 8
    assert search.best_estimator_[-1].fragility_ > 0.0


def test_grid_search_of_robust_models(data):
    X, y = data
    grid = {
        "loss": ["hinge", CrossEntropy()],
        "ambiguity": [KL(), Wasserstein(label_cost=2.0)],
        "penalty": ["l1", "l2"],
        "radius": [0.01, 0.1],
    }
    search = GridSearchCV(DROClassifier(alpha=1e-2), grid, cv=2, scoring="neg_log_loss").fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores.round(12))) == 16
    assert search.best_estimator_.worst_loss_ > 0.0


@pytest.mark.parametrize(
    ("model", "choice"),
    [
        (SatisficingClassifier(slack=0.1), {"slack": [0.2]}),
        (SatisficingClassifier("hinge", slack=0.1), {"slack": [0.2]}),
        (DROClassifier(), {"radius": [0.05]}),
        (ERMClassifier("hinge"), {"alpha": [0.01]}),
    ],
    ids=repr,
)
def test_weights_are_routed_through_a_search(data, model, choice):
    X, y = data
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(sample_weight=True)
        asking.set_score_request(sample_weight=False)
        search = GridSearchCV(asking, choice, cv=2).fit(X, y, sample_weight=weights)
    (name, (value,)) = next(iter(choice.items()))
    chosen = clone(model).set_params(**{name: value})
    expected = clone(chosen).fit(X, y, sample_weight=weights)
    assert search.best_estimator_.coef_.tolist() == expected.coef_.tolist()
    assert chosen.fit(X, y).coef_.tolist() != expected.coef_.tolist()


@pytest.mark.parametrize("classifier", [SatisficingClassifier, DROClassifier])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(data, library, classifier):
    frames = pytest.importorskip(library)
    X, y = data
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate("abc")})
    labels = frames.Series(y) if library == "pandas" else frames.Series("y", y.tolist())
    model = classifier().fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.coef_ == pytest.approx(classifier().fit(X, y).coef_)
    assert set(model.predict(frame)) == {"no", "yes"}
    path = fragility_path(frame, labels, slacks=[0.2])
    assert path.feature_names == ["a", "b", "c"]
    again = certify(model, frame, labels)
    assert again.fragility == pytest.approx(model.fragility_, rel=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "a", "b"]])


@pytest.mark.parametrize("classifier", [SatisficingClassifier, DROClassifier])
def test_set_output_of_the_steps_before(data, classifier):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abc"))
    model = make_pipeline(StandardScaler(), classifier()).set_output(transform="pandas")
    model.fit(frame, y)
    assert model[-1].feature_names_in_.tolist() == ["a", "b", "c"]


def test_probabilities(data):
    X, y = data
    model = SatisficingClassifier(slack=0.1).fit(X, y)
    scores = X @ model.coef_[0] + model.intercept_[0]
    assert model.decision_function(X) == pytest.approx(scores)
    assert model.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    assert model.predict_log_proba(X) == pytest.approx(np.log(model.predict_proba(X)))
    several = SatisficingClassifier(slack=0.1).fit(X, np.arange(len(y)) % 3 + (X[:, 0] > 0) * 3)
    logits = X @ several.coef_.T + several.intercept_
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert several.predict_proba(X) == pytest.approx(shares)
    assert several.predict(X).tolist() == several.classes_[logits.argmax(axis=1)].tolist()


def test_warm_start_gets_there_again_in_fewer_steps(data):
    X, y = data
    for ambiguity in (KL(), Wasserstein()):
        model = SatisficingClassifier(ambiguity=ambiguity, warm_start=True, slack=0.1).fit(X, y)
        cold, k = model.n_iter_, model.fragility_
        model.fit(X, y)
        assert model.n_iter_ <= cold
        assert model.fragility_ == pytest.approx(k, rel=1e-6)
    with pytest.raises(ValueError, match="warm_start=True with coef_ of shape"):
        model.fit(X[:, :2], y)


@pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
def test_warm_start_of_other_solvers(data, loss):
    X, y = data
    for model in (
        DROClassifier(loss, "kl", warm_start=True),
        SatisficingClassifier(loss, Wasserstein(label_cost=1.0), warm_start=True, slack=0.1),
        SatisficingClassifier(loss, penalty="l1", warm_start=True, slack=0.1),
        ERMClassifier(loss, penalty="l1", warm_start=True),
    ):
        first = model.fit(X, y).decision_function(X)
        assert model.fit(X, y).decision_function(X) == pytest.approx(first, abs=1e-5)
        with pytest.raises(ValueError, match="warm_start=True with coef_ of shape"):
            model.fit(X[:, :2], y)


def test_verbose_says_what_was_found(data, capsys):
    SatisficingClassifier(verbose=1, slack=0.1).fit(*data)
    said = capsys.readouterr().out
    assert "lowest loss" in said
    assert "fragility" in said
    ERMClassifier(verbose=1).fit(*data)
    assert "loss" in capsys.readouterr().out
    DROClassifier(verbose=1).fit(*data)
    assert "worst loss" in capsys.readouterr().out


@pytest.mark.outside
def test_conic_is_a_cross_check(data):
    for ambiguity in (KL(), Wasserstein(1), Wasserstein(2), Wasserstein(inf)):
        own = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(*data)
        other = SatisficingClassifier(ambiguity=ambiguity, solver="conic", slack=0.1).fit(*data)
        assert (own.solver_, other.solver_) == ("newton", "conic")
        assert other.fragility_ == pytest.approx(own.fragility_, rel=1e-5)
        assert other.coef_ == pytest.approx(own.coef_, abs=1e-3)


def test_conic_refuses_a_loss_of_the_users(data):
    class Own(CrossEntropy):
        pass

    with pytest.raises(NotImplementedError, match="solver='newton', which takes any smooth loss"):
        SatisficingClassifier(Own(), solver="conic", slack=0.1).fit(*data)
    assert SatisficingClassifier(Own(), slack=0.1).fit(*data).fragility_ > 0.0
