"""Moves of features and labels that are paid for by their length."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

import numpy as np

from .._typing import Floats
from .base import Ambiguity
from .label_moves import LabelMoves
from .profile import LossProfile, TransportProfile, WorstLoss


class NormMoves(Ambiguity):
    """An ambiguity whose worst case is known from losses, one slope and relabelled losses."""

    @abstractmethod
    def dual_norms(self, vectors: Floats) -> Floats:
        """Steepest slope of each linear function (rows) along moves of cost one."""

    @abstractmethod
    def steepest_moves(self, vectors: Floats) -> Floats:
        """Move of cost one along which each linear function (rows) rises most."""

    def steepest(self, differences: Floats) -> float:
        return float(self.dual_norms(differences).max(initial=0.0))

    @np.errstate(over="ignore", under="ignore")
    def fragility(self, profile: LossProfile, room: float) -> float:
        if isinstance(profile, TransportProfile):
            return profile.fragility(room)
        if profile.mean > room + 1e-8 * abs(room):  # beyond rounding
            return inf
        moves = self._label_moves(profile)
        if moves is None:
            return profile.slope
        return self._per_distance(profile, moves.price_of_sum(max(room - profile.mean, 0.0)))

    @np.errstate(over="ignore", under="ignore")
    def worst_loss(self, profile: LossProfile, radius: float) -> WorstLoss:
        if isinstance(profile, TransportProfile):
            return profile.worst(radius)
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
