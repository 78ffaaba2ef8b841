"""Standard errors, intervals and paired comparisons against their formulas, literally."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtri, stdtr, stdtrit

from fragility import (
    Interval,
    compare_fragility,
    fragility_index,
    fragility_ratio,
    measure_fragility,
)
from fragility._validation import check_labelled_scores
from fragility.index import inference
from fragility.index.errors import Pair, RankingErrors
from fragility.index.fragility import solve_pairs, solved_pairs
from fragility.index.influence import influences

from .reference import inference as reference

Z95 = float(ndtri(0.975))


def binary(seed, n=40, separation=2.0, noise=1.0):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 0, 1, 1, rng.integers(0, 2, n - 4)]
    return y, 1 / (1 + np.exp(-(noise * rng.normal(size=n) + separation * (y - 0.5))))


def several(seed, n=60, n_classes=3, separation=1.5):
    rng = np.random.default_rng(seed)
    y = np.r_[np.repeat(np.arange(n_classes), 3), rng.integers(0, n_classes, n - 3 * n_classes)]
    e = np.exp(rng.normal(size=(n, n_classes)) + separation * np.eye(n_classes)[y])
    return y, e / e.sum(axis=1, keepdims=True)


class TestStandardError:
    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("target", [0.0, 0.1, -0.05])
    def test_two_classes(self, seed, target):
        y, p = binary(seed, separation=1.0)
        expected = reference.standard_error(p[y == 0], p[y == 1], target)
        found = measure_fragility(y, p, target=target).standard_error
        assert found == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
    @pytest.mark.parametrize("ratio", [False, True])
    @pytest.mark.parametrize("data", [binary(3), several(4), several(5, n_classes=4)])
    def test_influences_are_the_change_with_a_samples_weight(self, data, multi_class, ratio):
        y, p = data
        function = fragility_ratio if ratio else fragility_index
        errors = RankingErrors(check_labelled_scores(y, p))
        table = solve_pairs(errors, 0.0, multi_class, None)
        moves = influences(errors, solved_pairs(errors, table, multi_class), 0.0, ratio=ratio)
        for k in range(0, len(y), 7):
            change = []
            for step in (1e-4, -1e-4):
                weights = np.ones(len(y))
                weights[k] += step
                change.append(function(y, p, multi_class=multi_class, sample_weight=weights))
            assert moves[k] == pytest.approx((change[0] - change[1]) / 2e-4, rel=1e-4, abs=1e-9)

    def test_several_classes_add_the_influence_over_the_pairs(self):
        y, p = several(1)
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        moves = np.zeros(len(y))
        for i, j in pairs:
            first, second = reference.influence(p[y == j, i], p[y == i, i])
            moves[y == j] += first / len(pairs)
            moves[y == i] += second / len(pairs)
        variance = sum(np.var(moves[y == c], ddof=1) / (y == c).sum() for c in range(3))
        found = measure_fragility(y, p).standard_error
        assert found == pytest.approx(math.sqrt(variance), rel=1e-8)

    def test_weights(self):
        y, p = binary(7)
        weights = np.random.default_rng(0).exponential(size=len(y))
        result = measure_fragility(y, p, sample_weight=weights)
        s, variance = 1 / result.value, 0.0
        slope = 0.0
        parts = []
        for sign, c in ((1, 0), (-1, 1)):
            a = weights[y == c] / weights[y == c].sum()
            e = np.exp(sign * s * p[y == c])
            slope += (a * e * sign * p[y == c]).sum() / (a * e).sum()
            parts.append((a, e / (a * e).sum() - 1))
        for a, excess in parts:
            variance += (a**2 * excess**2).sum() / (1 - (a**2).sum())
        expected = math.sqrt(variance) / (s * s * slope)
        assert result.standard_error == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("scale", [1.0, 3.0, 1e-6])
    def test_equal_weights_are_no_weights(self, scale):
        y, p = several(2)
        plain = measure_fragility(y, p)
        weighted = measure_fragility(y, p, sample_weight=np.full(len(y), scale))
        assert weighted.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
        assert weighted.interval() == pytest.approx(plain.interval(), rel=1e-9)

    def test_huge_index(self):
        y = np.repeat([0, 1], 50)
        p = np.r_[np.linspace(0.1, 0.9, 50), np.linspace(0.1, 0.9, 50) + 1e-9]
        result = measure_fragility(y, p)
        d, n = 1e-9, 50
        # Near no separation FI = var / (2 d) for the summed variance, and d is what varies.
        variances = sum(p[y == c].var() for c in (0, 1))
        of_separation = math.sqrt(sum(p[y == c].var(ddof=1) / n for c in (0, 1)))
        assert result.value == pytest.approx(variances / (2 * d), rel=1e-3)
        expected = result.value * of_separation / d
        assert result.standard_error == pytest.approx(expected, rel=1e-3)

    def test_undefined(self):
        assert math.isnan(measure_fragility([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]).standard_error)
        assert math.isnan(measure_fragility([0, 0, 1, 1], [0.8, 0.9, 0.1, 0.2]).standard_error)
        assert math.isnan(measure_fragility([0, 0, 1], [0.1, 0.7, 0.6]).standard_error)


class TestInterval:
    @pytest.mark.parametrize("seed", range(30))
    def test_two_classes(self, seed):
        rng = np.random.default_rng(seed)
        y, p = binary(seed, rng.integers(6, 60), rng.uniform(-0.5, 4.0), rng.uniform(0.3, 3.0))
        if seed % 4 == 0:
            p = np.round(p, 1)
        target = float(rng.choice([0.0, 0.0, 0.1]))
        confidence = float(rng.choice([0.5, 0.9, 0.95, 0.99]))
        z = float(ndtri(0.5 + confidence / 2))
        found = measure_fragility(y, p, target=target).interval(confidence)
        expected = reference.score_interval(p[y == 0], p[y == 1], z, target)
        assert found == pytest.approx(expected, rel=1e-8)

    def test_all_kinds_occur_above(self):
        kinds = set()
        for seed in range(30):
            rng = np.random.default_rng(seed)
            y, p = binary(seed, rng.integers(6, 60), rng.uniform(-0.5, 4.0), rng.uniform(0.3, 3.0))
            result = measure_fragility(y, p)
            value = {0.0: "zero", math.inf: "infinite"}.get(result.value, "finite")
            kinds.add((value, math.isinf(result.interval().high)))
        assert {("zero", False), ("infinite", True), ("finite", True), ("finite", False)} <= kinds

    def test_log_wald(self):
        y, p = several(3)
        result = measure_fragility(y, p)
        step = math.exp(Z95 * result.standard_error / result.value)
        expected = result.value / step, result.value * step
        assert result.interval(method="log_wald") == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("seed", range(5))
    def test_several_classes(self, seed):
        y, p = several(seed, n_classes=3 + seed % 2)
        result = measure_fragility(y, p)
        interval = result.interval()
        assert interval.low == pytest.approx(result.interval(method="log_wald").low, rel=1e-12)
        expected = reference.multi_class_upper_limit(y, p, Z95)
        assert interval.high == pytest.approx(expected, rel=1e-7)

    def test_index_zero_and_infinite(self):
        zero = measure_fragility([0] * 20 + [1] * 20, np.linspace(0.0, 1.0, 40)).interval()
        assert zero.low == 0.0
        assert 0.0 < zero.high < math.inf
        mixed = measure_fragility([0, 1] * 10, np.linspace(1.0, 0.0, 20)).interval()
        assert 0.0 < mixed.low < mixed.high == math.inf
        reversed_scores = measure_fragility([0] * 20 + [1] * 20, np.linspace(1.0, 0.0, 40))
        assert reversed_scores.interval() == (math.inf, math.inf)

    def test_several_classes_zero_and_infinite(self):
        y = np.repeat([0, 1, 2], 20)
        perfect = 0.1 + 0.7 * np.eye(3)[y]
        low, high = measure_fragility(y, perfect).interval()
        assert low == 0.0
        assert 0.0 < high < math.inf
        rng = np.random.default_rng(0)
        guessed = perfect.copy()
        guessed[:, 0] = rng.random(60)  # pairs with class 0 as the scored one are pure chance
        guessed[y == 0, 0] -= 0.05
        result = measure_fragility(y, np.clip(guessed, 0.0, 1.0))
        assert result.value == math.inf
        low, high = result.interval()
        assert 0.0 < low < high == math.inf
        assert result.interval(method="log_wald") == (0.0, math.inf)

    @pytest.mark.parametrize("method", ["auto", "log_wald"])
    def test_one_sample_says_nothing(self, method):
        assert measure_fragility([0, 0, 1], [0.1, 0.7, 0.6]).interval(method=method) == (
            0,
            math.inf,
        )
        y, p = several(1)
        keep = (y != 2) | (np.cumsum(y == 2) == 1)
        assert measure_fragility(y[keep], p[keep]).interval(method=method) == (0, math.inf)

    @pytest.mark.parametrize("weights", [[1, 1e-20, 1, 1], [1e-20, 1, 1, 1], [1, 1, 1, 1e-17]])
    def test_one_sample_that_outweighs_its_class_says_nothing(self, weights):
        result = measure_fragility([0, 0, 1, 1], [0.1, 0.8, 0.6, 0.9], sample_weight=weights)
        for method in ("auto", "log_wald"):
            assert result.interval(method=method) == (0.0, math.inf)
        assert math.isnan(result.standard_error)
        assert "0 to inf" in repr(result)

    def test_extreme_confidence_and_targets(self):
        y, p = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.5, 0.4, 0.7, 0.9]
        low, high = measure_fragility(y, p).interval(1 - 2**-53)
        assert 0.0 < low < measure_fragility(y, p).interval().low
        assert high == math.inf
        hard = np.eye(3)[[0, 0, 2, 0, 1, 2]]
        for target in (1e-4, 1e-6):
            interval = measure_fragility([0, 1, 2] * 2, hard, target=target).interval()
            assert interval == (pytest.approx(interval.low), math.inf)

    def test_rounding_beyond_one_is_no_other_kind_of_score(self):
        y, p = binary(4, 100, 3.0)
        expected = measure_fragility(y, p).interval()
        p[np.argmax(p)] = 1.0 + 1.2e-7
        found = measure_fragility(y, p).interval()
        assert found == pytest.approx(expected, rel=0.05)
        assert found.high > 1.5 * measure_fragility(y, p).interval(method="log_wald").high
        assert "see score_range" not in repr(measure_fragility(y, p))
        assert "see score_range" in repr(measure_fragility(y, 3.0 * p))

    def test_infinite_pairs_hold_together(self):
        # Two infinite pairs and four finite ones: three limits that must hold at once.
        y = np.repeat([0, 1, 2], 20)
        rng = np.random.default_rng(1)
        p = 0.1 + 0.6 * np.eye(3)[y] + 0.05 * rng.random((60, 3))
        p[:, 0] = rng.random(60) - 0.05 * (y == 0)
        p = np.clip(p, 0.0, 1.0)
        result = measure_fragility(y, p)
        assert result.n_infinite_pairs == 2
        z = -float(ndtri(0.025 / 3))
        low = 0.0  # the finite pairs are separated
        assert result.finite_mean == 0.0
        for j in (1, 2):
            low += reference.score_interval(p[y == j, 0], p[y == 0, 0], z)[0] / 6
        assert result.interval().low == pytest.approx(low, rel=1e-7)

    def test_small_tilts_of_the_test(self):
        y, p = binary(2, 30, 0.3)
        groups = RankingErrors(check_labelled_scores(y, p)).groups(Pair(1, (0,)))
        test = inference._Test(groups, 0.0)
        expected = reference.t_statistic(p[y == 0], p[y == 1])
        assert test.z_at_zero == pytest.approx(expected, rel=1e-12)
        assert test.z(1e-9) == pytest.approx(expected, rel=1e-6)
        for s in (0.1, 1.0, 30.0):
            expected = reference.z_statistic(s, p[y == 0], p[y == 1])
            assert test.z(s) == pytest.approx(expected, rel=1e-9)

    def test_under_strict_floating_point(self):
        with np.errstate(all="raise"):
            for scale in (1.0, 1e-3, 1e-150):
                y, p = binary(1, 30, 1.5)
                result = measure_fragility(y, p * scale)
                assert result.interval().low >= 0.0
                assert result.standard_error > 0.0
                repr(result), result.to_dict()

    def test_nested(self):
        for y, p in (binary(1, 80), several(1)):
            result = measure_fragility(y, p)
            intervals = [result.interval(c) for c in (0.1, 0.5, 0.9, 0.99)]
            for inner, outer in pairwise(intervals):
                assert outer.low <= inner.low <= inner.high <= outer.high
            assert intervals[-1].low <= result.value <= intervals[-1].high

    @pytest.mark.parametrize("scale", [0.25, 1e-3, 1e-120, 1e200])
    def test_unit_of_the_scores(self, scale):
        y, p = binary(5, 60)
        expected = np.multiply(measure_fragility(y, p).interval(), scale)
        found = measure_fragility(y, p * scale).interval(score_range=(0.0, scale))
        assert found == pytest.approx(tuple(expected), rel=1e-8)

    def test_tiny_scores_and_a_distant_worst_mistake(self):
        y, p = binary(5, 60)
        low, high = measure_fragility(y, p * 1e-200).interval()
        assert low == pytest.approx(measure_fragility(y, p).interval().low * 1e-200, rel=1e-8)
        assert high == math.inf

    def test_unbounded_scores(self):
        y, p = binary(6, 60)
        logits = np.log(p / (1 - p))
        result = measure_fragility(y, logits)
        assert result.interval() == result.interval(method="log_wald")
        low, high = result.interval(score_range=(-20.0, 20.0))
        expected = reference.score_interval(
            logits[y == 0], logits[y == 1], Z95, score_range=(-20.0, 20.0)
        )
        assert (low, high) == pytest.approx(expected, rel=1e-8)

    def test_constant_scores(self):
        result = measure_fragility([0, 0, 1, 1], [0.5] * 4)
        assert result.interval().low == 0.0

    def test_a_target_that_cannot_be_missed(self):
        assert measure_fragility([0, 0, 1, 1], [0.8, 0.9, 0.1, 0.2], target=1.0).interval() == (
            0,
            0,
        )

    def test_large(self):
        y, p = binary(0, 200_000)
        result = measure_fragility(y, p)
        low, high = result.interval()
        assert low < result.value < high
        assert high - low == pytest.approx(2 * Z95 * result.standard_error, rel=0.1)

    def test_is_a_named_tuple(self):
        low, high = interval = measure_fragility(*binary(1)).interval()
        assert isinstance(interval, Interval)
        assert (interval.low, interval.high) == (low, high)

    def test_later_changes_of_the_input_do_not_matter(self):
        y, p = binary(1)
        weights = np.ones(len(y))
        result = measure_fragility(y, p, sample_weight=weights)
        expected = measure_fragility(*binary(1)).interval()
        p[:], y[:], weights[:] = 0.5, 0, 7.0
        assert result.interval() == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("kwargs", "message"),
        [
            ({"confidence": 95}, "confidence must lie between 0 and 1, such as 0.95; got 95"),
            ({"confidence": float("nan")}, "confidence must be finite"),
            ({"method": "bootstrap"}, "method must be one of 'auto', 'log_wald'; got 'bootstrap'"),
            ({"score_range": (0.2, 0.8)}, "must include all scores, which go from"),
            ({"score_range": 1.0}, "score_range must be two numbers"),
            ({"score_range": (0, 1, 2)}, "score_range must be two numbers"),
        ],
    )
    def test_errors(self, kwargs, message):
        with pytest.raises(ValueError, match=message):
            measure_fragility(*binary(1)).interval(**kwargs)

    def test_covers_where_log_wald_does_not(self):
        rng = np.random.default_rng(8)

        def draw(size):
            logit = 8.0 * rng.normal(size=size) - 2.0
            return (rng.random(size) < expit(logit)).astype(int), expit(0.5 * logit)

        truth = fragility_index(*draw(3_000_000))
        covered = by_wald = 0
        n = 200
        for _ in range(n):
            result = measure_fragility(*draw(100))
            (low, high), (wald_low, wald_high) = (
                result.interval(method=method) for method in ("auto", "log_wald")
            )
            covered += low <= truth <= high
            by_wald += wald_low <= truth <= wald_high
        assert covered / n >= 0.93
        assert by_wald / n <= 0.7


class TestComparison:
    @pytest.mark.parametrize("seed", range(10))
    def test_two_classes(self, seed):
        y, a = binary(seed, 40)
        b = np.clip(a + 0.2 * np.random.default_rng(seed).normal(size=40), 0.0, 1.0)
        found = compare_fragility(y, a, b, confidence=0.9)
        error, freedom = reference.paired_test(a[y == 0], a[y == 1], b[y == 0], b[y == 1])
        difference = fragility_index(y, a) - fragility_index(y, b)
        half = stdtrit(freedom, 0.95) * error
        assert found.difference == pytest.approx(difference, rel=1e-12)
        assert found.standard_error == pytest.approx(error, rel=1e-8)
        assert found.interval == pytest.approx((difference - half, difference + half), rel=1e-7)
        assert found.p_value == pytest.approx(
            2 * stdtr(freedom, -abs(difference) / error), rel=1e-6
        )
        assert (found.p_value < 0.1) == (not found.interval.low <= 0.0 <= found.interval.high)

    @pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
    def test_is_antisymmetric(self, multi_class):
        y, a = several(0)
        b = several(0, separation=0.7)[1]
        one = compare_fragility(y, a, b, multi_class=multi_class)
        other = compare_fragility(y, b, a, multi_class=multi_class)
        for left, right in ((one, other), (one.ratio, other.ratio)):
            assert left.difference == -right.difference
            assert left.p_value == pytest.approx(right.p_value, rel=1e-9)
            assert left.interval == pytest.approx(tuple(-x for x in right.interval[::-1]))

    def test_pairing_pays(self):
        y, a = binary(3, 400)
        b = np.clip(a + 0.02 * np.random.default_rng(0).normal(size=400), 0.0, 1.0)
        paired = compare_fragility(y, a, b).standard_error
        alone = measure_fragility(y, a).standard_error
        assert paired < 0.3 * alone

    def test_shrunk_scores_have_the_same_ratio(self):
        y, a = binary(3, 200)
        found = compare_fragility(y, a, 0.5 + 0.5 * (a - 0.5))
        assert found.p_value < 1e-3
        assert found.ratio.difference == pytest.approx(0.0, abs=1e-12)
        assert found.ratio.p_value > 0.99  # not a difference of rounding errors

    def test_ratio_is_that_of_the_metric(self):
        y, a = several(0)
        b = several(0, separation=0.7)[1]
        found = compare_fragility(y, a, b).ratio
        assert found.a == pytest.approx(fragility_ratio(y, a), rel=1e-12)
        assert found.b == pytest.approx(fragility_ratio(y, b), rel=1e-12)

    def test_standard_error_of_the_ratio(self):
        y, a = binary(3, 400, 2.0)
        b = binary(4, 400, 2.0)[1]
        b = np.where(y == binary(4, 400, 2.0)[0], b, 1 - b)
        found = compare_fragility(y, a, b).ratio.standard_error
        rng = np.random.default_rng(0)
        differences = []
        for _ in range(300):
            rows = np.concatenate(
                [rng.choice(np.flatnonzero(y == c), (y == c).sum()) for c in (0, 1)]
            )
            differences.append(
                fragility_ratio(y[rows], a[rows]) - fragility_ratio(y[rows], b[rows])
            )
        assert found == pytest.approx(np.std(differences), rel=0.2)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_unit_of_the_scores(self, scale):
        y, a = binary(1, 40)
        found = compare_fragility(y, a * scale, np.sqrt(a) * scale)
        expected = compare_fragility(y, a, np.sqrt(a))
        assert found.p_value == pytest.approx(expected.p_value, rel=1e-9)
        assert found.ratio.p_value == pytest.approx(expected.ratio.p_value, rel=1e-9)
        assert found.standard_error == pytest.approx(expected.standard_error * scale, rel=1e-9)

    def test_a_model_and_itself(self):
        y, a = several(2)
        found = compare_fragility(y, a, a)
        assert (found.difference, found.standard_error, found.p_value) == (0.0, 0.0, 1.0)
        assert found.interval == (0.0, 0.0)

    def test_target_and_weights(self):
        y, a = binary(1, 60)
        b = np.clip(a + 0.1 * np.random.default_rng(1).normal(size=60), 0, 1)
        weights = np.random.default_rng(2).integers(1, 4, 60)
        found = compare_fragility(y, a, b, target=0.05, sample_weight=weights)
        for model, value in ((a, found.a), (b, found.b)):
            expected = fragility_index(y, model, target=0.05, sample_weight=weights)
            assert value == pytest.approx(expected, rel=1e-12)
        assert math.isnan(found.ratio.p_value)
        scaled = compare_fragility(y, a, b, target=0.05, sample_weight=weights * 1e5)
        assert scaled.standard_error == pytest.approx(found.standard_error, rel=1e-9)

    @pytest.mark.parametrize("other", [[0.1, 0.2, 0.8, 0.9], [0.9, 0.8, 0.2, 0.1]])
    def test_undefined_at_zero_and_infinity(self, other):
        found = compare_fragility([0, 0, 1, 1], [0.1, 0.7, 0.6, 0.9], other)
        assert all(map(math.isnan, (found.standard_error, found.p_value, *found.interval)))
        assert "No test: the index of b is 0 or infinite" in repr(found)
        assert "No test" in found._repr_html_()

    def test_undefined_with_one_sample(self):
        found = compare_fragility([0, 0, 1], [0.1, 0.7, 0.6], [0.2, 0.7, 0.6])
        assert math.isnan(found.p_value)
        assert "single sample" in repr(found)

    def test_errors_name_the_argument(self):
        with pytest.raises(ValueError, match="score_b has 3"):
            compare_fragility([0, 0, 1, 1], [0.1, 0.7, 0.6, 0.9], [0.1, 0.2, 0.3])
        with pytest.raises(ValueError, match="score_a has NaN"):
            compare_fragility([0, 0, 1, 1], [0.1, np.nan, 0.6, 0.9], [0.1, 0.2, 0.3, 0.4])
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            compare_fragility([0, 1], [0.1, 0.7], [0.1, 0.2], confidence=1.0)

    def test_holds_its_level(self):
        rng = np.random.default_rng(5)
        p_values = []
        for _ in range(300):
            logit = 2.0 * rng.normal(size=200) - 0.5
            y = (rng.random(200) < 1 / (1 + np.exp(-logit))).astype(int)
            a, b = (1 / (1 + np.exp(-(logit + 0.7 * rng.normal(size=200)))) for _ in range(2))
            p_values.append(compare_fragility(y, a, b).p_value)
        assert 0.02 <= np.mean(np.less(p_values, 0.05)) <= 0.08


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(3, 25), st.integers(0, 3), st.sampled_from([2, 3, 4]))
def test_intervals_hold_the_value_and_survive_anything(seed, n, decimals, n_classes):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n)]
    e = (
        rng.exponential(size=(y.size, n_classes)) ** rng.uniform(0.2, 4)
        + rng.random() * np.eye(n_classes)[y]
    )
    p = np.round(e / e.sum(axis=1, keepdims=True), decimals)
    weights = None if seed % 3 else rng.exponential(size=y.size) + 1e-6
    with np.errstate(all="raise"):
        result = measure_fragility(y, p, sample_weight=weights)
        for method in ("auto", "log_wald"):
            low, high = result.interval(method=method)
            assert low <= result.value * (1 + 1e-9)
            assert high >= result.value * (1 - 1e-9)
        assert math.isnan(result.standard_error) or result.standard_error >= 0.0
        compare_fragility(y, p, p[:, ::-1], sample_weight=weights)


@pytest.mark.parametrize("s", [0.0, 1.0, math.inf])
def test_a_figure_is_of_the_first_reading_that_is_accurate_enough(s):
    """Bins come first, then the samples; at the ends no accuracy is asked for."""

    class Reading:
        def __init__(self, accurate):
            self.accurate = accurate

        def is_accurate(self, _):
            return self.accurate

    bins, finer, samples = [Reading(False)], [Reading(False)], [Reading(True)]

    def figure(groups):
        if groups is bins:
            raise inference.OutOfReachError
        return {id(finer): 1.0, id(samples): 2.0}[id(groups)], s

    expected = 2.0 if s == 1.0 else 1.0
    assert inference._first_accurate(iter([bins, finer, samples]), figure) == expected


@pytest.mark.parametrize("seed", range(4))
def test_limits_do_not_depend_on_where_the_search_begins(seed):
    """From s*, near to it, or far away, on both sides."""
    y, p = binary(seed, n=200)
    errors = RankingErrors(check_labelled_scores(y, p))
    groups = errors.groups(Pair(1, (0,)))
    s = 1.0 / fragility_index(y, p)
    for limit in (inference.lowest_accepted, inference.highest_accepted):
        expected = limit(groups, 0.0, Z95)
        for factor in (1.0, 0.98, 1.05, 0.1, 30.0):
            assert limit(groups, 0.0, Z95, factor * s) == pytest.approx(expected, rel=1e-8)
