"""The sketch: certified bounds, exact merging, and a file format that notices damage."""

import copy
import hashlib
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragility import (
    AbsentClassWarning,
    FragilitySketch,
    fragility_index,
    fragility_ratio,
    measure_fragility,
)
from fragility.envelope import Envelope
from fragility.exact import ExactSums
from fragility.index.certified import BinMoments, certify
from fragility.scores.bins import ScoreBins
from fragility.scores.layout import Tails, Uniform

from .reference.pairs import exact_index


def ordinary(seed, n, separation=2.0):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    return y, 1 / (1 + np.exp(-(rng.normal(size=n) + separation * (y - 0.5))))


def several(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    e = np.exp(rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[y])
    return y, e / e.sum(axis=1, keepdims=True)


# What makes bounds fail: edges, ties, saturation, all values in one bin, tiny and huge indices.
KINDS = {
    "ordinary": lambda rng, y, bins: (
        1 / (1 + np.exp(-(rng.normal(size=y.size) + 3 * rng.random() * (y - 0.5))))
    ),
    "at bin edges": lambda rng, y, bins: np.round(rng.random(y.size) * 2 * bins) / (2 * bins),
    "beside bin edges": lambda rng, y, bins: np.nextafter(
        (rng.integers(0, bins, y.size) + 0.5) / bins, rng.integers(0, 2, y.size)
    ),
    "nearly separable": lambda rng, y, bins: (
        0.5 + 0.2 * (2 * y - 1) + 0.2 * rng.random() * rng.normal(size=y.size)
    ),
    "tiny index": lambda rng, y, bins: np.where(
        rng.random(y.size) < 0.2,
        0.5 + 10.0 ** -rng.integers(2, 14) * rng.normal(size=y.size),
        0.5 + 0.05 * (2 * y - 1),
    ),
    "huge index": lambda rng, y, bins: _nearly_without_separation(rng, y),
    "few values": lambda rng, y, bins: rng.integers(0, 6, y.size) / 5,
    "saturated": lambda rng, y, bins: np.where(
        rng.random(y.size) < 0.6, rng.random(y.size) < 0.2 + 0.6 * y, rng.random(y.size)
    ),
    "in one bin": lambda rng, y, bins: (
        0.3
        + 10.0 ** -rng.uniform(1, 16) * rng.normal(size=y.size)
        + 10.0 ** -rng.uniform(1, 16) * y
    ),
    "one bold mistake": lambda rng, y, bins: np.abs(
        np.where(y, 0.9, 0.1) + 0.02 * rng.normal(size=y.size) - (np.arange(y.size) == 3)
    ),
    "tiny scores": lambda rng, y, bins: 10.0 ** -rng.uniform(3, 300) * rng.random(y.size),
}


def _nearly_without_separation(rng, y):
    p = np.clip(0.5 + 0.2 * rng.normal(size=y.size), 0, 1)
    gap = p[y == 0].mean() - p[y == 1].mean()
    return p + (gap + 10.0 ** -rng.uniform(1, 16)) * y


def problem(kind, rng):
    bins = int(2 ** rng.integers(4, 13))
    y = np.r_[0, 1, (rng.random(rng.integers(2, 60)) < rng.uniform(0.05, 0.95)).astype(int)]
    p = np.clip(KINDS[kind](rng, y, bins).astype(float), 0.0, 1.0)
    weights = [
        None,
        None,
        rng.exponential(size=y.size) + 1e-3,
        10.0 ** rng.uniform(-12, 12, y.size),
        rng.integers(0, 4, y.size) + (np.arange(y.size) < 2.0),
    ][rng.integers(5)]
    target = [0.0, 0.0, 0.3 * rng.normal(), 10.0 ** -rng.uniform(1, 10)][rng.integers(4)]
    return bins, y, p, weights, float(target)


class TestCertificate:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_holds_the_exact_index(self, kind):
        rng = np.random.default_rng(list(kind.encode()))
        for _ in range(300):
            bins, y, p, weights, target = problem(kind, rng)
            exact = fragility_index(y, p, target=target, sample_weight=weights)
            found = FragilitySketch(bins).update(y, p, weights).fragility(target)
            assert found.lower <= exact <= found.upper
            assert found.lower <= found.value <= found.upper

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_holds_the_index_to_fifty_digits(self, kind):
        rng = np.random.default_rng([*kind.encode(), 1])
        bins, y, p, weights, target = problem(kind, rng)
        a = np.ones(y.size) if weights is None else weights
        exact = exact_index(p[y == 0], p[y == 1], target, a[y == 0], a[y == 1])
        found = FragilitySketch(bins).update(y, p, weights).fragility(target)
        assert found.lower <= exact <= found.upper

    @pytest.mark.parametrize("separation", [0.3, 1.0, 2.0, 4.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_is_narrow_on_ordinary_scores(self, separation, weighted):
        y, p = ordinary(0, 20_000, separation)
        weights = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        found = FragilitySketch().update(y, p, weights).fragility()
        exact = fragility_index(y, p, sample_weight=weights)
        assert found.lower <= exact <= found.upper
        assert (found.upper - found.lower) / exact <= 1e-8
        assert found.value == pytest.approx(exact, rel=1e-9)

    def test_more_bins_narrow_it_with_their_third_power(self):
        y, p = ordinary(0, 20_000)
        widths = []
        for bins in (64, 128, 256):
            found = FragilitySketch(bins).update(y, p).fragility()
            widths.append(found.upper - found.lower)
        assert widths[0] / widths[1] == pytest.approx(8.0, rel=0.3)
        assert widths[1] / widths[2] == pytest.approx(8.0, rel=0.3)

    @pytest.mark.parametrize("bins", [2**12, 2**14, 2**17])
    def test_many_terms_of_one_size(self, bins):
        # Weights that make all terms of a sum alike: there its rounding errors are systematic.
        p = np.arange(bins + 1) / bins
        weights = np.exp(-10.0 * p) * (4 / 3)
        negatives = np.average(np.exp(10.0 * p - 10.0), weights=weights)
        target = 2.0 * (math.log(negatives) + 10.0) / 10.0 - 1.0  # so that the index is 0.1
        y, both = np.repeat([0, 1], bins + 1), np.r_[weights, weights[::-1]]
        found = FragilitySketch(bins).update(y, np.r_[p, p], both).fragility(target)
        exact = fragility_index(y, np.r_[p, p], target=target, sample_weight=both)
        assert exact == pytest.approx(0.1, rel=1e-12)
        assert found.lower <= exact <= found.upper

    def test_zero_and_infinity_are_exact(self):
        separable = FragilitySketch().update([0, 0, 1, 1], [0.1, 0.3, 0.3, 0.9]).fragility()
        assert (separable.lower, separable.value, separable.upper) == (0.0, 0.0, 0.0)
        hopeless = FragilitySketch().update([0, 0, 1, 1], [0.7, 0.9, 0.3, 0.9]).fragility()
        assert (hopeless.lower, hopeless.value, hopeless.upper) == (math.inf,) * 3

    @pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-305, 1e-302])
    def test_roots_beyond_all_that_are_searched(self, tiny):
        y, p = [0, 0, 1, 1], [tiny, 0.0, 0.0, 0.5]
        found = FragilitySketch(16).update(y, p).fragility()
        assert found.lower <= fragility_index(y, p) <= found.upper <= 1e-299
        assert found.lower <= found.value <= found.upper

    @pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
    @pytest.mark.parametrize("n_classes", [2, 3, 6])
    def test_several_classes(self, multi_class, n_classes):
        y, p = several(n_classes, 500, n_classes)
        weights = np.random.default_rng(0).integers(0, 3, 500) + (np.arange(500) < n_classes)
        found = FragilitySketch(multi_class=multi_class).update(y, p, weights).fragility()
        exact = measure_fragility(y, p, multi_class=multi_class, sample_weight=weights)
        there = ~np.isnan(exact.pairs)
        assert np.array_equal(np.isnan(found.pairs), ~there)
        assert (found.pairs_lower[there] <= exact.pairs[there]).all()
        assert (exact.pairs[there] <= found.pairs_upper[there]).all()
        assert found.lower <= exact.value <= found.upper
        assert found.value == pytest.approx(exact.value, rel=1e-7)
        assert found.ratio == pytest.approx(exact.ratio, rel=1e-7)
        assert found.support.tolist() == exact.support.tolist()

    def test_ratio_needs_target_zero(self):
        y, p = ordinary(0, 100)
        sketch = FragilitySketch().update(y, p)
        assert sketch.fragility().ratio == pytest.approx(fragility_ratio(y, p), rel=1e-7)
        assert math.isnan(sketch.fragility(0.1).ratio)


class TestBinMoments:
    """The two-point bounds themselves, on bins whose moments are exact."""

    @staticmethod
    def moments(x, weights, width=0.25):
        # Values x in widths from the only centre, 2.
        mean, square = np.average(x, weights=weights), np.average(np.square(x), weights=weights)
        return BinMoments(
            centres=np.array([2.0 * width]),
            widths=np.array([width]),
            weights=np.array([float(np.sum(weights))]),
            means=np.array([mean]),
            squares=np.array([square]),
            smallest=(2 + min(x)) * width,
            largest=(2 + max(x)) * width,
            lightest=float(min(weights)),
        )

    @given(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=6), st.floats(0.01, 300.0))
    def test_bounds_hold_the_log_moment(self, x, s):
        group = self.moments(x, np.ones(len(x)))
        values = (2 + np.array(x)) * 0.25
        exact = math.log(np.mean(np.exp(s * (values - values.max()))))
        low, high = group.log_moment(s, centred=False)
        assert low <= exact + 1e-14
        assert exact - 1e-14 <= high

    @pytest.mark.parametrize("s", [1.0, 10.0])
    @pytest.mark.parametrize(("x", "side"), [([-0.5, 0.1], "low"), ([0.5, -0.1], "high")])
    def test_bounds_are_attained(self, s, x, side):
        # A distribution on an end of the bin and one more point is its own bound, from that end.
        whole_bin = {"smallest": 0.375, "largest": 0.625, "lightest": 1e-300}
        group = replace(self.moments(x, np.ones(2)), **whole_bin)
        values = (2 + np.array(x)) * 0.25
        exact = math.log(np.mean(np.exp(s * (values - 0.625))))
        bounds = group.log_moment(s, centred=False)
        assert getattr(bounds, side) == pytest.approx(exact, abs=1e-6 * s * s)
        assert bounds.low <= exact <= bounds.high
        assert bounds.high - bounds.low > 1e-5 * s**3

    @pytest.mark.parametrize("centred", [False, True])
    def test_bounds_allow_for_their_own_rounding(self, centred):
        # In so narrow bins nothing is uncertain but the last bits of the sums.
        rng = np.random.default_rng(0)
        width = 2.0**-20
        for _ in range(40):
            centres = np.unique(rng.integers(0, 2**20, 200)).astype(float)
            weights = rng.exponential(size=centres.size)
            zeros = np.zeros(centres.size)
            ends = centres[0] * width, centres[-1] * width
            widths = np.full(centres.size, width)
            group = BinMoments(centres * width, widths, weights, zeros, zeros, *ends, weights.min())
            s = rng.uniform(0.01, 0.9) if centred else rng.uniform(1.5, 50.0)
            pivot = group.mean if centred else group.largest
            low, high = group.log_moment(s, centred=centred)
            with mpmath.workdps(40):
                terms = [
                    mpmath.mpf(w) * mpmath.exp(mpmath.mpf(s) * (mpmath.mpf(c * width) - pivot))
                    for c, w in zip(centres, weights, strict=True)
                ]
                total = mpmath.fsum(mpmath.mpf(w) for w in weights)
                exact = mpmath.log(mpmath.fsum(terms) / total)
                assert low <= exact <= high

    @pytest.mark.parametrize("m", [4, 7])
    def test_bins_of_many_widths_hold_the_log_moment(self, m):
        """Scores that crowd at both ends, in bins that narrow there."""
        rng = np.random.default_rng(m)
        p = 1 / (1 + np.exp(-6 * rng.normal(size=300)))
        p[:4] = [0.0, 1.0, 0.5, 1e-20]
        state = ScoreBins(Tails(m), 1, 2)
        state.add(p[:, np.newaxis], np.zeros(p.size, int))
        group = state.moments(0, 0)
        assert np.unique(group.widths).size > 5
        for s in (0.1, 1.0, 7.0, 60.0):
            low, high = group.log_moment(s, centred=False)
            exact = math.log(math.fsum(math.exp(s * (v - 1.0)) for v in p) / p.size)
            assert low <= exact + 1e-14
            assert exact - 1e-14 <= high
            assert low < high

    @pytest.mark.parametrize("layout", [Uniform(4096), Tails(13)], ids=["equal", "tails"])
    def test_tells_small_tilts_from_none(self, layout):
        y, p = ordinary(3, 2000)
        state = ScoreBins(layout, 1, 2)
        state.add(p[:, np.newaxis], y)
        group = state.moments(0, 0)
        for s in (1e-2, 1e-5, 1e-8):
            centred = p[y == 0] - group.mean
            exact = s * centred.mean() + s * s * (centred**2).mean() / 2
            low, high = group.log_moment(s, centred=True)
            assert low <= exact + 1e-3 * s**3
            assert exact - 1e-3 * s**3 <= high
            assert high - low <= 1e-9 * s * s + 5e-14 * s


