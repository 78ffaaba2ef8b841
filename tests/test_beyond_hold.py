"""Cases that are not held: figures from sums in bins against those of the same cases in memory."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import fragility
from fragility import (
    Costs,
    FragilitySketch,
    Report,
    ScoreState,
    compare_fragility,
    measure_fragility,
)
from fragility.deferral import policy_search
from fragility.figures import rank
from fragility.measured import FIGURES
from fragility.report.files import report_on_file
from fragility.report.measuring import Settings
from fragility.report.rereading import CaseRows
from fragility.scores.cases import Cases
from fragility.tables import PredictionFile, open_table

from .command import unsourced
from .reference.calibration import bin_edges

#: Figures that sums tell exactly.
EXACT = ("log_loss", "brier", "confident_error_rate")
#: Each logarithm is rounded to a multiple of 2⁻³⁶.
LOG_ROUNDING = 2.0**-37


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def several(seed, n, n_classes, strength=1.5):
    """Codes, and probabilities of two models that are alike."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    z = rng.normal(size=(n, n_classes)) + strength * np.eye(n_classes)[y]
    p, q = softmax(z), softmax(1.2 * z + 0.4 * rng.normal(size=z.shape))
    return (y, p[:, 1], q[:, 1]) if n_classes == 2 else (y, p, q)


KINDS = {
    "ordinary": lambda rng, p: p,
    "two decimals": lambda rng, p: np.round(p, 2),
    "saturated": lambda rng, p: np.where(rng.random(p.shape) < 0.5, np.round(p), p),
    "float32": lambda rng, p: p.astype(np.float32),
    "tiny scores": lambda rng, p: p * 10.0 ** -rng.uniform(0, 30, p.shape),
    "next to one": lambda rng, p: 1.0 - p * 10.0 ** -rng.uniform(0, 18, p.shape),
    "crowded": lambda rng, p: 0.3 + 1e-7 * p,
    "halves": lambda rng, p: np.round(2 * p) / 2,
}


def proper(p):
    """Rows that sum to one."""
    p = np.asarray(p, float)
    p = np.where(p.sum(axis=1, keepdims=True) > 0, p, 1.0)
    return p / p.sum(axis=1, keepdims=True)


def in_memory(y, p, labels, weights=None, pos_label=None):
    """The exact figures."""
    weights = np.ones(len(y)) if weights is None else weights
    carrying = weights > 0
    y, p, w = np.asarray(y)[carrying], np.asarray(p, float)[carrying], weights[carrying]
    given = {"labels": labels, "sample_weight": w, "pos_label": pos_label}
    columns = p
    if p.ndim == 1:
        columns = np.c_[1 - p, p] if pos_label in (None, labels[1]) else np.c_[p, 1 - p]
    own = columns[np.arange(len(y)), y]
    misses = columns - np.eye(len(labels))[y]
    result = measure_fragility(y, p, **given)
    brier = (misses**2).sum(axis=1) / (2 if len(labels) == 2 else 1)
    return {
        "fragility_index": result.value,
        "ratio": result.ratio,
        "auc": mean_auc(y, columns, w)
        if p.ndim == 2
        else roc_auc_score(y == (1 if pos_label is None else pos_label), p, sample_weight=w),
        "log_loss": np.average(-np.log(np.clip(own, np.finfo(float).eps, 1.0)), weights=w),
        "brier": np.average(brier, weights=w),
        "calibration_error": fragility.equal_mass_calibration_error(
            y, p, n_bins=min(15, len(y)), **given
        ),
        "buffered_auc": fragility.buffered_auc_score(y, p, **given),
        "cvar": fragility.ranking_error_cvar(y, p, **given),
        "confident_error_rate": fragility.confident_error_rate(y, p, **given),
        "aurc": fragility.area_under_risk_coverage(y, p, **given),
    }, result


def mean_auc(y, columns, w):
    present = np.unique(y)
    values = []
    for i in present:
        for j in present:
            if i != j:
                rows = np.isin(y, (i, j))
                values.append(roc_auc_score(y[rows] == i, columns[rows, i], sample_weight=w[rows]))
    return np.mean(values)


def parts_of(n, sizes):
    """Rows in batches of these sizes, again and again."""
    start = k = 0
    while start < n:
        rows = slice(start, start + sizes[k % len(sizes)])
        start, k = rows.stop, k + 1
        yield rows


