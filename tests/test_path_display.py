"""The picture of a path, read back from its artists."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

from fragility import FragilityPathDisplay, fragility_path


@pytest.fixture(autouse=True)
def tidy():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def path():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 10))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=80) > 0).astype(int)
    return fragility_path(X, y, slacks=[0.1, 0.3, 0.6], penalty="l2")


def test_lines_are_the_path(path):
    display = path.plot()
    left, right = display.axes_
    curve = left.lines[0]
    assert curve.get_xdata().tolist() == path.target.tolist()
    assert curve.get_ydata().tolist() == path.fragility.tolist()
    assert {line.get_xdata()[0] for line in left.lines[1:]} == {
        path.erm_loss,
        path.trivial_loss,
    }
    coefficients = [line for line in right.lines if len(line.get_xdata()) == 3]
    drawn = np.array(sorted(line.get_ydata().tolist() for line in coefficients))
    assert drawn.tolist() == sorted(path.coef[:, 0].T.tolist())
    # The eight largest have names, in order of size.
    names = [text.get_text() for text in right.get_legend().get_texts()]
    largest = np.argsort(-np.abs(path.coef[:, 0]).max(axis=0))[:8]
    assert names == [f"feature {j}" for j in largest]


def test_several_classes_are_drawn_by_their_range():
    X, y = load_iris(return_X_y=True)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    path = fragility_path(frame, y, slacks=[0.2, 0.5])
    display = FragilityPathDisplay.from_path(path)
    assert display.size == pytest.approx(path.coef.max(axis=1) - path.coef.min(axis=1))
    assert display.feature_names == ["a", "b", "c", "d"]
    assert "range" in display.axes_[1].get_ylabel()


def test_given_axes(path):
    figure, axes = plt.subplots(1, 2)
    assert path.plot(ax=axes).figure_ is figure
    with pytest.raises(ValueError, match="ax must be two matplotlib Axes; got 1"):
        path.plot(ax=[axes[0]])


def test_a_wide_range_is_logarithmic(path):
    steep = replace(path, fragility=path.fragility * [1e4, 1.0, 1.0])
    left, right = steep.plot().axes_
    assert left.get_yscale() == "log"
    assert right.get_yscale() == "symlog"
    plain = path.plot().axes_
    assert [ax.get_yscale() for ax in plain] == ["linear", "linear"]
