"""The ranking errors of a classifier: their density, and their tail under its bound."""

from __future__ import annotations

from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._labels import listed
from ..._validation import LabelledScores, check_labelled_scores, check_target
from ...index.errors import Pair, RankingErrors
from ...index.tails import ErrorTail
from ...moments import Floats
from ..functions import Labels
from .figure import (
    BACKED,
    GREY,
    RIGHT,
    WRONG,
    estimator_probabilities,
    new_axes,
    number,
    percentage,
    pyplot,
    shortened,
    summary,
    tidy,
)

__all__ = ["RankingErrorDisplay"]

#: Up to this many errors the tail is drawn with every step it has.
_FEW_ERRORS = 10_000
_TAIL_POINTS = 101


class RankingErrorDisplay:
    r"""Density of the ranking errors, and their tail under the bound that FI gives.

    Left: how the ranking errors :math:`\varepsilon = p(x^-) - p(x^+)` of all pairs spread, with
    those above the target shaded. Right: the share of errors of at least :math:`\theta`, and the
    bound :math:`e^{-(\theta - \tau)/FI}`. Exact: the pairs are counted without being formed. Made
    by `from_predictions` or `from_estimator`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins; one of them is the target. A bin holds its upper edge.
    density : ndarray of shape (n_bins,)
        Density of the errors in each bin; it integrates to one.
    share_above : float
        Share of the errors above the target.
    theta : ndarray
        Where the tail is known.
    tail : ndarray
        Share of errors of at least each `theta`.
    fragility, ratio, auc : float
        The index at `target`, its scale-free ratio (at target 0), and the area under the ROC curve.
    target : float
    steps : bool
        Whether `theta` has every error that occurs, so that the tail is constant in between.
    error_name : str
        What the ranking error is, for the axis.
    name : str, optional
        Name of the model.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import RankingErrorDisplay
    >>> y, p = [1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8]
    >>> display = RankingErrorDisplay.from_predictions(y, p)
    >>> display.share_above  # of the four pairs, one is ranked wrongly
    0.25
    """

    def __init__(
        self,
        *,
        edges: Floats,
        density: Floats,
        share_above: float,
        theta: Floats,
        tail: Floats,
        fragility: float,
        ratio: float,
        auc: float,
        target: float = 0.0,
        steps: bool = False,
        error_name: str = "ranking error ε = p(x⁻) − p(x⁺)",
        name: str | None = None,
    ) -> None:
        self.edges = edges
        self.density = density
        self.share_above = share_above
        self.theta = theta
        self.tail = tail
        self.fragility = fragility
        self.ratio = ratio
        self.auc = auc
        self.target = target
        self.steps = steps
        self.error_name = error_name
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        pair: tuple[Any, Any] | None = None,
        n_bins: int = 60,
        labels: Labels = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        target: float = 0.0,
        name: str | None = None,
        ax: Any = None,
    ) -> RankingErrorDisplay:
        """Draw the ranking errors of labels and scores.

        Parameters
        ----------
        y_true, y_score, labels, pos_label, sample_weight, target
            As in `fragility.fragility_index`.
        pair : (label, label), optional
            Needed for more than two classes: (scored as, true), the samples of the second class
            whose scores as the first are compared with those of the first class itself.
        n_bins : int, default=60
            Bins of the density.
        name : str, optional
            Name of the model, for the title.
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        RankingErrorDisplay
        """
        pyplot()
        target = check_target(target)
        if n_bins < 2:
            raise ValueError(f"n_bins must be 2 or more; got {n_bins!r}.")
        data = check_labelled_scores(
            y_true, y_score, labels=labels, pos_label=pos_label, sample_weight=sample_weight
        )
        display = cls._measure(data, _chosen_pair(data, pair), target, n_bins, name)
        return display.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pair: tuple[Any, Any] | None = None,
        n_bins: int = 60,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        target: float = 0.0,
        name: str | None = None,
        ax: Any = None,
    ) -> RankingErrorDisplay:
        """Draw the ranking errors of a fitted classifier with `predict_proba`."""
        pyplot()
        proba, classes = estimator_probabilities(estimator, X)
        return cls.from_predictions(
            y,
            proba,
            pair=pair,
            n_bins=n_bins,
            labels=classes,
            pos_label=pos_label,
            sample_weight=sample_weight,
            target=target,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
        )

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def _measure(
        cls, data: LabelledScores, pair: Pair, target: float, n_bins: int, name: str | None
    ) -> RankingErrorDisplay:
        errors = RankingErrors(data)
        ((_, at_target),) = errors.solve([pair], target)
        ((_, at_zero),) = errors.solve([pair], 0.0)
        tail, factor = ErrorTail(*errors.groups(pair)), errors.factor(pair)
        scaled_target = target * factor
        edges = _bin_edges(tail, scaled_target, n_bins)
        # Differences of round scores may miss an edge by rounding: they belong to the bin below it.
        # At the target itself the comparison is exact.
        reach = np.where(edges == scaled_target, edges, edges + 1e-9 * np.diff(edges)[0])
        above = np.array([tail.share_above(edge) for edge in reach])
        theta, reached = _tail_curve(tail, scaled_target)
        return cls(
            edges=edges / factor,
            density=(above[:-1] - above[1:]) / np.diff(edges) * factor,
            share_above=tail.share_above(scaled_target),
            theta=theta / factor,
            tail=reached,
            fragility=at_target.fragility,
            ratio=at_zero.ratio,
            auc=1.0 - 0.5 * (tail.share_above(0.0) + tail.share_from(0.0)),
            target=target,
            steps=tail.n_distinct_pairs <= _FEW_ERRORS,
            error_name=_error_name(data, pair),
            name=name,
        )

    def plot(self, ax: Any = None) -> RankingErrorDisplay:
        """Draw on two axes, those given or new ones.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, optional

        Returns
        -------
        RankingErrorDisplay
        """
        pyplot()
        axes = new_axes(2, 10.5, 4.0) if ax is None else np.ravel(np.asarray(ax, dtype=object))
        if axes.size != 2:
            raise ValueError(
                f"ax must hold two axes, for the density and for the tail; got {axes.size}. "
                "Give those of plt.subplots(1, 2)."
            )
        self.axes_, self.figure_ = axes, axes[0].figure
        self._plot_density(axes[0])
        self._plot_tail(axes[1])
        return self

    def _plot_density(self, ax: Any) -> None:
        past_target = self.edges[:-1] >= self.target
        for part, colour in ((~past_target, RIGHT), (past_target, WRONG)):
            if part.any():
                edges = np.append(self.edges[:-1][part], self.edges[1:][part][-1])
                ax.stairs(self.density[part], edges, fill=True, color=colour, alpha=0.75)
        ax.axvline(self.target, color=GREY, linewidth=1.0)
        what = "ranked wrongly" if self.target == 0.0 else "above the target"
        ax.text(
            0.985,
            0.97,
            f"{percentage(self.share_above)} of pairs\n{what}",
            transform=ax.transAxes,
            ha="right",
            va="top",
            color=WRONG,
            weight="bold",
            bbox=BACKED,
        )
        # Room for the words above the bars of the shaded part.
        ax.set_ylim(0.0, 1.25 * float(self.density.max()))
        ax.set_xlabel(self.error_name)
        ax.set_ylabel("density of pairs")
        ax.set_title(self.name or "Ranking errors", loc="left")
        tidy(ax)

    def _plot_tail(self, ax: Any) -> None:
        seen = self.tail > 0.0
        ax.plot(
            self.theta[seen],
            self.tail[seen],
            color=WRONG,
            linewidth=2.0,
            drawstyle="steps-pre" if self.steps else "default",
            marker="o" if np.count_nonzero(seen) < 12 else "",
            label="pairs in the data",
        )
        past_target = self.theta[self.theta >= self.target]
        if self.fragility == 0.0:
            ax.axvline(self.target, color=GREY, linestyle="--", label="FI = 0: none past this line")
        else:
            reach = np.linspace(self.target, float(self.theta.max()), _TAIL_POINTS)
            reach = np.union1d(reach, past_target)
            exponent = (self.target - reach) / self.fragility
            with np.errstate(under="ignore"):
                bound = np.exp(exponent)
            infinite = self.fragility == inf
            label = "FI = ∞: no bound" if infinite else f"bound exp(−{self._above()}/FI)"
            ax.plot(reach, bound, color=GREY, linestyle="--", label=label)
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(lambda *_: "")  # powers of ten say enough
        lowest = float(self.tail[seen].min()) if seen.any() else 1.0
        ax.set_ylim(min(0.5 * lowest, 0.05), 2.0)
        ax.set_xlabel("θ")
        ax.set_ylabel("share of pairs with ε ≥ θ")
        ax.set_title(summary(self.fragility, self.ratio, self.auc, self.target), loc="left")
        ax.legend(frameon=False, loc="best")
        tidy(ax)

    def _above(self) -> str:
        if self.target == 0.0:
            return "θ"
        sign = "−" if self.target > 0.0 else "+"
        return f"(θ {sign} {number(abs(self.target))})"


