"""A picture of what every threshold costs, for several models at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Floats, Indices
from ..metrics.displays.estimator import FromEstimator, named_models, probabilities
from ..metrics.displays.figure import GREY, number, pyplot, shortened, style, tidy
from .costs import chow_threshold
from .curve import DeferralCurve, deferral_curve

#: Points that a line is drawn with; more are not seen.
_MOST_POINTS = 4_000
_FAINT = 0.25


@dataclass(eq=False, repr=False)
class DeferralDisplay(FromEstimator):
    """Cost, automation and errors against the threshold of confidence, for one or more models.

    Above: the cost per case; a dot is the best threshold that is allowed, a square the cost if the
    model decided everything, the dashed grey line Chow's rule, the dotted one the cost if humans
    did. Below: the share of cases that is automated, and, thin and on the right scale, the share of
    those that is wrong. Where the capacity does not allow a threshold, lines are faint. Made by
    `from_predictions`, `from_estimator`, `from_estimators` or `from_curves`.

    Parameters
    ----------
    curves : dict of str to DeferralCurve
        By name of the model.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        Cost; automation (the axes of the errors are its twin, `error_axes_`).
    error_axes_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import DeferralDisplay
    >>> y = [1, 1, 0, 0, 1]
    >>> models = {"a": [0.6, 0.95, 0.1, 0.7, 0.8], "b": [0.9, 0.8, 0.4, 0.2, 0.3]}
    >>> display = DeferralDisplay.from_predictions(y, models, error_cost=10)
    >>> display.curves["b"].best().threshold
    0.7
    """

    _grid = (2, 1)
    _heights = (3.0, 2.0)
    _share_x = True
    _size = (7.2, 6.6)

    curves: Mapping[str, DeferralCurve]

    @classmethod
    def from_curves(cls, curves: Mapping[str, DeferralCurve], *, ax: Any = None) -> DeferralDisplay:
        """Draw curves that were made by `fragility.deferral_curve`.

        Parameters
        ----------
        curves : dict of str to DeferralCurve
            By name of the model.
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DeferralDisplay
        """
        if not isinstance(curves, Mapping) or not curves:
            raise ValueError(
                f"curves must be a dict of names and curves, at least one; got {curves!r}."
            )
        for name, curve in curves.items():
            if not isinstance(curve, DeferralCurve):
                raise ValueError(
                    f"curves[{name!r}] must be a DeferralCurve; got {type(curve).__name__}. Give "
                    "probabilities to from_predictions."
                )
        return cls({str(name): curve for name, curve in curves.items()}).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        name: str | None = None,
        ax: Any = None,
        **costs: Any,
    ) -> DeferralDisplay:
        """Draw labels and predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        proba : array-like, or dict of str to array-like
            Probabilities of one model, or of several by their names.
        name : str, optional
            Name of the model, if it is one.
        ax : sequence of two matplotlib Axes, optional
        **costs
            `error_cost` and the other options of `fragility.deferral_curve`.

        Returns
        -------
        DeferralDisplay
        """
        pyplot()
        models = proba if isinstance(proba, Mapping) else {name or "model": proba}
        curves = {key: deferral_curve(y_true, p, **costs) for key, p in models.items()}
        return cls.from_curves(curves, ax=ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any] | Iterable[Any],
        X: Any,
        y: ArrayLike,
        *,
        ax: Any = None,
        **costs: Any,
    ) -> DeferralDisplay:
        """Draw the predictions of fitted classifiers, which must not have been fitted to them.

        Parameters
        ----------
        estimators : dict of str to classifier, or list of classifiers
            Those of a list are named by their classes.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        ax : sequence of two matplotlib Axes, optional
        **costs
            `error_cost` and the other options of `fragility.deferral_curve`, but for `labels`.

        Returns
        -------
        DeferralDisplay
        """
        pyplot()
        models = named_models(estimators)
        curves = {
            name: deferral_curve(
                y, probabilities(model, X), labels=np.asarray(model.classes_), **costs
            )
            for name, model in models.items()
        }
        return cls.from_curves(curves, ax=ax)

    def _draw(self, axes: Any) -> None:
        cost, automation = axes
        errors = automation.twinx()
        left = min(float(curve.thresholds[1]) for curve in self.curves.values())
        left = max(0.0, np.floor(20.0 * left - 0.2) / 20.0)
        for place, (name, curve) in enumerate(self.curves.items()):
            own = style(place)
            best = curve.best()
            label = f"{shortened(name)}: {number(best.cost)} at {number(best.threshold)}"
            _steps(cost, curve, curve.cost, left, own, width=1.8, label=label)
            _steps(automation, curve, 100.0 * curve.automation_rate, left, own, width=1.8)
            _steps(errors, curve, 100.0 * curve.error_rate, left, own, width=0.9)
            marker = {"color": own["color"], "linestyle": "none", "clip_on": False, "zorder": 4}
            cost.plot([left], [curve.cost[0]], "s", fillstyle="none", markersize=6, **marker)
            cost.plot([max(best.threshold, left)], [best.cost], "o", markersize=7, **marker)
        self._plot_levels(cost, automation, left)
        self._finish(cost, automation, errors, left)
        self.error_axes_ = errors

    def _plot_levels(self, cost: Any, automation: Any, left: float) -> None:
        """Draw Chow's threshold and the cost of full review, each once if all models agree."""
        reviewed = {round(float(curve.cost[-1]), 12) for curve in self.curves.values()}
        for level in sorted(reviewed):
            cost.axhline(level, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
        rules = {chow_threshold(curve.costs) for curve in self.curves.values()}
        for chow in sorted(rule for rule in rules if not isnan(rule)):
            for ax in (cost, automation):
                ax.axvline(max(chow, left), color=GREY, linestyle="--", linewidth=1, zorder=1)

    def _finish(self, cost: Any, automation: Any, errors: Any, left: float) -> None:
        cost.set_xlim(left, 1.0)
        automation.set_xlim(left, 1.0)
        highest = max(float(curve.cost.max()) for curve in self.curves.values())
        cost.set_ylim(0.0, 1.05 * highest if highest > 0.0 else 1.0)
        automation.set_ylim(0.0, 103.0)
        rates = np.concatenate([curve.error_rate[:-1] for curve in self.curves.values()])
        worst = 100.0 * float(rates.max(initial=0.0))
        errors.set_ylim(0.0, 2.0 * worst if worst > 0.0 else 1.0)
        cost.set_ylabel("cost per case")
        automation.set_ylabel("automated, % (thick)")
        errors.set_ylabel("wrong of these, % (thin)")
        automation.set_xlabel("threshold: the model decides alone above this confidence")
        _legends(cost, any(not isnan(chow_threshold(c.costs)) for c in self.curves.values()))
        for ax in (cost, automation):
            tidy(ax)
        errors.spines["top"].set_visible(False)


def _legends(ax: Any, with_chow: bool) -> None:
    """Above the picture: the models on the left, what the signs are on the right."""
    look = {"frameon": False, "fontsize": 9, "title_fontsize": 9, "borderaxespad": 0.3}
    lines, names = ax.get_legend_handles_labels()
    signs: list[tuple[str, dict[str, Any]]] = [
        ("best threshold", {"marker": "o", "linestyle": "none"}),
        ("automate all", {"marker": "s", "fillstyle": "none", "linestyle": "none"}),
        ("review all", {"linestyle": ":", "linewidth": 1.2}),
    ]
    if with_chow:
        signs.append(("Chow's rule", {"linestyle": "--", "linewidth": 1}))
    handles = [ax.plot([], [], color=GREY, **sign)[0] for _, sign in signs]
    words = [word for word, _ in signs]
    explained = ax.legend(
        handles, words, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, **look
    )
    ax.legend(
        lines,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        title="lowest cost, and its threshold",
        alignment="left",
        **look,
    )
    # The layout makes room for the legend of the axes alone: it must be the taller one.
    ax.add_artist(explained)


def _steps(
    ax: Any,
    curve: DeferralCurve,
    heights: Floats,
    left: float,
    style: dict[str, Any],
    *,
    width: float,
    label: str | None = None,
) -> None:
    """A line that holds each height up to the next threshold; faint where it is not allowed."""
    shown = _shown(curve.thresholds)
    x, y = np.append(np.maximum(curve.thresholds[shown], left), 1.0), heights[shown]
    y, allowed = np.append(y, y[-1]), np.append(curve.allowed[shown], curve.allowed[-1])
    drawn = {"drawstyle": "steps-post", "linewidth": width, **style}
    if not allowed.all():
        first = int(np.argmin(allowed))
        ax.plot(x[first - 1 :], y[first - 1 :], alpha=_FAINT, **drawn)
        x, y = x[: first + 1], np.append(y[:first], y[first - 1])
    ax.plot(x, y, label=label, **drawn)


def _shown(thresholds: Floats) -> Indices:
    """Places of as many thresholds as can be seen, the first and the last among them."""
    if thresholds.size <= _MOST_POINTS:
        return np.arange(thresholds.size)
    by_rank = np.linspace(0, thresholds.size - 1, _MOST_POINTS // 2).astype(np.intp)
    grid = np.linspace(thresholds[1], thresholds[-1], _MOST_POINTS // 2)
    by_value = np.searchsorted(thresholds, grid, side="right") - 1
    return np.union1d(by_rank, by_value)
