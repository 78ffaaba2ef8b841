"""What the picture of the costs shows, read back from its artists."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fragility import DeferralDisplay, deferral_curve


@pytest.fixture(autouse=True)
def tidy():
    yield
    plt.close("all")


def models(n=300, count=4):
    rng = np.random.default_rng(0)
    logit = 2 * rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    steepness = {"calibrated": 1.0, "over": 2.5, "under": 0.6, "noisy": 1.5}
    return y, {name: 1 / (1 + np.exp(-k * logit)) for name, k in list(steepness.items())[:count]}


def drawn(display):
    """The picture as PNG, which also runs the layout."""
    with io.BytesIO() as file:
        display.figure_.savefig(file, format="png")
        picture = file.getvalue()
    assert picture.startswith(b"\x89PNG")
    return picture


def curves(ax):
    """Lines that are steps, without markers and grey ones."""
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]


def marks(ax, marker):
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in ax.lines
        if line.get_marker() == marker and len(line.get_xdata())
    ]


def height(line, x):
    """Where a line of steps is at x: the last point at or before it."""
    place = np.searchsorted(line.get_xdata(), x, side="right") - 1
    return float(line.get_ydata()[place])


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("n", [5, 300, 30_000])  # the last is thinned
def test_curves_are_those_of_the_costs(count, n):
    y, proba = models(n, count)
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10, labels=[0, 1])
    drawn(display)
    cost, automation = display.axes_
    made = list(display.curves.values())
    assert list(display.curves) == list(proba)
    worst = max(float(curve.error_rate[:-1].max(initial=0.0)) for curve in made)
    assert display.error_axes_.get_ylim() == (0.0, pytest.approx(200.0 * worst or 1.0))
    for ax, rate in (
        (cost, lambda point: point.cost),
        (automation, lambda point: 100 * point.automation_rate),
        (display.error_axes_, lambda point: 100 * point.error_rate),
    ):
        lines = curves(ax)
        assert len(lines) == count
        for line, curve in zip(lines, made, strict=True):
            assert len(line.get_xdata()) <= 4_001
            # Exact where a point is drawn; between, as near as can be seen.
            for x in line.get_xdata()[1:-1:7]:
                expected = rate(curve.at(float(x)))
                assert height(line, x) == pytest.approx(expected, rel=1e-12, nan_ok=True)
            for x in np.linspace(0.52, 0.95, 9):
                near = 0.0 if n < 4_000 else 0.2
                assert height(line, x) == pytest.approx(
                    rate(curve.at(float(x))), rel=1e-12, abs=near, nan_ok=True
                )
    left = cost.get_xlim()[0]
    assert marks(cost, "o") == [
        (max(left, curve.best().threshold), curve.best().cost) for curve in made
    ]
    assert marks(cost, "s") == [(left, curve.at(0).cost) for curve in made]
    lines = curves(cost)
    assert len({to_hex(line.get_color()) for line in lines}) == count  # told apart by colour,
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == count  # and without
    assert cost.get_xlim() == automation.get_xlim()


def grey_lines(ax):
    return [line for line in ax.lines if line.get_color() == "#5F5F5F" and len(line.get_xdata())]


def test_levels_and_rule():
    y, proba = models()
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10)
    review, chow = grey_lines(display.axes_[0])
    assert list(review.get_ydata()) == [1.0, 1.0]
    assert list(chow.get_xdata()) == [0.9, 0.9]
    matrix = DeferralDisplay.from_predictions(y, proba, error_cost=[[0, 10], [5, 0]])
    (review,) = grey_lines(matrix.axes_[0])  # no rule of Chow's
    texts = [text.get_text() for text in matrix.axes_[0].artists[0].get_texts()]
    assert texts == ["best threshold", "automate all", "review all"]


def test_names_costs_and_thresholds_are_in_the_legend():
    y, proba = models(count=2)
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10)
    texts = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    for text, (name, curve) in zip(texts, display.curves.items(), strict=True):
        best = curve.best()
        assert text == f"{name}: {best.cost:.3g} at {best.threshold:.3g}"


def test_legends_are_inside_the_picture():
    y, proba = models()
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10)
    drawn(display)
    ax = display.axes_[0]
    for legend in (ax.get_legend(), ax.artists[0]):
        box = legend.get_window_extent().transformed(display.figure_.transFigure.inverted())
        assert box.y1 <= 1.0
        assert box.x0 >= 0.0
        assert box.x1 <= 1.0
    first, second = (part.get_window_extent() for part in (ax.get_legend(), ax.artists[0]))
    assert not first.overlaps(second)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [0.0, 0.4, 0.999])
def test_what_the_capacity_forbids_is_faint(capacity):
    y, proba = models(count=1)
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10, capacity=capacity)
    drawn(display)
    (curve,) = display.curves.values()
    faint, plain = curves(display.axes_[0])
    assert faint.get_alpha() < 0.5
    assert plain.get_alpha() is None
    last, next_one = curve.thresholds[curve.allowed][-1], curve.thresholds[~curve.allowed][0]
    left = display.axes_[0].get_xlim()[0]
    assert plain.get_xdata()[-1] == next_one  # it holds until there
    assert faint.get_xdata()[0] == max(left, last)
    assert height(plain, last) == curve.at(last).cost
    assert height(faint, next_one) == curve.at(next_one).cost


def test_ways_in():
    y, proba = models(count=1)
    X = np.column_stack([np.log(proba["calibrated"] / (1 - proba["calibrated"])), y])[:, :1]
    labels = np.array(["no", "yes"])[y]
    fitted = [LogisticRegression().fit(X, labels), GaussianNB().fit(X, labels)]
    display = DeferralDisplay.from_estimators([*fitted, fitted[0]], X, labels, error_cost=10)
    assert list(display.curves) == ["LogisticRegression", "GaussianNB", "LogisticRegression 2"]
    expected = deferral_curve(labels, fitted[1].predict_proba(X), error_cost=10)
    np.testing.assert_array_equal(display.curves["GaussianNB"].cost, expected.cost)
    named = DeferralDisplay.from_estimators({"mine": fitted[0]}, X, labels, error_cost=10)
    assert list(named.curves) == ["mine"]
    one = DeferralDisplay.from_estimator(fitted[1], X, labels, error_cost=10, name="bayes")
    assert list(one.curves) == ["bayes"]
    assert list(DeferralDisplay.from_estimator(fitted[1], X, labels, error_cost=9).curves) == [
        "GaussianNB"
    ]
    assert list(expected.plot(name="a").curves) == ["a"]
    assert list(expected.plot().curves) == ["model"]
    single = DeferralDisplay.from_predictions(y, proba["calibrated"], error_cost=10, name="p")
    assert list(single.curves) == ["p"]


def test_given_axes():
    y, proba = models(count=2)
    _, axes = plt.subplots(2, 1)
    display = DeferralDisplay.from_predictions(y, proba, error_cost=10, ax=axes)
    assert display.axes_.tolist() == list(axes)
    assert display.figure_ is axes[0].figure
    again = display.plot()
    assert again is display
    assert display.figure_ is not axes[0].figure


@pytest.mark.parametrize("error_cost", [0.0, 10.0])
def test_flat_curves(error_cost):
    """No error at all, no cost at all: axes of some height nevertheless."""
    display = DeferralDisplay.from_predictions(
        [0, 1, 1], [0.1, 0.8, 0.9], error_cost=error_cost, review_cost=0
    )
    drawn(display)
    assert display.axes_[0].get_ylim()[1] > 0.0
    assert display.error_axes_.get_ylim()[1] > 0.0


def test_bad_input():
    y, proba = models(count=1)
    with pytest.raises(ValueError, match="ax must be two matplotlib Axes; got 1"):
        DeferralDisplay.from_predictions(y, proba, error_cost=10, ax=plt.figure().gca())
    with pytest.raises(ValueError, match=r"at least one; got \{\}"):
        DeferralDisplay.from_curves({})
    with pytest.raises(ValueError, match=r"curves\['a'\] must be a DeferralCurve; got list"):
        DeferralDisplay.from_curves({"a": [1, 2]})
    X = y[:, np.newaxis]
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        DeferralDisplay.from_estimator(model, X, y, error_cost=10)
