"""Confidence of a classifier in its wrong predictions, beside its right predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._parameters import check_count, check_threshold
from ..._summary import percent
from ..._typing import Floats, Labels
from ..._validation import check_labelled_probabilities
from ...figures.confidence import (
    HISTOGRAM_BINS,
    confidence_shares,
    confident_errors,
    predictions,
)
from .estimator import FromEstimator
from .figure import (
    GREY,
    RIGHT,
    WRONG,
    pyplot,
    tidy,
    write_note,
)


@dataclass(kw_only=True, eq=False, repr=False)
class ConfidenceDisplay(FromEstimator):
    r"""Confidence :math:`q = \max_c p_c` of the wrong and of the right predictions.

    Two histograms over the same bins, each summing to one, since mistakes are few; their numbers
    are written beside them. Made by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from one over the number of classes to one. A bin holds its upper edge.
    wrong, right : ndarray of shape (n_bins,)
        Share of the wrong and of the right predictions in each bin (zero if there are none).
    n_wrong, n_right : int
        Their numbers (of positive weight).
    n_confident_errors : int
        Wrong predictions of a confidence above the threshold.
    confident_error_rate : float
        Their share of the weight of all samples.
    threshold : float
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import ConfidenceDisplay
    >>> y, p = [1, 1, 0, 0], [0.6, 0.9, 0.1, 0.95]
    >>> display = ConfidenceDisplay.from_predictions(y, p)
    >>> display.n_wrong, display.n_confident_errors
    (1, 1)
    """

    edges: Floats
    wrong: Floats
    right: Floats
    n_wrong: int
    n_right: int
    n_confident_errors: int
    confident_error_rate: float
    threshold: float = 0.9
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        threshold: float = 0.9,
        n_bins: int = HISTOGRAM_BINS,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ConfidenceDisplay:
        """Draw the confidences of labels and probabilities.

        Parameters
        ----------
        y_true, y_proba, threshold, labels, pos_label, sample_weight
            As in `fragility.confident_error_rate`.
        n_bins : int, default=20
        name : str, optional
            Name of the model, for the title.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        ConfidenceDisplay
        """
        pyplot()
        threshold, n_bins = check_threshold(threshold), check_count(n_bins, "n_bins")
        data = check_labelled_probabilities(y_true, y_proba, labels, pos_label, sample_weight)
        made = predictions(data)
        edges = np.linspace(1.0 / data.labels.size, 1.0, n_bins + 1)
        counts, weights = np.ones(made.wrong.size), made.weights_or_ones
        shares = confidence_shares(made.confidence, made.wrong, weights, edges, counts)
        display = cls(
            edges=edges,
            wrong=shares.wrong,
            right=shares.right,
            n_wrong=int(shares.n_wrong),
            n_right=int(shares.n_right),
            n_confident_errors=int(np.count_nonzero(made.wrong & (made.confidence > threshold))),
            confident_error_rate=confident_errors(made, threshold),
            threshold=threshold,
            name=name,
        )
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        for shares, colour in ((self.right, RIGHT), (self.wrong, WRONG)):
            ax.stairs(shares, self.edges, fill=True, color=colour, alpha=0.35)
            ax.stairs(shares, self.edges, color=colour, linewidth=1.5)
        ax.axvline(self.threshold, color=GREY, linestyle="--", linewidth=1.2)
        highest = max(float(self.wrong.max()), float(self.right.max()))
        ax.set_ylim(0.0, 1.35 * highest)  # room for the words
        ax.set_xlim(self.edges[0], 1.0)
        words = [
            (f"{self.n_right} right", RIGHT),
            (f"{self.n_wrong} wrong", WRONG),
            (
                f"{self.n_confident_errors} of them above {self.threshold:g}"
                f" ({percent(self.confident_error_rate)} of all)",
                WRONG,
            ),
        ]
        for line, (text, colour) in enumerate(words):
            write_note(ax, 0.02, 0.97 - 0.075 * line, text, colour)
        ax.set_xlabel("confidence q, the probability of the predicted class")
        ax.set_ylabel("share of right, share of wrong predictions")
        ax.set_title(self.name or "Confidence", loc="left")
        tidy(ax)
