r"""How many cases an evaluation needs, from cases that are there already.

Every figure of a report is, to first order, a sum of influences of independent cases, so its
standard error falls as :math:`1/\sqrt n`. The interval of a small sample is wider than the standard
error says (mistakes may be missing from it); so a wanted width is checked on the pilot repeated as
often as the plan says, which is a sample of that size with the same cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ._labels import check_clusters, listed
from ._parameters import check_choice, check_confidence, check_number, check_positive, require
from ._typing import Integers, Labels
from ._validation import LabelledScores
from .figures.spread import MOVED
from .measured import FIGURES
from .report import Report
from .report.inputs import checked_model, named_predictions
from .report.parts import ModelReport

#: A pilot needs so many cases of each class, or its standard errors are mere chance.
LEAST_PILOT = 10
#: Larger samples are not made up from the pilot: there the standard error says it all.
_LARGEST_TRIAL = 200_000
#: More cases than this are no plan.
_MOST_CASES = 1e12


@dataclass(frozen=True)
class EvaluationPlan:
    """About how many cases an evaluation needs.

    Made by `fragility.plan_evaluation`.

    Attributes
    ----------
    n_cases : int
        Cases in all, with the classes as frequent as in the pilot; no fewer than ten of each class,
        with which nothing can be told.
    n_by_class : mapping
        The same by class.
    figure : str
    value : float
        The figure of the pilot (of its first model).
    width : float or None
        Wanted distance of the limits of its interval.
    difference : float or None
        Wanted difference of two models, to be found with probability `power`.
    confidence, power : float
    n_pilot : int
        Cases of the pilot, of positive weight.
    pilot_width : float or None
        Width of the interval of the pilot; infinite if it has no upper limit.
    pilot_difference : float or None
        The difference that as many cases as the pilot has would find.
    assumption : str
        What had to be assumed of a second model; empty if there was one.
    """

    n_cases: int
    n_by_class: Mapping[Any, int]
    figure: str
    value: float
    width: float | None
    difference: float | None
    confidence: float
    power: float
    n_pilot: int
    pilot_width: float | None
    pilot_difference: float | None
    assumption: str = ""

    @property
    def reached(self) -> bool:
        """Whether the pilot is large enough itself."""
        return self.n_pilot >= self.n_cases

    def __str__(self) -> str:
        rarest = min(self.n_by_class, key=lambda label: self.n_by_class[label])
        cases = f"About {self.n_cases:,} cases ({self.n_by_class[rarest]:,} of them {rarest!r})"
        title, level = FIGURES[self.figure].title, f"{100 * self.confidence:g} %"
        if self.width is not None and self.pilot_width is not None:
            wanted = f"give a {level} interval of the {title} of width {self.width:g}"
            here = "an infinite one" if self.pilot_width == inf else f"{self.pilot_width:.2g}"
        else:
            assert self.pilot_difference is not None
            wanted = (
                f"find a difference of {self.difference:g} in the {title} with probability "
                f"{self.power:g} at {level} confidence{self.assumption}"
            )
            here = f"one of {self.pilot_difference:.2g}"
        verb = "give" if self.width is not None else "find"
        told = f"{cases} {wanted}; the {self.n_pilot:,} here {verb} {here}"
        return f"{told}, so that they are enough." if self.reached else f"{told}."


def plan_evaluation(
    y_true: ArrayLike,
    proba: ArrayLike | Mapping[str, ArrayLike],
    *,
    width: float | None = None,
    difference: float | None = None,
    figure: str = "fragility_index",
    confidence: float = 0.95,
    power: float = 0.8,
    correlation: float = 0.5,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> EvaluationPlan:
    r"""About how many cases give a wanted interval, or find a wanted difference of two models.

    From the influence of each case of a pilot on the figure: the standard error of n cases is that
    of the pilot times :math:`\sqrt{n_{pilot} / n}`. For a `width`, the interval of a report on the
    pilot, repeated as often as that says, corrects for what the standard error of a small sample
    leaves out. For a `difference` :math:`d`,

    .. math:: n = n_{pilot} \left( (z_{(1 + confidence)/2} + z_{power}) \, se / d \right)^2

    with the standard error of the paired difference. The answer is as good as the pilot is like
    what is to come: with few mistakes in it, it is a guess.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes of the pilot, at least ten cases of each.
    proba : array-like, or mapping of str to array-like
        Probabilities of one model, or of two for a difference, as in `Report.from_predictions`.
    width : float, optional
        Wanted width of the interval, upper minus lower limit.
    difference : float, optional
        Wanted difference of the figure of two models, of either sign. Give this or `width`.
    figure : str, default="fragility_index"
        Also "ratio", "auc", "buffered_auc", "cvar", "log_loss", "brier", "calibration_error",
        "confident_error_rate" or "aurc". A small pilot overstates the calibration error, and so the
        number of cases for its interval.
    confidence : float, default=0.95
        Of the interval; a difference counts as found at the p-value 1 - confidence.
    power : float, default=0.8
        Probability to find the difference, above (1 - confidence) / 2.
    correlation : float, default=0.5
        If `proba` is one model: correlation of the influences of the other model with those of this
        one, whose standard errors are taken to be equal. 1 would be the same model.
    labels, pos_label, sample_weight, cluster
        As in `Report.from_predictions`. Weights, and clusters of cases that belong together, are
        taken to be as in the pilot.

    Returns
    -------
    EvaluationPlan

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import plan_evaluation
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(500)
    >>> sick = rng.random(500) < score
    >>> print(plan_evaluation(sick, score, width=0.05))  # doctest: +NORMALIZE_WHITESPACE
    About 1,084 cases (514 of them False) give a 95 % interval of the Fragility Index of width 0.05;
    the 500 here give 0.079.
    """
    check_choice(figure, MOVED, "figure")
    confidence, power = check_confidence(confidence), check_confidence(power, "power", "0.8")
    require(
        (width is None) != (difference is None),
        f"Give width or difference, one of them; got width={width!r}, difference={difference!r}.",
    )
    models = {
        name: checked_model(name, y_true, part, labels, pos_label, sample_weight)
        for name, part in named_predictions(proba).items()
    }
    most = 1 if difference is None else 2
    require(
        len(models) <= most,
        f"{'width is for one model' if most == 1 else 'difference is for two models'}; got "
        f"{listed(models)}. Leave out the others.",
    )
    clusters = check_clusters(cluster, next(iter(models.values())).codes.size)
    pilot = _Pilot(models, clusters, figure, confidence)
    if width is not None:
        return pilot.for_width(check_positive(width, "width"), power)
    wanted = abs(check_number(difference or 0.0, "difference"))
    require(wanted > 0.0, "difference must not be 0: no number of cases tells equal models apart.")
    require(
        power > 0.5 * (1.0 - confidence),
        f"power must be above {0.5 * (1.0 - confidence):g}: equal models, too, are told apart in "
        f"that direction with this probability, at a confidence of {confidence:g}; got {power!r}.",
    )
    correlation = check_number(correlation, "correlation")
    require(
        -1.0 <= correlation < 1.0,
        f"correlation must be -1 or more and below 1; got {correlation!r}.",
    )
    return pilot.for_difference(wanted, power, correlation)


class _Pilot:
    """Cases that are there already: their figure, and what more such cases would give."""

    def __init__(
        self,
        models: Mapping[str, LabelledScores],
        clusters: Integers | None,
        figure: str,
        confidence: float,
    ) -> None:
        self._models, self._clusters = models, clusters
        self._figure, self._confidence = figure, confidence
        self._first = next(iter(models.values()))
        self.n = int(self._first.support.sum())
        names = self._first.labels.tolist()
        few = [names[code] for code in np.flatnonzero(self._first.support < LEAST_PILOT)]
        require(
            not few,
            f"The pilot is too small to plan from: it has fewer than {LEAST_PILOT} cases (of "
            f"positive weight) of {listed(few)}. Give more cases of each class.",
        )
        self._report = self._repeated(1)
        self._errors = [self._error(model) for model in self._report.models]

    def for_width(self, width: float, power: float) -> EvaluationPlan:
        """A plan for one interval."""
        quantile = float(ndtri(0.5 + 0.5 * self._confidence))
        n_cases = self.n * (2.0 * quantile * self._errors[0] / width) ** 2
        own, seen = self._width(self._report), dict[int, float]()
        times = max(1, round(n_cases / self.n))
        # The width falls as one over the root nearly, so that a few trials end at one of them.
        while times not in seen and times * self.n <= _LARGEST_TRIAL:
            found = own if times == 1 else self._width(self._repeated(times))
            seen[times] = found
            if found == inf:
                times *= 2
                continue
            n_cases = times * self.n * (found / width) ** 2
            times = max(1, round(n_cases / self.n))
        return self._plan(n_cases, power, width=width, pilot_width=own)

    def for_difference(self, wanted: float, power: float, correlation: float) -> EvaluationPlan:
        """A plan for a test of two models, or of one and another that is like it."""
        error, assumption = self._errors[0] * sqrt(2.0 * (1.0 - correlation)), ""
        if self._report.comparisons:
            error = self._report.comparisons[0].raw.tests[self._figure].standard_error
            require(
                0.0 < error < inf,
                f"No case of the pilot tells the models apart by {self._figure!r}: give models "
                "that differ, or more cases.",
            )
        else:
            assumption = (
                f", if the other model has the same standard error and its influences correlate "
                f"by {correlation:g} with those of this one"
            )
        quantiles = float(ndtri(0.5 + 0.5 * self._confidence) + ndtri(power))
        n_cases = self.n * (quantiles * error / wanted) ** 2
        found = quantiles * error
        return self._plan(
            n_cases, power, difference=wanted, pilot_difference=found, assumption=assumption
        )

    def _repeated(self, times: int) -> Report:
        """Report on the pilot, every case repeated."""

        def tiled(part: NDArray[Any]) -> NDArray[Any]:
            return np.tile(part, (times,) + (1,) * (part.ndim - 1))

        first, clusters = self._first, self._clusters
        if clusters is not None:  # those of a repetition are others
            step = int(clusters.max()) + 1
            clusters = tiled(clusters) + step * np.repeat(np.arange(times), clusters.size)
        return Report.from_predictions(
            first.labels[tiled(first.codes)],
            {name: tiled(data.scores) for name, data in self._models.items()},
            labels=first.labels,
            pos_label=first.labels[first.positive] if first.is_binary else None,
            sample_weight=None if first.weights is None else tiled(first.weights),
            cluster=clusters,
            n_worst=0,
            confidence=self._confidence,
            calibrate=False,
        )

    def _error(self, model: ModelReport) -> float:
        """Standard error of the figure of a model, which must be known."""
        found = model.raw.figures[self._figure]
        error = found.standard_error
        if error is None or not (0.0 < error < inf and isfinite(found.value)):
            name = self._figure
            if name in ("fragility_index", "ratio"):
                name, found = "fragility_index", model.raw.figures["fragility_index"]
            others = " or ".join(repr(f) for f in ("brier", "log_loss") if f != self._figure)
            raise ValueError(
                f"No plan for {self._figure!r}: {name} is {found.value:g} in the pilot "
                f"({model.name}), and no case moves it. Give more cases, or plan for another "
                f"figure, such as {others}."
            )
        return error

    def _width(self, report: Report) -> float:
        limits = report.models[0].raw.figures[self._figure].interval
        return inf if limits is None else limits.high - limits.low

    def _plan(
        self,
        n_cases: float,
        power: float,
        *,
        width: float | None = None,
        difference: float | None = None,
        pilot_width: float | None = None,
        pilot_difference: float | None = None,
        assumption: str = "",
    ) -> EvaluationPlan:
        require(
            n_cases < _MOST_CASES,
            f"{n_cases:.2g} cases would be needed; ask for a larger width or difference.",
        )
        shares = self._first.support / self.n
        n_cases = max(n_cases, LEAST_PILOT / float(shares.min()))
        labels = self._first.labels.tolist()
        value = self._report.models[0].raw.figures[self._figure].value
        return EvaluationPlan(
            n_cases=ceil(n_cases),
            n_by_class={
                label: ceil(n_cases * share) for label, share in zip(labels, shares, strict=True)
            },
            figure=self._figure,
            value=value,
            width=width,
            difference=difference,
            confidence=self._confidence,
            power=power,
            n_pilot=self.n,
            pilot_width=pilot_width,
            pilot_difference=pilot_difference,
            assumption=assumption,
        )
