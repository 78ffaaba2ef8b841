"""Costs of a threshold on cases that did not choose it, and how sure they are."""

from __future__ import annotations

import tracemalloc
from math import nan

import numpy as np
import pytest

from fragility import best_threshold, deferral_curve
from fragility._random import spread_over_folds
from fragility.deferral.cross_fitting import dealt_cells

from .confident_models import model
from .reference import deferral as reference


@pytest.fixture(autouse=True)
def every_floating_point_error_is_an_exception():
    with np.errstate(all="raise"):
        yield


def test_folds_hold_each_class_evenly():
    codes = np.repeat([0, 1, 2], [23, 9, 2])
    folds = spread_over_folds(codes, 5, np.random.default_rng(0))
    for code in (0, 1, 2):
        counts = np.bincount(folds[codes == code], minlength=5)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(folds)) <= 1
    other = spread_over_folds(codes, 5, np.random.default_rng(1))
    assert (folds != other).any()


OFFERED = np.array(reference.offered(2), dtype=float)


def best_on_offer(curve):
    """The best threshold among those on offer, one by one."""
    points = [curve.at(threshold) for threshold in OFFERED]
    return reference.best_of_points(points, curve.costs.capacity)


def cheapest(place, counts, alone, capacity):
    """Number of the cheapest threshold; `place` is the first one that each case is not above."""
    above = place > np.arange(OFFERED.size)[:, np.newaxis]
    reviewed = (~above) @ counts
    cost = reviewed + above @ (counts * alone)
    if capacity is not None:
        cost = np.where(reviewed <= (capacity + 1e-12) * counts.sum(), cost, np.inf)
    return int(np.flatnonzero(cost <= cost.min() + 1e-9)[0])


def paid(place, counts, alone, wrong, threshold):
    """Cost, number decided alone, and of these the wrong ones."""
    above = place > threshold
    cost = counts[~above].sum() + (counts * alone)[above].sum()
    return np.array([cost, counts[above].sum(), counts[above & wrong].sum()])


@pytest.mark.parametrize("capacity", [None, 0.3])
@pytest.mark.parametrize("n", [4, 7, 60])
def test_each_fold_is_judged_by_the_others(n, capacity):
    y, p = model(n, n)
    p = np.round(16 * p) / 16
    found = best_threshold(y, p, error_cost=8, capacity=capacity, labels=[0, 1], n_bootstrap=3)
    curve = deferral_curve(y, p, error_cost=8, capacity=capacity, labels=[0, 1])
    assert found.threshold == best_on_offer(curve).threshold
    assert found.cost_automate_all == pytest.approx(curve.at(0).cost, rel=1e-14)
    assert found.cost_review_all == pytest.approx(curve.at(1).cost, rel=1e-14)
    assert found.fold_thresholds.shape == (20, min(5, n))
    total = np.zeros(3)
    for number, thresholds in enumerate(found.fold_thresholds):
        split = dealt_cells(curve._cells, curve.costs, min(5, n), [number, 0])
        units = split.units.sum(axis=0)
        alone, wrong = split.sums[2].sum(axis=0) / units, split.sums[1].sum(axis=0) > 0
        for fold, threshold in enumerate(thresholds):
            own = split.units[fold]
            place = cheapest(split.place, units - own, alone, capacity)
            assert threshold == OFFERED[place]
            total += paid(split.place, own, alone, wrong, place)
    cost, automated, mistakes = total / (20 * n)
    assert found.cost == pytest.approx(cost, rel=1e-13)
    assert found.automation_rate == pytest.approx(automated)
    expected = mistakes / automated if automated else nan
    assert found.error_rate == pytest.approx(expected, nan_ok=True)


