"""Figures of predictions in memory, all exact."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import LabelledScores
from ..confidence import (
    calibration_error,
    confidence_shares,
    confident_errors,
    predictions,
    risk_coverage_area,
)
from ..deferral import BestThreshold, Costs, best_threshold
from ..deferral.decision_counts import decision_counts
from ..index.errors import RankingErrors
from ..index.fragility import Fragility, measure
from ..index.tails import buffered_auc, conditional_value_at_risk, error_tails
from ..measured import CALIBRATION_BINS, CONFIDENT, CVAR_LEVEL, Measured
from ..metrics.comparison import compare
from ..metrics.displays.error_curves import drawn_pair, most_fragile_pair
from ..moments import Floats
from .parts import (
    Comparison,
    ConfidentCases,
    GroupFigures,
    ModelFigures,
    PairedFigures,
    ThresholdFigures,
    WorstCase,
)

__all__ = [
    "Metric",
    "Settings",
    "compared",
    "extra_figures",
    "group_figures",
    "holm",
    "index_between",
    "model_figures",
    "worst_cases",
]

#: Resamples for the intervals of costs: of many cases fewer, for each takes long.
_RESAMPLES, _FEWER_RESAMPLES, _MANY_CASES = 500, 200, 50_000
#: Figure of labels and probabilities, with `sample_weight=` if it takes that.
Metric = Callable[..., float]


@dataclass(frozen=True)
class Settings:
    """What is asked of every model alike."""

    confidence: float
    costs: Costs | None
    random_state: int


@np.errstate(over="ignore", under="ignore")
def model_figures(
    data: LabelledScores, settings: Settings, extra: Mapping[str, float]
) -> tuple[ModelFigures, Fragility]:
    """All figures of a model, and the measured index for what comes from its samples."""
    errors = RankingErrors(data)
    found = measure(errors, 0.0, "ovo", None)
    tails, ranking = [], None
    drawn = most_fragile_pair(found.pairs, data.positive)
    for pair, (tail, factor) in zip(errors.pairs("ovo"), error_tails(errors, "ovo"), strict=True):
        cvar = conditional_value_at_risk(tail, CVAR_LEVEL) / factor
        tails.append((tail.auc, buffered_auc(tail), cvar))
        if pair == drawn:
            ranking = drawn_pair(tail, factor, pair, found.pairs)
    auc, buffered, cvar = (float(mean) for mean in np.mean(tails, axis=0))
    log_loss, brier = proper_scores(data)
    made = predictions(data)
    threshold = _threshold(data, settings)
    values = {
        "ratio": found.ratio,
        "auc": auc,
        "log_loss": log_loss,
        "brier": brier,
        "calibration_error": calibration_error(data, min(CALIBRATION_BINS, made.wrong.size)),
        "buffered_auc": buffered,
        "cvar": cvar,
        "confident_error_rate": confident_errors(made, CONFIDENT),
        "aurc": risk_coverage_area(made),
    }
    figures = {
        "fragility_index": Measured(found.value, found.interval(settings.confidence)),
        **{name: Measured(value) for name, value in values.items()},
        **({} if threshold is None else {"cost": threshold.cost}),
        **{name: Measured(value) for name, value in extra.items()},
    }
    above = made.confidence > CONFIDENT
    weights = made.weights_or_ones[above]
    weights = weights / weights.max(initial=np.finfo(np.float64).tiny)  # their squares are finite
    confident = ConfidentCases(
        int(np.count_nonzero(above)),
        float(weights.sum() ** 2 / (weights @ weights)) if above.any() else 0.0,
        float(np.average(made.confidence[above], weights=weights)) if above.any() else nan,
        float(np.average(~made.wrong[above], weights=weights)) if above.any() else nan,
    )
    figures_of_model = ModelFigures(
        figures,
        found.pairs,
        found.n_infinite_pairs,
        threshold,
        confident,
        decision_counts(made, data.labels.size, data.positive),
        confidence_shares(made, data.labels.size),
        ranking,
    )
    return figures_of_model, found


def proper_scores(data: LabelledScores) -> tuple[float, float]:
    """Log-loss (as scikit-learn's, finite at 0) and Brier score."""
    weights = (
        np.ones(data.codes.size) if data.weights is None else data.weights / data.weights.max()
    )
    if data.is_binary:
        happened = data.codes == data.positive
        positive = np.clip(data.scores.astype(np.float64), 0.0, 1.0)
        squares = (positive - happened) ** 2
        own = np.where(happened, positive, 1.0 - positive)
    else:
        rows = np.arange(data.codes.size)
        own = data.scores[rows, data.codes].astype(np.float64)
        squares = np.einsum("ij,ij->i", data.scores, data.scores, dtype=np.float64)
        squares += 1.0 - 2.0 * own
    losses = -np.log(np.clip(own, np.finfo(np.float64).eps, 1.0))
    return float(np.average(losses, weights=weights)), float(np.average(squares, weights=weights))


def extra_figures(
    metrics: Mapping[str, Metric], y_true: Any, proba: Any, weights: Floats | None
) -> dict[str, float]:
    """Figures by functions of the user's own."""
    values = {}
    for name, metric in metrics.items():
        options = {}
        if weights is not None:
            try:
                takes_weights = "sample_weight" in inspect.signature(metric).parameters
            except (TypeError, ValueError):  # a builtin tells nothing
                takes_weights = False
            if not takes_weights:
                raise ValueError(
                    f"extra_metrics[{name!r}] takes no sample_weight, but weights were given; "
                    "give a function (y_true, proba, sample_weight=...)."
                )
            options["sample_weight"] = weights
        value = metric(y_true, proba, **options)
        try:
            values[name] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"extra_metrics[{name!r}] must return one number; it returned {value!r}."
            ) from None
    return values


