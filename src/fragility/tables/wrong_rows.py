"""What is wrong where: how often, in which rows first, and examples of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._labels import listed
from .._typing import Mask
from .table import Table

_MOST_ROWS = 5
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 60


class WrongRows:
    """Rows that are wrong, added up over the batches of a table.

    Attributes
    ----------
    count, total : int
        Rows that are wrong, and rows seen.
    rows : list of int
        The first of them, counted from 1.
    examples : list
        What some of them hold, each only once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.rows: list[int] = []
        self.examples: list[Any] = []

    def add(self, wrong: Mask, values: Any = None) -> None:
        """Look through the next rows; `values` (an array of NumPy or Arrow) are for examples."""
        count = int(np.count_nonzero(wrong))
        if count:
            places = np.flatnonzero(wrong)
            first = places[: _MOST_ROWS - len(self.rows)] + (self.total + 1)
            self.rows.extend(first.tolist())
            if values is not None and len(self.examples) < _MOST_EXAMPLES:
                for example in values.take(places[:1000]).tolist():
                    self._add_example(example)
        self.count += count
        self.total += wrong.size

    def add_row(self, row: int, example: Any) -> None:
        """Note one row that is wrong."""
        self.count += 1
        if len(self.rows) < _MOST_ROWS:
            self.rows.append(row)
        self._add_example(example)

    def _add_example(self, example: Any) -> None:
        if isinstance(example, str) and len(example) > _LONGEST_EXAMPLE:
            example = example[:_LONGEST_EXAMPLE] + "..."
        if len(self.examples) < _MOST_EXAMPLES and example not in self.examples:
            self.examples.append(example)

    @property
    def such_as(self) -> str:
        """Examples for a message."""
        return f"such as {listed(self.examples)}"

    def where(self, table: Table) -> str:
        """How many rows, and which first, for a message."""
        return f"in {self.count:,} of {self.total:,} rows ({self.places(table)})"

    def places(self, table: Table) -> str:
        """The first rows for a message."""
        rows = [row + table.rows_before for row in self.rows]
        numbers = ", ".join(map(str, rows)) + (", ..." if self.count > _MOST_ROWS else "")
        return f"data row{'' if self.count == 1 else 's'} {numbers}, {table.row_note}"
