"""Hinges, l1 penalties, label costs and balls at the edge, and what was decided about each."""

from math import inf, log

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

from fragility import KL, DROClassifier, ERMClassifier, SatisficingClassifier, Wasserstein
from fragility.exceptions import (
    InfeasibleTargetError,
    NothingLearnedWarning,
    SeparableDataWarning,
    TrivialRadiusWarning,
    TrivialTargetWarning,
    UndefinedTargetError,
    ZeroFragilityWarning,
)
from fragility.losses import Hinge

from .reference import linear, programs
from .reference.programs import cp

NORMS = {"w1": 1, "w2": 2, "winf": inf}
EACH = [KL(), *map(Wasserstein, NORMS.values()), Wasserstein(2, label_cost=1.0)]
each_ambiguity = pytest.mark.parametrize("ambiguity", EACH, ids=["kl", *NORMS, "labels"])
each_norm = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS.keys())
each_class_count = pytest.mark.parametrize("n_classes", [2, 3])


def noisy(n=80, d=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, n_classes)) + 1.2 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y


def separable(n=40, n_classes=2, seed=0):
    """Classes around corners of a triangle, wide apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    corners = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])[:n_classes]
    return corners[y] + 0.5 * rng.uniform(-1, 1, size=(n, 2)), y


def imbalanced(n=300, rare=12, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < rare).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.7 * y
    return X, y


class TestCollapse:
    """A hinge may do no better than to bet on the common class, and does so without a word."""

    @each_norm
    def test_a_multiple_of_the_lowest_loss(self, norm):
        X, y = imbalanced()
        X[y == 1] += 1.2  # something can be learned, but less than the target gives up
        with pytest.warns(TrivialTargetWarning, match="or class_weight if a rare class is to"):
            model = SatisficingClassifier("hinge", Wasserstein(norm), target_ratio=1.3).fit(X, y)
        assert model.erm_loss_ < 0.999 * model.trivial_loss_
        assert model.trivial_loss_ == pytest.approx(2 * 12 / 300, rel=1e-9)
        assert not model.coef_.any()
        assert model.fragility_ == 0.0
        assert (model.predict(X) == 0).all()

    @each_ambiguity
    def test_nothing_learned_and_what_helps(self, ambiguity):
        X, y = imbalanced()
        with pytest.warns(NothingLearnedWarning, match="class_weight"):
            model = SatisficingClassifier("hinge", ambiguity, slack=0.1).fit(X, y)
        assert not model.coef_.any()
        if not ambiguity.moves_labels:  # the bet on a label is fragile where labels move
            assert model.fragility_ == (inf if ambiguity == KL() else 0.0)
        balanced = SatisficingClassifier(
            "hinge", ambiguity, class_weight="balanced", slack=0.1
        ).fit(X, y)
        assert balanced.trivial_loss_ == pytest.approx(1.0, rel=1e-9)
        assert balanced.coef_.any()
        assert 0.0 < balanced.fragility_ < inf
        assert balanced.predict(X)[y == 1].mean() > 0.5

    @pytest.mark.outside
    def test_one_positive(self):
        X, y = noisy()
        y = (np.arange(len(y)) == 7).astype(int)
        X[7] = X.mean(axis=0)  # in the middle: no hinge is worth it
        for ambiguity in EACH[:4]:
            with pytest.warns(NothingLearnedWarning):
                model = SatisficingClassifier("hinge", ambiguity, slack=0.1).fit(X, y)
            assert model.trivial_loss_ == pytest.approx(2 / 80, rel=1e-9)
        X[7] = 4.0  # apart: separable
        model = SatisficingClassifier("hinge", slack=0.1).fit(X, y)
        reference = programs.wasserstein(X, y, 2, "hinge", model.target_)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(6))
def test_trivial_loss_of_a_hinge(n_classes, seed):
    """min(1, 2 (1 - π_max)), by weights as by counts."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, [0.3, 1.0, 5.0][seed % 3])) + 1e-3
    shares /= shares.sum()
    X, y = rng.normal(size=(60, 2)), np.arange(60) % n_classes
    weights = (shares / np.bincount(y))[y]
    model = SatisficingClassifier("hinge", target=2.5, fit_intercept=True)
    with pytest.warns(TrivialTargetWarning):
        model.fit(X, y, sample_weight=weights)
    assert model.trivial_loss_ == pytest.approx(min(1.0, 2.0 * (1.0 - shares.max())), rel=1e-8)
    with pytest.warns(TrivialTargetWarning):
        model.set_params(fit_intercept=False).fit(X, y, sample_weight=weights)
    assert model.trivial_loss_ == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
