"""The first reading of data to train on: classes, means and deviations of columns, and a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._labels import listed
from .._typing import Floats, Indices
from ..programs.gram import BLOCK
from ..sources.source import Part
from ..tables.values import numbers
from .columns import codes_of, few_labels, numbers_of, one_kind


@dataclass(frozen=True)
class TrainingColumns:
    """Columns to train on, and how their rows become arrays."""

    label: str
    features: tuple[str, ...]
    weight: str | None = None

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [self.label, *self.features, *([] if self.weight is None else [self.weight])]

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return len(self.features)

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the features that a model sees."""
        return self.features

    def table(self, batch: Any) -> Floats:
        """The features of a batch, row by row."""
        found = np.empty((batch.num_rows, len(self.features)))
        for place, name in enumerate(self.features):
            try:
                found[:, place] = numbers(batch.column(name))
            except (TypeError, ValueError) as error:
                raise ValueError(f"column {name!r} does not hold numbers ({error}).") from None
        return found

    def labels(self, batch: Any) -> tuple[Indices, list[Any]]:
        """Codes of the labels of a batch, and what they stand for."""
        codes, values = codes_of(batch, self.label)
        whole = [value if isinstance(value, (str, bool)) else int(value) for value in values]
        for value, plain in zip(values, whole, strict=True):
            if value != plain:
                raise ValueError(
                    f"column {self.label!r} holds {value!r}, which is not a class: labels must be "
                    "text, booleans or whole numbers."
                )
        return codes, whole

    def weights(self, batch: Any) -> Floats:
        """Weights of the rows of a batch."""
        if self.weight is None:
            return np.ones(batch.num_rows)
        found = numbers_of(batch, self.weight).astype(np.float64)
        if not (np.isfinite(found).all() and found.min(initial=0.0) >= 0.0):
            wrong = found[~(np.isfinite(found) & (found >= 0.0))][0]
            raise ValueError(
                f"column {self.weight!r} holds the weight {wrong:g}; weights must be finite and "
                "not negative."
            )
        return found


@dataclass
class ClassSurvey:
    """What is known of the rows of one class.

    `squares` are sums of squares about the mean. Of the sample, rows of the lowest random keys are
    kept.
    """

    count: int
    weight: float
    mean: Floats
    squares: Floats
    keys: Floats
    X: Floats
    weights: Floats

    def join(self, other: ClassSurvey, most: int) -> None:
        """Add other rows."""
        total = self.weight + other.weight
        if other.weight > 0.0:
            apart = other.mean - self.mean
            self.mean = self.mean + apart * (other.weight / total)
            share = self.weight / total * other.weight if self.weight > 0.0 else 0.0
            self.squares = self.squares + other.squares + share * apart**2
        self.count, self.weight = self.count + other.count, total
        self._keep(other, most)

    def _keep(self, other: ClassSurvey, most: int) -> None:
        """Keep the rows of the lowest keys of both."""
        before = self.keys.size
        chosen = _lowest(np.concatenate([self.keys, other.keys]), most)
        stay, come = chosen[chosen < before], chosen[chosen >= before] - before
        leave = np.setdiff1d(np.arange(before), stay, assume_unique=True)[: come.size]
        more = come[leave.size :]
        for name in ("keys", "X", "weights"):  # in place: there may be little room for copies
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[leave] = theirs[come[: leave.size]]
            if more.size:
                mine = np.concatenate([mine, theirs[more]])
            setattr(self, name, mine)
        self.cut(most)

    def cut(self, most: int) -> None:
        """Keep at most so many rows."""
        if self.keys.size > most:
            chosen = _lowest(self.keys, most)
            self.keys, self.X, self.weights = (
                self.keys[chosen],
                self.X[chosen],
                self.weights[chosen],
            )


def _lowest(keys: Floats, most: int) -> Indices:
    """Places of the lowest keys, in order."""
    if keys.size <= most:
        return np.arange(keys.size)
    return np.sort(np.argpartition(keys, most - 1)[:most])


