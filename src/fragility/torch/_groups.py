"""Scores on a device, sorted by class, and sums over the groups that class pairs compare.

Every class has a column of scores, whose positives are the samples of the class. A pair compares
them with the samples of another class, or of all others ("rest"). As in `fragility.moments` a group
holds the scores of negatives or the negated scores of positives: their sum is the ranking error.

The samples lie in blocks of one class each. The last block of a class is filled up with copies of
weight zero, so that all classes are processed at once, whatever their sizes. Tables over pairs are
NumPy arrays of shape (C, M), column by negative class, with M = 1 for the rest: launching work on a
device would take longer than computing so few numbers on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._typing import Floats, Integers, Mask

#: From values (b, r, L), weights (b, L) and parameters (b, r, 1): sums of shape (b, r).
Terms = Callable[..., Sequence[Tensor]]
_SHORTEST_BLOCK = 2
#: Most samples in a block, on a processor and on a device, which works on more at once.
_LONGEST_BLOCK, _DEVICE_BLOCK = 1 << 10, 1 << 13
#: Numbers processed at a time: they fit the cache of a processor, or keep a device busy.
_CHUNK, _DEVICE_CHUNK = 1 << 15, 1 << 26
#: Identity element of each reduction.
_IDENTITY: dict[np.ufunc, float] = {np.add: 0.0, np.minimum: inf, np.maximum: -inf}


class Extent(NamedTuple):
    """Tables over pairs for their negatives, or for their positives."""

    weight: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def spread(self) -> Floats:
        """Largest minus smallest value."""
        return self.high - self.low


def total(terms: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums over the samples of each block."""
    return torch.bmm(terms, weights[:, :, None])[:, :, 0]


