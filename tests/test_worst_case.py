"""Fragility and worst losses of given models: labels that move, and balls around the data."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from fragility import fragility_index, wasserstein_fragility_index
from fragility.ambiguity import KL, LossProfile, Wasserstein
from fragility.certificates import certify
from fragility.losses import CrossEntropy, SmoothedHinge

from .instances import instances
from .reference import worst_case as reference
from .test_certificates import LOSSES, at_scores, certified, losses_of, problem


def table(seed, n=None, n_classes=None):
    """Losses of a few samples under each label, with ties; weights, labels, slope and price."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 7) if n is None else n
    n_classes = rng.integers(2, 4) if n_classes is None else n_classes
    losses = rng.exponential(size=(n, n_classes))
    if seed % 3 == 0:
        losses = np.ceil(2 * losses) / 2
    weights = rng.dirichlet(np.full(n, 0.7)) + 1e-3
    own = rng.integers(0, n_classes, n)
    slope = rng.choice([0.0, 0.3, 1.0])
    return losses, own, weights / weights.sum(), slope, rng.choice([0.1, 1.0, 5.0])


def profile_of(losses, own, weights, slope):
    rows = np.arange(len(own))
    others = losses.copy()
    others[rows, own] = -math.inf
    return LossProfile(losses[rows, own], weights, slope, others.max(axis=1))


def moving(seed):
    losses, own, weights, slope, price = table(seed)
    return profile_of(losses, own, weights, slope), Wasserstein(label_cost=price)


def reweighted(seed):
    losses, own, weights, _, _ = table(seed)
    return LossProfile(losses[np.arange(len(own)), own], weights), KL()


CASES = [
    *(moving(seed) for seed in range(instances(20))),
    *(reweighted(seed) for seed in range(instances(20))),
]


# Wasserstein, against transport plans


@pytest.mark.parametrize("seed", range(instances(20)))
def test_worst_loss_is_that_of_the_best_transport_plan(seed):
    losses, own, weights, slope, price = table(seed)
    profile = profile_of(losses, own, weights, slope)
    for radius in (0.0, 1e-3, 0.05, 0.3, 2.0, 20.0):
        expected = reference.transported_loss(losses, own, weights, price, slope, radius)
        found = Wasserstein(label_cost=price).worst_loss(profile, radius)
        assert found.value == pytest.approx(expected, rel=1e-7, abs=1e-9)
        assert found.value == pytest.approx(found.level + found.multiplier * radius, rel=1e-14)
        still = Wasserstein().worst_loss(profile, radius)
        assert still == pytest.approx((profile.mean + slope * radius, slope, profile.mean))


@pytest.mark.parametrize("seed", range(instances(20)))
@pytest.mark.parametrize("radius", [0.02, 0.5, 5.0, math.inf])
def test_fragility_is_that_of_the_worst_transport_plan(seed, radius):
    losses, own, weights, slope, price = table(seed)
    profile = profile_of(losses, own, weights, slope)
    for slack in (-0.1, 1e-4, 0.03, 0.3, 2.0):
        room = profile.mean + slack
        expected = reference.transported_fragility(losses, own, weights, price, slope, room, radius)
        found = Wasserstein(label_cost=price).fragility_within(profile, room, radius)
        if expected == math.inf or radius < math.inf or slope == 0.0:
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)
        else:  # plans of finite cost come close to the slope, and no closer
            assert found == pytest.approx(max(expected, slope), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge()], ids=repr)
@pytest.mark.parametrize("price", [0.3, 2.0])
def test_features_and_labels_that_move_together(loss, price):
    """A plan over points of the line times the labels; far points make the slope."""
    x, y, far = np.array([-1.5, -0.2, 0.4, 2.0]), np.array([0, 1, 0, 1]), 300.0
    grid = np.unique(np.r_[x, -far, far, np.linspace(-4, 4, 41)])
    result = at_scores(x, y, target=3.0, loss=loss, ambiguity=Wasserstein(label_cost=price))
    there = np.array([loss.value(grid, np.full(grid.size, c)) for c in (0, 1)])
    cost = np.abs(x[:, None, None] - grid) + price * (y[:, None, None] != np.array([[0], [1]]))
    rows = np.kron(np.eye(4), np.ones(there.size))
    for radius in (0.05, 0.4, 1.5):
        found = linprog(-np.tile(there.ravel(), 4), cost.reshape(1, -1), [radius], rows, [0.25] * 4)
        assert -found.fun <= result.worst_loss(radius) + 1e-9
        assert -found.fun == pytest.approx(result.worst_loss(radius), abs=0.02)


