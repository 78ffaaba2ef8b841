"""Reliability curve, slope, intercept, O : E and ICI, against literal references."""

from __future__ import annotations

from functools import partial
from math import inf, isnan, log

import numpy as np
import pytest

from fragility import (
    calibration_intercept,
    calibration_slope,
    equal_mass_calibration_error,
    integrated_calibration_index,
    observed_expected_ratio,
    reliability_curve,
)

from .evidence_cases import KINDS, WEIGHTS, drawn, duplicated
from .reference import evidence as reference

NUMBERS = {
    calibration_slope: reference.calibration_slope,
    calibration_intercept: reference.calibration_intercept,
    observed_expected_ratio: reference.observed_expected_ratio,
    integrated_calibration_index: reference.integrated_calibration_index,
}
FIELDS = ("predicted", "observed", "lower", "upper", "counts")


@pytest.fixture(autouse=True)
def strict():
    with np.errstate(all="raise"):
        yield


def rows_of(curve):
    return np.array([getattr(curve, name) for name in FIELDS])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("function", NUMBERS)
def test_numbers_are_those_of_the_reference(function, kind, weights):
    y, p, found = drawn(KINDS.index(kind), kind)
    w = np.ones(y.size) if weights is None else found[weights]
    own = function(y, p, sample_weight=None if weights is None else w)
    assert own == pytest.approx(NUMBERS[function](y, p, w), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("function", [calibration_slope, calibration_intercept])
@pytest.mark.parametrize("heaviest", [1e16, 1e20, 1e29])
@pytest.mark.parametrize("place", range(4))
def test_one_case_of_nearly_all_the_weight(function, heaviest, place):
    y, p = np.array([0, 1, 0, 1]).repeat(3), np.linspace(0.1, 0.9, 12)
    w = np.where(np.arange(12) == 3 * place, heaviest, 1.0)
    if y[3 * place] == 1 and heaviest > 1e16:  # what happened is all of the weight that there is
        assert isnan(function(y, p, sample_weight=w))
    else:
        assert not np.isinf(function(y, p, sample_weight=w))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_curve_and_band_are_those_of_the_reference(kind, weights, n_bins):
    y, p, found = drawn(3, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    given = None if weights is None else w
    curve = reliability_curve(y, p, n_bins=n_bins, confidence=0.9, sample_weight=given)
    expected = reference.reliability_curve(y, p, w, n_bins, 0.9)
    np.testing.assert_allclose(rows_of(curve), expected, rtol=1e-9, atol=1e-9)
    # The bins of the calibration error: its mean is that of the distances.
    error = equal_mass_calibration_error(y, p, n_bins=n_bins, sample_weight=given)
    assert np.abs(curve.observed - curve.predicted).mean() == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["smooth", "rounded"])
def test_bins_of_equal_width(kind, weights):
    y, p, found = drawn(5, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    curve = reliability_curve(
        y, p, n_bins=5, strategy="uniform", sample_weight=None if weights is None else w
    )
    expected = reference.uniform_reliability(y, p, w, 5, 0.95)
    np.testing.assert_allclose(rows_of(curve), expected, rtol=1e-9, atol=1e-9)


def test_band_covers_the_frequency_and_narrows_with_more_cases():
    y, p, _ = drawn(1)
    few = reliability_curve(y, p, n_bins=5)
    many = reliability_curve(np.tile(y, 9), np.tile(p, 9), n_bins=5)
    np.testing.assert_allclose(few.observed, many.observed, atol=1e-12)
    for curve in (few, many):
        assert (curve.lower <= curve.observed).all()
        assert (curve.observed <= curve.upper).all()
    assert (many.upper - many.lower < few.upper - few.lower).all()


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("weights", [None, "real"])
def test_clusters(strategy, weights):
    y, p, found = drawn(2, "rounded")
    w = np.ones(y.size) if weights is None else found[weights]
    given = None if weights is None else w
    clusters = np.arange(y.size) // 5
    options = {"n_bins": 4, "strategy": strategy, "sample_weight": given}
    curve = reliability_curve(y, p, cluster=[f"patient {c}" for c in clusters], **options)
    if strategy == "quantile":
        shares = reference.equal_mass_groups(y, p, w, 4)[1]
        sizes = [reference.clustered_size(y, w, clusters, part) for part in shares]
        np.testing.assert_allclose(curve.effective, sizes, rtol=1e-9)
    plain, single = (
        reliability_curve(y, p, cluster=part, **options) for part in (None, np.arange(y.size))
    )
    for name in FIELDS:  # clusters of one case change nothing
        np.testing.assert_allclose(getattr(single, name), getattr(plain, name), atol=1e-9)
    assert (curve.effective <= plain.effective * (1 + 1e-12)).all()


def test_clusters_with_a_case_of_next_to_no_weight():
    y, p, _ = drawn(3, KINDS[0])
    clusters, w = np.arange(y.size) // 5, np.ones(y.size)
    curves = []
    for least in (1e-20, 0.0):
        w[np.argmax(p)] = least
        options = {"n_bins": 4, "sample_weight": w, "cluster": clusters}
        curves.append(rows_of(reliability_curve(y, p, **options))[:4])
    assert np.allclose(*curves, rtol=1e-9, atol=0.0)


def test_repeated_cases_of_a_cluster_add_little():
    y, p, _ = drawn(4)
    rows = np.repeat(np.arange(y.size), 6)
    options = {"n_bins": 3, "cluster": rows}
    curve = reliability_curve(y[rows], p[rows], **options)
    plain = reliability_curve(y, p, n_bins=3)
    np.testing.assert_allclose(curve.effective, plain.effective, rtol=0.06)
    np.testing.assert_allclose(curve.counts, 6 * plain.counts)


@pytest.mark.parametrize("function", [*NUMBERS, partial(reliability_curve, n_bins=6)])
@pytest.mark.parametrize("times", [(1, 3), (5, 2)])
def test_another_prevalence_is_that_of_repeated_cases(function, times):
    y, p, _ = drawn(6, "rounded")
    *repeated, prevalence = duplicated(y, p, times)
    found, expected = function(y, p, prevalence=prevalence), function(*repeated)
    if isinstance(found, float):
        assert found == pytest.approx(expected, rel=1e-9)
        return
    for name in ("predicted", "observed"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    assert found.counts.sum() == pytest.approx(y.size)  # the cases there are
    assert (found.effective < expected.effective).all()


@pytest.mark.parametrize("function", [*NUMBERS, partial(reliability_curve, n_bins=6)])
def test_order_names_and_whole_weights_do_not_matter(function):
    y, p, weights = drawn(7, "rounded")
    w = weights["whole"].astype(int)
    names = np.array(["no", "yes"])
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(y.size), w))
    found = [
        function(y, p, sample_weight=w),
        function(y[order], p[order]),
        function(names[y], np.column_stack([1 - p, p]), sample_weight=7.0 * w),
        function(y == 1, p, sample_weight=w, pos_label=True),
    ]
    for other in found[1:]:
        if isinstance(other, float):
            assert other == pytest.approx(found[0], rel=1e-9)
        else:
            np.testing.assert_allclose(other.observed, found[0].observed, atol=1e-12)


def test_counts_are_the_weights_as_given():
    y, p, weights = drawn(7)
    for scale in (1.0, 1e150):
        w = weights["real"] * scale
        assert reliability_curve(y, p, sample_weight=w).counts.sum() == pytest.approx(w.sum())


def test_several_classes_are_confidence_against_right():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    p = rng.dirichlet([1, 1, 1], 200) * 0.8 + 0.2 * np.eye(3)[y]
    right, confidence = p.argmax(axis=1) == y, p.max(axis=1)
    one, two = reliability_curve(y, p), reliability_curve(right, confidence)
    np.testing.assert_allclose(rows_of(one), rows_of(two), atol=1e-12)
    assert calibration_slope(y, p) == calibration_slope(right, confidence)


def test_a_calibrated_model_and_an_overconfident_one():
    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=40_000)
    y = rng.random(z.size) < 1 / (1 + np.exp(-z))
    fair, bold, low = (1 / (1 + np.exp(-x)) for x in (z, 2 * z, z - 1))
    assert calibration_slope(y, fair) == pytest.approx(1, abs=0.03)
    assert calibration_slope(y, bold) == pytest.approx(0.5, abs=0.02)
    assert calibration_slope(y, low) == pytest.approx(1, abs=0.03)
    assert calibration_intercept(y, low) == pytest.approx(1, abs=0.05)
    assert observed_expected_ratio(y, low) > 1.2
    assert integrated_calibration_index(y, fair) < 0.01
    # The true curve is known: the mean of |P(y = 1) − p|.
    expected = np.abs(fair - bold).mean()
    assert integrated_calibration_index(y, bold) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("y", "p", "slope"),
    [
        ([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], inf),
        ([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.9], inf),  # they touch
        ([1, 1, 0, 0], [0.1, 0.2, 0.6, 0.9], -inf),
        ([0, 1, 0, 1], [0.4] * 4, None),
        ([0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0], 0.0),
    ],
)
def test_limits_of_the_slope(y, p, slope):
    found = calibration_slope(y, p)
    assert isnan(found) if slope is None else found == pytest.approx(slope, abs=1e-12)
    assert np.isfinite(calibration_intercept(y, p))


