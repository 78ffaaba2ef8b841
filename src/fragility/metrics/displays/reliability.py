"""Predicted against observed frequency, with a band, above the distribution of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._parameters import check_confidence
from ..._typing import Floats, Labels
from ...figures import reliability as figures
from ...figures.reliability import ReliabilityCurve, Strategy
from ..outcomes import probability_outcomes
from ..reliability import reliability_curve
from .estimator import FromEstimator
from .figure import GREY, RIGHT, number, pyplot, tidy, write_note

#: Bins of the histogram of the scores.
_HISTOGRAM_BINS = 25


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(FromEstimator):
    """Reliability curve with its band, and how many cases have which score.

    Above: the observed frequency against the predicted one; on the diagonal, they agree. Below: the
    cases by their score. Made by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    curve : ReliabilityCurve
    slope, intercept, observed_expected, calibration_index : float
        As `calibration_slope`, `calibration_intercept`, `observed_expected_ratio` and
        `integrated_calibration_index` give them.
    edges : ndarray of shape (n_bars + 1,)
    counts : ndarray of shape (n_bars,)
        Weight of the cases by score.
    predicts : str
        What the scores foretell, for the axes.
    prevalence : float, optional
        Share of the positive class that was asked for.
    name : str, optional
        Name of the model.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions(rng.random(500) < p, p)
    >>> float(display.curve.counts.sum())
    500.0
    """

    _grid = (2, 1)
    _heights = (3.4, 1.0)
    _share_x = True
    _size = (5.6, 6.4)
    _axes_for = ", for the curve and for the scores"

    curve: ReliabilityCurve
    slope: float
    intercept: float
    observed_expected: float
    calibration_index: float
    edges: Floats
    counts: Floats
    predicts: str = "positive class"
    prevalence: float | None = None
    name: str | None = None

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        n_bins: int = 10,
        strategy: Strategy = "quantile",
        confidence: float = 0.95,
        cluster: ArrayLike | None = None,
        prevalence: float | None = None,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw labels and probabilities.

        Parameters
        ----------
        y_true, y_score, n_bins, strategy, confidence, cluster, prevalence
            As in `fragility.reliability_curve`.
        labels, pos_label, sample_weight
            As in `fragility.reliability_curve`.
        name : str, optional
            Name of the model, for the title.
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        pyplot()
        given = labels, pos_label, sample_weight, prevalence
        found = probability_outcomes(y_true, y_score, *given)
        curve = reliability_curve(
            y_true,
            y_score,
            n_bins=n_bins,
            strategy=strategy,
            confidence=check_confidence(confidence),
            cluster=cluster,
            prevalence=prevalence,
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight,
        )
        forecasts, data = found.forecasts, found.data
        sums = forecasts.summed(_HISTOGRAM_BINS, "uniform")
        of_two = f"P({data.labels.tolist()[data.positive]})" if data.is_binary else "confidence"
        display = cls(
            curve=curve,
            slope=figures.calibration_slope(forecasts),
            intercept=figures.calibration_intercept(forecasts),
            observed_expected=figures.observed_expected_ratio(forecasts),
            calibration_index=figures.integrated_calibration_index(forecasts),
            edges=np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS,
            counts=sums.counts(*found.as_given),
            predicts=of_two,
            prevalence=prevalence,
            name=name,
        )
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        above, below = axes
        curve = self.curve
        above.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        if curve.predicted.size > 1:
            above.fill_between(
                curve.predicted, curve.lower, curve.upper, color=RIGHT, alpha=0.18, linewidth=0.0
            )
        reach = np.stack([curve.observed - curve.lower, curve.upper - curve.observed])
        above.errorbar(
            curve.predicted,
            curve.observed,
            yerr=np.maximum(reach, 0.0),
            color=RIGHT,
            marker="o",
            markersize=5,
            linewidth=1.8,
            elinewidth=1.0,
            capsize=2,
        )
        above.set_xlim(-0.02, 1.02)
        above.set_ylim(-0.02, 1.02)
        above.set_ylabel("observed frequency")
        lines = [
            f"slope {number(self.slope)}",
            f"intercept {number(self.intercept)}",
            f"O : E {number(self.observed_expected)}",
            f"ICI {number(self.calibration_index)}",
        ]
        if self.prevalence is not None:
            lines.append(f"at a prevalence of {100 * self.prevalence:g} %")
        for place, line in enumerate(lines):
            write_note(above, 0.03, 0.98 - 0.062 * place, line, GREY)
        level = f"{100 * curve.confidence:g} % band"
        above.set_title(f"{self.name or 'Reliability'},  {level}", loc="left")
        below.stairs(self.counts, self.edges, fill=True, color=GREY, alpha=0.55)
        below.set_ylabel("cases")
        below.set_xlabel(f"predicted frequency, {self.predicts}")
        below.set_ylim(0.0, 1.05 * float(self.counts.max()))
        for ax in axes:
            tidy(ax)
