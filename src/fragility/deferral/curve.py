"""What every threshold of confidence costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_threshold
from .._summary import Summary, SummaryRow, percent
from .._typing import Floats, Mask
from .._validation import LabelledScores, check_labelled_probabilities
from ..figures.confidence import predictions
from ..ordered import running_totals, sums_by_value
from .costs import Costs, chow_threshold

if TYPE_CHECKING:
    from .display import DeferralDisplay

#: Costs and shares that differ by no more than this, relative to their scale, are equal.
_ROUNDING = 1e-12


class OperatingPoint(NamedTuple):
    """What happens at one threshold: cost per case, share decided alone, errors among these."""

    threshold: float
    cost: float
    automation_rate: float
    error_rate: float


@dataclass(frozen=True, eq=False, repr=False)
class DeferralCurve(Summary):
    """Cost of deciding alone above a confidence and asking a human below, at every threshold.

    Made by `deferral_curve`. Between two thresholds nothing changes, so these are all there is.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Ascending: 0, where the model decides everything, and each distinct confidence. A case is
        decided alone if its confidence is above the threshold.
    cost : ndarray of shape (n_thresholds,)
        Mean cost of a case.
    automation_rate : ndarray of shape (n_thresholds,)
        Share of the cases that the model decides alone.
    error_rate : ndarray of shape (n_thresholds,)
        Share of these that are wrong; NaN where there are none.
    allowed : ndarray of bool of shape (n_thresholds,)
        Whether no more cases need a review than `capacity` says.
    n_samples : int
        Cases of positive weight.
    costs : Costs
    """

    thresholds: Floats
    cost: Floats
    automation_rate: Floats
    error_rate: Floats
    allowed: Mask
    n_samples: int
    costs: Costs

    def best(self) -> OperatingPoint:
        """The cheapest threshold that is allowed; of equally cheap ones the lowest.

        Chosen and measured on the same cases, so its cost is too good to be true: a little with
        many cases, much with few. `fragility.best_policy` has an honest one, and two thresholds.

        Returns
        -------
        OperatingPoint
            Named tuple (threshold, cost, automation_rate, error_rate).
        """
        cost = np.where(self.allowed, self.cost, np.inf)
        equal = float(cost.min()) + _ROUNDING * float(self.cost.max())
        return self._point(int((cost <= equal).argmax()))

    def at(self, threshold: float) -> OperatingPoint:
        """What happens at any threshold from 0 to 1, a candidate or not, allowed or not.

        Parameters
        ----------
        threshold : float

        Returns
        -------
        OperatingPoint
            Named tuple (threshold, cost, automation_rate, error_rate).
        """
        value = check_threshold(threshold)
        return self._point(self._place(value))._replace(threshold=value)

    def _place(self, threshold: float) -> int:
        """The last candidate up to a threshold, which costs what that candidate does."""
        return int(np.searchsorted(self.thresholds, threshold, side="right")) - 1

    def _point(self, place: int) -> OperatingPoint:
        curves = self.thresholds, self.cost, self.automation_rate, self.error_rate
        return OperatingPoint(*(float(curve[place]) for curve in curves))

    def plot(self, ax: Any = None, name: str | None = None) -> DeferralDisplay:
        """Draw cost, automation and errors against the threshold.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Name of the model.

        Returns
        -------
        DeferralDisplay
        """
        from .display import DeferralDisplay  # which needs this module

        return DeferralDisplay.from_curves({name or "model": self}, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: the best point, then the whole curve; error rates may be NaN."""
        curves = ("thresholds", "cost", "automation_rate", "error_rate", "allowed")
        return {
            "best": self.best()._asdict(),
            "chow_threshold": chow_threshold(self.costs),
            "n_samples": self.n_samples,
            **self.costs.to_dict(),
            **{name: getattr(self, name).tolist() for name in curves},
        }

    def _rows(self) -> Iterator[SummaryRow]:
        best, everything, nothing = self.best(), self._point(0), self._point(-1)
        yield "best threshold", f"{best.threshold:.4g}", "the model decides alone above it"
        yield "cost per case", f"{best.cost:.4g}", "on the cases that chose it: see best_policy"
        yield "automated", percent(best.automation_rate), errors_in_words(best.error_rate)
        yield "automate all", f"{everything.cost:.4g}", "per case"
        yield "review all", f"{nothing.cost:.4g}", f"per case{self._beyond(1.0)}"
        chow = chow_threshold(self.costs)
        if not isnan(chow):
            cost = f"costs {self.at(chow).cost:.4g} per case{self._beyond(chow)}"
            yield "Chow's rule", f"{chow:.4g}", cost
        yield "cases", str(self.n_samples), f"{self.thresholds.size} thresholds"

    def _beyond(self, threshold: float) -> str:
        capacity = self.costs.capacity
        if capacity is None or self.allowed[self._place(threshold)]:
            return ""
        return f", beyond the capacity of {percent(capacity)}"


