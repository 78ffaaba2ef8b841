"""Checks that the states of two metrics can be merged.

Tensors of different shapes may still add up without an error: for example, states of two and of
three classes, each against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: Names of the states of all kinds of metrics.
STATES = ("refused", "counts", "sums", "squares", "smallest", "largest", "probs", "y_true")


class Kind(NamedTuple):
    """The settings that a state depends on. Zero bins: the samples themselves are kept."""

    n_classes: int
    n_bins: int
    rest: bool

    def __str__(self) -> str:
        several = f", multi_class={'ovr' if self.rest else 'ovo'!r}" if self.n_classes > 2 else ""
        kept = f"n_bins={self.n_bins}{several}" if self.n_bins else "exact=True"
        return f"n_classes={self.n_classes}, {kept}"

    def check(self, other: Kind, source: str) -> None:
        """Refuse a state of another kind."""
        if other != self:
            raise ValueError(
                f"This metric has {self}, and {source} has {other}: their samples cannot be put "
                "together. Make both with the same n_classes, n_bins, multi_class and exact."
            )


def check_state(
    kind: Kind, defaults: Mapping[str, Tensor | list[Tensor]], state: Mapping[str, Any], source: str
) -> None:
    """Refuse a state that does not fit a metric of this kind; `defaults` is its empty state."""
    found = _kind_of(state)
    if found is not None:
        kind.check(found, source)
    missing = ", ".join(sorted(set(defaults) - set(state)))
    if missing:
        raise ValueError(f"{source} is not the state of a metric with {kind}: it lacks {missing}.")
    for name, default in defaults.items():
        if not isinstance(default, Tensor):
            continue
        for value in _tensors(state[name]):
            if (value.shape, value.dtype) != (default.shape, default.dtype):
                raise ValueError(
                    f"{name} of {source} must be of shape {tuple(default.shape)} and "
                    f"{default.dtype}; got {tuple(value.shape)} and {value.dtype}."
                )
    if not kind.n_bins:
        _check_samples(kind, _tensors(state["probs"]), _tensors(state["y_true"]), source)


def _check_samples(kind: Kind, probs: list[Tensor], y_true: list[Tensor], source: str) -> None:
    """Refuse samples that do not fit each other, batch by batch."""
    width = () if kind.n_classes == 2 else (kind.n_classes,)
    if len(probs) != len(y_true):
        raise ValueError(f"{source} has {len(probs)} batches of probs and {len(y_true)} of y_true.")
    for scores, codes in zip(probs, y_true, strict=True):
        shapes = tuple(scores.shape), tuple(codes.shape)
        if shapes != ((len(codes), *width), (len(codes),)) or not scores.is_floating_point():
            raise ValueError(
                f"{source} has a batch of probs of shape {shapes[0]} and y_true of shape "
                f"{shapes[1]}; a metric with {kind} has {('n', *width)} and ('n',)."
            )
        whole = not (codes.is_floating_point() or codes.is_complex())
        if not whole or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < kind[0]):
            raise ValueError(
                f"y_true of {source} must be whole numbers from 0 to {kind.n_classes - 1}."
            )


def _kind_of(state: Mapping[str, Any]) -> Kind | None:
    """Kind of a state; None if the state is empty or holds no samples."""
    if "counts" in state and torch.as_tensor(state["counts"]).ndim == 3:
        columns, groups, centres = torch.as_tensor(state["counts"]).shape
        return Kind(2 if columns == 1 else columns, centres - 1, columns > 1 and groups != columns)
    for probs in _tensors(state.get("probs", [])):
        return Kind(2 if probs.ndim == 1 else probs.shape[1], 0, False)
    return None


def _tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)
