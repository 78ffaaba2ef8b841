"""What must not change a model whose loss, penalty or ball has corners."""

from functools import partial
from math import inf

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from fragility import DROClassifier, ERMClassifier, SatisficingClassifier, Wasserstein

STRICT = {"tol": 1e-8}
MODELS = [
    SatisficingClassifier("hinge", slack=0.2, **STRICT),
    SatisficingClassifier("hinge", "kl", slack=0.2, **STRICT),
    SatisficingClassifier("hinge", Wasserstein(1), penalty="l1", slack=0.2, **STRICT),
    SatisficingClassifier("max_logistic", Wasserstein(inf), slack=0.2, **STRICT),
    SatisficingClassifier("max_logistic", "kl", penalty="l2", slack=0.2, **STRICT),
    SatisficingClassifier(ambiguity=Wasserstein(label_cost=0.5), slack=0.2, **STRICT),
    SatisficingClassifier("hinge", Wasserstein(label_cost=0.5), slack=0.2, **STRICT),
    SatisficingClassifier(radius=0.2, slack=0.1, **STRICT),
    DROClassifier("hinge", radius=0.05, **STRICT),
    DROClassifier("hinge", "kl", radius=0.02, penalty="l2", **STRICT),
    DROClassifier(ambiguity="kl", radius=0.02, penalty="l1", **STRICT),
    DROClassifier("max_logistic", Wasserstein(1, label_cost=1.0), radius=0.05, **STRICT),
    ERMClassifier("hinge", penalty="l1", **STRICT),
    ERMClassifier("hinge", penalty=None, **STRICT),
    ERMClassifier(penalty="l1", **STRICT),
]
each_model = pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: " ".join(repr(model).split())
)
each_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])


def problem(n_classes, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    logits = (X - X.mean(axis=0)) @ rng.normal(size=(d, n_classes))
    return X, (logits + 0.7 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)


def cost(model):
    """What was minimised."""
    if isinstance(model, ERMClassifier):
        return model.loss_
    return model.worst_loss_ if isinstance(model, DROClassifier) else model.fragility_


def same(one, other, X, X_other=None, rel=1e-6, scores=1e-4):
    """Equal in cost and in scores; scores move as the root of an error in the cost."""
    assert cost(one) == pytest.approx(cost(other), rel=rel)
    X_other = X if X_other is None else X_other
    assert one.decision_function(X) == pytest.approx(other.decision_function(X_other), abs=scores)


@each_model
@each_number_of_classes
class TestNothingChanges:
    def fitted(self, model, X, y, weights=None):
        return clone(model).fit(X, y, sample_weight=weights)

    def test_repeated_rows_are_weights(self, model, n_classes):
        X, y = problem(n_classes)
        counts = np.random.default_rng(1).integers(1, 4, y.size)
        repeated = self.fitted(model, np.repeat(X, counts, axis=0), np.repeat(y, counts))
        same(self.fitted(model, X, y, counts), repeated, X, rel=1e-9, scores=1e-7)
        scaled = self.fitted(model, X, y, 1e3 * counts)
        same(scaled, repeated, X, rel=1e-7)

    def test_every_row_twice(self, model, n_classes):
        X, y = problem(n_classes)
        same(self.fitted(model, X, y), self.fitted(model, np.r_[X, X], np.r_[y, y]), X)

    def test_order_of_rows(self, model, n_classes):
        X, y = problem(n_classes)
        order = np.random.default_rng(2).permutation(y.size)
        same(self.fitted(model, X, y), self.fitted(model, X[order], y[order]), X)

    def test_order_of_labels(self, model, n_classes):
        X, y = problem(n_classes)
        forward = self.fitted(model, X, y)
        backward = self.fitted(model, X, n_classes - 1 - y)
        assert cost(forward) == pytest.approx(cost(backward), rel=1e-6)
        turned = -backward.coef_ if n_classes == 2 else backward.coef_[::-1]
        assert forward.coef_ == pytest.approx(turned, abs=1e-4 * np.abs(turned).max())

    def test_columns_shifted(self, model, n_classes):
        X, y = problem(n_classes)
        moved = X + np.array([1e4, -1e4, 0.0])
        same(self.fitted(model, X, y), self.fitted(model, moved, y), X, moved)

    def test_sparse_is_dense(self, model, n_classes):
        X, y = problem(n_classes)
        X = np.where(np.abs(X) < 0.7, 0.0, X)
        same(self.fitted(model, sparse.csr_array(X), y), self.fitted(model, X, y), X)


@pytest.mark.parametrize("units", [[1e-6, 1.0, 1e-3], [1.0, 1e6, 1e3]], ids=["small", "large"])
@each_number_of_classes
class TestUnits:
    @pytest.mark.parametrize("norm", [1, 2, inf])
    @pytest.mark.parametrize(
        ("classifier", "loss", "label_cost"),
        [
            (partial(SatisficingClassifier, slack=0.1), "hinge", inf),
            (partial(SatisficingClassifier, slack=0.1), "max_logistic", 0.5),
            (partial(DROClassifier, radius=0.05), "hinge", 1.0),
            (partial(DROClassifier, radius=0.05), "cross_entropy", inf),
        ],
        ids=["hinge", "max_logistic labels", "robust hinge labels", "robust cross_entropy"],
    )
    def test_prices_follow_the_units(self, units, n_classes, norm, classifier, loss, label_cost):
        X, y = problem(n_classes)
        wide = X * units
        plain, changed = (
            classifier(loss, Wasserstein(norm, label_cost, prices), **STRICT)
            for prices in (np.ones(3), 1 / np.asarray(units))
        )
        same(plain.fit(X, y), changed.fit(wide, y), X, wide)

    @pytest.mark.parametrize(
        "model",
        [
            SatisficingClassifier("hinge", "kl", slack=0.1, **STRICT),
            DROClassifier("hinge", "kl", radius=0.02, **STRICT),
            DROClassifier(ambiguity="kl", radius=0.02, **STRICT),
            ERMClassifier("max_logistic", penalty=None, **STRICT),
        ],
        ids=repr,
    )
    def test_weights_know_no_units(self, units, n_classes, model):
        X, y = problem(n_classes)
        wide = X * units
        same(clone(model).fit(X, y), clone(model).fit(wide, y), X, wide)
