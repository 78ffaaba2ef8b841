"""Whether one term is all that a weight is trained by."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle, unserializable_hook


class OnlyGradient:
    """Compares the gradient of a leaf tensor with the part of it that comes from one term.

    From `begin` to `finish`. Each backward pass in between waits for the device.
    """

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._own: Tensor | None = None
        self._any = self._others = False

    def begin(self, weight: Tensor) -> Tensor:
        """The weight as the term must use it, so that its part of the gradient is known."""
        used = weight.view_as(weight)

        # A network that is saved meanwhile is saved without these.
        @unserializable_hook  # type: ignore[untyped-decorator]
        def of_term(gradient: Tensor) -> None:
            self._own = gradient.detach()

        @unserializable_hook  # type: ignore[untyped-decorator]
        def of_weight(gradient: Tensor) -> None:
            own, self._own = self._own, None
            self._any = True
            self._others |= own is None or not torch.equal(own, gradient)

        self._handles = [used.register_hook(of_term), weight.register_hook(of_weight)]  # type: ignore[no-untyped-call]
        return used

    def finish(self) -> bool | None:
        """Whether no other gradient came; None if none came at all."""
        for handle in self._handles:
            handle.remove()
        return not self._others if self._any else None