def test_held_out_cases_are_judged():
    y, p = model(5, 300, 2.0)
    held_out = deferral_curve(*model(6, 200, 2.0), error_cost=10)
    found = best_threshold(y, p, error_cost=10, held_out=held_out, capacity=0.3)
    chosen = deferral_curve(y, p, error_cost=10, capacity=0.3)
    assert found.threshold == best_on_offer(chosen).threshold
    expected = held_out.at(found.threshold)
    np.testing.assert_allclose(
        [found.cost, found.automation_rate, found.error_rate], expected[1:], rtol=1e-13
    )
    reviewed = [1.0 - chosen.at(threshold).automation_rate for threshold in OFFERED]
    assert found.chow_threshold == OFFERED[np.array(reviewed) <= 0.3].max() < 0.9
    assert "Chow's 0.9 would need more reviews" in found.chow_note
    assert found.chow_cost == pytest.approx(held_out.at(found.chow_threshold).cost, rel=1e-13)
    assert found.cost_review_all == 1.0
    assert found.cost_automate_all == pytest.approx(held_out.at(0).cost)
    assert found.fold_thresholds.tolist() == [[found.threshold]]
    assert (found.n_samples, found.n_held_out) == (300, 200)
    assert found.cost_interval.low < found.cost < found.cost_interval.high


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_resamples_are_of_single_cases(held):
    """Every case a random number of times, literally: the draws have the same quartiles."""
    n_draws, n = 2_000, 120
    y, p = model(3, n, 2.0)
    curve = deferral_curve(y, p, error_cost=6, capacity=0.5)
    other = deferral_curve(*model(4, 90, 2.0), error_cost=6)
    found = best_threshold(
        *(y, p),
        error_cost=6,
        capacity=0.5,
        held_out=other if held else None,
        n_bootstrap=n_draws,
        confidence=0.5,
    )
    rng = np.random.default_rng(0)
    split = dealt_cells(curve._cells, curve.costs, 1 if held else 5, [0, 0])
    paying = dealt_cells(other._cells, other.costs, 1, [0, 0]) if held else split
    parts = []
    for cells in (split, paying):
        units = cells.units.sum(axis=0)
        each = cells.sums[2].sum(axis=0) / units, cells.sums[1].sum(axis=0) > 0
        parts.append((cells.place, *each))
    draws = []
    for _ in range(n_draws):
        # As many Poisson numbers as there are cases in a cell of a fold.
        times = np.array([[rng.poisson(1.0, k).sum() for k in fold] for fold in split.units])
        judged = times
        if held:
            judged = np.array([[rng.poisson(1.0, k).sum() for k in f] for f in paying.units])
        total = np.zeros(3)
        for fold in range(len(judged)):
            rest = times[0] if held else times.sum(axis=0) - times[fold]
            place = cheapest(parts[0][0], rest, parts[0][1], 0.5)
            total += paid(parts[1][0], judged[fold], *parts[1][1:], place)
        whole = cheapest(parts[0][0], times.sum(axis=0), parts[0][1], 0.5)
        draws.append((total[0] / judged.sum(), OFFERED[whole]))
    costs, thresholds = np.array(draws).T
    # Standard error of a quartile of a normal sample, of two samples.
    error = np.sqrt(2 * 0.1875 / n_draws) / 0.3178 * costs.std()
    np.testing.assert_allclose(
        found.cost_interval, np.quantile(costs, [0.25, 0.75]), atol=4 * error
    )
    low, high = found.threshold_interval
    for quantile, end in ((0.25, low), (0.75, high)):
        room = 4 * np.sqrt(2 * 0.1875 / n_draws)
        assert np.mean(thresholds < end) <= quantile + room
        assert np.mean(thresholds <= end) >= quantile - room


@pytest.mark.slow
def test_a_cost_found_by_looking_is_too_good():
    """On noise the chosen threshold looks cheap; measured on others it is not."""
    looked, honest = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, p = rng.integers(0, 2, 60), rng.random(60)
        looked.append(deferral_curve(y, p, error_cost=2).best().cost)
        honest.append(best_threshold(y, p, error_cost=2, n_bootstrap=0, random_state=seed).cost)
    # Alone or reviewed, a case costs one: that is the truth at every threshold.
    assert np.mean(looked) < 0.93
    assert np.mean(honest) == pytest.approx(1.0, abs=0.03)


def test_calibrated_is_near_chow():
    y, p = model(7, 200_000)
    for options in ({"error_cost": 10}, {"error_cost": 4, "reviewer_error": 0.1}):
        found = best_threshold(y, p, n_bootstrap=20, **options)
        assert found.threshold == pytest.approx(found.chow_threshold, abs=0.02)
        assert abs(found.gap) < 0.002
        assert found.gap_interval.low <= 0.0 <= found.gap_interval.high


@pytest.mark.slow
def test_gap_tells_overconfidence():
    """The interval of the gap holds zero for right confidence, and lies above it for too much."""
    for seed in range(8):
        right = best_threshold(*model(seed), error_cost=10, n_bootstrap=200)
        assert right.gap_interval.low <= 0.0 <= right.gap_interval.high
        over = best_threshold(*model(seed, steepness=2.5), error_cost=10, n_bootstrap=200)
        assert over.gap_interval.low > 0.0
        assert over.gap_interval.low < over.gap < over.gap_interval.high
        assert over.threshold > 0.95 > over.chow_threshold == 0.9
        assert over.gap == over.chow_cost - over.cost


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_interval_is_that_of_a_mean(held):
    """Where reviews cost more than errors everything is automated: the cost is a plain mean."""
    y, p = model(8, 1500)
    other = model(9, 1000)
    more = {"held_out": deferral_curve(*other, error_cost=1, review_cost=5)} if held else {}
    found = best_threshold(y, p, error_cost=1, review_cost=5, n_bootstrap=2000, **more)
    assert found.threshold == 0.0
    assert found.threshold_interval == (0.0, 0.0)
    assert found.gap_interval == (0.0, 0.0)
    judged_y, judged_p = other if held else (y, p)
    wrong = np.mean((judged_p > 0.5) != judged_y)
    assert found.cost == pytest.approx(wrong, rel=1e-13)
    width = found.cost_interval.high - found.cost_interval.low
    assert width == pytest.approx(3.92 * np.sqrt(wrong * (1 - wrong) / judged_y.size), rel=0.08)
    assert np.mean(found.cost_interval) == pytest.approx(wrong, abs=0.1 * width)
    narrow = best_threshold(
        y, p, error_cost=1, review_cost=5, n_bootstrap=2000, confidence=0.5, **more
    ).cost_interval
    assert narrow.high - narrow.low == pytest.approx(width * 0.6745 / 1.96, rel=0.1)


