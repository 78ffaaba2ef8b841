"""Thresholds of confidence against loops over all of them."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fragility import best_threshold, deferral_curve
from fragility.deferral import Costs
from fragility.deferral.cross_fitting import FoldCells, dealt_cells, judge
from fragility.scores.tally import threshold_grid

from .confident_models import model
from .reference import deferral as reference


@pytest.fixture(autouse=True)
def every_floating_point_error_is_an_exception():
    with np.errstate(all="raise"):
        yield


# Sixteenths, and costs that are halves: every sum is exact, so ties are.


@st.composite
def problems(draw, least=1, most=12):
    n_classes = draw(st.sampled_from([2, 4]))
    n = draw(st.integers(least, most))
    codes = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    rows = []
    for _ in range(n):
        cuts = sorted(draw(st.lists(st.integers(0, 16), min_size=n_classes - 1, max_size=3))[:3])
        cuts = cuts[: n_classes - 1]
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, 16], strict=True)]
        rows.append([part / 16 for part in parts])
    weights = draw(
        st.none() | st.lists(st.sampled_from([0, 0.25, 1, 3]), min_size=n, max_size=n).filter(any)
    )
    half = st.integers(0, 40).map(lambda k: k / 2)
    kind = draw(st.sampled_from(["number", "matrix", "cases"]))
    size = {"number": 1, "matrix": n_classes**2, "cases": n}[kind]
    cost = draw(st.lists(half, min_size=size, max_size=size))
    if kind == "number":
        cost = cost[0]
    elif kind == "matrix":
        cost = np.reshape(cost, (n_classes, n_classes)).tolist()
    options = {
        "error_cost": cost,
        "review_cost": draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        "reviewer_error": draw(st.sampled_from([0.0, 0.0, 0.125, 1.0])),
        "capacity": draw(st.none() | st.integers(0, 8).map(lambda k: k / 8) | st.just(1 / 3)),
    }
    if n_classes == 4 and options["reviewer_error"] and kind == "matrix":
        options["reviewer_error"] = 0.75  # the mean over three wrong classes stays exact
    return n_classes, codes, rows, weights, options


def curve_of(problem):
    n_classes, codes, rows, weights, options = problem
    return deferral_curve(codes, rows, labels=range(n_classes), sample_weight=weights, **options)


def literal(problem):
    _, codes, rows, weights, options = problem
    costs = {name: options[name] for name in ("error_cost", "review_cost", "reviewer_error")}
    return reference.cases(codes, rows, weights=weights, **costs)


def same(found, expected):
    """Equal but for the last rounding of a division; NaN equals NaN."""
    return found == pytest.approx(float(expected), rel=1e-14, abs=1e-14, nan_ok=True)


@pytest.mark.slow
@settings(max_examples=250)
@given(problems(), st.integers(0, 64))
def test_curve_is_the_loop(problem, step):
    curve, cases = curve_of(problem), literal(problem)
    capacity = problem[4]["capacity"]
    candidates = reference.candidates(cases)
    assert curve.thresholds.tolist() == candidates
    assert curve.n_samples == len(cases)
    for place, threshold in enumerate(candidates):
        cost, automated, errors, _ = reference.at(cases, threshold)
        assert same(curve.cost[place], cost)
        assert same(curve.automation_rate[place], automated)
        assert same(curve.error_rate[place], errors)
        assert curve.allowed[place] == (threshold in reference.allowed(cases, capacity))
    best = reference.best(cases, capacity)
    found = curve.best()
    assert found.threshold == best
    for point, threshold in ((found, best), (curve.at(step / 64), Fraction(step, 64))):
        assert point.threshold == threshold
        cost, automated, errors, _ = reference.at(cases, threshold)
        assert same(point.cost, cost)
        assert same(point.automation_rate, automated)
        assert same(point.error_rate, errors)


def by_fold(cases, folds, counts, thresholds):
    """Cells of one case each, repeated in their fold."""
    order = sorted(range(len(cases)), key=lambda k: cases[k][0])
    place, sums = [], np.zeros((4, max(folds) + 1, len(cases)))
    for column, k in enumerate(order):
        confidence, wrong, weight, alone, reviewed = cases[k]
        place.append(next(t for t, threshold in enumerate(thresholds) if confidence <= threshold))
        each = weight, weight * wrong, weight * alone, weight * reviewed
        sums[:, folds[k], column] = [float(amount * counts[k]) for amount in each]
    units = (sums[0] > 0.0).astype(np.int64)
    return FoldCells(np.array(place), units, sums)


@pytest.mark.slow
@settings(max_examples=100)
@given(problems(least=2, most=8), st.data())
def test_thresholds_of_folds_are_the_loop(problem, data):
    """Repeated cases in any folds: each at the threshold that the others chose, and at Chow's."""
    n_classes, *_, options = problem
    cases = literal(problem)
    n = len(cases)
    n_folds = data.draw(st.integers(1, 4))
    folds = data.draw(st.lists(st.integers(0, n_folds - 1), min_size=n, max_size=n))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    assume(any(counts))
    capacity, thresholds = options["capacity"], reference.offered(n_classes)
    everyone = [case for case, count in zip(cases, counts, strict=True) for _ in range(count)]
    costs = Costs(**options).checked(n_classes, len(problem[1]))
    split = by_fold(cases, folds, counts, thresholds)
    found = judge([split], threshold_grid(n_classes), costs, n_draws=0)
    assert found.threshold == reference.best(everyone, capacity, thresholds)
    cost, alone, _, chosen = reference.dealt(cases, folds, counts, thresholds, capacity)
    assert found.fold_thresholds.tolist() == [[float(threshold) for threshold in chosen]]
    weight = sum(case[2] for case in everyone)
    assert same(found.cost, cost / weight)
    assert same(found.automation_rate, alone / weight)
    if isinstance(options["error_cost"], float):
        rule = (options["error_cost"], options["review_cost"], options["reviewer_error"])
        chow = reference.nearest_chow(everyone, *rule, thresholds, capacity)
        assert found.chow_threshold == chow
        assert same(found.chow_cost, reference.at(everyone, chow)[0])


