"""A batch of rows for a sample: arrays are checked, and every row draws its number.

Unlike the cases of `checks`, a batch may lack classes, a model may abstain (NaN), and weights stay
as they are, for they are compared with those of other batches.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import encode_groups, encode_labels, listed, places_among
from .._parameters import require
from .._typing import Floats, Integers
from .._validation import check_case_costs, check_values, check_weights
from .cases import Cases
from .checks import CaseColumns, cases_of_answers, cases_of_predictions

T = TypeVar("T")


def checked_batch(
    y_true: Any,
    predictions: Mapping[str, ArrayLike],
    labels: Sequence[Any] | None,
    *,
    sample_weight: ArrayLike | None,
    groups: Any,
    error_cost: ArrayLike | None,
    reviewer_error: ArrayLike | None,
    human: ArrayLike | None,
) -> Cases:
    """Return the table of a batch; its groups have the names and codes of the batch alone."""
    table = _scored(y_true, predictions, labels, CaseColumns(groups=groups, cross_groups=False))
    n = table.n
    batch = replace(
        table,
        weight=_optional(check_weights, sample_weight, n, True),
        error_cost=_optional(check_case_costs, error_cost, n, "error_cost"),
        reviewer_error=_optional(check_case_costs, reviewer_error, n, "reviewer_error"),
        human=_optional(_human_classes, human, table),
    )
    require(
        batch.reviewer_error is None or batch.reviewer_error.max() <= 1.0,
        "reviewer_error holds a number above 1; give probabilities, from 0 to 1.",
    )
    return batch


def row_numbers(batch: Cases, seed: int, position: int) -> Floats:
    """Return a random number for each row, drawn from the seed and all that the batch holds.

    Equal batches draw equal numbers unless their positions differ.
    """
    checksum = zlib.crc32(repr(batch.group_names).encode("utf-8", "surrogatepass"))
    for _, array in arrays_of(batch):
        checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
    return np.random.default_rng([seed, checksum, position]).random(batch.n)


def cluster_numbers(cluster: ArrayLike, n: int, seed: int) -> Floats:
    """Return a number for each row that depends on the seed and the name of its cluster alone."""
    names, codes = encode_groups(cluster, n, "cluster")
    key = str(seed).encode()
    digests = (
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
        for name in names
    )
    by_cluster = [(int.from_bytes(digest) >> 11) * 2.0**-53 for digest in digests]
    return np.array(by_cluster, dtype=np.float64)[codes.astype(np.intp)]


def arrays_of(table: Cases) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the columns of a table with their names; those by model or column are numbered."""
    for column in fields(table):
        values = getattr(table, column.name)
        if isinstance(values, np.ndarray):
            yield column.name, values
        elif isinstance(values, Mapping):
            for position, array in enumerate(values.values()):
                if isinstance(array, np.ndarray):
                    yield f"{column.name} {position}", array


def joined(tables: Sequence[Cases]) -> Cases:
    """Return the rows of all tables in one."""
    if len(tables) == 1:
        return tables[0]

    def join(columns: list[Any]) -> Any:
        if isinstance(columns[0], Mapping):
            return {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
        return np.concatenate(columns) if isinstance(columns[0], np.ndarray) else columns[0]

    names = [column.name for column in fields(Cases)]
    return replace(tables[0], **{n: join([getattr(table, n) for table in tables]) for n in names})


def _scored(
    y_true: Any,
    predictions: Mapping[str, ArrayLike],
    labels: Sequence[Any] | None,
    columns: CaseColumns,
) -> Cases:
    """Return truth, scores and groups; scores are NaN where a model abstained."""
    missing = {name: np.isnan(check_values(p, name)) for name, p in predictions.items()}
    if isinstance(y_true, Mapping):
        require(labels is None, "Answers are right or wrong; leave labels out.")
        return cases_of_answers(y_true, predictions, missing, columns)
    missing = {name: mask for name, mask in missing.items() if mask.any()}
    # Probabilities are checked without missing ones: equal ones stand for them.
    complete = dict(predictions)
    for name, mask in missing.items():
        share = 1.0 / (mask.shape[1] if mask.ndim == 2 else 2)
        complete[name] = np.where(mask, share, predictions[name])
    table = cases_of_predictions(y_true, complete, columns, labels=labels or (0, 1))
    scores = dict(table.scores)
    for name, mask in missing.items():
        scores[name] = scores[name].copy()
        scores[name][mask.reshape(table.n, -1).any(axis=1)] = np.nan
    return replace(table, scores=scores)


def _optional(check: Callable[..., T], values: Any, *arguments: Any) -> T | None:
    """Return a checked column, if the batch has it."""
    return None if values is None else check(values, *arguments)


def _human_classes(human: ArrayLike, table: Cases) -> Integers:
    """Return the class that a human decided on each row, as its place in the labels."""
    require(not table.answers, "human is a class, which answers do not have; leave it out.")
    distinct, codes = encode_labels(human)
    places, unknown = places_among(distinct, np.asarray(table.labels))
    require(
        codes.size == table.n and not unknown,
        f"human must hold one of the classes {listed(table.labels)} for each of {table.n} rows.",
    )
    return places.astype(np.int64)[codes]
