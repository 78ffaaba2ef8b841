"""Cross-entropy: minus the logarithm of the probability of the true class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from .._typing import Floats
from .base import Codes, LossPoint, PairCost, margins, signs
from .pair_costs import PairCostLoss


@dataclass(frozen=True, repr=False)
class CrossEntropy(PairCostLoss):
    r"""Logistic loss: :math:`\ln(1 + e^{-m})`, or :math:`\ln \sum_c e^{u_c} - u_y`.

    Parameters
    ----------
    pair_cost : array-like or DataFrame of shape (n_classes, n_classes), optional
        Cost of each class (row) taken for each other one, positive; zero on the diagonal. Rows and
        columns are the sorted classes, or those that label a DataFrame. The loss is
        :math:`\ln(1 + \sum_{j \ne y} c_{yj} e^{u_j - u_y})`: far out its slope is what it is
        without costs. Its scores are no logits of probabilities then: calibrate them.
    """

    pair_cost: PairCost | None = None
    #: Another label changes it by the difference of two scores itself.
    relabelling: ClassVar[float] = 1.0

    @property
    def relabelled_by_gap(self) -> bool:  # type: ignore[override]
        """With costs, another label adds more than a gap."""
        return self.pair_cost is None

    def relabelling_bound(self, n_classes: int, spread: float) -> float:
        if self.pair_cost is None:
            return super().relabelling_bound(n_classes, spread)
        # The gap, and the logarithm of two sums of the same exponentials with other costs.
        logs = self._logs(n_classes)
        return spread + float(np.ptp(logs, axis=0).max())

    def best_constant(self, shares: Floats) -> Floats | None:
        known = self.pair_cost is None and shares.min() > 0.0
        return np.log(shares) if known else None

    def at(self, scores: Floats, y: Codes) -> LossPoint:
        point = _OfOneScore if scores.ndim == 1 else _OfSeveralScores
        if self.pair_cost is not None:  # a cost is an exponential of a score that is higher by this
            logs = self._logs(len(self.pair_cost))[y]
            two = scores.ndim == 1
            scores = scores + (logs[:, 1] - logs[:, 0] if two else logs)
        return point(self, scores, y)

    def _logs(self, n_classes: int) -> Floats:
        """Logarithms of the costs, zero for a class itself."""
        return np.log(np.asarray(self.pair_cost) + np.eye(n_classes))

    def value(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).value

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        return self.at(scores, y).curvature()


class _OfOneScore(LossPoint):
    """Two classes: everything from the odds of the less likely one."""

    @cached_property
    def _odds(self) -> Floats:
        """At most one, so that nothing overflows."""
        odds: Floats = np.exp(-np.abs(self.scores))
        return odds

    @cached_property
    def value(self) -> Floats:
        # np.logaddexp(0, -margin), which takes three times as long
        return np.log1p(self._odds) - np.minimum(margins(self.scores, self.y), 0.0)

    @cached_property
    def gradient(self) -> Floats:
        odds, sign = self._odds, signs(self.y)
        wrong = np.where(sign * self.scores > 0.0, odds, 1.0)
        slope: Floats = -sign * (wrong / (1.0 + odds))
        return slope

    def curvature(self, part: slice = slice(None)) -> Floats:
        odds = self._odds[part]
        bend: Floats = odds / (1.0 + odds) ** 2
        return bend


class _OfSeveralScores(LossPoint):
    """Several classes: everything from the odds of each against the most likely one."""

    @cached_property
    def _parts(self) -> tuple[Floats, Codes, Floats]:
        """Odds, of the leader itself 0; the leader; and the sum of the others."""
        rows = np.arange(self.y.size)
        leader = self.scores.argmax(axis=1)
        odds = np.exp(self.scores - self.scores[rows, leader][:, np.newaxis])
        odds[rows, leader] = 0.0  # it counts one, and a small sum of the others keeps its digits
        return odds, leader, odds.sum(axis=1)

    @cached_property
    def _shares(self) -> Floats:
        """Softmax of each row."""
        odds, leader, others = self._parts
        shares: Floats = odds / (1.0 + others)[:, np.newaxis]
        shares[np.arange(self.y.size), leader] = 1.0 / (1.0 + others)
        return shares

    @cached_property
    def value(self) -> Floats:
        _, leader, others = self._parts
        rows = np.arange(self.y.size)
        lead = self.scores[rows, leader] - self.scores[rows, self.y]
        several: Floats = lead + np.log1p(others)
        return several

    @cached_property
    def gradient(self) -> Floats:
        gradient = self._shares.copy()
        gradient[np.arange(self.y.size), self.y] -= 1.0
        return gradient

    def curvature(self, part: slice = slice(None)) -> Floats:
        p = self._shares[part]
        curvature: Floats = -p[:, :, np.newaxis] * p[:, np.newaxis, :]
        diagonal = np.arange(p.shape[1])
        curvature[:, diagonal, diagonal] += p
        return curvature

    def lower_curvature(self, part: slice = slice(None)) -> Floats:
        p = self._shares[part]
        first, second = np.tril_indices(p.shape[1])
        triangles: Floats = -p[:, first] * p[:, second]
        triangles[:, first == second] += p
        return triangles
