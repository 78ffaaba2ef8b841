"""Risk–coverage curves, Gini, KS and PSI, against literal references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from fragility import (
    area_under_risk_coverage,
    gini_score,
    ks_statistic,
    population_stability_index,
    risk_coverage_curve,
    surest_error_rate,
)
from fragility.metrics import ks_curve, population_stability

from .evidence_cases import KINDS, WEIGHTS, drawn
from .reference import evidence as reference


@pytest.fixture(autouse=True)
def strict():
    with np.errstate(all="raise"):
        yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_risk_and_coverage(kind, weights):
    y, p, found = drawn(1, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    given = None if weights is None else w
    held = w > 0
    confidence = np.maximum(p, 1 - p)[held]
    wrong = ((p > 0.5) != y)[held]
    curve = risk_coverage_curve(y, p, sample_weight=given)
    expected = reference.risk_coverage(wrong, confidence.tolist(), w[held])
    np.testing.assert_allclose(np.array([curve.coverage, curve.risk]).T, expected, atol=1e-12)
    assert curve.coverage[-1] == pytest.approx(1.0)
    for share in (0.01, 0.5, 0.9, 0.95, 1.0):
        own = surest_error_rate(y, p, coverage=share, sample_weight=given)
        literal = reference.errors_in_surest(wrong, confidence.tolist(), w[held], share)
        assert own == pytest.approx(literal, abs=1e-12)
    area = np.sum(np.diff(curve.coverage, prepend=0.0) * curve.risk)
    assert area_under_risk_coverage(y, p, sample_weight=given) == pytest.approx(area, abs=1e-12)


def test_several_classes():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 90), rng.dirichlet([1, 1, 1], 90)
    curve = risk_coverage_curve(y, p)
    wrong = p.argmax(axis=1) != y
    expected = reference.risk_coverage(wrong, p.max(axis=1).tolist(), np.ones(90))
    np.testing.assert_allclose(np.array([curve.coverage, curve.risk]).T, expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_gini_and_ks(kind, weights):
    y, p, found = drawn(2, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    given = None if weights is None else w
    own = gini_score(y, p, sample_weight=given)
    assert own == pytest.approx(reference.gini(y, p, w), abs=1e-12)
    assert own == pytest.approx(2 * roc_auc_score(y, p, sample_weight=w) - 1, abs=1e-12)
    ks = ks_statistic(y, p, sample_weight=given)
    assert ks == pytest.approx(reference.ks_statistic(y, p, w), abs=1e-12)
    if weights is None:
        assert ks == pytest.approx(ks_2samp(p[y == 0], p[y == 1]).statistic, abs=1e-12)


def test_limits_of_ks_and_gini():
    assert ks_statistic([0, 0, 1], [0.1, 0.2, 0.3]) == gini_score([0, 1], [-5.0, 7.0]) == 1.0
    assert ks_statistic([0, 1], [0.3, 0.3]) == gini_score([0, 1], [0.3, 0.3]) == 0.0
    assert ks_statistic([0, 1], [0.9, 0.1]) == 1.0  # the wrong way round is as far apart
    for function in (gini_score, ks_statistic):
        with pytest.raises(ValueError, match="Only one class has samples"):
            function([1, 1], [0.1, 0.2])
        with pytest.raises(ValueError, match="figure of two classes"):
            function([0, 1, 2], np.eye(3))


@pytest.mark.parametrize("n_bins", [2, 5, 10])
@pytest.mark.parametrize("decimals", [None, 1])
def test_population_stability(n_bins, decimals):
    rng = np.random.default_rng(n_bins)
    expected, actual = rng.beta(2, 5, 301), rng.beta(3, 5, 170)
    if decimals is not None:
        expected, actual = expected.round(decimals), actual.round(decimals)
    own = population_stability_index(expected, actual, n_bins=n_bins)
    literal = reference.population_stability_index(expected, actual, n_bins)
    assert own == pytest.approx(literal, abs=1e-12)
    assert own >= 0.0
    assert population_stability_index(expected, expected, n_bins=n_bins) == 0.0


def test_population_stability_by_bin():
    expected, actual = [0.1, 0.2, 0.6, 0.8], [0.3, 0.6, 0.7, 0.9]  # the median 0.4 is the edge
    bins = population_stability(expected, actual, n_bins=2)
    frame = bins.to_frame()
    assert frame["low"].tolist() == [-np.inf, 0.4]
    assert frame["high"].tolist() == [0.4, np.inf]
    assert frame["expected"].tolist() == [0.5, 0.5]
    assert frame["actual"].tolist() == [0.25, 0.75]
    terms = [-0.25 * np.log(0.5), 0.25 * np.log(1.5)]
    assert frame["term"].tolist() == pytest.approx(terms)
    assert population_stability_index(expected, actual, n_bins=2) == pytest.approx(sum(terms))


def test_population_without_a_bin_is_finite():
    found = population_stability_index(np.arange(100.0), np.full(20, 1e9))
    assert np.isfinite(found)
    assert found > 5.0
    assert population_stability_index([3.0] * 5, [3.0] * 9) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: population_stability_index([], [1.0]), "expected must be one row"),
        (lambda: population_stability_index([[1.0]], [1.0]), "expected must be one row"),
        (lambda: population_stability_index([1.0], [np.nan]), "actual must hold finite"),
        (lambda: population_stability_index([1.0], ["a"]), "actual must hold numbers"),
        (lambda: population_stability_index([1.0], [1.0], n_bins=1), "n_bins must be"),
        (lambda: surest_error_rate([0, 1], [0.1, 0.9], coverage=0), "coverage must be above 0"),
        (lambda: surest_error_rate([0, 1], [0.1, 0.9], coverage=2), "coverage must be a share"),
        (lambda: risk_coverage_curve([0, 1], [3, 9]), "y_score must hold probabilities"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_scores_above_tied_ones_are_not_the_same_population():
    assert population_stability_index([0.5] * 9, [0.5] * 9) == 0.0
    assert population_stability_index([0.5] * 9, [0.9] * 9) > 1.0
    assert population_stability_index([0.5] * 9, [0.1] * 9) > 1.0


def test_ks_curve_holds_the_statistic_and_where_it_is_reached():
    y, score = [0, 0, 0, 1, 1], [0.1, 0.3, 0.3, 0.3, 0.9]
    curve = ks_curve(y, score, sample_weight=[2, 1, 1, 1, 1])
    frame = curve.to_frame()
    assert frame["scores"].tolist() == [0.1, 0.3, 0.9]
    assert frame["negatives"].tolist() == [0.5, 1.0, 1.0]
    assert frame["positives"].tolist() == [0.0, 0.5, 1.0]
    assert (curve.ks, curve.threshold) == (0.5, 0.1)
    assert curve.ks == ks_statistic(y, score, sample_weight=[2, 1, 1, 1, 1])
