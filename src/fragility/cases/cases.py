r"""The table of cases: what every figure, policy and report is computed from.

A row is a case in memory, or stands for `count` cases of a sample. A figure of a model is a value
and the influence of a unit of mass of each row, with :math:`\sum mass \cdot influence = 0`, where
mass = weight · count; `Cases.spread` turns influences into a standard error by one rule. A group
is `Cases.take` of its rows, and the difference of two models has the difference of their
influences, so nothing else needs to know about weights, clusters, groups or samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import inf, nan, sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers, Mask

#: A smaller standard error of a figure of order one is rounding.
_ROUNDING = 1e-13
#: With fewer effective cases the variance of a class is unknown.
_FEWEST = 1.0 + 1e-9


class Spread(NamedTuple):
    """A standard error, and its degrees of freedom (Satterthwaite)."""

    error: float
    freedom: float


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases that models have scored, as columns.

    Attributes
    ----------
    y : ndarray of int of shape (n,), or mapping of str to ndarray of bool
        Class of each case as its place in `labels`. Of answers, whether each model was right: two
        models are right on different cases. Read it by `truth`.
    scores : mapping of str to ndarray
        By model, probabilities of the positive class (n,) or of each class (n, C). NaN where a
        model abstained.
    labels : tuple
        The classes; of answers "wrong" and "right".
    positive : int
        Place of the positive class of two.
    weight : ndarray of shape (n,), optional
        Weight of each case, above zero.
    cluster : ndarray of int of shape (n,), optional
        Cluster of each case, numbered from 0.
    groups : mapping of str to ndarray of int of shape (n,)
        By column, the group of each case as its place among the names of the column.
    group_names : mapping of str to sequence of str
        By column, the names of the groups in their order.
    error_cost : ndarray of shape (n,), optional
        What an error on each case costs.
    reviewer_error : ndarray of shape (n,), optional
        Probability that a review of each case is wrong.
    human : ndarray of int of shape (n,), optional
        Class that a human decided on each case.
    row : ndarray of int of shape (n,), optional
        Row of each case in the data of the user; None: they are numbered from 0.
    count : ndarray of shape (n,), optional
        How many cases each row of a sample stands for; None: each row is one case.
    cell : ndarray of int of shape (n,), optional
        Cell that each row of a sample was drawn from, numbered from 0.
    number : ndarray of shape (n,), optional
        Random number by which each row of a sample was drawn.
    plain : ndarray of bool of shape (n,), optional
        Which rows of a sample are a simple random sample of all rows.
    strata : mapping of str to (ndarray, ndarray)
        By column of groups, `count` and `cell` for figures of one group of a sample.
    whole : (Cases, ndarray of int), optional
        All cases of a sample, and the rows among them that this table holds: the error of a part
        of a sample depends on the rows outside, too.
    """

    y: Integers | Mapping[str, Mask]
    scores: Mapping[str, Floats]
    labels: Sequence[Any] = (0, 1)
    positive: int = 1
    weight: Floats | None = None
    cluster: Integers | None = None
    groups: Mapping[str, Integers] = field(default_factory=dict)
    group_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error_cost: Floats | None = None
    reviewer_error: Floats | None = None
    human: Integers | None = None
    row: Indices | None = None
    count: Floats | None = None
    cell: Integers | None = None
    number: Floats | None = None
    plain: Mask | None = None
    strata: Mapping[str, tuple[Floats, Integers]] = field(default_factory=dict)
    whole: tuple[Cases, Indices] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.scores.values())))

    @property
    def answers(self) -> bool:
        """Whether cases are answers, right or wrong, which a model always claims to be right."""
        return isinstance(self.y, Mapping)

    @property
    def n_columns(self) -> int:
        """Number of columns of probabilities: two classes have one."""
        return 1 if len(self.labels) == 2 else len(self.labels)

    def truth(self, model: str) -> Integers:
        """Return the class of each case, of answers whether the model was right."""
        if isinstance(self.y, Mapping):
            return self.y[model].astype(np.int64)
        return self.y

    @cached_property
    def unit(self) -> Floats:
        """Weight of one case of each row."""
        return np.ones(self.n) if self.weight is None else self.weight

    @cached_property
    def mass(self) -> Floats:
        """What each row counts in sums: its weight times the number of cases it stands for."""
        return self.unit if self.count is None else self.unit * self.count

    @cached_property
    def rows(self) -> Indices:
        """Row of each case in the data of the user."""
        return np.arange(self.n) if self.row is None else self.row

    def take(self, rows: NDArray[Any]) -> Self:
        """Return some of the rows, by a mask or by places; a part of a sample remembers it all."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows

        def part(column: Any) -> Any:
            if isinstance(column, Mapping):
                return {name: part(values) for name, values in column.items()}
            if isinstance(column, tuple) and column and isinstance(column[0], np.ndarray):
                return tuple(values[places] for values in column)
            return column[places] if isinstance(column, np.ndarray) else column

        columns = {own.name: part(getattr(self, own.name)) for own in fields(self)}
        columns |= {"row": self.rows[places], "labels": self.labels, "whole": None}
        if self.whole is not None:
            columns["whole"] = self.whole[0], self.whole[1][places]
        elif self.count is not None:
            columns["whole"] = self, places
        return replace(self, **columns)

    def group(self, column: str, group: int) -> Self:
        """Return the cases of one group; of a sample with what they stand for in that column."""
        chosen = self.take(self.groups[column] == group)
        if column not in chosen.strata:
            return chosen
        count, cell = chosen.strata[column]
        return replace(
            chosen, count=count, cell=np.unique(cell, return_inverse=True)[1], whole=None
        )

    def spread(
        self,
        influence: Floats,
        classes: Integers | None = None,
        among: Mask | None = None,
    ) -> Spread:
        """Return the standard error of a figure from the influence of each unit of mass.

        Parameters
        ----------
        influence : ndarray of shape (n,)
            Zero for rows that do not move the figure.
        classes : ndarray of int of shape (n,), optional
            Classes that count as independent samples of fixed size, for figures of pairs of
            classes; None: all cases are one sample.
        among : ndarray of bool of shape (n,), optional
            The cases that the figure is of, such as those that a model answered.
        """
        if self.whole is not None:
            return self._spread_in_whole(influence, classes, among)
        terms = self.unit * influence
        largest = float(np.abs(terms).max(initial=0.0))
        if not largest < inf:
            return Spread(nan, nan)
        terms = terms / (largest or 1.0)
        error, freedom = (
            self._spread_of_cases(terms, classes, among)
            if self.cluster is None
            else self._spread_of_clusters(terms, among)
        )
        return Spread(error * largest, freedom)

    def _spread_in_whole(
        self, influence: Floats, classes: Integers | None, among: Mask | None
    ) -> Spread:
        """Return the spread within the whole sample, whose other rows have no influence."""
        assert self.whole is not None
        sample, rows = self.whole
        padded, counted = np.zeros(sample.n), np.zeros(sample.n, dtype=np.bool_)
        padded[rows], counted[rows] = influence, True if among is None else among
        if classes is not None:
            classes, own = np.zeros(sample.n, dtype=np.int64), classes
            classes[rows] = own
        return sample.spread(padded, classes, counted)

    def _spread_of_clusters(self, terms: Floats, among: Mask | None) -> tuple[float, float]:
        """Return error and freedom where the totals of clusters are independent."""
        assert self.cluster is not None
        counted = np.ones(self.n, dtype=np.bool_) if among is None else among
        moves = terms * counted if self.count is None else terms * counted * self.count
        totals = np.bincount(self.cluster, moves)
        totals = totals[np.bincount(self.cluster[counted], minlength=totals.size) > 0]
        if totals.size < 2:
            return nan, nan
        squares, fourths = float((totals**2).sum()), float((totals**4).sum())
        n_clusters = np.array([totals.size])
        return _error_and_freedom(np.array([squares]), np.array([fourths]), n_clusters, n_clusters)

    def _spread_of_cases(
        self, terms: Floats, classes: Integers | None, among: Mask | None
    ) -> tuple[float, float]:
        """Return error and freedom where cases are independent, or were drawn from cells."""
        squares = terms**2
        if self.count is not None:
            squares = self.count * (squares + self._left_open(terms))
        label = np.zeros(self.n, dtype=np.int64) if classes is None else classes
        counted = np.ones(self.n) if among is None else among.astype(np.float64)
        mass = self.mass * counted
        number, total, second = (
            np.bincount(label, column) for column in (counted, mass, mass * self.unit)
        )
        present = number > 0
        sizes = total[present] ** 2 / second[present]
        sums, fourths = (
            np.bincount(label, column, number.size).astype(np.float64)[present]
            for column in (squares, squares**2)
        )
        return _error_and_freedom(sums, fourths, sizes, number[present])

    def _left_open(self, terms: Floats) -> Floats:
        """Return what a row's cell leaves open of each of the cases that the row stands for.

        The squared distance of its term from the mean of the cell, times the number of cases that
        were not drawn, with Bessel's correction. Nothing, where all cases are in the table.
        """
        if self.cell is None or self.count is None:
            return np.zeros(self.n)
        number = np.bincount(self.cell)
        mean = (np.bincount(self.cell, terms) / np.maximum(number, 1))[self.cell]
        n = number[self.cell]
        squares = np.where(n > 1, (terms - mean) ** 2 * n / np.maximum(n - 1, 1), terms**2)
        return np.asarray(np.maximum(self.count - 1.0, 0.0) * squares)


def _error_and_freedom(
    squares: Floats, fourths: Floats, sizes: NDArray[Any], numbers: NDArray[Any]
) -> tuple[float, float]:
    """Return standard error and degrees of freedom from sums of squares and fourth powers.

    All have an entry for each class; `sizes` are effective numbers of cases, `numbers` those of
    rows. Bessel's correction is by effective size.
    """
    if (sizes < _FEWEST).any():
        return nan, nan
    error = sqrt(float((squares * sizes / (sizes - 1.0)).sum()))
    most = max(float((numbers - 1.0).clip(0.0).sum()), 1.0)
    excess = float((fourths - squares**2 / np.maximum(numbers, 1.0)).sum())
    freedom = min(2.0 * float(squares.sum()) ** 2 / excess, most) if excess > 0.0 else most
    return error, freedom
