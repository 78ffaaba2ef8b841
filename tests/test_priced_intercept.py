"""A priced intercept: the coefficient of a constant feature, inside norm and penalty.

The literal programs know no such thing: they have a column of ones and no intercept.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fragility import (
    KL,
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    Wasserstein,
    certify,
    fragility_path,
    wasserstein_fragility_index,
)
from fragility.exceptions import TrivialTargetWarning

from .reference import linear, programs

inf = math.inf
ALPHA = 1e-2
WEIGHTS = (2.0, inf, 0.5)
AMBIGUITIES = {
    "kl": KL(),
    "w1": Wasserstein(1),
    "w2": Wasserstein(2),
    "winf": Wasserstein(inf),
    "labels": Wasserstein(2, label_cost=0.3),
    "weights": Wasserstein(1, feature_weight=WEIGHTS),
    "nothing else moves": Wasserstein(2, feature_weight=(inf, inf, inf)),
}
CELLS = [
    ("cross_entropy", "w2", None, 2),
    ("cross_entropy", "winf", "l1", 3),
    ("cross_entropy", "weights", "l2", 3),
    ("cross_entropy", "labels", "l2", 2),
    ("cross_entropy", "kl", "l2", 3),
    ("cross_entropy", "nothing else moves", None, 2),
    ("smoothed_hinge", "kl", "l1", 2),
    ("smoothed_hinge", "w1", "l2", 3),
    ("smoothed_hinge", "w2", None, 3),
    ("hinge", "w2", "l2", 3),
    ("hinge", "winf", None, 2),
    ("hinge", "labels", "l1", 3),
    ("hinge", "weights", None, 2),
    ("max_logistic", "w1", "l1", 2),
    ("max_logistic", "kl", "l2", 3),
    ("max_logistic", "w2", "l2", 2),
]


@cache
def problem(n_classes=2, n=40):
    """Overlapping classes of unequal sizes; columns that are not centred."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.5, -1.0, 1.0]
    logits = (X - X.mean(axis=0)) @ rng.normal(size=(3, n_classes)) + [
        1.0,
        *[0.0] * (n_classes - 1),
    ]
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def given(loss, ambiguity, penalty):
    """Parameters of a classifier."""
    shift = AMBIGUITIES[ambiguity]
    return {"loss": loss, "ambiguity": shift, "penalty": penalty, "alpha": ALPHA}


def literal(loss, penalty, n_classes):
    """Arguments of a literal program."""
    X, y = problem(n_classes)
    options = {"alpha": ALPHA if penalty else 0.0, "penalty_kind": penalty or "l2"}
    return (with_ones(X), y, n_classes, loss), {**options, "fit_intercept": False}