@dataclass
class Survey:
    """What one reading tells of data: classes, and the largest size of each feature."""

    classes: dict[Any, ClassSurvey] = field(default_factory=dict)
    largest: Floats = field(default_factory=lambda: np.zeros(0))
    #: Rows of the part that is being read, for the random keys of the next ones.
    rows: int = 0
    part: int = -1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(own.count for own in self.classes.values())


@dataclass(frozen=True)
class Surveying:
    """Adds batches to a survey; the sample has `most` rows, of a class its share or `least`."""

    columns: TrainingColumns
    most: int
    least: int

    def limit(self, survey: Survey) -> int:
        """Rows of a class in the sample."""
        share = self.most // max(len(survey.classes), 2)
        return max(share, min(self.least, 4 * share), 2)

    def __call__(self, state: Survey | None, batch: Any, part: Part) -> Survey:
        found = Survey() if state is None else state
        if found.part != part.number:
            found.part, found.rows = part.number, 0
        for start in range(0, batch.num_rows, BLOCK):  # there may be little room for copies
            self._add_rows(found, batch.slice(start, BLOCK))
        one_kind(self.columns.label, few_labels(self.columns.label, set(found.classes)))
        return found

    def _add_rows(self, found: Survey, batch: Any) -> None:
        X, weights = self.columns.table(batch), self.columns.weights(batch)
        self._check(X)
        codes, values = self.columns.labels(batch)
        sizes = np.maximum(X.max(axis=0), -X.min(axis=0))
        found.largest = np.maximum(found.largest, sizes) if found.largest.size else sizes
        keys = np.random.default_rng([found.part, found.rows]).random(len(X))
        found.rows += len(X)
        for code, value in enumerate(values):
            own = codes == code
            self._add(found, value, X[own], weights[own], keys[own])

    def _check(self, X: Floats) -> None:
        """Refuse missing and infinite values, by the name of their column."""
        if np.isfinite(X.sum()):
            return
        wrong = ~np.isfinite(X)
        if not wrong.any():
            return
        place = int(np.flatnonzero(wrong.any(axis=0))[0])
        column = X[:, place]
        what = "missing values (null or NaN)" if np.isnan(column).any() else "infinite values"
        raise ValueError(
            f"column {self.columns.inputs[place]!r} has {what}, {int(wrong[:, place].sum())} in a "
            "batch of rows; fill them in or leave these rows out."
        )

    def _add(self, found: Survey, value: Any, X: Floats, weights: Floats, keys: Floats) -> None:
        total = float(weights.sum())
        mean = weights @ X / total if total > 0.0 else np.zeros(X.shape[1])
        known, most = found.classes.get(value), self.limit(found)
        highest = np.inf
        if known is not None and known.keys.size >= most:
            highest = float(known.keys.max())
        kept = np.flatnonzero((keys < highest) & (weights > 0.0))
        kept = kept[_lowest(keys[kept], most)]
        apart = X - mean
        squares = weights @ np.multiply(apart, apart, out=apart)
        more = ClassSurvey(len(X), total, mean, squares, keys[kept], X[kept], weights[kept])
        if known is None:
            found.classes[value] = more
            self._cut(found)
        else:
            known.join(more, most)

    def _cut(self, found: Survey) -> None:
        """Another class leaves less room for the others."""
        for own in found.classes.values():
            own.cut(self.limit(found))

    def merge(self, first: Survey, second: Survey) -> Survey:
        """The survey of both; the rows of `second` come later."""
        for value, own in second.classes.items():
            if value in first.classes:
                first.classes[value].join(own, self.limit(first))
            else:
                first.classes[value] = own
        self._cut(first)
        one_kind(self.columns.label, set(first.classes))
        first.largest = np.maximum(first.largest, second.largest)
        first.part, first.rows = second.part, second.rows
        return first


def check_classes(columns: TrainingColumns, survey: Survey | None) -> list[Any]:
    """The classes in their order; fewer than two are refused."""
    if survey is None:
        raise ValueError("The data have no rows.")
    names = sorted(survey.classes)
    if len(names) < 2:
        raise ValueError(
            f"Column {columns.label!r} holds only the class {listed(names)}; two classes or more "
            "are needed."
        )
    return names
