"""MedMNIST as tensors, or stand-ins of the same shape for a quick run."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from experiments.data import load_medmnist

__all__ = ["Images", "images", "moved"]

#: Name of what a quick run has instead of images.
STAND_IN = "stand-in"
#: Samples of each split, pixels of a side and classes of the stand-in.
_STAND_IN = (48, 32, 32), 28, 2


class Images(NamedTuple):
    """Three splits, each images (n, 3, 28, 28) from −1 to 1 and class numbers; and the name."""

    train: tuple[Tensor, Tensor]
    val: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    n_classes: int
    name: str

    @property
    def is_stand_in(self) -> bool:
        """Whether these are no images, but noise for a quick run."""
        return self.name == STAND_IN


def images(name: str, quick: bool, device: torch.device) -> Images:
    """A data set by name; grey images get three equal channels.

    A quick run downloads nothing, and takes stand-ins: it shows only that everything works.
    """
    if quick:
        splits, n_classes, name = _stand_in(), _STAND_IN[2], STAND_IN
    else:
        found = load_medmnist(name, data_home=os.environ.get("FRAGILITY_DATA"))
        splits = [(found[part].data, found[part].target) for part in ("train", "val", "test")]
        n_classes = len(found.target_names)
    train, val, test = (_tensors(data, target, device) for data, target in splits)
    return Images(train, val, test, n_classes, name)


def moved(images: Tensor, strength: float) -> Tensor:
    """Images mirrored, turned, shifted and scaled at random, each by itself.

    Strength 1: by up to 15 degrees, two pixels and a tenth. What comes in from outside is a mirror
    image. Random numbers come from the generator of the device.
    """
    n, side = len(images), images.shape[-1]
    draws = torch.rand(5, n, device=images.device)
    angle, right, down, growth = (2.0 * draws[:4] - 1.0) * strength
    angle, growth = angle * (torch.pi / 12.0), 1.0 + 0.1 * growth
    cos, sin = torch.cos(angle) * growth, torch.sin(angle) * growth
    mirror = torch.where(draws[4] < 0.5, -1.0, 1.0)
    pixels = 4.0 / side  # two pixels, where the image goes from -1 to 1
    rows = [mirror * cos, -sin, pixels * right, mirror * sin, cos, pixels * down]
    grid = functional.affine_grid(
        torch.stack(rows, 1).view(n, 2, 3), list(images.shape), align_corners=False
    )
    return functional.grid_sample(
        images, grid, padding_mode="reflection", align_corners=False
    ).contiguous(memory_format=_layout(images.device))


def _layout(device: torch.device) -> torch.memory_format:
    return torch.channels_last if device.type == "cuda" else torch.contiguous_format


def _tensors(data: Any, target: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    x = torch.from_numpy(np.ascontiguousarray(data)).to(device)
    x = x[:, None].expand(-1, 3, -1, -1) if x.ndim == 3 else x.permute(0, 3, 1, 2)
    pixels = (x.float() / 255.0 - 0.5) / 0.5
    labels = torch.from_numpy(np.asarray(target, dtype=np.int64)).to(device)
    return pixels.contiguous(memory_format=_layout(device)), labels


def _stand_in() -> list[tuple[Any, Any]]:
    """Grey noise, brighter in class 1."""
    sizes, side, n_classes = _STAND_IN
    rng = np.random.default_rng(0)
    splits = []
    for size in sizes:
        target = rng.permutation(np.arange(size) % n_classes)
        noise = rng.integers(0, 200, (size, side, side)) + 20 * target[:, None, None]
        splits.append((noise.astype(np.uint8), target))
    return splits