def _chosen_pair(data: LabelledScores, pair: tuple[Any, Any] | None) -> Pair:
    if pair is None:
        if not data.is_binary:
            raise ValueError(
                f"There are {data.labels.size} classes ({listed(data.labels)}): choose two with "
                "pair=(scored_as, true)."
            )
        return Pair(data.positive, (1 - data.positive,))
    names = data.labels.tolist()
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"pair must be two different labels, (scored_as, true); got {pair!r}.")
    unknown = [label for label in pair if label not in names]
    if unknown:
        raise ValueError(
            f"pair names {listed(unknown)}, but the classes are {listed(data.labels)}."
        )
    scored_as, true = (names.index(label) for label in pair)
    for index in (scored_as, true):
        if data.support[index] == 0:
            raise ValueError(f"pair names {names[index]!r}, which has no samples.")
    if data.is_binary:  # one problem, whichever way it is named
        return Pair(data.positive, (1 - data.positive,))
    return Pair(scored_as, (true,))


def _error_name(data: LabelledScores, pair: Pair) -> str:
    if data.is_binary:
        return "ranking error ε = p(x⁻) − p(x⁺)"
    scored_as, true = data.labels[pair.positive], data.labels[pair.negatives[0]]
    scored_as, true = shortened(scored_as), shortened(true)
    return f"ranking error ε: score as {scored_as}\nof a true {true} − of a true {scored_as}"


def _bin_edges(tail: ErrorTail, target: float, n_bins: int) -> Floats:
    """Bins of equal width over all errors and the target, one edge on it, the lowest below all."""
    low, high = min(tail.smallest, target), max(tail.largest, target)
    if high == low:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / n_bins
    first = ceil((low - target) / width) - 1
    last = max(ceil((high - target) / width), first + 1)
    return target + width * np.arange(first, last + 1, dtype=np.float64)


def _tail_curve(tail: ErrorTail, target: float) -> tuple[Floats, Floats]:
    """Points of the tail, from the target on; if no error is past it, over all errors."""
    low = target if tail.largest > target else tail.smallest
    if tail.n_distinct_pairs > _FEW_ERRORS:
        theta = np.linspace(low, max(tail.largest, target), _TAIL_POINTS, dtype=np.float64)
        return theta, np.array([tail.share_from(t) for t in theta])
    errors, (shares,) = tail.distinct_errors()
    rounding = 1e-12 * max(abs(tail.smallest), abs(tail.largest))
    from_low, past_low = errors >= low - rounding, errors > low + rounding
    reached = np.cumsum(shares[::-1])[::-1]
    return np.append(low, errors[past_low]), np.append(shares[from_low].sum(), reached[past_low])