@pytest.mark.parametrize("labels", [[0, 0, 1], [0, 1, 1, 2, 1]])
@each_ambiguity
def test_nothing_to_learn(loss, labels, ambiguity):
    X = np.repeat(noisy(n=20)[0], len(labels), axis=0)
    y = np.tile(labels, 20)
    with pytest.warns(NothingLearnedWarning, match="Nothing can be learned"):
        model = SatisficingClassifier(loss, ambiguity, slack=0.1).fit(X, y)
    assert not model.coef_.any()
    if not ambiguity.moves_labels:
        assert model.fragility_ == (inf if ambiguity == KL() else 0.0)


class TestHardMargin:
    def margin(self, X, y, n_classes, norm):
        """Least largest dual norm of the models that are ahead by one everywhere."""
        model = programs.linear_model(X, y, n_classes, "hinge")
        k = cp.Variable()
        reach = programs.within_reach(model, k, norm)
        return programs.solved(k, [*reach, model.losses <= 0], model).value

    @pytest.mark.outside
    @each_norm
    @each_class_count
    def test_target_of_zero(self, norm, n_classes):
        X, y = separable(n_classes=n_classes)
        model = SatisficingClassifier("hinge", Wasserstein(norm), target=0.0).fit(X, y)
        assert model.erm_loss_ == 0.0
        assert model.fragility_ == pytest.approx(self.margin(X, y, n_classes, norm), rel=1e-6)
        losses = linear.losses(model.coef_, model.intercept_, X, y, "hinge")
        assert losses.mean() <= 2e-9
        assert model.score(X, y) == 1.0

    def test_support_vectors(self):
        X, y = separable(seed=3)
        model = SatisficingClassifier("hinge", target=0.0).fit(X, y)
        machine = SVC(kernel="linear", C=1e10, tol=1e-10).fit(X, y)
        assert model.coef_ == pytest.approx(machine.coef_, rel=1e-5)
        assert model.intercept_ == pytest.approx(machine.intercept_, rel=1e-5)
        margins = np.where(y == 1, 1, -1) * model.decision_function(X) / model.fragility_
        assert margins.min() == pytest.approx(1.0 / model.fragility_, rel=1e-6)

    def test_other_losses_never_reach_zero(self):
        X, y = separable(n_classes=3)
        with pytest.raises(InfeasibleTargetError):
            SatisficingClassifier("max_logistic", target=0.0).fit(X, y)
        with pytest.raises(InfeasibleTargetError, match=r"target=0 cannot be reached"):
            SatisficingClassifier("hinge", target=0.0).fit(*noisy())


