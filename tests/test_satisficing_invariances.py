"""What must not change a satisficing model, and what happens at the ends of the target's range."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from fragility import KL, SatisficingClassifier, Wasserstein
from fragility.exceptions import (
    InfeasibleTargetError,
    NothingLearnedWarning,
    TrivialTargetWarning,
    UndefinedTargetError,
    ZeroFragilityWarning,
)

from .reference import linear, programs

LOSSES = ["cross_entropy", "smoothed_hinge"]
NORMS = {"w1": 1, "w2": 2, "winf": math.inf}
AMBIGUITIES = {"kl": KL(), **{name: Wasserstein(norm=norm) for name, norm in NORMS.items()}}

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_norm = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS.keys())
each_ambiguity = pytest.mark.parametrize(
    "ambiguity", AMBIGUITIES.values(), ids=list(AMBIGUITIES.keys())
)
each_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])


def problem(n_classes, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    logits = (X - X.mean(axis=0)) @ rng.normal(size=(d, n_classes))
    y = (logits + 1.2 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y


def separable(n_classes, n=40, seed=0):
    """Classes around corners of a triangle, wide apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    corners = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])[:n_classes]
    return corners[y] + 0.5 * rng.uniform(-1, 1, size=(n, 2)), y


def fitted(loss, ambiguity, X, y, weights=None, **parameters):
    parameters = {"tol": 1e-9} | parameters
    if not parameters.keys() & {"target", "target_ratio"}:
        parameters = {"slack": 0.2} | parameters
    return SatisficingClassifier(loss, ambiguity, **parameters).fit(X, y, sample_weight=weights)


def same(one, other, X, X_other=None, rel=1e-6, scores=1e-4):
    """Equal fragility and equal scores; scores move as the root of an error in k."""
    assert one.fragility_ == pytest.approx(other.fragility_, rel=rel)
    X_other = X if X_other is None else X_other
    assert one.decision_function(X) == pytest.approx(other.decision_function(X_other), abs=scores)


