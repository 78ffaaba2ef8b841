"""What must not change the index, and what must change it in step."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fragility import fragility_index, measure_fragility

unit = st.floats(0, 1, allow_subnormal=False).map(lambda v: round(v, 6))


@st.composite
def binary(draw, least=1):
    negatives = draw(hnp.arrays(float, st.integers(least, 12), elements=unit))
    positives = draw(hnp.arrays(float, st.integers(least, 12), elements=unit))
    return np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)], np.r_[
        negatives, positives
    ]


def same(a, b):
    """Equal up to rounding of the mean, which a large index magnifies (scores are in [0, 1])."""
    low, high = sorted((a, b))
    return high == pytest.approx(low, rel=1e-14 * max(low, 100.0)) or (high == inf and low > 1e13)


@given(binary(), st.randoms(use_true_random=False))
def test_order_of_samples(data, random):
    y, p = data
    order = list(range(len(y)))
    random.shuffle(order)
    assert same(fragility_index(y, p), fragility_index(y[order], p[order]))


@given(binary(), st.data())
def test_integer_weights_are_repetition(data, draw):
    y, p = data
    weights = draw.draw(hnp.arrays(int, len(y), elements=st.integers(1, 4)))
    repeated = fragility_index(np.repeat(y, weights), np.repeat(p, weights))
    assert same(fragility_index(y, p, sample_weight=weights), repeated)


@given(binary(), st.floats(-5, 5))
def test_a_constant_added_to_the_scores(data, constant):
    y, p = data
    value = fragility_index(y, p)
    moved = fragility_index(y, p + constant)  # a score may lose its last digits, up to 1e-15
    assert moved == pytest.approx(value, rel=1e-12 * max(value, 100.0), abs=1e-13) or value > 1e10


@given(binary())
def test_classes_change_roles(data):
    y, p = data
    assert same(fragility_index(y, 1 - p, pos_label=0), fragility_index(1 - y, 1 - p))
    value = fragility_index(y, p)
    turned = fragility_index(1 - y, 1 - p)  # 1 - p rounds
    assert same(turned, value) or turned == pytest.approx(value, abs=1e-13)


def test_names_of_labels():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    scores = rng.dirichlet(np.ones(3), 200)
    scores[np.arange(200), codes] += 0.4
    expected = fragility_index(codes, scores, average=None)
    for names in (["a", "b", "c"], [-7, 10, 10**12], [1.0, 2.0, 3.0], [5, 300, 70_000]):
        found = fragility_index(np.array(names)[codes], scores, average=None)
        np.testing.assert_array_equal(found, expected)
    turned = fragility_index(
        np.array(["x", "b", "a"])[codes], scores, average=None, labels=["x", "b", "a"]
    )
    np.testing.assert_array_equal(turned, expected)
    order = [2, 0, 1]
    names = np.array(["a", "b", "c"])
    permuted = fragility_index(names[codes], scores[:, order], average=None, labels=names[order])
    np.testing.assert_allclose(permuted, expected[np.ix_(order, order)], rtol=1e-12)


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_one_versus_rest_lies_between_its_pairs(n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 20)]
    scores = rng.dirichlet(np.full(n_classes, 0.7), codes.size)
    scores[np.arange(codes.size), codes] += rng.random()
    pairs = fragility_index(codes, scores, average=None)
    rest = fragility_index(codes, scores, average=None, multi_class="ovr")
    low, high = np.nanmin(pairs, axis=1), np.nanmax(pairs, axis=1)
    assert (rest >= low * (1 - 1e-9)).all()
    assert (rest <= high * (1 + 1e-9)).all()


@given(binary(least=2))
def test_worst_case_weights_sum_to_one_per_class(data):
    y, p = data
    weights = measure_fragility(y, p).worst_case_weights
    assert weights[y == 0].sum() == pytest.approx(1)
    assert weights[y == 1].sum() == pytest.approx(1)
    assert (weights >= 0).all()
