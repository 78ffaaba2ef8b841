"""Problems that are solved together: the first axis of every array counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Batched:
    """An object all of whose arrays, also those of its parts, have one row for each problem.

    Arrays that all problems share are kept in tuples, which nothing is taken from.
    """

    def taken(self, kept: NDArray[Any]) -> Self:
        """Some of the problems."""
        found: Self = self._mapped(lambda value: value[kept], self)
        return found

    def where(self, chosen: NDArray[np.bool_], other: Self) -> Self:
        """These problems where chosen, else the others."""

        def choose(mine: Any, theirs: Any) -> Any:
            shape = (-1, *(1,) * (mine.ndim - 1))
            return mine if mine is theirs else np.where(chosen.reshape(shape), mine, theirs)

        found: Self = self._mapped(choose, self, other)
        return found

    @staticmethod
    def _mapped(function: Callable[..., Any], *some: Any) -> Any:
        after = object.__new__(type(some[0]))
        after.__dict__.update(some[0].__dict__)
        for name in some[0].__dict__:
            values = [getattr(one, name) for one in some]
            if isinstance(values[0], np.ndarray):
                setattr(after, name, function(*values))
            elif isinstance(values[0], Batched):
                setattr(after, name, Batched._mapped(function, *values))
            elif isinstance(values[0], list):
                parts = zip(*values, strict=True)
                setattr(after, name, [Batched._mapped(function, *part) for part in parts])
        return after