def test_capacity_of_many_cases():
    y, p = model(0, 5000)
    thresholds = threshold_grid(2)
    for capacity in (0.0, 0.1, 0.5, 0.999):
        curve = deferral_curve(y, p, error_cost=50, capacity=capacity)
        split = dealt_cells(curve._cells, curve.costs, 3, [0, 0])
        found = judge([split], thresholds, curve.costs, n_draws=0)
        alone = split.sums[2].sum(axis=0) / split.units.sum(axis=0)
        for fold in range(3):
            rest = split.units.sum(axis=0) - split.units[fold]
            reviewed = np.array([rest[split.place <= t].sum() for t in range(thresholds.size)])
            cost = reviewed + [
                (rest * alone)[split.place > t].sum() for t in range(thresholds.size)
            ]
            allowed = reviewed <= capacity * rest.sum() * (1 + 1e-12)
            least = cost[allowed].min()
            best = np.flatnonzero(allowed & (cost <= least * (1 + 1e-12)))[0]
            assert found.fold_thresholds[0, fold] == thresholds[best]
        confidence = np.maximum(p, 1 - p)
        shares = np.array([(confidence <= threshold).mean() for threshold in thresholds])
        highest = thresholds[shares <= capacity + 1e-12].max()
        assert found.chow_threshold == min(0.98, highest)


@pytest.mark.parametrize("seed", range(30))
def test_ties_by_rounding_go_to_the_lowest(seed):
    """Tenths are not exact: of costs that only rounding tells apart the lowest threshold wins."""
    rng = np.random.default_rng(seed)
    n = 40
    y, p = rng.integers(0, 2, n), rng.integers(0, 21, n) / 20
    weights = rng.integers(1, 4, n) / 10
    costs = {"error_cost": 0.3, "review_cost": 0.1}
    best = deferral_curve(y, p, sample_weight=weights, **costs).best()
    tenths = {"error_cost": 3, "review_cost": 1}
    exact = reference.cases(
        y, [[1 - v, v] for v in p], weights=np.rint(10 * weights).tolist(), **tenths
    )
    assert best.threshold == reference.best(exact)
    assert best.cost == pytest.approx(float(reference.at(exact, reference.best(exact))[0]) / 10)
    offered = best_threshold(y, p, sample_weight=weights, n_bootstrap=0, **costs).threshold
    assert offered == reference.best(exact, None, reference.offered(2))


# What must not matter


def fields(result):
    return {k: v for k, v in result.to_dict().items() if k not in ("error_cost", "n_samples")}


def test_weights_are_repetition():
    y, p = model(1, 300)
    counts = np.random.default_rng(0).integers(0, 4, y.size)
    weighted = deferral_curve(y, p, error_cost=10, capacity=0.4, sample_weight=counts)
    repeated = deferral_curve(
        np.repeat(y, counts), np.repeat(p, counts), error_cost=10, capacity=0.4
    )
    assert weighted.thresholds.tolist() == repeated.thresholds.tolist()
    for name in ("cost", "automation_rate", "error_rate"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=1e-13, atol=1e-15
        )
    assert weighted.allowed.tolist() == repeated.allowed.tolist()
    by_weight = best_threshold(y, p, error_cost=10, sample_weight=counts, n_bootstrap=0)
    curve = deferral_curve(np.repeat(y, counts), np.repeat(p, counts), error_cost=10)
    points = [curve.at(float(threshold)) for threshold in reference.offered(2)]
    assert by_weight.threshold == reference.best_of_points(points).threshold
    heavy = best_threshold(y, p, error_cost=10, sample_weight=counts * 2.0**600, n_bootstrap=0)
    assert fields(heavy) == fields(by_weight)


