"""The ranking errors of a classifier: their density, and their tail under its bound."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._labels import listed
from ..._parameters import check_count, check_number
from ..._summary import percent
from ..._typing import Floats, Labels
from ..._validation import LabelledScores, check_labelled_scores
from ...figures.tails import ErrorTail
from ...index.errors import Pair, RankingErrors
from .error_curves import error_curves
from .estimator import FromEstimator
from .figure import (
    GREY,
    RIGHT,
    WRONG,
    number,
    pyplot,
    shortened,
    summary,
    tidy,
    write_note,
)

#: What the ranking error of two classes is, for an axis.
_BINARY_ERROR = "ranking error ε = p(x⁻) − p(x⁺)"


@dataclass(kw_only=True, eq=False, repr=False)
class RankingErrorDisplay(FromEstimator):
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

    _grid = (1, 2)
    _size = (10.5, 4.0)
    _axes_for = ", for the density and for the tail"

    edges: Floats
    density: Floats
    share_above: float
    theta: Floats
    tail: Floats
    fragility: float
    ratio: float
    auc: float
    target: float = 0.0
    steps: bool = False
    error_name: str = _BINARY_ERROR
    name: str | None = None

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
        target, n_bins = check_number(target, "target"), check_count(n_bins, "n_bins", 2)
        data = check_labelled_scores(y_true, y_score, labels, pos_label, sample_weight)
        display = cls._measure(data, _chosen_pair(data, pair), target, n_bins, name)
        return display.plot(ax)

    @classmethod
    @np.errstate(over="ignore", under="ignore")
    def _measure(
        cls, data: LabelledScores, pair: Pair, target: float, n_bins: int, name: str | None
    ) -> RankingErrorDisplay:
        errors = RankingErrors(data)
        ((_, at_target),) = errors.solve([pair], target)
        ((_, at_zero),) = errors.solve([pair], 0.0)
        curves = error_curves(
            ErrorTail.of(errors.groups(pair)), errors.factor(pair), target, n_bins
        )
        return cls(
            **curves._asdict(),
            fragility=at_target.fragility,
            ratio=at_zero.ratio,
            target=target,
            error_name=_error_name(data, pair),
            name=name,
        )

    def _draw(self, axes: Any) -> None:
        self._plot_density(axes[0])
        self._plot_tail(axes[1])

    def _plot_density(self, ax: Any) -> None:
        past_target = self.edges[:-1] >= self.target
        for part, colour in ((~past_target, RIGHT), (past_target, WRONG)):
            if part.any():
                edges = np.append(self.edges[:-1][part], self.edges[1:][part][-1])
                ax.stairs(self.density[part], edges, fill=True, color=colour, alpha=0.75)
        ax.axvline(self.target, color=GREY, linewidth=1.0)
        what = "ranked wrongly" if self.target == 0.0 else "above the target"
        note = f"{percent(self.share_above)} of pairs\n{what}"
        write_note(ax, 0.985, 0.97, note, WRONG, ha="right")
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
            reach = np.linspace(self.target, float(self.theta.max()), 101)
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
    """The pair (scored as, true), or the only one that two classes have."""
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
    """What the ranking error of a pair is, for an axis."""
    if data.is_binary:
        return _BINARY_ERROR
    scored_as, true = data.labels[pair.positive], data.labels[pair.negatives[0]]
    scored_as, true = shortened(scored_as), shortened(true)
    return f"ranking error ε: score as {scored_as}\nof a true {true} − of a true {scored_as}"