def _threshold(data: LabelledScores, settings: Settings) -> ThresholdFigures | None:
    costs = settings.costs
    if costs is None:
        return None
    best: BestThreshold = best_threshold(
        data.codes,
        data.scores,
        labels=np.arange(data.labels.size),
        pos_label=data.positive if data.is_binary else None,
        sample_weight=data.weights,
        error_cost=costs.error_cost,
        review_cost=costs.review_cost,
        capacity=costs.capacity,
        reviewer_error=costs.reviewer_error,
        n_bootstrap=_RESAMPLES if data.codes.size <= _MANY_CASES else _FEWER_RESAMPLES,
        confidence=settings.confidence,
        random_state=settings.random_state,
    )
    return ThresholdFigures(
        best.threshold,
        Measured(best.cost, best.cost_interval, estimator="cross_fitted"),
        best.automation_rate,
        best.error_rate,
        best.chow_threshold,
        best.chow_cost,
        best.gap,
        best.gap_interval,
        best.cost_automate_all,
        best.cost_review_all if costs.capacity is None or costs.capacity >= 1.0 else nan,
    )


def worst_cases(
    found: Fragility,
    data: LabelledScores,
    n: int,
    cases: Sequence[Any] | NDArray[Any] | None,
    groups: NDArray[Any] | None,
) -> tuple[WorstCase, ...]:
    """The cases that the index sits on, by falling lift."""
    if n == 0:
        return ()
    made = predictions(replace(data, weights=None))  # every case, also those of no weight
    labels = data.labels.tolist()
    return tuple(
        WorstCase(
            row=case.index,
            case=str(case.index) if cases is None else str(cases[case.index]),
            true=case.label,
            predicted=labels[made.predicted[case.index]],
            score=case.score,
            confidence=float(made.confidence[case.index]),
            lift=case.lift,
            group=None if groups is None else str(groups[case.index]),
        )
        for case in found.attribution(n)
        if case.lift > 1.0 + 1e-9  # where no case stands out there is none to show
    )


def group_figures(
    name: str, data: LabelledScores, groups: NDArray[Any], pairs: Floats, confidence: float
) -> list[GroupFigures]:
    """The index in each group, with an interval; a group of one class has none.

    `pairs` is the index of each pair of classes in all cases.
    """
    names, places = np.unique(groups, return_inverse=True)
    cautious = 1.0 - (1.0 - confidence) / names.size
    found = []
    for place, group in enumerate(names.tolist()):
        part = _subset(data, places == place)
        n = int(part.support.sum())
        present = np.flatnonzero(part.support)
        if present.size < 2:
            only = f"all of its cases are {part.labels.tolist()[present[0]]!r}" if n else ""
            reason = only or "none of its cases has weight"
            found.append(GroupFigures(name, str(group), n, None, nan, None, reason))
            continue
        index = measure(RankingErrors(part), 0.0, "ovo", None)
        interval = index.interval(confidence)
        found.append(
            GroupFigures(
                name,
                str(group),
                n,
                Measured(index.value, interval),
                index.ratio,
                index.interval(cautious),
                "",
                index_between(pairs, present),
                present.size < int(np.count_nonzero(data.support)),
            )
        )
    return found


def index_between(pairs: Floats, classes: NDArray[Any]) -> float:
    """Mean index of the pairs of some classes: a group may lack the others."""
    of_these = pairs[np.ix_(classes, classes)]
    return float(np.mean(of_these[~np.isnan(of_these)]))


def _subset(data: LabelledScores, rows: NDArray[np.bool_]) -> LabelledScores:
    weights = None if data.weights is None else data.weights[rows]
    codes = data.codes[rows]
    counted = codes if weights is None else codes[weights > 0.0]
    support = np.bincount(counted, minlength=data.labels.size)
    return replace(data, scores=data.scores[rows], codes=codes, weights=weights, support=support)


def compared(
    names: Sequence[str],
    raw: Sequence[LabelledScores],
    calibrated: Sequence[LabelledScores | None],
    confidence: float,
) -> list[Comparison]:
    """Every two models on the same cases."""
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    as_they_are = _paired(pairs, raw, confidence)
    whole = [part for part in calibrated if part is not None]
    after: Sequence[PairedFigures | None] = [None] * len(pairs)
    if len(whole) == len(names):
        after = _paired(pairs, whole, confidence)
    return [
        Comparison(names[a], names[b], before, later)
        for (a, b), before, later in zip(pairs, as_they_are, after, strict=True)
    ]


def _paired(
    pairs: Sequence[tuple[int, int]], models: Sequence[LabelledScores], confidence: float
) -> list[PairedFigures]:
    errors = [RankingErrors(data) for data in models]
    found = [compare(errors[a], errors[b], 0.0, "ovo", None, confidence) for a, b in pairs]
    adjusted = holm([part.p_value for part in found])
    return [PairedFigures(part, part.ratio, p) for part, p in zip(found, adjusted, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment for several tests; undefined ones do not count."""
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = p.copy()
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