@pytest.mark.slow
def test_extreme_scales_and_weights_exactly():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n, price = rng.integers(1, 40), 10.0 ** rng.uniform(-6, 6)
        losses = 10.0 ** rng.uniform(-12, 6, n)
        relabelled = np.where(rng.random(n) < 0.2, losses, 10.0 ** rng.uniform(-12, 6, n))
        weights = 10.0 ** rng.uniform(-9, 0, n)
        weights /= weights.sum()
        profile = LossProfile(losses, weights, rng.choice([0.0, 1e-9, 1.0, 1e5]), relabelled)
        room = profile.mean * (1.0 + 10.0 ** rng.uniform(-6, 2))
        ambiguity = Wasserstein(label_cost=price)

        def level(k, price=price, parts=(losses, relabelled, weights)):
            return reference.relabelled_sum(*parts, Fraction(float(k)) * Fraction(price))

        k = ambiguity.fragility(profile, room)
        # No smaller one would do, up to the rounding that the room itself has.
        rounding = Fraction(1e-15) * Fraction(profile.mean + room)
        assert level(k * (1 + 1e-14)) <= Fraction(room) + rounding
        if k > profile.slope:
            assert level(k * (1 - 1e-14)) >= Fraction(room) - rounding
        for radius in 10.0 ** rng.uniform(-9, 6, 5):
            found = ambiguity.worst_loss(profile, radius)

            def value(k, radius=radius, level=level):
                return float(Fraction(float(k)) * Fraction(radius) + level(k))

            # The multiplier is rounded, and with it the price of the largest gains.
            given = {"rel": 1e-13, "abs": 1e-15 * relabelled.max()}
            assert found.value == pytest.approx(value(found.multiplier), **given)
            assert found.level == pytest.approx(float(level(found.multiplier)), **given)
            for factor in (1e-3, 0.9, 0.999, 1.001, 1.1, 1e3):
                other = max(found.multiplier * factor, profile.slope)
                assert found.value <= value(other) * (1 + 1e-13) + given["abs"]


def test_gains_that_tie_and_rooms_at_the_corners():
    profile = LossProfile(np.zeros(4), np.full(4, 0.25), 0.0, np.array([1.0, 2.0, 2.0, 3.0]))
    ambiguity = Wasserstein(label_cost=2.0)
    for room, expected in [
        (0.0, 1.5), (0.25, 1.0), (0.5, 5 / 6), (1.0, 0.5), (1.5, 0.25), (2.0, 0.0), (9.0, 0.0)
    ]:  # fmt: skip
        assert ambiguity.fragility(profile, room) == pytest.approx(expected, rel=1e-15)
    # The smallest of the multipliers where a whole interval would do.
    for radius, multiplier in [(0.0, 1.5), (0.49, 1.5), (0.5, 1.0), (1.4, 1.0), (1.5, 0.5), (2, 0)]:
        assert ambiguity.worst_loss(profile, radius).multiplier == multiplier
    steep = LossProfile(np.zeros(4), np.full(4, 0.25), 1.2, np.array([1.0, 2.0, 2.0, 3.0]))
    assert ambiguity.fragility(steep, 0.0) == 1.5
    assert ambiguity.fragility(steep, 0.15) == 1.2
    assert ambiguity.fragility(steep, -0.1) == math.inf


