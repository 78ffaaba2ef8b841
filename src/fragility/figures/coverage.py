"""Errors among the surest predictions: the risk–coverage curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..measured import Measured
from ..ordered import running_totals
from .rank import Levels, measured_between


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Error rate among the surest cases, by how many of all they are.

    Attributes
    ----------
    coverage : ndarray of shape (n_points,)
        Share of the cases that are at least as confident as `confidence`, ascending to 1.
    risk : ndarray of shape (n_points,)
        Share of wrong predictions among these.
    confidence : ndarray of shape (n_points,)
        Descending. Cases of equal confidence count together.
    """

    coverage: Floats
    risk: Floats
    confidence: Floats


def risk_coverage_curve(levels: Levels) -> RiskCoverageCurve:
    """A point for each confidence that occurs."""
    weight, wrong = np.cumsum(levels.weight[::-1]), np.cumsum(levels.wrong[::-1])
    return RiskCoverageCurve(weight / weight[-1], wrong / weight, levels.low[::-1].copy())


def errors_in_surest(levels: Levels, share: float) -> Measured:
    """Error rate among this share of the cases, the surest.

    Cases of equal confidence at the boundary are taken in proportion. Where a bin lies across it,
    the order within is not known: the figure has bounds.
    """
    weight, wrong = levels.weight[::-1], levels.wrong[::-1]
    mass, errors = running_totals(weight), running_totals(wrong)
    taken = share * float(mass[-1])
    place = min(int(np.searchsorted(mass, taken, side="right")) - 1, weight.size - 1)
    inside = min(taken - float(mass[place]), float(weight[place]))
    before, own, size = float(errors[place]), float(wrong[place]), float(weight[place])
    if levels.tied[::-1][place] or inside <= 0.0 or inside >= size:
        return Measured((before + own * inside / size) / taken)
    least, most = max(inside - (size - own), 0.0), min(inside, own)
    return measured_between((before + least) / taken, (before + most) / taken)
