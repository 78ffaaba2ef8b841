"""The index against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from fragility import fragility_index, fragility_ratio, loss_fragility

from .reference.long import factorised_index
from .reference.pairs import (
    bisected_index,
    exact_index,
    exact_loss_index,
    index_matrix,
    pair_matrix,
    pair_weights,
    rest_vector,
)


def labelled(negatives, positives):
    y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
    return y, np.r_[negatives, positives]


def test_worked_examples():
    y = [1, 1, 0, 0]
    assert fragility_index(y, [0.6, 0.9, 0.2, 0.7]) == pytest.approx(0.07305126204921, rel=1e-13)
    assert fragility_index(y, [0.6, 0.9, 0.1, 0.8]) == pytest.approx(0.16328215507747, rel=1e-13)


@pytest.mark.parametrize("seed", range(60))
def test_binary_to_fifty_digits(seed):
    rng = np.random.default_rng(seed)
    n0, n1 = rng.integers(1, 9, 2)
    negatives, positives = rng.beta(2, 4, n0), rng.beta(4, 2, n1)
    if seed % 3 == 0:  # ties
        negatives, positives = np.round(negatives, 1), np.round(positives, 1)
    weights = [None, None]
    if seed % 2:
        weights = [rng.integers(0, 4, n0) * rng.random(n0), rng.exponential(size=n1)]
        weights[0][0] = weights[1][0] = 1.0
    target = [0.0, 0.05, -0.1, 0.4][seed % 4]
    y, p = labelled(negatives, positives)
    sample_weight = None if weights[0] is None else np.r_[weights[0], weights[1]]
    expected = exact_index(negatives, positives, target, *weights)
    found = fragility_index(y, p, target=target, sample_weight=sample_weight)
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_binary_pair_matrix(seed):
    rng = np.random.default_rng(100 + seed)
    negatives, positives = rng.beta(1, 2, 300), rng.beta(2, 1, 80)
    weights = rng.exponential(size=380)
    w = pair_weights(negatives, positives, weights[:300], weights[300:])
    expected = bisected_index(pair_matrix(negatives, positives), 0.1, w)
    y, p = labelled(negatives, positives)
    found = fragility_index(y, p, target=0.1, sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_classes", [3, 5, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", [0.0, 0.05])
def test_multi_class(n_classes, weighted, target):
    rng = np.random.default_rng(n_classes)
    n = 40 * n_classes
    codes = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), codes] += 1.0
    scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    if n_classes == 5:
        scores = np.round(scores, 2)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    expected = index_matrix(codes, scores, target, weights)
    found = fragility_index(codes, scores, target=target, average=None, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert np.isnan(np.diag(found)).all()
    mean = fragility_index(codes, scores, target=target, sample_weight=weights)
    assert mean == pytest.approx(np.nanmean(expected), rel=1e-10)
    pair_cost = rng.integers(0, 3, (n_classes, n_classes)) * (1 - np.eye(n_classes, dtype=int))
    weights_of_pairs = pair_cost.T  # true i taken for j is the error of samples of i scored as j
    counted = weights_of_pairs > 0
    weighted_mean = fragility_index(
        codes, scores, target=target, sample_weight=weights, pair_cost=pair_cost
    )
    assert weighted_mean == pytest.approx(
        np.average(expected[counted], weights=weights_of_pairs[counted]), rel=1e-10
    )
    rest = fragility_index(
        codes, scores, target=target, average=None, multi_class="ovr", sample_weight=weights
    )
    np.testing.assert_allclose(rest, rest_vector(codes, scores, target, weights), rtol=1e-10)


def test_binary_matrix_and_vector():
    y, p = [0, 0, 1, 1], [0.1, 0.8, 0.6, 0.9]
    value = fragility_index(y, p)
    matrix = fragility_index(y, p, average=None)
    np.testing.assert_array_equal(matrix, [[np.nan, value], [value, np.nan]])
    np.testing.assert_array_equal(
        fragility_index(y, p, average=None, multi_class="ovr"), [value, value]
    )
    # The matrix of two explicit columns is the same by the definition of the pairs.
    columns = np.column_stack([1 - np.array(p), p])
    np.testing.assert_allclose(index_matrix(y, columns), matrix, rtol=1e-12)
    assert fragility_index(y, columns) == value


LONG = {
    "calibrated": (1.4, 0.0, 0.4),
    "overconfident": (4.0, 0.0, 0.4),
    "weak": (0.2, 0.0, 0.5),
    "very weak": (0.02, 0.0, 0.5),
    "rare positives": (1.4, 0.0, 0.001),
    "strong": (9.0, 0.0, 0.3),
    "negative target": (2.0, -0.2, 0.4),
    "high target": (2.0, 0.5, 0.4),
}


def long_sample(name, n=120_000):
    separation, target, share = LONG[name]
    rng = np.random.default_rng(sorted(LONG).index(name))
    y = (rng.random(n) < share).astype(np.int64)
    p = 1 / (1 + np.exp(-(rng.normal(size=n) + separation * (y - 0.5))))
    return y, p, target


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "plain") for name in LONG]
    + [
        (name, form)
        for place, form in enumerate(["float32", "ties", "weighted", "other range"])
        for name in list(LONG)[place % 2 :: 4]
    ],
)
def test_long_input(name, form):
    """Beyond a few ten thousand samples the root comes from bins: to the same digits."""
    y, p, target = long_sample(name)
    weights = None
    if form == "float32":
        p = p.astype(np.float32)
    elif form == "ties":  # on bin edges and centres alike
        p = np.round(p * 200) / 200
    elif form == "weighted":
        weights = np.random.default_rng(5).integers(0, 4, y.size) / 3
    elif form == "other range":
        p, target = 7.0 - 13.0 * p, -13.0 * target
        y = 1 - y
    w = np.ones(y.size) if weights is None else weights
    expected = factorised_index(p[y == 0], p[y == 1], target, w[y == 0], w[y == 1])
    found = fragility_index(y, p, target=target, sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
def test_long_multi_class(order):
    rng = np.random.default_rng(3)
    n, n_classes = 120_000, 4
    codes = np.array([0, 1, 3])[rng.integers(0, 3, n)]  # class 2 stays without samples
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), codes] += 0.05
    scores[codes == 0, 0] += 4.0
    scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    scores = np.asarray(scores, order=order)
    with pytest.warns(UserWarning, match="No samples .* of 2"):
        found = fragility_index(codes, scores, average=None, labels=range(4))
    for i in range(4):
        for j in range(4):
            if i == j or 2 in (i, j):
                assert np.isnan(found[i, j])
            else:
                expected = factorised_index(scores[codes == j, i], scores[codes == i, i])
                assert found[i, j] == pytest.approx(expected, rel=1e-12)
    with pytest.warns(UserWarning, match="No samples"):
        rest = fragility_index(codes, scores, average=None, multi_class="ovr", labels=range(4))
    for i in (0, 1, 3):
        expected = factorised_index(scores[codes != i, i], scores[codes == i, i])
        assert rest[i] == pytest.approx(expected, rel=1e-12)


def test_bins_agree_with_samples_on_either_side_of_the_switch(monkeypatch):
    from fragility.index import errors

    y, p, _ = long_sample("calibrated", 40_000)
    binned = fragility_index(y, p)
    monkeypatch.setattr(errors, "_BINNING_PAYS", 10**9)
    assert fragility_index(y, p) == pytest.approx(binned, rel=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_losses_to_fifty_digits(seed):
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=12) * [1.0, 1e3, 1e-4][seed % 3]
    target = losses.mean() * [1.2, 2.0, 1.0001, 0.9][seed % 4]
    weights = rng.integers(0, 3, 12) if seed % 2 else None
    if weights is not None:
        target = np.average(losses, weights=weights) * 1.3
    expected = exact_loss_index(losses, target, weights)
    found = loss_fragility(losses, target=target, sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-11)


def test_loss_cases():
    assert loss_fragility([0.1, 0.4], target=0.4) == 0.0
    assert loss_fragility([0.1, 0.4], target=0.25) == np.inf
    assert loss_fragility([0.1, 0.4], target=0.2) == np.inf
    assert loss_fragility([0.0, 1.0, 5.0], target=2.0, sample_weight=[1, 1, 0]) == 0.0
    with pytest.raises(ValueError, match="losses has 1 NaN"):
        loss_fragility([0.1, np.nan], target=1.0)
    with pytest.raises(ValueError, match="one loss per sample"):
        loss_fragility([[0.1, 0.2]], target=1.0)


@pytest.mark.parametrize("seed", range(8))
def test_ratio_is_index_over_separation(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    p = np.clip(0.5 + 0.2 * (y - 0.5) + 0.2 * rng.normal(size=60), 0, 1)
    separation = p[y == 1].mean() - p[y == 0].mean()
    if separation > 0:
        expected = fragility_index(y, p) / separation
        assert fragility_ratio(y, p) == pytest.approx(expected, rel=1e-12)
    assert fragility_ratio(y, 3 - 2 * p, pos_label=0) == pytest.approx(
        fragility_ratio(y, p), rel=1e-11
    )


def test_ratio_cases():
    y = [0, 0, 1, 1]
    assert np.isnan(fragility_ratio(y, [0.3] * 4))
    assert fragility_ratio(y, [0.1, 0.2, 0.3, 0.4]) == 0.0
    assert fragility_ratio(y, [0.4, 0.3, 0.2, 0.1]) == np.inf
    codes = [0, 1, 2, 0, 1, 2]
    scores = np.array([[0.7, 0.1, 0.2], [0.2, 0.55, 0.25], [0.6, 0.1, 0.3]] * 2)
    scores[3] = [0.5, 0.3, 0.2]
    ratios = fragility_ratio(codes, scores, average=None)
    indices = fragility_index(codes, scores, average=None)
    for i in range(3):
        for j in range(3):
            if i != j:
                own = scores[np.array(codes) == i, i].mean()
                other = scores[np.array(codes) == j, i].mean()
                expected = indices[i, j] / (own - other) if own > other else np.inf
                assert ratios[i, j] == pytest.approx(expected, rel=1e-12)
    assert fragility_ratio(codes, scores) == pytest.approx(np.nanmean(ratios), rel=1e-12)


@pytest.mark.parametrize("name", ["calibrated", "overconfident", "weak", "negative target"])
def test_bins_suffice_for_ordinary_scores(name, monkeypatch):
    """The speed rests on this: no pass over the samples is needed."""
    from fragility.index.errors import RankingErrors

    def refuse(*args):
        raise AssertionError("fell back to the samples")

    monkeypatch.setattr(RankingErrors, "_solve_exactly", refuse)
    y, p, target = long_sample(name)
    assert 0 < fragility_index(y, p, target=target) < np.inf


@pytest.mark.parametrize("kind", ["bin edges", "bin centres", "atom", "heavy tails", "offset"])
@pytest.mark.parametrize("share", [0.5, 0.001])
@pytest.mark.parametrize("place", [0.5, 0.999, 0.9999999])
def test_long_adversarial_input(kind, share, place):
    """Atoms and ties where bins begin, and targets up to the largest error (steep tilts)."""
    rng = np.random.default_rng(7)
    n = 60_001
    y = rng.random(n) < share
    p = 1 / (1 + np.exp(-(rng.normal(size=n) + 2 * (y - 0.5))))
    if kind == "bin edges":
        p = (np.round(p * 8192 - 0.5) + 0.5) / 8192
    elif kind == "bin centres":
        p = np.round(p * 8192) / 8192
    elif kind == "atom":
        p = np.where(rng.random(n) < 0.9, 0.37, p)
    elif kind == "heavy tails":
        p = rng.standard_t(2, size=n) + y
    elif kind == "offset":
        p = 1e3 + 0.01 * p
    mean, largest = p[~y].mean() - p[y].mean(), p[~y].max() - p[y].min()
    target = mean + place * (largest - mean)
    found = fragility_index(y, p, target=target)
    assert found == pytest.approx(factorised_index(p[~y], p[y], target), rel=1e-11)
