"""Batches of scored cases, regrouped into blocks of one size and sorted by class.

The blocks do not depend on how the cases came in batches, so neither does any result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from ..moments import Floats, order_one_factor

__all__ = ["Batch", "Batches", "Block", "CaseReader", "ClassRows", "joined"]

#: Cases per block. Few enough for the cache, many enough for what each block costs per bin.
BLOCK_ROWS = 1 << 18
#: Up to so many classes the cases are found class by class; beyond, sorting is faster.
_FEW_CLASSES = 8


class Batch(NamedTuple):
    """Some cases that models have scored.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Place of each case's class in the labels, a whole number.
    scores : mapping of str to ndarray
        For each model the probabilities of the positive class (n,), or of each class (n, C).
        Finite, from 0 to 1.
    weights : ndarray of shape (n,), optional
        Zero or more. All batches have them, or none.
    groups : ndarray of shape (n,), optional
        Place of each case's group, a whole number.
    """

    codes: NDArray[Any]
    scores: Mapping[str, NDArray[Any]]
    weights: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None

    def part(self, rows: slice) -> Batch:
        """Some of the cases, without copying them."""
        return Batch(
            self.codes[rows],
            {name: scores[rows] for name, scores in self.scores.items()},
            None if self.weights is None else self.weights[rows],
            None if self.groups is None else self.groups[rows],
        )


def joined(parts: Sequence[Batch]) -> Batch:
    """Batches that follow each other as one."""
    if len(parts) == 1:
        return parts[0]

    def join(arrays: list[Any]) -> Any:
        return None if arrays[0] is None else np.concatenate(arrays)

    return Batch(
        join([part.codes for part in parts]),
        {name: join([part.scores[name] for part in parts]) for name in parts[0].scores},
        join([part.weights for part in parts]),
        join([part.groups for part in parts]),
    )


#: Gives the same batches whenever it is called.
Batches = Callable[[], Iterable[Batch]]


class ClassRows(NamedTuple):
    """Cases of one class: scores by model, one row for each column, and weights (None: all one)."""

    code: int
    scores: Mapping[str, Floats]
    weights: Floats | None

    @property
    def size(self) -> int:
        return int(next(iter(self.scores.values())).shape[1])


class Block(NamedTuple):
    """Cases by class, all of them and those of each group; classes without cases are left out."""

    n_read: int
    everyone: list[ClassRows]
    groups: list[list[ClassRows]]


@dataclass(frozen=True)
class CaseReader:
    """Reads batches: checks them and puts them in order.

    Attributes
    ----------
    batches : callable
    models : sequence of str
    n_classes, n_groups : int
    """

    batches: Batches
    models: Sequence[str]
    n_classes: int
    n_groups: int = 0

    def blocks(self) -> Iterator[Block]:
        """All cases, as many as a block holds at a time."""
        factor = 0.0
        for batch in self._regrouped():
            if batch.weights is not None and factor == 0.0 and (largest := batch.weights.max()) > 0:
                factor = order_one_factor(float(largest))  # only the ratios of weights matter
            yield self._sorted(batch, factor)

    def _regrouped(self) -> Iterator[Batch]:
        """The same cases in batches of `BLOCK_ROWS`; the last one may be shorter."""
        waiting: list[Batch] = []
        n_waiting = n_seen = 0
        for batch in self.batches():
            self._check(batch, n_seen, waiting[-1] if waiting else None)
            n = len(batch.codes)
            n_seen += n
            start = 0
            while n - start >= BLOCK_ROWS - n_waiting:
                stop = start + BLOCK_ROWS - n_waiting
                yield joined([*waiting, batch.part(slice(start, stop))])
                waiting, n_waiting, start = [], 0, stop
            if start < n:
                waiting.append(batch.part(slice(start, n)))
                n_waiting += n - start
                if len(waiting) >= 64:  # many tiny batches: a list of them is larger than they are
                    waiting = [joined(waiting)]
        if waiting:
            yield joined(waiting)

    def _check(self, batch: Batch, first: int, before: Batch | None) -> None:
        n = len(batch.codes)
        missing = [name for name in self.models if name not in batch.scores]
        if missing:
            raise ValueError(
                f"The batch at case {first} has no scores of {listed(missing)}; it has those of "
                f"{listed(batch.scores)}."
            )
        width = () if self.n_classes == 2 else (self.n_classes,)
        for name in self.models:
            if np.shape(batch.scores[name]) != (n, *width):
                raise ValueError(
                    f"The scores of {name!r} at case {first} have shape "
                    f"{np.shape(batch.scores[name])}; {n} cases of {self.n_classes} classes need "
                    f"{(n, *width)}."
                )
        _check_places(batch.codes, self.n_classes, "codes", first)
        if self.n_groups:
            if batch.groups is None or np.shape(batch.groups) != (n,):
                raise ValueError(
                    f"The batch at case {first} must have one group for each of its {n} cases: "
                    f"n_groups={self.n_groups}."
                )
            _check_places(batch.groups, self.n_groups, "groups", first)
        if before is not None and (before.weights is None) != (batch.weights is None):
            raise ValueError(f"Some batches have weights, but not all (see case {first}).")
        if batch.weights is not None:
            _check_weights(batch.weights, n, first)

    def _sorted(self, batch: Batch, factor: float) -> Block:
        codes, groups, weights = batch.codes, batch.groups, batch.weights
        n_read = len(codes)
        keep: NDArray[Any] | None = None
        if weights is not None and not np.all(weights):
            keep = np.flatnonzero(weights)
            codes = codes[keep]
            groups = None if groups is None else groups[keep]
        order, ends = self._order(codes, groups)
        if keep is not None:
            order = keep[order]
        ordered_weights = None
        if weights is not None:
            ordered_weights = weights.take(order).astype(np.float64, copy=False)
            if factor != 1.0:
                ordered_weights = ordered_weights * factor
        scores = {name: _columns(batch.scores[name], order) for name in self.models}
        self._check_scores(scores)

        def rows(code: int, start: int, stop: int) -> ClassRows:
            part = slice(start, stop)
            own = None if ordered_weights is None else ordered_weights[part]
            return ClassRows(code, {name: s[:, part] for name, s in scores.items()}, own)

        per_class = max(self.n_groups, 1)
        starts = [0, *ends]
        everyone = [
            rows(c, starts[c * per_class], starts[(c + 1) * per_class])
            for c in range(self.n_classes)
            if starts[c * per_class] < starts[(c + 1) * per_class]
        ]
        by_group: list[list[ClassRows]] = [[] for _ in range(self.n_groups)]
        for place in range(self.n_classes * self.n_groups):
            if starts[place] < starts[place + 1]:
                code, group = divmod(place, self.n_groups)
                by_group[group].append(rows(code, starts[place], starts[place + 1]))
        return Block(n_read, everyone, by_group)

    def _order(
        self, codes: NDArray[Any], groups: NDArray[Any] | None
    ) -> tuple[NDArray[np.intp], list[int]]:
        """Order of the cases by class, then group; where each of these ends."""
        if not self.n_groups and self.n_classes <= _FEW_CLASSES:
            parts = [np.flatnonzero(codes == c) for c in range(self.n_classes)]
            return np.concatenate(parts), np.cumsum([part.size for part in parts]).tolist()
        kinds = self.n_classes * max(self.n_groups, 1)
        keys = codes.astype(np.min_scalar_type(kinds))
        if groups is not None and self.n_groups:
            keys = keys * keys.dtype.type(self.n_groups) + groups.astype(keys.dtype)
        counts = np.bincount(keys, minlength=kinds)
        return np.argsort(keys, kind="stable"), np.cumsum(counts).tolist()

    def _check_scores(self, scores: Mapping[str, Floats]) -> None:
        for name, columns in scores.items():
            if columns.size and not (columns.min() >= 0.0 and columns.max() <= 1.0):
                raise ValueError(
                    f"The scores of {name!r} must be probabilities from 0 to 1; some are not, or "
                    "are NaN."
                )


def _columns(scores: NDArray[Any], order: NDArray[np.intp]) -> Floats:
    if scores.ndim == 1:
        return scores.take(order).astype(np.float64, copy=False)[np.newaxis]
    return np.ascontiguousarray(scores.take(order, axis=0).T, dtype=np.float64)


def _check_places(places: NDArray[Any], count: int, name: str, first: int) -> None:
    if places.ndim != 1 or places.dtype.kind not in "biu":
        raise ValueError(
            f"{name} must be whole numbers in one dimension; got {places.dtype} of shape "
            f"{places.shape}."
        )
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < count:
        raise ValueError(
            f"{name} must go from 0 to {count - 1}; in the batch at case {first} they go from "
            f"{places.min()} to {places.max()}."
        )


def _check_weights(weights: NDArray[Any], n: int, first: int) -> None:
    if weights.shape != (n,):
        raise ValueError(
            f"The weights at case {first} have shape {weights.shape}; give {n}, one for each case."
        )
    if n and not (weights.min() >= 0.0 and np.isfinite(weights.max())):
        raise ValueError(
            f"Weights must be finite and zero or more; the batch at case {first} has others."
        )
