"""Rows of a file of predictions as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .._typing import Floats
from .case_batch import CaseBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionBatch(CaseBatch):
    """Rows of a file of predictions, one after the other.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Place of each row's label in the classes, in the smallest unsigned type.
    scores : dict of str to ndarray
        Of each model: (n,) probabilities of the positive class, or (n, n_classes), the columns in
        the order of the classes. Single precision stays single; all else is double.
    weights, error_costs : ndarray of shape (n,) or None
    groups : ndarray of shape (n, n_columns) or None
        Place of each row's group in the names of the groups, by column of groups.
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
    human: NDArray[Any] | None = None
    reviewer_errors: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Rows here."""
        return self.codes.size
