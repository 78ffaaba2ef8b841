"""Companions of the index against their definitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import roc_auc_score

from fragility import (
    AbsentClassWarning,
    area_under_risk_coverage,
    buffered_auc_score,
    confident_error_rate,
    equal_mass_calibration_error,
    ranking_error_cvar,
)

from .reference import companions as reference
from .reference.pairs import pair_matrix, pair_weights

PAIRWISE = [buffered_auc_score, ranking_error_cvar, partial(ranking_error_cvar, level=0.5)]
PROBABILISTIC = [
    confident_error_rate,
    partial(confident_error_rate, threshold=0.5),
    area_under_risk_coverage,
    partial(equal_mass_calibration_error, n_bins=4),
]
ALL = PAIRWISE + PROBABILISTIC
LEVELS = [0.0, 0.1, 0.5, 0.95, 0.999, 1 - 1e-9, 1 - 2**-53]


@pytest.fixture(autouse=True)
def every_floating_point_error_is_an_exception():
    with np.errstate(all="raise"):
        yield


def labelled(negatives, positives):
    y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
    return y, np.r_[negatives, positives]


def binary(seed, n=None):
    """Labels, probabilities and weights; by the seed with ties and with weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14)) if n is None else n
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    p = np.clip(0.5 + 0.3 * (y - 0.5) + 0.25 * rng.normal(size=n), 0, 1)
    if seed % 3 == 0:
        p = np.round(p, 1)
    weights = None
    if seed % 2:
        weights = rng.integers(0, 4, n).astype(float)
        weights[:2] = [1, 2]
    return y, p, weights


def several(seed, n=24, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = range(n_classes)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), y] += 1.0
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    if seed % 3 == 0:  # ties within rows and between them
        p = np.round(p * 5) + 1
        p /= p.sum(axis=1, keepdims=True)
    weights = None
    if seed % 2:
        weights = rng.integers(0, 4, n).astype(float)
        weights[:n_classes] = 1
    return y, p, weights


def exact(y, p, weights):
    y, p = np.asarray(y), np.asarray(p)
    w = np.ones(y.size) if weights is None else np.asarray(weights)
    return reference.exact_pairs(p[y == 0], p[y == 1], w[y == 0], w[y == 1])


# Pairs


def test_worked_examples():
    y = [1, 1, 0, 0]
    assert buffered_auc_score(y, [0.6, 0.9, 0.2, 0.7]) == pytest.approx(0.625, abs=1e-15)
    assert buffered_auc_score(y, [0.6, 0.9, 0.1, 0.8]) == pytest.approx(0.450, abs=1e-15)
    assert ranking_error_cvar(y, [0.6, 0.9, 0.1, 0.8], level=0.75) == pytest.approx(0.2, abs=1e-15)


@pytest.mark.parametrize("seed", range(60))
def test_binary_pairs(seed):
    y, p, weights = binary(seed)
    pairs = exact(y, p, weights)
    expected = reference.exact_buffered_auc(pairs)
    found = buffered_auc_score(y, p, sample_weight=weights)
    assert found == pytest.approx(expected, abs=1e-14)
    for level in LEVELS:
        found = ranking_error_cvar(y, p, level=level, sample_weight=weights)
        assert found == pytest.approx(reference.exact_cvar(pairs, level), abs=1e-14)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("thinned", [False, True])
def test_many_pairs(seed, thinned, monkeypatch):
    from fragility.figures import tails

    monkeypatch.setattr(tails, "_THINNING_PAYS", 0 if thinned else 1 << 60)
    monkeypatch.setattr(tails, "_THINNED", 16)
    rng = np.random.default_rng(seed)
    negatives, positives = rng.beta(1, 2, 300), rng.beta(2, 1, 80)
    if seed % 2:
        negatives, positives = positives - 0.2, negatives + 0.2
    w = rng.exponential(size=380)
    y, p = labelled(negatives, positives)
    errors = pair_matrix(negatives, positives)
    shares = pair_weights(negatives, positives, w[: len(negatives)], w[len(negatives) :])
    found = buffered_auc_score(y, p, sample_weight=w)
    assert found == pytest.approx(reference.buffered_auc(errors, shares), abs=1e-13)
    for level in (0.3, 0.95, 0.999):
        found = ranking_error_cvar(y, p, level=level, sample_weight=w)
        assert found == pytest.approx(reference.cvar(errors, shares, level), abs=1e-13)


