"""The sketch of rows on any engine: a sketch for each part, merged; the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._labels import later_places, listed
from .._typing import Labels
from .._validation import check_labels
from ..exceptions import PartitionError
from ..scores.bins import ScoreBins
from ..scores.sketch import FragilitySketch
from ..sources.opening import open_source
from ..sources.source import Part, Source, first_seen
from ..tables.arrow import as_numpy, pyarrow
from ..tables.values import category_order, narrow_integers
from .columns import codes_of, few_labels, numbers_of, one_kind

#: Most memory of the sketches of all groups.
_MOST_BYTES = 1 << 30
#: Bytes of a sketch without weights, by bin: five digits of exact sums, and counts before these.
_BYTES_OF_A_BIN = 56
#: More combinations of values of columns of groups have no numbers of 64 bits.
_MOST_CODES = 1 << 62


def sketch(
    data: Any,
    *,
    label: str,
    score: str | Sequence[str],
    weight: str | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    n_bins: int = 4096,
    multi_class: Literal["ovo", "ovr"] = "ovo",
) -> FragilitySketch:
    """The sketch of all rows of some data, wherever they are.

    Every part of the data fills a sketch where it is, and sketches are merged: the bytes are the
    same for the same rows, however they are spread. A part that fails fails the call.

    Parameters
    ----------
    data : mapping of str to array, table, path, dataset, query or DataFrame
        Arrays by column; anything with ``__arrow_c_stream__``; Parquet files, a folder of them or a
        pattern such as ``"scores/*.parquet"``; an Arrow dataset; a LazyFrame of polars; a relation
        of DuckDB; a DataFrame of Dask or Spark, a Dataset of Ray.
    label : str
        Column of the true labels: text, booleans or whole numbers.
    score : str or sequence of str
        Column with the probability of the positive class; or one for each class, in the order of
        `labels`.
    weight : str, optional
        Column of weights.
    labels : sequence, optional
        All classes. Without them the label column is read once more, to find them: a part of the
        data may lack a class.
    pos_label, n_bins, multi_class
        As in `fragility.FragilitySketch`.

    Returns
    -------
    FragilitySketch

    Raises
    ------
    PartitionError
        If a part cannot be read, a value is missing, or a score is not from 0 to 1; it names the
        part, and its file where that is known.

    Examples
    --------
    >>> from fragility.distributed import sketch
    >>> found = sketch({"sick": [1, 0, 1, 0], "p": [0.6, 0.1, 0.9, 0.8]}, label="sick", score="p")
    >>> round(found.fragility().value, 6)
    0.163282
    """
    source = open_source(data)
    make = _making(source, label, score, weight, labels, pos_label, n_bins, multi_class)
    source.require(make.columns)
    found = source.reduce(_Fill(make), _merged, make.columns)
    return make.empty() if found is None else found


def sketch_by(
    data: Any,
    by: str | Sequence[str],
    *,
    label: str,
    score: str | Sequence[str],
    weight: str | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    n_bins: int = 4096,
    multi_class: Literal["ovo", "ovr"] = "ovo",
) -> dict[Any, FragilitySketch]:
    """The sketch of each group of rows, in one reading of the data.

    Parameters
    ----------
    data : as in `sketch`
    by : str or sequence of str
        Column of groups, or several: then a group is a tuple.
    label, score, weight, labels, pos_label, n_bins, multi_class
        As in `sketch`.

    Returns
    -------
    dict of group to FragilitySketch
        In the order of the groups.

    Raises
    ------
    PartitionError
        As `sketch` does; and if the sketches of all groups would take more than 1 GiB.

    Examples
    --------
    >>> from fragility.distributed import sketch_by
    >>> data = {"site": ["a", "b", "a", "b"], "sick": [1, 1, 0, 0], "p": [0.6, 0.9, 0.1, 0.8]}
    >>> {site: int(found.support.sum())
    ...  for site, found in sketch_by(data, "site", label="sick", score="p").items()}
    {'a': 2, 'b': 2}
    """
    source = open_source(data)
    make = _making(source, label, score, weight, labels, pos_label, n_bins, multi_class)
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise ValueError("by names no column of groups.")
    source.require([*make.columns, *columns])
    single = isinstance(by, str)
    fill = _FillGroups(make, columns)
    found = source.reduce(fill, fill.merge, [*make.columns, *columns])
    found = {key[0] if single else key: own for key, own in (found or {}).items()}
    return dict(sorted(found.items(), key=lambda item: _sorted_first(item[0])))


@dataclass(frozen=True)
class _Making:
    """What sketches are made of: columns and settings."""

    label: str
    scores: tuple[str, ...]
    weight: str | None
    labels: NDArray[Any]
    pos_label: Any
    n_bins: int
    multi_class: Literal["ovo", "ovr"]

    @property
    def columns(self) -> list[str]:
        """Columns to read."""
        return [self.label, *self.scores, *([] if self.weight is None else [self.weight])]

    def empty(self) -> FragilitySketch:
        """A sketch of no rows."""
        return FragilitySketch(self.n_bins, self.labels, self.pos_label, self.multi_class)

    def arrays(self, batch: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Labels, scores and weights of a batch; a missing one is refused."""
        truths = _labels_of(batch, self.label)
        scores = [numbers_of(batch, name) for name in self.scores]
        weights = None if self.weight is None else numbers_of(batch, self.weight)
        return truths, scores[0] if len(scores) == 1 else np.stack(scores, axis=1), weights

    @property
    def bytes_of_a_sketch(self) -> int:
        """Memory of a sketch without weights, about."""
        n = self.labels.size
        columns, classes = (1, 2) if n == 2 else (n, n if self.multi_class == "ovo" else 2)
        digits = ScoreBins.state_bytes(self.n_bins + 1, columns, classes)
        return max(digits, _BYTES_OF_A_BIN * columns * classes * (self.n_bins + 1))


