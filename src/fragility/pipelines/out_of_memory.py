"""From Parquet files that do not fit into memory to a trained pipeline, in readings of their rows.

The pipeline is that of `train_pipeline`: numbers standardised, levels one-hot. Its steps are made
from a first reading, and do to batches of rows what they will do to new data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._labels import listed
from .._typing import Floats
from ..distributed.fitting import fit_columns
from ..distributed.survey import TrainingColumns
from ..exceptions import TableError
from ..linear_model.base import LinearClassifier
from ..losses import CrossEntropy
from ..sources.source import Part, Source
from ..tables.arrow import pyarrow
from ..tables.values import encoded, numbers
from .frames import pandas
from .kinds import ColumnKinds, check_spread, date_error, looks_like_dates

#: Different values of a text column at most.
MOST_LEVELS = 1_000
#: Levels that are taken for categories, unless more are allowed.
_FEW_LEVELS = 50


@dataclass
class _Numbers:
    """Moments of a numeric column: standardisation counts each row once."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    def add(self, values: Floats) -> None:
        mean = float(values.mean())
        with np.errstate(over="ignore", under="ignore"):
            squares = float(((values - mean) ** 2).sum())
        self.join(_Numbers(values.size, mean, squares, float(values.min()), float(values.max())))

    def join(self, other: _Numbers) -> None:
        total, apart = self.count + other.count, other.mean - self.mean
        if total:
            self.squares += other.squares + apart**2 * self.count * other.count / total
            self.mean += apart * other.count / total
        self.count = total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


