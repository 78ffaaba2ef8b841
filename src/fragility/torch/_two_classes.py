"""The equation of two classes, with the sums over samples computed on their device.

The method is the one of `fragility.index.root`. Both classes are read at once, with the scores of
class 1 negated. This leaves few calls, so that the device seldom waits.
"""

from __future__ import annotations

from math import inf, log, log1p
from typing import NamedTuple

import torch
from torch import Tensor

from ..index.root import Equation, Point
from ..moments import LogMoment, neg_log_share
from ._root import CANCELS, exp_remainder

_LEAST = 5e-324


class _Group(NamedTuple):
    """Values of one class: see `fragility.moments.ValueGroup`."""

    weight: float
    mean: float
    pivot: float
    reached: float
    spread: float
    neg_log_top_share: float
    mean_residual: float
    variance: float

    def log_moment(self, s: float) -> LogMoment:
        raise NotImplementedError("TwoClasses takes the moments of both classes at once.")


class Summary:
    """Labelled scores of two classes, signed, with sums and extremes from one reading.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Scores of class 1, used in float64.
    y_true : Tensor of shape (n,), int64
    weights : Tensor of shape (n,), float64, or None
    also : sequence of Tensor
        Further scalars to copy to the host in the same transfer.

    Attributes
    ----------
    values : Tensor of shape (n,)
        Scores of class 0, and minus those of class 1.
    shares : Tensor of shape (2, n)
        Weight of each sample in each class, mostly zero.
    labelled : int
        Number of samples of class 0 or 1.
    members : list of int
        Samples of positive weight in each class.
    extents : list of list of float
        Weight, smallest value, largest value and weighted sum of each class.
    also : list of float
    """

    def __init__(
        self, scores: Tensor, y_true: Tensor, weights: Tensor | None, also: list[Tensor]
    ) -> None:
        self.y_true = y_true
        of_class = y_true == torch.arange(2, device=y_true.device)[:, None]
        scores = scores.to(torch.float64)
        self.values = torch.where(of_class[1], -scores, scores)
        self.shares = of_class.to(torch.float64)
        inside, members = of_class, self.shares.sum(1)
        weight = counts = members
        if weights is not None:
            inside = of_class & (weights > 0.0)
            self.shares = torch.where(inside, weights, 0.0)
            # Only ratios within a class matter; those of large numbers may overflow.
            self.shares = self.shares / self.shares.amax(1, keepdim=True).clamp_min(_LEAST)
            counts, weight = inside.sum(1), self.shares.sum(1)
        self.inside = None if weights is None else inside.any(0)
        low = torch.where(inside, self.values, inf).amin(1)
        high = torch.where(inside, self.values, -inf).amax(1)
        sums = self.shares @ self.values
        parts = [members, counts, weight, low, high, sums, *(a.reshape(1) for a in also)]
        found = torch.cat(parts).tolist()
        self.labelled, self.members = int(sum(found[:2])), [int(n) for n in found[2:4]]
        self.also = found[12:]
        self.extents = [found[first:12:2] for first in (4, 5)]


class TwoClasses(Equation):
    """h(s) of two classes."""

    groups: list[_Group]

    def __init__(self, summary: Summary, target: float) -> None:
        self.values, self.y_true, self.shares = summary.values, summary.y_true, summary.shares
        centres = [min(max(total / weight, a), b) for weight, a, b, total in summary.extents]
        means, largest = self._of_samples([centres, [high for _, _, high, _ in summary.extents]])
        if summary.inside is not None:  # samples without weight must not overflow
            self.values = torch.where(summary.inside, self.values, means)
        self._centred = self.values - means
        # Weights times powers of the centred values: the moments are sums of these terms.
        powers = [torch.ones_like(means), self._centred, self._centred * self._centred]
        self._basis = self.shares[:, None] * torch.stack(powers)
        reached = self.values >= largest
        ends = self.shares @ torch.stack([reached, ~reached]).to(torch.float64).T
        sums = torch.cat([self._basis.sum(-1), ends], 1).tolist()
        groups = []
        for mean, (weight, low, high, _), moments in zip(
            centres, summary.extents, sums, strict=True
        ):
            _, first, second, at_largest, below = moments
            top = neg_log_share(at_largest, below)
            extent = high, high, high - low
            groups.append(_Group(weight, mean, *extent, top, first / weight, second / weight))
        super().__init__(groups, target)

    def _of_samples(self, of_classes: list[list[float]]) -> Tensor:
        """From one number per class to one per sample: from (m, 2) to (m, n)."""
        table = torch.tensor(of_classes, dtype=torch.float64).to(self.y_true.device)
        return table[:, self.y_true]

    def __call__(self, s: float) -> Point:
        if self.is_steep(s):
            return self._point(s, self._about_largest(s), self.gap)
        return self._point(s, self._about_means(s), self._mean_gap)

    def _about_means(self, s: float) -> list[LogMoment]:
        u = s * self._centred
        growth = torch.expm1(u)
        sums = self._basis @ growth
        if s * self.margin < CANCELS:
            sums = torch.cat([sums, self.shares[:, None] @ exp_remainder(u, growth)], 1)
        moments = []
        for group, (of_growth, first, second, *careful) in zip(
            self.groups, sums.tolist(), strict=True
        ):
            above_one = of_growth / group.weight
            if careful:
                above_one = s * group.mean_residual + careful[0] / group.weight
            slope = (group.mean_residual + first / group.weight) / (1.0 + above_one)
            curvature = (group.variance + second / group.weight) / (1.0 + above_one)
            moments.append(LogMoment(log1p(above_one), slope, curvature - slope * slope))
        return moments

    def _about_largest(self, s: float) -> list[LogMoment]:
        below = self._below_largest()
        u = s * below
        tilted = torch.exp(u)
        first = tilted * below
        terms = torch.stack([torch.expm1(u), tilted, first, first * below])
        moments = []
        for group, sums in zip(self.groups, (self.shares @ terms.T).tolist(), strict=True):
            missing, total, first_sum, second_sum = sums
            share, slope = total / group.weight, first_sum / total
            # Where most weight is next to the largest value, the distance to one is more exact.
            value = log(share) if share < 0.6 else log1p(missing / group.weight)
            moments.append(LogMoment(value, slope, second_sum / total - slope * slope))
        return moments

    def _below_largest(self) -> Tensor:
        return self.values - self._of_samples([[g.pivot for g in self.groups]])[0]

    def gradient(self, s: float) -> Tensor:
        """Gradient of the index with respect to the scores of class 1."""
        below = self._below_largest()
        tilted = torch.exp(s * below)
        # The terms of the slope must not cancel: see `Equation.is_steep`.
        from_here, gap = (below, self.gap) if self.is_steep(s) else (self._centred, self._mean_gap)
        sums = self.shares @ torch.stack([tilted, tilted * from_here]).T
        (zero, zero_first), (one, one_first) = sums.tolist()
        slope = gap + zero_first / zero + one_first / one
        lift = self._of_samples([[1.0 / (zero * s * slope), -1.0 / (one * s * slope)]])[0]
        return tilted * lift * self.shares.sum(0)