class TestSeparable:
    @pytest.mark.outside
    @each_class_count
    @pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
    @pytest.mark.parametrize("penalty", [None, "l1", "l2"])
    def test_kl_is_the_shortest_model_of_no_fragility(self, n_classes, loss, penalty):
        X, y = separable(n_classes=n_classes)
        alpha = 1e-3 if penalty else 0.0
        parameters = {"slack": 0.3, "penalty": penalty, "alpha": 1e-3}
        with pytest.warns(ZeroFragilityWarning, match="Of the many such models the one of least"):
            model = SatisficingClassifier(loss, "kl", **parameters).fit(X, y)
        assert model.fragility_ == 0.0
        judged = linear.Judged(
            model.coef_,
            model.intercept_,
            X,
            y,
            loss,
            alpha=alpha,
            penalty_kind=penalty or "l2",
        )
        assert judged.losses.max() + judged.penalty <= model.target_ * (1 + 1e-6)
        reference = programs.least_norm_meeting(
            X, y, n_classes, loss, model.target_, alpha=alpha, penalty_kind=penalty or "l2"
        )
        assert (model.coef_**2).sum() == pytest.approx(reference.value, rel=1e-4)

    @pytest.mark.outside
    @each_norm
    @each_class_count
    @pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
    def test_wasserstein(self, norm, n_classes, loss):
        X, y = separable(n_classes=n_classes)
        model = SatisficingClassifier(loss, Wasserstein(norm), slack=0.1).fit(X, y)
        assert model.erm_loss_ == 0.0
        reference = programs.wasserstein(X, y, n_classes, loss, model.target_, norm=norm)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)
        with pytest.raises(UndefinedTargetError, match="times a lowest loss of 0"):
            SatisficingClassifier(loss, Wasserstein(norm), target_ratio=1.1).fit(X, y)

    @pytest.mark.outside
    @each_class_count
    def test_a_hinge_attains_its_minimum_and_is_short(self, n_classes):
        X, y = separable(n_classes=n_classes)
        model = ERMClassifier("hinge", penalty=None).fit(X, y)
        assert model.loss_ <= 1e-6
        reference = programs.least_norm_meeting(X, y, n_classes, "hinge", 0.0)
        assert (model.coef_**2).sum() == pytest.approx(reference.value, rel=1e-4)

    def test_a_max_logistic_does_not(self):
        X, y = separable(n_classes=3)
        with pytest.warns(SeparableDataWarning, match='penalty="l2"'):
            model = ERMClassifier("max_logistic", penalty=None).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert 0.0 < model.loss_ <= 1e-6

    @pytest.mark.outside
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy", "max_logistic"])
    @each_class_count
    def test_nothing_to_fear_in_a_ball_of_weights(self, loss, n_classes):
        X, y = separable(n_classes=n_classes)
        attained = loss == "hinge"
        with pytest.warns(ZeroFragilityWarning if attained else SeparableDataWarning):
            model = DROClassifier(loss, "kl").fit(X, y)
        assert model.worst_loss_ <= 2e-5
        assert model.score(X, y) == 1.0
        penalised = DROClassifier(loss, "kl", penalty="l2").fit(X, y)
        reference = programs.dro(X, y, n_classes, loss, 0.1, alpha=1e-3)
        assert penalised.worst_loss_ == pytest.approx(reference.value, rel=1e-5)


class TestHingeWithoutPenalty:
    """Its minimisers may be a polytope: the shortest of them is the model."""

    def shortest(self, X, y, n_classes, weights=None):
        least = programs.erm(X, y, n_classes, "hinge", weights=weights).value
        model = programs.linear_model(X, y, n_classes, "hinge", weights=weights)
        size = cp.sum_squares(model.coef)
        found = programs.solved(size, [model.mean_loss <= least * (1 + 1e-9)], model)
        return least, found

    def dummies(self, n=80, n_classes=2):
        """Few distinct rows, of both labels: many models are equally good."""
        rng = np.random.default_rng(2)
        X = rng.integers(0, 2, size=(n, 4)).astype(float)
        noise = rng.random(n) < 0.2
        y = np.where(noise, rng.integers(0, n_classes, n), X[:, :2].sum(axis=1) % n_classes)
        return np.c_[X, X[:, 0]], y.astype(int)

    @pytest.mark.outside
    @each_class_count
    def test_least_norm(self, n_classes):
        X, y = self.dummies(n_classes=n_classes)
        least, reference = self.shortest(X, y, n_classes)
        model = ERMClassifier("hinge", penalty=None).fit(X, y)
        assert model.loss_ == pytest.approx(least, rel=1e-7)
        assert (model.coef_**2).sum() == pytest.approx(reference.value, rel=1e-5)
        assert model.coef_[:, 0] == pytest.approx(model.coef_[:, -1], abs=1e-5)

    @each_class_count
    @pytest.mark.parametrize("penalty", [None, "l1", "l2"])
    def test_weights_are_repetitions(self, n_classes, penalty):
        X, y = self.dummies(n_classes=n_classes)
        X[:, 0] += np.linspace(0, 1, len(X))
        counts = np.random.default_rng(1).integers(1, 4, len(y))
        model = ERMClassifier("hinge", penalty=penalty, alpha=1e-2)
        weighted = model.fit(X, y, sample_weight=counts).decision_function(X)
        repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        assert weighted == pytest.approx(repeated.decision_function(X), abs=1e-7)


