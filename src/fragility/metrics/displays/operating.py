"""Sensitivity, specificity, predictive value and workload at every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Floats, Labels
from ...figures import operating as figures
from ...figures.operating import OperatingPoints
from ..operating import operating_points
from ..outcomes import two_class_outcomes
from .estimator import FromEstimator
from .figure import GREY, pyplot, style, tidy

#: Points that a line is drawn with; more are not seen.
_POINTS = 400


@dataclass(kw_only=True, eq=False, repr=False)
class OperatingPointsDisplay(FromEstimator):
    """What every threshold does, with chosen ones marked.

    Sensitivity, specificity, positive predictive value and the share that is flagged, against the
    threshold; dots are the chosen thresholds. Made by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    curve : OperatingPoints
        At many thresholds.
    points : OperatingPoints
        At the chosen ones.
    prevalence : float
        Share of the positive class.
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import OperatingPointsDisplay
    >>> y, p = [0, 0, 1, 0, 1], [0.1, 0.3, 0.4, 0.6, 0.9]
    >>> display = OperatingPointsDisplay.from_predictions(y, p, thresholds=[0.4])
    >>> display.points.sensitivity.tolist()
    [1.0]
    """

    _size = (6.8, 4.4)

    curve: OperatingPoints
    points: OperatingPoints
    prevalence: float
    name: str | None = None

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        alert_rates: ArrayLike | None = None,
        prevalence: float | None = None,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> OperatingPointsDisplay:
        """Draw labels and scores.

        Parameters
        ----------
        y_true, y_score, thresholds, alert_rates, prevalence, labels, pos_label, sample_weight
            As in `fragility.operating_points`.
        name : str, optional
            Name of the model, for the title.
        ax : matplotlib Axes, optional

        Returns
        -------
        OperatingPointsDisplay
        """
        pyplot()
        points = operating_points(
            y_true,
            y_score,
            thresholds,
            alert_rates=alert_rates,
            prevalence=prevalence,
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight,
        )
        found = two_class_outcomes(y_true, y_score, labels, pos_label, sample_weight, prevalence)
        scores = np.concatenate([found.others.mean, found.happened.mean])
        at = np.linspace(min(float(scores.min()), 0.0), max(float(scores.max()), 1.0), _POINTS)
        if scores.min() < 0.0 or scores.max() > 1.0:  # not probabilities
            at = np.linspace(float(scores.min()), float(scores.max()), _POINTS)
        curve = figures.operating_points(found.others, found.happened, at).points
        display = cls(curve=curve, points=points, prevalence=found.prevalence, name=name)
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        rows = {
            "sensitivity": "sensitivity",
            "specificity": "specificity",
            "positive predictive value": "ppv",
            "flagged": "flagged",
        }
        shown = np.isfinite(self.points.thresholds)
        for place, (title, field) in enumerate(rows.items()):
            own = style(place)
            values: Floats = getattr(self.curve, field)
            ax.plot(self.curve.thresholds, values, linewidth=1.8, label=title, **own)
            marked = getattr(self.points, field)[shown]
            at = self.points.thresholds[shown]
            ax.plot(at, marked, "o", markersize=4.5, color=own["color"], zorder=4)
        for at in self.points.thresholds[shown].tolist():
            ax.axvline(at, color=GREY, linewidth=0.6, alpha=0.4, zorder=1)
        ax.set_ylim(-0.02, 1.04)
        ax.set_xlim(float(self.curve.thresholds[0]), float(self.curve.thresholds[-1]))
        ax.set_xlabel("threshold: flagged if the score is at least this")
        ax.set_ylabel("share")
        title = self.name or "Operating points"
        ax.set_title(f"{title},  prevalence {100 * self.prevalence:.3g} %", loc="left", pad=26)
        ax.legend(
            frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8.5,
            handlelength=2.4, columnspacing=1.2,
        )  # fmt: skip
        tidy(ax)
