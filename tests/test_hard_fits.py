"""Fits that once went wrong, held against cvxpy or against what must be true."""

import warnings
from math import inf

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import KL, ERMClassifier, SatisficingClassifier, Wasserstein
from fragility.exceptions import (
    TrivialTargetWarning,
    UndefinedTargetError,
    ZeroFragilityWarning,
)
from fragility.losses import CrossEntropy, SmoothedHinge

from .reference import programs


def noisy(seed, n, d, n_classes, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + noise * rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.mark.outside
@pytest.mark.parametrize("slack", [0.9, 1 - 1e-3, 1 - 1e-5, 1 - 1e-8, 1 - 1e-12])
@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("loss", ["cross_entropy", "smoothed_hinge"])
def test_nearly_trivial(slack, norm, loss):
    X, y = noisy(0, 80, 3, 2)
    model = SatisficingClassifier(loss, Wasserstein(norm), slack=slack).fit(X, y)
    assert 0.0 <= model.fragility_ < inf
    assert model.certificate_.headroom >= -1e-9
    if slack <= 1 - 1e-5:
        reference = programs.wasserstein(X, y, 2, loss, model.target_, norm=norm)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("scale", [1e3, 1e4, 1e6])
def test_hinge_of_large_features(scale):
    """At zero all margins are on a corner of the hinge."""
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(300, 4))
    y = (X[:, 0] / scale + rng.logistic(size=300) > 0).astype(int)
    assert ERMClassifier("smoothed_hinge").fit(X, y).loss_ < 0.4235
    assert (
        SatisficingClassifier("smoothed_hinge", penalty="l2", slack=0.1).fit(X, y).fragility_ > 0.0
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::fragility.exceptions.TightTargetWarning")
def test_hinge_of_one_heavy_class(seed):
    X, y = noisy(seed, 200, 3, 4)
    weight = {0: 1e7, 1: 1, 2: 1, 3: 1}
    model = SatisficingClassifier("smoothed_hinge", class_weight=weight, slack=0.1).fit(X, y)
    assert model.erm_loss_ <= model.target_ <= model.trivial_loss_


@pytest.mark.outside
@pytest.mark.parametrize(
    ("seed", "n_classes", "norm", "slack"),
    [(4, 3, 2, 0.1), (25, 3, 1, 0.5), (12, 2, inf, 0.1)],
)
def test_narrow_hinge(seed, n_classes, norm, slack):
    X, y = noisy(seed, 60, 3, n_classes, 1.2)
    model = SatisficingClassifier(SmoothedHinge(0.01), Wasserstein(norm), slack=slack).fit(X, y)
    conic = SatisficingClassifier(
        SmoothedHinge(0.01), Wasserstein(norm), slack=slack, solver="conic"
    ).fit(X, y)
    assert model.fragility_ == pytest.approx(conic.fragility_, rel=1e-5)


@pytest.mark.parametrize("nearness", [1e-4, 1e-5, 1e-6, 1e-8])
def test_nearly_the_same_column(nearness):
    """What two columns tell apart is not lost because they are nearly the same."""
    rng = np.random.default_rng(1)
    Z, noise = np.random.default_rng(0).normal(size=(60, 3)), rng.normal(size=60)
    X = np.c_[Z, Z.sum(axis=1) + nearness * noise]
    y = (Z[:, 0] + noise + rng.logistic(size=60) > 0).astype(int)
    same = np.c_[Z, noise]  # the same columns, further apart
    expected = SatisficingClassifier(ambiguity="kl", slack=0.1).fit(same, y)
    found = SatisficingClassifier(ambiguity="kl", slack=0.1).fit(X, y)
    assert found.certificate_.headroom > 0.0
    if nearness >= 1e-6:  # nearer ones are the same to the digits that there are
        assert found.fragility_ == pytest.approx(expected.fragility_, rel=1e-4)
    erm = ERMClassifier(penalty=None).fit(X, y)
    assert erm.loss_ == pytest.approx(
        CrossEntropy().value(erm.decision_function(X), y).mean(), rel=1e-6
    )


@pytest.fixture(scope="module")
def tumours():
    """All but separable: models that tell the classes apart are a hundred times as long."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.outside
@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        ("cross_entropy", 1),
        ("cross_entropy", inf),
        ("smoothed_hinge", 2),
        (SmoothedHinge(0.1), 1),
        (SmoothedHinge(0.1), 2),
    ],
    ids=str,
)
def test_little_slack_on_separable_data(tumours, loss, norm):
    model = SatisficingClassifier(loss, Wasserstein(norm), slack=0.01).fit(*tumours)
    conic = SatisficingClassifier(loss, Wasserstein(norm), slack=0.01, solver="conic").fit(*tumours)
    assert model.fragility_ <= conic.fragility_ * (1 + 1e-5)
    assert model.certificate_.headroom >= -1e-12
    assert conic.certificate_.headroom >= -1e-12


@pytest.mark.outside
@pytest.mark.parametrize("target", [1e-6, 1e-4, 1e-3])
def test_nearly_hard_margin(tumours, target):
    X, y = tumours
    model = SatisficingClassifier("smoothed_hinge", target=target).fit(X, y)
    reference = programs.wasserstein(X, y, 2, "smoothed_hinge", target, norm=2)
    assert model.fragility_ == pytest.approx(reference.k, rel=1e-4)
    assert model.fragility_ <= reference.k * (1 + 1e-5)


@pytest.mark.outside
def test_beyond_the_corner_of_a_hinge():
    """After one step no sample of some classes bends the loss."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 12)).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.normal(size=200) > 1).astype(int)
    model = SatisficingClassifier(SmoothedHinge(0.1), slack=0.5).fit(X, y)
    conic = SatisficingClassifier(SmoothedHinge(0.1), slack=0.5, solver="conic").fit(X, y)
    assert model.fragility_ == pytest.approx(conic.fragility_, rel=1e-6)
    for seed in (4, 15):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 30))
        wide, labels = rng.normal(size=(n, n + 5)), np.arange(n) % 2
        dense = SatisficingClassifier("smoothed_hinge", slack=0.5).fit(wide, labels)
        thin = SatisficingClassifier("smoothed_hinge", slack=0.5).fit(
            sparse.csr_array(wide), labels
        )
        assert thin.fragility_ == pytest.approx(dense.fragility_, rel=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_wide_sparse_data_far_from_zero(offset):
    A, y = np.random.default_rng(0).normal(size=(20, 40)), np.arange(20) % 2
    near = SatisficingClassifier(slack=0.1).fit(A, y)
    far = SatisficingClassifier(slack=0.1).fit(sparse.csr_array(A + offset), y)
    assert far.fragility_ == pytest.approx(near.fragility_, rel=1e-6)


@pytest.mark.outside
def test_conic_on_separable_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    own = SatisficingClassifier(slack=0.01).fit(X, y)
    other = SatisficingClassifier(slack=0.01, solver="conic").fit(X, y)
    assert other.fragility_ == pytest.approx(own.fragility_, rel=1e-5)
    models = []
    for solver in ("newton", "conic"):
        with pytest.warns(ZeroFragilityWarning):
            models.append(SatisficingClassifier(ambiguity="kl", solver=solver, slack=0.1).fit(X, y))
    norms = [np.linalg.norm(model.coef_) for model in models]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)


