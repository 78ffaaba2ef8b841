"""Predictions in a file: labels, scores of models, weights, groups and costs, as checked arrays."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence, Sized
from typing import Any

from .._labels import listed
from ..exceptions import AnswersWarning
from .answers import is_confidence, says_whether_right, warning_of_answers, warning_of_confidence
from .case_files import CaseFile
from .categories import (
    Categories,
    check_number_of_classes,
    found_classes,
    later_class,
    named,
)
from .columns import PredictionColumns
from .conversion import Conversion, Known
from .group_columns import parse_groups
from .prediction_batch import PredictionBatch
from .reading import Reading
from .rows import encoded_or_refused
from .table import Table
from .values import category_order


class PredictionFile(CaseFile[PredictionBatch]):
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
    weight, error_cost, cluster : str, optional
        Columns with the weight of each row, what an error on it costs, and which rows belong
        together, such as those of one patient.
    human, reviewer_error : str, optional
        Columns with the class that a human decided on each row, and with the probability, from 0 to
        1, that a reviewer of it errs.
    groups : sequence of str, optional
        Columns with groups of the rows; a column of numbers may be cut into ranges, as in
        ``"age:40,60"``.
    cross : bool, default=True
        Whether several columns of groups are crossed, too: one more column of their combinations.
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
        groups: Sequence[str] = (),
        cross: bool = True,
        error_cost: str | None = None,
        cluster: str | None = None,
        human: str | None = None,
        reviewer_error: str | None = None,
        drop_missing: bool = False,
    ) -> None:
        self.columns = PredictionColumns(
            label=label,
            models={name: tuple(columns) for name, columns in models.items()},
            weight=weight,
            groups=parse_groups(table, groups),
            error_cost=error_cost,
            cluster=cluster,
            human=human,
            reviewer_error=reviewer_error,
        )
        super().__init__(table, self.columns, cross=cross, drop_missing=drop_missing)
        self._positive = positive
        self._given = None if classes is None else named(table, classes)
        self._known: Known | None = None
        #: Labels that were seen, and the orders of categories among them.
        self._labels: set[Any] = set()
        self._orders: list[list[Any]] = []
        self._has_warned = False
        if self._given is not None and not groups:
            self._surveyed()  # nothing is read

    @property
    def classes(self) -> list[str]:
        """Names of the classes; to find them, the label column is read once."""
        return list(self._names.classes.names)

    @property
    def positive(self) -> str | None:
        """Name of the class that a single column of scores is for; None of more than two."""
        place = self._names.positive
        return None if place is None else self.classes[place]

    @property
    def labels(self) -> list[Any]:
        """The classes as values: whole numbers, booleans if all are, or text."""
        known = self._names.classes
        if known.are_numbers and self._labels and all(isinstance(v, bool) for v in self._labels):
            return [bool(key) for key in known.keys]
        return list(known.keys) if known.are_numbers else list(known.names)

    @property
    def seen_labels(self) -> Collection[Any]:
        """Labels of the rows that were looked through."""
        return self._labels

    @property
    def has_orders(self) -> bool:
        """Whether these are ordered categories."""
        return bool(self._orders)

    def merge_names(self, other: PredictionFile) -> None:
        """Add the labels that were seen in other rows."""
        self._labels |= other._labels
        self._orders += [order for order in other._orders if order not in self._orders]

    @property
    def score_columns(self) -> dict[str, list[str]]:
        """Columns of each model that its scores are read from: of the positive class of two."""
        known = self._names
        found = {}
        for model, columns in known.layout.items():
            of_two = known.positive is not None and len(columns) == 2
            found[model] = [columns[known.positive or 0]] if of_two else list(columns)
        return found

    @property
    def _names(self) -> Known:
        """All names, once they are known."""
        if self._known is None:
            self._surveyed()
        assert self._known is not None
        return self._known

    def _reading(self) -> Conversion:
        return Conversion(self.table, self.columns, self._names, self.drop_missing, self._clusters)

    def _finish(self, reading: Reading[PredictionBatch]) -> None:
        super()._finish(reading)
        self._doubt(reading.lowest)

    def _doubt(self, lowest: Mapping[str, float]) -> None:
        """Warn of scores that seem to be of whichever class was predicted: none is below a half."""
        for column in self._single_columns():
            if is_confidence(column) and lowest.get(column, 0.0) >= 0.5:
                self._warn(warning_of_confidence(str(self.positive), column))

    def _asked_first(self) -> list[str]:
        return [self.columns.label] if self._given is None else []

    def _look(self, data: Any) -> None:
        """Collect labels, and orders of categories among them."""
        if self._given is None:
            label = self.columns.label
            self._labels.update(encoded_or_refused(self.table, data, label)[1])
            self._check_labels(self._labels)
            order = category_order(data.column(label))
            if order is not None and order not in self._orders[-1:]:
                self._orders.append(order)

    def _seen(self, column: str) -> Collection[Any]:
        return self._labels

    def _know(self) -> None:
        """Classes, which of two is the positive one, and which column is for which."""
        classes = self._given or found_classes(self.table, self.columns.label, self._labels)
        are_given = self._given is not None
        layout = {
            model: self.columns.in_class_order(self.table, model, classes, are_given=are_given)
            for model in self.columns.models
        }
        positive = self._positive_place(classes, self._orders)
        self._known = Known(classes, self._surveyed(), positive, layout)
        for column in self._single_columns():
            if says_whether_right(self.columns.label, classes.names, column):
                place = (self.columns.label, classes.names, str(self.positive), column)
                self._warn(warning_of_answers(*place))
                break

    def _peek(self) -> None:
        """Refuse an identifier as label before all of the file is read."""
        if self._given is None:
            for first in self.table.batches([self.columns.label], self._types):
                self._check_labels(encoded_or_refused(self.table, first, self.columns.label)[1])
                return

    def _check_labels(self, values: Sized) -> None:
        check_number_of_classes(self.table, len(values), f"column {self.columns.label!r}")

    def _single_columns(self) -> list[str]:
        """Columns of scores whose class is known only by the order of the classes."""
        if self._positive is not None or len(self._names.classes.names) > 2:
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
