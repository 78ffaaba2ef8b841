"""The transcriptions against each other: what must be equal by its definition, is."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from .program_cells import LOSSES, SOME, Cell, dro, hybrid, satisficing, target_of
from .reference import linear, losses, programs

pytestmark = pytest.mark.outside

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])
some_cells = pytest.mark.parametrize("cell", SOME, ids=str)


@pytest.mark.parametrize("loss", ["hinge", "max_logistic"])
@pytest.mark.parametrize("n_wrong", [1, 2, 4])
def test_losses(loss, n_wrong):
    gaps = 2 * np.random.default_rng(n_wrong).normal(size=(20, n_wrong))
    literal = {
        "hinge": [losses.hinge([0.0, *row], 0) for row in gaps],
        "max_logistic": [max(np.log1p(np.exp(gap)) for gap in row) for row in gaps],
    }[loss]
    values, shares = linear.value_and_shares(loss, gaps)
    assert values == pytest.approx(literal, rel=1e-13)
    assert programs.LOSSES[loss](cp.Constant(gaps)).value == pytest.approx(literal, rel=1e-13)
    step = 1e-6 * np.random.default_rng(0).normal(size=gaps.shape)
    ahead, behind = (linear.value_and_shares(loss, gaps + s * step)[0] for s in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx((shares * step).sum(axis=1), abs=1e-14)


@pytest.mark.parametrize("cell", [c for c in SOME if c.loss == "max_logistic"], ids=str)
def test_max_logistic_of_two_classes_is_cross_entropy(cell):
    two = replace(cell, n_classes=2)
    assert satisficing(two).k == pytest.approx(
        satisficing(replace(two, loss="cross_entropy")).k, rel=1e-7
    )


@some_cells
def test_solutions_as_numpy_sees_them(cell):
    """Attained, and no model of the same program does better."""
    target, radius = target_of(cell), 0.05
    reference = satisficing(cell)
    judged = cell.judged(reference.coef, reference.intercept)
    assert judged.fragility(target * (1 + 1e-9)) == pytest.approx(reference.k, rel=1e-6)
    robust = dro(cell, radius)
    judged = cell.judged(robust.coef, robust.intercept)
    assert judged.worst(radius) == pytest.approx(robust.value, rel=1e-8)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        coef = robust.coef + size * rng.normal(size=robust.coef.shape)
        other = cell.judged(coef, robust.intercept)
        assert other.worst(radius) >= robust.value * (1 - 1e-8)


@each_loss
@pytest.mark.parametrize(("norm", "n_classes"), [(1, 2), (2, 3), (np.inf, 2)])
def test_dear_labels_do_not_move(loss, n_classes, norm):
    cell = Cell(loss, "w2", "l1", n_classes)
    X, y, _ = cell.data
    given = (X, y, n_classes, loss)
    target = target_of(cell)
    dear = {"norm": norm, "label_cost": 1e3, **cell.options}
    without = {"norm": norm, **cell.options}
    k = programs.wasserstein(*given, target, **without).k
    assert programs.wasserstein(*given, target, **dear).k == pytest.approx(k, rel=1e-7)
    worst = programs.dro(*given, 0.05, **without).value
    assert programs.dro(*given, 0.05, **dear).value == pytest.approx(worst, rel=1e-8)


@each_loss
@each_number_of_classes
@pytest.mark.parametrize("ambiguity", ["kl", "w2", "winf labels"])
def test_dro_in_no_ball_is_erm(loss, n_classes, ambiguity):
    cell = Cell(loss, ambiguity, "l2", n_classes)
    X, y, _ = cell.data
    best = programs.erm(X, y, n_classes, loss, **cell.options)
    radius = 1e-6
    robust = dro(cell, radius).value
    assert robust >= best.value
    # To first order the best model is worst off by itself: KL by the root of the radius.
    assert robust == pytest.approx(cell.judged(best.coef, best.intercept).worst(radius), rel=1e-5)
    assert robust == pytest.approx(best.value, rel=1e-2 if ambiguity == "kl" else 1e-4)


@some_cells
def test_satisficing_and_dro_are_the_same_curve(cell):
    """At the loss that DRO leaves, its price is the least fragility."""
    radius = 0.02
    robust = dro(cell, radius)
    k = satisficing(cell, robust.value - robust.price * radius).k
    assert k == pytest.approx(robust.price, rel=1e-4)
    assert k <= robust.price * (1 + 1e-6)


@pytest.mark.parametrize("cell", SOME[::2], ids=str)
def test_inside_a_ball(cell):
    radius = 0.02
    robust = dro(cell, radius)
    left = robust.value - robust.price * radius
    between, tight = (left + robust.value) / 2, (left + target_of(cell, slack=0.0)) / 2
    expected = {between: robust.price / 2, tight: satisficing(cell, tight).k}
    for target, k in expected.items():
        reference = hybrid(cell, target, radius)
        assert reference.k == pytest.approx(k, rel=1e-5)
        judged = cell.judged(reference.coef, reference.intercept)
        assert judged.fragility(target * (1 + 1e-9), radius) == pytest.approx(k, rel=1e-5)
    assert hybrid(cell, robust.value + 1e-4, radius).k == pytest.approx(0.0, abs=1e-7)
    assert hybrid(cell, tight, 10.0).k == pytest.approx(expected[tight], rel=1e-6)


@each_loss
def test_absolute_values_choose_their_own_gauge(loss):
    """A median per column, from whatever start: no row may be moved against the others."""
    cell = Cell(loss, "w2", "l1", 3)
    coef = satisficing(cell).coef
    assert np.abs(coef - np.median(coef, axis=0)).sum() == pytest.approx(
        np.abs(coef).sum(), rel=1e-6
    )
