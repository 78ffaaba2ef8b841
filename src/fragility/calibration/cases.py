"""Maps fitted to cases in memory: to all of them, to some, or to all folds but one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from .._validation import LabelledScores
from . import several_classes, two_classes
from .choice import AUTO, CalibrationChoice, Candidates, log_loss
from .fitting import CalibrationMap, log_odds, logs
from .several_classes import FitRows
from .two_classes import FitTable, platt_targets


def methods(data: LabelledScores) -> Mapping[str, Callable[[Any], CalibrationMap]]:
    """Return the function that fits each map of these classes, by name, the simplest first."""
    return two_classes.METHODS if data.is_binary else several_classes.METHODS


def check_method(name: Any, data: LabelledScores) -> None:
    """Refuse a name that no map of these classes has."""
    names = [AUTO, *methods(data)]
    if name not in names:
        of = "two classes" if data.is_binary else "several classes"
        raise ValueError(
            f"method must be one of {', '.join(map(repr, names))} for {of}; got {name!r}."
        )


def fitted_map(data: LabelledScores, method: str | None = None) -> CalibrationMap:
    """Return a map fitted to all predictions.

    By default Platt scaling of two classes, and one temperature of several.
    """
    name = method or ("platt" if data.is_binary else "temperature")
    return methods(data)[name](_fit_data(data))


def fitted_temperature(data: LabelledScores, rows: Mask | None = None) -> float:
    """The temperature fitted to these rows (all by default) of predictions of several classes."""
    given = _fit_data(data, rows)
    assert isinstance(given, FitRows)
    return given.temperature


class FoldMaps:
    """Maps of several kinds, each fitted to all folds but one.

    Parameters
    ----------
    data : LabelledScores
    folds : ndarray of shape (n,)
        Fold of each case.
    method : str
        The only kind to fit; by default all to choose from.
    counts : ndarray of shape (n,), optional
        How often each case came, which its weight has in it already; once by default.
    alike : float, default=1
        How many cases count as one when kinds are compared.
    """

    def __init__(
        self,
        data: LabelledScores,
        folds: Indices,
        method: str = AUTO,
        counts: Integers | None = None,
        alike: float = 1.0,
    ) -> None:
        self._data, self._folds, self._counts, self._method = data, folds, counts, method
        self._alike = alike
        kinds = methods(data)
        kinds = kinds if method == AUTO else {method: kinds[method]}
        self.maps: dict[str, list[CalibrationMap]] = {name: [] for name in kinds}
        for fold in range(int(folds.max()) + 1):
            given = _fit_data(data, folds != fold)
            for name, fitted in kinds.items():
                self.maps[name].append(fitted(given))

    @cached_property
    def candidates(self) -> Candidates:
        """How each kind did: the log-loss of each case under the map that was fitted without it."""
        data, counts = self._data, self._counts
        weights = np.ones(data.codes.size) if data.weights is None else data.weights
        used = weights > 0.0
        weights = weights[used] / weights.max()
        squares = weights**2 if counts is None else weights**2 / counts[used]
        losses = {name: self._losses(maps)[used] for name, maps in self.maps.items()}
        return Candidates.of(losses, weights, self._alike * squares)

    def _losses(self, maps: Sequence[CalibrationMap]) -> Floats:
        data, loss = self._data, np.empty(self._data.codes.size)
        for fold, mapped in enumerate(maps):
            own = self._folds == fold
            p, codes = mapped(data.scores[own]), data.codes[own]
            if data.is_binary:
                loss[own] = log_loss(np.where(codes == data.positive, p, 1.0 - p))
            else:
                loss[own] = log_loss(p[np.arange(codes.size), codes])
        return loss

    @property
    def choice(self) -> CalibrationChoice:
        """The only kind, or the one that these cases choose."""
        return self.candidates.chosen() if self._method == AUTO else CalibrationChoice(self._method)


def _fit_data(data: LabelledScores, rows: Mask | None = None) -> FitTable | FitRows:
    """Return what maps are fitted to: these rows (all by default) that have weight."""
    weights = np.ones(data.codes.size) if data.weights is None else data.weights
    used = weights > 0.0 if rows is None else rows & (weights > 0.0)
    weights = weights[used] / weights[used].max()
    if not data.is_binary:
        return FitRows(logs(data.scores[used]), data.codes[used], weights)
    truth = data.codes[used] == data.positive
    positives = int(np.count_nonzero(truth))
    high, low = platt_targets(positives, truth.size - positives)
    happened: Floats = truth.astype(np.float64)
    aims = np.where(truth, high, low)
    return FitTable(log_odds(data.scores[used]), weights, aims, happened, np.ones(truth.size))
