"""Calibration, operating points, surest cases and confusion in reports: values, text, data."""

from __future__ import annotations

import csv
import json
from math import inf, nan

import numpy as np
import pytest

from fragility import (
    Report,
    ScoreState,
    calibration_intercept,
    calibration_slope,
    confident_error_rate,
    gini_score,
    integrated_calibration_index,
    ks_statistic,
    net_benefit,
    observed_expected_ratio,
    operating_points,
    reliability_curve,
    surest_error_rate,
)
from fragility.measured import EVIDENCE

from .command import fragility
from .confident_models import classes_drawn, logistic

COSTS = {"error_cost": [[0.0, 1.0], [4.0, 0.0]], "review_cost": 0.3}
RNG = np.random.default_rng(0)
LOGIT = 2.0 * RNG.normal(size=900) - 1.0
SICK = RNG.random(900) < logistic(LOGIT)
MODELS = {"fair": logistic(LOGIT), "bold": logistic(2.5 * LOGIT)}
NUMBERS = {
    "calibration_slope": calibration_slope,
    "calibration_intercept": calibration_intercept,
    "observed_expected_ratio": observed_expected_ratio,
    "integrated_calibration_index": integrated_calibration_index,
}


@pytest.fixture(scope="module")
def made():
    return Report.from_predictions(SICK, MODELS, costs=COSTS)


@pytest.mark.parametrize("prevalence", [None, 0.05])
def test_numbers_are_those_of_the_functions(prevalence):
    report = Report.from_predictions(SICK, MODELS, costs=COSTS, prevalence=prevalence)
    for model in report.models:
        p, found = MODELS[model.name], model.raw.evidence
        for name, function in NUMBERS.items():
            # Reports take the cases of a bin at their mean.
            expected = function(SICK, p, prevalence=prevalence)
            assert found.figures[name].value == pytest.approx(expected, rel=1e-5, abs=5e-5), name
        assert found.figures["gini"].value == pytest.approx(gini_score(SICK, p))
        assert found.figures["ks"].value == pytest.approx(ks_statistic(SICK, p))
        for share in (0.9, 0.95):
            rate = surest_error_rate(SICK, p, coverage=share)
            own = found.figures[f"error_rate_surest_{100 * share:.0f}"]
            assert own.value == pytest.approx(rate)
        assert found.cost_threshold == pytest.approx(0.2)
        benefit = net_benefit(SICK, p, 0.2, prevalence=prevalence)
        assert found.figures["net_benefit"].value == pytest.approx(benefit)
        points = operating_points(SICK, p, prevalence=prevalence)
        for name, values in vars(points).items():
            np.testing.assert_allclose(getattr(found.operating.points, name), values, atol=1e-12)
        assert found.operating.least is None
        curve = reliability_curve(SICK, p, prevalence=prevalence)
        for name in ("predicted", "observed", "lower", "upper", "counts"):
            own = getattr(found.reliability, name)
            np.testing.assert_allclose(own, getattr(curve, name), rtol=1e-3, atol=1e-3)
        assert found.prevalence == pytest.approx(prevalence or SICK.mean())
        treated = found.treat_all(found.operating.points.thresholds)
        alone = net_benefit(SICK, np.ones(900), np.arange(1, 10) / 10, prevalence=prevalence)
        np.testing.assert_allclose(treated, alone, atol=1e-12)


def test_risk_and_coverage_are_exact(made):
    for model in made.models:
        p, curve = MODELS[model.name], model.raw.evidence.risk_coverage
        confidence, wrong = np.maximum(p, 1 - p), (p > 0.5) != SICK
        for coverage, risk, level in zip(*vars(curve).values(), strict=True):
            above = confidence > level
            assert coverage == pytest.approx(above.mean())
            assert risk == pytest.approx(wrong[above].mean())
        assert (np.diff(curve.coverage) > 0).all()


