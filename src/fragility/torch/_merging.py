"""Which states of metrics go together, and what is said of those that do not.

Tensors of unlike shapes may still add up without an error: those of two classes and of three, each
against the rest, for example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: Names of the states of all kinds of metrics.
STATES = ("refused", "counts", "sums", "squares", "smallest", "largest", "probs", "labels")


class Kind(NamedTuple):
    """What a state depends on. Zero bins: the samples themselves are kept."""

    num_classes: int
    n_bins: int
    rest: bool

    def __str__(self) -> str:
        several = f", multi_class={'ovr' if self.rest else 'ovo'!r}" if self.num_classes > 2 else ""
        kept = f"n_bins={self.n_bins}{several}" if self.n_bins else "exact=True"
        return f"num_classes={self.num_classes}, {kept}"

    def check(self, other: Kind, source: str) -> None:
        """Refuse what is of another kind."""
        if other != self:
            raise ValueError(
                f"This metric has {self}, and {source} has {other}: their samples cannot be put "
                "together. Make both with the same num_classes, n_bins, multi_class and exact."
            )


def check_state(
    kind: Kind, defaults: Mapping[str, Tensor | list[Tensor]], state: Mapping[str, Any], source: str
) -> None:
    """Refuse a state that does not fit into a metric of this kind, whose empty one is given."""
    found = _kind_of(state)
    if found is not None:
        kind.check(found, source)
    missing = ", ".join(sorted(set(defaults) - set(state)))
    if missing:
        raise ValueError(f"{source} is not the state of a metric with {kind}: it lacks {missing}.")
    for name, default in defaults.items():
        wanted = default if isinstance(default, Tensor) else None
        for value in _tensors(state[name]):
            if wanted is not None and (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
                raise ValueError(
                    f"{name} of {source} must be of shape {tuple(wanted.shape)} and "
                    f"{wanted.dtype}; got {tuple(value.shape)} and {value.dtype}."
                )
    if not kind.n_bins:
        _check_samples(kind, _tensors(state["probs"]), _tensors(state["labels"]), source)


def _check_samples(kind: Kind, probs: list[Tensor], labels: list[Tensor], source: str) -> None:
    """Refuse samples that do not fit each other, batch by batch."""
    width = () if kind.num_classes == 2 else (kind.num_classes,)
    if len(probs) != len(labels):
        raise ValueError(f"{source} has {len(probs)} batches of probs and {len(labels)} of labels.")
    for scores, codes in zip(probs, labels, strict=True):
        shapes = tuple(scores.shape), tuple(codes.shape)
        if shapes != ((len(codes), *width), (len(codes),)) or not scores.is_floating_point():
            raise ValueError(
                f"{source} has a batch of probs of shape {shapes[0]} and labels of shape "
                f"{shapes[1]}; a metric with {kind} has {('n', *width)} and ('n',)."
            )
        whole = not (codes.is_floating_point() or codes.is_complex())
        if not whole or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < kind[0]):
            raise ValueError(
                f"labels of {source} must be whole numbers from 0 to {kind.num_classes - 1}."
            )


def _kind_of(state: Mapping[str, Any]) -> Kind | None:
    """As far as it can be told: not of nothing, and not of no samples."""
    if "counts" in state and torch.as_tensor(state["counts"]).ndim == 3:
        columns, groups, centres = torch.as_tensor(state["counts"]).shape
        return Kind(2 if columns == 1 else columns, centres - 1, columns > 1 and groups != columns)
    for probs in _tensors(state.get("probs", [])):
        return Kind(2 if probs.ndim == 1 else probs.shape[1], 0, False)
    return None


def _tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)
