"""A sample of more rows than are held: batches come in, a table of cases comes out.

Up to `max_rows` rows all are held; of more at most that many, chosen by their strata: half of the
sample is a simple random sample, and rare rows (confident mistakes, disagreements of the models,
small groups) are held whole. Readers of files and engines fill a `Sample` for each part of the data
and merge them; figures are computed on `Sample.cases`.

The invariant: a row is held if and only if its number is below the largest limit of its strata.
This depends on all rows that were read, and not on the order in which samples were merged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._array_files import reading_arrays, write_arrays
from .._labels import listed
from .._parameters import check_count, check_threshold, require
from .._typing import Integers, Labels
from .._validation import check_labels
from ..grouping import GroupColumn
from ..moments import order_one_factor
from .batches import arrays_of, checked_batch, cluster_numbers, joined, row_numbers
from .cases import Cases
from .checks import ByModel, Groups, predictions_by_name
from .strata import ALL, CELLS, GROUPS, Cells, Families, Strata, Totals

_MOST_CLASSES = 1000
#: Scores that are held by default, and the fewest rows for any number of models.
_MOST_SCORES, _FEWEST_ROWS = 1 << 21, 1 << 17
_LEAST_MAX_ROWS = 64
#: Rows that are divided into cells at once: more would leave the processor's cache.
_BLOCK = 1 << 18
#: Smaller batches are often equal, such as single rows, and must not draw equal numbers.
_SMALL_BATCH = 1024
_SETTINGS = ("labels", "models", "max_rows", "random_state", "confident_above")
#: Columns that all batches have or none, and where a table of cases has them.
_OPTIONAL = {
    "sample_weight": "weight",
    "error_cost": "error_cost",
    "reviewer_error": "reviewer_error",
    "human": "human",
}
#: How columns of groups are listed whose names are sorted, and those whose names have an order.
_GROUP_COLUMNS = _SORTED, _ORDERED = "groups ", "ranges "
_KIND = "fragility sample"


class Sample:
    """Hold all rows up to `max_rows`, and a sample of them beyond.

    Parameters
    ----------
    labels : sequence, optional
        The classes in the order of the columns of probabilities; the second of two is the positive
        class. None: classes are 0 and 1 or booleans, or rows are answers.
    models : sequence of str, optional
        Names of the models; None: those of the first batch.
    max_rows : int, "auto" or None, default="auto"
        Most rows that are held. "auto" is a power of two that makes about two million scores, and
        at least 131,072; None holds all rows.
    random_state : int, default=0
        Seed of the numbers by which rows are chosen.
    confident_above : float, default=0.9
        Probability above which a decision is confident. Confident errors are counted exactly.

    Notes
    -----
    Samples of parts of the data are merged in any order: the same parts give the same sample. Two
    batches of 1,024 or more rows that are equal in every column draw equal numbers, so give each
    batch once.

    Examples
    --------
    >>> from fragility.cases.sample import Sample
    >>> monday = Sample().update([0, 1, 1], {"a": [0.2, 0.7, 0.4], "b": [0.1, 0.9, 0.8]})
    >>> tuesday = Sample().update([0, 0], {"a": [0.1, 0.6], "b": [0.3, 0.2]})
    >>> week = monday.merge(tuesday)
    >>> week.n_rows, week.cases().n
    (5, 5)
    >>> week.totals().errors["a"]  # number of rows, and their weight
    array([2., 2.])
    """

    def __init__(
        self,
        labels: Labels = None,
        models: Sequence[str] | None = None,
        *,
        max_rows: int | Literal["auto"] | None = "auto",
        random_state: int = 0,
        confident_above: float = 0.9,
    ) -> None:
        self.labels = None if labels is None else tuple(check_labels(labels).tolist())
        n_classes = len(self.labels or (0, 1))
        message = f"labels names {n_classes:,} classes; at most {_MOST_CLASSES:,} can be measured."
        require(n_classes <= _MOST_CLASSES, message)
        self.models = (
            None if models is None else tuple(predictions_by_name(dict.fromkeys(models, ())))
        )
        self.max_rows = max_rows
        if isinstance(max_rows, str):
            require(max_rows == "auto", 'max_rows must be "auto", None or a whole number.')
        elif max_rows is not None:
            self.max_rows = check_count(max_rows, "max_rows", _LEAST_MAX_ROWS)
        self.random_state = check_count(random_state, "random_state", 0)
        self.confident_above = check_threshold(confident_above, "confident_above")
        self.n_rows = 0
        self._columns: tuple[str, ...] = ()
        self._group_codes: dict[str, dict[str, int]] = {}
        self._families: Families | None = None
        self._pending: list[Cases] = []
        self._blocks: list[Cases] = []

    def update(
        self,
        y_true: ArrayLike | Mapping[str, ArrayLike],
        y_proba: ByModel,
        *,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        groups: Groups | None = None,
        error_cost: ArrayLike | None = None,
        reviewer_error: ArrayLike | None = None,
        human: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows, and return the sample.

        Parameters
        ----------
        y_true : array-like of shape (n,), or mapping of str to array-like of bool
            Class of each row. For answers, such as those of language models: by model, whether
            its answer was right.
        y_proba : mapping of str to array-like of shape (n,) or (n, n_classes)
            By model, probabilities of the positive class or of each class; for answers, the
            probability of being right that the model stated. NaN where the model abstained.
        sample_weight : array-like of shape (n,), optional
            Rows of weight zero are read and not held.
        cluster : array-like of shape (n,), optional
            Name of the cluster of each row. A cluster is held whole or not at all.
        groups : mapping of str to array-like of shape (n,) or GroupColumn, optional
            By column, the name of each row's group.
        error_cost, reviewer_error : array-like of shape (n,), optional
            What an error on each row costs, and the probability that a review of it is wrong.
        human : array-like of shape (n,), optional
            The class that a human decided on each row.
        """
        predictions = predictions_by_name(y_proba, "y_proba")
        models = self.models or tuple(predictions)
        require(
            set(models) == set(predictions),
            f"The batch has the models {listed(predictions)}, but the sample has {listed(models)}.",
        )
        if not any(np.size(values) for values in predictions.values()):
            return self
        batch = checked_batch(
            y_true,
            {model: predictions[model] for model in models},
            self.labels,
            sample_weight=sample_weight,
            groups=groups,
            error_cost=error_cost,
            reviewer_error=reviewer_error,
            human=human,
        )
        names = [name for name, c in _OPTIONAL.items() if getattr(batch, c) is not None]
        names += ["answers"] * batch.answers + ["cluster"] * (cluster is not None)
        for column in batch.groups:
            ordered = isinstance(groups, Mapping) and isinstance(groups[column], GroupColumn)
            names.append((_ORDERED if ordered else _SORTED) + column)
        if cluster is None:
            position = self.n_rows if batch.n < _SMALL_BATCH else 0
            numbers = row_numbers(batch, self.random_state, position)
        else:
            numbers = cluster_numbers(cluster, batch.n, self.random_state)
        families = self._begin(models, names, "batch")
        codes = {
            column: self._codes(column, batch.group_names[column])[codes]
            for column, codes in batch.groups.items()
        }
        rows = np.arange(batch.n)
        batch = replace(batch, groups=codes, group_names={}, number=numbers, row=self.n_rows + rows)
        self.n_rows += batch.n
        if batch.weight is not None:
            rows = np.flatnonzero(batch.weight)
        for start in range(0, rows.size, _BLOCK):
            # This copy leaves the caller free to fill the same arrays again.
            self._pending.append(batch.take(rows[start : start + _BLOCK]))
            if sum(block.n for block in self._pending) >= min(_BLOCK, families.capacity):
                self._absorb(families)
        return self

    def merge(self, other: Sample) -> Self:
        """Add the rows of another sample of the same settings, and return this sample.

        Row numbers of the other sample are shifted by the number of rows of this one.
        """
        for name in _SETTINGS:
            mine, others = getattr(self, name), getattr(other, name)
            require(
                mine == others or (name == "models" and None in (mine, others)),
                f"The other sample has {name}={others!r}, but this one has {name}={mine!r}; give "
                f"all samples that are merged the same {', '.join(_SETTINGS)}.",
            )
        if other.models is None or other._families is None:
            return self
        families = self._begin(other.models, other._columns, "other sample")
        self._absorb(families)
        other._absorb(other._families)
        tables = {name: self._codes(name, codes) for name, codes in other._group_codes.items()}
        families.add(other._families, tables)
        for block in other._blocks[:]:
            groups = {name: table[block.groups[name]] for name, table in tables.items()}
            self._blocks.append(replace(block, groups=groups, row=block.rows + self.n_rows))
        self.n_rows += other.n_rows
        self._drop_rows(families)
        return self

    @property
    def n_held(self) -> int:
        """Number of rows that are held."""
        return self._settled()[1].n if self.n_rows else 0

    @property
    def capacity(self) -> float:
        """Number of rows up to which all are held, once a batch has come."""
        return self._families.capacity if self._families is not None else inf

    def cases(self) -> Cases:
        """Return the rows, and how many cases each of them stands for.

        Up to `max_rows` rows these are all, in the order in which they came, and `count`, `cell`,
        `number` and `plain` are None. Rows of a sample are in the order of their numbers.
        """
        families, rows = self._settled()
        assert rows.number is not None
        groups, group_names = {}, {}
        for column, codes in self._group_codes.items():
            names = (
                list(codes) if _ORDERED + column in self._columns else sorted(codes, key=_by_size)
            )
            ranks = np.argsort([codes[name] for name in names])
            groups[column], group_names[column] = ranks[rows.groups[column]], tuple(names)
        # The number of a cluster is a hash of its name, so that its rows in all batches meet.
        cluster = np.unique(rows.number, return_inverse=True)[1] if families.clustered else None
        weight = rows.weight
        if weight is not None:
            weight = weight * order_one_factor(float(weight.max()))
        table = replace(
            rows,
            weight=weight,
            cluster=cluster,
            groups=groups,
            group_names=group_names,
            number=None,
            cell=None,
        )
        if not families.is_drawn:
            return table
        standing = families.standing(rows)
        count, cell = standing.get(CELLS, standing[ALL])
        return replace(
            table,
            number=rows.number,
            plain=rows.number < families.strata[ALL].limit[0],
            count=count,
            cell=cell,
            strata={name: standing[GROUPS + name] for name in groups if GROUPS + name in standing},
        )

    def totals(self, column: str | None = None, group: str | None = None) -> Totals:
        """Return exact sums over all rows that were read, or over those of one group.

        Parameters
        ----------
        column, group : str, optional
            A column of groups, and the name of one of its groups.
        """
        families, _ = self._settled()
        if column is None or group is None:
            return families.totals(self.models or ())
        return families.totals(self.models or (), column, self._group_codes[column][group])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sample to a file of NumPy arrays (.npz), which `load` reads."""
        families, rows = self._settled()
        header = {name: getattr(self, name) for name in _SETTINGS}
        header |= {"n_rows": self.n_rows, "columns": self._columns}
        header["groups"] = {column: list(codes) for column, codes in self._group_codes.items()}
        write_arrays(path, _KIND, header, dict(arrays_of(rows)) | families.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sample that `save` wrote; refuse any other file, and a damaged one."""
        with reading_arrays(path, _KIND) as (header, arrays):
            sample = cls(**{name: header[name] for name in _SETTINGS})
            columns, labels = header["columns"], np.array(sample.labels or (0, 1))
            models, groups = dict(enumerate(header["models"])), enumerate(header["groups"].items())
            right = {m: arrays[f"y {i}"] for i, m in models.items() if "answers" in columns}
            # The rows pass the checks of a batch, and must come out as they stand in the file.
            sample.update(
                right or labels[arrays["y"]],
                {model: arrays[f"scores {i}"] for i, model in models.items()},
                sample_weight=arrays.get("weight"),
                cluster=arrays["row"] if "cluster" in columns else None,
                groups={c: GroupColumn(n, arrays[f"groups {i}"]) for i, (c, n) in groups} or None,
                error_cost=arrays.get("error_cost"),
                reviewer_error=arrays.get("reviewer_error"),
                human=labels[arrays["human"]] if "human" in arrays else None,
            )
            families, rows = sample._settled()
            families.restore(arrays)
            number, row, cell = (arrays[name] for name in ("number", "row", "cell"))
            rows = replace(rows, number=number, row=row, cell=cell)
            fits = [set(sample._columns) == {name.replace(_SORTED, _ORDERED) for name in columns}]
            for name, array in arrays_of(rows):
                stored = arrays.pop(name)
                fits.append(stored.dtype == array.dtype and np.array_equal(stored, array, True))
            require(all(fits) and not arrays, "its columns do not fit together")
            families.check(rows, header["n_rows"])
            sample.n_rows, sample._columns = header["n_rows"], tuple(columns)
            sample._blocks = [rows]
        return sample

    def _capacity(self, models: tuple[str, ...]) -> float:
        """Return the number of rows up to which all are held."""
        if isinstance(self.max_rows, int):
            return self.max_rows
        n_classes = len(self.labels or (0, 1))
        n_columns = len(models) * (1 if n_classes == 2 else n_classes)
        largest_power = 1 << max(_MOST_SCORES // n_columns, 1).bit_length() - 1
        return inf if self.max_rows is None else max(_FEWEST_ROWS, largest_power)

    def _begin(self, models: tuple[str, ...], columns: Sequence[str], source: str) -> Families:
        """Return the families of strata, which the first batch fixes; refuse other columns."""
        if self._families is None:
            capacity = self._capacity(models)
            n_classes = 1 if "answers" in columns else len(self.labels or (0, 1))
            n_sizes = ("sample_weight" in columns) + ("error_cost" in columns)
            room = capacity / 2.0 if capacity < inf else _FEWEST_ROWS
            cells = Cells.of_sample(room, n_classes, len(models), n_sizes, self.confident_above)
            named = [name.split(" ", 1)[1] for name in columns if name.startswith(_GROUP_COLUMNS)]
            strata = {family: Strata() for family in (ALL, CELLS, *(GROUPS + n for n in named))}
            self._families = Families(capacity, cells, "cluster" in columns, strata)
            self.models, self._columns = models, tuple(columns)
        require(
            set(columns) == set(self._columns),
            f"The {source} has {listed(sorted(columns)) or 'no further columns'}, but earlier rows "
            f"have {listed(sorted(self._columns)) or 'none'}; give all rows the same columns.",
        )
        return self._families

    def _codes(self, column: str, names: Iterable[str]) -> Integers:
        """Return the codes of groups by their names; new names get new codes."""
        codes = self._group_codes.setdefault(column, {})
        return np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.int64)

    def _absorb(self, families: Families) -> None:
        """Count pending rows in their strata, and drop those that are above all limits."""
        if self._pending:
            rows, self._pending = joined(self._pending), []
            rows = replace(rows, cell=families.cells.keys(rows))
            families.count(rows)
            self._blocks.append(families.below_limits(rows) if families.is_drawn else rows)
            self._drop_rows(families)

    def _drop_rows(self, families: Families) -> None:
        """Drop the rows that are above all limits if more are held than may be."""
        if families.is_drawn and sum(block.n for block in self._blocks) > families.capacity:
            self._blocks = [families.lower_limits(joined(self._blocks))]

    def _settled(self) -> tuple[Families, Cases]:
        """Return the families of strata and the rows that are held, after all updates."""
        families = self._families
        if families is not None:
            self._absorb(families)
        if families is None or not self._blocks:
            raise ValueError("The sample has no rows; update it with a batch first.")
        rows = joined(self._blocks)
        if families.is_drawn:
            rows = families.lower_limits(rows)
            require(
                rows.n, "No cluster fits into the sample; raise max_rows, or leave out cluster."
            )
        self._blocks = [rows]
        return families, rows


def _by_size(name: str) -> tuple[float, str]:
    """Return the key that sorts numbers by size, before text by alphabet."""
    try:
        number = float(name)
    except ValueError:
        return inf, name
    return (number, name) if number == number else (inf, name)
