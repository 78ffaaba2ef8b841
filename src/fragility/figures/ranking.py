"""How well scores tell classes apart: index, ratio, AUC, buffered AUC, CVaR and KS."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from .._typing import Floats
from ..index.influence import influences
from ..measured import CVAR_LEVEL
from .ranking_errors import PairScores, Side
from .scored import Estimate, Scored


def fragility_index(model: Scored) -> Estimate:
    """Estimate the Fragility Index, the tail risk of confident ranking errors."""
    return _of_index(model, ratio=False)


def fragility_ratio(model: Scored) -> Estimate:
    """Estimate the index relative to the distance of the class means."""
    return _of_index(model, ratio=True)


def _of_index(model: Scored, *, ratio: bool) -> Estimate:
    index = model.index
    value = index.ratio if ratio else index.value
    if not isfinite(index.value):  # no single case moves it, which does not make it certain
        return Estimate(value, np.full(model.y.size, np.nan))
    with np.errstate(under="ignore", over="ignore"):
        by_case, removal = (
            influences(index._errors, index._solved, 0.0, ratio=ratio, left_out=left_out)
            / model.mass
            for left_out in (False, True)
        )
    return Estimate(value, by_case, removal=removal)


def auc(model: Scored) -> Estimate:
    """Estimate the share of pairs that are ranked correctly, ties counting half."""

    def of_pair(scores: PairScores) -> tuple[float, Floats, Floats, Floats]:
        negative, positive = scores.negative, scores.positive
        below = _mass_below(positive.values, negative)
        above = positive.total - _mass_below(negative.values, positive)
        # Masses, not shares: of whole numbers a perfect order is exactly 1.
        value = float(positive.mass @ below) / (negative.total * positive.total)
        return (
            value,
            (above / positive.total - value)[negative.places],
            (below / negative.total - value)[positive.places],
            np.array([-value, -value]),
        )

    return model.over_pairs(of_pair)


def _mass_below(values: Floats, other: Side) -> Floats:
    """Return the mass of a class below each value, equal scores counting half."""
    running = np.concatenate([[0.0], np.cumsum(other.mass)])
    first, last = other.values.searchsorted(values), other.values.searchsorted(values, side="right")
    return np.asarray(0.5 * (running[first] + running[last]))


def cvar(model: Scored) -> Estimate:
    """Estimate the mean ranking error of the worst 5 % of the pairs."""
    tail = 1.0 - CVAR_LEVEL

    def of_pair(scores: PairScores) -> tuple[float, Floats, Floats, Floats]:
        level = scores.level_where(
            lambda part, t: tail - part.share_above(t), scores.smallest, scores.largest
        )
        value = level + scores.excess(level) / tail
        return min(value, scores.largest), *scores.excess_influences(level, 1.0 / tail)

    return model.over_pairs(of_pair)


def buffered_auc(model: Scored) -> Estimate:
    r"""Estimate one minus the least :math:`E(a\varepsilon + 1)_+` over :math:`a \ge 0`.

    The least value is at :math:`a = -1/t`, where the errors above t have mean zero.
    """

    def of_pair(scores: PairScores) -> tuple[float, Floats, Floats, Floats]:
        flat = np.zeros(scores.negative.places.size), np.zeros(scores.positive.places.size)
        if scores.largest < 0.0:
            return 1.0, *flat, np.zeros(2)
        if scores.largest == 0.0:  # the larger a, the less: only ties remain in the limit
            return 1.0 - scores.share_from(0.0), *flat, np.zeros(2)
        if scores.mean >= 0.0:
            return 0.0, *flat, np.zeros(2)
        level = scores.level_where(_mean_above, scores.smallest, 0.0)
        if level == 0.0:
            return 1.0 - scores.share_from(0.0), *flat, np.zeros(2)
        value = 1.0 + scores.excess(level) / level
        return min(max(value, 0.0), 1.0), *scores.excess_influences(level, 1.0 / level)

    return model.over_pairs(of_pair)


def _mean_above(scores: PairScores, level: float) -> float:
    """Return the mean of the errors above a level, times their share."""
    return scores.excess(level) + level * scores.share_above(level)


def ks(model: Scored) -> Estimate:
    """Estimate the largest difference of the distribution functions of two classes."""

    def of_pair(scores: PairScores) -> tuple[float, Floats, Floats, Floats]:
        values = np.union1d(scores.negative.values, scores.positive.values)
        below = [
            np.concatenate([[0.0], np.cumsum(side.mass)])[
                side.values.searchsorted(values, side="right")
            ]
            / side.total
            for side in (scores.negative, scores.positive)
        ]
        gap = below[0] - below[1]
        at = int(np.argmax(np.abs(gap)))
        sign = 1.0 if gap[at] >= 0.0 else -1.0
        sides = [
            factor * ((side.values <= values[at])[side.places] - share[at])
            for side, share, factor in (
                (scores.negative, below[0], sign),
                (scores.positive, below[1], -sign),
            )
        ]
        return float(abs(gap[at])), sides[0], sides[1], np.zeros(2)

    return model.over_pairs(of_pair)


def largest_index(value: float) -> float:
    """Return the scale of an index: its standard error is rounded relative to this."""
    return value if 0.0 < value < inf else 1.0
