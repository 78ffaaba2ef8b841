"""Errors among the surest cases of one or more models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Labels
from ...figures.coverage import RiskCoverageCurve
from ..coverage import risk_coverage_curve
from .figure import GREY, pyplot, shortened, style, tidy
from .several import FromEstimators, by_name

#: Coverages to mark.
_MARKED = (0.9, 0.95)


@dataclass(kw_only=True, eq=False, repr=False)
class RiskCoverageDisplay(FromEstimators):
    """Error rate among the surest cases against their share, for one or more models.

    A good curve is low, and falls to the left: the surest cases are right. Made by
    `from_predictions`, `from_estimator` or `from_estimators`.

    Parameters
    ----------
    curves : dict of str to RiskCoverageCurve
        By name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import RiskCoverageDisplay
    >>> y, p = [1, 1, 0, 0], [0.7, 0.9, 0.6, 0.2]
    >>> RiskCoverageDisplay.from_predictions(y, p).curves["model"].risk.tolist()
    [0.0, 0.0, 0.0, 0.25]
    """

    curves: Mapping[str, RiskCoverageCurve]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> RiskCoverageDisplay:
        """Draw labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_score : array-like, or dict of str to array-like
            Probabilities of one model, or of several by their names.
        labels, pos_label, sample_weight
            As in `fragility.risk_coverage_curve`.
        name : str, optional
            Name of the model, if it is one.
        ax : matplotlib Axes, optional

        Returns
        -------
        RiskCoverageDisplay
        """
        pyplot()
        curves = {
            key: risk_coverage_curve(
                y_true, scores, labels=labels, pos_label=pos_label, sample_weight=sample_weight
            )
            for key, scores in by_name(y_score, name).items()
        }
        return cls(curves=curves).plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        highest = 0.0
        for place, (name, curve) in enumerate(self.curves.items()):
            label = f"{shortened(name)}: {100 * curve.risk[-1]:.3g} % wrong of all"
            ax.plot(
                100 * curve.coverage, 100 * curve.risk, linewidth=1.8, label=label, **style(place)
            )
            settled = curve.risk[curve.coverage >= 0.1]  # few cases scatter
            highest = max(highest, 100 * float(settled.max(initial=0.0)))
        for share in _MARKED:
            ax.axvline(100 * share, color=GREY, linestyle="--", linewidth=0.9, zorder=1)
        ax.set_xlim(0.0, 100.0)
        ax.set_ylim(0.0, 1.15 * highest if highest > 0.0 else 1.0)
        ax.set_xticks(np.append(np.arange(0, 81, 20), [90, 100]))
        ax.set_xlabel("coverage: the surest cases, % of all")
        ax.set_ylabel("wrong of these, %")
        ax.set_title("Risk and coverage", loc="left")
        ax.legend(frameon=False, loc="upper left")
        tidy(ax)
