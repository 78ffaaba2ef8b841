r"""Strata of a sample: the cell of each row, and how many rows of lowest number a stratum keeps.

Every row has a random number u and belongs to one stratum of each family (all rows; cells; groups,
by column). A family has a budget of rows, and each of its strata keeps its L rows of lowest u, with
L the largest whole number such that :math:`\sum \min(n_{stratum}, L) \le budget`. The u of the
first row that a stratum drops is its limit. As rows are added L can only fall, and limits with it,
so that the lower one of the limits of two samples is the limit of both together, in any order.
`Sample` is the only caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._parameters import require
from .._typing import Floats, Integers, Mask
from .cases import Cases

#: Models that cells tell apart: with more there would be more cells than rows.
_MOST_MODELS = 3
#: Codes of decisions.
_ERROR, CONFIDENT_ERROR, _RIGHT, _CONFIDENT_RIGHT, ABSTAINED = range(5)
_N_DECISIONS = 5
#: Classes of size of a weight or an amount: steps of a factor of four, about one.
_N_SIZES = 64
_ROWS_PER_CELL, _MOST_STEPS = 8, 1024
#: Where the steps of the first model's log-odds end.
_REACH = 40.0
#: Of a later model: the difference of log-odds that tells it apart from the first one, where steps
#: of the difference end, and up to where the first model's log-odds count in it.
_NEAR, _DIFFERENCE_REACH, _REFERENCE_REACH = 0.02, 10.0, 6.0
_LARGEST_LOG_ODDS = 700.0
#: Keys up to this one are looked up in a table, which is a hundred times faster than a search.
_LARGEST_TABLE = 1 << 22
#: Names of families; those of groups begin with the third.
ALL, CELLS, GROUPS = "all rows", "cells", "groups "


@dataclass(frozen=True)
class Cells:
    """How rows are divided into cells.

    Attributes
    ----------
    n_classes : int
        Number of classes; 1 for answers, whose decisions say which models were right.
    n_models : int
        Number of models that cells tell apart, at most three.
    n_steps : int
        Steps of the log-odds of each of these models.
    confident_above : float
        Probability above which a decision is confident.
    """

    n_classes: int
    n_models: int
    n_steps: int
    confident_above: float

    @classmethod
    def of_sample(
        cls, room: float, n_classes: int, n_models: int, n_sizes: int, confident_above: float
    ) -> Cells:
        """Return cells such that a sample of `room` rows has about eight in each.

        `n_classes` is 1 for answers; `n_sizes` says how many of weight and error cost there are.
        """
        n_models = min(n_models, _MOST_MODELS)
        n_truths = 2**n_models if n_classes == 1 else n_classes
        n_cells = min(room, 2.0**62) / (_ROWS_PER_CELL * n_truths * 6**n_sizes)
        n_steps = max(3, min(_MOST_STEPS, int(n_cells ** (1.0 / n_models))))
        return cls(n_classes, n_models, n_steps, confident_above)

    @property
    def n_kinds(self) -> int:
        """Number of combinations of a class and a decision of each model."""
        return int(self.n_classes * _N_DECISIONS**self.n_models)

    def keys(self, cases: Cases) -> Integers:
        """Return the number of each row's cell; its remainder by `n_kinds` is the row's kind."""
        kind = np.zeros(cases.n, dtype=np.int64) if isinstance(cases.y, Mapping) else cases.y
        steps = np.zeros(cases.n, dtype=np.int64)
        reference: Floats | None = None
        for model in list(cases.scores)[: self.n_models]:
            log_odds, decision = self._log_odds_and_decision(cases, model)
            if reference is None:
                reference = np.clip(np.nan_to_num(log_odds), -_REFERENCE_REACH, _REFERENCE_REACH)
                position = np.arcsinh(log_odds / 2.0) / np.arcsinh(_REACH / 2.0)
            else:
                difference = np.arcsinh((log_odds - reference) / _NEAR)
                position = difference / np.arcsinh(_DIFFERENCE_REACH / _NEAR)
            step = np.floor(position * self.n_steps / 2.0) + self.n_steps // 2
            step = np.nan_to_num(np.clip(step, 0, self.n_steps - 1), nan=self.n_steps)
            steps = steps * (self.n_steps + 1) + step.astype(np.int64)
            kind = kind * _N_DECISIONS + decision
        for size in (cases.weight, cases.error_cost):
            if size is not None:
                step = np.floor(np.log2(np.maximum(size, 1e-300)) / 2.0) + _N_SIZES // 2
                steps = steps * _N_SIZES + np.clip(step, 0, _N_SIZES - 1).astype(np.int64)
        return steps * self.n_kinds + kind

    def class_and_decisions(self, keys: Integers) -> tuple[Integers, list[Integers]]:
        """Return the class of rows of each key, and what each model decided on them."""
        kinds = keys % self.n_kinds
        digits = [_N_DECISIONS**power for power in range(self.n_models, -1, -1)]
        return kinds // digits[0], [kinds // digit % _N_DECISIONS for digit in digits[1:]]

    def _log_odds_and_decision(self, cases: Cases, model: str) -> tuple[Floats, Integers]:
        """Return the log-odds that a model gives to the truth, and the code of its decision."""
        truth, scores = cases.truth(model), np.clip(cases.scores[model], 0.0, 1.0)
        if scores.ndim == 2:
            log_odds = logit(scores[np.arange(cases.n), truth])
            right, confidence = scores.argmax(axis=1) == truth, scores.max(axis=1)
        elif cases.answers:
            log_odds, right, confidence = logit(scores), truth == 1, scores
        else:
            # Turning the sign is exact, where 1 - p would lose the smallest probabilities.
            log_odds = logit(scores) * (2 * truth - 1)
            right, confidence = (scores > 0.5) == truth, np.maximum(scores, 1.0 - scores)
        decision = 2 * right + (confidence > self.confident_above)
        decision[np.isnan(log_odds)] = ABSTAINED
        return np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS), decision


@dataclass
class Strata:
    """The strata of one family.

    Attributes
    ----------
    keys : ndarray of int of shape (n_strata,)
        Ascending. Every row that was counted is in one of these strata.
    n_rows, weight : ndarray of shape (n_strata,)
        Number of rows that were counted, and sum of their weights.
    limit : ndarray of shape (n_strata,)
        Rows of this number or a larger one are not kept; infinite where all are.
    """

    keys: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_rows: Floats = field(default_factory=lambda: np.zeros(0))
    weight: Floats = field(default_factory=lambda: np.zeros(0))
    limit: Floats = field(default_factory=lambda: np.zeros(0))

    def count(self, keys: Integers, weight: Floats | None) -> None:
        """Count rows by the key of their stratum."""
        strata, codes = np.unique(keys, return_inverse=True)
        n_rows, sums = (np.bincount(codes, w).astype(np.float64) for w in (None, weight))
        self.add(Strata(strata, n_rows, sums, np.full(strata.size, inf)))

    def add(self, other: Strata) -> None:
        """Add the strata of other rows."""
        keys, codes = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        limit = np.full(keys.size, inf)
        np.minimum.at(limit, codes, np.concatenate([self.limit, other.limit]))
        sums = [
            np.bincount(codes, np.concatenate(columns)).astype(np.float64)
            for columns in ((self.n_rows, other.n_rows), (self.weight, other.weight))
        ]
        self.keys, self.limit, (self.n_rows, self.weight) = keys, limit, sums

    def positions(self, keys: Integers) -> Integers:
        """Return where in `keys` the stratum of each row stands."""
        if self.keys[-1] >= _LARGEST_TABLE:
            return np.searchsorted(self.keys, keys).astype(np.int64)
        table = np.zeros(int(self.keys[-1]) + 1, dtype=np.int64)
        table[self.keys] = np.arange(self.keys.size)
        return table[keys]

    def fits(self, keys: Integers) -> bool:
        """Return whether these can be the strata of rows with the keys."""
        sums = (self.n_rows, self.weight, self.limit)
        return bool(
            self.keys.dtype == np.int64
            and all(s.dtype == np.float64 and s.shape == (self.keys.size,) for s in sums)
            and (np.diff(self.keys, prepend=-1) > 0).all()
            and np.isfinite(self.n_rows + self.weight).all()
            and np.minimum(self.n_rows, self.weight).min() > 0.0
            and (self.limit >= 0.0).all()
            and np.isin(keys, self.keys).all()
            and (np.bincount(self.positions(keys), minlength=self.keys.size) <= self.n_rows).all()
        )

    def rows_per_stratum(self, budget: float) -> float:
        """Return the most rows that every stratum may keep within the budget."""
        ascending = np.sort(self.n_rows)
        smaller = np.cumsum(ascending) - ascending
        # The first stratum that is too large shares with all larger ones what smaller ones leave.
        share = (budget - smaller) / np.arange(ascending.size, 0, -1)
        too_large = np.flatnonzero(share < ascending)
        return float(np.floor(share[too_large[0]])) if too_large.size else inf

    def lower_limits(self, keys: Integers, numbers: Floats, most: float) -> None:
        """Lower the limits to those of keeping `most` rows of each stratum; numbers ascend."""
        if most == 0.0:
            self.limit[:] = 0.0
        elif most < inf:
            positions = self.positions(keys)
            order = np.argsort(positions, kind="stable")
            sizes = np.bincount(positions, minlength=self.keys.size)
            crowded = np.flatnonzero(sizes > most)
            dropped = order[(np.cumsum(sizes) - sizes)[crowded] + int(most)]
            self.limit[crowded] = np.minimum(self.limit[crowded], numbers[dropped])

    def standing(self, keys: Integers, chances: Floats, unit: Floats) -> tuple[Floats, Integers]:
        """Return how many cases each row stands for, and its stratum, numbered from 0.

        Rows stand for the cases of their stratum in proportion to one over their chance, such that
        weights sum to what was counted.
        """
        positions = self.positions(keys)
        drawn = np.bincount(positions, unit / chances, self.keys.size)
        ratio = np.divide(self.weight, drawn, out=np.zeros(drawn.size), where=drawn > 0.0)
        return ratio[positions] / chances, (np.cumsum(drawn > 0.0) - 1)[positions]


@dataclass(frozen=True)
class Totals:
    """Exact sums over all rows that were read: each is a number of rows, and their weight.

    Attributes
    ----------
    classes : ndarray of shape (n_classes, 2)
        By class; of answers, of all together.
    answered, errors, confident_errors : mapping of str to ndarray of shape (2,)
        By model, for the first three: rows on which it did not abstain, those of them on which it
        was wrong, and those on which it was wrong with a confidence above `confident_above`.
    """

    classes: Floats
    answered: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    confident_errors: Mapping[str, Floats]


@dataclass(frozen=True)
class Families:
    """All families of strata of a sample.

    Attributes
    ----------
    capacity : float
        Number of rows up to which all are kept. Of more, the sample has half as many.
    cells : Cells
    clustered : bool
        Whether rows have clusters, which are kept whole: then only the family of all rows is used.
    strata : dict of str to Strata
        By name of the family: `ALL`, `CELLS`, and `GROUPS` with the name of a column.
    """

    capacity: float
    cells: Cells
    clustered: bool
    strata: dict[str, Strata]

    @property
    def is_drawn(self) -> bool:
        """Whether there are too many rows to keep them all."""
        return bool(self.strata[ALL].n_rows.sum() > self.capacity)

    def keys(self, rows: Cases) -> dict[str, Integers]:
        """Return the stratum of each row, by family; rows know the number of their cell."""
        assert rows.cell is not None
        kinds = rows.cell % self.cells.n_kinds
        groups = {GROUPS + c: code * self.cells.n_kinds + kinds for c, code in rows.groups.items()}
        return {ALL: np.zeros(rows.n, dtype=np.int64), CELLS: rows.cell, **groups}

    def count(self, rows: Cases) -> None:
        """Count rows in all families."""
        for family, keys in self.keys(rows).items():
            self.strata[family].count(keys, rows.weight)

    def add(self, other: Families, tables: Mapping[str, Integers]) -> None:
        """Add the strata of another sample; tables turn its codes of groups into those of this."""
        for family, strata in other.strata.items():
            keys = strata.keys
            if family.startswith(GROUPS):
                codes, kinds = np.divmod(keys, self.cells.n_kinds)
                keys = tables[family.removeprefix(GROUPS)][codes] * self.cells.n_kinds + kinds
            self.strata[family].add(Strata(keys, strata.n_rows, strata.weight, strata.limit))

    def chances(self, keys: Mapping[str, Integers]) -> Floats:
        """Return the largest limit of each row's strata: rows of lower numbers are kept."""
        limits = (
            strata.limit[strata.positions(keys[family])] for family, strata in self.strata.items()
        )
        return reduce(np.maximum, limits)

    def rows_per_stratum(self) -> dict[str, float]:
        """Return the most rows that each stratum keeps, by family; 0 where a family is not used."""
        room, n_columns = self.capacity / 2.0, len(self.strata) - 2
        budgets = dict.fromkeys(self.strata, room / (4.0 * max(n_columns, 1)))
        budgets |= {ALL: room / 2.0, CELLS: room / (4.0 if n_columns else 2.0)}
        most = {name: self.strata[name].rows_per_stratum(budgets[name]) for name in self.strata}
        # Two rows of a cell show how its rows differ, and a cell without a row would be lost. So
        # many cells that one row of each does not fit leave a plain sample.
        n_cells = self.strata[CELLS].keys.size
        least = 1.25 * room // max(n_cells, 1)
        most[CELLS] = max(most[CELLS], min(least, 2.0))
        for family in most.keys() - {ALL}:
            if self.clustered or (family != CELLS and most[family] < 2.0):
                most[family] = 0.0
        return most

    def below_limits(self, rows: Cases) -> Cases:
        """Return the rows that a limit keeps."""
        assert rows.number is not None
        return rows.take(rows.number < self.chances(self.keys(rows)))

    def lower_limits(self, rows: Cases) -> Cases:
        """Lower all limits to those of the rows that were counted; return the rows below them.

        They are in the order of their numbers.
        """
        assert rows.number is not None
        order = np.argsort(rows.number, kind="stable")
        numbers = rows.number[order]
        keys = {family: column[order] for family, column in self.keys(rows).items()}
        for family, most in self.rows_per_stratum().items():
            self.strata[family].lower_limits(keys[family], numbers, most)
        return rows.take(order[numbers < self.chances(keys)])

    def standing(self, rows: Cases) -> dict[str, tuple[Floats, Integers]]:
        """Return how many cases each row stands for and its stratum, by family that is used."""
        keys = self.keys(rows)
        chances = np.minimum(self.chances(keys), 1.0)
        most = self.rows_per_stratum()
        used = [family for family in self.strata if most[family] > 0.0]
        return {f: self.strata[f].standing(keys[f], chances, rows.unit) for f in used}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all strata by name, for a file."""
        return {
            f"{column} of {position}": array
            for position, strata in enumerate(self.strata.values())
            for column, array in vars(strata).items()
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take the arrays of all strata out of those of a file."""
        for name in self.arrays():
            column, _, position = name.partition(" of ")
            setattr(list(self.strata.values())[int(position)], column, arrays.pop(name))

    def check(self, rows: Cases, n_rows: int) -> None:
        """Raise ValueError unless rows, strata and the number of rows read fit together."""
        assert rows.number is not None
        keys = self.keys(rows)
        fits = all(strata.fits(keys[family]) for family, strata in self.strata.items())
        counted = {float(strata.n_rows.sum()) for strata in self.strata.values()}
        require(
            fits
            and len(counted) == 1
            and min(counted) <= n_rows
            and (rows.n < min(counted)) == self.is_drawn
            and rows.n <= self.capacity
            and 0 <= rows.rows.min() <= rows.rows.max() < n_rows
            and rows.number.min() >= 0.0
            and (rows.number < np.minimum(self.chances(keys), 1.0)).all(),
            "its rows do not fit what it says of them",
        )

    def totals(
        self, models: Sequence[str], column: str | None = None, code: int | None = None
    ) -> Totals:
        """Return exact sums over all rows that were counted, or over those of one group."""
        strata = self.strata[CELLS if column is None else GROUPS + column]
        chosen = np.ones(strata.keys.size, dtype=np.bool_)
        if column is not None:
            chosen = strata.keys // self.cells.n_kinds == code
        sums = np.stack([strata.n_rows, strata.weight], axis=1)[chosen]
        classes, decisions = self.cells.class_and_decisions(strata.keys[chosen])

        def total(chosen: Mask) -> Floats:
            counted: Floats = sums[chosen].sum(axis=0)
            return counted

        by_model = dict(zip(models, decisions, strict=False))
        return Totals(
            np.stack([total(classes == place) for place in range(self.cells.n_classes)]),
            {model: total(decision != ABSTAINED) for model, decision in by_model.items()},
            {model: total(decision <= CONFIDENT_ERROR) for model, decision in by_model.items()},
            {model: total(decision == CONFIDENT_ERROR) for model, decision in by_model.items()},
        )
