"""What every source of rows can do: fill a state from each of its parts, and merge these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from .._labels import listed
from .._names import did_you_mean, seen_first
from ..exceptions import PartitionError
from ..tables.arrow import pyarrow
from ..tables.table import rows_at_once

State = TypeVar("State")

#: Fewer rows than this are joined: a state takes many at a time much faster than few.
LEAST_ROWS = 1 << 16
#: More rows than this are cut: temporary arrays stay small.
MOST_ROWS = 1 << 17


@dataclass(frozen=True)
class Part:
    """A part of the data, such as a file or a partition.

    Attributes
    ----------
    number : int
        From 0, in the order of the parts.
    name : str
    file : str, optional
        That the rows come from, if it is known.
    """

    number: int
    name: str
    file: str | None = None

    @property
    def where(self) -> str:
        """What messages call it: its file, if that is known."""
        return self.name if self.file is None else self.file

    def error(self, reason: object) -> PartitionError:
        """An error that names this part."""
        return PartitionError(self.name, self.file, " ".join(str(reason).split()))


def first_seen(what: str, parts: Mapping[Any, Part]) -> str:
    """A sentence that tells in which part each value is first seen; nothing of a single part."""
    known = [(part.number, str(value), value, part) for value, part in parts.items()]
    places = [(value, part) for *_, value, part in sorted(known, key=lambda seen: seen[:2])]
    if len({part.where for _, part in places}) < 2:
        files = {part.file for _, part in places if part.file}
        return "".join(f" All {what} are in {file}." for file in files)
    return f" {seen_first(what, {value: part.where for value, part in places})}"


#: Adds a batch of a part to the state of the rows before it, which is None at first.
Add = Callable[[State | None, Any, Part], State]
#: Merges the state of later rows into that of earlier ones.
Merge = Callable[[State, State], State]


class Source(ABC):
    """Rows in parts, which an engine may hold.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    name : str
        What messages call the data.
    """

    schema: Any
    name = "the data"

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def reduce(self, add: Add[State], merge: Merge[State], columns: Sequence[str]) -> State | None:
        """The state of all rows; None if there are none.

        Parameters
        ----------
        add : callable
            ``add(state, batch, part)`` gives the state with the rows of a `pyarrow.RecordBatch`. It
            may change the state that it is given, which is None before the first batch of a part,
            or of a row of parts.
        merge : callable
            ``merge(earlier, later)`` gives the state of both. It may change both. Parts are merged
            in their order.
        columns : sequence of str
            That the batches have, in this order.

        Raises
        ------
        PartitionError
            If a part cannot be read or added. Nothing is left out.
        """
        return self._reduce(add, merge, self.require(columns))

    def require(self, columns: Sequence[str]) -> list[str]:
        """The columns, each once; one that is not there is refused."""
        names = list(dict.fromkeys(columns))
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            hint = self._hint(missing[0]) or did_you_mean(missing, self.column_names, cutoff=0.5)
            raise ValueError(
                f"There is no column {listed(missing)} in {self.name}. The columns are "
                f"{listed(self.column_names, most=20)}.{hint}"
            )
        for name in names:
            if self.schema.names.count(name) > 1:
                raise ValueError(
                    f"Several columns of {self.name} have the name {name!r}; give every column a "
                    "name of its own."
                )
        return names

    def keeps_order(self, column: str) -> bool:
        """Whether ordered categories of a column come in their order."""
        return True

    def first_parts(self, name: str) -> dict[Any, Part]:
        """First part of each value of a column, from engines whose parts do not know their files.

        Empty for all others.
        """
        return {}

    def _hint(self, missing: str) -> str:
        """Where else the values of a column may be; nothing if nobody knows."""
        return ""

    @abstractmethod
    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        """The same for columns that are there."""


def folded(
    batches: Iterable[Any], part: Part, add: Add[State], state: State | None = None
) -> State | None:
    """The state with all rows of a part; what is wrong with them is said with its name."""
    try:
        for batch in even_batches(batches):
            state = add(state, batch, part)
    except (PartitionError, MemoryError):
        raise
    except Exception as error:  # of damaged data, readers raise anything
        raise part.error(str(error) or type(error).__name__) from error
    return state


def batch_rows(n_columns: int) -> int:
    """Rows of a batch at most: fewer of a wide table."""
    return min(MOST_ROWS, rows_at_once(n_columns))


def even_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in batches that are neither tiny nor huge."""
    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        if batch.num_rows:
            if waiting and not _ordered_alike(waiting[-1], batch):
                yield from _cut(waiting)
                waiting, n_waiting = [], 0
            waiting.append(batch)
            n_waiting += batch.num_rows
        if n_waiting >= min(LEAST_ROWS, batch_rows(batch.num_columns)):
            yield from _cut(waiting)
            waiting, n_waiting = [], 0
    if waiting:
        yield from _cut(waiting)


def _ordered_alike(first: Any, second: Any) -> bool:
    """Whether ordered categories are the same in both; joined, they would all have one order."""
    return all(
        own.dictionary.equals(other.dictionary)
        for own, other in zip(first.columns, second.columns, strict=True)
        if getattr(own.type, "ordered", False)
    )


def _cut(batches: list[Any]) -> Iterator[Any]:
    if len(batches) > 1:
        pa = pyarrow()
        # Categories of all may be more than codes of each have room for.
        with suppress(pa.ArrowInvalid):
            batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    for batch in batches:
        most = batch_rows(batch.num_columns)
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)


def merged(parts: Iterable[State | None], merge: Merge[State]) -> State | None:
    """All states as one, in their order; None if there is none."""
    found: State | None = None
    for part in parts:
        if found is None:
            found = part
        elif part is not None:
            found = merge(found, part)
    return found
