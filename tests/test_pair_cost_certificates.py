"""Certificates of losses with costs of pairs: no adversary breaks them, and one comes near."""

from itertools import combinations, permutations, product
from math import inf

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fragility import KL, Wasserstein, certify
from fragility.losses import CrossEntropy, Hinge, MaxLogistic, SmoothedHinge

from .instances import instances
from .reference.linear import costly_value

LOSSES = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "max_logistic": MaxLogistic,
    "smoothed_hinge": SmoothedHinge,
}
ROWS = list(product(LOSSES, [(1, inf), (2, inf), (inf, inf), (2, 0.3)], [2, 3]))
each_row = pytest.mark.parametrize(("loss", "transport", "n_classes"), ROWS, ids=str)
ORDER = {1: 1, 2: 2, inf: np.inf}
N, D = 12, 4
#: Models that are attacked in each row.
INSTANCES = instances(20)


class Instance:
    """A model at random, samples of some classes, weights and costs."""

    def __init__(self, loss, n_classes, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.loss, self.n_classes = loss, n_classes
        n_rows = 1 if n_classes == 2 else n_classes
        self.coef = rng.normal(size=(n_rows, D)) * np.exp(rng.normal())
        self.intercept = rng.normal(size=n_rows)
        self.X = rng.normal(size=(N, D))
        # At times some class has no sample: what it costs to take it for others does not count.
        self.y = rng.integers(0, n_classes - (seed % 3 == 0), N)
        self.weights = rng.uniform(0.5, 2.0, N)
        self.weights /= self.weights.sum()
        self.costs = np.exp(rng.normal(size=(n_classes, n_classes))) * (1 - np.eye(n_classes))

    @property
    def model(self):
        model = LogisticRegression()
        model.classes_ = np.arange(self.n_classes)
        model.coef_, model.intercept_, model.n_features_in_ = self.coef, self.intercept, D
        return model

    def certified(self, ambiguity, room=0.1):
        self.start = self.mean(self.X, self.y)
        return certify(
            self.model,
            self.X,
            self.y,
            target=self.start + room,
            loss=LOSSES[self.loss](pair_cost=self.costs),
            ambiguity=ambiguity,
            sample_weight=self.weights,
        )

    def losses(self, X, y):
        """Of samples with labels; the wrong classes are those after the label, in a circle."""
        y, steps = np.asarray(y), np.arange(1, self.n_classes)
        scores = X @ self.coef.T + self.intercept
        scores = np.c_[np.zeros(len(X)), scores] if self.n_classes == 2 else scores
        wrong = (y[:, None] + steps) % self.n_classes
        gap = np.take_along_axis(scores, wrong, axis=1) - np.take_along_axis(scores, y[:, None], 1)
        return costly_value(self.loss, gap, self.costs[y[:, None], wrong])

    def mean(self, X, y):
        return self.weights @ self.losses(X, y)

    def row(self, c):
        if self.n_classes == 2:
            return self.coef[0] * (c == 1)
        return self.coef[c]

    def steepest_move(self, true, other, norm):
        """The move of length one that raises u_other - u_true most."""
        slope = self.row(other) - self.row(true)
        if norm == 1:
            return np.sign(slope) * (np.arange(D) == np.abs(slope).argmax())
        return slope / np.linalg.norm(slope) if norm == 2 else np.sign(slope)


@pytest.mark.slow
@each_row
def test_no_adversary_breaks_a_certificate(loss, transport, n_classes):
    norm, label_cost = transport
    for seed in range(INSTANCES):
        instance = Instance(loss, n_classes, seed)
        certificate = instance.certified(Wasserstein(norm, label_cost))
        found = [*attacks(instance, norm, label_cost)]
        far, came = costs_and_losses(instance, found, norm, label_cost)
        assert (came <= certificate.violation_bound(far) * (1 + 1e-9)).all()
        assert (came <= certificate.worst_loss(far) * (1 + 1e-9)).all()


def costs_and_losses(instance, attacks, norm, label_cost):
    """How far each attack is from the samples, and the mean loss there."""
    X, y = (np.stack(parts) for parts in zip(*attacks, strict=True))
    moved = np.linalg.norm(X - instance.X, ord=ORDER[norm], axis=2)
    flips = np.where(y != instance.y, label_cost, 0.0)
    losses = instance.losses(X.reshape(-1, D), y.ravel()).reshape(y.shape)
    return (moved + flips) @ instance.weights, losses @ instance.weights


def attacks(instance, norm, label_cost):
    """Random moves, moves along the steepest pair of each sample, ascent; and flips of labels."""
    rng, X, y = instance.rng, instance.X, instance.y
    labels = [y]
    if label_cost < inf:
        labels += [rng.integers(0, instance.n_classes, N), worst_labels(instance, X)]
    for given in labels:
        yield X, given
        yield X + rng.normal(size=X.shape) * np.exp(rng.normal(size=(N, 1))), given
        yield X + 2.0 * slopes(instance, X, given), given
        for far in (0.1, 10.0, 1e4):
            moved = most_harmful(instance, given, norm, far)
            yield moved, given
            gains = instance.weights * (instance.losses(moved, given) - instance.losses(X, given))
            only = np.arange(N) == gains.argmax()  # all of the way by one sample
            yield np.where(only[:, None], moved, X), given


def most_harmful(instance, labels, norm, far):
    """Each sample moved towards the wrong class where its loss is largest."""
    moves = np.zeros((instance.n_classes, N, D))
    for c, other in permutations(range(instance.n_classes), 2):
        moves[other, labels == c] = far * instance.steepest_move(c, other, norm)
    there = (instance.X + moves).reshape(-1, D)
    reached = instance.losses(there, np.tile(labels, len(moves))).reshape(len(moves), N)
    return instance.X + moves[np.argmax(reached, axis=0), np.arange(N)]


def slopes(instance, X, y, step=1e-6):
    """Gradient of each loss by the features, by differences."""
    around = np.concatenate([X + step * way for way in np.vstack([np.eye(D), -np.eye(D)])])
    up, down = instance.losses(around, np.tile(y, 2 * D)).reshape(2, D, len(X))
    return (up - down).T / (2 * step)


def worst_labels(instance, X):
    table = [instance.losses(X, np.full(N, c)) for c in range(instance.n_classes)]
    return np.argmax(table, axis=0)


@each_row
def test_one_comes_near(loss, transport, n_classes):
    """A small share of a sample of the steepest pair, moved far, gains what was promised."""
    norm, _ = transport
    for seed in range(min(20, INSTANCES)):
        instance = Instance(loss, n_classes, seed)
        certificate = instance.certified(Wasserstein(norm, inf))
        radius = 0.1
        worst = certificate.worst_loss(radius)
        share, best = 1e-7, 0.0
        for true, other in permutations(range(n_classes), 2):
            if true not in instance.y:
                continue
            n = int(np.flatnonzero(instance.y == true)[0])
            weight = share * instance.weights[n]
            there = instance.X[n] + radius / weight * instance.steepest_move(true, other, norm)
            before, after = instance.losses(np.stack([instance.X[n], there]), [true, true])
            best = max(best, instance.start + weight * (after - before))
        assert best == pytest.approx(worst, rel=1e-3)
        assert best <= worst * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_relabelled_shares(loss, n_classes):
    for seed in range(INSTANCES):
        instance = Instance(loss, n_classes, seed)
        certificate = instance.certified(KL())
        for flipped in (worst_labels(instance, instance.X), instance.rng.integers(0, n_classes, N)):
            for some in (np.ones(N, bool), instance.rng.random(N) < 0.3):
                labels = np.where(some, flipped, instance.y)
                rate = float(instance.weights @ (labels != instance.y))
                came = instance.mean(instance.X, labels)
                assert came <= certificate.label_flip_bound(min(rate, 1.0)) * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_weights_under_kl(loss, n_classes):
    for seed in range(INSTANCES):
        instance = Instance(loss, n_classes, seed)
        certificate = instance.certified(KL())
        values = instance.losses(instance.X, instance.y)
        for tilt in (0.1, 1.0, 10.0, *instance.rng.exponential(size=3)):
            shift = instance.weights * np.exp(tilt * (values - values.max()))
            shift /= shift.sum()
            used = shift > 0
            far = shift[used] @ np.log(shift[used] / instance.weights[used])
            bound = certificate.violation_bound(max(far, 0.0))
            assert shift @ values <= bound * (1 + 1e-9)


def test_classes_without_samples_do_not_count():
    """Only what it costs to take the one class for others."""
    instance = Instance("hinge", 3, 1)
    instance.y[:] = 0
    certificate = instance.certified(Wasserstein())
    norms = [np.linalg.norm(instance.coef[0] - instance.coef[c]) for c in (1, 2)]
    expected = max(instance.costs[0, 1] * norms[0], instance.costs[0, 2] * norms[1])
    assert certificate.fragility == pytest.approx(expected, rel=1e-12)
    both, pairs = np.maximum(instance.costs, instance.costs.T), combinations(range(3), 2)
    lengths = {pair: np.linalg.norm(np.subtract(*instance.coef[list(pair)])) for pair in pairs}
    every = [both[pair] * length for pair, length in lengths.items()]
    # Where labels move, all of them may occur.
    cheap = instance.certified(Wasserstein(label_cost=1e-6), room=1e-12)
    assert cheap._profile.slope == pytest.approx(max(every), rel=1e-12)
    two = Instance("hinge", 2, 1)
    two.y[:] = 1
    length = np.linalg.norm(two.coef)
    assert two.certified(Wasserstein()).fragility == pytest.approx(two.costs[1, 0] * length)
