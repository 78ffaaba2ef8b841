"""The measured result: worst case, gradient, attribution, bounds, and how it reads."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from fragility import AbsentClassWarning, fragility_index, fragility_ratio, measure_fragility

from .reference.pairs import index_matrix


def binary_problem(seed, n=30):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    p = np.clip(0.5 + 0.25 * (y - 0.5) + 0.2 * rng.normal(size=n), 0, 1)
    return y, p


def multi_problem(seed, n=60, n_classes=3):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    scores = rng.dirichlet(np.ones(n_classes), n)
    scores[np.arange(n), codes] += 0.5
    return codes, scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("target", [0.0, 0.05])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_by_finite_differences(seed, target, weighted):
    """dFI/dp = w/D* for negatives, -w/D* for positives, dFI/dtarget = -1/D*."""
    y, p = binary_problem(seed)
    weights = np.random.default_rng(seed).exponential(size=y.size) if weighted else None
    result = measure_fragility(y, p, target=target, sample_weight=weights)
    gradient = np.where(y == 0, 1, -1) * result.worst_case_weights / result.shift

    def value(scores, target):
        return fragility_index(y, scores, target=target, sample_weight=weights)

    step = 1e-5
    numeric = [
        (value(p + step * unit, target) - value(p - step * unit, target)) / (2 * step)
        for unit in np.eye(y.size)
    ]
    np.testing.assert_allclose(gradient, numeric, atol=2e-7 * np.abs(gradient).max())
    in_target = (value(p, target + step) - value(p, target - step)) / (2 * step)
    assert in_target == pytest.approx(-1 / result.shift, rel=1e-6)
    # Euler's identity of a homogeneous function.
    assert gradient @ p - target / result.shift == pytest.approx(result.value, rel=1e-10)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("seed", range(3))
def test_multi_class_weights_are_the_mean_over_pairs(multi_class, seed):
    codes, scores = multi_problem(seed)
    result = measure_fragility(codes, scores, multi_class=multi_class)
    assert 0 < result.value < math.inf
    expected, shift, n_pairs = np.zeros(codes.size), 0.0, 0
    for i in range(3):
        for others in [(j,) for j in range(3) if j != i] if multi_class == "ovo" else [(0, 1, 2)]:
            rows = np.flatnonzero((codes == i) | np.isin(codes, others))
            part = measure_fragility(codes[rows] == i, scores[rows, i])
            expected[rows] += part.worst_case_weights
            shift, n_pairs = shift + part.shift, n_pairs + 1
    np.testing.assert_allclose(result.worst_case_weights, expected / n_pairs, rtol=1e-10)
    assert result.shift == pytest.approx(shift / n_pairs, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scores", ["ordinary", "separable", "reversed", "long"])
def test_shift_is_the_divergence_of_the_weights(scores, weighted):
    y, p = binary_problem(1, 150_000 if scores == "long" else 30)
    if scores == "separable":
        p = 0.4 * p + 0.6 * y
    elif scores == "reversed":
        p = 1 - p
    weights = np.random.default_rng(0).integers(0, 3, y.size) if weighted else np.ones(y.size)
    weights[:2] = 1
    result = measure_fragility(y, p, sample_weight=weights if weighted else None)
    divergence = 0.0
    for c in (0, 1):
        q = result.worst_case_weights[y == c]
        base = weights[y == c] / weights[y == c].sum()
        assert q.sum() == pytest.approx(1)
        assert (q[base == 0] == 0).all()
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence += np.nansum(np.where(q > 0, q * np.log(q / base), 0))
    assert result.shift == pytest.approx(divergence, rel=1e-9, abs=1e-12)
    if scores in ("ordinary", "long"):
        error = result.worst_case_weights @ (np.where(y == 0, 1, -1) * p)
        assert error / result.shift == pytest.approx(result.value, rel=1e-9)
    elif scores == "separable":
        assert result.value == 0
        assert set(p[result.worst_case_weights > 0]) == {
            p[(y == 0) & (weights > 0)].max(),
            p[(y == 1) & (weights > 0)].min(),
        }
    else:
        assert result.value == math.inf
        assert result.shift == 0


def test_value_and_ratio_are_those_of_the_functions():
    y, p = binary_problem(3)
    result = measure_fragility(y, p)
    assert result.value == fragility_index(y, p)
    assert result.ratio == fragility_ratio(y, p)
    assert math.isnan(measure_fragility(y, p, target=0.1).ratio)  # defined at target 0 only
    codes, scores = multi_problem(3)
    pair_cost = [[0, 1, 2], [0, 0, 3], [1, 1, 0]]
    result = measure_fragility(codes, scores, pair_cost=pair_cost)
    assert result.value == fragility_index(codes, scores, pair_cost=pair_cost)
    assert result.ratio == fragility_ratio(codes, scores, pair_cost=pair_cost)
    np.testing.assert_array_equal(result.pairs, fragility_index(codes, scores, average=None))


def test_attribution():
    y = np.array([0, 0, 0, 1, 1, 1])
    p = np.array([0.1, 0.95, 0.2, 0.9, 0.3, 0.8])
    result = measure_fragility(np.where(y, "sick", "well"), 1 - p, pos_label="well")
    top = result.attribution(2)
    assert [(s.index, s.label) for s in top] == [(1, "well"), (4, "sick")]
    assert [s.score for s in top] == pytest.approx([0.05, 0.7])
    for sample in result.attribution(6):
        assert sample.weight == result.worst_case_weights[sample.index]
        assert sample.lift == pytest.approx(3 * sample.weight)
    lifts = [s.lift for s in result.attribution(100)]
    assert len(lifts) == 6
    assert lifts == sorted(lifts, reverse=True)
    frame = pd.DataFrame(top)
    assert frame.columns.tolist() == ["index", "label", "score", "weight", "lift"]
    with pytest.raises(ValueError, match="n must be at least 1"):
        result.attribution(0)


def test_attribution_of_weighted_and_multi_class_samples():
    y, p = binary_problem(5)
    weights = np.r_[np.ones(15), np.zeros(15)]
    found = measure_fragility(y, p, sample_weight=weights).attribution(30)
    assert sorted(s.index for s in found) == list(range(15))
    doubled = measure_fragility(y[:15], p[:15], sample_weight=np.full(15, 2.0)).attribution(15)
    assert [s.lift for s in doubled] == pytest.approx([s.lift for s in found])
    codes, scores = multi_problem(5)
    result = measure_fragility(codes, scores)
    first = result.attribution(1)[0]
    assert first.label == codes[first.index]
    assert first.score == scores[first.index, codes[first.index]]
    every = result.attribution(codes.size)
    shares = [s.weight / s.lift for s in every]
    assert sum(shares) == pytest.approx(2)  # negatives and positives of the mean pair


def test_bounds_of_several_classes_hold_for_the_mixture_of_pairs():
    codes, scores = multi_problem(7)
    result = measure_fragility(codes, scores)
    errors = [
        np.subtract.outer(scores[codes == j, i], scores[codes == i, i]).ravel()
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    for theta in np.linspace(-0.5, 0.9, 15):
        tail = np.mean([np.mean(e >= theta) for e in errors])
        assert tail <= result.tail_bound(theta) + 1e-12
    for level in (0.5, 0.9, 0.99):
        bound = result.var_bound(level)
        assert np.mean([np.mean(e > bound) for e in errors]) <= 1 - level
        assert result.tail_bound(bound) == pytest.approx(1 - level, rel=1e-9)


def test_bounds_at_the_ends():
    y = [0, 0, 1, 1]
    zero = measure_fragility(y, [0.1, 0.2, 0.3, 0.4])
    assert zero.tail_bound(0.0) == 1.0
    assert zero.tail_bound(1e-9) == 0.0
    assert zero.var_bound(0.99) == 0.0
    infinite = measure_fragility(y, [0.4, 0.3, 0.2, 0.1])
    assert infinite.tail_bound(0.9) == 1.0
    assert infinite.var_bound(0.99) == math.inf
    some = measure_fragility(y, [0.1, 0.8, 0.6, 0.9])
    thetas = np.array([[-1.0, 0.0], [0.2, 0.5]])
    bounds = some.tail_bound(thetas)
    assert bounds.shape == thetas.shape
    assert bounds[1, 0] == some.tail_bound(0.2) == pytest.approx(math.exp(-0.2 / some.value))
    for level in (0, 1, 2, np.nan):
        with pytest.raises(ValueError, match="level must"):
            some.var_bound(level)
    with pytest.raises(ValueError, match="theta must not be NaN"):
        some.tail_bound(np.nan)
    with pytest.raises(ValueError, match="theta must hold numbers"):
        some.tail_bound("high")


def test_mixture_bounds_with_zero_and_infinite_pairs():
    codes = [0, 0, 1, 1, 2, 2]
    scores = np.array(
        [[7, 2, 1], [6, 2, 2], [2, 1, 7], [3, 2, 5], [1, 4, 5], [1, 3, 6]], dtype=float
    )
    result = measure_fragility(codes, scores)
    share = result.n_infinite_pairs / 6
    assert 0 < share < 1
    assert result.tail_bound(1e6) == pytest.approx(share)
    assert result.var_bound(1 - share / 2) == math.inf
    assert result.var_bound(0.3) < math.inf


def test_bounds_have_the_unit_of_the_scores():
    codes, scores = multi_problem(7)
    bound = measure_fragility(codes, scores).var_bound(0.9)
    for scale in (1e-150, 1e-10, 1e8):
        scaled = measure_fragility(codes, scores * scale)
        assert scaled.var_bound(0.9) == pytest.approx(scale * bound, rel=1e-11)
        assert scaled.tail_bound(scaled.var_bound(0.9)) <= 0.1


def test_two_classes_are_one_pair():
    assert measure_fragility([0, 1], [0.4, 0.3]).n_infinite_pairs == 1


def test_reading_extreme_results():
    assert "worst sample" not in repr(measure_fragility([0, 1], [0.4, 0.3]))
    assert "worst sample" not in repr(measure_fragility([0, 1], [0.4, 0.4]))
    assert "defined at target 0" in repr(measure_fragility([0, 1], [0.4, 0.3], target=0.2))


def test_reading_it():
    codes, scores = multi_problem(1)
    names = np.array(["<a>", "b", "c"])
    result = measure_fragility(names[codes], scores)
    text = repr(result)
    for part in ("Fragility Index", "ratio", "6", "class pairs", "scored as", "worst sample"):
        assert part in text
    html = result._repr_html_()
    assert "&lt;a&gt;" in html
    assert "<a>" not in html
    plain = result.to_dict()
    assert plain["labels"] == ["<a>", "b", "c"]
    assert plain["support"] == np.bincount(codes).tolist()
    assert plain["pairs"][0][1] == result.pairs[0, 1]
    json.dumps(plain)
    restored = pickle.loads(pickle.dumps(result))
    assert repr(restored) == text
    with pytest.raises(AttributeError):
        result.value = 0.0


def test_result_outlives_the_arrays():
    y, p = binary_problem(2)
    flags = y.astype(bool)
    result = measure_fragility(flags, p)
    before = repr(result), result.attribution(5)
    p[:] = 0.5
    flags[:] = False
    assert (repr(result), result.attribution(5)) == before


@pytest.mark.parametrize("target", [0.0, 0.05])
def test_frame_has_a_row_for_each_ordered_pair_of_classes(target):
    codes, scores = multi_problem(1)
    names = np.array(["a", "b", "c"])
    frame = measure_fragility(names[codes], scores, target=target).to_frame()
    rows = list(zip(frame["true"], frame["scored_as"], strict=True))
    assert rows == [(b, a) for a in "abc" for b in "abc" if a != b]
    expected = index_matrix(codes, scores, target)
    for true, scored_as, index, ratio, support, other in frame.itertuples(index=False):
        i, j = "abc".index(scored_as), "abc".index(true)
        assert index == pytest.approx(expected[i, j], rel=1e-9)
        assert (support, other) == (np.sum(codes == j), np.sum(codes == i))
        pair = np.isin(codes, [i, j])
        if target == 0.0:
            alone = fragility_ratio(codes[pair] == i, scores[pair, i])
            assert ratio == pytest.approx(alone, rel=1e-9)
        else:
            assert math.isnan(ratio)


def test_frame_of_pairs_without_samples_is_undefined():
    codes, scores = multi_problem(2)
    present = codes != 2
    with pytest.warns(AbsentClassWarning):
        result = measure_fragility(codes[present], scores[present], labels=range(3))
    frame = result.to_frame()
    absent = (frame["true"] == 2) | (frame["scored_as"] == 2)
    assert absent.tolist() == frame["fragility_index"].isna().tolist()
    assert absent.sum() == 4


def test_frame_of_classes_against_the_rest():
    codes, scores = multi_problem(3)
    frame = measure_fragility(codes, scores, multi_class="ovr").to_frame()
    assert frame["scored_as"].tolist() == [0, 1, 2]
    assert frame["true"].isna().all()
    for i in range(3):
        row = frame.iloc[i]
        alone = fragility_index(codes == i, scores[:, i])
        assert row["fragility_index"] == pytest.approx(alone, rel=1e-9)
        assert row["support"] == np.sum(codes != i)
        assert row["support_scored_as"] == np.sum(codes == i)
