r"""General transport as cones, for cvxpy, and the numbers that its multipliers prove.

For a linear piece of slope w, in units of the cost, and a sample at z

.. math:: \sup_{x \in \mathcal X} w^\top (x - z) - k h(x - z)
          = \min_v \, \delta^*(v) - v^\top z + k h^*((w - v) / k) .

Without a support v is zero and the gain is the same for all samples. In ℓ1 inside a box it is
:math:`\sum_j (w_j - k)_+ (u_j - z_j) + (-w_j - k)_+ (z_j - l_j)`, linear in the gains of the
features. Else each sample and piece has a vector v. Any v gives an upper bound, so what is read
back from a solver holds however accurate it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from .._typing import Floats, Indices, Mask
from ..ambiguity import Box, Norm, Support, Transport, TransportCost
from ..ambiguity.costs import NormCost
from ..losses import Pieces


@dataclass(frozen=True, eq=False)
class CostUnits:
    """Samples in units in which moves cost about one.

    Attributes
    ----------
    z : ndarray of shape (n, d)
        The samples, centred.
    unit : ndarray of shape (d,)
        User's units in one of these, for each feature.
    price : float
        A price k in the user's units is k times this one here.
    moving : mask of shape (d,)
    cost : TransportCost
    support : Support, optional
    """

    z: Floats
    unit: Floats
    price: float
    moving: Mask
    cost: TransportCost
    support: Support | None

    @classmethod
    def of(cls, X: Floats, ambiguity: Transport, deviations: Floats) -> CostUnits:
        """Units for samples in the user's units with these deviations."""
        mobility = ambiguity.mobility(X.shape[1])
        moving = mobility > 0.0
        length = float(np.median(deviations[moving] / mobility[moving]))
        price, cost = ambiguity.cost.rescaled(length)
        unit = np.where(moving, mobility * length, deviations)
        centre = X.mean(axis=0)
        support = None
        if ambiguity.support is not None:
            support = ambiguity.support.in_units(centre, unit)
        return cls((X - centre) / unit, unit, price, moving, cost, support)


@dataclass(frozen=True, eq=False)
class PieceBound:
    """One piece for some samples, in the program: values without what moves of price k add.

    `rests` is an equation of the slopes that are paid for, of which the multipliers are moves.
    """

    rows: Indices
    label: int
    flipped: bool
    base: Any
    gain: Any
    slope: Any
    dual: Any = None
    rests: Any = None