@dataclass
class _Columns:
    """What a reading tells of the columns."""

    numeric: dict[str, _Numbers] = field(default_factory=dict)
    levels: dict[str, Counter[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Reading:
    """Adds batches to what is known of the features; gaps are refused."""

    features: tuple[str, ...]
    most: int

    def __call__(self, state: _Columns | None, batch: Any, part: Part) -> _Columns:
        found = _Columns() if state is None else state
        for name in self.features:
            column = batch.column(name)
            if _is_numeric(column.type):
                own = numbers(column).astype(np.float64, copy=False)
                self._check(name, own)
                found.numeric.setdefault(name, _Numbers()).add(own)
                continue
            codes, values = _levels_of(name, column)
            counts = Counter(dict(zip(values, np.bincount(codes).tolist(), strict=True)))
            found.levels.setdefault(name, Counter()).update(counts)
            self._check_number(name, found.levels[name])
        return found

    def merge(self, first: _Columns, second: _Columns) -> _Columns:
        """What both tell."""
        for name, own in second.numeric.items():
            first.numeric.setdefault(name, _Numbers()).join(own)
        for name, counts in second.levels.items():
            first.levels.setdefault(name, Counter()).update(counts)
            self._check_number(name, first.levels[name])
        return first

    def _check(self, name: str, values: Floats) -> None:
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
        what = "missing values" if np.isnan(values).any() else "infinite values"
        raise ValueError(f"column {name!r} has {what}. {_GAPS}")

    def _check_number(self, name: str, counts: Counter[Any]) -> None:
        if len(counts) > self.most:
            raise ValueError(
                f"column {name!r} has more than {self.most} different values, such as "
                f"{listed([*counts][:3])}. If it is an identifier or free text, exclude it; if "
                f"they are categories, allow more of them (max_categories, up to {MOST_LEVELS})."
            )


_GAPS = (
    "Out of memory gaps are not filled in: fill them in or leave these rows out beforehand, or "
    "exclude the column."
)


def _is_numeric(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _levels_of(name: str, column: Any) -> tuple[Any, list[Any]]:
    types = pyarrow().types
    if types.is_temporal(column.type):
        raise date_error(name)
    found = encoded(column)
    if found is None:
        raise ValueError(
            f"column {name!r} holds values of type {column.type}; features must be numbers, text "
            "or booleans. Exclude it."
        )
    if (found[0] < 0).any():
        raise ValueError(f"column {name!r} has missing values. {_GAPS}")
    return found


@dataclass(frozen=True)
class PreparedColumns(TrainingColumns):
    """Columns of a table as inputs of a classifier: what the steps of the pipeline make of them."""

    numeric: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    levels: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def inputs(self) -> Sequence[str]:
        made = [f"{name}_{level}" for name, levels in self.levels for level in levels]
        return [*self.numeric, *made]

    @property
    def n_features(self) -> int:
        return len(self.numeric) + sum(len(levels) for _, levels in self.levels)

    def table(self, batch: Any) -> Floats:
        found = np.zeros((batch.num_rows, self.n_features))
        for place, name in enumerate(self.numeric):
            own = numbers(batch.column(name)).astype(np.float64, copy=False)
            found[:, place] = (own - self.means[place]) / self.scales[place]
        start, every = len(self.numeric), np.arange(batch.num_rows)
        for name, levels in self.levels:
            codes, values = _levels_of(name, batch.column(name))
            places = {level: start + place for place, level in enumerate(levels)}
            found[every, np.array([places[value] for value in values])[codes]] = 1.0
            start += len(levels)
        return found


@dataclass(frozen=True, eq=False)
class Prepared:
    """Kinds of the columns, the steps before the classifier, and the columns as its inputs."""

    kinds: ColumnKinds
    steps: Pipeline
    columns: PreparedColumns


def prepare(
    source: Source,
    label: str,
    names: list[str],
    weight: str | None,
    max_categories: int | None,
    preparation: Callable[[ColumnKinds], Pipeline],
) -> Prepared:
    """Read the columns once; `preparation` makes the steps of a pipeline, not fitted yet."""
    most = _FEW_LEVELS if max_categories is None else max_categories
    if most > MOST_LEVELS:
        raise TableError(
            f"max_categories={most}: out of memory a text column may have up to {MOST_LEVELS} "
            "levels."
        )
    reading = _Reading(tuple(names), most)
    found = source.reduce(reading, reading.merge, names)
    if found is None:
        raise TableError("The files have no rows.")
    mixed = sorted(set(found.numeric) & set(found.levels))
    if mixed:
        raise TableError(
            f"Column {mixed[0]!r} holds numbers in some files, text or booleans in others. Make "
            "it one of them, or exclude it."
        )
    numeric = {n: own for n, own in found.numeric.items() if own.low < own.high}
    for name, own in numeric.items():
        check_spread(name, own.count, own.mean, own.squares / own.count, own.low, own.high)
    for name, counts in found.levels.items():
        kinds_of = {type(level).__name__ for level in counts}
        if len(kinds_of) > 1:
            raise TableError(
                f"Column {name!r} holds values of different types in different files: "
                f"{listed(sorted(kinds_of))}. Make it one of them, or exclude it."
            )
    levels = {n: sorted(counts) for n, counts in found.levels.items() if len(counts) > 1}
    for name, known in levels.items():
        if looks_like_dates(known):
            raise date_error(name)
    kinds = ColumnKinds(
        tuple(name for name in names if name in numeric),
        tuple(name for name in names if name in levels),
        tuple(name for name in names if name not in numeric and name not in levels),
        (),
    )
    if not kinds.numeric + kinds.categorical:
        raise TableError(
            f"No feature is left: every column has one value only ({', '.join(kinds.constant)})."
        )
    steps = _fitted(preparation(kinds), kinds, numeric, levels)
    scales = tuple(float(np.sqrt(numeric[n].squares / numeric[n].count)) for n in kinds.numeric)
    columns = PreparedColumns(
        label,
        (*kinds.numeric, *kinds.categorical),
        weight,
        kinds.numeric,
        tuple(numeric[name].mean for name in kinds.numeric),
        scales,
        tuple((name, tuple(levels[name])) for name in kinds.categorical),
    )
    return Prepared(kinds, steps, columns)


def _fitted(
    steps: Pipeline,
    kinds: ColumnKinds,
    numeric: dict[str, _Numbers],
    levels: dict[str, list[Any]],
) -> Pipeline:
    """The steps as if fitted to all rows: to some with every level, with the moments of all."""
    length = max([2, *(len(own) for own in levels.values())])
    rows: dict[str, Any] = {
        name: np.resize([numeric[name].low, numeric[name].high], length) for name in kinds.numeric
    }
    rows |= {
        name: [levels[name][k % len(levels[name])] for k in range(length)]
        for name in kinds.categorical
    }
    steps.fit(pandas().DataFrame(rows))
    if kinds.numeric:
        scaler = steps.named_steps["columns"].named_transformers_["numeric"].named_steps["scale"]
        own = [numeric[name] for name in kinds.numeric]
        scaler.mean_ = np.array([one.mean for one in own])
        scaler.var_ = np.array([one.squares / one.count for one in own])
        scaler.scale_ = np.sqrt(scaler.var_)
        scaler.n_samples_seen_ = own[0].count
    return steps


@dataclass
class _Figures:
    """Sums of log-loss and of right predictions, and numbers of rows by class."""

    weight: float = 0.0
    loss: float = 0.0
    right: float = 0.0
    counts: Counter[Any] = field(default_factory=Counter)


@dataclass(frozen=True, eq=False)
class _Judging:
    """Adds batches to figures of a fitted classifier."""

    columns: PreparedColumns
    classifier: Any

    def __call__(self, state: _Figures | None, batch: Any, part: Part) -> _Figures:
        found = _Figures() if state is None else state
        own, values = self.columns.labels(batch)
        place = {label: k for k, label in enumerate(self.classifier.classes_.tolist())}
        codes = np.array([place[value] for value in values], dtype=np.intp)[own]
        weights = self.columns.weights(batch)
        model = self.classifier
        scores = self.columns.table(batch) @ model.coef_.T + model.intercept_
        two = scores.shape[1] == 1
        best = scores[:, 0] > 0.0 if two else scores.argmax(axis=1)
        losses = CrossEntropy().value(scores[:, 0] if two else scores, codes)  # log-loss
        found.weight += float(weights.sum())
        found.loss += float(weights @ losses)
        found.right += float(weights @ (best == codes))
        found.counts.update(dict(zip(values, np.bincount(own).tolist(), strict=True)))
        return found

    def merge(self, first: _Figures, second: _Figures) -> _Figures:
        """Sums of both."""
        first.weight += second.weight
        first.loss += second.loss
        first.right += second.right
        first.counts.update(second.counts)
        return first


def train_prepared(
    classifier: LinearClassifier,
    source: Source,
    prepared: Prepared,
    say: Callable[[str], None] | None,
) -> tuple[dict[Any, int], dict[str, Any]]:
    """Fit a classifier to prepared columns; rows by class, and figures on the training data."""
    fit_columns(classifier, source, prepared.columns, say)
    del classifier.feature_names_in_  # the classifier of a pipeline sees arrays
    judging = _Judging(prepared.columns, classifier)
    found = source.reduce(judging, judging.merge, prepared.columns.names)
    assert found is not None
    figures = {
        "auc": None,
        "log_loss": found.loss / found.weight,
        "accuracy": found.right / found.weight,
    }
    return dict(sorted(found.counts.items())), figures
