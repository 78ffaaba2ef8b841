"""Decision curves: the net benefit of models against treating all or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._parameters import check_count, check_number, require
from ..._typing import Floats, Labels
from ...figures.operating import odds, operating_points
from ..outcomes import two_class_outcomes
from .figure import GREY, number, pyplot, shortened, style, tidy
from .several import FromEstimators, by_name


@dataclass(kw_only=True, eq=False, repr=False)
class NetBenefitDisplay(FromEstimators):
    """Decision curves of one or more models, with treating all and treating none.

    At every threshold of the risk: true positives per case, less what the false alarms are worth at
    that threshold. A model is worth using where its curve is above both grey lines. Made by
    `from_predictions`, `from_estimator` or `from_estimators`.

    Parameters
    ----------
    thresholds : ndarray of shape (n_points,)
    net_benefit : dict of str to ndarray of shape (n_points,)
        By name of the model.
    treat_all : ndarray of shape (n_points,)
        Net benefit of flagging every case; that of flagging none is zero.
    prevalence : float
        Share of the positive class.
    threshold : float, optional
        One that matters, such as that which costs imply; a vertical line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import NetBenefitDisplay
    >>> y, p = [0, 0, 1, 0, 1], [0.1, 0.3, 0.4, 0.6, 0.9]
    >>> display = NetBenefitDisplay.from_predictions(y, {"a": p})
    >>> float(display.net_benefit["a"][display.thresholds == 0.5].round(6)[0])
    0.0
    """

    thresholds: Floats
    net_benefit: Mapping[str, Floats]
    treat_all: Floats
    prevalence: float
    threshold: float | None = None

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        n_points: int = 99,
        threshold: float | None = None,
        prevalence: float | None = None,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> NetBenefitDisplay:
        """Draw labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_score : array-like, or dict of str to array-like
            Probabilities of one model, or of several by their names.
        n_points : int, default=99
            Thresholds, evenly between 0 and 1.
        threshold : float, optional
            A threshold to mark, between 0 and 1, such as `fragility.implied_threshold` of costs.
        prevalence, labels, pos_label, sample_weight
            As in `fragility.net_benefit`.
        name : str, optional
            Name of the model, if it is one.
        ax : matplotlib Axes, optional

        Returns
        -------
        NetBenefitDisplay
        """
        pyplot()
        n_points = check_count(n_points, "n_points", 2)
        if threshold is not None:
            threshold = check_number(threshold, "threshold")
            require(0.0 < threshold < 1.0, f"threshold must be between 0 and 1; got {threshold!r}.")
        at = np.arange(1, n_points + 1) / (n_points + 1)
        curves, share = {}, 0.0
        for key, scores in by_name(y_score, name).items():
            options = labels, pos_label, sample_weight, prevalence
            found = two_class_outcomes(y_true, scores, *options, probabilities=True)
            points = operating_points(found.others, found.happened, at).points
            curves[key], share = points.net_benefit, found.prevalence
        display = cls(
            thresholds=at,
            net_benefit=curves,
            treat_all=share - (1.0 - share) * odds(at),
            prevalence=share,
            threshold=threshold,
        )
        return display.plot(ax)

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        ax.axhline(0.0, color=GREY, linewidth=1.2, label="treat none")
        ax.plot(self.thresholds, self.treat_all, color=GREY, linestyle=":", label="treat all")
        for place, (name, values) in enumerate(self.net_benefit.items()):
            ax.plot(self.thresholds, values, linewidth=1.8, label=shortened(name), **style(place))
        if self.threshold is not None:
            ax.axvline(
                self.threshold,
                color=GREY,
                linestyle="--",
                linewidth=1.0,
                label=f"threshold {number(self.threshold)}",
            )
        highest = max(float(values.max()) for values in self.net_benefit.values())
        highest = max(highest, float(self.treat_all.max()), 1e-3)
        ax.set_ylim(-0.25 * highest, 1.08 * highest)  # where treating all is harmful says little
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel("threshold: treat where the risk is at least this")
        ax.set_ylabel("net benefit per case")
        ax.set_title(f"Decision curve,  prevalence {100 * self.prevalence:.3g} %", loc="left")
        ax.legend(frameon=False, loc="upper right")
        tidy(ax)