@pytest.mark.parametrize("kind", ["number", "matrix", "cases", "held out"])
def test_order_does_not_matter(kind):
    y, p = model(2, 400)
    p = np.round(p, 2)
    rng = np.random.default_rng(0)
    order = rng.permutation(y.size)
    cost = {"number": 10, "held out": 10, "matrix": [[0, 7], [20, 1]]}.get(kind)
    amounts = rng.integers(1, 30, y.size)
    weights = rng.integers(0, 3, y.size)

    def result(rows):
        more = {}
        if kind == "held out":
            more["held_out"] = deferral_curve(y[rows], p[rows] ** 2, error_cost=10)
        return best_threshold(
            y[rows],
            p[rows],
            error_cost=amounts[rows] if cost is None else cost,
            sample_weight=weights[rows],
            capacity=0.6,
            n_bootstrap=40,
            **more,
        )

    one, other = fields(result(np.arange(y.size))), fields(result(order))
    assert one.pop("chow_note") == other.pop("chow_note")
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)  # NaN where that is NaN


@pytest.mark.parametrize("factor", [1e-9, 0.1, 3, 1e12])
def test_currency_does_not_matter(factor):
    y, p = model(3, 500)
    p = np.round(p, 2)
    costs = {"error_cost": 7.0, "review_cost": 0.7}
    one = best_threshold(y, p, n_bootstrap=30, reviewer_error=0.05, **costs)
    scaled = {name: factor * cost for name, cost in costs.items()}
    other = best_threshold(y, p, n_bootstrap=30, reviewer_error=0.05, **scaled)
    for name in ("threshold", "automation_rate", "error_rate", "threshold_interval"):
        assert getattr(one, name) == getattr(other, name)
    assert one.fold_thresholds.tolist() == other.fold_thresholds.tolist()
    for name in ("cost", "gap", "chow_cost", "cost_interval", "cost_automate_all"):
        np.testing.assert_allclose(
            factor * np.array(getattr(one, name)), getattr(other, name), rtol=1e-9
        )


def test_names_of_classes_do_not_matter():
    y, p = model(4, 300)
    names = np.array(["sick", "well"])
    rows = np.column_stack([1 - p, p])
    matrix = [[0, 9], [4, 0]]
    expected = deferral_curve(y, rows, error_cost=matrix).best()
    assert deferral_curve(names[y], rows, error_cost=matrix).best() == expected
    swapped = deferral_curve(
        names[y], rows[:, ::-1], labels=["well", "sick"], error_cost=[[0, 4], [9, 0]]
    ).best()
    assert swapped.cost == pytest.approx(expected.cost, rel=1e-14)
    assert swapped.threshold == pytest.approx(expected.threshold, rel=1e-15)
    positive = deferral_curve(names[y], 1 - p, pos_label="sick", error_cost=matrix).best()
    assert positive.cost == pytest.approx(expected.cost, rel=1e-14)


def test_probabilities_above_one_by_rounding():
    curve = deferral_curve([1, 0, 1], [1 + 5e-7, 1 + 2e-7, 0.9], error_cost=10)
    assert curve.thresholds.tolist() == [0.0, 0.9, 1.0]
    assert curve.at(curve.best().threshold).cost == curve.best().cost == 1.0


# Words


def test_readable():
    y, p = model(0, 2000, 2.5)
    curve = deferral_curve(y, p, error_cost=10, capacity=0.25)
    lines = repr(curve).splitlines()
    assert lines[0].split()[:3] == ["best", "threshold", f"{curve.best().threshold:.4g}"]
    assert "beyond the capacity of 25.0 %" in repr(curve)
    assert "see best_threshold" in repr(curve)
    assert curve._repr_html_().count("<tr>") == len(lines)
    found = best_threshold(y, p, error_cost=10)
    rows = {line[:16].strip(): line[17:] for line in repr(found).splitlines()}
    low, high = found.gap_interval
    gap = f"would cost {found.gap:.3g} more per case (95% interval {low:.3g} to {high:.3g})"
    assert rows["threshold"].split()[0] == f"{found.threshold:.4g}"
    assert rows["cost per case"].split()[0] == f"{found.cost:.4g}"
    assert rows["Chow's rule"].split(maxsplit=1) == ["0.9", gap]
    assert rows["automate all"].split()[0] == f"{found.cost_automate_all:.4g}"
    assert rows["measured on"].endswith(
        "2000 cases, each at the threshold of others (20 × 5 folds)"
    )
    assert "Chow&#x27;s rule" in found._repr_html_()
    assert ">0.9</td>" in found._repr_html_()
    calibrated = best_threshold(*model(4), error_cost=10, n_bootstrap=0)
    assert calibrated.gap < 0.0
    assert f"would cost {-calibrated.gap:.3g} less per case\n" in repr(calibrated)