def measured(
    y,
    scores,
    weights=None,
    *,
    n_classes=2,
    groups=None,
    costs=None,
    by_case=None,
    sizes=(1000,),
    pos_label=None,
    hold=0,
    n_worst=0,
    calibrate=False,
):
    """Report on cases that come in batches, twice."""
    scores = scores if isinstance(scores, dict) else {"a": scores}
    names = [] if groups is None else [f"g{k}" for k in range(int(groups.max()) + 2)]
    state = ScoreState(
        range(n_classes), list(scores), names, weights is not None, hold, pos_label=pos_label
    )
    for rows in parts_of(len(y), sizes):
        state.update(
            y[rows],
            {name: part[rows] for name, part in scores.items()},
            None if weights is None else weights[rows],
            None if groups is None else np.array(names)[groups[rows]],
            None if by_case is None else by_case[rows],
        )
    carrying = np.arange(len(y)) if weights is None else np.flatnonzero(weights)

    def again():
        for rows in parts_of(carrying.size, sizes):
            part = carrying[rows]
            yield CaseRows(
                Cases(
                    y[part],
                    {name: scores[name][part] for name in scores},
                    None if weights is None else weights[part],
                    None if groups is None else groups[part][:, np.newaxis],
                    None if by_case is None else by_case[part],
                ),
                part,
            )

    return Report.from_cases(
        state,
        Settings(costs=costs, calibrate=calibrate, n_worst=n_worst),
        reread=again,
        name_cases=lambda rows: {row: f"case {row}" for row in rows},
    )


def raw(*args, **options):
    return measured(*args, **options).models[0].raw


def agree(found, exact, relative=1e-12):
    """Exact figures are the same, all others between their bounds."""
    for name, value in exact.items():
        figure = found[name]
        if name in EXACT:
            assert figure.bounds is None, name
        if figure.bounds is None:
            rounding = LOG_ROUNDING if name == "log_loss" else 1e-14
            assert figure.value == pytest.approx(value, rel=relative, abs=rounding), name
        else:
            low, high = figure.bounds
            slack = 1e-12 * max(abs(value), 1e-2)
            assert low - slack <= value <= high + slack, name
            assert low <= figure.value <= high, name


def agree_on_intervals(figure, interval, relative=1e-5):
    """The same up to what bins may leave in doubt, or none where they leave more."""
    low, high = figure.bounds or (figure.value, figure.value)
    if figure.interval is None:
        assert high - low > 1e-5 * figure.value > 0.0
    else:
        np.testing.assert_allclose(figure.interval, interval, rtol=relative)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_figures(kind, n_classes, weighted):
    rng = np.random.default_rng(3)
    y, p, _ = several(7, 1_500, n_classes)
    p = KINDS[kind](rng, p)
    weights = rng.random(y.size) * (rng.random(y.size) < 0.8) if weighted else None
    if n_classes > 2 and kind != "float32":
        p = proper(p)
    report = measured(y, p, weights, n_classes=n_classes, sizes=(300, 1, 0, 999))
    exact, result = in_memory(y, p, list(range(n_classes)), weights)
    model = report.models[0].raw
    assert list(model.figures) == [name for name in FIGURES if name != "cost"]
    assert list(report.support) == result.support.tolist()
    assert report.streamed
    assert model.n_infinite_pairs == result.n_infinite_pairs
    agree(model.figures, exact)
    index = model.figures["fragility_index"]
    agree_on_intervals(index, result.interval())
    if kind not in ("crowded", "tiny scores"):
        assert index.interval is not None
        np.testing.assert_allclose(model.pairs, result.pairs, rtol=1e-8)


@pytest.mark.parametrize("separation", [0.05, 0.6, 4.0, 9.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_interval_and_index_of_many_cases(separation, weighted):
    """Many cases in each bin, and an index from 0.006 to 4."""
    rng = np.random.default_rng(1)
    y = (rng.random(60_000) < 0.3).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=y.size) + separation * (y - 0.5))))
    w = rng.integers(1, 4, y.size).astype(float) if weighted else None
    index = raw(y, p, w, sizes=(10_000,)).figures["fragility_index"]
    result = measure_fragility(y, p, sample_weight=w)
    low, high = index.bounds or (index.value, index.value)
    assert high - low <= 1e-9 * index.value
    assert low * (1 - 1e-12) <= result.value <= high * (1 + 1e-12)
    np.testing.assert_allclose(index.interval, result.interval(), rtol=1e-6)
    sketch = FragilitySketch().update(y, p, w).fragility()
    assert sketch.lower * (1 - 1e-14) <= index.value <= sketch.upper * (1 + 1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 1_500])