class TestMerging:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovo"), (3, "ovo"), (4, "ovr")])
    def test_any_split_in_any_order_gives_the_same_bytes(self, weighted, n_classes, multi_class):
        rng = np.random.default_rng(n_classes)
        y, p = several(1, 3000, n_classes)
        weights = 10.0 ** rng.uniform(-9, 9, len(y)) if weighted else None
        labels = list(range(n_classes))

        def sketch(rows):
            part = FragilitySketch(256, labels=labels, multi_class=multi_class)
            return part.update(y[rows], p[rows], None if weights is None else weights[rows])

        whole = sketch(slice(None)).to_bytes()
        for parts in (1, 2, 7, 40):
            order = rng.permutation(len(y))
            sketches = [sketch(rows) for rows in np.array_split(order, parts)]
            while len(sketches) > 1:  # a random tree
                left, right = (sketches.pop(rng.integers(len(sketches))) for _ in range(2))
                sketches.append(left + right)
            assert sketches[0].to_bytes() == whole
        batches = FragilitySketch(256, labels=labels, multi_class=multi_class)
        for rows in np.array_split(rng.permutation(len(y)), 13):
            batches.update(y[rows], p[rows], None if weights is None else weights[rows])
        assert batches.to_bytes() == whole

    def test_whole_weights_are_repetitions(self):
        y, p = ordinary(2, 500)
        repeats = np.random.default_rng(0).integers(0, 5, 500)
        weighted = FragilitySketch().update(y, p, repeats)
        repeated = FragilitySketch().update(np.repeat(y, repeats), np.repeat(p, repeats))
        assert weighted.fragility().value == repeated.fragility().value
        ones = FragilitySketch().update(y, p, np.ones(500))
        assert ones.to_bytes() == FragilitySketch().update(y, p).to_bytes()

    def test_more_samples_than_a_block(self):
        y, p = ordinary(2, 150_001)
        whole = FragilitySketch().update(y, p)
        parts = sum(FragilitySketch().update(y[k::3], p[k::3]) for k in range(3))
        assert parts == whole
        assert parts.support.sum() == 150_001

    def test_operators_leave_their_operands_alone(self):
        a, b = (FragilitySketch().update(*ordinary(seed, 50)) for seed in (1, 2))
        before = a.to_bytes(), b.to_bytes()
        together = a + b
        assert (a.to_bytes(), b.to_bytes()) == before
        assert a.merge(b) is a
        assert a == together != b
        assert (a == "sketch") is False
        with pytest.raises(TypeError):
            a + 1
        with pytest.raises(TypeError):
            hash(a)

    def test_merging_with_itself_counts_twice(self):
        y, p = ordinary(1, 50)
        sketch = FragilitySketch().update(y, p)
        sketch.merge(sketch)
        assert sketch == FragilitySketch().update(np.tile(y, 2), np.tile(p, 2))

    def test_empty_sketches(self):
        filled = FragilitySketch(pos_label=0).update(*ordinary(1, 50))
        assert FragilitySketch(pos_label=0) + filled == filled
        assert filled + FragilitySketch(pos_label=0) == filled
        assert FragilitySketch() + filled == filled
        assert FragilitySketch() + FragilitySketch() == FragilitySketch()

    def test_kinds_of_labels(self):
        p = [0.1, 0.7, 0.4]
        sketches = [
            FragilitySketch(64).update(np.array([0, 1, 0], dtype=dtype), p)
            for dtype in (int, float, bool)
        ]
        first, *others = sketches
        for other in others:
            assert first + other == other + first
            assert (first + other).to_bytes() == (other + first).to_bytes()

    def test_an_empty_sketch_keeps_its_positive_class(self):
        empty = FragilitySketch(64, pos_label=0)
        again = FragilitySketch.from_bytes(empty.to_bytes())
        assert again.update([0, 1], [0.9, 0.2]).fragility().value == 0.0
        assert empty != FragilitySketch(64)
        filled = FragilitySketch(64).update([0, 1], [0.9, 0.2])
        for left, right in (
            (empty, filled),
            (filled, empty),
            (empty, FragilitySketch(64, None, 1)),
        ):
            before = left.to_bytes()
            with pytest.raises(ValueError, match=r"differ in (the positive class|pos_label)"):
                left.merge(right)
            assert left.to_bytes() == before

    def test_copies_are_independent(self):
        sketch = FragilitySketch(64).update(*ordinary(1, 50))
        twin = copy.copy(sketch)
        twin.update([0, 1], [0.1, 0.2])
        assert sketch != twin
        sketch.fragility().labels[0] = 7
        assert sketch.labels.tolist() == [0, 1]
        assert pickle.loads(pickle.dumps(twin)) == twin

    def test_labels_that_cannot_be_written_can_be_compared(self):
        a, b = (FragilitySketch(64, labels=[b"a", b"b"]) for _ in range(2))
        assert a == b

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (FragilitySketch(128, labels=[0, 1]), "differ in n_bins: 256 and 128"),
            (FragilitySketch(256, labels=[0, 1, 2]), r"differ in labels: \[0, 1\] and \[0, 1, 2\]"),
            (FragilitySketch(256, labels=[0, 1], pos_label=0), "differ in the positive class"),
            (FragilitySketch(256, labels=[0, 1], multi_class="ovr"), "differ in multi_class"),
        ],
    )
    def test_unlike_sketches(self, other, message):
        sketch = FragilitySketch(256, labels=[0, 1])
        with pytest.raises(ValueError, match=message):
            sketch.merge(other)
        with pytest.raises(TypeError, match="merges with a sketch; got bytes"):
            sketch.merge(b"")