@pytest.mark.parametrize("seed", range(12))
def test_several_classes(seed):
    y, p, weights = several(seed, n=14)
    for multi_class, mean in [
        ("ovo", reference.mean_over_pairs),
        ("ovr", reference.mean_over_rest),
    ]:
        found = buffered_auc_score(y, p, multi_class=multi_class, sample_weight=weights)
        expected = mean(reference.exact_buffered_auc, y, p, weights)
        assert found == pytest.approx(expected, abs=1e-14)
        found = ranking_error_cvar(y, p, level=0.9, multi_class=multi_class, sample_weight=weights)
        expected = mean(partial(reference.exact_cvar, level=0.9), y, p, weights)
        assert found == pytest.approx(expected, abs=1e-14)


def test_absent_class_is_left_out():
    y, p, _ = several(1)
    kept = y != 2
    for metric, literal in [
        (buffered_auc_score, reference.exact_buffered_auc),
        (ranking_error_cvar, partial(reference.exact_cvar, level=0.95)),
    ]:
        with pytest.warns(AbsentClassWarning, match="No samples .* of 2"):
            found = metric(y[kept], p[kept], labels=[0, 1, 2])
        expected = reference.mean_over_pairs(literal, y[kept], p[kept])
        assert found == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("negatives", "positives", "expected"),
    [
        ([0.1, 0.2], [0.3, 0.4], 1.0),
        ([0.3, 0.4], [0.1, 0.2], 0.0),
        ([0.1, 0.3], [0.3, 0.4], 0.75),  # the largest error is zero: one tie of four
        ([0.3, 0.3], [0.3, 0.3], 0.0),
        ([0.2, 0.4], [0.2, 0.4], 0.0),
        ([0.3], [0.3 + 1e-12], 1.0),
        ([5e-324], [1e-323], 1.0),
    ],
)
def test_ends_of_the_buffered_auc(negatives, positives, expected):
    y, p = labelled(negatives, positives)
    assert buffered_auc_score(y, p) == expected
    pairs = exact(y, p, None)
    assert reference.exact_buffered_auc(pairs) == expected


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("spread", [1e-3, 1e-12, 1e-15])
def test_near_ties(seed, spread):
    """Clusters of scores that differ in their last digits only, beside ordinary ones."""
    rng = np.random.default_rng(seed)
    negatives = 0.5 + spread * rng.normal(size=5)
    positives = 0.5 + spread * (0.5 + rng.normal(size=6))
    if seed % 2:
        positives[:3] = rng.random(3)
    if seed % 4 > 1:
        negatives[:2] = rng.random(2)
    y, p = labelled(negatives, positives)
    pairs = exact(y, p, None)
    expected = reference.exact_buffered_auc(pairs)
    assert buffered_auc_score(y, p) == pytest.approx(expected, abs=1e-12)
    expected = reference.exact_cvar(pairs, 0.8)
    assert ranking_error_cvar(y, p, level=0.8) == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("seed", range(40))
def test_errors_of_many_scales(seed, monkeypatch):
    """The search for the minimum ends well before it would be stopped."""
    from fragility.figures import tails

    monkeypatch.setattr(tails, "_MOST_STEPS", 50)
    rng = np.random.default_rng(seed)
    negatives, positives = (10.0 ** rng.uniform(-12, 0, 9) for _ in range(2))
    weights = 10.0 ** rng.uniform(-6, 0, 18)
    y, p = labelled(negatives, positives)
    if seed % 2:
        y = 1 - y
    pairs = exact(y, p, weights)
    found = buffered_auc_score(y, p, sample_weight=weights)
    assert found == pytest.approx(reference.exact_buffered_auc(pairs), abs=1e-12)
    found = ranking_error_cvar(y, p, level=0.9, sample_weight=weights)
    assert found == pytest.approx(reference.exact_cvar(pairs, 0.9), abs=1e-14)