def test_comparison(n_classes, weighted, n):
    y, p, q = several(5, n, n_classes)
    weights = np.random.default_rng(2).random(y.size) if weighted else None
    scores = {"a": p, "b": q, "c": p * 0.5 if n_classes == 2 else 0.5 * p + 0.5 / n_classes}
    report = measured(y, scores, weights, n_classes=n_classes, sizes=(7, 100))
    assert [(pair.a, pair.b) for pair in report.comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in report.comparisons:
        expected = compare_fragility(y, scores[pair.a], scores[pair.b], sample_weight=weights)
        for own, other in ((pair.raw.index, expected), (pair.raw.ratio, expected.ratio)):
            assert (own.a, own.b) == pytest.approx((other.a, other.b), rel=1e-9)
            np.testing.assert_allclose(own.standard_error, other.standard_error, 1e-6, 1e-9)
            np.testing.assert_allclose(own.interval, other.interval, 1e-5, 1e-9)
            differences = abs(own.difference), abs(other.difference)
            if 0 < max(differences) < 1e-9:  # of shrunk scores the ratio differs by rounding
                assert min(own.p_value, other.p_value) > 0.9
            else:
                np.testing.assert_allclose(own.p_value, other.p_value, 1e-4, 1e-9)


class TestSplitting:
    @pytest.mark.slow
    @given(st.lists(st.integers(0, 900), min_size=1, max_size=6).filter(any), st.integers(2, 3))
    @settings(max_examples=10)
    def test_changes_nothing(self, sizes, n_classes):
        y, p, _ = several(11, 1_000, n_classes)
        weights = np.random.default_rng(0).random(y.size)
        whole, parts = (
            raw(y, p, weights, n_classes=n_classes, sizes=s).figures for s in ((10_000,), sizes)
        )
        for name, figure in whole.items():
            assert (figure.value, figure.bounds) == (parts[name].value, parts[name].bounds), name
        ends = [part["fragility_index"].interval for part in (whole, parts)]
        assert list(ends[0]) == pytest.approx(list(ends[1]), rel=1e-9)

    def test_a_class_that_comes_late(self):
        y, p, _ = several(1, 2_000, 3)
        order = np.argsort(y, kind="stable")
        y, p = y[order], p[order]
        found = raw(y, p, n_classes=3, sizes=(150,))
        agree(found.figures, in_memory(y, p, [0, 1, 2])[0])

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_memory_does_not_grow(self, n_classes):
        """After many cases: the first of them add digits to the sums."""
        y, p, _ = several(0, 5_000, n_classes)
        begun = ScoreState(range(n_classes), ["a"], hold=3_000).update(y, p)
        for _ in range(14):
            begun.merge(ScoreState.from_bytes(begun.to_bytes()))
        assert int(begun.support.sum()) == 2**14 * y.size
        peaks = []
        for repeats in (1, 5, 50):  # the first is for what is kept for ever
            state = ScoreState.from_bytes(begun.to_bytes())
            tracemalloc.start()
            for _ in range(repeats):
                state.update(y, p)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert not state.complete
        assert peaks[2] < 1.02 * peaks[1]


class TestBounds:
    @pytest.mark.slow
    @given(
        st.integers(0, 10_000),
        st.sampled_from(sorted(KINDS)),
        st.sampled_from([2, 3]),
        st.sampled_from([None, "any", "whole"]),
    )
    @settings(max_examples=60)
    def test_hold_the_exact_figures(self, seed, kind, n_classes, weighting):
        """Few and wide bins: scores that share them are the rule."""
        rng = np.random.default_rng(seed)
        n = int(rng.integers(n_classes, 400))
        y, p, _ = several(seed, n, n_classes, strength=rng.uniform(0, 4))
        p = KINDS[kind](rng, p)
        if n_classes > 2:
            p = proper(p)
        weights = None
        if weighting:
            weights = rng.random(n) if weighting == "any" else rng.integers(0, 4, n).astype(float)
            weights[:n_classes] = 1.0
        m = int(rng.integers(4, 9))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fragility.scores.sums._FINEST", m)
            patch.setattr("fragility.figures.tails.MOST_BINS", 16)
            patch.setattr("fragility.figures.tails._LEAST_BINS", 8)
            found = raw(y, p, weights, n_classes=n_classes)
        exact, _ = in_memory(y, p, list(range(n_classes)), weights)
        for name, value in exact.items():
            figure = found.figures[name]
            if math.isnan(value):  # the ratio of constant scores
                assert math.isnan(figure.value)
                continue
            low, high = figure.bounds or (figure.value, figure.value)
            # Near FI = 0 and near FI = ∞ rounding decides: there the exact index is not settled.
            rounding = 1e-9 if name in ("fragility_index", "ratio") else 1e-11
            slack = rounding * abs(value) + 1e-11 if math.isfinite(value) else 0.0
            if name == "brier":  # squares of distances in bin widths are rounded to 2⁻²³
                slack += n_classes * 2.0**-24 * 4.0**-m
            assert low - slack <= value <= high + slack, name

    def test_as_wide_as_the_order_within_bins_leaves_open(self):
        y, p, _ = several(0, 20_000, 2, 2.0)
        figures = raw(y, p).figures
        places = np.searchsorted(bin_edges(13), p, side="right")
        shares = [
            np.bincount(places[y == code], minlength=16_000) / sum(y == code) for code in (0, 1)
        ]
        widths = {
            "auc": float(shares[0] @ shares[1]),
            "cvar": 2 * 2.0**-13,  # both scores of a pair move within their bins
            # At each of 14 edges the cases of a bin are of either class.
            "calibration_error": 2 * 14 * float(np.bincount(places).max()) / y.size,
            "aurc": 2e-3,
        }
        for name, width in widths.items():
            low, high = figures[name].bounds
            assert 0.0 < high - low <= width + 1e-13, name

    def test_no_bound_of_the_calibration_error_is_above_one(self):
        rng = np.random.default_rng(0)
        p = 0.3 + 1e-9 * rng.random(3_000)  # too close for the bins
        y = rng.integers(0, 2, p.size)
        low, high = raw(y, p).figures["calibration_error"].bounds
        assert low <= fragility.equal_mass_calibration_error(y, p) <= high <= 1.0 + 1e-12


class TestDegenerate:
    @pytest.mark.parametrize(
        ("negatives", "positives"),
        [
            ([0.1, 0.2, 0.3], [0.6, 0.7]),  # FI = 0
            ([0.1, 0.2, 0.5], [0.5, 0.7]),
            ([0.5] * 4, [0.5] * 3),
            ([0.0] * 5, [1.0] * 5),
            ([0.6, 0.7], [0.1, 0.2, 0.3]),  # FI = ∞
            ([1.0] * 5, [0.0] * 5),
            ([0.2, 0.8], [0.2, 0.8]),
            ([0.1, 0.4, 0.7], [0.4, 0.4, 0.4]),
            ([0.3], [0.6]),  # one case in each class
            ([0.7], [0.6]),
            ([0.7, 0.1], [0.6]),
            ([0.1, 1e-300], [0.6, 1e-320]),
        ],
    )
    def test_zero_infinite_and_tiny(self, negatives, positives):
        y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
        p = np.r_[negatives, positives].astype(float)
        model, result = raw(y, p, sizes=(3,)), measure_fragility(y, p)
        for name, value in in_memory(y, p, [0, 1])[0].items():
            figure = model.figures[name]
            if figure.bounds is None:
                rounding = LOG_ROUNDING if name == "log_loss" else 1e-14
                np.testing.assert_allclose(figure.value, value, 1e-12, rounding, err_msg=name)
            else:
                assert figure.bounds[0] <= value <= figure.bounds[1], name
        np.testing.assert_allclose(model.pairs, result.pairs, rtol=1e-9)
        agree_on_intervals(model.figures["fragility_index"], result.interval())

    def test_one_bold_mistake_among_many(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 20_000)
        p = np.clip(np.where(y, 0.9, 0.1) + 0.02 * rng.normal(size=y.size), 0, 1)
        p[np.flatnonzero(y == 0)[0]] = 0.99
        result = measure_fragility(y, p)
        index = raw(y, p).figures["fragility_index"]
        assert index.value == pytest.approx(result.value, rel=1e-9)
        np.testing.assert_allclose(index.interval, result.interval(), rtol=1e-5)

    @pytest.mark.parametrize("gap", [1e-3, 1e-5])
    def test_nearly_no_separation(self, gap):
        """FI of about 100 and 10,000 times the range, where the terms of h cancel."""
        rng = np.random.default_rng(0)
        y = np.arange(4_000) % 2
        p = np.clip(0.5 + 0.1 * rng.normal(size=y.size), 0, 1)
        p[y == 1] += p[y == 0].mean() - p[y == 1].mean() + gap
        result = measure_fragility(y, p)
        index = raw(y, p).figures["fragility_index"]
        low, high = index.bounds or (index.value, index.value)
        assert low * (1 - 1e-10) <= result.value <= high * (1 + 1e-10)
        assert high - low <= 1e-7 * index.value
        agree_on_intervals(index, result.interval(), 1e-5)

    def test_an_index_smaller_than_the_bins(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 3_000)
        p = np.where(rng.random(y.size) < 0.3, 0.5 + 1e-6 * rng.normal(size=y.size), 0.1 + 0.8 * y)
        index = raw(y, p).figures["fragility_index"]
        low, high = index.bounds
        assert low <= measure_fragility(y, p).value <= high
        assert index.interval is None

    def test_infinite_pairs_among_several(self):
        y, p, _ = several(2, 900, 4)
        p[y == 2] = p[y == 2][:, [0, 1, 3, 2]]
        found, result = raw(y, p, n_classes=4), measure_fragility(y, p)
        assert found.n_infinite_pairs == result.n_infinite_pairs > 0
        np.testing.assert_allclose(found.pairs, result.pairs, rtol=1e-8)
        np.testing.assert_allclose(
            found.figures["fragility_index"].interval, result.interval(), rtol=1e-6
        )

    def test_an_absent_class_is_named(self):
        """In a note, and without a warning."""
        y, p, _ = several(4, 600, 4)
        p, y = p[y != 2], y[y != 2]
        report = measured(y, p, n_classes=4)
        assert any("No case of 2" in note for note in report.notes)
        with pytest.warns(fragility.AbsentClassWarning):
            exact, result = in_memory(y, p, [0, 1, 2, 3])
        agree(report.models[0].raw.figures, exact)
        np.testing.assert_allclose(report.models[0].raw.pairs, result.pairs, rtol=1e-8)
        interval = report.models[0].raw.figures["fragility_index"].interval
        np.testing.assert_allclose(interval, result.interval(), rtol=1e-6)

    def test_classes_of_one_score_each(self):
        """Each at the upper end of its bin, so that spreading the scores leaves one error."""
        scores = np.array(
            [[1 - 1e-10, 1e-10, 0.0], [1e-11, 1 - 1e-11, 0.0], [1e-12, 0.0, 1 - 1e-12]]
        )
        for codes in ([0, 1, 2], [1, 2, 0], [1, 0, 2]):
            found = raw(np.array(codes), scores, n_classes=3)
            exact = in_memory(np.array(codes), scores, [0, 1, 2])[0]
            for name in ("auc", "buffered_auc", "cvar"):
                figure = found.figures[name]
                low, high = figure.bounds or (figure.value, figure.value)
                assert low - 1e-15 <= exact[name] <= high + 1e-15, name

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("hold", [0, math.inf])
    def test_no_mistake_and_nothing_but_mistakes(self, n_classes, hold):
        """All predictions right, or all wrong: one of both outcomes has no case."""
        y = np.arange(30) % n_classes
        sure = 0.7 + 0.2 * np.random.default_rng(0).random(30)
        for shift, share in ((0, 0.0), (1, 1.0)):
            p = np.full((30, n_classes), ((1 - sure) / (n_classes - 1))[:, np.newaxis])
            p[np.arange(30), (y + shift) % n_classes] = sure
            scores = p if n_classes > 2 else p[:, 1]
            figures = raw(y, scores, n_classes=n_classes, hold=hold).figures
            agree(figures, in_memory(y, scores, list(range(n_classes)))[0], 1e-9)
            assert figures["aurc"].value == pytest.approx(share, abs=1e-12)


def test_scikit_learn_has_the_same_plain_scores():
    y, p, _ = several(9, 3_000, 2)
    w = np.random.default_rng(0).random(y.size)
    figures = raw(y, p, w).figures
    expected = log_loss(y, p, sample_weight=w)
    assert figures["log_loss"].value == pytest.approx(expected, abs=LOG_ROUNDING)
    assert figures["brier"].value == pytest.approx(
        brier_score_loss(y, p, sample_weight=w), rel=1e-12
    )
    low, high = figures["auc"].bounds
    assert low <= roc_auc_score(y, p, sample_weight=w) <= high
    y, p, _ = several(9, 3_000, 3)
    p[:5] = np.eye(3)[[0, 1, 2, 0, 1]]
    figures = raw(y, p, n_classes=3).figures
    assert figures["log_loss"].value == pytest.approx(log_loss(y, p), abs=LOG_ROUNDING)
    low, high = figures["auc"].bounds
    assert low <= roc_auc_score(y, p, multi_class="ovo") <= high


@pytest.mark.parametrize("kind", ["ordinary", "halves", "saturated"])
def test_the_first_class_may_be_the_positive_one(kind):
    """At one half the first class is predicted, be it the positive one or not."""
    y, p, _ = several(3, 1_500, 2)
    p = 1 - KINDS[kind](np.random.default_rng(0), p)  # of class 0
    found = raw(y, p, pos_label=0)
    agree(found.figures, in_memory(y, p, [0, 1], pos_label=0)[0])
    half = np.full(10, 0.5)
    truth = np.array([0] * 7 + [1] * 3)
    for positive in (0, 1):
        decided = raw(truth, half, pos_label=positive).decisions
        assert decided.errors[0] == 3


def test_weights_are_repetition():
    y, p, _ = several(3, 900, 3)
    counts = np.random.default_rng(0).integers(0, 4, y.size)
    repeated = raw(np.repeat(y, counts), np.repeat(p, counts, axis=0), n_classes=3).figures
    for scale in (1.0, 2.0**-60, 2.0**60):
        found = raw(y, p, scale * counts, n_classes=3).figures
        for name, figure in found.items():
            assert figure.value == pytest.approx(repeated[name].value, rel=1e-11), name


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups(n_classes, weighted):
    rng = np.random.default_rng(0)
    y, p, q = several(3, 2_400, n_classes)
    groups = rng.integers(0, 4, y.size)
    y[groups == 3] = 1  # one class only: undefined
    weights = rng.random(y.size) if weighted else None
    report = measured(
        y, {"a": p, "b": q}, weights, n_classes=n_classes, groups=groups, sizes=(450,)
    )
    found = {(part.model, part.group): part for part in report.groups}
    for name, scores in (("a", p), ("b", q)):
        assert found[name, "g3"].reason == "all of its cases are 1"
        assert found[name, "g4"].reason == "none of its cases has weight"
        for g in range(3):
            rows = groups == g
            own = None if weights is None else weights[rows]
            result = measure_fragility(y[rows], scores[rows], sample_weight=own)
            part = found[name, f"g{g}"]
            assert part.index.value == pytest.approx(result.value, rel=1e-6)
            low, high = part.index.bounds or (part.index.value, part.index.value)
            assert low * (1 - 1e-12) <= result.value <= high * (1 + 1e-12)
            assert part.figures["ratio"].value == pytest.approx(result.ratio, rel=1e-6)
            assert part.n == rows.sum()
            limits = result.interval(1 - 0.05 / 4)  # it allows for four groups that hold cases
            np.testing.assert_allclose(part.index.interval, limits, rtol=1e-5)


def predicted_wrong(y, p, row):
    """Whether the most probable class is not the true one."""
    guess = int(p[row] > 0.5) if p.ndim == 1 else int(p[row].argmax())
    return guess != y[row]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_worst_cases_are_those_in_memory(n_classes, weighted):
    y, p, _ = several(8, 700, n_classes)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, y.size).astype(float) if weighted else None
    groups = rng.integers(0, 2, y.size)
    report = measured(y, p, weights, n_classes=n_classes, groups=groups, n_worst=6, sizes=(200, 13))
    every = measure_fragility(y, p, sample_weight=weights).attribution(y.size)
    wrong = [part for part in every if predicted_wrong(y, p, part.index)]
    expected = wrong[:6]
    if n_classes == 2:
        misses, alarms = ([part for part in wrong if part.label == code][:3] for code in (1, 0))
        expected = sorted([*misses, *alarms], key=lambda part: -part.lift)
    columns = np.c_[1 - p, p] if n_classes == 2 else p
    assert len(report.models[0].worst) == 6
    for case, other in zip(report.models[0].worst, expected, strict=True):
        assert (case.row, case.true) == (other.index, other.label)
        assert case.score == other.score
        assert case.lift == pytest.approx(other.lift, rel=1e-6)
        assert case.case == f"case {case.row}"
        assert case.group == f"g{groups[case.row]}"
        assert case.predicted == columns[case.row].argmax()
        assert case.confidence == columns[case.row].max()


