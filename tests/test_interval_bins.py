"""Intervals of many samples come from bins, and are those of the samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fragility import measure_fragility
from fragility.index import errors
from fragility.index.binned_sample import BinnedSample, OutOfReachError
from fragility.moments import Sample

from .reference.inference import t_statistic, z_statistic

N = 40_000
Z = norm.ppf(0.975)


def drawn(separation, n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    return y, 1 / (1 + np.exp(-(rng.normal(size=n) + separation * (y - 0.5))))


@pytest.fixture
def samples_are_not_read(monkeypatch):
    """Sorted out: groups of samples, which an interval must do without."""

    def refused(*_args, **_options):
        raise AssertionError("the samples were read")

    monkeypatch.setattr(errors, "Sample", refused)


@pytest.mark.usefixtures("samples_are_not_read")
@pytest.mark.parametrize("separation", [0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("change", [lambda p: p, lambda p: np.round(p, 3), lambda p: 0.4 + p / 9])
def test_limits_from_bins_are_where_the_literal_test_rejects(separation, change):
    y, p = drawn(separation)
    p = change(p)
    result = measure_fragility(y, p)
    low, high = result.interval()
    negatives, positives = p[~y], p[y]
    assert z_statistic(1 / low, negatives, positives) == pytest.approx(Z, rel=1e-8)
    negatives, positives = np.append(negatives, 1.0), np.append(positives, 0.0)
    if high < math.inf:
        assert z_statistic(1 / high, negatives, positives) == pytest.approx(-Z, rel=1e-8)
    else:
        assert t_statistic(negatives, positives) >= -Z
    assert 0 < low < result.value < high


@pytest.mark.usefixtures("samples_are_not_read")
@pytest.mark.parametrize("separation", [0.3, 2.0, 4.0])
def test_the_standard_error_from_bins_is_that_of_the_influences(separation):
    y, p = drawn(separation)
    result = measure_fragility(y, p)
    s = 1 / result.value
    e, f = np.exp(s * p[~y]), np.exp(-s * p[y])
    slope = (e @ p[~y]) / e.sum() - (f @ p[y]) / f.sum()
    parts = [np.var(part / part.mean(), ddof=1) / part.size for part in (e, f)]
    expected = math.sqrt(sum(parts)) / (s * s * slope)
    assert result.standard_error == pytest.approx(expected, rel=1e-10)


def both(monkeypatch, y, p, weights, **options):
    """Interval and standard error from bins, then from the samples."""
    found = []
    for pays in (errors._BINNING_PAYS, 1 << 60):
        with monkeypatch.context() as patch:
            patch.setattr(errors, "_BINNING_PAYS", pays)
            result = measure_fragility(y, p, sample_weight=weights)
            found.append([*result.interval(**options), result.standard_error])
    return found


@pytest.mark.parametrize("kind", ["even", "wild", "zeros", "large"])
@pytest.mark.parametrize("separation", [0.5, 2.0, 5.0])
def test_weighted_limits_are_those_of_the_samples(monkeypatch, separation, kind):
    y, p = drawn(separation)
    weights = np.random.default_rng(1).random(N)
    if kind == "wild":
        weights = np.exp(6 * weights)
    elif kind == "zeros":
        weights = weights * (weights > 0.3)
    elif kind == "large":
        weights = 1e9 * weights
    bins, samples = both(monkeypatch, y, p, weights)
    np.testing.assert_allclose(bins, samples, rtol=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        lambda y, p: (y, 0.5 + 1e-4 * (p - 0.5)),
        lambda y, p: (y, np.where(y, 0.6 + 0.4 * p, 0.4 * p)),  # FI = 0
        lambda y, p: (~y, p),  # FI = ∞
        lambda y, p: (np.random.default_rng(2).random(N) < 0.5, p),  # nearly no separation
        lambda y, p: (y, np.where(y, np.maximum(p, 0.9), np.minimum(p, 0.9001))),  # steep
        lambda y, p: (y, np.where(np.arange(N) < 3, 1.0 - y, np.where(y, 0.99, 0.01))),  # rare
        lambda y, p: (np.arange(N) < 2, p),  # two positives
        lambda y, p: (y, (p > 0.5) * 1.0),
    ],
    ids=["narrow", "zero", "infinite", "weak", "steep", "rare", "two", "hard"],
)
def test_odd_data_have_the_limits_of_the_samples(monkeypatch, change):
    y, p = change(*drawn(1.5))
    bins, samples = both(monkeypatch, y, p, None)
    np.testing.assert_allclose(bins, samples, rtol=1e-8, equal_nan=True)


@pytest.mark.parametrize("score_range", [(-8.0, 8.0), (-1e30, 1e30), (-50.0, 20.0)])
def test_other_ranges_of_scores(monkeypatch, score_range):
    y, p = drawn(2.0)
    logits = np.log(p / (1 - p))
    bins, samples = both(monkeypatch, y, logits, None, score_range=score_range)
    np.testing.assert_allclose(bins, samples, rtol=1e-8)


def grouped(values, weights=None):
    """The same values as bins and as samples."""
    from fragility.binned import Resolution, bin_columns

    codes, support = np.zeros(values.size, dtype=np.int64), np.array([values.size])
    ends = np.array([[values.min()], [values.max()]])
    columns = []
    for own in (weights, None if weights is None else weights**2):
        arguments = values[:, None], codes, support, ends, Resolution(4096, 4), own
        columns.append(bin_columns(*arguments)[0].group(0))
    squares = columns[0] if weights is None else columns[1]
    return BinnedSample(columns[0], squares), Sample(values, weights=weights)


@pytest.mark.parametrize("point", [None, 1.0, 0.35, -0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_figure_of_a_group_is_that_of_its_samples(point, weighted):
    rng = np.random.default_rng(3)
    values = rng.beta(2, 5, 5_000)
    bins, samples = grouped(values, rng.random(5_000) if weighted else None)
    if point is not None:
        bins, samples = bins.with_value(point), samples.with_value(point)
    for name in ("weight", "mean", "variance", "concentration", "squared_mean_error"):
        assert getattr(bins, name) == pytest.approx(getattr(samples, name), rel=1e-10), name
    assert bins.mean + bins.mean_residual == pytest.approx(samples.mean, rel=1e-12)
    assert bins.spread == pytest.approx(samples.spread, abs=1e-3)
    assert bins.reached <= samples.pivot <= bins.pivot + 1e-3
    assert bins.neg_log_top_share <= samples.neg_log_top_share + 1e-12
    for s in (0.5, 5.0, 40.0):
        shift = s * (bins.pivot - samples.pivot)
        value, error = bins.log_moment_error(s)
        expected = samples.log_moment_error(s)
        assert value + shift == pytest.approx(expected[0], rel=1e-9)
        assert error == pytest.approx(expected[1], rel=1e-7)
        for own, true in zip(bins.log_moment(s)[1:], samples.log_moment(s)[1:], strict=True):
            assert own == pytest.approx(true, rel=1e-6, abs=1e-3)
        centred, exact = bins.centred_log_moment(s), samples.centred_log_moment(s)
        assert centred.value == pytest.approx(exact.value, rel=1e-9)
        assert centred.slope == pytest.approx(exact.slope, rel=1e-8)
    assert bins.is_accurate(5.0)
    assert not bins.is_accurate(1e-6)
    with pytest.raises(OutOfReachError):
        bins.log_moment_error(1e5)


def test_the_worst_case_is_computed_when_it_is_asked_for(monkeypatch):
    from fragility.index import fragility

    calls = []
    computed = fragility.worst_case
    monkeypatch.setattr(
        fragility, "worst_case", lambda *a: calls.append(1) or computed(*a), raising=True
    )
    result = measure_fragility(*drawn(2.0, 500))
    assert result.interval().high > result.value
    assert not calls
    assert result.worst_case_weights.sum() == pytest.approx(2.0)
    assert result.shift > 0
    assert result.attribution(1)[0].lift > 1
    assert len(calls) == 1


@pytest.mark.parametrize(("offset", "scale"), [(0.5, 1e-12), (100.0, 1e-9), (1e6, 1e-3)])
def test_narrow_scores_far_from_zero_have_the_standard_error_of_the_samples(offset, scale):
    rng = np.random.default_rng(7)
    y = rng.random(N) < 0.5
    p = offset + scale / (1 + np.exp(-(rng.normal(size=N) + 0.1 * (y - 0.5))))
    centred = (p - offset) / scale  # exact but for the rounding of the scores themselves
    result, near = measure_fragility(y, p), measure_fragility(y, centred)
    assert result.standard_error / scale == pytest.approx(near.standard_error, rel=1e-7)


def test_one_sample_of_nearly_all_weight(monkeypatch):
    y, p = drawn(1.0)
    weights = np.ones(N)
    weights[np.flatnonzero(y)[0]] = 1e6
    bins, samples = both(monkeypatch, y, p, weights)
    np.testing.assert_allclose(bins, samples, rtol=1e-8)
    # The influence of every sample, weighted, in extended precision.
    result = measure_fragility(y, p, sample_weight=weights)
    s, squares = np.longdouble(1) / np.longdouble(result.value), np.longdouble(0)
    slope = np.longdouble(0)
    for own, sign in ((~y, 1), (y, -1)):
        v, a = sign * p[own].astype(np.longdouble), weights[own].astype(np.longdouble)
        e = np.exp(s * v)
        mean = (a @ e) / a.sum()
        slope += (a * e) @ v / (a @ e)
        size = a.sum() ** 2 / (a @ a)
        squares += ((a / a.sum()) ** 2 @ (e / mean - 1) ** 2) * size / (size - 1)
    expected = float(np.sqrt(squares) / (s * s * slope))
    assert result.standard_error == pytest.approx(expected, rel=1e-9)