class TestLargeL1:
    @pytest.mark.outside
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy", "max_logistic"])
    @each_class_count
    def test_nothing_is_worth_its_price(self, loss, n_classes):
        X, y = noisy(n_classes=n_classes)
        penalty = {"penalty": "l1", "alpha": 10.0}
        erm = ERMClassifier(loss, **penalty).fit(X, y)
        trivial = programs.erm(np.zeros((len(y), 1)), y, n_classes, loss).value
        assert erm.loss_ == pytest.approx(trivial, rel=1e-8)
        assert np.abs(erm.coef_).max() <= 1e-6
        for ambiguity in EACH[:4]:
            with pytest.warns(NothingLearnedWarning, match="a smaller alpha"):
                model = SatisficingClassifier(loss, ambiguity, slack=0.1, **penalty).fit(X, y)
            assert not model.coef_.any()
        with pytest.warns(TrivialRadiusWarning):
            robust = DROClassifier(loss, **penalty).fit(X, y)
        assert not robust.coef_.any()
        assert robust.fragility_ == 0.0

    @pytest.mark.outside
    def test_some_features_are_dropped(self):
        X, y = noisy(n=200, d=8)
        model = ERMClassifier(penalty="l1", alpha=0.05).fit(X, y)
        reference = programs.erm(X, y, 2, "cross_entropy", alpha=0.05, penalty_kind="l1")
        assert model.loss_ == pytest.approx(reference.value, rel=1e-8)
        dropped = np.abs(reference.coef[0]) < 1e-6
        assert 0 < dropped.sum() < 8
        assert model.coef_[0][dropped] == pytest.approx(0.0, abs=1e-6)
        assert model.coef_[0][~dropped] == pytest.approx(reference.coef[0][~dropped], abs=1e-5)


class TestColumns:
    @pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
    @each_ambiguity
    @each_class_count
    def test_twice_and_constant(self, loss, ambiguity, n_classes):
        X, y = noisy(n_classes=n_classes)
        more = np.c_[X, np.full(len(X), 7.0), X[:, 0]]
        model = SatisficingClassifier(loss, ambiguity, slack=0.2).fit(more, y)
        size = np.abs(model.coef_).max()
        assert model.coef_[:, 0] == pytest.approx(model.coef_[:, -1], abs=1e-4 * size)
        assert model.coef_[:, 3] == pytest.approx(0.0, abs=1e-5 * size)
        if ambiguity == KL():  # a second copy makes a move dearer, and a model less fragile
            plain = SatisficingClassifier(loss, ambiguity, slack=0.2).fit(X, y)
            assert model.fragility_ == pytest.approx(plain.fragility_, rel=1e-5)

    @pytest.mark.outside
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
    @each_ambiguity
    def test_l1_of_more_features_than_samples(self, loss, ambiguity):
        X, y = noisy(n=14, d=30, seed=4)
        # Every sample can meet a lax target, and weights are then no danger.
        slack, alpha = (0.02, 0.15) if ambiguity == KL() else (0.2, 0.02)
        parameters = {"penalty": "l1", "alpha": alpha, "slack": slack}
        if ambiguity == KL() and loss == "hinge":  # and a hinge is the same for all of them
            with pytest.warns(ZeroFragilityWarning):
                model = SatisficingClassifier(loss, ambiguity, **parameters).fit(X, y)
            shortest = programs.least_norm_meeting(
                X, y, 2, loss, model.target_, alpha=alpha, penalty_kind="l1"
            )
            assert (model.coef_**2).sum() == pytest.approx(shortest.value, rel=1e-4)
            return
        model = SatisficingClassifier(loss, ambiguity, **parameters).fit(X, y)
        judged = linear.Judged(
            model.coef_,
            model.intercept_,
            X,
            y,
            loss,
            norm=getattr(ambiguity, "norm", None),
            label_cost=getattr(ambiguity, "label_cost", inf),
            alpha=alpha,
            penalty_kind="l1",
        )
        options = {"alpha": alpha, "penalty_kind": "l1"}
        if ambiguity == KL():
            reference = programs.kl(X, y, 2, loss, model.target_, **options)
        else:
            costs = {"norm": ambiguity.norm, "label_cost": ambiguity.label_cost}
            reference = programs.wasserstein(X, y, 2, loss, model.target_, **costs, **options)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-4)
        assert judged.supremum(model.fragility_) <= model.target_ + 1e-8
        thin = SatisficingClassifier(loss, ambiguity, **parameters).fit(sparse.csr_array(X), y)
        assert thin.fragility_ == pytest.approx(model.fragility_, rel=1e-5)