def _making(
    source: Source,
    label: str,
    score: str | Sequence[str],
    weight: str | None,
    labels: Labels,
    pos_label: Any,
    n_bins: int,
    multi_class: Literal["ovo", "ovr"],
) -> _Making:
    """Settings, checked before the long work; labels are found in a reading of their own."""
    scores = (score,) if isinstance(score, str) else tuple(score)
    if not scores:
        raise ValueError("score names no column of scores.")
    asked = [label, *scores, *([] if weight is None else [weight])]
    twice = {name for name in asked if asked.count(name) > 1}
    if twice:
        raise ValueError(f"Column {listed(sorted(twice))} is named for two things.")
    found = _Labels({}, [])
    if labels is None:
        FragilitySketch(n_bins, multi_class=multi_class)
        found = _found_labels(source, label)
        labels = found.ordered(label)
    known = check_labels(labels)
    if len(scores) not in (1, known.size) or (len(scores) == 1 and known.size > 2):
        parts = found.parts
        if parts:  # the partitions of Spark have no files before somebody asks for them
            parts = source.first_parts(label) or parts
        raise ValueError(
            f"There are {known.size} classes ({listed(known)}) and {len(scores)} columns of scores "
            f"({listed(scores)}); give one for each class{', or one' * (known.size == 2)}."
            f"{first_seen('labels', parts)}"
        )
    if pos_label is None and known.size == 2:
        if found.orders and not source.keeps_order(label):
            raise ValueError(
                f"Column {label!r} has the ordered categories {listed(known)}, but {source.name} "
                "may not hold the order; name the positive class with pos_label=."
            )
        pos_label = found.later(label, known)
    made = _Making(label, scores, weight, known, pos_label, n_bins, multi_class)
    made.empty()  # which refuses what cannot be
    return made


def _found_labels(source: Source, label: str) -> _Labels:
    """Return all labels, from a reading of their column."""
    found = source.reduce(partial(_survey, label), _Labels.merge, [label])
    return _Labels({}, []) if found is None else found


@dataclass
class _Labels:
    """Labels that some rows have.

    Attributes
    ----------
    parts : dict
        By label the first part that has it.
    orders : list of list
        Orders that parts have their categories in.
    """

    parts: dict[Any, Part]
    orders: list[list[Any]]

    def merge(self, later: _Labels) -> _Labels:
        self.parts = later.parts | self.parts
        self.orders += [order for order in later.orders if order not in self.orders]
        return self

    def ordered(self, label: str) -> list[Any]:
        """Classes in their order: numbers by size, text by alphabet."""
        values = list(few_labels(label, set(self.parts)))
        if len(values) < 2:
            held = f"only the class {values[0]!r}" if values else "no label"
            raise ValueError(
                f"Column {label!r} holds {held}; two classes or more are needed: name all of them "
                "with labels=."
            )
        try:
            return sorted(one_kind(label, set(values)))
        except ValueError:
            raise self._mixed(label) from None

    def _mixed(self, label: str) -> PartitionError:
        """An error that names the first part with labels of another kind than those before it."""
        kinds: dict[bool, tuple[Part, Any]] = {}
        for value, part in self.parts.items():
            is_text = isinstance(value, str)
            if is_text not in kinds or part.number < kinds[is_text][0].number:
                kinds[is_text] = part, value
        (earlier, there), (part, value) = sorted(kinds.values(), key=lambda seen: seen[0].number)
        if part == earlier:
            return part.error(f"column {label!r} holds text and numbers: {listed([there, value])}")
        return part.error(
            f"column {label!r} holds {listed([value])} here, and {listed([there])} in "
            f"{earlier.where}: text and numbers"
        )

    def later(self, label: str, classes: NDArray[Any]) -> Any:
        """The later of two classes that are ordered categories; None if they are not."""
        if not self.orders:
            return None
        places = later_places(classes.tolist(), self.orders)
        if len(places) != 1:
            raise ValueError(
                f"The parts of column {label!r} have the ordered categories {listed(classes)} "
                f"{'in both orders' if places else 'never together'}, so that neither is the "
                "later one; name the positive class with pos_label=."
            )
        return classes.tolist()[places.pop()]


