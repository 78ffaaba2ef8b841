"""Columns of probabilities, or of confidences, of a table that has no labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import Floats
from .._validation import PROBABILITY_ROUNDING, SUM_TOLERANCE
from .problems import missing_values, not_probabilities, numbers_explained, sums_not_one
from .table import Table, require_columns
from .truths import truths
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
    found = _numbers(table, columns)
    if any(np.isnan(values).any() for values in found):
        raise missing_values(table, [], columns, "fill them in, or have a human decide these rows.")
    for name, values in zip(columns, found, strict=True):
        _check_probabilities(table, name, values)
    matrix: Floats = np.clip(np.stack(found, axis=1), 0.0, 1.0)
    if len(found) == 1:
        return matrix[:, 0]
    if np.any(np.abs(matrix.sum(axis=1) - 1.0) > SUM_TOLERANCE):
        raise sums_not_one(table, "of the policy", list(columns))
    return matrix


def read_confidences(table: Table, column: str, declined: str | None) -> Floats:
    """Confidence of every answer; NaN where there is none, or the model declined.

    Parameters
    ----------
    table : Table
    column : str
        The confidence, from 0 to 1.
    declined : str, optional
        Column that says yes where the model declined to answer.
    """
    (found,) = _numbers(table, [column])
    if declined is not None:
        require_columns(table, [declined])
        parts = [truths(table, batch, declined)[0] for batch in table.batches([declined])]
        found[np.concatenate([np.zeros(0, np.bool_), *parts])] = np.nan
    _check_probabilities(table, column, found[~np.isnan(found)])
    return np.clip(found, 0.0, 1.0)


def _numbers(table: Table, columns: Sequence[str]) -> list[Floats]:
    """Columns of numbers, NaN where they are missing."""
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
    return [np.concatenate([np.zeros(0), *part]) for part in parts]


def _check_probabilities(table: Table, name: str, values: Floats) -> None:
    inside = (values >= -PROBABILITY_ROUNDING) & (values <= 1.0 + PROBABILITY_ROUNDING)
    if not np.all(inside):
        raise not_probabilities(table, name)