class Groups:
    """Labelled scores of three classes or more.

    Parameters
    ----------
    columns : Tensor of shape (n, C)
        Scores, used in float64.
    rows : Tensor of int
        The samples that count, sorted by class.
    bounds : ndarray of int
        Class j has the `rows` from ``bounds[j]`` to ``bounds[j + 1]``.
    weights : Tensor of shape (n,) or None
        Positive for all of `rows`.
    rest : bool
        Whether the negatives of all classes form one group.

    Attributes
    ----------
    samples : Tensor of shape (B, L)
        Row of each in `columns`, in B blocks of L samples of one class.
    classes : Tensor of shape (B,)
        The class of each block.
    values : Tensor of shape (2 B, C, L)
        First the samples as negatives of each column, then, with their sign turned, as positives of
        their own column, once for each negative class.
    weights : Tensor of shape (2 B, L)
    """

    def __init__(
        self,
        columns: Tensor,
        rows: Tensor,
        bounds: Integers,
        weights: Tensor | None,
        rest: bool,
    ) -> None:
        self.rest, self.n_classes = rest, len(bounds) - 1
        self._source = columns, rows, bounds, weights
        self.on_processor = columns.device.type == "cpu"
        sizes = np.diff(bounds)
        self.largest_class = int(sizes.max())
        length = _block_length(sizes, _LONGEST_BLOCK if self.on_processor else _DEVICE_BLOCK)
        blocks = -(-sizes // length)
        self._present = np.flatnonzero(blocks)
        first_block = np.cumsum(blocks) - blocks
        self._first_blocks = first_block[self._present]
        self._class_of = np.repeat(np.arange(self.n_classes), blocks)
        number = np.arange(len(self._class_of)) - first_block[self._class_of]
        start = bounds[self._class_of] + length * number
        layout = np.stack([start, bounds[self._class_of + 1] - 1, self._class_of])
        start_of, last_of, self.classes = torch.from_numpy(layout).to(columns.device)
        positions = start_of[:, None] + torch.arange(length, device=columns.device)
        self.samples = rows[torch.minimum(positions, last_of[:, None])]
        of_samples = (positions <= last_of[:, None]).to(torch.float64)
        if weights is not None:
            of_samples = of_samples * weights[self.samples]
        self.weights = of_samples.repeat(2, 1)
        scores = columns[self.samples].to(torch.float64).transpose(1, 2)
        own = scores.gather(1, self.classes[:, None, None].expand(-1, 1, length))
        self.values = torch.cat([scores, -own.expand_as(scores)])

    def thinned(self, size: int) -> Groups:
        """About `size` samples of each class, evenly spread."""
        columns, rows, bounds, weights = self._source
        kept = [rows[a : b : max(1, (b - a) // size)] for a, b in pairwise(bounds.tolist())]
        fewer = np.cumsum([0, *map(len, kept)])
        return Groups(columns, torch.cat(kept), fewer, weights, self.rest)

    @cached_property
    def others(self) -> Mask:
        """Entry [k, j]: whether class j is a negative of column k and both have samples."""
        present = np.diff(self._source[2]) > 0
        return np.asarray(~np.eye(self.n_classes, dtype=bool) & present & present[:, None])

    @cached_property
    def counted(self) -> Mask:
        """The pairs that have samples on both sides."""
        return np.asarray(self.others.any(1, keepdims=True)) if self.rest else self.others

    def along(self, negatives: Sequence[Floats], positives: Sequence[Floats]) -> Tensor:
        """Entries of tables over pairs for every row of `values`, (T, 2 B, C, 1) on the device.

        Entries outside of any pair are zero.
        """
        below, above = (np.where(self.others, np.stack(t), 0.0) for t in (negatives, positives))
        below, above = below.transpose(0, 2, 1)[:, self._class_of], above[:, self._class_of]
        both = np.concatenate([below, above], 1)[..., None]
        return torch.from_numpy(both).to(self.samples.device)

    def sums(
        self, terms: Terms, negatives: Sequence[Floats], positives: Sequence[Floats]
    ) -> tuple[Floats, Floats]:
        """Sums of `terms` over the negatives and over the positives of every pair, (T, C, M) each.

        `negatives` and `positives` are the parameters of each, as tables over pairs.
        """
        size = _CHUNK if self.on_processor else _DEVICE_CHUNK
        step = max(1, size // self.values[0].numel())
        inputs = self.values, self.weights, *self.along(negatives, positives)
        chunks = [
            torch.stack(list(terms(*(tensor[start : start + step] for tensor in inputs))))
            for start in range(0, len(self.values), step)
        ]
        return self._by_pair(torch.cat(chunks, 1).cpu().numpy(), np.add)

    def _by_pair(self, blocks: Floats, add: np.ufunc) -> tuple[Floats, Floats]:
        """From (T, 2 B, C) of all blocks the (T, C, M) of negatives and of positives."""
        below, above = (self._by_class(half, add) for half in np.split(blocks, 2, axis=1))
        below = below.transpose(0, 2, 1)
        if self.rest:
            below = np.where(self.others, below, _IDENTITY[add])
            below, above = add.reduce(below, axis=-1, keepdims=True), self._any_other(above)
        return below, above

    def _by_class(self, blocks: Floats, add: np.ufunc) -> Floats:
        """From (T, B, R) the (T, C, R) sums or extremes; zero where a class has no samples."""
        result = np.zeros((len(blocks), self.n_classes, blocks.shape[2]))
        result[:, self._present] = add.reduceat(blocks, self._first_blocks, axis=1)
        return result

    def _any_other(self, tables: Floats) -> Floats:
        """The entries of one negative class of each column; with the rest they are all equal."""
        first = self.others.argmax(1)
        return np.take_along_axis(tables, first[None, :, None], axis=2)

    @cached_property
    def extents(self) -> tuple[Extent, Extent]:
        """Extents of the negatives and of the positives of each pair; undefined without samples."""
        found = [*torch.aminmax(self.values, dim=2), total(self.values, self.weights)]
        on_host = torch.stack(found).cpu().numpy()
        lows, highs, sums = (
            self._by_pair(on_host[i : i + 1], add)
            for i, add in enumerate((np.minimum, np.maximum, np.add))
        )
        weights = self._weights_of_classes
        below = np.broadcast_to(weights, self.others.shape)
        if self.rest:
            below = np.where(self.others, below, 0.0).sum(1, keepdims=True)
        above = np.broadcast_to(weights[:, None], self.counted.shape)
        sides = zip((below, above), sums, lows, highs, strict=True)
        negatives, positives = (
            Extent(weight, np.clip(total[0] / weight, low[0], high[0]), low[0], high[0])
            for weight, total, low, high in sides
        )
        return negatives, positives

    @property
    def _weights_of_classes(self) -> Floats:
        """Sum of the weights of each class."""
        if self._source[3] is None:
            return np.diff(self._source[2]).astype(float)
        of_blocks = self.weights[: len(self.samples)].sum(1).cpu().numpy()
        return self._by_class(of_blocks[None, :, None], np.add).ravel()


def _block_length(sizes: Integers, longest: int) -> int:
    typical = int(sizes.sum() // np.count_nonzero(sizes))
    length = 1 << max(typical.bit_length() - 1, 0)
    return min(max(length, _SHORTEST_BLOCK), longest)