@pytest.mark.parametrize("separation", [0.2, 1.4, 4.0])
def test_longer_input(separation, monkeypatch):
    """From some ten thousand samples on, here fewer, a thinned tail says where to look first."""
    from fragility.figures import tails

    monkeypatch.setattr(tails, "_THINNING_PAYS", 1 << 20)
    monkeypatch.setattr(tails, "_THINNED", 1 << 8)
    rng = np.random.default_rng(1)
    positives = 1 / (1 + np.exp(-(rng.normal(size=1_500) + separation)))
    negatives = 1 / (1 + np.exp(-rng.normal(size=1_500)))
    y, p = labelled(negatives, positives)
    levels = [0.3, 0.95, 0.999]
    found = [ranking_error_cvar(y, p, level=level) for level in levels]
    errors = np.sort(pair_matrix(negatives, positives), axis=None)
    for level, value in zip(levels, found, strict=True):
        worst = errors[round(level * errors.size) :]
        assert value == pytest.approx(worst.mean(), abs=1e-12)

    def buffer(a):
        return np.maximum(a * errors + 1, 0).mean()

    best = minimize_scalar(buffer, bounds=(0, 1e3), method="bounded", options={"xatol": 1e-7})
    least = 1 - buffered_auc_score(y, p)
    assert least == pytest.approx(best.fun, abs=1e-12)
    assert least <= best.fun + 1e-14


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_scores_near_the_ends_of_the_range(scale):
    y, p = [1, 1, 0, 0], np.array([0.6, 0.9, 0.1, 0.8])
    assert buffered_auc_score(y, p * scale) == pytest.approx(0.45, abs=1e-14)
    expected = 0.05 * scale
    assert ranking_error_cvar(y, p * scale, level=0.5) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_order_of_the_tail_metrics(seed):
    y, p, weights = binary(seed, n=50)
    auc = roc_auc_score(y, p, sample_weight=weights)
    assert buffered_auc_score(y, p, sample_weight=weights) <= auc + 1e-14
    risks = [ranking_error_cvar(y, p, level=level, sample_weight=weights) for level in LEVELS]
    assert (np.diff(risks) >= -1e-14).all()
    weight = np.ones(50) if weights is None else weights
    negatives, positives = y == 0, y == 1
    mean = np.average(p[negatives], weights=weight[negatives]) - np.average(
        p[positives], weights=weight[positives]
    )
    assert risks[0] == pytest.approx(mean, abs=1e-14)
    assert risks[-1] == p[negatives & (weight > 0)].max() - p[positives & (weight > 0)].min()


def test_buffered_auc_does_not_depend_on_the_scale():
    y, p, weights = binary(1, n=40)
    expected = buffered_auc_score(y, p, sample_weight=weights)
    found = buffered_auc_score(y, 7 - 3 * p, pos_label=0, sample_weight=weights)
    assert found == pytest.approx(expected, abs=1e-13)


# Probabilities


def rows_of(p):
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("problem", [binary, several])
def test_probabilistic(seed, problem):
    y, p, weights = problem(seed, n=20)
    counts = np.ones(20) if weights is None else weights
    codes, rows = reference.replicated(y, rows_of(p), counts)
    for threshold in (0.0, 0.5, 0.7, 0.9, 1.0):
        found = confident_error_rate(y, p, threshold=threshold, sample_weight=weights)
        expected = reference.confident_error_rate(codes, rows, threshold)
        assert found == pytest.approx(expected, abs=1e-15)
    found = area_under_risk_coverage(y, p, sample_weight=weights)
    assert found == pytest.approx(reference.area_under_risk_coverage(codes, rows), abs=1e-14)
    if weights is None and np.unique(rows_of(p).max(axis=1)).size == 20:
        expected = reference.textbook_risk_coverage(codes, rows)
        assert found == pytest.approx(expected, abs=1e-14)
    for n_bins in (1, 2, 3, 7):
        found = equal_mass_calibration_error(y, p, n_bins=n_bins, sample_weight=weights)
        expected = reference.equal_mass_calibration_error(codes, rows, n_bins)
        assert found == pytest.approx(expected, abs=1e-14)


