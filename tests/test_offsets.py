"""Scores far from zero: the index knows distances, not where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from fragility import fragility_index, fragility_ratio, loss_fragility, measure_fragility

from .reference.pairs import exact_index, exact_loss_index

Y, SMALL = np.array([1, 0, 1, 1, 0, 1]), np.array([4.0, 1, 4, 4, 4, 1])


def rounding(expected, values, target=0.0):
    """What the rounding of sums of distances leaves of the digits of an index."""
    return 1e-12 + 4e-15 * expected / (np.ptp(values) + abs(target))


@pytest.mark.parametrize("offset", [0.0, 1e15, -1e15, 2.0**52])
def test_exact_scores_far_from_zero(offset):
    p = offset + SMALL
    expected = exact_index(p[Y == 0], p[Y == 1])
    assert expected == pytest.approx(2.7307, abs=1e-4)
    assert fragility_index(Y, p) == pytest.approx(expected, rel=1e-12)
    assert fragility_ratio(Y, p) == pytest.approx(expected / 0.75, rel=1e-12)
    found = measure_fragility(Y, p)
    near = measure_fragility(Y, SMALL)
    assert found.standard_error == pytest.approx(near.standard_error, rel=1e-12)
    assert found.interval() == pytest.approx(near.interval(), rel=1e-9)
    assert found.shift == pytest.approx(near.shift, rel=1e-12)
    np.testing.assert_allclose(found.worst_case_weights, near.worst_case_weights, rtol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_translation_does_not_matter(seed):
    """Whole numbers times a power of two, and an offset that leaves them exact."""
    rng = np.random.default_rng(seed)
    unit = 2.0 ** rng.integers(-40, 40)
    y = np.r_[0, 1, rng.integers(0, 2, rng.integers(2, 12))]
    whole = rng.integers(0, 40, y.size).astype(float)
    weights = [None, rng.integers(1, 5, y.size).astype(float)][seed % 2]
    w = np.ones(y.size) if weights is None else weights
    target = float(rng.choice([0.0, 0.0, 3.0]))
    offset = float(rng.integers(-(2**52), 2**52))
    expected = exact_index(whole[y == 0], whole[y == 1], target, w[y == 0], w[y == 1])
    for values in (whole, whole + offset):
        found = fragility_index(y, values * unit, target=target * unit, sample_weight=weights)
        assert found / unit == pytest.approx(expected, rel=rounding(expected, whole, target))
    goal = float(np.ceil(whole.mean()))
    expected = exact_loss_index(whole, goal, w)
    for shift in (0.0, offset):
        found = loss_fragility(
            (whole + shift) * unit, target=(goal + shift) * unit, sample_weight=weights
        )
        assert found / unit == pytest.approx(expected, rel=rounding(expected, whole))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_far_from_zero(multi_class):
    rng = np.random.default_rng(0)
    y = np.r_[0, 1, 2, rng.integers(0, 3, 20)]
    scores = rng.integers(0, 20, (y.size, 3)) + 8.0 * np.eye(3)[y]
    options = {"multi_class": multi_class, "average": None}
    expected = fragility_index(y, scores, **options)
    assert np.isfinite(expected[~np.isnan(expected)]).all()
    for offset in (1e15, -(2.0**51)):
        np.testing.assert_allclose(
            fragility_index(y, scores + offset, **options), expected, rtol=1e-11
        )


@pytest.mark.parametrize("copies", [1, 20_000])
@pytest.mark.parametrize("offset", [0.0, 7.0, 1e9, 1e15, -(2.0**52)])
def test_a_mean_that_is_the_target_is_infinite(offset, copies):
    # The means are fractions that no float is: 2/3 from 0, 1, 1 and from 0, 0, 2.
    y = np.tile([0, 0, 0, 1, 1, 1], copies)
    p = np.tile([0.0, 1.0, 1.0, 0.0, 0.0, 2.0], copies) + offset
    assert fragility_index(y, p) == np.inf
    assert fragility_index(1 - y, p) == np.inf
    assert fragility_index(y, p, sample_weight=np.full(y.size, 3.0)) == np.inf
    short, few = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 0.0, 2.0]) + offset
    tied = np.repeat([1.0, 2.0, 2.0, 1.0], copies)
    repeated = np.repeat(short, copies), np.repeat(few, copies)
    assert fragility_index(*repeated, sample_weight=tied) == np.inf
    assert fragility_index(1 - repeated[0], repeated[1], sample_weight=tied) == np.inf
    losses = np.tile([0.0, 1.0, 1.0, 0.0], copies) + offset
    assert loss_fragility(losses, target=offset + 0.5) == np.inf
    weights = np.tile([1.0, 2.0, 1.0, 2.0], copies)
    assert loss_fragility(losses, target=offset + 0.5, sample_weight=weights) == np.inf


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, -1e12])
@pytest.mark.parametrize("exponent", range(4, 46, 6))
def test_small_gaps_beside_large_scores(offset, exponent):
    """The gap may be far below the rounding of the scores' own size, but not of their spread."""
    gap = 2.0**-exponent
    unit = max(1.0, abs(offset)) * 2.0**-50 / gap  # so that the smaller steps are still exact
    unit = 2.0 ** np.ceil(np.log2(unit)) if offset else 1.0
    negatives = offset + unit * np.array([0.0, 1.0, 0.0, 1.0])
    positives = offset + unit * np.array([0.0, 1.0, gap, 1.0])
    assert ((positives - offset) / unit == [0, 1, gap, 1]).all()
    expected = exact_index(negatives, positives)
    assert np.isfinite(expected)
    found = fragility_index([0] * 4 + [1] * 4, np.r_[negatives, positives])
    assert found == pytest.approx(expected, rel=1e-12 + 8e-16 / gap)


def test_many_scores_far_from_zero():
    """Long enough for bins, which are too wide there: the samples answer."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40_000)
    whole = rng.integers(0, 30, y.size) + 10.0 * y
    expected = fragility_index(y, whole)
    for offset in (1e8, 1e15):
        assert fragility_index(y, whole + offset) == pytest.approx(expected, rel=1e-11)
        found = measure_fragility(y, whole + offset)
        assert found.standard_error == pytest.approx(
            measure_fragility(y, whole).standard_error, rel=1e-9
        )
