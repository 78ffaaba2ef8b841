"""All figures of all models of a table of cases, with intervals and paired differences.

The one loop: for each figure, for each model, value and influence; the standard error of each, and
of the difference of every two models from the difference of their influences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, isfinite, isnan, nan

import numpy as np

from .._typing import Mask
from ..cases.cases import Cases, Spread
from ..index.inference import PairedDifference
from ..measured import CONFIDENT, Measured
from . import interval_rules as rules
from .ranking import largest_index
from .registry import FIGURES, Figure
from .scored import Estimate, Scored, scored_models

#: A smaller standard error of a figure of order one is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class MeasuredModels:
    """Figures of every model, and the differences of every two.

    Attributes
    ----------
    models : dict of str to Scored
    figures : dict of str to dict of str to Measured
        By model and figure.
    differences : dict of (str, str) to dict of str to PairedDifference
        By pair of models and figure.
    """

    models: dict[str, Scored]
    figures: dict[str, dict[str, Measured]]
    differences: dict[tuple[str, str], dict[str, PairedDifference]] = field(default_factory=dict)


def measure_models(
    cases: Cases,
    *,
    confidence_level: float = 0.95,
    confident_above: float = CONFIDENT,
    figures: Mapping[str, Figure] = FIGURES,
) -> MeasuredModels:
    """Measure every figure of every model, and compare every two models.

    Parameters
    ----------
    cases : Cases
    confidence_level : float, default=0.95
        Of intervals.
    confident_above : float, default=0.9
        A prediction above this confidence is a confident one.
    figures : mapping of str to Figure, optional
        Which figures; those of answers only are left out where cases have classes.
    """
    models = {model.model: model for model in scored_models(cases, confident_above)}
    pairs = list(combinations(models, 2))
    result = MeasuredModels(models, {name: {} for name in models}, {pair: {} for pair in pairs})
    for figure in figures.values():
        if figure.answers_only and not cases.answers:
            continue
        estimates = {name: figure.estimate(model) for name, model in models.items()}
        for name, model in models.items():
            spread = _spread(figure, model, estimates[name])
            result.figures[name][figure.name] = _measured(
                figure, model, estimates[name], spread, confidence_level
            )
        for a, b in pairs:
            result.differences[a, b][figure.name] = _difference(
                figure, models[a], models[b], estimates[a], estimates[b], confidence_level
            )
    for name, model in models.items():
        _add_ratio_interval(result.figures[name], model)
    return result


def _spread(figure: Figure, model: Scored, estimate: Estimate) -> Spread:
    """Return the standard error of a figure; one of the size of rounding is none."""
    spread = model.spread(estimate.influence, figure.by_class)
    scale = largest_index(estimate.value) if figure.rule is None else 1.0
    return spread._replace(error=0.0) if spread.error < _ROUNDING * scale else spread


def _measured(
    figure: Figure, model: Scored, estimate: Estimate, spread: Spread, confidence_level: float
) -> Measured:
    """Return a figure with its standard error and its interval, as far as these can be told."""
    if figure.name == "fragility_index":
        interval = rules.index_interval(model, spread, confidence_level)
    elif figure.rule is None:  # of the ratio: see `_add_ratio_interval`
        interval = None
    else:
        interval = rules.confidence_interval(
            figure.rule, figure.limits, model, estimate, spread, confidence_level
        )
    is_undefined = isnan(estimate.value) or isnan(spread.error)
    error = None if is_undefined else spread.error
    return Measured(estimate.value, interval, standard_error=error)


def _add_ratio_interval(figures: dict[str, Measured], model: Scored) -> None:
    """Give the ratio the interval of the index, by their relative errors."""
    index, ratio = figures.get("fragility_index"), figures.get("ratio")
    if index is None or ratio is None or index.standard_error is None:
        return
    if ratio.standard_error is not None and 0.0 < index.standard_error < inf:
        interval = rules.ratio_interval(model, index, ratio)
        figures["ratio"] = replace(ratio, interval=interval)


def _difference(
    figure: Figure, a: Scored, b: Scored, of_a: Estimate, of_b: Estimate, confidence_level: float
) -> PairedDifference:
    """Test the difference of two models on the same cases."""
    values = of_a.value, of_b.value
    error, freedom = nan, inf
    if all(map(isfinite, values)) and (figure.rule is not None or min(values) > 0.0):
        influence = np.subtract(
            *(
                model.on_all_cases(of.influence if of.removal is None else of.removal)
                for model, of in ((a, of_a), (b, of_b))
            )
        )
        cases = a.all_cases
        # Two models that answer are right on different cases: they have no classes in common.
        classes = a.y if figure.by_class and not cases.answers else None
        error, freedom = cases.spread(influence, classes, _answered_by_any(a, b))
        scale = largest_index(max(values)) if figure.rule is None else 1.0
        error = 0.0 if error < _ROUNDING * scale else error
    if error == 0.0 and figure.rule is not None:  # no case tells the models apart
        error = nan
    return PairedDifference.of(*values, error, freedom, confidence_level)


def _answered_by_any(a: Scored, b: Scored) -> Mask | None:
    """Return the cases that one of two models answered; None if that is all of them."""
    if a.answered is None or b.answered is None:
        return None
    return a.answered | b.answered


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's method; undefined ones do not count."""
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = p.copy()
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
