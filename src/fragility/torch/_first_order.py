"""Gradients that raise when they are differentiated, instead of acting as constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def first_order(gradient: Tensor, name: str, *of: Tensor) -> Tensor:
    """A gradient computed without a graph, whose derivative with respect to `of` raises.

    ``once_differentiable`` raises only where the incoming gradient has a graph. The incoming
    gradient of the last function has none, and the second derivative would silently be zero.
    """
    if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in of):
        return gradient
    found: Tensor = _FirstOrder.apply(gradient, name, *of)  # type: ignore[no-untyped-call]
    return found


class _FirstOrder(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, name: str, *of: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.name = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            f"{ctx.name} has no second derivative, and its gradient was differentiated. Leave it "
            "out of what is differentiated twice, or detach() its gradient."
        )