def test_one_half_predicts_the_first_class():
    half = [0.5, 0.5]
    assert confident_error_rate([0, 1], half, threshold=0.4) == 0.5
    assert confident_error_rate([0, 0], half, threshold=0.4, labels=[0, 1]) == 0.0
    assert confident_error_rate([0, 0], half, threshold=0.4, labels=[1, 0]) == 1.0
    found = confident_error_rate([0, 0], half, threshold=0.4, labels=[0, 1], pos_label=0)
    assert found == 0.0
    assert confident_error_rate([0, 0], [half] * 2, threshold=0.4, labels=[0, 1]) == 0.0


@pytest.mark.parametrize("metric", PROBABILISTIC)
def test_one_class_will_do(metric):
    p = np.array([0.1, 0.4, 0.95, 0.7, 0.2])
    found = metric(["no"] * 5, p, labels=["no", "yes"])
    rare = metric([*["no"] * 5, "yes"], np.r_[p, 1.0], sample_weight=[1] * 5 + [1e-15])
    assert found == pytest.approx(rare, abs=1e-13)
    rows = np.column_stack([1 - p, p, np.zeros(5)])
    assert 0 <= metric(["no"] * 5, rows, labels=["no", "yes", "perhaps"]) <= 1
    with pytest.raises(ValueError, match=r"one class only, 'no'.* labels="):
        metric(["no"] * 5, p)
    with pytest.raises(ValueError, match=r"one class only, 'no'.* labels="):
        metric(["no"] * 5, rows)
    with pytest.raises(ValueError, match=r"one class only, 'no'.* labels="):
        metric(["no"] * 5, p, pos_label="yes")


