"""Columns of probabilities of a table that has no labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import Floats
from .._validation import PROBABILITY_ROUNDING, SUM_TOLERANCE
from .problems import missing_values, not_probabilities, numbers_explained, sums_not_one
from .table import Table, require_columns
from .values import numbers


def read_probabilities(table: Table, columns: Sequence[str]) -> Floats:
    """Probabilities in one column, or in one for each class, of every row.

    Parameters
    ----------
    table : Table
    columns : sequence of str

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_classes)

    Raises
    ------
    TableError
        If a column is not there, a value is missing, or the values are not probabilities.
    """
    require_columns(table, columns)
    with numbers_explained(table, columns):
        parts: list[list[Floats]] = [[] for _ in columns]
        for batch in table.batches(columns, table.number_types(columns)):
            for part, name in zip(parts, columns, strict=True):
                try:
                    part.append(numbers(batch.column(name)).astype(np.float64))
                except TypeError as error:
                    flaw = f"column {name!r} holds {error}; a policy takes numbers."
                    raise table.error(flaw) from None
    found = [np.concatenate([np.zeros(0), *part]) for part in parts]
    if any(np.isnan(values).any() for values in found):
        raise missing_values(table, [], columns, "fill them in, or have a human decide these rows.")
    for name, values in zip(columns, found, strict=True):
        if not np.all((values >= -PROBABILITY_ROUNDING) & (values <= 1.0 + PROBABILITY_ROUNDING)):
            raise not_probabilities(table, name)
    matrix: Floats = np.clip(np.stack(found, axis=1), 0.0, 1.0)
    if len(found) == 1:
        return matrix[:, 0]
    if np.any(np.abs(matrix.sum(axis=1) - 1.0) > SUM_TOLERANCE):
        raise sums_not_one(table, "of the policy", list(columns))
    return matrix
