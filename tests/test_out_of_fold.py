"""The target that cross-validation finds: against literal loops, its ends, and what it says."""

from math import inf, log

import numpy as np
import pytest
from scipy import sparse

from fragility import (
    KL,
    ERMClassifier,
    SatisficingClassifier,
    Wasserstein,
    fragility_path,
)
from fragility.exceptions import (
    NothingLearnedWarning,
    TargetError,
    UndefinedTargetError,
    UntestedClassWarning,
)
from fragility.linear_model.base import TrainingData
from fragility.linear_model.out_of_fold import N_FOLDS, _folds, _in_order
from fragility.programs.rows import distinct_rows

from .reference import out_of_fold as reference
from .reference.out_of_fold import STRENGTHS

OUT_OF_FOLD = {"target": "out_of_fold"}


def samples(n=60, d=4, n_classes=2, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10.0, d) + 2.0
    scores = (X - 2.0) / np.geomspace(0.1, 10.0, d) @ rng.normal(size=(d, n_classes)) * 2.0
    return X, np.argmax(scores + noise * rng.gumbel(size=scores.shape), axis=1)


def folds_of(X, y, weights=None, seed=0):
    """Distinct samples, their weights and their folds."""
    classes, codes = np.unique(y, return_inverse=True)
    rows = _in_order(*distinct_rows(X, codes, weights))
    folds, _ = _folds(rows[1], TrainingData(*rows, classes), seed)
    return *rows, folds


