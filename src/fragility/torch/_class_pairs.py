"""Distances of all pairs of class vectors, the bound that fits them, and their excess over it.

The pairs are never held as a C × C × d tensor. Few classes go through `torch.pdist`; of many,
blocks of rows are compared with the others, and only the distances are held, to be sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._first_order import first_order

#: Most numbers in one block.
_BLOCK = 1 << 22
#: Up to this many products C·C·d, `pdist` is fastest; on a GPU its backward pass holds them all.
_FEW = 1 << 22


def bound(vectors: Tensor, sharpness: float, norm: float) -> Tensor:
    """The bound k of these vectors; zero if all are equal."""
    with torch.no_grad():
        if _are_few(vectors):
            return _bound_of(torch.pdist(vectors, norm), sharpness)
        return _bound_of(_flat(_block_distances(vectors, norm)), sharpness)


def bound_and_excess(vectors: Tensor, sharpness: float, norm: float) -> tuple[Tensor, Tensor]:
    """The bound k, a constant, and the sum of the squares of ``distance - k`` where positive.

    The gradient of the sum is that for fixed k.
    """
    if _are_few(vectors):
        distances = torch.pdist(vectors, norm)
        k = _bound_of(distances.detach(), sharpness)
        return k, functional.relu(distances - k).square().sum()
    with torch.no_grad():
        blocks = _block_distances(vectors, norm)
        k = _bound_of(_flat(blocks), sharpness)
        total, gradient = torch.zeros_like(k), torch.zeros_like(vectors)
        for distances, (start, rows, others) in zip(blocks, _blocks(vectors, norm), strict=True):
            excess = functional.relu(distances - k).triu(1)
            total = total + excess.square().sum()
            of_rows, of_others = _slopes(excess, distances, rows, others, norm)
            gradient[start : start + len(rows)] += 2.0 * of_rows
            gradient[start:] -= 2.0 * of_others
    found: Tensor = _Known.apply(vectors, total, gradient)  # type: ignore[no-untyped-call]
    return k, found


def _are_few(vectors: Tensor) -> bool:
    n, d = vectors.shape
    return n * n * d <= _FEW


def _bound_of(distances: Tensor, sharpness: float) -> Tensor:
    """The k of these distances whose relative violations add up to ``1 / sharpness``.

    It is computed as the largest distance less something: where all are alike that difference is
    tiny, and decides how much each pair violates k.
    """
    ordered = distances.sort(descending=True).values
    widest, share = ordered[0], 1.0 / sharpness
    counts = torch.arange(1, len(ordered) + 1, dtype=ordered.dtype, device=ordered.device)
    below = (widest * share + (widest - ordered).cumsum(0)) / (counts + share)
    return widest - below.min()


def _blocks(vectors: Tensor, norm: float) -> Iterator[tuple[int, Tensor, Tensor]]:
    """The number of a row, some rows from it on, and all from it on, until every pair was there."""
    n, d = vectors.shape
    # Centred vectors have the same distances, and lose less to cancellation.
    vectors = vectors - vectors.mean(0)
    block = max(_BLOCK // (n if norm == 2 else n * d), 1)
    for start in range(0, n, block):
        yield start, vectors[start : start + block], vectors[start:]


def _block_distances(vectors: Tensor, norm: float) -> list[Tensor]:
    return [_distances(rows, others, norm) for _, rows, others in _blocks(vectors, norm)]


def _distances(rows: Tensor, others: Tensor, norm: float) -> Tensor:
    if norm == 2:
        products = rows @ others.T
        squares = rows.square().sum(1)[:, None] + others.square().sum(1) - 2.0 * products
        return squares.clamp_min_(0.0).sqrt_()  # rounding may leave equal rows below zero
    gaps = (rows[:, None] - others).abs()
    return gaps.sum(2) if norm == 1 else gaps.amax(2)


def _flat(blocks: list[Tensor]) -> Tensor:
    """Each pair of the blocks once, in one dimension."""
    found = []
    for block in blocks:
        n_rows, n_others = block.shape
        pairs = torch.triu_indices(n_rows, n_others, offset=1, device=block.device)
        found.append(block[pairs[0], pairs[1]])
    return torch.cat(found)


def _slopes(
    weights: Tensor, distances: Tensor, rows: Tensor, others: Tensor, norm: float
) -> tuple[Tensor, Tensor]:
    """Slopes of the weighted sum of distances along the rows, and minus those along the others."""
    if norm == 2:
        # A distance of zero has no weight.
        pulls = torch.where(weights > 0.0, weights / distances, 0.0)
        of_rows = pulls.sum(1)[:, None] * rows - pulls @ others
        return of_rows, pulls.T @ rows - pulls.sum(0)[:, None] * others
    gaps = rows[:, None] - others
    directions = gaps.sign()
    if norm != 1:
        largest = gaps.abs() == distances[:, :, None]
        directions = directions * largest / largest.sum(2, keepdim=True)  # ties share it
    pulls = weights[:, :, None] * directions
    return pulls.sum(1), pulls.sum(0)


class _Known(torch.autograd.Function):
    """A number whose gradient is known already."""

    generate_vmap_rule = True

    @staticmethod
    def forward(vectors: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        vectors, _, gradient = inputs
        ctx.save_for_backward(vectors, gradient)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        vectors, gradient = ctx.saved_tensors
        with torch.no_grad():
            found = grad * gradient
        return first_order(found, "FragilityRegularizer", vectors, grad), None, None
