"""Fewer samples than features: Hessians that are not formed, against those that are."""

from math import inf

import numpy as np
import pytest
from scipy import sparse

from fragility import SatisficingClassifier, SatisficingClassifierCV, Wasserstein
from fragility.losses import CrossEntropy
from fragility.programs.low_rank import LowRank, SampleProducts
from fragility.programs.objective import Evaluation, Objective
from fragility.programs.rows import training_rows
from fragility.solvers.geometry import Geometry
from fragility.solvers.newton import Curvature
from fragility.solvers.quadratic import LowRankForm, Reduced

from .reference import linear, programs

each_norm = pytest.mark.parametrize("norm", [1, inf])
each_kind = pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])


def wide(n=20, d=110, seed=0):
    """Columns of different sizes, some mostly zero; labels that they say something about."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    X[:, ::3] *= rng.random(size=X[:, ::3].shape) < 0.5
    y = (X[:, :5] / X[:, :5].std(axis=0)).sum(axis=1) + rng.normal(size=n) > 0.0
    return X, y.astype(int), rng.uniform(0.5, 2.0, n)


def point_of(as_given, fit_intercept, alpha):
    X, y, weights = wide()
    rows = training_rows(as_given(X), y, 2, weights, fit_intercept=fit_intercept)
    objective = Objective(rows, CrossEntropy(), alpha)
    return objective.at(0.3 * np.random.default_rng(1).normal(size=objective.size))


@each_kind
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_the_hessian(as_given, fit_intercept, alpha):
    point = point_of(as_given, fit_intercept, alpha)
    hessian, table = point.structured_hessian, point.hessian
    assert isinstance(hessian, LowRank)
    assert len(hessian) == len(table)
    change = np.random.default_rng(2).uniform(size=len(table))
    for low, dense in ((hessian, table), (hessian.ridged(change), table + np.diag(change))):
        assert low.dense() == pytest.approx(dense, abs=1e-12)
        assert low @ change == pytest.approx(dense @ change, abs=1e-12)
        assert low.trace() == pytest.approx(np.trace(dense))
        places = np.array([0, 7, len(table) - 1])
        assert low.part(places) == pytest.approx(dense[places], abs=1e-12)


@each_kind
def test_products_of_samples_are_kept_up_to_date(as_given):
    X, *_ = wide()
    products, rng = SampleProducts(as_given(X)), np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, X.shape[1])
    huge = np.where(np.arange(X.shape[1]) == 4, 1e12, weights)
    few = np.where(rng.random(X.shape[1]) < 0.7, weights, 0.0)
    for wanted in (weights, 3.0 * weights, few, huge, weights, 0.0 * few, few):
        expected = (X * wanted) @ X.T
        close = 1e-11 * np.sqrt(np.multiply.outer(*[expected.diagonal()] * 2))
        assert (np.abs(products.under(wanted) - expected) <= close).all()


@each_kind
@pytest.mark.parametrize(
    "outside", [[], [110], [3, 11, 110]], ids=["none", "intercept", "features"]
)
@pytest.mark.parametrize("n_free", [0, 1, 15, 35, 107])
def test_a_face(as_given, outside, n_free):
    """The free entries of a quadratic where some are held and those outside are at their best."""
    point = point_of(as_given, 110 in outside, 0.1)
    rng, size = np.random.default_rng(n_free), point.objective.size
    moves = np.setdiff1d(np.arange(size), outside)
    metric = rng.uniform(0.5, 2.0, moves.size)
    reduced = Reduced(point.structured_hessian, moves, np.array(outside, dtype=int), metric)
    assert isinstance(reduced.form, LowRankForm)
    free = rng.permutation(moves.size) < n_free
    fixed = np.where(free, 0.0, rng.normal(size=(2, moves.size)))
    pull = rng.normal(size=(2, moves.size))
    x, product = reduced.form.face(free).point(fixed, pull)

    units = np.zeros((size, moves.size))
    units[moves, np.arange(moves.size)] = 1.0 / metric
    kept, table = np.array(outside, dtype=int), point.hessian
    across = table[kept]
    inner = table - across.T @ np.linalg.solve(table[np.ix_(kept, kept)], across)
    matrix = units.T @ inner @ units
    expected = fixed.copy()
    for row, held, wanted in zip(expected, fixed, pull, strict=True):
        row[free] = np.linalg.solve(matrix[np.ix_(free, free)], (wanted - matrix @ held)[free])
    assert x == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert product == pytest.approx(expected @ matrix, rel=1e-8, abs=1e-8)
    every = np.ones(moves.size, dtype=bool)
    assert reduced.form.block(every) == pytest.approx(matrix, abs=1e-10)


@each_kind
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 1e-12])
def test_newton_steps(as_given, fit_intercept, alpha):
    point = point_of(as_given, fit_intercept, alpha)
    step = Curvature(point.structured_hessian).step(point.gradient)
    # Without a ridge many steps lead to the minimum of the model; the shortest is in row space.
    close = 1e-6 if 0.0 < alpha < 0.1 else 1e-9
    assert point.hessian @ step == pytest.approx(-point.gradient, abs=close)
    if alpha == 0.0:
        rows, coef = point.objective.rows, point.objective.split(step)[0]
        given = coef[0] / rows.scale  # of the features before they were scaled
        X = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        basis = (X * rows.scale).T
        left = given - basis @ np.linalg.lstsq(basis, given, rcond=None)[0]
        assert np.abs(left).max() <= 1e-9 * np.abs(given).max()


CASES = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "priced": {"fit_intercept": "priced"},
    "fixed and weighted features": {"feature_weight": np.r_[inf, 2.0, inf, np.ones(107)]},
    "smoothed hinge": {"loss": "smoothed_hinge"},
}


@each_kind
@each_norm
@pytest.mark.parametrize("alpha", [0.0, 1e-2, 1e-6])
@pytest.mark.parametrize("case", CASES)
def test_the_same_model_as_with_a_dense_hessian(as_given, norm, alpha, case, monkeypatch):
    X, y, weights = wide()
    options = {"slack": 0.1, "penalty": "l2" if alpha else None, "alpha": alpha} | CASES[case]
    ambiguity = Wasserstein(norm=norm, feature_weight=options.pop("feature_weight", None))
    model = SatisficingClassifier(ambiguity=ambiguity, **options)
    low = model.fit(as_given(X), y, weights)
    found = low.fragility_, low.coef_, low.certificate_.headroom, low.certificate_.target
    monkeypatch.setattr(Evaluation, "structured_hessian", property(lambda self: self.hessian))
    dense = model.fit(as_given(X), y, weights)
    assert found[0] == pytest.approx(dense.fragility_, rel=1e-6)
    assert found[1] == pytest.approx(dense.coef_, abs=1e-3 * np.abs(dense.coef_).max())
    assert found[2] >= -1e-9 * found[3]


@pytest.mark.outside
@each_norm
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("slack", [0.01, 0.1, 0.5])
def test_least_fragility(norm, alpha, fit_intercept, slack):
    X, y, weights = wide()
    options = {"fit_intercept": fit_intercept, "alpha": alpha}
    penalty = {"penalty": "l2"} if alpha else {}
    model = SatisficingClassifier(ambiguity=Wasserstein(norm=norm), slack=slack, **penalty)
    model.set_params(**options).fit(X, y, weights)
    expected = programs.wasserstein(
        X, y, 2, "cross_entropy", model.target_, norm=norm, weights=weights, **options
    )
    assert model.fragility_ == pytest.approx(expected.k, rel=1e-5)
    losses = linear.losses(model.coef_, model.intercept_, X, y, "cross_entropy")
    mean = np.average(losses, weights=weights) + alpha * (model.coef_**2).sum()
    assert mean <= model.target_ * (1.0 + 1e-9)
    own = linear.dual_norms(model.coef_, norm).max()
    assert model.fragility_ == pytest.approx(own, rel=1e-9)


@each_norm
@pytest.mark.parametrize("slack", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("scale", [0.0, 1.0], ids=["one size", "sizes apart"])
def test_no_dense_system_is_needed(norm, slack, scale, monkeypatch):
    """Where nothing bends along most entries, faces are found all the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300)) * 10.0 ** (scale * rng.uniform(-1, 1, 300))
    y = (X[:, :9].sum(axis=1) + rng.normal(size=80) > 0.0).astype(int)
    monkeypatch.setattr(Geometry, "_searched", None)
    model = SatisficingClassifier(ambiguity=Wasserstein(norm=norm), slack=slack).fit(X, y)
    assert model.certificate_.headroom >= 0.0


@each_norm
def test_grids(norm, monkeypatch):
    X, y, _ = wide(n=45)
    options = {"alphas": (1e-2, 1e-3), "slacks": (0.1, 0.3), "cv": 3, "penalty": "l2"}
    model = SatisficingClassifierCV(ambiguity=Wasserstein(norm=norm), **options)
    low = model.fit(X, y).scores_
    monkeypatch.setattr(Evaluation, "structured_hessian", property(lambda self: self.hessian))
    assert low == pytest.approx(model.fit(X, y).scores_, rel=1e-5)
