"""Predictions in a file: labels, scores of models, weights, groups and costs, as checked arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

from .._labels import listed
from ..exceptions import AnswersWarning
from .answers import is_confidence, says_whether_right, warning_of_answers, warning_of_confidence
from .categories import (
    Categories,
    check_number_of_classes,
    found_classes,
    found_groups,
    later_class,
    named,
)
from .columns import Columns
from .conversion import Conversion, Known, encoded_or_refused
from .prediction_batch import PredictionBatch, joined
from .problems import numbers_explained
from .table import Table
from .values import category_order


class PredictionFile:
    r"""True labels and scores of models in the columns of a table.

    Nothing is read before it is asked for. What is read is checked; what is wrong is said with
    its rows, as a `TableError`.

    Parameters
    ----------
    table : Table
        From `open_table`.
    label : str
        Column of the true labels: text, booleans or whole numbers.
    models : mapping of str to sequence of str
        Columns of each model's scores, as `parse_models` returns: one with the probability of
        the positive class, or one for each class.
    classes : sequence of str, optional
        All classes, in the order of the score columns. By default the classes of the label column
        (whole numbers by size, text by alphabet), if the score columns are named for them
        or each model has only one.
    positive : str, optional
        The class of two that a single column of scores is for; by default the second, without
        `classes` the later one of ordered categories (in Parquet and Arrow files).
    weight, group, error_cost, cluster : str, optional
        Columns with the weight of each row, its group, what an error on it costs, and which rows
        belong together, such as those of one patient.
    human, reviewer_error : str, optional
        Columns with the class that a human decided on each row, and with the probability, from 0 to
        1, that a reviewer of it errs.
    drop_missing : bool, default=False
        Leave out rows with a missing value in any column that is used, and count them.

    Examples
    --------
    >>> from fragility.tables import open_table
    >>> path = getfixture("tmp_path") / "small.csv"
    >>> _ = path.write_text("truth,p\nno,0.1\nyes,0.9\nno,0.3\n")
    >>> file = PredictionFile(open_table(path), label="truth", models={"p": ["p"]})
    >>> file.classes, file.read().codes
    (['no', 'yes'], array([0, 1, 0], dtype=uint8))
    """

    def __init__(
        self,
        table: Table,
        *,
        label: str,
        models: Mapping[str, Sequence[str]],
        classes: Sequence[str] | None = None,
        positive: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        error_cost: str | None = None,
        cluster: str | None = None,
        human: str | None = None,
        reviewer_error: str | None = None,
        drop_missing: bool = False,
    ) -> None:
        self.table = table
        by_model = {name: tuple(columns) for name, columns in models.items()}
        self.columns = Columns(
            label, by_model, weight, group, error_cost, cluster, human, reviewer_error
        )
        self.columns.check(table)
        self.drop_missing = drop_missing
        self._types = self.columns.types(table)
        self._positive = positive
        self._given = None if classes is None else named(table, classes)
        self._known: Known | None = None
        #: Numbers of the clusters, in the order in which they were first read.
        self._clusters: dict[Any, int] = {}
        self._has_warned = False
        self._counts: tuple[int, int] | None = None
        if self._given is not None and group is None:
            self._know(self._given, None)

    @property
    def classes(self) -> list[str]:
        """Names of the classes; to find them, the label column is read once."""
        return list(self._surveyed().classes.names)

    @property
    def positive(self) -> str | None:
        """Name of the class that a single column of scores is for; None of more than two."""
        place = self._surveyed().positive
        return None if place is None else self.classes[place]

    @property
    def score_columns(self) -> dict[str, list[str]]:
        """Columns of each model that its scores are read from: of the positive class of two."""
        known = self._surveyed()
        found = {}
        for model, columns in known.layout.items():
            of_two = known.positive is not None and len(columns) == 2
            found[model] = [columns[known.positive or 0]] if of_two else list(columns)
        return found

    @property
    def group_names(self) -> list[str]:
        """Names of the groups; empty if there is no column for them."""
        groups = self._surveyed().groups
        return [] if groups is None else list(groups.names)

    @property
    def n_rows(self) -> int:
        """Rows that are used; the file is read if it was not before."""
        return self._counted()[0]

    @property
    def n_dropped(self) -> int:
        """Rows that are left out for a missing value; the file is read if it was not before."""
        return self._counted()[1]

    def batches(self) -> Iterator[PredictionBatch]:
        """The rows a part at a time, in memory that does not grow.

        Before the first part, the label and group columns are read once to know their names,
        unless `classes` says all there is to know. What only the whole file can show (a single
        class, no weight) is an error after the last part.
        """
        conversion = self._conversion(self._surveyed())
        with numbers_explained(self.table, self.columns.numeric):
            source = self.table.batches(self.columns.all, self._types)
            for data in source:
                batch = conversion.batch(data, source.fraction)
                if batch is not None:
                    yield batch
        self._finish(conversion)

    def read(self) -> PredictionBatch:
        """All rows at once, in a single reading of the file."""
        with numbers_explained(self.table, self.columns.numeric):
            if self._known is None:
                self._peek()
            data = self.table.read(self.columns.all, self._types).to_batches()
            known = self._surveyed(data)
            conversion = self._conversion(known)
            parts = [conversion.batch(batch, 1.0) for batch in data if batch.num_rows]
        self._finish(conversion)
        return joined([part for part in parts if part is not None])

    def _conversion(self, known: Known) -> Conversion:
        return Conversion(self.table, self.columns, known, self.drop_missing, self._clusters)

    def _finish(self, conversion: Conversion) -> None:
        conversion.finish()
        for column in self._single_columns():
            if is_confidence(column) and conversion.lowest[column] >= 0.5:
                self._warn(warning_of_confidence(str(self.positive), column))
        self._counts = conversion.n_rows, conversion.n_dropped

    def _counted(self) -> tuple[int, int]:
        if self._counts is None:
            for _ in self.batches():
                pass
        assert self._counts is not None
        return self._counts

    def _surveyed(self, data: Iterable[Any] | None = None) -> Known:
        """Classes and groups, from `data` or else from a reading of their columns."""
        if self._known is not None:
            return self._known
        columns = self.columns
        asked = [columns.label] if self._given is None else []
        asked += [] if columns.group is None else [columns.group]
        if data is None:
            data = self.table.batches(asked, self._types)
        values: dict[str, set[Any]] = {name: set() for name in asked}
        orders: list[list[Any]] = []
        for batch in data:
            for name in values:
                values[name].update(encoded_or_refused(self.table, batch, name)[1])
            if self._given is None:
                self._check_labels(values[columns.label])
                order = category_order(batch.column(columns.label))
                if order is not None and order not in orders[-1:]:
                    orders.append(order)
        label, groups = columns.label, None
        classes = self._given or found_classes(self.table, label, values[label])
        if columns.group is not None:
            groups = found_groups(self.table, columns.group, values[columns.group])
        return self._know(classes, groups, orders)

    def _peek(self) -> None:
        """Refuse an identifier as label before all of the file is read."""
        if self._given is None:
            for first in self.table.batches([self.columns.label], self._types):
                self._check_labels(encoded_or_refused(self.table, first, self.columns.label)[1])
                return

    def _check_labels(self, values: Sized) -> None:
        check_number_of_classes(self.table, len(values), f"column {self.columns.label!r}")

    def _know(
        self, classes: Categories, groups: Categories | None, orders: Sequence[Sequence[Any]] = ()
    ) -> Known:
        are_given = self._given is not None
        layout = {
            model: self.columns.in_class_order(self.table, model, classes, are_given=are_given)
            for model in self.columns.models
        }
        self._known = Known(classes, groups, self._positive_place(classes, orders), layout)
        for column in self._single_columns():
            if says_whether_right(self.columns.label, classes.names, column):
                place = (self.columns.label, classes.names, str(self.positive), column)
                self._warn(warning_of_answers(*place))
                break
        return self._known

    def _single_columns(self) -> list[str]:
        """Columns of scores whose class is known only by the order of the classes."""
        if self._positive is not None or len(self._surveyed().classes.names) > 2:
            return []
        return [columns[0] for columns in self.columns.models.values() if len(columns) == 1]

    def _warn(self, message: str) -> None:
        """Warn of a doubtful reading, once for each file."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(str(self.table.error(message)), AnswersWarning, stacklevel=2)

    def _positive_place(self, classes: Categories, orders: Sequence[Sequence[Any]]) -> int | None:
        n = len(classes.names)
        if self._positive is None:
            if n == 2 and orders:
                return later_class(self.table, self.columns.label, classes, orders)
            return 1 if n == 2 else None
        place = classes.code(self._positive)
        if n > 2 or place is None:
            raise self.table.error(
                f"the positive class must be one of two classes; got {self._positive!r}, and the "
                f"classes are {listed(classes.names)}."
            )
        return place