class TestExactSums:
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.builds(lambda m, e: m * 2.0**e, st.floats(-1, 1), st.integers(-100, 150)),
            ),
            max_size=40,
        ),
        st.randoms(use_true_random=False),
    )
    def test_against_fractions_in_any_order(self, terms, random):
        expected = [sum((Fraction(v) for k, v in terms if k == j), Fraction()) for j in range(4)]
        forms = set()
        for _ in range(3):
            random.shuffle(terms)
            cut = random.randint(0, len(terms))
            parts = []
            for some in (terms[:cut], terms[cut:]):
                sums = ExactSums((1, 4))
                for piece in (some[::2], some[1::2]):
                    bins = np.array([k for k, _ in piece], dtype=np.int64)
                    sums.add_at(bins, np.array([v for _, v in piece], dtype=float), 0)
                parts.append(sums)
            parts[0].merge(parts[1])
            total = parts[0]
            exact = [
                sum(int(d) * Fraction(2) ** (32 * (k + total.lowest)) for k, d in enumerate(column))
                for column in total.digits[:, 0, :].T
            ]
            assert exact == expected
            forms.add((total.lowest, total.digits.tobytes()))
            for found, true in zip(total.floats()[0], expected, strict=True):
                assert abs(Fraction(float(found)) - true) <= abs(true) * Fraction(2) ** -51
        assert len(forms) == 1

    def test_the_tiniest_numbers(self):
        """Digits below the least positive float, which no unit can be written for."""
        terms = np.array([5e-324, 2.2250738585e-313, -1e-310, 3e-308, 1.0])
        sums = ExactSums((1, 1))
        for some in (terms[:2], terms[2:4], terms[4:], -terms[4:]):
            sums.add_at(np.zeros(some.size, dtype=np.int64), some, 0)
        exact = sum(Fraction(float(term)) for term in terms[:4])
        assert float(sums.floats()[0, 0]) == float(exact)

    def test_one_number_for_every_bin(self):
        sums = ExactSums((1, 3))
        for number in (1, -(2**44)):
            sums.add_each(np.array([0, 2, 2]), number, 0)
        assert sums.floats()[0].tolist() == [1.0 - 2.0**44, 0.0, 2.0 - 2.0**45]

    def test_many_large_totals(self):
        sums, expected = ExactSums((2,)), [0, 0]
        totals = np.array([2.0**53 - 1, -(2.0**53 - 1)])
        for _ in range(2000):
            sums.add(totals)
            expected = [e + int(t) for e, t in zip(expected, totals, strict=True)]
        sums.settle()
        found = [sum(int(d) << (32 * k) for k, d in enumerate(c)) for c in sums.digits.T]
        assert found == expected

    def test_cancelling_terms_leave_nothing(self):
        sums = ExactSums((1, 2))
        sums.add_at(np.array([0, 0, 1]), np.array([1e40, -1e40, 0.0]), 0)
        sums.settle()
        assert sums.digits.tolist() == [[[0, 0]]]
        assert sums.lowest == 0


