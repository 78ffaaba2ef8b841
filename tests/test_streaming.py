"""Figures from batches against those of the same cases in memory."""

from __future__ import annotations

import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import fragility
from fragility import AbsentClassWarning, FragilitySketch, compare_fragility, measure_fragility
from fragility.deferral import Costs
from fragility.measured import FIGURES
from fragility.metrics import ConfidenceDisplay
from fragility.streaming import Batch, measure_batches
from fragility.streaming import batches as batches_module

from .reference import threshold_costs

EXACT = ("fragility_index", "ratio", "log_loss", "brier", "confident_error_rate")


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
    given = {"labels": labels, "sample_weight": weights, "pos_label": pos_label}
    weights = np.ones(len(y)) if weights is None else weights
    carrying = weights > 0
    y, p, w = np.asarray(y)[carrying], np.asarray(p, float)[carrying], weights[carrying]
    columns = p
    if p.ndim == 1:
        columns = np.c_[1 - p, p] if pos_label in (None, labels[1]) else np.c_[p, 1 - p]
    own = columns[np.arange(len(y)), y]
    eps = np.finfo(float).eps
    misses = columns - np.eye(len(labels))[y]
    result = measure_fragility(y, p, labels=labels, sample_weight=w, pos_label=pos_label)
    given["sample_weight"] = w
    brier = (misses**2).sum(axis=1) / (2 if len(labels) == 2 else 1)
    return {
        "fragility_index": result.value,
        "ratio": result.ratio,
        "auc": mean_auc(y, columns, w)
        if p.ndim == 2
        else roc_auc_score(y == (1 if pos_label is None else pos_label), p, sample_weight=w),
        "log_loss": np.average(-np.log(np.clip(own, eps, 1 - eps)), weights=w),
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


def cut(y, scores, weights=None, groups=None, sizes=(1000,)):
    """The same cases in batches of these sizes, again and again."""
    scores = scores if isinstance(scores, dict) else {"a": scores}

    def batches():
        start = k = 0
        while start < len(y):
            rows = slice(start, start + sizes[k % len(sizes)])
            start, k = rows.stop, k + 1
            yield Batch(
                y[rows],
                {name: part[rows] for name, part in scores.items()},
                None if weights is None else weights[rows],
                None if groups is None else groups[rows],
            )

    return batches


def agree(measured, exact, relative=1e-12, exactly=EXACT):
    for name, value in exact.items():
        figure = measured[name]
        if name in exactly:
            assert figure.bounds is None, name
        if figure.bounds is None:
            assert figure.value == pytest.approx(value, rel=relative, abs=1e-14), name
        else:
            low, high = figure.bounds
            slack = 1e-12 * max(abs(value), 1e-2)
            assert low - slack <= value <= high + slack, name
            assert low <= figure.value <= high, name


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of few cases, so that small data have many."""
    monkeypatch.setattr(batches_module, "BLOCK_ROWS", 1_100)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_figures(kind, n_classes, weighted):
    rng = np.random.default_rng(3)
    y, p, _ = several(7, 2_500, n_classes)
    p = KINDS[kind](rng, p)
    weights = rng.random(y.size) * (rng.random(y.size) < 0.8) if weighted else None
    if n_classes > 2 and kind != "float32":
        p = proper(p)
    found = measure_batches(
        cut(y, p, weights, sizes=(300, 1, 0, 999)), labels=list(range(n_classes)), models=["a"]
    )
    exact, result = in_memory(y, p, list(range(n_classes)), weights)
    model = found.models["a"]
    assert list(model.figures) == [name for name in FIGURES if name != "cost"]
    np.testing.assert_array_equal(found.support, result.support)
    assert found.n_samples == y.size
    assert model.n_infinite_pairs == result.n_infinite_pairs
    if kind == "crowded":
        agree(model.figures, exact, exactly=EXACT[2:])
        assert model.figures["fragility_index"].interval is None
        return
    agree(model.figures, exact)
    np.testing.assert_allclose(model.pairs, result.pairs, rtol=1e-12)
    if math.isfinite(result.value):
        assert model.standard_error == pytest.approx(result.standard_error, rel=1e-7)
    np.testing.assert_allclose(
        model.figures["fragility_index"].interval, result.interval(), rtol=1e-6
    )


@pytest.mark.parametrize("separation", [0.05, 0.6, 4.0, 9.0])
def test_interval_and_index_of_many_cases(separation):
    """Many cases in each bin, and an index from 0.006 to 4."""
    rng = np.random.default_rng(1)
    y = (rng.random(60_000) < 0.3).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=y.size) + separation * (y - 0.5))))
    weights = rng.integers(1, 4, y.size).astype(float)
    for w in (None, weights):
        found = measure_batches(cut(y, p, w, sizes=(10_000,)), labels=[0, 1], models=["a"])
        result = measure_fragility(y, p, sample_weight=w)
        index = found.models["a"].figures["fragility_index"]
        assert index.exact
        assert index.value == pytest.approx(result.value, rel=1e-12)
        np.testing.assert_allclose(index.interval, result.interval(), rtol=1e-6)
        sketch = FragilitySketch().update(y, p, w).fragility()
        assert sketch.lower * (1 - 1e-14) <= index.value <= sketch.upper * (1 + 1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 1_500])
def test_comparison(n_classes, weighted, n):
    y, p, q = several(5, n, n_classes)
    weights = np.random.default_rng(2).random(y.size) if weighted else None
    scores = {"a": p, "b": q, "c": p * 0.5 if n_classes == 2 else 0.5 * p + 0.5 / n_classes}
    found = measure_batches(
        cut(y, scores, weights, sizes=(7, 100)), labels=list(range(n_classes)), models=list("abc")
    )
    assert list(found.comparisons) == [("a", "b"), ("a", "c"), ("b", "c")]
    for (first, second), paired in found.comparisons.items():
        expected = compare_fragility(y, scores[first], scores[second], sample_weight=weights)
        for own, other in ((paired.fragility_index, expected), (paired.ratio, expected.ratio)):
            assert (own.a, own.b) == pytest.approx((other.a, other.b), rel=1e-12)
            np.testing.assert_allclose(own.standard_error, other.standard_error, 1e-7, 1e-12)
            np.testing.assert_allclose(own.interval, other.interval, 1e-6, 1e-12)
            differences = abs(own.difference), abs(other.difference)
            if 0 < max(differences) < 1e-12:  # of shrunk scores the ratio differs by rounding
                assert min(own.p_value, other.p_value) > 0.9
            else:
                np.testing.assert_allclose(own.p_value, other.p_value, 1e-5, 1e-9)


class TestSplitting:
    @given(st.lists(st.integers(0, 900), min_size=1, max_size=6).filter(any), st.integers(2, 3))
    @settings(max_examples=10)
    def test_changes_nothing(self, sizes, n_classes):
        y, p, _ = several(11, 2_000, n_classes)
        weights = np.random.default_rng(0).random(y.size)
        whole, parts = (
            measure_batches(cut(y, p, weights, sizes=s), labels=range(n_classes), models=["a"])
            for s in ((10_000,), sizes)
        )
        assert whole.models["a"].figures == parts.models["a"].figures

    def test_a_class_that_comes_late(self):
        y, p, _ = several(1, 2_000, 3)
        order = np.argsort(y, kind="stable")
        y, p = y[order], p[order]
        found = measure_batches(cut(y, p, sizes=(150,)), labels=range(3), models=["a"])
        agree(found.models["a"].figures, in_memory(y, p, [0, 1, 2])[0])

    def test_memory_does_not_grow(self, monkeypatch):
        monkeypatch.setattr(batches_module, "BLOCK_ROWS", 50_000)
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 5_000)
        p = np.clip(0.5 + 0.2 * (y - 0.5) + 0.2 * rng.normal(size=y.size), 0, 1)
        peaks = []
        for repeats in (1, 20, 200):  # the first is for what is kept for ever
            tracemalloc.start()
            measure_batches(
                lambda repeats=repeats: (Batch(y, {"a": p}) for _ in range(repeats)),
                labels=[0, 1],
                models=["a"],
            )
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[2] < 1.02 * peaks[1]


class TestBounds:
    @given(
        st.integers(0, 10_000),
        st.sampled_from(sorted(KINDS)),
        st.sampled_from([2, 3]),
        st.sampled_from([None, "any", "whole"]),
    )
    @settings(max_examples=40)
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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fragility.streaming.fine_bins._LEAST_STEPS", 4)
            patch.setattr("fragility.streaming.fine_bins._MOST_STEPS", 2 ** int(rng.integers(2, 9)))
            patch.setattr("fragility.streaming.tail_figures._MOST_BINS", 16)
            patch.setattr("fragility.streaming.tail_figures._LEAST_BINS", 8)
            patch.setattr("fragility.streaming.measure._MOST_READINGS", int(rng.integers(1, 4)))
            found = measure_batches(cut(y, p, weights), labels=range(n_classes), models=["a"])
        exact, _ = in_memory(y, p, list(range(n_classes)), weights)
        for name, value in exact.items():
            figure = found.models["a"].figures[name]
            if math.isnan(value):  # the ratio of constant scores
                assert math.isnan(figure.value)
                continue
            low, high = figure.bounds or (figure.value, figure.value)
            # Near FI = 0 and near FI = ∞ rounding decides: there the exact index is not settled.
            rounding = 1e-9 if name in ("fragility_index", "ratio") else 1e-11
            slack = rounding * abs(value) + 1e-13 if math.isfinite(value) else 0.0
            assert low - slack <= value <= high + slack, name

    def test_narrow_with_ordinary_scores(self):
        y, p, _ = several(0, 20_000, 2, 2.0)
        figures = measure_batches(cut(y, p), labels=[0, 1], models=["a"]).models["a"].figures
        for name, width in {
            "auc": 2e-5,
            "aurc": 5e-5,
            "calibration_error": 1e-3,
            "cvar": 1e-6,
        }.items():
            low, high = figures[name].bounds or (0.0, 0.0)
            assert high - low <= width, name


class TestDegenerate:
    def both(self, negatives, positives):
        y = np.r_[np.zeros(len(negatives), int), np.ones(len(positives), int)]
        p = np.r_[negatives, positives].astype(float)
        found = measure_batches(cut(y, p, sizes=(3,)), labels=[0, 1], models=["a"])
        return found.models["a"], measure_fragility(y, p), in_memory(y, p, [0, 1])[0]

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
        model, result, exact = self.both(negatives, positives)
        for name, value in exact.items():
            figure = model.figures[name]
            if figure.bounds is None:
                np.testing.assert_allclose(figure.value, value, 1e-12, 1e-15, err_msg=name)
            else:
                assert figure.bounds[0] <= value <= figure.bounds[1], name
        np.testing.assert_allclose(model.pairs, result.pairs, rtol=1e-12)
        np.testing.assert_allclose(model.standard_error, result.standard_error, rtol=1e-9)
        np.testing.assert_allclose(
            model.figures["fragility_index"].interval, result.interval(), rtol=1e-9
        )

    def test_one_bold_mistake_among_many(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 20_000)
        p = np.clip(np.where(y, 0.9, 0.1) + 0.02 * rng.normal(size=y.size), 0, 1)
        p[np.flatnonzero(y == 0)[0]] = 0.99
        result = measure_fragility(y, p)
        found = measure_batches(cut(y, p), labels=[0, 1], models=["a"]).models["a"]
        index = found.figures["fragility_index"]
        assert index.value == pytest.approx(result.value, rel=1e-12)
        np.testing.assert_allclose(index.interval, result.interval(), rtol=1e-6)

    @pytest.mark.parametrize("gap", [1e-3, 1e-5])
    def test_nearly_no_separation(self, gap):
        """FI of about 100 and 10,000 times the range, where the terms of h cancel."""
        rng = np.random.default_rng(0)
        y = np.arange(4_000) % 2
        p = np.clip(0.5 + 0.1 * rng.normal(size=y.size), 0, 1)
        p[y == 1] += p[y == 0].mean() - p[y == 1].mean() + gap
        result = measure_fragility(y, p)
        found = measure_batches(cut(y, p), labels=[0, 1], models=["a"]).models["a"]
        index = found.figures["fragility_index"]
        assert index.value == pytest.approx(result.value, rel=1e-11 / gap * 1e-3)
        np.testing.assert_allclose(index.interval, result.interval(), rtol=1e-6)

    def test_an_index_smaller_than_the_bins(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 3_000)
        p = np.where(rng.random(y.size) < 0.3, 0.5 + 1e-6 * rng.normal(size=y.size), 0.1 + 0.8 * y)
        figures = measure_batches(cut(y, p), labels=[0, 1], models=["a"]).models["a"].figures
        exact = measure_fragility(y, p).value
        index = figures["fragility_index"]
        low, high = index.bounds or (index.value * (1 - 1e-9), index.value * (1 + 1e-9))
        assert low <= exact <= high
        assert high < 2 * low

    def test_infinite_pairs_among_several(self):
        y, p, _ = several(2, 900, 4)
        p[y == 2] = p[y == 2][:, [0, 1, 3, 2]]
        found = measure_batches(cut(y, p), labels=range(4), models=["a"]).models["a"]
        result = measure_fragility(y, p)
        assert found.n_infinite_pairs == result.n_infinite_pairs > 0
        np.testing.assert_allclose(found.pairs, result.pairs, rtol=1e-12)
        np.testing.assert_allclose(
            found.figures["fragility_index"].interval, result.interval(), rtol=1e-9
        )
        assert math.isnan(found.standard_error)

    def test_an_absent_class_is_named(self):
        y, p, _ = several(4, 600, 4)
        p, y = p[y != 2], y[y != 2]
        with pytest.warns(AbsentClassWarning, match="of 2"):
            found = measure_batches(cut(y, p), labels=range(4), models=["a"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AbsentClassWarning)
            exact, result = in_memory(y, p, [0, 1, 2, 3])
        agree(found.models["a"].figures, exact)
        np.testing.assert_allclose(found.models["a"].pairs, result.pairs, rtol=1e-12)
        np.testing.assert_allclose(
            found.models["a"].figures["fragility_index"].interval, result.interval(), rtol=1e-9
        )


def test_scikit_learn_has_the_same_plain_scores():
    y, p, _ = several(9, 3_000, 2)
    w = np.random.default_rng(0).random(y.size)
    figures = measure_batches(cut(y, p, w), labels=[0, 1], models=["a"]).models["a"].figures
    assert figures["log_loss"].value == pytest.approx(log_loss(y, p, sample_weight=w), rel=1e-13)
    assert figures["brier"].value == pytest.approx(
        brier_score_loss(y, p, sample_weight=w), rel=1e-13
    )
    assert figures["auc"].value == pytest.approx(roc_auc_score(y, p, sample_weight=w), abs=1e-5)
    y, p, _ = several(9, 3_000, 3)
    p[:5] = np.eye(3)[[0, 1, 2, 0, 1]]
    figures = measure_batches(cut(y, p), labels=[0, 1, 2], models=["a"]).models["a"].figures
    assert figures["log_loss"].value == pytest.approx(log_loss(y, p), rel=1e-13)
    assert figures["auc"].value == pytest.approx(roc_auc_score(y, p, multi_class="ovo"), abs=1e-5)


@pytest.mark.parametrize("kind", ["ordinary", "halves", "saturated"])
def test_the_first_class_may_be_the_positive_one(kind):
    y, p, _ = several(3, 1_500, 2)
    p = 1 - KINDS[kind](np.random.default_rng(0), p)  # of class 0
    found = measure_batches(cut(y, p), labels=[0, 1], pos_label=0, models=["a"])
    agree(found.models["a"].figures, in_memory(y, p, [0, 1], pos_label=0)[0])


def test_weights_of_any_scale_and_repetition():
    y, p, _ = several(3, 900, 3)
    counts = np.random.default_rng(0).integers(0, 4, y.size)
    repeated = measure_batches(
        cut(np.repeat(y, counts), np.repeat(p, counts, axis=0)), labels=range(3), models=["a"]
    )
    for scale in (1.0, 1e-200, 1e250):
        found = measure_batches(cut(y, p, scale * counts), labels=range(3), models=["a"])
        for name, figure in found.models["a"].figures.items():
            other = repeated.models["a"].figures[name].value
            assert figure.value == pytest.approx(other, rel=1e-5 if name == "aurc" else 1e-11), name


@pytest.mark.parametrize("n_classes", [2, 3])
def test_groups(n_classes):
    rng = np.random.default_rng(0)
    y, p, q = several(3, 2_400, n_classes)
    groups = rng.integers(0, 4, y.size)
    y[groups == 3] = 1  # one class only: undefined
    weights = rng.random(y.size)
    found = measure_batches(
        cut(y, {"a": p, "b": q}, weights, groups, sizes=(450,)),
        labels=range(n_classes),
        models=["a", "b"],
        n_groups=5,
    )
    for name, scores in (("a", p), ("b", q)):
        assert found.models[name].group_figures[3:] == [None, None]
        for g in range(3):
            rows = groups == g
            exact, result = in_memory(y[rows], scores[rows], list(range(n_classes)), weights[rows])
            figures = found.models[name].group_figures[g]
            agree(figures, exact)
            np.testing.assert_allclose(
                figures["fragility_index"].interval, result.interval(), rtol=1e-6
            )
            np.testing.assert_array_equal(found.group_support[g], result.support)


class TestCosts:
    def cases(self, y, p, weights=None):
        columns = np.c_[1 - p, p] if p.ndim == 1 else p
        weights = np.ones(len(y)) if weights is None else weights
        predicted = columns.argmax(axis=1)
        return list(
            zip(
                y.tolist(),
                predicted.tolist(),
                columns.max(axis=1).tolist(),
                weights.tolist(),
                strict=True,
            )
        )

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("matrix", [False, True])
    @pytest.mark.parametrize("capacity", [None, 0.3])
    @pytest.mark.parametrize("decimals", [2, 16])
    def test_best_threshold(self, n_classes, matrix, capacity, decimals):
        rng = np.random.default_rng(5)
        y, p, _ = several(5, 300, n_classes)
        p = np.round(p, decimals)
        weights = rng.random(y.size)
        error = rng.uniform(2, 9, (n_classes, n_classes)) if matrix else 7.0
        if matrix:
            np.fill_diagonal(error, 0.1)
        costs = Costs(error, 1.5, capacity, 0.05)
        found = measure_batches(
            cut(y, p, weights, sizes=(70,)), labels=range(n_classes), models=["a"], costs=costs
        )
        model, cases = found.models["a"], self.cases(y, p, weights)
        args = error.tolist() if matrix else error, 1.5, 0.05
        least, threshold = threshold_costs.best(cases, *args, 1.0 if capacity is None else capacity)
        figure, curve = model.figures["cost"], model.curve
        assert figure == curve.best_cost
        low, high = figure.bounds or (figure.value * (1 - 1e-12), figure.value * (1 + 1e-12))
        assert low <= least <= high * (1 + 1e-12)
        if figure.exact:
            assert curve.best_threshold == pytest.approx(threshold, rel=1e-12)
        for place in [0, curve.thresholds.size // 2, curve.thresholds.size - 1]:
            at = curve.thresholds[place]
            assert curve.cost[place] == pytest.approx(
                threshold_costs.cost_per_case(cases, at, *args), rel=1e-11
            )
            alone = [case for case in cases if case[2] > at]
            share = sum(case[3] for case in alone) / sum(weights)
            assert curve.automation_rate[place] == pytest.approx(share, abs=1e-12)
            if alone:
                wrong = sum(case[3] for case in alone if case[0] != case[1])
                assert curve.error_rate[place] == pytest.approx(
                    wrong / sum(case[3] for case in alone), abs=1e-12
                )
            assert curve.allowed[place] == (capacity is None or 1 - share <= capacity)
        if matrix:
            assert math.isnan(curve.chow_threshold)
        else:
            assert curve.chow_threshold == pytest.approx(1 - 1.5 / 7 - 0.05)
            chow = threshold_costs.cost_per_case(cases, curve.chow_threshold, *args)
            low, high = curve.chow_cost.bounds or (curve.chow_cost.value,) * 2
            assert low - 1e-12 <= chow <= high + 1e-12

    def test_a_cost_for_each_case_is_refused(self):
        y, p, _ = several(5, 30, 2)
        with pytest.raises(ValueError, match="a number for each case"):
            measure_batches(cut(y, p), labels=[0, 1], models=["a"], costs=Costs(np.ones(30)))

    def test_the_best_is_not_beaten_by_any_threshold_with_wide_bins(self, monkeypatch):
        monkeypatch.setattr("fragility.streaming.fine_bins._MOST_STEPS", 16)
        monkeypatch.setattr("fragility.streaming.fine_bins._LEAST_STEPS", 16)
        for seed in range(20):
            y, p, _ = several(seed, 200, 2 + seed % 2, 0.7)
            costs = Costs(4.0, 1.0, [None, 0.4][seed % 2])
            found = measure_batches(
                cut(y, p), labels=range(2 + seed % 2), models=["a"], costs=costs
            ).models["a"]
            least, _ = threshold_costs.best(self.cases(y, p), 4.0, 1.0, 0.0, costs.capacity or 1.0)
            low, high = found.figures["cost"].bounds or (found.figures["cost"].value,) * 2
            assert low - 1e-12 <= least <= high + 1e-12


@pytest.mark.parametrize("n_classes", [2, 4])
def test_histograms_are_those_of_the_display(n_classes):
    y, p, _ = several(5, 4_000, n_classes)
    p = np.round(p, 2) if n_classes == 2 else p
    display = ConfidenceDisplay.from_predictions(y, p)
    found = measure_batches(cut(y, p), labels=range(n_classes), models=["a"]).models["a"].histogram
    for name in ("n_wrong", "n_right", "n_confident_errors"):
        assert getattr(found, name) == getattr(display, name)
    np.testing.assert_allclose(found.edges, display.edges)
    tolerance = 1e-12 if n_classes == 2 else 2e-3
    np.testing.assert_allclose(found.wrong, display.wrong, atol=tolerance)
    np.testing.assert_allclose(found.right, display.right, atol=tolerance)


def test_no_bound_of_the_calibration_error_is_above_one():
    rng = np.random.default_rng(0)
    p = 0.3 + 1e-9 * rng.random(3_000)  # too close for the bins
    y = rng.integers(0, 2, p.size)
    found = measure_batches(cut(y, p), labels=range(2), models=["a"]).models["a"]
    low, high = found.figures["calibration_error"].bounds
    assert low <= fragility.equal_mass_calibration_error(y, p) <= high <= 1.0 + 1e-12


def test_progress_counts_all_readings():
    y, p, _ = several(5, 2_000, 2)
    seen = []
    measure_batches(cut(y, p), labels=[0, 1], models=["a"], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 2 * y.size
    assert 2_000 in seen


class TestRefusals:
    def measure(self, batch, **given):
        given = {"labels": [0, 1], "models": ["a"]} | given
        return measure_batches(lambda: [batch], **given)

    @pytest.mark.parametrize(
        ("batch", "given", "words"),
        [
            (Batch(np.array([0, 2]), {"a": np.zeros(2)}), {}, "codes must go from 0 to 1"),
            (Batch(np.array([0.0, 1.0]), {"a": np.zeros(2)}), {}, "whole numbers"),
            (Batch(np.array([0, 1]), {"b": np.zeros(2)}), {}, "no scores of 'a'"),
            (Batch(np.array([0, 1]), {"a": np.zeros((2, 2))}), {}, r"\(2, 2\); 2 cases"),
            (Batch(np.array([0, 1]), {"a": np.array([0.1, 1.5])}), {}, "probabilities"),
            (Batch(np.array([0, 1]), {"a": np.array([0.1, np.nan])}), {}, "NaN"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}, -np.ones(2)), {}, "zero or more"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}, np.zeros(2)), {}, "nothing to measure"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}, np.ones(3)), {}, "one for each case"),
            (Batch(np.array([1, 1]), {"a": np.zeros(2)}), {}, "Only one class"),
            (Batch(np.zeros(0, int), {"a": np.zeros(0)}), {}, "nothing to measure"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}), {"n_groups": 2}, "one group for each"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}), {"n_groups": 101}, "more than 100"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}), {"models": "a"}, "names of the models"),
            (Batch(np.array([0, 1]), {"a": np.zeros(2)}), {"models": ["a", "a"]}, "each once"),
            (
                Batch(np.array([0, 1]), {"a": np.zeros(2)}),
                {"costs": Costs([1.0, 2.0])},
                "batches cannot be matched",
            ),
            (
                Batch(np.array([0, 1]), {"a": np.zeros(2)}),
                {"costs": Costs(np.ones((3, 3)))},
                r"matrix of shape \(2, 2\) \(true × predicted class\)\.$",
            ),
        ],
    )
    def test_bad_input(self, batch, given, words):
        with pytest.raises(ValueError, match=words):
            self.measure(batch, **given)

    def test_weights_in_some_batches_only(self):
        plain = Batch(np.array([0, 1]), {"a": np.zeros(2)})
        with pytest.raises(ValueError, match="not all"):
            measure_batches(
                lambda: [plain, plain._replace(weights=np.ones(2))], labels=[0, 1], models=["a"]
            )


def test_classes_of_one_score_each():
    """Each at the upper end of its bin, so that spreading the scores leaves one error."""
    scores = np.array([[1 - 1e-10, 1e-10, 0.0], [1e-11, 1 - 1e-11, 0.0], [1e-12, 0.0, 1 - 1e-12]])
    for codes in ([0, 1, 2], [1, 2, 0], [1, 0, 2]):
        day = Batch(np.array(codes), {"a": scores})
        found = measure_batches(lambda day=day: [day], labels=range(3), models=["a"])
        exact = fragility.Report.from_predictions(
            codes, {"a": scores}, labels=range(3), calibrate=False
        )
        for name in ("auc", "buffered_auc", "cvar"):
            figure = found.models["a"].figures[name]
            low, high = figure.bounds or (figure.value, figure.value)
            value = exact.models[0].raw.figures[name].value
            assert low - 1e-15 <= value <= high + 1e-15, name


def test_weights_that_vanish_beside_others_are_refused():
    scores = np.array([0.1, 0.6, 0.4, 0.9])
    day = Batch(np.array([0, 0, 1, 1]), {"a": scores}, np.array([1e250, 1e250, 1e-80, 1e-80]))
    with pytest.raises(ValueError, match="floating point cannot hold both"):
        measure_batches(lambda: [day], labels=[0, 1], models=["a"])
    odd = day._replace(weights=np.array([1e200, 1.0, 1e200, 1.0]))  # squares of some vanish
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure_batches(lambda: [odd], labels=[0, 1], models=["a"])
    assert found.models["a"].figures["auc"].value == pytest.approx(1.0)
