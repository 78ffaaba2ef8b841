r"""Models of norm at most k, as cones: the largest dual norm over the pairs of classes.

A model is a table Z of one row for each output, in units where the norm is plain. Variables of a
cone program are x = (Z, k, aux). Each class below writes its norm as :math:`S x \in K`, and adds
:math:`S^\top W^{-2} S` to the normal equations of an interior-point step, in (Z, k) alone: what
auxiliary variables it has are eliminated and found again afterwards. The first axis of all arrays
counts problems that are solved together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats, Indices
from ..ambiguity import Ambiguity, Wasserstein
from ..losses import Loss
from ..programs.objective import Objective
from .cones import Orthant, OrthantScaling, SecondOrder, SecondOrderScaling, by_problem


class ClassPairs:
    """Differences of the rows of a table, times weights; a single row is its own difference.

    `weights` has one for each pair of rows, in the order of an upper triangle; none are all one.
    """

    def __init__(self, n_outputs: int, weights: tuple[float, ...] = ()) -> None:
        self.n_outputs, self.weights = n_outputs, weights
        first, second = np.triu_indices(n_outputs, 1)
        unit = np.eye(n_outputs)
        self.signs = unit[first] - unit[second] if n_outputs > 1 else unit
        if weights:
            self.signs = self.signs * np.array(weights)[:, np.newaxis]
        self.count = len(self.signs)
        self._squares = (self.signs[:, :, np.newaxis] * self.signs[:, np.newaxis, :]).reshape(
            self.count, -1
        )

    def differences(self, table: Floats) -> Floats:
        return table if self.n_outputs == 1 else self.signs @ table

    def adjoint(self, rows: Floats) -> Floats:
        """Transpose of `differences`."""
        return rows if self.n_outputs == 1 else self.signs.T @ rows

    def add_diagonals(self, matrix: Floats, weights: Floats) -> None:
        """Add the form that weighs each entry of the differences, squared."""
        d, outputs = weights.shape[-1], self.n_outputs
        laplacian = (self._squares.T @ weights).reshape(-1, outputs, outputs, d)
        blocks = matrix.reshape(-1, outputs, d, outputs, d)
        np.einsum("biaja->bija", blocks)[:] += laplacian

    def spread(self, rows: Floats) -> Floats:
        """Each row of a pair as one of the whole table."""
        if self.n_outputs == 1:
            return rows
        table = self.signs[:, :, np.newaxis] * rows[:, :, np.newaxis, :]
        return table.reshape(len(rows), self.count, -1)


class Normal:
    """Normal equations in (Z, k), filled part by part."""

    def __init__(self, n_problems: int, n_main: int) -> None:
        self.main = np.zeros((n_problems, n_main, n_main))
        self.border = np.zeros((n_problems, n_main))
        self.corner = np.zeros(n_problems)

    def add_diagonal(self, of_main: Floats) -> None:
        np.einsum("bii->bi", self.main)[:] += by_problem(of_main)

    def add_squares(self, rows: Floats, last: Floats) -> None:
        """Add the squares of linear forms: rows in Z, last their part in k."""
        across = np.swapaxes(rows, -1, -2)
        self.main += across @ rows
        self.border += (across @ last[..., np.newaxis])[..., 0]
        self.corner += (last**2).sum(axis=-1)


class NormCone:
    """What the norms share."""

    cone: Any

    def __init__(self, n_outputs: int, n_features: int, weights: tuple[float, ...] = ()) -> None:
        self.pairs = ClassPairs(n_outputs, weights)
        self.shape = (n_outputs, n_features)
        self.n_main = n_outputs * n_features

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Tables, k, auxiliary variables."""
        table = x[:, : self.n_main].reshape(len(x), *self.shape)
        return table, x[:, self.n_main], x[:, self.n_main + 1 :]

    def join(self, table: Floats, k: Floats, *auxiliary: Floats) -> Floats:
        rest = (one.reshape(len(k), -1) for one in auxiliary)
        return np.concatenate([table.reshape(len(k), -1), k[:, np.newaxis], *rest], axis=1)

    def start(self, table: Floats, k: Floats) -> Floats:
        """Variables inside the cone, of tables whose norms are below k."""
        return self.join(table, k)

    def eliminate(self, right: Floats, scaling: Any) -> Floats:
        """Right side in (Z, k) alone."""
        return right

    def complete(self, main: Floats, right: Floats, scaling: Any) -> Floats:
        """The variables, from (Z, k) and the right side of all of them."""
        return main


