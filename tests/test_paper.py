"""The paper's numbered results, and its errors with their counter-examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fragility import fragility_index, measure_fragility, wasserstein_fragility_index

from .reference.pairs import bisected_index, joint_kl_index, pair_matrix
from .test_invariances import binary

targets = st.floats(-0.5, 0.8).map(lambda v: round(v, 3))


def index(negatives, positives, target=0.0):
    y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
    return fragility_index(y, np.r_[negatives, positives], target=target)


def errors_of(y, p):
    return pair_matrix(p[y == 0], p[y == 1]).ravel()


# Theorem 1


@given(binary(), targets, st.floats(1e-3, 1e3))
def test_a_positive_homogeneity(data, target, alpha):
    y, p = data
    value = fragility_index(y, p, target=target)
    scaled = fragility_index(y, alpha * p, target=alpha * target)
    tolerance = 1e-13 * max(value, 100.0)  # the mean rounds, and a large index magnifies it
    assert scaled == pytest.approx(alpha * value, rel=tolerance, abs=1e-13 * alpha) or value > 1e11


@given(binary(), targets, targets, st.data())
def test_b_subadditivity(data, target, other_target, draw):
    y, p = data
    q = np.array(draw.draw(st.lists(st.floats(0, 1), min_size=len(y), max_size=len(y))))
    together = fragility_index(y, p + q, target=target + other_target)
    parts = fragility_index(y, p, target=target) + fragility_index(y, q, target=other_target)
    assert together <= parts * (1 + 1e-9) + 1e-12


@given(binary(), targets)
def test_c_prorobustness(data, target):
    y, p = data
    if errors_of(y, p).max() <= target:
        assert fragility_index(y, p, target=target) == 0.0
    else:
        assert fragility_index(y, p, target=target) > 0.0


@given(binary(), targets)
def test_d_antifragility(data, target):
    y, p = data
    mean = errors_of(y, p).mean()
    assume(abs(mean - target) > 1e-12)
    assume(errors_of(y, p).max() > target)
    assert (fragility_index(y, p, target=target) == math.inf) == (mean > target)


@given(binary(), targets, targets)
def test_e_target_tradeoff(data, one, other):
    y, p = data
    low, high = sorted((one, other))
    assert fragility_index(y, p, target=high) <= fragility_index(y, p, target=low) * (1 + 1e-9)


@given(binary(), targets, st.data())
def test_f_monotonicity(data, target, draw):
    """Raising negatives and lowering positives raises every error, hence the index."""
    y, p = data
    steps = np.array(draw.draw(st.lists(st.floats(0, 0.5), min_size=len(y), max_size=len(y))))
    worse = p + np.where(y == 0, steps, -steps)
    value = fragility_index(y, p, target=target)
    assert fragility_index(y, worse, target=target) >= value * (1 - 1e-9)


@given(binary(), targets)
def test_root_lemma(data, target):
    """The moment at the index meets the target: the definition, by an independent sum."""
    y, p = data
    value = fragility_index(y, p, target=target)
    assume(1e-6 < value < 1e3)
    errors = errors_of(y, p)
    top = errors.max()
    attained = value * math.log(np.mean(np.exp((errors - top) / value))) + top
    assert attained == pytest.approx(target, abs=1e-9)


@given(binary(), targets, st.floats(-1, 1))
def test_tail_bound(data, target, theta):
    y, p = data
    bound = measure_fragility(y, p, target=target).tail_bound(theta)
    assert np.mean(errors_of(y, p) >= theta) <= bound + 1e-12


@given(binary(), targets, st.floats(0.01, 0.99))
def test_value_at_risk_bound(data, target, level):
    y, p = data
    result = measure_fragility(y, p, target=target)
    errors = np.sort(errors_of(y, p))
    rank = math.ceil(level * errors.size - 1e-9)
    assert errors[max(rank, 1) - 1] <= result.var_bound(level) + 1e-9
    if 0 < result.value < math.inf:
        expected = target - result.value * math.log(1 - level)
        assert result.var_bound(level) == pytest.approx(expected)


# Errata


@pytest.mark.slow
def test_erratum_1_the_lemma_is_not_the_joint_divergence():
    """KL on (x, y) jointly gives about twice the index of the paper's lemma and table."""
    a, b = ([0.2, 0.7], [0.6, 0.9]), ([0.1, 0.8], [0.6, 0.9])
    assert index(*a) == pytest.approx(0.0731, abs=5e-5)
    assert index(*b) == pytest.approx(0.1633, abs=5e-5)
    assert joint_kl_index(*a) == pytest.approx(0.146, abs=5e-4)
    assert joint_kl_index(*b) == pytest.approx(0.341, abs=5e-4)


def test_erratum_2_cases_without_a_root():
    """No root for max < target and mean = target, many if all are; the index is still defined."""
    assert index([0.2], [0.6, 0.9], target=0.1) == 0.0
    assert index([0.2, 0.6], [0.3, 0.5]) == math.inf
    assert index([0.3, 0.3], [0.3]) == 0.0
    # Doubling a start above this root would never come down to it.
    small = index([0.2, 0.51], [0.5, 0.9])
    assert 0 < small < 0.01
    assert small == pytest.approx(bisected_index(pair_matrix([0.2, 0.51], [0.5, 0.9]), 0.0))


def test_erratum_3_cost_alignment_is_false():
    """Equal error rates, A more confident in its errors, yet A's index is smaller."""
    a, b = ([0.4, 0.9], [0.8]), ([0.2, 0.8], [0.6])
    for negatives, positives in (a, b):  # at threshold one half each errs on one of three
        wrong = sum(p > 0.5 for p in negatives) + sum(p < 0.5 for p in positives)
        assert wrong == 1
    confidence = [max(p for p in negatives if p > 0.5) for negatives, _ in (a, b)]
    assert confidence[0] > confidence[1]
    right = [sorted([1 - n for n in negatives if n < 0.5] + pos) for negatives, pos in (a, b)]
    assert right[0] == pytest.approx(right[1])  # equally confident when right: {.6, .8}
    assert index(*a) == pytest.approx(0.152, abs=5e-4)
    assert index(*b) == pytest.approx(0.416, abs=5e-4)
    assert index(*a) < index(*b)


def test_erratum_4_the_wasserstein_bound_ignores_the_labels():
    """The paper's bound does not change when the labels are swapped; the index does."""
    rng = np.random.default_rng(8)
    logits = np.r_[rng.normal(-1, 1, 200), rng.normal(1, 1, 200)]
    y = np.repeat([0, 1], 200)
    bound = max(2.0, 2.0 * np.mean(np.logaddexp(0, logits) + np.logaddexp(0, -logits)))
    good = wasserstein_fragility_index(y, logits, weight_norm=1.0)
    assert good <= 0.5 < bound
    assert wasserstein_fragility_index(1 - y, logits, weight_norm=1.0) == math.inf > bound
