"""A scalar tensor that is computed when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only


class LazyScalar(Tensor):
    """A float64 scalar, to be computed at its first use: printed, added, logged, copied or saved.

    Whatever is done with it is done with the plain tensor that `compute` returns; `compute` is
    called once, without a graph, and then let go with all that it holds.

    Parameters
    ----------
    compute : callable
        Returns a float64 tensor of shape () on `device`.
    device : device
    """

    _compute: Callable[[], Tensor] | None
    _value: Tensor | None
    _place: torch.device

    @staticmethod
    def __new__(cls, compute: Callable[[], Tensor], device: torch.device) -> LazyScalar:
        # No storage: what came past the two methods below would be an error, not a number.
        result: LazyScalar = Tensor._make_wrapper_subclass(
            cls, (), dtype=torch.float64, device=device
        )
        result._compute, result._value, result._place = compute, None, device
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
        """Python's way to a tensor's methods and properties, and to the functions of torch."""
        if _leaves_as_it_is(func, args, kwargs or {}):
            return args[0]
        args, kwargs = tree_map_only(cls, cls.computed, (args, kwargs or {}))
        return func(*args, **kwargs)

    #: The way of what calls the operators of C++ itself.
    __torch_dispatch__ = __torch_function__  # type: ignore[assignment]


def _leaves_as_it_is(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """What Lightning does in every step, logged or not; a value without a graph stays the same."""
    if func is Tensor.detach:
        return True
    if func is not Tensor.to or not isinstance(args[0], LazyScalar):
        return False
    return set(kwargs) <= {"non_blocking"} and args[1:] == (args[0]._place,)