def test_a_room_missed_by_rounding_is_met():
    profile = LossProfile(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 0.1, np.array([4.0, 2.0]))
    for price, expected in [(math.inf, 0.1), (1.0, 3.0)]:
        ambiguity = Wasserstein(label_cost=price)
        assert ambiguity.fragility(profile, 2.0 * (1 - 1e-9)) == expected
        assert ambiguity.fragility_within(profile, 2.0 * (1 - 1e-9), 1e-6) == expected
        assert ambiguity.fragility(profile, 2.0 * (1 - 1e-7)) == math.inf
        assert ambiguity.fragility_within(profile, 2.0 * (1 - 1e-7), 1e-6) == math.inf


def test_labels_that_move_need_their_losses():
    with pytest.raises(ValueError, match="LossProfile needs `relabelled`"):
        Wasserstein(label_cost=1.0).fragility(LossProfile(np.ones(2), np.full(2, 0.5)), 2.0)
    assert Wasserstein(label_cost=1.0).moves_labels
    assert not Wasserstein().moves_labels
    assert not KL().moves_labels


# KL


@pytest.mark.parametrize("seed", range(instances(20)))
def test_worst_reweighting_by_both_sides(seed):
    """Weights that attain the value, and a multiplier that excludes more."""
    profile, ambiguity = reweighted(seed)
    a = profile.weights
    for radius in (1e-12, 1e-6, 1e-3, 0.1, 0.7, 3.0):
        found = ambiguity.worst_loss(profile, radius)
        q = ambiguity.tilt(profile.losses, a, found.multiplier)
        assert q @ profile.losses == pytest.approx(found.value, rel=1e-12)
        assert float(reference.divergence(q, a)) <= radius * (1 + 1e-9)
        level = reference.soft_maximum(profile.losses, a, found.multiplier)
        assert found.level == pytest.approx(float(level), rel=1e-13)
        assert found.value == pytest.approx(float(level + found.multiplier * radius), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_optimiser_finds_a_worse_reweighting(seed):
    losses, own, weights, _, _ = table(seed, n=4)
    losses = losses[np.arange(4), own]
    for radius in (0.01, 0.2, 1.0):
        expected = reference.reweighted_loss(losses, weights, radius)
        found = KL().worst_loss(LossProfile(losses, weights), radius).value
        assert found == pytest.approx(expected, rel=1e-5)


def test_reweighting_at_extreme_scales():
    rng = np.random.default_rng(2)
    for _ in range(60):
        n = rng.integers(2, 25)
        losses = 10.0 ** rng.uniform(-12, 6, n)
        if rng.random() < 0.3:  # all but alike
            losses = 1.0 + losses * 1e-13
        weights = 10.0 ** rng.uniform(-9, 0, n)
        weights /= weights.sum()
        spread = float(np.ptp(losses))
        for radius in 10.0 ** rng.uniform(-9, 1.5, 3):
            found = KL().worst_loss(LossProfile(losses, weights), radius)

            def value(k, losses=losses, weights=weights, radius=radius):
                return reference.soft_maximum(losses, weights, k) + reference.mpmath.mpf(k) * radius

            assert float(value(found.multiplier) - found.value) == pytest.approx(
                0.0, abs=2e-15 * losses.max() + 1e-13 * spread
            )
            for factor in (0.5, 1 - 1e-6, 1 + 1e-6, 2.0):
                if found.multiplier:
                    assert value(found.multiplier * factor) >= value(found.multiplier) - (
                        1e-15 * spread
                    )


def test_the_ends_of_reweighting():
    profile = LossProfile(np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.3, 0.2]))
    assert KL().worst_loss(profile, 0.0) == (0.5, math.inf, 0.5)
    for radius in (math.log(2.0), 0.8, 1e9):
        assert KL().worst_loss(profile, radius) == (1.0, 0.0, 1.0)
    below = KL().worst_loss(profile, math.log(2.0) * (1 - 1e-13))
    assert 0.999999 < below.value <= 1.0
    alike = LossProfile(np.full(3, 0.7), profile.weights)
    assert KL().worst_loss(alike, 0.0) == KL().worst_loss(alike, 1.0) == (0.7, 0.0, 0.7)
    # The largest loss by a hair, and of hardly any weight.
    close = LossProfile(np.array([0.0, 1.0 - 1e-15, 1.0]), np.array([0.5, 0.5 - 1e-12, 1e-12]))
    for radius in (0.6, 0.7, 20.0, 27.0, 28.0):
        found = KL().worst_loss(close, radius)
        assert 0.9 < found.value <= 1.0
        assert found.multiplier >= 0.0
    tiny = LossProfile(profile.losses * 1e-200, profile.weights)
    assert KL().worst_loss(tiny, 0.1).value == pytest.approx(
        KL().worst_loss(profile, 0.1).value * 1e-200
    )


