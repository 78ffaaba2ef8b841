"""Augmentations of a batch that a `Recipe` can ask for: mixup, normal noise, worst neighbours.

Random numbers come from PyTorch's generator (``torch.manual_seed``). Nothing here waits for the
device, so that a training step can be recorded as a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["gaussian_noise", "mixup", "pgd"]


def mixup(
    inputs: Tensor, labels: Tensor, n_classes: int, concentration: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Mix each sample, and its one-hot label, with another sample of the batch.

    Parameters
    ----------
    inputs : Tensor of shape (n, ...)
    labels : Tensor of shape (n,)
        Class numbers from 0 to n_classes - 1.
    n_classes : int
    concentration : float, default=1.0
        The share of the first sample is drawn from Beta(concentration, concentration), once for
        the batch, as in the authors' code (Zhang et al., 2017).

    Returns
    -------
    inputs : Tensor of the same shape
    targets : Tensor of shape (n, n_classes)
        Probabilities.
    """
    classes = torch.arange(n_classes, device=labels.device)
    targets = (labels[:, None] == classes).to(inputs.dtype)
    share = _beta(concentration, inputs)
    partner = torch.randperm(len(inputs), device=inputs.device)
    return (
        share * inputs + (1.0 - share) * inputs[partner],
        share * targets + (1.0 - share) * targets[partner],
    )


def _beta(concentration: float, like: Tensor) -> Tensor:
    """Draw one number from the symmetric beta distribution, on the device of `like`."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    if concentration == 1.0:  # the uniform distribution
        share = torch.rand((), dtype=dtype, device=like.device)
    else:
        # Filled on the device: a number copied there cannot be part of a CUDA graph.
        shape = torch.full((), concentration, dtype=dtype, device=like.device)
        share = torch.distributions.Beta(shape, shape, validate_args=False).sample()
    return share.to(like.dtype)


def gaussian_noise(inputs: Tensor, scale: float) -> Tensor:
    """Add independent normal noise of standard deviation `scale` to the inputs."""
    return inputs + scale * torch.randn_like(inputs)


def pgd(
    network: nn.Module, inputs: Tensor, targets: Tensor, radius: float, steps: int = 5
) -> Tensor:
    """Move each sample towards a larger cross-entropy by projected gradient ascent.

    No entry of a sample moves by more than `radius`; a step has half that length (Madry et al.,
    2018). The gradients of the parameters are not touched. The network runs in evaluation mode
    meanwhile, so that its batch statistics are those of real data only; its modes are restored.
    """
    start = moved = inputs.detach()
    with _evaluating(network), torch.enable_grad():
        for _ in range(steps):
            moved = moved.detach().requires_grad_()
            loss = functional.cross_entropy(network(moved), targets)
            (slope,) = torch.autograd.grad(loss, moved)
            shift = moved.detach() + 0.5 * radius * slope.sign() - start
            moved = start + shift.clamp(-radius, radius)
    return moved.detach()


@contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    """Put every part of a network in evaluation mode, and restore the modes afterwards."""
    training = [part for part in network.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