@pytest.mark.parametrize("intercept", [True, "priced", False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_target_is_that_of_a_literal_loop(n_classes, intercept):
    X, y = samples(40, 3, n_classes)
    weights = np.random.default_rng(1).integers(1, 4, y.size).astype(float)
    model = SatisficingClassifier(**OUT_OF_FOLD, fit_intercept=intercept, random_state=3, tol=1e-4)
    model.fit(X, y, sample_weight=weights)
    origin = model.target_origin_
    losses = reference.log_losses(*folds_of(X, y, weights, 3), STRENGTHS, intercept)
    assert STRENGTHS[int(np.argmin(losses))] == origin.alpha
    assert origin.out_of_fold_loss == pytest.approx(min(losses), rel=1e-4)
    ends = model.erm_loss_, model.trivial_loss_
    assert model.target_ == pytest.approx(reference.target(min(losses), 0.0, *ends), rel=2e-4)
    assert model.target_ == origin.target
    assert model.certificate_.attained_loss == pytest.approx(model.target_, rel=1e-6)


def nearly_alike(n=100):
    """Two features whose tiny difference decides."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1)) + 1e-3 * rng.normal(size=(n, 2))
    return X, (X[:, 1] - X[:, 0] + 1e-3 * rng.normal(size=n) > 0.0).astype(int)


@pytest.mark.parametrize(
    ("data", "alpha", "end"),
    [
        (samples(80, 2, noise=0.0, seed=1), 1e-5, ""),  # a line separates the classes
        (nearly_alike(), 1e-8, ", the weakest tried"),
        (samples(60, 4, noise=100.0), 1.0, ", the strongest tried"),
    ],
)
def test_the_best_strength_may_be_far_away(data, alpha, end):
    origin = SatisficingClassifier(**OUT_OF_FOLD).fit(*data).target_origin_
    losses = reference.log_losses(*folds_of(*data), STRENGTHS, True)
    assert origin.alpha == alpha == STRENGTHS[int(np.argmin(losses))]
    assert origin.out_of_fold_loss == pytest.approx(min(losses), rel=1e-4)
    assert f"with alpha {alpha:g}{end} (" in str(origin)


def test_a_hinge_has_the_loss_of_a_support_vector_machine():
    X, y = samples()
    X -= X.mean(axis=0)
    model = SatisficingClassifier("hinge", **OUT_OF_FOLD, fit_intercept=False).fit(X, y)
    origin = model.target_origin_
    Z, codes, _, folds = folds_of(X, y)
    # liblinear does not converge at the two weakest.
    losses = reference.hinge_losses(Z, 2 * codes - 1, folds, STRENGTHS[:-2])
    assert origin.alpha == STRENGTHS[int(np.argmin(losses))]
    assert origin.out_of_fold_loss == pytest.approx(min(losses), rel=1e-3)


@pytest.mark.parametrize(
    ("loss", "ambiguity", "penalty"),
    [
        ("cross_entropy", KL(), "l2"),
        ("cross_entropy", Wasserstein(label_cost=2.0), None),
        ("max_logistic", Wasserstein(norm=1), "l1"),
        ("smoothed_hinge", Wasserstein(norm=inf), "l2"),
        ("hinge", KL(), None),
        ("hinge", Wasserstein(), "l1"),
    ],
)
def test_the_own_penalty_of_the_lowest_loss_is_added(loss, ambiguity, penalty):
    X, y = samples(40, 3)
    given = {"penalty": penalty, "alpha": 0.01, "tol": 1e-5}
    model = SatisficingClassifier(loss, ambiguity, **OUT_OF_FOLD, **given).fit(X, y)
    origin, lowest = model.target_origin_, ERMClassifier(loss, penalty, 0.01).fit(X, y).coef_
    own = {None: 0.0, "l1": 0.01 * abs(lowest).sum(), "l2": 0.01 * (lowest**2).sum()}[penalty]
    assert origin.penalty == pytest.approx(own, rel=1e-3)
    ends = model.erm_loss_, model.trivial_loss_
    wanted = reference.target(origin.out_of_fold_loss, origin.penalty, *ends)
    assert model.target_ == pytest.approx(wanted, rel=1e-12)
    assert (f" plus a penalty of {origin.penalty:.4g}" in str(origin)) == (penalty is not None)


@pytest.mark.parametrize(("classes", "noise", "clip"), [(2, 50.0, "trivial"), (2, 0.3, "")])
def test_the_target_stays_below_the_trivial_loss(classes, noise, clip):
    X, y = samples(80, 6, classes, noise=noise)
    model = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)
    assert model.target_origin_.clip == clip
    assert (model.target_ == 0.98 * model.trivial_loss_) == (clip == "trivial")
    assert (", lowered to 98% of the trivial one" in str(model.target_origin_)) == bool(clip)


def test_the_target_stays_above_the_lowest_loss():
    """Many samples of one feature: there is nothing to overfit."""
    X, y = samples(20_000, 1, noise=0.8)
    model = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)
    learnable = model.trivial_loss_ - model.erm_loss_
    assert model.target_origin_.clip == "lowest"
    assert model.target_ == pytest.approx(model.erm_loss_ + 1e-3 * learnable, rel=1e-12)
    assert ", raised to 0.1% of what can be learned above" in str(model.target_origin_)


def test_weights_repeat_samples_and_order_means_nothing():
    X, y = samples(50)
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 4, y.size)
    counts[:4] = 1
    order = rng.permutation(counts.sum())
    weighted = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y, sample_weight=counts)
    again = np.repeat(X, counts, axis=0)[order], np.repeat(y, counts)[order]
    repeated = SatisficingClassifier(**OUT_OF_FOLD).fit(*again)
    assert repeated.target_ == pytest.approx(weighted.target_, rel=1e-12)
    assert repeated.coef_ == pytest.approx(weighted.coef_, rel=1e-6)


def test_folds_are_drawn_by_random_state():
    X, y = samples()
    targets = [
        SatisficingClassifier(**OUT_OF_FOLD, random_state=seed).fit(X, y).target_
        for seed in (None, 0, 1)
    ]
    assert targets[0] == targets[1] != targets[2]
    assert SatisficingClassifier().fit(X, y).target_ == targets[0]  # it is the default


def test_folds_have_every_class_and_all_sizes_alike():
    y = np.repeat([0, 1, 2], [40, 13, 2])
    *_, folds = folds_of(np.arange(55.0)[:, None], y)
    assert sorted(np.bincount(folds)) == [11] * N_FOLDS
    _, codes, _, folds = folds_of(np.arange(55.0)[:, None], y)
    for fold in range(N_FOLDS):
        assert set(codes[folds != fold]) == {0, 1, 2}
    for c in range(3):
        assert np.ptp(np.bincount(folds[codes == c], minlength=N_FOLDS)) <= 1


def test_units_of_features_mean_nothing_to_it():
    X, y = samples()
    found, other = (
        SatisficingClassifier(ambiguity=KL(), **OUT_OF_FOLD).fit(X * units, y)
        for units in (1.0, np.array([1e-3, 1.0, 1e4, 7.0]))
    )
    assert other.target_ == pytest.approx(found.target_, rel=1e-9)
    assert other.target_origin_.alpha == found.target_origin_.alpha
    assert other.predict_proba(X * [1e-3, 1.0, 1e4, 7.0]) == pytest.approx(
        found.predict_proba(X), rel=1e-5
    )


def test_sparse_and_dense_agree():
    X, y = samples()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    dense, thin = (
        SatisficingClassifier(**OUT_OF_FOLD).fit(given, y) for given in (X, sparse.csr_array(X))
    )
    assert thin.target_ == pytest.approx(dense.target_, rel=1e-6)


def test_more_features_than_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 80))
    y = (X[:, 0] + rng.normal(size=30) > 0.0).astype(int)
    model = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)
    assert model.erm_loss_ == 0.0 < model.target_ <= 0.98 * model.trivial_loss_
    losses = reference.log_losses(*folds_of(X, y), [model.target_origin_.alpha], True)
    assert model.target_origin_.out_of_fold_loss == pytest.approx(losses[0], rel=2e-4)


def test_class_weights_count():
    X, y = samples()
    balanced = SatisficingClassifier(**OUT_OF_FOLD, class_weight="balanced").fit(X, y)
    weights = (y.size / (2.0 * np.bincount(y)))[y]
    by_hand = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y, sample_weight=weights)
    assert balanced.target_ == pytest.approx(by_hand.target_, rel=1e-12)


class TestFewSamples:
    def test_a_class_of_one_sample_is_not_tested(self):
        X, y = samples(40, 3, 3)
        y[y == 2] = 1
        y[0] = 2
        with pytest.warns(UntestedClassWarning, match=r"The classes 2 have one sample each"):
            model = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)
        _, codes, _, folds = folds_of(X, y)
        assert (codes[folds < 0] == [2]).all()
        assert np.isfinite(model.target_)

    def test_equal_samples_are_one(self):
        X, y = np.array([[0.0], [1.0], [2.0], [3.0]] * 5), np.array([0, 0, 1, 1] * 5)
        model = SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)
        assert 0.0 < model.target_ <= 0.98 * log(2.0)

    def test_nothing_to_test_on(self):
        with pytest.raises(UndefinedTargetError, match="two different samples of a class") as said:
            SatisficingClassifier(**OUT_OF_FOLD).fit([[0.0], [1.0]] * 3, ["a", "b"] * 3)
        assert "the classes 'a', 'b' have one each. Give slack" in str(said.value)


class TestFixedFeatures:
    def test_the_trivial_loss_is_theirs(self):
        X, y = samples(200, 3, noise=0.5)
        ambiguity = Wasserstein(feature_weight=(inf, 1.0, 1.0))
        model = SatisficingClassifier(ambiguity=ambiguity, **OUT_OF_FOLD).fit(X, y)
        fixed = ERMClassifier(penalty=None).fit(X[:, :1], y).loss_
        assert model.trivial_loss_ == pytest.approx(fixed, rel=1e-6)
        assert model.target_ <= 0.98 * fixed * (1.0 + 1e-9)

    def test_they_may_leave_nothing_to_give_up(self):
        X, y = samples(40, 2)
        X[:, 0] = 2.0 * y - 1.0
        ambiguity = Wasserstein(feature_weight=(inf, 1.0))
        with pytest.raises(UndefinedTargetError, match="nothing to give up"):
            SatisficingClassifier("hinge", ambiguity, **OUT_OF_FOLD).fit(X, y)


def test_nothing_can_be_learned():
    X, y = np.ones((20, 2)), np.arange(20) % 2
    X[0, 0] = X[1, 0] = 2.0
    with pytest.warns(NothingLearnedWarning):
        SatisficingClassifier(**OUT_OF_FOLD).fit(X, y)


def test_what_it_says(capsys):
    X, y = samples()
    model = SatisficingClassifier(**OUT_OF_FOLD, verbose=1).fit(X, y)
    origin = model.target_origin_
    said = (
        f"target {model.target_:.4g}: out-of-fold loss of L2 with alpha {origin.alpha:g} "
        f"({origin.out_of_fold_loss:.4g}); lowest {model.erm_loss_:.4g}, trivial "
        f"{model.trivial_loss_:.4g}"
    )
    assert f"[SatisficingClassifier] {said}\n" in capsys.readouterr().out
    assert model.set_params(target=None, slack=0.2).fit(X, y).target_origin_ is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "out of fold"}, r'target must be a number or "out_of_fold"; got \'out of fold'),
        ({"target": True}, "target must be a number; got True"),
        ({"slack": np.True_}, r"slack must be a number; got (np\.)?True"),
        ({**OUT_OF_FOLD, "target_ratio": 1.1}, "Give one of target, target_ratio and slack"),
    ],
)
def test_bad_targets(given, message):
    with pytest.raises(TargetError, match=message):
        SatisficingClassifier(**given).fit(*samples())


def test_a_target_is_kept_as_a_float():
    model = SatisficingClassifier(target=1).fit(*samples(n_classes=3))
    assert type(model.target_) is float


def test_bad_random_states():
    with pytest.raises(ValueError, match="random_state must be a whole number"):
        SatisficingClassifier(**OUT_OF_FOLD, random_state="x").fit(*samples())


def test_a_path_takes_numbers_only():
    with pytest.raises(ValueError, match="targets must be a sequence of one number or more"):
        fragility_path(*samples(), targets="out_of_fold")