def _survey(label: str, known: _Labels | None, batch: Any, part: Part) -> _Labels:
    """Labels of the rows up to now."""
    found, column = _Labels({}, []) if known is None else known, batch.column(label)
    whole = narrow_integers(column)
    if whole is None or not found.parts.keys() >= set(range(whole[1], whole[2] + 1)):
        for value in codes_of(batch, label)[1]:
            found.parts.setdefault(value, part)
        few_labels(label, set(found.parts))
        order = category_order(column)
        if order is not None and order not in found.orders:
            found.orders.append(order)
    return found


def _labels_of(batch: Any, name: str) -> NDArray[Any]:
    column, types = batch.column(name), pyarrow().types
    plain = types.is_integer(column.type) or types.is_boolean(column.type)
    if plain and not column.null_count:
        return as_numpy(column)
    codes, values = codes_of(batch, name)
    return np.array(values).take(codes)


@dataclass(frozen=True)
class _Fill:
    """Adds rows to a sketch."""

    make: _Making

    def __call__(self, state: FragilitySketch | None, batch: Any, part: Part) -> FragilitySketch:
        return (state or self.make.empty()).update(*self.make.arrays(batch))


def _merged(first: FragilitySketch, second: FragilitySketch) -> FragilitySketch:
    return first.merge(second)


_Groups = dict[tuple[Any, ...], FragilitySketch]


@dataclass(frozen=True)
class _FillGroups:
    """Adds rows to the sketches of their groups."""

    make: _Making
    columns: tuple[str, ...]

    def __call__(self, state: _Groups | None, batch: Any, part: Part) -> _Groups:
        sketches = {} if state is None else state
        truths, scores, weights = self.make.arrays(batch)
        for group, rows in self._groups(batch):
            if group not in sketches:
                self._check_room(len(sketches) + 1)
                sketches[group] = self.make.empty()
            own = None if weights is None else weights[rows]
            sketches[group].update(truths[rows], scores[rows], own)
        self._check_weights(sketches)
        return sketches

    def _groups(self, batch: Any) -> Iterator[tuple[tuple[Any, ...], NDArray[Any]]]:
        """Groups and their rows."""
        found = [codes_of(batch, name) for name in self.columns]
        codes, n_codes = np.zeros(batch.num_rows, dtype=np.int64), 1
        for own, values in found:
            if n_codes * len(values) > _MOST_CODES:  # as many as there are rows will do
                codes = np.unique(codes, return_inverse=True)[1]
                n_codes = batch.num_rows
            codes, n_codes = codes * len(values) + own, n_codes * len(values)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            yield tuple(values[own[rows[0]]] for own, values in found), rows

    def merge(self, first: _Groups, second: _Groups) -> _Groups:
        """Sketches of the groups of both."""
        for group, own in second.items():
            first[group] = first[group].merge(own) if group in first else own
        self._check_room(len(first))
        self._check_weights(first)
        return first

    def _check_weights(self, sketches: _Groups) -> None:
        """Refuse sums that weights of many scales have made longer than those of plain cases."""
        if self.make.weight is not None:
            bins = (own._bins for own in sketches.values())
            self._check_room(len(sketches), sum(own.nbytes for own in bins if own is not None))

    def _check_room(self, n_groups: int, n_bytes: int = 0) -> None:
        if max(n_groups * self.make.bytes_of_a_sketch, n_bytes) > _MOST_BYTES:
            raise ValueError(
                f"The sketches of {n_groups:,} groups or more take more than 1 GiB. Use fewer bins "
                f"(n_bins={max(self.make.n_bins // 4, 16)}), or coarser groups."
            )


def _sorted_first(group: Any) -> tuple[Any, ...]:
    """Groups of numbers by size, then text by alphabet."""
    parts = group if isinstance(group, tuple) else (group,)
    return tuple((isinstance(part, str), part) for part in parts)