class PairBallCone(NormCone):
    """ℓ2: each pair of classes has a second-order cone."""

    cone = SecondOrder()

    def norm(self, table: Floats) -> Floats:
        longest: Floats = np.linalg.norm(self.pairs.differences(table), axis=-1).max(axis=-1)
        return longest

    def forward(self, x: Floats) -> Floats:
        table, k, _ = self.split(x)
        margin = np.empty((len(x), self.pairs.count, self.shape[1] + 1))
        margin[..., 0] = k[:, np.newaxis]
        margin[..., 1:] = self.pairs.differences(table)
        return margin

    def adjoint(self, y: Floats) -> Floats:
        return self.join(self.pairs.adjoint(y[..., 1:]), y[..., 0].sum(axis=1))

    def add_normal(self, normal: Normal, scaling: SecondOrderScaling) -> None:
        weight = 1.0 / scaling.eta**2
        weights = np.repeat(weight[..., np.newaxis], self.shape[1], axis=-1)
        self.pairs.add_diagonals(normal.main, weights)
        normal.corner -= weight.sum(axis=1)
        rows = np.sqrt(2.0 * weight)[..., np.newaxis] * scaling.w
        normal.add_squares(self.pairs.spread(-rows[..., 1:]), rows[..., 0])


class BoxCone(NormCone):
    """ℓ∞, the dual of ℓ1, of a row or of weighted differences of several: no entry is above k."""

    cone = Orthant()

    def norm(self, table: Floats) -> Floats:
        return np.abs(self.pairs.differences(table)).max(axis=(1, 2))  # type: ignore[no-any-return]

    def forward(self, x: Floats) -> Floats:
        table, k, _ = self.split(x)
        differences, most = self.pairs.differences(table), k[:, np.newaxis, np.newaxis]
        return np.stack([most - differences, most + differences], axis=1)

    def adjoint(self, y: Floats) -> Floats:
        return self.join(self.pairs.adjoint(y[:, 1] - y[:, 0]), by_problem(y).sum(axis=1))

    def add_normal(self, normal: Normal, scaling: OrthantScaling) -> None:
        upper, lower = scaling.weights[:, 0], scaling.weights[:, 1]
        self.pairs.add_diagonals(normal.main, upper + lower)
        normal.border += by_problem(self.pairs.adjoint(lower - upper))
        normal.corner += by_problem(scaling.weights).sum(axis=1)