def test_no_bootstrap_no_interval():
    found = best_threshold(*model(0, 50), error_cost=10, n_bootstrap=0)
    for interval in (found.cost_interval, found.gap_interval, found.threshold_interval):
        assert np.isnan(interval).all()
    assert "interval" not in repr(found)


@pytest.mark.slow
def test_bootstrap_keeps_no_resamples():
    y, p = model(0, 50_000)
    peaks = []
    for n_bootstrap in (100, 1000):  # several are drawn at a time
        tracemalloc.start()
        best_threshold(y, p, error_cost=10, n_bootstrap=n_bootstrap, capacity=0.9)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_randomness_is_seeded():
    y, p = model(1, 300)

    def result(random_state):
        found = best_threshold(y, p, error_cost=10, n_bootstrap=20, random_state=random_state)
        return found.cost, found.cost_interval

    assert result(0) == result(0) != result(1)
    assert result(np.int64(5)) == result(5)


# Chow's rule


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"error_cost": 10}, 0.9),
        ({"error_cost": 4, "review_cost": 1, "reviewer_error": 0.25}, 0.5),
        ({"error_cost": 0.5}, 0.0),  # a review costs more than an error
        ({"error_cost": 0}, 0.0),
        ({"error_cost": 10, "review_cost": 0}, 1.0),
    ],
)
def test_chow(options, expected):
    y, p = model(0, 100)
    found = best_threshold(y, p, n_bootstrap=0, **options)
    assert found.chow_threshold == expected
    assert found.chow_note == ""
    assert found.chow_cost == pytest.approx(deferral_curve(y, p, **options).at(expected).cost)


@pytest.mark.parametrize(
    ("cost", "words"), [([[0, 10], [5, 0]], "each pair of classes"), ([10.0] * 100, "each case")]
)
def test_no_chow_where_errors_differ(cost, words):
    y, p = model(0, 100)
    found = best_threshold(y, p, error_cost=cost, n_bootstrap=10)
    assert words in found.chow_note
    assert np.isnan([found.chow_threshold, found.chow_cost, found.gap, *found.gap_interval]).all()
    assert found.cost_interval.low <= found.cost_interval.high
    assert found.chow_note in repr(found)


# Bad input

Y, P = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.7]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv must be a whole number of 2 or more; got 1"),
        ({"cv": "five"}, "cv must be a whole number"),
        ({"n_bootstrap": -1}, "n_bootstrap must be a whole number of 0 or more; got -1"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, such as 0.95; got 95"),
        ({"random_state": "x"}, "random_state must be a whole number .* got 'x'"),
        ({"random_state": -3}, "random_state must be a whole number .* got -3"),
        ({"random_state": None}, "random_state must be a whole number .* got None"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be a whole number"),
        ({"held_out": (Y, P)}, "held_out must be a DeferralCurve of other cases, .* got tuple"),
        (
            {"held_out": deferral_curve(Y, P, error_cost=20)},
            "held_out has other costs: error_cost is 20.0 there and 10.0 here",
        ),
        (
            {"held_out": deferral_curve(Y, P, error_cost=[10] * 4)},
            "error_cost is one number for each case there and 10.0 here",
        ),
        (
            {"held_out": deferral_curve(Y, P, error_cost=10, review_cost=2)},
            "review_cost is 2.0 there and 1.0 here",
        ),
    ],
)
def test_bad_measuring(options, message):
    with pytest.raises(ValueError, match=message):
        best_threshold(Y, P, error_cost=10, **options)


def test_too_few_to_measure():
    with pytest.raises(ValueError, match=r"at least 4 cases .* got 3\. .* held_out=deferral_curve"):
        best_threshold(Y, P, error_cost=10, sample_weight=[1, 0, 2, 3])
    held_out = deferral_curve(Y, P, error_cost=10)
    assert best_threshold(Y[:2], P[:2], error_cost=10, held_out=held_out).n_samples == 2
