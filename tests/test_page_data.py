"""What the page of a report computes with: exact in memory and streamed, small, safe to embed."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise
from math import inf

import numpy as np
import pytest

import fragility as fr
from fragility.deferral import Costs
from fragility.metrics import ConfidenceDisplay, RankingErrorDisplay
from fragility.report import page as page_module
from fragility.report.files import report_on_file
from fragility.report.page_data import page_data, script_json
from fragility.tables import PredictionFile, open_table

from .confident_models import logistic
from .page_numbers import cuts_of
from .reference import page

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


KINDS = [
    pytest.param(weighted, streamed, id=f"{weighted}-{streamed}")
    for weighted in (False, True)
    for streamed in (False, True)
]


@pytest.mark.parametrize(("weighted", "streamed"), KINDS)
@pytest.mark.parametrize("positive", LABELS[2])
def test_cells_count_the_cases_between_thresholds(tmp_path, weighted, streamed, positive):
    codes, models = scored(2, 600)
    models["m0"][2::5] = np.round(models["m0"][2::5] * 256) / 256  # on thresholds
    weights = weights_of(600) if weighted else None
    costs = Costs(10.0, 1.0)
    report = report_of(tmp_path, codes, models, weights, streamed, positive, costs=costs)
    assert report.streamed == streamed
    found, policy = page_data(report), report.models[0].policy
    p, cuts = models["m0"], cuts_of(found, 0)
    cells = found["models"][0]["cells"]
    is_positive = codes == LABELS[2].index(positive)
    assert np.count_nonzero(np.isin(p, cuts)) > 5  # the test can tell < from <=
    for side, chosen in ((0, is_positive), (1, ~is_positive)):
        for (low, high), counted in zip(pairwise(cuts), cells["wrong"][side], strict=True):
            rows = [k for k in range(600) if chosen[k] and low <= p[k] < high]
            expected = len(rows) if weights is None else sum(weights[k] for k in rows)
            assert counted == pytest.approx(expected, abs=0.0 if weights is None else 1e-5)
            assert isinstance(counted, int) or weighted
    assert found["total"] == pytest.approx(600 if weights is None else weights.sum())
    lower, upper = (cuts[place] for place in cells["start"])
    assert (lower, upper) == (policy.lower, policy.upper)
    for ends in found["models"][0]["same"]:
        assert all(end in ("Infinity", *cuts) for end in ends)


@pytest.mark.parametrize("streamed", [False, True])
def test_policies_on_the_page_cost_what_their_cases_do(tmp_path, streamed):
    """Costs by case, and reviewers who err unequally, are summed, not represented by means."""
    codes, models = scored(2, 300)
    p, rng = models["m0"], np.random.default_rng(4)
    positive = codes == 1
    by_case = rng.exponential(10.0, 300)
    for costs, about in (
        (Costs(by_case, 1.0, reviewer_error=0.1), {"costs": by_case, "rate": 0.1}),
        (Costs(10.0, 1.0, reviewer_error=[0.3, 0.05]), {"rates": np.where(positive, 0.05, 0.3)}),
        (Costs([[1.0, 5.0], [11.0, 2.0]], 1.0), {}),
    ):
        if streamed and "costs" in about:
            continue  # batches have no costs by case
        report = report_of(tmp_path, codes, models, None, streamed, costs=costs)
        data = page_data(report)
        start, cells, cuts = data["costs"], data["models"][0]["cells"], cuts_of(data, 0)
        assert start["factor"] == ("costs" in about)
        assert start["slip_factor"] == ("rates" in about)
        lost = np.array(cells.get("lost", cells["wrong"]))
        slips = lost if cells["slips"] is None else np.array(cells["slips"])
        weight = np.sum(cells["wrong"], axis=0)
        price = np.array([[start["miss"]], [start["alarm"]]])
        rate = about.pop("rate", 1.0 if "rates" in about else 0.0)
        for i, j in ((0, len(cuts) - 1), cells["start"], (7, 31), (20, 20)):
            asked = start["man"] * weight[i:j].sum()
            asked += start["rev"] * (price * slips[:, i:j]).sum()
            paid = asked + (price[0] * lost[0, :i]).sum() + (price[1] * lost[1, j:]).sum()
            expected = page.outcome(
                positive, p, cuts[i], cuts[j], start["miss"], start["alarm"], 1.0, rate, **about
            )
            assert paid / 300 == pytest.approx(expected["cost"], rel=1e-6)
        # What right decisions cost is paid in any case.
        right = np.where(positive, 2.0, 1.0).sum() if np.ndim(costs.error_cost) == 2 else 0.0
        assert cells["base"] == pytest.approx(right)


def test_reviews_by_humans_cost_what_these_decided():
    codes, models = scored(2, 300)
    rng = np.random.default_rng(6)
    human = np.where(rng.random(300) < 0.1, 1 - codes, codes)
    costs = Costs([[0.0, 4.0], [9.0, 0.0]], 1.0)
    report = fr.Report.from_predictions(codes, models, costs=costs, human=human, n_worst=0)
    data = page_data(report)
    cells, cuts = data["models"][0]["cells"], cuts_of(data, 0)
    i, j = cells["start"]
    slips, weight = np.array(cells["slips"]), np.sum(cells["wrong"], axis=0)
    paid = weight[i:j].sum() + (np.array([[9.0], [4.0]]) * slips[:, i:j]).sum()
    paid += 9.0 * sum(cells["wrong"][0][:i]) + 4.0 * sum(cells["wrong"][1][j:])
    rates = (human != codes).astype(float)
    given = codes == 1, models["m0"], cuts[i], cuts[j], 9.0, 4.0, 1.0, 1.0
    assert paid / 300 == pytest.approx(page.outcome(*given, rates=rates)["cost"], rel=1e-9)
    assert rates[(models["m0"] >= cuts[i]) & (models["m0"] < cuts[j])].sum() > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_several_classes_are_cut_at_limits_of_the_expected_loss(tmp_path, streamed):
    codes, models = scored(4, 500)
    costs = Costs(10.0, 1.0, reviewer_error=0.02)
    report = report_of(tmp_path, codes, models, None, streamed, costs=costs)
    policy, data = report.models[0].policy, page_data(report)
    cells = data["models"][0]["cells"]
    decided = policy.decide(models["m0"])
    wrong = decided.label != np.array(LABELS[4])[codes]
    limits = [float(limit) for limit in cells["cuts"]]
    assert limits[0] == -inf
    assert limits[-1] == inf
    place = cells["start"][0]
    assert limits[place] == pytest.approx(policy.decision.limit, rel=1e-7)
    assert sum(cells["weight"]) == 500
    assert sum(cells["weight"][:place]) == round(policy.automation_rate * 500)
    for i in (place, 0, len(limits) - 1, *([] if streamed else range(1, len(limits), 17))):
        limit = limits[i] * (1 + 1e-7)  # which has eight digits
        expected = page.of_losses(wrong, decided.score, limit, 10.0, 1.0, 0.02)
        assert sum(cells["weight"][i:]) == expected["reviews"]
        alone = sum(cells["weight"][:i])
        assert sum(cells["wrong"][0][:i]) == (expected["wrong"] * alone if alone else 0)


def test_without_costs_several_classes_are_cut_by_confidence(tmp_path):
    codes, models = scored(4, 300)
    data = page_data(report_of(tmp_path, codes, models, calibrate=False))
    cells, sure = data["models"][0]["cells"], models["m0"].max(axis=1)
    wrong = models["m0"].argmax(axis=1) != codes
    for i in range(0, len(cells["cuts"]), 9):
        above = sure > cells["cuts"][i]
        assert sum(cells["weight"][:i]) == above.sum()
        assert sum(cells["wrong"][0][:i]) == (above & wrong).sum()


def test_declined_cases_are_reviewed_whatever_the_threshold():
    rng = np.random.default_rng(2)
    sure, declined = rng.random(200).round(2), rng.random(200) < 0.2
    right = rng.random(200) < sure
    report = fr.Report.from_outcomes(
        {"m": right}, {"m": sure}, declined={"m": declined}, costs={"error_cost": 8.0}
    )
    data = page_data(report)
    cells, cuts = data["models"][0]["cells"], cuts_of(data, 0)
    scores = [None if gone else score for score, gone in zip(sure, declined, strict=True)]
    for j in (0, 5, cells["start"][1], len(cuts) - 1):
        expected = page.outcome(right, scores, 0.0, cuts[j], 0.0, 8.0, 1.0)
        asked = cells["declined"] + np.sum(cells["wrong"], axis=0)[:j].sum()
        assert asked == expected["reviews"]
        assert sum(cells["wrong"][1][j:]) == expected["alarms"]
    assert data["total"] == 200


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


def drawn_of(raw):
    """What a report draws of a model."""
    ranking = raw.ranking
    return {
        "histogram": raw.histogram._asdict(),
        "ranking": ranking.curves._asdict()
        | {"fragility": ranking.fragility, "pair": [LABELS[4][place] for place in ranking.pair]},
    }


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_and_ranking_errors_are_those_of_the_displays(tmp_path, streamed, weighted):
    codes, models = scored(4, 300)
    p = models["m0"]
    weights = weights_of(300) if weighted else None
    report = report_of(tmp_path, codes, models, weights, streamed, calibrate=False)
    raw = report.models[0].raw
    grid, version = raw.decisions.thresholds, drawn_of(raw)
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
    report = fr.Report.from_predictions(codes, {"m": p}, calibrate=False)
    assert page_data(report)["models"][0]["tail"] is None
    pairs = report.models[0].raw.pairs
    assert np.isinf(pairs[~np.eye(3, dtype=bool)]).all()


def test_two_classes_have_a_curve_though_the_index_is_infinite():
    report = fr.Report.from_predictions([1, 1, 0, 0], [0.1, 0.3, 0.6, 0.8], calibrate=False)
    tail = page_data(report)["models"][0]["tail"]
    assert tail["fragility"] == "Infinity"
    assert tail["share"][0] == 1


def test_what_is_drawn_is_what_was_measured(tmp_path):
    codes, models = scored(2, 700)
    report = report_of(tmp_path, codes, models)
    found, model = page_data(report)["models"][0], report.models[0]
    for part, curve in zip(found["reliability"], (model.raw, model.calibrated), strict=True):
        expected = curve.evidence.reliability
        for name, drawn in zip(
            ("predicted", "observed", "lower", "upper", "counts"), part, strict=True
        ):
            np.testing.assert_allclose(drawn, getattr(expected, name), rtol=6e-4, atol=1e-12)
    sure = fr_confidence(models["m0"])
    wrong = (models["m0"] > 0.5) != (codes == 1)
    edges = found["histogram"]["edges"]
    for name, rows in (("wrong", wrong), ("right", ~wrong)):
        counts = [np.sum(rows & (low < sure) & (sure <= high)) for low, high in pairwise(edges)]
        assert found["histogram"][name] == counts
    coverage, risk = found["coverage"]
    assert len(coverage) == 60
    assert coverage[-1] == 1
    for share, errors in list(zip(coverage, risk, strict=True))[::7]:
        surest = np.argsort(-sure, kind="stable")[: round(share * 700)]
        assert errors == pytest.approx(wrong[surest].mean(), abs=0.01)


def fr_confidence(p):
    return np.maximum(p, 1.0 - p)


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
    assert all(model["reliability"][1] is not None for model in found["models"])
    assert len(script_json(found)) < 75_000
    assert len(report.to_html().encode()) < 160_000


def test_what_is_embedded_is_the_data(tmp_path):
    found = page_data(report_of(tmp_path, *scored(2, 60)))
    assert json.loads(script_json(found)) == found


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
    two = scored(2, 200)

    def start(costs, codes=codes, models=models, **options):
        report = fr.Report.from_predictions(codes, models, calibrate=False, costs=costs, **options)
        return page_data(report)["costs"]

    plain = {"given": False, "factor": False, "slip_factor": False, "miss": 10, "alarm": 10}
    assert start(None) == {**plain, "man": 1, "cap": 1, "rev": 0}
    given = start(Costs(7.5, 0.5, 0.2, 0.1))
    assert [given[name] for name in ("miss", "man", "cap", "rev")] == [7.5, 0.5, 0.2, 0.1]
    matrix = 12.0 * (1 - np.eye(4))
    matrix[0, 1] = 24.0
    for cost in (matrix, np.r_[np.full(100, 4.0), np.full(100, 8.0)]):
        given = start(Costs(cost))
        assert (given["factor"], given["miss"], given["rev"]) == (True, 1, 1)
    matrix = np.array([[0.0, 3.0], [20.0, 0.0]])
    for positive, prices in ((1, (20, 3)), (0, (3, 20))):
        found = start(Costs(matrix), *two, pos_label=positive)
        assert (found["miss"], found["alarm"], found["factor"]) == (*prices, False)


def test_without_cases_no_case_is_named():
    """Nor is one that makes most of the cost."""
    codes, models = scored(2, 300)
    codes[0], models["m0"][0] = 1, 0.001
    costs = Costs(np.r_[1e4, np.ones(299)], 1.0)
    given = {"costs": costs, "cases": [f"patient, {k}, makes" for k in range(300)]}
    report = fr.Report.from_predictions(codes, models, **given)
    assert "patient" in report.to_html()
    assert any("patient, 0, makes, makes" in finding.text for finding in report.findings)
    without = fr.Report.from_predictions(codes, models, n_worst=0, **given)
    for page_of in (report.to_html(cases=False), without.to_html()):
        assert "patient" not in page_of
        assert re.search(r"One case makes \d+\s% of the cost", page_of)
        assert "but no single case" in page_of


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12, 1e17])
def test_weights_of_any_size_are_small(tmp_path, size):
    codes, models = scored(2, 600)
    weights = size * weights_of(600)
    found = page_data(report_of(tmp_path, codes, models, weights, calibrate=False))
    cells = found["models"][0]["cells"]
    assert np.sum(cells["wrong"]) == pytest.approx(weights.sum(), rel=1e-7)
    assert len(json.dumps(cells["wrong"])) < 25 * np.size(cells["wrong"])


def test_many_classes_and_groups_are_told_of_not_shown(monkeypatch):
    monkeypatch.setattr(page_module, "MOST_CLASSES", 3)
    monkeypatch.setattr(page_module, "_MOST_GROUP_ROWS", 3)
    codes, models = scored(4, 400)
    report = fr.Report.from_predictions(
        codes, models, calibrate=False, groups=np.arange(400) // 50, n_worst=0, min_cell=0
    )
    text = report.to_html()
    assert "Pairs of classes:" not in text
    (table,) = re.findall(r">Groups</h2>.*?<tbody>(.*?)</tbody>", text, re.DOTALL)
    shown = set(re.findall(r'<th scope="row">(\d+)</th>', table))
    by_index = sorted(report.groups, key=lambda part: -part.index.value)
    assert shown == {part.group for part in by_index[:3]}
    assert text.count("are in the JSON") == 2