class TestCosts:
    @pytest.mark.slow
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("by_case", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_policy_is_that_of_best_policy(self, n_classes, by_case, weighted, monkeypatch):
        """Beyond hold and on arrays: the same cost and errors, of cases that did not choose."""
        rng = np.random.default_rng(5)
        y, p, _ = several(6, 400, n_classes)
        weights = rng.integers(0, 3, y.size).astype(float) if weighted else None
        amounts = rng.gamma(1.0, 8.0, y.size) if by_case else None
        costs = Costs(None if by_case else 6.0, 1.0, 0.5, 0.1)
        monkeypatch.setattr(policy_search, "HOLD", 0)
        report = measured(y, p, weights, n_classes=n_classes, costs=costs, by_case=amounts)
        found = report.models[0].policy
        expected = fragility.best_policy(
            *(y, p),
            error_cost=amounts if by_case else 6.0,
            capacity=0.5,
            reviewer_error=0.1,
            sample_weight=weights,
        )
        if n_classes == 3:  # bins that hold no case tell no temperature
            assert any("as they are" in note for note in report.notes)
            assert found.decision.temperature == 1.0
            return
        for name in ("cost", "error_rate", "error_share", "misses", "false_alarms"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
        assert list(found.cost_interval) == pytest.approx(list(expected.cost_interval), rel=1e-9)
        assert found.lower == pytest.approx(expected.lower, abs=1e-3)


# Refusals


@pytest.mark.parametrize(
    ("y", "scores", "options", "message"),
    [
        ([0, 2], [0.0, 0.0], {}, "labels does not name: 2"),
        ([0, 1], {"b": [0.0, 0.0]}, {}, "these are missing, or are not models: 'a', 'b'"),
        ([0, 1], np.zeros((2, 3)), {}, r"has 3 columns|shape|columns"),
        ([0, 1], [0.1, 1.5], {}, "probabilities"),
        ([0, 1], [0.1, np.nan], {}, "NaN"),
        ([0, 1], [0.1], {}, "2 samples"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [-1.0, 1.0]}, "negative|zero or more"),
        ([0, 1], [0.1, 0.2], {"sample_weight": np.ones(3)}, "one weight for each of 2"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [1e-40, 1.0]}, "from 1e-30 to 1e\\+30"),
        ([0, 1], [0.1, 0.2], {"groups": ["x", "y"]}, "without names of groups"),
        ([0, 1], [0.1, 0.2], {"case_costs": [1.0]}, "one number for each of the 2 cases"),
        ([0, 1], [0.1, 0.2], {"case_costs": [1.0, -1.0]}, "finite numbers of zero or more"),
    ],
)
@pytest.mark.parametrize("hold", [0, 2**20])
def test_bad_batches_leave_no_trace(y, scores, options, message, hold):
    state = ScoreState([0, 1], ["a"], weighted=True, hold=hold)
    state.update([0, 1, 1], {"a": [0.2, 0.6, 0.4]}, [1.0, 2.0, 1.0])
    before = state.to_bytes()
    with pytest.raises(ValueError, match=message):
        state.update(y, scores if isinstance(scores, dict) else {"a": scores}, **options)
    assert state.to_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": "a"}, "models must be a list of different names; got 'a'"),
        ({"models": ["a", "a"]}, "different names"),
        ({"models": []}, "different names"),
        ({"hold": -1}, "hold must be a number of scores, zero or more; got -1"),
        ({"hold": math.nan}, "hold must be a number"),
        ({"labels": [0]}, "labels"),
        ({"groups": ["x", "x"]}, "groups must be a list of different names"),
        ({"pos_label": 7}, "pos_label=7 is not one of the classes"),
    ],
)
def test_bad_states(options, message):
    with pytest.raises(ValueError, match=message):
        ScoreState(**{"labels": [0, 1], "models": ["a"], **options})


