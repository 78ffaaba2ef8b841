"""The first step of a pipeline: columns by name, in the types that the model was trained on.

The same column may come as whole numbers from one file, as decimals from one with gaps and as text
from a third. Here it is read as what it was in training, or refused with a sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._labels import in_rows, listed
from .._typing import Floats
from ..exceptions import TableError, UnseenValuesWarning
from .frames import check_finite, check_frame, is_date, missing_cells, needed_columns, pandas


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

    def __init__(
        self,
        numeric: Sequence[str] = (),
        categorical: Sequence[str] = (),
        *,
        keep_missing: bool = False,
    ) -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.keep_missing = keep_missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the levels of the categorical columns.

        Parameters
        ----------
        X : pandas.DataFrame
        y : object
            Not used.

        Returns
        -------
        ColumnReader
            Itself.
        """
        frame = self._selected(X)
        self.levels_ = {name: _levels(frame[name]) for name in self.categorical}
        self.feature_names_in_ = np.array([*self.numeric, *self.categorical], dtype=object)
        self.n_features_in_ = self.feature_names_in_.size
        return self

    def transform(self, X: Any) -> Any:
        """Columns as floats and levels.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Of the columns asked for, in their order, with the index of `X`.
        """
        check_is_fitted(self)
        frame = self._selected(X)
        read = {name: _numbers(frame, name) for name in self.numeric}
        read |= {name: _known(frame, name, self.levels_[name]) for name in self.categorical}
        return pandas().DataFrame(read, index=frame.index)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns, in the order of `transform`."""
        check_is_fitted(self)
        return self.feature_names_in_.copy()

    def _selected(self, X: Any) -> Any:
        frame = needed_columns(check_frame(X), [*self.numeric, *self.categorical])
        if not self.keep_missing and (missing := missing_cells(frame)):
            raise TableError(
                f"Values are missing: {missing}. The model was trained to have them all; fill "
                "them in, leave these rows out, or train with impute."
            )
        return frame


def _numbers(frame: Any, name: str) -> Floats:
    """A column as floats, NaN where it is empty."""
    pd = pandas()
    column = frame[name]
    if is_date(column) and column.notna().any():
        raise TableError(
            f"Column {name!r} must hold numbers, as in training; it holds dates or times, such as "
            f"{str(column.dropna().iloc[0])!r}."
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    read = pd.to_numeric(column, errors="coerce")
    if read.dtype.kind == "c":
        raise TableError(f"Column {name!r} must hold real numbers; it holds complex ones.")
    numbers: Floats = read.to_numpy(dtype=np.float64, na_value=np.nan)
    text = np.isnan(numbers) & column.notna().to_numpy()
    if text.any():
        raise TableError(
            f"Column {name!r} must hold numbers, as in training; no number is in "
            f"{in_rows(text, frame)}, such as {listed(column[text].unique()[:3])}. Correct these, "
            "or empty them if they stand for missing values."
        )
    check_finite(frame, name, numbers, "or empty them if they stand for missing values.")
    return numbers


def _levels(column: Any) -> list[Any]:
    """Different values of a column, as plain Python objects in order."""
    values = column.dropna().astype(object).unique()
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        return sorted(plain)
    except TypeError:
        raise TableError(
            f"Column {column.name!r} holds levels of different types, such as {listed(plain, 3)}. "
            "Make all of them text."
        ) from None


def _known(frame: Any, name: str, levels: list[Any]) -> NDArray[Any]:
    """A column with its values replaced by the levels they stand for, NaN where it is empty."""
    column = frame[name].astype(object)
    filled = column.dropna()
    found = _spelled(filled.unique(), levels)
    unseen = [value for value, level in found.items() if level is None]
    if unseen:
        rows = int(filled.isin(unseen).sum())
        warnings.warn(
            f"Column {name!r}: {rows} of {len(column)} rows have values not seen in training "
            f"(first: {listed(unseen, 3)}), which count for no level. Known are: "
            f"{listed(levels, 6)}.",
            UnseenValuesWarning,
            stacklevel=4,
        )
        found |= {value: str(value) for value in unseen}  # which is no level, or it were known
    read = np.full(len(column), np.nan, dtype=object)
    read[column.notna().to_numpy()] = [found[value] for value in filled]
    return read


def _spelled(values: Iterable[Any], levels: list[Any]) -> dict[Any, Any]:
    """The level that each value stands for, however another file spells it; None if it has none."""
    text = {level: level for level in levels if isinstance(level, str)}
    by_form = {form: level for level in reversed(levels) for form in _forms(level)}
    found = {}
    for value in values:
        # Text is not read twice: "1.0" is not "1".
        forms = [] if isinstance(value, str) and text else _forms(value)
        known = (by_form[form] for form in forms if form in by_form)
        found[value] = next(known, text.get(str(value)))
    return found


def _forms(value: Any) -> list[tuple[str, Any]]:
    """Number and truth value that a level or its text can be read as."""
    if isinstance(value, (bool, np.bool_)):
        return [("truth", bool(value)), ("number", float(value))]
    if isinstance(value, Real):
        return [("number", float(value))]
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return [("truth", text == "true")]
    try:
        return [("number", float(text))] if "_" not in text else []
    except ValueError:
        return []
