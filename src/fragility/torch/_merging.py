"""Checks that the state of a metric fits another metric, before the two are put together.

States come from `merge_state`, from checkpoints and from other processes. PyTorch itself would join
tensors of other classes, or fail later without a word of the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

#: Names of the states of a metric.
STATES = ("refused", "probs", "y_true")


def check_same_classes(n_classes: int, other: int, source: str) -> None:
    """Refuse a state of another number of classes."""
    if other != n_classes:
        raise ValueError(
            f"This metric has n_classes={n_classes}, and {source} has n_classes={other}: their "
            "samples cannot be put together. Make both with the same n_classes."
        )


def check_state(n_classes: int, state: Mapping[str, Any], source: str) -> None:
    """Refuse a state that does not fit a metric of `n_classes` classes."""
    missing = ", ".join(sorted(set(STATES) - set(state)))
    if missing:
        raise ValueError(
            f"{source} is not the state of a metric with n_classes={n_classes}: it lacks {missing}."
        )
    refused = state["refused"]
    if (tuple(refused.shape), refused.dtype) != ((2,), torch.int64):
        raise ValueError(
            f"refused of {source} must be of shape (2,) and torch.int64; got "
            f"{tuple(refused.shape)} and {refused.dtype}."
        )
    probs, y_true = batches_of(state["probs"]), batches_of(state["y_true"])
    for scores in probs[:1]:
        check_same_classes(n_classes, 2 if scores.ndim == 1 else scores.shape[1], source)
    _check_batches(n_classes, probs, y_true, source)


def _check_batches(n_classes: int, probs: list[Tensor], y_true: list[Tensor], source: str) -> None:
    """Refuse probabilities and classes that do not fit each other, batch by batch."""
    width = () if n_classes == 2 else (n_classes,)
    if len(probs) != len(y_true):
        raise ValueError(f"{source} has {len(probs)} batches of probs and {len(y_true)} of y_true.")
    for scores, codes in zip(probs, y_true, strict=True):
        shapes = tuple(scores.shape), tuple(codes.shape)
        if shapes != ((len(codes), *width), (len(codes),)) or not scores.is_floating_point():
            raise ValueError(
                f"{source} has a batch of probs of shape {shapes[0]} and y_true of shape "
                f"{shapes[1]}; a metric with n_classes={n_classes} has {('n', *width)} and ('n',)."
            )
        whole = not (codes.is_floating_point() or codes.is_complex())
        if not whole or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_classes):
            raise ValueError(f"y_true of {source} must be whole numbers from 0 to {n_classes - 1}.")


def batches_of(value: Any) -> list[Tensor]:
    """Return the batches of a state: one, where those of all processes have been joined."""
    return [value] if isinstance(value, Tensor) else list(value)
