"""The baselines: losses, gradients, Adam, and what each does to its data."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments.baselines import (
    NEURAL,
    AdamClassifier,
    GaussianNoiseClassifier,
    LabelSmoothingClassifier,
    MixupClassifier,
    PurifyClassifier,
    TrimmedClassifier,
    lightgbm,
    xgboost,
)
from experiments.baselines import losses as fast
from experiments.baselines.augmented import adversarial
from experiments.baselines.linear import Adam
from tests.reference import baselines as slow

# Loss of the library, loss of the reference, whether targets may be mixed.
LOSSES = {
    "cross-entropy": (fast.cross_entropy, slow.cross_entropy, True),
    "GCE": (
        fast.generalised_cross_entropy(0.7),
        lambda u, t: slow.generalised_cross_entropy(u, t, 0.7),
        False,
    ),
    "SCE": (
        fast.symmetric_cross_entropy(0.1, 1.0),
        lambda u, t: slow.symmetric_cross_entropy(u, t, 0.1, 1.0),
        True,
    ),
    "printed SCE": (
        fast.printed_symmetric_cross_entropy(0.1, 1.0),
        lambda u, t: slow.printed_symmetric_cross_entropy(u, t, 0.1, 1.0),
        True,
    ),
}


def scores_and_targets(n_classes, mixed, seed=0):
    rng = np.random.default_rng(seed)
    targets = np.eye(n_classes)[rng.integers(n_classes, size=20)]
    if mixed:
        targets[10:] = rng.dirichlet(np.ones(n_classes), size=10)
    return 3.0 * rng.normal(size=(20, n_classes)), targets


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_the_definitions(name, n_classes):
    loss, literal, mixed = LOSSES[name]
    scores, targets = scores_and_targets(n_classes, mixed)
    expected = [literal(u, t) for u, t in zip(scores.tolist(), targets.tolist(), strict=True)]
    np.testing.assert_allclose(loss(scores, targets)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_losses(name, n_classes):
    loss, _, mixed = LOSSES[name]
    scores, targets = scores_and_targets(n_classes, mixed, seed=1)
    _, gradients = loss(scores, targets)
    for u, t, gradient in zip(scores, targets, gradients, strict=True):
        numeric = approx_fprime(u, lambda v, t=t: loss(v[None], t[None])[0][0], 1e-7)
        np.testing.assert_allclose(gradient, numeric, atol=2e-6)


def test_losses_stand_large_scores():
    scores, targets = np.array([[800.0, -800.0], [-800.0, 800.0]]), np.eye(2)[[0, 0]]
    for loss, _, _ in LOSSES.values():
        values, gradients = loss(scores, targets)
        assert np.isfinite(values).all()
        assert np.isfinite(gradients).all()


def test_printed_sce_is_label_smoothing_in_disguise():
    scores, targets = scores_and_targets(4, mixed=False)
    values, _ = fast.printed_symmetric_cross_entropy(0.1, 1.0)(scores, targets)
    smoothed = (0.1 * targets + 1.0 / 4) / 1.1
    np.testing.assert_allclose(values, 1.1 * fast.cross_entropy(scores, smoothed)[0], rtol=1e-12)


def test_adam_is_that_of_its_authors():
    point = np.array([[2.0]])
    adam = Adam(point, 0.05, 0.01)
    for _ in range(50):
        adam.step(np.cos(point) + point**3)
    expected = slow.adam(2.0, lambda x: np.cos(x) + x**3, 50, 0.05, 0.01)
    assert point[0, 0] == pytest.approx(expected, rel=1e-12)


def test_adam_reaches_the_minimum():
    """Full batches and a long run: the minimum of the mean cross-entropy plus half the decay."""
    X, y = make_classification(80, 4, flip_y=0.2, random_state=0)
    model = AdamClassifier(epochs=4000, weight_decay=0.05, batch_size=80).fit(X, y)
    design = np.column_stack([X, np.ones(80)])
    targets = np.eye(2)[y]

    def objective(flat):
        weights = flat.reshape(5, 2)
        return fast.cross_entropy(design @ weights, targets)[0].mean() + 0.025 * (weights**2).sum()

    best = minimize(objective, np.zeros(10), tol=1e-12).x.reshape(5, 2)
    np.testing.assert_allclose(model.coef_[0], best[:4, 1] - best[:4, 0], atol=1e-4)
    np.testing.assert_allclose(model.intercept_[0], best[4, 1] - best[4, 0], atol=1e-4)


# One that trains once and one that trains twice; all others change one step of the first, with the
# same `fit`, and the tests below look at that step.
@parametrize_with_checks([AdamClassifier(epochs=20), PurifyClassifier(epochs=20)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(300, 6, n_informative=4, flip_y=0.15, random_state=3)
    return X, y


def same(one, other):
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(
        one.intercept_, other.intercept_
    )


def test_settings_that_do_nothing_give_the_plain_model(data):
    plain = AdamClassifier(random_state=5).fit(*data)
    for model in (
        TrimmedClassifier(1.0, random_state=5),
        LabelSmoothingClassifier(0.0, random_state=5),
    ):
        np.testing.assert_allclose(model.fit(*data).coef_, plain.coef_, rtol=1e-12)


@pytest.mark.parametrize("name", NEURAL)
def test_a_seed_decides_everything(name, data):
    model = NEURAL[name](7)
    assert same(clone(model).fit(*data), clone(model).fit(*data))
    assert not same(clone(model).fit(*data), NEURAL[name](8).fit(*data))


def test_trimming_leaves_out_the_largest_losses():
    rng = np.random.default_rng(0)
    X, losses, slopes = rng.normal(size=(20, 3)), rng.random(20), rng.normal(size=(20, 2))
    kept = np.argsort(losses)[:18]
    expected = sum(np.outer(X[i], slopes[i]) for i in kept) / 18
    np.testing.assert_allclose(TrimmedClassifier(0.9)._gradient(X, losses, slopes), expected)


def test_purifying_removes_the_samples_that_fit_worst(data):
    X, y = data
    rng = np.random.default_rng(1)
    wrong = rng.random(300) < 0.08
    noisy = np.where(wrong, 1 - y, y)
    model = PurifyClassifier(0.1, random_state=1)
    seen = []
    train = AdamClassifier._trained

    def spied(self, X, targets, rng):
        seen.append((X, targets))
        return train(self, X, targets, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdamClassifier, "_trained", spied)
        model.fit(X, noisy)
    (first, labels), (second, _) = seen
    assert (len(first), len(second)) == (300, 270)
    weights = train(model, first, labels, np.random.default_rng(1))
    losses = fast.cross_entropy(first @ weights, labels)[0]
    removed = ~(first[:, None] == second[None]).all(axis=2).any(axis=1)
    assert losses[removed].min() >= losses[~removed].max()


def test_purifying_keeps_every_class():
    X = np.array([[0.0]] * 19 + [[0.1]])
    y = np.array([0] * 19 + [1])
    assert PurifyClassifier(0.1, random_state=0).fit(X, y).classes_.tolist() == [0, 1]


def test_mixup_mixes_samples_and_labels_alike():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(8, 2)), np.ones(8)])
    targets = np.eye(2)[rng.integers(2, size=8)]
    samples, labels = MixupClassifier()._batch(X, targets, None, np.random.default_rng(4))
    rng = np.random.default_rng(4)
    share, partner = rng.beta(1.0, 1.0), rng.permutation(8)
    for i in range(8):
        np.testing.assert_allclose(samples[i], share * X[i] + (1 - share) * X[partner[i]])
        np.testing.assert_allclose(
            labels[i], share * targets[i] + (1 - share) * targets[partner[i]]
        )
    np.testing.assert_allclose(samples[:, -1], 1.0)


def test_pgd_finds_the_worst_neighbour_of_two_classes():
    """For two classes it is known: every feature moves to the end that lowers the margin."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(10, 4)), np.ones(10)])
    weights, y = rng.normal(size=(5, 2)), rng.integers(2, size=10)
    moved = adversarial(X, np.eye(2)[y], weights, 0.3, 5)
    direction = np.sign(weights[:-1, 1] - weights[:-1, 0])
    np.testing.assert_allclose(
        moved[:, :-1] - X[:, :-1], np.where(y == 1, -0.3, 0.3)[:, None] * direction, atol=1e-12
    )
    np.testing.assert_array_equal(moved[:, -1], 1.0)