class CentredBoxCone(NormCone):
    """ℓ∞ of the differences of several rows: entries are at most k / 2 from a centre c.

    Weights would put differences of some rows closer together: `BoxCone`.
    """

    cone = Orthant()

    def norm(self, table: Floats) -> Floats:
        return np.ptp(table, axis=1).max(axis=1)  # type: ignore[no-any-return]

    def start(self, table: Floats, k: Floats) -> Floats:
        return self.join(table, k, (table.max(axis=1) + table.min(axis=1)) / 2.0)

    def forward(self, x: Floats) -> Floats:
        table, k, centre = self.split(x)
        half, away = 0.5 * k[:, np.newaxis, np.newaxis], table - centre[:, np.newaxis]
        return np.stack([half - away, half + away], axis=1)

    def adjoint(self, y: Floats) -> Floats:
        rest = y[:, 1] - y[:, 0]
        return self.join(rest, 0.5 * by_problem(y).sum(axis=1), -rest.sum(axis=1))

    def add_normal(self, normal: Normal, scaling: OrthantScaling) -> None:
        both, skew, total, lean = self._weights(scaling)
        normal.add_diagonal(both)
        outputs, d = self.shape
        blocks = normal.main.reshape(-1, outputs, d, outputs, d)
        products = both[:, :, np.newaxis] * both[:, np.newaxis]
        np.einsum("biaja->bija", blocks)[:] -= products / total[:, np.newaxis, np.newaxis]
        normal.border += 0.5 * by_problem(skew - both * (lean / total)[:, np.newaxis])
        normal.corner += 0.25 * (by_problem(both).sum(axis=1) - (lean**2 / total).sum(axis=1))

    def eliminate(self, right: Floats, scaling: OrthantScaling) -> Floats:
        table, k, centre = self.split(right)
        both, _, total, lean = self._weights(scaling)
        moved = centre / total
        along = (lean * moved).sum(axis=1)
        return self.join(table + both * moved[:, np.newaxis], k + 0.5 * along)

    def complete(self, main: Floats, right: Floats, scaling: OrthantScaling) -> Floats:
        table, k, _ = self.split(main)
        both, _, total, lean = self._weights(scaling)
        pull = right[:, self.n_main + 1 :] + (both * table).sum(axis=1)
        return self.join(table, k, (pull + 0.5 * k[:, np.newaxis] * lean) / total)

    @staticmethod
    def _weights(scaling: OrthantScaling) -> tuple[Floats, Floats, Floats, Floats]:
        upper, lower = scaling.weights[:, 0], scaling.weights[:, 1]
        both, skew = upper + lower, lower - upper
        return both, skew, both.sum(axis=1), skew.sum(axis=1)