@pytest.mark.parametrize("hold", [0, 2**20])
def test_what_a_report_cannot_be_made_of(hold):
    def state(**options):
        return ScoreState([0, 1], ["a"], hold=hold, **options)

    with pytest.raises(ValueError, match="Only one class has samples"):
        Report.from_state(state().update([1, 1], [0.1, 0.2]))
    with pytest.raises(ValueError, match=r"empty|[Nn]o (case|sample)"):
        Report.from_state(state())
    weightless = state(weighted=True).update([0, 1], [0.1, 0.2], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"empty|[Nn]o (case|sample)"):
        Report.from_state(weightless)
    both = state().update([0, 1, 0, 1], [0.1, 0.2, 0.6, 0.7])
    with pytest.raises(ValueError, match="batches cannot be matched"):
        Report.from_state(both, Costs([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"matrix of shape \(2, 2\) \(true × predicted class\)\.$"):
        Report.from_state(both, Costs(np.ones((3, 3))))
    with pytest.raises(ValueError, match="not all"):
        both.update([0, 1], [0.1, 0.2], case_costs=[1.0, 2.0])
    with pytest.raises(ValueError, match="without weighted=True"):
        both.update([0, 1], [0.1, 0.2], sample_weight=[1.0, 2.0])
    priced = state().update([0, 1, 0, 1], [0.1, 0.2, 0.6, 0.7], case_costs=np.ones(4))
    with pytest.raises(ValueError, match="costs of their own, and costs has error_cost, too"):
        Report.from_state(priced, Costs(3.0))


def test_weights_whose_squares_vanish_beside_others():
    """Of the weights 1e30 and 1e-30 only the first can be seen in their sums."""
    y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9])
    figures = raw(y, p, np.array([1e30, 1e-30, 1e30, 1e-30])).figures
    assert figures["auc"].value == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"from 1e-80 to 1e\+250"):
        raw(y, p, np.array([1e250, 1e250, 1e-80, 1e-80]))


