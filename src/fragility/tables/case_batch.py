"""Rows of a file of cases as arrays, whatever is known of the cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class CaseBatch(ABC):
    """Rows of a file, one after the other.

    Attributes
    ----------
    weights, error_costs : ndarray of shape (n,) or None
    groups : ndarray of shape (n, n_columns) or None
        Place of each row's group in the names of the groups, by column of groups.
    clusters : ndarray of shape (n,) or None
        Number of each row's cluster, the same in every reading of the file.
    first_row : int
        Number of the first row, as a person counts the rows below the header, from 1.
    rows : ndarray of shape (n,) or None
        Number of each row; None if none was left out here, so that they follow each other.
    fraction : float
        How much of the file has been read, from 0 to 1.
    """

    weights: Floats | None
    groups: NDArray[Any] | None
    error_costs: Floats | None
    clusters: Integers | None
    first_row: int
    rows: Integers | None
    fraction: float

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows here."""

    @property
    def row_numbers(self) -> Integers:
        """Number in the file of each row here, counted from 1."""
        if self.rows is not None:
            return self.rows
        return np.arange(self.first_row, self.first_row + self.n_rows)


Batch = TypeVar("Batch", bound=CaseBatch)


def joined(parts: Sequence[Batch]) -> Batch:
    """Batches that follow each other as one."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    whole: dict[str, Any] = {"fraction": last.fraction}
    for name in (field.name for field in fields(first)):
        if name not in ("first_row", "rows", "fraction"):
            whole[name] = _joined([getattr(part, name) for part in parts])
    n = sum(part.n_rows for part in parts)
    missed = last.first_row + last.n_rows - first.first_row - n
    if missed or any(part.rows is not None for part in parts):  # also whole batches between these
        whole["rows"] = np.concatenate([part.row_numbers for part in parts])
    return replace(first, **whole)


def _joined(values: list[Any]) -> Any:
    """Arrays, or mappings of arrays, one after the other."""
    if values[0] is None:
        return None
    if isinstance(values[0], dict):
        return {key: _joined([value[key] for value in values]) for key in values[0]}
    return np.concatenate(values)
