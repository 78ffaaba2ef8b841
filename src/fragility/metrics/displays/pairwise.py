"""The Fragility Index of every pair of classes, as a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._parameters import check_number
from ..._typing import Floats, Integers, Labels
from ..._validation import check_labelled_scores
from ...figures.tails import error_tails
from ...index.errors import RankingErrors
from ...index.fragility import measure, solve_pairs
from .estimator import FromEstimator
from .figure import (
    BACKED,
    RIGHT,
    pyplot,
    shortened,
    summary,
)

#: Above this many classes the values do not fit into the cells.
_MOST_ANNOTATED = 20
_BLANK = "#EDEDED"


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseFragilityDisplay(FromEstimator):
    """Heat map of the index of every ordered pair of classes, which shows dangerous confusions.

    Row i, column j: samples of class j scored as class i. Infinite pairs are hatched, pairs
    without samples blank. Made by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    pairs : ndarray of shape (C, C)
        The index of each pair, NaN where there is none.
    labels : ndarray of shape (C,)
    support : ndarray of shape (C,)
        Samples in each class.
    fragility, ratio, auc : float
        Means over the pairs: of the index, of its scale-free ratio (at target 0) and of the area
        under the ROC curve.
    target : float
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage
    text_ : ndarray of shape (C, C) of matplotlib Text or None
        What is written in the cells; None for more than 20 classes.

    Examples
    --------
    >>> from fragility import PairwiseFragilityDisplay
    >>> y, p = ["a", "b", "c"], [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]]
    >>> display = PairwiseFragilityDisplay.from_predictions(y, p)
    >>> display.text_[0, 1].get_text()  # true b scored as a
    '0'
    """

    pairs: Floats
    labels: NDArray[Any]
    support: Integers
    fragility: float
    ratio: float
    auc: float
    target: float = 0.0
    name: str | None = None

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        target: float = 0.0,
        name: str | None = None,
        ax: Any = None,
    ) -> PairwiseFragilityDisplay:
        """Draw the pairs of labels and scores.

        Parameters
        ----------
        y_true, y_score, labels, pos_label, sample_weight, target
            As in `fragility.fragility_index`.
        name : str, optional
            Name of the model, for the title.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        PairwiseFragilityDisplay
        """
        pyplot()
        target = check_number(target, "target")
        data = check_labelled_scores(y_true, y_score, labels, pos_label, sample_weight)
        errors = RankingErrors(data)
        result = measure(errors, target, "ovo", None)
        ratio = result.ratio
        if target != 0.0:
            at_zero = solve_pairs(errors, 0.0, "ovo", None)
            ratio = at_zero.average(at_zero.ratios)
        display = cls(
            pairs=result.pairs,
            labels=result.labels,
            support=result.support,
            fragility=result.value,
            ratio=ratio,
            auc=float(np.mean([tail.auc for tail, _ in error_tails(errors, "ovo")])),
            target=target,
            name=name,
        )
        return display.plot(ax)

    def _new_size(self) -> tuple[float, float]:
        side = float(np.clip(0.55 * self.labels.size, 3.4, 10.0))
        names = 0.075 * max(map(len, self._class_names()))
        return 1.1 * side + names + 1.5, side + names + 0.8

    def _draw(self, axes: Any) -> None:
        n, plt, (ax,) = self.labels.size, pyplot(), axes
        finite = self.pairs[np.isfinite(self.pairs)]
        highest = float(finite.max()) if finite.size and finite.max() > 0.0 else 1.0
        colours = plt.get_cmap("YlOrBr")
        ax.set_facecolor(_BLANK)
        self.image_ = ax.imshow(
            np.ma.masked_invalid(self.pairs), cmap=colours, vmin=0.0, vmax=highest
        )
        bar = self.figure_.colorbar(self.image_, ax=ax, fraction=0.046, pad=0.03)
        bar.set_label("Fragility Index of the pair")
        bar.outline.set_visible(False)
        hatch = "////" if n <= _MOST_ANNOTATED else "//////"
        hatched = {"facecolor": "white", "edgecolor": RIGHT, "hatch": hatch, "linewidth": 0.0}
        for i, j in np.argwhere(np.isinf(self.pairs)):
            ax.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1.0, 1.0, **hatched))
        self.text_ = self._annotate(ax, highest, colours) if n <= _MOST_ANNOTATED else None
        self._name_classes(ax)
        ax.set_title(self._title(), loc="left", fontsize=10)

    def _annotate(self, ax: Any, highest: float, colours: Any) -> NDArray[Any]:
        n = self.labels.size
        size = float(np.clip(13.0 - 0.25 * n, 7.0, 11.0))
        texts = np.full((n, n), None, dtype=object)
        for i, j in np.argwhere(~np.isnan(self.pairs)):
            value, points, box = self.pairs[i, j], size, None
            if np.isinf(value):
                text, colour, points, box = "∞", RIGHT, 1.4 * size, BACKED
            else:
                dark = _luminance(colours(value / highest)) < 0.18
                text, colour = _short(value), "white" if dark else "black"
            texts[i, j] = ax.text(
                j, i, text, ha="center", va="center", color=colour, fontsize=points, bbox=box
            )
        return texts

    def _name_classes(self, ax: Any) -> None:
        n = self.labels.size
        names = self._class_names()
        size = float(np.clip(12.0 - 0.15 * n, 7.5, 10.0))
        crowded = max(map(len, names)) > 40 // n
        ax.set_xticks(range(n), names, fontsize=size, rotation=90 if crowded else 0)
        ax.set_yticks(range(n), names, fontsize=size)
        ax.set_xlabel("true class (samples)")
        ax.set_ylabel("scored as")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    def _class_names(self) -> list[str]:
        classes = zip(self.labels.tolist(), self.support, strict=True)
        return [f"{shortened(label)} ({count})" for label, count in classes]

    def _title(self) -> str:
        infinite = int(np.isinf(self.pairs).sum())
        counted = int((~np.isnan(self.pairs)).sum())
        lines = [] if self.name is None else [self.name]
        lines.append(summary(self.fragility, self.ratio, self.auc, self.target))
        if self.labels.size > 2:
            more = f", {infinite} of them infinite (hatched)" if infinite else ""
            lines.append(f"means over {counted} pairs{more}")
        return "\n".join(lines)


def _luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance; below 0.18 white has more contrast than black."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _short(value: float) -> str:
    """A number with two digits, as short as possible."""
    if value == 0.0:
        return "0"
    if 0.01 <= value < 100.0:
        return f"{value:.2f}" if value < 10.0 else f"{value:.0f}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
