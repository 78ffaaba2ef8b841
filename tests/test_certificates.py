"""Guarantees of fitted models against random and adversarial distributions."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fragility import fragility_index, loss_fragility, wasserstein_fragility_index
from fragility.ambiguity import KL, Ambiguity, Wasserstein, WorstLoss
from fragility.certificates import certify
from fragility.losses import CrossEntropy, Loss, SmoothedHinge

from .reference.losses import cross_entropy, smoothed_hinge

LOSSES = [CrossEntropy(), SmoothedHinge(), SmoothedHinge(0.3)]
PRICES = (1.0, 3.0, math.inf, 0.5)
DISTANCES = [
    Wasserstein(norm=norm, feature_weight=prices)
    for norm in (1, 2, math.inf)
    for prices in (None, PRICES)
]


def problem(n_classes=2, n=60, seed=0, noise=1.5, shift=0.0):
    """Data, weights with zeros among them, and a model that is not quite optimal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (1.0, 5.0, 0.3, 1.0) + rng.normal(size=4)
    logits = X / (1.0, 5.0, 0.3, 1.0) @ rng.normal(size=(4, n_classes))
    logits[:, 0] += shift
    y = (logits + noise * rng.gumbel(size=logits.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    weights = rng.integers(0, 4, n).astype(float)
    weights[:n_classes] = 1.0
    model = LogisticRegression(C=10.0 ** rng.uniform(-2, 1), max_iter=2000, tol=1e-2).fit(X, y)
    return X, y, weights, model


def certified(problem, slack=0.1, **options):
    """The certificate at a target that leaves some room."""
    X, y, weights, model = problem
    options = {"sample_weight": weights, "penalty": 0.02, **options}
    attained = certify(model, X, y, target=1e3, **options).attained_loss
    return certify(model, X, y, target=attained + slack, **options)


def losses_of(certificate, model, X, y):
    """By the loss's own definition, of any points."""
    scores = model.decision_function(X)
    return certificate.loss.value(scores, np.asarray(y))


def divergence(q, a):
    carried = q > 0
    return float(np.sum(q[carried] * np.log(q[carried] / a[carried])))


# Values


@pytest.mark.parametrize("n_classes", [2, 3])
def test_attained_loss_from_the_definition(n_classes):
    X, y, weights, model = problem(n_classes)
    rows = model.decision_function(X)
    rows = np.c_[np.zeros(len(X)), rows] if n_classes == 2 else rows
    for name, reference in (
        ("cross_entropy", cross_entropy),
        ("smoothed_hinge", lambda u, c: smoothed_hinge(u, c, 1.0)),
    ):
        losses = [reference(u, c) for u, c in zip(rows, y, strict=True)]
        result = certify(
            model, X, y, target=5.0, loss=name, penalty=0.25, sample_weight=weights * 7
        )
        assert result.losses == pytest.approx(losses, abs=1e-7)
        assert result.weights == pytest.approx(weights / weights.sum(), rel=1e-14)
        mean = np.average(losses, weights=weights)
        assert result.attained_loss == pytest.approx(mean + 0.25, abs=1e-8)
        assert result.headroom == result.target - result.attained_loss
        assert (result.penalty, result.n_samples) == (0.25, 60)
        assert result.classes.tolist() == list(range(n_classes))


def test_kl_fragility_is_the_index_of_the_losses():
    data = problem()
    result = certified(data, ambiguity="kl")
    expected = loss_fragility(
        result.losses, target=result.target - 0.02, sample_weight=result.weights
    )
    assert result.fragility == pytest.approx(expected, rel=1e-12)


# KL: reweighted samples


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("slack", [1e-3, 0.1, 0.5])
def test_no_reweighting_breaks_a_kl_certificate(loss, n_classes, slack):
    result = certified(problem(n_classes, seed=1), slack, loss=loss, ambiguity="kl")
    assert 0.0 < result.fragility < math.inf
    rng = np.random.default_rng(2)
    a, carried = result.weights, result.weights > 0

    def excess(q):
        bound = result.violation_bound(divergence(q, a))
        return q @ result.losses + result.penalty - bound

    for concentration in (0.01, 0.1, 1.0, 10.0, 1e3):
        for _ in range(200):
            q = np.zeros(a.size)
            q[carried] = rng.dirichlet(concentration * a[carried] * carried.sum() + 1e-9)
            assert excess(q) <= 1e-12
    for n in np.flatnonzero(carried):
        assert excess(np.eye(a.size)[n]) <= 1e-12
    for factor in np.geomspace(0.05, 20, 40):
        q = a * np.exp((result.losses - result.losses.max()) / (factor * result.fragility))
        assert excess(q / q.sum()) <= 1e-12
    worst = result.worst_case_weights()
    assert worst.sum() == pytest.approx(1.0, abs=1e-14)
    assert (worst[~carried] == 0).all()
    assert excess(worst) == pytest.approx(0.0, abs=1e-12)


def test_worst_case_weights_at_the_ends():
    data = problem()
    missed = certified(data, -0.1, ambiguity="kl")
    assert missed.fragility == math.inf
    assert missed.worst_case_weights() == pytest.approx(missed.weights, rel=1e-14)
    X, y = np.array([[-1.0], [1.0], [1.0], [5.0]]), np.array([0, 1, 1, 1])
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    safe = certify(model, X, y, target=2.0, ambiguity="kl", sample_weight=[1, 1, 3, 1])
    assert safe.fragility == 0.0
    assert safe.worst_case_weights() == pytest.approx([0.2, 0.2, 0.6, 0.0])
    assert safe.violation_bound(1e6) == 2.0 >= safe.losses.max()


def test_worst_case_weights_need_kl():
    with pytest.raises(ValueError, match=r"moves the samples and leaves their weights"):
        certified(problem()).worst_case_weights()


# Wasserstein: moved samples


def length(distance, move):
    price = np.ones(4) if distance.feature_weight is None else np.array(distance.feature_weight)
    with np.errstate(invalid="ignore"):
        return np.linalg.norm(np.where(move == 0, 0.0, price * move), ord=distance.norm, axis=1)


def steepest(distance, slope):
    """A move of price one along which a linear function grows by its dual norm."""
    mobility = distance.mobility(4)
    priced = slope * mobility
    if distance.norm == 2:
        move = priced / np.linalg.norm(priced)
    elif distance.norm == 1:
        move = np.eye(4)[np.abs(priced).argmax()] * np.sign(priced)
    else:
        move = np.sign(priced)
    return move * mobility


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
def test_no_transport_breaks_a_wasserstein_certificate(loss, n_classes, distance):
    data = X, y, _, model = problem(n_classes, seed=3)
    result = certified(data, loss=loss, ambiguity=distance)
    rng = np.random.default_rng(4)
    movable = distance.mobility(4) > 0
    table = np.concatenate([-model.coef_, model.coef_]) / 2 if n_classes == 2 else model.coef_
    for scale in (1e-3, 0.1, 1.0, 30.0, 1e4):
        for share in (0.05, 0.5, 1.0):
            for _ in range(8):
                move = scale * rng.normal(size=X.shape) * movable
                if rng.random() < 0.5:  # towards another class
                    other = rng.integers(0, n_classes, len(X))
                    ways = [steepest(distance, table[b] - table[a]) if a != b else np.zeros(4)
                            for a, b in zip(y, other, strict=True)]  # fmt: skip
                    move = scale * rng.random((len(X), 1)) * ways
                move[rng.random(len(X)) > share] = 0.0
                moved = losses_of(result, model, X + move, y)
                expected = result.weights @ moved + result.penalty
                price = result.weights @ length(distance, move)
                assert expected <= result.violation_bound(price) * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
def test_no_smaller_fragility_would_do(loss, n_classes, distance):
    data = X, y, _, model = problem(n_classes, seed=5)
    result = certified(data, loss=loss, ambiguity=distance)
    table = np.concatenate([-model.coef_, model.coef_]) / 2 if n_classes == 2 else model.coef_
    far, best = 1e7, 0.0
    for n in np.flatnonzero(result.weights):
        for other in set(range(n_classes)) - {y[n]}:
            way = far * steepest(distance, table[other] - table[y[n]])
            there = losses_of(result, model, (X[n] + way)[None], y[n : n + 1])[0]
            price = length(distance, way[None])[0]
            assert price == pytest.approx(far)
            best = max(best, (there - result.losses[n]) / price)
    assert best <= result.fragility * (1 + 1e-12)
    assert best == pytest.approx(result.fragility, rel=1e-5)


def test_pairs_of_classes_without_samples_do_not_count():
    X, y, _, model = problem(3)
    model.coef_ = np.array([[0.0, 0, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0]])
    assert certify(model, X, y, target=9.0).fragility == 2.0
    first = y == 0
    assert certify(model, X[first], y[first], target=9.0).fragility == 1.0
    assert certify(model, X, y, target=9.0, sample_weight=first).fragility == 1.0


def test_a_missed_target():
    data = X, y, _, model = problem()
    for ambiguity in ("kl", "wasserstein"):
        missed = certified(data, -1e-3, ambiguity=ambiguity)
        assert missed.headroom == pytest.approx(-1e-3)
        assert missed.fragility == missed.violation_bound(0.0) == math.inf
        assert missed.violation_bound(np.array([0.0, 2.0])).tolist() == [math.inf] * 2
        assert missed.index_bound().vacuous
        assert "no finite fragility" in missed.index_bound().reason
    # Met but for rounding: finite, and the bound is still one of the loss itself.
    attained = certify(model, X, y, target=9.0).attained_loss
    tight = certify(model, X, y, target=attained * (1 - 1e-12))
    assert tight.fragility == pytest.approx(np.linalg.norm(model.coef_))
    assert tight.violation_bound(0.0) == attained


def test_violation_bound_of_many_distances():
    result = certified(problem())
    found = result.violation_bound(np.array([[0.0, 0.5], [1.0, 2.0]]))
    assert found == pytest.approx(result.target + result.fragility * np.array([[0, 0.5], [1, 2]]))
    assert isinstance(result.violation_bound(0.5), float)


# Wrong labels


class Lopsided(Loss):
    """Mistakes on the first of two classes count half: not symmetric in the classes."""

    def value(self, scores, y):
        return np.where(y == 1, 1.0, 0.5) * CrossEntropy().value(scores, y)

    def gradient(self, scores, y):
        return np.where(y == 1, 1.0, 0.5) * CrossEntropy().gradient(scores, y)

    def curvature(self, scores, y):
        return np.where(y == 1, 1.0, 0.5) * CrossEntropy().curvature(scores, y)


@pytest.mark.parametrize(
    ("loss", "n_classes"),
    [(loss, n) for loss in [*LOSSES, SmoothedHinge(3.0)] for n in (2, 4)] + [(Lopsided(), 2)],
)
def test_no_relabelling_exceeds_its_bound(loss, n_classes):
    rng = np.random.default_rng(6)
    for seed in range(5):
        data = X, y, _, model = problem(n_classes, seed=seed, shift=rng.uniform(-3, 3))
        result = certified(data, loss=loss)
        a = result.weights
        others = np.array([losses_of(result, model, X, np.full(y.size, c))
                           for c in range(n_classes)])  # fmt: skip
        for _ in range(200):
            flipped = rng.random(y.size) < rng.random()
            new = np.where(flipped, rng.integers(0, n_classes, y.size), y)
            loss_then = a @ others[new, np.arange(y.size)] + result.penalty
            assert loss_then <= result.label_flip_bound(a[new != y].sum()) + 1e-12
        # The worst there is, at every rate: the largest gains first.
        gains = others.max(axis=0) - result.losses
        order = np.argsort(-gains)
        rates = np.minimum(np.cumsum(a[order]), 1.0)
        worst = result.attained_loss + np.cumsum((a * gains)[order])
        assert (worst <= result.label_flip_bound(rates) + 1e-12).all()


def test_the_flip_bound_is_attained():
    X, y = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([0, 1, 1, 1])
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[2.0]]), np.array([0.0])
    result = certify(model, X, y, target=2.0)
    wrong = certify(model, X, np.array([0, 1, 0, 0]), target=2.0)
    assert wrong.attained_loss == pytest.approx(result.label_flip_bound(0.5), rel=1e-14)
    # The hinge is as steep on both sides of zero: twice the score, for small scores.
    model.coef_ /= 1e6
    options = {"target": 2.0, "loss": SmoothedHinge()}
    result = certify(model, X, y, **options)
    wrong = certify(model, X, np.array([0, 1, 0, 0]), **options)
    growth = wrong.attained_loss - result.attained_loss
    assert growth == pytest.approx(result.label_flip_bound(0.5) - result.attained_loss, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
def test_flip_bound_is_never_above_the_one_from_norms(loss, n_classes, distance):
    """(φk + max|b|) for cross-entropy, (2φk + 2 max|b|) otherwise; fixed features join b."""
    X, y, _, model = problem(n_classes, seed=7)
    result = certify(model, X, y, target=9.0, loss=loss, ambiguity=distance)
    movable = distance.mobility(4) > 0
    phi = length(distance, X * movable).max()
    rest = X @ (model.coef_ * ~movable).T + model.intercept_
    apart = np.abs(rest).max() if n_classes == 2 else np.ptp(rest, axis=1).max()
    constant = 1.0 if loss == CrossEntropy() else 2.0
    theory = constant * (phi * result.fragility + apart)
    assert result.label_flip_bound(1.0) - result.attained_loss <= theory * (1 + 1e-12)


def test_erratum_6_flips_cost_more_than_the_paper_says_with_an_intercept():
    X = np.array([[0.1], [-0.1], [0.1], [-0.1]] * 5)
    y = np.array([1] * 19 + [0])
    model = LogisticRegression(C=1e-4).fit(X, y)
    result = certify(model, X, y, target=1.0)
    flipped = y.copy()
    flipped[0] = 0
    growth = certify(model, X, flipped, target=1.0).attained_loss - result.attained_loss
    without_intercept = result.fragility * 0.1 * 0.05
    assert growth > 100 * without_intercept
    assert growth <= result.label_flip_bound(0.05) - result.attained_loss + 1e-15


# Index bounds


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("shift", [0.0, 2.0, 5.0])
@pytest.mark.parametrize("distance", [*DISTANCES, KL()], ids=repr)
def test_measured_indices_respect_their_bounds(loss, shift, distance):
    rng = np.random.default_rng(8)
    said = 0
    for seed in range(8):
        data = X, y, weights, model = problem(n=200, seed=seed, shift=shift, noise=3.0)
        result = certified(
            data, 10.0 ** rng.uniform(-3, -0.5), loss=loss, ambiguity=distance, penalty=0.01
        )
        found = result.index_bound()
        room, scores = result.target - 0.01, model.decision_function(X)
        least = min(np.average(y == c, weights=weights) for c in (0, 1))
        if distance == KL():
            assert found.kind == "kl"
            assert found.target == pytest.approx(room / (2 * least))
            expected = fragility_index(y, expit(scores), target=found.target, sample_weight=weights)
            assert found.bound == result.fragility / 2
            assert found.vacuous == (found.measured == 0.0)
        else:
            norm = distance.dual_norms(model.coef_)[0]
            assert (found.kind, found.target) == ("wasserstein", room)
            expected = wasserstein_fragility_index(
                y, scores, weight_norm=norm, target=room, sample_weight=weights
            )
            if not found.vacuous:
                assert found.bound == pytest.approx(norm / 2)
            if loss == CrossEntropy() and room < 1:
                assert not found.vacuous
        assert found.measured == pytest.approx(expected, rel=1e-9, abs=1e-300)
        assert found.measured <= found.bound * (1 + 1e-9)
        assert bool(found.reason) == found.vacuous
        said += not found.vacuous
    assert said or distance == KL()


def at_scores(scores, y, **options):
    model = SimpleNamespace(
        coef_=np.array([1.0]), intercept_=0.0, classes_=np.array([0, 1]), fit=None
    )
    return certify(model, np.asarray(scores, dtype=float)[:, None], y, **options)


def test_balanced_kl_bound_says_something():
    result = at_scores([-2, 1.5, -1, 2], [0, 0, 1, 1], target=1.1, ambiguity="kl")
    found = result.index_bound()
    assert found.target == 1.1  # at equal shares that of the training
    assert found.vacuous
    result = at_scores([-9] * 9 + [4] + [9] * 9 + [-4], [0] * 10 + [1] * 10,
                       target=0.6, ambiguity="kl")  # fmt: skip
    found = result.index_bound()
    assert not found.vacuous
    assert 0 < found.measured <= found.bound == result.fragility / 2


def test_smoothing_narrows_the_condition_of_the_hinge():
    """A target of twice the smaller share does for the hinge, not for the smoothed one."""
    scores, y = [-1.0] * 98 + [-1.4] * 2, [0] * 98 + [1] * 2
    result = at_scores(scores, y, target=0.04, loss="smoothed_hinge")
    assert result.headroom > 0
    assert result.target <= 2 * 0.02
    found = result.index_bound()
    assert found.vacuous
    assert found.bound == found.measured == math.inf
    assert "mean ranking error exceeds 0.04" in found.reason
    # Cross-entropy never needs a condition: such a model has more loss than ranking error.
    entropy = at_scores(scores, y, target=10.0)
    assert entropy.attained_loss > expit(-1.0) - expit(-1.4)


class Elsewhere(Ambiguity):
    def fragility(self, profile, room):
        return 1.0

    def worst_loss(self, profile, radius):
        return WorstLoss(profile.mean + radius, 1.0, profile.mean)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": 1.5}, "no ranking error exceeds 1, so the index at 1.5 is 0"),
        ({"target": 1.5, "ambiguity": "kl"}, "so the index at 1.5 is 0 for every model"),
        ({"target": 0.8, "ambiguity": "kl"}, "no ranking error exceeds 0.8, so the index there"),
        (
            {"target": 0.8, "ambiguity": "kl", "loss": SmoothedHinge(20.0)},
            "below 0 or 2p - 1",
        ),
        ({"target": 0.8, "sample_weight": [1, 1, 0, 0]}, "only one class has samples"),
        ({"target": 0.8, "ambiguity": Elsewhere()}, "none is known under"),
    ],
)
def test_vacuous_index_bounds_say_why(options, reason):
    found = at_scores([-1.0, 1.2, 0.5, 2.0], [0, 0, 1, 1], **options).index_bound()
    assert found.vacuous
    assert reason in found.reason


def test_one_index_bound_is_for_two_classes():
    found = certified(problem(3)).index_bound()
    assert found.vacuous
    assert found.bound == math.inf
    assert math.isnan(found.measured)
    assert found.reason == "it is one of pairs; there are 3 classes: see index_bounds()"
