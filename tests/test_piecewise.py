"""The pieces of losses: what interior-point methods see of them, against literal algebra."""

import numpy as np
import pytest
from scipy import sparse

from fragility.losses import CrossEntropy, Hinge, MaxLogistic, SmoothedHinge
from fragility.programs.gram import paired_gram
from fragility.programs.piecewise import Hold, piecewise_of

CASES = [
    (loss, n_classes, labels_move)
    for loss in (Hinge(), MaxLogistic(), CrossEntropy(), SmoothedHinge(0.5))
    for n_classes in (2, 3, 5)
    for labels_move in (False, True)
]
each_case = pytest.mark.parametrize(("loss", "n_classes", "labels_move"), CASES, ids=str)


def problem(n_classes, n=40, seed=0):
    rng = np.random.default_rng(seed)
    outputs = 1 if n_classes == 2 else n_classes
    return rng, 1.5 * rng.normal(size=(outputs, n)), rng.integers(0, n_classes, n)


class SecondOfTwo:
    """Pieces of the second of two problems, which must not know of the first."""

    def __init__(self, loss, y, n_classes, labels_move):
        first = (y + 1) % n_classes
        self.both = piecewise_of(loss, np.stack([first, y]), n_classes, labels_move)

    def __getattr__(self, name):
        value = getattr(self.both, name)
        return value[1] if isinstance(value, np.ndarray) else value

    def at(self, scores):
        after = object.__new__(SecondOfTwo)
        after.both = self.both.at(self._pair(scores))
        return after

    def forward(self, change):
        return self.both.forward(self._pair(change))[1]

    def adjoint(self, weights):
        return self.both.adjoint(self._pair(weights))[1]

    def form(self, weights, multipliers, hold, part):
        hold = Hold(*map(self._pair, hold))
        return self.both.form(self._pair(weights), self._pair(multipliers), hold, part)[1]

    @staticmethod
    def _pair(values):
        return np.stack([0.5 * values[..., ::-1], values])


def as_given(scores):
    """In the shape that losses take."""
    return scores[0] if len(scores) == 1 else scores.T


@each_case
def test_the_largest_is_the_loss(loss, n_classes, labels_move):
    _, scores, y = problem(n_classes)
    pieces = SecondOfTwo(loss, y, n_classes, labels_move)
    values = pieces.at(scores).values
    if pieces.shared is not None:
        values = values + pieces.shared.value(as_given(scores), y)
    own = np.where(pieces.flips > 0, -np.inf, values).max(axis=0)
    assert own == pytest.approx(loss.value(as_given(scores), y), rel=1e-12, abs=1e-15)
    if labels_move:
        others = np.where(pieces.flips > 0, values, -np.inf).max(axis=0)
        relabelled = loss.relabelled(as_given(scores), y)
        # A piece that is zero whatever the scores may stand for any label.
        assert np.maximum(others, own) == pytest.approx(
            np.maximum(relabelled, own), rel=1e-12, abs=1e-15
        )
    else:
        assert not pieces.flips.any()


def gradients_of(at, n_outputs, n):
    """Of each piece by each output, (P, outputs, n), from `forward` of unit changes."""
    units = []
    for output in range(n_outputs):
        change = np.zeros((n_outputs, n))
        change[output] = 1.0
        units.append(at.forward(change))
    return np.stack(units, axis=1)


@each_case
def test_forward_and_adjoint(loss, n_classes, labels_move):
    rng, scores, y = problem(n_classes, seed=1)
    pieces = SecondOfTwo(loss, y, n_classes, labels_move)
    at = pieces.at(scores)
    change, step = rng.normal(size=scores.shape), 1e-6
    up, down = pieces.at(scores + step * change).values, pieces.at(scores - step * change).values
    assert at.forward(change) == pytest.approx((up - down) / (2 * step), abs=1e-7)
    weights = rng.normal(size=at.values.shape)
    # The one is the transpose of the other.
    across = (weights * at.forward(change)).sum(axis=0)
    assert (at.adjoint(weights) * change).sum(axis=0) == pytest.approx(across, abs=1e-12)


