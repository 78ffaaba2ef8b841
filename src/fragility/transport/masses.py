"""Two weighted samples as masses of distinct cases, and which of them can reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .._typing import Floats, Integers
from ..ambiguity import Wasserstein

_METRICS = {1: "cityblock", 2: "euclidean", inf: "chebyshev"}
#: Mass that rounding may make of nothing, and shares that rounding may tell apart.
_ROUNDING, _SAME_SHARE = 1e-12, 1e-9


@dataclass(frozen=True, eq=False)
class Masses:
    """Distinct cases: features in units of cost, classes, and the positive mass of each."""

    X: Floats
    codes: Integers
    mass: Floats

    def __len__(self) -> int:
        return self.mass.size

    @property
    def total(self) -> float:
        """Sum of the masses."""
        return float(self.mass.sum())

    def part(self, chosen: Any, mass: Floats | None = None) -> Masses:
        """Some of the cases, with other masses if these are given."""
        return Masses(
            self.X[chosen], self.codes[chosen], self.mass[chosen] if mass is None else mass
        )

    def scaled(self, factor: float) -> Masses:
        """The same cases with masses times a factor."""
        return Masses(self.X, self.codes, self.mass * factor)


@dataclass(frozen=True)
class MoveCost:
    """What it costs to move a unit of mass: the norm of the move, more for another label."""

    norm: float
    label_cost: float

    def between(self, first: Masses, second: Masses) -> Floats:
        """Cost of a move from each case of one sample (rows) to each of the other (columns)."""
        costs: Floats = cdist(first.X, second.X, _METRICS[self.norm])
        if self.label_cost < inf:  # else all cases that can reach each other have one label
            costs += self.label_cost * (first.codes[:, np.newaxis] != second.codes)
        return costs


def masses_by_case(
    X: Floats, codes: Integers, masses: tuple[Floats, Floats]
) -> tuple[NDArray[Any], Floats, Floats]:
    """Place of one row for each distinct case, and the mass that each sample has there.

    `X` and `codes` are the rows of both samples, one below the other.
    """
    rows = np.column_stack([X + 0.0, codes])  # -0.0 is 0.0
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    place = place.ravel()
    n = masses[0].size
    ref: Floats = np.bincount(place[:n], masses[0], first.size).astype(np.float64)
    new: Floats = np.bincount(place[n:], masses[1], first.size).astype(np.float64)
    return first, ref, new


def surplus_blocks(
    X: Floats, codes: Integers, masses: tuple[Floats, Floats], ambiguity: Wasserstein
) -> Iterator[tuple[Masses, Masses]]:
    """What one sample has more than the other, apart where no mass can move across.

    What both have at a case stays there, which is optimal since the cost is a metric. Fixed
    features, and labels that do not move, divide the rest into blocks.

    Raises
    ------
    UnreachableError
        If the samples have unlike masses in a block.
    """
    first, ref, new = masses_by_case(X, codes, masses)
    mobility = ambiguity.mobility(X.shape[1])
    fixed = mobility == 0.0
    keys = [X[np.ix_(first, fixed)] + 0.0]
    if not ambiguity.moves_labels:
        keys.append(codes[first][:, np.newaxis])
    _, block = np.unique(np.hstack(keys), axis=0, return_inverse=True)
    block = block.ravel()
    shares = [np.bincount(block, mass) for mass in (ref, new)]
    if np.abs(shares[0] - shares[1]).max() > _SAME_SHARE:
        apart = np.abs(np.bincount(codes[first], new - ref)).max() > _SAME_SHARE
        raise UnreachableError(by_label=bool(apart) and not ambiguity.moves_labels)
    left = new - ref
    left[np.abs(left) <= _ROUNDING * (new + ref)] = 0.0
    moving = X[:, ~fixed][first] / mobility[~fixed]
    order = np.argsort(block, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        given, taken = rows[left[rows] < 0.0], rows[left[rows] > 0.0]
        if given.size and taken.size:
            source = Masses(moving[given], codes[first[given]], -left[given])
            goal = Masses(moving[taken], codes[first[taken]], left[taken])
            # Equal but for rounding; from here on they are equal.
            yield source, goal.scaled(source.total / goal.total)


class UnreachableError(Exception):
    """No move at a finite cost makes one sample the other.

    Parameters
    ----------
    by_label : bool
        Whether it is the classes that have other shares, not values of fixed features.
    """

    def __init__(self, *, by_label: bool) -> None:
        super().__init__(by_label)
        self.by_label = by_label
