"""Optimal transport of order one: samples move, at the cost of the distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from .._parameters import check_choice, check_positive_or_inf
from .._typing import Floats, Mask
from .._validation import check_values
from .base import Ambiguity
from .label_moves import LabelMoves
from .profile import LossProfile, WorstLoss

_DUAL = {1: inf, 2: 2, inf: 1}


@dataclass(frozen=True, repr=False)
class Wasserstein(Ambiguity):
    r"""Shifts of the features and labels, at the cost of 1-Wasserstein transport.

    Moving a sample from :math:`(x, y)` to :math:`(x', y')` costs
    :math:`\lVert g \cdot (x' - x) \rVert + \gamma 1(y \ne y')`. The intercept is not a feature.

    With K the slope of the losses as features move, :math:`o_n` the loss of a sample and
    :math:`f_n` its largest with another label, the fragility of a model is the smallest
    :math:`k \ge K` with :math:`\sum_n a_n \max(o_n, f_n - k \gamma) \le \tau - R`.

    Parameters
    ----------
    norm : {1, 2, inf}, default=2
        The norm of a move. A shift of one feature by one unit costs one in each of them; in ℓ1 a
        move costs the sum over its features, in ℓ∞ only the largest.
    label_cost : float, default=inf
        Cost :math:`\gamma` of another label; infinite: labels do not move.
    feature_weight : sequence of d positive numbers, optional
        Cost :math:`g_j` of a unit of each feature. Infinite: the feature cannot shift, such as an
        age on a passport, and its coefficient is free.

    Examples
    --------
    >>> from fragility.ambiguity import Wasserstein
    >>> Wasserstein(norm=1).dual_norms([[3.0, -4.0], [1.0, 1.0]])
    array([4., 1.])
    """

    norm: float = 2
    label_cost: float = inf
    feature_weight: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.norm, bool):
            raise ValueError(f"norm must be one of 1, 2, inf; got {self.norm!r}.")
        check_choice(self.norm, (1, 2, inf), "norm")
        check_positive_or_inf(self.label_cost, "label_cost")
        if self.feature_weight is not None:
            given = check_values(self.feature_weight, "feature_weight").astype(np.float64)
            if given.ndim != 1 or not np.all(given > 0.0):
                raise ValueError(
                    "feature_weight must be one positive number for each feature (inf for one "
                    f"that cannot shift); got {self.feature_weight!r}."
                )
            # A tuple, so that two of the same are equal and hash alike.
            object.__setattr__(self, "feature_weight", tuple(given.tolist()))

    def __repr__(self) -> str:
        parts = [f"norm={self.norm}"]
        if self.label_cost < inf:
            parts.append(f"label_cost={self.label_cost}")
        if self.feature_weight is not None:
            shown = ", ".join(f"{weight:g}" for weight in self.feature_weight[:6])
            more = ", ..." if len(self.feature_weight) > 6 else ""
            parts.append(f"feature_weight=({shown}{more})")
        return f"Wasserstein({', '.join(parts)})"

    @property
    def is_euclidean(self) -> bool:
        return self.norm == 2 and self.feature_weight is None

    def mobility(self, n_features: int) -> Floats:
        """How far each feature moves at a cost of one; 0 for one that cannot shift."""
        if self.feature_weight is None:
            return np.ones(n_features)
        if len(self.feature_weight) != n_features:
            raise ValueError(
                f"feature_weight has {len(self.feature_weight)} entries; X has {n_features} "
                "features. Give one for each."
            )
        return 1.0 / np.asarray(self.feature_weight)

    def fixed(self, n_features: int) -> Mask:
        fixed: Mask = self.mobility(n_features) == 0.0
        return fixed

    def dual_norms(self, vectors: Floats) -> Floats:
        """Steepest slope of each linear function (rows) along moves of cost one."""
        rows = np.asarray(vectors, dtype=np.float64)
        rows = rows * self.mobility(rows.shape[1])
        # In units of their largest entry, by a power of two: squares stay in range.
        unit = np.exp2(np.frexp(np.abs(rows).max(initial=0.0))[1] - 1.0)
        norms: Floats = unit * np.linalg.norm(rows / unit, ord=_DUAL[self.norm], axis=1)
        return norms

    def steepest(self, differences: Floats) -> float:
        return float(self.dual_norms(differences).max(initial=0.0))

    @np.errstate(over="ignore", under="ignore")
    def fragility(self, profile: LossProfile, room: float) -> float:
        if profile.mean > room + 1e-8 * abs(room):  # beyond rounding
            return inf
        moves = self._label_moves(profile)
        if moves is None:
            return profile.slope
        return self._per_distance(profile, moves.price_of_sum(max(room - profile.mean, 0.0)))

    @np.errstate(over="ignore", under="ignore")
    def worst_loss(self, profile: LossProfile, radius: float) -> WorstLoss:
        moves = self._label_moves(profile)
        if moves is None:
            multiplier, level = profile.slope, profile.mean
        else:
            price = moves.price_of_share(radius / self.label_cost)
            multiplier = self._per_distance(profile, price)
            level = profile.mean + moves.added(price)
        paid = multiplier * radius if radius > 0.0 else 0.0
        return WorstLoss(level + paid, multiplier, level)

    def _label_moves(self, profile: LossProfile) -> LabelMoves | None:
        """Relabelling at costs above what features can do; None if labels do not move."""
        if not self.moves_labels:
            return None
        if profile.relabelled is None:
            raise ValueError(
                f"Under {self!r} labels move: the LossProfile needs `relabelled`, the largest loss "
                "of each sample with another label."
            )
        gains = profile.relabelled - profile.losses
        return LabelMoves(gains, profile.weights, float(profile.slope * self.label_cost))

    def _per_distance(self, profile: LossProfile, price: float) -> float:
        """A price of another label, per unit of distance; exactly the slope at the lowest."""
        if price <= profile.slope * self.label_cost:
            return profile.slope
        return float(price / self.label_cost)
