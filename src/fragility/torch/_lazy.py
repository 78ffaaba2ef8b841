"""A scalar tensor that is computed at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only


class LazyScalar(Tensor):
    """A float64 scalar, computed at its first use: printed, added, logged, copied or saved.

    Every operation acts on the plain tensor that `compute` returns. `compute` is called once,
    without a graph, and then released with everything that it holds.

    Parameters
    ----------
    compute : callable
        Returns a float64 tensor of shape () on `device`.
    device : device
    """

    _compute: Callable[[], Tensor] | None
    _value: Tensor | None
    _device: torch.device

    @staticmethod
    def __new__(cls, compute: Callable[[], Tensor], device: torch.device) -> LazyScalar:
        # No storage: an operation that bypasses the two methods below raises an error.
        result: LazyScalar = Tensor._make_wrapper_subclass(
            cls, (), dtype=torch.float64, device=device
        )
        result._compute, result._value, result._device = compute, None, device
        return result

    def computed(self) -> Tensor:
        """The plain tensor."""
        if self._value is None:
            assert self._compute is not None
            with torch.inference_mode(False), torch.no_grad():
                self._value = self._compute()
            self._compute = None
        return self._value

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Called by a tensor's methods and properties, and by the functions of torch."""
        if _leaves_as_it_is(func, args, kwargs or {}):
            return args[0]
        args, kwargs = tree_map_only(cls, cls.computed, (args, kwargs or {}))
        return func(*args, **kwargs)

    #: Called by code that uses the C++ operators directly.
    __torch_dispatch__ = __torch_function__  # type: ignore[assignment]


def _leaves_as_it_is(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a call is one that Lightning makes in every step, and changes nothing here."""
    if func is Tensor.detach:
        return True
    if func is not Tensor.to or not isinstance(args[0], LazyScalar):
        return False
    return set(kwargs) <= {"non_blocking"} and args[1:] == (args[0]._device,)