# Files


CLASSES = ("cat", "dog", "owl")


def prediction_file(folder, columns, scores, classes=None, **options):
    path = folder / "table.csv"
    with path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return PredictionFile(
        open_table(path), label="y", models={"m": scores}, classes=classes, **options
    )


def both(file, hold=0, **options):
    return [report_on_file(file, hold=size, n_worst=0, **options) for size in (np.inf, hold)]


def from_sums(report):
    assert report.streamed == any("sums in narrow bins" in note for note in report.notes)
    return report.streamed


def test_large_files_are_not_held_unless_told_otherwise(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"y": rng.integers(0, 2, 200), "p": rng.random(200)}
    file = prediction_file(tmp_path, columns, ["p"])
    for hold, summed in ((0, True), (199, True), (200, False), (np.inf, False)):
        assert from_sums(report_on_file(file, calibrate=False, hold=hold)) == summed
    assert not from_sums(report_on_file(file, calibrate=False))


def animals(n, seed, n_groups):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3))
    codes = rng.integers(0, 3, n)
    logits[np.arange(n), codes] += np.where(codes == 2, 4.0, 1.5)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    groups = rng.integers(0, n_groups, n)
    groups[codes == 2] = np.maximum(groups[codes == 2], 1)  # group 0 has no owls
    columns = {"y": np.array(CLASSES)[codes], "g": np.char.add("g", groups.astype(str))}
    return {
        **columns,
        "w": np.round(rng.exponential(size=n) ** 4, 6),
        **dict(zip("abc", p.T, strict=True)),
    }


