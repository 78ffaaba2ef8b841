"""The temperature of maximum likelihood, in NumPy and PyTorch: exact, consistent, bounded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from fragility.calibration.temperature import best_temperature
from tests.reference import calibration as reference


def with_numpy(logits, codes, weights=None):
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    return best_temperature(np.asarray(logits, float), np.asarray(codes), weights, np)


def with_torch(logits, codes, weights=None):
    torch = pytest.importorskip("torch")
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    logits = torch.from_numpy(np.asarray(logits, float))
    return best_temperature(logits, torch.as_tensor(codes), torch.from_numpy(weights), torch)


each_library = pytest.mark.parametrize("fitted", [with_numpy, with_torch])


def calibrated(rng, n, n_classes, scale):
    """Log-probabilities, and classes drawn by them."""
    logs = log_softmax(scale * rng.normal(size=(n, n_classes)), axis=1)
    return logs, (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)


def cross_entropy(logits, codes, t=1.0):
    return -log_softmax(logits / t, axis=1)[np.arange(codes.size), codes].mean()


@pytest.mark.parametrize(
    ("n_classes", "n", "error"), [(2, 300, 0.06), (10, 500, 0.045), (1_000, 2_000, 0.02)]
)
def test_a_calibrated_model_keeps_its_probabilities(n_classes, n, error):
    """The true temperature is 1, whatever is fitted; `error` is about its standard error."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        logs, codes = calibrated(rng, n, n_classes, 6.0)
        t = with_numpy(logs, codes)
        fresh = calibrated(rng, 2_000, n_classes, 6.0)
        assert cross_entropy(*fresh, t) < cross_entropy(*fresh) + 0.003
        assert cross_entropy(logs, codes, t) <= cross_entropy(logs, codes)
        found.append(t)
    assert abs(np.mean(found) - 1.0) < 3.0 * error / np.sqrt(3)


@each_library
@pytest.mark.parametrize("n_classes", [2, 5])
def test_exact(fitted, n_classes):
    rng = np.random.default_rng(n_classes)
    logs, codes = calibrated(rng, 40, n_classes, 2.0)
    weights = rng.exponential(size=codes.size)
    for given in (np.ones(codes.size), weights):
        t = fitted(7.0 * logs, codes, given)
        exact = reference.exact_temperature(7.0 * logs, codes, given, t)
        assert t == pytest.approx(exact, rel=1e-12)


@each_library
def test_scale_and_shift(fitted):
    """Each scale of the logits has its own temperature: also the largest numbers there are."""
    logs, codes = calibrated(np.random.default_rng(1), 60, 4, 2.0)
    t = fitted(logs, codes)
    for scale in (1e-300, 1e-9, 3.0, 1e300, 1e307):
        assert fitted(scale * logs, codes) == pytest.approx(scale * t, rel=1e-10)
    shift = 100.0 * np.random.default_rng(2).normal(size=(60, 1))
    assert fitted(logs + shift, codes) == pytest.approx(t, rel=1e-10)
    whole = np.rint(4.0 * logs)  # which a large shift leaves exact
    assert fitted(whole + 1e15, codes) == fitted(whole, codes)


@each_library
def test_order_of_cases_and_classes_does_not_matter_and_a_weight_is_as_many_cases(fitted):
    rng = np.random.default_rng(3)
    logs, codes = calibrated(rng, 60, 4, 2.0)
    t = fitted(logs, codes)
    order, classes = rng.permutation(60), rng.permutation(4)
    assert fitted(logs[order], codes[order]) == pytest.approx(t, rel=1e-12)
    assert fitted(logs[:, classes], np.argsort(classes)[codes]) == pytest.approx(t, rel=1e-12)
    times = rng.integers(1, 4, 60)
    repeated = fitted(np.repeat(logs, times, axis=0), np.repeat(codes, times))
    assert fitted(logs, codes, 1e-200 * times) == pytest.approx(repeated, rel=1e-12)


