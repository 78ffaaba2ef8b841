"""The first step of a pipeline: columns by name, in the types that the model was trained on.

The same column may come as whole numbers from one file, as decimals from one with gaps and as text
from a third. Here it is read as what it was in training, or refused with a sentence.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._labels import listed, spelled_number
from .._typing import Floats
from ..exceptions import TableError, UnseenValuesWarning
from .frames import (
    Column,
    as_number,
    check_finite,
    check_frame,
    check_needed,
    missing_cells,
    pandas,
    read_columns,
    row_names,
)


@dataclass(eq=False, repr=False)
class ColumnReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Read columns of a data frame as numbers or as levels known from training.

    Other columns are ignored. Text where a number should be and infinite values are errors.
    Levels that were not there in training are warned about, and left as they are.

    Parameters
    ----------
    numeric, categorical : sequence of str
        Names of the columns.
    keep_missing : bool, default=False
        Leave missing values for an imputer to fill; else they are an error.

    Attributes
    ----------
    levels_ : dict of str to list
        Levels of the categorical columns: text, booleans or numbers.
    feature_names_in_, n_features_in_
        As scikit-learn has them.

    Examples
    --------
    >>> import pandas as pd
    >>> from fragility.pipelines import ColumnReader
    >>> train = pd.DataFrame({"age": [40, 50], "stage": ["1", "2a"]})
    >>> reader = ColumnReader(numeric=["age"], categorical=["stage"]).fit(train)
    >>> reader.transform(pd.DataFrame({"stage": [1, 1], "age": ["60", "70"]})).values.tolist()
    [[60.0, '1'], [70.0, '1']]
    """

    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    keep_missing: bool = field(default=False, kw_only=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the levels of the categorical columns.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        y : object
            Not used.

        Returns
        -------
        ColumnReader
            Itself.
        """
        columns, _ = self._read(X)
        self.levels_ = {name: _levels(columns[name]) for name in self.categorical}
        self.feature_names_in_ = np.array([*self.numeric, *self.categorical], dtype=object)
        self.n_features_in_ = self.feature_names_in_.size
        return self

    def transform(self, X: Any) -> Any:
        """Columns as floats and levels.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame or pyarrow.Table

        Returns
        -------
        pandas.DataFrame
            Of the columns asked for, in their order, with the index of `X` if it has one.
        """
        check_is_fitted(self)
        columns, index = self._read(X)
        read: dict[str, NDArray[Any]] = {name: _numbers(columns[name]) for name in self.numeric}
        read |= {name: _known(columns[name], self.levels_[name]) for name in self.categorical}
        return pandas().DataFrame(read, index=index)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns, in the order of `transform`."""
        check_is_fitted(self)
        return self.feature_names_in_.copy()

    def _read(self, X: Any) -> tuple[dict[str, Column], Any]:
        """The columns that are needed, and the index of the table if it has one."""
        frame = check_frame(X)
        names = [*self.numeric, *self.categorical]
        check_needed(frame, names)
        columns = read_columns(frame, names)
        if not self.keep_missing and (missing := missing_cells(columns.values())):
            raise TableError(
                f"Values are missing: {missing}. The model was trained to have them all; fill "
                "them in, leave these rows out, or train with impute."
            )
        return columns, row_names(frame)


def _numbers(column: Column) -> Floats:
    """A column as floats, NaN where it is empty."""
    must = f"Column {column.name!r} must hold numbers, as in training;"
    if column.kind == "dates" and column.known.size:
        raise TableError(f"{must} it holds dates or times, such as {str(column.known[0])!r}.")
    numbers = column.numbers()
    wrong = np.isnan(numbers) & ~column.missing
    if wrong.any():
        raise TableError(
            f"{must} no number is in {column.rows(wrong)}, such as {column.examples(wrong)}. "
            "Correct these, or empty them if they stand for missing values."
        )
    check_finite(column, "or empty them if they stand for missing values.")
    return numbers


def _levels(column: Column) -> list[Any]:
    """Different values of a column, as plain Python objects in order."""
    values = dict.fromkeys(column.known.tolist())
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        return sorted(plain)
    except TypeError:
        raise TableError(
            f"Column {column.name!r} holds levels of different types, such as {listed(plain, 3)}. "
            "Make all of them text."
        ) from None


def _known(column: Column, levels: list[Any]) -> NDArray[Any]:
    """A column with its values replaced by the levels they stand for, NaN where it is empty."""
    known = column.known.tolist()
    counts = Counter(known)
    found = _spelled(counts, levels)
    unseen = [value for value, level in found.items() if level is None]
    if unseen:
        rows = sum(counts[value] for value in unseen)
        warnings.warn(
            f"Column {column.name!r}: {rows} of {column.values.size} rows have values not seen in "
            f"training (first: {listed(unseen, 3)}), which count for no level. Known are: "
            f"{listed(levels, 6)}.",
            UnseenValuesWarning,
            stacklevel=4,
        )
        found |= {value: str(value) for value in unseen}  # not a level, or it would be known
    read = np.full(column.values.size, np.nan, dtype=object)
    read[~column.missing] = [found[value] for value in known]
    return read


def _spelled(values: Iterable[Any], levels: list[Any]) -> dict[Any, Any]:
    """The level that each value stands for, however another file spells it; None if it has none."""
    text = {level: level for level in levels if isinstance(level, str)}
    by_number = {_number(level): level for level in reversed(levels)}
    by_number.pop(None, None)
    found = {}
    for value in values:
        # Text is not read twice: "1.0" is not "1".
        number = None if isinstance(value, str) and text else _number(value)
        found[value] = by_number.get(number, text.get(str(value)))
    return found


def _number(value: Any) -> float | None:
    number = as_number(spelled_number(value))
    return None if isnan(number) else number
