"""Operating points and net benefit, against counts case by case."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest

from fragility import implied_threshold, net_benefit, operating_points
from fragility.figures.operating import ks_statistic
from fragility.figures.operating import operating_points as points_of_atoms
from fragility.scores.sums import binned_scores

from .evidence_cases import KINDS, WEIGHTS, drawn, duplicated
from .reference import evidence as reference

THRESHOLDS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.9, 1.0)


@pytest.fixture(autouse=True)
def strict():
    with np.errstate(all="raise"):
        yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_points_are_those_of_the_reference(kind, weights):
    y, p, found = drawn(1, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    points = operating_points(y, p, THRESHOLDS, sample_weight=None if weights is None else w)
    for place, threshold in enumerate(THRESHOLDS):
        for name, value in reference.operating_point(y, p, w, threshold).items():
            own = getattr(points, name)[place]
            assert own == pytest.approx(value, abs=1e-12, nan_ok=True), (name, threshold)
        if threshold < 1.0:
            benefit = reference.net_benefit(y, p, w, threshold)
            assert points.net_benefit[place] == pytest.approx(benefit, abs=1e-12)
    assert isnan(points.net_benefit[-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_net_benefit_is_that_of_the_reference(kind, weights):
    y, p, found = drawn(2, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    given = None if weights is None else w
    expected = [reference.net_benefit(y, p, w, t) for t in THRESHOLDS[:-1]]
    own = net_benefit(y, p, THRESHOLDS[:-1], sample_weight=given)
    np.testing.assert_allclose(own, expected, atol=1e-12)
    one = net_benefit(y, p, 0.35, sample_weight=given)
    assert isinstance(one, float)
    assert one == pytest.approx(expected[3], abs=1e-12)


def test_treating_all_and_none():
    y, _, _ = drawn(3)
    share = y.mean()
    assert net_benefit(y, np.ones(y.size), 0.3) == pytest.approx(share - (1 - share) * 0.3 / 0.7)
    assert net_benefit(y, np.zeros(y.size), 0.3) == 0.0
    assert net_benefit(y, y.astype(float), 0.3) == pytest.approx(share)


@pytest.mark.parametrize("times", [(1, 3), (7, 2)])
def test_another_prevalence_is_that_of_repeated_cases(times):
    y, p, _ = drawn(4, "rounded")
    ys, ps, prevalence = duplicated(y, p, times)
    found = operating_points(y, p, THRESHOLDS, prevalence=prevalence)
    expected = operating_points(ys, ps, THRESHOLDS)
    for name, values in vars(expected).items():
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-9, atol=1e-12)
    own = net_benefit(y, p, 0.2, prevalence=prevalence)
    assert own == pytest.approx(net_benefit(ys, ps, 0.2), abs=1e-12)
    same = operating_points(y, p, THRESHOLDS)  # neither depends on the base rate
    np.testing.assert_allclose(found.sensitivity, same.sensitivity, atol=1e-12)
    np.testing.assert_allclose(found.specificity, same.specificity, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_alert_rates(kind, weights):
    y, p, found = drawn(5, kind)
    w = np.ones(y.size) if weights is None else found[weights]
    rates = [0.0, 0.01, 0.1, 0.5, 0.77, 1.0]
    points = operating_points(y, p, alert_rates=rates, sample_weight=None if weights is None else w)
    held = w > 0
    expected = [reference.alert_threshold(p[held].tolist(), w[held], rate) for rate in rates]
    assert points.thresholds.tolist() == expected
    assert (points.flagged <= np.array(rates) + 1e-12).all()
    assert points.thresholds[0] == inf
    assert points.flagged[0] == 0.0
    assert isnan(points.ppv[0])


def test_defaults_any_scores_and_labels():
    y, p, _ = drawn(6)
    points = operating_points(np.array(["a", "b"])[y], p, pos_label="a")
    np.testing.assert_allclose(points.thresholds, np.arange(1, 10) / 10)
    swapped = operating_points(1 - y, p)
    np.testing.assert_array_equal(points.sensitivity, swapped.sensitivity)
    scores = np.log(p / (1 - p))
    logits = operating_points(y, scores, [0.0])
    np.testing.assert_array_equal(logits.ppv, operating_points(y, p, [0.5]).ppv)
    assert operating_points(y, p, 0.5).thresholds.tolist() == [0.5]


def test_no_positive_among_the_flagged():
    points = operating_points([0, 0, 1], [0.9, 0.2, 0.1], [0.5])
    assert points.number_needed_to_evaluate.tolist() == [inf]
    none = operating_points([0, 0], [0.9, 0.2], [0.5], labels=[0, 1])
    assert isnan(none.sensitivity[0])


@pytest.mark.parametrize(
    ("costs", "expected"),
    [(5, 0.5), ([[0, 1], [9, 0]], 0.1), ([[1, 3], [4, 2]], 0.5), ([[0, 0], [1, 0]], 0.0)],
)
def test_threshold_that_costs_imply(costs, expected):
    assert implied_threshold(costs) == pytest.approx(expected)


def test_implied_threshold_has_the_least_expected_cost():
    matrix = np.array([[0.5, 2.0], [7.0, 1.0]])
    t = implied_threshold(matrix)
    for p in np.linspace(0.01, 0.99, 50):
        negative, positive = np.array([1 - p, p]) @ matrix
        assert (positive <= negative) == (p >= t)
    assert isnan(implied_threshold(0.0))


@pytest.mark.parametrize("weights", [None, "real"])
def test_bins_give_bounds_that_hold_the_exact_figures(weights):
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(0, 2, n)
    p = np.clip(0.1 + 2e-5 * (rng.normal(size=n) + y), 0.0, 1.0)  # several in a bin
    w = rng.gamma(1.0, size=n) if weights else None
    bins = binned_scores(p, y, w, None)
    others, happened = bins.atoms(0, 0), bins.atoms(0, 1)
    thresholds = np.array([0.05, 0.09999, 0.1, 0.10002, 0.2])
    exact = operating_points(y, p, thresholds, sample_weight=w)
    found = points_of_atoms(others, happened, thresholds)
    assert found.least is not None
    for name, values in vars(exact).items():
        if name == "thresholds":
            continue
        low, high = getattr(found.least, name), getattr(found.most, name)
        seen = ~np.isnan(values)
        assert (low[seen] <= values[seen] + 1e-12).all(), name
        assert (values[seen] <= high[seen] + 1e-12).all(), name
    ones = np.ones(n) if w is None else w
    ks = ks_statistic(others, happened)
    assert ks.bounds.low <= reference.ks_statistic(y, p, ones) <= ks.bounds.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: operating_points(y, p, [0.5], alert_rates=[0.1]), "not both"),
        (lambda y, p: operating_points(y, p, alert_rates=[5]), "alert_rates must be shares"),
        (lambda y, p: operating_points(y, p, [[0.5]]), "row of numbers"),
        (lambda y, p: operating_points(y, p, []), "row of numbers"),
        (lambda y, p: operating_points(y, p, [np.nan]), "got NaN"),
        (lambda y, p: operating_points(y, p, prevalence=0), "prevalence must lie between"),
        (lambda y, p: operating_points([0, 1, 2], np.eye(3)), "figure of two classes; there are 3"),
        (lambda y, p: net_benefit(y, p, 1.0), "threshold must lie from 0 to below 1"),
        (lambda y, p: net_benefit(y, 3 * p, 0.5), "y_score must hold probabilities"),
        (lambda y, p: implied_threshold([[0, 1]]), r"matrix of shape \(2, 2\)"),
        (lambda y, p: implied_threshold([[2, 1], [1, 0]]), "cheaper than being right"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.array([0, 1, 0]), np.array([0.1, 0.9, 0.4]))
