"""Class labels as small integer codes, without sorting where it is not needed.

`numpy.unique` on a million labels costs more than the whole index. Labels are few and repeat:
two numbers are found by comparison, integers by their range, text by comparison with what a first
look found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._typing import Integers, Mask

Encoded = tuple[NDArray[Any], NDArray[Any]]

_BLOCK = 131_072
_WIDEST_TABLE = 1 << 16
_FIRST_LOOK = 1_024
#: How text spells a number.
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_TRUTH = {"true": 1, "false": 0}


def encode_labels(y_true: ArrayLike) -> Encoded:
    """Sorted classes of `y_true` and the index of each sample's class among them."""
    y = _as_labels(y_true)
    if y.size == 0:
        raise ValueError("y_true is empty: give at least one sample of each class.")
    if y.dtype.kind == "O":
        return _encode_objects(y)
    if y.dtype.kind in "UST":
        return _encode_text(y)
    encoded = _encode_two_numbers(y)
    if encoded is not None:
        return encoded
    if y.dtype.kind == "f":
        _check_integral(y)
    low, high = y.min(), y.max()
    if low == high:
        return np.array([low]), np.zeros(y.size, dtype=np.uint8)
    if int(high) - int(low) < _WIDEST_TABLE:
        return _encode_range(y, int(low), int(high))
    return _encode_sorted(y)


#: What to do with numbers that are no names.
_NO_NAMES = ", or cut them into ranges: fragility.in_ranges(values, [40, 60])"


def encode_groups(
    groups: ArrayLike, n_samples: int, name: str = "groups"
) -> tuple[list[str], NDArray[Any]]:
    """Names of the groups, as text, and the place of each sample's group among them.

    Numbers are sorted by size, text by alphabet; whole numbers are told without a point.
    """
    try:
        groups_found, codes = encode_labels(groups)
    except ValueError as error:
        told = str(error).replace("class labels", "names of groups")
        remedy = "" if name == "cluster" else _NO_NAMES
        told = told.replace(" (are y_true and y_score swapped?)", remedy)
        raise ValueError(told.replace("y_true", name)) from None
    if codes.size != n_samples:
        raise ValueError(
            f"{name} has {codes.size} entries for {n_samples} samples; give one for each."
        )
    found = groups_found.tolist()
    names = [str(int(group) if isinstance(group, float) else group) for group in found]
    places = {group: place for place, group in enumerate(dict.fromkeys(names))}
    return list(places), np.array([places[group] for group in names])[codes]


def check_clusters(cluster: ArrayLike | None, n_samples: int) -> Integers | None:
    """Number of each sample's cluster, from 0; at least two clusters."""
    if cluster is None:
        return None
    names, codes = encode_groups(cluster, n_samples, "cluster")
    if len(names) < 2:
        raise ValueError(
            f"cluster holds {names[0]!r} alone; at least 2 clusters are needed. Give the name of "
            "what samples have in common, such as a patient, or leave it out."
        )
    return codes.astype(np.int64)


def later_category(y_true: Any, classes: NDArray[Any]) -> Any:
    """The later of two classes of an ordered categorical; None of all else.

    Ordered are a categorical of pandas that says so, an Enum of polars and a dictionary of Arrow
    that says so. Categories that do not occur do not count.
    """
    orders = _category_orders(y_true) if classes.size == 2 else []
    if not orders:
        return None
    places = later_places(classes.tolist(), orders)
    if len(places) != 1:
        raise ValueError(
            f"The parts of y_true have the ordered categories {listed(classes)} "
            f"{'in both orders' if places else 'never together'}, so that neither is the later "
            "one; name the positive class with pos_label=."
        )
    return classes[places.pop()]


def later_places(classes: Sequence[Any], orders: Iterable[Sequence[Any]]) -> set[int]:
    """Which of two classes, 0 or 1, comes later in each of the orders that has both."""
    first, second = classes
    return {
        int(order.index(second) > order.index(first))
        for order in orders
        if first in order and second in order
    }


