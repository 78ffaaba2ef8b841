"""Cases in blocks of one size, wherever the batches of a file end.

Sums of floats depend on how their terms are grouped, in the last digit. With the same blocks they
are the same for arrays and for files of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: Cases of a block, few enough for the cache.
BLOCK = 1 << 14


class _Sliced(Protocol):
    @property
    def rows(self) -> NDArray[Any]: ...

    def take(self, rows: slice, /) -> Any: ...


Part = TypeVar("Part", bound=_Sliced)


def even_blocks(parts: Iterable[Part], join: Callable[[list[Part]], Part]) -> Iterator[Part]:
    """The same cases, in their order, in blocks of `BLOCK` cases; the last one may be smaller."""
    held: list[Part] = []
    room = BLOCK
    for part in parts:
        start, size = 0, part.rows.size
        while start < size:
            taken = part.take(slice(start, start + room))
            held.append(taken)
            start, room = start + taken.rows.size, room - taken.rows.size
            if not room:
                yield held[0] if len(held) == 1 else join(held)
                held, room = [], BLOCK
    if held:
        yield held[0] if len(held) == 1 else join(held)


def joined_arrays(arrays: Iterable[Any]) -> Any:
    """Arrays one after the other; None if there are none."""
    found = list(arrays)
    return None if found[0] is None else np.concatenate(found)
