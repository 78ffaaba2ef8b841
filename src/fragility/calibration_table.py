"""Cross-fitted calibration of two classes by a table of scores.

Figures of cases that are not held need calibration, too. The scores of two classes are kept by
value or by bin, cases of a class and value are dealt to folds as equals, and each fold's map is
fitted to the table without its cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._typing import Floats, Indices
from ._validation import LabelledScores
from .calibration import Platt, check_can_calibrate, log_odds, platt_targets
from .scores.bins import ScoreBins
from .scores.cases import case_amounts
from .scores.folds import dealt
from .scores.tally import units_of

#: Folds of a calibration, and ways to deal bins to them: one way will do for many cases.
_FOLDS, _SPLITS, _MANY_CASES = 5, 4, 100_000


class ScoreTable(NamedTuple):
    """Scores of two classes by value: distinct scores, or bins at the mean of their scores.

    Attributes
    ----------
    scores : ndarray of shape (B,)
        Ascending.
    amounts : dict of str to ndarray of shape (2, B)
        By class and value: "number", "weight" and "squares" of the cases; "costs" and
        "cost_squares", if they have costs of their own.
    places : callable
        Place in the table of each of some scores.
    """

    scores: Floats
    amounts: dict[str, Floats]
    places: Callable[[Floats], Indices]

    @classmethod
    def of_bins(cls, bins: ScoreBins) -> ScoreTable:
        """Every score at the mean of its bin."""
        held = np.flatnonzero(bins.table("weight").any(axis=0))
        names = "weight", "number", "squares", *(n for n in bins.sums if n.startswith("cost"))
        amounts = {name: bins.table(name)[:, held] for name in names}
        means = bins.score_sums()[:, held].sum(axis=0) / amounts["weight"].sum(axis=0)
        lookup = np.zeros(bins.layout.length, dtype=np.intp)
        lookup[held] = np.arange(held.size)
        return cls(means, amounts, lambda scores: lookup.take(bins.layout.places(scores)))

    @classmethod
    def of_cases(cls, data: LabelledScores, costs: Floats | None) -> ScoreTable:
        """Distinct scores of cases in memory."""
        scores, origin = np.unique(data.scores.astype(np.float64), return_inverse=True)
        keys = data.codes.astype(np.intp) * scores.size + origin
        amounts = case_amounts(keys.size, data.weights, costs)
        tables = {
            name: np.bincount(keys, part, 2 * scores.size).reshape(2, -1).astype(np.float64)
            for name, part in amounts.items()
        }
        tables.setdefault("weight", tables["number"])
        tables.setdefault("squares", tables["number"])
        return cls(scores, tables, lambda values: np.searchsorted(scores, values))


class TableCalibration(NamedTuple):
    """Cross-fitted calibration of two classes.

    Cases of a class and value are dealt to folds as equals: a share of them is under the map of
    each fold.

    Attributes
    ----------
    scores : ndarray of shape (n_splits * n_folds, B)
        Calibrated score of each value under each map.
    shares : ndarray of shape (2, n_splits * n_folds, B)
        Share of the cases of each class and value that is under each map.
    n_splits : int
    """

    scores: Floats
    shares: Floats
    n_splits: int


def calibrated_table(
    table: ScoreTable, positive: int, labels: NDArray[Any], seed: int = 0
) -> TableCalibration:
    """Cross-fitted Platt maps of two classes; raises `CannotCalibrateError` if there are none."""
    weights = table.amounts["weight"]
    units = units_of(weights, table.amounts["squares"])
    sizes = units.sum(axis=1)
    check_can_calibrate(labels, sizes)
    n_folds = min(_FOLDS, int(sizes.min()))
    weights = weights / weights.max()
    z = log_odds(table.scores)
    n_splits = _SPLITS if int(sizes.sum()) <= _MANY_CASES else 1
    found: Platt | None = None
    scores, dealt_units = [], []
    for split in range(n_splits):
        folds = np.stack(
            [dealt(units[code], n_folds, [int(code == positive), split, seed]) for code in range(2)]
        )
        dealt_units.append(folds)
        for fold in range(n_folds):
            own = folds[:, fold]
            rest = weights * np.divide(units - own, units, out=np.zeros(own.shape), where=units > 0)
            counts = (sizes - own.sum(axis=1)).tolist()
            high, low = platt_targets(counts[positive], counts[1 - positive])
            total = rest.sum(axis=0)
            aim = high * rest[positive] + low * rest[1 - positive]
            np.divide(aim, total, out=aim, where=total > 0.0)
            found = Platt.fitted(z, total, aim, found)
            scores.append(found(table.scores))
    folds = np.concatenate(dealt_units, axis=1)
    shares = folds / np.maximum(n_splits * units, 1)[:, np.newaxis]
    return TableCalibration(np.stack(scores), shares, n_splits)
