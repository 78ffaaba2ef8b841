"""Index bounds of pairs of several classes, on hundreds of fitted models."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from fragility import (
    SatisficingClassifier,
    fragility_index,
    wasserstein_pair_index,
)
from fragility.ambiguity import KL, Wasserstein
from fragility.certificates import certify
from fragility.losses import CrossEntropy, Hinge

from .reference.pairs import bisected_index


def problem(seed, classes, n=90):
    """Data, weights and a logistic regression; some classes rare, some confident, some not."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(classes, 3.0))
    y = rng.choice(classes, size=n, p=shares)
    y[: 2 * classes] = np.tile(np.arange(classes), 2)
    centres = rng.normal(scale=rng.uniform(0.5, 3.0), size=(classes, 3))
    X = centres[y] + rng.normal(size=(n, 3))
    wrong = rng.uniform(size=n) < 0.1
    y = np.where(wrong, rng.integers(classes, size=n), y)
    weights = rng.integers(0, 4, size=n).astype(float)
    weights[: 2 * classes] = 1.0
    model = LogisticRegression(C=10.0 ** rng.uniform(-2, 2), max_iter=500, tol=1e-2).fit(X, y)
    return X, y, weights, model


def certified(data, ambiguity, slack, **options):
    X, y, weights, model = data
    options = {"ambiguity": ambiguity, "sample_weight": weights, "penalty": 0.01, **options}
    attained = certify(model, X, y, target=1e3, **options).attained_loss
    return certify(model, X, y, target=attained + slack, **options)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [CrossEntropy(), Hinge()], ids=repr)
def test_kl_pairs(loss):
    """At (τ - R) / (2 min π) no index of a pair exceeds k / 2."""
    rng = np.random.default_rng(0)
    pairs = said = 0
    for seed in range(30):
        classes = 3 + seed % 3
        data = X, y, weights, model = problem(seed, classes)
        result = certified(data, KL(), 10.0 ** rng.uniform(-3, -0.5), loss=loss)
        p = softmax(model.decision_function(X), axis=1)
        shares = np.bincount(y, weights) / weights.sum()
        bounds = result.index_bounds()
        assert list(bounds) == list(permutations(range(classes), 2))
        for (i, j), found in bounds.items():
            target = (result.target - 0.01) / (2 * min(shares[i], shares[j]))
            assert (found.kind, found.target) == ("kl", pytest.approx(target, rel=1e-12))
            table = fragility_index(y, p, target=target, sample_weight=weights, average=None)
            assert found.measured == pytest.approx(table[i, j], rel=1e-8, abs=1e-300)
            pairs += 1
            if found.bound == math.inf:  # a hinge of several classes may be below 1 - 2p
                assert loss == Hinge()
                assert "a loss below 0 or 2p - 1" in found.reason
                continue
            assert found.bound == result.fragility / 2
            assert found.measured <= found.bound
            assert found.vacuous == bool(found.reason) == (found.measured == 0.0)
            said += not found.vacuous
    assert pairs == 10 * (6 + 12 + 20)
    assert said > 0 or loss == Hinge()