@each_loss
@each_ambiguity
@each_number_of_classes
class TestNothingChanges:
    def test_repeated_rows_are_weights(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        counts = np.random.default_rng(1).integers(1, 4, y.size)
        weighted = fitted(loss, ambiguity, X, y, counts)
        repeated = fitted(loss, ambiguity, np.repeat(X, counts, axis=0), np.repeat(y, counts))
        same(weighted, repeated, X, rel=1e-9, scores=1e-7)

    def test_weights_count_relative_to_each_other(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        weights = np.random.default_rng(1).integers(0, 4, y.size).astype(float)
        kept = weights > 0
        model = fitted(loss, ambiguity, X, y, weights)
        same(model, fitted(loss, ambiguity, X[kept], y[kept], 1e3 * weights[kept]), X)

    def test_columns_shifted(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        moved = X + np.array([1e4, -1e4, 0.0])
        same(fitted(loss, ambiguity, X, y), fitted(loss, ambiguity, moved, y), X, moved)

    def test_names_of_labels(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        names = np.array(["a", "b", "c"])
        named, plain = fitted(loss, ambiguity, X, names[y]), fitted(loss, ambiguity, X, y)
        assert named.coef_.tolist() == plain.coef_.tolist()
        assert named.predict(X).tolist() == names[plain.predict(X)].tolist()

    def test_order_of_labels(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        forward = fitted(loss, ambiguity, X, y)
        backward = fitted(loss, ambiguity, X, n_classes - 1 - y)
        assert forward.fragility_ == pytest.approx(backward.fragility_, rel=1e-6)
        turned = -backward.coef_ if n_classes == 2 else backward.coef_[::-1]
        assert forward.coef_ == pytest.approx(turned, abs=1e-4 * np.abs(turned).max())

    def test_order_of_rows(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        order = np.random.default_rng(2).permutation(y.size)
        same(fitted(loss, ambiguity, X, y), fitted(loss, ambiguity, X[order], y[order]), X)

    def test_class_weight(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        factors = np.arange(1.0, 1 + n_classes)
        by_class = fitted(loss, ambiguity, X, y, class_weight=dict(enumerate(factors)))
        same(by_class, fitted(loss, ambiguity, X, y, factors[y]), X, rel=1e-9, scores=1e-7)
        balanced = fitted(loss, ambiguity, X, y, class_weight="balanced")
        inverse = 1 / np.bincount(y)
        same(balanced, fitted(loss, ambiguity, X, y, inverse[y]), X)


UNITS = {"small": [1e-6, 1.0, 1e-3], "mixed": [1e-6, 1e6, 1.0]}


@each_loss
@each_number_of_classes
@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS.keys())
class TestUnits:
    @each_norm
    def test_prices_follow_the_units(self, loss, n_classes, units, norm):
        X, y = problem(n_classes)
        plain = fitted(loss, Wasserstein(norm=norm, feature_weight=np.ones(3)), X, y)
        prices = 1 / np.asarray(units)
        changed = fitted(loss, Wasserstein(norm=norm, feature_weight=prices), X * units, y)
        same(plain, changed, X, X * units)

    def test_kl_knows_no_units(self, loss, n_classes, units):
        X, y = problem(n_classes)
        same(fitted(loss, "kl", X, y), fitted(loss, "kl", X * units, y), X, X * units)

    @pytest.mark.outside
    @each_norm
    def test_prices_of_one_in_other_units(self, loss, n_classes, units, norm):
        """Then k is that of the program in these units, however far apart they are."""
        X, y = problem(n_classes)
        model = fitted(loss, Wasserstein(norm=norm), X * units, y)
        # The same program with the columns brought to one scale, for the sake of the reference.
        reference = programs.wasserstein(
            X, y, n_classes, loss, model.target_, norm=norm, feature_weight=units
        )
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)


@pytest.mark.outside
@each_loss
@each_norm
def test_two_classes_as_two_columns(loss, norm):
    """One vector w is the difference of two columns that are each other's negatives."""
    X, y = problem(2)
    model = fitted(loss, Wasserstein(norm=norm), X, y)
    two = programs.wasserstein(X, y, 2, loss, model.target_, norm=norm, n_rows=2)
    assert model.fragility_ == pytest.approx(two.k, rel=1e-5)
    difference = two.coef[1] - two.coef[0]
    assert model.coef_[0] == pytest.approx(difference, abs=1e-3 * np.abs(difference).max())


@pytest.mark.outside
@each_loss
def test_two_classes_as_two_columns_kl(loss):
    X, y = problem(2)
    model = fitted(loss, "kl", X, y)
    two = programs.kl(X, y, 2, loss, model.target_, n_rows=2)
    assert model.fragility_ == pytest.approx(two.k, rel=1e-5)
    assert model.coef_[0] == pytest.approx(two.coef[1] - two.coef[0], abs=1e-3)


@each_loss
@each_ambiguity
@each_number_of_classes
def test_a_laxer_target_is_less_fragile(loss, ambiguity, n_classes):
    X, y = problem(n_classes)
    # KL reaches zero where every sample can meet the target: three classes do sooner than two.
    slacks = (0.02, 0.1, 0.2, 0.4)
    fragilities = [fitted(loss, ambiguity, X, y, slack=t).fragility_ for t in slacks]
    assert np.all(np.diff(fragilities) < 0)


@each_loss
@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=["kl", "w2"])
@each_number_of_classes
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_sparse_is_dense(loss, ambiguity, n_classes, penalty):
    X, y = problem(n_classes)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = fitted(loss, ambiguity, X, y, penalty=penalty)
    same(fitted(loss, ambiguity, sparse.csr_array(X), y, penalty=penalty), dense, X)


class TestLeastNorm:
    @each_loss
    @each_ambiguity
    @each_number_of_classes
    def test_a_column_twice(self, loss, ambiguity, n_classes):
        X, y = problem(n_classes)
        model = fitted(loss, ambiguity, np.c_[X, X[:, 0]], y)
        size = np.abs(model.coef_).max()
        assert model.coef_[:, 0] == pytest.approx(model.coef_[:, -1], abs=1e-4 * size)

    @each_loss
    @each_ambiguity
    def test_a_constant_column(self, loss, ambiguity):
        X, y = problem(2)
        model = fitted(loss, ambiguity, np.c_[X, np.full(y.size, 7.0)], y)
        assert model.coef_[0, -1] == pytest.approx(0.0, abs=1e-6 * np.abs(model.coef_).max())
        assert model.fragility_ == pytest.approx(fitted(loss, ambiguity, X, y).fragility_, rel=1e-6)

    @pytest.mark.outside
    @each_loss
    @each_number_of_classes
    @pytest.mark.parametrize("alpha", [0.0, 1e-3])
    def test_kl_of_separable_data(self, loss, n_classes, alpha):
        """No sample is above the target: of the many models that reach this, the smallest."""
        X, y = separable(n_classes)
        penalty = {"penalty": "l2", "alpha": alpha} if alpha else {}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = fitted(loss, "kl", X, y, slack=0.3, **penalty)
        assert ZeroFragilityWarning in {warning.category for warning in said}
        assert model.fragility_ == 0.0
        values = linear.losses(model.coef_, model.intercept_, X, y, loss)
        assert values.max() + alpha * (model.coef_**2).sum() <= model.target_ + 1e-8
        reference = programs.least_norm_meeting(X, y, n_classes, loss, model.target_, alpha=alpha)
        assert (model.coef_**2).sum() == pytest.approx(reference.value, rel=1e-4)
        assert model.coef_ == pytest.approx(reference.coef, abs=1e-3 * np.abs(reference.coef).max())

    @pytest.mark.outside
    @each_loss
    @each_norm
    @each_number_of_classes
    def test_wasserstein_of_separable_data(self, loss, norm, n_classes):
        X, y = separable(n_classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the data are separable
            model = fitted(loss, Wasserstein(norm=norm), X, y)
        assert model.erm_loss_ == pytest.approx(0.0, abs=1e-9)
        reference = programs.wasserstein(X, y, n_classes, loss, model.target_, norm=norm)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)


class TestEndsOfTheTarget:
    @pytest.mark.outside
    @each_loss
    @each_norm
    @each_number_of_classes
    def test_large_target_is_trivial(self, loss, norm, n_classes):
        X, y = problem(n_classes)
        with pytest.warns(TrivialTargetWarning):
            model = fitted(loss, Wasserstein(norm=norm), X, y, target=1.5)
        assert not model.coef_.any()
        assert model.fragility_ == 0.0
        trivial = programs.erm(np.zeros((y.size, 1)), y, n_classes, loss)
        losses = linear.losses(model.coef_, model.intercept_, X, y, loss)
        assert losses.mean() == pytest.approx(trivial.value, rel=1e-6)
        assert model.trivial_loss_ == pytest.approx(trivial.value, rel=1e-7)

    @pytest.mark.outside
    @each_loss
    @each_number_of_classes
    def test_a_fixed_feature_that_is_enough_is_trivial(self, loss, n_classes):
        X, y = problem(n_classes)
        fixed = programs.erm(X[:, :1], y, n_classes, loss)
        ambiguity = Wasserstein(feature_weight=[math.inf, 1.0, 1.0])
        with pytest.warns(TrivialTargetWarning):
            model = fitted(loss, ambiguity, X, y, target=1.001 * fixed.value)
        assert not model.coef_[:, 1:].any()
        assert model.fragility_ == 0.0
        losses = linear.losses(model.coef_, model.intercept_, X, y, loss)
        assert losses.mean() <= model.target_ + 1e-8

    @each_number_of_classes
    def test_a_target_met_by_every_sample_without_features_kl(self, n_classes):
        X, y = problem(n_classes)
        with pytest.warns((ZeroFragilityWarning, TrivialTargetWarning)):
            model = fitted("cross_entropy", "kl", X, y, target=1.01 * math.log(n_classes))
        assert model.fragility_ == 0.0
        assert model.coef_ == pytest.approx(0.0, abs=1e-4)

    @pytest.mark.outside
    @each_loss
    @pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=["kl", "w2"])
    def test_below_the_least_loss(self, loss, ambiguity):
        X, y = problem(2)
        least = programs.erm(X, y, 2, loss).value
        with pytest.raises(InfeasibleTargetError) as error:
            fitted(loss, ambiguity, X, y, target=0.5 * least)
        for number in (least, 0.5 * least):
            assert f"{number:.9f}"[:4] in str(error.value)
        with pytest.raises(ValueError, match="target_ratio"):
            fitted(loss, ambiguity, X, y, target_ratio=1.0)

    @pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=["kl", "w2"])
    def test_a_multiple_of_nothing(self, ambiguity):
        X, y = separable(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(UndefinedTargetError):
                fitted("cross_entropy", ambiguity, X, y, target_ratio=1.1)

    @each_loss
    @each_ambiguity
    def test_nothing_to_learn(self, loss, ambiguity):
        # Not as many of one class as of the other: equal losses would all meet the target.
        X, y = np.zeros((20, 2)), (np.arange(20) % 3 == 0).astype(int)
        with pytest.warns(NothingLearnedWarning):
            model = fitted(loss, ambiguity, X, y)
        assert not model.coef_.any()
        assert model.fragility_ == (math.inf if ambiguity == KL() else 0.0)

    @pytest.mark.outside
    @each_loss
    @each_ambiguity
    def test_fewer_samples_than_features(self, loss, ambiguity):
        X, y = problem(2, n=12, d=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # separable, and nothing fragile for KL
            model = fitted(loss, ambiguity, X, y)
        losses = linear.losses(model.coef_, model.intercept_, X, y, loss)
        assert losses.mean() <= model.target_ + 1e-8
        if ambiguity == KL():
            assert model.fragility_ == 0.0
            return
        reference = programs.wasserstein(X, y, 2, loss, model.target_, norm=ambiguity.norm)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)

    @pytest.mark.outside
    @each_loss
    @each_ambiguity
    def test_one_positive(self, loss, ambiguity):
        X, _ = problem(2)
        y = (np.arange(len(X)) == 3).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(loss, ambiguity, X, y, penalty="l2", alpha=1e-3)
        losses = linear.losses(model.coef_, model.intercept_, X, y, loss)
        assert losses.mean() + 1e-3 * (model.coef_**2).sum() <= model.target_ + 1e-8
        if ambiguity != KL():
            reference = programs.wasserstein(
                X, y, 2, loss, model.target_, norm=ambiguity.norm, alpha=1e-3
            )
        elif model.fragility_ > 0:
            reference = programs.kl(X, y, 2, loss, model.target_, alpha=1e-3)
        else:
            return
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)
