"""Intervals and tests of sketches: those of the samples themselves."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from fragility import FragilitySketch, SketchFragility, compare_sketches, measure_fragility
from fragility.figures.permutation import permutation_test
from fragility.moments import Sample

from .reference import inference


def groups(sample):
    y, p = sample
    return [Sample(p[~y]), Sample(p[y], factor=-1.0)]


def drawn(name, n, rng):
    """Labels and scores of models of several kinds."""
    if name in ("often wrong", "seldom wrong", "few positives"):
        a, share = {"often wrong": (2.2, 0.5), "seldom wrong": (5, 0.5), "few positives": (3, 0.1)}[
            name
        ]
        y = rng.random(n) < share
        return y, np.where(y, rng.beta(a, 1.5, n), rng.beta(1.5, a, n))
    logit = 2 * rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-logit * (2.5 if name == "bold" else 1)))
    return y, np.round(p, 1) if name == "ties" else p


KINDS = ["often wrong", "seldom wrong", "few positives", "calibrated", "bold", "ties"]


def sketched(y, p, **options):
    return FragilitySketch(labels=[False, True], **options).update(y, p)


def samples(y, p):
    return p[~y], p[y]


@pytest.mark.parametrize("n", [40, 300, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_those_of_the_samples(kind, n):
    y, p = drawn(kind, n, np.random.default_rng(n))
    whole, found = measure_fragility(y, p), sketched(y, p).fragility()
    np.testing.assert_allclose(found.standard_error, whole.standard_error, rtol=1e-9)
    for confidence in (0.5, 0.95, 0.999):
        wanted = whole.interval(confidence)
        np.testing.assert_allclose(found.interval(confidence), wanted, rtol=1e-9)


def test_intervals_are_those_of_the_definition():
    y, p = drawn("calibrated", 60, np.random.default_rng(0))
    found = sketched(y, p).fragility()
    np.testing.assert_allclose(
        found.standard_error, inference.standard_error(*samples(y, p)), rtol=1e-8
    )
    wanted = inference.score_interval(*samples(y, p), 1.959963984540054)
    np.testing.assert_allclose(found.interval(), wanted, rtol=1e-7)


@pytest.mark.parametrize("target", [-0.1, 0.2])
def test_intervals_at_a_target(target):
    y, p = drawn("calibrated", 500, np.random.default_rng(1))
    whole = measure_fragility(y, p, target=target)
    found = sketched(y, p).fragility(target)
    np.testing.assert_allclose(found.interval(), whole.interval(), rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, whole.standard_error, rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]),
        ([0, 0, 0, 1, 1, 1], [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]),
        ([0, 1, 1, 1], [0.5, 0.4, 0.6, 0.7]),
        ([0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5]),
        ([0, 0, 0, 1, 1, 1], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    ],
    ids=["apart", "reversed", "one of a class", "constant", "saturated"],
)
def test_intervals_at_the_ends(y, p):
    whole, found = measure_fragility(y, p), FragilitySketch().update(y, p).fragility()
    np.testing.assert_allclose(found.interval(), whole.interval(), rtol=1e-9)
    assert isnan(found.standard_error) == isnan(whole.standard_error)


def test_the_positive_class_may_be_the_first():
    y, p = drawn("bold", 400, np.random.default_rng(2))
    found = FragilitySketch(pos_label=False).update(y, 1 - p).fragility()
    wanted = measure_fragility(y, 1 - p, pos_label=False)
    np.testing.assert_allclose(found.interval(), wanted.interval(), rtol=1e-9)
    assert found.brier == pytest.approx(brier_score_loss(~y, 1 - p))


def test_equal_weights_are_no_weights():
    y, p = drawn("bold", 400, np.random.default_rng(2))
    plain = sketched(y, p).fragility()
    found = FragilitySketch().update(y, p, np.full(400, 7.0)).fragility()
    np.testing.assert_allclose(found.interval(), plain.interval(), rtol=1e-12)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-12)


def test_a_tiny_index_has_a_cautious_interval():
    """Scores that overlap by little, in one bin: it cannot tell the index, but its upper limit."""
    y = np.repeat([False, True], 50)
    p = np.r_[np.full(47, 0.1), 0.5 + np.array([-7e-5, 0, 1e-7]), np.full(3, 0.5), np.full(47, 0.9)]
    whole, found = measure_fragility(y, p), sketched(y, p).fragility()
    assert found.upper - found.lower > 1e-5 * found.value
    assert found.interval().low == 0.0
    assert found.interval().high == pytest.approx(whole.interval().high, rel=1e-9)
    assert isnan(found.standard_error)
    other = sketched(*drawn("bold", 5000, np.random.default_rng(0)))
    assert isnan(compare_sketches(sketched(y, p), other).p_value)


def test_what_a_sketch_cannot_tell():
    y, p = drawn("bold", 400, np.random.default_rng(2))
    weighted = FragilitySketch().update(y, p, 1.0 + y)  # by class they are equal
    assert weighted.fragility().interval().high > 0
    weighted.update(y, p)
    with pytest.raises(ValueError, match="different weights cannot tell an interval"):
        weighted.fragility().interval()
    assert isnan(weighted.fragility().standard_error)
    with pytest.raises(ValueError, match="different weights cannot tell an interval"):
        compare_sketches(weighted, sketched(y, p))
    rng = np.random.default_rng(0)
    for multi_class in ("ovo", "ovr"):
        several = FragilitySketch(64, multi_class=multi_class)
        several.update(rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60))
        with pytest.raises(ValueError, match="several classes cannot tell an interval"):
            several.fragility().interval()
        assert several.fragility().auc is None
        assert isnan(several.fragility().brier)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        sketched(y, p).fragility().interval(95)


def test_what_was_measured_does_not_change_with_the_sketch():
    y, p = drawn("bold", 400, np.random.default_rng(2))
    sketch = sketched(y, p)
    found = sketch.fragility()
    sketch.update(*drawn("often wrong", 4000, np.random.default_rng(3)))
    assert found.interval() == sketched(y, p).fragility().interval()
    assert sketch.fragility().interval() != found.interval()


@pytest.mark.parametrize("n_bins", [16, 4096])
@pytest.mark.parametrize("kind", KINDS)
def test_companions(kind, n_bins):
    y, p = drawn(kind, 1000, np.random.default_rng(4))
    found = sketched(y, p, n_bins=n_bins).fragility()
    exact = roc_auc_score(y, p)
    low, high = found.auc.bounds or (found.auc.value, found.auc.value)
    assert low <= exact <= high
    assert low <= found.auc.value <= high
    assert found.brier == pytest.approx(brier_score_loss(y, p), abs=1e-7)
    assert all(name in repr(found) for name in ("ratio", "AUC", "Brier"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_comparison_is_that_of_its_definition(kind):
    rng = np.random.default_rng(5)
    first, second = drawn(kind, 90, rng), drawn(kind, 60, rng)
    found = compare_sketches(sketched(*first), sketched(*second, n_bins=8192))
    quotient, p_value, (low, high) = inference.independent_test(samples(*first), samples(*second))
    assert found.quotient == pytest.approx(quotient, rel=1e-8)
    if not isnan(p_value):
        bounds = permutation_test(*map(groups, (first, second)))
        p_value = float(np.clip(p_value, *bounds))
        # Neither test sees a difference, so 1 stays in the interval.
        assert p_value > 0.05
        low, high = min(low, 1.0), max(high, 1.0)
    assert found.p_value == pytest.approx(p_value, abs=2e-3, nan_ok=True)
    if found.interval.high < 1e6:
        np.testing.assert_allclose(found.interval, (low, high), rtol=1e-6)
    assert found.difference == found.a - found.b
    swapped = compare_sketches(sketched(*second, n_bins=8192), sketched(*first))
    # Tied scores lie a little apart in bins of different widths, and so in another order.
    assert swapped.p_value == pytest.approx(found.p_value, rel=1e-3)
    assert swapped.quotient == pytest.approx(1 / found.quotient)


def test_the_ratio_does_not_see_the_scale():
    rng = np.random.default_rng(6)
    y, p = drawn("calibrated", 3000, rng)
    other = drawn("calibrated", 3000, rng)
    plain = compare_sketches(sketched(y, p), sketched(*other))
    shrunk = compare_sketches(sketched(y, 0.25 + 0.5 * p), sketched(*other))
    assert shrunk.p_value < 1e-6
    assert shrunk.ratio.quotient == pytest.approx(plain.ratio.quotient, rel=1e-6)
    assert shrunk.ratio.p_value > 0.5
    assert plain.ratio.p_value > 0.5


def test_equal_samples_do_not_differ():
    sketch = sketched(*drawn("bold", 300, np.random.default_rng(7)))
    found = compare_sketches(sketch, sketch)
    assert (found.difference, found.quotient, found.p_value) == (0.0, 1.0, 1.0)
    assert not found.differs
    assert found.interval.low < 1.0 < found.interval.high
    assert isinstance(found.of_a, SketchFragility)


@pytest.mark.parametrize(("p", "value"), [([0.1, 0.2, 0.8, 0.9], 0.0), ([0.5, 0.8, 0.7, 0.4], inf)])
def test_no_test_of_an_index_that_is_zero_or_infinite(p, value):
    odd = sketched([False, False, True, True], p)
    other = sketched(*drawn("bold", 300, np.random.default_rng(7)))
    found = compare_sketches(odd, other)
    assert found.a == value
    assert isnan(found.p_value)
    assert isnan(found.standard_error)
    assert all(map(isnan, found.interval))
    assert "No test of a difference: the index of a is 0 or infinite." in found.told()
    assert "intervals of the two indices overlap: none is shown" in found.told()
    assert not found.differs


def test_no_test_of_a_single_sample():
    one = sketched([False, True, True], [0.5, 0.4, 0.8])
    found = compare_sketches(one, sketched(*drawn("bold", 300, np.random.default_rng(7))))
    assert isnan(found.p_value)
    assert "a class has a single sample" in found.told()


def test_what_cannot_be_compared():
    good = sketched(*drawn("bold", 300, np.random.default_rng(7)))
    with pytest.raises(TypeError, match="takes sketches; got int"):
        compare_sketches(good, 3)
    with pytest.raises(ValueError, match="differ in labels"):
        compare_sketches(good, FragilitySketch().update(["a", "b"], [0.1, 0.2]))
    with pytest.raises(ValueError, match="differ in the positive class: True and False"):
        compare_sketches(good, FragilitySketch(pos_label=False).update([False, True], [0.1, 0.2]))
    with pytest.raises(ValueError, match="empty"):
        compare_sketches(good, FragilitySketch())


def test_the_level_of_the_test():
    """Of pairs of samples of one kind, 5 % differ: of these 600 from 2.5 to 7 %."""
    rng = np.random.default_rng(8)
    p_values = []
    for kind in ("seldom wrong", "few positives", "calibrated", "often wrong"):
        for n, m in ((200, 200), (200, 1500)):
            for _ in range(75):
                pair = (sketched(*drawn(kind, size, rng), n_bins=512) for size in (n, m))
                p_values.append(compare_sketches(*pair).p_value)
    tested = np.array([p_value for p_value in p_values if not isnan(p_value)])
    assert tested.size > 590
    assert 0.025 < np.mean(tested < 0.05) < 0.07
    assert 0.13 < np.mean(tested < 0.2) < 0.27


def test_the_power_of_the_test():
    """A model that grows bolder is found out."""
    rng = np.random.default_rng(9)
    found = 0
    for _ in range(40):
        old, new = drawn("calibrated", 3000, rng), drawn("bold", 500, rng)
        found += compare_sketches(sketched(*new), sketched(*old)).differs
    assert found >= 38