@pytest.mark.outside
class TestLiteralPrograms:
    @pytest.mark.parametrize(("loss", "ambiguity", "penalty", "n_classes"), CELLS)
    def test_least_fragility(self, loss, ambiguity, penalty, n_classes):
        data, options = literal(loss, penalty, n_classes)
        model = SatisficingClassifier(
            **given(loss, ambiguity, penalty), slack=0.2, fit_intercept="priced"
        ).fit(*problem(n_classes))
        lowest = programs.erm(*data, **options).value
        assert model.erm_loss_ == pytest.approx(lowest, rel=1e-6)
        shift = AMBIGUITIES[ambiguity]
        if getattr(shift, "feature_weight", None) is None:
            # Nothing is free of charge, not even a bet on the common class.
            nothing = np.zeros_like(model.coef_), np.zeros_like(model.intercept_)
            expected = linear.losses(*nothing, *problem(n_classes), loss).mean()
            assert model.trivial_loss_ == pytest.approx(expected, rel=1e-12)
        target = model.target_
        if ambiguity == "kl":
            k = programs.kl(*data, target, **options).k
        else:
            prices = None if shift.feature_weight is None else (*shift.feature_weight, 1.0)
            costs = {"norm": shift.norm, "feature_weight": prices}
            k = programs.wasserstein(
                *data, target, label_cost=shift.label_cost, **costs, **options
            ).k
            if ambiguity == "labels":  # the cell would prove nothing if no label moved
                assert k > 1.01 * programs.wasserstein(*data, target, **costs, **options).k
        assert model.fragility_ == pytest.approx(k, rel=1e-5)

    @pytest.mark.parametrize(
        ("loss", "ambiguity", "penalty", "n_classes"), [CELLS[i] for i in (0, 3, 4, 8, 10, 13)]
    )
    def test_least_worst_loss(self, loss, ambiguity, penalty, n_classes):
        data, options = literal(loss, penalty, n_classes)
        shift = AMBIGUITIES[ambiguity]
        costs = {} if ambiguity == "kl" else {"norm": shift.norm, "label_cost": shift.label_cost}
        model = DROClassifier(
            **given(loss, ambiguity, penalty), radius=0.01, fit_intercept="priced"
        ).fit(*problem(n_classes))
        expected = programs.dro(*data, 0.01, **costs, **options).value
        assert model.worst_loss_ == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize(
        ("offset", "size"), [(1e4, 1.0), ([1e4, 0.0, -1e4], 1.0), (2e6, [1e6, 3e6, 1e5])]
    )
    @pytest.mark.parametrize(
        ("loss", "norm", "penalty"),
        [("cross_entropy", 2, None), ("cross_entropy", 1, "l2"), ("hinge", inf, None)],
    )
    def test_columns_far_from_zero(self, offset, size, loss, norm, penalty):
        """The same program in the coordinates of standardised columns, where cvxpy is at ease."""
        rng = np.random.default_rng(1)
        Z = rng.normal(size=(40, 3))
        y = (Z @ [1.5, -1.0, 0.5] + rng.logistic(size=40) > 0.2).astype(int)
        X = Z * size + offset
        model = SatisficingClassifier(
            loss, Wasserstein(norm), penalty=penalty, alpha=ALPHA, slack=0.2, fit_intercept="priced"
        ).fit(X, y)
        cp, mean, spread = programs.cp, X.mean(axis=0), X.std(axis=0)
        standard = programs.linear_model((X - mean) / spread, y, 2, loss)
        unit = model.fragility_  # only a unit: k is found in multiples of it
        coef, k = cp.multiply(1 / spread, standard.coef[0]), cp.Variable()
        inside = cp.hstack([coef, standard.intercept[0, 0] - coef @ mean]) / unit
        size_of = ALPHA * unit**2 * cp.sum_squares(inside) if penalty else 0.0
        met = standard.mean_loss + size_of <= model.target_
        reach = cp.norm(inside, programs.DUAL[norm]) <= k
        assert programs.solved(k, [met, reach], standard).k == pytest.approx(1.0, abs=1e-5)


FITS = {
    "ERM": lambda X, y, **other: ERMClassifier("hinge", "l1", ALPHA, **other).fit(X, y),
    "ERM without a penalty": lambda X, y, **other: ERMClassifier(penalty=None, **other).fit(X, y),
    "satisficing": lambda X, y, **other: SatisficingClassifier(slack=0.1, **other).fit(X, y),
    "ball": lambda X, y, **other: SatisficingClassifier(slack=0.1, radius=0.05, **other).fit(X, y),
    "KL": lambda X, y, **other: SatisficingClassifier(ambiguity="kl", slack=0.1, **other).fit(X, y),
    "DRO": lambda X, y, **other: DROClassifier(penalty="l2", **other).fit(X, y),
    "CV": lambda X, y, **other: SatisficingClassifierCV(
        cv=3, slacks=(0.1, 0.4), alphas=(1e-3, 1e-1), **other
    ).fit(X, y),
}


@pytest.mark.parametrize(("as_given", "n_classes"), [(np.asarray, 2), (sparse.csr_array, 3)])
@pytest.mark.parametrize("fit", FITS)
def test_as_with_a_column_of_ones(fit, as_given, n_classes):
    X, y = problem(n_classes)
    model = FITS[fit](as_given(X), y, fit_intercept="priced")
    explicit = FITS[fit](as_given(with_ones(X)), y, fit_intercept=False)
    assert model.coef_.shape == (len(explicit.coef_), 3)
    assert model.intercept_.shape == (len(explicit.coef_),)
    assert model.intercept_.any()
    inside = np.column_stack([model.coef_, model.intercept_])
    np.testing.assert_allclose(inside, explicit.coef_, rtol=1e-6, atol=1e-9)
    for name in ("loss_", "fragility_", "target_", "worst_loss_", "scores_", "fragilities_"):
        if hasattr(explicit, name):
            np.testing.assert_allclose(getattr(model, name), getattr(explicit, name), rtol=1e-8)
    if hasattr(model, "certificate_"):
        one, other = model.certificate_, explicit.certificate_
        for found in (one, certify(model, as_given(X), y)):
            assert found.penalty == pytest.approx(other.penalty, rel=1e-6)
            assert found.fragility == pytest.approx(other.fragility, rel=1e-8)
            assert found.worst_loss(0.3) == pytest.approx(other.worst_loss(0.3), rel=1e-8)
            assert found.label_flip_bound(0.1) == pytest.approx(
                other.label_flip_bound(0.1), rel=1e-8
            )


