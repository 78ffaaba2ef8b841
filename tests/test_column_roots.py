"""Roots of all pairs of a column at once: those of one pair after the other, and of the samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fragility import fragility_index
from fragility._validation import check_labelled_scores
from fragility.binned import Resolution, bin_columns
from fragility.index import column_roots as module
from fragility.index import errors
from fragility.index.binned_root import pair_root
from fragility.index.column_moments import ColumnMoments, merge_bins
from fragility.index.column_roots import ColumnPairs, column_roots
from fragility.index.errors import RankingErrors
from fragility.index.pilot import steepest_tilt

N = 20_000


def several(n_classes, *, n=N, separation=1.5, rare=False, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    if rare:
        y[y == 0] = 1
        y[:3] = 0
    z = rng.normal(size=(n, n_classes))
    z[np.arange(n), y] += separation
    e = np.exp(z)
    return y, e / e.sum(axis=1, keepdims=True)


def problem(name):
    """Labels, scores, weights and target."""
    rng = np.random.default_rng(1)
    weights, target = None, 0.0
    y, p = several(5)
    if name == "three classes":
        y, p = several(3)
    elif name == "twelve classes":
        y, p = several(12)
    elif name == "more classes than are read together":
        y, p = several(19, n=2 * N)
    elif name == "weights":
        weights = rng.exponential(size=N) * rng.integers(0, 3, N)
    elif name == "equal weights":
        weights = np.full(N, 0.1)
    elif name == "targets above":
        target = 0.3
    elif name == "targets below":
        target = -0.1
    elif name == "ties":
        p = np.round(p, 2)
    elif name == "rare class":
        y, p = several(6, rare=True)
    elif name == "nearly separable":
        p[y == 1, 1] = 0.6 + 0.4 * p[y == 1, 1]
    elif name == "weak":
        y, p = several(5, separation=0.3)
    elif name == "strong":
        y, p = several(5, separation=4.0)
    elif name == "far from zero and one":
        p = 1e3 + 20.0 * p
    elif name == "small scores":
        p = 1e-3 * p
    elif name == "single precision":
        p = p.astype(np.float32)
    return y, p, weights, target


PROBLEMS = [
    "three classes",
    "twelve classes",
    "more classes than are read together",
    "weights",
    "equal weights",
    "targets above",
    "targets below",
    "ties",
    "rare class",
    "nearly separable",
    "weak",
    "strong",
    "far from zero and one",
    "small scores",
    "single precision",
]


def binned_pairs(ranking, resolution):
    """All pairs of present classes, by column."""
    present = np.flatnonzero(ranking.data.support).tolist()
    columns = ranking._bin(list(range(ranking.data.support.size)), resolution)
    return [ColumnPairs(columns[i], i, [j for j in present if j != i]) for i in present]


@pytest.mark.parametrize("name", PROBLEMS)
def test_as_pair_by_pair_and_as_the_samples(name):
    y, p, weights, target = problem(name)
    ranking = RankingErrors(check_labelled_scores(y, p, sample_weight=weights, presence=False))
    columns = binned_pairs(ranking, Resolution(2_048, 5))
    certain = 0
    for pairs, roots in zip(columns, column_roots(columns, target), strict=True):
        for j, root in zip(pairs.negatives, roots, strict=True):
            alone = pair_root(pairs.column, (j,), pairs.positive, target)
            assert (root is None) == (alone is None)
            if root is None:
                continue
            assert root.separation == pytest.approx(alone.separation, rel=1e-11, abs=1e-15)
            if root.certain:
                certain += 1
                exact = ranking._solve_exactly(
                    errors.Pair(pairs.positive, (j,)), target, root.s or None
                )
                fragility = 1.0 / root.s if root.s else math.inf
                assert fragility == pytest.approx(exact.fragility, rel=3e-13)
                assert root.separation == pytest.approx(exact.separation, rel=1e-10)
                assert root.s == pytest.approx(alone.s, rel=2e-13)
    assert certain >= sum(len(pairs.negatives) for pairs in columns) / 2


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_index_is_that_of_the_samples(name, monkeypatch):
    y, p, weights, target = problem(name)
    options = {"sample_weight": weights, "target": target, "average": None}
    found = fragility_index(y, p, **options)
    monkeypatch.setattr(errors, "_SHARING_PAYS", (math.inf, math.inf))
    expected = fragility_index(y, p, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_ordinary_scores_need_no_pass_over_the_samples(monkeypatch):
    def refuse(*args):
        raise AssertionError("fell back to the samples")

    monkeypatch.setattr(RankingErrors, "_solve_exactly", refuse)
    for multi_class in ("ovo", "ovr"):
        assert 0 < fragility_index(*several(10), multi_class=multi_class) < np.inf


@pytest.mark.parametrize("orders", [4, 5, 6])
@pytest.mark.parametrize("bins", [32, 64, 256])
def test_the_certificate_holds_on_bins_that_are_too_wide(bins, orders):
    y, p = several(4, n=5_000)
    ranking = RankingErrors(check_labelled_scores(y, p))
    ranges = np.array([p.min(axis=0), p.max(axis=0)])
    support = np.bincount(y)
    binned = bin_columns(p, y.astype(np.uint8), support, ranges, Resolution(bins, orders))
    others = [[j for j in range(4) if j != i] for i in range(4)]
    columns = [ColumnPairs(binned[i], i, others[i]) for i in range(4)]
    worst = 0.0
    for pairs, roots in zip(columns, column_roots(columns, 0.0), strict=True):
        for j, root in zip(pairs.negatives, roots, strict=True):
            pair = errors.Pair(pairs.positive, (j,))
            exact = ranking._solve_exactly(pair, 0.0, None).fragility
            bound = (root.remainder + root.rounding) / root.allowed * 1e-13
            error = abs(1.0 / root.s / exact - 1.0)
            assert error <= bound * 1.01
            worst = max(worst, error / bound)
    assert worst > 1e-3  # the bound says something


class TestLimits:
    def test_zero_infinite_and_constant(self):
        y, p = several(5)
        p = p.copy()
        p[y == 0, 0] += 1.0  # FI 0 against all
        p[:, 1] = 1.0 - p[:, 1]  # FI ∞ against all
        p[:, 2] = 0.25  # FI 0, in doubt for bins
        ranking = RankingErrors(check_labelled_scores(y, p))
        columns = binned_pairs(ranking, Resolution(2_048, 5))
        zero, infinite, constant, *_ = column_roots(columns, 0.0)
        assert {root.s for root in zero} == {math.inf}
        assert {root.s for root in infinite} == {0.0}
        assert all(root.certain for root in zero + infinite)
        assert constant == [None] * 4
        table = fragility_index(y, p, average=None)
        assert (table[0, 1:] == 0).all()
        assert np.isinf(table[1, [0, 2, 3, 4]]).all()
        assert (table[2, [0, 1, 3, 4]] == 0).all()

    def test_bins_that_touch_are_in_doubt(self):
        y, p = several(3)
        p = p.copy()
        p[y == 0, 0] = 0.5 + 0.5 * p[y == 0, 0]
        p[y == 1, 0] = 0.5 * p[y == 1, 0]
        for least, expected in ((0.5 + 1e-9, 0.0), (0.5 - 1e-9, None)):
            p[np.flatnonzero(y == 0)[0], 0] = least
            p[np.flatnonzero(y == 1)[0], 0] = 0.5
            ranking = RankingErrors(check_labelled_scores(y, p))
            (roots, *_) = column_roots(binned_pairs(ranking, Resolution(2_048, 5)), 0.0)
            assert roots[0] is None
            found = fragility_index(y, p, average=None)[0, 1]
            assert found == expected if expected is not None else found > 0

    def test_means_that_meet_are_in_doubt(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 8_000)
        half = rng.random(8_000)
        p = np.tile(half, 3)[:, np.newaxis] * np.ones(3)
        p[y == 2] += 0.01
        ranking = RankingErrors(check_labelled_scores(y, p))
        (roots, *_) = column_roots(binned_pairs(ranking, Resolution(2_048, 5)), 0.0)
        assert roots[0] is None
        assert roots[1].s == 0.0
        assert np.isinf(fragility_index(y, p, average=None)[0, 1])

    def test_absent_class_and_pairs_not_asked_for(self):
        y, p = several(6)
        weights = (y != 2).astype(float)
        ranking = RankingErrors(check_labelled_scores(y, p, sample_weight=weights, presence=False))
        columns = binned_pairs(ranking, Resolution(2_048, 5))
        assert columns[0].negatives == [1, 3, 4, 5]
        (all_roots, *_) = column_roots(columns, 0.0)
        (some,) = column_roots([columns[0]._replace(negatives=[5, 1])], 0.0)
        assert some == [all_roots[3], all_roots[0]]

    def test_too_steep_for_the_tables(self):
        """A target just below the largest error: the root goes up without bound."""
        y, p = several(3)
        top = p[y == 1, 0].max() - p[y == 0, 0].min()
        for below in (1e-2, 1e-3, 1e-4):
            target = top - below
            options = {"target": target, "average": None}
            found = fragility_index(y, p, **options)[0, 1]
            ranking = RankingErrors(check_labelled_scores(y, p))
            exact = ranking._solve_exactly(errors.Pair(0, (1,)), target, None).fragility
            assert found == pytest.approx(exact, rel=1e-12)

    def test_steps_that_do_not_suffice_leave_it_to_the_samples(self, monkeypatch):
        y, p = several(4)
        expected = fragility_index(y, p, average=None)
        monkeypatch.setattr(module, "_FIRST_STEPS", 0)
        monkeypatch.setattr(module, "_MAX_STEPS", 1)
        ranking = RankingErrors(check_labelled_scores(y, p))
        columns = binned_pairs(ranking, Resolution(2_048, 5))
        roots = [root for roots in column_roots(columns, 0.0) for root in roots]
        assert not any(root.certain for root in roots)
        np.testing.assert_allclose(fragility_index(y, p, average=None), expected, rtol=1e-12)


class TestMoments:
    def moments(self, resolution=None):
        y, p = several(4)
        ranking = RankingErrors(check_labelled_scores(y, p))
        return ranking._bin([0, 1, 2, 3], resolution or Resolution(2_048, 5))[0]

    @pytest.mark.parametrize("resolution", [Resolution(2_048, 5), Resolution(256, 4)])
    def test_as_the_groups_of_a_pair(self, resolution):
        column = self.moments(resolution)
        rows = ColumnMoments(column.moments[:, 1:], column.moments[:, 0], column.grid.width, 0.1)
        positives = column.group(0, negate=True)
        s = np.array([0.5, 9.0, 30.0])
        value, slope, curvature, _ = rows(s)
        spreads, neg_log_top_shares = rows.spreads, rows.neg_log_top_shares()
        means, squares = rows.means_and_squares()
        for j in range(3):
            groups = column.group(j + 1), positives
            gap = groups[0].pivot + groups[1].pivot - 0.1
            parts = [g.log_moment(s[j]) for g in groups]
            assert value[j] == pytest.approx(sum(m.value for m in parts) + s[j] * gap, abs=1e-13)
            assert slope[j] == pytest.approx(sum(m.slope for m in parts) + gap, rel=1e-6)
            assert curvature[j] == pytest.approx(sum(m.curvature for m in parts), rel=1e-2)
            for side, group in enumerate(groups):
                assert spreads[side, j] == group.spread
                assert neg_log_top_shares[side, j] == pytest.approx(
                    group.neg_log_top_share, rel=1e-14
                )
                assert means[side, j] == pytest.approx(group.mean_above_pivot, rel=1e-13)
                variance = squares[side, j] - means[side, j] ** 2
                assert variance == pytest.approx(group.variance, rel=1e-10)

    def test_merged_bins_hold_the_same_values(self):
        column = self.moments()
        levels = (column.moments, column.grid.width), merge_bins(column.moments, column.grid.width)
        fine, coarse = (ColumnMoments(m[:, 1:], m[:, 0], width, 0.0) for m, width in levels)
        assert coarse.bins * 8 < fine.bins + 16
        np.testing.assert_array_equal(fine.weights, coarse.weights)
        totals = [
            level.apart + level.means_and_squares()[0].sum(axis=0) for level in (fine, coarse)
        ]
        np.testing.assert_allclose(totals[0], totals[1], rtol=1e-13)
        s = np.array([2.0, 8.0, 20.0])
        np.testing.assert_allclose(fine(s)[0], coarse(s)[0], rtol=1e-5)


def steepest_step(data):
    return steepest_tilt(data, 0.0, np.full(data.labels.size, 1.0 / 2_048))


class TestPilot:
    def test_steep_scores_get_more_bins(self):
        for separation, resolution in ((1.5, errors._FEW_BINS), (6.0, errors._MULTI_CLASS)):
            ranking = RankingErrors(check_labelled_scores(*several(5, separation=separation)))
            assert ranking._first_resolution(0.0) == resolution

    def test_near_the_largest_step(self):
        y, p = several(5)
        predicted = steepest_step(check_labelled_scores(y, p))
        steepest = 1.0 / np.nanmin(fragility_index(y, p, average=None)) / 2_048
        assert predicted == pytest.approx(steepest, rel=0.5)

    def test_rare_classes_tell_nothing(self):
        data = check_labelled_scores(*several(5, rare=True))
        assert steepest_step(data) == math.inf

    def test_samples_without_weight_do_not_count(self):
        y, p = several(5)
        p[y == 2] = np.eye(5)[np.arange(np.count_nonzero(y == 2)) % 5]
        weights = np.where(y == 2, 0.0, 1.0)
        data = check_labelled_scores(y, p, sample_weight=weights, presence=False)
        with_others = steepest_step(data)
        assert 0.0 < with_others < math.inf
        kept = np.delete(p, 2, axis=1)[y != 2]
        alone = check_labelled_scores(np.delete(y, np.flatnonzero(y == 2)), kept)
        assert with_others == pytest.approx(steepest_step(alone), rel=0.3)