class OctahedronCone(NormCone):
    r"""ℓ1, the dual of ℓ∞: sizes t of the entries of a difference sum to at most k.

    :math:`t - \delta \ge 0`, :math:`t + \delta \ge 0`, :math:`k - \sum t \ge 0` for each pair.
    """

    cone = Orthant()

    def norm(self, table: Floats) -> Floats:
        return np.abs(self.pairs.differences(table)).sum(axis=2).max(axis=1)  # type: ignore[no-any-return]

    def start(self, table: Floats, k: Floats) -> Floats:
        sizes = np.abs(self.pairs.differences(table))
        room = k[:, np.newaxis, np.newaxis] - sizes.sum(axis=2, keepdims=True)
        return self.join(table, k, sizes + room / (2.0 * self.shape[1]))

    def forward(self, x: Floats) -> Floats:
        table, k, auxiliary = self.split(x)
        sizes = auxiliary.reshape(len(x), self.pairs.count, -1)
        differences = self.pairs.differences(table)
        total = k[:, np.newaxis, np.newaxis] - sizes.sum(axis=2, keepdims=True)
        return np.concatenate([sizes - differences, sizes + differences, total], axis=2)

    def adjoint(self, y: Floats) -> Floats:
        above, below, total = self._parts(y)
        k = total.sum(axis=(1, 2))
        return self.join(self.pairs.adjoint(below - above), k, above + below - total)

    def add_normal(self, normal: Normal, scaling: OrthantScaling) -> None:
        # Minimised over t, the form of a pair is Σ 4ab/(a+b) δ² + f (k + Σ (b-a)/(a+b) δ)².
        above, below, both, coupling = self._weights(scaling)
        self.pairs.add_diagonals(normal.main, 4.0 * above * below / both)
        root = np.sqrt(coupling)
        normal.add_squares(self.pairs.spread(root * (below - above) / both), root[..., 0])

    def eliminate(self, right: Floats, scaling: OrthantScaling) -> Floats:
        table, k, auxiliary = self.split(right)
        above, below, both, coupling = self._weights(scaling)
        sizes = self._sizes(auxiliary.reshape(both.shape), both, coupling)
        total = self._parts(scaling.weights)[2]
        rest = table - self.pairs.adjoint((below - above) * sizes)
        return self.join(rest, k + (total * sizes).sum(axis=(1, 2)))

    def complete(self, main: Floats, right: Floats, scaling: OrthantScaling) -> Floats:
        table, k, _ = self.split(main)
        above, below, both, coupling = self._weights(scaling)
        auxiliary = right[:, self.n_main + 1 :].reshape(both.shape)
        pull = (below - above) * self.pairs.differences(table)
        pull = pull - self._parts(scaling.weights)[2] * k[:, np.newaxis, np.newaxis]
        return self.join(table, k, self._sizes(auxiliary - pull, both, coupling))

    def _parts(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        d = self.shape[1]
        return y[..., :d], y[..., d : 2 * d], y[..., 2 * d :]

    def _weights(self, scaling: OrthantScaling) -> tuple[Floats, Floats, Floats, Floats]:
        above, below, total = self._parts(scaling.weights)
        both = above + below
        return above, below, both, total / (1.0 + total * (1.0 / both).sum(axis=2, keepdims=True))

    @staticmethod
    def _sizes(right: Floats, both: Floats, coupling: Floats) -> Floats:
        """Solve for t: the matrix of a pair is diagonal plus a constant (Sherman–Morrison)."""
        simple = right / both
        result: Floats = simple - coupling * simple.sum(axis=2, keepdims=True) / both
        return result


class Ray(NormCone):
    """k ≥ 0, where it bounds no norm."""

    cone = Orthant()

    def __init__(self) -> None:
        super().__init__(n_outputs=1, n_features=0)

    def norm(self, table: Floats) -> Floats:
        return np.zeros(len(table))

    def forward(self, x: Floats) -> Floats:
        return x.copy()

    def adjoint(self, y: Floats) -> Floats:
        return y.copy()

    def add_normal(self, normal: Normal, scaling: OrthantScaling) -> None:
        normal.corner += scaling.weights[:, 0]


@cache
def norm_cone(norm: float, n_outputs: int, n_features: int, weights: tuple[float, ...] = ()) -> Any:
    """The cone of the norm that is dual to the norm of a move; `weights` are of pairs of rows."""
    box = BoxCone if weights or n_outputs == 1 else CentredBoxCone
    cones: dict[float, Any] = {1: box, 2: PairBallCone, inf: OctahedronCone}
    return cones[norm](n_outputs, n_features, weights)


@dataclass(frozen=True, eq=False)
class Shape:
    """The cone of (θ, k) in which k bounds the slope of every loss as features move.

    The slope is the norm of the parameters in `moves`, times `metric`; `order` is the order of the
    norm of a move, to which that norm is dual.
    """

    cone: Any
    moves: Indices
    metric: Floats
    order: float = 2

    @classmethod
    def of(cls, objective: Objective, ambiguity: Ambiguity) -> Shape:
        """The cone of an ambiguity; where features do not move, k only has to be positive."""
        if not isinstance(ambiguity, Wasserstein):
            return cls(Ray(), np.zeros(0, dtype=np.intp), np.zeros(0))
        rows, n_outputs = objective.rows, objective.n_outputs
        mobility, loss = ambiguity.mobility(rows.X.shape[1]), objective.loss
        metric = objective.per_parameter(mobility / rows.scale * loss.steepness)
        moves = np.flatnonzero(metric > 0.0)
        weights = _pair_weights(loss, n_outputs)
        cone = norm_cone(ambiguity.norm, n_outputs, moves.size // n_outputs, weights)
        return cls(cone, moves, metric[moves], ambiguity.norm)

    def table(self, parameters: Floats) -> Floats:
        """The parameters as the cone has them."""
        return (parameters[self.moves] * self.metric).reshape(self.cone.shape)

    def norm(self, parameters: Floats) -> float:
        return float(self.cone.norm(self.table(parameters)[np.newaxis])[0])


def _pair_weights(loss: Loss, n_outputs: int) -> tuple[float, ...]:
    """Steepness of a loss by pairs of classes, the larger of both ways, over the largest of all.

    None where all are alike, as those of two classes are, or of a loss without costs.
    """
    if loss.pair_cost is None or n_outputs == 1:
        return ()
    steepness = loss.pair_steepness(n_outputs)
    both = np.maximum(steepness, steepness.T)[np.triu_indices(n_outputs, 1)]
    return () if np.ptp(both) == 0.0 else tuple((both / loss.steepness).tolist())