# Balls, under both


@pytest.mark.parametrize(("profile", "ambiguity"), CASES)
def test_identities(profile, ambiguity):
    radii = (1e-4, 0.01, 0.2, 1.0, 10.0, 1e4)
    worst = [ambiguity.worst_loss(profile, radius) for radius in radii]
    assert ambiguity.worst_loss(profile, 0.0).value == pytest.approx(profile.mean, rel=1e-14)
    for radius, at in zip(radii, worst, strict=True):
        # The multiplier is the slope of the worst loss, a concave function of the radius.
        further = ambiguity.worst_loss(profile, radius * 1.001)
        nearer = ambiguity.worst_loss(profile, radius * 0.999)
        assert further.value <= at.value + 0.001 * radius * at.multiplier + 1e-13
        assert nearer.value <= at.value - 0.001 * radius * at.multiplier + 1e-13
        # The level as a target has the multiplier as its fragility.
        if at.multiplier > 0.0 and at.level > profile.mean + 1e-6:
            k = ambiguity.fragility(profile, at.level)
            assert k == pytest.approx(at.multiplier, rel=1e-7)
    for slack in (1e-3, 0.05, 0.3, 3.0):
        room = profile.mean + slack
        everywhere = ambiguity.fragility(profile, room)
        assert ambiguity.fragility_within(profile, room, math.inf) == everywhere
        # Where features move the slope is never quite reached in a ball.
        assert ambiguity.fragility_within(profile, room, 1e12) == pytest.approx(
            everywhere, abs=1e-10
        )
        ks = [ambiguity.fragility_within(profile, room, radius) for radius in radii]
        assert ks == sorted(ks)
        assert ks[-1] <= everywhere
        for radius, at, k in zip(radii, worst, ks, strict=True):
            assert (k <= 1e-12) == (at.value <= room + 1e-12 * radius)
            # The guarantee, all over the ball, and no smaller one.
            reach = np.geomspace(1e-6 * radius, radius, 20)
            found = np.array([ambiguity.worst_loss(profile, d).value for d in reach])
            assert (found <= room + k * reach + 1e-12).all()
            if k > 0.0 and k < everywhere:
                assert at.value == pytest.approx(room + k * radius, rel=1e-12)
            assert ambiguity.fragility_within(profile, profile.mean - 0.1, radius) == math.inf


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [moving, reweighted])
def test_balls_by_brute_force_over_both_multipliers(seed, make):
    profile, ambiguity = make(seed)

    def level(k):
        if make is reweighted:
            return float(reference.soft_maximum(profile.losses, profile.weights, k))
        price = Fraction(k) * Fraction(ambiguity.label_cost)
        losses = profile.losses, profile.relabelled, profile.weights
        return float(reference.relabelled_sum(*losses, price))

    for slack, radius in [(0.05, 0.02), (0.05, 0.3), (0.3, 0.3), (0.3, 2.0)]:
        room = profile.mean + slack
        k = ambiguity.fragility_within(profile, room, radius)
        # Fine around the two multipliers that the claim is about, coarse elsewhere.
        ends = [
            ambiguity.fragility(profile, room),
            ambiguity.worst_loss(profile, radius).multiplier,
        ]
        grid = np.concatenate([np.geomspace(1e-3, 50.0, 60), ends, np.multiply(ends, 1 + 1e-6)])
        found = reference.fragility_on_a_grid(level, room, radius, profile.slope, grid)
        assert found == pytest.approx(k, abs=2e-4 * max(1.0, *ends))
        assert found >= k - 1e-9


