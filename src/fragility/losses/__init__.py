"""Convex losses of linear scores: value, gradient and curvature, one file per loss."""

from __future__ import annotations

from typing import Any

from .._parameters import object_of_name
from .base import Loss, LossPoint
from .cross_entropy import CrossEntropy
from .gaps import GapLoss
from .hinge import Hinge
from .max_logistic import MaxLogistic
from .piecewise_linear import Pieces, PiecewiseLinear
from .smoothed_hinge import SmoothedHinge

__all__ = [
    "CrossEntropy",
    "GapLoss",
    "Hinge",
    "Loss",
    "LossPoint",
    "MaxLogistic",
    "Pieces",
    "PiecewiseLinear",
    "SmoothedHinge",
    "as_loss",
]

_NAMED: dict[str, type[Loss]] = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "max_logistic": MaxLogistic,
    "smoothed_hinge": SmoothedHinge,
}


def as_loss(given: str | Loss | Any) -> Loss:
    """A loss from its name, or the object itself.

    Examples
    --------
    >>> from fragility.losses import as_loss
    >>> as_loss("smoothed_hinge")
    SmoothedHinge(smoothing=1.0)
    """
    return object_of_name(given, Loss, _NAMED, "loss", "SmoothedHinge(0.5)")
