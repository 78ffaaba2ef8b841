"""More features than samples: the space that samples span, and fits in it."""

from math import inf

import numpy as np
import pytest
from scipy import sparse

from fragility import KL, ERMClassifier, SatisficingClassifier, Wasserstein
from fragility.programs.row_space import row_space


def wide(n=20, d=45, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random(size=(n, d)) < 0.3) + 0.0
    y = (X[:, :n_classes] + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("repeated", [False, True])
def test_scores_and_lengths_are_kept(as_given, fit_intercept, repeated):
    X, _ = wide()
    if repeated:  # a sample that others are made of
        X[4], X[7] = X[3], 0.5 * X[1] + 0.5 * X[2]
    space = row_space(as_given(X), fit_intercept)
    theta = np.random.default_rng(1).normal(size=(3, space.features.shape[1]))
    w = space.lift(theta)
    assert np.linalg.norm(w, axis=1) == pytest.approx(np.linalg.norm(theta, axis=1), rel=1e-6)
    assert (X - space.origin) @ w.T == pytest.approx(space.features @ theta.T, abs=1e-6)
    assert (space.origin == (X[-1] if fit_intercept else 0.0)).all()


@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=["kl", "w2"])
@pytest.mark.parametrize("penalty", [None, "l2"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::fragility.exceptions.ZeroFragilityWarning")
def test_the_same_model_as_in_all_features(
    ambiguity, penalty, fit_intercept, n_classes, monkeypatch
):
    X, y = wide(n_classes=n_classes)
    settings = {"penalty": penalty, "alpha": 1e-2, "fit_intercept": fit_intercept}
    settings["slack"] = 0.1
    short = SatisficingClassifier(ambiguity=ambiguity, **settings).fit(X, y)
    thin = SatisficingClassifier(ambiguity=ambiguity, **settings).fit(sparse.csr_array(X), y)
    monkeypatch.setattr(type(ambiguity), "is_euclidean", property(lambda self: False))
    long = SatisficingClassifier(ambiguity=ambiguity, **settings).fit(X, y)
    size = np.abs(long.coef_).max()
    for model in (short, thin):
        assert model.fragility_ == pytest.approx(long.fragility_, rel=1e-6, abs=1e-12)
        assert model.coef_ == pytest.approx(long.coef_, abs=1e-4 * size)
        assert model.decision_function(X) == pytest.approx(long.decision_function(X), abs=1e-3)


def test_weighted_features_are_not_reduced():
    X, y = wide()
    weighted = Wasserstein(feature_weight=np.r_[2.0, np.ones(44)])
    model = SatisficingClassifier(ambiguity=weighted, slack=0.1).fit(X, y)
    plain = SatisficingClassifier(slack=0.1).fit(X, y)
    assert model.fragility_ < plain.fragility_


@pytest.mark.filterwarnings("ignore::fragility.exceptions.ZeroFragilityWarning")
def test_many_sparse_features():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(sparse.random(200, 20_000, density=0.002, random_state=rng))
    y = (np.asarray(X[:, :5000].sum(axis=1)).ravel() > 5.0).astype(int)
    for ambiguity in ("kl", "wasserstein"):
        model = SatisficingClassifier(ambiguity=ambiguity, penalty="l2", slack=0.1).fit(X, y)
        assert model.coef_.shape == (1, 20_000)
        assert model.certificate_.headroom >= -1e-10
    assert ERMClassifier().fit(X, y).score(X, y) > 0.9


def test_too_many_parameters_are_refused():
    # A seed instead of a generator would shuffle all 260 million places.
    X = sparse.random(20_000, 13_000, density=1e-5, random_state=np.random.default_rng(0))
    y = np.arange(20_000) % 2
    with pytest.raises(NotImplementedError, match=r"13001 parameters.*up to 12000 are supported"):
        SatisficingClassifier(ambiguity=Wasserstein(norm=inf), slack=0.1).fit(
            sparse.csr_array(X), y
        )
