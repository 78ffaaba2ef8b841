"""All figures of one model in one population, from both readings."""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import numpy as np

from ..deferral.decision_counts import DecisionCounts
from ..index.errors import PairIndex
from ..index.inference import Interval, confidence_interval
from ..measured import CALIBRATION_BINS, CVAR_LEVEL, Measured
from ..metrics.displays.error_curves import DrawnPair, drawn_pair, most_fragile_pair
from ..moments import Floats
from .confidences import ConfidenceHistogram, CostCurve, confidences_of, cost_curve, histogram_of
from .first_pass import Population
from .prediction_atoms import prediction_atoms
from .rank_figures import auc, calibration_error, measured_between, risk_coverage_area
from .second_pass import ModelTilts
from .tail_figures import gathered_tail, tail_bounds

__all__ = [
    "StreamedFigures",
    "decision_counts_of",
    "drawn_errors_of",
    "figures_of",
    "index_interval",
]


class StreamedFigures(NamedTuple):
    """Figures by name, and what else is shown of a model."""

    figures: dict[str, Measured]
    standard_error: float
    histogram: ConfidenceHistogram
    curve: CostCurve | None


def figures_of(
    population: Population, tilts: ModelTilts, model: str, confidence: float
) -> StreamedFigures:
    """All figures, in the order of `fragility.measured.FIGURES`."""
    bins = population.models[model]
    weight = float(population.weight.sum())
    index, ratio, error = _fragility(tilts, confidence)
    ranked, buffered, cvar = _pairwise(population, tilts, model)
    found = confidences_of(bins)
    calibrated = bins.columns[0] if bins.confidence is None else bins.confidence
    happened = population.classes.positive if bins.confidence is None else 1
    # As many bins as cases, if there are few.
    n_bins = min(CALIBRATION_BINS, int(population.support.sum()))
    curve = None if bins.costs is None else cost_curve(found, bins.costs)
    figures = {
        "fragility_index": index,
        "ratio": ratio,
        "auc": ranked,
        "log_loss": Measured(bins.log_loss / weight),
        "brier": Measured(bins.brier / weight),
        "calibration_error": calibration_error(calibrated, happened, n_bins),
        "buffered_auc": buffered,
        "cvar": cvar,
        "confident_error_rate": Measured(bins.confident_errors / weight),
        "aurc": risk_coverage_area(found.clusters),
    }
    if curve is not None:
        figures["cost"] = curve.best_cost
    histogram = histogram_of(bins, found.clusters, int(population.support.sum()))
    return StreamedFigures(figures, error, histogram, curve)


def decision_counts_of(population: Population, model: str) -> DecisionCounts | None:
    """Decisions at the thresholds that were given, exact; None without any."""
    bins = population.models[model]
    if bins.cut is None:
        return None
    return bins.cut.counts(prediction_atoms(bins), population.classes.is_binary)


def drawn_errors_of(population: Population, model: str, pairs: Floats) -> DrawnPair | None:
    """Curves of the ranking errors, with every score at the mean of its bin."""
    classes = population.classes
    pair = most_fragile_pair(pairs, classes.positive)
    if pair is None:
        return None
    column = population.models[model].columns[0 if classes.is_binary else pair.positive]
    (negative,) = pair.negatives
    tail = gathered_tail(column.atoms(negative), column.atoms(pair.positive))
    return drawn_pair(tail, 1.0, pair, pairs)


def _fragility(tilts: ModelTilts, confidence: float) -> tuple[Measured, Measured, float]:
    """Index with its interval, ratio, and standard error of the index."""
    solved = tilts.solved
    value = sum(part.share * part.fragility for part in solved)
    ratio = sum(tilt.share * tilt.ratio for tilt in tilts.tilts)
    interval = index_interval(tilts, confidence)
    error = nan if value in (0.0, inf) else tilts.index_error(solved, 0.0)
    if tilts.settled:
        return Measured(value, interval), Measured(ratio), error
    low, high = (sum(tilt.share * tilt.bounds[end] for tilt in tilts.tilts) for end in (0, 1))
    ratios = (
        sum(tilt.share * PairIndex(tilt.bounds[end], tilt.separation).ratio for tilt in tilts.tilts)
        for end in (0, 1)
    )
    return (
        Measured(value, interval, Interval(low, high)),
        Measured(ratio, None, Interval(*ratios)),
        error,
    )


def index_interval(tilts: ModelTilts, confidence: float) -> Interval | None:
    """Confidence interval of the index; None where the bins are too wide for one."""
    if not all(tilt.told_by_bins for tilt in tilts.tilts):
        return None
    return confidence_interval(
        tilts, tilts.solved, 0.0, confidence=confidence, method="auto", score_range=(0.0, 1.0)
    )


def _pairwise(
    population: Population, tilts: ModelTilts, model: str
) -> tuple[Measured, Measured, Measured]:
    """AUC, buffered AUC and CVaR: means over the pairs of classes."""
    columns = population.models[model].columns
    bounds = []
    for tilt in tilts.tilts:
        negatives, positives = (columns[side.column].atoms(side.code) for side in tilt.sides)
        tails = tail_bounds(negatives, positives, CVAR_LEVEL, len(tilts.tilts))
        bounds.append((auc(negatives, positives), tails.buffered_auc, tails.cvar))
    ranked, buffered, cvar = np.mean(bounds, axis=0).tolist()
    return measured_between(*ranked), measured_between(*buffered), measured_between(*cvar)