def test_confident_cases_and_groups_are_those_in_memory(tmp_path):
    file = prediction_file(
        tmp_path, animals(1_500, 0, 6), ("a", "b", "c"), CLASSES, weight="w", groups=["g"]
    )
    memory, stream = both(file, calibrate=False)
    ours, theirs = (report.models[0].raw.confident for report in (memory, stream))
    assert ours.n == theirs.n
    assert ours.effective < 0.5 * ours.n
    for name in ("effective", "right"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-12)
    assert theirs.confidence == pytest.approx(ours.confidence, abs=LOG_ROUNDING)
    assert [part.lacks_classes for part in memory.groups] == [True] + 5 * [False]
    for one, other in zip(memory.groups, stream.groups, strict=True):
        assert other.in_all == pytest.approx(one.in_all, rel=1e-9)
        assert other.lacks_classes == one.lacks_classes
        for ours, theirs in zip(one.index.interval, other.index.interval, strict=True):
            assert theirs == pytest.approx(ours, rel=1e-4)


@pytest.mark.slow
def test_a_file_with_a_rhythm_is_calibrated_as_any_other(tmp_path, monkeypatch):
    """Cats, dogs and owls by turns: a sample of every third case would be of one class only."""
    monkeypatch.setattr("fragility.scores.state.HOLD", 1_200)
    rng = np.random.default_rng(2)
    codes = np.arange(4_000) % 3
    p = softmax(3 * (rng.normal(size=(4_000, 3)) + 1.5 * np.eye(3)[codes]))
    columns = {"y": np.array(CLASSES)[codes], **dict(zip("abc", p.T, strict=True))}
    file = prediction_file(tmp_path, columns, list("abc"), CLASSES)
    memory, stream = both(file, hold=1_200, costs=Costs(10.0))
    for report in (memory, stream):  # the same sample, and so the same temperature
        assert any("fitted to 400 of 4,000 cases" in note for note in report.notes)
    one, other = (report.models[0].calibrated.figures for report in (memory, stream))
    assert one["log_loss"].estimator == other["log_loss"].estimator == "sample_fitted"
    assert other["log_loss"].value == pytest.approx(one["log_loss"].value, abs=LOG_ROUNDING)
    assert one["log_loss"].value < memory.models[0].raw.figures["log_loss"].value
    monkeypatch.setattr("fragility.scores.state.HOLD", 2**20)
    (whole, _) = both(file, hold=1_200)
    fitted = whole.models[0].calibrated.figures["log_loss"].value
    assert other["log_loss"].value == pytest.approx(fitted, rel=0.03)


