"""Interior-point steps that leave a few constraints behind end where short ones do."""

from math import inf

import numpy as np
import pytest

from fragility import KL, SatisficingClassifier, Wasserstein, prove
from fragility.solvers import aggregates, interior_point


def noisy(n, d, n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + 2.0 * rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.fixture
def lengths(monkeypatch):
    """Every problem counts as large, and one constraint of fifty may be left behind."""
    found = []
    longest_but = aggregates._longest_but

    def counted(count, values, move):
        length = longest_but(count, values, move)
        least = -1.0 / np.minimum(move / values, -1e-300).reshape(len(values), -1).min(axis=1)
        found.append((count, float(length[0]), float(least[0])))
        return length

    monkeypatch.setattr(aggregates, "_longest_but", counted)
    monkeypatch.setattr(interior_point.Tuning, "dear", 0.0)
    monkeypatch.setattr(interior_point.Tuning, "stragglers", 0.02)
    return found


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize(
    "ambiguity", [KL(), Wasserstein(norm=1), Wasserstein(norm=2), Wasserstein(norm=inf)], ids=repr
)
def test_the_model_is_the_least_fragile_one(ambiguity, n_classes, lengths):
    X, y = noisy(160, 4, n_classes, seed=n_classes)
    options = {"penalty": "l2", "alpha": 1e-3, "slack": 0.2}
    model = SatisficingClassifier("hinge", ambiguity, **options).fit(X, y)
    assert any(length > 1.2 * least for _, length, least in lengths)  # some were left behind
    proof = prove(model, X, y)
    assert proof.lower == pytest.approx(model.fragility_, rel=2e-6)
    assert model.certificate_.headroom >= -1e-9 * model.target_


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_samples_that_change_sides_may_be_left_behind(norm, lengths, monkeypatch):
    monkeypatch.setattr(interior_point.Tuning, "dear", inf)
    monkeypatch.setattr(interior_point.Tuning, "movers", 0.01)
    X, y = noisy(300, 6, 2, seed=4)
    ambiguity = Wasserstein(norm=norm, label_cost=0.5)
    model = SatisficingClassifier(ambiguity=ambiguity, slack=0.2).fit(X, y)
    assert any(length > 1.2 * least for _, length, least in lengths)
    proof = prove(model, X, y)
    assert proof.lower == pytest.approx(model.fragility_, rel=2e-6)
    assert model.certificate_.headroom >= -1e-9 * model.target_


def test_so_many_may_be_left_behind_and_no_more():
    values = np.ones((2, 1, 6))
    move = -np.array([[[8.0, 4.0, 2.0, 1.0, 0.1, -3.0]], [[5.0, 0.2, 0.1, -1.0, -1.0, -1.0]]])
    assert aggregates._longest_but(2, values, move)[0] == pytest.approx(0.5)
    assert aggregates._longest_but(2, values, move)[1] > 1.0
    assert aggregates._longest_but(0, values, move) == pytest.approx([1 / 8, 1 / 5])