def test_more_features_than_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 60)) + 1.0
    y = (X[:, 0] + rng.normal(size=20) > 1.0).astype(int)
    for as_given in (np.asarray, sparse.csr_array):
        for ambiguity in ("wasserstein", "kl"):
            parameters = {"ambiguity": ambiguity, "penalty": "l2", "alpha": 0.1, "slack": 0.02}
            model = SatisficingClassifier(fit_intercept="priced", **parameters)
            explicit = SatisficingClassifier(fit_intercept=False, **parameters)
            model.fit(as_given(X), y)
            explicit.fit(as_given(with_ones(X)), y)
            inside = np.column_stack([model.coef_, model.intercept_])
            np.testing.assert_allclose(inside, explicit.coef_, rtol=1e-6, atol=1e-8)
            assert certify(model, X, y).fragility == pytest.approx(explicit.fragility_, rel=1e-8)


def test_paths():
    X, y = problem(3)
    path = fragility_path(X, y, slacks=[0.1, 0.5], fit_intercept="priced")
    explicit = fragility_path(with_ones(X), y, slacks=[0.1, 0.5], fit_intercept=False)
    np.testing.assert_allclose(path.fragility, explicit.fragility, rtol=1e-8)
    np.testing.assert_allclose(path.loss, explicit.loss, rtol=1e-8)
    np.testing.assert_allclose(path.intercept, explicit.coef[:, :, -1], rtol=1e-5)
    assert path.trivial_loss == pytest.approx(math.log(3.0))


@pytest.mark.parametrize("fit_intercept", [True, "priced"])
def test_wasserstein_is_logistic_regression(fit_intercept):
    """In ℓ2 with cross-entropy; only how strong it is differs: by a target, not by C."""
    X, y = problem()
    model = SatisficingClassifier(fit_intercept=fit_intercept, slack=0.3, tol=1e-10).fit(X, y)
    other = LogisticRegression(tol=1e-12, solver="newton-cholesky", fit_intercept=True)
    coef = model.coef_[0]
    if fit_intercept == "priced":
        X, coef = with_ones(X), np.append(coef, model.intercept_)
        other.set_params(fit_intercept=False)
    # At the least norm for a mean loss the gradient is -λ w, at that of C it is -w / (n C).
    scores = X @ coef + (0.0 if fit_intercept == "priced" else model.intercept_)
    gradient = X.T @ (expit(scores) - y) / y.size
    other.set_params(C=-(coef @ coef) / (y.size * coef @ gradient)).fit(X, y)
    np.testing.assert_allclose(coef, other.coef_[0], rtol=1e-6)
    if fit_intercept is True:
        np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-6)


def test_under_kl_only_the_penalty_sees_it():
    X, y = problem(3)
    free, priced = (
        SatisficingClassifier(ambiguity="kl", target=0.7, fit_intercept=kind).fit(X, y)
        for kind in (True, "priced")
    )
    assert priced.fragility_ == pytest.approx(free.fragility_, rel=1e-8)
    np.testing.assert_allclose(priced.predict_proba(X), free.predict_proba(X), atol=1e-5)
    penalised = {"ambiguity": "kl", "target": 0.8, "penalty": "l2", "alpha": ALPHA}
    free, priced = (
        SatisficingClassifier(fit_intercept=kind, **penalised).fit(X, y)
        for kind in (True, "priced")
    )
    assert priced.fragility_ > 1.001 * free.fragility_


