"""Checks that several modules share: scores, class numbers, settings used in single precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._parameters import check_not_negative

_LEAST, _LARGEST = 1e-30, 1e30


def check_single(value: float, name: str) -> float:
    """Check a setting: zero, or within the range where products stay finite and positive."""
    number = check_not_negative(value, name)
    if number != 0.0 and not _LEAST <= number <= _LARGEST:
        raise ValueError(
            f"{name} must be from {_LEAST:g} to {_LARGEST:g}, as it is used in single precision; "
            f"got {number:g}."
        )
    return number


def check_columns(scores: Tensor, n_classes: int, name: str) -> Tensor:
    """Scores with a column for each class; of two classes also with one, for class 1."""
    columns = scores[:, None] if n_classes == 2 and scores.ndim == 1 else scores
    if columns.ndim != 2 or columns.shape[1] not in ((1, 2) if n_classes == 2 else (n_classes,)):
        allowed = "(n,) or (n, 2)" if n_classes == 2 else f"(n, {n_classes})"
        raise ValueError(f"{name} must have shape {allowed}; got {tuple(scores.shape)}.")
    if not scores.is_floating_point():
        raise TypeError(f"{name} must hold floating point numbers; got {scores.dtype}.")
    return columns


def check_class_numbers(y_true: Any, n: int) -> Tensor:
    """True classes of `n` samples as int64; their range is not checked here."""
    if not isinstance(y_true, Tensor) or y_true.is_floating_point() or y_true.is_complex():
        kind = y_true.dtype if isinstance(y_true, Tensor) else type(y_true).__name__
        raise TypeError(f"y_true must be a tensor of integers or booleans; got {kind}.")
    if tuple(y_true.shape) != (n,):
        raise ValueError(
            f"y_true must have one entry per sample, the shape ({n},); got {tuple(y_true.shape)}."
        )
    return y_true.to(torch.int64)


def check_class_range(lowest: float, highest: float, n_classes: int, why: str = "") -> None:
    """Refuse class numbers below 0, or as large as the number of classes."""
    if lowest < 0 or highest >= n_classes:
        raise ValueError(
            f"y_true must go from 0 to {n_classes - 1}{why}; got classes from {lowest:g} to "
            f"{highest:g}. Leave out samples without a class, such as those of an ignore_index."
        )
