"""Optimal transport between two samples, exactly, from the matrix of costs.

A linear program with a variable for each pair of cases. Few pairs are ever used, so it is solved
with the cheapest of them first; pairs that its prices show to be worth more are added until there
are none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csc_matrix

from .._typing import Floats, Integers, Mask

#: Pairs of each case at first, and pairs of each case that are added in a round.
_FIRST, _ADDED = 15, 3
_MAX_ROUNDS = 200
_TOLERANCE = 1e-9


class Transport(NamedTuple):
    """Cost of a coupling, a bound that no coupling is below, and the prices that prove it.

    The prices are those of the second sample.
    """

    upper: float
    lower: float
    prices: Floats

    @property
    def optimal(self) -> bool:
        """Whether nothing but rounding lies between the two."""
        return self.upper - self.lower <= _TOLERANCE * self.upper


def transport_cost(costs: Floats, ref: Floats, new: Floats) -> float | None:
    """Least cost of moving masses `ref` (rows) to masses `new` (columns); the sums are equal.

    None if the solver did not get there.
    """
    if ref.size == new.size and np.ptp(ref) <= 1e-12 * ref[0] and np.ptp(new) <= 1e-12 * new[0]:
        rows, columns = linear_sum_assignment(costs)
        return float(ref.mean() * costs[rows, columns].sum())
    found = transport(costs, ref, new)
    return found.upper if found.optimal else None


def transport(costs: Floats, ref: Floats, new: Floats, rounds: int = _MAX_ROUNDS) -> Transport:
    """The best coupling after at most so many rounds; each of them gives valid bounds."""
    # The solver's tolerances are absolute: masses and costs of the order of one.
    cost_unit, mass_unit = float(costs.max()), float(ref.sum()) / max(costs.shape)
    if cost_unit == 0.0:
        return Transport(0.0, 0.0, np.zeros(new.size))
    scaled, first, second = costs / cost_unit, ref / mass_unit, new / mass_unit
    used = _cheapest_pairs(scaled, _FIRST)
    used[_some_coupling(first, second)] = True
    for _ in range(rounds):
        upper, prices = _restricted(scaled, first, second, used)
        slack = scaled - prices
        ahead = slack.min(axis=1)
        found = Transport(upper, float(first @ ahead + second @ prices), prices)
        if found.optimal:
            break
        better = _cheapest_pairs(slack - ahead[:, np.newaxis], _ADDED)
        if not (better & ~used).any():
            break
        used |= better
    unit = cost_unit * mass_unit
    return Transport(found.upper * unit, found.lower * unit, found.prices * cost_unit)


def _restricted(costs: Floats, ref: Floats, new: Floats, used: Mask) -> tuple[float, Floats]:
    """The least cost with some pairs only, and the prices of the second sample."""
    rows, columns = np.nonzero(used)
    pair = np.arange(rows.size)
    places = np.concatenate([rows, ref.size + columns]), np.concatenate([pair, pair])
    sums = csc_matrix((np.ones(2 * pair.size), places), shape=(ref.size + new.size, pair.size))
    found = linprog(
        costs[rows, columns],
        A_eq=sums,
        b_eq=np.concatenate([ref, new]),
        method="highs-ds",
        # Presolving such a program takes up to thirty times as long as solving it.
        options={
            "presolve": False,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
        },
    )
    if found.x is None:
        raise RuntimeError(f"The transport program was not solved: {found.message}")
    return float(found.fun), np.asarray(found.eqlin.marginals[ref.size :])


def _cheapest_pairs(costs: Floats, number: int) -> Mask:
    """The cheapest partners of each case of both samples."""
    chosen = np.zeros(costs.shape, dtype=bool)
    for axis in (0, 1):
        kept = min(number, costs.shape[axis])
        places = np.argpartition(costs, kept - 1, axis=axis)
        np.put_along_axis(chosen, np.take(places, range(kept), axis=axis), True, axis=axis)
    return chosen


def _some_coupling(ref: Floats, new: Floats) -> tuple[Integers, Integers]:
    """Pairs of a coupling in the order of the cases, so that the program has a solution."""
    ends = [np.cumsum(mass) for mass in (ref, new)]
    ends[0][-1] = ends[1][-1] = max(ends[0][-1], ends[1][-1])
    cuts = np.union1d(*ends)
    rows, columns = (np.searchsorted(end, cuts) for end in ends)
    return rows, columns
