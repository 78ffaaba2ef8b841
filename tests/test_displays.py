"""What the pictures show, read back from their artists."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fragility import (
    AbsentClassWarning,
    ConfidenceDisplay,
    RankingErrorDisplay,
    confident_error_rate,
    fragility_index,
    fragility_ratio,
)

from .reference.pairs import pair_matrix, pair_weights

DISPLAYS = [ConfidenceDisplay, RankingErrorDisplay]


@pytest.fixture(autouse=True)
def strict_and_tidy():
    with np.errstate(all="raise"):
        yield
    plt.close("all")


def drawn(display):
    """The picture as PNG, which also runs the layout."""
    with np.errstate(all="warn"), io.BytesIO() as file:
        display.figure_.savefig(file, format="png")
        picture = file.getvalue()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000
    return picture


def binary(seed, n=60, decimals=None, separation=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    p = 1 / (1 + np.exp(-(rng.normal(size=n) + separation * (y - 0.5))))
    return y, p if decimals is None else np.round(p, decimals)


def several(seed, n=200, n_classes=4, separation=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = range(n_classes)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), y] += separation
    p = np.exp(scores)
    return y, p / p.sum(axis=1, keepdims=True)


def literal(y, p, weights=None):
    """All ranking errors and their shares."""
    w = np.ones(y.size) if weights is None else weights
    errors = pair_matrix(p[y == 0], p[y == 1])
    return errors.ravel(), pair_weights(p[y == 0], p[y == 1], w[y == 0], w[y == 1]).ravel()


def words(ax):
    legend = ax.get_legend()
    texts = [*ax.texts, *(legend.get_texts() if legend else [])]
    return [ax.get_title(loc="left"), *(text.get_text() for text in texts)]


# Ranking errors


@pytest.mark.parametrize("n", [60, 400])  # steps, a curve
@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize(("target", "weighted"), [(0.0, False), (0.1, True), (-0.2, True)])
def test_ranking_errors(n, decimals, target, weighted):
    y, p = binary(n, n, decimals)
    weights = np.random.default_rng(0).integers(1, 4, n) / 2 if weighted else None
    display = RankingErrorDisplay.from_predictions(y, p, target=target, sample_weight=weights)
    errors, shares = literal(y, p, weights)
    if not weighted:
        drawn(display)
    left, right = display.axes_

    data = [patch.get_data() for patch in left.patches]
    heights = np.concatenate([d.values for d in data])
    edges = np.unique(np.concatenate([d.edges for d in data]))
    assert heights @ np.diff(edges) == pytest.approx(1, abs=1e-12)
    # A bin holds its upper edge, and what misses it by rounding only.
    reach = np.where(edges == target, edges, edges + 1e-9 * (edges[1] - edges[0]))
    expected = [shares[(errors > a) & (errors <= b)].sum() for a, b in pairwise(reach)]
    if target == 0.0 or decimals is None:
        np.testing.assert_allclose(heights * np.diff(edges), expected, atol=1e-12)
        above = shares[errors > target].sum()
        assert display.share_above == pytest.approx(above, abs=1e-12)
        shaded = [d for d in data if d.edges[0] == target]
        assert len(shaded) == (above > 0)
        for d in shaded:
            assert d.values @ np.diff(d.edges) == pytest.approx(above, abs=1e-12)
    said = f"{100 * display.share_above:.1f}".replace("0.0", "0") + " % of pairs"
    assert said in " ".join(words(left))

    tail, bound = right.lines
    theta, seen = tail.get_data()
    if decimals is None or display.steps:
        expected = [shares[errors >= t - 1e-12].sum() for t in theta]  # rounding is no step
        np.testing.assert_allclose(seen, expected, atol=1e-12)
    if 0.0 < display.fragility < np.inf:
        x, y_bound = bound.get_data()
        above_target = theta >= target
        assert np.isin(theta[above_target], x).all()
        limit = y_bound[np.searchsorted(x, theta[above_target])]
        assert (limit >= seen[above_target] - 1e-12).all()
        np.testing.assert_allclose(y_bound, np.exp(-(x - target) / display.fragility), rtol=1e-12)

    assert display.fragility == fragility_index(y, p, target=target, sample_weight=weights)
    assert display.ratio == fragility_ratio(y, p, sample_weight=weights)
    auc = roc_auc_score(y, p, sample_weight=weights)
    assert display.auc == pytest.approx(auc, abs=1e-12)
    title = right.get_title(loc="left")
    assert all(word in title for word in ("FI ", "ratio ", "AUC "))


def test_no_ranking_errors():
    display = RankingErrorDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9])
    drawn(display)
    assert display.fragility == display.share_above == 0.0
    left, right = (" ".join(words(ax)) for ax in display.axes_)
    assert "0 % of pairs" in left
    assert "FI 0,  ratio 0,  AUC 1" in right
    assert "FI = 0: none past this line" in right


def test_infinite_index():
    y, p = binary(0, separation=-2.0)
    display = RankingErrorDisplay.from_predictions(y, p)
    drawn(display)
    assert "FI ∞,  ratio ∞" in words(display.axes_[1])[0]
    assert "FI = ∞: no bound" in words(display.axes_[1])
    assert (display.axes_[1].lines[1].get_ydata() == 1.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[0.3] * 4, [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
def test_one_error_only(scores):
    display = RankingErrorDisplay.from_predictions([0, 0, 1, 1], scores)
    drawn(display)
    assert display.density @ np.diff(display.edges) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-200, 1e3, 1e200])
def test_any_scale(scale):
    y, p = binary(1)
    display = RankingErrorDisplay.from_predictions(y, p * scale)
    reference = RankingErrorDisplay.from_predictions(y, p)
    np.testing.assert_allclose(display.edges, reference.edges * scale, rtol=1e-9)
    np.testing.assert_allclose(display.density * scale, reference.density, rtol=1e-6)
    np.testing.assert_allclose(display.theta, reference.theta * scale, rtol=1e-9)
    if scale == 1e3:
        drawn(display)


@pytest.mark.slow
def test_pair_of_several_classes():
    y, p = several(0)
    names = np.array(["ape", "bee", "cat", "dog of a very long name indeed"])
    options = {"labels": names, "target": 0.05}
    display = RankingErrorDisplay.from_predictions(names[y], p, pair=("bee", "ape"), **options)
    drawn(display)
    chosen = np.isin(y, [0, 1])
    expected = RankingErrorDisplay.from_predictions(y[chosen], p[chosen, 1], target=0.05)
    for name in ("edges", "density", "theta", "tail", "fragility", "ratio", "auc", "share_above"):
        np.testing.assert_allclose(getattr(display, name), getattr(expected, name), rtol=1e-9)
    assert display.fragility == pytest.approx(
        fragility_index(names[y], p, average=None, **options)[1, 0], rel=1e-12
    )
    label = display.axes_[0].get_xlabel()
    assert "score as bee" in label
    assert "of a true ape − of a true bee" in label
    long = RankingErrorDisplay.from_predictions(names[y], p, pair=(names[3], "ape"), labels=names)
    assert "dog of a …e indeed" in long.axes_[0].get_xlabel()


def test_pair_of_two_classes_is_one_problem():
    y, p = binary(2)
    one, other = (
        RankingErrorDisplay.from_predictions(y, p, pair=pair) for pair in [(0, 1), (1, 0)]
    )
    np.testing.assert_array_equal(one.density, other.density)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"There are 4 classes .*choose two with pair=\(scored_as, true\)"),
        ({"pair": (0, 7)}, "pair names 7, but the classes are 0, 1, 2, 3"),
        ({"pair": (1, 1)}, "two different labels"),
        ({"pair": (0, 1, 2)}, "two different labels"),
        ({"pair": "ab"}, "two different labels"),
        ({"pair": (0, 1), "n_bins": 1}, "n_bins must be a whole number of 2 or more; got 1"),
        ({"pair": (0, 1), "target": np.nan}, "target must be finite"),
    ],
)
def test_refused_ranking_errors(options, message):
    with pytest.raises(ValueError, match=message):
        RankingErrorDisplay.from_predictions(*several(0), **options)


def test_pair_without_samples():
    y, p = several(0)
    kept = y != 2
    with pytest.warns(AbsentClassWarning), pytest.raises(ValueError, match="2, which has no"):
        RankingErrorDisplay.from_predictions(y[kept], p[kept], labels=range(4), pair=(0, 2))


def test_two_axes_are_needed():
    y, p = binary(0)
    _, axes = plt.subplots(1, 2)
    display = RankingErrorDisplay.from_predictions(y, p, ax=axes)
    assert list(display.axes_) == list(axes)
    with pytest.raises(ValueError, match=r"two matplotlib Axes.*got 1.*plt\.subplots\(1, 2\)"):
        RankingErrorDisplay.from_predictions(y, p, ax=axes[0])


# Confidence


@pytest.mark.slow
@pytest.mark.parametrize("problem", [binary, several])
@pytest.mark.parametrize("weighted", [False, True])
def test_confidence(problem, weighted):
    y, p = problem(3, 300)
    weights = np.random.default_rng(0).integers(0, 3, 300) if weighted else None
    display = ConfidenceDisplay.from_predictions(
        y, p, threshold=0.7, sample_weight=weights, name="a model"
    )
    drawn(display)
    rows = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    confidence, wrong = rows.max(axis=1), rows.argmax(axis=1) != y
    w = np.ones(300) if weights is None else weights
    for heights, part in ((display.right, ~wrong), (display.wrong, wrong)):
        expected, _ = np.histogram(confidence[part], display.edges, weights=w[part])
        np.testing.assert_allclose(heights, expected / expected.sum(), atol=1e-12)
    filled = [patch.get_data().values for patch in display.ax_.patches]
    for heights in (display.right, display.wrong):
        assert any(np.array_equal(heights, values) for values in filled)
    assert display.ax_.lines[0].get_xdata()[0] == 0.7
    rate = confident_error_rate(y, p, threshold=0.7, sample_weight=weights)
    assert display.confident_error_rate == rate
    counted = int((wrong & (confidence > 0.7) & (w > 0)).sum())
    assert display.n_confident_errors == counted
    said = words(display.ax_)
    assert said[0] == "a model"
    assert f"{(~wrong & (w > 0)).sum()} right" in said
    assert f"{(wrong & (w > 0)).sum()} wrong" in said
    assert any(text.startswith(f"{counted} of them above 0.7") for text in said)


@pytest.mark.parametrize(("y", "n_wrong"), [([0, 0, 1, 1], 0), ([1, 1, 0, 0], 4)])
def test_all_right_or_all_wrong(y, n_wrong):
    display = ConfidenceDisplay.from_predictions(y, [0.1, 0.2, 0.8, 0.9])
    drawn(display)
    assert (display.n_wrong, display.n_right) == (n_wrong, 4 - n_wrong)


def test_confidence_at_the_threshold_is_not_above_it():
    display = ConfidenceDisplay.from_predictions([0, 0, 1], [0.9, 0.95, 0.8], n_bins=5)
    assert display.n_confident_errors == 1
    np.testing.assert_allclose(display.wrong, [0, 0, 0, 0.5, 0.5])


def test_one_class_will_do():
    display = ConfidenceDisplay.from_predictions([0, 0], [0.9, 0.2], labels=[0, 1])
    assert (display.n_wrong, display.n_right) == (1, 1)


def test_refused_confidence():
    y, p = binary(0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        ConfidenceDisplay.from_predictions(y, 3 * p)
    with pytest.raises(ValueError, match="threshold must lie from 0 to 1"):
        ConfidenceDisplay.from_predictions(y, p, threshold=2)
    with pytest.raises(ValueError, match="n_bins must be a whole number of 1 or more"):
        ConfidenceDisplay.from_predictions(y, p, n_bins=0)


# All of them


@pytest.mark.slow
@pytest.mark.parametrize(
    ("display", "load"),
    [
        (ConfidenceDisplay, load_breast_cancer),
        (RankingErrorDisplay, load_breast_cancer),
        (RankingErrorDisplay, load_wine),
    ],
)
def test_both_constructors_agree(display, load):
    X, y = load(return_X_y=True)
    X = X + np.random.default_rng(0).normal(scale=2 * X.std(axis=0), size=X.shape)
    y = np.array(["c", "a", "b"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    weights = np.random.default_rng(0).random(y.size)
    options = {"sample_weight": weights}
    if display is RankingErrorDisplay and load is load_wine:
        options["pair"] = ("b", "c")
    one = display.from_estimator(model, X, y, **options)
    other = display.from_predictions(
        y, model.predict_proba(X), labels=model.classes_, name="LogisticRegression", **options
    )
    assert one.name == "LogisticRegression"  # the last step of the pipeline
    assert drawn(one) == drawn(other)
    assert one.plot() is one
    assert one.figure_ is not other.figure_
    named = display.from_estimator(model, X, y, name="mine", **options)
    assert "mine" in named.figure_.axes[0].get_title(loc="left")


@pytest.mark.parametrize("display", DISPLAYS)
def test_estimator_without_probabilities(display):
    X, y = load_wine(return_X_y=True)
    model = LinearSVC(dual=False).fit(X, y)
    with pytest.raises(ValueError, match=r"LinearSVC has no predict_proba; wrap it"):
        display.from_estimator(model, X, y)


def test_own_axes():
    figure, ax = plt.subplots()
    made = ConfidenceDisplay.from_predictions(*binary(0), ax=ax)
    assert made.ax_ is ax
    assert made.figure_ is figure


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "fragility\[plot\]"'):
        display.from_predictions(*binary(0))
    with pytest.raises(ImportError, match=r'pip install "fragility\[plot\]"'):
        display.from_estimator(None, None, None)


@pytest.mark.outside
def test_importing_the_library_does_not_import_matplotlib():
    code = "import sys, fragility; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
