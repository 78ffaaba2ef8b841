"""Pictures of credit scoring: Kolmogorov–Smirnov, and the stability of a population."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Floats, Labels
from ...figures import operating as figures
from ...ordered import running_totals
from ..credit import checked_stability
from ..outcomes import two_class_outcomes
from .base import Display
from .estimator import FromEstimator
from .figure import GREY, RIGHT, WRONG, number, pyplot, shortened, tidy, write_note


@dataclass(kw_only=True, eq=False, repr=False)
class KSDisplay(FromEstimator):
    """Distribution functions of the scores of both classes, and where they are farthest apart.

    Made by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    scores : ndarray of shape (n_scores,)
        Distinct, ascending.
    negatives, positives : ndarray of shape (n_scores,)
        Share of each class that has at most this score.
    ks, gini : float
    threshold : float
        Score at which the difference is the largest.
    classes : (str, str)
        Names of the negative and the positive class.
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import KSDisplay
    >>> display = KSDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    >>> display.ks, display.threshold
    (0.5, 0.1)
    """

    scores: Floats
    negatives: Floats
    positives: Floats
    ks: float
    gini: float
    threshold: float
    classes: tuple[str, str] = ("negative", "positive")
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
        name: str | None = None,
        ax: Any = None,
    ) -> KSDisplay:
        """Draw labels and scores.

        Parameters
        ----------
        y_true, y_score, labels, pos_label, sample_weight
            As in `fragility.ks_statistic`.
        name : str, optional
            Name of the model, for the title.
        ax : matplotlib Axes, optional

        Returns
        -------
        KSDisplay
        """
        pyplot()
        found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, presence=True)
        both = found.others, found.happened
        scores = np.unique(np.concatenate([part.mean for part in both]))
        negatives, positives = (
            running_totals(part.weight)[np.searchsorted(part.mean, scores, side="right")]
            / part.weight.sum()
            for part in both
        )
        data, names = found.data, found.data.labels.tolist()
        display = cls(
            scores=scores,
            negatives=negatives,
            positives=positives,
            ks=figures.ks_statistic(*both).value,
            gini=figures.gini(*both).value,
            threshold=float(scores[np.abs(positives - negatives).argmax()]),
            classes=(str(names[1 - data.positive]), str(names[data.positive])),
            name=name,
        )
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        parts = (self.negatives, self.positives)
        for values, colour, kind in zip(parts, (RIGHT, WRONG), self.classes, strict=True):
            x, y = np.append(self.scores[0], self.scores), np.append(0.0, values)
            ax.plot(
                x, y, drawstyle="steps-post", color=colour, linewidth=1.8, label=shortened(kind)
            )
        place = int(np.searchsorted(self.scores, self.threshold))
        ends = sorted(float(part[place]) for part in parts)
        ax.plot([self.threshold] * 2, ends, color=GREY, linestyle="--", marker="_", linewidth=1.4)
        write_note(ax, 0.03, 0.97, f"KS {number(self.ks)}\nat {number(self.threshold)}", GREY)
        ax.set_ylim(-0.02, 1.04)
        ax.set_xlabel("score")
        ax.set_ylabel("share with at most this score")
        ax.set_title(
            f"{self.name or 'Both classes'},  KS {number(self.ks)},  Gini {number(self.gini)}",
            loc="left",
        )
        ax.legend(frameon=False, loc="lower right")
        tidy(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class PopulationStabilityDisplay(Display):
    """Shares of two populations in bins of the score, and what each bin adds to the index.

    Made by `from_scores`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Between the bins.
    expected, actual, terms : ndarray of shape (n_bins,)
        Shares, and the terms of the index.
    index : float
        Population stability index.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import PopulationStabilityDisplay
    >>> scores = np.arange(100) / 100
    >>> PopulationStabilityDisplay.from_scores(scores, scores).index
    0.0
    """

    _size = (7.2, 4.2)

    edges: Floats
    expected: Floats
    actual: Floats
    terms: Floats
    index: float

    @classmethod
    def from_scores(
        cls, expected: ArrayLike, actual: ArrayLike, *, n_bins: int = 10, ax: Any = None
    ) -> PopulationStabilityDisplay:
        """Draw two sets of scores.

        Parameters
        ----------
        expected, actual, n_bins
            As in `fragility.population_stability_index`.
        ax : matplotlib Axes, optional

        Returns
        -------
        PopulationStabilityDisplay
        """
        pyplot()
        found = checked_stability(expected, actual, n_bins)
        return cls(**vars(found), terms=found.terms, index=found.index).plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        places, width = np.arange(self.expected.size), 0.4
        ax.bar(places - width / 2, 100 * self.expected, width, color=GREY, label="expected")
        ax.bar(places + width / 2, 100 * self.actual, width, color=WRONG, label="actual")
        tops = 100 * np.maximum(self.expected, self.actual)
        for place, top, term in zip(places, tops.tolist(), self.terms.tolist(), strict=True):
            if term >= 0.01 * max(self.index, 1e-9) and term >= 0.001:
                ax.text(place, top, f"{term:.3f}", ha="center", va="bottom", fontsize=8, color=GREY)
        ends = [f"{edge:.3g}" for edge in self.edges.tolist()]
        names = [f"< {ends[0]}", *(f"{a}–\n{b}" for a, b in pairwise(ends)), f"≥ {ends[-1]}"]
        ax.set_xticks(places, names, fontsize=8)
        ax.set_ylim(0.0, 1.15 * float(tops.max()))
        ax.set_xlabel("score, in bins of equal mass of the expected scores")
        ax.set_ylabel("share, %")
        ax.set_title(f"Population stability index {number(self.index)}", loc="left")
        ax.legend(frameon=False, loc="best")
        tidy(ax)
