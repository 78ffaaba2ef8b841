"""Rows of a file of predictions as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers


@dataclass(frozen=True, eq=False)
class PredictionBatch:
    """Rows of a file of predictions, one after the other.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Place of each row's label in the classes, in the smallest unsigned type.
    scores : dict of str to ndarray
        Of each model: (n,) probabilities of the positive class, or (n, n_classes), the columns in
        the order of the classes. Single precision stays single; all else is double.
    weights, error_costs : ndarray of shape (n,) or None
    groups : ndarray of shape (n,) or None
        Place of each row's group in the names of the groups.
    clusters : ndarray of shape (n,) or None
        Number of each row's cluster, the same in every reading of the file.
    human : ndarray of shape (n,) or None
        Place of what a human decided in the classes.
    reviewer_errors : ndarray of shape (n,) or None
    first_row : int
        Number of the first row, as a person counts the rows below the header, from 1.
    rows : ndarray of shape (n,) or None
        Number of each row; None if none was left out here, so that they follow each other.
    fraction : float
        How much of the file has been read, from 0 to 1.
    """

    codes: NDArray[Any]
    scores: dict[str, NDArray[Any]]
    weights: Floats | None
    groups: NDArray[Any] | None
    error_costs: Floats | None
    first_row: int
    rows: Integers | None
    fraction: float
    clusters: Integers | None = None
    human: NDArray[Any] | None = None
    reviewer_errors: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Rows here."""
        return self.codes.size

    @property
    def row_numbers(self) -> Integers:
        """Number in the file of each row here, counted from 1."""
        if self.rows is not None:
            return self.rows
        return np.arange(self.first_row, self.first_row + self.n_rows)


def joined(parts: Sequence[PredictionBatch]) -> PredictionBatch:
    """Batches that follow each other as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    whole: dict[str, Any] = {"fraction": parts[-1].fraction}
    given = "codes", "weights", "groups", "error_costs", "clusters", "human", "reviewer_errors"
    for name in given:
        if getattr(first, name) is not None:
            whole[name] = np.concatenate([getattr(part, name) for part in parts])
    whole["scores"] = {
        model: np.concatenate([part.scores[model] for part in parts]) for model in first.scores
    }
    missed = parts[-1].first_row + parts[-1].n_rows - first.first_row - len(whole["codes"])
    if missed or any(part.rows is not None for part in parts):  # also whole batches between these
        whole["rows"] = np.concatenate([part.row_numbers for part in parts])
    return replace(first, **whole)
