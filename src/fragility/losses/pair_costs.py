r"""What it costs to take one class for another, as a parameter of a loss.

Entry :math:`c_{ij}` is the cost of a sample of class i that is taken for class j: true class ×
decided class, in the order of the sorted labels, as the cost matrices of policies are. A DataFrame
is sorted by its labels, which are compared with the classes when a model is fitted. Costs belong to
the loss and never to the weights of the samples, which would change what a distance is measured
from.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labelled_tables import label_positions, own_classes
from .._typing import Floats
from .._validation import check_pair_cost
from .base import Codes, Loss, PairCost


class PairCostLoss(Loss):
    """A loss whose dataclass has a field `pair_cost`, a table or None."""

    #: Labels of the rows and columns, if they were given as a DataFrame.
    _labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.pair_cost is None:
            return
        labels = own_classes(self.pair_cost, "pair_cost")
        table = check_pair_cost(self.pair_cost)
        free = np.argwhere((table == 0.0) & ~np.eye(len(table), dtype=np.bool_))
        if free.size:
            i, j = free[0].tolist()
            raise ValueError(
                f"pair_cost must be positive off the diagonal, but [{i}][{j}] is 0: a confusion "
                "that costs nothing leaves nothing to learn from. Give it a small cost, or make "
                "the two classes one."
            )
        # Tuples, so that two of the same are equal and hash alike.
        object.__setattr__(self, "pair_cost", tuple(map(tuple, table.tolist())))
        if labels is not None:
            object.__setattr__(self, "_labels", tuple(labels.tolist()))

    def for_classes(self, classes: NDArray[Any]) -> Loss:
        if self._labels is None:
            return super().for_classes(classes)
        order = label_positions(self._labels, classes, "rows", "pair_cost")
        table = np.asarray(self.pair_cost)[np.ix_(order, order)]
        return replace(self, pair_cost=table)  # type: ignore[type-var]

    def __repr__(self) -> str:
        shown = (field.name for field in fields(self))  # type: ignore[arg-type]
        given = ((name, getattr(self, name)) for name in shown)
        parts = (f"{name}={value!r}" for name, value in given if value is not None)
        return f"{type(self).__name__}({', '.join(parts)})"

    def costs(self, y: Codes, n_classes: int) -> Floats:
        """Cost of each class (last axis) for samples of classes y, one for the class itself.

        Of two classes that of the wrong one alone: the last axis is left out.
        """
        table = np.asarray(self.pair_cost)
        if n_classes == 2:
            return np.array([table[0, 1], table[1, 0]])[y]
        return (table + np.eye(n_classes))[y]


class CostlyGaps(PairCostLoss):
    """One whose slope in the gap to another class is at most the cost of that class."""

    @property
    def steepness(self) -> float:  # type: ignore[override]
        """The largest cost; without costs one."""
        return 1.0 if self.pair_cost is None else max(map(max, self.pair_cost))

    def pair_steepness(self, n_classes: int) -> Floats:
        if self.pair_cost is None:
            return super().pair_steepness(n_classes)
        return np.asarray(self.pair_cost)


def mean_cost(pair_cost: PairCost | None) -> float:
    """Mean cost of two different classes; without costs one."""
    if pair_cost is None:
        return 1.0
    count = len(pair_cost)
    return sum(map(sum, pair_cost)) / (count * (count - 1))