# Certificates


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("radius", [0.2, math.inf])
def test_no_relabelled_and_moved_samples_break_a_certificate(loss, n_classes, radius):
    rng = np.random.default_rng(5)
    data = X, y, _, model = problem(n_classes, seed=4)
    for price in (0.2, 3.0):
        result = certified(data, loss=loss, ambiguity=Wasserstein(label_cost=price), radius=radius)
        still = certified(data, loss=loss)
        if radius == math.inf:
            assert result.fragility >= still.fragility
        a = result.weights
        every = [losses_of(result, model, X, np.full(y.size, c)) for c in range(n_classes)]
        gains = np.max(every, axis=0) - result.losses
        for _ in range(300):
            other = np.argmax(every, axis=0)
            new = np.where((gains > rng.exponential()) & (rng.random(y.size) < 0.9), other, y)
            move = rng.normal(size=X.shape) * rng.choice([0.0, 0.1, 1.0])
            move[rng.random(y.size) < rng.random()] = 0.0
            cost = a @ (np.linalg.norm(move, axis=1) + price * (new != y))
            after = a @ losses_of(result, model, X + move, new) + result.penalty
            assert after <= result.violation_bound(cost) + 1e-12
            assert after <= result.worst_loss(cost) + 1e-12


def test_relabelled_losses_and_every_pair_of_classes():
    X, y, _, model = problem(4, seed=9)
    model.coef_[2:] = model.coef_[0] + np.array([[2.0], [-2.0]])  # the pair furthest apart
    few = y < 2  # labels of the other two classes are a move away
    ambiguity = Wasserstein(label_cost=0.7)
    result = certify(model, X, y, target=9.0, sample_weight=few, ambiguity=ambiguity)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    norms = [np.linalg.norm(model.coef_[i] - model.coef_[j]) for i, j in pairs]
    assert np.argmax(norms) == pairs.index((3, 2))
    far = certify(model, X, y, target=1e6, sample_weight=few, ambiguity=ambiguity)
    assert far.fragility == pytest.approx(max(norms))
    other = [max(losses_of(result, model, X[n : n + 1], [c])[0] for c in range(4) if c != y[n])
             for n in np.flatnonzero(few)]  # fmt: skip
    own = result.losses[few]
    a = np.full(few.sum(), 1.0 / few.sum())
    for radius in (0.0, 0.1, 5.0):
        grid = np.r_[max(norms) + np.linspace(0, 100, 20_001)]
        values = [k * radius + a @ np.maximum(own, np.array(other) - 0.7 * k) for k in grid]
        assert result.worst_loss(radius) == pytest.approx(min(values), rel=1e-4)
        assert result.worst_loss(radius) <= min(values) + 1e-12


@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein(), Wasserstein(label_cost=0.5)], ids=repr)
def test_certificates_inside_a_ball(ambiguity):
    data = X, y, weights, model = problem(seed=6)
    options = {"ambiguity": ambiguity, "sample_weight": weights, "penalty": 0.02}
    everywhere = certified(data, 0.1, ambiguity=ambiguity)
    assert everywhere.radius == math.inf
    for radius in (1e-3, 0.05, 0.5, 1e6):
        within = certify(model, X, y, target=everywhere.target, radius=radius, **options)
        assert within.radius == radius
        assert within.fragility <= everywhere.fragility
        near = np.geomspace(1e-9, radius, 200)
        assert (within.worst_loss(near) <= within.violation_bound(near) + 1e-12).all()
        assert within.worst_loss(near[5]) == everywhere.worst_loss(near)[5]
        assert within.violation_bound(radius * 1.01) == math.inf
        assert within.violation_bound(np.array([0.0, radius * 2])).tolist() == [
            everywhere.target, math.inf,
        ]  # fmt: skip
        assert f", up to {radius:.6g} of them" in repr(within)
        assert pickle.loads(pickle.dumps(within)).worst_loss(0.1) == within.worst_loss(0.1)
        found, plain = within.index_bound(), everywhere.index_bound()
        assert (found.bound, found.measured) == pytest.approx((plain.bound, plain.measured))
    assert "up to" not in repr(everywhere)


