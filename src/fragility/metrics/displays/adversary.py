"""A picture of what the worst case does to samples of two features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from ..._models import LinearModel, check_linear_model
from ..._summary import percent
from ..._typing import Floats, Indices, Mask
from ..._validation import column_names
from ...certificates import WorstCase, worst_case
from .base import Display
from .estimator import model_name
from .figure import COLOURS, GREY, number, pyplot, shortened, tidy

#: Points a side of the grid on which several classes are told apart.
_GRID = 301
#: Area of the point of a sample of average weight; and where weights are what is shown.
_AREA, _LARGE = 26.0, 70.0


@dataclass(kw_only=True, eq=False, repr=False)
class AdversaryDisplay(Display):
    """The data of a linear classifier of two features, and how an adversary shifts them.

    Dots are samples, in the colours of their classes. An arrow is a share of a sample that moves,
    the darker the larger; a ring a share that gets the label of its colour. Under KL, where weights
    shift, dots have the area of their weight in the worst case, and circles that of their own. Made
    by `from_estimator`.

    Parameters
    ----------
    case : WorstCase
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,)
        Weights of the samples as they are, summing to one.
    linear : LinearModel
        Coefficients, intercept and classes of the model.
    feature_names : list of str
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fragility import AdversaryDisplay, SatisficingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SatisficingClassifier("hinge", slack=0.2).fit(X[:, 2:], y)
    >>> display = AdversaryDisplay.from_estimator(model, X[:, 2:], y, 0.1)
    >>> round(display.case.distance, 6)
    0.1
    """

    _size = (7.4, 4.8)

    case: WorstCase
    X: Floats
    y: NDArray[Any]
    weights: Floats
    linear: LinearModel
    feature_names: list[str]
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        radius: float | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        tol: float = 0.2,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> AdversaryDisplay:
        """Find the worst case of a fitted linear classifier and draw it.

        Parameters
        ----------
        estimator : fitted linear classifier
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
        radius, sample_weight
            As in `fragility.worst_case`.
        tol : float, default=0.2
            Share of what moves add to the loss that may be lost for shorter moves, which a picture
            can hold.
        name : str, optional
            Name of the model, for the title; by default that of its class.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **options
            As in `fragility.worst_case`, for models of other libraries.

        Returns
        -------
        AdversaryDisplay
        """
        pyplot()
        linear = check_linear_model(estimator)
        if linear.coef.shape[1] != 2:
            raise ValueError(
                f"The model has {linear.coef.shape[1]} features, and a picture has two axes. Fit a "
                "model to two of them, or look at fragility.worst_case."
            )
        found = worst_case(estimator, X, y, radius, sample_weight=sample_weight, tol=tol, **options)
        given = [str(one) for one in column_names(X)]
        display = cls(
            case=found,
            X=np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64),
            y=np.asarray(y),
            weights=found.weights_before,
            linear=linear,
            feature_names=given or ["feature 0", "feature 1"],
            name=model_name(estimator) if name is None else name,
        )
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        colours = {one: COLOURS[i % len(COLOURS)] for i, one in enumerate(self._classes)}
        low, high = self._window()
        self._draw_boundaries(ax, low, high)
        self._draw_samples(ax, colours)
        if not self.case.ambiguity.reweights:
            self._draw_moves(ax, colours)
            self._draw_labels(ax, colours)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set_xlabel(shortened(self.feature_names[0]))
        ax.set_ylabel(shortened(self.feature_names[1]))
        case = self.case
        ax.set_title(
            f"{self.name or 'Worst case'}: loss {number(case.loss_before)} → "
            f"{number(case.expected_loss)} at a distance of {number(case.distance)}",
            loc="left",
            fontsize=11,
        )
        ax.text(1.02, 0.0, self._words(), transform=ax.transAxes, ha="left", va="bottom",
                color=GREY, fontsize=9)  # fmt: skip
        ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        tidy(ax)

    @property
    def _classes(self) -> list[Any]:
        labels: list[Any] = self.linear.classes.tolist()
        return labels

    def _window(self) -> tuple[Floats, Floats]:
        """The samples and where they go, unless that is so far that nothing else would be seen."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        size = np.where(high > low, high - low, 1.0)
        ends = np.clip(self._ends(self.case.moved), low - 0.6 * size, high + 0.6 * size)
        every = np.concatenate([self.X, ends])
        return every.min(axis=0) - 0.06 * size, every.max(axis=0) + 0.06 * size

    def _ends(self, rows: Mask | Indices) -> Floats:
        X = self.case.X[rows]
        ends: Floats = X.toarray() if issparse(X) else X
        return ends

    def _draw_boundaries(self, ax: Any, low: Floats, high: Floats) -> None:
        """Where the model changes its mind."""
        first, second = (np.linspace(low[j], high[j], _GRID) for j in (0, 1))
        points = np.stack(np.meshgrid(first, second), axis=-1)
        scores = points @ self.linear.coef.T + self.linear.intercept
        if scores.shape[-1] == 1:
            scores = np.concatenate([-scores, scores], axis=-1)
        for i in range(scores.shape[-1]):
            ahead = scores[..., i] - np.delete(scores, i, axis=-1).max(axis=-1)
            if ahead.min() < 0.0 < ahead.max():
                ax.contour(first, second, ahead, levels=[0.0], colors=GREY, linewidths=1.3)

    def _draw_samples(self, ax: Any, colours: dict[Any, str]) -> None:
        shown, some = self.weights, self.weights > 0.0
        area = (_LARGE if self.case.ambiguity.reweights else _AREA) * np.count_nonzero(some)
        if self.case.ambiguity.reweights:
            shown = np.zeros(len(self.X))
            np.add.at(shown, self.case.source, self.case.weights)
            ax.scatter(*self.X[some].T, s=area * self.weights[some], zorder=4,
                       facecolors="none", edgecolors=GREY, linewidths=0.8)  # fmt: skip
        for label, colour in colours.items():
            own = (self.y == label) & (shown > 0.0)
            ax.scatter(*self.X[own].T, s=area * shown[own], color=colour, alpha=0.7,
                       linewidths=0.0, zorder=3, label=shortened(label))  # fmt: skip

    def _draw_moves(self, ax: Any, colours: dict[Any, str]) -> None:
        rows = np.flatnonzero(self.case.moved)
        shares = self.case.weights[rows] / self.weights[self.case.source[rows]]
        starts, ends = self.X[self.case.source[rows]], self._ends(rows)
        for start, end, share, row in zip(starts, ends, shares, rows, strict=True):
            ax.annotate(
                "",
                end,
                start,
                annotation_clip=False,
                clip_on=True,
                arrowprops={
                    "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
                    "color": colours[self.case.y[row]],
                    "alpha": 0.25 + 0.6 * float(min(share, 1.0)),
                    "linewidth": 1.1,
                    "shrinkA": 0.0,
                    "shrinkB": 0.0,
                },
            )

    def _draw_labels(self, ax: Any, colours: dict[Any, str]) -> None:
        other, ends = self.case.relabelled, self._ends(self.case.relabelled)
        for label, colour in colours.items():
            own = self.case.y[other] == label
            if own.any():
                ax.scatter(*ends[own].T, s=4.5 * _AREA, facecolors="none", edgecolors=colour,
                           linewidths=1.8, zorder=4, label=f"now {shortened(label)}")  # fmt: skip

    def _words(self) -> str:
        case = self.case
        if case.ambiguity.reweights:
            return "dots: weights of\nthe worst case\n\ncircles: weights\nof the data"
        parts = []
        if case.moved.any():
            parts.append(f"{percent(float(case.weights[case.moved].sum()))} of the\nweight moves")
        if case.relabelled.any():
            flipped = percent(float(case.weights[case.relabelled].sum()))
            parts.append(f"{flipped} gets\nanother label")
        if case.gap > 0.01 * abs(case.bound):
            parts.append(f"up to {number(case.bound)}\nby longer moves")
        return "\n\n".join(parts)