@dataclass(eq=False)
class PieceCones:
    """Upper bounds of the worst losses of the samples, for cvxpy.

    Parameters
    ----------
    cp : module
    pieces : Pieces
    y : ndarray of shape (n,)
    scores : expression or ndarray of shape (n, outputs)
    slopes : expression or ndarray of shape (outputs, d)
        Coefficients in units of the cost.
    price : expression or float
        k in units of the cost.
    units : CostUnits
    label_cost : float
        γ times the price k in the user's units is paid for another label: γ / `units.price` here.
    traced : bool
        Whether slopes of samples have equations of their own, whose multipliers are moves.
    """

    cp: Any
    pieces: Pieces
    y: Indices
    scores: Any
    slopes: Any
    price: Any
    units: CostUnits
    label_cost: float
    traced: bool = False
    limits: list[Any] = field(default_factory=list)
    bounds: list[PieceBound] = field(default_factory=list)
    #: Of each bound: no worst loss is below it.
    above: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        cp, count = self.cp, len(self.pieces.slopes)
        steps = range(count if self.label_cost < inf else 1)
        self.worst = cp.Variable(self.y.size)
        shared: dict[tuple[int, int], Any] = {}
        for step in steps:
            labels = (self.y + step) % count
            for label in range(count):
                rows = np.flatnonzero(labels == label)
                if rows.size:
                    for i in range(self.pieces.slopes.shape[1]):
                        self._add(rows, label, i, step > 0, shared)
        for bound in self.bounds:
            paid = self.label_cost / self.units.price * self.price if bound.flipped else 0.0
            self.above.append(bound.base + bound.gain - paid <= self.worst[bound.rows])
        self.limits += self.above

    def _add(self, rows: Indices, label: int, i: int, flipped: bool, shared: Any) -> None:
        slope, offset = self.pieces.slopes[label, i], self.pieces.offsets[label, i]
        base = self.scores[rows] @ slope + offset
        if not slope.any():
            self.bounds.append(PieceBound(rows, label, flipped, base, 0.0, None))
            return
        steep = slope @ self.slopes
        if self.units.support is None:
            if (label, i) not in shared:
                shared[label, i] = self._free(self._row(steep)[:, self.units.moving])
            self.bounds.append(PieceBound(rows, label, flipped, base, shared[label, i], steep))
        elif self._by_feature:
            if (label, i) not in shared:
                shared[label, i] = self._features(steep)
            up, down = shared[label, i]
            low, high = self._ends
            z = self.units.z[rows]
            above = np.where(np.isinf(high), 0.0, high - z)
            below = np.where(np.isinf(low), 0.0, z - low)
            gain = np.maximum(above, 0.0) @ up + np.maximum(below, 0.0) @ down
            self.bounds.append(PieceBound(rows, label, flipped, base, gain, steep))
        else:
            self.bounds.append(self._supported(rows, label, flipped, base, steep))

    @property
    def _by_feature(self) -> bool:
        return (
            isinstance(self.units.cost, Norm)
            and self.units.cost.order == 1
            and isinstance(self.units.support, Box)
        )

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """The box; features that cannot move have no room."""
        assert isinstance(self.units.support, Box)
        low, high = (np.broadcast_to(end, self.units.unit.size) for end in self.units.support.ends)
        return low, high

    def _row(self, vector: Any) -> Any:
        return self.cp.reshape(vector, (1, self.units.unit.size), order="C")

    def _free(self, steep: Any) -> Any:
        gain, limits = self.units.cost.cone(self.cp, steep, self.price)
        self.limits += limits
        return gain[0]

    def _features(self, steep: Any) -> tuple[Any, Any]:
        """What each feature gains beyond its price, upwards and downwards."""
        cp, (low, high) = self.cp, self._ends
        moving, found = self.units.moving, []
        for sign, end in ((1.0, high), (-1.0, low)):
            part = cp.Variable(moving.size, nonneg=True)
            open_ = moving & np.isinf(end)
            self.limits.append(sign * steep[moving] - self.price <= part[moving])
            if open_.any():
                self.limits.append(part[open_] == 0.0)
            if not moving.all():
                self.limits.append(part[~moving] == 0.0)
            found.append(part)
        return found[0], found[1]

    def _supported(
        self, rows: Indices, label: int, flipped: bool, base: Any, steep: Any
    ) -> PieceBound:
        cp, z, moving = self.cp, self.units.z[rows], self.units.moving
        assert self.units.support is not None
        dual = self.units.support.dual(cp, rows.size, moving.size)
        rest = (np.ones((rows.size, 1)) @ self._row(steep) - dual.slopes)[:, moving]
        rests = None
        if self.traced:
            own = cp.Variable(rest.shape)
            rests, rest = own == rest, own
            self.limits.append(rests)
        if isinstance(self.units.cost, NormCost):
            self.limits.append(self.units.cost.dual_cone(cp, rest) <= self.price)
            paid = 0.0
        else:
            paid, limits = self.units.cost.cone(cp, rest, self.price)
            self.limits += limits
        self.limits += dual.limits
        gain = dual.bound - cp.sum(cp.multiply(z, dual.slopes), axis=1) + paid
        return PieceBound(rows, label, flipped, base, gain, steep, dual, rests)


def size_of(pieces: Pieces, y: Indices, ambiguity: Transport, n_features: int) -> int:
    """Numbers in the per-sample vectors of a program; zero if it has none."""
    support, cost = ambiguity.support, ambiguity.cost
    if support is None or (isinstance(support, Box) and cost == Norm(1)):
        return 0
    bent = pieces.slopes.any(axis=2).sum(axis=1)
    per_sample = bent.sum() if ambiguity.moves_labels else bent[y].mean()
    return int(per_sample * y.size * n_features)