@each_library
@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("n_classes", [2, 3, 1_000])
def test_without_a_mistake_one_of_n_plus_one_is_expected(fitted, n, n_classes):
    logits = 5.0 * np.random.default_rng(n).normal(size=(n, n_classes))
    codes = logits.argmax(axis=1)
    t = fitted(logits, codes)
    goal = min(1 / (n + 1), np.log(n_classes) / 2)
    assert cross_entropy(logits, codes, t) == pytest.approx(goal, rel=1e-10)
    assert fitted(1e-5 * logits, codes) == pytest.approx(1e-5 * t, rel=1e-10)


@each_library
def test_weights_of_a_model_without_a_mistake(fitted):
    """Nearly all weight on two cases, nothing but equal weights counts: as if n were two."""
    logits = np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    t = fitted(logits, [0, 1, 1], [1.0, 1.0, 1e-20])
    assert t == pytest.approx(fitted(logits[:2], [0, 1]), rel=1e-10)


@each_library
def test_ties(fitted):
    """Equal logits of the true and another class are no mistake, and no temperature parts them."""
    tied = np.full((3, 9), -5.0)
    tied[:, :2] = [[1.0, 1.0], [0.3, 0.1 + 0.2], [0.0, 4.0]]
    t = fitted(tied, [0, 0, 1])
    excess = cross_entropy(tied, np.array([0, 0, 1]), t) - 2 / 3 * np.log(2)
    assert excess == pytest.approx(1 / 4, rel=1e-10)
    # Nearly all classes tied leave little to learn: half of it.
    most = np.r_[-1.0, np.zeros(99)][np.newaxis]
    t = fitted(most, [1])
    assert cross_entropy(most, np.array([1]), t) == pytest.approx(
        0.5 * np.log(100) + 0.5 * np.log(99), rel=1e-12
    )
    assert fitted(np.full((3, 4), 7.0), [0, 1, 2]) == 1.0
    assert fitted([[0.3, 0.1 + 0.2]], [0]) == 1.0


@each_library
def test_worse_than_nothing(fitted):
    """No confidence is left, but for a thousandth that keeps the classes in their order."""
    rng = np.random.default_rng(4)
    logs, _ = calibrated(rng, 50, 4, 2.0)
    worst = logs.argmin(axis=1)
    t = fitted(logs, worst)
    assert t == pytest.approx(1e3 * np.ptp(logs, axis=1).max(), rel=1e-12)
    p = softmax(logs / t, axis=1)
    assert np.abs(4 * p - 1).max() < 1e-3
    for found in (p, softmax((logs / t).astype(np.float32), axis=1)):
        assert (found.argsort(axis=1) == logs.argsort(axis=1)).all()
    assert fitted([[1e308, -1e308]], [1]) == np.finfo(float).max


@each_library
def test_one_case_far_from_all_others(fitted):
    """Right beyond doubt it changes nothing; wrong beyond doubt it forbids all confidence."""
    logs, codes = calibrated(np.random.default_rng(5), 50, 3, 2.0)
    t = fitted(logs, codes)
    for far in (1e6, 1e150, 1e300):
        outlier = np.vstack([logs, [far, 0.0, -far]])
        assert fitted(outlier, np.r_[codes, 0]) == pytest.approx(t, rel=1e-10)
        assert fitted(outlier, np.r_[codes, 2]) > 0.01 * far


@each_library
@pytest.mark.parametrize("margin", [1e-3, 1e-8, 1e-12])
def test_a_mistake_by_a_hair_is_a_mistake(fitted, margin):
    logits = np.array([[4.0, 0.0], [0.0, 3.0], [1.0, 1.0 + margin]])
    codes = np.array([0, 1, 0])
    t = fitted(logits, codes)
    assert t == pytest.approx(
        reference.exact_temperature(logits, codes, np.ones(3), t), rel=1e-12 + 1e-15 / margin
    )