@each_case
@pytest.mark.parametrize("held", ["by nothing", "a little", "wholly"])
def test_form(loss, n_classes, labels_move, held):
    """What is left of Σ D (g·u - s)² + e s² at the best s, and Σ z f'': sample by sample."""
    rng, scores, y = problem(n_classes, seed=2)
    pieces = SecondOfTwo(loss, y, n_classes, labels_move)
    at = pieces.at(scores)
    outputs, n = scores.shape
    D = np.exp(3.0 * rng.normal(size=at.values.shape))
    z = rng.uniform(size=at.values.shape)
    e = {"by nothing": 0.0, "a little": 0.3, "wholly": np.inf}[held]
    total = D.sum(axis=0) + e
    hold = Hold(1.0 / total, np.full(n, 1.0) if held == "wholly" else e / total)
    form = np.concatenate([at.form(D, z, hold, slice(0, 15)), at.form(D, z, hold, slice(15, n))], 1)
    gradients = gradients_of(at, outputs, n)
    step = 1e-5
    first, second = np.tril_indices(outputs)
    for i in range(n):
        g, d = gradients[:, :, i], D[:, i]
        expected = g.T @ (d[:, np.newaxis] * g)
        if held != "wholly":  # Schur's complement of the epigraph variable
            pull = g.T @ d
            expected -= np.outer(pull, pull) / total[i]
        for j in range(outputs):
            moved = np.zeros_like(scores)
            moved[j] = step
            ahead = pieces.at(scores + moved).adjoint(z)[:, i]
            behind = pieces.at(scores - moved).adjoint(z)[:, i]
            expected[:, j] += (ahead - behind) / (2 * step)
        size = max(1.0, d.max())
        assert form[:, i] == pytest.approx(expected[first, second], abs=1e-8 * size)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("labels_move", [False, True])
def test_form_keeps_its_digits(n_classes, labels_move):
    """One weight far above the others, as at a solution: what the others say is not lost."""
    _, scores, y = problem(n_classes, seed=3)
    pieces = SecondOfTwo(Hinge(), y, n_classes, labels_move)
    at = pieces.at(scores)
    outputs, n = scores.shape
    D = np.full(at.values.shape, 1e-3)
    D[-1] = 1e18
    hold = Hold(1.0 / D.sum(axis=0), np.zeros(n))
    form = at.form(D, np.zeros_like(D), hold, slice(None))
    gradients = gradients_of(at, outputs, n)
    # With the epigraph variable on that piece, the others are seen from there.
    apart = gradients - gradients[-1]
    first, second = np.tril_indices(outputs)
    expected = (1e-3 * apart[:, first] * apart[:, second]).sum(axis=0)
    assert form == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("with_one", [False, True])
@pytest.mark.parametrize("n", [30, 9_000])
def test_products_of_columns(outputs, with_one, n):
    """Dense or sparse, few rows or many blocks of them: one matrix."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, 4)) < 0.4, rng.normal(size=(n, 4)), 0.0)
    pairs = outputs * (outputs + 1) // 2
    weights = rng.normal(size=(n, pairs))
    wide = np.c_[X, np.ones(n)] if with_one else X
    expected = np.zeros((outputs, wide.shape[1], outputs, wide.shape[1]))
    for w, i, j in zip(weights.T, *np.tril_indices(outputs), strict=True):
        expected[i, :, j, :] = expected[j, :, i, :] = wide.T @ (w[:, np.newaxis] * wide)
    for given in (X, sparse.csr_array(X)):
        found = paired_gram(given, outputs, with_one, lambda part: weights[part])
        assert found == pytest.approx(expected.reshape(found.shape), abs=1e-10)
