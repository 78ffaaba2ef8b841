"""What is done to a batch before the network sees it: small pieces that combine.

Label smoothing is PyTorch's own: ``torch.nn.CrossEntropyLoss(label_smoothing=0.1)``, which takes
the mixed targets of `mixup`, too. Random numbers come from PyTorch's generator
(``torch.manual_seed``). Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._parameters import (
    check_choice,
    check_count,
    check_not_negative,
    check_number,
    check_positive,
)

#: From logits and targets to a loss.
Criterion = Callable[[Tensor, Tensor], Tensor]


def mixup(
    inputs: Tensor, targets: Tensor, *, n_classes: int | None = None, concentration: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Mixtures of each sample with another one of the batch, and of their targets.

    Parameters
    ----------
    inputs : Tensor of shape (n, ...)
        Floating-point numbers.
    targets : Tensor of shape (n,) or (n, C)
        Class numbers, which need `n_classes`; or probabilities, mixed as they are. A number outside
        0 … C - 1 is refused on the CPU, and NaN elsewhere, where its check would have to wait.
    n_classes : int, optional
        Number of classes C, for class numbers.
    concentration : float, default=1.0
        The share of the first sample is drawn from Beta(concentration, concentration), once for
        the batch, as in the authors' code (Zhang et al., 2017).

    Returns
    -------
    inputs : Tensor of the same shape
    targets : Tensor of shape (n, C), or that of given probabilities
        Probabilities. Where a loss wants one class, take ``targets.argmax(1)``, the larger part.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import mixup
    >>> images, labels = torch.rand(8, 3, 28, 28), torch.arange(8) % 2
    >>> mixed, targets = mixup(images, labels, n_classes=2)
    >>> mixed.shape, targets.shape
    (torch.Size([8, 3, 28, 28]), torch.Size([8, 2]))
    """
    _check_floating(inputs, "inputs")
    concentration = check_positive(concentration, "concentration")
    if len(inputs) != len(targets):
        raise ValueError(
            f"inputs has {len(inputs)} samples but targets has {len(targets)}; give one target for "
            "each sample."
        )
    if not targets.is_floating_point():
        if n_classes is None:
            raise ValueError(
                "targets holds class numbers, which mix only as probabilities: give n_classes=, or "
                "probabilities as floating-point numbers."
            )
        classes = torch.arange(check_count(n_classes, "n_classes", least=2), device=targets.device)
        known = (targets >= 0) & (targets.long() < len(classes))
        if targets.device.type == "cpu" and not torch.compiler.is_compiling() and not known.all():
            raise ValueError(
                f"targets must hold class numbers from 0 to {len(classes) - 1}; got some from "
                f"{int(targets.min())} to {int(targets.max())}."
            )
        targets = (targets[:, None] == classes).to(inputs.dtype)
        targets = torch.where(known[:, None], targets, nan)
    share = _beta(concentration, inputs)
    partner = torch.randperm(len(inputs), device=inputs.device)
    part = share.to(targets.dtype)
    return (
        share * inputs + (1.0 - share) * inputs[partner],
        part * targets + (1.0 - part) * targets[partner],
    )