def _category_orders(values: Any) -> list[list[Any]]:
    """Categories in their order, once for each part of the data; none where there is no order."""
    if len(getattr(values, "shape", ())) == 2:  # a data frame of one column
        if hasattr(values, "iloc"):  # of pandas
            values = values.iloc[:, 0]
        elif hasattr(values, "to_series"):  # of polars
            values = values.to_series()
        elif hasattr(values, "column_names"):  # of Arrow
            values = values.column(0)
    dtype: Any = getattr(values, "dtype", None)
    if hasattr(dtype, "pyarrow_dtype"):  # a column of Arrow in a frame of pandas
        values = getattr(values, "array", values).__arrow_array__()
    elif getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return [list(dtype.categories)]
    if not getattr(getattr(values, "type", None), "ordered", False):
        return []
    return [part.dictionary.to_pylist() for part in getattr(values, "chunks", [values])]


def places_among(labels: NDArray[Any], known: NDArray[Any]) -> tuple[Integers, list[Any]]:
    """Place of each label among those that are known; the labels that are not."""
    place = {label: code for code, label in enumerate(known.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    return np.array([place.get(label, -1) for label in labels.tolist()]), unknown


def spelled_number(value: Any) -> Any:
    """The number that a value is or spells, exactly; of other text None, of too long a one NaN."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if text in _TRUTH:
        return _TRUTH[text]
    if not re.fullmatch(NUMBER, text, re.ASCII):
        return None
    if len(text) > 40:
        return nan  # that of Decimal cannot be compared
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent beyond all that there are
        return nan
    return number if number.adjusted() <= 40 else nan


def whole_number(value: Any) -> int | None:
    """The whole number that a value is or spells, such as 1 for 1.0, "1" and True; else None."""
    number = spelled_number(value)
    try:
        return int(number) if number is not None and number == int(number) else None
    except (ValueError, OverflowError, TypeError):  # infinite; no number, such as a date
        return None


def listed(items: Iterable[Any], most: int = 10) -> str:
    """Items for a message, cut when there are many."""
    shown = [repr(i.item() if isinstance(i, np.generic) else i) for i in items]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f", ... ({more} more)" if more > 0 else "")


def in_rows(mask: ArrayLike) -> str:
    """For a message: how many rows a mask is true for, and the first of them."""
    true = np.asarray(mask)
    rows = np.flatnonzero(true)
    return f"{rows.size} of {true.size} rows (first: {listed(rows[:5])})"


def plain_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """An array from any array-like that is neither sparse nor has masked entries."""
    # A value can only be sparse if somebody has imported SciPy's module, which takes its time.
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(values):
        raise ValueError(f"{name} is a sparse matrix; give a dense array ({name}.toarray()).")
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} has masked entries; drop or fill them first.")
    return np.asarray(values)


def _as_labels(y_true: ArrayLike) -> NDArray[Any]:
    y = plain_array(y_true, "y_true")
    if y.dtype.kind in "US" and isinstance(y_true, (list, tuple)):
        y = np.asarray(y_true, dtype=object)  # NumPy would turn 1 among text into "1"
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"y_true has shape {y.shape}; give one class label per sample, shape (n_samples,) "
            "(for one-hot rows: y_true.argmax(axis=1))."
        )
    if y.dtype.kind not in "biufUSTO":
        raise ValueError(f"y_true must hold text, booleans or integers; got dtype {y.dtype}.")
    return y


def _encode_two_numbers(y: NDArray[Any]) -> Encoded | None:
    """The common case in one reading; None when there are not two whole numbers."""
    low, high = y[:_BLOCK].min(), y[:_BLOCK].max()
    if not low < high or (y.dtype.kind == "f" and not (low.is_integer() and high.is_integer())):
        return None
    is_high = np.empty(y.size, dtype=np.bool_)
    for start in range(0, y.size, _BLOCK):
        part, high_part = y[start : start + _BLOCK], is_high[start : start + _BLOCK]
        np.equal(part, high, out=high_part)
        if np.count_nonzero(part == low) + np.count_nonzero(high_part) < part.size:
            return None
    return np.array([low, high]), is_high.view(np.uint8)


def _check_integral(y: NDArray[Any]) -> None:
    """Floats must be whole numbers, as a table of integers with gaps is read."""
    if np.isnan(y.min()):
        raise _missing(np.isnan(y))
    for start in range(0, y.size, _BLOCK):
        part = y[start : start + _BLOCK]
        odd = part[(part != np.rint(part)) | np.isinf(part)]
        if odd.size:
            raise ValueError(
                f"y_true holds numbers that are not class labels, such as {odd[0].item()!r}; give "
                "text, booleans or integers (are y_true and y_score swapped?)."
            )


def _missing(where: Mask) -> ValueError:
    rows = np.flatnonzero(where)
    return ValueError(
        f"y_true has {rows.size} missing labels (first rows: {listed(rows[:5])}); drop those "
        "samples first."
    )


def _encode_range(y: NDArray[Any], low: int, high: int) -> Encoded:
    counts = np.zeros(high - low + 1, dtype=np.int64)
    for start in range(0, y.size, _BLOCK):
        counts += np.bincount(offsets_from(y[start : start + _BLOCK], low), minlength=counts.size)
    present = np.flatnonzero(counts)
    table = np.zeros(counts.size, dtype=np.min_scalar_type(present.size))
    table[present] = np.arange(present.size)
    codes = np.empty(y.size, dtype=table.dtype)
    for start in range(0, y.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        np.take(table, offsets_from(y[part], low), out=codes[part], mode="clip")
    return (present + low).astype(y.dtype), codes


def offsets_from(y: NDArray[Any], low: int) -> Integers:
    """How far whole numbers are above the least of them, which no one is far above."""
    if y.dtype == np.uint64:  # offsets are small; the values may not fit int64
        return (y - np.uint64(low)).astype(np.int64)
    if y.dtype.kind in "iu":
        found: Integers = np.subtract(y, low, dtype=np.int64)
        return found
    return y.astype(np.int64) - low


def _encode_sorted(y: NDArray[Any]) -> Encoded:
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.min_scalar_type(classes.size))


def _encode_text(y: NDArray[Any]) -> Encoded:
    if y.dtype.kind == "T":  # variable-width strings of NumPy 2 may hold a missing value
        return _encode_objects(y.astype(object))
    candidates = np.unique(y[:_FIRST_LOOK])
    if candidates.size <= 16:
        codes = np.zeros(y.size, dtype=np.uint8)
        found = 0
        for code, candidate in enumerate(candidates):
            equal = y == candidate
            found += int(np.count_nonzero(equal))
            codes[equal] = code
        if found == y.size:
            return candidates, codes
    return _encode_sorted(y)


def _encode_objects(y: NDArray[Any]) -> Encoded:
    items = y.tolist()
    try:
        distinct = set(items)
    except TypeError:
        raise ValueError(
            "y_true holds objects that are not labels; give text, booleans or integers."
        ) from None
    if any(is_missing(item) for item in distinct):
        raise _missing(np.array([is_missing(item) for item in items]))
    try:
        classes = sorted(distinct)
    except TypeError:
        kinds = listed(sorted({type(item).__name__ for item in distinct}))
        raise ValueError(
            f"y_true mixes labels that cannot be ordered ({kinds}); use one kind of label."
        ) from None
    if all(isinstance(label, (bool, int, float)) for label in classes):
        numbers = np.array(items)
        if numbers.dtype.kind != "O":  # unless an integer is too long for any dtype
            return encode_labels(numbers)
    position = {label: code for code, label in enumerate(classes)}
    codes = np.fromiter(
        map(position.__getitem__, items), dtype=np.min_scalar_type(len(classes)), count=len(items)
    )
    return np.array(classes), codes


def is_missing(item: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas has for them."""
    return item is None or type(item).__name__ in ("NAType", "NaTType") or item != item
