"""Columns of a table as numbers, or as few values that repeat."""

from __future__ import annotations

import io
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import NUMBER, encode_labels
from .._typing import Mask
from .arrow import as_numpy, pyarrow
from .table import UnreadableValueError

#: Whole numbers of a column that differ by less than this are looked up in a table.
_NARROW = 1 << 12

#: From here on doubles do not tell whole numbers apart.
_LONG = 2.0**53

#: Text that stands for a missing value.
MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "NaN", "nan"),
    *("-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)

#: The same as a reader of CSV meets it, perhaps after a space.
NULL_SPELLINGS = [space + word for word in MISSING_WORDS for space in ("", " ")]

_NUMBER = rf"^{NUMBER}$|^[+-]?(?i:inf|infinity)$"


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text, be it in a dictionary or not."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def numbers(column: Any) -> NDArray[Any]:
    """A column as floats, NaN where a value is missing.

    Single precision stays single, half precision becomes single, all else becomes double. Text
    must hold numbers, or there is an `UnreadableValueError`. Other types are a `TypeError`.
    """
    pa = pyarrow()
    column = _plain(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if is_text(kind):
        return as_numpy(parsed_numbers(column))
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.string())  # of which the nearest double is read, as from a file
    elif not (_is_number(kind) or pa.types.is_null(kind)):
        raise TypeError(f"values of type {kind}, not numbers")
    single = pa.types.is_float16(kind) or pa.types.is_float32(kind)
    return as_numpy(_cast(column, pa.float32() if single else pa.float64()))


def parsed_numbers(text: Any) -> Any:
    """A column of text as doubles, null where a value is missing.

    Text that is not a number is an `UnreadableValueError`.
    """
    return _cast(_trimmed(text), pyarrow().float64())


def as_inferred(text: Any) -> Any:
    """A column of text as the type that all its values fit, as the reader of CSV finds it."""
    pa = pyarrow()
    written = io.BytesIO()
    pa.csv.write_csv(pa.table({"0": text}), written)
    options = pa.csv.ConvertOptions(null_values=NULL_SPELLINGS, strings_can_be_null=True)
    return pa.csv.read_csv(
        io.BytesIO(written.getvalue()),
        read_options=pa.csv.ReadOptions(block_size=max(written.tell(), 1)),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=options,
    ).column(0)


def unreadable(column: Any) -> Mask:
    """Which values of a column of text are there but are not numbers."""
    pa = pyarrow()
    readable = pa.compute.match_substring_regex(_trimmed(_plain(column)), _NUMBER)
    return ~as_numpy(readable.fill_null(True))


def encoded(column: Any) -> tuple[NDArray[Any], list[Any]] | None:
    """Codes of a column, −1 where a value is missing, and what they stand for.

    None if its type is not text, booleans or numbers. Every value occurs.
    """
    pa = pyarrow()
    column = _without_scale(_plain(column))
    if column is None:
        return None
    kind = column.type
    if not column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        classes, codes = encode_labels(as_numpy(column))
        return codes, classes.tolist()
    if not pa.types.is_dictionary(kind):
        if pa.types.is_null(kind):
            column = column.cast(pa.string())
        if not _is_category(column.type):
            return None
        column = column.dictionary_encode()
    stored = column.dictionary
    if not _is_category(stored.type):
        return None
    indices = column.indices.cast(pa.int32(), safe=False)  # a byte may not hold one code more
    if indices.null_count:
        indices = indices.fill_null(len(stored))
    codes = as_numpy(indices)
    used = np.bincount(codes, minlength=len(stored) + 1)[: len(stored)] > 0
    values = stored.to_pylist()  # not by functions of pyarrow, which would import pandas
    there = used & ~np.fromiter(map(is_missing_value, values), np.bool_, len(values))
    table = np.full(len(stored) + 1, -1, dtype=np.int32)
    table[:-1][there] = np.arange(np.count_nonzero(there))
    return table[codes], list(compress(values, there))


def narrow_integers(column: Any) -> tuple[NDArray[Any], int, int] | None:
    """A column of integers, the least and the largest; None if they are far apart, or not integers.

    None also if a value is missing.
    """
    if column.null_count or not len(column) or not pyarrow().types.is_integer(column.type):
        return None
    values = as_numpy(column)
    low, high = int(values.min()), int(values.max())
    return (values, low, high) if high - low < _NARROW else None


def category_order(column: Any) -> list[Any] | None:
    """Categories in their order, of a column of ordered ones; else None."""
    return column.dictionary.to_pylist() if getattr(column.type, "ordered", False) else None


def _is_category(kind: Any) -> bool:
    return is_text(kind) or pyarrow().types.is_boolean(kind) or _is_number(kind)


def _is_number(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _cast(column: Any, kind: Any) -> Any:
    try:
        return column.cast(kind, safe=False)
    except pyarrow().ArrowInvalid as error:
        raise UnreadableValueError(str(error)) from error


def is_missing_value(value: Any) -> bool:
    """Whether a value of a column of labels or groups stands for none."""
    if isinstance(value, str):
        return value.strip(" \t") in MISSING_WORDS
    return value is None or value != value  # NaN, of floats and of decimals


def _plain(column: Any) -> Any:
    """Text in views, for which pyarrow has few functions, as plain text."""
    pa = pyarrow()
    kind = column.type
    if pa.types.is_string_view(kind):
        return pa.array(column.to_pylist(), pa.string())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.DictionaryArray.from_arrays(column.indices, _plain(column.dictionary))
    return column


def _without_scale(column: Any) -> Any:
    """Decimals as whole numbers, if they all are, else as doubles: the values that engines mean.

    None if they have more digits than these: neighbours would be the same.
    """
    pa = pyarrow()
    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_decimal(kind.value_type):
        column = column.dictionary_decode()
    if not pa.types.is_decimal(column.type):
        return column
    for whole in (pa.int64(), pa.uint64()):  # Spark has the latter as decimals
        try:
            return column.cast(whole)
        except pa.ArrowInvalid:  # which would lose digits
            continue
    found = column.cast(pa.string()).cast(pa.float64())
    size = pa.compute.max(pa.compute.abs(found)).as_py()
    return None if size is not None and size >= _LONG else found


def _trimmed(text: Any) -> Any:
    """Text without spaces around it, null where it stands for a missing value."""
    pa = pyarrow()
    if pa.types.is_dictionary(text.type):
        text = text.dictionary_decode()
    trimmed = pa.compute.utf8_trim(text, characters=" \t")  # as the reader of CSV does
    missing = pa.compute.is_in(trimmed, value_set=pa.array(MISSING_WORDS, trimmed.type))
    return pa.compute.if_else(missing, pa.scalar(None, trimmed.type), trimmed)
