"""Which columns of a table are used, and what for: labels, scores of which model, weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .._labels import listed
from ..exceptions import TableError
from .arrow import pyarrow
from .categories import Categories, class_of_columns
from .group_columns import GroupBy
from .table import Table, require_columns


@dataclass(frozen=True, kw_only=True)
class CaseColumns(ABC):
    """Columns that every kind of case may have."""

    weight: str | None = None
    groups: tuple[GroupBy, ...] = ()
    error_cost: str | None = None
    cluster: str | None = None
    #: What columns of few values are for, for a message.
    roles: ClassVar[str]

    @property
    @abstractmethod
    def categorical(self) -> list[str]:
        """Columns of few values that repeat."""

    @property
    @abstractmethod
    def numeric(self) -> list[str]:
        """Columns of numbers."""

    @property
    def all(self) -> list[str]:
        """Every column that is used, once."""
        return list(dict.fromkeys([*self.categorical, *self.numeric]))

    @property
    def shared(self) -> set[str]:
        """Columns that say something of a row whatever the models make of it."""
        return {*self._with_shared((), numeric=False), *self._with_shared((), numeric=True)}

    def check(self, table: Table) -> None:
        """Refuse columns that are not there or that are to be two things."""
        require_columns(table, self.all)
        both = [column for column in self.categorical if column in self.numeric]
        if both:
            raise table.error(
                f"column {listed(both)} is named as {self.roles} and for numbers, too; name "
                "another one."
            )

    def types(self, table: Table) -> dict[str, Any]:
        """Types to read the columns as, the fastest ones."""
        pa = pyarrow()
        text = self.categorical
        if table.schema is not None:
            text = [c for c in text if pa.types.is_string(table.schema.field(c).type)]
        repeated = pa.dictionary(pa.int32(), pa.string())
        return table.number_types(self.numeric) | dict.fromkeys(text, repeated)

    def _with_shared(self, first: Iterable[str], *, numeric: bool) -> list[str]:
        """Some columns, and all others that are of numbers, or of few values."""
        groups = [by.column for by in self.groups if (by.ranges is not None) == numeric]
        others = (self.weight, self.error_cost) if numeric else (self.cluster,)
        return list(dict.fromkeys([*first, *groups, *(c for c in others if c is not None)]))


@dataclass(frozen=True, kw_only=True)
class PredictionColumns(CaseColumns):
    """Columns of the labels, of the scores of each model, and what else there may be."""

    label: str
    models: dict[str, tuple[str, ...]]
    human: str | None = None
    reviewer_error: str | None = None
    roles = "label, group or cluster"

    @property
    def scored(self) -> list[str]:
        """Columns of scores, each once."""
        return list(dict.fromkeys(c for columns in self.models.values() for c in columns))

    @property
    def categorical(self) -> list[str]:
        """Columns of few values that repeat."""
        first = [self.label] if self.human is None else [self.label, self.human]
        return self._with_shared(first, numeric=False)

    @property
    def numeric(self) -> list[str]:
        """Columns of numbers."""
        more = [] if self.reviewer_error is None else [self.reviewer_error]
        return self._with_shared([*self.scored, *more], numeric=True)

    def check(self, table: Table) -> None:
        """Refuse columns that are not there or that are to be two things."""
        if not self.models or not all(self.models.values()):
            raise table.error("no scores were given; name a column of scores for every model.")
        super().check(table)
        if self.human == self.label:
            raise table.error(
                f"column {self.label!r} is named for the true classes and for the decisions of "
                "humans, who would never err; name another one."
            )

    def in_class_order(
        self, table: Table, model: str, classes: Categories, *, are_given: bool
    ) -> list[str]:
        """Columns of a model in the order of the classes (one column: of the positive class)."""
        columns, n = list(self.models[model]), len(classes.names)
        who = f"model {model!r} has {len(columns)} column{'s' if len(columns) > 1 else ''}"
        held = f"{n} classes ({listed(classes.names)})"
        if len(columns) == 1 and n == 2:
            return columns
        if len(columns) != n:
            raise table.error(
                f"{who} of scores, but there are {held}; give one column for each class, as in "
                f"{model}=column,column,...{' or a single one' if n == 2 else ''}. If a class has "
                f"no row here, name all classes. Is {self.label!r} the column of the true labels?"
            )
        named_for = class_of_columns(columns, classes)
        if not are_given and named_for is None:
            raise table.error(
                f"{who} ({listed(columns)}), whose names do not say which is for which of {held}; "
                "name the classes (--classes) in the order of the columns."
            )
        if are_given and named_for not in (None, list(range(n))):
            raise table.error(
                f"{who} named for the classes, but in another order ({listed(columns)}) than the "
                f"classes were given ({listed(classes.names)}); put them in the same order."
            )
        if named_for is None:
            return columns
        return [columns[named_for.index(code)] for code in range(n)]


def parse_models(
    scores: Sequence[str], available: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Models and their columns, from options as a person writes them.

    Parameters
    ----------
    scores : sequence of str
        Each is a column (the model gets its name), ``NAME=column``, or ``NAME=column,column,...``
        with one column for each class.
    available : collection of str, optional
        Columns there are. What is the name of one as a whole is taken as such, so that names with
        commas and equals signs can be used.

    Examples
    --------
    >>> parse_models(["p", "new=p_cat,p_dog,p_owl"])
    {'p': ('p',), 'new': ('p_cat', 'p_dog', 'p_owl')}
    """
    if not scores:
        raise TableError("No scores were given; name at least one column of scores.")
    models: dict[str, tuple[str, ...]] = {}
    for option in scores:
        name, columns = parse_option(option, available)
        if name in models:
            raise TableError(
                f"Two models have the name {name!r}; give each its own, as in NAME=column."
            )
        models[name] = columns
    return models


def parse_option(option: str, available: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """A model and its columns, from ``column`` or ``NAME=column,...``."""
    if option in available:
        return option, (option,)
    # A column may itself have an equals sign: any one may be where the name of the model ends.
    for place in (i for i, character in enumerate(option) if character == "="):
        if option[place + 1 :].strip() in available:
            return _named(option, option[:place], [option[place + 1 :]])
    name, equals, columns = option.partition("=")
    if not equals:
        if "," in option:
            raise TableError(f"{option!r} names several columns but no model; write NAME={option}.")
        return _named(option, option, [option])
    return _named(option, name, columns.split(","))


def _named(option: str, name: str, columns: list[str]) -> tuple[str, tuple[str, ...]]:
    names = [column.strip() for column in columns]
    if not name.strip() or not all(names):
        raise TableError(
            f"{option!r} has an empty part; write column, NAME=column or NAME=column,column,..."
        )
    twice = {column for column in names if names.count(column) > 1}
    if twice:
        raise TableError(f"{option!r} names {listed(sorted(twice))} more than once.")
    return name.strip(), tuple(names)