def test_confusion_counts_every_case_once(made):
    for model in made.models:
        found, policy = model.confusion, model.policy
        np.testing.assert_allclose(found.sum(axis=1), made.support)
        assert found[1, 0] / found[1].sum() == pytest.approx(policy.misses)
        assert found[0, 1] / found[0].sum() == pytest.approx(policy.false_alarms)
        assert (found[0, 1] + found[1, 0]) / 900 == pytest.approx(policy.error_share)


def test_confusion_of_several_classes():
    y, p = classes_drawn(np.random.default_rng(3), 300)
    report = Report.from_predictions(y, p, costs={"error_cost": 4.0})
    (model,) = report.models
    assert model.confusion.shape == (3, 4)
    np.testing.assert_allclose(model.confusion.sum(axis=1), report.support)
    wrong = model.confusion[:, :3].sum() - model.confusion[:, :3].trace()
    assert wrong / 300 == pytest.approx(model.policy.error_share)
    assert model.confusion[:, 3].sum() > 0
    evidence = model.raw.evidence
    assert evidence.operating is evidence.decision_curve is evidence.prevalence is None
    assert list(evidence.figures) == ["error_rate_surest_90", "error_rate_surest_95"]
    curve = reliability_curve(y, p)
    np.testing.assert_allclose(evidence.reliability.observed, curve.observed, atol=1e-3)


def test_weights_of_several_classes_have_a_band_on_every_path():
    y, p = classes_drawn(np.random.default_rng(5), 300)
    w = np.random.default_rng(0).gamma(1.0, size=300)
    report = Report.from_predictions(y, p, sample_weight=w)
    curve = report.models[0].raw.evidence.reliability
    assert curve.counts.sum() == pytest.approx(w.sum())
    exact = reliability_curve(y, p, sample_weight=w)
    np.testing.assert_allclose(curve.effective, exact.effective, rtol=1e-2)


@pytest.mark.parametrize("level", [0.6, 0.8, 0.99])
def test_level_of_confidence(level):
    report = Report.from_predictions(SICK, MODELS, confident=level)
    state = ScoreState([False, True], list(MODELS), hold=0)
    state.update(SICK, MODELS)
    streamed = Report.from_state(state, confident=level)
    for one, two in zip(report.models, streamed.models, strict=True):
        p = MODELS[one.name]
        rate = confident_error_rate(SICK, p, threshold=level)
        above = np.maximum(p, 1 - p) > level
        for model in (one, two):
            own = model.raw.figures["confident_error_rate"].value
            assert own == pytest.approx(rate, abs=1e-12)
            assert model.raw.confident.n == above.sum()
            mean = np.maximum(p, 1 - p)[above].mean()
            assert model.raw.confident.confidence == pytest.approx(mean, rel=1e-9)
    said = [f.text for f in report.findings if f.rule == "overconfident"]
    assert any(f"above {100 * level:g} % confidence" in text for text in said)
    assert f"wrong above {100 * level:g} % confidence" in report.to_markdown()
    assert f"wrong above {100 * level:g} % confidence" in report.to_html()
    assert report.to_dict()["confident"] == level


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confident": 0.8031}, r"confident must be a level.*0.8031, the nearest is 0.805"),
        ({"confident": 1.0}, "confident must be a level that reports count at"),
        ({"confident": 2.0}, "confident must lie from 0 to 1"),
        ({"prevalence": 0.0}, "prevalence must lie between 0 and 1"),
        ({"prevalence": 3}, "prevalence must lie between 0 and 1"),
    ],
)
def test_refused_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Report.from_predictions(SICK, MODELS, **options)
    state = ScoreState([False, True], list(MODELS))
    state.update(SICK, MODELS)
    with pytest.raises(ValueError, match=message):
        Report.from_state(state, **options)


def test_no_prevalence_of_several_classes():
    y, p = classes_drawn(np.random.default_rng(3), 90)
    with pytest.raises(ValueError, match="positive class of two; there are 3 classes"):
        Report.from_predictions(y, p, prevalence=0.1)


