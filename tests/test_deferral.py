"""Thresholds of confidence against loops over all of them."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragility import best_policy, deferral_curve

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
        matrix = np.reshape(cost, (n_classes, n_classes))
        np.fill_diagonal(matrix, matrix.min(axis=1))  # nothing is cheaper than being right
        cost = matrix.tolist()
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


# What must not matter


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
    assert "see best_policy" in repr(curve)
    assert curve._repr_html_().count("<tr>") == len(lines)


def test_plain_values():
    y, p = model(0, 50)
    curve = deferral_curve(y, p, error_cost=[[0, 10], [5, 0]], capacity=0.5)
    stored = json.loads(json.dumps(curve.to_dict()))
    assert stored["best"]["threshold"] == curve.best().threshold
    assert stored["cost"] == curve.cost.tolist()
    assert stored["error_cost"] == [[0, 10], [5, 0]]


# Bad input

Y, P = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.7]


@pytest.mark.parametrize("function", [deferral_curve, best_policy])
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


@pytest.mark.parametrize("function", [deferral_curve, best_policy])
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