def test_pgd_never_lowers_the_loss_of_several_classes():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(50, 4)), np.ones(50)])
    weights, targets = rng.normal(size=(5, 4)), np.eye(4)[rng.integers(4, size=50)]
    moved = adversarial(X, targets, weights, 0.2, 5)
    before = fast.cross_entropy(X @ weights, targets)[0]
    assert (fast.cross_entropy(moved @ weights, targets)[0] >= before).all()
    assert np.abs(moved - X).max() <= 0.2 + 1e-15


def test_gaussian_noise_moves_features_only():
    X = np.ones((4000, 3))
    noisy, _ = GaussianNoiseClassifier(0.5)._batch(X, None, None, np.random.default_rng(0))
    assert noisy[:, :-1].std() == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(noisy[:, -1], 1.0)


@pytest.mark.parametrize("name", ["GCE", "SCE", "Trimmed", "Purify"])
def test_robust_losses_give_less_weight_to_wrong_labels(name):
    """Far away samples with wrong labels turn the plain model more than the robust one."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = np.column_stack([2.0 * y - 1.0 + 0.5 * rng.normal(size=400), rng.normal(size=400)])
    noisy = y.copy()
    noisy[:32] = 1 - y[:32]
    X[:32, 0] *= 6.0
    plain = AdamClassifier(random_state=0).fit(X, noisy).score(X[32:], y[32:])
    assert NEURAL[name](0).fit(X, noisy).score(X[32:], y[32:]) > plain


@pytest.mark.parametrize("make", [xgboost, lightgbm])
def test_boosted_trees_come_from_their_packages(make, data):
    pytest.importorskip(make.__name__)
    X, y = data
    model = make(2**32 - 1).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.7
    again = make(2**32 - 1).fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize("make", [xgboost, lightgbm])
def test_missing_packages_are_named(make, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, make.__name__, None)
    with pytest.raises(ImportError, match=r"fragility\[experiments\]"):
        make(0)
