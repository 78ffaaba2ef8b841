"""All figures of one model, from a view of its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np

from .._typing import Floats, Mask
from ..deferral.costs import Costs
from ..deferral.settings import PolicySettings
from ..figures.confidence import HISTOGRAM_BINS, confidence_shares
from ..figures.index import IndexFigures
from ..figures.intervals import Circumstances, index_intervals, with_interval
from ..figures.rank import Levels, calibration_error, measured_between, risk_coverage_area
from ..figures.spread import MoveSums
from ..figures.tails import merged, tail_of
from ..measured import CALIBRATION_BINS, CONFIDENT, MIN_CELL, Measured
from ..metrics.displays.error_curves import page_curves
from ..scores.tally import Cells, decision_counts
from .evidence import evidence
from .parts import ConfidentCases, DrawnPair, ModelFigures
from .views import View

#: Scores in more atoms than these are merged before their errors are drawn.
_DRAWN_ATOMS = 1 << 16


@dataclass(frozen=True)
class Settings:
    """Settings that hold for every model."""

    confidence: float = 0.95
    costs: Costs | None = None
    calibrate: bool = True
    n_worst: int = 0
    random_state: int = 0
    policy: PolicySettings = field(default_factory=PolicySettings)
    confident: float = CONFIDENT
    prevalence: float | None = None
    min_cell: int = MIN_CELL
    mute: tuple[str, ...] = ()


def model_figures(
    view: View,
    settings: Settings,
    extra: Mapping[str, float],
    moves: MoveSums | None = None,
    cost: Measured | None = None,
) -> ModelFigures:
    """All figures of a model, in the order of `fragility.measured.FIGURES`.

    `extra` are figures of the user's own, `moves` how the cases move the figures (None: no
    intervals), and `cost` is that of its policy, if there is one.
    """
    found, levels = view.index(settings.confidence), view.levels()[1]
    cells, grid = view.cells, view.task.thresholds
    above = _are_confident(view)
    # Answers are never taken for wrong: there are no false negatives.
    positive = view.positive if view.n_classes == 2 and not view.task.answers else None
    decisions = decision_counts(cells, grid, positive, whole=view.whole)
    figures = measured_figures(view, found, levels, moves, settings.confidence)
    if cost is not None:
        figures["cost"] = cost
    figures |= {name: Measured(value) for name, value in extra.items()}
    sure, squares = float(cells.weight[above].sum()), float(cells.squares[above].sum())
    count, mistakes = (float(cells.number[part].sum()) for part in (above, above & cells.wrong))
    effective = sure**2 / squares if squares > 0.0 else 0.0
    if moves is not None and moves.n_clusters:  # as if cases of a cluster were all alike
        effective *= min(moves.n_clusters / moves.population.size, 1.0)
    confident = ConfidentCases(
        _whole(count),
        effective,
        view.confident_sum() / sure if sure > 0.0 else nan,
        float(cells.weight[above & ~cells.wrong].sum()) / sure if sure > 0.0 else nan,
        _whole(mistakes),
    )
    # Bins of the histogram end at thresholds on offer, so that the cells determine it.
    even = np.linspace(view.task.least_confidence, 1.0, HISTOGRAM_BINS + 1)
    offered = grid[grid >= view.task.least_confidence]
    edges = np.unique(offered[np.abs(offered - even[:, np.newaxis]).argmin(axis=1)])
    return ModelFigures(
        figures,
        found.pairs,
        found.n_infinite_pairs,
        confident,
        decisions,
        confidence_shares(grid[cells.place], cells.wrong, cells.weight, edges, cells.number),
        _drawn(view, found.pairs),
        evidence(
            view,
            levels,
            decisions,
            auc=figures["auc"],
            confidence=settings.confidence,
            costs=settings.costs,
            prevalence=settings.prevalence,
        ),
    )


def measured_figures(
    view: View, found: IndexFigures, levels: Levels, moves: MoveSums | None, confidence: float
) -> dict[str, Measured]:
    """Figures of some cases: the index and all that stands beside it, but the cost."""
    cells = view.cells
    ranked, buffered, cvar = _pairwise(view)
    log_loss, brier = view.proper_scores()
    others, happened = view.outcomes()
    n_bins = min(CALIBRATION_BINS, int(view.support.sum()))  # no more than cases
    confident_errors = cells.weight[_are_confident(view) & cells.wrong].sum()
    figures = {
        "fragility_index": found.index,
        "ratio": found.ratio,
        "auc": ranked,
        "log_loss": Measured(log_loss),
        "brier": Measured(brier),
        "calibration_error": calibration_error(happened, others, n_bins),
        "buffered_auc": buffered,
        "cvar": cvar,
        "confident_error_rate": Measured(float(confident_errors) / float(cells.weight.sum())),
        "aurc": risk_coverage_area(levels),
    }
    if view.task.answers:  # elsewhere users know it, and it depends on how frequent classes are
        figures = {"accuracy": Measured(_accuracy(cells)), **figures}
    return figures if moves is None else _with_intervals(figures, view, moves, confidence)


def _whole(number: float) -> float:
    """A whole number as such."""
    return int(number) if number.is_integer() else number


def _are_confident(view: View) -> Mask:
    """Which cells hold predictions above the level of confidence."""
    grid = view.task.thresholds
    return np.greater(view.cells.place, int(np.searchsorted(grid, view.confident)))


def _accuracy(cells: Cells) -> float:
    """Share of the predictions that are right."""
    return float(cells.weight[~cells.wrong].sum()) / float(cells.weight.sum())


def _pairwise(view: View) -> tuple[Measured, Measured, Measured]:
    """AUC, buffered AUC and CVaR: means over the pairs of classes."""
    bounds = [(found.auc, found.tails.buffered_auc, found.tails.cvar) for found in view.ranked]
    ranked, buffered, cvar = bounds[0] if len(bounds) == 1 else np.mean(bounds, axis=0).tolist()
    return measured_between(*ranked), measured_between(*buffered), measured_between(*cvar)


def _with_intervals(
    figures: Mapping[str, Measured], view: View, moves: MoveSums, confidence: float
) -> dict[str, Measured]:
    """The same figures with standard errors and intervals."""
    influences = view.case_influences
    about = Circumstances(
        moves.population,
        influences.worst,
        influences.calibration,
        influences.largest_loss,
        confidence,
        moves.n_clusters or moves.population.size,
    )
    found = dict(figures)
    spreads = {name: moves.spread(name) for name in moves.names}
    for name in moves.names[2:]:
        found[name] = with_interval(name, found[name], spreads[name], about)
    independent = None
    if moves.n_clusters:
        independent = moves.spread("fragility_index", clustered=False)
    index, ratio = found["fragility_index"], found["ratio"]
    return found | index_intervals(index, ratio, spreads, independent, about)


def _drawn(view: View, pairs: Floats) -> DrawnPair | None:
    """Ranking errors of the pair with the largest finite index, the only pair of two classes.

    Every score is at the mean of its atom. None if no pair of several classes has a finite index.
    """
    finite = np.isfinite(pairs)
    if view.n_classes == 2:
        column, (scored_as, true) = 0, (view.positive, 1 - view.positive)
    elif finite.any():
        place = int(np.argmax(np.where(finite, pairs, -np.inf)))
        column = scored_as = place // len(pairs)
        true = place % len(pairs)
    else:
        return None
    groups = (merged(view.atoms(column, code), _DRAWN_ATOMS) for code in (true, scored_as))
    curves = page_curves(tail_of(*groups))
    named = (scored_as, true) if view.n_classes > 2 else None
    return DrawnPair(named, float(pairs[scored_as, true]), curves)
