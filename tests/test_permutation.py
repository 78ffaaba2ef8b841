"""The test that two samples have the same index, against all exchanges of their cases."""

from __future__ import annotations

import numpy as np
import pytest

from fragility import FragilitySketch, compare_sketches
from fragility.figures import permutation as exchanges
from fragility.figures.permutation import common_root, permutation_test
from fragility.moments import Sample

from .reference import permutation


@pytest.fixture
def n_pairs(monkeypatch):
    """Fewer arrangements, because the reference loops over them."""
    monkeypatch.setattr(exchanges, "_PAIRS", 300)
    exchanges._uniforms.cache_clear()
    yield 300
    exchanges._uniforms.cache_clear()


def drawn(shape, n, m, rng):
    """Negatives and positives, of beta distributions."""
    return rng.beta(1.5, shape, n), rng.beta(shape, 1.5, m)


def groups(sample):
    negatives, positives = sample
    return [Sample(negatives), Sample(positives, factor=-1.0)]


def sketched(sample, **options):
    y = np.repeat([False, True], [len(part) for part in sample])
    return FragilitySketch(**options).update(y, np.concatenate(sample))


def has_index(sample):
    negatives, positives = sample
    return negatives.max() > positives.min() and negatives.mean() < positives.mean()


def pairs(n_pairs, shape, sizes, rng):
    found = []
    while len(found) < n_pairs:
        pair = [drawn(shape, *size, rng) for size in sizes]
        if all(map(has_index, pair)):
            found.append(pair)
    return found


@pytest.mark.parametrize("shape", [1.8, 3.0])
@pytest.mark.parametrize("sizes", [((5, 5), (5, 5)), ((3, 6), (7, 3))])
def test_small_samples_against_all_exchanges(shape, sizes):
    rng = np.random.default_rng(0)
    for pair in pairs(4, shape, sizes, rng):
        exact = permutation.by_all_exchanges(*pair)
        low, high = permutation_test(*map(groups, pair))
        # Every case is drawn: all that is left is the chance of 8,000 draws.
        assert low == pytest.approx(exact, abs=4.0 * np.sqrt(exact * (1 - exact) / 8000) + 1e-3)
        assert high == pytest.approx((1.0 + 8000 * low) / 8001)


@pytest.mark.parametrize("shape", [1.8, 3.0, 6.0])
@pytest.mark.parametrize(
    "sizes", [((30, 25), (40, 35)), ((90, 80), (150, 20)), ((20, 30), (300, 400))]
)
def test_drawn_exchanges_are_those_of_the_definition(shape, sizes, n_pairs):
    rng = np.random.default_rng(1)
    (pair,) = pairs(1, shape, sizes, rng)
    wanted = permutation.by_drawn_exchanges(*pair, n_pairs=n_pairs)
    np.testing.assert_allclose(permutation_test(*map(groups, pair)), wanted, rtol=1e-6)


@pytest.mark.parametrize("sizes", [((40, 30), (60, 90)), ((100, 150), (200, 120))])
@pytest.mark.parametrize("width", [0.03, 0.003])
def test_one_bad_mistake(sizes, width, n_pairs):
    """Without it the mean of a sample is next to nothing, and still known to all digits."""
    rng = np.random.default_rng(7)
    pair = []
    for (n, m), worst in zip(sizes, (0.9, 0.7), strict=True):
        negatives, positives = width * rng.random(n), 1.0 - width * rng.random(m)
        negatives[0], positives[0] = worst, 0.5
        pair.append((negatives, positives))
    wanted = permutation.by_drawn_exchanges(*pair, n_pairs=n_pairs)
    np.testing.assert_allclose(permutation_test(*map(groups, pair)), wanted, rtol=1e-6)


def test_the_rest_is_normal():
    """More cases than are drawn: the p-value is that of many exchanges of all of them."""
    rng = np.random.default_rng(2)
    for first, second in pairs(3, 3.0, ((150, 150), (300, 100)), rng):
        classes = permutation.tilted_classes(first, second)
        change, square = permutation.statistic([(x[:n], x[n:]) for x, n in classes])
        beyond = 0
        for _ in range(4000):
            mixed = [(rng.permutation(x), n) for x, n in classes]
            other, own = permutation.statistic([(x[:n], x[n:]) for x, n in mixed])
            beyond += abs(other) / np.sqrt(own) >= abs(change) / np.sqrt(square)
        low, _ = permutation_test(groups(first), groups(second))
        assert low == pytest.approx(beyond / 4000, abs=0.04)


@pytest.mark.parametrize("shape", [2.0, 6.0])
def test_bins_tell_what_cases_tell(shape):
    rng = np.random.default_rng(3)
    for pair in pairs(5, shape, ((90, 110), (500, 300)), rng):
        known = [sketched(part).fragility()._evidence for part in pair]
        found = permutation_test(*(part.groups(part.pairs[0]) for part in known))
        np.testing.assert_allclose(found, permutation_test(*map(groups, pair)), atol=2e-3)


def test_samples_may_change_places():
    rng = np.random.default_rng(4)
    for pair in pairs(5, 4.0, ((60, 60), (60, 60)), rng) + pairs(5, 4.0, ((50, 9), (200, 90)), rng):
        there = permutation_test(*map(groups, pair))
        back = permutation_test(*map(groups, pair[::-1]))
        np.testing.assert_allclose(there, back, rtol=1e-9)


def test_the_common_root_does_not_see_a_shift_of_all_scores():
    rng = np.random.default_rng(5)
    ((first, second),) = pairs(1, 3.0, ((100, 100), (100, 100)), rng)
    moved = [part + 0.25 for part in second]
    root = common_root(groups(first), groups(second))
    assert root == pytest.approx(permutation.common_root(first, second), rel=1e-9)
    assert common_root(groups(first), groups(moved)) == pytest.approx(root, rel=1e-9)


def test_intervals_agree_with_the_test():
    rng = np.random.default_rng(6)
    answers = set()
    for shape, other in ((3.0, 3.0), (3.0, 4.0), (6.0, 4.5)):
        for _ in range(25):
            pair = drawn(shape, 100, 120, rng), drawn(other, 150, 80, rng)
            if not all(map(has_index, pair)):
                continue
            found = compare_sketches(*map(sketched, pair))
            low, high = found.interval
            assert found.differs == (not low <= 1.0 <= high)
            assert low <= found.quotient <= high
            answers.add(found.differs)
    assert answers == {True, False}


def test_few_distinct_scores():
    """Whole classes are ties; only the number of mistakes tells the samples apart."""

    def sample(n, wrong):
        negatives, positives = np.zeros(n), np.ones(n)
        negatives[:wrong], positives[:wrong] = 1.0, 0.0
        return negatives, positives

    same = compare_sketches(sketched(sample(100, 10)), sketched(sample(100, 10)))
    near = compare_sketches(sketched(sample(100, 10)), sketched(sample(100, 12)))
    far = compare_sketches(sketched(sample(100, 5)), sketched(sample(100, 30)))
    assert same.p_value == 1.0
    assert near.p_value > 0.3
    assert far.p_value < 1e-3
