"""Zero, infinity and the ends of the floating-point range."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fragility import fragility_index, fragility_ratio, loss_fragility, measure_fragility

from .reference.pairs import exact_index


@pytest.mark.parametrize("exponent", range(1, 17))
@pytest.mark.parametrize("unequal", [False, True])
def test_tiny_index(exponent, unequal):
    """Almost separable: FI down to 1e-16 of the score range."""
    negatives = np.array([0.0, 0.3, 0.5 + 10.0**-exponent * 0.5])
    positives = np.array([0.5, 0.5 if unequal else 0.7, 0.9, 1.0])
    expected = exact_index(negatives, positives)
    found = fragility_index([0] * 3 + [1] * 4, np.r_[negatives, positives])
    assert found == pytest.approx(expected, rel=1e-12)
    assert expected < 10.0**-exponent


@pytest.mark.parametrize("exponent", range(0, 14))
def test_huge_index(exponent):
    """Hardly any separation: FI up to 1e12 times the score range."""
    negatives = np.array([0.0, 0.4, 0.45, 1.0])
    positives = negatives[::-1] + 10.0**-exponent * np.array([0.9, 0.3, 0.1, 0.0])
    positives = np.clip(positives, 0.0, 1.0)
    expected = exact_index(negatives, positives)
    found = fragility_index([0] * 4 + [1] * 4, np.r_[negatives, positives])
    tolerance = 1e-12 if expected < 100 else 1e-15 * max(expected, 1e3)
    assert found == pytest.approx(expected, rel=tolerance)
    if expected < 1e8:
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300])
def test_scores_near_the_ends_of_the_range(scale):
    y, p = [1, 1, 0, 0], np.array([0.6, 0.9, 0.1, 0.8])
    found = fragility_index(y, p * scale)
    assert found == pytest.approx(0.16328215507747 * scale, rel=1e-12)
    assert fragility_ratio(y, p * scale) == pytest.approx(fragility_ratio(y, p), rel=1e-12)
    assert loss_fragility(p * scale, target=0.7 * scale) == pytest.approx(
        scale * loss_fragility(p, target=0.7), rel=1e-12
    )
    result = measure_fragility(y, p * scale)
    reference = measure_fragility(y, p)
    np.testing.assert_allclose(result.worst_case_weights, reference.worst_case_weights, rtol=1e-12)
    assert result.shift == pytest.approx(reference.shift, rel=1e-12)


@pytest.mark.parametrize("weight", [1e-300, 1e-10, 1e10, 1e300])
@pytest.mark.parametrize("n", [4, 80_000])
def test_only_ratios_of_weights_within_a_class_matter(weight, n):
    y, p = [1, 1, 0, 0] * (n // 4), [0.6, 0.9, 0.1, 0.8] * (n // 4)
    lift = measure_fragility(y, p).attribution(1)[0].lift
    for other in (weight, 1e-100):
        weights = [weight, weight, other, other] * (n // 4)
        found = measure_fragility(y, p, sample_weight=weights)
        assert found.value == pytest.approx(0.16328215507747, rel=1e-12)
        assert found.attribution(1)[0].lift == pytest.approx(lift, rel=1e-10)


def test_weights_at_the_end_of_the_range():
    y, p = [0, 0, 1, 1], [0.1, 0.8, 0.6, 0.9]
    weights = [1e5, 5e-324, 1.0, 1.0]
    expected = exact_index(p[:2], p[2:], 0.0, weights[:2], weights[2:])
    assert fragility_index(y, p, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


def test_weights_too_far_apart():
    with pytest.raises(ValueError, match="sample_weight goes from 1e-200 to 1e\\+200"):
        fragility_index(
            [0, 0, 0, 1, 1], [0.1, 0.9, 0.2, 0.8, 0.7], sample_weight=[1e200, 1e-200, 1, 1, 1]
        )


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-308, 1e307])
def test_attribution_at_the_ends_of_the_range_of_weights(weight):
    y, p = [0, 1, 0, 1, 0], [0.2, 0.7, 0.8, 0.6, 0.3]
    expected = measure_fragility(y, p)
    found = measure_fragility(y, p, sample_weight=np.full(5, weight))
    assert found.attribution(1)[0].index == 2
    assert found.attribution(1)[0].lift == pytest.approx(expected.attribution(1)[0].lift)
    assert repr(found) == repr(expected)


def test_light_class_beside_a_heavy_one():
    """The digits of the light weights lie below those that the heavy ones leave."""
    y = np.repeat([0, 1], [150_000, 50_000])
    p = np.repeat([0.2, 0.7, 0.2, 0.7], [79_500, 70_500, 24_250, 25_750])
    expected = fragility_index(y, p)
    found = fragility_index(y, p, sample_weight=np.where(y == 0, 1e-12 / 3, 1.0))
    assert found == pytest.approx(expected, rel=2e-13)


@pytest.mark.parametrize("tiny", [1e-100, 1e-160, 1e-200, 1e-300, 1e-308, 5e-324])
@pytest.mark.parametrize("copies", [1, 20_000])
def test_tiny_scores_among_ordinary_ones(tiny, copies):
    """As softmax puts out: the error that decides is far below the range."""
    found = fragility_index([0, 0, 1, 1] * copies, [0.0, tiny, 0.0, 1.0] * copies)
    expected = exact_index([0.0, tiny], [0.0, 1.0])
    assert found == pytest.approx(expected, rel=1e-12)


def test_tiny_scores_beside_samples_that_do_not_count():
    p = np.array([0.6, 0.9, 0.1, 0.8])
    weights = [1, 1, 1, 1, 0]
    for scale in (1e-180, 1e-100, 1e100):
        expected = 0.16328215507747 * scale
        found = fragility_index([1, 1, 0, 0, 0], np.r_[p * scale, 1.0], sample_weight=weights)
        assert found == pytest.approx(expected, rel=1e-10)
        losses = np.r_[p * scale, 1.0]
        found = loss_fragility(losses, target=0.7 * scale, sample_weight=weights)
        assert found == pytest.approx(scale * loss_fragility(p, target=0.7), rel=1e-10)
    y = [0, 0, 1, 1, 2, 2]
    scores = np.full((6, 3), 0.3)
    scores[:4, 1] = p[[3, 2, 1, 0]] * 1e-180
    assert fragility_index(y, scores, average=None)[1, 0] == pytest.approx(
        0.16328215507747e-180, rel=1e-10
    )


@pytest.mark.parametrize("exponent", [-900, -300, -100, -60, -20, 20, 60, 100, 230, 900])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_long_input_in_any_unit(exponent, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 60_000)
    p = rng.random((y.size, n_classes)) + 0.5 * np.eye(n_classes)[y]
    expected = fragility_index(y, p)
    assert fragility_index(y, p * 2.0**exponent) == pytest.approx(
        expected * 2.0**exponent, rel=1e-12
    )


def test_long_sums_of_equal_weights_do_not_drift():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300_000)
    p = np.where(rng.random(y.size) < 0.9, 0.37, 0.3 * y + 0.7 * rng.random(y.size))
    expected = fragility_index(y, p)
    for weight in (0.1, 0.7):
        found = fragility_index(y, p, sample_weight=np.full(y.size, weight))
        assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n", [2, 4, 100, 70_000])
def test_zero(n):
    y = np.arange(n) % 2
    assert fragility_index(y, y * 0.5) == 0.0
    assert fragility_index(y, y * 0.5, target=-0.5) == 0.0
    assert fragility_index(y, np.full(n, 0.3)) == 0.0  # constant scores: the ratio tells
    assert np.isnan(fragility_ratio(y, np.full(n, 0.3)))


@pytest.mark.parametrize("n", [2, 4, 100, 70_000])
def test_infinite(n):
    y = np.arange(n) % 2
    assert fragility_index(y, 1.0 - y) == np.inf
    assert fragility_index(y, np.full(n, 0.3), target=-0.1) == np.inf


def test_mean_error_equal_to_the_target_in_decimals_is_infinite():
    # 0.1 + 0.2 and 0.3 differ in binary; in the decimals that were meant the means are equal.
    assert fragility_index([0, 0, 1, 1], [0.1, 0.2, 0.0, 0.3]) == np.inf
    y = np.r_[np.zeros(3, int), np.ones(3, int)]
    assert fragility_index(y, [0.1, 0.2, 0.6, 0.3, 0.3, 0.3]) == np.inf


def test_two_samples_have_one_error():
    assert fragility_index([0, 1], [0.4, 0.3]) == np.inf
    assert fragility_index([0, 1], [0.3, 0.4]) == 0.0
    assert fragility_index([0, 1], [0.4, 0.3], target=0.2) == 0.0


def test_infinite_pairs_are_counted_not_hidden():
    codes = [0, 0, 1, 1, 2, 2]
    scores = np.array(
        [
            [0.7, 0.2, 0.1],
            [0.6, 0.2, 0.2],
            [0.2, 0.1, 0.7],  # class 1 gets less of itself than class 2 does
            [0.3, 0.2, 0.5],
            [0.1, 0.4, 0.5],
            [0.1, 0.3, 0.6],
        ]
    )
    result = measure_fragility(codes, scores)
    assert result.value == np.inf == fragility_index(codes, scores)
    finite = result.pairs[np.isfinite(result.pairs)]
    assert result.n_infinite_pairs == np.isinf(result.pairs).sum() > 0
    assert result.finite_mean == pytest.approx(finite.mean())
    assert result.median == np.median(result.pairs[~np.eye(3, dtype=bool)])
    assert "infinite" in repr(result)
    weight = np.isfinite(result.pairs).astype(float)
    without = fragility_index(codes, scores, pair_cost=weight.T)
    assert without == pytest.approx(finite.mean())  # 0 · inf does not enter
    assert measure_fragility(codes, scores, pair_cost=weight.T).n_infinite_pairs == 0


def test_zero_weight_is_absence():
    y, p = np.array([0, 0, 1, 1, 0]), np.array([0.1, 0.8, 0.6, 0.9, 1.0])
    found = fragility_index(y, p, sample_weight=[1, 1, 1, 1, 0])
    assert found == fragility_index(y[:4], p[:4])
    with pytest.raises(ValueError, match=r"Only one class has samples .*: 1"):
        fragility_index(y, p, sample_weight=[0, 0, 1, 1, 0])


def test_no_floating_point_warning_escapes():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        y = np.r_[np.zeros(200, int), np.ones(200, int)]
        for p in (np.linspace(0, 1, 400), 1e-3 * np.r_[np.linspace(0, 1, 200), [1.0] * 199, 0.999]):
            measure_fragility(y, p).tail_bound(np.linspace(-1, 1, 9))
        tiny = measure_fragility([0, 0, 0, 1, 1], [1e-200, 1e-180, 1e-190, 1.0, 0.99])
        assert tiny.tail_bound(0.9) == 0.0
        assert tiny.var_bound(0.9) <= 0.9
        close = np.r_[np.linspace(0, 0.6, 2000), np.linspace(0.599, 1, 1000)]
        assert len(measure_fragility(np.repeat([0, 1], [2000, 1000]), close).attribution(3)) == 3
        steep = np.r_[np.linspace(0, 0.5, 199), 0.503, np.linspace(0.5, 1, 200)]
        assert measure_fragility(y, steep).tail_bound(0.9) == 0.0
        long_y = np.tile(y, 200)
        long_p = np.tile(np.r_[np.geomspace(1e-300, 0.7, 200), np.geomspace(1e-3, 1, 200)], 200)
        for weights in (None, np.geomspace(1e-300, 1, long_y.size)):
            measure_fragility(long_y, long_p, sample_weight=weights)
        three = np.random.default_rng(0).random((400, 3))
        pair_cost = [[0, 1e-300, 1], [1, 0, 1e10], [1, 1, 0]]
        codes = np.arange(400) % 3
        measure_fragility(codes, three, pair_cost=pair_cost).var_bound(0.5)
        fragility_index(y, np.r_[np.zeros(200), np.ones(200)] + 1e-308)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, int, bool])
def test_dtypes(dtype):
    y = np.array([0, 0, 1, 1, 0, 1])
    p = np.array([0, 1, 1, 1, 0, 0]).astype(dtype)
    assert fragility_index(y, p) == pytest.approx(fragility_index(y, p.astype(float)), rel=1e-12)


def test_memory_layouts():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 50_000), rng.random(50_000)
    p += 0.3 * y
    expected = fragility_index(y, p)
    wide = np.zeros((50_000, 3))
    wide[:, 1] = p
    p.flags.writeable = y.flags.writeable = False
    assert fragility_index(y, wide[:, 1]) == expected
    assert fragility_index(y[::-1], p[::-1]) == pytest.approx(expected, rel=1e-13)
    assert fragility_index(y, p) == expected
    assert fragility_index(y.tolist(), p.tolist()) == expected
    assert fragility_index(y, p.astype(">f8")) == expected
    assert fragility_index(y[:, None], p[:, None]) == expected


@pytest.mark.parametrize("seed", range(150))
def test_adversarial_problems_to_the_last_digits(seed):
    """Ties, offsets, atoms, weights over twelve orders, targets next to mean and maximum."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 2)
    a, b = (rng.beta(*rng.uniform(0.3, 4, 2), n) for n in sizes)
    kind = seed % 7
    if kind == 1:
        a, b = np.round(a, 1), np.round(b, 1)
    elif kind == 2:
        a, b = 5 + 1e-6 * a, 5 + 1e-6 * b
    elif kind == 3:
        a, b = 1e3 * (a - 0.5), 1e3 * (b - 0.5)
    elif kind == 4:
        a, b = (rng.choice([0, 1e-12, 0.5, 1], n) for n in sizes)
    elif kind == 5:
        a *= 10 ** rng.uniform(-8, 0)
    elif kind == 6:
        b = 1 - (1 - b) * 10 ** rng.uniform(-8, 0)
    weights = 10 ** rng.uniform(-6, 6, sum(sizes)) if seed % 2 else np.ones(sum(sizes))
    w0, w1 = weights[: sizes[0]], weights[sizes[0] :]
    mean, largest = np.average(a, weights=w0) - np.average(b, weights=w1), a.max() - b.min()
    target = [
        0.0,
        mean + (largest - mean) * rng.random(),
        mean + (largest - mean) * 10 ** rng.uniform(-9, -1),
        largest - (largest - mean) * 10 ** rng.uniform(-9, -1),
    ][seed // 7 % 4]
    y = np.r_[np.zeros(sizes[0], int), np.ones(sizes[1], int)]
    found = fragility_index(y, np.r_[a, b], target=target, sample_weight=weights)
    expected = exact_index(a, b, target, w0, w1)
    magnitude = np.abs(np.r_[a, b]).max() + abs(target)
    if found == np.inf and expected != np.inf:  # by decision, when rounding decides
        assert target - mean <= 9 * 2.0**-53 * magnitude + 1e-16 * magnitude
    elif expected in (0, np.inf):
        assert found == expected
    else:
        spread = max(np.ptp(a), np.ptp(b))
        # The mean is known to rounding of the scores, the index no better than that.
        tolerance = 1e-12 * max(1.0, expected / spread) + 1e-15 * magnitude / abs(target - mean)
        assert found == pytest.approx(expected, rel=tolerance)