def errors_in_words(error_rate: float) -> str:
    """The error rate among automated cases in words; empty if none is automated."""
    return "" if isnan(error_rate) else f"of these {percent(error_rate)} wrong"


def deferral_curve(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    error_cost: ArrayLike,
    review_cost: float = 1.0,
    capacity: float | None = None,
    reviewer_error: Any = 0.0,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    pos_label: Any = None,
) -> DeferralCurve:
    r"""Cost of automating predictions above a confidence and reviewing the others.

    With confidence :math:`q = \max_c p_c`, a threshold :math:`\delta` costs on average

    .. math:: E[C_{man} 1(q \le \delta) + C_{err} 1(q > \delta, \hat y \ne y)].

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true classes.
    proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predicted probabilities: of the positive class, or of every class. Of cases that the model
        was not fitted to.
    error_cost : float, (n_classes, n_classes) or (n_samples,) array-like
        Cost of a wrong prediction that nobody looked at: one number, a matrix (true × predicted
        class, in the order of the labels), a DataFrame with the classes as index (true) and columns
        (predicted), or one number for each case.
    review_cost : float, default=1.0
        Cost of having a human look at a case, in the same currency.
    capacity : float, optional
        Largest share of the cases (by weight), from 0 to 1, that humans can review.
    reviewer_error : float, mapping or array-like, default=0.0
        Share of the reviewed cases that the human gets wrong, too, at the cost of an error: one
        number, one for each class (in the order of the labels or as a Series with the classes as
        index), or one for each case.
    sample_weight : array-like of shape (n_samples,), optional
        A case of weight 2 counts as two cases.
    labels : sequence, optional
        All classes, in the order of the columns; by default the sorted classes of `y_true`.
    pos_label : label, optional
        The class that a single column is about; by default the second of two, without `labels`
        the later one of ordered categories.

    Returns
    -------
    DeferralCurve

    Examples
    --------
    >>> from fragility import deferral_curve
    >>> y, p = [1, 1, 0, 0, 1], [0.6, 0.95, 0.1, 0.7, 0.8]
    >>> curve = deferral_curve(y, p, error_cost=10)
    >>> curve.best()
    OperatingPoint(threshold=0.7, cost=0.4, automation_rate=0.6, error_rate=0.0)
    >>> curve.at(0.6).cost
    2.2
    """
    data = check_labelled_probabilities(
        y_true, proba, labels, pos_label, sample_weight, name="proba"
    )
    return curve_of(data, Costs(error_cost, review_cost, capacity, reviewer_error))


def curve_of(data: LabelledScores, costs: Costs) -> DeferralCurve:
    """Curve of checked predictions."""
    n_classes = data.labels.size
    costs = costs.checked(n_classes, data.codes.size, data.labels.tolist())
    made = predictions(data)
    # Rounding may push a probability above one, but no threshold lies there.
    confidence, weights = np.minimum(made.confidence, 1.0), made.weights_or_ones
    priced = costs.of_cases(n_classes, made.true, made.predicted, made.rows)
    values, sums = sums_by_value(
        confidence,
        weights,
        weights * made.wrong,
        weights * priced.alone,
        weights * priced.reviewed,
    )
    # A case is reviewed from the threshold at its own confidence on: at 0 none is.
    thresholds = np.concatenate(([0.0], values))
    reviewed, _, _, review_costs = (running_totals(part) for part in sums)
    # Summed from the top, so that nothing is left at the last threshold.
    automated, mistakes, alone_costs = (running_totals(part[::-1])[::-1] for part in sums[:3])
    with np.errstate(invalid="ignore"):
        error_rate = mistakes / automated
    most = 1.0 if costs.capacity is None else costs.capacity
    return DeferralCurve(
        thresholds=thresholds,
        cost=(review_costs + alone_costs) / float(weights.sum()),
        automation_rate=automated / automated[0],
        error_rate=error_rate,
        allowed=reviewed <= (most + _ROUNDING) * reviewed[-1],
        n_samples=weights.size,
        costs=costs,
    )