def test_text(made):
    short, full = made.to_text(), made.to_text(full=True)
    assert short == repr(made)
    assert "Operating points" not in short
    for kind in EVIDENCE.values():
        assert kind.title in full
    for title in ("Reliability of fair", "Operating points of bold", "Surest cases of fair"):
        assert title in full
        assert title in made.to_markdown(full=True)
        assert title not in made.to_markdown()
    assert "20 % (costs)" in full
    assert "Decisions of the policy of bold" in full
    assert "prevalence" not in full
    restated = Report.from_predictions(SICK, MODELS, prevalence=0.02).to_text(full=True)
    assert "At a prevalence of 2.0 %." in restated


def test_json(made):
    content = json.loads(made.to_json())
    assert content["format"] == 5
    assert content["confident"] == 0.9
    assert content["prevalence"] is None
    for part, model in zip(content["models"], made.models, strict=True):
        found = part["raw"]["evidence"]
        assert list(found["figures"]) == list(model.raw.evidence.figures)
        assert found["operating"]["points"]["thresholds"] == [k / 10 for k in range(1, 10)]
        assert len(found["decision_curve"]["points"]["net_benefit"]) == 99
        assert len(found["reliability"]["observed"]) == 10
        assert part["confusion"] == model.confusion.tolist()
        assert part["calibrated"]["evidence"]["cost_threshold"] == 0.2


def test_frames(made):
    figures = made.to_frame("evidence")
    assert len(figures) == 4 * len(EVIDENCE)  # two models, as they are and calibrated
    row = figures[(figures.model == "bold") & ~figures.calibrated & (figures.figure == "ks")]
    assert row.value.item() == pytest.approx(ks_statistic(SICK, MODELS["bold"]))
    assert len(made.to_frame("reliability")) == 40
    assert len(made.to_frame("operating")) == 36
    assert len(made.to_frame("decision_curve")) == 4 * 99
    assert "confidence" in made.to_frame("risk_coverage")
    confusion = made.to_frame("confusion")
    assert len(confusion) == 12
    assert confusion.cases.sum() == pytest.approx(2 * 900)
    assert made.to_polars("operating").shape == (36, 10)
    assert made.to_arrow("confusion").num_rows == 12
    assert set(made.to_frame().figure) == set(made.models[0].raw.figures)
    plain = Report.from_predictions(SICK, MODELS)
    assert len(plain.to_frame("confusion")) == 0
    with pytest.raises(ValueError, match=r"table must be one of 'figures'.*got 'roc'"):
        made.to_frame("roc")


def test_separated_and_constant_scores():
    """No figure fails where a model is perfect, constant or saturated."""
    y = np.tile([0, 1], 20)
    scores = {"perfect": np.where(y == 1, 0.8, 0.3), "constant": np.full(40, 0.5), "sure": y * 1.0}
    report = Report.from_predictions(y, scores, costs=COSTS)
    slopes = [model.raw.evidence.figures["calibration_slope"].value for model in report.models]
    np.testing.assert_equal(slopes, [inf, nan, inf])
    assert "undefined" in report.to_text(full=True)
    json.loads(report.to_json())
    report.to_html()


@pytest.mark.slow
def test_command(tmp_path):
    path = tmp_path / "p.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sick", "p"])
        writer.writerows(zip(SICK.astype(int), MODELS["bold"], strict=True))
    given = ("evaluate", str(path), "--label", "sick", "--score", "p")
    short = fragility(*given)
    assert short.code == 0
    assert "Operating points" not in short.out
    full = fragility(*given, "--full", "--prevalence", "0.02", "--confident", "0.8")
    assert full.code == 0, full.err
    assert "Operating points of p. Flagged" in full.out
    assert "At a prevalence of 2.0 %." in full.out
    assert "above 80 % confidence" in " ".join(full.out.split())
    streamed, held = (
        json.loads(fragility(*given, "--json", "--prevalence", "0.02", *more).out)
        for more in (["--hold", "50"], ["--in-memory"])
    )
    one, two = (part["models"][0]["raw"]["evidence"] for part in (streamed, held))
    assert one["reliability"] == two["reliability"]
    assert one["figures"]["calibration_slope"] == two["figures"]["calibration_slope"]
    refused = fragility(*given, "--confident", "0.123")
    assert refused.code == 2
    assert "the nearest is 0.5" in refused.err