def test_worst_case_weights_inside_a_ball():
    data = problem(seed=6)
    for slack in (0.02, 0.1, 0.4):
        for radius in (1e-3, 0.05, 0.3, 5.0):
            within = certified(data, slack, ambiguity="kl", radius=radius)
            carried = within.weights > 0
            q = within.worst_case_weights()
            far = float(reference.divergence(q[carried], within.weights[carried]))
            assert far <= radius * (1 + 1e-9)
            loss = q @ within.losses + within.penalty
            if within.fragility > 0.0:
                assert loss == pytest.approx(within.violation_bound(min(far, radius)), rel=1e-12)
            else:
                assert loss == pytest.approx(within.worst_loss(radius), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein(1), Wasserstein(label_cost=0.1)], ids=repr)
@pytest.mark.parametrize("radius", [0.01, math.inf])
def test_indices_respect_their_bounds(loss, ambiguity, radius):
    for seed in range(6):
        data = X, y, weights, model = problem(n=200, seed=seed, shift=2.0, noise=3.0)
        result = certified(data, 0.05, loss=loss, ambiguity=ambiguity, radius=radius)
        found = result.index_bound()
        scores = model.decision_function(X)
        if ambiguity == KL():
            p = 1 / (1 + np.exp(-scores))
            expected = fragility_index(y, p, target=found.target, sample_weight=weights)
        else:
            norm = ambiguity.dual_norms(model.coef_)[0]
            expected = wasserstein_fragility_index(
                y, scores, weight_norm=norm, target=found.target, sample_weight=weights
            )
            assert found.vacuous or found.bound == pytest.approx(norm / 2)
        assert found.measured == pytest.approx(expected, rel=1e-9, abs=1e-300)
        assert found.measured <= found.bound * (1 + 1e-9)


def test_models_bring_the_ball_they_were_trained_in():
    X, y, _, model = problem()
    own = SimpleNamespace(
        coef_=model.coef_, intercept_=model.intercept_, classes_=model.classes_, target_=0.9,
        loss="cross_entropy", ambiguity=KL(), penalty=None, alpha=0.0, radius=0.3,
    )  # fmt: skip
    # A parameter `radius` alone says nothing: under DRO it is no limit of the certificate.
    assert certify(own, X, y).radius == math.inf
    own._certificate_radius = 0.3
    assert certify(own, X, y).radius == 0.3
    assert certify(own, X, y, radius=2).radius == 2.0
    assert certify(own, X, y, radius=math.inf).radius == math.inf
    assert certify(own, X, y, ambiguity="wasserstein").radius == math.inf
    with pytest.raises(ValueError, match=r"radius must be .* or inf; got 0\. Leave it out"):
        certify(own, X, y, radius=0)
    for wrong in (-1.0, math.nan, "far"):
        with pytest.raises(ValueError, match="radius must be"):
            certify(own, X, y, radius=wrong)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="radius must be finite and zero or more"):
            certify(own, X, y).worst_loss(wrong)


def test_strict_floating_point():
    X, y, weights, model = problem(3)
    with np.errstate(all="raise"):
        for ambiguity in (KL(), Wasserstein(), Wasserstein(label_cost=1e-300)):
            for scale in (1e-3, 1e3):
                result = certify(
                    model, X * scale, y, target=2e3, ambiguity=ambiguity, radius=0.1,
                    sample_weight=weights * 1e-300,
                )  # fmt: skip
                repr(result)
                assert np.isfinite(result.worst_loss([0.0, 1e-300, 1.0, 1e300])).all()
    large = LogisticRegression().fit(X, y > 0)
    large.coef_ *= 1e308
    with pytest.raises(ValueError, match="overflow on these samples; scale the features"):
        certify(large, X, y > 0, target=1.0, ambiguity=Wasserstein(label_cost=1.0))
