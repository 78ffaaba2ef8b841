r"""Shares of functions and moves of pairs of classes that balance each other: a linear program.

At the least fragile model shares, moves and subgradients of the penalty exist that cancel, and each
of them belongs to a function, a way or a sign that is the steepest there. At a model near it the
best ones are those of the least total loss by not being so:

.. math:: \min \sum_{np} a_n \alpha_{np} (\max_q f_{nq} - f_{np})
          + \sum_{ij} (k \lVert P_{ij} \rVert - \langle P_{ij}, z_i - z_j \rangle)
          + \sum_j (l_j |\theta_j| - \rho_j \theta_j)
          \quad\text{s.t.}\quad M(\alpha, \rho) + \sum_{ij} P_{ij} \otimes (e_i - e_j) = 0 .

Which of them are nearly the steepest need not be known exactly: others cost more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from .._typing import Floats, Indices
from .norm_cones import Shape
from .tangents import Tangent

#: Pairs and ways whose slope is this share of the steepest one or more may be it.
_STEEP, _STEEPEST = 0.9, 1.0 - 1e-4
#: Coefficients below this share of the steepest slope may be zero.
_FLAT = 1e-5
#: Price of a move across a longer one, as a share of that of a move of its own.
_ACROSS = 1e-3
#: Parameters below this share of the largest may be zeros of a lasso.
_SMALL = 1e-3
#: The solver is content with 1e-10, and this is by how much finer parameters are to be balanced.
_FINE = 1e3
#: Price of what is left over, in units of the loss.
_LEFT_OVER = 1e3


@dataclass(frozen=True, eq=False)
class Balance:
    """Moves (pairs, features) of each pair of classes, in units where the norm is plain.

    Where nothing moves there is no `shape`, and no pair.
    """

    shape: Shape | None
    table: Floats

    @property
    def distances(self) -> Floats:
        """Length of each move."""
        assert self.shape is not None
        lengths: Floats = np.linalg.norm(self.table, ord=self.shape.order, axis=1)
        return lengths

    def steepest(self, parameters: Floats, k: float) -> tuple[Floats, Floats]:
        """What moves along steepest ways take of a gradient, and how that bends with parameters."""
        shape = self.shape
        assert shape is not None
        signs, bend = shape.cone.pairs.signs, np.zeros((parameters.size, parameters.size))
        differences = signs @ shape.table(parameters)
        slopes = np.linalg.norm(differences, ord={1: inf, 2: 2, inf: 1}[shape.order], axis=1)
        lengths = (self.table * differences).sum(axis=1) / np.maximum(slopes, 1e-300)
        lengths = np.where(slopes >= _STEEPEST * k, np.maximum(lengths, 0.0), 0.0)
        most = lengths[:, np.newaxis]
        if shape.order == 1:
            table = np.where(np.abs(differences) >= _STEEPEST * k, self.table, 0.0)
        elif shape.order == 2:
            ways = differences / np.maximum(slopes, 1e-300)[:, np.newaxis]
            table = most * ways
            for pair in np.flatnonzero(lengths):  # a way turns as its coefficients do
                turn = np.eye(ways.shape[1]) - np.multiply.outer(ways[pair], ways[pair])
                across = np.kron(np.multiply.outer(signs[pair], signs[pair]), turn)
                across *= lengths[pair] / slopes[pair]
                bend[np.ix_(shape.moves, shape.moves)] += (
                    across * shape.metric * shape.metric[:, np.newaxis]
                )
        else:
            flat = np.abs(differences) <= _FLAT * k
            table = np.where(flat, np.clip(self.table, -most, most), most * np.sign(differences))
        taken = np.zeros(parameters.size)
        taken[shape.moves] = (signs.T @ table).ravel() * shape.metric
        return taken, bend

    def moved_to(self, gradient: Floats, rounding: float) -> Balance | None:
        """The moves that balance a gradient nearby, but for rounding; None if no moves do."""
        shape = self.shape
        assert shape is not None
        signs = shape.cone.pairs.signs
        left = -(gradient[shape.moves] / shape.metric).reshape(shape.cone.shape)
        if len(signs) == 1:
            return replace(self, table=left / signs[0, 0])
        table = self.table.copy()
        left = left - signs.T @ table
        # Along the pairs of the first class with each other one.
        for j in range(1, len(left)):
            pair = int(np.flatnonzero((signs[:, 0] != 0.0) & (signs[:, j] != 0.0))[0])
            moved = left[j] / signs[pair, j]
            table[pair] += moved
            left = left - np.multiply.outer(signs[pair], moved)
        vanishes = np.abs(left.ravel() * shape.metric).max() <= rounding
        return replace(self, table=table) if vanishes else None


def balanced(
    tangent: Tangent, shape: Shape | None, k: float, label_cost: float
) -> tuple[Tangent, Balance]:
    """The shares and moves of the least total loss."""
    objective = tangent.objective
    pairs = 0 if shape is None else shape.cone.pairs.count
    none = np.zeros((pairs, 0 if shape is None else shape.cone.shape[1]))
    p, n, below = tangent.ties(k, label_cost)
    zeros = np.flatnonzero(
        (objective.lasso_weights > 0.0)
        & (np.abs(tangent.parameters) <= _SMALL * np.abs(tangent.parameters).max(initial=0.0))
    )
    if pairs <= 1 and not (n.size or zeros.size):
        return tangent, Balance(shape, none)
    program = _Program(tangent, shape, k)
    program.add_shares(p, n, below)
    program.add_signs(zeros)
    if shape is not None:
        program.add_moves()
    program.add_left_over()
    found = program.solve()
    if found is None:
        return tangent, Balance(shape, none)
    shares, signs, table = found
    tangent = replace(tangent, shares=shares, subgradient=signs)
    if zeros.size and objective.n_outputs > 1:
        tangent = _without_gauge(tangent, zeros)
    return tangent, Balance(shape, table)


def _without_gauge(tangent: Tangent, zeros: Indices) -> Tangent:
    """With subgradients at zeros such that, summed over the classes, nothing but rounding is left.

    The losses of several classes depend on differences of scores, and moves balance no sum.
    """
    n_outputs, lasso = tangent.objective.n_outputs, tangent.objective.lasso_weights
    free = np.zeros(lasso.size)
    free[zeros] = 1.0
    count = np.maximum(free.reshape(n_outputs, -1).sum(axis=0), 1.0)
    excess = tangent.gradient.reshape(n_outputs, -1).sum(axis=0) / count
    signs = tangent.subgradient - free * np.tile(excess, n_outputs)
    return replace(tangent, subgradient=np.clip(signs, -lasso, lasso))


class _Block(NamedTuple):
    """Columns of the program, what each costs, and how large it may be."""

    table: sparse.csc_array
    costs: Floats
    limits: Floats


class _Program:
    """The program, column by column; rows are the parameters in units of what balances them."""

    def __init__(self, tangent: Tangent, shape: Shape | None, k: float) -> None:
        self.tangent, self.shape, self.k = tangent, shape, k
        self.size = tangent.objective.size
        self.unit = np.ones(self.size)
        if shape is not None:
            self.unit[shape.moves] = 1.0 / shape.metric
        self.blocks: dict[str, _Block] = {}
        self.shares, self.signs = tangent.shares.copy(), tangent.subgradient.copy()

    def add_shares(self, p: Indices, n: Indices, below: Floats) -> None:
        """Shares of functions at ties, which sum to one at each sample."""
        tangent, self.p, self.n = self.tangent, p, n
        self.samples, self.place = np.unique(n, return_inverse=True)
        self.shares[:, self.samples] = 0.0
        rows, objective = tangent.objective.rows, tangent.objective
        X = rows.X[n].toarray() if sparse.issparse(rows.X) else rows.X[n]
        if rows.fit_intercept:
            X = np.column_stack([X, np.ones(n.size)])
        slopes = np.zeros((objective.n_outputs, n.size))
        for one in np.unique(p):
            own = p == one
            slopes[:, own] = tangent.slopes_of(int(one))[:, n[own]]
        weighted = slopes * tangent.masses[n]
        table = (weighted[:, np.newaxis] * X.T[np.newaxis]).reshape(self.size, -1)
        self._add("shares", table * self.unit[:, np.newaxis], tangent.masses[n] * below)

    def add_signs(self, zeros: Indices) -> None:
        """Subgradients l (2 t - 1), t in [0, 1], of absolute parameters that are nearly zero."""
        lasso, parameters = self.tangent.objective.lasso_weights[zeros], self.tangent.parameters
        self.zeros = zeros
        self.signs[zeros] = -lasso
        entries = 2.0 * lasso * self.unit[zeros], (zeros, np.arange(zeros.size))
        table = sparse.csc_array(entries, shape=(self.size, zeros.size))
        self._add("signs", table, -2.0 * lasso * parameters[zeros], np.ones(zeros.size))

    def add_moves(self) -> None:
        """Moves of pairs: along axes, in ℓ2 along the difference of coefficients, too."""
        shape = self.shape
        assert shape is not None
        signs, n_moves = shape.cone.pairs.signs, shape.cone.shape[1]
        differences = signs @ shape.table(self.tangent.parameters)
        slopes = np.linalg.norm(differences, ord={1: inf, 2: 2, inf: 1}[shape.order], axis=1)
        star = signs[:, 0] != 0.0
        if shape.order == inf:
            pairs = np.flatnonzero(star | (slopes >= _STEEP * self.k))
            pair, axis = np.repeat(pairs, n_moves), np.tile(np.arange(n_moves), pairs.size)
        elif shape.order == 1:
            steep = np.abs(differences) >= _STEEP * self.k
            pair, axis = np.nonzero(star[:, np.newaxis] | steep)
        else:
            steepest = slopes >= _STEEPEST * self.k
            pair, axis = np.nonzero((star | steepest)[:, np.newaxis] & np.ones(n_moves, dtype=bool))
        self.pair, self.axis = np.tile(pair, 2), np.tile(axis, 2)
        self.way = np.repeat([1.0, -1.0], pair.size)
        along = self.way * differences[self.pair, self.axis]
        costs = -along if shape.order == inf else self.k - along
        if shape.order == 2:  # beside a long move a short one across it hardly adds to the length
            costs = np.where(steepest[self.pair], _ACROSS * self.k, costs)
        self._add("axes", self._along_axes(shape), costs)
        self.whole = np.flatnonzero(slopes >= _STEEP * self.k) if shape.order == 2 else pair[:0]
        self.direct = differences[self.whole] / slopes[self.whole, np.newaxis]
        table = np.zeros((self.size, self.whole.size))
        directions = signs[self.whole].T[:, np.newaxis] * self.direct.T[np.newaxis]
        table[shape.moves] = directions.reshape(shape.moves.size, -1)
        self._add("straight", table, self.k - slopes[self.whole])
        if shape.order == inf:  # a length for each pair, above all of its axes
            nothing = sparse.csc_array((self.size, pairs.size))
            self._add("lengths", nothing, np.full(pairs.size, self.k))

    def _along_axes(self, shape: Shape) -> sparse.csc_array:
        """Columns of moves along axes, in units of what balances parameters."""
        signs, n_moves = shape.cone.pairs.signs, shape.cone.shape[1]
        output, column = np.nonzero(signs[self.pair].T)
        rows = shape.moves[output * n_moves + self.axis[column]]
        values = signs[self.pair[column], output] * self.way[column]
        return sparse.csc_array((values, (rows, column)), shape=(self.size, self.pair.size))

    def add_left_over(self) -> None:
        """What nothing balances, at a price; nothing of it should be left."""
        one = sparse.eye_array(self.size)
        price = np.full(2 * self.size, _LEFT_OVER * max(self.k, 1.0))
        self._add("left over", sparse.hstack([one, -one]), price)

    def _add(self, name: str, table: Any, costs: Floats, limits: Floats | None = None) -> None:
        limits = np.full(costs.size, inf) if limits is None else limits
        self.blocks[name] = _Block(sparse.csc_array(table), np.asarray(costs), limits)

    def solve(self) -> tuple[Floats, Floats, Floats] | None:
        """Shares, subgradients and moves."""
        base = replace(self.tangent, shares=self.shares, subgradient=self.signs).gradient
        blocks, count = self.blocks.values(), self.samples.size
        cost = np.concatenate([block.costs for block in blocks])
        limits = np.concatenate([block.limits for block in blocks])
        ends = np.cumsum([0, *(block.costs.size for block in blocks)])
        starts = dict(zip(self.blocks, ends.tolist(), strict=False))
        entries = np.ones(self.n.size), (self.place, starts["shares"] + np.arange(self.n.size))
        sums = sparse.csc_array(entries, shape=(count, cost.size))
        above = self._above(starts, cost.size) if "lengths" in starts else None
        found = linprog(
            cost / self.tangent.scale,
            A_ub=above,
            b_ub=None if above is None else np.zeros(above.shape[0]),
            A_eq=sparse.vstack([_FINE * sparse.hstack([block.table for block in blocks]), sums]),
            b_eq=np.concatenate([-_FINE * base * self.unit, np.ones(count)]),
            bounds=np.column_stack([np.zeros(cost.size), limits]),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.x is None:
            return None
        parts = dict(zip(self.blocks, np.split(found.x, ends[1:-1]), strict=True))
        share = np.maximum(parts["shares"], 0.0)
        share /= np.bincount(self.place, share, count)[self.place]
        self.shares[self.p, self.n] = share
        lasso = self.tangent.objective.lasso_weights[self.zeros]
        self.signs[self.zeros] = lasso * (2.0 * np.clip(parts["signs"], 0.0, 1.0) - 1.0)
        table = np.zeros((0, 0))
        if self.shape is not None:
            table = np.zeros((self.shape.cone.pairs.count, self.shape.cone.shape[1]))
            np.add.at(table, (self.pair, self.axis), self.way * parts["axes"])
            np.add.at(table, self.whole, self.direct * parts["straight"][:, np.newaxis])
        return self.shares, self.signs, table

    def _above(self, starts: dict[str, int], n_columns: int) -> sparse.csc_array:
        """The length of a pair is no less than its moves along any axis, there and back."""
        count = self.pair.size // 2
        place = np.unique(self.pair, return_inverse=True)[1][:count]
        axes = starts["axes"] + np.arange(2 * count)
        columns = np.concatenate([axes, starts["lengths"] + place])
        entries = np.repeat([1.0, 1.0, -1.0], count), (np.tile(np.arange(count), 3), columns)
        return sparse.csc_array(entries, shape=(count, n_columns))
