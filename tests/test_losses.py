"""Losses against their definitions, and their derivatives against differences."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from fragility.losses import (
    CrossEntropy,
    GapLoss,
    Hinge,
    Loss,
    MaxLogistic,
    SmoothedHinge,
    as_loss,
    cross_entropy,
)

from .reference import losses as reference

SMOOTH = [CrossEntropy(), SmoothedHinge(), SmoothedHinge(0.1), SmoothedHinge(3.0)]
LOSSES = [*SMOOTH, Hinge(), MaxLogistic()]


def problem(n_classes, seed=0, n=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    shape = n if n_classes == 2 else (n, n_classes)
    return 2.0 * rng.normal(size=shape), y


def literal(loss, scores, label):
    if isinstance(loss, CrossEntropy):
        return reference.cross_entropy(scores, label)
    if isinstance(loss, Hinge):
        return reference.hinge(scores, label)
    if isinstance(loss, MaxLogistic):
        return reference.max_logistic(scores, label)
    return reference.smoothed_hinge(scores, label, loss.smoothing)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_value(loss, n_classes):
    scores, y = problem(n_classes)
    rows = np.c_[np.zeros(y.size), scores] if n_classes == 2 else scores
    expected = [literal(loss, row, label) for row, label in zip(rows.tolist(), y, strict=True)]
    assert loss.value(scores, y) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_derivatives(loss, n_classes):
    scores, y = problem(n_classes, seed=1)
    step = 1e-6
    gradient, curvature = loss.gradient(scores, y), loss.curvature(scores, y)
    for c in range(1 if n_classes == 2 else n_classes):
        up, down = scores.copy(), scores.copy()
        column = (slice(None),) if n_classes == 2 else (slice(None), c)
        up[column] += step
        down[column] -= step
        slope = (loss.value(up, y) - loss.value(down, y)) / (2 * step)
        assert gradient[column] == pytest.approx(slope, abs=1e-6)
        bend = (loss.gradient(up, y) - loss.gradient(down, y)) / (2 * step)
        there = curvature if n_classes == 2 else curvature[:, :, c]
        assert there == pytest.approx(bend, abs=1e-4)  # no sample is this near a kink


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [3, 4])
def test_depends_on_differences_and_is_convex(loss, n_classes):
    scores, y = problem(n_classes, seed=2)
    shifted = scores + np.random.default_rng(0).normal(size=(y.size, 1))
    assert loss.value(shifted, y) == pytest.approx(loss.value(scores, y), rel=1e-12, abs=1e-12)
    gradient, curvature = loss.gradient(scores, y), loss.curvature(scores, y)
    assert np.abs(gradient.sum(axis=1)).max() <= 1e-12
    assert np.allclose(curvature, np.swapaxes(curvature, 1, 2), atol=1e-14)
    assert np.linalg.eigvalsh(curvature).min() >= -1e-12
    # The gradient mixes e_c - e_y: shares of the wrong classes that sum to at most the steepness.
    wrong = gradient.copy()
    wrong[np.arange(y.size), y] = 0.0
    assert wrong.min() >= 0.0
    assert wrong.sum(axis=1).max() <= loss.steepness + 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_two_classes_are_the_same_either_way(loss):
    scores, y = problem(2)
    both = np.c_[np.zeros(y.size), scores]
    assert loss.value(scores, y) == pytest.approx(loss.value(both, y), rel=1e-12, abs=1e-15)
    assert loss.gradient(scores, y) == pytest.approx(loss.gradient(both, y)[:, 1], abs=1e-12)
    assert loss.curvature(scores, y) == pytest.approx(loss.curvature(both, y)[:, 1, 1], abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_steepness_is_reached_far_out(loss, n_classes):
    scores = np.array([-1e3]) if n_classes == 2 else np.array([[1e3, 0.0, 0.0]])
    gradient = loss.gradient(scores, np.array([1]))
    assert np.abs(gradient).max() == pytest.approx(loss.steepness, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_smoothing_changes_the_hinge_by_half_its_width_at_most(n_classes):
    scores, y = problem(n_classes, seed=3)
    rows = np.c_[np.zeros(y.size), scores] if n_classes == 2 else scores
    hinge = np.array([reference.hinge(row, label) for row, label in zip(rows, y, strict=True)])
    for smoothing in (1.0, 0.1, 1e-6):
        below = hinge - SmoothedHinge(smoothing).value(scores, y)
        assert below.min() >= -1e-12
        assert below.max() <= smoothing / 2 + 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_huge_scores(loss, n_classes):
    scores, y = problem(n_classes)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for scale in (1e-300, 1e6, 1e300):
            assert np.isfinite(loss.value(scores * scale, y)).all()
            assert np.isfinite(loss.gradient(scores * scale, y)).all()
            assert np.isfinite(loss.curvature(scores * scale, y)).all()


def test_smoothing_must_be_positive():
    for smoothing in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match=r"smoothing must be (positive|finite)"):
            SmoothedHinge(smoothing)


def test_losses_are_values():
    assert SmoothedHinge(0.5) == SmoothedHinge(0.5) != SmoothedHinge()
    assert len({CrossEntropy(), CrossEntropy()}) == 1
    assert len({Hinge(), Hinge(), MaxLogistic()}) == 2
    assert issubclass(CrossEntropy, Loss)
    assert as_loss("hinge") == Hinge()
    assert as_loss("max_logistic") == MaxLogistic()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_worst_of_the_other_labels(loss, n_classes):
    scores, y = problem(n_classes, seed=4)
    rows = np.c_[np.zeros(y.size), scores] if n_classes == 2 else scores
    table = np.stack([loss.value(scores, np.full(y.size, c)) for c in range(n_classes)], axis=1)
    table[np.arange(y.size), y] = -np.inf
    assert loss.relabelled(scores, y).tolist() == table.max(axis=1).tolist()
    # What it adds beyond zero scores is bounded by the widest difference.
    zero = loss.value(0.0 * scores, y)
    assert loss.relabelled(0.0 * scores, y) == pytest.approx(zero)
    gained = loss.relabelled(scores, y) - loss.value(scores, y)
    assert (gained <= loss.relabelling * loss.steepness * np.ptp(rows, axis=1) + 1e-9).all()


def test_max_logistic_of_two_classes_is_cross_entropy():
    scores, y = problem(2)
    one, other = MaxLogistic(), CrossEntropy()
    assert one.is_smooth(2)
    for name in ("value", "gradient", "curvature"):
        expected = getattr(other, name)(scores, y)
        assert getattr(one, name)(scores, y) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("loss", [Hinge(), MaxLogistic()], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_gap_loss_is_the_largest_of_its_pieces(loss, n_classes):
    assert isinstance(loss, GapLoss)
    assert loss.is_smooth(n_classes) == (n_classes == 2 and loss == MaxLogistic())
    scores, y = problem(n_classes, seed=5)
    rows = np.c_[np.zeros(y.size), scores] if n_classes == 2 else scores
    every = np.arange(y.size)
    gaps = rows - rows[every, y][:, np.newaxis]
    wrong = np.arange(n_classes) != y[:, np.newaxis]
    pieces = np.where(wrong, loss.piece(gaps), -np.inf)
    assert loss.value(scores, y) == pytest.approx(np.maximum(pieces.max(axis=1), 0), abs=1e-15)
    step = 1e-6
    slope = (loss.piece(gaps + step) - loss.piece(gaps - step)) / (2 * step)
    assert loss.piece_slope(gaps) == pytest.approx(slope, abs=1e-8)
    bend = (loss.piece_slope(gaps + step) - loss.piece_slope(gaps - step)) / (2 * step)
    assert loss.piece_bend(gaps) == pytest.approx(bend, abs=1e-8)


@pytest.mark.parametrize("loss", [Hinge(), MaxLogistic()], ids=repr)
def test_a_softer_loss_is_near(loss):
    """A start is searched with it: it must be smooth, and not be far off."""
    scores, y = problem(4, seed=6)
    softer = loss.softened()
    assert softer.is_smooth(4)
    apart = np.abs(softer.value(scores, y) - loss.value(scores, y))
    assert apart.max() <= np.log(3)  # ln(1 + Σ exp) over ln(1 + max exp), at most


def test_only_hinges_end():
    for loss in LOSSES:
        far = float(loss.value(np.array([50.0]), np.array([1]))[0])
        assert (far == 0.0) == loss.zero_from_some_margin


class TestAtAPoint:
    """Value and derivatives of one point, against their definitions one by one."""

    @pytest.mark.parametrize("n_classes", [2, 3, 5])
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 800.0])
    def test_cross_entropy(self, n_classes, scale):
        scores, y = problem(n_classes, seed=6)
        scores = scale * scores
        rows = np.c_[np.zeros(y.size), scores] if n_classes == 2 else scores
        p = softmax(rows, axis=1)
        own = np.eye(n_classes)[y]
        slopes, bends = p - own, np.einsum("ni,ij->nij", p, np.eye(n_classes))
        bends -= np.einsum("ni,nj->nij", p, p)
        here = CrossEntropy().at(scores, y)
        value = logsumexp(rows, axis=1) - rows[np.arange(y.size), y]
        np.testing.assert_allclose(here.value, value, rtol=1e-15, atol=1e-15 * max(scale, 1.0))
        lower = np.tril_indices(n_classes)
        if n_classes == 2:
            slopes, bends, lower = slopes[:, 1], bends[:, 1, 1], None
        np.testing.assert_allclose(here.gradient, slopes, rtol=0, atol=1e-15)
        np.testing.assert_allclose(here.curvature(), bends, rtol=0, atol=1e-15)
        expected = bends[:, np.newaxis] if lower is None else bends[:, *lower]
        np.testing.assert_allclose(here.lower_curvature(), expected, rtol=0, atol=1e-15)

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_agrees_with_each_by_itself(self, loss, n_classes):
        scores, y = problem(n_classes, seed=7)
        here = loss.at(scores, y)
        np.testing.assert_allclose(here.curvature(), loss.curvature(scores, y), atol=1e-15)
        np.testing.assert_allclose(here.gradient, loss.gradient(scores, y), atol=1e-15)
        np.testing.assert_allclose(here.value, loss.value(scores, y), atol=1e-15)
        part = slice(10, 25)
        assert here.curvature(part).tolist() == here.curvature()[part].tolist()
        assert here.lower_curvature(part).tolist() == here.lower_curvature()[part].tolist()

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_exponentials_once_and_nothing_that_is_not_asked_for(self, n_classes, monkeypatch):
        counted = []

        class Counting:
            def __getattr__(self, name):
                if name in ("exp", "log1p"):
                    counted.append(name)
                return getattr(np, name)

        monkeypatch.setattr(cross_entropy, "np", Counting())
        scores, y = problem(n_classes)
        here = CrossEntropy().at(scores, y)
        assert counted == []
        _ = here.value
        assert sorted(counted) == ["exp", "log1p"]
        assert "gradient" not in vars(here)
        _ = here.gradient, here.curvature(), here.lower_curvature(), here.value
        assert sorted(counted) == ["exp", "log1p"]

    def test_a_loss_of_a_user_needs_no_more_than_its_three_methods(self):
        class Softplus(Loss):
            def value(self, scores, y):
                return np.logaddexp(0.0, -(2 * y - 1) * scores)

            def gradient(self, scores, y):
                return -(2 * y - 1) / (1 + np.exp((2 * y - 1) * scores))

            def curvature(self, scores, y):
                return 0.25 / np.cosh(scores / 2) ** 2

        scores, y = problem(2)
        mine, known = Softplus().at(scores, y), CrossEntropy().at(scores, y)
        np.testing.assert_allclose(mine.value, known.value, rtol=1e-12)
        np.testing.assert_allclose(mine.gradient, known.gradient, rtol=1e-12)
        np.testing.assert_allclose(mine.lower_curvature(), known.lower_curvature(), rtol=1e-12)


@pytest.mark.parametrize("shares", [[0.3, 0.7], [0.1, 0.2, 0.7]])
def test_the_best_constant_of_cross_entropy(shares):
    shares = np.array(shares)
    n_classes = shares.size
    best = CrossEntropy().best_constant(shares)

    def mean(scores):
        given = scores[1:] - scores[:1] if n_classes == 2 else np.tile(scores, (n_classes, 1))
        y = np.arange(n_classes)
        return shares @ CrossEntropy().value(np.tile(given, 2) if n_classes == 2 else given, y)

    assert mean(best) == pytest.approx(-shares @ np.log(shares), rel=1e-14)
    for change in 0.1 * np.random.default_rng(0).normal(size=(20, n_classes)):
        assert mean(best + change) >= mean(best)
    assert CrossEntropy().best_constant(np.array([0.0, 1.0])) is None
