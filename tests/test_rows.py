"""Training data: merging, scaling, and the way back to the user's units."""

import numpy as np
import pytest
from scipy import sparse

from fragility.programs import rows as rows_module
from fragility.programs.rows import training_rows


def problem(seed=0, n=200, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 6, d) + 10.0 ** rng.integers(0, 5, d)
    return X, rng.integers(0, 3, n), rng.integers(1, 4, n).astype(float)


def test_columns_are_centred_and_scaled_by_weight():
    X, y, weights = problem()
    rows = training_rows(X, y, 3, weights)
    assert rows.weights.sum() == pytest.approx(1.0, rel=1e-14)
    assert np.abs(rows.weights @ rows.X).max() < 1e-9
    assert rows.weights @ rows.X**2 == pytest.approx(np.ones(5), rel=1e-12)


def test_weights_are_repetitions():
    X, y, weights = problem()
    repeats = weights.astype(int)
    shuffled = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), repeats))
    weighted = training_rows(X, y, 3, weights)
    repeated = training_rows(X[shuffled], y[shuffled], 3)
    assert repeated.X.shape == weighted.X.shape
    assert repeated.centre == pytest.approx(weighted.centre, rel=1e-13)
    assert repeated.scale == pytest.approx(weighted.scale, rel=1e-12)
    for rows in (weighted, repeated):
        order = np.lexsort(rows.X.T)
        assert rows.weights[order] == pytest.approx(
            weighted.weights[np.lexsort(weighted.X.T)], rel=1e-13
        )


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_only_identical_samples_are_merged(as_given):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, np.nextafter(1, 2)]])
    y = np.array([0, 0, 1, 0, 0])
    rows = training_rows(as_given(X), y, 2, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert sorted(rows.weights) == pytest.approx(np.array([3, 4, 8, 16]) / 31)
    assert rows.y[np.argsort(rows.weights)].tolist() == [0, 1, 0, 0]


def test_swapped_entries_are_not_identical():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (5000, 6)).astype(float)
    y = rng.integers(0, 2, 5000)
    rows = training_rows(X, y, 2)
    assert rows.y.size == len(np.unique(np.c_[X, y], axis=0))
    assert training_rows(sparse.csr_array(X), y, 2).y.size == rows.y.size


def test_chance_does_not_merge_different_samples(monkeypatch):
    X, y, weights = problem(n=50)
    monkeypatch.setattr(rows_module, "_fingerprints", lambda X, y: np.zeros(50, dtype=np.uint64))
    assert training_rows(X, y, 3, weights).y.size == 50


def test_samples_of_no_weight_leave_no_trace():
    X, y, weights = problem()
    weights[::3] = 0.0
    X_odd = X.copy()
    X_odd[::3] = 1e300
    rows = training_rows(X_odd, y, 3, weights)
    expected = training_rows(X[weights > 0], y[weights > 0], 3, weights[weights > 0])
    assert np.array_equal(rows.X, expected.X)
    assert np.array_equal(rows.weights, expected.weights)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_the_way_back(fit_intercept, as_given):
    X, y, weights = problem()
    rows = training_rows(as_given(X), y, 3, weights, fit_intercept=fit_intercept)
    rng = np.random.default_rng(1)
    coef, intercept = rng.normal(size=(3, 5)), fit_intercept * rng.normal(size=3)
    given_coef, given_intercept = rows.in_user_units(coef, intercept)
    given = X @ given_coef.T + given_intercept
    found = rows.X @ coef.T + intercept  # in another order
    assert np.sort(given, axis=0) == pytest.approx(np.sort(found, axis=0), rel=1e-9, abs=1e-9)
    if not fit_intercept:
        assert np.array_equal(given_intercept, np.zeros(3))


def test_constant_columns_stay_harmless():
    X, y, _ = problem()
    X[:, 1], X[:, 2] = 1e6, 0.0
    X[:, 3] = 1e8 * (1 + 1e-17)
    rows = training_rows(X, y, 3)
    assert np.isfinite(rows.X).all()
    assert np.abs(rows.X[:, 1:4]).max() < 1e-6


def test_sparse_stays_sparse():
    X = sparse.csr_array(sparse.random(300, 50, density=0.05, random_state=0))
    rows = training_rows(X, np.arange(300) % 2, 2)
    assert sparse.issparse(rows.X)
    assert rows.X.nnz <= X.nnz
    squares = rows.X.multiply(rows.X).T @ rows.weights
    assert squares[squares > 0] == pytest.approx(1.0, rel=1e-12)


def test_the_input_is_left_alone():
    X, y, weights = problem()
    copies = X.copy(), y.copy(), weights.copy()
    training_rows(X, y, 3, weights)
    for array, copy in zip((X, y, weights), copies, strict=True):
        assert np.array_equal(array, copy)