class TestBytes:
    @pytest.fixture
    def sketch(self):
        y, p = several(1, 300, 3)
        weights = np.random.default_rng(0).exponential(size=300)
        return FragilitySketch(64, labels=[0, 1, 2]).update(y, p, weights)

    @pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [False, True], ["a", "b", "c"]])
    def test_round_trip(self, labels):
        rng = np.random.default_rng(0)
        y = np.array(labels)[rng.integers(0, len(labels), 80)]
        p = rng.dirichlet(np.ones(len(labels)), 80)
        p = p[:, 1] if len(labels) == 2 else p
        pos_label = labels[0] if len(labels) == 2 else None
        sketch = FragilitySketch(32, labels=labels, pos_label=pos_label).update(y, p)
        again = FragilitySketch.from_bytes(sketch.to_bytes())
        assert again.to_bytes() == sketch.to_bytes()
        assert again.fragility().value == sketch.fragility().value
        assert again.update(y, p) == sketch.update(y, p)

    def test_empty(self):
        for sketch in (FragilitySketch(64), FragilitySketch(64, labels=["a", "b"])):
            again = FragilitySketch.from_bytes(sketch.to_bytes())
            assert again == sketch
            again.update(["a", "b", "a"], [0.1, 0.5, 0.7])

    def test_every_damaged_byte_is_noticed(self, sketch):
        content = sketch.to_bytes()
        rng = np.random.default_rng(0)
        for place in [*range(80), *rng.integers(0, len(content), 300), len(content) - 1]:
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(rng.integers(8))
            with pytest.raises(ValueError, match=r"not a FragilitySketch|damaged"):
                FragilitySketch.from_bytes(bytes(damaged))

    @pytest.mark.parametrize("length", [0, 5, 16, 30, 60, -1, -40])
    def test_cut_off(self, sketch, length):
        with pytest.raises(ValueError, match=r"not a FragilitySketch|damaged"):
            FragilitySketch.from_bytes(sketch.to_bytes()[:length])

    @pytest.mark.parametrize("foreign", [b"", b"PK\x03\x04", b"{}" * 100, "text", None, 7])
    def test_foreign(self, foreign):
        with pytest.raises(ValueError, match=r"not a FragilitySketch|read from bytes"):
            FragilitySketch.from_bytes(foreign)

    def resigned(self, content):
        return content + hashlib.sha256(content).digest()

    def test_format_1_is_read_and_merges_but_not_written(self, sketch):
        content = bytearray(sketch.to_bytes()[:-32])
        assert content[16] == 2
        content[16] = 1
        old = FragilitySketch.from_bytes(self.resigned(bytes(content)))
        assert old == sketch
        assert old.to_bytes() == sketch.to_bytes()
        assert (old + sketch).fragility().value == sketch.fragility().value

    def test_half_way_scores_of_format_1_are_in_either_bin(self):
        # Format 1 had 1.5 / 64 of class 1 in bin 1, at half a bin above its centre; now it is in
        # bin 2 as of class 0.
        new = FragilitySketch(64, labels=[0, 1]).update(
            [0, 1, 0, 1], [1.5 / 64, 1.5 / 64, 0.2, 0.7]
        )
        head, arrays = new._content()
        held, sums = arrays[1], arrays[4]
        assert held.tolist().count(65 + 2) == 1
        place = held.tolist().index(65 + 2)
        assert sums[:, place].tolist() == [0, -16]  # -2**36, in digits of 32 bits
        held[place] -= 1
        sums[:, place] *= -1
        old = FragilitySketch.from_bytes(Envelope(b"fragility-sketch", "x", 1).seal(head, arrays))
        assert old != new
        for merged in (old + new, new + old):
            found, exact = merged.fragility(), new.fragility()
            assert found.lower <= exact.upper
            assert exact.lower <= found.upper
            assert found.value == pytest.approx(exact.value, rel=1e-3)

    def test_newer_version(self, sketch):
        content = bytearray(sketch.to_bytes()[:-32])
        content[16] = 3
        with pytest.raises(ValueError, match="has format 3; this version"):
            FragilitySketch.from_bytes(self.resigned(bytes(content)))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"n_bins": 64', b'"n_bins": 32'),
            (b'"n_bins": 64', b'"n_bins": 65'),
            (b'"labels": [0, 1, 2]', b'"labels": [0, 1, 1]'),
            (b'"arrays": ', b'"arroys": '),
            (b'"<i8"', b'"|O8"'),
        ],
    )
    def test_signed_nonsense(self, sketch, old, new):
        content = sketch.to_bytes()[:-32]
        assert old in content
        with pytest.raises(ValueError, match="cannot be read"):
            FragilitySketch.from_bytes(self.resigned(content.replace(old, new)))

    def test_labels_that_cannot_be_written(self):
        sketch = FragilitySketch(labels=np.array(["2020", "2021"], dtype="M8[Y]"))
        with pytest.raises(ValueError, match="labels that are text, whole numbers or booleans"):
            sketch.to_bytes()