@pytest.mark.parametrize("metric", PAIRWISE)
def test_pairs_need_two_classes(metric):
    with pytest.raises(ValueError, match="Only one class has samples"):
        metric([1, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="Only one class has samples"):
        metric([1, 1], [0.1, 0.2], labels=[0, 1])


def test_perfect_and_worst_calibration():
    y = [0, 1] * 10
    assert equal_mass_calibration_error(y, [0.5] * 20) == 0.0
    assert equal_mass_calibration_error(y, y) == 0.0
    assert equal_mass_calibration_error(y, [1, 0] * 10, n_bins=2) == 1.0
    assert area_under_risk_coverage(y, y) == 0.0
    assert area_under_risk_coverage(y, [1, 0] * 10) == 1.0


# All of them


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("problem", [binary, several])
@pytest.mark.parametrize("seed", [3, 5])  # with and without ties, weighted
def test_invariances(metric, problem, seed):
    y, p, weights = problem(seed, n=30)
    expected = metric(y, p, sample_weight=weights)
    order = np.random.default_rng(0).permutation(30)
    found = metric(y[order], p[order], sample_weight=weights[order])
    assert found == pytest.approx(expected, abs=1e-14)
    for factor in (3.0, 1e-300, 1e300):
        found = metric(y, p, sample_weight=weights * factor)
        assert found == pytest.approx(expected, abs=1e-13)
    times = weights.astype(int)
    assert metric(y.repeat(times), p.repeat(times, axis=0)) == pytest.approx(expected, abs=1e-14)
    kept = weights > 0
    found = metric(y[kept], p[kept], sample_weight=weights[kept])
    assert found == pytest.approx(expected, abs=1e-14)
    names = np.array(["a", "b", "c"])[y]
    assert metric(names, p, sample_weight=weights) == expected


@pytest.mark.parametrize("metric", ALL)
def test_positive_label(metric):
    y, p, weights = binary(5, n=30)
    expected = metric(y, p, sample_weight=weights)
    columns = np.column_stack([1 - p, p])
    assert metric(y, columns, sample_weight=weights) == expected
    found = metric(1 - y, p, sample_weight=weights, pos_label=0)
    assert found == pytest.approx(expected, abs=1e-14)
    found = metric(y, columns[:, ::-1], labels=[1, 0], pos_label=1, sample_weight=weights)
    assert found == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("metric", ALL)
def test_kinds_of_input(metric):
    y, p, weights = several(5)
    p = p.astype(np.float32)
    expected = metric(y, p.astype(np.float64), sample_weight=weights)
    assert metric(y, p, sample_weight=weights) == expected
    assert metric(list(y), p.tolist(), sample_weight=list(weights)) == expected
    found = metric(pd.Series(y), pd.DataFrame(p), sample_weight=pd.Series(weights))
    assert found == expected
    found = metric(pl.Series(y), pl.DataFrame(p), sample_weight=pl.Series(weights))
    assert found == expected
    assert isinstance(found, float)
    y, p, _ = binary(2, n=30)
    p = p.astype(np.float32)
    expected = metric(y, p.astype(np.float64))
    assert metric(y, p) == expected
    assert metric(pd.Series(y, index=range(30, 0, -1)), pd.Series(p)) == expected
    assert metric(pl.Series(y), pl.Series(p)) == expected
    assert isinstance(metric(y, p), float)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_million_samples(metric, weighted):
    rng = np.random.default_rng(0)
    n = 1_000_000
    y = (rng.random(n) < 0.4).astype(np.int8)
    p = 1 / (1 + np.exp(-(rng.normal(size=n) + 1.4 * (y - 0.5))))
    weights = rng.integers(1, 4, n) if weighted else None
    found = metric(y, p, sample_weight=weights)
    thin = slice(0, 20_000)
    about = metric(y[thin], p[thin], sample_weight=None if weights is None else weights[thin])
    assert found == pytest.approx(about, abs=0.03)


# What is refused


@pytest.mark.parametrize("metric", PROBABILISTIC)
@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1, 0, 1], [0.1, 0.2, -0.5, 1.5], "from 0 to 1, but goes from -0.5 to 1.5.*softmax"),
        ([0, 1, 2, 1], [[3, 1, -1]] * 4, "from 0 to 1, but goes from -1.0 to 3.0.*predict_proba"),
        (
            [0, 1, 2, 1],
            [[0.5, 0.25, 0.25]] * 2 + [[0.5, 0.5, 0.5]] * 2,
            "sum to 1 .within 0.001., but 2 of 4 do not: row 2 sums to 1.5.*softmax",
        ),
        ([0, 1, 0, 1], [[0.9, 0.4]] * 4, "4 of 4 do not: row 0 sums to 1.3"),
        ([0, 1, 0, 1], [0.1, np.nan, 0.3, 0.4], "y_proba has NaN or infinite values in 1 of 4"),
        ([0, 1, 0, 1], [0.1, 0.3, 0.4], "y_true has 4 samples but y_proba has 3"),
    ],
)
def test_what_is_not_a_probability(metric, y, p, message):
    with pytest.raises(ValueError, match=message):
        metric(y, p)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(ranking_error_cvar, level=1.0), "level must be 0 or more and below 1.*got 1.0"),
        (partial(ranking_error_cvar, level=-0.1), "level must be 0 or more"),
        (partial(ranking_error_cvar, level="high"), "level must be a number; got 'high'"),
        (partial(ranking_error_cvar, multi_class="all"), "multi_class must be one of 'ovo', 'ovr'"),
        (partial(buffered_auc_score, multi_class="all"), "multi_class must be one of 'ovo', 'ovr'"),
        (partial(confident_error_rate, threshold=1.1), "threshold must lie from 0 to 1.*got 1.1"),
        (partial(confident_error_rate, threshold=np.nan), "threshold must be finite"),
        (partial(equal_mass_calibration_error, n_bins=0), "n_bins must be a whole number.*got 0"),
        (partial(equal_mass_calibration_error, n_bins=2.0), "whole number.*got 2.0"),
        (partial(equal_mass_calibration_error, n_bins=True), "whole number.*got True"),
        (
            partial(equal_mass_calibration_error, n_bins=4, sample_weight=[1, 1, 1, 0]),
            "n_bins=4 is more than the 3 samples",
        ),
    ],
)
def test_refused_parameters(call, message):
    with pytest.raises(ValueError, match=message):
        call([0, 1, 0, 1], [0.1, 0.6, 0.2, 0.4])
