"""Mixtures of models that were summed: what is known of them without another reading."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple

from .._typing import Floats
from ..programs.row_sums import SummedPoint
from ..programs.targets import Target
from ..solvers.passes import LeastNorm


@dataclass
class Reached:
    """What readings have found up to now.

    Attributes
    ----------
    target : Target
    parameters : ndarray
    loss : float
        Penalised mean loss of this model, or a number just above it.
    fragility : float
    gap : float
        How far the fragility may be above its minimum, relatively.
    slope : float
        How fast it falls as the target rises.
    largest, spread : float
        Largest loss, and largest difference of scores, or numbers above them.
    """

    target: Target
    parameters: Floats
    loss: float
    fragility: float
    gap: float
    slope: float
    largest: float
    spread: float


class _Mixture(NamedTuple):
    """A mixture of two models that were summed, with its norm and bounds by convexity."""

    norm: float
    parameters: Floats
    loss: float
    largest: float
    spread: float


def shortest_mixture(
    target: Target, least: LeastNorm, point: SummedPoint, known: list[SummedPoint]
) -> Reached | None:
    """The shortest mixture of models that is known to meet the target; None if none does.

    `point` is the one that the search is at.
    """
    known = sorted(known, key=lambda one: one.value)
    found = [(one, one, 0.0) for one in known if one.value <= target.value]
    for inside, outside in pairwise(known):
        if inside.value <= target.value < outside.value:
            share = (target.value - inside.value) / (outside.value - inside.value)
            found.append((inside, outside, share))
    if not found:
        return None
    best = min((_mixed(least, *one) for one in found), key=lambda one: one.norm)
    lower = least.k + least.multiplier * (point.value - target.value) - least.gap
    gap = abs(best.norm - lower) / best.norm if best.norm > 0.0 else 0.0
    if not least.multiplier > 0.0:
        gap = inf
    ends = gap, least.multiplier, best.largest, best.spread
    return Reached(target, best.parameters, best.loss, best.norm, *ends)


def _mixed(least: LeastNorm, inside: SummedPoint, outside: SummedPoint, share: float) -> _Mixture:
    """A share of the way from one model to another."""

    def between(first: float, second: float) -> float:
        return first + share * (second - first)

    mixed = inside.parameters + share * (outside.parameters - inside.parameters)
    return _Mixture(
        least.norm(mixed),
        mixed,
        between(inside.value, outside.value),
        between(inside.sums.largest, outside.sums.largest),
        between(inside.sums.spread, outside.sums.spread),
    )
