"""What files of predictions and of outcomes have in common: rows in batches, names of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic

from .case_batch import Batch, joined
from .columns import CaseColumns
from .group_columns import GroupSurvey, KnownGroups
from .problems import numbers_explained
from .reading import Reading
from .table import Table


class CaseFile(ABC, Generic[Batch]):
    """Cases in the rows of a table.

    Nothing is read before it is asked for. What is read is checked; what is wrong is said with
    its rows, as a `TableError`.
    """

    def __init__(
        self, table: Table, columns: CaseColumns, *, cross: bool, drop_missing: bool
    ) -> None:
        self.table = table
        columns.check(table)
        self.drop_missing = drop_missing
        self._used = columns
        self._types = columns.types(table)
        self._cross = cross
        self._groups: KnownGroups | None = None
        #: Numbers of the clusters, in the order in which they were first read.
        self._clusters: dict[Any, int] = {}
        self._counts: tuple[int, int] | None = None

    @property
    def groups(self) -> dict[str, list[str]]:
        """Names of the groups by column, of several columns also by their crossing."""
        return self._surveyed().names

    @property
    def n_rows(self) -> int:
        """Rows that are used; the file is read if it was not before."""
        return self._counted()[0]

    @property
    def n_dropped(self) -> int:
        """Rows that are left out for a missing value; the file is read if it was not before."""
        return self._counted()[1]

    def batches(self) -> Iterator[Batch]:
        """The rows a part at a time, in memory that does not grow.

        Before the first part, columns of names (of classes and groups) are read once to know
        them. What only the whole file can show (a single class, no weight) is an error after the
        last part.
        """
        self._surveyed()
        reading = self._reading()
        with numbers_explained(self.table, self._used.numeric):
            source = self.table.batches(self._used.all, self._types)
            for data in source:
                batch = reading.batch(data, source.fraction)
                if batch is not None:
                    yield batch
        self._finish(reading)

    def read(self) -> Batch:
        """All rows at once, in a single reading of the file."""
        with numbers_explained(self.table, self._used.numeric):
            if self._groups is None:
                self._peek()
            data = self.table.read_batches(self._used.all, self._types)
            self._surveyed(data)
            reading = self._reading()
            parts = [reading.batch(batch, 1.0) for batch in data if batch.num_rows]
        self._finish(reading)
        return joined([part for part in parts if part is not None])

    @abstractmethod
    def _reading(self) -> Reading[Batch]:
        """A new reading of the rows, when all names are known."""

    def _asked_first(self) -> list[str]:
        """Columns beside those of groups that must be looked through first."""
        return []

    def _look(self, data: Any) -> None:
        """Look through the next rows of these columns."""

    def _seen(self, column: str) -> Collection[Any]:
        """Values of one of these columns that were seen."""
        return ()

    def _has_seen(self, survey: GroupSurvey, column: str, ends: tuple[int, int] | None) -> bool:
        """Whether every whole number between the ends of a column was seen."""
        if ends is None or survey.is_crossed:
            return False
        known = set(survey.seen(column) or self._seen(column))
        return ends[1] - ends[0] < len(known) and known.issuperset(range(ends[0], ends[1] + 1))

    def _know(self) -> None:
        """Make use of what was seen."""

    def _peek(self) -> None:
        """Refuse what the first rows show to be wrong before all of the file is read."""

    def _finish(self, reading: Reading[Batch]) -> None:
        reading.finish()
        self._counts = reading.n_rows, reading.n_dropped

    def _surveyed(self, data: Iterable[Any] | None = None) -> KnownGroups:
        """Groups, and all other names, from `data` or else from a reading of their columns."""
        if self._groups is not None:
            return self._groups
        survey = self.new_survey()
        asked = self.asked_first(survey)
        if asked:
            with numbers_explained(self.table, self._used.numeric):
                ends = {column: self.table.ends(column) for column in asked}
                for batch in self.table.batches(asked, self._types) if data is None else data:
                    self.look(survey, batch)
                    if all(self._has_seen(survey, *column) for column in ends.items()):
                        break  # a value that is not between the ends is refused when it is read
        return self.take_names(survey)

    # Names may be surveyed, and rows read, in parts that lie elsewhere.

    def new_survey(self) -> GroupSurvey:
        """A survey of no rows."""
        return GroupSurvey(self.table, self._used.groups, cross=self._cross)

    def asked_first(self, survey: GroupSurvey) -> list[str]:
        """Columns that must be looked through before rows can be read."""
        return list(dict.fromkeys([*self._asked_first(), *survey.asked]))

    def look(self, survey: GroupSurvey, data: Any) -> None:
        """Look through the next rows of these columns."""
        survey.add(data)
        self._look(data)

    def explained(self, part: Table) -> AbstractContextManager[None]:
        """Where a column of numbers of these rows cannot be read, the error says why."""
        held = [name for name in self._used.numeric if name in part.column_names]
        return numbers_explained(part, held)

    def new_reading(self) -> Reading[Batch]:
        """A reading of no rows, when all names are known."""
        return self._reading()

    def finish(self, reading: Reading[Batch]) -> None:
        """Checks that only the whole allows, and numbers of rows."""
        self._finish(reading)

    def take_names(self, survey: GroupSurvey) -> KnownGroups:
        """Groups, and all other names, from a survey of all rows."""
        found = survey.found()
        self._groups = found
        try:
            self._know()
        except Exception:
            self._groups = None
            raise
        return found

    def _counted(self) -> tuple[int, int]:
        if self._counts is None:
            for _ in self.batches():
                pass
        assert self._counts is not None
        return self._counts