class TestBalls:
    @each_class_count
    def test_a_radius_that_nothing_survives(self, n_classes):
        X, y = noisy(n_classes=n_classes)
        with pytest.warns(TrivialRadiusWarning, match="radius=1000 is so large"):
            model = DROClassifier("hinge", radius=1e3).fit(X, y)
        assert not model.coef_.any()
        shares = np.bincount(y) / len(y)
        assert model.worst_loss_ == pytest.approx(min(1.0, 2 * (1 - shares.max())), rel=1e-8)

    @pytest.mark.slow
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
    def test_a_tiny_radius_is_the_lowest_loss(self, loss):
        X, y = noisy()
        for ambiguity in EACH:
            model = DROClassifier(loss, ambiguity, radius=1e-9).fit(X, y)
            lowest = ERMClassifier(loss, penalty=None).fit(X, y).loss_
            # Within a ball of weights a loss grows as the root of the radius.
            assert lowest <= model.worst_loss_ * (1 + 1e-9)
            assert model.worst_loss_ == pytest.approx(lowest, abs=1e-4)

    @pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, "far"])
    @pytest.mark.parametrize("classifier", [SatisficingClassifier, DROClassifier])
    def test_senseless(self, classifier, radius):
        with pytest.raises(
            ValueError, match=r"radius must be (positive|a positive|a number|finite)"
        ):
            classifier(radius=radius).fit(*noisy())

    def test_infinite(self):
        with pytest.raises(ValueError, match="radius must be finite; got inf"):
            DROClassifier(radius=inf).fit(*noisy())
        X, y = noisy()
        plain = SatisficingClassifier("hinge", slack=0.1).fit(X, y)
        whole = SatisficingClassifier("hinge", radius=inf, slack=0.1).fit(X, y)
        assert whole.coef_.tolist() == plain.coef_.tolist()


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "n_classes", "what"),
        [
            ({"loss": "hinge"}, 2, r"Hinge\(\)"),
            ({"loss": Hinge(), "ambiguity": "kl"}, 3, r"Hinge\(\)"),
            ({"loss": "max_logistic"}, 3, r"MaxLogistic\(\)"),
            ({"penalty": "l1"}, 2, "penalty='l1'"),
            ({"ambiguity": Wasserstein(label_cost=1.0)}, 2, "a finite label_cost"),
            ({"radius": 0.1}, 2, "a ball"),
            ({"loss": "hinge", "target": 5.0}, 2, r"Hinge\(\)"),  # though nothing need be solved
        ],
    )
    def test_newton_needs_derivatives(self, given, n_classes, what):
        message = f"needs a smooth program, and {what} has corners. Give solver='auto'"
        with pytest.raises(NotImplementedError, match=message):
            SatisficingClassifier(**given, solver="newton").fit(*noisy(n_classes=n_classes))

    def test_max_logistic_of_two_classes_is_smooth(self):
        X, y = noisy()
        one = SatisficingClassifier("max_logistic", solver="newton", slack=0.1).fit(X, y)
        other = SatisficingClassifier(solver="newton", slack=0.1).fit(X, y)
        assert one.solver_ == "newton"
        assert one.fragility_ == pytest.approx(other.fragility_, rel=1e-8)

    @pytest.mark.parametrize("loss", ["cross_entropy", "smoothed_hinge"])
    @each_ambiguity
    @each_class_count
    def test_both_solve_what_is_smooth(self, loss, ambiguity, n_classes):
        X, y = noisy(n_classes=n_classes)
        own = SatisficingClassifier(loss, ambiguity, slack=0.1).fit(X, y)
        other = SatisficingClassifier(loss, ambiguity, solver="interior_point", slack=0.1).fit(X, y)
        assert other.solver_ == "interior_point"
        assert other.fragility_ == pytest.approx(own.fragility_, rel=1e-6)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"penalty": "l3"}, "penalty must be one of 'l1', 'l2', None; got 'l3'"),
            ({"alpha": -1.0, "penalty": "l1"}, "alpha must be zero or more"),
            ({"solver": "newton"}, "solver must be one of 'auto', 'interior_point', 'conic'"),
            ({"loss": "squared"}, "loss must be one of 'cross_entropy', 'hinge', 'max_logistic'"),
            (
                {"ambiguity": Wasserstein(feature_weight=[1.0, 2.0])},
                "feature_weight has 2 entries; X has 3 features",
            ),
        ],
    )
    def test_of_robust_models(self, given, message):
        with pytest.raises(ValueError, match=message):
            DROClassifier(**given).fit(*noisy())


