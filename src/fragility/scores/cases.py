"""Cases that models have scored, as checked arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats


class Cases(NamedTuple):
    """Some cases of positive weight.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Place of each case's class in the labels.
    scores : dict of str to ndarray
        Of each model the probabilities of the positive class (n,), or of each class (n, C).
    weights, costs : ndarray of shape (n,), optional
        Weight of each case, and what an error on it costs.
    groups : ndarray of shape (n, n_columns), optional
        Place of each case's group, by column of groups.
    """

    codes: NDArray[Any]
    scores: dict[str, NDArray[Any]]
    weights: Floats | None = None
    groups: NDArray[Any] | None = None
    costs: Floats | None = None

    @property
    def size(self) -> int:
        return self.codes.size

    def take(self, rows: NDArray[Any] | slice) -> Cases:
        """Some of the cases."""
        return Cases(
            self.codes[rows],
            {name: scores[rows] for name, scores in self.scores.items()},
            *(None if part is None else part[rows] for part in self[2:]),
        )

    def weighted(self) -> Cases:
        """The same with weights, one each if there were none."""
        return self if self.weights is not None else self._replace(weights=np.ones(self.size))

    @property
    def columns(self) -> list[NDArray[Any]]:
        """All that tells the cases apart, as columns."""
        scores = [column for part in self.scores.values() for column in np.atleast_2d(part.T)]
        groups = [] if self.groups is None else [*self.groups.T]
        others = [part for part in (self.weights, self.costs) if part is not None]
        return [self.codes, *scores, *others, *groups]

    def hashes(self) -> NDArray[np.uint64]:
        """A random number for each case, the same for the same case; no weight is one of 1."""
        found = np.full(self.size, 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in self.weighted().columns:
            # Adding zero turns −0.0 into 0.0.
            bits = (column.astype(np.float64) + 0.0).view(np.uint64)
            # SplitMix64, whose constants these are.
            found = (found ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ (found >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            found ^= found >> np.uint64(32)
        return found


def joined(parts: Sequence[Cases]) -> Cases:
    """Cases that follow each other as one."""
    if len(parts) == 1:
        return parts[0]

    def join(arrays: Iterable[Any]) -> Any:
        found = list(arrays)
        return None if found[0] is None else np.concatenate(found)

    return Cases(
        join(part.codes for part in parts),
        {name: join(part.scores[name] for part in parts) for name in parts[0].scores},
        *(join(part[place] for part in parts) for place in range(2, 5)),
    )