def test_a_kl_pair_from_its_definition():
    """Two classes of three that confuse each other; the pair's index by bisection over pairs."""
    scores = np.array([[6.0, 0, 0]] * 9 + [[0, 4.0, 0]] + [[0, 6.0, 0]] * 9 + [[4.0, 0, 0]])
    X = np.vstack([scores, [[0, 0, 6.0]] * 10])
    y = np.repeat([0, 1, 2], 10)
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.eye(3), np.zeros(3)
    result = certify(model, X, y, target=0.31, ambiguity="kl")
    found = result.index_bounds()[0, 1]
    assert not found.vacuous
    p = softmax(X, axis=1)[:, 0]
    expected = bisected_index(np.subtract.outer(p[y == 1], p[y == 0]), found.target)
    assert found.measured == pytest.approx(expected, rel=1e-6)
    assert 0 < found.measured <= found.bound == result.fragility / 2


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("cost", [math.inf, 2.0])
def test_wasserstein_pairs(norm, cost):
    """Half the dual norm of the difference bounds the index where the mean error is small."""
    dual = {1: math.inf, 2: 2, math.inf: 1}[norm]
    rng = np.random.default_rng(1)
    said = missed = 0
    for seed in range(12):
        classes = 3 + seed % 3
        data = X, y, weights, model = problem(seed, classes)
        distance = Wasserstein(norm=norm, label_cost=cost)
        result = certified(data, distance, 10.0 ** rng.uniform(-3, -0.5))
        norms = np.linalg.norm(model.coef_[:, None] - model.coef_, ord=dual, axis=2)
        room = result.target - 0.01
        table = wasserstein_pair_index(
            y, model.decision_function(X), pair_norms=norms, target=room, sample_weight=weights
        )
        for (i, j), found in result.index_bounds().items():
            assert (found.kind, found.target) == ("wasserstein", room)
            assert found.measured == pytest.approx(table[i, j], rel=1e-9)
            if found.measured == math.inf:
                assert (found.bound, found.vacuous) == (math.inf, True)
                missed += 1
                continue
            assert found.bound == pytest.approx(norms[i, j] / 2)
            assert found.measured <= found.bound * (1 + 1e-12)
            assert found.bound <= result.fragility / 2 * (1 + 1e-12)
            said += not found.vacuous
    assert said > 50
    assert missed == 0  # see below


def test_two_rare_classes_may_be_swapped_at_little_loss():
    """The mean loss does not see them; the pair has no bound, and says why."""
    X = np.vstack([[[0.0, 1, 0], [1, 0, 0]], np.tile([0.0, 0, 9], (98, 1))])
    y = np.r_[0, 1, np.full(98, 2)]
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.eye(3), np.zeros(3)
    result = certify(model, X, y, target=0.1)
    assert result.headroom > 0
    bounds = result.index_bounds()
    for pair in ((0, 1), (1, 0)):
        assert bounds[pair].measured == bounds[pair].bound == math.inf
        assert "mean ranking error exceeds 0.1" in bounds[pair].reason
    assert not bounds[0, 2].vacuous
    assert bounds[0, 2].bound == pytest.approx(math.sqrt(2) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("ambiguity", ["kl", "wasserstein"])
def test_trained_models_keep_their_bounds(ambiguity):
    for seed in range(4):
        X, y, *_ = problem(20 + seed, 3)
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.2).fit(X, y)
        bounds = model.certificate_.index_bounds()
        assert len(bounds) == 6
        for found in bounds.values():
            assert found.measured <= found.bound
            assert found.bound <= model.fragility_ / 2 * (1 + 1e-9) or found.bound == math.inf


def test_two_classes_have_one_bound_for_both_pairs():
    X, y, weights, model = problem(3, 2)
    names = np.array(["no", "yes"])
    model.fit(X, names[y])
    result = certified((X, names[y], weights, model), "wasserstein", 0.05)
    bounds = result.index_bounds()
    assert set(bounds) == {("no", "yes"), ("yes", "no")}
    for found in bounds.values():
        assert found == result.index_bound()
    assert not result.index_bound().vacuous


class BelowZero(CrossEntropy):
    """Cross-entropy, and 0.1 less for the third class: there it may be negative."""

    def value(self, scores, codes):
        return super().value(scores, codes) - 0.1 * (codes == 2)


def test_negative_losses_of_other_classes_void_the_kl_bound():
    data = problem(4, 3)
    found = certified(data, KL(), 0.3, loss=BelowZero()).index_bounds()[0, 1]
    assert found.bound == math.inf
    assert "a loss below 0" in found.reason
    assert certified(data, KL(), 0.3).index_bounds()[0, 1].bound < math.inf


def test_pairs_of_an_absent_class_say_so():
    X, y, _, model = problem(5, 3)
    rows = y != 2
    result = certify(model, X[rows], y[rows], target=2.0)
    bounds = result.index_bounds()
    assert not bounds[0, 1].reason.startswith("only one class")
    assert "only one class has samples" in bounds[0, 2].reason
