"""What the pictures of calibration, thresholds and surest cases show."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fragility
from fragility import (
    NetBenefitDisplay,
    OperatingPointsDisplay,
    PolicyConfusionDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    best_policy,
    calibration_intercept,
    calibration_slope,
    integrated_calibration_index,
    net_benefit,
    observed_expected_ratio,
    operating_points,
    policy_confusion,
    reliability_curve,
    risk_coverage_curve,
)
from fragility.metrics.displays.base import Display

from .evidence_cases import drawn

OF_MODELS = [
    NetBenefitDisplay,
    OperatingPointsDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
]


@pytest.fixture(autouse=True)
def strict_and_tidy():
    with np.errstate(all="raise"):
        yield
    plt.close("all")


def picture(display):
    with np.errstate(all="warn"), io.BytesIO() as file:
        display.figure_.savefig(file, format="png")
        assert len(file.getvalue()) > 5_000


def words(ax):
    legend = ax.get_legend()
    texts = [*ax.texts, *(legend.get_texts() if legend else [])]
    return " ".join([ax.get_title(loc="left"), *(text.get_text() for text in texts)])


@pytest.mark.slow
@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_reliability(prevalence):
    y, p, weights = drawn(1, n=400)
    options = {"prevalence": prevalence, "sample_weight": weights["real"]}
    display = ReliabilityDisplay.from_predictions(y, p, name="a model", **options)
    picture(display)
    curve = reliability_curve(y, p, **options)
    above, below = display.axes_
    line = next(part for part in above.lines if part.get_marker() == "o")
    np.testing.assert_allclose(line.get_xdata(), curve.predicted)
    np.testing.assert_allclose(line.get_ydata(), curve.observed)
    counts = below.patches[0].get_data().values
    assert counts.sum() == pytest.approx(weights["real"].sum())
    numbers = {
        "slope": calibration_slope(y, p, **options),
        "intercept": calibration_intercept(y, p, **options),
        "O : E": observed_expected_ratio(y, p, **options),
        "ICI": integrated_calibration_index(y, p, **options),
    }
    for name, value in numbers.items():
        assert f"{name} {value:.3g}" in words(above)
    assert ("at a prevalence of 10 %" in words(above)) == (prevalence is not None)
    assert above.get_title(loc="left") == "a model,  95 % band"


def test_reliability_of_several_classes_and_of_one_bin():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 60), rng.dirichlet([1, 1, 1], 60)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=1)
    picture(display)
    assert "confidence" in display.axes_[1].get_xlabel()


def test_decision_curve():
    y, p, _ = drawn(2, n=300)
    models = {"a": p, "b": 1 - p}
    display = NetBenefitDisplay.from_predictions(y, models, threshold=0.2, prevalence=0.3)
    picture(display)
    at = np.arange(1, 100) / 100
    lines = {line.get_label(): line for line in display.ax_.lines}
    for name, scores in models.items():
        expected = net_benefit(y, scores, at, prevalence=0.3)
        np.testing.assert_allclose(lines[name].get_ydata(), expected)
    everything = net_benefit(y, np.ones(300), at, prevalence=0.3)
    np.testing.assert_allclose(lines["treat all"].get_ydata(), everything, atol=1e-12)
    assert set(lines["treat none"].get_ydata()) == {0.0}
    assert lines["threshold 0.2"].get_xdata()[0] == 0.2
    assert "prevalence 30 %" in words(display.ax_)
    for options, message in (
        ({"threshold": 1.0}, "threshold must be between"),
        ({"n_points": 1}, "n_points must be"),
    ):
        with pytest.raises(ValueError, match=message):
            NetBenefitDisplay.from_predictions(y, p, **options)
    with pytest.raises(ValueError, match="y_score is empty"):
        NetBenefitDisplay.from_predictions(y, {})


def test_operating_points():
    y, p, _ = drawn(3, n=300)
    display = OperatingPointsDisplay.from_predictions(y, p, alert_rates=[0.0, 0.1, 0.4])
    picture(display)
    points = operating_points(y, p, alert_rates=[0.1, 0.4])
    dots = [line for line in display.ax_.lines if line.get_marker() == "o"]
    for line, name in zip(dots, ("sensitivity", "specificity", "ppv", "flagged"), strict=True):
        np.testing.assert_allclose(line.get_ydata(), getattr(points, name))
    picture(OperatingPointsDisplay.from_predictions(y, 20 * p - 10, thresholds=[-1, 3]))


def test_risk_and_coverage():
    y, p, _ = drawn(4, n=300)
    display = RiskCoverageDisplay.from_predictions(y, {"a": p, "b": p**2})
    picture(display)
    curve = risk_coverage_curve(y, p)
    line = display.ax_.lines[0]
    np.testing.assert_allclose(line.get_xdata(), 100 * curve.coverage)
    np.testing.assert_allclose(line.get_ydata(), 100 * curve.risk)
    assert f"a: {100 * curve.risk[-1]:.3g} % wrong of all" in words(display.ax_)
    picture(RiskCoverageDisplay.from_predictions(y, y.astype(float)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_policy_confusion(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.5), 300)
    y = np.array(["a", "b", "c"])[(p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)]
    w = rng.gamma(1.0, size=300) if weighted else None
    with np.errstate(under="ignore"):
        policy = best_policy(y, p, error_cost=5)
    found = policy_confusion(y, p, policy, sample_weight=w)
    decided = policy.decide(p)
    weights = np.ones(300) if w is None else w
    expected = np.zeros((n_classes, n_classes + 1))
    for truth, label, alone, weight in zip(
        y, decided.label, decided.automate, weights, strict=True
    ):
        column = found.labels.index(label) if alone else n_classes
        expected[found.labels.index(truth), column] += weight
    np.testing.assert_allclose(found.counts, expected)
    assert found.reviewed.sum() > 0
    wrong = decided.automate & (decided.label != y)
    assert found.errors == pytest.approx(weights[wrong].sum())
    display = PolicyConfusionDisplay.from_predictions(y, p, policy, sample_weight=w, name="m")
    picture(display)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()][-1] == "review"
    assert f"{expected[0, 0]:,.4g}" in words(display.ax_)
    with pytest.raises(ValueError, match="policy must be a Policy"):
        policy_confusion(y, p, "policy")


@pytest.mark.slow
@pytest.mark.parametrize("display", OF_MODELS)
def test_from_estimator(display):
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    found = display.from_estimator(model, X[1::2], y[1::2])
    picture(found)
    if hasattr(display, "from_estimators"):
        both = display.from_estimators([model, model], X[1::2], y[1::2])
        picture(both)
        assert "LogisticRegression" in words(both.ax_)
    else:
        assert found.name == "LogisticRegression"
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        display.from_estimator(LinearSVC().fit(X, y), X, y)


def test_estimators_of_other_classes():
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(20) % 2
    models = {"a": LogisticRegression().fit(X, y), "b": LogisticRegression().fit(X, y + 1)}
    with pytest.raises(ValueError, match="b knows other classes"):
        RiskCoverageDisplay.from_estimators(models, X, y)
    with pytest.raises(ValueError, match="estimators is empty"):
        RiskCoverageDisplay.from_estimators([], X, y)


def test_every_display_has_the_same_base():
    found = [getattr(fragility, name) for name in dir(fragility) if name.endswith("Display")]
    assert len(found) == 9
    for display in found:
        assert issubclass(display, Display)
        assert display.plot is Display.plot


@pytest.mark.parametrize("display", OF_MODELS)
def test_axes_that_are_given(display):
    y, p, _ = drawn(6, n=80)
    count = display._grid[0] * display._grid[1]
    _, axes = plt.subplots(count, 1)
    made = display.from_predictions(y, p, ax=axes)
    assert made.axes_.tolist() == np.ravel(axes).tolist()
    assert made.ax_ is made.axes_[0]
    _, others = plt.subplots(count + 1, 1)
    with pytest.raises(ValueError, match=rf"ax must be .* Axes.*got {count + 1}.*plt\.subplots"):
        made.plot(others)
