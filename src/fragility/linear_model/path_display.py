"""A picture of the least fragility against the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats
from ..metrics.displays.base import Display
from ..metrics.displays.figure import GREY, RIGHT, pyplot, shortened, tidy
from .path import FragilityPath, fragility_path

_LABELLED = 8
#: Range of fragilities beyond which the axis is logarithmic.
_WIDE = 1e3


@dataclass(kw_only=True, eq=False, repr=False)
class FragilityPathDisplay(Display):
    """The least fragility for each acceptable loss, and the coefficients that reach it.

    Left: fragility against target, from the lowest loss that any model reaches to that of a model
    without features. Right: how the coefficients (of several classes: their spread over the
    classes) go to zero on the way. Made by `from_path` or `from_data`.

    Parameters
    ----------
    target, fragility : ndarray of shape (n_targets,)
    size : ndarray of shape (n_targets, n_features)
        The coefficients; for several classes the range of each feature's.
    erm_loss, trivial_loss : float
    feature_names : list of str
    size_name : str
        What `size` is, for the axis.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fragility import FragilityPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = FragilityPathDisplay.from_data(X, y, slacks=[0.1, 0.3])
    >>> display.size.shape
    (2, 4)
    """

    _grid = (1, 2)
    _size = (10.0, 4.2)

    target: Floats
    fragility: Floats
    size: Floats
    erm_loss: float
    trivial_loss: float
    feature_names: list[str]
    size_name: str = "coefficient"

    @classmethod
    def from_path(cls, path: FragilityPath, *, ax: Any = None) -> FragilityPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : FragilityPath
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        several = path.coef.shape[1] > 1
        size = np.ptp(path.coef, axis=1) if several else path.coef[:, 0]
        names = path.feature_names or [f"feature {j}" for j in range(size.shape[1])]
        display = cls(
            target=path.target,
            fragility=path.fragility,
            size=size,
            erm_loss=path.erm_loss,
            trivial_loss=path.trivial_loss,
            feature_names=names,
            size_name="range of coefficients over the classes" if several else "coefficient",
        )
        return display.plot(ax=ax)

    @classmethod
    def from_data(cls, X: Any, y: Any, *, ax: Any = None, **kwargs: Any) -> FragilityPathDisplay:
        """Find the path of some data and draw it.

        Parameters
        ----------
        X, y, **kwargs
            As in `fragility.fragility_path`.
        ax : sequence of two matplotlib Axes, optional

        Returns
        -------
        FragilityPathDisplay
        """
        return cls.from_path(fragility_path(X, y, **kwargs), ax=ax)

    def _draw(self, axes: Any) -> None:
        left, right = axes
        finite = np.isfinite(self.fragility)
        left.plot(self.target[finite], self.fragility[finite], "o-", color=RIGHT, markersize=4)
        positive = self.fragility[finite & (self.fragility > 0.0)]
        if positive.size and positive.max() > _WIDE * positive.min():
            left.set_yscale("log")
        else:
            left.set_ylim(bottom=0.0)
        left.set_ylabel("least fragility k")
        for side in axes:
            for loss in (self.erm_loss, self.trivial_loss):
                side.axvline(loss, color=GREY, linestyle=":", linewidth=1)
            side.set_xlabel("target: acceptable mean loss")
            tidy(side)
        top = left.get_ylim()[1]
        for loss, words, aligned in (
            (self.erm_loss, " lowest loss", "left"),
            (self.trivial_loss, "trivial model ", "right"),
        ):
            left.text(loss, top, words, ha=aligned, va="top", color=GREY, fontsize=9)
        self._plot_coefficients(right)
        if left.get_yscale() == "log":  # then the coefficients span as much
            right.set_yscale("symlog", linthresh=float(np.abs(self.size).max()) / _WIDE)

    def _plot_coefficients(self, ax: Any) -> None:
        """All of them as lines, the largest by name."""
        order = np.argsort(-np.abs(self.size).max(axis=0))
        colours = pyplot().get_cmap("tab10").colors
        for rank, j in enumerate(order):
            named = rank < _LABELLED
            ax.plot(
                self.target,
                self.size[:, j],
                color=colours[rank] if named else GREY,
                alpha=1.0 if named else 0.35,
                linewidth=1.5 if named else 0.8,
                label=shortened(self.feature_names[j]) if named else None,
                zorder=2 if named else 1,
            )
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        ax.set_ylabel(self.size_name)
        ax.legend(frameon=False, fontsize=8, loc="best")