class TestLabelCosts:
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
    @each_class_count
    def test_a_huge_one_is_none(self, loss, n_classes):
        X, y = noisy(n_classes=n_classes)
        plain = SatisficingClassifier(loss, slack=0.1).fit(X, y)
        dear = SatisficingClassifier(loss, Wasserstein(label_cost=1e6), slack=0.1).fit(X, y)
        assert dear.fragility_ == pytest.approx(plain.fragility_, rel=1e-6)

    @pytest.mark.outside
    @pytest.mark.parametrize("cost", [1e-3, 1e-2])
    @pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
    def test_a_tiny_one_is_priced_by_labels_alone(self, loss, cost):
        X, y = noisy()
        model = SatisficingClassifier(loss, Wasserstein(label_cost=cost), slack=0.3).fit(X, y)
        reference = programs.wasserstein(X, y, 2, loss, model.target_, label_cost=cost)
        assert model.fragility_ == pytest.approx(reference.k, rel=1e-4)

    @pytest.mark.parametrize("n_classes", [2, 3, 4])
    def test_targets_that_every_label_meets(self, n_classes):
        X, y = noisy(n_classes=n_classes, n=120)
        for loss, zero in (("hinge", 1.0), ("cross_entropy", log(n_classes))):
            ambiguity = Wasserstein(label_cost=0.5)
            with pytest.warns(TrivialTargetWarning):
                model = SatisficingClassifier(loss, ambiguity, target=zero * (1 + 1e-9)).fit(X, y)
            assert not model.coef_.any()
            assert model.fragility_ == 0.0


class TestSparsity:
    @pytest.mark.outside
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize(
        "model",
        [
            ERMClassifier(penalty="l1", alpha=0.05),
            ERMClassifier("hinge", penalty="l1", alpha=0.05),
            SatisficingClassifier("hinge", penalty="l1", alpha=0.05, slack=0.1),
            SatisficingClassifier(ambiguity="kl", penalty="l1", alpha=0.05, slack=0.1),
            DROClassifier(penalty="l1", alpha=0.05, radius=0.02),
        ],
        ids=repr,
    )
    def test_zeros_are_zeros(self, model, n_classes):
        """Exactly where those of the literal program are next to nothing."""
        X, y = noisy(n_classes=n_classes)
        wide = np.c_[X, np.random.default_rng(3).normal(size=(len(X), 6))]
        fitted = clone(model).fit(wide, y)
        given = (wide, y, n_classes, model.loss)
        options = {"alpha": 0.05, "penalty_kind": "l1"}
        if isinstance(model, ERMClassifier):
            reference = programs.erm(*given, **options)
        elif isinstance(model, DROClassifier):
            reference = programs.dro(*given, model.radius, norm=2, **options)
        elif model.ambiguity == "kl":
            reference = programs.kl(*given, fitted.target_, **options)
        else:
            reference = programs.wasserstein(*given, fitted.target_, **options)
        expected = np.abs(reference.coef) <= 1e-5 * np.abs(reference.coef).max()
        assert expected.any()
        assert ((fitted.coef_ == 0.0) == expected).all()

    def test_a_ball_that_meets_the_target(self):
        with pytest.warns(ZeroFragilityWarning, match=r"ball of radius 1e-06 meets the target"):
            model = SatisficingClassifier(radius=1e-6, slack=0.1).fit(*noisy())
        assert model.fragility_ == 0.0

    @pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
    def test_a_target_that_needs_no_model_needs_no_search(self, loss):
        X, y = noisy(n_classes=3)
        found = ERMClassifier(loss, penalty=None).fit(X, y)
        with pytest.warns(ZeroFragilityWarning):
            model = SatisficingClassifier(loss, "kl", target=1.1).fit(X, y)
        assert not model.coef_.any()
        assert model.fragility_ == 0.0
        assert model.n_iter_ <= found.n_iter_ + 1
