"""The picture of a worst case, read back from its artists."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from scipy import sparse

from fragility import KL, AdversaryDisplay, SatisficingClassifier, Wasserstein, worst_case
from fragility.metrics.displays.figure import COLOURS


@pytest.fixture(autouse=True)
def tidy():
    yield
    plt.close("all")


def drawn(n_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 2)) + 2.0 * np.c_[np.cos(y), np.sin(y)], y


def arrows(ax):
    return [one for one in ax.get_children() if isinstance(one, Annotation)]


def test_arrows_are_the_moves():
    X, y = drawn()
    model = SatisficingClassifier("hinge", slack=0.2).fit(X, y)
    display = AdversaryDisplay.from_estimator(model, X, y, 0.1)
    case = worst_case(model, X, y, 0.1)
    found = arrows(display.ax_)
    assert len(found) == case.moved.sum() > 2
    ends = sorted(tuple(arrow.xy) for arrow in found)
    assert ends == sorted(map(tuple, case.X[case.moved].tolist()))
    starts = sorted(tuple(arrow.xyann) for arrow in found)
    assert starts == sorted(map(tuple, X[case.source[case.moved]].tolist()))
    # Those of a class have its colour, and go to the other side.
    towards = {
        to_hex(a.arrow_patch.get_edgecolor()).upper(): np.subtract(a.xy, a.xyann) for a in found
    }
    assert towards[COLOURS[0]] @ model.coef_[0] > 0.0
    assert towards[COLOURS[1]] @ model.coef_[0] < 0.0
    title = display.ax_.get_title(loc="left")
    assert f"{case.loss_before:.3g} → {case.expected_loss:.3g}" in title
    assert "distance of 0.1" in title


def test_the_line_is_where_the_model_changes_its_mind():
    X, y = drawn()
    model = SatisficingClassifier("hinge", slack=0.2).fit(X, y)
    ax = AdversaryDisplay.from_estimator(model, sparse.csr_array(X), y, 0.1).ax_
    contours = [one for one in ax.collections if type(one).__name__ == "QuadContourSet"]
    points = np.concatenate([one.get_paths()[0].vertices for one in contours])
    assert len(points) > 10
    assert np.abs(model.decision_function(points)).max() < 1e-9


def test_rings_are_other_labels():
    X, y = drawn(3)
    names = np.array(["a", "b", "c"])[y]
    model = SatisficingClassifier("hinge", Wasserstein(label_cost=0.5), slack=0.2).fit(X, names)
    display = AdversaryDisplay.from_estimator(model, X, names, name="mine")
    case = display.case
    rings = {one.get_label(): one for one in display.ax_.collections if "now" in one.get_label()}
    for label in "abc":
        own = case.relabelled & (case.y == label)
        if own.any():
            shown = np.asarray(rings.pop(f"now {label}").get_offsets())
            assert shown == pytest.approx(case.X[own])
    assert not rings
    assert case.relabelled.any()
    words = [text.get_text() for text in display.ax_.texts]
    assert any("another label" in one for one in words)
    assert display.ax_.get_title(loc="left").startswith("mine: ")


def test_areas_are_the_weights():
    X, y = drawn()
    model = SatisficingClassifier(ambiguity=KL(), slack=0.2).fit(X, y)
    _, ax = plt.subplots()
    display = AdversaryDisplay.from_estimator(model, X, y, ax=ax)
    assert display.ax_ is ax
    assert not arrows(ax)
    dots = {one.get_label(): one for one in ax.collections if one.get_label() in ("0", "1")}
    for label in (0, 1):
        areas = dots[str(label)].get_sizes()
        weights = display.case.weights[y == label]
        assert areas / areas.sum() == pytest.approx(weights / weights.sum())


def test_two_features_or_none():
    X, y = drawn()
    model = SatisficingClassifier(slack=0.2).fit(np.c_[X, X[:, :1]], y)
    with pytest.raises(ValueError, match="3 features, and a picture has two axes"):
        AdversaryDisplay.from_estimator(model, np.c_[X, X[:, :1]], y)


def test_names_of_features_are_those_of_the_frame():
    pandas = pytest.importorskip("pandas")
    X, y = drawn()
    frame = pandas.DataFrame(X, columns=["age", "weight"])
    model = SatisficingClassifier(slack=0.2).fit(frame, y)
    ax = AdversaryDisplay.from_estimator(model, frame, y).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "weight")