def test_one_class():
    for function in (calibration_slope, calibration_intercept):
        assert isnan(function([1, 1], [0.2, 0.4], labels=[0, 1]))
    assert observed_expected_ratio([1, 1], [0.25, 0.25], labels=[0, 1]) == 4.0
    assert observed_expected_ratio([1, 1], [0.0, 0.0], labels=[0, 1]) == inf
    assert isnan(observed_expected_ratio([0, 0], [0.0, 0.0], labels=[0, 1]))
    curve = reliability_curve([1, 1], [0.2, 0.4], labels=[0, 1])
    np.testing.assert_allclose(curve.observed, 1.0)


def test_intercept_of_constant_scores():
    assert calibration_intercept([0, 1, 1, 1], [0.5] * 4) == pytest.approx(log(3), abs=1e-12)
    assert calibration_intercept([0, 1], [0.0, 0.0]) == pytest.approx(27.63, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number of 1 or more"),
        ({"strategy": "kmeans"}, "strategy must be one of 'quantile', 'uniform'"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"prevalence": 1.0}, "prevalence must lie between 0 and 1"),
        ({"prevalence": "high"}, "prevalence must be a number"),
        ({"cluster": [1, 2]}, "cluster has 2 entries for 4 samples"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.8], **options)


def test_refused_scores():
    with pytest.raises(ValueError, match="y_score must hold probabilities"):
        calibration_slope([0, 1], [-3.0, 3.0])
    with pytest.raises(ValueError, match=r"prevalence is the share.*3 classes"):
        reliability_curve([0, 1, 2], np.eye(3), prevalence=0.1)
    with pytest.raises(ValueError, match="only one has samples"):
        reliability_curve([1, 1], [0.2, 0.4], labels=[0, 1], prevalence=0.1)


def test_the_band_at_another_base_rate_is_that_of_the_data_with_shifted_odds():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 300), rng.random(300)
    plain = reliability_curve(y, p, n_bins=5, strategy="uniform")
    found = reliability_curve(y, p, n_bins=5, strategy="uniform", prevalence=0.02)
    base = y.mean()
    ratio = (0.02 / 0.98) / (base / (1.0 - base))

    def shifted(share):
        odds = ratio * share / (1.0 - share)
        return odds / (1.0 + odds)

    for name in ("observed", "lower", "upper"):
        assert getattr(found, name) == pytest.approx(shifted(getattr(plain, name)), rel=1e-9)
    assert found.counts == pytest.approx(plain.counts)
    alone = reliability_curve(y, p, n_bins=5, cluster=np.arange(300))
    assert alone.upper == pytest.approx(reliability_curve(y, p, n_bins=5).upper, rel=0.02)


def test_one_cluster_is_refused():
    with pytest.raises(ValueError, match="at least 2 clusters"):
        reliability_curve([0, 1, 0, 1, 1], [0.1, 0.9, 0.2, 0.8, 0.6], cluster=[1] * 5)
