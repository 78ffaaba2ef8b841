"""Bounds of a transport cost where there are too many pairs of cases for the exact one."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from .._typing import Floats
from .exact import transport
from .masses import Masses, MoveCost

#: Cases of a cell, at most, within which the coupling is the best one.
_CELL = 250
#: Pairs of cases whose costs are held at a time, and looked at in all (for some seconds).
_PAIRS, _MOST_PAIRS = 2_000_000, 500_000_000


def lower_bound(ref: Masses, new: Masses, cost: MoveCost, few: int) -> float:
    """A number that no coupling costs less than."""
    found = _by_features(ref, new, cost)
    if cost.norm == 2:  # a rotation changes no distance
        axes = _principal_axes(ref, new)
        turned, goal = (Masses(part.X @ axes, part.codes, part.mass) for part in (ref, new))
        found = max(found, _by_features(turned, goal, cost))
    if len(ref) * len(new) > _MOST_PAIRS:
        return found
    return max(found, _by_prices(ref, new, cost, few))


def upper_bound(ref: Masses, new: Masses, cost: MoveCost) -> float:
    """What some coupling costs: the cheaper of two."""
    found = _coupled(ref, new, cost)
    if cost.label_cost < inf and np.union1d(ref.codes, new.codes).size > 1:
        found = min(found, sum(_coupled(*pair, cost) for pair in _labels_kept(ref, new)))
    return found


def _by_features(ref: Masses, new: Masses, cost: MoveCost) -> float:
    """The norm of the distances by feature, and the labels that must change.

    Along each feature the mean move is at least the distance of the two marginals, so the norm of
    a mean move, and with it the mean of the norm, is at least the norm of these.
    """
    apart = [_along_a_line(ref, new, feature) for feature in range(ref.X.shape[1])]
    found = float(np.linalg.norm(apart, ord=cost.norm)) if apart else 0.0
    if cost.label_cost < inf:
        classes = int(max(ref.codes.max(), new.codes.max())) + 1
        shares = [np.bincount(part.codes, part.mass, classes) for part in (ref, new)]
        found += cost.label_cost * float(np.abs(shares[0] - shares[1]).sum()) / 2.0
    return found


def _along_a_line(ref: Masses, new: Masses, feature: int) -> float:
    """The integral of the difference of two distribution functions."""
    values = np.concatenate([ref.X[:, feature], new.X[:, feature]])
    masses = np.concatenate([ref.mass, -new.mass])
    order = np.argsort(values)
    above = np.abs(np.cumsum(masses[order])[:-1])
    return float(above @ np.diff(values[order]))


def _principal_axes(ref: Masses, new: Masses) -> Floats:
    """Axes of the spread within the two samples together, the widest last."""
    spread = np.zeros((ref.X.shape[1], ref.X.shape[1]))
    for part in (ref, new):
        centred = part.X - part.mass @ part.X / part.total
        spread += (centred.T * part.mass) @ centred / part.total
    axes: Floats = np.linalg.eigh(spread)[1]
    return axes


def _by_prices(ref: Masses, new: Masses, cost: MoveCost, few: int) -> float:
    """What moving mass earns at the best of some prices under which no move pays.

    A case of the reference is worth the least, over new cases, of the cost of a move less the price
    there: then no move earns more than it costs. Prices are those of the best coupling of a few
    cases, carried on to all, or a part of them; prices of zero count the way to the nearest case.
    """
    some, others = _few(ref, few), _few(new, few)
    others = others.scaled(some.total / others.total)
    costs = cost.between(some, others)
    prices = transport(costs, some.mass, others.mass, rounds=5).prices
    carried = _least(new, some, (costs - prices).min(axis=1)[np.newaxis], cost)[0]
    offered = np.outer([0.0, 0.5, 1.0], carried)
    earned = _least(ref, new, offered, cost) @ ref.mass + offered @ new.mass
    return float(earned.max())


def _least(cases: Masses, others: Masses, prices: Floats, cost: MoveCost) -> Floats:
    """Least cost of a move less the price at its end, for each row of prices and each case."""
    found = np.empty((len(prices), len(cases)))
    block = max(1, _PAIRS // len(others))
    for start in range(0, len(cases), block):
        rows = slice(start, start + block)
        costs = cost.between(cases.part(rows), others)
        for place, row in enumerate(prices):
            found[place, rows] = (costs - row).min(axis=1)
    return found


def _few(cases: Masses, number: int) -> Masses:
    """Cases drawn by their mass, the same ones in each call."""
    if len(cases) <= number:
        return cases
    drawn = np.random.RandomState(0).choice(len(cases), number, p=cases.mass / cases.total)
    places, counts = np.unique(drawn, return_counts=True)
    return cases.part(places, counts.astype(np.float64) * (cases.total / number))


def _labels_kept(ref: Masses, new: Masses) -> Iterator[tuple[Masses, Masses]]:
    """Pairs of samples of equal mass: each class as far as it goes, and what is left."""
    left: list[list[Masses]] = [[], []]
    for code in np.union1d(ref.codes, new.codes):
        own = [part.part(part.codes == code) for part in (ref, new)]
        shared = min(part.total for part in own)
        if shared > 0.0:
            yield own[0].scaled(shared / own[0].total), own[1].scaled(shared / own[1].total)
        for side, part in zip(left, own, strict=True):
            if part.total > shared:
                side.append(part.scaled(1.0 - shared / part.total))
    if left[0] and left[1]:
        rest, goal = (_together(side) for side in left)
        yield rest, goal.scaled(rest.total / goal.total)


def _together(parts: list[Masses]) -> Masses:
    return Masses(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.mass for part in parts]),
    )


def _coupled(ref: Masses, new: Masses, cost: MoveCost) -> float:
    """Cost of a coupling: both samples are halved along an axis until cells are small."""
    if max(len(ref), len(new)) <= _CELL:
        return transport(cost.between(ref, new), ref.mass, new.mass).upper
    axis = _principal_axes(ref, new)[:, -1]
    halves = [_halved(part, axis) for part in (ref, new)]
    total = 0.0
    for first, second in zip(*halves, strict=True):
        total += _coupled(first, second.scaled(first.total / second.total), cost)
    return total


def _halved(cases: Masses, axis: Floats) -> tuple[Masses, Masses]:
    """The halves of the mass along an axis; the case in the middle is in both."""
    order = np.argsort(cases.X @ axis, kind="stable")
    mass = cases.mass[order]
    end = np.cumsum(mass)
    half = 0.5 * end[-1]
    middle = min(int(np.searchsorted(end, half)), mass.size - 1)
    before = half - (end[middle] - mass[middle])
    below, above = mass[: middle + 1].copy(), mass[middle:].copy()
    below[-1] = before
    above[0] -= before
    low, high = below > 0.0, above > 0.0
    return (
        cases.part(order[: middle + 1][low], below[low]),
        cases.part(order[middle:][high], above[high]),
    )