def _beta(concentration: float, like: Tensor) -> Tensor:
    """One draw from the symmetric beta distribution, on the device."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    if concentration == 1.0:  # uniform
        share = torch.rand((), dtype=dtype, device=like.device)
    else:
        # Filled on the device: a number copied there cannot be part of a CUDA graph.
        shape = torch.full((), concentration, dtype=dtype, device=like.device)
        share = torch.distributions.Beta(shape, shape, validate_args=False).sample()
    return share.to(like.dtype)


def gaussian_noise(inputs: Tensor, scale: float = 0.1) -> Tensor:
    """The inputs with independent normal noise.

    Parameters
    ----------
    inputs : Tensor
        Floating-point numbers.
    scale : float, default=0.1
        Standard deviation, in the units of the inputs.

    Returns
    -------
    Tensor
        A new one; the inputs stay.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import gaussian_noise
    >>> gaussian_noise(torch.zeros(4, 2), scale=0.5).shape
    torch.Size([4, 2])
    """
    _check_floating(inputs, "inputs")
    return inputs + check_not_negative(scale, "scale") * torch.randn_like(inputs)


def pgd(
    network: Callable[[Tensor], Tensor],
    inputs: Tensor,
    targets: Tensor,
    *,
    radius: float = 0.1,
    steps: int = 5,
    step_size: float | None = None,
    norm: float = inf,
    bounds: tuple[float, float] | None = None,
    random_start: bool = False,
    criterion: Criterion = functional.cross_entropy,
) -> Tensor:
    """Neighbours of a larger loss, by projected gradient ascent (Madry et al., 2018).

    The gradients of the parameters are not touched. A module runs in evaluation mode meanwhile, so
    that its batch statistics are those of real data only; its modes are restored.

    Parameters
    ----------
    network : Module or callable
        From inputs to logits.
    inputs : Tensor of shape (n, ...)
        Floating-point numbers.
    targets : Tensor
        What `criterion` compares the logits with.
    radius : float, default=0.1
        How far a sample may move, in the units of the inputs.
    steps : int, default=5
    step_size : float, optional
        Length of a step; by default half the radius.
    norm : {inf, 2}, default=inf
        Of the movement: the largest of the numbers, or the Euclidean norm of the sample.
    bounds : (float, float), optional
        Least and largest value of an input, kept in every step.
    random_start : bool, default=False
        Whether to start at a random point of the ball instead of the sample itself.
    criterion : callable, default=cross-entropy
        Its mean or its sum is the same here.

    Returns
    -------
    Tensor of the shape of the inputs
        Without gradient history.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import pgd
    >>> layer = torch.nn.Linear(2, 2)
    >>> x, y = torch.rand(4, 2), torch.tensor([0, 1, 0, 1])
    >>> moved = pgd(layer, x, y, radius=0.1)
    >>> bool((moved - x).abs().max() < 0.1001), layer.weight.grad is None
    (True, True)
    """
    _check_floating(inputs, "inputs")
    radius, steps = check_positive(radius, "radius"), check_count(steps, "steps")
    length = radius / 2.0 if step_size is None else check_positive(step_size, "step_size")
    check_choice(norm, (inf, 2), "norm")
    if bounds is not None:
        bounds = _check_bounds(*bounds)
    start = inputs.detach()
    moved = _inside(start + _random_shift(start, radius, norm), bounds) if random_start else start
    with _evaluating(network), torch.enable_grad():
        for _ in range(steps):
            moved = moved.detach().requires_grad_()
            (slope,) = torch.autograd.grad(criterion(network(moved), targets), moved)
            shift = moved.detach() + length * _direction(slope, norm) - start
            moved = _inside(start + _projected(shift, radius, norm), bounds)
    return moved.detach()


def _check_bounds(least: float, largest: float) -> tuple[float, float]:
    ends = [end if end in (-inf, inf) else check_number(end, "bounds") for end in (least, largest)]
    if not ends[0] < ends[1]:
        raise ValueError(f"bounds must be (least, largest); got {(least, largest)!r}.")
    return ends[0], ends[1]


def _direction(slope: Tensor, norm: float) -> Tensor:
    """Steepest ascent, of length one in the norm; zero where the slope is."""
    if norm == inf:
        return slope.sign()
    size = _sizes(slope)
    return torch.where(size > 0.0, slope / size, torch.zeros_like(slope))


def _projected(shift: Tensor, radius: float, norm: float) -> Tensor:
    if norm == inf:
        return shift.clamp(-radius, radius)
    return shift * (radius / _sizes(shift).clamp_min(radius))


def _random_shift(like: Tensor, radius: float, norm: float) -> Tensor:
    """Uniform in the cube; of a random direction and length in the ball."""
    if norm == inf:
        return radius * (2.0 * torch.rand_like(like) - 1.0)
    direction = _direction(torch.randn_like(like), norm)
    return radius * torch.rand_like(_sizes(like)) * direction


def _sizes(x: Tensor) -> Tensor:
    """Euclidean norm of each sample, of a shape that divides the batch."""
    sizes: Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1)
    return sizes.reshape(-1, *[1] * (x.ndim - 1))


def _inside(x: Tensor, bounds: tuple[float, float] | None) -> Tensor:
    return x if bounds is None else x.clamp(*bounds)


@contextmanager
def _evaluating(network: object) -> Iterator[None]:
    """Every part of a module in evaluation mode, then as it was."""
    parts = list(network.modules()) if isinstance(network, nn.Module) else []
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _check_floating(x: Tensor, name: str) -> None:
    if not x.is_floating_point():
        raise ValueError(
            f"{name} must hold floating-point numbers; got {x.dtype}. Scale them first, such as "
            f"{name}.float() / 255."
        )