class TestInput:
    def test_labels_are_needed_before_a_batch_that_lacks_a_class(self):
        with pytest.raises(ValueError, match="labels"):
            FragilitySketch().update([1, 1], [0.5, 0.6])
        with pytest.raises(ValueError, match="name all classes with labels="):
            FragilitySketch().update([0, 1], np.full((2, 3), 1 / 3))
        sketch = FragilitySketch(labels=[0, 1]).update([1, 1], [0.5, 0.6]).update([0], [0.55])
        assert sketch.fragility().value == fragility_index([1, 1, 0], [0.5, 0.6, 0.55])

    def test_unknown_class(self):
        sketch = FragilitySketch().update([0, 1], [0.1, 0.2])
        with pytest.raises(ValueError, match="labels does not name: 2"):
            sketch.update([0, 2], [0.1, 0.2])

    def test_a_refused_batch_leaves_no_trace(self):
        sketch = FragilitySketch().update([0, 1, 0], [0.1, 0.2, 0.3])
        before = sketch.to_bytes()
        for y, p, weights in (
            ([0, 1], [0.1, 1.2], None),
            ([0, 1], [0.1, np.nan], None),
            ([0, 1], [0.1, 0.2], [1.0, -1.0]),
            ([0, 1], [0.1, 0.2], [1e-40, 1.0]),
            ([0, 1], [0.1], None),
        ):
            with pytest.raises(ValueError, match=r"y_score|sample_weight|scores from 0 to 1"):
                sketch.update(y, p, weights)
            assert sketch.to_bytes() == before
        first = FragilitySketch()
        with pytest.raises(ValueError, match=r"scores from 0 to 1; 1 lie outside \(they go from"):
            first.update([0, 1], [-0.1, 0.5])
        with pytest.raises(ValueError, match=r"to 1\.0000001.*np\.clip"):
            first.update([0, 1], np.float32([0.1, 1.0000001]))
        assert first.labels is None

    def test_weights_out_of_reach(self):
        with pytest.raises(ValueError, match="takes weights from 1e-30 to 1e"):
            FragilitySketch().update([0, 1], [0.1, 0.2], [1.0, 1e31])

    @pytest.mark.parametrize("labels", [[0, None], [0, float("nan")], [0.5, 1.5], [1, 1], [1]])
    def test_labels(self, labels):
        with pytest.raises(ValueError, match="labels"):
            FragilitySketch(labels=labels)

    def test_the_positive_label_must_be_one_of_the_labels(self):
        with pytest.raises(ValueError, match="pos_label=2 is not one of the classes, 0, 1"):
            FragilitySketch(labels=[0, 1], pos_label=2)

    def test_weights_of_many_scales_need_memory(self):
        sketch = FragilitySketch(2**20, labels=range(3), multi_class="ovr")
        y, p = several(0, 30, 3)
        weights = np.where(np.arange(30) == 5, 1e-28, 1e28)
        with pytest.raises(ValueError, match=r"with weights of these scales, needs 1\.\d GiB"):
            sketch.update(y, p, weights)

    def test_empty_batches_are_welcome(self):
        sketch = FragilitySketch()
        assert sketch.update([], []) is sketch
        assert sketch.update([0, 1], [0.1, 0.2], [0.0, 0.0]) is sketch
        assert sketch == FragilitySketch()
        sketch.update([0, 1, 0], [0.1, 0.2, 0.3]).update([], [])
        assert sketch.support.tolist() == [2, 1]

    def test_nothing_to_say(self):
        with pytest.raises(ValueError, match="The sketch is empty"):
            FragilitySketch().fragility()
        with pytest.raises(ValueError, match="Only one class has samples"):
            FragilitySketch(labels=[0, 1]).update([0], [0.2]).fragility()

    def test_absent_class(self):
        y, p = several(0, 60, 3)
        sketch = FragilitySketch(labels=[0, 1, 2, 3]).update(y, np.c_[p, np.zeros(60)])
        with pytest.warns(AbsentClassWarning, match="of 3: the pairs"):
            found = sketch.fragility()
        assert np.isnan(found.pairs[3]).all()
        with pytest.warns(AbsentClassWarning):
            exact = fragility_index(y, np.c_[p, np.zeros(60)], labels=[0, 1, 2, 3])
        assert found.lower <= exact <= found.upper

    @pytest.mark.parametrize("n_bins", [0, 15, 100, 2**21, 64.5, True, "64", None])
    def test_number_of_bins(self, n_bins):
        with pytest.raises(ValueError, match="n_bins must be a power of two from 16"):
            FragilitySketch(n_bins)

    def test_too_large_a_state(self):
        with pytest.raises(
            ValueError,
            match=r"200 classes with 4096 bins needs 6.1 GiB, more than 1 GiB. Use n_bins=512 or "
            r'multi_class="ovr"',
        ):
            FragilitySketch(labels=range(200))
        FragilitySketch(512, labels=range(200))
        FragilitySketch(labels=range(200), multi_class="ovr")
        with pytest.raises(ValueError, match=r"needs .* GiB"):
            FragilitySketch(2**20, labels=range(20), multi_class="ovr")

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_narrow_floats(self, dtype):
        y, p = ordinary(0, 200)
        p = p.astype(dtype)
        found = FragilitySketch().update(y, p).fragility()
        assert found.lower <= fragility_index(y, p) <= found.upper

    def test_frames_text_and_positive_label(self):
        y, p = ordinary(0, 100)
        text = np.where(y == 1, "sick", "well")
        sketch = FragilitySketch(pos_label="sick").update(pd.Series(text), pd.Series(p))
        found = sketch.fragility()
        assert found.lower <= fragility_index(y, p) <= found.upper
        assert "sick: " in repr(found)
        assert "certified" in repr(found)
        assert repr(sketch) == "<FragilitySketch of 4096 bins, 100 samples>"

    def test_under_strict_floating_point(self):
        with np.errstate(all="raise"):
            for kind in KINDS:
                bins, y, p, weights, target = problem(kind, np.random.default_rng(0))
                FragilitySketch(bins).update(y, p, weights).fragility(target)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bin_of_a_score_does_not_depend_on_its_class(multi_class, weighted):
    n_bins = 16
    edges = (np.arange(n_bins) + 0.5) / n_bins  # half-way between centres
    weights = np.ones(n_bins) if weighted else None
    places = []
    for label in range(3):
        sketch = FragilitySketch(n_bins, labels=[0, 1, 2], multi_class=multi_class)
        scores = np.column_stack([edges, edges, edges]) / 1.0
        sketch.update(np.full(n_bins, label), scores, weights)
        held = sketch._content()[1][1]
        places.append((held % (n_bins + 1)).tolist())
    assert places[0] == places[1] == places[2]


def test_samples_that_differ_in_the_sign_of_zero_are_the_same():
    y = [0, 1, 0, 1]
    scores = [[0.0, 0.5, -0.0, 0.2], [-0.0, 0.5, 0.0, 0.2]]
    first, second = (FragilitySketch().update(y, p).to_bytes() for p in scores)
    assert first == second


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.3, 1e-6, 1e6])
def test_index_does_not_depend_on_what_it_is_thought_to_be_near(factor):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 3_000)
    p = 1.0 / (1.0 + np.exp(-2.0 * rng.normal(size=y.size) - y))
    bins = ScoreBins(Tails(10), 1, 2)
    bins.add(p, y)
    groups = bins.moments(0, 0), bins.moments(0, 1).negated()
    expected = certify(*groups, 0.0)
    found = certify(*groups, 0.0, factor * expected.fragility)
    assert found == pytest.approx(expected, rel=1e-11)
    assert found.low <= found.fragility <= found.high
