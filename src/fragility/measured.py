"""A number of a report: how sure it is, whether it is exact, and what it means.

Every table of the library shows these figures, in this order and under these names, whatever they
were computed from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from sys import float_info
from typing import Literal

from ._typing import Interval

#: A prediction above this confidence is a confident one, unless a report says another level.
CONFIDENT = 0.9
#: Errors are counted among these shares of the cases, the surest.
SUREST = (0.9, 0.95)
#: A smaller probability counts as this one, as in scikit-learn, so that log-loss is finite.
LEAST_PROBABILITY = float_info.epsilon
#: CVaR is the mean of the ranking errors beyond this quantile.
CVAR_LEVEL = 0.95
#: Bins of equal mass of the calibration error; as many as cases, if there are fewer.
CALIBRATION_BINS = 15
#: A group with fewer cases than this of any class is too small to be compared with others.
MIN_CELL = 20


Estimator = Literal["cross_fitted", "sample_fitted"]


@dataclass(frozen=True)
class Measured:
    """One figure of one model.

    Attributes
    ----------
    value : float
    interval : Interval, optional
        Confidence interval for the population that the samples are from.
    standard_error : float, optional
        Of the figure, to first order, from the influence of each case.
    bounds : Interval, optional
        The exact figure of the data lies between these; None if `value` is that figure.
    estimator : {"cross_fitted", "sample_fitted"}, optional
        How a threshold or a calibration map behind the figure was chosen: by the other folds, or as
        one map by a sample of the cases. None if the figure needs no such choice.
    """

    value: float
    interval: Interval | None = None
    bounds: Interval | None = None
    estimator: Estimator | None = None
    standard_error: float | None = None

    @property
    def exact(self) -> bool:
        """Whether `value` is the figure of the data itself (but for rounding)."""
        return self.bounds is None


@dataclass(frozen=True)
class FigureKind:
    """What a figure is called, which way is better, and what it means in a sentence."""

    title: str
    better: Literal["lower", "higher", "near 1", "near 0"]
    meaning: str


#: What every report shows of a model, by the name it has in JSON and data frames.
FIGURES: dict[str, FigureKind] = {
    "fragility_index": FigureKind(
        "Fragility Index", "lower", "tail risk of confident mistakes; shrinks with the scores"
    ),
    "ratio": FigureKind("ratio", "lower", "the index relative to the separation of the classes"),
    "auc": FigureKind("AUC", "higher", "share of pairs that are ranked correctly"),
    "log_loss": FigureKind("log-loss", "lower", "mean of −ln of the probability of the truth"),
    "brier": FigureKind("Brier score", "lower", "mean squared error of the probabilities"),
    "calibration_error": FigureKind(
        "calibration error", "lower", "probability against frequency, in bins of equal mass"
    ),
    "buffered_auc": FigureKind("buffered AUC", "higher", "AUC that counts how far pairs are wrong"),
    "cvar": FigureKind("CVaR 95 %", "lower", "mean ranking error of the worst 5 % of pairs"),
    "confident_error_rate": FigureKind(
        "confident errors", "lower", "share of all cases that are wrong above 90 % confidence"
    ),
    "aurc": FigureKind("AURC", "lower", "error rate when the least sure cases are left out, mean"),
    "cost": FigureKind("cost per case", "lower", "at the threshold chosen on other cases"),
}

#: What a report on answers, right or wrong, shows before these figures.
ANSWER_FIGURES: dict[str, FigureKind] = {
    "accuracy": FigureKind("accuracy", "higher", "share of the answers that are right"),
}

#: What a report says of a model beside these figures: calibration, surest cases, credit, costs.
EVIDENCE: dict[str, FigureKind] = {
    "calibration_slope": FigureKind(
        "calibration slope", "near 1", "below 1 the probabilities are too extreme"
    ),
    "calibration_intercept": FigureKind(
        "calibration intercept", "near 0", "slope held at 1; above 0 the probabilities are too low"
    ),
    "observed_expected_ratio": FigureKind(
        "observed : expected", "near 1", "positives over the sum of the probabilities"
    ),
    "integrated_calibration_index": FigureKind(
        "ICI", "lower", "mean distance of the probabilities to a smooth curve of the frequencies"
    ),
    "gini": FigureKind("Gini", "higher", "twice the AUC minus one"),
    "ks": FigureKind("KS", "higher", "largest difference of true and false positive rate"),
    **{
        f"error_rate_surest_{100 * share:.0f}": FigureKind(
            f"errors in surest {100 * share:.0f} %",
            "lower",
            f"error rate among the {100 * share:.0f} % of the cases that it is surest of",
        )
        for share in SUREST
    },
    "net_benefit": FigureKind(
        "net benefit", "higher", "true positives less false alarms, at the threshold of the costs"
    ),
}


def figures_of(answers: bool, confident: float) -> dict[str, FigureKind]:
    """Figures of a report, if predictions above such a confidence are confident ones."""
    kinds = FIGURES
    if answers:  # cases that were declined are in none of these figures
        rate = FIGURES["confident_error_rate"]
        meaning = rate.meaning.replace("all cases", "the answers")
        kinds = {
            **ANSWER_FIGURES,
            **FIGURES,
            "confident_error_rate": replace(rate, meaning=meaning),
        }
    level = f"{100 * confident:g} %"
    return {
        name: replace(kind, meaning=kind.meaning.replace("90 %", level))
        for name, kind in kinds.items()
    }