@pytest.mark.outside
def test_a_class_that_a_dummy_gives_away():
    rng = np.random.default_rng(3)
    for n_classes in (2, 3, 4):
        X, y = noisy(n_classes, 60, 3, n_classes, 1.2)
        X = np.c_[X, (y == 0) & (rng.random(60) < 0.3)].astype(float)
        for norm in (1, 2, inf):
            model = SatisficingClassifier(ambiguity=Wasserstein(norm), slack=0.5).fit(X, y)
            reference = programs.wasserstein(
                X, y, n_classes, "cross_entropy", model.target_, norm=norm
            )
            assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)


def test_kl_target_that_no_feature_is_needed_for():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 20)), np.arange(160) % 4
    X[:, 0] += y
    with pytest.warns(UserWarning, match="Every single sample meets the target"):
        model = SatisficingClassifier(ambiguity="kl", target=1.05 * np.log(4)).fit(X, y)
    assert not model.coef_.any()
    assert model.n_iter_ < 100


class TestFixedFeaturesThatSeparate:
    ambiguity = Wasserstein(feature_weight=[inf, 1.0])

    def data(self):
        rng = np.random.default_rng(0)
        X = np.r_[rng.uniform(0, 1, (20, 2)), rng.uniform(2, 3, (20, 2))]
        return X, np.repeat([0, 1], 20)

    @pytest.mark.parametrize("loss", ["cross_entropy", "smoothed_hinge"])
    def test_there_is_nothing_to_give_up(self, loss):
        with pytest.raises(UndefinedTargetError, match="Features that cannot shift tell"):
            SatisficingClassifier(loss, self.ambiguity, slack=0.1).fit(*self.data())
        with pytest.warns(TrivialTargetWarning):
            model = SatisficingClassifier(loss, self.ambiguity, target=0.1).fit(*self.data())
        assert model.fragility_ == 0.0
        assert model.score(*self.data()) == 1.0


@pytest.mark.outside
def test_a_hinge_of_no_loss_is_the_hard_margin():
    X, y = TestFixedFeaturesThatSeparate().data()
    model = SatisficingClassifier("smoothed_hinge", target=0.0).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    cp = pytest.importorskip("cvxpy")
    w, b = cp.Variable(2), cp.Variable()
    margin = cp.Problem(cp.Minimize(cp.norm(w)), [cp.multiply(signs, X @ w + b) >= 1])
    assert model.fragility_ == pytest.approx(margin.solve(solver=cp.CLARABEL), rel=1e-3)


@pytest.mark.parametrize("shift", [1e3, 1e5])
def test_sparse_columns_far_from_zero(shift):
    Z, labels = noisy(0, 60, 3, 3)
    y = (labels == 0).astype(int)
    dense = SatisficingClassifier(slack=0.1).fit(Z, y)
    thin = SatisficingClassifier(slack=0.1).fit(sparse.csr_array(Z + shift), y)
    assert thin.fragility_ == pytest.approx(dense.fragility_, rel=1e-5)


@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=["kl", "w2"])
def test_no_warning_from_numpy(ambiguity):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for n_classes in (2, 3):
            X, y = noisy(1, 100, 3, n_classes)
            model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(1e3 * X, y)
            model.predict_proba(1e6 * X)


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_sparse_columns_that_never_change(penalty):
    """Filled columns are centred; of a constant one nothing is left but rounding."""
    X, y = noisy(1, 60, 3, 3)
    X = np.c_[X, np.full(60, 0.1), np.zeros(60), np.full(60, 1e6 / 3)]
    settings = {"penalty": penalty, "alpha": 0.1, "slack": 0.2}
    for ambiguity in (KL(), Wasserstein(), Wasserstein(inf)):
        dense = SatisficingClassifier(ambiguity=ambiguity, **settings).fit(X, y)
        thin = SatisficingClassifier(ambiguity=ambiguity, **settings).fit(sparse.csr_array(X), y)
        assert thin.erm_loss_ == pytest.approx(dense.erm_loss_, rel=1e-8)
        assert thin.fragility_ == pytest.approx(dense.fragility_, rel=1e-6)
