"""The model of least norm in an ellipsoid, against cvxpy; the cones it is solved on."""

from math import inf

import numpy as np
import pytest

from fragility.solvers import ellipsoid as ellipsoids
from fragility.solvers.cones import Orthant, SecondOrder
from fragility.solvers.ellipsoid import Ellipsoid
from fragility.solvers.norm_cones import norm_cone
from fragility.solvers.searching import result, side_by_side

cp = pytest.importorskip("cvxpy")


def ellipsoid(n_outputs, d, seed, radius=1.0, spread=1.0):
    rng = np.random.default_rng(seed)
    root = (
        rng.normal(size=(n_outputs * d, n_outputs * d))
        * 10.0 ** rng.uniform(-spread, spread, n_outputs * d)[:, np.newaxis]
    )
    matrix = root @ root.T + 1e-3 * np.diag(np.diag(root @ root.T))
    factor = np.linalg.cholesky(matrix)
    # A centre from which zero is a few radii away.
    centre = np.linalg.solve(factor.T, rng.normal(size=n_outputs * d))
    return Ellipsoid(matrix, factor, centre, radius, matrix @ centre)


def least_norm(body, cone, tol):
    return result(ellipsoids.least_norm(body, cone, tol))


def reference(body, norm, n_outputs, d):
    table = cp.Variable((n_outputs, d))
    dual = {1: "inf", 2: 2, inf: 1}[norm]
    if n_outputs == 1:
        norms = [cp.norm(table[0], dual)]
    else:
        norms = [
            cp.norm(table[i] - table[j], dual)
            for i in range(n_outputs)
            for j in range(i + 1, n_outputs)
        ]
    inside = cp.norm(body.factor.T @ (cp.vec(table, order="C") - body.centre)) <= body.radius
    problem = cp.Problem(cp.Minimize(cp.max(cp.hstack(norms))), [inside])
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("n_outputs", [1, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_least_norm(norm, n_outputs, seed):
    d = 4
    body = ellipsoid(n_outputs, d, seed, radius=(0.3, 1.0, 0.05, 2.0)[seed])
    cone = norm_cone(norm, n_outputs, d)
    found = least_norm(body, cone, 1e-10)
    expected = reference(body, norm, n_outputs, d)
    assert found.norm == pytest.approx(expected, rel=1e-6, abs=1e-8)
    away = found.table.ravel() - body.centre
    assert np.linalg.norm(body.factor.T @ away) <= body.radius * (1 + 1e-9)
    # The multiplier is the slope of the norm by ½ r².
    if found.norm > 0.0:
        step = 1e-4 * body.radius**2
        radii = [np.sqrt(body.radius**2 + sign * step) for sign in (-1, 1)]
        norms = [least_norm(body._replace(radius=r), cone, 1e-12).norm for r in radii]
        assert found.multiplier == pytest.approx((norms[0] - norms[1]) / step, rel=1e-3)


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_together_or_alone(norm, n_outputs):
    """Bodies that take different numbers of steps do not disturb each other."""
    cone = norm_cone(norm, n_outputs, 4)
    bodies = [ellipsoid(n_outputs, 4, seed, radius=0.3 + seed) for seed in range(5)]
    searches = [ellipsoids.least_norm(body, cone, 1e-10) for body in bodies]
    for body, found in zip(bodies, result(side_by_side(searches)), strict=True):
        alone = least_norm(body, cone, 1e-10)
        assert found.norm == pytest.approx(alone.norm, rel=1e-9, abs=1e-12)
        assert found.table == pytest.approx(alone.table, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_zero_inside(norm, n_outputs):
    body = ellipsoid(n_outputs, 3, 0, radius=1e3)
    found = least_norm(body, norm_cone(norm, n_outputs, 3), 1e-9)
    assert found.norm == 0.0
    assert not found.table.any()


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("share", [1 - 1e-3, 1 - 1e-8, 1 - 1e-14])
def test_zero_nearly_inside(norm, share):
    body = ellipsoid(1, 3, 1)
    reach = np.linalg.norm(body.factor.T @ body.centre)
    found = least_norm(body._replace(radius=share * reach), norm_cone(norm, 1, 3), 1e-9)
    assert 0.0 <= found.norm <= 2 * (1 - share) * np.abs(body.centre).sum() + 1e-12


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_very_different_units(norm):
    body = ellipsoid(1, 4, 2, spread=5.0)
    found = least_norm(body, norm_cone(norm, 1, 4), 1e-9)
    assert np.linalg.norm(body.factor.T @ (found.table.ravel() - body.centre)) == pytest.approx(
        body.radius, rel=1e-6
    )


def interior(cone, rng, shape):
    s = rng.normal(size=shape)
    if isinstance(cone, SecondOrder):
        s[..., 0] = np.linalg.norm(s[..., 1:], axis=-1) + rng.uniform(0.1, 2, s.shape[:-1])
        return s
    return np.abs(s) + 0.1


@pytest.mark.parametrize("cone", [Orthant(), SecondOrder()])
class TestCones:
    def test_scaling_takes_both_to_one_point(self, cone):
        rng = np.random.default_rng(0)
        s, y = interior(cone, rng, (5, 4)), interior(cone, rng, (5, 4))
        scaling = cone.scaling(s, y)
        assert scaling.apply(y) == pytest.approx(scaling.undo(s))
        assert scaling.point == pytest.approx(scaling.apply(y))
        assert scaling.apply(scaling.undo(s)) == pytest.approx(s)

    def test_division_undoes_the_product(self, cone):
        rng = np.random.default_rng(1)
        a, b = interior(cone, rng, (5, 4)), rng.normal(size=(5, 4))
        assert cone.product(a, cone.divide(a, b)) == pytest.approx(b)
        assert cone.product(a, cone.inverse(a)) == pytest.approx(cone.one(a), abs=1e-12)

    def test_longest_step_ends_on_the_boundary(self, cone):
        rng = np.random.default_rng(2)
        for _ in range(200):
            a, step = interior(cone, rng, (1, 4)), rng.normal(size=(1, 4))
            length = cone.longest(a, step)
            if length[0] > 1e200:
                assert cone.inside(a + 1e6 * step)
                continue
            assert cone.longest(a, step, 0.5 * step) == length
            assert cone.inside(a + (1 - 1e-9) * length * step)
            assert not cone.inside(a + (1 + 1e-6) * length * step)