def test_below_hold_a_file_has_the_same_figures_however_it_is_read(tmp_path):
    file = prediction_file(tmp_path, animals(300, 5, 2), list("abc"), classes=CLASSES)
    whole, held = (report_on_file(file, hold=hold, n_worst=3) for hold in (np.inf, 900))
    assert whole.to_json() == held.to_json()
    assert from_sums(report_on_file(file, hold=899, n_worst=0))


def test_compressed_files_are_counted_before_they_are_held(tmp_path):
    columns = {"y": np.arange(50) % 2, "p": np.linspace(0.1, 0.9, 50)}
    plain = prediction_file(tmp_path, columns, ["p"])
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "table.csv").read_bytes()))
    file = PredictionFile(open_table(packed), label="y", models={"m": ["p"]})
    for hold, summed in ((50, False), (49, True)):
        assert from_sums(report_on_file(file, hold=hold, calibrate=False)) == summed
    same = [unsourced(report_on_file(part, hold=50).to_json()) for part in (plain, file)]
    assert same[0] == same[1]


def test_progress_counts_all_readings(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"y": np.arange(500) % 2, "p": rng.random(500), "q": rng.random(500)}
    prediction_file(tmp_path, columns, ["p"])
    file = PredictionFile(
        open_table(tmp_path / "table.csv"), label="y", models={"p": ["p"], "q": ["q"]}
    )
    seen = []
    report_on_file(file, hold=0, progress=seen.append)
    assert seen == sorted(seen)
    assert 500 in seen
    assert seen[-1] == 2 * 500  # a second reading compares the two models


@pytest.mark.parametrize("seed", range(20))
def test_variation_between_limits_is_that_of_all_sequences(seed):
    """Every sequence with its members at some limit between their own, one after the other."""
    rng = np.random.default_rng(seed)
    lowest = rng.integers(0, 6, 5) / 4
    highest = lowest + rng.integers(0, 4, 5) / 4
    limits = np.unique([lowest, highest])
    members = [
        limits[(limits >= low) & (limits <= high)]
        for low, high in zip(lowest, highest, strict=True)
    ]
    totals = [np.abs(np.diff(one)).sum() for one in itertools.product(*members)]
    assert rank._least_variation(lowest, highest) == min(totals)
    assert rank._most_variation(lowest, highest) == max(totals)