def test_plain_values():
    y, p = model(0, 50)
    curve = deferral_curve(y, p, error_cost=[[0, 10], [5, 0]], capacity=0.5)
    stored = json.loads(json.dumps(curve.to_dict()))
    assert stored["best"]["threshold"] == curve.best().threshold
    assert stored["cost"] == curve.cost.tolist()
    assert stored["error_cost"] == [[0, 10], [5, 0]]
    found = best_threshold(y, p, error_cost=10, n_bootstrap=5)
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["threshold"] == found.threshold
    assert stored["gap_interval"] == list(found.gap_interval)
    assert stored["fold_thresholds"] == found.fold_thresholds.tolist()
    assert stored["capacity"] is None


def test_results_do_not_hang_on_the_callers_arrays():
    y, p = model(0, 50)
    cost = np.full(50, 10.0)
    weights = np.ones(50)
    curve = deferral_curve(y, p, error_cost=cost, sample_weight=weights)
    expected = best_threshold(y, p, error_cost=cost, held_out=curve, n_bootstrap=0).to_dict()
    before = y.copy(), p.copy(), cost.copy()
    for array in (y, p, cost, weights):
        array[:] = 0
    y[:25] = 1
    again = best_threshold(
        before[0], before[1], error_cost=before[2], held_out=curve, n_bootstrap=0
    ).to_dict()
    assert again["cost"] == expected["cost"]


# Bad input

Y, P = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.7]


@pytest.mark.parametrize("function", [deferral_curve, best_threshold])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_cost": None}, "error_cost is missing: say what a wrong decision costs"),
        ({"error_cost": -1}, "error_cost must be zero or more; got -1"),
        ({"error_cost": "much"}, "error_cost must be a number; got 'much'"),
        ({"error_cost": np.inf}, "error_cost must be finite"),
        ({"error_cost": [1, 2, 3]}, r"error_cost has shape \(3,\); give one number, a matrix"),
        ({"error_cost": np.ones((3, 3))}, r"a matrix of shape \(2, 2\)"),
        ({"error_cost": [[0, -1], [1, 0]]}, r"entry \[0, 1\] is -1.0"),
        ({"error_cost": [1, np.nan, 1, 1]}, r"finite numbers of zero or more; entry \[1\] is nan"),
        ({"error_cost": 1, "review_cost": -0.5}, "review_cost must be zero or more; got -0.5"),
        ({"error_cost": 1, "review_cost": None}, "review_cost must be a number; got None"),
        ({"error_cost": 1, "capacity": 40}, r"a share .* \(not a number of cases\); got 40"),
        ({"error_cost": 1, "reviewer_error": 1.5}, "reviewer_error must be a share from 0 to 1"),
        ({"error_cost": 1, "sample_weight": [1, 2]}, "one weight for each of 4 samples"),
        ({"error_cost": 1, "labels": [0, 2]}, "labels does not name: 1"),
        ({"error_cost": 1, "pos_label": 3}, "pos_label=3 is not one of the classes"),
    ],
)
def test_bad_options(function, options, message):
    with pytest.raises(ValueError, match=message):
        function(Y, P, **options)


@pytest.mark.parametrize("function", [deferral_curve, best_threshold])
@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([], [], "proba is empty"),
        (Y, [0.2, 1.9, 0.6, 0.7], "proba must hold probabilities, from 0 to 1"),
        (Y, [[0.2, 0.9]] * 4, "The rows of proba must sum to 1"),
        (Y, [0.2, np.nan, 0.6, 0.7], "proba has NaN or infinite values in 1 of 4 rows"),
        (Y, P[:3], "y_true has 4 samples but proba has 3"),
        ([1, 1, 1, 1], P, "one class only, 1, and proba cannot tell .* labels="),
    ],
)
def test_bad_predictions(function, y, p, message):
    with pytest.raises(ValueError, match=message):
        function(y, p, error_cost=10)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan, "high"])
def test_bad_threshold(threshold):
    with pytest.raises(ValueError, match="threshold must"):
        deferral_curve(Y, P, error_cost=10).at(threshold)
