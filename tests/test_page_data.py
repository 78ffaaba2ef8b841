"""What the page of a report computes with: exact in memory and streamed, small, safe to embed."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise
from math import inf, isnan

import numpy as np
import pytest

import fragility as fr
from fragility.deferral import Costs
from fragility.deferral.costs import chow_threshold
from fragility.metrics import ConfidenceDisplay, RankingErrorDisplay
from fragility.report import page as page_module
from fragility.report import page_data as module
from fragility.report.files import report_on_file
from fragility.report.page_data import page_data, script_json
from fragility.scores.folds import dealt
from fragility.tables import PredictionFile, open_table

from .confident_models import logistic
from .reference import calibration, page

LABELS = {2: ["benign", "malignant"], 4: ["ant", "bee", "cat", "dog"]}


def scored(n_classes, n, seed=0, n_models=1):
    """Codes, and probabilities of models: many on thresholds, many next to them."""
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    found = {}
    for k in range(n_models):
        logits = rng.normal(size=(n, n_classes)) * (1.5 + k) + 1.5 * np.eye(n_classes)[codes]
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        if n_classes == 2:
            p = p[:, 1]
            p[::3] = np.round(p[::3], 3)
            p[1::7] = np.nextafter(np.round(p[1::7], 2), 0.5)
        else:  # some rows whose largest entry is round
            rows = np.flatnonzero((np.arange(n) % 3 == 0) & (p.max(axis=1) > 0.6))
            top = p[rows].argmax(axis=1)
            p[rows] = np.round(p[rows].max(axis=1), 2)[:, None].repeat(n_classes, axis=1)
            p[rows] = (1 - p[rows]) / (n_classes - 1)
            p[rows, top] = 1 - (n_classes - 1) * p[rows, top]
        found[f"m{k}"] = p
    return codes, found


def weights_of(n, seed=1):
    weights = np.random.default_rng(seed).exponential(size=n)
    weights[::10] = 0.0
    return weights


def report_of(
    folder, codes, models, weights=None, streamed=False, positive=None, hold=0, **options
):
    """A report in memory, or from a file of which no more than so many scores are held."""
    n_classes = 2 if np.ndim(next(iter(models.values()))) == 1 else 4
    labels = LABELS[n_classes]
    if not streamed:
        return fr.Report.from_predictions(
            np.array(labels)[codes],
            models,
            labels=labels,
            pos_label=positive,
            sample_weight=weights,
            n_worst=0,
            **options,
        )
    columns, scores = {"y": np.array(labels)[codes]}, {}
    for name, p in models.items():
        parts = [p] if p.ndim == 1 else list(p.T)
        scores[name] = [f"{name}{c}" for c in range(len(parts))]
        columns |= dict(zip(scores[name], parts, strict=True))
    if weights is not None:
        columns["w"] = weights
    path = folder / "table.csv"
    with path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(columns)
        writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    several = {"classes": labels} if n_classes > 2 else {"positive": positive or labels[1]}
    weight = {} if weights is None else {"weight": "w"}
    file = PredictionFile(open_table(path), label="y", models=scores, **several, **weight)
    return report_on_file(file, hold=hold, n_worst=0, **options)


def same(a, b):
    return isnan(a) and isnan(b) if isnan(b) else a == pytest.approx(b, rel=3e-8, abs=1e-7)


KINDS = [
    pytest.param(n_classes, weighted, streamed, id=f"{n_classes}-{weighted}-{streamed}")
    for n_classes in (2, 4)
    for weighted in (False, True)
    for streamed in (False, True)
]


@pytest.mark.parametrize(("n_classes", "weighted", "streamed"), KINDS)
def test_the_pages_arithmetic_is_the_deferral_curve(tmp_path, n_classes, weighted, streamed):
    codes, models = scored(n_classes, 600)
    weights = weights_of(600) if weighted else None
    positive = LABELS[2][0] if n_classes == 2 and weighted else None
    report = report_of(tmp_path, codes, models, weights, streamed, positive, calibrate=False)
    found = page_data(report)
    grid, total = found["grid"], found["total"]
    decided = found["models"][0]["raw"]["decisions"]
    tied = np.isin(fr_confidence(models["m0"]), grid)
    assert np.count_nonzero(tied) > 50  # the test can tell < from <=
    assert report.weighted == weighted
    assert report.streamed == streamed
    if not weighted:
        assert total == report.n_samples == 600
        assert all(isinstance(count, int) for count in decided["reviewed"] + decided["errors"])
    for error, review, capacity, reviewer in [
        (10.0, 1.0, None, 0.0),
        (25.0, 2.0, 0.3, 0.07),
        (1.0, 3.0, 0.0, 0.5),
        (0.0, 1.0, None, 0.0),
    ]:
        curve = fr.deferral_curve(
            np.array(LABELS[n_classes])[codes],
            models["m0"],
            error_cost=error,
            review_cost=review,
            capacity=capacity,
            reviewer_error=reviewer,
            sample_weight=weights,
            labels=LABELS[n_classes],
            pos_label=positive,
        )
        costs = {"error_cost": error, "review_cost": review, "reviewer_error": reviewer}
        points = [curve.at(threshold) for threshold in grid]
        for i, point in enumerate(points):
            assert same(page.cost(decided, i, total, **costs), point.cost)
            assert same(page.automation(decided, i, total), point.automation_rate)
            assert same(page.error_rate(decided, i, total), point.error_rate)
        may = [
            i
            for i, point in enumerate(points)
            if capacity is None or 1 - point.automation_rate <= capacity + 1e-12
        ]
        best = page.best(decided, len(grid), total, capacity, **costs)
        assert best in may
        assert points[best].cost == pytest.approx(min(points[i].cost for i in may), rel=1e-7)
        if not weighted:
            least = min(points[i].cost for i in may)
            assert best == next(i for i in may if points[i].cost <= least * (1 + 1e-12))
        chow = page.chow(error, review, reviewer)
        assert chow == pytest.approx(chow_threshold(curve.costs), abs=1e-15)
        assert grid[page.place_of(grid, chow)] <= chow


def fr_confidence(p):
    return np.maximum(p, 1.0 - p) if p.ndim == 1 else p.max(axis=1)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("positive", LABELS[2])
@pytest.mark.parametrize(("fn_weight", "reviewer"), [(0.25, 0.0), (1.0, 0.1), (5.0, 0.2)])
def test_a_weight_of_false_negatives_is_a_cost_matrix(
    tmp_path, streamed, positive, fn_weight, reviewer
):
    codes, models = scored(2, 400, seed=3)
    place = LABELS[2].index(positive)
    matrix = np.zeros((2, 2))
    matrix[place, 1 - place], matrix[1 - place, place] = 8.0 * fn_weight, 8.0
    costs = Costs(matrix.tolist(), 1.0, reviewer_error=reviewer)
    report = report_of(
        tmp_path, codes, models, None, streamed, positive, calibrate=False, costs=costs
    )
    found = page_data(report)
    start = found["costs"]
    assert start["error_cost"] == 8.0
    assert start["false_negative_weight"] == fn_weight
    decided = found["models"][0]["raw"]["decisions"]
    curve = fr.deferral_curve(
        np.array(LABELS[2])[codes],
        models["m0"],
        error_cost=matrix,
        reviewer_error=reviewer,
        pos_label=positive,
    )
    for i, threshold in enumerate(found["grid"]):
        ours = page.cost(decided, i, 400, 8.0, 1.0, reviewer, fn_weight)
        assert ours == pytest.approx(curve.at(threshold).cost, rel=1e-12)
        both = decided["false_negatives"][i] + decided["false_positives"][i]
        assert both == decided["errors"][i]


def test_calibrated_decisions_are_those_of_the_calibrated_probabilities(tmp_path):
    """A case may be under several maps: so many cases are expected at each threshold."""
    codes, models = scored(2, 300)
    odds = models["m0"] / (1 - models["m0"] + 1e-9)
    models["m0"] = 1 - 1 / (1 + odds**4)  # so bold that it needs a map
    found = page_data(report_of(tmp_path, codes, models))
    (truth, after, shares), _ = calibration.binned(
        models["m0"],
        codes == 1,
        np.ones(300),
        lambda units, code, split: dealt(units, 5, [code, split, 0]),
    )
    curve = fr.deferral_curve(truth, after, error_cost=10, sample_weight=shares)
    version = found["models"][0]["calibrated"]
    for i, threshold in enumerate(found["grid"]):
        ours = page.cost(version["decisions"], i, 300, 10.0, 1.0)
        assert same(ours, curve.at(threshold).cost)
    assert any(not float(count).is_integer() for count in version["decisions"]["errors"])


def between_moved(ranking, codes, p, weights, worst):
    """Shares below each edge are those of errors that are off by no more than two bins."""
    scored_as, true = worst
    weights = np.ones(codes.size) if weights is None else weights
    positives, negatives = codes == scored_as, codes == true
    errors = np.subtract.outer(p[negatives, scored_as], p[positives, scored_as]).ravel()
    shares = np.multiply.outer(weights[negatives], weights[positives]).ravel()
    edges = np.array(ranking["edges"])
    below = np.cumsum(ranking["density"] * np.diff(edges))
    width, rounding = 2.0**-12, 2e-3
    for edge, share in zip(edges[1:], below, strict=True):
        least, most = (
            shares[errors <= edge + shift].sum() / shares.sum() for shift in (-width, width)
        )
        assert least - rounding <= share <= most + rounding
    most, least = (shares[errors < shift].sum() / shares.sum() for shift in (width, -width))
    assert least - 1e-8 <= ranking["auc"] <= most + 1e-8  # which has eight digits


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_and_ranking_errors_are_those_of_the_displays(tmp_path, streamed, weighted):
    codes, models = scored(4, 300)
    p = models["m0"]
    weights = weights_of(300) if weighted else None
    report = report_of(tmp_path, codes, models, weights, streamed, calibrate=False)
    found = page_data(report)
    grid, version = found["grid"], found["models"][0]["raw"]
    options = {"labels": LABELS[4], "sample_weight": weights}
    y = np.array(LABELS[4])[codes]
    shown = ConfidenceDisplay.from_predictions(y, p, **options)
    # Bins end at the thresholds on offer that are nearest to those of the display.
    edges = version["histogram"]["edges"]
    np.testing.assert_allclose(edges, shown.edges, atol=0.0025 + 1e-9)
    assert all(edge == pytest.approx(min(grid, key=lambda t: abs(t - edge))) for edge in edges)
    wrong = p.argmax(axis=1) != codes
    for name, rows in (("wrong", wrong), ("right", ~wrong)):
        amounts = np.where(rows, 1.0 if weights is None else weights, 0.0)
        shares = [
            amounts[(low < p.max(axis=1)) & (p.max(axis=1) <= high)].sum() / amounts.sum()
            for low, high in pairwise(edges)
        ]
        np.testing.assert_allclose(version["histogram"][name], shares, rtol=5e-4)
    assert version["histogram"]["n_wrong"] == shown.n_wrong
    assert version["histogram"]["n_right"] == shown.n_right
    pairs = report.models[0].raw.pairs
    worst = np.unravel_index(np.argmax(np.where(np.isfinite(pairs), pairs, -inf)), pairs.shape)
    ranking = version["ranking"]
    assert ranking["pair"] == [LABELS[4][place] for place in worst]
    drawn = RankingErrorDisplay.from_predictions(
        y, p, pair=tuple(ranking["pair"]), n_bins=58, **options
    )
    np.testing.assert_allclose(ranking["edges"], drawn.edges, rtol=5e-4, atol=1e-9)
    if streamed:  # every score is at the mean of its bin
        between_moved(ranking, codes, p, weights, worst)
    else:
        np.testing.assert_allclose(ranking["density"], drawn.density, rtol=5e-4)
    assert ranking["fragility"] == pytest.approx(drawn.fragility, rel=1e-7)
    if not streamed:
        assert ranking["auc"] == pytest.approx(drawn.auc, rel=1e-6)
    assert len(ranking["density"]) <= 60
    assert len(ranking["theta"]) == len(ranking["tail"]) <= 60
    # The display has every step of the tail; a rounded θ may lie just beyond one.
    for theta, share in zip(ranking["theta"][1:-1], ranking["tail"][1:-1], strict=True):
        first, last = np.searchsorted(drawn.theta, [theta * (1 - 5e-4), theta * (1 + 5e-4)])
        assert drawn.tail[last] * (1 - 5e-4) <= share <= drawn.tail[first] * (1 + 5e-4)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_of_two_classes_are_those_of_the_display(tmp_path, streamed, weighted):
    """Their bins end at thresholds on offer: a confidence at one belongs to the bin below."""
    codes, models = scored(2, 700)
    weights = weights_of(700) if weighted else None
    report = report_of(tmp_path, codes, models, weights, streamed, calibrate=False)
    found = report.models[0].raw.histogram
    shown = ConfidenceDisplay.from_predictions(codes, models["m0"], sample_weight=weights)
    for name in ("edges", "wrong", "right"):
        np.testing.assert_allclose(getattr(found, name), getattr(shown, name), 1e-12, 1e-15)
    assert (found.n_wrong, found.n_right) == (shown.n_wrong, shown.n_right)


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_of_many_pairs_are_drawn_from_narrow_cells(streamed):
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 2, 40_000)
    p = logistic(1.5 * rng.normal(size=40_000) + 2 * codes - 1)
    state = fr.ScoreState([0, 1], ["m"], hold=0 if streamed else inf).update(codes, p)
    report = fr.Report.from_state(state, calibrate=False)
    assert report.streamed == streamed
    shown = report.models[0].raw.ranking
    assert shown.pair is None
    drawn = RankingErrorDisplay.from_predictions(codes, p, n_bins=58)
    curves = shown.curves
    auc = report.models[0].raw.figures["auc"]
    low, high = auc.bounds or (auc.value - 1e-13, auc.value + 1e-13)
    assert (auc.bounds is None) == (not streamed)
    assert high - low < 1e-4
    for value in (curves.auc, drawn.auc):
        assert low <= value <= high
    np.testing.assert_allclose(curves.edges, drawn.edges, atol=2e-4)
    np.testing.assert_allclose(np.cumsum(curves.density), np.cumsum(drawn.density), rtol=2e-3)
    theta = np.linspace(0.0, 0.9, 20)
    ours, theirs = (np.interp(theta, part.theta, part.tail) for part in (curves, drawn))
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_without_a_finite_pair_there_is_no_curve():
    """Every case is scored as another class: all pairs have an infinite index."""
    codes = np.arange(30) % 3
    p = (1 - np.eye(3)[codes]) / 2
    version = page_data(fr.Report.from_predictions(codes, {"m": p}, calibrate=False))["models"][0]
    pairs = np.array(version["raw"]["pairs"], dtype=object)
    assert (pairs[~np.eye(3, dtype=bool)] == "Infinity").all()
    assert version["raw"]["ranking"] is None
    assert version["raw"]["index"]["value"] == "Infinity"


def test_two_classes_have_a_curve_though_the_index_is_infinite():
    report = fr.Report.from_predictions([1, 1, 0, 0], [0.1, 0.3, 0.6, 0.8], calibrate=False)
    ranking = page_data(report)["models"][0]["raw"]["ranking"]
    assert ranking["fragility"] == "Infinity"
    assert ranking["tail"][0] == 1
    assert ranking["auc"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "streamed"), [(2, True), (4, False)])
def test_four_models_are_small(tmp_path, streamed, n_classes):
    """Weights have more digits than any number of cases has."""
    codes, models = scored(n_classes, 900, n_models=4)
    weights = 1e3 * weights_of(900)
    report = report_of(
        tmp_path, codes, models, weights, streamed, hold=3_000, costs=Costs(10.0, 1.0)
    )
    assert report.streamed == streamed
    found = page_data(report)
    assert all(model["calibrated"] is not None for model in found["models"])
    assert len(script_json(found)) < 70_000
    assert len(report.to_html().encode()) < 150_000


def unpacked(values, n, units=1):
    """What the script makes of differences, and of the ends of equal distances."""
    if n is None:
        return [sum(values[: i + 1]) / units for i in range(len(values))]
    return values if len(values) == n else np.linspace(*values, n).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_what_is_embedded_is_the_data(tmp_path, n_classes, weighted):
    codes, models = scored(n_classes, 60)
    weights = 1e3 * weights_of(60) if weighted else None
    found = page_data(report_of(tmp_path, codes, models, weights))
    packed = json.loads(script_json(found))
    units = 10 ** found["decimals"]
    assert units == 100 or weighted  # calibrated cases count a quarter each
    for key in ("raw", "calibrated"):
        given, small = found["models"][0][key], packed["models"][0].pop(key)
        decided = small.pop("decisions")
        for name, amounts in decided.items():
            expected = given["decisions"][name]
            assert (amounts and unpacked(amounts, None, units)) == expected
        assert ("errors" in decided) == (n_classes > 2)
        for name, sides, points in (
            ("histogram", "right", ["edges"]),
            ("ranking", "tail", ["theta"]),
            ("ranking", "density", ["edges"]),
        ):
            for point in points:
                expected = given[name][point]
                shown = unpacked(small[name][point], len(expected))
                np.testing.assert_allclose(shown, expected, atol=2e-3)
                small[name][point] = expected
                assert len(given[name][sides]) in (len(expected), len(expected) - 1)
        assert small == {name: part for name, part in given.items() if name != "decisions"}
    assert {name: packed[name] for name in ("grid", "total", "labels", "costs")} == {
        name: found[name] for name in ("grid", "total", "labels", "costs")
    }


def test_figures_have_enough_digits(tmp_path):
    codes, models = scored(4, 300)
    report = report_of(tmp_path, codes, models)
    version = page_data(report)["models"][0]["calibrated"]
    index = report.models[0].calibrated.figures["fragility_index"]
    assert version["index"]["value"] == pytest.approx(index.value, rel=1e-7)
    assert version["index"]["interval"] == pytest.approx(list(index.interval), rel=1e-7)
    expected = report.models[0].calibrated.pairs
    for i, row in enumerate(version["pairs"]):
        for j, value in enumerate(row):
            assert value is None if i == j else value == pytest.approx(expected[i, j], rel=5e-4)


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--",
    "\u202etxt.exe \u2028 \"'&amp;",
    "x" * 10_000 + "1",
    "\ud800 \x00",
]


@pytest.mark.slow
def test_hostile_names_cannot_end_the_script():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 5, 300)
    p = rng.dirichlet(np.ones(5), 300)
    report = fr.Report.from_predictions(
        np.array(HOSTILE, dtype=object)[y],
        dict.fromkeys(HOSTILE, p),
        labels=HOSTILE,
        groups=np.array(HOSTILE, dtype=object)[rng.integers(0, 4, 300)],
        cases=[HOSTILE[k % 4] for k in range(300)],
    )
    text = script_json(page_data(report))
    text.encode("ascii")
    assert not set("<>&") & set(text)
    shown = json.loads(text)["labels"]
    assert shown[:2] == HOSTILE[:2]
    assert max(map(len, shown)) < 80
    page = report.to_html()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert page.count("<!--") == 0
    assert len(page.encode()) < 150_000


def test_costs_that_the_page_starts_with():
    codes, models = scored(4, 200)

    def start(costs):
        report = fr.Report.from_predictions(codes, models, calibrate=False, costs=costs)
        return page_data(report)["costs"], re.findall("start with their mean", report.to_html())

    suggested, notes = start(None)
    assert suggested == {
        "error_cost": 10,
        "review_cost": 1,
        "capacity": None,
        "reviewer_error": 0,
        "false_negative_weight": 1,
        "given": False,
    }
    assert not notes
    given, notes = start(Costs(7.5, 0.5, 0.2, 0.1))
    assert list(given.values()) == [7.5, 0.5, 0.2, 0.1, 1, True]
    assert not notes
    matrix = 12.0 * (1 - np.eye(4))
    matrix[0, 1] = 24.0
    for cost, mean in ((matrix, 13.0), (np.r_[np.full(100, 4.0), np.full(100, 8.0)], 6.0)):
        given, notes = start(Costs(cost))
        assert given["error_cost"] == mean
        assert len(notes) == 1


@pytest.mark.parametrize("positive", [0, 1])
def test_false_negatives_may_cost_nothing(positive):
    """False positives may not: no weight of false negatives says that."""
    codes, models = scored(2, 200)

    def start(matrix):
        report = fr.Report.from_predictions(
            codes, models, calibrate=False, costs=Costs(matrix), pos_label=positive
        )
        found = page_data(report)["costs"]
        told = "start with their mean" in report.to_html()
        return found["error_cost"], found["false_negative_weight"], told

    matrix = np.zeros((2, 2))
    matrix[1 - positive, positive] = 5.0
    assert start(matrix) == (5.0, 0.0, False)
    assert start(matrix.T) == (2.5, 1.0, True)
    assert start(0 * matrix) == (0.0, 1.0, True)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12, 1e17])
def test_weights_of_any_size_are_small(tmp_path, size):
    codes, models = scored(2, 600)
    weights = size * weights_of(600)
    found = page_data(report_of(tmp_path, codes, models, weights, calibrate=False))
    packed = json.loads(script_json(found))["models"][0]["raw"]["decisions"]["reviewed"]
    assert 1e8 <= sum(packed) <= 1e9
    assert sum(packed) / 10.0 ** found["decimals"] == pytest.approx(weights.sum(), rel=1e-8)


def test_many_classes_and_groups_are_told_of_not_shown(monkeypatch):
    monkeypatch.setattr(module, "MOST_CLASSES", 3)
    monkeypatch.setattr(page_module, "MOST_CLASSES", 3)
    monkeypatch.setattr(page_module, "_MOST_GROUP_ROWS", 3)
    codes, models = scored(4, 400)
    report = fr.Report.from_predictions(
        codes, models, calibrate=False, groups=np.arange(400) // 50, n_worst=0, min_cell=0
    )
    assert page_data(report)["models"][0]["raw"]["pairs"] is None
    text = report.to_html()
    (table,) = re.findall(r'id="groups">.*?<tbody>(.*?)</tbody>', text, re.DOTALL)
    shown = set(re.findall(r'<th scope="row">(\d+)</th>', table))
    by_index = sorted(report.groups, key=lambda part: -part.index.value)
    assert shown == {part.group for part in by_index[:3]}
    assert text.count("are in the JSON") == 2
