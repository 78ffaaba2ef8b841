"""Sketches by a query: the engine sums, and its workers need nothing of this library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from .._labels import listed
from ..scores.sketch import FragilitySketch
from ..sources.spark import SparkSource, WrongRows
from ..tables.arrow import pyarrow
from ..tables.values import is_missing_value
from .sql import MOST_WHOLE, coded_query, split_cells

#: Rows of a query that may come to the driver: one for each group, class and bin.
_MOST_ROWS = 1 << 21
#: What Spark says of a sum that is too long, where it does not just go on with a wrong one.
_OVERFLOW = "ARITHMETIC_OVERFLOW"


def labels_by_query(source: SparkSource, label: str, most: int) -> set[Any] | None:
    """Labels, if at most so many; None where rows must be read here to find them."""
    if not source.can_query([label]):
        return None
    found = {value for (value,) in source.distinct([label], most + 1)}
    if any(map(is_missing_value, found)):
        raise _blamed(source, None, [label], None)
    return found


def sketches_by_query(
    source: SparkSource,
    *,
    label: str,
    score: str,
    by: Sequence[str],
    labels: NDArray[Any],
    pos_label: Any,
    n_bins: int,
) -> dict[tuple[Any, ...], FragilitySketch] | None:
    """Sketches by group, two classes, no weights; None where rows must be read here."""
    if not source.can_query([label, *by], [score]):
        return None
    most = _MOST_ROWS // (2 * (n_bins + 1))
    if most < 1 or (by and len(source.distinct(by, most + 1)) > most):
        return None
    columns = {f"group_{k}": source.column(name) for k, name in enumerate(by, start=1)}
    columns |= {"code": source.place(label, labels.tolist()), "score": source.column(score)}
    table = _summed(source, len(by), n_bins, columns)
    groups = table.column_names[: len(by)]
    keys = list(zip(*(table.column(name).to_pylist() for name in groups), strict=True))
    keys = keys if by else [()] * len(table)
    codes, bins = split_cells(table.column("bin").to_numpy())
    if (codes > 1).any() or (bins < 0).any() or any(map(_lacks_one, keys)):
        raise _blamed(source, score, [label, *by], labels)
    rows = {name: table.column(name).to_numpy() for name in table.column_names[len(by) :]}
    rows |= {"label": labels[codes], "bin": bins}
    options = {"labels": labels, "pos_label": pos_label, "n_bins": n_bins}
    return {
        key: FragilitySketch.from_bins(
            pyarrow().table(own), n_rows=int(own["n_rows"].sum()), **options
        )
        for key, own in _parts(keys, rows)
    }


def _summed(source: SparkSource, groups: int, n_bins: int, columns: dict[str, Any]) -> Any:
    """Rows of the query: first the faster one, which will do unless a bin is very full."""
    try:
        table = source.query(coded_query(groups, n_bins, whole=True), columns)
    except Exception as error:
        if _OVERFLOW not in str(error):
            raise
    else:
        if not len(table) or max(table.column("n").to_pylist()) <= MOST_WHOLE:
            return table
    return source.query(coded_query(groups, n_bins), columns)


def _parts(
    keys: list[tuple[Any, ...]], rows: dict[str, NDArray[Any]]
) -> Iterator[tuple[tuple[Any, ...], dict[str, NDArray[Any]]]]:
    """Rows of each group."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    for key, own in places.items():
        yield key, {name: column[own] for name, column in rows.items()}


def _lacks_one(key: tuple[Any, ...]) -> bool:
    return any(map(is_missing_value, key))


def _blamed(
    source: SparkSource, score: str | None, categories: Sequence[str], labels: NDArray[Any] | None
) -> Exception:
    """What is wrong, in the first partition where anything is."""
    wrong = []
    if score is not None:
        told = f"column {score!r} has missing values (null or NaN)"
        wrong.append(WrongRows(score, source.missing(score), told))
        told = f"A sketch takes scores from 0 to 1; column {score!r} has others"
        wrong.append(WrongRows(score, ~source.column(score).between(0.0, 1.0), told))
    for name in dict.fromkeys(categories):
        told = f"column {name!r} has missing values"
        wrong.append(WrongRows(name, source.missing(name), told))
    if labels is not None:
        label = categories[0]
        told = f"column {label!r} has labels that are not among {listed(labels)}"
        wrong.append(WrongRows(label, source.place(label, labels.tolist()) == labels.size, told))
    return source.first_wrong(wrong) or ValueError(
        "A query found rows that cannot be sketched, and another one did not: do the rows of the "
        "DataFrame change?"
    )