class TestCertificate:
    @pytest.mark.parametrize("fit", [ERMClassifier(), SatisficingClassifier(), DROClassifier()])
    @pytest.mark.parametrize("intercepts", [("priced", True), (True, "priced"), ("priced", False)])
    def test_it_is_of_the_fit_and_not_of_parameters_set_later(self, fit, intercepts):
        X, y = problem()
        model = clone(fit).set_params(fit_intercept=intercepts[0]).fit(X, y)
        assert model.priced_intercept_ is (intercepts[0] == "priced")
        before = certify(model, X, y, target=0.69)
        after = certify(model.set_params(fit_intercept=intercepts[1]), X, y, target=0.69)
        assert (after.fragility, after.penalty) == (before.fragility, before.penalty)

    def test_what_it_says(self):
        X, y = problem()
        shift = Wasserstein(2, feature_weight=(2.0, 4.0, 1.0))
        model = SatisficingClassifier(
            ambiguity=shift, penalty="l2", alpha=ALPHA, fit_intercept="priced", slack=0.1
        ).fit(X, y)
        found, w, b = model.certificate_, model.coef_[0], model.intercept_[0]
        of_features = np.linalg.norm(w / [2.0, 4.0, 1.0])
        assert found.fragility == pytest.approx(math.hypot(of_features, b), rel=1e-12)
        assert found.penalty == pytest.approx(ALPHA * (w @ w + b * b), rel=1e-12)
        assert found.ambiguity == shift  # as given
        losses = linear.losses(model.coef_, model.intercept_, X, y, "cross_entropy")
        assert found.attained_loss == pytest.approx(losses.mean() + found.penalty, rel=1e-12)
        # An index knows features alone.
        bound = found.index_bound()
        assert bound.bound == pytest.approx(of_features / 2.0, rel=1e-12)
        scores = model.decision_function(X)
        index = wasserstein_fragility_index(
            y, scores, weight_norm=of_features, target=found.target - found.penalty
        )
        assert bound.measured == pytest.approx(index, rel=1e-9)

    def test_wrong_labels(self):
        """No part of the bound lies outside the longest sample times the norm."""
        X, y = problem()
        model = SatisficingClassifier(fit_intercept="priced", slack=0.1).fit(X, y)
        longest = np.linalg.norm(with_ones(X), axis=1).max()
        rng = np.random.default_rng(0)
        for share in (0.1, 0.5):
            bound = model.certificate_.label_flip_bound(share)
            most = model.certificate_.attained_loss + longest * model.fragility_ * share
            assert bound <= most * (1.0 + 1e-12)
            for _ in range(20):
                wrong = rng.permutation(y.size) < share * y.size
                flipped = np.where(wrong, 1 - y, y)
                found = linear.losses(model.coef_, model.intercept_, X, flipped, "cross_entropy")
                assert found.mean() <= bound

    def test_a_trivial_target_needs_no_intercept(self):
        X, y = problem()
        with pytest.warns(TrivialTargetWarning):
            model = SatisficingClassifier(target=math.log(2.0), fit_intercept="priced").fit(X, y)
        assert model.fragility_ == 0.0
        assert not model.coef_.any()
        assert not model.intercept_.any()


@pytest.mark.parametrize("classifier", [ERMClassifier, SatisficingClassifier, DROClassifier])
def test_warm_start(classifier):
    X, y = problem(3)
    model = classifier(fit_intercept="priced", penalty="l2", warm_start=True).fit(X, y)
    coef, intercept, steps = model.coef_, model.intercept_, model.n_iter_
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-4)
    assert model.n_iter_ < steps


@pytest.mark.parametrize("wrong", [1, 0, None, "free", "Priced", np.ones(3), ("priced",)])
def test_other_values_are_refused(wrong):
    X, y = problem()
    sentence = r'fit_intercept must be True \(free\), "priced" .* or False \(none\); got '
    for classifier in (
        ERMClassifier,
        SatisficingClassifier,
        DROClassifier,
        SatisficingClassifierCV,
    ):
        with pytest.raises(ValueError, match=sentence):
            classifier(fit_intercept=wrong).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        fragility_path(X, y, fit_intercept=wrong)


def test_numpy_booleans_are_booleans():
    X, y = problem()
    for kind in (True, False):
        model = SatisficingClassifier(fit_intercept=np.bool_(kind), slack=0.1).fit(X, y)
        expected = SatisficingClassifier(fit_intercept=kind, slack=0.1).fit(X, y)
        assert model.fragility_ == expected.fragility_
