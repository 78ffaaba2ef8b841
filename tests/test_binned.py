"""The bins and their certificate: the error of a log-moment stays below the stated bound."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from fragility import fragility_index
from fragility.binned import Resolution, bin_columns
from fragility.index import errors

from .reference.pairs import exact_index


def exact_log_moment(values, weights, pivot, s):
    with mpmath.workdps(40):
        terms = [
            mpmath.mpf(float(w)) * mpmath.exp(s * (mpmath.mpf(float(v)) - mpmath.mpf(pivot)))
            for v, w in zip(values, weights, strict=True)
        ]
        return float(mpmath.log(mpmath.fsum(terms) / mpmath.fsum(map(mpmath.mpf, weights))))


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("resolution", [Resolution(16, 4), Resolution(64, 5), Resolution(256, 6)])
def test_certificate(resolution, weighted, negate):
    rng = np.random.default_rng(resolution.bins)
    p = 3.0 * rng.random(60) - 1.0
    codes = rng.integers(0, 2, 60).astype(np.uint8)
    weights = rng.exponential(size=60) if weighted else None
    ranges = np.array([[p.min()], [p.max()]])
    (column,) = bin_columns(p[:, None], codes, np.bincount(codes), ranges, resolution, weights)
    worst = 0.0
    for c in (0, 1):
        group = column.group(c, negate=negate)
        values = (-1 if negate else 1) * p[codes == c]
        w = np.ones(values.size) if weights is None else weights[codes == c]
        assert group.weight == pytest.approx(w.sum(), rel=1e-15)
        assert group.mean == pytest.approx(np.average(values, weights=w), rel=1e-13)
        assert group.variance == pytest.approx(np.cov(values, aweights=w, ddof=0), rel=1e-12)
        assert group.reached <= values.max()
        top = w[values >= group.reached].sum()
        assert math.exp(-group.neg_log_top_share) <= top / w.sum() * (1 + 1e-12)
        for s in np.geomspace(0.1, group.steepest, 12):
            error = abs(group.log_moment(s).value - exact_log_moment(values, w, group.pivot, s))
            assert error <= group.remainder(s) + group.rounding(s)
            worst = max(worst, error / (group.remainder(s) + group.rounding(s)))
    assert worst > 1e-3  # the bound is not so wide that it says nothing


def test_slope_and_curvature_are_derivatives():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    ranges = np.array([[0.0], [1.0]])
    (column,) = bin_columns(
        p[:, None], np.zeros(1000, np.uint8), np.array([1000]), ranges, Resolution(64, 5)
    )
    group = column.group(0)
    for s in (0.5, 5.0, 40.0):
        step = 1e-4 * s
        low, here, high = (group.log_moment(s + d) for d in (-step, 0.0, step))
        assert here.slope == pytest.approx((high.value - low.value) / (2 * step), rel=1e-6)
        assert here.curvature == pytest.approx((high.slope - low.slope) / (2 * step), rel=1e-6)


def test_union_of_classes_and_unused_columns():
    rng = np.random.default_rng(0)
    p = np.column_stack([rng.random(500), np.full(500, 0.25)])
    codes = rng.integers(0, 3, 500).astype(np.uint8)
    ranges = np.array([p.min(axis=0), p.max(axis=0)])
    first, second = bin_columns(p, codes, np.bincount(codes), ranges, Resolution(1024, 4))
    union = first.group(0, 2)
    assert union.weight == np.count_nonzero(codes != 1)
    assert union.mean == pytest.approx(p[codes != 1, 0].mean(), rel=1e-14)
    assert second.group(1).mean == pytest.approx(0.25, rel=1e-15)
    assert second.group(1).variance == pytest.approx(0.0, abs=1e-30)


@pytest.mark.parametrize("spread", [1.0, 0.1, 0.02])
def test_coarse_bins_are_not_trusted(spread, monkeypatch):
    """With bins far too coarse the certificate sends every problem back to the samples."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 70_000)
    p = 0.5 + 0.3 * (y - 0.5) + spread * rng.normal(size=y.size)
    expected = fragility_index(y, p)
    monkeypatch.setattr(errors, "_GENTLE", Resolution(16, 4))
    monkeypatch.setattr(errors, "_BINARY", Resolution(16, 4))
    monkeypatch.setattr(errors, "_FINE", Resolution(32, 4))
    assert fragility_index(y, p) == pytest.approx(expected, rel=2e-13)


SMALL = {
    "ordinary": ([0.1, 0.3, 0.8], [0.2, 0.6, 0.9, 0.95]),
    "steep": ([0.1, 0.3, 0.501], [0.5, 0.6, 0.9]),
    "steeper": ([0.1, 0.3, 0.50001], [0.5, 0.6, 0.9]),
    "weak": ([0.1, 0.5, 0.9], [0.11, 0.5, 0.9]),
    "weaker": ([0.1, 0.5, 0.9], [0.1001, 0.5, 0.9]),
    "weakest": ([0.1, 0.5, 0.9], [0.1 + 1e-7, 0.5, 0.9]),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("offset", [0.0, 2.0**10, 2.0**36])
def test_repeated_samples_have_the_same_index(name, offset):
    """Long input whose index is known to fifty digits, on either side of what bins can do."""
    negatives, positives = (np.array(part) + offset for part in SMALL[name])
    y = np.repeat([0, 1], [3, len(positives)])
    p = np.r_[negatives, positives]
    expected = exact_index(negatives, positives)
    found = fragility_index(np.tile(y, 20_000), np.tile(p, 20_000))
    slack = positives.mean() - negatives.mean()
    if found == math.inf:
        assert slack <= 9 * 2.0**-53 * (1 + offset)
    else:
        tolerance = 1e-13 + 4e-16 * (1 + offset) / slack
        assert found == pytest.approx(expected, rel=tolerance)
