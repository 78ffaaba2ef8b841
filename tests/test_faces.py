"""The least norm in an ellipsoid by its face against the interior-point method."""

from math import inf

import numpy as np
import pytest

from fragility.solvers import ellipsoid as ellipsoids
from fragility.solvers.ellipsoid import Ellipsoid
from fragility.solvers.faces import Quadric
from fragility.solvers.faces import least_norm_near as on_a_face
from fragility.solvers.norm_cones import norm_cone
from fragility.solvers.quadratic import DenseForm
from fragility.solvers.searching import result


def least_norm(body, cone, tol):
    return result(ellipsoids.least_norm(body, cone, tol))


def least_norm_near(body, cone, near):
    """From a description of the ellipsoid about another point than its centre."""
    away = 0.1 * np.ones(body.centre.size)
    slope = body.matrix @ away
    room = 0.5 * (body.radius**2 - away @ slope)
    point = body.centre + away
    return on_a_face(Quadric(DenseForm(body.matrix), point, slope, room, body.pull), cone, near)


def ellipsoid(rng, d, radius):
    root = rng.normal(size=(2 * d, d)) / np.sqrt(d)
    matrix = root.T @ root
    centre = rng.normal(size=d)
    share = radius * np.sqrt(centre @ matrix @ centre)
    return Ellipsoid(matrix, np.linalg.cholesky(matrix), centre, share, matrix @ centre)


@pytest.mark.parametrize("norm", [1, inf])
@pytest.mark.parametrize("d", [1, 2, 7, 30])
@pytest.mark.parametrize("radius", [0.05, 0.3, 0.9])
def test_faces_agree_with_the_interior_point(norm, d, radius):
    rng = np.random.default_rng([d, int(100 * radius)])
    cone = norm_cone(norm, 1, d)
    count = 0
    for _ in range(5):
        body = ellipsoid(rng, d, radius)
        expected = least_norm(body, cone, 1e-12)
        largest = np.abs(expected.table).max()
        near = expected.table[0] + 0.005 * largest * rng.normal(size=d)
        found = least_norm_near(body, cone, near)
        if found is None:
            continue
        count += 1
        assert found.norm == pytest.approx(expected.norm, rel=1e-8)
        # The multiplier is the fall of the norm as half the squared radius grows.
        wider, narrower = (body._replace(radius=body.radius * f) for f in (1.0001, 0.9999))
        fall = least_norm(narrower, cone, 1e-12).norm - least_norm(wider, cone, 1e-12).norm
        assert found.multiplier == pytest.approx(fall / (2e-4 * body.radius**2), rel=1e-2)
        assert found.table == pytest.approx(expected.table, abs=1e-4 * largest)
    assert count >= (4 if radius < 0.9 else 1)  # from far it may find nothing, and says so


def test_nothing_is_returned_where_there_is_no_face():
    rng = np.random.default_rng(0)
    body = ellipsoid(rng, 4, 0.3)
    assert least_norm_near(body, norm_cone(2, 1, 4), body.centre) is None
    assert least_norm_near(body, norm_cone(1, 3, 4), np.zeros(12)) is None
    holds_zero = ellipsoid(rng, 4, 1.5)
    for norm in (1, inf):
        assert least_norm_near(holds_zero, norm_cone(norm, 1, 4), body.centre) is None
        assert least_norm_near(body, norm_cone(norm, 1, 4), np.zeros(4)) is None
