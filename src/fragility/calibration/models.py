"""Calibrate all models of a table of cases, each case by a map that was fitted without it.

A model with smaller scores has a smaller Fragility Index, so models are compared at equal
calibration: by maps of one kind, if one will do (`fragility.calibration.choice`). The calibrated
cases are the same table with other scores, and every figure is computed on them as on any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from ..cases.cases import Cases
from ..cases.folds import fold_assignments
from . import several_classes, two_classes
from .choice import CalibrationChoice, Candidates, chosen_together, log_loss
from .cross_fitting import CannotCalibrateError, check_can_calibrate
from .fitting import CalibrationMap, log_odds, logs
from .several_classes import FitRows
from .two_classes import FitTable, platt_targets

#: More distinct scores are fitted in groups of neighbours: maps differ in their sixth digit.
MOST_GROUPS = 1 << 14


@dataclass(frozen=True)
class CalibratedModels:
    """A table of cases with calibrated scores, and the map of each model.

    Attributes
    ----------
    cases : Cases
    choices : dict of str to CalibrationChoice
    """

    cases: Cases
    choices: dict[str, CalibrationChoice]


def calibrate_models(cases: Cases, random_state: int = 0) -> CalibratedModels:
    """Calibrate every model by cross-fitted maps of the kind that fits all of them.

    Parameters
    ----------
    cases : Cases
    random_state : int, default=0
        Seed of the folds.

    Raises
    ------
    CannotCalibrateError
        If a model answered cases of one class only, or a single case of a class.
    """
    models = {name: _CrossFitted(cases, name, random_state) for name in cases.scores}
    choices = chosen_together([model.candidates for model in models.values()])
    scores = {
        name: model.scores[choice.method]
        for (name, model), choice in zip(models.items(), choices, strict=True)
    }
    return CalibratedModels(replace(cases, scores=scores), dict(zip(models, choices, strict=True)))


class _CrossFitted:
    """One model after maps of every kind, each case by a map that was fitted without it."""

    def __init__(self, cases: Cases, model: str, random_state: int) -> None:
        self.cases, scores = cases, cases.scores[model]
        abstained = np.isnan(scores if scores.ndim == 1 else scores[:, 0])
        self.answered: Mask = ~abstained
        self.truth = cases.truth(model)
        labels = np.asarray(cases.labels)
        counts = np.bincount(self.truth[self.answered], minlength=labels.size)
        check_can_calibrate(labels, counts)
        (folds,) = fold_assignments(cases, self.truth, random_state)
        self.scores = {name: np.full(scores.shape, np.nan) for name in _methods(cases)}
        for fold in range(int(folds.max()) + 1):
            others = np.flatnonzero(self.answered & (folds != fold))
            _check_classes(self.truth[others])
            table = fit_data(scores[others], self.truth[others], cases.mass[others], cases.positive)
            members = np.flatnonzero(self.answered & (folds == fold))
            for name, fit in _methods(cases).items():
                self.scores[name][members] = fit(table)(scores[members])

    @property
    def candidates(self) -> Candidates:
        """Log-loss of each kind of map on cases that it was not fitted to, with paired errors."""
        rows = np.flatnonzero(self.answered)
        mass = self.cases.mass[rows]
        losses = {name: self._losses(scores, rows) for name, scores in self.scores.items()}
        names = tuple(losses)
        errors = np.zeros((len(names), len(names)))
        for one, other in combinations(range(len(names)), 2):
            gap = losses[names[one]] - losses[names[other]]
            influence = np.zeros(self.cases.n)
            influence[rows] = (gap - mass @ gap / mass.sum()) / mass.sum()
            error = self.cases.spread(influence, among=self.answered).error
            errors[one, other] = errors[other, one] = error
        means = np.array([float(mass @ loss / mass.sum()) for loss in losses.values()])
        return Candidates(names, means, errors)

    def _losses(self, scores: Floats, rows: Indices) -> Floats:
        """Return the log-loss of each of some cases."""
        truth = self.truth[rows]
        if scores.ndim == 2:
            return log_loss(scores[rows, truth])
        return log_loss(np.where(truth == self.cases.positive, scores[rows], 1.0 - scores[rows]))


def _methods(cases: Cases) -> Mapping[str, Callable[[Any], CalibrationMap]]:
    """Return the function that fits each kind of map, the simplest first."""
    return two_classes.METHODS if cases.n_columns == 1 else several_classes.METHODS


def _check_classes(truth: Integers) -> None:
    """Refuse folds whose other cases are of one class: clusters may be of one class each."""
    if np.unique(truth).size < 2:
        raise CannotCalibrateError(
            "folds that keep clusters whole cannot be drawn (without some clusters the other cases "
            "are of one class)"
        )


def fit_data(scores: Floats, truth: Integers, mass: Floats, positive: int) -> FitTable | FitRows:
    """Return what maps are fitted to: scores of two classes as a table, of several as rows.

    Cases count by their mass in the fit, and one each where few cases say little.
    """
    weight = mass / mass.max()
    if scores.ndim == 2:
        return FitRows(logs(scores), truth, weight)
    happened = truth == positive
    n_happened = int(np.count_nonzero(happened))
    high, low = platt_targets(n_happened, happened.size - n_happened)
    z = log_odds(scores)
    distinct, group = np.unique(z, return_inverse=True)
    if distinct.size > MOST_GROUPS:
        group = group * MOST_GROUPS // distinct.size
    total, events, sums, number = (
        np.bincount(group, column).astype(np.float64)
        for column in (weight, weight * happened, weight * z, np.ones(z.size))
    )
    frequency = events / total
    aims = high * frequency + low * (1.0 - frequency)
    return FitTable(sums / total, total, aims, frequency, number)
